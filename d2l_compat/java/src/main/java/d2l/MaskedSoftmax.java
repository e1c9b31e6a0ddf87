package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

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
        if (validLens == null) {
            return X.softmax(-1);
        }
        NDArray masked = masked(validLens, X);
        // The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
        NDArray lowest = X.zerosLike().add(lowest(X.getDataType()));
        NDArray weights = NDArrays.where(masked, lowest, X).softmax(-1);
        return NDArrays.where(masked, X.zerosLike(), weights);
    }

    /** True for the keys past their length; shape (batch, queries, keys). */
    private static NDArray masked(NDArray validLens, NDArray X) {
        Shape shape = X.getShape();
        long numKeys = shape.get(2);
        Checks.validLens(validLens, shape.get(0), shape.get(1));
        long[] lengths = numbers(validLens);
        LongStream.of(lengths).forEach(length -> Checks.validLensRange(length, numKeys));
        long lensForEach = validLens.getShape().dimension() == 2 ? shape.get(1) : 1;
        // The lengths may be on another device than X, and live longer; so may X's manager.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray lens = scratch.create(lengths, new Shape(shape.get(0), lensForEach, 1));
            NDArray key = scratch.arange(0, (int) numKeys, 1, DataType.INT64);
            NDArray masked = key.gte(lens).broadcast(shape);
            masked.attach(X.getManager());
            return masked;
        }
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
