// One row of the positional encoding as the hands of eight clocks, each slower than the one before.
//   state()  {i, values}: the position, and its row of 16 sines and cosines
//   set({i})  i from 0 to 59
"use strict";
{
  const { encoding, kit } = d2lLive;
  const { html, svg, quietOutput, decimals } = kit;
  const D = 16;
  const LAST = 59;

  // A hand moves for 150 of a step's 250 ms and then rests, like the hand of a ticking clock. For readers who
  // asked for less motion Play still works, since they choose it, but in whole steps, one per second.
  const GLIDE = 150;
  const pace = () => (kit.reducedMotion.matches ? 1000 : 250);

  /** Draw a hand at an angle, and its projections. */
  const hand = (angle) => {
    const [x, y] = kit.tip(angle);
    return [
      svg("path", { class: "live-guide", d: `M${x},0 V${y} H0` }),
      svg("line", { class: "live-sine", x2: x }),
      svg("line", { class: "live-cosine", y2: y }),
      svg("line", { class: "live-hand", x2: x, y2: y }),
      svg("circle", { class: "live-tip", cx: x, cy: y, r: 0.07 }),
    ];
  };

  /** Create a clock that is drawn at any position, and labelled at whole positions. */
  const clock = (omega, j, words) => {
    const { node: dial, hands } = kit.dial();
    const [sine, cosine] = [quietOutput({ class: "live-across" }), quietOutput({ class: "live-upward" })];
    const turn = (2 * Math.PI) / omega;
    const frequency = ` = ${Number(omega.toPrecision(3))}`;
    const node = html(
      "div",
      { class: "live-cell" },
      html("b", {}, `ω${kit.subscript(j)}`, html("span", { class: "live-frequency" }, frequency)),
      dial,
      html("div", { class: "live-values" }, sine, cosine),
      html("small", {}, words.turn(turn.toFixed(turn < 100 ? 1 : 0))),
    );
    const draw = (position) => hands.replaceChildren(...hand(position * omega));
    const label = (i) => {
      [sine.value, cosine.value] = encoding.pairs(i, D)[j].map((x) => decimals(x, 2));
      dial.setAttribute("aria-label", words.clock(j, kit.degrees(i * omega)));
    };
    return { node, draw, label };
  };

  kit.figure("clock-hands", (root, words) => {
    const clocks = encoding.frequencies(D).map((omega, j) => clock(omega, j, words));
    let request = null; // the next frame, while the clocks play
    let lastStep; // when i last changed

    const draw = () => {
      for (const each of clocks) {
        each.draw(i.value);
        each.label(i.value);
      }
    };

    const pause = () => {
      cancelAnimationFrame(request);
      request = null;
      play.textContent = words.play;
      draw();
    };

    const frame = (now) => {
      if (now - lastStep >= pace()) {
        if (i.value === LAST) return pause();
        i.value += 1;
        lastStep = now;
        for (const each of clocks) each.label(i.value);
      }
      const progress = kit.reducedMotion.matches ? 1 : Math.min(1, (now - lastStep) / GLIDE);
      for (const each of clocks) each.draw(i.value - 1 + progress);
      request = requestAnimationFrame(frame);
    };

    const toggle = () => {
      if (request !== null) return pause();
      if (i.value === LAST) i.value = 0;
      lastStep = -Infinity; // the first step is taken at once
      play.textContent = words.pause;
      request = requestAnimationFrame(frame);
    };

    const i = kit.slider(words.position, { min: 0, max: LAST, value: 0 }, pause);
    const play = kit.button(words.play, toggle);
    root.append(
      html("div", { class: "live-controls" }, i.node, play),
      html(
        "p",
        { class: "live-legend" },
        html("span", { class: "live-across" }, words.sine),
        html("span", { class: "live-upward" }, words.cosine),
      ),
      html("div", { class: "live-grid live-clocks" }, ...clocks.map(({ node }) => node)),
      html("p", { class: "live-note" }, words.hint),
    );
    const state = () => ({ i: i.value, values: encoding.row(i.value, D) });
    const set = (position) => {
      pause();
      i.value = position;
    };
    return { controls: { i: set }, draw, state };
  });
}
