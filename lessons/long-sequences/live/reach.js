// The tokens that the last output depends on, through layers in which each token sees a window of tokens.
//   state()  {window, layers, reached}: reached is the number of input tokens
//   set({window, layers})  window is 1 to 8 tokens, layers is 1 to 6
"use strict";
{
  const { kit } = d2lLive;
  const { html, svg } = kit;
  const { line, text, circle } = d2lLive.plot;
  const TOKENS = 24;
  const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [20, 8, 34, 44, 300]; // in pixels

  const range = (start, end) => Array.from({ length: end - start }, (_, k) => start + k);

  /** Return the tokens that a token sees, one layer below. */
  const listSeen = (token, window) => range(Math.max(0, token - window + 1), token + 1);

  /** Return the tokens of each row on which the last output depends, inputs first. */
  const findCone = ({ window, layers }) => {
    const rows = [[TOKENS - 1]];
    while (rows.length <= layers) rows.unshift(range(listSeen(rows[0][0], window)[0], TOKENS));
    return rows;
  };

  /** Draw the rows for a width in pixels. */
  const drawRows = (width, { window, layers }, cone, words) => {
    const pitch = (width - LEFT - RIGHT) / TOKENS;
    const radius = Math.min(0.34 * pitch, 6);
    const x = (token) => LEFT + (token + 0.5) * pitch;
    const y = (row) => HEIGHT - BOTTOM - (row / layers) * (HEIGHT - BOTTOM - TOP);
    /** Draw the window of a token; its edges are drawn more strongly, because many lines would hide each other. */
    const drawWindow = (token, row) =>
      listSeen(token, window).map((seen, index, { length }) => {
        const kind = row === layers || index % (length - 1 || 1) === 0 ? "live-edge" : "live-inner";
        return line(x(seen), y(row - 1), x(token), y(row), kind);
      });
    const drawDot = (token, row) => {
      const kind = token < cone[row][0] ? "live-unreached" : "live-reached";
      return circle(x(token), y(row), radius, kind);
    };
    return [
      ...cone.flatMap((tokens, row) => (row ? tokens.flatMap((token) => drawWindow(token, row)) : [])),
      ...cone.flatMap((_, row) => range(0, TOKENS).map((token) => drawDot(token, row))),
      circle(x(TOKENS - 1), y(layers), radius + 3, "live-target"),
      text(0, 14, words.layer, "start"),
      ...range(1, layers + 1).map((row) => text(0, y(row) + 5, String(row), "start")),
      ...[1, 6, 12, 18, 24].map((number) => text(x(number - 1), HEIGHT - 22, String(number))),
      text(x((TOKENS - 1) / 2), HEIGHT - 4, words.inputs),
    ];
  };

  kit.figure("reach", (root, words) => {
    const drawing = svg("svg", { role: "img", class: "live-plot live-cone", height: HEIGHT });
    const caption = kit.quietOutput();

    const state = () => {
      const settings = { window: window.value, layers: layers.value };
      return { ...settings, reached: findCone(settings)[0].length };
    };
    const draw = () => {
      const now = state();
      const cone = findCone(now);
      const width = Math.max(drawing.clientWidth, 240); // a hidden slide has no width
      drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      drawing.setAttribute("aria-label", words.drawing(TOKENS, cone.map((tokens) => tokens.length)));
      drawing.replaceChildren(...drawRows(width, now, cone, words));
      caption.value = words.summary(now, TOKENS);
    };
    const update = () => {
      draw();
      announce(caption.value);
    };
    const window = kit.slider(words.window, { min: 1, max: 8, value: 4 }, update);
    const layers = kit.slider(words.layers, { min: 1, max: 6, value: 3 }, update);
    const kinds = ["target", "reached", "unreached"];
    const marks = kinds.map((kind) => html("span", { class: `live-mark-${kind}` }, words[kind]));
    root.append(
      html("div", { class: "live-controls" }, window.node, layers.node),
      drawing,
      html("p", { class: "live-legend" }, ...marks),
      html("p", {}, caption),
    );
    new ResizeObserver(draw).observe(drawing);
    const announce = kit.announcer(root);
    const controls = { window: (size) => (window.value = size), layers: (count) => (layers.value = count) };
    return { controls, draw, state };
  });
}
