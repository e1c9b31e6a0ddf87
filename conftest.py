"""nbval, as tools/regression.py teaches it; which frameworks are tested, and the claims of the lessons."""

pytest_plugins = ["tools.regression", "tests.frameworks", "tests.lessons"]
