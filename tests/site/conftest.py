"""The pages that all site tests are about."""

from tools.lessons import editions

EDITIONS = list(editions())
# The lessons' pages and decks, which all have to do; what is said of each by name is tried on LESSON.
PAGES = list(dict.fromkeys(f"{each.language}/{each.folder.name}.html" for each in EDITIONS))
LESSON = "self-attention-and-positional-encoding.html"
