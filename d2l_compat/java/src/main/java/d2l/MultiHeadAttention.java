package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import ai.djl.training.initializer.XavierInitializer;
import ai.djl.training.initializer.XavierInitializer.FactorType;
import ai.djl.training.initializer.XavierInitializer.RandomType;
import ai.djl.util.PairList;

/**
 * Multi-head attention, Vaswani et al. (2017), section 3.2.2.
 *
 * <p>Inputs: queries (batch, queries, querySize), keys (batch, keys, keySize), values (batch,
 * keys, valueSize), and optionally the valid lengths, as in {@link MaskedSoftmax}. Output: (batch,
 * queries, numHiddens). Each head works in numHiddens / numHeads dimensions, its slice of the
 * projections {@code W_q}, {@code W_k}, {@code W_v}; {@code W_o} mixes the heads' results.
 *
 * <p>The {@code params} of a call may be those of {@link DotProductAttention}, with a {@code
 * scoreBias} of shape (queries, keys), (heads, queries, keys) or (batch, heads, queries, keys).
 */
public final class MultiHeadAttention extends AbstractBlock {

    // From -1/√n to 1/√n, as in PyTorch. DJL's default range is wider: with it, the softmax would
    // start nearly one-hot.
    static final Initializer INITIALIZER =
            new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);

    // The names are those of the formulas.
    public final Linear W_q;
    public final Linear W_k;
    public final Linear W_v;
    public final Linear W_o;
    public final DotProductAttention attention;

    private final int numHiddens;
    private final int numHeads;
    // Those of queries, keys and values; 0 means inferred from the first input.
    private final long[] inputSizes;

    /**
     * Makes a layer that infers the sizes of queries, keys and values from its first input.
     *
     * @param numHiddens the width of the output, which is divided among the heads
     * @param numHeads the number of heads
     * @param dropout the share of attention weights dropped in training
     * @throws IllegalArgumentException if numHiddens is not a multiple of numHeads
     */
    public MultiHeadAttention(int numHiddens, int numHeads, float dropout) {
        this(numHiddens, numHeads, dropout, false);
    }

    /** Makes the same layer, with biases in the projections if {@code bias} is true. */
    public MultiHeadAttention(int numHiddens, int numHeads, float dropout, boolean bias) {
        this(new long[3], numHiddens, numHeads, new DotProductAttention(dropout), bias);
    }

    /** Makes the same layer, with another attention in the heads, which has its own dropout. */
    public MultiHeadAttention(int numHiddens, int numHeads, DotProductAttention attention) {
        this(new long[3], numHiddens, numHeads, attention, false);
    }

    /** Makes a layer with fixed sizes of keys, queries and values. */
    public MultiHeadAttention(
            int keySize,
            int querySize,
            int valueSize,
            int numHiddens,
            int numHeads,
            float dropout) {
        this(keySize, querySize, valueSize, numHiddens, numHeads, dropout, false);
    }

    /** Makes the same layer, with biases in the projections if {@code bias} is true. */
    public MultiHeadAttention(
            int keySize,
            int querySize,
            int valueSize,
            int numHiddens,
            int numHeads,
            float dropout,
            boolean bias) {
        this(
                new long[] {querySize, keySize, valueSize},
                numHiddens,
                numHeads,
                new DotProductAttention(dropout),
                bias);
        Checks.integer("keySize", keySize, 1);
        Checks.integer("querySize", querySize, 1);
        Checks.integer("valueSize", valueSize, 1);
    }

    private MultiHeadAttention(
            long[] inputSizes,
            int numHiddens,
            int numHeads,
            DotProductAttention attention,
            boolean bias) {
        Checks.heads(numHiddens, numHeads);
        this.inputSizes = inputSizes;
        this.numHiddens = numHiddens;
        this.numHeads = numHeads;
        this.attention = addChildBlock("attention", attention);
        W_q = addChildBlock("W_q", projection(numHiddens, bias));
        W_k = addChildBlock("W_k", projection(numHiddens, bias));
        W_v = addChildBlock("W_v", projection(numHiddens, bias));
        W_o = addChildBlock("W_o", projection(numHiddens, bias));
        setInitializer(INITIALIZER, Parameter.Type.WEIGHT);
    }

    static Linear projection(int numHiddens, boolean bias) {
        return Linear.builder().setUnits(numHiddens).optBias(bias).build();
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Checks.integer("shapes of queries, keys and values", inputShapes.length, 3);
        Checks.attentionInputs(inputShapes[0], inputShapes[1], inputShapes[2]);
        checkSizes(inputShapes[0], inputShapes[1], inputShapes[2]);
        W_q.initialize(manager, dataType, inputShapes[0]);
        W_k.initialize(manager, dataType, inputShapes[1]);
        W_v.initialize(manager, dataType, inputShapes[2]);
        W_o.initialize(manager, dataType, getOutputShapes(inputShapes));
        attention.initialize(manager, dataType, inputShapes);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        DotProductAttention.checkInputs(inputs);
        NDArray queries = inputs.get(0);
        NDArray keys = inputs.get(1);
        NDArray values = inputs.get(2);
        checkSizes(queries.getShape(), keys.getShape(), values.getShape());
        Masks masks = Masks.of(params);
        masks.check(queries, keys, numHeads);
        NDList headInputs =
                new NDList(
                        transposeQkv(project(W_q, queries, parameterStore, training)),
                        transposeQkv(project(W_k, keys, parameterStore, training)),
                        transposeQkv(project(W_v, values, parameterStore, training)));
        if (inputs.size() > 3) {
            NDArray validLens = inputs.get(3);
            // Check it before it is repeated for the heads, so that messages show the caller's shape.
            Checks.validLens(validLens, queries.getShape().get(0), queries.getShape().get(1));
            NDArray lensPerHead = validLens.repeat(0, numHeads);
            lensPerHead.attach(queries.getManager()); // its own manager may stay open longer
            headInputs.add(lensPerHead);
        }
        PairList<String, Object> headMasks =
                masks.headParams(queries.getShape().get(0), numHeads, queries.getManager());
        NDArray pooled = attention.forward(parameterStore, headInputs, training, headMasks).head();
        return new NDList(project(W_o, transposeOutput(pooled), parameterStore, training));
    }

    static NDArray project(
            Linear projection, NDArray X, ParameterStore parameterStore, boolean training) {
        return projection.forward(parameterStore, new NDList(X), training).head();
    }

    private void checkSizes(Shape... inputs) {
        String[] names = {"queries", "keys", "values"};
        Linear[] projections = {W_q, W_k, W_v};
        for (int i = 0; i < names.length; i++) {
            Parameter weight = projections[i].getDirectParameters().get("weight");
            long size = weight.isInitialized() ? weight.getShape().get(1) : inputSizes[i];
            if (size > 0) {
                Checks.lastDimension(names[i], inputs[i], size);
            }
        }
    }

    /** Reshapes (batch, steps, numHiddens) to (batch * heads, steps, numHiddens / heads). */
    public NDArray transposeQkv(NDArray X) {
        Checks.rank("X", X.getShape(), "batch", "steps", "numHiddens");
        Checks.lastDimension("X", X.getShape(), numHiddens);
        long batch = X.getShape().get(0);
        long steps = X.getShape().get(1);
        long headSize = numHiddens / numHeads;
        return X.reshape(batch, steps, numHeads, headSize)
                .swapAxes(1, 2)
                .reshape(batch * numHeads, steps, headSize);
    }

    /** Reverses {@link #transposeQkv}, to (batch, steps, numHiddens). */
    public NDArray transposeOutput(NDArray X) {
        Checks.headRows(X.getShape(), numHeads);
        Checks.lastDimension("X", X.getShape(), numHiddens / numHeads);
        long batch = X.getShape().get(0) / numHeads;
        long steps = X.getShape().get(1);
        long headSize = numHiddens / numHeads;
        return X.reshape(batch, numHeads, steps, headSize)
                .swapAxes(1, 2)
                .reshape(batch, steps, numHiddens);
    }

    /**
     * Returns the last call's weights, before dropout, as in {@link
     * DotProductAttention#attentionWeights}.
     *
     * @return an array of shape (batch, heads, queries, keys), valid as long as the manager of that
     *     call's queries
     * @throws IllegalStateException before the first call
     */
    public NDArray attentionWeights() {
        NDArray weights = attention.attentionWeights();
        Shape shape = weights.getShape();
        return weights.reshape(shape.get(0) / numHeads, numHeads, shape.get(1), shape.get(2));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        Shape queries = inputShapes[0];
        return new Shape[] {new Shape(queries.get(0), queries.get(1), numHiddens)};
    }
}
