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
    printed_as,
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
        (
            "a table of positions that is not trained",
            "self.P = nn.Embedding(max_len, num_hiddens)",
            "self.P = nn.Embedding(max_len, num_hiddens).requires_grad_(False)",
        ),
        (
            "a learned encoding for the fixed one",
            '("fixed", d2l.PositionalEncoding(32, 0))',
            '("fixed", LearnedPositionalEncoding(32, 8))',
        ),
        (
            "trained on the test set",
            "tokens, labels = sequences(128)",
            "tokens, labels = test_tokens, test_labels",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        (
            "the spread of keys for that of scores",
            "spread {scores.std():5.2f}",
            "spread {keys.std():5.2f}",
        ),
        (
            "an order that moves nothing",
            "order = [3, 0, 5, 1, 4, 2]",
            "order = [0, 1, 2, 3, 4, 5]",
        ),
        (
            "additions counted as well",
            "counter.get_total_flops() // 2",
            "counter.get_total_flops()",
        ),
        (
            "dot products of the wrong neighbours",
            "products[i, i - distances]",
            "products[i, i - distances - 1]",
        ),
        (
            "gaps that do not grow",
            "step = growth**depth",
            "step = growth ** (depth // 2)",
        ),
        ("earlier tokens forgotten", "kept = d2l.concat([kept, x], dim=1)", "kept = x"),
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
        (
            "a table of positions that is not trained",
            "self.P = table(max_len, num_hiddens)",
            "self.P = table(max_len, num_hiddens)\n        self.P.trainable = False",
        ),
        (
            "a learned encoding for the fixed one",
            '("fixed", d2l.PositionalEncoding(32, 0))',
            '("fixed", LearnedPositionalEncoding(32, 8))',
        ),
        (
            "trained on the test set",
            "model.fit(*sequences(300 * 128), batch_size=128, verbose=0)",
            "model.fit(test_tokens, test_labels, batch_size=128, epochs=38, verbose=0)",
        ),
        (
            "maps divided by their sums",
            "m / tf.reduce_max(m) for m in maps",
            "m / tf.reduce_sum(m) for m in maps",
        ),
        ("a kernel's inputs not counted", "math.prod(b[:-1])", "math.prod(b[:-2])"),
        (
            "every operation counted as a product",
            "before + (operation.type in PRODUCTS)",
            "before + 1",
        ),
        (
            "the first token for the mean",
            "d2l.reduce_mean(X, axis=1, keepdims=True)",
            "X[:, :1]",
        ),
        (
            "the past for the future",
            "tf.linalg.band_part(causal, 0, -1)",
            "tf.linalg.band_part(causal, -1, 0)",
        ),
        (
            "only zeros exchanged",
            "tf.where(tokens < 2, 1 - tokens, tokens)",
            "tf.where(tokens < 1, 1 - tokens, tokens)",
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
        (
            "a table of positions that is not trained",
            "return X + self.P(jnp.arange(X.shape[1]))",
            "return X + jax.lax.stop_gradient(self.P(jnp.arange(X.shape[1])))",
        ),
        (
            "a learned encoding for the fixed one",
            '("fixed", d2l.PositionalEncoding(32, 0))',
            '("fixed", LearnedPositionalEncoding(32, 8))',
        ),
        ("trained on the test set", "*sequences(key, 128)", "test_tokens, test_labels"),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        (
            "one key for tokens and places",
            "for_tokens, for_places = jax.random.split(key)",
            "for_tokens = for_places = key",
        ),
        ("one key for two cells", "jax.random.key(3)", "jax.random.key(2)"),
        (
            "one key for both matrices",
            "jax.random.split(jax.random.key(6))",
            "[jax.random.key(6)] * 2",
        ),
        (
            "one block eight times",
            "block.init(key, start, start, start)",
            "block.init(keys[0], start, start, start)",
        ),
        (
            "the newest token not attended to",
            "so_far = d2l.tensor([i + 1])",
            "so_far = d2l.tensor([i])",
        ),
        (
            "one scale for all widths",
            "scaled = scores / math.sqrt(width)",
            "scaled = scores / math.sqrt(64)",
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
        (
            "a table of positions that is not trained",
            "self.P = nn.Embedding(max_len, num_hiddens)",
            "self.P = nn.Embedding(max_len, num_hiddens)\n        self.P.weight.lr_mult = 0",
        ),
        (
            "a learned encoding for the fixed one",
            '("fixed", d2l.PositionalEncoding(32, 0))',
            '("fixed", LearnedPositionalEncoding(32, 8))',
        ),
        (
            "trained on the test set",
            "tokens, labels = sequences(batch_size)",
            "tokens, labels = test_tokens, test_labels",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        ("batches counted instead of terms", "left[-1:] if", "left[:1] if"),
        (
            "every operation counted as a product",
            'before + (node["op"] in PRODUCTS)',
            "before + 1",
        ),
        ("one matrix twice in the RNN", "W_xh(x) + W_hh(H)", "W_xh(x) + W_xh(H)"),
        (
            "the RNN's output shrunk, not its matrix",
            "rnn(X, lambda H: 0.8 * W_hh(H))",
            "0.8 * rnn(X)",
        ),
        (
            "weights of another sequence",
            "weights[i, :, :, valid_len:]",
            "weights[0, :, :, valid_len:]",
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
        (
            "a table of positions that is not trained",
            "self.P = nn.Embedding(max_len, num_hiddens)",
            "self.P = nn.Embedding(max_len, num_hiddens)\n        self.P.weight.stop_gradient = True",
        ),
        (
            "a learned encoding for the fixed one",
            '("fixed", d2l.PositionalEncoding(32, 0))',
            '("fixed", LearnedPositionalEncoding(32, 8))',
        ),
        (
            "trained on the test set",
            "tokens, labels = sequences(128)",
            "tokens, labels = test_tokens, test_labels",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        ("a norm over the wrong axes", "sum(axis=[1, 3])", "sum(axis=[0, 3]).T"),
        ("outputs counted as terms", "math.prod(right[1:])", "math.prod(right)"),
        (
            "a mean over the features",
            "X.mean(axis=1, keepdim=True)",
            "X.mean(axis=2, keepdim=True)",
        ),
        (
            "a plot turned round",
            "products[i][i - distances]",
            "products[i][i + distances + 1]",
        ),
        (
            "every token at the first position",
            "offset=i)\n    kept",
            "offset=0)\n    kept",
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
        (
            "a table of positions that is not trained",
            "store.getValue(P, X.getDevice(), training)",
            "store.getValue(P, X.getDevice(), training).stopGradient()",
        ),
        (
            "a learned encoding for the fixed one",
            'train("fixed", new d2l.PositionalEncoding(32, 0))',
            'train("fixed", new LearnedPositionalEncoding(32, 8))',
        ),
        (
            "trained on the test set",
            "var batch = sequences(scratch, 128, 8);",
            "var batch = test;",
        ),
        ("maps divided by their sums", "map.div(map.max())", "map.div(map.sum())"),
        (
            "by hand, scores divided by the root of the whole width",
            "Math.sqrt(numHiddens / numHeads)",
            "Math.sqrt(numHiddens)",
        ),
        (
            "rows that are not at right angles",
            "row = row.sub(before.mul(before.dot(row)));",
            "row = row.sub(before);",
        ),
        (
            "a chain's own product left out",
            "p -> 1 + longest(p.needs())",
            "p -> longest(p.needs())",
        ),
        ("gaps that grow by addition", "gap *= growth", "gap += growth"),
        (
            "places counted from one",
            '{}:{}", i, i + 1), manager.create(i)',
            '{}:{}", i, i + 1), manager.create(i + 1)',
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
        (
            "a red rectangle over a figure",
            drawing(
                "encoding-heatmap",
                "</svg>",
                '<rect width="600" height="600" fill="red"/></svg>',
            ),
        ),
        (
            "axes that are not displayed",
            drawing("column-plot", 'id="axes_1"', 'id="axes_1" display="none"'),
        ),
        ("a table in one line", printed_as("solution-dilated", "\n(?=.)", " ")),
    ],
    "en/tensorflow": [
        ("an exception for an output", an_exception("weights-check")),
        ("the figure of another cell", output_of("column-plot", "solution-fading")),
        ("a cell missing", missing("encoding-heatmap")),
        (
            "a figure zoomed into its corner",
            drawing(
                "dot-products", r'viewBox="0 0 [\d.]+ [\d.]+"', 'viewBox="0 0 50 50"'
            ),
        ),
        ("columns out of line", printed_as("multiply-adds", " +", " ")),
    ],
    "en/jax": [
        ("PyTorch's notebook in its place", whole_notebook_of("en/pytorch")),
        ("an output cleared", cleared("multiply-adds")),
        ("a figure before the words", the_other_way_round("dot-products")),
        (
            "curves moved together",
            drawing(
                "solution-fading",
                'id="axes_1"',
                'id="axes_1" transform="translate(0 20)"',
            ),
        ),
    ],
    "zh-TW/jax": [("an integer changed", printed("influence", "28 / 100", "27 / 100"))],
    "en/mxnet": [
        (
            "another drawing under the right words",
            drawing_of("solution-causal", "influence-heatmaps"),
        ),
        ("printed as if it were a complaint", to_stderr("rotation")),
        ("two cells in the other order", earlier("column-plot", than="scale-and-sum")),
        (
            "a script in a figure",
            drawing("column-plot", "</svg>", "<script>alert(1)</script></svg>"),
        ),
        (
            "letters of a label exchanged",
            drawing(
                "column-plot",
                r'(<use xlink:href="#)(DejaVuSans-\w+)("/>\s+<use xlink:href="#)(DejaVuSans-\w+)',
                r"\1\4\3\2",
            ),
        ),
    ],
    "en/paddle": [
        ("a cell twice", twice("solution-dilated")),
        ("the notebook in the other language", whole_notebook_of("zh-TW/paddle")),
        (
            "a style for all of a figure",
            drawing(
                "solution-stacking",
                r"\*\{stroke-linejoin: round",
                "*{opacity: 0.2; stroke-linejoin: round",
            ),
        ),
    ],
    "zh-TW/paddle": [("a line lost", printed("rotation", "delta -5:", "delta 5:"))],
    "en/djl": [
        (
            "a curve dashed as another",
            drawing(
                "dot-products", 'stroke-dasharray="5.55 2.4"', 'stroke-dasharray="none"'
            ),
        ),
        ("one result of an earlier run", printed("scale-and-sum", "22.55", "22.66")),
        ("one name in a legend changed", drawing("column-plot", ">Col 9<", ">Col 8<")),
        (
            "a curve that is not drawn",
            drawing("dot-products", 'stroke="#0072B2"', 'stroke="none"'),
        ),
        (
            "a heat map's cells smoothed",
            drawing(
                "encoding-heatmap", "crisp-edges;image-rendering:pixelated", "auto"
            ),
        ),
    ],
}
