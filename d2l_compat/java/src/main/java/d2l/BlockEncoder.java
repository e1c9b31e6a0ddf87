package d2l;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.util.List;

/**
 * A Transformer's encoder: an embedding of tokens with their positions, and blocks without a causal
 * mask. If the blocks normalize first, a normalization follows the last.
 *
 * <p>Inputs: tokens, integers of shape (batch, steps), and optionally the valid lengths, integers
 * of shape (batch), which count the tokens of each text; the others are padding. Output: (batch,
 * steps, numHiddens), of the weights' dtype.
 */
public final class BlockEncoder extends BlockModel {

    /** Makes an encoder with sinusoidal positions, of which there are 1000, and without dropout. */
    public BlockEncoder(int vocabSize, List<TransformerBlock> blocks) {
        this(vocabSize, blocks, Positions.SINUSOIDAL, 0, MAX_LEN);
    }

    /**
     * Makes the layers around the blocks.
     *
     * @param vocabSize the number of different tokens
     * @param blocks the blocks, without a causal mask, at least one
     * @param positions what is added to the embedding
     * @param dropout the share of the embedding dropped in training; the blocks have their own
     * @param maxLen the number of positions
     * @throws IllegalArgumentException for arguments out of range, and blocks that do not fit
     */
    public BlockEncoder(
            int vocabSize,
            List<TransformerBlock> blocks,
            Positions positions,
            float dropout,
            int maxLen) {
        super(false, vocabSize, blocks, positions, dropout, maxLen);
    }

    /**
     * Returns the number of parameters of an encoder, by formula.
     *
     * @param vocabSize the number of different tokens
     * @param numBlks the number of blocks
     * @param block the options of each block
     * @param learnedPositions the number of rows in a table of positions; 0 without one
     */
    public static long countParameters(
            int vocabSize, int numBlks, TransformerBlock.Builder block, int learnedPositions) {
        return BlockModel.countParameters(vocabSize, numBlks, block, learnedPositions);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        CallParams.checkNames(params);
        return new NDList(compute(parameterStore, inputs, training, params));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0].add(numHiddens)};
    }
}
