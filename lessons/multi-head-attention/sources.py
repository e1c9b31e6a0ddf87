DEFINED: list[str] = []
HELD: dict = {}
EXERCISES: dict = {}
IN_OTHER_WORDS: list[str] = []
