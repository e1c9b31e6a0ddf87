// The dot product of two positions against their distance: one curve, wherever it is measured.
//   state()  {i, distance, product, products, spread}: product at the distance; products at -20 to 20; spread
//            is their largest difference from the curves of the positions 20, 28 and 36
//   set({i, distance})  i from 20 to 39, so that all positions from i - 20 to i + 20 are among the 60
"use strict";
{
  const { encoding, kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const { plot, line, text, circle } = d2lLive.plot;
  const D = 32;
  const REACH = 20;
  const P = encoding.matrix(60, D);
  const DISTANCES = Array.from({ length: 2 * REACH + 1 }, (_, k) => k - REACH);
  const ROWS = [20, 28, 36];

  const curve = (i) => DISTANCES.map((distance) => mathematics.dot(P[i], P[i - distance]));
  const REFERENCES = ROWS.map(curve);

  /** Draw a line from left to right, with the two positions and the range of the curve around i. */
  const ruler = (left, right, { i, distance }) => {
    const x = (position) => left + (position / (P.length - 1)) * (right - left);
    const j = i - distance;
    return [
      line(left, 28, right, 28, "live-tick"),
      line(x(i - REACH), 28, x(i + REACH), 28, "live-reach"),
      circle(x(i), 28, 6, "live-start"),
      circle(x(j), 28, 9, "live-target"),
      text(left - 12, 32, "0", "end"),
      text(right + 12, 32, String(P.length - 1), "start"),
      text(x(i), 13, `i = ${i}`),
      text(x(j), 52, `j = ${j}`),
    ];
  };

  /** Return everything that is drawn over the grid. */
  const parts = ({ x, y, guide, curve: path }, now) => {
    const strokeWidth = (k) => ({ "stroke-width": 12 - 4 * k }); // each inside the one before
    return [
      ...ruler(x(-REACH), x(REACH), now),
      guide(now.distance),
      ...REFERENCES.map((values, k) => path(DISTANCES, values, "live-reference", strokeWidth(k))),
      path(DISTANCES, now.products, "live-curve"),
      circle(x(now.distance), y(now.product), 7, "live-target"),
    ];
  };

  kit.figure("dot-product", (root, words) => {
    const [name, value, spread] = [html("span"), kit.quietOutput(), kit.quietOutput()];
    const curveMark = html("span", { class: "live-mark-curve" });
    const references = html("span", { class: "live-mark-reference" }, words.references(ROWS));
    const state = () => {
      const products = curve(i.value);
      const product = products[distance.value + REACH];
      const difference = Math.max(...REFERENCES.map((r) => mathematics.difference(products, r)));
      return { i: i.value, distance: distance.value, product, products, spread: difference };
    };
    const draw = () => {
      const now = state();
      const [a, b] = [now.i, now.i - now.distance].map(kit.subscript);
      name.textContent = `p${a} · p${b} = `;
      value.value = decimals(now.product, 4);
      curveMark.textContent = `i = ${now.i}`;
      spread.value = kit.formatError(now.spread);
      const label = words.plot(now.i, decimals(now.distance, 0), value.value);
      canvas.draw(label, () => parts(canvas, now));
    };
    const update = () => {
      draw();
      announce(name.textContent + value.value);
    };
    const i = kit.slider(words.position, { min: REACH, max: 59 - REACH, value: 28 }, update);
    const range = { min: -REACH, max: REACH, value: 0 };
    const distance = kit.slider(words.distance, range, update, (x) => decimals(x, 0));

    const point = (x) => {
      distance.value = Math.round(x); // the slider keeps it within its range
      draw();
    };
    const frame = {
      height: 320,
      top: 84, // room for the ruler
      x: { name: words.distance, ticks: [-REACH, -10, 0, 10, REACH] },
      y: { name: words.product, ticks: [0, 4, 8, 12, D / 2] },
    };
    const canvas = plot(frame, draw, point);

    root.append(
      html("div", { class: "live-controls" }, i.node, distance.node),
      html("p", {}, name, value),
      canvas.node,
      html("p", { class: "live-legend" }, curveMark, references, html("div", {}, words.spread, spread)),
    );
    const announce = kit.announcer(root);
    const controls = { i: (row) => (i.value = row), distance: (value) => (distance.value = value) };
    return { controls, draw, state };
  });
}
