"""The text of the tables about D2L's pages (tools/book/results.py), in each language."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableText:
    editions: dict[str, str]
    chapters: dict[str, str]
    causes: dict[str, str]
    chapter: str
    title: str  # a chapter or a page, and its edition
    all: str
    count: str  # pages that run, of all
    summary: str
    page: str
    framework: str
    cause: str
    error: str
    comparison: str
    edition: str
    different_page: str
    equal_cells: str

    def format_chapter(self, edition: str, chapter: str) -> str:
        name = self.chapters.get(chapter, chapter)
        return self.title.format(name, self.editions.get(edition, edition))


TABLE_TEXT = {
    "en": TableText(
        editions={"en": "English", "zh": "Chinese"},
        chapters={
            "appendix-mathematics-for-deep-learning": "Appendix: mathematics",
            "appendix-tools-for-deep-learning": "Appendix: tools",
            "attention-mechanisms": "Attention",
            "attention-mechanisms-and-transformers": "Attention and Transformers",
            "builders-guide": "Builders' guide",
            "computational-performance": "Computational performance",
            "computer-vision": "Computer vision",
            "convolutional-modern": "Modern convolutional networks",
            "convolutional-neural-networks": "Convolutional networks",
            "deep-learning-computation": "Deep learning computation",
            "gaussian-processes": "Gaussian processes",
            "generative-adversarial-networks": "Generative adversarial networks",
            "hyperparameter-optimization": "Hyperparameter search",
            "introduction": "Introduction",
            "linear-classification": "Linear classification",
            "linear-networks": "Linear networks",
            "linear-regression": "Linear regression",
            "multilayer-perceptrons": "Multilayer perceptrons",
            "natural-language-processing-applications": "Natural language processing: applications",
            "natural-language-processing-pretraining": "Natural language processing: pretraining",
            "optimization": "Optimization",
            "preliminaries": "Preliminaries",
            "recommender-systems": "Recommender systems",
            "recurrent-modern": "Modern recurrent networks",
            "recurrent-neural-networks": "Recurrent networks",
            "reinforcement-learning": "Reinforcement learning",
        },
        causes={
            "name": "the shim lacks a name",
            "shim": "the shim",
            "framework": "today's framework or library",
            "page": "the page",
            "package": "a library that is not installed",
            "gpu": "it needs a GPU",
            "network": "it needs a download of its own",
            "time": "the time limit",
        },
        chapter="chapter",
        title="{} ({})",
        all="all",
        count="{} of {}",
        summary=(
            "Of {pairs} pairs of page and framework that were run, {passed} ran from the first cell to the last; of the {testable} that "
            "need neither a GPU nor a download of their own, {share} % did. The failures, with the first error of each:"
        ),
        page="page",
        framework="framework",
        cause="cause",
        error="first error",
        comparison=(
            "In {pairs} of these pairs, cells that upstream's package runs as well print or draw something, {cells} cells in all. "
            "With the same seeds set before each cell, {equal_cells} of them show the same on both packages; in {equal_pairs} pairs, all do. "
            "Cells that show the same, by edition:"
        ),
        edition="edition",
        different_page="page with a difference",
        equal_cells="cells that show the same",
    ),
    "zh-TW": TableText(
        editions={"en": "英", "zh": "簡中"},
        chapters={
            "appendix-mathematics-for-deep-learning": "附錄：數學",
            "appendix-tools-for-deep-learning": "附錄：工具",
            "attention-mechanisms": "注意力機制",
            "attention-mechanisms-and-transformers": "注意力機制與 Transformer",
            "builders-guide": "搭建模型",
            "computational-performance": "運算效能",
            "computer-vision": "電腦視覺",
            "convolutional-modern": "現代卷積神經網路",
            "convolutional-neural-networks": "卷積神經網路",
            "deep-learning-computation": "深度學習計算",
            "gaussian-processes": "高斯過程",
            "generative-adversarial-networks": "生成對抗網路",
            "hyperparameter-optimization": "超參數搜尋",
            "introduction": "導論",
            "linear-classification": "線性分類",
            "linear-networks": "線性神經網路",
            "linear-regression": "線性迴歸",
            "multilayer-perceptrons": "多層感知器",
            "natural-language-processing-applications": "自然語言處理：應用",
            "natural-language-processing-pretraining": "自然語言處理：預訓練",
            "optimization": "最佳化",
            "preliminaries": "預備知識",
            "recommender-systems": "推薦系統",
            "recurrent-modern": "現代遞迴神經網路",
            "recurrent-neural-networks": "遞迴神經網路",
            "reinforcement-learning": "強化學習",
        },
        causes={
            "name": "這裡還沒有這個名稱",
            "shim": "這個套件",
            "framework": "現在的框架或函式庫",
            "page": "頁面本身",
            "package": "有個函式庫沒有安裝",
            "gpu": "需要 GPU",
            "network": "頁面自己上網抓資料",
            "time": "超過時限",
        },
        chapter="章",
        title="{}（{}）",
        all="合計",
        count="{} / {}",
        summary=(
            "「頁面 × 框架」跑了 {pairs} 組，其中 {passed} 組從第一格跑到最後一格都沒有出錯。不需要 GPU、也不自己上網抓資料的有 {testable} 組，"
            "跑完的占 {share}%。沒跑完的，各自卡在這裡："
        ),
        page="頁面",
        framework="框架",
        cause="卡在",
        error="第一個錯誤",
        comparison=(
            "其中 {pairs} 組有些格子在原版上也跑得完，並且會印出文字或畫圖，共 {cells} 格。每一格之前都設定相同的亂數種子，"
            "兩邊印的、畫的都一樣的有 {equal_cells} 格；整頁都一樣的有 {equal_pairs} 組。各種版本的書，一樣的格數："
        ),
        edition="書的版本",
        different_page="有差異的頁面",
        equal_cells="一樣的格數",
    ),
}
