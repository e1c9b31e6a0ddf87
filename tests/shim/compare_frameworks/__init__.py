"""How near the frameworks' results are to plain NumPy in float64: ``python -m tests.shim.compare_frameworks``.

``cases`` draws what every framework is asked, ``expected`` is what the reference answers, with its ``gradients``;
``ask`` asks a framework in a process of its own; and of the ``differences`` the largest make the README's ``table``.
"""
