"""What one framework computes: ``python -m tests.faces.answers FRAMEWORK IN.npz OUT.npz``.

A process of its own for each framework: some cannot live in one. The arrays' names are those in
tests/compare_frameworks.py; the Java edition has a program of the same kind.
"""

import sys
from importlib import import_module

import numpy as np


def main(framework: str, given: str, answers: str) -> None:
    face = import_module(f"tests.faces.{framework}.adapter").Adapter()
    case = dict(np.load(given))
    inputs = [case[name] for name in ("queries", "keys", "values", "valid_lens")]
    dtype = str(inputs[0].dtype)
    weights = {name: array for name, array in case.items() if name[:2] in ("W_", "b_")}
    queries, keys, values = (x.shape[-1] for x in inputs[:3])
    num_hiddens, num_heads = len(weights["W_o"]), int(case["num_heads"])
    sizes = (keys, queries, values, num_hiddens, num_heads, 0.5, True)
    layer = face.multi_head(*sizes, weights=weights, dtype=dtype)
    output = layer(*inputs)
    shares = layer.attention_weights
    gradients = layer.gradients(case["direction"], *inputs)
    P = face.encoding(int(case["num_hiddens_of_P"]), 0.0, int(case["max_len"]), dtype=dtype).P
    np.savez(
        answers,
        output=output,
        weights=shares,
        **{
            f"gradient_{name}": g
            for name, g in zip(("queries", "keys", "values"), gradients, strict=True)
        },
        P=P,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
