// A number and its double.
//   state()  {n, double, lesson}
//   set({n})  n from 0 to 9
"use strict";
{
  const { kit } = d2lLive;
  kit.figure("double", (root, words) => {
    const output = kit.quietOutput();
    const state = () => ({ n: n.value, double: 2 * n.value, lesson: words.lesson });
    const draw = () => (output.value = state().double);
    const n = kit.slider(words.number, { min: 0, max: 9, value: 1 }, draw);
    root.append(n.node, output);
    return { controls: { n: (value) => (n.value = value) }, draw, state };
  });
}
