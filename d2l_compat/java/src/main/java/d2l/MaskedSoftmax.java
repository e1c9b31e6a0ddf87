package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.Arrays;
import java.util.stream.LongStream;

/** Softmax in which what is past a valid length gets no weight at all. */
public final class MaskedSoftmax {

    private MaskedSoftmax() {}

    /**
     * Softmax over the last axis, over all of it.
     *
     * @param X scores, floating point, shape (batch, queries, keys)
     * @return the weights, of X's shape and dtype
     */
    public static NDArray maskedSoftmax(NDArray X) {
        return maskedSoftmax(X, null);
    }

    /**
     * Softmax over the last axis, over the first {@code validLens} entries alone.
     *
     * @param X scores, floating point, shape (batch, queries, keys)
     * @param validLens integers from 0 to the number of keys, shape (batch), or (batch, queries)
     *     for a length of each query's own; null takes every key
     * @return weights of X's shape and dtype. Past a length they are exactly 0; over a row they
     *     sum to 1, or to 0 where the length is 0
     * @throws IllegalArgumentException for another rank, shape, dtype or range
     */
    public static NDArray maskedSoftmax(NDArray X, NDArray validLens) {
        Checks.rank("X", X.getShape(), "batch", "queries", "keys");
        Checks.floating("X", X);
        return maskedSoftmax(X, validLens, new Masks(false, null));
    }

    /** The same, of scores that have perhaps a bias, and over what a causal mask leaves. */
    static NDArray maskedSoftmax(NDArray X, NDArray validLens, Masks masks) {
        NDArray bias = masks.scoreBias();
        if (validLens == null && !masks.causal() && bias == null) {
            return X.softmax(-1);
        }
        NDManager manager = X.getManager();
        // What is needed on the way is as large as the scores: it goes with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            scratch.tempAttachAll(X);
            NDArray masked = masked(validLens, masks, X);
            NDArray scores = bias == null ? X : X.add(bias);
            // The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is
            // NaN.
            NDArray lowest = X.zerosLike().add(lowest(X.getDataType()));
            NDArray softmax = NDArrays.where(masked, lowest, scores).softmax(-1);
            NDArray weights = NDArrays.where(masked, X.zerosLike(), softmax);
            weights.attach(manager);
            return weights;
        }
    }

    /** True for the keys that are not seen; shape (batch, queries, keys). */
    private static NDArray masked(NDArray validLens, Masks masks, NDArray X) {
        Shape shape = X.getShape();
        long numKeys = shape.get(2);
        boolean perQuery = validLens != null && validLens.getShape().dimension() == 2;
        long[] lengths = validLens == null ? everyKey(shape) : checked(validLens, shape);
        long lensForEach = perQuery || masks.causal() ? shape.get(1) : 1;
        if (masks.causal()) {
            lengths = causal(lengths, perQuery, shape);
        }
        // The lengths may be on another device than X, and live longer; so may X's manager.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray lens = scratch.create(lengths, new Shape(shape.get(0), lensForEach, 1));
            NDArray key = scratch.arange(0, (int) numKeys, 1, DataType.INT64);
            NDArray masked = key.gte(lens).broadcast(shape);
            if (masks.scoreBias() != null) {
                NDArray hidden = masks.scoreBias().eq(Double.NEGATIVE_INFINITY);
                hidden.attach(scratch);
                masked = hidden.logicalOr(masked);
            }
            masked.attach(X.getManager());
            return masked;
        }
    }

    private static long[] everyKey(Shape scores) {
        long[] lengths = new long[(int) scores.get(0)];
        Arrays.fill(lengths, scores.get(2));
        return lengths;
    }

    private static long[] checked(NDArray validLens, Shape scores) {
        Checks.validLens(validLens, scores.get(0), scores.get(1));
        long[] lengths = numbers(validLens);
        LongStream.of(lengths).forEach(each -> Checks.validLensRange(each, scores.get(2)));
        return lengths;
    }

    /** A length for each query: the last one sees the last key. */
    private static long[] causal(long[] lengths, boolean perQuery, Shape scores) {
        int numQueries = (int) scores.get(1);
        long first = scores.get(2) - numQueries + 1;
        long[] perEach = new long[(int) scores.get(0) * numQueries];
        Arrays.setAll(
                perEach,
                at ->
                        Math.min(
                                lengths[perQuery ? at : at / numQueries],
                                first + at % numQueries));
        return perEach;
    }

    private static long[] numbers(NDArray integers) {
        try (NDArray longs = integers.toType(DataType.INT64, true)) {
            return longs.toLongArray();
        }
    }

    private static double lowest(DataType type) {
        return switch (type) {
            case FLOAT64 -> -Double.MAX_VALUE;
            case FLOAT16 -> -65504;
            default -> -Float.MAX_VALUE;
        };
    }
}
