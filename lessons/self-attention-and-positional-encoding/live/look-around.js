// A word looks around in a sentence that the reader types: scores, softmax, average, with or without a causal mask.
//   state()  {words, vectors, query, masked, scores, weights, output}: a vector is [thing, action], query the index of
//            the word that asks; a word that is hidden from it has the score null and the weight 0
//   set({sentence, query, masked, vectors})  sentence has at most eight words, separated by spaces; query is an index
//            from 0; masked is true or false; vectors has a vector for each word
"use strict";
{
  const { kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const MAX_WORDS = 8;

  const attend = (vectors, query, masked) => {
    const scores = vectors.map((key, index) => (masked && index > query ? null : mathematics.dot(vectors[query], key)));
    const visibleWeights = mathematics.softmax(scores.filter((score) => score !== null));
    const weights = scores.map((score, index) => (score === null ? 0 : visibleWeights[index]));
    const output = [0, 1].map((part) => mathematics.dot(weights, vectors.map((vector) => vector[part])));
    return { scores, weights, output };
  };

  kit.figure("look-around", (root, words) => {
    let vectors, rows;
    let query = 4;

    /** Return the vector of a word, in any spelling; an unknown word is a bit of both. */
    const lookUpVector = (word) => words.vectors[word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "")] ?? [1, 1];
    const text = () => sentence.value.trim().split(/\s+/).slice(0, MAX_WORDS);
    const state = () => {
      const inputs = { words: text(), vectors, query, masked: masked.value };
      return { ...inputs, ...attend(vectors, query, masked.value) };
    };

    const number = (index, part, label) => {
      const input = html("input", { type: "number", min: -9, max: 9, step: 1, "aria-label": label });
      input.value = vectors[index][part];
      input.addEventListener("input", () => {
        vectors[index][part] = Number.isFinite(input.valueAsNumber) ? input.valueAsNumber : 0;
        update();
      });
      return html("td", {}, input);
    };
    const row = (word, index) => {
      const ask = kit.button(word, () => {
        query = index;
        update();
      });
      const [score, bar, weight] = [html("td"), html("span", { class: "live-bar" }), html("td")];
      const [thing, action] = [words.thing, words.action].map((name, part) =>
        number(index, part, words.label(name, word)),
      );
      const node = html("tr", {}, html("th", { scope: "row" }, ask), thing, action, score, html("td", {}, bar), weight);
      return { node, ask, score, bar, weight };
    };
    const build = (newVectors) => {
      vectors = newVectors ?? text().map((word) => [...lookUpVector(word)]);
      query = Math.min(query, vectors.length - 1);
      rows = text().map(row);
      body.replaceChildren(...rows.map(({ node }) => node));
    };
    const draw = () => {
      const now = state();
      rows.forEach(({ ask, score, bar, weight }, index) => {
        ask.setAttribute("aria-pressed", index === query);
        score.textContent = now.scores[index] === null ? "−∞" : decimals(now.scores[index], 0);
        bar.style.width = `${100 * now.weights[index]}%`;
        weight.textContent = decimals(now.weights[index], 2);
      });
      const strongest = now.weights.indexOf(Math.max(...now.weights));
      const [before, after] = [vectors[query].map(String), now.output.map((x) => decimals(x, 2))];
      const weight = decimals(now.weights[strongest], 2);
      summary.value = words.summary(now.words[query], before, after, now.words[strongest], weight);
    };
    const update = () => {
      draw();
      announce(summary.value);
    };
    const onInput = () => {
      if (!sentence.value.trim()) return;
      build();
      update();
    };

    const attributes = { type: "text", class: "live-words", value: words.sentence };
    const { input: sentence, label } = kit.labelledInput(words.type, attributes, onInput);
    const masked = kit.checkbox(words.mask, update);
    const names = [words.word, words.thing, words.action, words.score, "", words.weight];
    const head = html("tr", {}, ...names.map((name) => html(name ? "th" : "td", name ? { scope: "col" } : {}, name)));
    const body = html("tbody");
    const summary = kit.quietOutput();
    const table = html("table", { class: "live-table live-look" }, html("thead", {}, head), body);
    root.append(html("div", { class: "live-controls" }, label, sentence, masked.node), table, html("p", {}, summary));
    const announce = kit.announcer(root);
    const controls = {
      sentence: (words) => {
        sentence.value = words;
        build();
      },
      query: (index) => (query = index),
      masked: (hidden) => (masked.value = hidden),
      vectors: build,
    };
    build();
    return { controls, draw, state };
  });
}
