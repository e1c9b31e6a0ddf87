"""The faults seeded in this lesson, each of which the checks have to notice (`make mutants`)."""

from tests.mutants.changes import missing, printed, source

# By framework, what an author might write: its name, the code as it is, the code as it would be.
IN_CODE = {
    "pytorch": [
        (
            "heads merged without transposing back",
            "return X.transpose(1, 2).reshape(batch, n, num_heads * width)",
            "return X.reshape(batch, n, num_heads * width)",
        ),
        (
            "scaled by the width of all heads together",
            "scores = q @ k.mT / math.sqrt(q.shape[-1])",
            "scores = q @ k.mT / math.sqrt(q.shape[1] * q.shape[-1])",
        ),
        (
            "a softmax over the queries",
            "return scores.softmax(dim=-1) @ v",
            "return scores.softmax(dim=-2) @ v",
        ),
        (
            "split without exchanging the axes",
            "X.reshape(batch, n, num_heads, d // num_heads).transpose(1, 2)",
            "X.reshape(batch, num_heads, n, d // num_heads)",
        ),
        (
            "W_o not used",
            "return merge(attend(q, k, v)) @ W_o",
            "return merge(attend(q, k, v))",
        ),
        (
            "queries and keys exchanged",
            "q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
            "k, q, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
        ),
        (
            "the second minus the first",
            "W_o = torch.tensor([1.0, -1])",
            "W_o = torch.tensor([-1.0, 1])",
        ),
        (
            "heads put side by side as tokens",
            "by_heads = torch.cat(one_by_one, dim=-1) @ W_o",
            "by_heads = torch.stack(one_by_one, dim=-1).reshape(X.shape) @ W_o",
        ),
        ("a matrix not transposed", "part.weight.copy_(W.T)", "part.weight.copy_(W)"),
        (
            "matrices given to the framework's layer in another order",
            "torch.cat([W_q.T, W_k.T, W_v.T])",
            "torch.cat([W_k.T, W_q.T, W_v.T])",
        ),
        (
            "the mean map called the heads'",
            "X, X, X, average_attn_weights=False",
            "X, X, X",
        ),
        (
            "a root of the model's width for both",
            '("the head\'s 64", 64)',
            '("the head\'s 64", 512)',
        ),
        (
            "one seed for all five",
            "    torch.manual_seed(seed)\n    model = Comparer(num_heads)",
            "    torch.manual_seed(0)\n    model = Comparer(num_heads)",
        ),
        (
            "one number of heads for all models",
            "model = Comparer(num_heads)",
            "model = Comparer(2)",
        ),
        (
            "the sign of the difference",
            "def questions(count, size=6, sign=-1):",
            "def questions(count, size=6, sign=1):",
        ),
        (
            "the same place twice",
            "places = torch.rand(count, size, size).argsort(dim=2)[:, :, :2].flatten(1)",
            "places = torch.randint(size, (count, 2 * size))",
        ),
        (
            "both letters from one table",
            "self.first(asked[..., 0]) + self.second(asked[..., 1])",
            "self.first(asked[..., 0]) + self.first(asked[..., 1])",
        ),
        (
            "numbers left out of the entries",
            "entries = self.letter(letters) + self.number(numbers[..., None])",
            "entries = self.letter(letters)",
        ),
        (
            "another head removed than the one named",
            "W_o[:, head * width : (head + 1) * width] = 0",
            "W_o[:, (num_heads - 1 - head) * width : (num_heads - head) * width] = 0",
        ),
        (
            "the rows of the transposed W_o removed",
            "W_o[:, head * width : (head + 1) * width] = 0",
            "W_o[head * width : (head + 1) * width] = 0",
        ),
        (
            "W_o not put back after a head was removed",
            "        found = error(model)\n        W_o.copy_(kept)",
            "        found = error(model)",
        ),
        (
            "the pairs not in another order",
            "repeated = pairs.gather(1, again[..., None].expand_as(pairs))",
            "repeated = pairs",
        ),
        (
            "answers in the order of the first half",
            ".flatten(1), digits.gather(1, again)",
            ".flatten(1), digits",
        ),
        ("the causal mask left out", "layer(X, X, X, causal=True)", "layer(X, X, X)"),
        (
            "places left out",
            "self.token(tokens) + self.place.weight[: tokens.shape[1]]",
            "self.token(tokens)",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + layer(X, X, X, causal=True)",
            "X = layer(X, X, X, causal=True)",
        ),
        ("one head in a single layer", "2 // num_layers, dropout=0", "1, dropout=0"),
        (
            "digits asked for letters",
            "return self.output(X[:, asked::2])",
            "return self.output(X[:, asked + 1 :: 2])",
        ),
        (
            "one seed for all readers",
            "    torch.manual_seed(seed)\n    model = Reader(num_layers)",
            "    torch.manual_seed(0)\n    model = Reader(num_layers)",
        ),
        (
            "the heads of one layer for two layers",
            "model = readers[2][0]",
            "model = readers[1][0]",
        ),
        (
            "the layers' maps exchanged",
            "for layer in model.layers], dim=1)",
            "for layer in list(model.layers)[::-1]], dim=1)",
        ),
        (
            "queries and keys exchanged beside the maps",
            '    xlabel="Keys",\n    ylabel="Queries",',
            '    xlabel="Queries",\n    ylabel="Keys",',
        ),
        (
            "heads' titles exchanged",
            'titles=["Head 1", "Head 2"],',
            'titles=["Head 2", "Head 1"],',
        ),
        (
            "rows of W_o left in their order",
            "multi_head(X, *exchanged, W_o[order], 2)",
            "multi_head(X, *exchanged, W_o, 2)",
        ),
        (
            "sums asked of models trained on differences",
            "adders = [trained(1, seed, sign=1) for seed in range(5)]",
            "adders = [trained(1, seed) for seed in range(5)]",
        ),
        (
            "sums asked of two heads",
            "adders = [trained(1, seed, sign=1)",
            "adders = [trained(2, seed, sign=1)",
        ),
        (
            "the first head's map for the mean",
            "weights.mean(dim=1, keepdim=True)",
            "weights[:, :1]",
        ),
        (
            "the wrong layer left out",
            "W_o = model.layers[left_out].W_o.weight",
            "W_o = model.layers[1 - left_out].W_o.weight",
        ),
        (
            "W_o not put back after a layer was left out",
            "        found = share_right(model)\n        W_o.copy_(kept)",
            "        found = share_right(model)",
        ),
    ],
    "tensorflow": [
        (
            "heads merged without transposing back",
            "return tf.reshape(tf.transpose(X, (0, 2, 1, 3)), (batch, n, num_heads * width))",
            "return tf.reshape(X, (batch, n, num_heads * width))",
        ),
        (
            "scaled by the width of all heads together",
            "tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])",
            "tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[1] * q.shape[-1])",
        ),
        (
            "queries and keys exchanged",
            "q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
            "k, q, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
        ),
        (
            "one seed for all five",
            "keras.utils.set_random_seed(seed)\n        models.append(narrowed(Comparer(",
            "keras.utils.set_random_seed(0)\n        models.append(narrowed(Comparer(",
        ),
        (
            "the same place twice",
            "places = np.random.rand(count, size, size).argsort(axis=2)[:, :, :2]",
            "places = np.random.randint(size, size=(count, size, 2))",
        ),
        (
            "another head removed than the one named",
            "without[head * width : (head + 1) * width] = 0",
            "without[(num_heads - 1 - head) * width : (num_heads - head) * width] = 0",
        ),
        (
            "W_o not put back after a head was removed",
            "    found = error(model)\n    W_o.assign(kept)",
            "    found = error(model)",
        ),
        (
            "answers in the order of the first half",
            "return tokens, np.take_along_axis(digits, again, axis=1)",
            "return tokens, digits",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + layer(X, X, X, causal=True)",
            "X = layer(X, X, X, causal=True)",
        ),
        (
            "digits asked for letters",
            "return self.logits(X[:, asked::2])",
            "return self.logits(X[:, asked + 1 :: 2])",
        ),
        (
            "queries and keys exchanged beside the maps",
            '    xlabel="Keys",\n    ylabel="Queries",',
            '    xlabel="Queries",\n    ylabel="Keys",',
        ),
        (
            "rows of W_o left in their order",
            "multi_head(X, *exchanged, tf.gather(W_o, order), 2)",
            "multi_head(X, *exchanged, W_o, 2)",
        ),
    ],
    "jax": [
        (
            "split without exchanging the axes",
            "X.reshape(batch, n, num_heads, d // num_heads).swapaxes(1, 2)",
            "X.reshape(batch, num_heads, n, d // num_heads)",
        ),
        (
            "a softmax over the queries",
            "return jax.nn.softmax(scores) @ v",
            "return jax.nn.softmax(scores, axis=-2) @ v",
        ),
        (
            "W_o not used",
            "return merge(attend(q, k, v)) @ W_o",
            "return merge(attend(q, k, v))",
        ),
        (
            "the same key for all five",
            "models = {h: trained(h) for h in (1, 2, 4)}",
            "models = {h: trained(h, [0] * 5) for h in (1, 2, 4)}",
        ),
        ("one number of heads for all models", "Comparer(num_heads)", "Comparer(2)"),
        (
            "the sign of the difference",
            "def questions(rng, count, size=6, sign=-1):",
            "def questions(rng, count, size=6, sign=1):",
        ),
        (
            "both letters from one table",
            "self.first(asked[..., 0]) + self.second(asked[..., 1])",
            "self.first(asked[..., 0]) + self.first(asked[..., 1])",
        ),
        (
            "columns of W_o removed, not rows",
            "return W * kept[:, None] if",
            "return W * kept if",
        ),
        (
            "the pairs not in another order",
            "repeated = np.take_along_axis(pairs, again[..., None], axis=1)",
            "repeated = pairs",
        ),
        ("the causal mask left out", "layer(X, X, X, causal=True)", "layer(X, X, X)"),
        (
            "places left out",
            "self.token(tokens) + self.place(jnp.arange(tokens.shape[1]))",
            "self.token(tokens)",
        ),
        (
            "heads' titles exchanged",
            'titles=["Head 1", "Head 2"],',
            'titles=["Head 2", "Head 1"],',
        ),
        (
            "one head in a single layer",
            "2 // self.num_layers, dropout=0",
            "1, dropout=0",
        ),
        (
            "the other layer left out",
            'f"layers_{left_out}" in path',
            'f"layers_{1 - left_out}" in path',
        ),
    ],
    "mxnet": [
        (
            "heads merged without transposing back",
            "return X.swapaxes(1, 2).reshape(batch, n, num_heads * width)",
            "return X.reshape(batch, n, num_heads * width)",
        ),
        (
            "scaled by the width of all heads together",
            "q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])",
            "q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[1] * q.shape[-1])",
        ),
        (
            "queries and keys exchanged",
            "q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
            "k, q, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))",
        ),
        (
            "one seed for all five",
            "    npx.random.seed(seed)\n    model = Comparer(num_heads)",
            "    npx.random.seed(0)\n    model = Comparer(num_heads)",
        ),
        (
            "the same place twice",
            "places = d2l.rand(count, size, size).argsort(axis=2)[:, :, :2]",
            "places = np.random.randint(size, size=(count, size, 2))",
        ),
        (
            "another head removed than the one named",
            "W_o.data()[:, head * width : (head + 1) * width] = 0",
            "W_o.data()[:, (num_heads - 1 - head) * width : (num_heads - head) * width] = 0",
        ),
        (
            "W_o not put back after a head was removed",
            "    found = error(model)\n    W_o.set_data(kept)",
            "    found = error(model)",
        ),
        (
            "answers in the order of the first half",
            "return tokens.reshape(count, 4 * size), digits[row, again]",
            "return tokens.reshape(count, 4 * size), digits",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + layer(X, X, X, causal=True)",
            "X = layer(X, X, X, causal=True)",
        ),
        (
            "digits asked for letters",
            "return self.output(X[:, asked::2])",
            "return self.output(X[:, asked + 1 :: 2])",
        ),
        (
            "queries and keys exchanged beside the maps",
            '    xlabel="Keys",\n    ylabel="Queries",',
            '    xlabel="Queries",\n    ylabel="Keys",',
        ),
        (
            "rows of W_o left in their order",
            "multi_head(X, *exchanged, W_o[order], 2)",
            "multi_head(X, *exchanged, W_o, 2)",
        ),
    ],
    "paddle": [
        (
            "a softmax over the queries",
            "return F.softmax(scores, axis=-1) @ v",
            "return F.softmax(scores, axis=-2) @ v",
        ),
        (
            "split without exchanging the axes",
            "X.reshape([batch, n, num_heads, d // num_heads]).transpose([0, 2, 1, 3])",
            "X.reshape([batch, num_heads, n, d // num_heads])",
        ),
        (
            "W_o not used",
            "return merge(attend(q, k, v)) @ W_o",
            "return merge(attend(q, k, v))",
        ),
        (
            "matrices given to the wrong parts of the layer",
            "parts = own.q_proj, own.k_proj, own.v_proj, own.out_proj",
            "parts = own.k_proj, own.q_proj, own.v_proj, own.out_proj",
        ),
        (
            "one number of heads for all models",
            "model = Comparer(num_heads)",
            "model = Comparer(2)",
        ),
        (
            "the sign of the difference",
            "def questions(count, size=6, sign=-1):",
            "def questions(count, size=6, sign=1):",
        ),
        (
            "numbers left out of the entries",
            "entries = self.letter(letters) + self.number(numbers.unsqueeze(-1))",
            "entries = self.letter(letters)",
        ),
        (
            "columns of W_o removed, not rows",
            "W_o[head * width : (head + 1) * width] = 0",
            "W_o[:, head * width : (head + 1) * width] = 0",
        ),
        (
            "the pairs not in another order",
            "repeated = pairs.take_along_axis(again.unsqueeze(-1), axis=1)",
            "repeated = pairs",
        ),
        (
            "places left out",
            "self.token(tokens) + self.place.weight[: tokens.shape[1]]",
            "self.token(tokens)",
        ),
        (
            "one seed for all readers",
            "    paddle.seed(seed)\n    model = Reader(num_layers)",
            "    paddle.seed(0)\n    model = Reader(num_layers)",
        ),
        (
            "heads' titles exchanged",
            'titles=["Head 1", "Head 2"],',
            'titles=["Head 2", "Head 1"],',
        ),
        (
            "W_o not put back after a layer was left out",
            "        found = share_right(model)\n        W_o.set_value(kept)",
            "        found = share_right(model)",
        ),
    ],
    "mlx": [
        (
            "heads merged without transposing back",
            "return X.swapaxes(1, 2).reshape(batch, n, num_heads * width)",
            "return X.reshape(batch, n, num_heads * width)",
        ),
        (
            "scaled by the width of all heads together",
            "scores = q @ k.mT / math.sqrt(q.shape[-1])",
            "scores = q @ k.mT / math.sqrt(q.shape[1] * q.shape[-1])",
        ),
        (
            "queries and keys exchanged",
            "q, k, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))\n    return",
            "k, q, v = (split(X @ W, num_heads) for W in (W_q, W_k, W_v))\n    return",
        ),
        (
            "one seed for all five",
            "    mx.random.seed(seed)\n    model = Comparer(num_heads)",
            "    mx.random.seed(0)\n    model = Comparer(num_heads)",
        ),
        (
            "the same place twice",
            "told[..., 0] + sign * told[..., 1]",
            "told[..., 0] + sign * told[..., 0]",
        ),
        (
            "another head removed than the one named",
            "W_o.weight[:, head * width : (head + 1) * width] = 0",
            "W_o.weight[:, (num_heads - 1 - head) * width : (num_heads - head) * width] = 0",
        ),
        (
            "W_o not put back after a head was removed",
            "    found = error(model)\n    W_o.weight = kept",
            "    found = error(model)",
        ),
        (
            "answers in the order of the first half",
            "return tokens, mx.take_along_axis(digits, again, axis=1)",
            "return tokens, digits",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + layer(X, X, X, causal=True)",
            "X = layer(X, X, X, causal=True)",
        ),
        (
            "digits asked for letters",
            "return self.output(X[:, asked::2])",
            "return self.output(X[:, asked + 1 :: 2])",
        ),
        (
            "queries and keys exchanged beside the maps",
            '    xlabel="Keys",\n    ylabel="Queries",',
            '    xlabel="Queries",\n    ylabel="Keys",',
        ),
        (
            "rows of W_o left in their order",
            "multi_head(X, *exchanged, W_o[order], 2)",
            "multi_head(X, *exchanged, W_o, 2)",
        ),
    ],
    "djl": [
        (
            "heads merged without transposing back",
            "return X.swapAxes(1, 2).reshape(batch, n, numHeads * width);",
            "return X.reshape(batch, n, numHeads * width);",
        ),
        (
            "scaled by the width of all heads together",
            "double root = Math.sqrt(q.getShape().getLastDimension());",
            "double root = Math.sqrt(q.size(1) * q.getShape().getLastDimension());",
        ),
        (
            "a softmax over the queries",
            "q.matMul(transposed(k)).div(root).softmax(-1).matMul(v)",
            "q.matMul(transposed(k)).div(root).softmax(-2).matMul(v)",
        ),
        (
            "heads put side by side as tokens",
            "var byHeads = NDArrays.concat(oneByOne, -1).matMul(W_o);",
            "var byHeads = NDArrays.stack(oneByOne, -1).reshape(X.getShape()).matMul(W_o);",
        ),
        (
            "a matrix not transposed for DJL",
            "W_v.transpose().copyTo(weight(layer.W_v));",
            "W_v.copyTo(weight(layer.W_v));",
        ),
        (
            "one seed for all five",
            "    Engine.getInstance().setRandomSeed(seed);\n    var model = new Comparer(numHeads);",
            "    Engine.getInstance().setRandomSeed(0);\n    var model = new Comparer(numHeads);",
        ),
        (
            "both letters from one table",
            'final Block second = addChildBlock("secondTable", embedding(26));',
            "final Block second = first;",
        ),
        (
            "another head removed than the one named",
            'W_o.set(new NDIndex(":, {}:{}", head * width, (head + 1) * width), 0);',
            'W_o.set(new NDIndex(":, {}:{}", 32 - (head + 1) * width, 32 - head * width), 0);',
        ),
        (
            "rows of DJL's W_o removed, not columns",
            'W_o.set(new NDIndex(":, {}:{}",',
            'W_o.set(new NDIndex("{}:{}",',
        ),
        (
            "answers in the order of the first half",
            "return new Examples(new NDList(tokens), digits.gather(again, 1));",
            "return new Examples(new NDList(tokens), digits);",
        ),
        (
            "the causal mask left out",
            'new PairList<>(Map.of("causal", true));',
            'new PairList<>(Map.of("causal", false));',
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X.add(layer.forward(store, new NDList(X, X, X), training, causal).head());",
            "X = layer.forward(store, new NDList(X, X, X), training, causal).head();",
        ),
        (
            "the second layer's map for both",
            "model.layers.stream().map(layer -> layer.attentionWeights())",
            "model.layers.stream().map(layer -> model.layers.get(1).attentionWeights())",
        ),
    ],
}

# By the notebooks' folder: an edit by hand, a bad merge, a run of something else.
IN_NOTEBOOKS = {
    "en/pytorch": [
        ("a weight changed", printed("one-average", "55.0", "56.0")),
        (
            "code edited and not run",
            source("multi-head", "math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-2])"),
        ),
    ],
    "zh-TW/tensorflow": [("a cell missing", missing("costs"))],
    "en/djl": [
        (
            "a number changed",
            printed(
                "two-averages",
                "29.8 cents more than a lemon",
                "28.9 cents more than a lemon",
            ),
        )
    ],
}
