package d2l;

import static d2l.MultiHeadAttention.project;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * The self-attention of a {@link TransformerBlock}: that of {@link CausalSelfAttention}, with or
 * without its causal mask, and with a bias of the scores.
 *
 * <p>Inputs and output are those of {@link CausalSelfAttention}. The {@code params} of a call may
 * have a {@code cache}, a {@link KVCache}, if the mask is causal, or a {@code scoreBias} as in
 * {@link MultiHeadAttention}.
 */
public final class SelfAttention extends AbstractBlock {

    // The names are those of the formulas.
    public final Linear W_q;
    public final Linear W_k;
    public final Linear W_v;
    public final Linear W_o;

    private final CausalSelfAttention causalAttention;
    private final DotProductAttention attention;
    private final int numHiddens;
    private final int numHeads;
    private final int numKvHeads;
    private final int headSize;
    private final boolean causal;
    private final TransformerBlock.Positions positions;
    private final Integer window;
    private final int numSinks;

    SelfAttention(TransformerBlock.Builder options) {
        numHiddens = options.numHiddens;
        numHeads = options.numHeads;
        numKvHeads = options.numKvHeads();
        headSize = numHiddens / numHeads;
        causal = options.causal;
        positions = options.positions;
        window = options.window;
        numSinks = options.numSinks;
        causalAttention =
                addChildBlock(
                        "causalAttention",
                        new CausalSelfAttention(
                                numHiddens,
                                numHeads,
                                options.dropout,
                                options.bias,
                                numKvHeads,
                                hasRope(),
                                window,
                                numSinks));
        attention = addChildBlock("attention", new DotProductAttention(options.dropout));
        W_q = causalAttention.W_q;
        W_k = causalAttention.W_k;
        W_v = causalAttention.W_v;
        W_o = causalAttention.W_o;
    }

    private boolean hasRope() {
        return positions == TransformerBlock.Positions.ROPE;
    }

    private boolean hasAlibi() {
        return positions == TransformerBlock.Positions.ALIBI;
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        causalAttention.initialize(manager, dataType, inputShapes);
        attention.initialize(manager, dataType, inputShapes);
    }

    /** Returns an empty cache, as {@link CausalSelfAttention#makeCache} does. */
    public KVCache makeCache(int batchSize, int maxLen) {
        return causalAttention.makeCache(batchSize, maxLen);
    }

