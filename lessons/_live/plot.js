// Plots of curves and points for live figures.
"use strict";
{
  const { svg, decimals } = d2lLive.kit;

  const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
  const text = (x, y, words, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor }, words);
  const circle = (cx, cy, r, kind) => svg("circle", { class: kind, cx, cy, r });

  /** @typedef {{name: string, ticks: number[]}} Axis */

  /**
   * Create a plot, drawn for its width in pixels so that its labels stay readable on a phone. An axis reaches from
   * its first tick to its last; x and y convert numbers to pixels.
   * @param {{height: number, top: number, x: Axis, y: Axis}} frame
   * @param {() => void} onResize must call draw again
   * @param {(x: number) => void} onPoint called with the number that the reader points at, even beyond the axis
   */
  const plot = ({ height, top, ...axes }, onResize, onPoint) => {
    const [left, right, bottom] = [28, 28, 44];
    const node = svg("svg", { role: "img", class: "live-plot", height });
    const ends = ({ ticks }) => [ticks[0], ticks.at(-1)];
    const [[x0, x1], [y0, y1]] = [ends(axes.x), ends(axes.y)];
    let width;
    const inner = () => width - left - right;
    const x = (number) => left + ((number - x0) / (x1 - x0)) * inner();
    const y = (number) => height - bottom - ((number - y0) / (y1 - y0)) * (height - bottom - top);
    const grid = () => [
      ...axes.y.ticks.flatMap((tick) => [
        line(left, y(tick), width - right, y(tick), "live-tick"),
        text(left - 8, y(tick) + 4, decimals(tick, 0), "end"),
      ]),
      ...axes.x.ticks.map((tick) => text(x(tick), height - 26, decimals(tick, 0))),
      text(0, top - 12, axes.y.name, "start"),
      text(left + inner() / 2, height - 6, axes.x.name),
    ];
    const curve = (xs, ys, kind, attributes) => {
      const points = xs.map((number, k) => [x(number), y(ys[k])]).join(" ");
      return svg("polyline", { class: kind, points, ...attributes });
    };
    /** Return a vertical line across the plot. */
    const guide = (number) => line(x(number), y(y0), x(number), top, "live-guide");
    /** Draw the grid, and over it the parts, which are created for the current width. */
    const draw = (label, parts) => {
      width = node.clientWidth; // before scaling: a deck is magnified
      node.setAttribute("aria-label", label);
      node.setAttribute("viewBox", `0 0 ${width} ${height}`);
      node.replaceChildren(...grid(), ...parts());
    };
    const followPointer = ({ clientX }) => {
      const box = node.getBoundingClientRect();
      const pixel = ((clientX - box.left) / box.width) * width;
      onPoint(x0 + ((pixel - left) / inner()) * (x1 - x0));
    };
    node.addEventListener("pointermove", followPointer);
    node.addEventListener("pointerdown", followPointer);
    new ResizeObserver(onResize).observe(node);
    return { node, x, y, curve, guide, draw };
  };

  d2lLive.plot = { plot, line, text, circle };
}
