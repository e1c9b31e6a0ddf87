"""What the site says in each language, beside the lessons."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    languages: str
    pages: str  # all that the site has
    framework: str
    menu: str  # of what runs a notebook
    previous: str  # lesson
    next: str
    chapter: str  # what all lessons are about
    description: str  # of a lesson, or of the chapter
    preview: str  # what the picture in previews shows
    between: str  # the parts of a list
    before_last: str
    run: str
    notebook: str
    download: str  # of a notebook
    slides: str
    lesson: str  # from a deck, with its title
    solution: str  # what unfolds one
    back: str  # from a reference to what cites it
    search: str  # what can be searched for
    decks: str  # in the list of all slides

    def joined(self, parts: list[str]) -> str:
        """The parts as a sentence lists them."""
        *first, last = parts
        return self.before_last.join([self.between.join(first), last] if first else [last])


WORDS = {
    "en": Words(
        languages="Language",
        pages="All pages",
        framework="Framework",
        menu="Run",
        previous="Previous lesson: {title}",
        next="Next lesson: {title}",
        chapter="Attention",
        description="{title}, retold from Dive into Deep Learning and run in {frameworks}.",
        preview="A map of attention: which of the six words of a sentence looks at which.",
        between=", ",
        before_last=" and ",
        run="Run it in {framework}:",
        notebook="Notebook",
        download="Download",
        slides="Slides",
        lesson="The lesson: {title}",
        solution="Show the solution",
        back="Back to the text",
        search="Type one or more words, or a name from the reference: softmax, causal mask, valid_lens.",
        decks="{lesson}: {frameworks}",
    ),
    "zh-TW": Words(
        languages="語言",
        pages="所有頁面",
        framework="框架",
        menu="執行",
        previous="上一課：{title}",
        next="下一課：{title}",
        chapter="注意力",
        description="{title}：重新講過《動手學深度學習》的一課，並以 {frameworks} 實際執行。",
        preview="注意力圖：一句話的六個詞，各自看著哪些詞。",
        between="、",
        before_last=" 與 ",
        run="用 {framework} 執行：",
        notebook="筆記本",
        download="下載",
        slides="投影片",
        lesson="課文：{title}",
        solution="看解答",
        back="回到內文",
        search="輸入一個或幾個詞，或參考裡的名稱，例如：權重、因果遮罩、valid_lens。",
        decks="{lesson}：{frameworks}",
    ),
}
