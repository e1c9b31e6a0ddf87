"""Proof that the regression run notices faults: ``python -m tests.mutants``.

Each fault is put into a scratch copy of the project, one at a time, and the checks that concern
it are run there. A fault that none of them notices is a hole in the checks.
"""
