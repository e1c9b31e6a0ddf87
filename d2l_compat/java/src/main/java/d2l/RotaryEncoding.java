package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Rotary position embedding of queries and keys: RoPE, Su et al. (2021).
 *
 * <p>The dot product of a rotated query and a rotated key depends on their positions only through
 * the distance between them. Dimensions are rotated in pairs: (x, y) of pair l at position i
 * becomes (x cos a - y sin a, x sin a + y cos a), with a = positionScale * i * base^(-2l/d) radians
 * and d = numHiddens.
 *
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens) or (batch * heads, steps,
 * numHiddens), and optionally an offset, as in {@link PositionalEncoding}. Output: an array of X's
 * shape and dtype.
 *
 * <p>The table is a constant in double precision, neither trained nor saved.
 */
public final class RotaryEncoding extends AbstractBlock {

    /** The pairing of dimensions; weights trained with one layout do not fit the other. */
    public enum Layout {
        /** 0 and 1, 2 and 3, and so on, as in the paper. */
        INTERLEAVED,
        /** 0 and d/2, 1 and d/2 + 1, and so on. */
        HALVES
    }

    static final double BASE = 10000;

    private final int numHiddens;
    private final int maxLen;
    private final Layout layout;
    private final double[] table;

    /** Makes a layer with 1000 positions, and the paper's base and layout. */
    public RotaryEncoding(int numHiddens) {
        this(numHiddens, 1000);
    }

    /** Makes a layer with the paper's base and layout. */
    public RotaryEncoding(int numHiddens, int maxLen) {
        this(numHiddens, maxLen, BASE, Layout.INTERLEAVED, 1);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the even width of queries and keys; in multi-head attention, of one head
     * @param maxLen the number of positions
     * @param base a number above 1; the larger, the faster the angles fall from pair to pair
     * @param layout the pairing of dimensions
     * @param positionScale multiplies the positions: with 0.5, twice as many fit in the same range
     *     of angles (position interpolation, Chen et al., 2023)
     * @throws IllegalArgumentException for an argument out of range
     */
    public RotaryEncoding(
            int numHiddens, int maxLen, double base, Layout layout, double positionScale) {
        Checks.rotary(numHiddens, maxLen, base, layout, positionScale);
        this.numHiddens = numHiddens;
        this.maxLen = maxLen;
        this.layout = layout;
        double[] positions =
                IntStream.range(0, maxLen).mapToDouble(i -> positionScale * i).toArray();
        this.table = rotations(positions, numHiddens, base);
    }

    /** Returns the cosines by position (row) and pair (column), row by row, then the sines. */
    static double[] rotations(double[] positions, int numHiddens, double base) {
        int numPairs = numHiddens / 2;
        int numCosines = positions.length * numPairs;
        double[] table = new double[2 * numCosines];
        for (int i = 0; i < numCosines; i++) {
            int pair = i % numPairs;
            double speed = Math.pow(base, -(2 * pair) / (double) numHiddens);
            double angle = positions[i / numPairs] * speed;
            table[i] = Math.cos(angle);
            table[numCosines + i] = Math.sin(angle);
        }
        return table;
    }

    /**
     * Returns the table of all positions.
     *
     * @return P, shape (2, maxLen, numHiddens / 2), row by row: first the cosines, then the sines
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
        int offset = PositionalEncoding.checkedOffset(inputs, numHiddens, maxLen);
        NDArray X = inputs.head();
        int steps = (int) X.getShape().get(1);
        // Made in each call, with X's dtype and on X's device, which may differ from its manager's.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray cos = tableRows(offset, steps, scratch, X);
            NDArray sin = tableRows(maxLen + offset, steps, scratch, X);
            return new NDList(rotate(X, cos, sin, layout));
        }
    }

    /** Rotates the pairs of the last axis; the cosines and sines have one number for each pair. */
    static NDArray rotate(NDArray X, NDArray cos, NDArray sin, Layout layout) {
        boolean isHalves = layout == Layout.HALVES;
        int last = X.getShape().dimension() - 1;
        long numPairs = X.getShape().get(last) / 2;
        // The features split into two axes; `axis` is the one along which the two of a pair lie.
        int axis = isHalves ? last : last + 1;
        Shape pairs = isHalves ? new Shape(2, numPairs) : new Shape(numPairs, 2);
        NDList parts = X.reshape(X.getShape().slice(0, last).addAll(pairs)).split(2, axis);
        NDArray x = parts.get(0).squeeze(axis);
        NDArray y = parts.get(1).squeeze(axis);
        NDArray first = x.mul(cos).sub(y.mul(sin));
        NDArray second = x.mul(sin).add(y.mul(cos));
        return first.stack(second, axis).reshape(X.getShape());
    }

    /** Returns rows of the table, of which the first {@code maxLen} are cosines. */
    private NDArray tableRows(int firstRow, int numRows, NDManager manager, NDArray X) {
        int numPairs = numHiddens / 2;
        int start = firstRow * numPairs;
        double[] rows = Arrays.copyOfRange(table, start, start + numRows * numPairs);
        return create(rows, new Shape(numRows, numPairs), manager, X);
    }

    /** Makes an array of X's dtype. */
    static NDArray create(double[] numbers, Shape shape, NDManager manager, NDArray X) {
        // Copy the array even if it is double already: DJL keeps the rows in Java's memory and may
        // release them before the gradient is computed.
        return manager.create(numbers, shape).toType(X.getDataType(), false).duplicate();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
