"""Test vectors for attention, with gradients, and a runner that asks any implementation.

``cases.safetensors`` and ``cases.json`` are plain files, for any language; ``cases.few.json`` has a few cases for
browsers. ``python -m d2l_compat.conformance`` asks implementations, through ``adapters``, and compares their answers.
"""

from d2l_compat.conformance.files import Case, load_cases

__all__ = ["Case", "load_cases"]
