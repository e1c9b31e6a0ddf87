"""D2L's data sets as NumPy arrays: download, read and prepare them."""
