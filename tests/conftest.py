"""What all tests share: hypothesis draws the same examples each time, and no plot opens a window."""

import os

from hypothesis import settings

# In the environment rather than by importing matplotlib, so that subprocesses have it as well.
os.environ["MPLBACKEND"] = "Agg"

settings.register_profile("reproducible", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("reproducible")
