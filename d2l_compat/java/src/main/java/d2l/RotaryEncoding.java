package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.Arrays;

/**
 * Turns queries and keys by their positions: rotary position embedding, Su et al. (2021).
 *
 * <p>The dot product of a turned query and a turned key depends, beside the two themselves, on the
 * distance of their positions alone. Dimensions are turned in pairs: (x, y) of pair l at position i
 * becomes (x cos a - y sin a, x sin a + y cos a), a = positionScale i base^(-2l/d) in radians, with
 * d = numHiddens.
 *
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens), where the batch may be one of
 * heads, and perhaps an offset, as in {@link PositionalEncoding}. Output: an array of X's shape and
 * dtype.
 *
 * <p>The table is a constant, in double precision: it is not trained, and not among the parameters
 * that are saved.
 */
public final class RotaryEncoding extends AbstractBlock {

    /** Which dimensions are a pair; weights trained with one layout do not fit the other. */
    public enum Layout {
        /** 0 and 1, 2 and 3, and so on, as in the paper. */
        INTERLEAVED,
        /** 0 and d/2, 1 and d/2 + 1, and so on. */
        HALVES
    }

    private final int numHiddens;
    private final int maxLen;
    private final Layout layout;
    private final double[] table;

    /** An encoding of 1000 positions, as in the paper. */
    public RotaryEncoding(int numHiddens) {
        this(numHiddens, 1000);
    }

    /** An encoding of so many positions, as in the paper. */
    public RotaryEncoding(int numHiddens, int maxLen) {
        this(numHiddens, maxLen, 10000, Layout.INTERLEAVED, 1);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the even width of what is turned, which in multi-head attention is a head's
     * @param maxLen how many positions there are, from 0 to maxLen - 1
     * @param base what the angles fall with from pair to pair, above 1
     * @param layout which dimensions are a pair
     * @param positionScale multiplies the positions: with 0.5, twice as many lie in the range of
     *     angles (position interpolation, Chen et al., 2023)
     * @throws IllegalArgumentException for arguments of a wrong range
     */
    public RotaryEncoding(
            int numHiddens, int maxLen, double base, Layout layout, double positionScale) {
        Checks.rotary(numHiddens, maxLen, base, layout, positionScale);
        this.numHiddens = numHiddens;
        this.maxLen = maxLen;
        this.layout = layout;
        this.table = rotations(numHiddens, maxLen, base, positionScale);
    }

    /** Position by position, a number for each pair: first all cosines, then all sines. */
    private static double[] rotations(
            int numHiddens, int maxLen, double base, double positionScale) {
        int pairs = numHiddens / 2;
        int sines = maxLen * pairs;
        double[] table = new double[2 * sines];
        for (int at = 0; at < sines; at++) {
            double speed = Math.pow(base, -(at % pairs * 2) / (double) numHiddens);
            double angle = positionScale * (at / pairs) * speed;
            table[at] = Math.cos(angle);
            table[sines + at] = Math.sin(angle);
        }
        return table;
    }

    /**
     * The table of all positions.
     *
     * @return P, of shape (2, maxLen, numHiddens / 2), row by row: first the cosines
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
        long batch = X.getShape().get(0);
        long steps = X.getShape().get(1);
        boolean halves = layout == Layout.HALVES;
        int pairs = numHiddens / 2;
        // An axis for the pairs, and one for the two in each.
        int two = halves ? 2 : 3;
        NDArray apart =
                halves ? X.reshape(batch, steps, 2, pairs) : X.reshape(batch, steps, pairs, 2);
        NDList both = apart.split(2, two);
        NDArray x = both.get(0).squeeze(two);
        NDArray y = both.get(1).squeeze(two);
        // Made for each call: it follows X's device, which need not be its manager's, and dtype.
        try (NDManager scratch = X.getManager().newSubManager(X.getDevice())) {
            NDArray cos = rows(0, offset, (int) steps, scratch, X);
            NDArray sin = rows(maxLen, offset, (int) steps, scratch, X);
            NDArray first = x.mul(cos).sub(y.mul(sin));
            NDArray second = x.mul(sin).add(y.mul(cos));
            return new NDList(first.stack(second, two).reshape(X.getShape()));
        }
    }

    /** Cosines from row 0 on, sines from row {@code maxLen} on. */
    private NDArray rows(int start, int offset, int steps, NDManager manager, NDArray X) {
        int pairs = numHiddens / 2;
        int from = (start + offset) * pairs;
        double[] rows = Arrays.copyOfRange(table, from, from + steps * pairs);
        NDArray P = manager.create(rows, new Shape(steps, pairs));
        // A copy, also of doubles: DJL has rows in Java's memory, where something else may stand
        // when the gradient is taken.
        return P.toType(X.getDataType(), false).duplicate();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
