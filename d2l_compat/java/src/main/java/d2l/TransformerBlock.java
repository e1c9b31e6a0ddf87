package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.norm.Dropout;
import ai.djl.nn.norm.LayerNorm;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/**
 * A Transformer block: self-attention and a network at each position, each added to its input.
 *
 * <p>The block is that of Vaswani et al. (2017), section 3.1, with what has been added since:
 * normalization before the layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated
 * networks (Shazeer, 2020), rotary positions (Su et al., 2021) or ALiBi (Press et al., 2022), and
 * fewer heads of keys and values (Ainslie et al., 2023). A builder has the options:
 *
 * <pre>{@code
 * TransformerBlock block =
 *         TransformerBlock.builder(64, 4, 256)
 *                 .optCausal(true)
 *                 .optPositions(TransformerBlock.Positions.ROPE)
 *                 .build();
 * }</pre>
 *
 * <p>Inputs: X, floating point, shape (batch, steps, numHiddens), and optionally the valid lengths,
 * integers of shape (batch), which count the real tokens of each example. Padding comes after them,
 * and what is computed for it has no meaning. Output: an array of X's shape and dtype.
 *
 * <p>The {@code params} of a call may have these entries. With a {@code cache}, a {@link KVCache},
 * X has the next tokens of each text. {@code memory}, shape (batch, memory steps, numHiddens), is
 * what a block with cross-attention reads, and {@code memoryValidLens} counts its real tokens.
 * {@code scoreBias} is added to the scores of self-attention, shape (steps, steps), (heads, steps,
 * steps) or (batch, heads, steps, steps); not with a cache. A call that is refused leaves the cache
 * as it was.
 */
public final class TransformerBlock extends AbstractBlock {

    /** The normalization: with mean and variance, or with the mean square alone. */
    public enum Norm {
        /** Layer normalization. */
        LAYER,
        /** RMSNorm. */
        RMS
    }

    /** The activation of the network. */
    public enum Activation {
        /** max(x, 0). */
        RELU,
        /** The exact GELU. */
        GELU,
        /** SiLU, by which a third matrix gates the network. */
        SWIGLU
    }

    /** The positions in self-attention. */
    public enum Positions {
        /** None, or they come from elsewhere. */
        NONE,
        /** Rotated queries and keys, interleaved, as in {@link RotaryEncoding}. */
        ROPE,
        /** A bias that falls with the distance, by {@link AlibiSlopes}. */
        ALIBI
    }

    public final Block norm1;
    public final SelfAttention attention;

    /** The normalization for cross-attention; null without it. */
    public final Block norm2;

    /** The attention to a memory; null without it. */
    public final MultiHeadAttention crossAttention;

    public final Block norm3;
    public final PositionWiseNetwork network;

    private final int numHiddens;
    private final float dropout;
    private final boolean causal;
    private final boolean normFirst;
    private final boolean bias;
    private final Norm norm;
    private final float normEpsilon;

    private TransformerBlock(Builder options) {
        numHiddens = options.numHiddens;
        dropout = options.dropout;
        causal = options.causal;
        normFirst = options.normFirst;
        bias = options.bias;
        norm = options.norm;
        normEpsilon = options.normEpsilon;
        norm1 = addChildBlock("norm1", makeNorm());
        attention = addChildBlock("attention", new SelfAttention(options));
        norm2 = options.crossAttention ? addChildBlock("norm2", makeNorm()) : null;
        crossAttention =
                options.crossAttention
                        ? addChildBlock(
                                "crossAttention",
                                new MultiHeadAttention(
                                        numHiddens, options.numHeads, dropout, bias))
                        : null;
        norm3 = addChildBlock("norm3", makeNorm());
        network = addChildBlock("network", new PositionWiseNetwork(options));
        setInitializer(MultiHeadAttention.INITIALIZER, Parameter.Type.WEIGHT);
    }

    /**
     * Starts a block without dropout, mask, positions and memory, and with layer normalization
     * before each layer, GELU, and biases.
     *
     * @param numHiddens the width of input and output, which is divided among the heads
     * @param numHeads the number of heads of queries
     * @param ffnNumHiddens the width of the network
     */
    public static Builder builder(int numHiddens, int numHeads, int ffnNumHiddens) {
        return new Builder(numHiddens, numHeads, ffnNumHiddens);
    }

    /** The options of blocks; {@code build} may be called several times. */
    public static final class Builder {

