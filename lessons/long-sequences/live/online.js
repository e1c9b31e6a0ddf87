// A softmax in one pass: a query reads its keys block by block, and keeps three numbers.
//   state()  {blockSize, step, read, m, l, o, result, final}: read is the number of keys read so far; m, l, o and
//            result = o / l are those after this step; final is the average with a softmax over all keys
//   set({blockSize, step})  blockSize is 1 to 8 keys, step is counted from 1
"use strict";
{
  const { kit, mathematics } = d2lLive;
  const { html, svg, decimals } = kit;
  const { line, text } = d2lLive.plot;
  const SCORES = [1, 3, 2, 0, 4, 1, 2, 3];
  const VALUES = SCORES.map((_, key) => 10 * (key + 1));
  const FINAL = mathematics.dot(mathematics.softmax(SCORES), VALUES);
  const [LEFT, CELL, UNIT, BASE] = [44, 27, 24, 124]; // in units of the drawing: columns, a score of 1, and the ground

  const countSteps = (blockSize) => Math.ceil(SCORES.length / blockSize);
  /** Format a number, a whole one without decimals. */
  const format = (x) => (x === -Infinity ? "−∞" : decimals(x, Number.isInteger(x) ? 0 : 3));

  /** Return the three numbers after one more block, the factor of the old sums, and what the block adds. */
  const readBlock = (old, scores, values) => {
    const largest = Math.max(...scores);
    const m = Math.max(old.m, largest);
    const shrink = Math.exp(old.m - m);
    const powers = scores.map((score) => Math.exp(score - m));
    const block = { m: largest, l: powers.reduce((a, b) => a + b), o: mathematics.dot(powers, values) };
    return { m, l: old.l * shrink + block.l, o: old.o * shrink + block.o, shrink, block };
  };

  /** Return the numbers after each step; the first entry is from before the first step. */
  const readBlocks = (blockSize) => {
    const steps = [{ m: -Infinity, l: 0, o: 0 }];
    for (let start = 0; start < SCORES.length; start += blockSize) {
      const [scores, values] = [SCORES, VALUES].map((numbers) => numbers.slice(start, start + blockSize));
      steps.push(readBlock(steps.at(-1), scores, values));
    }
    return steps;
  };

  /** Draw a bar for each score, a bracket for each block, and the largest score so far as a line. */
  const drawBars = ({ blockSize, step }, steps, words) => {
    const x = (key) => LEFT + Math.min(key, SCORES.length) * CELL;
    const y = (score) => BASE - score * UNIT;
    const kind = (block) => (block < step ? "earlier" : block === step ? "now" : "later");
    const bars = SCORES.map((score, key) => {
      const box = { x: x(key) + 2, y: y(score) - 1, width: CELL - 4, height: score * UNIT + 2 };
      return svg("rect", { class: `live-${kind(Math.floor(key / blockSize) + 1)}`, ...box });
    });
    const write = (height, name, numbers) => [
      text(LEFT - 6, height, name, "end"),
      ...numbers.map((number, key) => text(x(key + 0.5), height, String(number))),
    ];
    const ends = (block) => [x((block - 1) * blockSize), x(block * blockSize)];
    const brackets = steps.slice(1).map((_, index) => {
      const [start, end] = ends(index + 1);
      const current = index + 1 === step ? "live-current" : "";
      return svg("path", { class: `live-bracket ${current}`, d: `M${start + 3} ${BASE + 46}v5H${end - 3}v-5` });
    });
    const corners = steps.slice(1, step + 1).flatMap(({ m }, index) => ends(index + 1).map((end) => [end, y(m)]));
    const { m } = steps[step];
    return [
      line(LEFT, BASE + 1, x(SCORES.length), BASE + 1, "live-ground"),
      ...write(BASE + 20, words.score, SCORES),
      ...write(BASE + 38, words.value, VALUES),
      ...bars,
      ...brackets,
      svg("polyline", { class: "live-curve", points: corners.join(" ") }),
      text(ends(step)[1], y(m) - 7, `m = ${m}`, "end"),
    ];
  };

  kit.figure("online", (root, words) => {
    const viewBox = `0 0 ${LEFT + SCORES.length * CELL + 2} ${BASE + 54}`;
    const bars = svg("svg", { viewBox, role: "img", class: "live-keys" });
    const [header, rows, caption] = [html("tr"), html("tbody"), kit.quietOutput()];
    let chosenStep = 3; // the reader's choice, restored when the block size allows it

    const state = () => {
      const settings = { blockSize: blockSize.value, step: step.value };
      const { m, l, o } = readBlocks(settings.blockSize)[settings.step];
      const read = Math.min(settings.blockSize * settings.step, SCORES.length);
      return { ...settings, read, m, l, o, result: o / l, final: FINAL };
    };
    const createRow = (name, cells, attributes) =>
      html("tr", {}, html("th", { scope: "row", ...attributes }, name), ...cells.map((cell) => html("td", {}, cell)));
    const draw = () => {
      step.input.max = countSteps(blockSize.value);
      step.value = chosenStep;
      const [now, steps] = [state(), readBlocks(blockSize.value)];
      const [old, { m, shrink, block }] = steps.slice(now.step - 1);
      const sums = ["l", "o"].map((name) => [name, [old[name], old[name] * shrink, block[name], now[name]]]);
      const [result, final] = [now.result, FINAL].map((average) => decimals(average, 3));
      const names = [words.before, `× ${format(shrink)}`, words.block, words.after];
      header.replaceChildren(html("td"), ...names.map((name) => html("th", { scope: "col" }, name)));
      rows.replaceChildren(
        createRow("m", [format(old.m), "", format(block.m), format(m)]),
        ...sums.map(([name, numbers]) => createRow(name, numbers.map(format))),
        createRow("o / l", [old.l ? format(old.o / old.l) : "–", "", "", result]),
        createRow(words.allAtOnce, [final], { colspan: 4 }),
      );
      caption.value = words.change(format(old.m), format(m), format(shrink));
      caption.value += words.result(now.read, SCORES.length, result, final);
      bars.replaceChildren(...drawBars(now, steps, words));
      bars.setAttribute("aria-label", words.bars(SCORES, now.read, m));
    };
    const update = () => {
      draw();
      announce(caption.value);
    };
    const blockSize = kit.slider(words.blockSize, { min: 1, max: SCORES.length, value: 2 }, update);
    const bounds = { min: 1, max: countSteps(blockSize.value), value: chosenStep };
    const choose = () => {
      chosenStep = step.value;
      update();
    };
    const step = kit.slider(words.step, bounds, choose, (number) => words.count(number, countSteps(blockSize.value)));
    const kinds = ["earlier", "now", "later", "curve"];
    const marks = kinds.map((kind) => html("span", { class: `live-mark-${kind}` }, words[kind]));
    const parts = [html("caption", {}, words.kept), html("thead", {}, header), rows];
    root.append(
      html("div", { class: "live-controls" }, blockSize.node, step.node),
      html("div", { class: "live-online" }, bars, html("table", { class: "live-table live-kept" }, ...parts)),
      html("p", { class: "live-legend" }, ...marks),
      html("p", {}, caption),
    );
    const announce = kit.announcer(root);
    const controls = { blockSize: (size) => (blockSize.value = size), step: (number) => (chosenStep = number) };
    return { controls, draw, state };
  });
}
