// Ask one head, which gives one average, or two heads: "How much more does a pear cost than a lemon?"
//   state()  {first, second, loudness, twoHeads, queries, weights, answers, difference}: a query, its weights and its
//            answer for each head; the difference of the two answers, or null for one head
//   set({first, second, loudness, twoHeads})  first and second are fruit numbers, 0 to 2; loudness is a whole number
//            from 0 to 10; twoHeads is true or false
"use strict";
{
  const { kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const PRICES = [50, 40, 70]; // of an apple, a lemon and a pear
  const KEYS = PRICES.map((_, fruit) => PRICES.map((_, k) => Number(k === fruit)));

  const ask = (queries) => {
    const weights = queries.map((query) => mathematics.softmax(mathematics.apply(KEYS, query)));
    const answers = weights.map((shares) => mathematics.dot(shares, PRICES));
    const [a, b] = answers;
    return { queries, weights, answers, difference: b === undefined ? null : a - b };
  };

  const row = (...cells) => html("tr", {}, ...cells);
  const cell = (content) => html("td", {}, content);
  const bar = (weight) => html("span", { class: "live-bar", style: `width: ${100 * weight}%` });

  kit.figure("heads", (root, words) => {
    const heads = html("div", { class: "live-heads" });
    const caption = kit.quietOutput();

    const state = () => {
      const [a, b] = [first, second].map((fruit) => KEYS[fruit.value].map((x) => x * loudness.value));
      const settings = {
        first: first.value,
        second: second.value,
        loudness: loudness.value,
        twoHeads: twoHeads.value,
      };
      return { ...settings, ...ask(twoHeads.value ? [a, b] : mathematics.add([a], [b])) };
    };
    const summary = ({ first, second, answers: [a, b], difference }) =>
      difference === null
        ? words.average(decimals(a, 1), kit.addition([PRICES[first], -PRICES[second]], 0))
        : words.difference(kit.addition([a, -b], 1), first, second, decimals(difference, 1));

    const createTable = ({ queries, weights, answers, twoHeads }, head) => {
      const names = [words.fruit, words.price, "", words.weight];
      const entry = (weight, fruit) =>
        row(
          html("th", { scope: "row" }, words.fruits[fruit]),
          cell(String(PRICES[fruit])),
          cell(bar(weight)),
          cell(decimals(weight, 3)),
        );
      const answer = row(html("th", { scope: "row", colspan: 3 }, words.answer), cell(decimals(answers[head], 1)));
      return html(
        "table",
        { class: "live-table" },
        html("caption", {}, words.question(twoHeads ? head + 1 : 0, queries[head].join(",\u00a0"))),
        html("thead", {}, row(...names.map((name) => (name ? html("th", { scope: "col" }, name) : cell(""))))),
        html("tbody", {}, ...weights[head].map(entry)),
        html("tfoot", {}, answer),
      );
    };
    const draw = () => {
      const now = state();
      heads.replaceChildren(...now.queries.map((_, head) => createTable(now, head)));
      caption.value = summary(now);
    };
    const update = () => {
      draw();
      announce(caption.value);
    };

    const first = kit.choice(words.first, words.fruits, 2, update);
    const second = kit.choice(words.second, words.fruits, 1, update);
    const loudness = kit.slider(words.loudness, { min: 0, max: 10, value: 6 }, update);
    const twoHeads = kit.checkbox(words.twoHeads, update);
    const nodes = [first, second, loudness, twoHeads].map(({ node }) => node);
    root.append(html("div", { class: "live-controls" }, ...nodes), heads, html("p", {}, caption));
    const announce = kit.announcer(root);
    const set = (control) => (value) => (control.value = value);
    const controls = { first: set(first), second: set(second), loudness: set(loudness), twoHeads: set(twoHeads) };
    return { controls, draw, state };
  });
}