        final int numHiddens;
        final int numHeads;
        final int ffnNumHiddens;
        float dropout;
        Norm norm = Norm.LAYER;
        boolean normFirst = true;
        Activation activation = Activation.GELU;
        boolean bias = true;
        Positions positions = Positions.NONE;
        boolean causal;
        boolean crossAttention;
        Integer window;
        int numSinks;
        float normEpsilon = 1e-5f;
        private Integer numKvHeads;

        private Builder(int numHiddens, int numHeads, int ffnNumHiddens) {
            this.numHiddens = numHiddens;
            this.numHeads = numHeads;
            this.ffnNumHiddens = ffnNumHiddens;
        }

        /** Sets the share dropped in training, of attention weights and of what is added. */
        public Builder optDropout(float dropout) {
            this.dropout = dropout;
            return this;
        }

        /** Sets the kind of normalization. */
        public Builder optNorm(Norm norm) {
            this.norm = norm;
            return this;
        }

        /** Normalizes the input of each layer, x + f(norm(x)), or else the sum, norm(x + f(x)). */
        public Builder optNormFirst(boolean normFirst) {
            this.normFirst = normFirst;
            return this;
        }

        /** Sets the activation of the network. */
        public Builder optActivation(Activation activation) {
            this.activation = activation;
            return this;
        }

        /** Sets whether the linear layers have biases. */
        public Builder optBias(boolean bias) {
            this.bias = bias;
            return this;
        }

        /** Sets the positions in self-attention. */
        public Builder optPositions(Positions positions) {
            this.positions = positions;
            return this;
        }

        /** Sets whether a token sees only itself and what came before it; then it can be cached. */
        public Builder optCausal(boolean causal) {
            this.causal = causal;
            return this;
        }

        /** Sets whether the block also reads a memory, between its other two layers. */
        public Builder optCrossAttention(boolean crossAttention) {
            this.crossAttention = crossAttention;
            return this;
        }

        /** Sets the number of heads of keys and values, a divisor of numHeads; null means all. */
        public Builder optNumKvHeads(Integer numKvHeads) {
            this.numKvHeads = numKvHeads;
            return this;
        }

        /** Sets how many tokens a token sees, itself among them, if causal; null means all. */
        public Builder optWindow(Integer window) {
            this.window = window;
            return this;
        }

        /** Sets how many of the first tokens are seen besides those in the window. */
        public Builder optNumSinks(int numSinks) {
            this.numSinks = numSinks;
            return this;
        }

        /** Sets what is added to the variance or the mean square. */
        public Builder optNormEpsilon(float normEpsilon) {
            this.normEpsilon = normEpsilon;
            return this;
        }

        /**
         * Makes a block.
         *
         * @throws IllegalArgumentException for options out of range, or that do not fit together
         */
        public TransformerBlock build() {
            check();
            return new TransformerBlock(this);
        }

        int numKvHeads() {
            return numKvHeads == null ? numHeads : numKvHeads;
        }

        private void check() {
            Checks.instance("positions", positions, Positions.class, "NONE, ROPE or ALIBI");
            Checks.instance("norm", norm, Norm.class, "LAYER or RMS");
            Checks.instance("activation", activation, Activation.class, "RELU, GELU or SWIGLU");
            Checks.dropout(dropout);
            Checks.integer("ffnNumHiddens", ffnNumHiddens, 1);
            BlockChecks.normEpsilon(normEpsilon);
            Checks.causalSizes(
                    numHiddens,
                    numHeads,
                    numKvHeads(),
                    positions == Positions.ROPE,
                    window,
                    numSinks);
            BlockChecks.windowIsCausal(window, causal);
        }

        /** Returns the number of parameters of a linear layer. */
        long denseSize(long inputs, long outputs) {
            return (inputs + (bias ? 1 : 0)) * outputs;
        }

        /** Returns the number of parameters of a normalization. */
        long normSize() {
            return norm == Norm.LAYER ? 2L * numHiddens : numHiddens;
        }

        /** Returns the number of parameters of a block, by formula. */
        long countParameters() {
            check();
            long d = numHiddens;
            long k = d / numHeads * numKvHeads();
            long f = ffnNumHiddens;
            long attentionSize = 2 * denseSize(d, d) + 2 * denseSize(d, k);
            long gateSize = activation == Activation.SWIGLU ? denseSize(d, f) : 0;
            long crossSize = crossAttention ? 4 * denseSize(d, d) + normSize() : 0;
            long networkSize = denseSize(d, f) + denseSize(f, d) + gateSize;
            return attentionSize + crossSize + networkSize + 2 * normSize();
        }
    }

    int numHiddens() {
        return numHiddens;
    }

    boolean isCausal() {
        return causal;
    }

    boolean hasNormFirst() {
        return normFirst;
    }

