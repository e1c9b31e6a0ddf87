"""The faults seeded in this lesson, each of which the checks have to notice (`make mutants`)."""

from tests.mutants.changes import (
    an_exception,
    cleared,
    drawing,
    drawing_of,
    earlier,
    missing,
    output_of,
    printed,
    source,
    the_other_way_round,
    to_stderr,
    twice,
    whole_notebook_of,
)

# By framework, what an author might write: its name, the code as it is, the code as it would be.
IN_CODE = {
    "pytorch": [
        (
            "by hand, scores divided by d",
            "scores = q @ k.T / math.sqrt(q.shape[-1])",
            "scores = q @ k.T / q.shape[-1]",
        ),
        ("dropout left on", "attention.eval()", "attention.train()"),
        ("columns 5 to 8 under the names of 6 to 9", "P[:, 6:10].T", "P[:, 5:9].T"),
        (
            "pairs turned backwards",
            "d2l.stack([cos, sin, -sin, cos], dim=-1)",
            "d2l.stack([cos, -sin, sin, cos], dim=-1)",
        ),
        (
            "a causal mask one key too short",
            "torch.arange(1, n + 1, device",
            "torch.arange(n, device",
        ),
        (
            "the first learned position for all",
            "self.P(torch.arange(X.shape[1], device=X.device))",
            "self.P.weight[0]",
        ),
    ],
    "tensorflow": [
        (
            "by hand, one key too many",
            "d2l.arange(len(X)) >= valid_len",
            "d2l.arange(len(X)) > valid_len",
        ),
        (
            "training for evaluation",
            "Y = attention(X, X, X, valid_lens)",
            "Y = attention(X, X, X, valid_lens, training=True)",
        ),
        (
            "maps of influence transposed",
            "return tf.norm(jacobian, axis=(1, 3))",
            "return tf.transpose(tf.norm(jacobian, axis=(1, 3)))",
        ),
        (
            "a base of 1000",
            "10000 ** (2 * (column // 2) / num_hiddens)",
            "1000 ** (2 * (column // 2) / num_hiddens)",
        ),
        ("red and blue exchanged", 'cmap="RdBu_r"', 'cmap="RdBu"'),
        (
            "the encoding's dropout forgotten",
            "self.dropout(X + self.P[:, offset:end], training=training)",
            "X + self.P[:, offset:end]",
        ),
    ],
    "jax": [
        (
            "by hand, heads in reverse order",
            "d2l.concat(heads, axis=-1) @ W_o",
            "d2l.concat(heads[::-1], axis=-1) @ W_o",
        ),
        ("the two lengths exchanged", "d2l.tensor([3, 2])", "d2l.tensor([2, 3])"),
        (
            "positions counted from one",
            "position = np.arange(self.max_len)[:, None]",
            "position = np.arange(1, self.max_len + 1)[:, None]",
        ),
        ("the RNN's matrix not shrunk", "rnn(X, 0.8 * W_hh)", "rnn(X, W_hh)"),
        (
            "embedding scaled by d",
            "scaled = E * math.sqrt(d_model)",
            "scaled = E * d_model",
        ),
        (
            "labels turned round",
            "(places[:, 0] < places[:, 1])",
            "(places[:, 0] > places[:, 1])",
        ),
    ],
    "mxnet": [
        (
            "by hand, the last keys for the first",
            "k, v = k[:valid_len], v[:valid_len]",
            "k, v = k[-valid_len:], v[-valid_len:]",
        ),
        (
            "a norm over the wrong axes",
            "np.linalg.norm(copies.grad.reshape(n, d, n, d), axis=(1, 3))",
            "np.linalg.norm(copies.grad.reshape(n, d, n, d), axis=(0, 3)).T",
        ),
        ("the encoding's heat map transposed", "P[None, None]", "P.T[None, None]"),
        ("angles in degrees", "/ width)\nlargest", "/ width) * math.pi / 180\nlargest"),
        ("labels of the mirrored kept", "[labels, 1 - labels]", "[labels, labels]"),
        (
            "a table in single precision",
            'position = np.arange(max_len, dtype="float64")',
            'column, position = column.astype("float32"), np.arange(max_len, dtype="float32")',
        ),
    ],
    "paddle": [
        (
            "by hand, queries and keys exchanged",
            "(attention.W_q, attention.W_k, attention.W_v)",
            "(attention.W_k, attention.W_q, attention.W_v)",
        ),
        ("one side not shuffled", "layer(tokens)[:, order]", "layer(tokens)"),
        ("one matrix twice in the RNN", "d2l.matmul(H, W_hh)", "d2l.matmul(H, W_xh)"),
        (
            "sine and cosine exchanged",
            "paddle.where(column % 2 == 0,",
            "paddle.where(column % 2 == 1,",
        ),
        (
            "names of the curves exchanged",
            '["RNN", "self-attention"]',
            '["self-attention", "RNN"]',
        ),
        ("width and height exchanged", "figsize=(3.5, 4)", "figsize=(4, 3.5)"),
        (
            "negative offsets let through",
            "offset < 0 or end > max_len",
            "end > max_len",
        ),
    ],
    "djl": [
        (
            "training for evaluation",
            "new NDList(inputs), false)",
            "new NDList(inputs), true)",
        ),
        ("columns 7 to 10 under the names of 6 to 9", '":, 6:10"', '":, 7:11"'),
        (
            "names of the curves exchanged",
            '"attention alone", "with skip connections"',
            '"with skip connections", "attention alone"',
        ),
        (
            "whole numbers divided",
            "2 * (column / 2) / (double) numHiddens",
            "2 * (column / 2) / numHiddens",
        ),
        ("a scale without negative numbers", "ColorMap.BLUE_TO_RED", "ColorMap.REDS"),
        (
            "the encoding's dropout forgotten",
            'return Dropout.dropout(X.add(P.get(":, {}:{}", offset, end)), dropout, training);',
            'return new NDList(X.add(P.get(":, {}:{}", offset, end)));',
        ),
    ],
}

