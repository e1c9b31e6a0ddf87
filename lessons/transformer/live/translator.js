// A trained model translates a sentence, word by word, and shows which of the words it reads it looks at.
//   state()  {sentence, written, head, source, origins, words, likeliest, probs, weights, map}: the words read, and for
//            each word of the translation the place that it should come from; the words written so far; the three
//            likeliest words for the last of them, and the probabilities of all; for each head, and as drawn (map),
//            a row for each word written
//   set({sentence, written, head})  sentence is a text, "the old dog saw the cats ."; written is counted from 1, up to
//            the whole translation; head is 1 to 4, or 0 for the largest weight of all heads
"use strict";
{
  const { kit, language, translator } = d2lLive;
  const { html, svg, decimals } = kit;
  const { nouns, adjectives, verbs } = language;
  const NUM_HEADS = 4;
  const LIKELIEST = 3;
  const LONGEST = 8; // words
  const [EDGE, CELL] = [74, 24]; // the sizes of the labels and of a cell, in units of the drawing
  const SIDE = EDGE + LONGEST * CELL + 1;
  const TOP = 12; // the longest word leaves this much free above it

  const adjectiveNames = ["", ...Object.keys(adjectives)];
  const nounNames = Object.keys(nouns).flatMap((noun) => [noun, `${noun}s`]);
  const verbNames = Object.keys(verbs);
  let translate; // created for the first figure
  const translations = new Map();

  const read = (source) => {
    translate ??= translator.create(d2lLive.weights);
    const key = source.join(" ");
    if (!translations.has(key)) {
      const steps = translate(source.map((word) => language.source.indexOf(word)));
      translations.set(key, steps.map((step) => ({ ...step, word: language.target[step.token] })));
    }
    return translations.get(key);
  };

  /** Return the places that a translation's words come from: article, noun, adjective of each phrase, verb, stop. */
  const findOrigins = (source) => {
    const verb = source.findIndex((word) => word in verbs);
    const reorder = (start, end) => [start, end - 1, ...(end - start > 2 ? [start + 1] : [])];
    const stop = source.length - 1;
    return [...reorder(0, verb), ...reorder(verb + 1, stop), verb, stop];
  };

  const listLikeliest = (probs) => {
    const tokens = [...probs.keys()].sort((a, b) => probs[b] - probs[a]);
    return tokens.slice(0, LIKELIEST).map((token) => ({ word: language.target[token] || "–", prob: probs[token] }));
  };

  /** Draw the weights, a row for each word written and a column for each word read. */
  const drawMap = ({ source, words, origins, map }, names) => {
    const middle = (place) => EDGE + (place + 0.5) * CELL;
    const text = (place, content, attributes = {}) => svg("text", { transform: place, ...attributes }, content);
    const label = (place, word, isNew) => text(place, word, { lang: "en", class: isNew ? "live-new" : "" });
    const box = (row, column, inset, attributes) => {
      const [x, y] = [column, row].map((place) => EDGE + place * CELL + inset);
      return svg("rect", { x, y, width: CELL - 2 * inset, height: CELL - 2 * inset, ...attributes });
    };
    const cell = (weight, row, column) =>
      box(row, column, 1, { class: "live-cell", style: `--weight: ${weight.toFixed(4)}` });
    const frame = (row) => box(row, origins[row], 1.5, { class: "live-frame" });
    const last = words.length - 1;
    return [
      text(`translate(${EDGE - 5} 40)`, names.read),
      text(`translate(${EDGE - 5} 58)`, names.written),
      ...source.map((word, k) => label(`translate(${middle(k)} ${EDGE - 5}) rotate(90)`, word, k === origins[last])),
      ...words.map((word, k) => label(`translate(${EDGE - 5} ${middle(k)})`, word, k === last)),
      ...map.flatMap((weights, row) => weights.map((weight, column) => cell(weight, row, column))),
      ...map.flatMap((_, row) => (row < origins.length ? [frame(row)] : [])),
    ];
  };

  /** Return the place of a word's largest weight. */
  const findLargest = (weights) => weights.indexOf(Math.max(...weights));

  const createSelect = (name, options, words, onInput) => {
    const choices = options.map((word) => html("option", { value: word, lang: "en" }, word || words.none));
    const node = html("select", { "aria-label": name }, ...choices);
    node.addEventListener("input", onInput);
    return node;
  };

  kit.figure("translator", (root, words) => {
    const map = svg("svg", { viewBox: `0 ${TOP} ${SIDE} ${SIDE - TOP}`, role: "img", class: "live-looks" });
    const [translation, rows, heading] = [html("span", { lang: "en" }), html("tbody"), html("caption")];
    const caption = kit.quietOutput();
    let wanted = 5; // words, as far as the translation has them

    const readSource = () => {
      const phrase = ({ adjective, noun }) => ["the", adjective.value, noun.value].filter(Boolean);
      return [...phrase(subject), verb.value, ...phrase(object), "."];
    };
    const state = () => {
      const source = readSource();
      const steps = read(source).slice(0, written.value);
      const perHead = Array.from({ length: NUM_HEADS }, (_, h) => steps.map(({ weights }) => weights[h]));
      const largest = steps.map(({ weights }) => source.map((_, k) => Math.max(...weights.map((row) => row[k]))));
      const { probs } = steps.at(-1);
      return {
        sentence: source.join(" "),
        written: steps.length,
        head: head.value,
        source,
        origins: findOrigins(source),
        words: steps.map(({ word }) => word),
        likeliest: listLikeliest(probs),
        probs,
        weights: perHead,
        map: head.value ? perHead[head.value - 1] : largest,
      };
    };

    const createRow = ({ word, prob }) => {
      const bar = html("span", { class: "live-bar", style: `width: ${100 * prob}%` });
      return html(
        "tr",
        {},
        html("th", { scope: "row", lang: "en" }, word),
        html("td", { "aria-hidden": "true" }, bar),
        html("td", {}, decimals(prob, 3)),
      );
    };
    const describeRow = ({ source, map, words }, row) => {
      const place = findLargest(map[row]);
      return [words[row], source[place], decimals(map[row][place], 2)];
    };
    const draw = () => {
      const length = read(readSource()).length;
      written.input.max = length;
      written.value = Math.min(wanted, length);
      const now = state();
      const last = now.written - 1;
      const isWhole = now.written === length;
      next.textContent = isWhole ? words.again : words.next;
      translation.replaceChildren(now.words.slice(0, -1).join(" "), " ", html("b", {}, now.words[last]));
      map.replaceChildren(...drawMap(now, words));
      map.setAttribute("aria-label", words.map(now.head, now.words.map((_, row) => describeRow(now, row))));
      heading.textContent = words.likeliest(now.written);
      rows.replaceChildren(...now.likeliest.map(createRow));
      const origin = now.origins[last];
      const isOrigin = origin === findLargest(now.map[last]);
      const from = [now.source[origin], decimals(now.map[last][origin] ?? 0, 2)];
      caption.value = words.summary(now.head, describeRow(now, last), isOrigin, from);
    };
    const update = () => {
      draw();
      announce(words.announce(translation.textContent, caption.value));
    };
    const write = (count) => {
      wanted = count < written.input.max ? count : LONGEST;
      update();
    };

    const createPhrase = ([adjective, noun]) => ({
      adjective: createSelect(adjective, adjectiveNames, words, update),
      noun: createSelect(noun, nounNames, words, update),
    });
    const subject = createPhrase(words.subject);
    const verb = createSelect(words.verb, verbNames, words, update);
    const object = createPhrase(words.object);
    const setSentence = (sentence) => {
      const parts = sentence.split(" ");
      const place = parts.findIndex((word) => word in verbs);
      const setPhrase = ({ adjective, noun }, [, ...rest]) => {
        noun.value = rest.pop();
        adjective.value = rest.pop() ?? "";
      };
      setPhrase(subject, parts.slice(0, place));
      verb.value = parts[place];
      setPhrase(object, parts.slice(place + 1, -1));
    };
    setSentence("the old queen helped the red birds .");

    const bounds = { min: 1, max: LONGEST, value: LONGEST };
    const count = (number) => words.count(number, read(readSource()).length);
    const written = kit.slider(words.words, bounds, () => write(written.value), count);
    const next = kit.button(words.next, () => write(written.value < written.input.max ? written.value + 1 : 1));
    const all = kit.button(words.all, () => write(LONGEST));
    const head = kit.choice(words.head, [words.largest, "1", "2", "3", "4"], 0, update);

    const the = () => html("span", { lang: "en" }, "the");
    const parts = [the(), subject.adjective, subject.noun, verb, the(), object.adjective, object.noun];
    const header = [words.word, "", words.probability].map((name) =>
      name ? html("th", { scope: "col" }, name) : html("td"),
    );
    const table = html("table", { class: "live-table" }, heading, html("thead", {}, html("tr", {}, ...header)), rows);
    const marks = ["frame", "weight"].map((kind) => html("span", { class: `live-mark-${kind}` }, words[kind]));
    const group = { class: "live-composed", role: "group", "aria-label": words.sentence };
    root.append(
      html("div", group, ...parts, html("span", {}, ".")),
      html("div", { class: "live-controls" }, written.node, next, all, head.node),
      html("p", { class: "live-translation" }, translation),
      html(
        "div",
        { class: "live-translator" },
        map,
        html("div", {}, table, html("p", {}, caption), html("p", { class: "live-legend" }, ...marks)),
      ),
    );
    const announce = kit.announcer(root);
    const controls = {
      sentence: setSentence,
      written: (number) => (wanted = number),
      head: (number) => (head.value = number),
    };
    return { controls, draw, state };
  });
}
