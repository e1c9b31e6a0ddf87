// The sinusoidal positional encoding: pure functions of numbers and arrays, without a DOM.
"use strict";
{
  /** @typedef {number[]} Vector */
  /** @typedef {Vector[]} Matrix an array of rows */

  /**
   * Return the frequency of each pair of columns, base^(-2j/d). With an odd d the last pair is only a sine.
   * @type {(d: number, base?: number) => Vector}
   */
  const frequencies = (d, base = 10000) =>
    Array.from({ length: Math.ceil(d / 2) }, (_, j) => base ** ((-2 * j) / d));

  /**
   * Return the pairs (sin, cos) of one position.
   * @type {(i: number, d: number, base?: number) => Matrix}
   */
  const pairs = (i, d, base) =>
    frequencies(d, base).map((omega) => [Math.sin(i * omega), Math.cos(i * omega)]);

  /**
   * Return the positional encoding of one position: sin, cos, sin, cos, ...
   * @type {(i: number, d: number, base?: number) => Vector}
   */
  const row = (i, d, base) => pairs(i, d, base).flat().slice(0, d);

  /**
   * Return the positional encoding P of the positions 0 to length - 1, one per row.
   * @type {(length: number, d: number, base?: number) => Matrix}
   */
  const matrix = (length, d, base) => Array.from({ length }, (_, i) => row(i, d, base));

  /**
   * Return the matrix that turns a pair (sin a, cos a) into (sin(a + angle), cos(a + angle)).
   * @type {(angle: number) => Matrix}
   */
  const rotation = (angle) => [
    [Math.cos(angle), Math.sin(angle)],
    [-Math.sin(angle), Math.cos(angle)],
  ];

  d2lLive.encoding = { frequencies, pairs, row, matrix, rotation };
}
