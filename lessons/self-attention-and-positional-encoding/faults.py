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
            "a softmax over the columns",
            "weights = (X @ X.T).softmax(dim=-1)",
            "weights = (X @ X.T).softmax(dim=0)",
        ),
        (
            "another word's query",
            "query = X[4]",
            "query = X[5]",
        ),
        (
            "queries and keys exchanged",
            "X @ W_q, X @ W_k, X @ W_v",
            "X @ W_k, X @ W_q, X @ W_v",
        ),
        (
            "scores divided by the width",
            "plain[-1] / math.sqrt(width)",
            "plain[-1] / width",
        ),
        (
            "the mean for the query in the middle",
            ".norm(dim=(1, 2)).median()",
            ".norm(dim=(1, 2)).mean()",
        ),
        ("dropout left on", "attention.eval()", "attention.train()"),
        (
            "by hand, scores divided by the root of the model's width",
            "scores = q @ k.T / math.sqrt(q.shape[-1])",
            "scores = q @ k.T / math.sqrt(num_hiddens)",
        ),
        (
            "by hand, the mask turned round",
            "torch.arange(len(X)) >= valid_len",
            "torch.arange(len(X)) < valid_len",
        ),
        (
            "by hand, heads merged without transposing back",
            "attention.W_o(torch.cat(heads, dim=-1))",
            "attention.W_o(torch.stack(heads).reshape(X.shape))",
        ),
        (
            "a causal mask that hides a token from itself",
            "torch.arange(1, 7)",
            "torch.arange(6)",
        ),
        (
            "an order that moves nothing",
            "order = [3, 0, 5, 1, 4, 2]",
            "order = [0, 1, 2, 3, 4, 5]",
        ),
        (
            "a convolution with a bias",
            "padding=k // 2, bias=False)",
            "padding=k // 2)",
        ),
        (
            "a state that goes past the tanh",
            "H = torch.tanh(x @ W_xh + H @ W_hh)",
            "H = x @ W_xh + torch.tanh(H @ W_hh)",
        ),
        (
            "inputs and outputs exchanged beside the maps",
            '    xlabel="Input j",\n    ylabel="Output i",\n    titles=names',
            '    xlabel="Output i",\n    ylabel="Input j",\n    titles=names',
        ),
        (
            "a projection not predicted",
            "4 * length * d**2",
            "3 * length * d**2",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        (
            "frequencies in single precision",
            "torch.arange(num_hiddens, dtype=torch.float64)",
            "torch.arange(num_hiddens)",
        ),
        ("offset ignored", "self.P[:, offset:end]", "self.P[:, : X.shape[1]]"),
        (
            "long embeddings scaled",
            "scaled = small(ids)",
            "scaled = as_made(ids)",
        ),
        ("columns 5 to 8 under the names of 6 to 9", "P[:, 6:10].T", "P[:, 5:9].T"),
        (
            "dot products of the wrong neighbours",
            "products[i, i - distances]",
            "products[i, i - distances - 1]",
        ),
        (
            "half a turn for a whole one",
            "(2 * math.pi / omega)",
            "(math.pi / omega)",
        ),
        (
            "no offset backwards",
            "10, 30, -5)",
            "10, 30, 5)",
        ),
        (
            "pairs turned backwards",
            "x * cos + y * sin, y * cos - x * sin",
            "x * cos - y * sin, y * cos + x * sin",
        ),
        (
            "layouts mixed: halves turned, neighbours put back",
            "x, y = X[..., 0::2], X[..., 1::2]",
            "x, y = X.chunk(2, dim=-1)",
        ),
        (
            "layouts mixed: neighbours turned, halves put back",
            "[x * cos + y * sin, y * cos - x * sin], dim=-1).flatten(-2)",
            "[x * cos + y * sin, y * cos - x * sin], dim=-2).flatten(-2)",
        ),
        (
            "a query turned forwards",
            "turn(torch.eye(width), -5 * omega)",
            "turn(torch.eye(width), 5 * omega)",
        ),
        (
            "values turned as well",
            "queries, keys = self.turned(queries), self.turned(keys)",
            "queries, keys, values = map(self.turned, (queries, keys, values))",
        ),
        (
            "labels turned round",
            "(places[:, 0] < places[:, 1])",
            "(places[:, 0] > places[:, 1])",
        ),
        (
            "a table of positions that is not trained",
            "self.P = nn.Embedding(max_len, num_hiddens)",
            "self.P = nn.Embedding(max_len, num_hiddens).requires_grad_(False)",
        ),
        (
            "the reader's causal mask forgotten",
            "self.attention(X, X, X, causal=self.causal)",
            "self.attention(X, X, X)",
        ),
        (
            "trained on the length that is tested",
            "tokens, labels = sequences(128)",
            "tokens, labels = sequences(128, 16)",
        ),
        (
            "shares of another token",
            "sum(dim=2) for token in (0, 1)",
            "sum(dim=2) for token in (0, 2)",
        ),
        (
            "first and last exchanged",
            "    torch.where(zero_is_first, zero, one),\n    torch.where(zero_is_first, one, zero),",
            "    torch.where(zero_is_first, one, zero),\n    torch.where(zero_is_first, zero, one),",
        ),
        (
            "positions left in the values",
            "in_queries_and_keys = share_right(with_P, with_P, X)",
            "in_queries_and_keys = share_right(with_P, with_P, with_P)",
        ),
        (
            "tested on the length that was trained",
            "tokens, labels = sequences(500, length)",
            "tokens, labels = sequences(500)",
        ),
        (
            "a learned encoding for the fixed one",
            '"fixed": lambda: Reader(d2l.PositionalEncoding(32, 0))',
            '"fixed": lambda: Reader(LearnedPositionalEncoding(32, max_len=64))',
        ),
        (
            "the mask forgotten beside the encoding",
            '"fixed_mask": lambda: Reader(d2l.PositionalEncoding(32, 0), causal=True)',
            '"fixed_mask": lambda: Reader(d2l.PositionalEncoding(32, 0))',
        ),
        (
            "one seed five times",
            "reader = trained(make_reader, seed)",
            "reader = trained(make_reader, 0)",
        ),
        (
            "means for medians",
            "medians = [statistics.median(shares)",
            "medians = [statistics.mean(shares)",
        ),
        (
            "medians for the least",
            "[min(run[i] for run in runs)",
            "[statistics.median(run[i] for run in runs)",
        ),
        (
            "a bias of the queries",
            "shifted = X @ (X + b_k).mT",
            "shifted = (X + b_k) @ X.mT",
        ),
        (
            "a mean over the features",
            "X.mean(dim=1, keepdim=True)",
            "X.mean(dim=2, keepdim=True)",
        ),
        (
            "no positions below the stack",
            "X = d2l.PositionalEncoding(64, 0)(start)",
            "X = start",
        ),
        (
            "keys made longer as well",
            "layer(sharpness * X, X, X)",
            "layer(sharpness * X, sharpness * X, X)",
        ),
        (
            "only zeros exchanged",
            "torch.where(tokens < 2, 1 - tokens, tokens)",
            "torch.where(tokens < 1, 1 - tokens, tokens)",
        ),
        (
            "a causal mask one key too short",
            "causal_lens = torch.arange(1, n + 1)",
            "causal_lens = torch.arange(n)",
        ),
        ("the RNN's matrix not shrunk", "rnn(X, 0.8 * W_hh)", "rnn(X, W_hh)"),
        (
            "gaps that do not grow",
            "step = growth**depth",
            "step = growth ** (depth // 2)",
        ),
        ("every token at the first position", "offset=i)", "offset=0)"),
        (
            "a cache of keys for values",
            "[values, layer.W_v(x)]",
            "[values, layer.W_k(x)]",
        ),
        (
            "distances without their sign",
            "distance = position[:, None] - position",
            "distance = (position[:, None] - position).abs()",
        ),
        (
            "distances turned round",
            "distance = position[:, None] - position",
            "distance = position - position[:, None]",
        ),
        (
            "relative scores not scaled",
            "(Q[:, :, None] * keys).sum(dim=-1) / math.sqrt(X.shape[-1])",
            "(Q[:, :, None] * keys).sum(dim=-1)",
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
            "the scores for the average",
            "tf.linalg.matvec(X, weights, transpose_a=True)",
            "tf.linalg.matvec(X, scores, transpose_a=True)",
        ),
        (
            "the largest of all weights for the mean of the largest",
            "tf.reduce_mean(tf.reduce_max(tf.nn.softmax(scores), axis=1))",
            "tf.reduce_max(tf.nn.softmax(scores))",
        ),
        (
            "maps of influence transposed",
            "return tf.norm(d2l.reshape(jacobian, (n, d, n, d)), axis=(1, 3))",
            "return tf.transpose(tf.norm(d2l.reshape(jacobian, (n, d, n, d)), axis=(1, 3)))",
        ),
        (
            "maps divided by their sums",
            "m / tf.reduce_max(m) for m in maps",
            "m / tf.reduce_sum(m) for m in maps",
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
            "rotary angles of the wrong pairs",
            "10000.0 ** (-2 * pair / X.shape[2])",
            "10000.0 ** (-pair / X.shape[2])",
        ),
        (
            "places that may be the same",
            "np.random.rand(count, length).argsort(axis=1)[:, :2]",
            "np.random.randint(length, size=(count, 2))",
        ),
        (
            "a table of positions that is not trained",
            "self.P = table(max_len, num_hiddens)",
            "self.P = table(max_len, num_hiddens)\n        self.P.trainable = False",
        ),
        (
            "a learned encoding for the fixed one",
            '"fixed": lambda: Reader(d2l.PositionalEncoding(32, 0))',
            '"fixed": lambda: Reader(LearnedPositionalEncoding(32, max_len=64))',
        ),
        (
            "trained on the length that is tested",
            "in sequences(120 * 128)]",
            "in sequences(120 * 128, 16)]",
        ),
        (
            "positions left in queries and keys",
            "in_values = share_right(X, X, with_P)",
            "in_values = share_right(with_P, with_P, with_P)",
        ),
        (
            "first and last exchanged",
            "np.where(zero_is_first, (zero, one), (one, zero))",
            "np.where(zero_is_first, (one, zero), (zero, one))",
        ),
        (
            "the first token for the mean",
            "d2l.reduce_mean(X, axis=1, keepdims=True)",
            "X[:, :1]",
        ),
        (
            "the past for the future",
            "np.triu(causal, 1)",
            "np.tril(causal, -1)",
        ),
        (
            "only zeros exchanged",
            "np.where(tokens < 2, 1 - tokens, tokens)",
            "np.where(tokens < 1, 1 - tokens, tokens)",
        ),
        (
            "a cache without the newest value",
            "values = d2l.concat([values, layer.W_v(x)], axis=1)",
            "values = d2l.concat([values, layer.W_k(x)], axis=1)",
        ),
        (
            "distances off by one",
            "row = tf.clip_by_value(distance, -far, far) + far",
            "row = tf.clip_by_value(distance + 1, -far, far) + far",
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
            "one width for all scores",
            "drawn[:, :1, :width], drawn[:, 1:, :width]",
            "drawn[:, :1, :4], drawn[:, 1:, :4]",
        ),
        (
            "a sigmoid for the softmax",
            "jax.vmap(jax.jacobian(jax.nn.softmax))(scores)",
            "jax.vmap(jax.jacobian(jax.nn.sigmoid))(scores)",
        ),
        (
            "positions counted from one",
            "np.arange(num_positions)[:, None], np.arange(num_hiddens)",
            "np.arange(1, num_positions + 1)[:, None], np.arange(num_hiddens)",
        ),
        ("the RNN's matrix not shrunk", "rnn(X, 0.8 * W_hh)", "rnn(X, W_hh)"),
        (
            "one key for both matrices",
            "jax.random.split(jax.random.key(15))",
            "[jax.random.key(15)] * 2",
        ),
        (
            "embedding scaled by d",
            "scaled = embedded * math.sqrt(d_model)",
            "scaled = embedded * d_model",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        (
            "keys turned and queries not",
            "queries, keys = self.turned(queries), self.turned(keys)",
            "keys = self.turned(keys)",
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
            '"fixed": Reader(d2l.PositionalEncoding(32, 0))',
            '"fixed": Reader(LearnedPositionalEncoding(32, max_len=64))',
        ),
        (
            "trained on the length that is tested",
            "sequences(np.random.default_rng(seed), 120 * 128)",
            "sequences(np.random.default_rng(seed), 120 * 128, 16)",
        ),
        (
            "the received for the given",
            "d2l.numpy(attending).mean(axis=2)",
            "d2l.numpy(attending).mean(axis=3)",
        ),
        (
            "positions left in the values",
            "in_queries_and_keys = share_right(with_P, with_P, X)",
            "in_queries_and_keys = share_right(with_P, with_P, with_P)",
        ),
        (
            "tested on the length that was trained",
            "np.random.default_rng(length), 500, length)",
            "np.random.default_rng(length), 500)",
        ),
        (
            "one seed five times",
            "def trained(reader, seeds=range(5)):",
            "def trained(reader, seeds=[0] * 5):",
        ),
        ("one key for two cells", "jax.random.key(13)", "jax.random.key(12)"),
        (
            "one block eight times",
            "halved(block, key, start)",
            "halved(block, keys[0], start)",
        ),
        (
            "the newest token not attended to",
            "filled = jnp.full(layer.num_heads, i + 1)",
            "filled = jnp.full(layer.num_heads, i)",
        ),
        (
            "the newest token written over the first",
            "values = values.at[:, i].set",
            "values = values.at[:, 0].set",
        ),
    ],
    "mxnet": [
        (
            "the upper quarter for the query in the middle",
            "axis=(1, 2)), 50)",
            "axis=(1, 2)), 75)",
        ),
        (
            "training for evaluation",
            "Y = attention(X, X, X, valid_lens)",
            "with autograd.train_mode():\n    Y = attention(X, X, X, valid_lens)",
        ),
        (
            "a norm over the wrong axes",
            "np.linalg.norm(copies.grad.reshape(n, d, n, d), axis=(1, 3))",
            "np.linalg.norm(copies.grad.reshape(n, d, n, d), axis=(0, 3)).T",
        ),
        (
            "maps divided by their sums",
            "m / m.max() for m in maps",
            "m / m.sum() for m in maps",
        ),
        ("one matrix twice in the RNN", "W_xh(x) + W_hh(H)", "W_xh(x) + W_xh(H)"),
        (
            "angles in single precision",
            "return np.where(column",
            'angle = angle.astype("float32")\n    return np.where(column',
        ),
        ("the encoding's heat map transposed", "P[None, None]", "P.T[None, None]"),
        (
            "frequencies in degrees",
            "omega = 10000 ** (-2 * pair / width)",
            "omega = math.pi / 180 * 10000 ** (-2 * pair / width)",
        ),
        (
            "layouts mixed: neighbours turned, halves put back",
            "y * cos - x * sin], axis=-1)",
            "y * cos - x * sin], axis=-2)",
        ),
        (
            "no 9 among the tokens",
            "np.random.randint(2, 10, size=(count, length))",
            "np.random.randint(2, 9, size=(count, length))",
        ),
        (
            "a table of positions that is not trained",
            "normal)\n\n    def",
            "normal)\n        self.P.weight.lr_mult = 0\n\n    def",
        ),
        (
            "a learned encoding for the fixed one",
            '"fixed": lambda: Reader(d2l.PositionalEncoding(32, 0))',
            '"fixed": lambda: Reader(LearnedPositionalEncoding(32, max_len=64))',
        ),
        (
            "the RNN's output shrunk, not its matrix",
            "rnn(X, lambda H: 0.8 * W_hh(H))",
            "0.8 * rnn(X)",
        ),
        (
            "a cache with its newest key in front",
            "d2l.concat([keys, layer.W_k(x)], axis=1)",
            "d2l.concat([layer.W_k(x), keys], axis=1)",
        ),
        (
            "distances without their sign",
            "distance = position[:, None] - position",
            "distance = np.abs(position[:, None] - position)",
        ),
    ],
    "paddle": [
        (
            "the norm of a column for that of the matrix",
            '.norm("fro", axis=[1, 2])',
            '.norm("fro", axis=1)',
        ),
        (
            "by hand, queries and keys exchanged",
            "(attention.W_q, attention.W_k, attention.W_v)",
            "(attention.W_k, attention.W_q, attention.W_v)",
        ),
        ("by hand, masked scores of zero", "masked, -math.inf", "masked, 0.0"),
        ("one side not shuffled", "layer(tokens)[:, order]", "layer(tokens)"),
        (
            "matrices drawn as all others are",
            "attr=orthogonal",
            "default_initializer=orthogonal",
        ),
        ("one matrix twice in the RNN", "d2l.matmul(H, W_hh)", "d2l.matmul(H, W_xh)"),
        ("a norm over the wrong axes", "sum(axis=[1, 3])", "sum(axis=[0, 3]).T"),
        (
            "sine and cosine exchanged",
            "paddle.where(column % 2 == 0,",
            "paddle.where(column % 2 == 1,",
        ),
        ("positions that are saved", "persistable=False", "persistable=True"),
        (
            "negative offsets let through",
            "offset < 0 or end > max_len",
            "end > max_len",
        ),
        ("width and height exchanged", "figsize=(3.5, 4)", "figsize=(4, 3.5)"),
        (
            "a plot turned round",
            "products[i][i - distances]",
            "products[i][i + distances + 1]",
        ),
        (
            "the 1 where the 0 should be",
            "d2l.tensor([[0, 1]])",
            "d2l.tensor([[1, 0]])",
        ),
        (
            "a table of positions that is not trained",
            "normal)\n\n    def",
            "normal)\n        self.P.weight.stop_gradient = True\n\n    def",
        ),
        (
            "shares of queries, not of keys",
            "reader.attention.attention_weights.mean(axis=2)",
            "reader.attention.attention_weights.mean(axis=3)",
        ),
        (
            "queries no longer than others",
            "layer(sharpness * X, X, X)",
            "layer(X, X, X)",
        ),
        ("every token at the first position", "offset=i)", "offset=0)"),
        (
            "one vector for all later tokens",
            "distance.clip(-self.max_distance, self.max_distance)",
            "distance.clip(0, self.max_distance)",
        ),
    ],
    "mlx": [
        (
            "a softmax over the columns",
            "weights = mx.softmax(X @ X.T, axis=-1)",
            "weights = mx.softmax(X @ X.T, axis=0)",
        ),
        (
            "the derivative without the square of the weights",
            "mx.eye(weights.shape[1]) - outer",
            "mx.eye(weights.shape[1])",
        ),
        (
            "by hand, heads in reverse order",
            "mx.concatenate(heads, axis=-1)",
            "mx.concatenate(heads[::-1], axis=-1)",
        ),
        (
            "a norm over the wrong axes",
            "(jacobian**2).sum(axis=(1, 3))",
            "(jacobian**2).sum(axis=(0, 3)).T",
        ),
        (
            "one row of derivatives for all",
            "directions = mx.eye(n * d)",
            "directions = mx.tile(mx.eye(n * d)[:1], (n * d, 1))",
        ),
        (
            "one matrix twice in the RNN",
            "X[:, i] @ W_xh + H @ W_hh",
            "X[:, i] @ W_xh + H @ W_xh",
        ),
        (
            "angles in single precision",
            "np.where(column % 2 == 0, np.sin(angle), np.cos(angle))",
            "np.where(column % 2 == 0, mx.sin(mx.array(angle)), mx.cos(mx.array(angle)))",
        ),
        (
            "the encoding trained along",
            "self._P = sinusoids(max_len, num_hiddens)[None]",
            "self.P = self._P = sinusoids(max_len, num_hiddens)[None]",
        ),
        (
            "the variance for the standard deviation",
            "scale=d_model**-0.5",
            "scale=d_model**-1",
        ),
        (
            "keys turned and queries not",
            "queries, keys = self.turned(queries), self.turned(keys)",
            "keys = self.turned(keys)",
        ),
        (
            "the 0 and the 1 exchanged in what is drawn",
            "places] = mx.arange(2)",
            "places] = 1 - mx.arange(2)",
        ),
        (
            "a table of positions that is not trained",
            "return X + self.P(mx.arange(X.shape[1]))",
            "return X + mx.stop_gradient(self.P(mx.arange(X.shape[1])))",
        ),
        (
            "a learned encoding for the fixed one",
            '"fixed": lambda: Reader(d2l.PositionalEncoding(32, 0))',
            '"fixed": lambda: Reader(LearnedPositionalEncoding(32, max_len=64))',
        ),
        (
            "the optimizer without its correction",
            "learning_rate=0.01, bias_correction=True",
            "learning_rate=0.01",
        ),
        (
            "the received for the given",
            "attention_weights.mean(axis=2)",
            "attention_weights.mean(axis=3)",
        ),
        (
            "trained on the length that is tested",
            "(*sequences(128))",
            "(*sequences(64, 16))",
        ),
        (
            "positions left in the values",
            "in_queries_and_keys = share_right(with_P, with_P, X)",
            "in_queries_and_keys = share_right(with_P, with_P, with_P)",
        ),
        (
            "tested on the length that was trained",
            "sequences(500, length)",
            "sequences(500)",
        ),
        (
            "one seed five times",
            "reader = trained(make_reader, seed)",
            "reader = trained(make_reader, 0)",
        ),
        (
            "the diagonal hidden by the causal mask",
            "causal_lens = mx.arange(1, n + 1)[None]",
            "causal_lens = mx.maximum(mx.arange(n), 1)[None]",
        ),
        (
            "the cache without the newest value",
            "values = mx.concatenate([values, layer.W_v(x)], axis=1)",
            "values = mx.concatenate([layer.W_v(x), values], axis=1)",
        ),
        (
            "distances without their sign",
            "row = mx.clip(distance, -far, far) + far",
            "row = mx.clip(abs(distance), -far, far) + far",
        ),
    ],
    "djl": [
        (
            "dropped in evaluation, too",
            "new NDList(inputs), false)",
            "new NDList(inputs), true)",
        ),
        (
            "a softmax over the columns",
            "X.matMul(X.transpose()).softmax(1)",
            "X.matMul(X.transpose()).softmax(0)",
        ),
        ("the mean for the query in the middle", ".sqrt().median()", ".sqrt().mean()"),
        (
            "by hand, scores divided by the root of the whole width",
            "Math.sqrt(numHiddens / numHeads)",
            "Math.sqrt(numHiddens)",
        ),
        ("a causal mask one key too long", "arange(1, n + 1)", "arange(2, n + 2)"),
        (
            "rows that are not at right angles",
            "row = row.sub(before.mul(before.dot(row)));",
            "row = row.sub(before);",
        ),
        ("maps divided by their sums", "map.div(map.max())", "map.div(map.sum())"),
        (
            "whole numbers divided",
            "2 * (column / 2) / (double) numHiddens",
            "2 * (column / 2) / numHiddens",
        ),
        (
            "the encoding's dropout forgotten",
            'return Dropout.dropout(X.add(P.get(":, {}:{}", offset, end)), dropout, training);',
            'return new NDList(X.add(P.get(":, {}:{}", offset, end)));',
        ),
        ("columns 7 to 10 under the names of 6 to 9", '":, 6:10"', '":, 7:11"'),
        ("a scale without negative numbers", "ColorMap.BLUE_TO_RED", "ColorMap.REDS"),
        (
            "pairs turned backwards",
            "x.mul(cos).add(y.mul(sin)), y.mul(cos).sub(x.mul(sin))",
            "x.mul(cos).sub(y.mul(sin)), y.mul(cos).add(x.mul(sin))",
        ),
        (
            "values turned as well",
            "turned.set(1, turned(inputs.get(1)));",
            "turned.set(1, turned(inputs.get(1)));\n        turned.set(2, turned(inputs.get(2)));",
        ),
        ("labels turned round", "ofZero.lt(ofOne)", "ofZero.gt(ofOne)"),
        (
            "a table of positions that is not trained",
            "P.forward(store, new NDList(position), training).head()",
            "P.forward(store, new NDList(position), training).head().stopGradient()",
        ),
        (
            "one batch again and again",
            "var batch = sequences(scratch, 128, 8);",
            "Engine.getInstance().setRandomSeed(seed);\n            var batch = sequences(scratch, 128, 8);",
        ),
        ("shares of another token", "one = shareOn(1)", "one = shareOn(2)"),
        (
            "positions left in queries and keys",
            "shareRight(X, X, withP)",
            "shareRight(withP, withP, withP)",
        ),
        (
            "a learned encoding for the fixed one",
            'readers.put("fixed", () -> plainReader(fixed, false));',
            'readers.put("fixed", () -> plainReader(new LearnedPositionalEncoding(32, 64), false));',
        ),
        (
            "tested on the sequences of its training",
            "var test = sequences(scratch, 250, length);",
            "Engine.getInstance().setRandomSeed(0);\n        initialized(plainReader(fixed, false), new Shape(128, 8));\n        var test = sequences(scratch, 128, length);",
        ),
        (
            "tested on the length that was trained",
            "sequences(scratch, 250, length)",
            "sequences(scratch, 250, 8)",
        ),
        ("one seed for all five", "trained(maker, seed);", "trained(maker, 0);"),
        (
            "names of the readers exchanged",
            '"learned table", "RoPE"',
            '"RoPE", "learned table"',
        ),
        ("only zeros exchanged", "tokens.lt(2)", "tokens.lt(1)"),
        ("gaps that grow by addition", "gap *= growth", "gap += growth"),
        (
            "places counted from one",
            "i, i + 1), manager.create(i)",
            "i, i + 1), manager.create(i + 1)",
        ),
        (
            "keys in the place of values",
            "cachedValues = more.get(2);",
            "cachedValues = more.get(1);",
        ),
    ],
}

