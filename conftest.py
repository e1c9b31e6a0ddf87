"""nbval, as tools/regression.py teaches it."""

pytest_plugins = ["tools.regression"]
