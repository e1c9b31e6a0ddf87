package d2l;

import static d2l.MultiHeadAttention.project;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.List;

/**
 * A Transformer's decoder, or a language model: blocks with a causal mask, and logits for the next
 * token. The blocks read a memory if they have cross-attention. The last layer, {@code dense}, has
 * a bias if the blocks have.
 *
 * <p>Inputs: tokens and perhaps their valid lengths, as in {@link BlockEncoder}. Output: logits of
 * the tokens that follow, shape (batch, steps, vocabSize), of the weights' dtype.
 *
 * <p>The {@code params} of a call may have these entries. With {@code caches}, a list that {@link
 * #makeCaches} returned, the tokens are the next ones of each text, and the logits are those of one
 * call with all tokens. {@code memory}, shape (batch, memory steps, numHiddens), is what an encoder
 * returns, and {@code memoryValidLens} counts its real tokens. A call that is refused leaves the
 * caches as they were.
 *
 * <pre>{@code
 * List<KVCache> caches = decoder.makeCaches(2, 100);
 * var params = new PairList<String, Object>(Map.of("caches", caches));
 * decoder.forward(parameterStore, new NDList(tokens), training, params);
 * caches.forEach(KVCache::close);
 * }</pre>
 */
public final class BlockDecoder extends BlockModel {

    public final Linear dense;

    /** Makes a decoder with sinusoidal positions, of which there are 1000, and without dropout. */
    public BlockDecoder(int vocabSize, List<TransformerBlock> blocks) {
        this(vocabSize, blocks, Positions.SINUSOIDAL, 0, MAX_LEN);
    }

    /**
     * Makes the layers around the blocks.
     *
     * @param vocabSize the number of different tokens
     * @param blocks the blocks, with a causal mask, at least one
     * @param positions what is added to the embedding
     * @param dropout the share of the embedding dropped in training; the blocks have their own
     * @param maxLen the number of positions
     * @throws IllegalArgumentException for arguments out of range, and blocks that do not fit
     */
    public BlockDecoder(
            int vocabSize,
            List<TransformerBlock> blocks,
            Positions positions,
            float dropout,
            int maxLen) {
        super(true, vocabSize, blocks, positions, dropout, maxLen);
        boolean bias = lastBlock().hasBias();
        dense = addChildBlock("dense", MultiHeadAttention.projection(vocabSize, bias));
        dense.setInitializer(MultiHeadAttention.INITIALIZER, Parameter.Type.WEIGHT);
    }

    /** Returns the number of parameters of a decoder, as {@link BlockEncoder#countParameters}. */
    public static long countParameters(
            int vocabSize, int numBlks, TransformerBlock.Builder block, int learnedPositions) {
        return BlockModel.countParameters(vocabSize, numBlks, block, learnedPositions)
                + block.denseSize(block.numHiddens, vocabSize);
    }

    /** Returns an empty cache for each block, as {@link CausalSelfAttention#makeCache} does. */
    public List<KVCache> makeCaches(int batchSize, int maxLen) {
        return blks.stream().map(block -> block.makeCache(batchSize, maxLen)).toList();
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        super.initializeChildBlocks(manager, dataType, inputShapes);
        dense.initialize(manager, dataType, new Shape(1, numHiddens));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        CallParams.checkNames(params, "caches", "memory", "memoryValidLens");
        try (NDArray hidden = compute(parameterStore, inputs, training, params)) {
            return new NDList(project(dense, hidden, parameterStore, training));
        }
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0].add(vocabSize)};
    }
}
