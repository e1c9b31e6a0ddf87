// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const joined = (formula) => formula.replaceAll(" ", "\u00a0"); // is not broken at the end of a line
  const average = joined("o / l");
  const en = {
    online: {
      title: "A softmax in one pass, block by block",
      blockSize: "Block size",
      step: "Step",
      count: (step, steps) => `${step} of ${steps}`,
      score: "score",
      value: "value",
      bars: (scores, read, m) =>
        `Bars for the scores of all keys: ${scores.join(", ")}. The first ${read} are read; the largest is ${m}`,
      kept: "What is kept",
      before: "before",
      block: "block",
      after: "after",
      allAtOnce: "softmax over all keys",
      earlier: "read earlier",
      now: "read now",
      later: "still to come",
      curve: "m, the largest score so far",
      change: (before, m, factor) => {
        if (before === "−∞") return "Before the first block there is nothing to shrink. ";
        const power = joined(`e^(${before} − ${m}) = ${factor}`);
        return before === m
          ? `The largest score is still ${m}, so the old sums stay as they are: ${power}. `
          : `The largest score rises from ${before} to ${m}, so the old sums shrink by the factor ${power}. `;
      },
      result: (read, keys, result, final) =>
        read === keys
          ? `All ${keys} keys are read: ${average} is ${result}, and the softmax over all keys gives the same.`
          : `After ${read} of ${keys} keys, ${average} is ${result}; the softmax over all keys gives ${final}.`,
    },
    reach: {
      title: "How far a window reaches through several layers",
      window: "Window w",
      layers: "Layers L",
      layer: "layer",
      inputs: "input tokens",
      drawing: (tokens, counts) =>
        `Rows of ${tokens} tokens, the inputs and ${counts.length - 1} layers. ` +
        `The last output depends on so many of each row, inputs first: ${counts.join(", ")}`,
      target: "the last output",
      reached: "it depends on these",
      unreached: "and not on these",
      summary: ({ window, layers, reached }, tokens) => {
        const count = layers * (window - 1) + 1;
        const formula = `L(w − 1) + 1 = ${layers} · ${window - 1} + 1 = ${count}`;
        return count > tokens
          ? `The last output depends on all ${tokens} tokens, since ${formula} is more than there are.`
          : `The last output depends on ${reached} of the ${tokens} tokens: ${formula}.`;
      },
    },
  };

  const zh = {
    online: {
      title: "一趟算完 softmax，一次讀一塊",
      blockSize: "每塊鍵數",
      step: "步驟",
      count: (step, steps) => `${step} / ${steps}`,
      score: "分數",
      value: "值",
      bars: (scores, read, m) =>
        `所有鍵的分數，畫成長條：${scores.join("、")}。已讀前 ${read} 個，其中最大的是 ${m}`,
      kept: "留下來的數",
      before: "之前",
      block: "這塊",
      after: "之後",
      allAtOnce: "所有的鍵一起算 softmax",
      earlier: "先前讀過的",
      now: "現在讀的",
      later: "還沒讀的",
      curve: "m，目前最大的分數",
      change: (before, m, factor) => {
        if (before === "−∞") return "這是第一塊，還沒有舊的總和要縮小。";
        const power = joined(`e^(${before} − ${m}) = ${factor}`);
        return before === m
          ? `最大的分數還是 ${m}，舊的總和不變：${power}。`
          : `最大的分數從 ${before} 升到 ${m}，舊的總和就要縮小，乘以 ${power}。`;
      },
      result: (read, keys, result, final) =>
        read === keys
          ? `${keys} 個鍵都讀完了：${average} 是 ${result}，和所有的鍵一起算 softmax 的結果相同。`
          : `讀了 ${keys} 個鍵裡的 ${read} 個，${average} 是 ${result}；所有的鍵一起算 softmax，得到 ${final}。`,
    },
    reach: {
      title: "疊上幾層，視窗看得多遠",
      window: "視窗大小 w",
      layers: "層數 L",
      layer: "層",
      inputs: "輸入的詞元",
      drawing: (tokens, counts) =>
        `每一列是 ${tokens} 個詞元：輸入，以及 ${counts.length - 1} 層。` +
        `從輸入往上數，最後一個輸出在各列用到的詞元數：${counts.join("、")}`,
      target: "最後一個輸出",
      reached: "會影響它的",
      unreached: "影響不到它的",
      summary: ({ window, layers, reached }, tokens) => {
        const count = layers * (window - 1) + 1;
        const formula = `L(w − 1) + 1 = ${layers} × ${window - 1} + 1 = ${count}`;
        return count > tokens
          ? `${formula}，比詞元的總數還多，所以 ${tokens} 個詞元全都會影響最後一個輸出。`
          : `${tokens} 個詞元裡，有 ${reached} 個會影響最後一個輸出：${formula}。`;
      },
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
