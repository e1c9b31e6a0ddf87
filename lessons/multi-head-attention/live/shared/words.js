// Every word of this lesson's figures that a reader sees or hears, in each language.
"use strict";
{
  const A = ["an apple", "a lemon", "a pear"];
  const en = {
    heads: {
      title: "Two fruits, asked of one head or of two",
      fruits: ["apple", "lemon", "pear"],
      first: "First fruit",
      second: "Second fruit",
      loudness: "How loud",
      twoHeads: "Two heads",
      question: (head, query) => (head ? `Head ${head} asks for (${query})` : `One head asks for the sum, (${query})`),
      fruit: "Fruit",
      price: "Price",
      weight: "Weight",
      answer: "Answer",
      average: (answer, subtraction) =>
        `One head answers ${answer} cents: an average of the three prices, and not the difference asked for, ${subtraction}.`,
      difference: (subtraction, first, second, cents) =>
        `${subtraction}: ${A[first]} costs ${cents} cents more than ${A[second]}.`,
    },
  };

  const fruits = ["蘋果", "檸檬", "梨子"];
  const zh = {
    heads: {
      title: "兩種水果，問一個頭或兩個頭",
      fruits,
      first: "前一種",
      second: "後一種",
      loudness: "問得多大聲",
      twoHeads: "兩個頭",
      question: (head, query) => (head ? `頭 ${head} 問 (${query})` : `一個頭問兩者的和，(${query})`),
      fruit: "水果",
      price: "價錢",
      weight: "權重",
      answer: "答案",
      average: (answer, subtraction) =>
        `一個頭的答案是 ${answer} 元：這是三種價錢的平均，並不是我們要的差，${subtraction}。`,
      difference: (subtraction, first, second, price) =>
        `${subtraction}，所以${fruits[first]}比${fruits[second]}貴 ${price} 元。`,
    },
  };

  d2lLive.words = d2lLive.kit.selectLanguage({ en, "zh-TW": zh });
}
