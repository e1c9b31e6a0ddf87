// The positional encoding as a heat map.
//   state()  {d, base, length, P, row, column, value}: the whole matrix, and the entry under the probe
//   set({d, base, length, row, column})  base from 10 to 100000, rounded to one of ten steps per power of ten
"use strict";
{
  const { encoding, kit } = d2lLive;
  const { html, decimals } = kit;

  // ColorBrewer's RdBu, reversed as matplotlib's RdBu_r: blue is -1, white 0, red 1.
  const ANCHORS =
    "#053061 #2166ac #4393c3 #92c5de #d1e5f0 #f7f7f7 #fddbc7 #f4a582 #d6604d #b2182b #67001f".split(" ");
  const RGB = ANCHORS.map((hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));

  /** Return the colour of a number from -1 to 1, interpolated between two anchors. */
  const colour = (x) => {
    const index = ((x + 1) / 2) * (RGB.length - 1);
    const k = Math.min(Math.floor(index), RGB.length - 2);
    return RGB[k].map((low, channel) => low + (index - k) * (RGB[k + 1][channel] - low));
  };

  /** Paint one pixel per number; the style sheet scales them up without blurring. */
  const paint = (canvas, P) => {
    [canvas.width, canvas.height] = [P[0].length, P.length];
    const pixels = P.flat().flatMap((x) => [...colour(x), 255]);
    const image = new ImageData(Uint8ClampedArray.from(pixels), canvas.width);
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  /** Return the numbers beside an axis with n cells, each in the middle of its cell. */
  const ticks = (n, edge) => {
    const step = [1, 2, 5, 10].find((s) => n / s <= 8) ?? 20;
    return Array.from({ length: Math.ceil(n / step) }, (_, k) =>
      html("span", { style: `${edge}: ${((k * step + 0.5) / n) * 100}%` }, String(k * step)),
    );
  };

  const formula = ({ d, base, row, column, value }) => {
    const wave = column % 2 ? "cos" : "sin";
    const angle = `${row} / ${base}^(${column - (column % 2)}/${d})`;
    return `P[${row}, ${column}] = ${wave}(${angle}) = ${decimals(value, 4)}`;
  };

  const computeBase = (tenths) => Number((10 ** (tenths / 10)).toPrecision(2));

  kit.figure("heatmap", (root, words) => {
    const canvas = html("canvas", { role: "img" });
    const probe = html("span", { class: "live-probe" });
    const attributes = { role: "application", tabindex: 0, "aria-label": words.probe };
    const map = html("div", { class: "live-map", ...attributes }, canvas, probe);
    const [rows, columns] = ["live-rows", "live-columns"].map((kind) => html("div", { class: kind }));
    const readout = kit.quietOutput();
    const cell = { row: 12, column: 6 }; // under the probe
    let P;

    const state = () => {
      const value = P[cell.row][cell.column];
      return { d: d.value, base: computeBase(base.value), length: length.value, P, ...cell, value };
    };

    const move = (row, column) => {
      cell.row = Math.min(Math.max(row, 0), length.value - 1);
      cell.column = Math.min(Math.max(column, 0), d.value - 1);
      const [width, height] = [100 / d.value, 100 / length.value];
      const corner = `left: ${cell.column * width}%; top: ${cell.row * height}%`;
      probe.style = `${corner}; width: ${width}%; height: ${height}%`;
      readout.value = formula(state());
    };
    const draw = () => {
      P = encoding.matrix(length.value, d.value, computeBase(base.value));
      paint(canvas, P);
      canvas.setAttribute("aria-label", words.map(length.value, d.value));
      rows.replaceChildren(...ticks(length.value, "top"));
      columns.replaceChildren(...ticks(d.value, "left"));
      move(cell.row, cell.column);
    };

    const d = kit.slider(words.dimensions, { min: 2, max: 64, value: 32 }, draw);
    const base = kit.slider(words.base, { min: 10, max: 50, value: 40 }, draw, (x) => String(computeBase(x)));
    const length = kit.slider(words.length, { min: 8, max: 128, value: 60 }, draw);

    const point = ({ clientX, clientY }) => {
      const box = canvas.getBoundingClientRect();
      const row = ((clientY - box.top) / box.height) * length.value;
      const column = ((clientX - box.left) / box.width) * d.value;
      move(Math.floor(row), Math.floor(column));
    };
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
    map.addEventListener("keydown", (event) => {
      const step = kit.arrow(event);
      if (!step) return;
      event.preventDefault(); // do not scroll the page
      move(cell.row + step[0], cell.column + step[1]);
      announce(readout.value);
    });

    const bar = html("div", { "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to top, ${ANCHORS.join(", ")})`;
    const scale = ["1", "0", "−1"].map((number) => html("span", {}, number));
    root.append(
      html("div", { class: "live-controls" }, d.node, base.node, length.node),
      html("p", {}, readout),
      html(
        "div",
        { class: "live-axes" },
        html("div", { class: "live-row-title" }, words.row),
        rows,
        map,
        bar,
        html("div", { class: "live-scale" }, ...scale),
        columns,
        html("div", { class: "live-column-title" }, words.column),
      ),
      html("p", { class: "live-hint" }, words.hint),
    );
    const announce = kit.announcer(root);
    const controls = {
      d: (width) => (d.value = width),
      base: (number) => (base.value = Math.round(10 * Math.log10(number))),
      length: (positions) => (length.value = positions),
      row: (row) => (cell.row = row),
      column: (column) => (cell.column = column),
    };
    return { controls, draw, state };
  });
}
