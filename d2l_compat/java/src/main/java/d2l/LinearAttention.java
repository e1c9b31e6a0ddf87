package d2l;

import static d2l.MultiHeadAttention.project;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Activation;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.stream.LongStream;

/**
 * Causal linear attention, Katharopoulos et al. (2020), with several heads and the decay of Sun et
 * al. (2023).
 *
 * <p>The weight of key j for query i is a^(i - j) f(q_i)·f(k_j), divided by the sum of the weights,
 * where f(x) = elu(x) + 1 is positive, and a is the head's decay: 1 keeps all of the past. Since
 * there is no softmax, what a query needs of the past is a sum that each token adds to: time grows
 * with the length, and not with its square.
 *
 * <p>Input: X, floating point, shape (batch, steps, numHiddens). Output: an array of X's shape and
 * dtype.
 *
 * <p>Two entries in a call's {@code params} are optional. The text is read in chunks of {@code
 * chunkSize} tokens, an Integer of at least 1, whose weights form a matrix: 1 reads token by token,
 * as a recurrent network does, {@link #WHOLE_TEXT} all at once, in parallel, and the default is
 * 128. The results are the same. With a {@code state}, a {@link LinearState}, X has the next tokens
 * of each text: they also see earlier ones, and are added to the state. A call that is refused
 * leaves the state as it was.
 *
 * <pre>{@code
 * try (LinearState state = attention.makeState(2)) {
 *     var params = new PairList<String, Object>(Map.of("state", state, "chunkSize", 64));
 *     attention.forward(parameterStore, new NDList(X), training, params);
 * }
 * }</pre>
 */
public final class LinearAttention extends AbstractBlock {

    /** The {@code chunkSize} with which a text of any length is read at once. */
    public static final int WHOLE_TEXT = Integer.MAX_VALUE;

    private static final int CHUNK_SIZE = 128;

    // The names are those of the formulas.
    public final Linear W_q;
    public final Linear W_k;
    public final Linear W_v;
    public final Linear W_o;

    private final int numHiddens;
    private final int numHeads;
    private final int headSize;
    private final double[] decay;

    /** Makes a layer without biases in the projections, and without decay. */
    public LinearAttention(int numHiddens, int numHeads) {
        this(numHiddens, numHeads, false, 1);
    }

    /**
     * Makes the layer.
     *
     * @param numHiddens the width of input and output, which is divided among the heads
     * @param numHeads the number of heads
     * @param bias whether the projections have biases
     * @param decay above 0 and at most 1, one number or one per head
     * @throws IllegalArgumentException for an argument out of range
     */
    public LinearAttention(int numHiddens, int numHeads, boolean bias, double... decay) {
        Checks.heads(numHiddens, numHeads);
        this.numHiddens = numHiddens;
        this.numHeads = numHeads;
        this.headSize = numHiddens / numHeads;
        this.decay = Checks.decay(decay, numHeads);
        W_q = addChildBlock("W_q", MultiHeadAttention.projection(numHiddens, bias));
        W_k = addChildBlock("W_k", MultiHeadAttention.projection(numHiddens, bias));
        W_v = addChildBlock("W_v", MultiHeadAttention.projection(numHiddens, bias));
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
    }

