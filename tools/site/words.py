"""What the site says in each language, beside the lessons."""

WORDS = {
    "en": {
        "name": "English",
        "languages": "Language",
        "project": "d2l_compat",
        "run": "Run it in {framework}:",
        "source": "Notebook",
        "slides": "Slides",
    },
    "zh-TW": {
        "name": "繁體中文",
        "languages": "語言",
        "project": "d2l_compat",
        "run": "用 {framework} 執行：",
        "source": "筆記本",
        "slides": "投影片",
    },
}
