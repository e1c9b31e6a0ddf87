package d2l;

import static d2l.MultiHeadAttention.project;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * Self-attention in which a token sees itself and what came before it, with a cache for generating.
 *
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens), and optionally the valid lengths,
 * integers of shape (batch), which count the real tokens of each example. Padding comes after them,
 * and what is computed for it has no meaning. Output: an array of X's shape and dtype.
 *
 * <p>Without a cache, time and memory of a layer with a window grow with steps * window.
 *
 * <p>The {@code params} of a call may have a {@code cache}, a {@link KVCache}. X then has the next
 * tokens of each text: they also see the cached ones, and are added to them. The results are those
 * of one call with all tokens. A call that is refused leaves the cache as it was.
 *
 * <pre>{@code
 * try (KVCache cache = attention.makeCache(2, 100)) {
 *     var params = new PairList<String, Object>(Map.of("cache", cache));
 *     attention.forward(parameterStore, new NDList(X), training, params);
 * }
 * }</pre>
 */
public final class CausalSelfAttention extends AbstractBlock {

    // The names are those of the formulas.
    public final Linear W_q;
    public final Linear W_k;
    public final Linear W_v;
    public final Linear W_o;

    private final DotProductAttention attention;
    private final int numHiddens;
    private final int numHeads;
    private final int numKvHeads;
    private final int headSize;
    private final boolean rope;
    private final Integer window;
    private final int numSinks;

    /** Makes a layer with as many heads of keys as of queries, and neither positions nor window. */
    public CausalSelfAttention(int numHiddens, int numHeads, float dropout) {
        this(numHiddens, numHeads, dropout, false);
    }

    /** Makes the same layer, with biases in the projections if {@code bias} is true. */
    public CausalSelfAttention(int numHiddens, int numHeads, float dropout, boolean bias) {
        this(numHiddens, numHeads, dropout, bias, numHeads, false, null, 0);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the width of input and output, which is divided among the heads
     * @param numHeads the number of heads of queries
     * @param dropout the share of attention weights dropped in training
     * @param bias whether the projections have biases
     * @param numKvHeads the number of heads of keys and values, a divisor of numHeads: query head h
     *     reads key head h / (numHeads / numKvHeads). With fewer than numHeads this is
     *     grouped-query attention (Ainslie et al., 2023), with one multi-query attention (Shazeer,
     *     2019)
     * @param rope whether queries and keys are rotated by their positions ({@link RotaryEncoding},
     *     interleaved)
     * @param window how many tokens a token sees, itself among them; null means all
     * @param numSinks with a window, how many of the first tokens are seen as well (Xiao et al.,
     *     2024)
     * @throws IllegalArgumentException for an argument out of range
     */
    public CausalSelfAttention(
            int numHiddens,
            int numHeads,
            float dropout,
            boolean bias,
            int numKvHeads,
            boolean rope,
            Integer window,
            int numSinks) {
        Checks.causalSizes(numHiddens, numHeads, numKvHeads, rope, window, numSinks);
        this.numHiddens = numHiddens;
        this.numHeads = numHeads;
        this.numKvHeads = numKvHeads;
        this.headSize = numHiddens / numHeads;
        this.rope = rope;
        this.window = window;
        this.numSinks = numSinks;
        attention = addChildBlock("attention", new DotProductAttention(dropout));
        W_q = addChildBlock("W_q", MultiHeadAttention.projection(numHiddens, bias));
        W_k = addChildBlock("W_k", MultiHeadAttention.projection(numKvHeads * headSize, bias));
        W_v = addChildBlock("W_v", MultiHeadAttention.projection(numKvHeads * headSize, bias));
        W_o = addChildBlock("W_o", MultiHeadAttention.projection(numHiddens, bias));
        setInitializer(MultiHeadAttention.INITIALIZER, Parameter.Type.WEIGHT);
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Checks.texts(inputShapes[0], numHiddens);
        for (Linear projection : new Linear[] {W_q, W_k, W_v, W_o}) {
            projection.initialize(manager, dataType, inputShapes[0]);
        }
        attention.initialize(manager, dataType, inputShapes);
    }

    /**
     * Returns an empty cache of the weights' dtype, which is closed with their manager, if not
     * earlier.
     *
     * @param batchSize the number of texts
     * @param maxLen the largest number of tokens of a text; with a window it may have any number
     */
    public KVCache makeCache(int batchSize, int maxLen) {
        NDArray weight = W_k.getDirectParameters().get("weight").getArray();
        return new KVCache(
                weight.getManager(),
                weight.getDataType(),
                batchSize,
                numKvHeads,
                headSize,
                maxLen,
                window,
                numSinks);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        Checks.inputCount(inputs, 1, 2, "X and perhaps validLens");
        NDArray X = inputs.head();
        Checks.texts(X, numHiddens, W_q);
        int batch = (int) X.getShape().get(0);
        int steps = (int) X.getShape().get(1);
        long[] lens = Checks.textLens(inputs.size() > 1 ? inputs.get(1) : null, batch, steps);
        KVCache cache = findCache(params);
        if (cache != null) {
            cache.checkFits(batch, numKvHeads, headSize, window, numSinks);
        }
        long[] lengths = cache == null ? new long[batch] : cache.lengths();
        long[][] positions = new long[batch][];
        Arrays.setAll(
                positions,
                row -> KVCache.newPositions(lengths[row], lens[row], steps).toArray());
        NDManager manager = X.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            scratch.tempAttachAll(X);
            NDArray queries = splitHeads(project(W_q, X, parameterStore, training));
            NDArray keys = splitHeads(project(W_k, X, parameterStore, training));
            NDArray values = splitHeads(project(W_v, X, parameterStore, training));
            if (rope) {
                NDArray rotations = rotations(positions, X, scratch);
                queries = rotate(queries, rotations);
                keys = rotate(keys, rotations);
            }
            NDList heads =
                    new NDList(
                            queries.swapAxes(1, 2), keys.swapAxes(1, 2), values.swapAxes(1, 2));
            NDArray pooled;
            if (cache == null) {
                pooled = attend(parameterStore, heads, training);
            } else {
                KVCache.Tokens tokens = cache.append(heads.get(1), heads.get(2), lens);
                pooled = attend(parameterStore, heads.head(), positions, tokens, training);
            }
            NDArray merged =
                    pooled.reshape(batch, numHeads, steps, headSize)
                            .swapAxes(1, 2)
                            .reshape(X.getShape());
            NDArray output = project(W_o, merged, parameterStore, training);
            output.attach(manager);
            return new NDList(output);
        }
    }

