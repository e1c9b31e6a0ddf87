// Mathematics for live figures: pure functions of numbers and arrays, without a DOM.
"use strict";

globalThis.d2lLive ??= {};
{
  /** @typedef {number[]} Vector */
  /** @typedef {Vector[]} Matrix an array of rows */

  /** @type {(a: Vector, b: Vector) => number} */
  const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);

  /** @type {(A: Matrix, v: Vector) => Vector} */
  const apply = (A, v) => A.map((r) => dot(r, v));

  /** @type {(A: Matrix) => Matrix} */
  const transpose = (A) => A[0].map((_, k) => A.map((r) => r[k]));

  /** @type {(A: Matrix, B: Matrix) => Matrix} */
  const product = (A, B) => {
    const columns = transpose(B);
    return A.map((r) => apply(columns, r));
  };

  /** @type {(A: Matrix, B: Matrix) => Matrix} */
  const add = (A, B) => A.map((r, i) => r.map((x, k) => x + B[i][k]));

  /** @type {(scores: Vector) => Vector} */
  const softmax = (scores) => {
    const top = Math.max(...scores); // subtracted, so that no exponential overflows
    const powers = scores.map((s) => Math.exp(s - top));
    const total = powers.reduce((a, b) => a + b);
    return powers.map((p) => p / total);
  };

  /**
   * Compute scaled dot-product attention, softmax(Q K^T / sqrt(d)) V.
   * @type {(Q: Matrix, K: Matrix, V: Matrix) => {weights: Matrix, outputs: Matrix}}
   */
  const attention = (Q, K, V) => {
    const root = Math.sqrt(K[0].length);
    const weights = product(Q, transpose(K)).map((r) => softmax(r.map((s) => s / root)));
    return { weights, outputs: product(weights, V) };
  };

  /**
   * Return the largest absolute difference of two vectors, or of two matrices.
   * @type {(A: Vector | Matrix, B: Vector | Matrix) => number}
   */
  const difference = (A, B) => {
    const b = B.flat();
    return Math.max(...A.flat().map((x, k) => Math.abs(x - b[k])));
  };

  /**
   * Return a generator of uniform numbers in [0, 1), the same for the same seed (mulberry32).
   * @type {(seed: number) => () => number}
   */
  const generator = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };

  /**
   * Return a matrix of normally distributed numbers (Box-Muller).
   * @type {(random: () => number, rows: number, columns: number, deviation?: number) => Matrix}
   */
  const normal = (random, rows, columns, deviation = 1) => {
    const draw = () => deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Array.from({ length: rows }, () => Array.from({ length: columns }, draw));
  };

  /**
   * Return the numbers 0 to n - 1 in random order (Fisher-Yates).
   * @type {(random: () => number, n: number) => number[]}
   */
  const permutation = (random, n) => {
    const order = Array.from({ length: n }, (_, k) => k);
    for (let last = n - 1; last > 0; last--) {
      const k = Math.floor(random() * (last + 1));
      [order[k], order[last]] = [order[last], order[k]];
    }
    return order;
  };

  d2lLive.mathematics = {
    dot,
    apply,
    transpose,
    product,
    add,
    softmax,
    attention,
    difference,
    generator,
    normal,
    permutation,
  };
}
