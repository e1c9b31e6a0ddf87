"""The faults seeded in this lesson, each of which the checks have to notice (`make mutants`)."""

from tests.mutants.changes import missing, printed, source

# By framework, what an author might write: its name, the code as it is, the code as it would be.
IN_CODE = {
    "pytorch": [
        (
            "hands that turn by 15 degrees",
            "math.radians(30 * position)",
            "math.radians(15 * position)",
        ),
        (
            "a reflection for a turn",
            "return torch.tensor([x * cos - y * sin, x * sin + y * cos])",
            "return torch.tensor([x * cos - y * sin, x * sin - y * cos])",
        ),
        (
            "the key's position added to the query",
            "terms = query @ key, query @ p_j, p_i @ key, p_i @ p_j",
            "terms = query @ key, query @ p_i, p_j @ key, p_i @ p_j",
        ),
        (
            "the sum without the query's position",
            "score = (query + p_i) @ (key + p_j)",
            "score = query @ (key + p_j)",
        ),
        (
            "frequencies of half as many pairs",
            "return base ** (-torch.arange(0, d, 2) / d)",
            "return base ** (-2 * torch.arange(0, d, 2) / d)",
        ),
        (
            "the wrong partner",
            "x, y = X[..., ::2], X[..., 1::2]",
            "x, y = X[..., 1::2], X[..., ::2]",
        ),
        (
            "halves that turn the other way",
            "return torch.cat([x * cos - y * sin, x * sin + y * cos], dim=-1)",
            "return torch.cat([x * cos + y * sin, y * cos - x * sin], dim=-1)",
        ),
        (
            "only the query turned",
            "q, k = (rotate(each.repeat(n, 1), positions, frequencies(d)) for each in (query, key))",
            "q, k = (rotate(query.repeat(n, 1), positions, frequencies(d)), key.repeat(n, 1))",
        ),
        (
            "the spread of rows for that of diagonals",
            "diagonals = (scores.diagonal(offset) for offset in range(1 - n, n))",
            "diagonals = scores",
        ),
        (
            "a spread without the distances to later keys",
            "range(1 - n, n)",
            "range(1 - n, 1)",
        ),
        (
            "the layouts' order the other way round",
            "order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])",
            "order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])",
        ),
        (
            "mixed layouts that are not mixed",
            "spread(q @ k_halves.T)",
            "spread(q_halves @ k_halves.T)",
        ),
        (
            "a bias that favours what is far",
            "bias = -slopes[:, None, None] * distances",
            "bias = slopes[:, None, None] * distances",
        ),
        (
            "the map of another head",
            "weights[:, [0, 2, 6]]",
            "weights[:, [0, 1, 6]]",
        ),
        (
            "distances clipped on one side",
            "min(max(i - j, -3), 3)",
            "min(i - j, 3)",
        ),
        (
            "keys minus queries",
            "min(max(i - j, -3), 3)",
            "min(max(j - i, -3), 3)",
        ),
        (
            "buckets that grow by the wrong factor",
            "math.log(distance / near) / math.log(far / near)",
            "math.log(distance / near) / math.log(far)",
        ),
        (
            "a bucket too many",
            "return min(near + int(wider), count - 1)",
            "return near + int(wider)",
        ),
        (
            "no causal mask",
            "attention(alike, alike, first, causal=causal)",
            "attention(alike, alike, first)",
        ),
        (
            "the digit that the letter had first",
            "last = ((letters == asked) * torch.arange(1, n + 1)).argmax(dim=1, keepdim=True)\n    return",
            "last = (letters == asked).int().argmax(dim=1, keepdim=True)\n    return",
        ),
        (
            "a letter that need not be there",
            "asked = letters.gather(1, torch.randint(n, (count, 1)))",
            "asked = torch.randint(6, (count, 1))",
        ),
        (
            "the question at the first position",
            "torch.tensor([letters.shape[1]])",
            "torch.tensor([0])",
        ),
        (
            "the question without a position",
            "question = self.scheme.add(self.letter(asked), here)",
            "question = self.letter(asked)",
        ),
        (
            "keys not turned",
            "k = self.scheme.turn(self.W_k(X), there)",
            "k = self.W_k(X)",
        ),
        (
            "values turned as well",
            "return self.output(self.attention_weights @ self.W_v(X))",
            "return self.output(\n            self.attention_weights @ self.scheme.turn(self.W_v(X), there)\n        )",
        ),
        (
            "a bias divided by the root of the width",
            "scores = q @ k.mT / math.sqrt(k.shape[-1]) + self.scheme.bias(q, here - there)",
            "scores = (q @ k.mT + self.scheme.bias(q, here - there)) / math.sqrt(k.shape[-1])",
        ),
        (
            "sinusoids of twice the frequency",
            "angles = positions[:, None] * frequencies(X.shape[-1])",
            "angles = 2 * positions[:, None] * frequencies(X.shape[-1])",
        ),
        (
            "ALiBi with another slope",
            "return -distances / 2",
            "return -distances / 4",
        ),
        (
            "a row of the table too far",
            "rows = distances.clamp(max=len(self.vectors.weight)) - 1",
            "rows = distances.clamp(max=len(self.vectors.weight) - 1)",
        ),
        (
            "a table's scores not divided by the root of the width",
            "return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])",
            "return q @ self.vectors(rows).T",
        ),
        (
            "all distances in one bucket more",
            "[bucket(distance) for distance in distances.tolist()]",
            "[bucket(distance + 1) for distance in distances.tolist()]",
        ),
        (
            "one seed for all five",
            "    torch.manual_seed(seed)\n    model = kind",
            "    torch.manual_seed(0)\n    model = kind",
        ),
        (
            "trained at another length",
            "*given, answers = entries(256)\n        loss = nn.functional.cross_entropy(model(*given)[:, 0], answers[:, 0])\n        optimizer",
            "*given, answers = entries(256, 8)\n        loss = nn.functional.cross_entropy(model(*given)[:, 0], answers[:, 0])\n        optimizer",
        ),
        (
            "one scheme for all models",
            "trained(seed, Finder, scheme) for seed",
            "trained(seed, Finder, Rotary) for seed",
        ),
        (
            "asked at one length only",
            "[share_right(m, n) for n in lengths] for m in of]",
            "[share_right(m, 16) for n in lengths] for m in of]",
        ),
        (
            "the mean for the median",
            "Y.append([statistics.median(found)",
            "Y.append([statistics.mean(found)",
        ),
        (
            "the highest called the lowest",
            "({min(found):.2f}-{max(found):.2f})",
            "({max(found):.2f}-{min(found):.2f})",
        ),
        (
            "the names in another order",
            'names = ["none", "sinusoids", "rotary", "ALiBi", "table", "buckets"]\nprint("".join',
            'names = ["none", "sinusoids", "ALiBi", "rotary", "table", "buckets"]\nprint("".join',
        ),
        (
            "maps of another seed's model",
            "model = models[scheme][0]",
            "model = models[scheme][1]",
        ),
        (
            "axes exchanged",
            'xlabel="Entries",\n    ylabel="Letter asked for"',
            'xlabel="Letter asked for",\n    ylabel="Entries"',
        ),
        (
            "the weight on the first entry",
            "last = (has_it * torch.arange(1, n + 1)).argmax(dim=1, keepdim=True)\n    return [",
            "last = has_it.int().argmax(dim=1, keepdim=True)\n    return [",
        ),
        (
            "hands that turn faster",
            "    return omega / factor\n",
            "    return omega * factor\n",
        ),
        (
            "the base multiplied by the factor alone",
            "factor ** (d / (d - 2))",
            "factor",
        ),
        (
            "the parts exchanged",
            "return kept * omega + (1 - kept) * omega / factor",
            "return (1 - kept) * omega + kept * omega / factor",
        ),
        (
            "turns counted on 32 positions",
            "turns = 16 * omega / (2 * math.pi)",
            "turns = 32 * omega / (2 * math.pi)",
        ),
        (
            "frequencies not put back",
            "    share = share_right(model, n)\n    model.scheme.frequencies = omega\n    return share",
            "    return share_right(model, n)",
        ),
        (
            "stretched by a fixed factor",
            "model.scheme.frequencies = way(omega, n / 16)",
            "model.scheme.frequencies = way(omega, 4)",
        ),
        (
            "turned on, not back",
            "return rotate(Y, -positions, omega) if back else Y",
            "return rotate(Y, positions, omega) if back else Y",
        ),
        (
            "W_v reordered as well",
            "for part in other.W_q, other.W_k:",
            "for part in other.W_q, other.W_k, other.W_v:",
        ),
        (
            "inputs reordered, not outputs",
            "part.weight.data = part.weight[order]",
            "part.weight.data = part.weight[:, order]",
        ),
        (
            "a table of sixteen",
            "model = Finder(Table(reach=32))",
            "model = Finder(Table())",
        ),
        (
            "two layers without a mask",
            "X = X + layer(X, X, X, causal=True)",
            "X = X + layer(X, X, X)",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + layer(X, X, X, causal=True)",
            "X = layer(X, X, X, causal=True)",
        ),
        (
            "the last entry asked, not the question",
            "return self.output(X[:, -1:])",
            "return self.output(X[:, -2:-1])",
        ),
    ],
    "tensorflow": [
        (
            "pairs turned in opposite senses",
            "turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)",
            "turned = d2l.stack([x * cos + y * sin, x * sin + y * cos], axis=-1)",
        ),
        (
            "halves for neighbours",
            "x, y = tf.unstack(tf.reshape(X, (*X.shape[:-1], -1, 2)), axis=-1)",
            "x, y = tf.split(X, 2, axis=-1)",
        ),
        (
            "frequencies of twice as many pairs",
            "return base ** (-d2l.arange(0, d, 2, dtype=tf.float32) / d)",
            "return base ** (-d2l.arange(d // 2, dtype=tf.float32) / d)",
        ),
        (
            "only the queries turned",
            "k = self.scheme.turn(self.W_k(X), there)",
            "k = self.W_k(X)",
        ),
        (
            "values turned as well",
            "return self.logits(self.attention_weights @ self.W_v(X))",
            "v = self.scheme.turn(self.W_v(X), there)\n        return self.logits(self.attention_weights @ v)",
        ),
        (
            "the question asked at the place of the last entry",
            "np.arange(letters.shape[1]), np.array([letters.shape[1]])",
            "np.arange(letters.shape[1]), np.array([letters.shape[1] - 1])",
        ),
        (
            "sinusoids added to the entries alone",
            "question = self.scheme.add(self.letter(asked), here)",
            "question = self.letter(asked)",
        ),
        (
            "far entries preferred to near ones",
            "return -distances / 2",
            "return distances / 2",
        ),
        (
            "the table's rows one off",
            "rows = np.minimum(distances, self.vectors.input_dim) - 1",
            "rows = np.minimum(distances, self.vectors.input_dim - 1)",
        ),
        (
            "the table's scores not divided by the root of d",
            "return tf.matmul(q, vectors, transpose_b=True) / math.sqrt(q.shape[-1])",
            "return tf.matmul(q, vectors, transpose_b=True)",
        ),
        (
            "buckets shared from the first distance on",
            "near = count // 2",
            "near = 1",
        ),
        (
            "the first digit that a letter had",
            "places = (letters == asked) * np.arange(1, n + 1)",
            "places = (letters == asked) * np.arange(n, 0, -1)",
        ),
        (
            "one seed for all five",
            "keras.utils.set_random_seed(seed)\n        models",
            "keras.utils.set_random_seed(0)\n        models",
        ),
        (
            "what was trained not given back",
            "model.set_weights([each[i] for each in weights])",
            "model.get_weights()",
        ),
        (
            "one scheme for all models",
            "scheme: trained(Finder, scheme)",
            "scheme: trained(Finder, Rotary)",
        ),
        (
            "trained on texts of another length",
            "in entries(100 * 256)]",
            "in entries(100 * 256, 32)]",
        ),
        (
            "positions stretched where they are to be squeezed",
            "    return omega / factor",
            "    return omega * factor",
        ),
        (
            "the base multiplied by the factor itself",
            "base=10000 * factor ** (d / (d - 2))",
            "base=10000 * factor",
        ),
        (
            "what is kept and what is slowed exchanged",
            "return kept * omega + (1 - kept) * omega / factor",
            "return (1 - kept) * omega + kept * omega / factor",
        ),
        (
            "frequencies not put back",
            "    model.scheme.frequencies = omega\n    return share",
            "    return share",
        ),
        (
            "the minimum called the median",
            'f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"',
            'f"{min(found):.2f} ({statistics.median(found):.2f}-{max(found):.2f})"',
        ),
        (
            "weight on any entry with the letter called that on the last",
            "return [(weights * has_it).sum() / 500, on_last.mean()]",
            "return [(weights * has_it).sum() / 500, (weights * has_it).max(axis=1).mean()]",
        ),
        (
            "the order of the halves put backwards",
            "order = [*range(0, 32, 2), *range(1, 32, 2)]",
            "order = [*range(1, 32, 2), *range(0, 32, 2)]",
        ),
        (
            "rows reordered, not columns",
            "part.kernel.assign(tf.gather(part.kernel, order, axis=1))",
            "part.kernel.assign(tf.gather(part.kernel, order))",
        ),
        (
            "values reordered as well",
            "for part in other.W_q, other.W_k:",
            "for part in other.W_q, other.W_k, other.W_v:",
        ),
        (
            "the gradient of another table",
            "gradient = tape.gradient(loss, model.scheme.vectors.embeddings)",
            "gradient = tape.gradient(loss, model.digit.embeddings)",
        ),
        (
            "the causal mask left out of the two layers",
            "X = X + layer(X, X, X, causal=True)",
            "X = X + layer(X, X, X)",
        ),
        (
            "maps' titles exchanged",
            'titles=["Sinusoids", "Rotary", "ALiBi"],',
            'titles=["Rotary", "Sinusoids", "ALiBi"],',
        ),
        (
            "maps' axes exchanged",
            '    xlabel="Entries",\n    ylabel="Letter asked for",',
            '    xlabel="Letter asked for",\n    ylabel="Entries",',
        ),
    ],
    "jax": [
        (
            "hands that turn by 15 degrees",
            "math.radians(30 * position)",
            "math.radians(15 * position)",
        ),
        (
            "the sum without the query's position",
            "score = (query + p_i) @ (key + p_j)",
            "score = query @ (key + p_j)",
        ),
        (
            "frequencies of half as many pairs",
            "return base ** (-jnp.arange(0, d, 2) / d)",
            "return base ** (-2 * jnp.arange(0, d, 2) / d)",
        ),
        (
            "frequencies without the factor 2",
            "return base ** (-jnp.arange(0, d, 2) / d)",
            "return base ** (-jnp.arange(0, d // 2) / d)",
        ),
        (
            "pairs turned in opposite senses",
            "turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)",
            "turned = d2l.stack([x * cos + y * sin, y * cos - x * sin], axis=-1)",
        ),
        (
            "the wrong partner",
            "x, y = X[..., ::2], X[..., 1::2]",
            "x, y = jnp.split(X, 2, axis=-1)",
        ),
        (
            "pairs put side by side as halves",
            "turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)",
            "turned = d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-2)",
        ),
        (
            "neighbours in the place of halves",
            "x, y = jnp.split(X, 2, axis=-1)",
            "x, y = X[..., ::2], X[..., 1::2]",
        ),
        (
            "the spread without distances to later keys",
            "range(1 - n, n)",
            "range(1 - n, 1)",
        ),
        (
            "the layouts' order the other way round",
            "order = d2l.tensor([0, 2, 4, 6, 1, 3, 5, 7])",
            "order = d2l.tensor([0, 4, 1, 5, 2, 6, 3, 7])",
        ),
        (
            "a bias that favours what is far",
            "bias = -slopes[:, None, None] * distances",
            "bias = slopes[:, None, None] * distances",
        ),
        (
            "the map of another head",
            "weights[:, [0, 2, 6]]",
            "weights[:, [0, 1, 6]]",
        ),
        (
            "distances clipped on one side",
            "min(max(i - j, -3), 3)",
            "min(i - j, 3)",
        ),
        (
            "buckets that grow by the wrong factor",
            "math.log(distance / near) / math.log(far / near)",
            "math.log(distance / near) / math.log(far)",
        ),
        (
            "buckets shared too soon",
            "    near = count // 2\n",
            "    near = count // 4\n",
        ),
        (
            "the digit that the letter had first",
            "last = ((letters == asked) * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)\n    return letters",
            "last = (letters == asked).argmax(axis=1, keepdims=True)\n    return letters",
        ),
        (
            "the question at the first position",
            "np.array([letters.shape[1]])",
            "np.array([0])",
        ),
        (
            "the question at the last entry's position",
            "np.array([letters.shape[1]])",
            "np.array([letters.shape[1] - 1])",
        ),
        (
            "only the query turned",
            "k = self.scheme.turn(self.W_k(X), there)",
            "k = self.W_k(X)",
        ),
        (
            "sinusoids added to the entries alone",
            "question = self.scheme.add(self.letter(asked), here)",
            "question = self.letter(asked)",
        ),
        (
            "values turned as well",
            "return self.output(weights @ self.W_v(X)), weights",
            "return self.output(weights @ self.scheme.turn(self.W_v(X), there)), weights",
        ),
        (
            "the bias divided by the root as well",
            "scores = q @ k.mT / math.sqrt(k.shape[-1]) + self.scheme.bias(q, here - there)",
            "scores = (q @ k.mT + self.scheme.bias(q, here - there)) / math.sqrt(k.shape[-1])",
        ),
        (
            "positions not multiplied",
            "angles = positions[:, None] * frequencies(X.shape[-1])",
            "angles = (positions[:, None] > 0) * frequencies(X.shape[-1])",
        ),
        (
            "ALiBi with the wrong sign",
            "return -distances / 2",
            "return distances / 2",
        ),
        (
            "the table's row off by one",
            "rows = distances.clip(max=self.reach) - 1",
            "rows = distances.clip(max=self.reach - 1)",
        ),
        (
            "distances not clipped: JAX takes the last row for those beyond it, Flax NaN",
            "rows = distances.clip(max=self.reach) - 1",
            "rows = (distances - 1) % self.reach",
        ),
        (
            "the table's scores not divided by the root of d",
            "return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])",
            "return q @ self.vectors(rows).T",
        ),
        (
            "each bucket begins one distance too soon",
            "[bucket(distance) for distance in distances]",
            "[bucket(distance + 1) for distance in distances]",
        ),
        (
            "one key for all five",
            "keys = jnp.stack([jax.random.key(seed) for seed in seeds])",
            "keys = jnp.stack([jax.random.key(0) for seed in seeds])",
        ),
        (
            "trained at another length",
            "100 * 256) for seed in seeds]",
            "100 * 256, 8) for seed in seeds]",
        ),
        (
            "trained hardly at all",
            "adam = optax.adam(0.02)",
            "adam = optax.adam(0.0002)",
        ),
        (
            "one scheme for all models",
            "trained(Finder, scheme) for scheme",
            "trained(Finder, Rotary) for scheme",
        ),
        (
            "asked at one length only",
            "[share_right(m, n) for n in lengths] for m in of]",
            "[share_right(m, 16) for n in lengths] for m in of]",
        ),
        (
            "median and minimum exchanged",
            "{statistics.median(found):.2f} ({min(found):.2f}-",
            "{min(found):.2f} ({statistics.median(found):.2f}-",
        ),
        (
            "maps of another seed's model",
            "model = models[scheme][0]",
            "model = models[scheme][1]",
        ),
        (
            "maps in another order than their titles",
            "for scheme in Sinusoids, Rotary, ALiBi:",
            "for scheme in Rotary, Sinusoids, ALiBi:",
        ),
        (
            "axes exchanged",
            '    xlabel="Entries",\n    ylabel="Letter asked for",',
            '    xlabel="Letter asked for",\n    ylabel="Entries",',
        ),
        (
            "the weight on the first entry",
            "last = (has_it * np.arange(1, n + 1)).argmax(axis=1, keepdims=True)\n    on_last",
            "last = has_it.argmax(axis=1, keepdims=True)\n    on_last",
        ),
        (
            "hands that turn faster",
            "    return omega / factor\n",
            "    return omega * factor\n",
        ),
        (
            "the base multiplied by the factor alone",
            "factor ** (d / (d - 2))",
            "factor",
        ),
        (
            "the parts exchanged",
            "return kept * omega + (1 - kept) * omega / factor",
            "return (1 - kept) * omega + kept * omega / factor",
        ),
        (
            "stretched by a fixed factor",
            "way(omega, n / 16)}",
            "way(omega, 4)}",
        ),
        (
            "the factor turned over",
            "way(omega, n / 16)}",
            "way(omega, 16 / n)}",
        ),
        (
            "turned on, not back",
            "return rotate(Y, -positions, omega) if back else Y",
            "return rotate(Y, positions, omega) if back else Y",
        ),
        (
            "W_v reordered as well",
            'return W[:, order] if "W_q" in path or "W_k" in path else W',
            'return W[:, order] if len({"W_q", "W_k", "W_v"} & {*path}) else W',
        ),
        (
            "inputs reordered, not outputs",
            'return W[:, order] if "W_q" in path',
            'return W[order] if "W_q" in path',
        ),
        (
            "the gradient of another part",
            'gradients["params"]["scheme"]["vectors"]["embedding"]',
            'gradients["params"]["W_k"]["kernel"]',
        ),
        (
            "two layers without a mask",
            "layer(X, X, X, causal=True)",
            "layer(X, X, X)",
        ),
        (
            "what a layer brings put in the place of what was there",
            "X = X + Y\n",
            "X = Y\n",
        ),
        (
            "the last entry asked, not the question",
            "return self.output(X[:, -1:])",
            "return self.output(X[:, -2:-1])",
        ),
    ],
    "mxnet": [
        (
            "pairs turned in opposite senses",
            "return d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).reshape(X.shape)",
            "return d2l.stack([x * cos + y * sin, x * sin + y * cos], axis=-1).reshape(X.shape)",
        ),
        (
            "a pair's first number for its second",
            "x, y = X[..., ::2], X[..., 1::2]",
            "x, y = X[..., 1::2], X[..., ::2]",
        ),
        (
            "halves whose partners are exchanged",
            "x, y = np.split(X, 2, axis=-1)",
            "y, x = np.split(X, 2, axis=-1)",
        ),
        (
            "frequencies without the factor 2",
            "return base ** (-np.arange(0, d, 2) / d)",
            "return base ** (-np.arange(d // 2) / d)",
        ),
        (
            "positions that are all alike",
            "positions = np.arange(n)\n",
            "positions = np.ones(n)\n",
        ),
        (
            "the layouts' order the other way round",
            "order = [0, 2, 4, 6, 1, 3, 5, 7]",
            "order = [0, 4, 1, 5, 2, 6, 3, 7]",
        ),
        (
            "lengths compared with themselves",
            "longer = np.linalg.norm(q, axis=-1) - np.linalg.norm(query)",
            "longer = np.linalg.norm(q, axis=-1) - np.linalg.norm(k)",
        ),
        (
            "a bias that favours what is far",
            "bias = -slopes[:, None, None] * distances",
            "bias = slopes[:, None, None] * distances",
        ),
        (
            "slopes that double from head to head",
            "by_hand = [2.0 ** -(head + 1) for head in range(8)]",
            "by_hand = [2.0 ** (head - 8) for head in range(8)]",
        ),
        (
            "the logarithm of the wrong ratio",
            "math.log(distance / near) / math.log(far / near)",
            "math.log(distance / near) / math.log(far)",
        ),
        (
            "buckets shared too soon",
            "def bucket(distance, count=8, far=16):",
            "def bucket(distance, count=8, far=8):",
        ),
        (
            "the digit that the letter had first",
            "last = ((letters == asked) * np.arange(1, n + 1)).argmax(axis=1)",
            "last = ((letters == asked) * np.arange(n, 0, -1)).argmax(axis=1)",
        ),
        (
            "the question in the last entry's place",
            "np.arange(n), np.arange(n, n + 1)",
            "np.arange(n), np.arange(n - 1, n)",
        ),
        (
            "sinusoids added to the entries alone",
            "question = self.scheme.add(self.letter(asked), here)",
            "question = self.letter(asked)",
        ),
        (
            "only the query turned",
            "k = self.scheme.turn(self.W_k(X), there)",
            "k = self.W_k(X)",
        ),
        (
            "values turned as well",
            "npx.batch_dot(self.attention_weights, self.W_v(X))",
            "npx.batch_dot(\n                self.attention_weights, self.scheme.turn(self.W_v(X), there)\n            )",
        ),
        (
            "a bias divided by the root of the width",
            "/ math.sqrt(k.shape[-1])\n        scores = scores + self.scheme.bias(q, here - there)\n",
            "\n        scores = scores + self.scheme.bias(q, here - there)\n        scores = scores / math.sqrt(k.shape[-1])\n",
        ),
        (
            "sines and cosines exchanged",
            "waves = d2l.stack([np.sin(angles), np.cos(angles)], axis=-1)",
            "waves = d2l.stack([np.cos(angles), np.sin(angles)], axis=-1)",
        ),
        (
            "scores that grow with distance",
            "return -distances / 2",
            "return distances / 2",
        ),
        (
            "ALiBi with another slope",
            "return -distances / 2",
            "return -distances / 4",
        ),
        (
            "the table's row off by one",
            "rows = np.minimum(distances, self.vectors.weight.shape[0]) - 1",
            "rows = np.minimum(distances, self.vectors.weight.shape[0] - 1)",
        ),
        (
            "the table's scores not divided by the root of the width",
            "return q @ self.vectors(rows).T / math.sqrt(q.shape[-1])",
            "return q @ self.vectors(rows).T",
        ),
        (
            "buckets in the opposite order",
            "[bucket(distance) for distance in distances.tolist()]",
            "[bucket(distance) for distance in distances.tolist()[::-1]]",
        ),
        (
            "texts cut across the examples",
            "each.reshape(count, -1, each.shape[1])",
            "each.reshape(count, each.shape[1], -1).swapaxes(1, 2)",
        ),
        (
            "one seed for all five",
            "    npx.random.seed(seed)\n    model = kind",
            "    npx.random.seed(0)\n    model = kind",
        ),
        (
            "trained at another length",
            "batches(100, entries(100 * 256))",
            "batches(100, entries(100 * 256, 8))",
        ),
        (
            "one scheme for all models",
            "trained(seed, Finder, scheme) for seed",
            "trained(seed, Finder, Rotary) for seed",
        ),
        (
            "asked at one length only",
            "[share_right(m, n) for n in lengths] for m in of]",
            "[share_right(m, 16) for n in lengths] for m in of]",
        ),
        (
            "the lowest called the median",
            "{statistics.median(found):.2f} ({min(found):.2f}-",
            "{min(found):.2f} ({statistics.median(found):.2f}-",
        ),
        (
            "maps of another seed's model",
            "model = models[scheme][0]",
            "model = models[scheme][1]",
        ),
        (
            "the maps' titles exchanged",
            '    titles=["Sinusoids", "Rotary", "ALiBi"],',
            '    titles=["Sinusoids", "ALiBi", "Rotary"],',
        ),
        (
            "entries and letters exchanged beside the maps",
            'xlabel="Entries",\n    ylabel="Letter asked for"',
            'xlabel="Letter asked for",\n    ylabel="Entries"',
        ),
        (
            "the weight on the first entry with the letter",
            "last = (has_it * np.arange(1, n + 1)).argmax(axis=1)",
            "last = (has_it * np.arange(n, 0, -1)).argmax(axis=1)",
        ),
        (
            "hands that turn faster in longer texts",
            "    return omega / factor\n",
            "    return omega * factor\n",
        ),
        (
            "the base multiplied by the factor alone",
            "factor ** (d / (d - 2))",
            "factor",
        ),
        (
            "kept and slowed parts exchanged",
            "return kept * omega + (1 - kept) * omega / factor",
            "return (1 - kept) * omega + kept * omega / factor",
        ),
        (
            "frequencies not put back",
            "    model.scheme.frequencies = omega\n",
            "",
        ),
        (
            "stretched by one factor for all lengths",
            "way(omega, n / 16)",
            "way(omega, 4)",
        ),
        (
            "outputs turned on, not back",
            "return rotate(Y, -positions, omega) if back else Y",
            "return rotate(Y, positions, omega) if back else Y",
        ),
        (
            "W_v reordered as well",
            "for part, kept in (other.W_q, model.W_q), (other.W_k, model.W_k):",
            "for part, kept in zip(\n            (other.W_q, other.W_k, other.W_v), (model.W_q, model.W_k, model.W_v)\n        ):",
        ),
        (
            "inputs reordered, not outputs",
            "part.weight.set_data(kept.weight.data()[order])",
            "part.weight.set_data(kept.weight.data()[:, order])",
        ),
        (
            "the gradient of the letters' table",
            "model.scheme.vectors.weight.grad()",
            "model.letter.weight.grad()",
        ),
        (
            "two layers without a mask",
            "X = X + layer(X, X, X, causal=True)",
            "X = X + layer(X, X, X)",
        ),
        (
            "the last entry asked, not the question",
            "return self.output(X[:, -1:])",
            "return self.output(X[:, -2:-1])",
        ),
    ],
    "paddle": [
        (
            "turned clockwise",
            "return d2l.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)",
            "return d2l.stack([x * cos + y * sin, y * cos - x * sin], axis=-1).flatten(-2)",
        ),
        (
            "neighbours for halves",
            "x, y = X.chunk(2, axis=-1)",
            "x, y = X[..., ::2], X[..., 1::2]",
        ),
        (
            "frequencies that fall twice as fast",
            "return base ** (-d2l.arange(0, d, 2) / d)",
            "return base ** (-d2l.arange(0, d, 2) / (d / 2))",
        ),
        (
            "only the keys turned",
            "q = self.scheme.turn(self.W_q(question), here)",
            "q = self.W_q(question)",
        ),
        (
            "values turned as well",
            "return self.output(self.attention_weights @ self.W_v(X))",
            "v = self.scheme.turn(self.W_v(X), there)\n        return self.output(self.attention_weights @ v)",
        ),
        (
            "the question asked before the text",
            "there, here = d2l.arange(n), d2l.tensor([n])",
            "there, here = d2l.arange(1, n + 1), d2l.tensor([0])",
        ),
        (
            "sinusoids added twice",
            "k = self.scheme.turn(self.W_k(X), there)",
            "k = self.scheme.turn(self.W_k(self.scheme.add(X, there)), there)",
        ),
        (
            "the sine where the cosine belongs",
            "d2l.stack([angles.sin(), angles.cos()], axis=-1)",
            "d2l.stack([angles.cos(), angles.sin()], axis=-1)",
        ),
        (
            "a slope twice as steep",
            "return -distances / 2",
            "return -distances * 2",
        ),
        (
            "slopes that double from head to head",
            "bias = -slopes.reshape([8, 1, 1]) * ",
            "bias = -slopes.flip(0).reshape([8, 1, 1]) * ",
        ),
        (
            "far distances not clipped but counted anew",
            "rows = distances.clip(max=len(self.vectors.weight)) - 1",
            "rows = (distances - 1) % len(self.vectors.weight)",
        ),
        (
            "the table's scores not divided by the root of d",
            "return paddle.matmul(q, vectors, transpose_y=True) / math.sqrt(q.shape[-1])",
            "return paddle.matmul(q, vectors, transpose_y=True)",
        ),
        (
            "the logarithm of the whole distance",
            "math.log(distance / near) / math.log(far / near)",
            "math.log(distance) / math.log(far)",
        ),
        (
            "the first digit that a letter had",
            "last = paddle.where(letters == asked, d2l.arange(n), -1).max(axis=1, keepdim=True)",
            "last = paddle.where(letters == asked, d2l.arange(n), n).min(axis=1, keepdim=True)",
        ),
        (
            "one seed for all five",
            "    paddle.seed(seed)\n    model = kind(",
            "    paddle.seed(0)\n    model = kind(",
        ),
        (
            "one scheme for all models",
            "scheme: [trained(seed, Finder, scheme) for seed in range(5)]",
            "scheme: [trained(seed, Finder, ALiBi) for seed in range(5)]",
        ),
        (
            "trained on texts of another length",
            "*given, answers = entries(256)\n        loss",
            "*given, answers = entries(64, 64)\n        loss",
        ),
        (
            "the step not taken",
            "        optimizer.step()\n",
            "",
        ),
        (
            "the base multiplied by the factor itself",
            "base=10000 * factor ** (d / (d - 2))",
            "base=10000 * factor",
        ),
        (
            "pairs slowed from one turn on",
            "def by_parts(omega, factor, low=1 / 4, high=2):",
            "def by_parts(omega, factor, low=1 / 4, high=1):",
        ),
        (
            "one way to stretch for all",
            "model.scheme.frequencies = way(omega, n / 16)",
            "model.scheme.frequencies = linear(omega, n / 16)",
        ),
        (
            "frequencies not put back",
            "    model.scheme.frequencies = omega\n    return share",
            "    return share",
        ),
        (
            "the maximum called the median",
            'f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"',
            'f"{max(found):.2f} ({min(found):.2f}-{statistics.median(found):.2f})"',
        ),
        (
            "weight on all entries with the letter and on the last exchanged",
            "return [on_all, weights.take_along_axis(last, axis=1).mean()]",
            "return [weights.take_along_axis(last, axis=1).mean(), on_all]",
        ),
        (
            "keys not reordered",
            "for part in other.W_q, other.W_k:",
            "for part in (other.W_q,):",
        ),
        (
            "rows reordered, not columns",
            "part.weight.set_value(part.weight[:, order])",
            "part.weight.set_value(part.weight[order])",
        ),
        (
            "new weights in the other layout",
            "    other.set_state_dict(model.state_dict())\n",
            "",
        ),
        (
            "the gradient of another table",
            "model.scheme.vectors.weight.grad",
            "model.digit.weight.grad",
        ),
        (
            "the causal mask left out of the two layers",
            "X = X + layer(X, X, X, causal=True)",
            "X = X + layer(X, X, X)",
        ),
        (
            "past the end, ALiBi's map called rotary's",
            'titles=["Rotary"]',
            'titles=["ALiBi"]',
        ),
        (
            "heads' titles in the order of other slopes",
            'titles=["Slope 1/2", "Slope 1/8", "Slope 1/128"],',
            'titles=["Slope 1/128", "Slope 1/8", "Slope 1/2"],',
        ),
    ],
    "mlx": [
        (
            "hands that turn by 15 degrees",
            "math.radians(30 * position)",
            "math.radians(15 * position)",
        ),
        (
            "no causal mask",
            "attention(alike, alike, first, causal=causal)",
            "attention(alike, alike, first)",
        ),
        (
            "distances clipped on one side",
            "min(max(i - j, -3), 3)",
            "min(i - j, 3)",
        ),
        (
            "buckets that grow by the wrong factor",
            "math.log(distance / near) / math.log(far / near)",
            "math.log(distance / near) / math.log(far)",
        ),
        (
            "ALiBi with another slope",
            "return -distances / 2",
            "return -distances / 4",
        ),
        (
            "a bias that favours what is far",
            "bias = -slopes[:, None, None] * distances",
            "bias = slopes[:, None, None] * distances",
        ),
        (
            "one seed for all five",
            "    mx.random.seed(seed)\n    model = kind",
            "    mx.random.seed(0)\n    model = kind",
        ),
        (
            "one scheme for all models",
            "trained(seed, Finder, scheme) for seed",
            "trained(seed, Finder, Rotary) for seed",
        ),
        (
            "the highest called the lowest",
            "({min(found):.2f}-{max(found):.2f})",
            "({max(found):.2f}-{min(found):.2f})",
        ),
        (
            "hands that turn faster",
            "    return omega / factor\n",
            "    return omega * factor\n",
        ),
        (
            "the base multiplied by the factor alone",
            "factor ** (d / (d - 2))",
            "factor",
        ),
        (
            "the parts exchanged",
            "return kept * omega + (1 - kept) * omega / factor",
            "return (1 - kept) * omega + kept * omega / factor",
        ),
        (
            "turns counted on 32 positions",
            "turns = 16 * omega / (2 * math.pi)",
            "turns = 32 * omega / (2 * math.pi)",
        ),
        (
            "two layers without a mask",
            "X = X + layer(X, X, X, causal=True)",
            "X = X + layer(X, X, X)",
        ),
        (
            "a row of the table too far",
            "rows = mx.minimum(distances, len(self.vectors.weight)) - 1",
            "rows = mx.minimum(distances, len(self.vectors.weight) - 1)",
        ),
        (
            "maps of another seed's model",
            "models[scheme][0]",
            "models[scheme][1]",
        ),
    ],
    "djl": [
        (
            "a hand that turns the other way",
            "new double[] {x * cos - y * sin, x * sin + y * cos}",
            "new double[] {x * cos + y * sin, y * cos - x * sin}",
        ),
        (
            "the sum without the position of the key",
            "query.add(p_i).dot(key.add(p_j))",
            "query.add(p_i).dot(key)",
        ),
        (
            "pairs turned in opposite senses",
            "NDArray first = x.mul(cos).sub(y.mul(sin)), second = x.mul(sin).add(y.mul(cos));",
            "NDArray first = x.mul(cos).add(y.mul(sin)), second = x.mul(sin).add(y.mul(cos));",
        ),
        (
            "neighbours that are not neighbours",
            'NDArray x = X.get("..., ::2"), y = X.get("..., 1::2");',
            'long half = X.getShape().getLastDimension() / 2;\n    NDArray x = X.get("..., :{}", half), y = X.get("..., {}:", half);',
        ),
        (
            "frequencies of half the width",
            "NDArrays.pow(base, manager.arange(0f, d, 2f).div(-d))",
            "NDArrays.pow(base, manager.arange(0f, d, 2f).div(-d / 2))",
        ),
        (
            "frequencies without the factor 2",
            "NDArrays.pow(base, manager.arange(0f, d, 2f).div(-d))",
            "NDArrays.pow(base, manager.arange(0f, d / 2, 1f).div(-d))",
        ),
        (
            "every position the first",
            'var angles = positions.expandDims(1).mul(frequencies);\n    NDArray cos = angles.cos(), sin = angles.sin();\n    NDArray x = X.get("..., ::2")',
            'var angles = positions.zerosLike().add(1).expandDims(1).mul(frequencies);\n    NDArray cos = angles.cos(), sin = angles.sin();\n    NDArray x = X.get("..., ::2")',
        ),
        (
            "the spread from the mean",
            "diagonal.max().sub(diagonal.min())",
            "diagonal.max().sub(diagonal.mean())",
        ),
        (
            "the layouts' order the other way round",
            "{0, 2, 4, 6, 1, 3, 5, 7}",
            "{1, 3, 5, 7, 0, 2, 4, 6}",
        ),
        (
            "far keys preferred",
            "slopes.reshape(8, 1, 1).mul(distances).neg()",
            "slopes.reshape(8, 1, 1).mul(distances)",
        ),
        (
            "the logarithm of the wrong ratio",
            "Math.log((double) far / near)",
            "Math.log((double) far)",
        ),
        (
            "buckets shared too soon",
            "bucket(each, 8, 16)",
            "bucket(each, 8, 8)",
        ),
        (
            "the digit that the letter had first",
            "letters.eq(asked).mul(manager.arange(1, n + 1)).argMax(1)",
            "letters.eq(asked).mul(manager.arange(n, 0, -1)).argMax(1)",
        ),
        (
            "the question in the last entry's place",
            "letters.getManager().arange(n, n + 1)",
            "letters.getManager().arange(n - 1, n)",
        ),
        (
            "only the query turned",
            "scheme.turn(evaluate(W_k, X), there)",
            "evaluate(W_k, X)",
        ),
        (
            "values turned as well",
            "attentionWeights.matMul(evaluate(W_v, X))",
            "attentionWeights.matMul(scheme.turn(evaluate(W_v, X), there))",
        ),
        (
            "sinusoids added to the entries alone",
            "var question = scheme.add(evaluate(letter, asked), here);",
            "var question = evaluate(letter, asked);",
        ),
        (
            "scores that grow with distance",
            "return distances.div(-2);",
            "return distances.div(2);",
        ),
        (
            "the table's row off by one",
            "distances.minimum(reach).sub(1)",
            "distances.minimum(reach - 1)",
        ),
        (
            "distances not clipped to the trained ones",
            "distances.minimum(reach).sub(1)",
            "distances.sub(1).mod(reach)",
        ),
        (
            "the table's scores not divided by the root",
            "return scaledDot(q, evaluate(vectors, distances.minimum(reach).sub(1)));",
            "return q.matMul(evaluate(vectors, distances.minimum(reach).sub(1)).transpose());",
        ),
        (
            "trained at another length",
            "error(model, entries(scratch, 256, 16))",
            "error(model, entries(scratch, 256, 32))",
        ),
        (
            "tested on the length that was trained",
            "entries(scratch, 100, n)",
            "entries(scratch, 100, 16)",
        ),
        (
            "one seed for all five",
            "trained(seed, new Finder(scheme.get()))",
            "trained(0, new Finder(scheme.get()))",
        ),
        (
            "one scheme for all models",
            "trained(seed, new Finder(scheme.get()))",
            "trained(seed, new Finder(new ALiBi()))",
        ),
        (
            "the lowest called the median",
            "double low = found[0], median = found[2], high = found[4];",
            "double low = found[2], median = found[0], high = found[4];",
        ),
        (
            "bars in another curve's place",
            "xs.add(new double[] {lengths[at] + j, lengths[at] + j});",
            "xs.add(new double[] {lengths[at] - j, lengths[at] - j});",
        ),
        (
            "the last model's map for all",
            "var model = models.get(scheme).get(0);",
            "var model = models.get(ALiBi.class).get(0);",
        ),
        (
            "entries and letters exchanged beside the maps",
            '.xlabel("Entries")\n        .ylabel("Letter asked for")',
            '.xlabel("Letter asked for")\n        .ylabel("Entries")',
        ),
        (
            "the maps' titles in another order",
            '.titles("Sinusoids", "Rotary", "ALiBi")',
            '.titles("ALiBi", "Rotary", "Sinusoids")',
        ),
        (
            "the weight on all entries",
            "weights.mul(hasIt).sum()",
            "weights.sum()",
        ),
        (
            "interpolation the wrong way",
            "linear = (omega, factor) -> omega.div(factor);",
            "linear = (omega, factor) -> omega.mul(factor);",
        ),
        (
            "the base times the factor alone",
            "10000 * Math.pow(factor, d / (d - 2.0))",
            "10000 * factor",
        ),
        (
            "fast hands slowed, slow ones left alone",
            "kept.mul(omega).add(kept.neg().add(1).mul(omega).div(factor))",
            "kept.neg().add(1).mul(omega).add(kept.mul(omega).div(factor))",
        ),
        (
            "frequencies not put back",
            "    rotary.frequencies = omega;\n    return share;",
            "    return share;",
        ),
        (
            "values turned in any case",
            "matMul(turned ? moved : X)",
            "matMul(moved)",
        ),
        (
            "outputs turned on instead of back",
            "rotate(Y, positions.neg(), omega)",
            "rotate(Y, positions, omega)",
        ),
        (
            "values reordered as well",
            "List.of(other.W_q, other.W_k)",
            "List.of(other.W_q, other.W_k, other.W_v)",
        ),
        (
            "the model's own weights reordered",
            "weight(part).get(order).copyTo(weight(part));",
            "weight(part).get(order).copyTo(weight(part == other.W_q ? model.W_q : model.W_k));",
        ),
        (
            "the gradient of the digits for that of the distances",
            "var vectors = table.vectors.getParameters()",
            "var vectors = model.digit.getParameters()",
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
            "one seed for all models of two layers",
            "trained(seed, new TwoLayers())",
            "trained(0, new TwoLayers())",
        ),
    ],
}

# By the notebooks' folder: an edit by hand, a bad merge, a run of something else.
IN_NOTEBOOKS = {
    "en/pytorch": [
        ("a score changed", printed("turned-by-hand", "4.73", "4.37")),
        ("code edited and not run", source("rotate", "y * cos", "y * sin")),
    ],
    "zh-TW/jax": [("a cell missing", missing("bucket"))],
    "en/djl": [("a number changed", printed("mask-alone", "0.333", "0.334"))],
}
