"use strict";
{
  const words = (title, number) => ({ lesson: "@TITLE@", double: { title, number } });
  d2lLive.words = d2lLive.kit.selectLanguage({
    en: words("A number and its double", "Number"),
    "zh-TW": words("一個數和它的兩倍", "數"),
  });
}
