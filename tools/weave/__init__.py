"""What lessons are, and how a text and a code file become a notebook."""
