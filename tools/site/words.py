"""The site's own text in each language, apart from the lessons and documents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SiteText:
    languages: str  # label of the language switch
    pages: str  # label of the list of all pages
    framework: str  # label of the framework selector
    menu: str  # label of the menu that runs a notebook
    previous: str  # link to the previous lesson
    next: str  # link to the next lesson
    chapter: str  # the subject of all lessons
    description: str  # meta description of a lesson or of the chapter
    preview: str  # alternative text of the preview image
    separator: str  # between the items of a list
    last_separator: str  # before the last item
    run: str  # before the links that run a notebook
    notebook: str  # link to a notebook
    download: str  # link that downloads a notebook
    slides: str  # link to a deck
    lesson: str  # link from a deck to its lesson
    solution: str  # button that unfolds a solution
    back_to_text: str  # tooltip of the link from a reference to its citation
    search: str  # hint on the search page
    decks: str  # a lesson's line in the list of decks

    def join_list(self, items: list[str]) -> str:
        """Join items as a sentence lists them."""
        *first, last = items
        return self.last_separator.join([self.separator.join(first), last] if first else [last])


SITE_TEXT = {
    "en": SiteText(
        languages="Language",
        pages="All pages",
        framework="Framework",
        menu="Run",
        previous="Previous lesson: {title}",
        next="Next lesson: {title}",
        chapter="Attention",
        description="{title}, retold from Dive into Deep Learning and run in {frameworks}.",
        preview="A map of attention: which of the six words of a sentence looks at which.",
        separator=", ",
        last_separator=" and ",
        run="Run it in {framework}:",
        notebook="Notebook",
        download="Download",
        slides="Slides",
        lesson="The lesson: {title}",
        solution="Show the solution",
        back_to_text="Back to the text",
        search="Type one or more words, or a name from the reference: softmax, causal mask, valid_lens.",
        decks="{lesson}: {frameworks}",
    ),
    "zh-TW": SiteText(
        languages="語言",
        pages="所有頁面",
        framework="框架",
        menu="執行",
        previous="上一課：{title}",
        next="下一課：{title}",
        chapter="注意力",
        description="{title}：重新講過《動手學深度學習》的一課，並以 {frameworks} 實際執行。",
        preview="注意力圖：一句話的六個詞，各自看著哪些詞。",
        separator="、",
        last_separator=" 與 ",
        run="用 {framework} 執行：",
        notebook="筆記本",
        download="下載",
        slides="投影片",
        lesson="課文：{title}",
        solution="看解答",
        back_to_text="回到內文",
        search="輸入一個或幾個詞，或參考裡的名稱，例如：權重、因果遮罩、valid_lens。",
        decks="{lesson}：{frameworks}",
    ),
}