# By the notebooks' folder: an edit by hand, a bad merge, a run of something else.
IN_NOTEBOOKS = {
    "en/pytorch": [
        ("a number changed", printed("by-hand-difference", "0.00000", "0.00020")),
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
        ("an exception for an output", an_exception("wavelengths")),
        (
            "the figure of another cell",
            output_of("column-plot", "solution-fading-figure"),
        ),
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
                "solution-fading-figure",
                'id="axes_1"',
                'id="axes_1" transform="translate(0 20)"',
            ),
        ),
    ],
    "zh-TW/jax": [
        ("an integer changed", printed("influence-heatmaps", "28 對", "27 對"))
    ],
    "en/mxnet": [
        (
            "another drawing under the right words",
            drawing_of("solution-causal-map", "influence-heatmaps"),
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
                "solution-stacking-figure",
                r"\*\{stroke-linejoin: round",
                "*{opacity: 0.2; stroke-linejoin: round",
            ),
        ),
    ],
    "zh-TW/paddle": [("a sign lost", printed("rotation", "-0.9900", " 0.9900"))],
    "en/mlx": [
        ("JAX's notebook in its place", whole_notebook_of("en/jax")),
        (
            "a curve moved by a point",
            drawing(
                "slopes", 'id="line2d_1"', 'id="line2d_1" transform="translate(0 1)"'
            ),
        ),
        ("a digit in a table", printed("multiply-adds", "98,304", "98,804")),
    ],
    "zh-TW/mlx": [
        (
            "the columns of a table out of line",
            printed("solution-dilated", "   5 ", "  5  "),
        )
    ],
    "en/djl": [
        (
            "a curve dashed as another",
            drawing(
                "dot-products", 'stroke-dasharray="5.55 2.4"', 'stroke-dasharray="none"'
            ),
        ),
        ("one result of an earlier run", printed("lengths", "16.00", "16.10")),
        ("one name in a legend changed", drawing("column-plot", ">Col 9<", ">Col 8<")),
        (
            "a curve that is not drawn",
            drawing("dot-products", 'stroke="#0072B2"', 'stroke="none"'),
        ),
        (
            "a heat map's cells smoothed",
            drawing("encoding-heatmap", "crispEdges", "auto"),
        ),
    ],
}
