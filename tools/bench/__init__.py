"""Benchmarks, which compare alternatives in one run. See docs/en/regression.md and coming-from-d2l.md."""
