"""Find the lessons, and weave each text and program into a notebook."""