    /**
     * Returns a state of zeros, with the dtype and the device of the weights, which is closed with
     * their manager, if not earlier.
     *
     * @param batchSize the number of texts
     */
    public LinearState makeState(int batchSize) {
        NDArray weight = W_k.getDirectParameters().get("weight").getArray();
        return new LinearState(weight, batchSize, numHeads, headSize);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        Checks.inputCount(inputs, 1, 1, "X");
        NDArray X = inputs.head();
        Checks.texts(X, numHiddens, W_q);
        Options options = Options.of(params);
        LinearState state = options.state();
        long batch = X.getShape().get(0);
        if (state != null) {
            state.checkFits(batch, numHeads, headSize);
            Checks.floating("X and state", X, state.k());
        }
        NDManager manager = X.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            scratch.tempAttachAll(X);
            NDArray queries = splitHeads(project(W_q, X, parameterStore, training));
            NDArray keys = splitHeads(project(W_k, X, parameterStore, training));
            NDArray values = splitHeads(project(W_v, X, parameterStore, training));
            NDList chunks = new NDList();
            NDList sums =
                    attend(
                            splitSteps(Activation.elu(queries, 1).add(1), options.chunkSize()),
                            splitSteps(Activation.elu(keys, 1).add(1), options.chunkSize()),
                            splitSteps(values, options.chunkSize()),
                            startSums(state, X, scratch),
                            chunks);
            // DJL's concat copies a single array, and the copy would have no gradient.
            NDArray all = chunks.size() == 1 ? chunks.head() : NDArrays.concat(chunks, 2);
            NDArray pooled = all.swapAxes(1, 2).reshape(X.getShape());
            NDArray output = project(W_o, pooled, parameterStore, training);
            if (state != null) {
                state.replace(sums.get(0), sums.get(1));
            }
            output.attach(manager);
            return new NDList(output);
        }
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }

    /** Reshapes (batch, steps, numHiddens) to (batch, heads, steps, features). */
    private NDArray splitHeads(NDArray X) {
        Shape shape = X.getShape();
        return X.reshape(shape.get(0), shape.get(1), numHeads, headSize).swapAxes(1, 2);
    }

    /** Splits into chunks at once, since each slice would have a gradient of the full size. */
    private static NDList splitSteps(NDArray X, int chunkSize) {
        long numSteps = X.getShape().get(2);
        LongStream ends =
                LongStream.iterate(chunkSize, end -> end < numSteps, end -> end + chunkSize);
        return X.split(ends.toArray(), 2);
    }

    /** Returns the sums in a state, or zeros, on the manager. */
    private NDList startSums(LinearState state, NDArray X, NDManager manager) {
        Shape shape = new Shape(X.getShape().get(0), numHeads, headSize);
        if (state == null) {
            return new NDList(
                    manager.zeros(shape.add(headSize), X.getDataType()),
                    manager.zeros(shape, X.getDataType()));
        }
        NDList sums = new NDList(state.kv().stopGradient(), state.k().stopGradient());
        sums.attach(manager);
        return sums;
    }

    /**
     * Computes the pooling of all chunks.
     *
     * @param sums the sums before the first chunk
     * @param pooled receives an array of shape (batch, heads, steps, features) for each chunk
     * @return the sums after the last chunk
     */
    private NDList attend(
            NDList queries, NDList keys, NDList values, NDList sums, NDList pooled) {
        NDArray kv = sums.get(0);
        NDArray k = sums.get(1);
        Powers powers = null;
        for (int i = 0; i < queries.size(); i++) {
            long numSteps = queries.get(i).getShape().get(2);
            if (powers == null || powers.numSteps() != numSteps) {
                powers = Powers.of(decay, numSteps, kv);
            }
            NDArray weights =
                    queries.get(i).matMul(keys.get(i).swapAxes(2, 3)).mul(powers.within());
            NDArray decayedQueries = queries.get(i).mul(powers.fromState());
            NDArray weighted = weights.matMul(values.get(i)).add(decayedQueries.matMul(kv));
            NDArray total =
                    weights.sum(new int[] {3}, true)
                            .add(decayedQueries.matMul(k.expandDims(3)));
            // Far below 0, all weights may be 0, or so small that the gradient would overflow.
            NDArray isSmall = total.lt(smallestTotal(total.getDataType()));
            pooled.add(weighted.div(NDArrays.where(isSmall, total.onesLike(), total)));
            NDArray decayedKeys = keys.get(i).mul(powers.toState());
            kv = decayedKeys.swapAxes(2, 3).matMul(values.get(i)).add(kv.mul(powers.whole()));
            k = decayedKeys.sum(new int[] {2}).add(k.mul(powers.whole().squeeze(2)));
        }
        return new NDList(kv, k);
    }

    /** The sum below which weights count as zero: gradients, which divide by it, stay finite. */
    private static double smallestTotal(DataType type) {
        return switch (type) {
            case FLOAT64 -> Math.sqrt(Double.MIN_NORMAL);
            case FLOAT16 -> 0x1p-14; // ordinary sums are below its root
            default -> Math.sqrt(Float.MIN_NORMAL);
        };
    }

    /** The entries of a call's {@code params}. */
    private record Options(LinearState state, int chunkSize) {

        static Options of(PairList<String, Object> params) {
            LinearState state = null;
            int chunkSize = CHUNK_SIZE;
            for (var param : params == null ? new PairList<String, Object>() : params) {
                Object value = param.getValue();
                switch (param.getKey()) {
                    case "state" ->
                            state =
                                    Checks.instance(
                                            "state", value, LinearState.class, "a LinearState");
                    case "chunkSize" -> chunkSize = Checks.size("chunkSize", value);
                    default -> throw Checks.error("params", param.getKey(), "state or chunkSize");
                }
            }
            return new Options(state, chunkSize);
        }
    }

    /**
     * The powers of each head's decay that a chunk needs, by the number of steps between.
     *
     * @param numSteps the number of tokens in the chunk
     * @param within from key to query in the chunk, 0 for later keys; (heads, steps, steps)
     * @param fromState from the state before the chunk to each query; (heads, steps, 1)
     * @param toState from each key to the state after the chunk; (heads, steps, 1)
     * @param whole over the whole chunk; (heads, 1, 1)
     */
    private record Powers(
            long numSteps, NDArray within, NDArray fromState, NDArray toState, NDArray whole) {

        /** Computes the powers in double precision, for products with {@code like}. */
        static Powers of(double[] decay, long numSteps, NDArray like) {
            NDManager manager = like.getManager();
            NDArray base = manager.create(decay, new Shape(decay.length, 1, 1));
            NDArray step = manager.arange(0f, numSteps, 1, DataType.FLOAT64);
            NDArray distances = step.expandDims(1).sub(step);
            NDArray isPast = distances.gte(0).toType(DataType.FLOAT64, false);
            NDArray column = step.expandDims(1);
            DataType type = like.getDataType();
            return new Powers(
                    numSteps,
                    base.pow(distances.clip(0, numSteps)).mul(isPast).toType(type, false),
                    base.pow(column.add(1)).toType(type, false),
                    base.pow(column.mul(-1).add(numSteps - 1)).toType(type, false),
                    base.pow(numSteps).toType(type, false));
        }
    }
}
