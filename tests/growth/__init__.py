"""Test in a copy of the project that a new lesson needs only its folder and a line in lessons/chapter.toml."""
