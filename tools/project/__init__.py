"""Keeps README in step with the lessons, and sums up reports."""
