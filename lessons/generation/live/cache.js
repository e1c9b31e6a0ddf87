// A text that is read in chunks with a cache of keys: which scores a step computes, and what the slots hold.
//   state()  {chunk, step, window, queries, read, slots, scores, scoresRecomputed}: queries are the positions read in
//            this step, read those of the cached keys that they see, slots those held after it (-1: none); scores
//            counts this step's, scoresRecomputed those of the whole text so far
//   set({chunk, step, window})  chunk is 1 to 8 tokens, step is counted from 1, window is true or false
"use strict";
{
  const { kit } = d2lLive;
  const { html, svg } = kit;
  const TOKENS = "the cat that the nurses sleep follows .".split(" ");
  const WINDOW = 4;
  const [EDGE, CELL] = [74, 24]; // the sizes of the labels and of a cell, in units of the drawing
  const SIDE = EDGE + TOKENS.length * CELL;

  const range = (start, end) => Array.from({ length: end - start }, (_, k) => start + k);
  const countSteps = (chunk) => Math.ceil(TOKENS.length / chunk);
  const isVisible = (query, key, window) => key <= query && (!window || query - key < WINDOW);
  const listVisible = (query, window) => range(0, query + 1).filter((key) => isVisible(query, key, window));

  /** Return the position in each slot after a number of tokens, or -1. */
  const holdPositions = (count, window) => {
    const size = window ? WINDOW : TOKENS.length;
    return range(0, size).map((slot) => range(0, count).findLast((position) => position % size === slot) ?? -1);
  };

  const compute = ({ chunk, step, window }) => {
    const start = (step - 1) * chunk;
    const end = Math.min(start + chunk, TOKENS.length);
    const queries = range(start, end);
    const seen = queries.flatMap((query) => listVisible(query, window));
    return {
      queries,
      read: range(0, start).filter((key) => seen.includes(key)),
      slots: holdPositions(end, window),
      scores: seen.length,
      scoresRecomputed: range(0, end).flatMap((query) => listVisible(query, window)).length,
    };
  };

  const label = (position) => `${position} ${TOKENS[position]}`;

  /** Draw the causal matrix, a row for each query and a column for each key. */
  const drawMatrix = ({ queries, window }, words) => {
    const all = range(0, TOKENS.length);
    const kind = (query, key) => {
      if (query > queries.at(-1) || !isVisible(query, key, window)) return "hidden";
      return query < queries[0] ? "earlier" : "now";
    };
    const cell = (query, key) => {
      const [x, y] = [key, query].map((position) => EDGE + position * CELL + 1.5);
      return svg("rect", { class: `live-${kind(query, key)}`, x, y, width: CELL - 3, height: CELL - 3 });
    };
    const text = (place, words, attributes = {}) =>
      svg("text", { transform: `translate(${place}`, ...attributes }, words);
    const names = all.flatMap((position) => {
      const [middle, end] = [EDGE + (position + 0.5) * CELL, EDGE - 5];
      const kind = queries.includes(position) ? "live-new" : "";
      const places = [`${end} ${middle})`, `${middle} ${end}) rotate(90)`];
      return places.map((place) => text(place, label(position), { class: kind, lang: "en" }));
    });
    const axes = [text(`${EDGE - 5} 40)`, words.keys), text(`${EDGE - 5} 58)`, words.queries)];
    return [...axes, ...names, ...all.flatMap((query) => all.map((key) => cell(query, key)))];
  };

  /** Return a row of the table of slots: the tokens before and after this step. */
  const createRow = (slot, old, current, { queries, read }, words) => {
    const [isRead, isNew] = [read.includes(old), current >= queries[0]];
    const cell = (position, kind, note) => {
      const token = position < 0 ? "–" : html("span", { class: kind, lang: "en" }, label(position));
      return html("td", {}, token, " ", html("small", {}, note));
    };
    const before = cell(old, isRead ? "live-earlier" : "", isRead ? words.read : "");
    const after = cell(current, isNew ? "live-now" : "live-earlier", isNew ? words.written : "");
    return html("tr", {}, html("th", { scope: "row" }, String(slot)), before, after);
  };

  kit.figure("cache", (root, words) => {
    const matrix = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", class: "live-scores" });
    const [header, rows, caption] = [html("tr"), html("tbody"), kit.quietOutput()];
    let chosenStep = 3; // the reader's choice, restored when the chunk allows it

    const state = () => {
      const settings = { chunk: chunk.value, step: step.value, window: window.value };
      return { ...settings, ...compute(settings) };
    };
    const draw = () => {
      step.input.max = countSteps(chunk.value);
      step.value = chosenStep;
      const now = state();
      const before = holdPositions(now.queries[0], now.window);
      matrix.replaceChildren(...drawMatrix(now, words));
      matrix.setAttribute("aria-label", words.matrix(now.scores, now.scoresRecomputed - now.scores));
      rows.replaceChildren(...now.slots.map((current, slot) => createRow(slot, before[slot], current, now, words)));
      const replaced = now.read.filter((position) => !now.slots.includes(position));
      caption.value = words.summary(now, replaced.length);
    };
    const update = () => {
      draw();
      announce(caption.value);
    };
    const choose = () => {
      chosenStep = step.value;
      update();
    };
    const chunk = kit.slider(words.chunk, { min: 1, max: TOKENS.length, value: 2 }, update);
    const bounds = { min: 1, max: countSteps(chunk.value), value: chosenStep };
    const step = kit.slider(words.step, bounds, choose, (number) => words.count(number, countSteps(chunk.value)));
    const window = kit.checkbox(words.window, update);
    header.append(...[words.slot, words.before, words.after].map((name) => html("th", { scope: "col" }, name)));
    const parts = [html("caption", {}, words.cache), html("thead", {}, header), rows];
    const marks = ["now", "earlier"].map((kind) => html("span", { class: `live-mark-${kind}` }, words[kind]));
    root.append(
      html("div", { class: "live-controls" }, chunk.node, step.node, window.node),
      html("div", { class: "live-cache" }, matrix, html("table", { class: "live-table live-slots" }, ...parts)),
      html("p", { class: "live-legend" }, ...marks),
      html("p", {}, caption),
    );
    const announce = kit.announcer(root);
    const set = (control) => (value) => (control.value = value);
    const controls = { chunk: set(chunk), step: (number) => (chosenStep = number), window: set(window) };
    return { controls, draw, state };
  });
}
