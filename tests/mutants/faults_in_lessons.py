"""Faults in the lessons' code: what an author might write."""

from tests.mutants.fault import Fault

CODE = "lessons/self-attention-and-positional-encoding/code"

TABLE = {
    f"{CODE}.pytorch.py": [
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
    f"{CODE}.tensorflow.py": [
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
    f"{CODE}.jax.py": [
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
        ("embedding scaled by d", "scaled = E * math.sqrt(d_model)", "scaled = E * d_model"),
        ("labels turned round", "(places[:, 0] < places[:, 1])", "(places[:, 0] > places[:, 1])"),
    ],
    f"{CODE}.mxnet.py": [
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
    f"{CODE}.paddle.py": [
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
        ("negative offsets let through", "offset < 0 or end > max_len", "end > max_len"),
    ],
    f"{CODE}.djl.java": [
        ("training for evaluation", "new NDList(inputs), false)", "new NDList(inputs), true)"),
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

FAULTS = [
    Fault(file.split(".")[1], name, file, old, new)
    for file, rows in TABLE.items()
    for name, old, new in rows
]
