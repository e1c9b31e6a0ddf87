"""Test that the checks notice faults: ``python -m tests.mutants``.

Each fault is put into a scratch copy of the project, one at a time, and the checks that should notice it are
run there. A fault that none of them notices is a gap in the checks.
"""
