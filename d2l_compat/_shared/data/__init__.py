"""D2L's data sets, as NumPy arrays: where they come from, and what is made of them."""
