"""Weaves the lessons into notebooks, executes them, and compares what they show."""