    /** Checks that this layer can use a cache; null means none. */
    void checkFits(KVCache cache, int batch) {
        if (cache != null) {
            cache.checkFits(batch, numKvHeads, headSize, window, numSinks);
        }
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        CallParams.checkNames(params, "cache", "scoreBias");
        KVCache cache = CallParams.get(params, "cache", KVCache.class, "a KVCache");
        NDArray scoreBias = CallParams.getArray(params, "scoreBias");
        BlockChecks.cache(cache, scoreBias, causal);
        if (causal && !hasAlibi() && scoreBias == null) {
            return causalAttention.forward(parameterStore, inputs, training, params);
        }
        Checks.inputCount(inputs, 1, 2, "X and perhaps validLens");
        NDArray X = inputs.head();
        Checks.texts(X, numHiddens, W_q);
        int batch = (int) X.getShape().get(0);
        int steps = (int) X.getShape().get(1);
        NDArray validLens = inputs.size() > 1 ? inputs.get(1) : null;
        long[] lens = Checks.textLens(validLens, batch, steps);
        new Masks(false, scoreBias, null).check(X, X, numHeads);
        checkFits(cache, batch);
        long[] lengths = cache == null ? new long[batch] : cache.lengths();
        long[][] queryPositions = newPositions(lengths, lens, steps);
        NDManager manager = X.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            scratch.tempAttachAll(X);
            NDArray queries = splitHeads(project(W_q, X, parameterStore, training));
            NDArray keys = splitHeads(project(W_k, X, parameterStore, training));
            NDArray values = splitHeads(project(W_v, X, parameterStore, training)).swapAxes(1, 2);
            if (hasRope()) {
                NDArray rotations = rotations(queryPositions, X, scratch);
                queries = rotate(queries, rotations);
                keys = rotate(keys, rotations);
            }
            queries = queries.swapAxes(1, 2);
            keys = keys.swapAxes(1, 2);
            long[][] keyPositions = queryPositions;
            if (cache != null) {
                KVCache.Tokens tokens = cache.append(keys, values, lens);
                keys = tokens.keys();
                values = tokens.values();
                keyPositions = tokens.positions();
            }
            NDArray bias = scoreBias;
            if (causal || hasAlibi() || validLens != null) {
                NDArray mask = mask(queryPositions, keyPositions, keys);
                bias = scoreBias == null ? mask : mask.add(scoreBias);
            }
            NDArray pooled = attend(parameterStore, queries, keys, values, bias, training);
            NDArray output = project(W_o, pooled, parameterStore, training);
            output.attach(manager);
            return new NDList(output);
        }
    }

    /** Attends, and joins the heads. */
    private NDArray attend(
            ParameterStore parameterStore,
            NDArray queries,
            NDArray keys,
            NDArray values,
            NDArray bias,
            boolean training) {
        long batch = queries.getShape().get(0);
        long steps = queries.getShape().get(2);
        long numKeys = keys.getShape().get(2);
        // The heads of queries that read the same head of keys follow one another.
        long rows = batch * numKvHeads;
        long rowsPerKey = numHeads / numKvHeads * steps;
        NDList inputs =
                new NDList(
                        queries.reshape(rows, rowsPerKey, headSize),
                        keys.reshape(rows, numKeys, headSize),
                        values.reshape(rows, numKeys, headSize));
        PairList<String, Object> params = new PairList<>();
        if (bias != null) {
            NDArray perHead = bias.broadcast(batch, numHeads, steps, numKeys);
            perHead.attach(queries.getManager()); // the bias's own manager may stay open longer
            params.add("scoreBias", perHead.reshape(rows, rowsPerKey, numKeys));
        }
        return attention
                .forward(parameterStore, inputs, training, params)
                .head()
                .reshape(batch, numHeads, steps, headSize)
                .swapAxes(1, 2)
                .reshape(batch, steps, numHiddens);
    }

    /**
     * Returns what is added to the scores: minus infinity for hidden keys, and for the others zero
     * or ALiBi's bias.
     *
     * @return an array of shape (batch, heads or 1, queries, keys)
     */
    private NDArray mask(long[][] queryPositions, long[][] keyPositions, NDArray keys) {
        NDManager manager = keys.getManager();
        DataType type = keys.getDataType();
        long batch = queryPositions.length;
        long[] flat = flatten(queryPositions);
        long steps = batch == 0 ? 0 : flat.length / batch;
        long numKeys = keys.getShape().get(2);
        NDArray query = manager.create(flat, new Shape(batch, 1, steps, 1));
        NDArray key = manager.create(flatten(keyPositions), new Shape(batch, 1, 1, numKeys));
        NDArray distance = query.sub(key);
        NDArray isHidden = key.lt(0);
        if (causal) {
            isHidden = distance.lt(0).logicalOr(isHidden);
        }
        if (window != null) {
            isHidden = isHidden.logicalOr(distance.gte(window).logicalAnd(key.gte(numSinks)));
        }
        NDArray bias = manager.zeros(new Shape(1), type);
        if (hasAlibi()) {
            NDArray slopes = AlibiSlopes.alibiSlopes(manager, numHeads).toType(type, false);
            bias = distance.abs().toType(type, false).mul(slopes.neg().reshape(1, numHeads, 1, 1));
        }
        Shape shape = new Shape(batch, hasAlibi() ? numHeads : 1, steps, numKeys);
        NDArray hidden = manager.zeros(shape, type).sub(Double.POSITIVE_INFINITY);
        return NDArrays.where(isHidden.broadcast(shape), hidden, bias.broadcast(shape));
    }

    /** Reshapes (batch, steps, heads * headSize) to (batch, steps, heads, headSize). */
    private NDArray splitHeads(NDArray X) {
        Shape shape = X.getShape();
        return X.reshape(shape.get(0), shape.get(1), shape.get(2) / headSize, headSize);
    }

    /** Returns the cosines and sines of positions, shape (2, batch, steps, 1, headSize / 2). */
    private NDArray rotations(long[][] tokenPositions, NDArray X, NDManager manager) {
        double[] flat = LongStream.of(flatten(tokenPositions)).asDoubleStream().toArray();
        double[] table = RotaryEncoding.rotations(flat, headSize, RotaryEncoding.BASE);
        Shape shape = new Shape(2, X.getShape().get(0), X.getShape().get(1), 1, headSize / 2);
        return RotaryEncoding.create(table, shape, manager, X);
    }

    private static NDArray rotate(NDArray X, NDArray rotations) {
        return RotaryEncoding.rotate(
                X, rotations.get(0), rotations.get(1), RotaryEncoding.Layout.INTERLEAVED);
    }

    /** Returns the positions of each text's new tokens, after {@code lengths}; -1 for padding. */
    static long[][] newPositions(long[] lengths, long[] lens, int steps) {
        long[][] positions = new long[lengths.length][];
        Arrays.setAll(
                positions, row -> KVCache.newPositions(lengths[row], lens[row], steps).toArray());
        return positions;
    }

    static long[] flatten(long[][] rows) {
        return Arrays.stream(rows).flatMapToLong(LongStream::of).toArray();
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
