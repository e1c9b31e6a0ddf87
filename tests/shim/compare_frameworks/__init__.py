"""Compare every framework with plain NumPy in float64: ``python -m tests.shim.compare_frameworks``.

``cases`` draws the inputs, ``expected`` has the reference's answers and their ``gradients``, and ``ask`` runs a
framework in its own process. The largest ``differences`` make the ``table`` in docs/LANGUAGE/agreement.md.
"""
