"""nbval, as tools/run/regression.py teaches it; which frameworks are tested, what the claims of the lessons need,
and failures told at once."""

pytest_plugins = [
    "tools.run.regression",
    "tests.frameworks",
    "tests.lessons",
    "tests.claims_in_notebooks",
    "tests.browser",
    "tests.reasons",
]
