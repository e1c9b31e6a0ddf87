"""When two executions show the same: numbers, words and figures."""
