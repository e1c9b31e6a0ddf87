"""Faults in d2l_compat: what a careless change, or a framework's new version, might do."""

from tests.mutants.fault import Fault

JAVA = "java/src/main/java/d2l"

TABLE = {
    "pytorch": [
        (
            "mask one key too long",
            "torch/attention.py",
            "device=device) < per",
            "device=device) <= per",
        ),
        (
            "lengths repeated in the wrong order",
            "torch/attention.py",
            "valid_lens.repeat_interleave(self.num_heads, dim=0)",
            "torch.cat([valid_lens] * self.num_heads)",
        ),
        (
            "heads merged feature by feature",
            "torch/attention.py",
            "(batch, num_heads)).transpose(1, 2).flatten(2)",
            "(batch, num_heads)).permute(0, 2, 3, 1).flatten(2)",
        ),
        (
            "weights shown on another scale than used",
            "torch/attention.py",
            "keys.transpose(1, 2) / math.sqrt(queries.shape[-1])",
            "keys.transpose(1, 2) / queries.shape[-1]",
        ),
        (
            "sine and cosine exchanged",
            "_shared/encoding.py",
            "0::2] = np.sin(angles)\n    P[:, 1::2] = np.cos(",
            "0::2] = np.cos(angles)\n    P[:, 1::2] = np.sin(",
        ),
        (
            "dropout in evaluation too",
            "torch/attention.py",
            "self.dropout.p if self.training else 0.0",
            "self.dropout.p",
        ),
        (
            "additive attention without its tanh",
            "torch/additive.py",
            "self.w_v(torch.tanh(features))",
            "self.w_v(features)",
        ),
        (
            "padding counted in the loss",
            "torch/seq2seq.py",
            "losses = losses * counts",
            "counts = torch.ones_like(losses)",
        ),
        (
            "BLEU that stops at pairs",
            "_shared/data/text.py",
            "range(1, min(k, len(pred)) + 1)",
            "range(1, min(k, len(pred), 2) + 1)",
        ),
        (
            "in training after every prediction",
            "torch/seq2seq.py",
            "layer.training = was_training",
            "layer.training = True",
        ),
        (
            "gradients of sequences not clipped",
            "torch/seq2seq.py",
            "        clip_gradients(net, 1)\n",
            "",
        ),
        (
            "a causal mask aligned at the first key",
            "torch/attention.py",
            "torch.arange(num_keys - num_queries + 1, num_keys + 1, ",
            "torch.arange(1, num_queries + 1, ",
        ),
        (
            "the kernels' own causal mask with fewer queries than keys",
            "torch/attention.py",
            "causal and is_alone and queries.shape[1] == keys.shape[1]",
            "causal and is_alone",
        ),
        (
            "the bias of all but the first head lost",
            "torch/attention.py",
            "score_bias.expand(batch, self.num_heads, -1, -1)",
            "score_bias[..., :1, :, :].expand(batch, self.num_heads, -1, -1)",
        ),
        (
            "a bias that the weights shown lack",
            "torch/attention.py",
            "            scores = scores + score_bias\n",
            "            pass\n",
        ),
        (
            "the layouts of rotary encoding exchanged",
            "torch/relative.py",
            'if self.layout == "halves":',
            'if self.layout != "halves":',
        ),
        (
            "queries turned the other way",
            "torch/relative.py",
            "[x * cos - y * sin, x * sin + y * cos], dim=-1).flatten(-2)",
            "[x * cos + y * sin, y * cos - x * sin], dim=-1).flatten(-2)",
        ),
        (
            "positions divided by their scale",
            "_shared/encoding.py",
            "angles = position_scale * np.arange(max_len)",
            "angles = np.arange(max_len) / position_scale",
        ),
    ],
    "tensorflow": [
        (
            "a mask of -1",
            "tensorflow/_blockwise.py",
            "tf.where(valid, scores, scores.dtype.min)",
            "tf.where(valid, scores, -1.0)",
        ),
        (
            "weight left to sequences of length 0",
            "tensorflow/_blockwise.py",
            "tf.where(valid, weights, tf.zeros((), scores.dtype))",
            "weights",
        ),
        (
            "scores divided by d",
            "tensorflow/attention.py",
            "/ math.sqrt(queries.shape[-1])",
            "/ queries.shape[-1]",
        ),
        (
            "heads split along the steps",
            "tensorflow/attention.py",
            "tf.transpose(tf.reshape(X, (batch, steps, num_heads, size)), (0, 2, 1, 3))",
            "tf.reshape(X, (batch, steps, num_heads, size))",
        ),
        (
            "one frequency for sine and another for cosine",
            "_shared/encoding.py",
            "np.cos(angles[:, : num_hiddens // 2])",
            "np.cos(angles[:, : num_hiddens // 2] / 10)",
        ),
        (
            "long input: no mean taken off the slopes",
            "tensorflow/_blockwise.py",
            "share * (of_share - mean)",
            "share * of_share",
        ),
        ("offset ignored", "tensorflow/attention.py", "(0, offset, 0)", "(0, 0, 0)"),
        (
            "height and width exchanged",
            "tensorflow/data.py",
            "resize_with_pad(X, *self.resize)",
            "resize_with_pad(X, *self.resize[::-1])",
        ),
        (
            "gradients of sequences not clipped",
            "tensorflow/seq2seq.py",
            "clip_gradients(tape.gradient(loss, variables), 1)",
            "tape.gradient(loss, variables)",
        ),
        (
            "the biases of heads in the order of examples",
            "tensorflow/attention.py",
            "tf.tile(score_bias, (batch, 1, 1))",
            "tf.repeat(score_bias, batch, axis=0)",
        ),
        (
            "turned from the first position on",
            "tensorflow/relative.py",
            "(0, offset, 0)",
            "(0, 0, 0)",
        ),
    ],
    "jax": [
        (
            "mask one key too short",
            "jax/_blockwise.py",
            "jnp.arange(scores.shape[-1]) < per_query",
            "jnp.arange(1, scores.shape[-1] + 1) < per_query",
        ),
        (
            "softmax over the queries",
            "jax/_blockwise.py",
            "jax.nn.softmax(finite, axis=-1)",
            "jax.nn.softmax(finite, axis=-2)",
        ),
        (
            "heads merged feature by feature",
            "jax/attention.py",
            "num_heads, steps, size).swapaxes(1, 2)",
            "num_heads, steps, size).transpose(0, 2, 3, 1)",
        ),
        (
            "scale of the whole width, not of a head's",
            "jax/attention.py",
            "/ math.sqrt(queries.shape[-1])",
            "/ math.sqrt(2 * queries.shape[-1])",
        ),
        ("a base of 1000", "_shared/encoding.py", "10000.0 **", "1000.0 **"),
        (
            "long input: scores divided by d",
            "jax/_blockwise.py",
            "queries / math.sqrt(queries.shape[-1])",
            "queries / queries.shape[-1]",
        ),
        (
            "offset one too far",
            "jax/attention.py",
            "P[:, offset : offset + steps]",
            "P[:, offset + 1 : offset + steps + 1]",
        ),
        (
            "no blank before a question mark",
            "_shared/data/translation.py",
            'if sign in ",.!?"',
            'if sign in ",.!"',
        ),
        (
            "archives that may set what they like",
            "_shared/data/archives.py",
            'archive.extractall(folder, filter="data")',
            'archive.extractall(folder, filter="tar")',
        ),
    ],
    "mxnet": [
        (
            "the last valid key masked",
            "mxnet/attention.py",
            "length = np.array(per_query, ",
            "length = np.array((per_query - 1).clip(0), ",
        ),
        (
            "the last projection skipped",
            "mxnet/attention.py",
            "return self.W_o(self.transpose_output(pooled))",
            "return self.transpose_output(pooled)",
        ),
        (
            "scale of the number of queries",
            "mxnet/attention.py",
            "math.sqrt(queries.shape[-1])",
            "math.sqrt(queries.shape[1])",
        ),
        (
            "heads split feature by feature",
            "mxnet/attention.py",
            "steps, num_heads, size).transpose(0, 2, 1, 3)",
            "steps, size, num_heads).transpose(0, 3, 1, 2)",
        ),
        (
            "dropout in evaluation too",
            "mxnet/_dropout.py",
            "            return super().forward(X)\n",
            "            with autograd.train_mode():\n                return super().forward(X)\n",
        ),
        (
            "residual connection left out",
            "mxnet/transformer.py",
            "self.ln(X + self.dropout(Y))",
            "self.ln(self.dropout(Y))",
        ),
        (
            "names of the curves in reverse",
            "_shared/plot.py",
            "axes.legend(legend)",
            "axes.legend(legend[::-1])",
        ),
        (
            "gradients of sequences not clipped",
            "mxnet/seq2seq.py",
            "        clip_gradients(net, 1)\n",
            "",
        ),
        (
            "downloads that wait for ever",
            "_shared/data/fetching.py",
            "partial(build_opener(_Handler(clock)).open, timeout=_SECONDS)",
            "partial(build_opener(_Handler(clock)).open)",
        ),
        (
            "a row whose keys a bias all hides",
            "mxnet/attention.py",
            "        length = length * is_seen.any(axis=-1)\n",
            "",
        ),
        (
            "a bias that learns nothing",
            "mxnet/attention.py",
            "X = X + score_bias\n",
            "X = X + score_bias.detach()\n",
        ),
    ],
    "paddle": [
        (
            "mask turned round",
            "paddle/_blockwise.py",
            "paddle.arange(scores.shape[2]) < per_query",
            "paddle.arange(scores.shape[2]) >= per_query",
        ),
        (
            "the keys' projection for the values",
            "paddle/attention.py",
            "self.transpose_qkv(self.W_v(values))",
            "self.transpose_qkv(self.W_k(values))",
        ),
        (
            "the root taken twice",
            "paddle/attention.py",
            "/ math.sqrt(queries.shape[2])",
            "/ math.sqrt(math.sqrt(queries.shape[2]))",
        ),
        (
            "dropout in evaluation too",
            "paddle/attention.py",
            "paddle.bmm(self.dropout(weights), values)",
            "paddle.bmm(nn.functional.dropout(weights, self.dropout.p), values)",
        ),
        (
            "no bend between the two dense layers",
            "paddle/transformer.py",
            "self.dense2(self.relu(self.dense1(X)))",
            "self.dense2(self.dense1(X))",
        ),
        ("negative numbers all in one colour", "_shared/plot.py", "vmin=low", "vmin=0"),
        (
            "positions counted from one",
            "_shared/encoding.py",
            "angles = np.arange(max_len)[:, None]",
            "angles = np.arange(1, max_len + 1)[:, None]",
        ),
        (
            "in training after every prediction",
            "paddle/seq2seq.py",
            "layer.training = was_training",
            "layer.training = True",
        ),
        (
            "gradients of sequences not clipped",
            "paddle/seq2seq.py",
            "        clip_gradients(net, 1)\n",
            "",
        ),
        (
            "a causal mask aligned at the first key",
            "paddle/attention.py",
            'dtype="int64") + (num_keys - num_queries)',
            'dtype="int64")',
        ),
        (
            "a bias that hides nothing",
            "paddle/_blockwise.py",
            "score_bias > -math.inf\n",
            "score_bias == score_bias\n",
        ),
    ],
    "mlx": [
        ("mask one key too long", "mlx/_blockwise.py", "< lens[..., None]", "<= lens[..., None]"),
        (
            "lengths repeated in the wrong order",
            "mlx/attention.py",
            "mx.repeat(valid_lens, self.num_heads, axis=0)",
            "mx.concatenate([valid_lens] * self.num_heads)",
        ),
        (
            "a double in single precision",
            "mlx/_blockwise.py",
            "if scores.dtype != mx.float64:",
            "if scores.size:",
        ),
        (
            "gradients of keys from the last block alone",
            "mlx/_blockwise.py",
            "of_keys, of_values = of_keys + more_keys,",
            "of_keys, of_values = more_keys,",
        ),
        (
            "blocks that wait for nothing",
            "mlx/_blockwise.py",
            "    for each in done:\n",
            "    for each in []:\n",
        ),
        (
            "everything dropped in evaluation",
            "mlx/_dropout.py",
            "if self.training and self.p == 1",
            "if self.p == 1",
        ),
        (
            "no sizes before the first gradient",
            "mlx/training.py",
            "take_sizes(self.model, lambda: self.model(*batch[:-1]))",
            "pass",
        ),
        (
            "Adam that does not correct its bias",
            "mlx/seq2seq.py",
            ", bias_correction=True",
            "",
        ),
        (
            "gradients of sequences not clipped",
            "mlx/seq2seq.py",
            "clip_gradients(gradients, 1)",
            "gradients",
        ),
        (
            "in training after every prediction",
            "mlx/seq2seq.py",
            "layer._set_training_mode(was_training)",
            "layer._set_training_mode(True)",
        ),
    ],
    "djl": [
        ("mask one key too long", f"{JAVA}/MaskedSoftmax.java", "key.gte(lens)", "key.gt(lens)"),
        (
            "lengths repeated in the wrong order",
            f"{JAVA}/MultiHeadAttention.java",
            "validLens.repeat(0, numHeads)",
            "validLens.expandDims(0).repeat(0, numHeads).flatten(0, 1)",
        ),
        (
            "scores divided by d",
            f"{JAVA}/DotProductAttention.java",
            "one.mul(Math.sqrt(d))",
            "one.mul(d)",
        ),
        (
            "the queries' projection for the keys",
            f"{JAVA}/MultiHeadAttention.java",
            "project(W_k, keys,",
            "project(W_q, keys,",
        ),
        (
            "a frequency for each column, not for each pair",
            f"{JAVA}/PositionalEncoding.java",
            "-(column / 2 * 2) /",
            "-column /",
        ),
        (
            "the colour map upside down",
            f"{JAVA}/Heatmaps.java",
            "colorMap.color(share(value))",
            "colorMap.color(1 - share(value))",
        ),
        (
            "a causal mask aligned at the first key",
            f"{JAVA}/MaskedSoftmax.java",
            "long first = scores.get(2) - numQueries + 1;",
            "long first = 1;",
        ),
        (
            "a table of turns in memory that is not its own",
            f"{JAVA}/RotaryEncoding.java",
            ".toType(X.getDataType(), false).duplicate()",
            ".toType(X.getDataType(), false)",
        ),
    ],
}

FAULTS = [
    Fault(framework, name, f"d2l_compat/{file}", old, new)
    for framework, rows in TABLE.items()
    for name, file, old, new in rows
]
