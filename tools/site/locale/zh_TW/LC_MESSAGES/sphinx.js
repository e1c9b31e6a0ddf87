// Translations of the messages of scripts: Sphinx's search, and the buttons that copy code (site.js).
Documentation.addTranslations({
  locale: "zh_Hant_TW",
  plural_expr: "0",
  messages: {
    ", in ": "，位於 ",
    "Copy": "複製",
    "Copy to clipboard": "複製到剪貼簿",
    "Copied!": "已複製",
    "Failed to copy": "無法複製",
    "Hide Search Matches": "不再標示搜尋的字詞",
    "Preparing search...": "準備搜尋……",
    "Search Results": "搜尋結果",
    "Search finished, found one page matching the search query.": ["搜尋完畢，共 ${resultCount} 筆。"],
    "Searching": "搜尋中",
    "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
      "找不到相符的頁面。請檢查字詞有沒有打錯，或換個說法再試一次。",
  },
});
