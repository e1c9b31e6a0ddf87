"""Search in Traditional Chinese by pairs of characters, which need no dictionary.

Sphinx's own search for Chinese uses a dictionary of Simplified Chinese, and its script fails.
"""

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search import SearchLanguage

RUN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+|[^\W\u3400-\u9fff\uf900-\ufaff]+")


class SearchTraditionalChinese(SearchLanguage):
    lang = "zh_TW"
    language_name = "TraditionalChinese"
    # Split a query into the pairs of characters of each Chinese run; a single character stays as it is.
    js_splitter_code = r"""
var splitQuery = (query) =>
  (query.match(/\p{Script=Han}+|[^\P{L}\p{Script=Han}]+|\d+/gu) ?? []).flatMap((run) =>
    /\p{Script=Han}/u.test(run) && run.length > 1
      ? Array.from({ length: run.length - 1 }, (_, i) => run.slice(i, i + 2))
      : [run]
  );
"""

    def split(self, input: str) -> list[str]:
        words = []
        for run in RUN.findall(input):
            is_latin = run[0] < "\u3400"
            words += [run] if is_latin else [*run, *map("".join, pairwise(run))]
        return words

    def stem(self, word: str) -> str:
        return word.lower()


def setup(app: Sphinx) -> None:
    app.add_search_language(SearchTraditionalChinese)
