package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.Arrays;
import java.util.stream.LongStream;

/** Softmax with a weight of exactly zero past a valid length. */
public final class MaskedSoftmax {

    private MaskedSoftmax() {}

    /**
     * Computes the softmax over the last axis, without a mask.
     *
     * @param X scores, floating point, shape (batch, queries, keys)
     * @return the weights, of X's shape and dtype
     */
    public static NDArray maskedSoftmax(NDArray X) {
        return maskedSoftmax(X, null);
    }

    /**
     * Computes the softmax over the first {@code validLens} entries of the last axis.
     *
     * @param X scores, floating point, shape (batch, queries, keys)
     * @param validLens integers from 0 to the number of keys, shape (batch), or (batch, queries)
     *     for one length per query; null means every key
     * @return weights of X's shape and dtype, exactly 0 past the valid length; each row sums to 1,
     *     or to 0 if the length is 0
     * @throws IllegalArgumentException for a wrong rank, shape, dtype or range
     */
    public static NDArray maskedSoftmax(NDArray X, NDArray validLens) {
        Checks.rank("X", X.getShape(), "batch", "queries", "keys");
        Checks.floating("X", X);
        return maskedSoftmax(X, validLens, new Masks(false, null, null));
    }

    /**
     * Returns the lengths, checked.
     *
     * @param scores the shape of the scores, (batch, queries, keys)
     * @return an array of shape (batch, 1 or queries, 1), on {@code manager}
     */
    static NDArray lens(NDArray validLens, Shape scores, NDManager manager) {
        long[] lengths = checkedLengths(validLens, scores);
        return manager.create(lengths, new Shape(scores.get(0), lengths.length / scores.get(0), 1));
    }

    /** Computes the masked softmax with the masks of an attention call too, if there are any. */
    static NDArray maskedSoftmax(NDArray X, NDArray validLens, Masks masks) {
        NDArray bias = masks.scoreBias();
        if (validLens == null && !masks.isCausal() && bias == null) {
            return X.softmax(-1);
        }
        NDManager manager = X.getManager();
        // Intermediate arrays, which are as large as the scores, are closed with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            scratch.tempAttachAll(X);
            NDArray weights = softmax(X, isHidden(validLens, masks, X), bias);
            weights.attach(manager);
            return weights;
        }
    }

    /**
     * Computes the softmax over the keys that neither {@code isHidden} nor the bias hides. All
     * intermediate arrays stay with X's manager.
     *
     * @param isHidden an array that is true for the hidden keys, and broadcast to X's shape
     * @param bias numbers added to X; null means none
     */
    static NDArray softmax(NDArray X, NDArray isHidden, NDArray bias) {
        NDArray isMasked = isHidden.broadcast(X.getShape());
        if (bias != null) {
            NDArray isHiddenByBias = bias.eq(Double.NEGATIVE_INFINITY);
            isHiddenByBias.attach(X.getManager()); // the bias's own manager may stay open longer
            isMasked = isHiddenByBias.logicalOr(isMasked);
        }
        NDArray scores = bias == null ? X : X.add(bias);
        // The lowest finite score, since the softmax of a row of -inf would be NaN.
        NDArray lowest = X.zerosLike().add(lowestFinite(X.getDataType()));
        NDArray softmax = NDArrays.where(isMasked, lowest, scores).softmax(-1);
        return NDArrays.where(isMasked, X.zerosLike(), softmax);
    }

    /** Returns an array that is true for the keys hidden by lengths, causal mask and window. */
    private static NDArray isHidden(NDArray validLens, Masks masks, NDArray X) {
        Shape shape = X.getShape();
        long numKeys = shape.get(2);
        boolean isPerQuery = validLens != null && validLens.getShape().dimension() == 2;
        long[] lengths = validLens == null ? allKeys(shape) : checkedLengths(validLens, shape);
        long lengthsPerExample = isPerQuery || masks.isCausal() ? shape.get(1) : 1;
        if (masks.isCausal()) {
            lengths = causalLengths(lengths, isPerQuery, shape);
        }
        // validLens may be on another device than X, and have another manager.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray lens = scratch.create(lengths, new Shape(shape.get(0), lengthsPerExample, 1));
            NDArray key = scratch.arange(0, (int) numKeys, 1, DataType.INT64);
            NDArray isHidden = key.gte(lens);
            if (masks.window() != null && masks.window() < numKeys) {
                int end = (int) numKeys - masks.window(); // how many keys the last query skips
                NDArray numSkipped = scratch.arange(end - (int) shape.get(1) + 1, end + 1);
                isHidden = isHidden.logicalOr(key.lt(numSkipped.expandDims(1)));
            }
            isHidden.attach(X.getManager());
            return isHidden;
        }
    }

    private static long[] allKeys(Shape scores) {
        long[] lengths = new long[(int) scores.get(0)];
        Arrays.fill(lengths, scores.get(2));
        return lengths;
    }

    private static long[] checkedLengths(NDArray validLens, Shape scores) {
        Checks.validLens(validLens, scores.get(0), scores.get(1));
        long[] lengths = toLongArray(validLens);
        LongStream.of(lengths).forEach(each -> Checks.lengthRange(each, scores.get(2), "keys"));
        return lengths;
    }

    /** Returns a length for each query, aligned so that the last query may see the last key. */
    private static long[] causalLengths(long[] lengths, boolean isPerQuery, Shape scores) {
        int numQueries = (int) scores.get(1);
        long firstLength = scores.get(2) - numQueries + 1;
        long[] causal = new long[(int) scores.get(0) * numQueries];
        for (int i = 0; i < causal.length; i++) {
            long length = lengths[isPerQuery ? i : i / numQueries];
            causal[i] = Math.min(length, firstLength + i % numQueries);
        }
        return causal;
    }

    static long[] toLongArray(NDArray integers) {
        try (NDArray longs = integers.toType(DataType.INT64, true)) {
            return longs.toLongArray();
        }
    }

    private static double lowestFinite(DataType type) {
        return switch (type) {
            case FLOAT64 -> -Double.MAX_VALUE;
            case FLOAT16 -> -65504;
            default -> -Float.MAX_VALUE;
        };
    }
}
