"""Compare what two executions show: numbers, words and figures."""
