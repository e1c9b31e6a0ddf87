// A translator's forward pass, in plain JavaScript: the norm first, exact GELU, and a cache for the decoder.
"use strict";
{
  const { mathematics } = d2lLive;
  const EPSILON = 1e-5; // of LayerNorm
  const START = 1; // the token that a translation begins with
  const FULL_STOP = 2;
  const MAX_STEPS = 10;

  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const plus = (a, b) => a.map((x, k) => x + b[k]);

  /** Return the error function, by a series of positive terms. */
  const erf = (x) => {
    if (Math.abs(x) > 6) return Math.sign(x);
    let [total, term] = [x, x];
    for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(total); odd += 2) {
      term *= (2 * x * x) / odd;
      total += term;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
  };
  const gelu = (x) => (x * (1 + erf(x / Math.SQRT2))) / 2;

  /** Return the matrices by name. A byte for the scale of each row comes first, then a byte for each number. */
  const decode = ({ shapes, data }) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const all = Object.entries(shapes);
    let scale = 0;
    let number = sum(all.map(([, [rows]]) => rows));
    const readRow = (columns) => {
      const unit = 2 ** (-bytes[scale++] / 16);
      return Array.from({ length: columns }, () => unit * ((bytes[number++] << 24) >> 24));
    };
    const readMatrix = ([rows, columns]) => Array.from({ length: rows }, () => readRow(columns));
    return Object.fromEntries(all.map(([name, shape]) => [name, readMatrix(shape)]));
  };

  /**
   * Create the translator.
   * @returns {(source: number[]) => {token: number, probs: number[], weights: number[][]}[]} translate a sentence: for
   *   each word written its token, the probabilities of all words, and each head's weights of the words read
   */
  const create = (stored) => {
    const W = decode(stored);
    const multiply = (name, x) => mathematics.apply(W[`${name}.weight`], x);
    const dense = (name, x) => plus(multiply(name, x), W[`${name}.bias`][0]);
    const embed = (name, token, place) => plus(W[`${name}.weight`][token], W["position.weight"][place]);
    const normalize = (name, x) => {
      const mean = sum(x) / x.length;
      const variance = sum(x.map((number) => (number - mean) ** 2)) / x.length;
      const [[gamma], [beta]] = [W[`${name}.weight`], W[`${name}.bias`]];
      return x.map((number, k) => ((number - mean) / Math.sqrt(variance + EPSILON)) * gamma[k] + beta[k]);
    };

    const remember = (name, X) => ({
      keys: X.map((x) => multiply(`${name}.W_k`, x)),
      values: X.map((x) => multiply(`${name}.W_v`, x)),
    });
    const append = (cache, { keys, values }) => {
      cache.keys.push(...keys);
      cache.values.push(...values);
    };
    /** Let one word look at all keys; return what it finds, and each head's weights. */
    const attend = (name, x, { keys, values }) => {
      const query = multiply(`${name}.W_q`, x);
      const size = query.length / stored.heads;
      const heads = Array.from({ length: stored.heads }, (_, head) => {
        const cut = (row) => row.slice(head * size, (head + 1) * size);
        const { weights, outputs } = mathematics.attention([cut(query)], keys.map(cut), values.map(cut));
        return { weights: weights[0], output: outputs[0] };
      });
      const found = multiply(`${name}.W_o`, heads.flatMap(({ output }) => output));
      return { found, weights: heads.map(({ weights }) => weights) };
    };
    const feed = (part, x) => {
      const hidden = dense(`${part}.network.dense1`, normalize(`${part}.norm3`, x));
      return plus(x, dense(`${part}.network.dense2`, hidden.map(gelu)));
    };

    const read = (source) => {
      const X = source.map((token, place) => embed("source_embedding", token, place));
      const normalized = X.map((x) => normalize("encoder.norm1", x));
      const memory = remember("encoder.attention", normalized);
      const looked = X.map((x, k) => plus(x, attend("encoder.attention", normalized[k], memory).found));
      return looked.map((x) => normalize("encoder_norm", feed("encoder", x)));
    };
    /** Return the most probable next word, its probabilities, and where the decoder looked. */
    const write = (token, place, cache, memory) => {
      let x = embed("target_embedding", token, place);
      const normalized = normalize("decoder.norm1", x);
      append(cache, remember("decoder.attention", [normalized]));
      x = plus(x, attend("decoder.attention", normalized, cache).found);
      const { found, weights } = attend("decoder.cross_attention", normalize("decoder.norm2", x), memory);
      x = normalize("decoder_norm", feed("decoder", plus(x, found)));
      const probs = mathematics.softmax(dense("output", x));
      return { token: probs.indexOf(Math.max(...probs)), probs, weights };
    };

    return (source) => {
      const memory = remember("decoder.cross_attention", read(source));
      const cache = { keys: [], values: [] };
      const steps = [];
      while (steps.length < MAX_STEPS && steps.at(-1)?.token !== FULL_STOP) {
        steps.push(write(steps.at(-1)?.token ?? START, steps.length, cache, memory));
      }
      return steps;
    };
  };

  d2lLive.translator = { create, erf };
}
