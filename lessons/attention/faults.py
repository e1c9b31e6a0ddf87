"""The faults seeded in this lesson, each of which the checks have to notice (`make mutants`)."""

from tests.mutants.changes import (
    drawing,
    missing,
    printed,
    printed_as,
    source,
    whole_notebook_of,
)

# By framework, what an author might write: its name, the code as it is, the code as it would be.
IN_CODE = {
    "pytorch": [
        (
            "a softmax over the queries",
            "return scores.softmax(dim=-1) @ values",
            "return scores.softmax(dim=-2) @ values",
        ),
        (
            "sweet and sour exchanged for the lemon",
            "[0, 3], [3, 0]]",
            "[3, 0], [0, 3]]",
        ),
        (
            "noise left out",
            "return x, curve(x) + 0.3 * torch.randn(count)",
            "return x, curve(x) + 0.0 * torch.randn(count)",
        ),
        (
            "a kernel with the width, not its square",
            "/ (2 * width**2)",
            "/ (2 * width)",
        ),
        (
            "the point itself not hidden",
            "torch.eye(len(x), dtype=bool)",
            "torch.zeros(len(x), len(x), dtype=bool)",
        ),
        (
            "scores divided by the width",
            "return Q @ K.mT / math.sqrt(K.shape[-1])",
            "return Q @ K.mT / K.shape[-1]",
        ),
        (
            "queries and keys added in each other's place",
            "(Q @ W_q)[:, :, None] + (K @ W_k)[:, None]",
            "(Q @ W_q)[:, None] + (K @ W_k)[:, :, None]",
        ),
        (
            "the bilinear matrix transposed",
            "return Q @ W @ K.mT",
            "return Q @ W.mT @ K.mT",
        ),
        (
            "the root left out of the scaled curve",
            '("unscaled", dot), ("scaled", scaled_dot)',
            '("unscaled", dot), ("scaled", dot)',
        ),
        (
            "a mask turned round",
            "scores.masked_fill(~may_see, -math.inf)",
            "scores.masked_fill(may_see, -math.inf)",
        ),
        (
            "a causal mask that hides a token from itself",
            "causal = position <= position[:, None]",
            "causal = position < position[:, None]",
        ),
        (
            "a causal mask that shows the next token",
            "causal = position <= position[:, None]",
            "causal = position <= position[:, None] + 1",
        ),
        (
            "the first two queries for the last",
            "layer(X[:, -2:], X, X, causal=True)",
            "layer(X[:, :2], X, X, causal=True)",
        ),
        (
            "a function's mask turned round",
            "X, X, identity, attn_mask=causal",
            "X, X, identity, attn_mask=~causal",
        ),
        (
            "letters that may stand twice",
            "torch.rand(count, 26).argsort(dim=1)[:, :size]",
            "torch.randint(26, (count, size))",
        ),
        ("answers in the order of the entries", "digits.gather(1, asked)", "digits"),
        (
            "keys projected as queries are",
            "scores = scaled_dot(self.W_q(queries), self.W_k(keys))",
            "scores = scaled_dot(self.W_q(queries), self.W_q(keys))",
        ),
        (
            "values not projected",
            "self.weights = scores.softmax(dim=-1)\n        return self.output(self.weights @ self.W_v(values))",
            "self.weights = scores.softmax(dim=-1)\n        return self.output(self.weights @ values)",
        ),
        (
            "one seed for all five",
            "[trained(seed) for seed in range(5)]",
            "[trained(0) for seed in range(5)]",
        ),
        (
            "tested on what it was trained on alone",
            "dictionaries(500, size)",
            "dictionaries(500)",
        ),
        (
            "names of the map's axes exchanged",
            'xlabel="Entries",\n    ylabel="Letters asked for"',
            'xlabel="Letters asked for",\n    ylabel="Entries"',
        ),
        (
            "the entry looked at least",
            "model.weights.argmax(dim=-1)  #",
            "model.weights.argmin(dim=-1)  #",
        ),
        (
            "always the same points",
            "learned_width(*points(count, seed), 1)",
            "learned_width(*points(count, 0), 1)",
        ),
        ("the two entries not exchanged", "[7, 5, 3, 9]]", "[3, 5, 7, 9]]"),
        (
            "nothing reversed",
            "model(digits).mT, digits.flip(1))",
            "model(digits).mT, digits)",
        ),
    ],
    "tensorflow": [
        (
            "queries and keys exchanged",
            "scores = tf.matmul(queries, keys, transpose_b=True)",
            "scores = tf.matmul(keys, queries, transpose_b=True)",
        ),
        ("the noise left out", "curve(x) + 0.3 * d2l.normal((count,))", "curve(x)"),
        (
            "the point itself not hidden",
            "tf.where(tf.eye(x.shape[0], dtype=bool), -math.inf, scores)",
            "tf.where(tf.eye(x.shape[0], dtype=bool), 0.0, scores)",
        ),
        (
            "the options not passed on",
            "loss = error(tf.exp(log_width), x, y, **options)",
            "loss = error(tf.exp(log_width), x, y)",
        ),
        (
            "scaled by the number of keys",
            "/ math.sqrt(K.shape[-1])",
            "/ math.sqrt(K.shape[-2])",
        ),
        (
            "sqrt(d) forgotten in the scaled curve",
            '("unscaled", dot), ("scaled", scaled_dot)',
            '("unscaled", dot), ("scaled", dot)',
        ),
        (
            "a curve and its name exchanged",
            "    [*slopes.values()],",
            "    [*slopes.values()][::-1],",
        ),
        (
            "a causal mask that hides a query from itself",
            "causal = position <= position[:, tf.newaxis]",
            "causal = position < position[:, tf.newaxis]",
        ),
        (
            "answers not in the order of the questions",
            "    return letters, digits, questions, answers",
            "    return letters, digits, questions, digits",
        ),
        (
            "one seed for all five",
            "models = trained(*range(5))\nshares",
            "models = trained(*[0] * 5)\nshares",
        ),
    ],
    "paddle": [
        (
            "a softmax over the columns",
            "return F.softmax(scores, axis=-1) @ values",
            "return F.softmax(scores, axis=-2) @ values",
        ),
        (
            "a kernel with the width instead of its square",
            "/ (2 * width**2)",
            "/ (2 * width)",
        ),
        (
            "the point itself with a score of 0, which is the highest",
            "scores.masked_fill(d2l.eye(len(x)).astype(bool), -math.inf)",
            "scores.masked_fill(d2l.eye(len(x)).astype(bool), 0.0)",
        ),
        (
            "divided by the width, not by its root",
            "transpose_y=True) / math.sqrt(K.shape[-1])",
            "transpose_y=True) / K.shape[-1]",
        ),
        (
            "next to nothing for nothing",
            "    weights = weights.masked_fill(~may_see, 0)\n",
            "",
        ),
        (
            "the past hidden for the future",
            "causal = position <= position.unsqueeze(1)",
            "causal = position >= position.unsqueeze(1)",
        ),
        (
            "the names of two masks exchanged",
            'titles=["Padding", "Causal", "Both"]',
            'titles=["Causal", "Padding", "Both"]',
        ),
        (
            "letters that may stand twice",
            "letters = d2l.rand((count, 26)).argsort(axis=1)[:, :size]",
            "letters = paddle.randint(26, shape=(count, size))",
        ),
        (
            "the look-up's gradients not cleared",
            "loss = F.cross_entropy(model(*given), answers)\n        loss.backward()\n        optimizer.step()\n        optimizer.clear_grad()",
            "loss = F.cross_entropy(model(*given), answers)\n        loss.backward()\n        optimizer.step()",
        ),
        (
            "one seed for all five",
            "models = [trained(seed) for seed in range(5)]\nshares",
            "models = [trained(0) for seed in range(5)]\nshares",
        ),
    ],
    "jax": [
        (
            "a softmax over the queries",
            "return jax.nn.softmax(scores) @ values",
            "return jax.nn.softmax(scores, axis=-2) @ values",
        ),
        ("a kernel with the width, not its square", "(2 * width**2)", "(2 * width)"),
        (
            "a point that sees itself after all",
            "jnp.eye(len(x), dtype=bool), -jnp.inf, scores)",
            "jnp.eye(len(x), dtype=bool), 0, scores)",
        ),
        (
            "scores divided by the root of how many keys there are",
            "Q @ K.mT / math.sqrt(K.shape[-1])",
            "Q @ K.mT / math.sqrt(K.shape[-2])",
        ),
        (
            "a distance that is not halved",
            "K[:, None]) ** 2).sum(axis=-1) / 2",
            "K[:, None]) ** 2).sum(axis=-1)",
        ),
        ("the root forgotten", '("scaled", scaled_dot)', '("scaled", dot)'),
        (
            "a causal mask that hides a query from itself",
            "causal = position <= position[:, None]",
            "causal = position < position[:, None]",
        ),
        (
            "answers in the order of the entries",
            "return letters, digits, questions, answers",
            "return letters, digits, questions, digits",
        ),
        (
            "queries and keys exchanged",
            "scaled_dot(self.W_q(queries), self.W_k(keys))",
            "scaled_dot(self.W_k(queries), self.W_q(keys))",
        ),
        (
            "one seed for all five",
            "\nmodels = trained(*range(5))",
            "\nmodels = trained(*[0] * 5)",
        ),
        (
            "tested on six entries, whatever was asked for",
            "dictionaries(np.random.default_rng(17), 500, size)",
            "dictionaries(np.random.default_rng(17), 500, 6)",
        ),
        (
            "one set of points for all five",
            "learned_width(*points(count, seed), 1)",
            "learned_width(*points(count, 0), 1)",
        ),
        (
            "an additive score without its tanh",
            "self.w(jnp.tanh(every_pair))",
            "self.w(every_pair)",
        ),
    ],
    "mlx": [
        ("a kernel with the width, not its square", "(2 * width**2)", "(2 * width)"),
        (
            "a point that sees itself, and not the others",
            "scores = mx.where(mx.eye(len(x), dtype=mx.bool_), -math.inf, scores)",
            "scores = mx.where(mx.eye(len(x), dtype=mx.bool_), scores, -math.inf)",
        ),
        (
            "scores divided by the width of the queries' batch",
            "Q @ K.mT / math.sqrt(K.shape[-1])",
            "Q @ K.mT / math.sqrt(K.shape[0])",
        ),
        ("the framework's own not scaled", "scale=1 / math.sqrt(8)", "scale=1"),
        (
            "a curve and its name exchanged",
            "    [*slopes.values()],",
            "    [*slopes.values()][::-1],",
        ),
        (
            "a causal mask that lets the next one be seen",
            "causal = position <= position[:, None]",
            "causal = position <= position[:, None] + 1",
        ),
        (
            "the first two of five queries",
            "layer(X[:, -2:], X, X",
            "layer(X[:, :2], X, X",
        ),
        (
            "asked for in the order of the entries",
            "asked = mx.argsort(mx.random.uniform(shape=(count, size)), axis=1)",
            "asked = mx.broadcast_to(mx.arange(size), (count, size))",
        ),
        (
            "values made by the keys' matrix",
            "self.output(weights @ self.W_v(values)), weights\n\n\n# %% train",
            "self.output(weights @ self.W_k(values)), weights\n\n\n# %% train",
        ),
        (
            "one seed for all five",
            "\nmodels = [trained(seed) for seed in range(5)]",
            "\nmodels = [trained(0) for seed in range(5)]",
        ),
        (
            "the axes' names exchanged",
            'xlabel="Digits read",\n    ylabel="Digits written",',
            'xlabel="Digits written",\n    ylabel="Digits read",',
        ),
    ],
    "mxnet": [
        (
            "a softmax over the columns",
            "return npx.softmax(scores, axis=-1) @ values",
            "return npx.softmax(scores, axis=-2) @ values",
        ),
        ("a kernel with the width for its square", "/ (2 * width**2)", "/ (2 * width)"),
        (
            "points that see themselves after all",
            "np.log(1 - d2l.eye(len(x)))",
            "np.log(1 - 0 * d2l.eye(len(x)))",
        ),
        (
            "scaled by the number of keys",
            "/ math.sqrt(K.shape[-1])",
            "/ math.sqrt(K.shape[1])",
        ),
        (
            "the root forgotten in the scaled curve",
            '("scaled", scaled_dot)',
            '("scaled", dot)',
        ),
        (
            "a curve under the other one's name",
            "[*largest.values()]",
            "[*largest.values()][::-1]",
        ),
        (
            "a causal mask that lets the next one be seen",
            "causal = position <= position[:, None]",
            "causal = position <= position[:, None] + 1",
        ),
        (
            "answers in the order of the entries",
            "letters[row, asked], digits[row, asked]",
            "letters[row, asked], digits",
        ),
        (
            "tested on the size that was trained",
            "dictionaries(500, size)",
            "dictionaries(500)",
        ),
        (
            "one seed for all five",
            "npx.random.seed(seed)\n    model = make()",
            "npx.random.seed(0)\n    model = make()",
        ),
        (
            "entries and letters asked for exchanged beside the map",
            'xlabel="Entries",\n    ylabel="Letters asked for"',
            'xlabel="Letters asked for",\n    ylabel="Entries"',
        ),
    ],
    "djl": [
        (
            "a softmax over the columns",
            "return scores.softmax(-1).matMul(values);",
            "return scores.softmax(-2).matMul(values);",
        ),
        (
            "a kernel with the width for its square",
            "div(width.square().mul(two))",
            "div(width.mul(two))",
        ),
        (
            "points that see themselves after all",
            "NDArrays.where(itself, nothing, scores)",
            "NDArrays.where(itself, scores, scores)",
        ),
        (
            "scaled by the number of keys",
            "Math.sqrt(K.getShape().getLastDimension())",
            "Math.sqrt(K.getShape().get(1))",
        ),
        (
            "the mean for the query in the middle",
            "norms.median().getFloat()",
            "norms.mean().getFloat()",
        ),
        (
            "a causal mask that hides a query from itself",
            "position.lte(position.expandDims(1))",
            "position.lt(position.expandDims(1))",
        ),
        (
            "a causal mask that lets the next one be seen",
            "position.lte(position.expandDims(1))",
            "position.lte(position.expandDims(1).add(1))",
        ),
        (
            "the first two queries for the last",
            'attended(layer, X.get(":, -2:"), X,',
            'attended(layer, X.get(":, :2"), X,',
        ),
        (
            "answers in the order of the entries",
            "new Examples(given, digits.gather(asked, 1))",
            "new Examples(given, digits)",
        ),
        (
            "digits that are not trained",
            "add(evaluate(digit, inputs.get(1)));",
            "add(evaluate(digit, inputs.get(1)).stopGradient());",
        ),
        (
            "tested on the size that was trained",
            "dictionaries(scratch, 500, size)",
            "dictionaries(scratch, 500, 6)",
        ),
        (
            "one seed for all five",
            "trained(new LookUp(), seed, ofSix)",
            "trained(new LookUp(), 0, ofSix)",
        ),
        (
            "entries and letters asked for exchanged beside the map",
            '.xlabel("Entries")\n        .ylabel("Letters asked for")',
            '.xlabel("Letters asked for")\n        .ylabel("Entries")',
        ),
    ],
}

# By the notebooks' folder: an edit by hand, a bad merge, a run of something else.
IN_NOTEBOOKS = {
    "en/pytorch": [
        ("a weight changed", printed("soft-look-up", "0.844", "0.854")),
        (
            "a curve dashed as another",
            drawing(
                "three-widths", r"stroke-dasharray: [\d., ]+", "stroke-dasharray: 1, 1"
            ),
        ),
        (
            "code edited and not run",
            source("learned-width", "range(100)", "range(200)"),
        ),
    ],
    "zh-TW/pytorch": [
        ("columns out of line", printed_as("from-soft-to-hard", " +", " "))
    ],
    "en/jax": [
        ("TensorFlow's notebook in its place", whole_notebook_of("en/tensorflow"))
    ],
    "zh-TW/mxnet": [("a cell missing", missing("masked"))],
    "en/djl": [("a number changed", printed("three-customers", "63.8", "68.3"))],
}
