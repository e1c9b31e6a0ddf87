"""The toy's files are templates, and no tests of this project."""

collect_ignore = ["toy"]
