// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const en = {
    "turning-hands": {
      title: "Turning hands: one query and one key on three dials",
      position: "Position i",
      distance: "Distance i − j",
      add: "Add instead of turn",
      query: (i) => `query, position ${i}`,
      key: (j) => `key, position ${j}`,
      content: "content, (1, 0)",
      dial: (l, query, key, angle) => `Dial ${l}: the query is (${query}), the key (${key}), ${angle}° apart`,
      product: "product",
      apart: (angle) => `${angle}° apart`,
      sum: (added, sum) => `${added ? "Added" : "Turned"}: ${sum}.`,
      // i starts at the distance, where the key is at position 0.
      together: (distance, last, result) =>
        `Move both, i from ${distance} to ${last} with the key always ` +
        `${distance ? `${distance} behind` : "at the same place"}: ${result}`,
      stays: (score) => `the score stays at ${score}.`,
      changes: (lowest, highest) => `the score changes, between ${lowest} and ${highest}.`,
      hint: (added) =>
        added
          ? "Each hand is the content plus its position, the thin line from the centre to the rim."
          : "Each hand is the content, turned about the centre.",
      summary: (sum, sentence) => `${sum} ${sentence}`,
    },
  };

  const zh = {
    "turning-hands": {
      title: "旋轉的指針：一個查詢與一個鍵，畫在三個圓盤上",
      position: "位置 i",
      distance: "距離 i − j",
      add: "不旋轉，改成加上位置",
      query: (i) => `查詢，位置 ${i}`,
      key: (j) => `鍵，位置 ${j}`,
      content: "內容，(1, 0)",
      dial: (l, query, key, angle) => `圓盤 ${l}：查詢是 (${query})，鍵是 (${key})，夾角 ${angle}°`,
      product: "內積",
      apart: (angle) => `夾角 ${angle}°`,
      sum: (added, sum) => `${added ? "加上位置" : "旋轉"}：${sum}。`,
      together: (distance, last, result) =>
        `兩者一起移動，i 從 ${distance} 到 ${last}，鍵始終` +
        `${distance ? `站在查詢前面 ${distance} 個位置` : "和查詢在同一個位置"}：${result}`,
      stays: (score) => `分數一直是 ${score}。`,
      changes: (lowest, highest) => `分數跟著變，最低 ${lowest}，最高 ${highest}。`,
      hint: (added) =>
        added ? "每支指針都是內容加上位置；位置就是從圓心到圓周的細線。" : "每支指針，都是內容繞著圓心轉出來的。",
      summary: (sum, sentence) => `${sum}${sentence}`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
