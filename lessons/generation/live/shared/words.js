// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const count = (number, noun) => `${number}\u00a0${noun}${number === 1 ? "" : "s"}`;
  const en = {
    cache: {
      title: "A cache of keys and values, filled step by step",
      chunk: "Chunk",
      step: "Step",
      window: "Window of 4",
      count: (step, steps) => `${step} of ${steps}`,
      keys: "keys →",
      queries: "queries ↓",
      matrix: (scores, earlier) =>
        `Scores, a row for each query and a column for each key: ${scores} computed in this step, ${earlier} earlier`,
      cache: "The cache",
      slot: "Slot",
      before: "Before this step",
      after: "After",
      read: "read",
      written: "written",
      now: "computed in this step",
      earlier: "earlier: keys are read again, scores are not needed again",
      summary: ({ queries, read, scores, scoresRecomputed }, replaced) =>
        `This step computes ${count(queries.length, "key")}, reads ${count(read.length, "key")} from the cache, and ` +
        `computes ${count(scores, "score")}; recomputing the whole text so far would take ${scoresRecomputed}.` +
        (replaced ? ` It replaces ${replaced} of the keys that it reads.` : ""),
    },
    choosing: {
      title: "Five words: temperature, and three ways to cut off the tail",
      way: "Keep",
      all: "all words",
      topK: "top-k",
      topP: "top-p",
      minP: "min-p",
      temperature: "Temperature",
      word: "Word",
      before: "Before",
      bars: "Probability",
      after: "After",
      cut: "cut",
      original: "before",
      result: "after: temperature, cut, divided by the sum",
      allLeft: (words) => `All ${words} words are left.`,
      left: (left, words, share) =>
        `${left} of the ${words} words ${left === 1 ? "is left; it" : "are left; they"} had ` +
        `${share} of the probability after the temperature.`,
    },
  };

  const zh = {
    cache: {
      title: "鍵與值的快取，一步一步填滿",
      chunk: "每段詞元數",
      step: "步驟",
      window: "視窗大小 4",
      count: (step, steps) => `${step} / ${steps}`,
      keys: "鍵 →",
      queries: "查詢 ↓",
      matrix: (scores, earlier) =>
        `分數，每個查詢一個橫列，每個鍵一個直行：這一步算出 ${scores} 個，先前算過 ${earlier} 個`,
      cache: "快取",
      slot: "格",
      before: "這一步之前",
      after: "之後",
      read: "讀取",
      written: "寫入",
      now: "這一步算的",
      earlier: "先前算的：鍵還要再讀，分數用不到了",
      summary: ({ queries, read, scores, scoresRecomputed }, replaced) =>
        `這一步算出 ${queries.length} 個鍵，從快取讀取 ${read.length} 個鍵，算出 ${scores} 個分數；` +
        `若把目前為止的整段文字重算一次，要算 ${scoresRecomputed} 個分數。` +
        (replaced ? `讀取的鍵裡，有 ${replaced} 個在這一步就被換掉。` : ""),
    },
    choosing: {
      title: "五個詞：溫度，以及切掉尾巴的三種方法",
      way: "保留",
      all: "所有的詞",
      topK: "top-k",
      topP: "top-p",
      minP: "min-p",
      temperature: "溫度",
      word: "詞",
      before: "原本",
      bars: "機率",
      after: "結果",
      cut: "切掉",
      original: "原本的機率",
      result: "結果：調過溫度，切掉尾巴，再除以總和",
      allLeft: (words) => `${words} 個詞全部留下。`,
      left: (left, words, share) =>
        `${words} 個詞裡留下 ${left} 個；調過溫度之後，這${left === 1 ? "個詞" : "些詞"}占了 ${share} 的機率。`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
