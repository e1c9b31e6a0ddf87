// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const en = {
    translator: {
      title: "A trained model that translates a sentence word by word",
      sentence: "The sentence to translate",
      subject: ["The subject's adjective", "Subject"],
      verb: "Verb",
      object: ["The object's adjective", "Object"],
      none: "–",
      words: "Written",
      count: (number, all) => `${number} of ${all}`,
      next: "Next word",
      again: "Start again",
      all: "All words",
      head: "Head",
      largest: "largest of the four",
      read: "read →",
      written: "written ↓",
      map: (head, rows) =>
        "Weights of the decoder's attention to the sentence " +
        `(${head ? `head ${head}` : "the largest of the four heads"}), ` +
        "a row for each word written and a column for each word read. " +
        rows.map(([word, read, weight]) => `“${word}” looks most at “${read}” (${weight})`).join("; "),
      likeliest: (number) => `Word ${number}: the three likeliest`,
      word: "Word",
      probability: "Probability",
      frame: "the word it comes from",
      weight: "weight: the stronger the colour, the larger",
      summary: (head, [word, read, weight], isOrigin, [origin, share]) =>
        `For “${word}”, ${head ? `head ${head}` : "some head"} looks at “${read}” with weight ${weight}` +
        (isOrigin ? ", the word it comes from." : `; it comes from “${origin}” (${share}).`),
      announce: (translation, summary) => `${translation}. ${summary}`,
    },
  };

  const zh = {
    translator: {
      title: "一個訓練好的模型，一個詞一個詞翻譯句子",
      sentence: "要翻譯的句子",
      subject: ["主詞的形容詞", "主詞"],
      verb: "動詞",
      object: ["受詞的形容詞", "受詞"],
      none: "–",
      words: "已寫",
      count: (number, all) => `${number} / ${all}`,
      next: "下一個詞",
      again: "從頭開始",
      all: "全部",
      head: "頭",
      largest: "四個頭裡最大的",
      read: "讀 →",
      written: "寫 ↓",
      map: (head, rows) =>
        `解碼器注意句子的權重（${head ? `頭 ${head}` : "四個頭裡最大的"}），` +
        "每個寫出的詞一個橫列，每個讀到的詞一個直行。" +
        rows.map(([word, read, weight]) => `「${word}」最注意「${read}」（${weight}）`).join("；"),
      likeliest: (number) => `第 ${number} 個詞：機率最大的三個`,
      word: "詞",
      probability: "機率",
      frame: "這個詞的來源",
      weight: "權重：顏色越濃越大",
      summary: (head, [word, read, weight], isOrigin, [origin, share]) =>
        `寫「${word}」時，${head ? `頭 ${head} ` : "有一個頭"}注意「${read}」，權重 ${weight}` +
        (isOrigin ? "，也就是它的來源。" : `；它的來源是「${origin}」（${share}）。`),
      announce: (translation, summary) => `${translation}。${summary}`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
