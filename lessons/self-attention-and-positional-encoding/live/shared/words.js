// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const en = {
    position: "Position i",
    "look-around": {
      title: "A word looks around",
      type: "Type a sentence:",
      sentence: "the cat sat because it purred",
      mask: "Hide what comes later (causal mask)",
      word: "Who asks?",
      thing: "thing",
      action: "action",
      score: "score",
      weight: "weight",
      label: (part, word) => `${word}: ${part}`,
      vectors: {
        the: [0, 0], a: [0, 0], and: [0, 0], because: [0, 0], in: [0, 0], on: [0, 0], was: [0, 0],
        it: [1, 0], he: [1, 0], she: [1, 0], they: [1, 0], i: [1, 0], you: [1, 0],
        cat: [3, 0], dog: [3, 0], mouse: [3, 0], bird: [3, 0], milk: [2, 0], mat: [2, 0],
        sat: [0, 2], purred: [0, 2], slept: [0, 2], ran: [0, 2], ate: [0, 2], drank: [0, 2],
      },
      summary: (word, before, after, most, weight) =>
        `“${word}” was (${before.join(", ")}) and is now (${after.join(", ")}); it attends most to “${most}”: ${weight}.`,
    },
    "clock-hands": {
      title: "Clock hands: one row of the positional encoding",
      play: "Play",
      pause: "Pause",
      sine: "sin, across",
      cosine: "cos, upward",
      clock: (j, degrees) => `Clock ${j}: its hand has turned by ${degrees}°`,
      turn: (positions) => `${positions} positions`,
      hint: "Below each clock: its hand's two coordinates, and how many positions a whole turn takes.",
    },
    rotation: {
      title: "Moving by δ positions is a rotation",
      offset: "Offset δ",
      at: (i) => `position ${i}`,
      turned: "turned by its matrix",
      pair: (j, start, turn) =>
        `Pair ${j}: a point at ${start}° is turned by ${turn}°; the ring around the result is its target`,
      matrix: (j) => `The matrix of pair ${j}`,
      angle: (degrees) => `turns by ${degrees}°`,
      hint: "Move i: the points move, the matrices stay. Only δ changes them.",
      residual: "Largest residual",
    },
    "dot-product": {
      title: "Dot product of two positions",
      distance: "Distance i − j",
      product: "Dot product",
      references: (rows) => `i = ${rows.join(", ")}`,
      spread: "Largest difference: ",
      plot: (i, distance, product) =>
        `Dot products of position ${i} with its neighbours, highest at distance 0. ` +
        `At distance ${distance}: ${product}. The curves of other positions are the same.`,
    },
    heatmap: {
      title: "The positional encoding as a heat map",
      dimensions: "Width d",
      base: "Base",
      length: "Length",
      row: "Row (position)",
      column: "Column (dimension)",
      map: (length, d) =>
        `Heat map of ${length} positions and ${d} dimensions, from −1, blue, to 1, red. ` +
        "Each pair of columns changes more slowly than the one to its left.",
      probe: "Probe: the arrow keys move it",
      hint: "Point at the heat map, or move to it with the Tab key and press the arrow keys.",
    },
    shuffle: {
      title: "Attention among six shuffled tokens",
      tokens: ["dog", "bites", "man", "in", "the", "park"],
      shuffle: "Shuffle",
      order: "Back in order",
      positions: "Add positional encoding",
      axes: "query ↓ key →",
      token: (token, place) => `${token}, token ${place}`,
      map: (list) => `Attention weights. Each query and its strongest key: ${list.join(", ")}`,
      strongest: (query, key, weight) => `${query} to ${key} ${weight}`,
      hint: "A click moves a token to the right; the arrow keys move it either way.",
      compared: "Largest difference from the original, its rows and columns shuffled likewise:",
      weights: "weights",
      outputs: "outputs",
      summary: (sentence, weights, outputs) =>
        `${sentence}. Difference of weights ${weights}, of outputs ${outputs}`,
    },
  };

  const zh = {
    position: "位置 i",
    "look-around": {
      title: "一個詞環顧四周",
      type: "輸入一個句子，詞與詞之間空一格：",
      sentence: "那隻 貓 躲了起來 因為 牠 闖了禍",
      mask: "遮住後面的詞（因果遮罩）",
      word: "由哪個詞發問？",
      thing: "事物",
      action: "動作",
      score: "分數",
      weight: "權重",
      label: (part, word) => `${word}：${part}`,
      vectors: {
        那隻: [0, 0], 因為: [0, 0], 的: [0, 0], 在: [0, 0], 和: [0, 0], 了: [0, 0],
        牠: [1, 0], 他: [1, 0], 她: [1, 0], 它: [1, 0], 我: [1, 0], 你: [1, 0],
        貓: [3, 0], 狗: [3, 0], 老鼠: [3, 0], 鳥: [3, 0], 牛奶: [2, 0],
        躲了起來: [0, 2], 闖了禍: [0, 2], 睡了: [0, 2], 跑了: [0, 2], 吃了: [0, 2], 喝了: [0, 2],
      },
      summary: (word, before, after, most, weight) =>
        `「${word}」原來是 (${before.join(", ")})，現在是 (${after.join(", ")})；它最注意「${most}」：${weight}。`,
    },
    "clock-hands": {
      title: "時鐘指針：位置編碼的一個橫列",
      play: "播放",
      pause: "暫停",
      sine: "sin，水平",
      cosine: "cos，垂直",
      clock: (j, degrees) => `時鐘 ${j}：指針已轉過 ${degrees}°`,
      turn: (positions) => `${positions} 個位置`,
      hint: "每個時鐘下方：指針的兩個座標，以及轉一整圈要走多少個位置。",
    },
    rotation: {
      title: "移動 δ 個位置就是旋轉",
      offset: "位移 δ",
      at: (i) => `位置 ${i}`,
      turned: "用矩陣旋轉後",
      pair: (j, start, turn) => `編號 ${j} 的那一對：點在 ${start}°，旋轉 ${turn}°；結果外面的圓環是目標`,
      matrix: (j) => `編號 ${j} 那一對的矩陣`,
      angle: (degrees) => `旋轉 ${degrees}°`,
      hint: "移動 i，點會動，矩陣不動；只有 δ 才會改變矩陣。",
      residual: "最大的誤差",
    },
    "dot-product": {
      title: "兩個位置的內積",
      distance: "距離 i − j",
      product: "內積",
      references: (rows) => `i = ${rows.join("、")}`,
      spread: "最大的差：",
      plot: (i, distance, product) =>
        `位置 ${i} 與鄰近位置的內積，距離 0 時最大。距離 ${distance} 時是 ${product}。其他位置的曲線也一樣。`,
    },
    heatmap: {
      title: "位置編碼的熱圖",
      dimensions: "維度 d",
      base: "底數",
      length: "長度",
      row: "橫列（位置）",
      column: "直行（維度）",
      map: (length, d) =>
        `熱圖：${length} 個位置、${d} 個維度，數值從 −1（藍）到 1（紅）。每一對直行都比左邊那一對變化得慢。`,
      probe: "標記：用方向鍵移動",
      hint: "把游標移到熱圖上；或用 Tab 鍵移到熱圖，再按方向鍵。",
    },
    shuffle: {
      title: "打亂六個詞元之後的注意力",
      tokens: ["狗", "在", "公園", "裡", "咬", "人"],
      shuffle: "打亂",
      order: "恢復順序",
      positions: "加上位置編碼",
      axes: "查詢 ↓ 鍵 →",
      token: (token, place) => `${token}，第 ${place} 個詞元`,
      map: (list) => `注意力權重。每個查詢與權重最大的鍵：${list.join("、")}`,
      strongest: (query, key, weight) => `「${query}」對「${key}」${weight}`,
      hint: "點一下詞元，它就往右移；用方向鍵，左右都能移。",
      compared: "與原來的結果（橫列、直行照樣打亂）相比，最大的差：",
      weights: "權重",
      outputs: "輸出",
      summary: (sentence, weights, outputs) => `${sentence}。權重的差 ${weights}，輸出的差 ${outputs}`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