# By the notebooks' folder: an edit by hand, a bad merge, a run of something else.
IN_NOTEBOOKS = {
    "en/pytorch": [
        ("a number changed", printed("by-hand", "0.00000", "0.00020")),
        (
            "one colour of a figure changed",
            drawing("column-plot", "#0072b2", "#56b4e9"),
        ),
        (
            "code edited and not run",
            source("solution-fading", "0.8 * W_hh", "0.9 * W_hh"),
        ),
    ],
    "en/tensorflow": [
        ("an exception for an output", an_exception("weights-check")),
        ("the figure of another cell", output_of("column-plot", "solution-fading")),
        ("a cell missing", missing("encoding-heatmap")),
    ],
    "en/jax": [
        ("PyTorch's notebook in its place", whole_notebook_of("en/pytorch")),
        ("an output cleared", cleared("multiply-adds")),
        ("a figure before the words", the_other_way_round("dot-products")),
    ],
    "zh-TW/jax": [
        ("an integer changed", printed("influence", "28 of 100", "27 of 100"))
    ],
    "en/mxnet": [
        (
            "another drawing under the right words",
            drawing_of("solution-causal", "influence-heatmaps"),
        ),
        ("printed as if it were a complaint", to_stderr("rotation")),
        ("two cells in the other order", earlier("column-plot", than="scale-and-sum")),
    ],
    "en/paddle": [
        ("a cell twice", twice("solution-dilated")),
        ("the notebook in the other language", whole_notebook_of("zh-TW/paddle")),
    ],
    "zh-TW/paddle": [("a line lost", printed("rotation", "delta -5:", "delta 5:"))],
    "en/djl": [
        (
            "a curve dashed as another",
            drawing(
                "dot-products", 'stroke-dasharray="5.55 2.4"', 'stroke-dasharray="none"'
            ),
        ),
        ("one result of an earlier run", printed("scale-and-sum", "22.67", "22.76")),
        ("one name in a legend changed", drawing("column-plot", ">Col 9<", ">Col 8<")),
    ],
}
