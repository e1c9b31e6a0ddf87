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

/**
 * Scaled dot-product attention, softmax(QKᵀ/√d) V, of Vaswani et al. (2017), section 3.2.1.
 *
 * <p>Inputs: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v), all of
 * one floating-point dtype, and optionally the valid lengths, as in {@link MaskedSoftmax}. Output:
 * (batch, queries, v). The result of a query without a valid key is the zero vector. Padding must
 * still be finite, because zero times NaN is NaN.
 *
 * <p>Two entries in a call's {@code params} may hide keys as well. With {@code causal}, true or
 * false, the last query sees every key, the one before it all but the last, and so on. {@code
 * scoreBias}, an array of the queries' dtype, shape (queries, keys) or (batch, queries, keys), is
 * added to the scores; a key whose bias is minus infinity is hidden.
 *
 * <pre>{@code
 * var params = new PairList<String, Object>(Map.of("causal", true, "scoreBias", bias));
 * attention.forward(parameterStore, new NDList(queries, keys, values), training, params);
 * }</pre>
 */
public class DotProductAttention extends AbstractBlock {

    private final float dropout;
    private NDArray weights;

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
        long d = queries.getShape().getLastDimension();
        Checks.lastDimension("keys", keys.getShape(), d);
        Masks masks = Masks.of(params);
        masks.check(queries, keys);
        NDArray validLens = inputs.size() > 3 ? inputs.get(3) : null;
        // Products and scores, which are as large as the weights, are released here.
        try (NDArray products = queries.matMul(keys.swapAxes(1, 2));
                NDArray scores = divideByRoot(products, d)) {
            weights = maskedSoftmax(scores, validLens, masks);
        }
        NDArray dropped = Dropout.dropout(weights, dropout, training).head();
        return new NDList(dropped.matMul(values));
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
     * Returns the last call's weights, before dropout.
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
        return weights;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        Shape queries = inputShapes[0];
        return new Shape[] {
            new Shape(queries.get(0), queries.get(1), inputShapes[2].getLastDimension())
        };
    }
}
