// Attention among six tokens, in any order, with and without a positional encoding.
//   state()  {tokens, order, positions, weights, outputs, difference: {weights, outputs}}: order[k] is the
//            token at position k; difference compares with the results of the original order, shuffled likewise
//   set({order, positions})  order is a permutation of 0 to 5; positions is true or false
"use strict";
{
  const { encoding, kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const N = 6;
  const D = 8;
  const ORIGINAL_ORDER = [0, 1, 2, 3, 4, 5];

  const random = mathematics.generator(1);
  const X = mathematics.normal(random, N, D);
  const [W_Q, W_K, W_V] = [1, 2, 3].map(() => mathematics.normal(random, D, D, D ** -0.5));
  const P = encoding.matrix(N, D);

  const attend = (tokens, positions) => {
    const input = positions ? mathematics.add(tokens, P) : tokens;
    return mathematics.attention(...[W_Q, W_K, W_V].map((W) => mathematics.product(input, W)));
  };

  const compute = (order, positions) => {
    const reorder = (rows) => order.map((k) => rows[k]);
    const { weights, outputs } = attend(reorder(X), positions);
    const original = attend(X, positions);
    const difference = {
      weights: mathematics.difference(weights, reorder(original.weights).map(reorder)),
      outputs: mathematics.difference(outputs, reorder(original.outputs)),
    };
    return { order, positions, weights, outputs, difference };
  };

  /** Let an element glide to its position from this many widths and heights away. */
  const glide = (node, columns, rows) => {
    if (kit.reducedMotion.matches || !(columns || rows)) return;
    const start = { transform: `translate(${100 * columns}%, ${100 * rows}%)` };
    node.animate([start, { transform: "none" }], { duration: 400, easing: "ease-in-out" });
  };

  kit.figure("shuffle", (root, words) => {
    const dice = mathematics.generator(6); // everyone sees the same shuffles, one after the other
    const columns = ORIGINAL_ORDER.map((position) => kit.button("", () => move(position, (position + 1) % N)));
    const rows = ORIGINAL_ORDER.map(() => html("span"));
    const cells = ORIGINAL_ORDER.map(() => ORIGINAL_ORDER.map(() => html("span", { class: "live-weight" })));
    const weights = html("div", { class: "live-tokens", role: "img" });
    weights.append(...ORIGINAL_ORDER.flatMap((row) => [rows[row], ...cells[row]]));
    const [weightsDifference, outputsDifference] = [kit.quietOutput(), kit.quietOutput()];
    let order = ORIGINAL_ORDER;

    const state = () => ({ tokens: words.tokens, ...compute(order, positions.value) });
    const sentence = () => order.map((k) => words.tokens[k]).join(" ");
    const describeStrongest = (now) =>
      now.weights.map((row, position) => {
        const weight = Math.max(...row);
        const [query, key] = [position, row.indexOf(weight)].map((index) => words.tokens[order[index]]);
        return words.strongest(query, key, decimals(weight, 2));
      });
    const draw = () => {
      const now = state();
      order.forEach((token, position) => {
        const word = words.tokens[token];
        columns[position].textContent = rows[position].textContent = word;
        columns[position].setAttribute("aria-label", words.token(word, position + 1));
        now.weights[position].forEach((weight, column) => {
          cells[position][column].textContent = decimals(weight, 2);
          cells[position][column].style.setProperty("--weight", weight);
        });
      });
      weights.setAttribute("aria-label", words.map(describeStrongest(now)));
      weightsDifference.value = decimals(now.difference.weights, 4);
      outputsDifference.value = decimals(now.difference.outputs, 4);
    };
    const update = () => {
      draw();
      announce(words.summary(sentence(), weightsDifference.value, outputsDifference.value));
    };

    /** Show the tokens in another order, and let each glide from its previous position. */
    const arrange = (next) => {
      const shifts = next.map((token, position) => order.indexOf(token) - position);
      order = next;
      update();
      shifts.forEach((rowShift, row) => {
        glide(columns[row], rowShift, 0);
        glide(rows[row], 0, rowShift);
        shifts.forEach((columnShift, column) => glide(cells[row][column], columnShift, rowShift));
      });
    };
    const move = (from, to) => {
      const next = order.filter((_, position) => position !== from);
      next.splice(to, 0, order[from]);
      arrange(next);
      columns[to].focus();
    };
    const shuffle = () => {
      let next = order;
      while ([order, ORIGINAL_ORDER].some((old) => String(old) === String(next))) {
        next = mathematics.permutation(dice, N);
      }
      arrange(next);
    };

    const positions = kit.checkbox(words.positions, update);
    const buttons = [kit.button(words.shuffle, shuffle), kit.button(words.order, () => arrange(ORIGINAL_ORDER))];
    columns.forEach((node, position) =>
      node.addEventListener("keydown", (event) => {
        const to = position + kit.arrow(event)?.[1];
        if (to !== position && to in columns) move(position, to);
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
