// Attention among six tokens, in any order, with and without a positional encoding.
//   state()  {tokens, order, positions, weights, outputs, difference: {weights, outputs}}: order[k] is the
//            token in place k; difference compares with the sentence in order, its results shuffled likewise
//   set({order, positions})  a permutation of 0 to 5; true or false
"use strict";
{
  const { encoding, kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const N = 6;
  const D = 8;
  const IN_ORDER = [0, 1, 2, 3, 4, 5];

  const random = mathematics.generator(1);
  const X = mathematics.normal(random, N, D);
  const [W_Q, W_K, W_V] = [1, 2, 3].map(() => mathematics.normal(random, D, D, D ** -0.5));
  const P = encoding.matrix(N, D);

  const attend = (tokens, positions) => {
    const input = positions ? mathematics.add(tokens, P) : tokens;
    return mathematics.attention(...[W_Q, W_K, W_V].map((W) => mathematics.product(input, W)));
  };

  const compute = (order, positions) => {
    const shuffled = (rows) => order.map((k) => rows[k]);
    const { weights, outputs } = attend(shuffled(X), positions);
    const original = attend(X, positions);
    const difference = {
      weights: mathematics.difference(weights, shuffled(original.weights).map(shuffled)),
      outputs: mathematics.difference(outputs, shuffled(original.outputs)),
    };
    return { order, positions, weights, outputs, difference };
  };

  /** Let an element glide to its place from this many widths and heights away. */
  const glide = (node, columns, rows) => {
    if (kit.calm.matches || !(columns || rows)) return;
    const start = { transform: `translate(${100 * columns}%, ${100 * rows}%)` };
    node.animate([start, { transform: "none" }], { duration: 400, easing: "ease-in-out" });
  };

  kit.figure("shuffle", (root, words) => {
    const dice = mathematics.generator(6); // everyone sees the same shuffles, one after the other
    const columns = IN_ORDER.map((place) => kit.button("", () => move(place, (place + 1) % N)));
    const rows = IN_ORDER.map(() => html("span"));
    const cells = IN_ORDER.map(() => IN_ORDER.map(() => html("span", { class: "live-weight" })));
    const weights = html("div", { class: "live-tokens", role: "img" });
    weights.append(...IN_ORDER.flatMap((row) => [rows[row], ...cells[row]]));
    const [weightsDifference, outputsDifference] = [kit.quiet(), kit.quiet()];
    let order = IN_ORDER;

    const state = () => ({ tokens: words.tokens, ...compute(order, positions.value) });
    const sentence = () => order.map((k) => words.tokens[k]).join(" ");
    const strongest = (now) =>
      now.weights.map((row, place) => {
        const weight = Math.max(...row);
        const [query, key] = [place, row.indexOf(weight)].map((at) => words.tokens[order[at]]);
        return words.strongest(query, key, decimals(weight, 2));
      });
    const draw = () => {
      const now = state();
      order.forEach((token, place) => {
        const word = words.tokens[token];
        columns[place].textContent = rows[place].textContent = word;
        columns[place].setAttribute("aria-label", words.token(word, place + 1));
        now.weights[place].forEach((weight, column) => {
          cells[place][column].textContent = decimals(weight, 2);
          cells[place][column].style.setProperty("--weight", weight);
        });
      });
      weights.setAttribute("aria-label", words.map(strongest(now)));
      weightsDifference.value = decimals(now.difference.weights, 4);
      outputsDifference.value = decimals(now.difference.outputs, 4);
    };
    const update = () => {
      draw();
      announce(words.summary(sentence(), weightsDifference.value, outputsDifference.value));
    };

    /** Every place shows another token at once; what is seen to move is the way it came. */
    const arrange = (next) => {
      const way = next.map((token, place) => order.indexOf(token) - place);
      order = next;
      update();
      way.forEach((down, row) => {
        glide(columns[row], down, 0);
        glide(rows[row], 0, down);
        way.forEach((across, column) => glide(cells[row][column], across, down));
      });
    };
    const move = (from, to) => {
      const next = order.filter((_, place) => place !== from);
      next.splice(to, 0, order[from]);
      arrange(next);
      columns[to].focus();
    };
    const shuffle = () => {
      let next = order;
      while ([order, IN_ORDER].some((old) => String(old) === String(next))) {
        next = mathematics.permutation(dice, N);
      }
      arrange(next);
    };

    const positions = kit.checkbox(words.positions, update);
    const buttons = [kit.button(words.shuffle, shuffle), kit.button(words.order, () => arrange(IN_ORDER))];
    columns.forEach((node, place) =>
      node.addEventListener("keydown", (event) => {
        const to = place + kit.arrow(event)?.[1];
        if (to !== place && to in columns) move(place, to);
      }),
    );
    const head = html("div", { class: "live-tokens" }, html("small", {}, words.axes), ...columns);
    const names = [words.weights, words.outputs].map((name) => html("span", {}, name));
    const results = html("div", { class: "live-results" }, names[0], weightsDifference, names[1], outputsDifference);
    root.append(
      html("div", { class: "live-controls" }, ...buttons, positions.node),
      html(
        "div",
        { class: "live-beside" },
        html("div", { class: "live-sentence" }, head, weights),
        html(
          "div",
          { class: "live-verdict" },
          html("p", {}, words.compared),
          results,
          html("p", { class: "live-hint" }, words.hint),
        ),
      ),
    );
    const announce = kit.announcer(root);
    const controls = {
      order: (next) => (order = next),
      positions: (added) => (positions.value = added),
    };
    return { controls, draw, state };
  });
}
