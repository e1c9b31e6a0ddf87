// Ask one head, which gives one average, or two heads: "How much more does a pear cost than a lemon?"
//   state()  {first, second, loud, two, queries, weights, answers, difference}: a query, its weights and its answer for
//            each head; the difference of the two answers, or null for one head
//   set({first, second, loud, two})  fruits by number, 0 to 2; a whole number from 0 to 10; true or false
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
    const caption = kit.quiet();

    const state = () => {
      const [a, b] = [first, second].map((fruit) => KEYS[fruit.value].map((x) => x * loud.value));
      const settings = { first: first.value, second: second.value, loud: loud.value, two: two.value };
      return { ...settings, ...ask(two.value ? [a, b] : mathematics.add([a], [b])) };
    };
    const sentence = ({ first, second, answers: [a, b], difference }) =>
      difference === null
        ? words.average(decimals(a, 1), kit.addition([PRICES[first], -PRICES[second]], 0))
        : words.difference(kit.addition([a, -b], 1), first, second, decimals(difference, 1));

    const table = ({ queries, weights, answers, two }, head) => {
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
        html("caption", {}, words.asks(two ? head + 1 : 0, queries[head].join(",\u00a0"))),
        html("thead", {}, row(...names.map((name) => (name ? html("th", { scope: "col" }, name) : cell(""))))),
        html("tbody", {}, ...weights[head].map(entry)),
        html("tfoot", {}, answer),
      );
    };
    const draw = () => {
      const now = state();
      heads.replaceChildren(...now.queries.map((_, head) => table(now, head)));
      caption.value = sentence(now);
    };
    const update = () => {
      draw();
      announce(caption.value);
    };

    const first = kit.choice(words.first, words.fruits, 2, update);
    const second = kit.choice(words.second, words.fruits, 1, update);
    const loud = kit.slider(words.loud, { min: 0, max: 10, value: 6 }, update);
    const two = kit.checkbox(words.two, update);
    const controls = [first, second, loud, two].map(({ node }) => node);
    root.append(html("div", { class: "live-controls" }, ...controls), heads, html("p", {}, caption));
    const announce = kit.announcer(root);
    const set = (control) => (value) => (control.value = value);
    return { controls: { first: set(first), second: set(second), loud: set(loud), two: set(two) }, draw, state };
  });
}
