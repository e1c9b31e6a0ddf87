"""Load the project's pytest plugins."""

pytest_plugins = [
    "tools.run.regression",  # extends nbval
    "tests.frameworks",  # chooses the framework under test
    "tests.lessons.cells",  # fixtures for the lessons' claims
    "tests.lessons.claims_in_notebooks",
    "tests.site.browser",
    "tests.reasons",  # prints failures at once
]
