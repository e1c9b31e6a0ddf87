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
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens), and perhaps an offset, an integer
 * scalar: the position of X's first step, 0 without it. It lets a decoder that goes token by token
 * start where it left off. Output: an array of X's shape and dtype.
 *
 * <p>The table is a constant, in double precision: it is not trained, and not among the parameters
 * that are saved, so that weights load into a layer with another {@code maxLen}.
 */
public final class PositionalEncoding extends AbstractBlock {

    private final int numHiddens;
    private final int maxLen;
    private final double[] table;
    private final float dropout;

    /** An encoding of 1000 positions. */
    public PositionalEncoding(int numHiddens, float dropout) {
        this(numHiddens, dropout, 1000);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the width of the vectors
     * @param dropout the share of the sum's numbers dropped in training
     * @param maxLen how many positions there are, from 0 to maxLen - 1
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

    /** Row by row: column 2j holds sin(i / 10000^(2j/d)), column 2j + 1 the cosine. */
    private static double[] sinusoids(int maxLen, int numHiddens) {
        double[] table = new double[maxLen * numHiddens];
        Arrays.setAll(
                table,
                at -> {
                    int position = at / numHiddens;
                    int column = at % numHiddens;
                    double angle =
                            position * Math.pow(10000, -(column / 2 * 2) / (double) numHiddens);
                    return column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
                });
        return table;
    }

    /**
     * The table of all positions.
     *
     * @return P, row by row: number {@code i * numHiddens + column} belongs to position i
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
        int from = checkedOffset(inputs, numHiddens, maxLen) * numHiddens;
        NDArray X = inputs.head();
        long steps = X.getShape().get(1);
        double[] rows = Arrays.copyOfRange(table, from, from + (int) steps * numHiddens);
        // Made for each call: it follows X's device, which need not be its manager's, and dtype.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray P = scratch.create(rows, new Shape(steps, numHiddens));
            NDArray encoded = X.add(P.toType(X.getDataType(), false));
            return Dropout.dropout(encoded, dropout, training);
        }
    }

    /** The position of X's first step; X fits, and its positions are among the table's. */
    static int checkedOffset(NDList inputs, int numHiddens, int maxLen) {
        Checks.count(inputs, 1, 2, "X and perhaps an offset");
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
            String got = "dtype " + Checks.name(offset.getDataType());
            got += ", shape " + offset.getShape();
            throw Checks.fault("offset", got, "an integer of at least 0");
        }
        return offset.toArray()[0].longValue();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
