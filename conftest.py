"""nbval, as tools/run/regression.py teaches it; which frameworks are tested, what the claims of the lessons need,
and failures told at once."""

pytest_plugins = [
    "tools.run.regression",
    "tests.frameworks",
    "tests.lessons.cells",
    "tests.lessons.claims_in_notebooks",
    "tests.site.browser",
    "tests.reasons",
]
