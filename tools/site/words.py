"""What the site says in each language, beside the lessons."""

WORDS = {
    "en": {
        "languages": "Language",
        "run": "Run it in {framework}:",
        "source": "Notebook",
        "slides": "Slides",
    },
    "zh-TW": {
        "languages": "語言",
        "run": "用 {framework} 執行：",
        "source": "筆記本",
        "slides": "投影片",
    },
}
