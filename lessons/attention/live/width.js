// Kernel regression as attention: keys are the points' x, values are their y, and the width determines what is near.
//   state()  {width, q, weights, answer, share, grid, answers}: weights of the measured points for the query q;
//            share is the largest weight; answers are for all queries on the grid
//   set({width, q})  width is one of the slider's values, q is from 0 to 5 in steps of 0.05
"use strict";
{
  const { kit, mathematics, points } = d2lLive;
  const { html, decimals } = kit;
  const { plot, circle } = d2lLive.plot;
  const STEPS = 20; // from one whole number to the next
  const GRID = Array.from({ length: 5 * STEPS + 1 }, (_, k) => k / STEPS);
  // From 0.05 to 3 by equal factors, rounded to hundredths, each value once.
  const WIDTHS = [...new Set(Array.from({ length: 33 }, (_, k) => Math.round(5 * 60 ** (k / 32)) / 100))];

  const trueCurve = (x) => Math.sin(2 * x) + x / 2;
  const weigh = (q, width) => mathematics.softmax(points.x.map((k) => -((q - k) ** 2) / (2 * width ** 2)));
  const ask = (q, width) => mathematics.dot(weigh(q, width), points.y);

  /** Return a point's radius: its area grows with its weight, and a weight of 0 stays visible. */
  const radius = (weight) => Math.sqrt(4 + 200 * weight);

  /** Return the elements to draw over the plot's axes. */
  const parts = ({ x, y, guide, curve }, { q, weights, answer, answers }) => [
    guide(q),
    curve(GRID, GRID.map(trueCurve), "live-truth"),
    ...points.x.map((number, k) => circle(x(number), y(points.y[k]), radius(weights[k]), "live-point")),
    curve(GRID, answers, "live-curve"),
    circle(x(q), y(answer), 7, "live-target"),
  ];

  kit.figure("width", (root, words) => {
    const answer = kit.quietOutput();
    const legendEntry = (kind, text) => html("span", { class: `live-mark-${kind}` }, text);
    const state = () => {
      const width = WIDTHS[widthSlider.value];
      const q = GRID[querySlider.value];
      const weights = weigh(q, width);
      const answers = GRID.map((x) => ask(x, width));
      const share = Math.max(...weights);
      return { width, q, weights, answer: answers[querySlider.value], share, grid: GRID, answers };
    };
    const draw = () => {
      const now = state();
      answer.value = words.answer(decimals(now.q, 2), decimals(now.answer, 2), decimals(100 * now.share, 1));
      const label = words.plot(points.x.length, decimals(now.width, 2), answer.value);
      canvas.draw(label, () => parts(canvas, now));
    };
    const update = () => {
      draw();
      announce(answer.value);
    };
    const createSlider = (label, values, value) => {
      const range = { min: 0, max: values.length - 1, value: values.indexOf(value) };
      return kit.slider(label, range, update, (k) => decimals(values[k], 2));
    };
    const widthSlider = createSlider(words.width, WIDTHS, 0.3);
    const querySlider = createSlider(words.query, GRID, 2.5);
    const moveQuery = (x) => {
      querySlider.value = Math.round(x * STEPS); // the slider keeps it within its range
      draw();
    };
    const axis = (name, last) => ({ name, ticks: Array.from({ length: last + 1 }, (_, k) => k) });
    const frame = { height: 320, top: 32, x: axis("x", 5), y: axis("y", 4) };
    const canvas = plot(frame, draw, moveQuery);

    root.append(
      html("div", { class: "live-controls" }, widthSlider.node, querySlider.node),
      html("p", {}, answer),
      canvas.node,
      html(
        "p",
        { class: "live-legend" },
        legendEntry("point", words.measured),
        legendEntry("truth", words.truth),
        legendEntry("curve", words.estimate),
        legendEntry("target", words.answerAtQuery),
      ),
    );
    const announce = kit.announcer(root);
    const set = (slider, values) => (value) => (slider.value = values.indexOf(value));
    const controls = { width: set(widthSlider, WIDTHS), q: set(querySlider, GRID) };
    return { controls, draw, state };
  });
}
