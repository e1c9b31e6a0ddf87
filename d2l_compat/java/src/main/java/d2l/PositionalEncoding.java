package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.norm.Dropout;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.Arrays;

/**
 * Adds the sinusoidal positional encoding of Vaswani et al. (2017), section 3.5.
 *
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens), and optionally an offset, an
 * integer scalar: the position of X's first step, 0 by default. With it, a decoder that generates
 * token by token continues at its position. Output: an array of X's shape and dtype.
 *
 * <p>The table is a constant in double precision, neither trained nor saved, so that weights load
 * into a layer with another {@code maxLen}.
 */
public final class PositionalEncoding extends AbstractBlock {

    private final int numHiddens;
    private final int maxLen;
    private final double[] table;
    private final float dropout;

    /** Makes a layer with 1000 positions. */
    public PositionalEncoding(int numHiddens, float dropout) {
        this(numHiddens, dropout, 1000);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the width of the vectors
     * @param dropout the share of the output's numbers dropped in training
     * @param maxLen the number of positions
     */
    public PositionalEncoding(int numHiddens, float dropout, int maxLen) {
        Checks.dropout(dropout);
        Checks.integer("numHiddens", numHiddens, 1);
        Checks.integer("maxLen", maxLen, 1);
        Checks.tableSize(maxLen, numHiddens);
        this.numHiddens = numHiddens;
        this.maxLen = maxLen;
        this.table = sinusoids(maxLen, numHiddens);
        this.dropout = dropout;
    }

    /** Returns a table: sine and cosine of i / 10000^(2j/d) in row i, columns 2j and 2j + 1. */
    private static double[] sinusoids(int maxLen, int numHiddens) {
        double[] table = new double[maxLen * numHiddens];
        for (int i = 0; i < table.length; i++) {
            int position = i / numHiddens;
            int column = i % numHiddens;
            double angle = position * Math.pow(10000, -(column / 2 * 2) / (double) numHiddens);
            table[i] = column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
        }
        return table;
    }

    /**
     * Returns the table of all positions.
     *
     * @return P, row by row: position i begins at index {@code i * numHiddens}
     */
    public double[] P() {
        return table.clone();
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        int start = checkedOffset(inputs, numHiddens, maxLen) * numHiddens;
        NDArray X = inputs.head();
        long steps = X.getShape().get(1);
        double[] rows = Arrays.copyOfRange(table, start, start + (int) steps * numHiddens);
        // Made in each call, with X's dtype and on X's device, which may differ from its manager's.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray P = scratch.create(rows, new Shape(steps, numHiddens));
            NDArray encoded = X.add(P.toType(X.getDataType(), false));
            return Dropout.dropout(encoded, dropout, training);
        }
    }

    /** Checks X and its positions, and returns the position of its first step. */
    static int checkedOffset(NDList inputs, int numHiddens, int maxLen) {
        Checks.inputCount(inputs, 1, 2, "X and perhaps an offset");
        NDArray X = inputs.get(0);
        Checks.rank("X", X.getShape(), "batch", "steps", "features");
        Checks.lastDimension("X", X.getShape(), numHiddens);
        Checks.floating("X", X);
        long offset = inputs.size() > 1 ? offset(inputs.get(1)) : 0;
        Checks.positions(offset, X.getShape().get(1), maxLen);
        return (int) offset;
    }

    private static long offset(NDArray offset) {
        if (!offset.getDataType().isInteger() || offset.size() != 1) {
            String dtype = Checks.dtypeName(offset.getDataType());
            String got = "dtype %s, shape %s".formatted(dtype, offset.getShape());
            throw Checks.error("offset", got, "an integer of at least 0");
        }
        return offset.toArray()[0].longValue();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
