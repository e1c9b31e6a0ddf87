"""What the site says in each language, beside the lessons."""

WORDS = {
    "en": {
        "languages": "Language",
        "description": "Self-attention and positional encoding, told afresh from Dive into Deep Learning, "
        "and run in PyTorch, TensorFlow, JAX, MXNet, PaddlePaddle and DJL.",
        "run": "Run it in {framework}:",
        "source": "Notebook",
        "slides": "Slides",
    },
    "zh-TW": {
        "languages": "語言",
        "description": "自注意力與位置編碼：《動手學深度學習》的一課重新講過，"
        "並以 PyTorch、TensorFlow、JAX、MXNet、PaddlePaddle 與 DJL 實際執行。",
        "run": "用 {framework} 執行：",
        "source": "筆記本",
        "slides": "投影片",
    },
}
