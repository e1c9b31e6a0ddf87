"""Where the numbers and the equations of the text come from."""

HELD = {"$x + y = y + x$": ("sum", lambda its: its.shown.rows == [[3 + 2 + 1]] == [[1 + 2 + 3]])}
DEFINED: list[str] = []
EXERCISES: dict[str, str] = {}
IN_OTHER_WORDS: list[str] = []
