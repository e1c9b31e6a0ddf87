package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

/**
 * The blocks of attention within a window, so that its cost grows with the length and not with its
 * square.
 *
 * <p>Query i of n is at the position m - n + i, of m keys, and sees the {@code window} keys that
 * end with its own. Queries and keys are padded in front, to whole blocks. A block is at least as
 * long as the window, so a block of queries needs its own block of keys and the one before.
 *
 * @param numQueries the number of queries
 * @param numKeys the number of keys, at least that of queries
 * @param window how many keys a query sees, at its own and before it
 * @param numSinks how many of the first keys are seen by all later queries as well
 */
record Blocks(int numQueries, int numKeys, int window, int numSinks) {

    private static final int MIN_SIZE = 64; // smaller blocks are not faster

    /**
     * Chooses blocks for queries and keys without an axis of heads.
     *
     * @return null without a window, or if all keys are hardly more than two blocks of them
     */
    static Blocks choose(NDArray queries, NDArray keys, Integer window) {
        int numQueries = (int) queries.getShape().get(1);
        int numKeys = (int) keys.getShape().get(1);
        if (window == null || numQueries == 0 || numKeys <= 2L * Math.max(window, MIN_SIZE)) {
            return null;
        }
        return new Blocks(numQueries, numKeys, window, 0);
    }

    /** Returns the number of queries in a block. */
    int size() {
        return Math.max(window, MIN_SIZE);
    }

    /** Returns the number of blocks of queries; there is one block of keys more. */
    int count() {
        return (numQueries + size() - 1) / size();
    }

    private int queryPadding() {
        return count() * size() - numQueries;
    }

    /** Returns the padding of the keys; if negative, how many keys in front no window reaches. */
    private int keyPadding() {
        return (count() + 1) * size() - numKeys;
    }

    /** Reshapes (batch, queries, features) to (batch, blocks, size, features). */
    NDArray splitQueries(NDArray X) {
        Shape shape = X.getShape();
        return pad(X, queryPadding()).reshape(shape.get(0), count(), size(), shape.get(2));
    }

    /** Reverses {@link #splitQueries}. */
    NDArray joinQueries(NDArray X) {
        Shape shape = X.getShape();
        return X.reshape(shape.get(0), (long) count() * size(), shape.get(3))
                .get(":, {}:", queryPadding());
    }

    /**
     * Gathers each block's keys or values: the sinks, the block before, its own.
     *
     * @return an array of shape (batch, blocks, numSinks + 2 * size, features)
     */
    NDArray splitKeys(NDArray X) {
        long batch = X.getShape().get(0);
        long features = X.getShape().get(2);
        NDArray reached =
                keyPadding() < 0 ? X.get(":, {}:", -keyPadding()) : pad(X, keyPadding());
        NDArray split = reached.reshape(batch, count() + 1, size(), features);
        NDArray before = split.get(":, :{}", count());
        NDArray pairs = before.concat(split.get(":, 1:"), 2);
        if (numSinks == 0) {
            return pairs;
        }
        NDArray sinks = X.get(":, :{}", numSinks).expandDims(1);
        return sinks.broadcast(batch, count(), numSinks, features).concat(pairs, 2);
    }

    /** Gathers each block's part of (..., queries, keys), as (..., blocks, size, 2 * size). */
    NDArray splitBias(NDArray scoreBias, NDManager manager) {
        int axes = scoreBias.getShape().dimension();
        Shape rows = scoreBias.getShape().slice(0, axes - 2).add(count()).add(size());
        // One operation, since each slice would have a gradient of the whole bias's size.
        NDArray keys = keyPositions(manager).clip(0, numKeys - 1).toType(DataType.INT64, false);
        return pad(scoreBias, queryPadding())
                .reshape(rows.add(numKeys))
                .gather(keys.broadcast(rows.add(2L * size())), axes);
    }

    /**
     * Returns an array that is true for the hidden keys.
     *
     * @param lens lengths of shape (batch, queries or 1, 1); null means all keys
     * @return an array of shape (batch or 1, blocks, size, numSinks + 2 * size)
     */
    NDArray isHidden(NDArray lens, NDManager manager) {
        NDArray queries =
                manager.arange(numKeys - count() * size(), numKeys).reshape(count(), size(), 1);
        NDArray keys = keyPositions(manager);
        NDArray distances = queries.sub(keys);
        NDArray isOutside = distances.lt(0).logicalOr(distances.gte(window));
        NDArray isHidden = isOutside.logicalOr(keys.lt(0)).expandDims(0);
        if (lens != null) {
            boolean isPerQuery = lens.getShape().get(1) == numQueries;
            NDArray blockLens = isPerQuery ? splitQueries(lens) : lens.expandDims(1);
            isHidden = isHidden.logicalOr(keys.gte(blockLens));
        }
        if (numSinks == 0) {
            return isHidden;
        }
        NDArray isNear = queries.sub(manager.arange(numSinks)).lt(window);
        return isNear.expandDims(0).concat(isHidden, 3);
    }

    /** Returns the keys of each block, shape (blocks, 1, 2 * size); negative in the padding. */
    private NDArray keyPositions(NDManager manager) {
        NDArray starts = manager.arange(count()).mul(size()).sub(keyPadding());
        return starts.reshape(count(), 1, 1).add(manager.arange(2 * size()));
    }

    /** Adds rows of zeros before the others. */
    private static NDArray pad(NDArray X, int numRows) {
        return numRows == 0 ? X : X.pad(new Shape(0, 0, numRows, 0), 0);
    }
}
