"""Compare the outputs of two executions: numbers, words and figures."""