    boolean hasBias() {
        return bias;
    }

    /** Makes a layer of the block's kind of normalization. */
    Block makeNorm() {
        return norm == Norm.LAYER
                ? LayerNorm.builder().optEpsilon(normEpsilon).build()
                : new RmsNorm(numHiddens, normEpsilon);
    }

    /** Returns an empty cache, as {@link CausalSelfAttention#makeCache} does. */
    public KVCache makeCache(int batchSize, int maxLen) {
        return attention.makeCache(batchSize, maxLen);
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Checks.texts(inputShapes[0], numHiddens);
        Shape X = new Shape(1, 1, numHiddens);
        Shape row = new Shape(1, numHiddens); // DJL normalizes over all axes but the first
        norm1.initialize(manager, dataType, row);
        attention.initialize(manager, dataType, X);
        if (crossAttention != null) {
            norm2.initialize(manager, dataType, row);
            crossAttention.initialize(manager, dataType, X, X, X);
        }
        norm3.initialize(manager, dataType, row);
        network.initialize(manager, dataType, X);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        CallParams.checkNames(params, "cache", "memory", "memoryValidLens", "scoreBias");
        Checks.inputCount(inputs, 1, 2, "X and perhaps validLens");
        NDArray X = inputs.head();
        Checks.texts(X, numHiddens, attention.W_q);
        NDArray memory = CallParams.getArray(params, "memory");
        NDArray memoryValidLens = CallParams.getArray(params, "memoryValidLens");
        checkMemory(X, memory, memoryValidLens);
        PairList<String, Object> attentionParams = CallParams.select(params, "cache", "scoreBias");
        Layer attend =
                hidden -> {
                    NDList texts = new NDList(hidden).addAll(inputs.subNDList(1));
                    return attention.forward(parameterStore, texts, training, attentionParams);
                };
        NDManager manager = X.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(X.getDevice())) {
            NDArray hidden = add(view(X, scratch), norm1, attend, parameterStore, training);
            if (memory != null) {
                NDArray read = view(memory, scratch);
                Layer attendToMemory =
                        queries -> {
                            NDList texts = new NDList(queries, read, read);
                            if (memoryValidLens != null) {
                                texts.add(memoryValidLens);
                            }
                            return crossAttention.forward(parameterStore, texts, training);
                        };
                hidden = add(hidden, norm2, attendToMemory, parameterStore, training);
                attachWeights(manager);
            }
            Layer feed = row -> network.forward(parameterStore, new NDList(row), training);
            NDArray output = add(hidden, norm3, feed, parameterStore, training);
            output.attach(manager);
            return new NDList(output);
        }
    }

    /** Keeps the last weights of cross-attention, if there are any, as long as a manager. */
    void attachWeights(NDManager manager) {
        if (crossAttention != null) {
            crossAttention.attention.attentionWeights().attach(manager);
        }
    }

    private interface Layer {
        NDList compute(NDArray X);
    }

    private NDArray add(
            NDArray X, Block norm, Layer layer, ParameterStore parameterStore, boolean training) {
        NDArray input = normFirst ? normalize(norm, X, parameterStore, training) : X;
        NDArray output = layer.compute(input).head();
        NDArray sum = X.add(Dropout.dropout(output, dropout, training).head());
        return normFirst ? sum : normalize(norm, sum, parameterStore, training);
    }

    private static NDArray normalize(
            Block norm, NDArray X, ParameterStore parameterStore, boolean training) {
        return norm.forward(parameterStore, new NDList(X), training).head();
    }

    /**
     * Returns a view that is closed with {@code manager}. The array itself cannot be attached to it
     * for a while, since a layer does the same, and would then leave it there.
     */
    private static NDArray view(NDArray array, NDManager manager) {
        NDArray view = array.reshape(array.getShape());
        view.attach(manager);
        return view;
    }

    private void checkMemory(NDArray X, NDArray memory, NDArray memoryValidLens) {
        BlockChecks.memory(memory, memoryValidLens, crossAttention != null);
        if (memory == null) {
            return;
        }
        Shape shape = memory.getShape();
        Checks.rank("memory", shape, "batch", "steps", "features");
        Checks.lastDimension("memory", shape, numHiddens);
        Checks.weightType("memory", memory, crossAttention.W_k);
        Checks.attentionInputs(X.getShape(), shape, shape);
        if (memoryValidLens != null) {
            Checks.validLens(memoryValidLens, X.getShape().get(0), X.getShape().get(1));
            for (long length : MaskedSoftmax.toLongArray(memoryValidLens)) {
                Checks.lengthRange(length, shape.get(1), "keys");
            }
        }
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}
