// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const en = {
    width: {
      title: "Averages by nearness: the width of the kernel",
      width: "Width σ",
      query: "Query q",
      measured: "measured: the larger, the more weight",
      truth: "true curve",
      estimate: "answers",
      answerAtQuery: "answer at q",
      answer: (q, answer, share) =>
        `At q = ${q} the answer is ${answer}; the nearest point has ${share}% of the weight.`,
      plot: (points, width, answer) =>
        `${points} measured points, the true curve, and the curve of all answers with width ${width}. ${answer}`,
    },
  };

  const zh = {
    width: {
      title: "依遠近平均：核的寬度",
      width: "寬度 σ",
      query: "查詢 q",
      measured: "量到的點：權重愈大，畫得愈大",
      truth: "真正的曲線",
      estimate: "答案連成的曲線",
      answerAtQuery: "q 的答案",
      answer: (q, answer, share) => `在 q = ${q} 發問，答案是 ${answer}；最近的點占了 ${share}% 的權重。`,
      plot: (points, width, answer) =>
        `${points} 個量到的點、真正的曲線，以及寬度 ${width} 時各處的答案連成的曲線。${answer}`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
