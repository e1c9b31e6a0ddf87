// Kernel regression as attention: places are keys, measurements are values, and the width says how far "nearby" reaches.
//   state()  {width, q, weights, answer, share, places, answers}: weights of the measured points for the query q;
//            share is the largest weight; answers are for all places
//   set({width, q})  width is one of the slider's values, q is from 0 to 5 in steps of 0.05
"use strict";
{
  const { kit, mathematics, points } = d2lLive;
  const { html, decimals } = kit;
  const { plot, circle } = d2lLive.plot;
  const STEPS = 20; // from one whole number to the next
  const PLACES = Array.from({ length: 5 * STEPS + 1 }, (_, k) => k / STEPS);
  // From 0.05 to 3 in hundredths, by equal factors where hundredths are fine enough.
  const WIDTHS = [...new Set(Array.from({ length: 33 }, (_, k) => Math.round(5 * 60 ** (k / 32)) / 100))];

  const truth = (x) => Math.sin(2 * x) + x / 2;
  const weigh = (q, width) => mathematics.softmax(points.x.map((k) => -((q - k) ** 2) / (2 * width ** 2)));
  const ask = (q, width) => mathematics.dot(weigh(q, width), points.y);

  /** Return a point's radius: its area grows with its weight, and a weight of 0 stays visible. */
  const radius = (weight) => Math.sqrt(4 + 200 * weight);

  /** Return what is drawn over the grid. */
  const parts = ({ x, y, guide, curve }, { q, weights, answer, answers }) => [
    guide(q),
    curve(PLACES, PLACES.map(truth), "live-truth"),
    ...points.x.map((at, k) => circle(x(at), y(points.y[k]), radius(weights[k]), "live-point")),
    curve(PLACES, answers, "live-curve"),
    circle(x(q), y(answer), 7, "live-target"),
  ];

  kit.figure("width", (root, words) => {
    const answer = kit.quiet();
    const legend = (kind, text) => html("span", { class: `live-mark-${kind}` }, text);
    const state = () => {
      const [at, q] = [WIDTHS[width.value], PLACES[query.value]];
      const weights = weigh(q, at);
      const answers = PLACES.map((place) => ask(place, at));
      const share = Math.max(...weights);
      return { width: at, q, weights, answer: answers[query.value], share, places: PLACES, answers };
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
    const choice = (label, values, value) => {
      const range = { min: 0, max: values.length - 1, value: values.indexOf(value) };
      return kit.slider(label, range, update, (k) => decimals(values[k], 2));
    };
    const width = choice(words.width, WIDTHS, 0.3);
    const query = choice(words.query, PLACES, 2.5);
    const point = (x) => {
      query.value = Math.round(x * STEPS); // the slider keeps it within its range
      draw();
    };
    const axis = (name, last) => ({ name, ticks: Array.from({ length: last + 1 }, (_, k) => k) });
    const frame = { height: 320, top: 32, x: axis("x", 5), y: axis("y", 4) };
    const canvas = plot(frame, draw, point);

    root.append(
      html("div", { class: "live-controls" }, width.node, query.node),
      html("p", {}, answer),
      canvas.node,
      html(
        "p",
        { class: "live-legend" },
        legend("point", words.measured),
        legend("truth", words.truth),
        legend("curve", words.estimate),
        legend("target", words.answerAtQuery),
      ),
    );
    const announce = kit.announcer(root);
    const set = (slider, values) => (value) => (slider.value = values.indexOf(value));
    return { controls: { width: set(width, WIDTHS), q: set(query, PLACES) }, draw, state };
  });
}
