"""A lesson needs its folder and a line in the chapter's file: seen in copies of the project."""
