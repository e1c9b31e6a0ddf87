// From position i to i + delta by one matrix per pair of columns, which is the same for every i.
//   state()  {i, delta, matrices, turned, target, residual}: the 2 x 2 matrix of each of the four pairs, the pair
//            at i turned by it, the pair at i + delta, and the largest difference between turned and target
//   set({i, delta})  i from 0 to 59, delta from -20 to 20; i is raised if i + delta would be negative
"use strict";
{
  const { encoding, kit, mathematics } = d2lLive;
  const { html, svg, quietOutput, decimals } = kit;
  const D = 8;
  const OMEGA = encoding.frequencies(D);

  const pairs = (i) => encoding.pairs(i, D);

  const compute = (i, delta) => {
    const matrices = OMEGA.map((omega) => encoding.rotation(delta * omega));
    const turned = pairs(i).map((pair, j) => mathematics.apply(matrices[j], pair));
    const target = pairs(i + delta);
    return { i, delta, matrices, turned, target, residual: mathematics.difference(turned, target) };
  };

  /** Draw a spiral from one angle to another. It winds outward, so that several turns do not overlap. */
  const spiral = (from, turn) => {
    const steps = 4 + Math.ceil(Math.abs(turn) * 8);
    const points = Array.from({ length: steps + 1 }, (_, k) => {
      const angle = (turn * k) / steps;
      return kit.tip(from + angle, 0.4 + 0.02 * Math.abs(angle));
    });
    return svg("polyline", { class: "live-way", points: points.join(" ") });
  };

  /** Draw everything on one dial. A pair (sin, cos) is the point (x, y). */
  const drawing = (start, turn, ...points) => {
    const [from, to, target] = points.map(([sine, cosine]) => [sine, -cosine]); // SVG counts y downward
    return [
      svg("line", { class: "live-hand live-from", x2: from[0], y2: from[1] }),
      svg("line", { class: "live-hand", x2: to[0], y2: to[1] }),
      spiral(start, turn),
      svg("circle", { class: "live-start", cx: from[0], cy: from[1], r: 0.1 }),
      svg("path", { class: "live-turned", d: `M${to} m0,-.11 l.11,.11 l-.11,.11 l-.11,-.11 z` }),
      svg("circle", { class: "live-target", cx: target[0], cy: target[1], r: 0.17 }),
    ];
  };

  /** Show one pair of columns: its dial, its matrix, and the angle of the matrix. */
  const cell = (omega, j, words) => {
    const { node: dial, hands } = kit.dial();
    const entries = Array.from({ length: 4 }, () => quietOutput());
    const label = { role: "group", "aria-label": words.matrix(j) };
    const matrix = html("div", { class: "live-matrix", ...label }, ...entries);
    const angle = html("small");
    const draw = ({ i, delta, matrices, turned, target }) => {
      const [start, turn] = [i * omega, delta * omega];
      hands.replaceChildren(...drawing(start, turn, pairs(i)[j], turned[j], target[j]));
      matrices[j].flat().forEach((x, k) => (entries[k].value = decimals(x, 2)));
      angle.textContent = words.angle(kit.degrees(turn));
      dial.setAttribute("aria-label", words.pair(j, kit.degrees(start), kit.degrees(turn)));
    };
    return { node: html("div", { class: "live-cell" }, dial, matrix, angle), draw };
  };

  kit.figure("rotation", (root, words) => {
    const cells = OMEGA.map((omega, j) => cell(omega, j, words));
    const [start, turned, target] = ["start", "turned", "target"].map((kind) =>
      html("span", { class: `live-mark-${kind}` }),
    );
    const [norm, residual] = [html("span"), quietOutput()];
    let chosenI = 3; // the reader's choice, restored when delta allows it

    const state = () => compute(i.value, delta.value);
    const draw = () => {
      i.input.min = Math.max(0, -delta.value);
      i.value = chosenI;
      const now = state();
      for (const each of cells) each.draw(now);
      start.textContent = words.at(now.i);
      turned.textContent = words.turned;
      target.textContent = words.at(now.i + now.delta);
      const [p, q] = [now.i, now.i + now.delta].map((position) => `p${kit.subscript(position)}`);
      norm.textContent = ` |R ${p} − ${q}| = `;
      residual.value = kit.formatError(now.residual);
    };
    const update = () => {
      draw();
      announce(`${words.residual} ${residual.value}`);
    };

    const choose = () => {
      chosenI = i.value;
      update();
    };
    const i = kit.slider(words.position, { min: 0, max: 59, value: chosenI }, choose);
    const delta = kit.slider(words.offset, { min: -20, max: 20, value: 5 }, update, (x) => decimals(x, 0));
    root.append(
      html("div", { class: "live-controls" }, i.node, delta.node),
      html("p", { class: "live-legend" }, start, turned, target),
      html("div", { class: "live-grid" }, ...cells.map(({ node }) => node)),
      html("p", {}, words.residual, norm, residual),
      html("p", { class: "live-hint" }, words.hint),
    );
    const announce = kit.announcer(root);
    const controls = { i: (position) => (chosenI = position), delta: (offset) => (delta.value = offset) };
    return { controls, draw, state };
  });
}
