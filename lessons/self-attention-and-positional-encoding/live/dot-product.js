// The dot product of two positions against their distance: one curve, wherever it is measured.
//   state()  {i, distance, product, products, spread}: product at the distance; products at -20 to 20; spread
//            is their largest difference from the curves of the positions 20, 28 and 36
//   set({i, distance})  i from 20 to 39, where all these neighbours lie within the 60 positions
"use strict";
{
  const { encoding, kit, mathematics } = d2lLive;
  const { html, svg, decimals } = kit;
  const D = 32;
  const FAR = 20;
  const P = encoding.matrix(60, D);
  const DISTANCES = Array.from({ length: 2 * FAR + 1 }, (_, k) => k - FAR);
  const ROWS = [20, 28, 36];
  const HEIGHT = 320;
  const [LEFT, RIGHT, TOP, BOTTOM] = [28, 28, 84, 44]; // the margins of the plot, in pixels

  const curve = (i) => DISTANCES.map((distance) => mathematics.dot(P[i], P[i - distance]));
  const REFERENCES = ROWS.map(curve);

  const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
  const text = (x, y, words, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor }, words);

  /** Where the two positions are, and how far the curve reaches around i. */
  const ruler = (width, { i, distance }) => {
    const x = (position) => LEFT + (position / (P.length - 1)) * (width - LEFT - RIGHT);
    const j = i - distance;
    return [
      line(x(0), 28, x(P.length - 1), 28, "live-tick"),
      line(x(i - FAR), 28, x(i + FAR), 28, "live-reach"),
      svg("circle", { class: "live-start", cx: x(i), cy: 28, r: 6 }),
      svg("circle", { class: "live-target", cx: x(j), cy: 28, r: 9 }),
      text(LEFT - 12, 32, "0", "end"),
      text(width - RIGHT + 12, 32, String(P.length - 1), "start"),
      text(x(i), 13, `i = ${i}`),
      text(x(j), 52, `j = ${j}`),
    ];
  };

  /** The plot, drawn for a width in pixels so that its letters stay readable on a telephone. */
  const plot = (width, { distance, product, products }, words) => {
    const x = (at) => LEFT + ((at + FAR) / (2 * FAR)) * (width - LEFT - RIGHT);
    const y = (at) => HEIGHT - BOTTOM - (at / (D / 2)) * (HEIGHT - BOTTOM - TOP);
    const path = (values, kind, thickness) => {
      const points = values.map((v, k) => [x(k - FAR), y(v)]).join(" ");
      return svg("polyline", { class: kind, points, "stroke-width": thickness });
    };
    const grid = [0, 4, 8, 12, 16].flatMap((at) => [
      line(LEFT, y(at), width - RIGHT, y(at), "live-tick"),
      text(LEFT - 8, y(at) + 4, String(at), "end"),
    ]);
    const labels = [-20, -10, 0, 10, 20].map((at) => text(x(at), HEIGHT - 26, decimals(at, 0)));
    return [
      ...grid,
      ...labels,
      text(0, TOP - 12, words.product, "start"),
      text(x(0), HEIGHT - 6, words.distance),
      line(x(distance), y(0), x(distance), TOP, "live-guide"),
      ...REFERENCES.map((values, k) => path(values, "live-reference", 12 - 4 * k)), // one within the other
      path(products, "live-curve", 1.5),
      svg("circle", { class: "live-target", cx: x(distance), cy: y(product), r: 7 }),
    ];
  };

  kit.figure("dot-product", (root, words) => {
    const canvas = svg("svg", { role: "img", class: "live-plot", height: HEIGHT });
    const [name, value, spread] = [html("span"), kit.quiet(), kit.quiet()];
    const chosen = html("span", { class: "live-mark-curve" });
    const references = html("span", { class: "live-mark-reference" }, words.references(ROWS));
    const state = () => {
      const products = curve(i.value);
      const product = products[distance.value + FAR];
      const difference = Math.max(...REFERENCES.map((r) => mathematics.difference(products, r)));
      return { i: i.value, distance: distance.value, product, products, spread: difference };
    };
    const draw = () => {
      const now = state();
      const { width } = canvas.getBoundingClientRect();
      canvas.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      canvas.replaceChildren(...ruler(width, now), ...plot(width, now, words));
      const [a, b] = [now.i, now.i - now.distance].map(kit.subscript);
      name.textContent = `p${a} · p${b} = `;
      value.value = decimals(now.product, 4);
      chosen.textContent = `i = ${now.i}`;
      spread.value = kit.tiny(now.spread);
      canvas.setAttribute("aria-label", words.plot(now.i, decimals(now.distance, 0), value.value));
    };
    const moved = () => {
      draw();
      announce(name.textContent + value.value);
    };
    const i = kit.slider(words.position, { min: FAR, max: 59 - FAR, value: 28 }, moved);
    const range = { min: -FAR, max: FAR, value: 0 };
    const distance = kit.slider(words.distance, range, moved, (x) => decimals(x, 0));

    const point = ({ clientX }) => {
      const box = canvas.getBoundingClientRect();
      const share = (clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
      distance.value = Math.round(share * 2 * FAR - FAR); // the slider keeps it within its range
      draw();
    };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerdown", point);

    root.append(
      html("div", { class: "live-controls" }, i.node, distance.node),
      html("p", {}, name, value),
      canvas,
      html("p", { class: "live-legend" }, chosen, references, html("div", {}, words.spread, spread)),
    );
    const announce = kit.announcer(root);
    new ResizeObserver(draw).observe(canvas);
    const controls = { i: (row) => (i.value = row), distance: (far) => (distance.value = far) };
    return { controls, draw, state };
  });
}