    /** Attends without a cache. Padding comes last, so that the causal mask hides it. */
    private NDArray attend(ParameterStore parameterStore, NDList heads, boolean training) {
        long rows = heads.head().getShape().get(0) * numHeads;
        int steps = (int) heads.head().getShape().get(2);
        NDList inputs = new NDList();
        for (NDArray each : heads) {
            // Each head of queries gets the keys and values that it reads.
            long group = numHeads / each.getShape().get(1);
            NDArray perHead = group == 1 ? each : each.repeat(1, group);
            inputs.add(perHead.reshape(rows, steps, headSize));
        }
        if (window != null && window < steps) {
            Blocks blocks = new Blocks(steps, steps, window, Math.min(numSinks, steps));
            return attention.attendInBlocks(inputs, null, blocks, training);
        }
        var masks = new PairList<String, Object>(Map.of("causal", true));
        return attention.forward(parameterStore, inputs, training, masks).head();
    }

    /** Attends to the tokens of a cache. */
    private NDArray attend(
            ParameterStore parameterStore,
            NDArray queries,
            long[][] positions,
            KVCache.Tokens tokens,
            boolean training) {
        // The heads of queries that read the same head of keys follow one another.
        long group = numHeads / numKvHeads;
        long steps = queries.getShape().get(2);
        long rows = queries.getShape().get(0) * numKvHeads;
        long numKeys = tokens.keys().getShape().get(2);
        NDList headInputs =
                new NDList(
                        queries.reshape(rows, group * steps, headSize),
                        tokens.keys().reshape(rows, numKeys, headSize),
                        tokens.values().reshape(rows, numKeys, headSize));
        NDArray bias = bias(positions, tokens.positions(), numKeys, queries);
        var masks = new PairList<String, Object>(Map.of("scoreBias", bias));
        return attention.forward(parameterStore, headInputs, training, masks).head();
    }

    private static KVCache findCache(PairList<String, Object> params) {
        KVCache cache = null;
        for (var param : params == null ? new PairList<String, Object>() : params) {
            if (!param.getKey().equals("cache")) {
                throw Checks.error("params", param.getKey(), "cache");
            }
            cache = Checks.instance("cache", param.getValue(), KVCache.class, "a KVCache");
        }
        return cache;
    }

    /** Reshapes (batch, steps, heads * headSize) to (batch, steps, heads, headSize). */
    private NDArray splitHeads(NDArray X) {
        Shape shape = X.getShape();
        return X.reshape(shape.get(0), shape.get(1), shape.get(2) / headSize, headSize);
    }

    /** Returns the cosines and sines of positions, shape (2, batch, steps, 1, headSize / 2). */
    private NDArray rotations(long[][] positions, NDArray X, NDManager manager) {
        double[] flat =
                Arrays.stream(positions).flatMapToLong(LongStream::of).asDoubleStream().toArray();
        double[] table = RotaryEncoding.rotations(flat, headSize, RotaryEncoding.BASE);
        Shape shape =
                new Shape(2, X.getShape().get(0), X.getShape().get(1), 1, headSize / 2);
        return RotaryEncoding.create(table, shape, manager, X);
    }

    private static NDArray rotate(NDArray X, NDArray rotations) {
        return RotaryEncoding.rotate(
                X, rotations.get(0), rotations.get(1), RotaryEncoding.Layout.INTERLEAVED);
    }

    /** Returns a bias for the heads: 0 where a query sees a key, else minus infinity. */
    private NDArray bias(long[][] queries, long[][] keys, long numKeys, NDArray X) {
        long batch = X.getShape().get(0);
        long steps = X.getShape().get(2);
        double[] bias = new double[(int) (batch * steps * numKeys)];
        int i = 0;
        for (int row = 0; row < batch; row++) {
            for (long query : queries[row]) {
                for (long key : keys[row]) {
                    bias[i++] = isVisible(query, key) ? 0 : Double.NEGATIVE_INFINITY;
                }
            }
        }
        return X.getManager()
                .create(bias, new Shape(batch, 1, steps, numKeys))
                .toType(X.getDataType(), false)
                .broadcast(batch, numHeads, steps, numKeys)
                .reshape(batch * numKvHeads, numHeads / numKvHeads * steps, numKeys);
    }

    private boolean isVisible(long query, long key) {
        boolean isInWindow = window == null || query - key < window || key < numSinks;
        return 0 <= key && key <= query && isInWindow;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
