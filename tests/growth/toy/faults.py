"""The faults seeded in this lesson."""

from tests.mutants.changes import printed

FRAMEWORKS = "@FRAMEWORKS@".split()
IN_CODE = dict.fromkeys(FRAMEWORKS, [("a row too many", "(2, 3)", "(3, 3)")])
IN_NOTEBOOKS = {f"zh-TW/{FRAMEWORKS[0]}": [("a number changed", printed("sum", "6.0", "7.0"))]}
