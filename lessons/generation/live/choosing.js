// Five words and their probabilities, changed by a temperature and by one way to cut off the tail.
//   state()  {temperature, way, k, p, minP, probs}: probs are the probabilities from which a word would be drawn
//   set({temperature, way, k, p, minP})  temperature is 0.2 to 3 in steps of 0.1, way "all", "topK", "topP" or "minP";
//            k is 1 to 5, p and minP are 0.05 to 1 in steps of 0.05
"use strict";
{
  const { kit, mathematics } = d2lLive;
  const { html, decimals } = kit;
  const NAMES = ["dogs", "cats", "birds", "horses", "bakers"];
  const ORIGINAL = [0.4, 0.25, 0.2, 0.1, 0.05]; // the largest first
  const WAYS = ["all", "topK", "topP", "minP"];
  const ROUNDING = 1e-9;

  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  /** Return the probabilities after the temperature. */
  const temper = (temperature) => mathematics.softmax(ORIGINAL.map((p) => Math.log(p) / temperature));

  /** Return whether each word is kept. */
  const cut = (probs, { way, k, p, minP }) =>
    probs.map((prob, rank) => {
      if (way === "topK") return rank < k;
      if (way === "topP") return sum(probs.slice(0, rank)) < p - ROUNDING;
      return way === "all" || prob >= minP * probs[0] - ROUNDING;
    });

  const compute = (settings) => {
    const tempered = temper(settings.temperature);
    const kept = cut(tempered, settings);
    const share = sum(tempered.filter((_, rank) => kept[rank]));
    const probs = tempered.map((prob, rank) => (kept[rank] ? prob / share : 0));
    return { kept, share, probs };
  };

  kit.figure("choosing", (root, words) => {
    const rows = html("tbody");
    const caption = kit.quietOutput();
    const limit = html("div", { class: "live-limit" }); // the slider of the chosen way

    const read = () => ({
      temperature: temperature.value / 10,
      way: WAYS[way.value],
      k: limits.topK.value,
      p: limits.topP.value / 20,
      minP: limits.minP.value / 20,
    });
    const state = () => {
      const settings = read();
      return { ...settings, probs: compute(settings).probs };
    };
    const createRow = (name, rank, { kept, probs }) => {
      const [original, prob] = [ORIGINAL[rank], probs[rank]];
      const bar = (kind, share) => html("span", { class: kind, style: `width: ${100 * share}%` });
      return html(
        "tr",
        {},
        html("th", { scope: "row", lang: "en" }, name),
        html("td", {}, decimals(original, 2)),
        html("td", { "aria-hidden": "true" }, bar("live-original", original), bar("live-bar", prob)),
        html("td", {}, kept[rank] ? decimals(prob, 2) : words.cut),
      );
    };
    const draw = () => {
      const settings = read();
      const now = compute(settings);
      const slider = limits[settings.way];
      if (!slider?.node.isConnected) limit.replaceChildren(...(slider ? [slider.node] : []));
      rows.replaceChildren(...NAMES.map((name, rank) => createRow(name, rank, now)));
      const left = now.kept.filter(Boolean).length;
      const all = NAMES.length;
      caption.value = left === all ? words.allLeft(all) : words.left(left, all, decimals(now.share, 2));
    };
    const update = () => {
      draw();
      announce(caption.value);
    };

    const createSlider = (label, [min, max, value], parts, digits) =>
      kit.slider(label, { min, max, value }, update, (number) => decimals(number / parts, digits));
    const way = kit.choice(words.way, WAYS.map((name) => words[name]), 0, update);
    const temperature = createSlider(words.temperature, [2, 30, 10], 10, 1);
    const limits = {
      topK: createSlider("k", [1, NAMES.length, 3], 1, 0),
      topP: createSlider("p", [1, 20, 16], 20, 2),
      minP: createSlider("p", [1, 20, 6], 20, 2),
    };
    const names = [words.word, words.before, words.bars, words.after];
    const header = names.map((name) => html("th", { scope: "col" }, name));
    const table = html("table", { class: "live-table live-words" }, html("thead", {}, html("tr", {}, ...header)), rows);
    const marks = ["original", "result"].map((kind) => html("span", { class: `live-mark-${kind}` }, words[kind]));
    root.append(
      html("div", { class: "live-controls" }, way.node, temperature.node, limit),
      table,
      html("p", { class: "live-legend" }, ...marks),
      html("p", {}, caption),
    );
    const announce = kit.announcer(root);
    const set = (slider, parts) => (number) => (slider.value = Math.round(number * parts));
    const controls = {
      temperature: set(temperature, 10),
      way: (name) => (way.value = WAYS.indexOf(name)),
      k: set(limits.topK, 1),
      p: set(limits.topP, 20),
      minP: set(limits.minP, 20),
    };
    return { controls, draw, state };
  });
}
