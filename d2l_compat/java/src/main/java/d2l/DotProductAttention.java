package d2l;

import static d2l.MaskedSoftmax.maskedSoftmax;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.norm.Dropout;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.function.Supplier;

/**
 * Scaled dot-product attention, softmax(QKᵀ/√d) V, of Vaswani et al. (2017), section 3.2.1.
 *
 * <p>Inputs: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v), all of
 * one floating-point dtype, and optionally the valid lengths, as in {@link MaskedSoftmax}. Output:
 * (batch, queries, v). The result of a query without a valid key is the zero vector. Padding must
 * still be finite, because zero times NaN is NaN.
 *
 * <p>Three entries in a call's {@code params} may hide keys as well. With {@code causal}, true or
 * false, the last query sees every key, the one before it all but the last, and so on. {@code
 * scoreBias}, an array of the queries' dtype, shape (queries, keys) or (batch, queries, keys), is
 * added to the scores; a key whose bias is minus infinity is hidden. With a {@code window}, an
 * Integer of at least 1, a query sees only as many keys, those that end with its own: the mask is
 * causal, and time and memory grow with queries * window.
 *
 * <pre>{@code
 * var params = new PairList<String, Object>(Map.of("causal", true, "scoreBias", bias));
 * attention.forward(parameterStore, new NDList(queries, keys, values), training, params);
 * }</pre>
 */
public class DotProductAttention extends AbstractBlock {

    private final float dropout;
    private Supplier<NDArray> weights;

    /**
     * Makes the layer.
     *
     * @param dropout the share of weights dropped in training
     */
    public DotProductAttention(float dropout) {
        Checks.dropout(dropout);
        this.dropout = dropout;
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        checkInputs(inputs);
        NDArray queries = inputs.get(0);
        NDArray keys = inputs.get(1);
        NDArray values = inputs.get(2);
        Checks.lastDimension("keys", keys.getShape(), queries.getShape().getLastDimension());
        Masks masks = Masks.of(params);
        masks.check(queries, keys);
        NDArray validLens = inputs.size() > 3 ? inputs.get(3) : null;
        Supplier<NDArray> computeWeights =
                () -> {
                    try (NDArray scores = scores(queries, keys)) {
                        return maskedSoftmax(scores, validLens, masks);
                    }
                };
        Blocks blocks = Blocks.choose(queries, keys, masks.window());
        if (blocks != null) {
            NDArray pooled = attendInBlocks(inputs, masks.scoreBias(), blocks, training);
            weights = computeWeights;
            return new NDList(pooled);
        }
        NDArray computed = computeWeights.get();
        weights = () -> computed;
        NDArray dropped = Dropout.dropout(computed, dropout, training).head();
        return new NDList(dropped.matMul(values));
    }

    /**
     * Computes attention within a window.
     *
     * @param inputs queries, keys, values and perhaps valid lengths, as in a call
     * @param scoreBias a bias as in a call; null means none
     */
    NDArray attendInBlocks(NDList inputs, NDArray scoreBias, Blocks blocks, boolean training) {
        NDArray queries = inputs.get(0);
        NDArray keys = inputs.get(1);
        NDManager manager = queries.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(queries.getDevice())) {
            NDList arrays = new NDList(queries, keys, inputs.get(2));
            if (scoreBias != null) {
                arrays.add(scoreBias);
            }
            for (NDArray array : arrays) {
                if (array.getManager() != scratch) { // the same array may be queries and keys
                    scratch.tempAttachAll(array);
                }
            }
            NDArray lens = null;
            if (inputs.size() > 3) {
                Shape queryShape = queries.getShape();
                Shape shape = new Shape(queryShape.get(0), queryShape.get(1), blocks.numKeys());
                lens = MaskedSoftmax.lens(inputs.get(3), shape, scratch);
            }
            NDArray bias = scoreBias == null ? null : blocks.splitBias(scoreBias, scratch);
            NDArray scores = scores(blocks.splitQueries(queries), blocks.splitKeys(keys));
            NDArray isHidden = blocks.isHidden(lens, scratch);
            NDArray blockWeights = MaskedSoftmax.softmax(scores, isHidden, bias);
            NDArray dropped = Dropout.dropout(blockWeights, dropout, training).head();
            NDArray pooled = dropped.matMul(blocks.splitKeys(inputs.get(2)));
            NDArray output = blocks.joinQueries(pooled);
            output.attach(manager);
            return output;
        }
    }

    /** Returns the products of queries and keys over the root of d; the axes are the last two. */
    private static NDArray scores(NDArray queries, NDArray keys) {
        int axes = keys.getShape().dimension();
        // The products, which are as large as the scores, are released here.
        try (NDArray products = queries.matMul(keys.swapAxes(axes - 2, axes - 1))) {
            return divideByRoot(products, queries.getShape().getLastDimension());
        }
    }

    private static NDArray divideByRoot(NDArray scores, long d) {
        // Not scores.div(Math.sqrt(d)): DJL keeps that number in Java's memory and releases it
        // before the gradient is computed.
        try (NDManager scratch = scores.getManager().newSubManager(scores.getDevice())) {
            NDArray one = scratch.ones(new Shape(1), scores.getDataType());
            return scores.div(one.mul(Math.sqrt(d)));
        }
    }

    static void checkInputs(NDList inputs) {
        Checks.inputCount(inputs, 3, 4, "queries, keys, values and perhaps validLens");
        NDArray[] arrays = {inputs.get(0), inputs.get(1), inputs.get(2)};
        Checks.attentionInputs(arrays[0].getShape(), arrays[1].getShape(), arrays[2].getShape());
        Checks.floating("queries, keys and values", arrays);
    }

    /**
     * Returns the last call's weights, before dropout. If that call had a window and computed in
     * blocks, they are computed here, from its arrays, which must still be open and unchanged.
     *
     * @return an array of shape (batch, queries, keys), valid as long as the manager of that call's
     *     queries
     * @throws IllegalStateException before the first call
     */
    public NDArray attentionWeights() {
        if (weights == null) {
            throw new IllegalStateException(
                    "attentionWeights: there are none yet; call the layer first");
        }
        NDArray computed = weights.get();
        weights = () -> computed;
        return computed;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        Shape queries = inputShapes[0];
        return new Shape[] {
            new Shape(queries.get(0), queries.get(1), inputShapes[2].getLastDimension())
        };
    }
}
