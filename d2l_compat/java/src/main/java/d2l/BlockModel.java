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
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.util.PairList;

import java.util.List;

/**
 * An embedding with positions, Transformer blocks, and the normalization that follows them if
 * theirs comes first: what {@link BlockEncoder} and {@link BlockDecoder} have in common.
 */
public abstract sealed class BlockModel extends AbstractBlock permits BlockEncoder, BlockDecoder {

    /** The positions that are added to the embedding. */
    public enum Positions {
        /** None, since the blocks have their own. */
        NONE,
        /** Those of {@link PositionalEncoding}; the embedding is scaled by √numHiddens. */
        SINUSOIDAL,
        /** A trained table of maxLen rows. */
        LEARNED
    }

    static final int MAX_LEN = 1000;

    public final IdEmbedding embedding;

    /** The table of positions; null if they are not learned. */
    public final IdEmbedding positionEmbedding;

    public final List<TransformerBlock> blks;

    /** The normalization after the last block; null if the blocks normalize their sums. */
    public final Block norm;

    final int vocabSize;
    final int numHiddens;
    private final float dropout;
    private final Positions positions;
    private final int maxLen;
    private final double[] sinusoids; // row by row; null if positions are not sinusoidal

    BlockModel(
            boolean causal,
            int vocabSize,
            List<TransformerBlock> blocks,
            Positions positions,
            float dropout,
            int maxLen) {
        Checks.integer("vocabSize", vocabSize, 1);
        BlockChecks.blocks(blocks, causal);
        String need = "NONE, SINUSOIDAL or LEARNED";
        this.positions = Checks.instance("positions", positions, Positions.class, need);
        Checks.dropout(dropout);
        Checks.integer("maxLen", maxLen, 1);
        this.vocabSize = vocabSize;
        this.dropout = dropout;
        this.maxLen = maxLen;
        numHiddens = blocks.get(0).numHiddens();
        sinusoids =
                positions == Positions.SINUSOIDAL
                        ? new PositionalEncoding(numHiddens, 0, maxLen).P()
                        : null;
        embedding = addEmbedding("embedding", vocabSize);
        positionEmbedding =
                positions == Positions.LEARNED ? addEmbedding("positionEmbedding", maxLen) : null;
        blks = List.copyOf(blocks);
        blks.forEach(block -> addChildBlock("block", block));
        TransformerBlock last = lastBlock();
        norm = last.hasNormFirst() ? addChildBlock("norm", last.makeNorm()) : null;
    }

    TransformerBlock lastBlock() {
        return blks.get(blks.size() - 1);
    }

    private IdEmbedding addEmbedding(String name, int size) {
        IdEmbedding table =
                new IdEmbedding.Builder()
                        .setDictionarySize(size)
                        .setEmbeddingSize(numHiddens)
                        .build();
        table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
        return addChildBlock(name, table);
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        Checks.rank("X", inputShapes[0], "batch", "steps");
        Shape X = new Shape(1, 1, numHiddens);
        embedding.initialize(manager, dataType, inputShapes[0]);
        if (positionEmbedding != null) {
            positionEmbedding.initialize(manager, dataType, inputShapes[0]);
        }
        blks.forEach(block -> block.initialize(manager, dataType, X));
        if (norm != null) {
            norm.initialize(manager, dataType, new Shape(1, numHiddens));
        }
    }

    /**
     * Returns the output of the last block, normalized, on the manager of the tokens.
     *
     * @param inputs tokens, and perhaps their valid lengths
     * @param params caches, memory and memoryValidLens, or some of them
     */
    NDArray compute(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        Checks.inputCount(inputs, 1, 2, "X and perhaps validLens");
        NDArray tokens = inputs.head();
        BlockChecks.tokens(tokens, vocabSize);
        int batch = (int) tokens.getShape().get(0);
        int steps = (int) tokens.getShape().get(1);
        long[] lens = Checks.textLens(inputs.size() > 1 ? inputs.get(1) : null, batch, steps);
        List<KVCache> caches = BlockChecks.caches(params, blks.size());
        for (int i = 0; i < blks.size(); i++) {
            blks.get(i).attention.checkFits(caches.get(i), batch);
        }
        KVCache first = caches.get(0);
        long[] lengths = first == null ? new long[batch] : first.lengths();
        long[][] places = SelfAttention.newPositions(lengths, lens, steps);
        if (positions != Positions.NONE) {
            BlockChecks.room(places, maxLen);
        }
        NDManager manager = tokens.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = manager.newSubManager(tokens.getDevice())) {
            NDArray hidden = embed(parameterStore, tokens, places, training, scratch);
            for (int i = 0; i < blks.size(); i++) {
                PairList<String, Object> blockParams =
                        CallParams.select(params, "memory", "memoryValidLens");
                if (caches.get(i) != null) {
                    blockParams.add("cache", caches.get(i));
                }
                NDList texts = new NDList(hidden).addAll(inputs.subNDList(1));
                hidden = blks.get(i).forward(parameterStore, texts, training, blockParams).head();
                blks.get(i).attachWeights(manager);
            }
            if (norm != null) {
                hidden = norm.forward(parameterStore, new NDList(hidden), training).head();
            }
            hidden.attach(manager);
            return hidden;
        }
    }

    /** Embeds tokens (batch, steps) at places of the same shape, -1 for padding. */
    private NDArray embed(
            ParameterStore parameterStore,
            NDArray tokens,
            long[][] places,
            boolean training,
            NDManager manager) {
        NDArray ids = tokens.toType(DataType.INT64, true);
        ids.attach(manager);
        NDArray X = embedding.forward(parameterStore, new NDList(ids), training).head();
        long[] rows = SelfAttention.flatten(places);
        for (int i = 0; i < rows.length; i++) {
            rows[i] = Math.max(0, rows[i]);
        }
        if (positions == Positions.LEARNED) {
            // A copy, since DJL keeps the rows in Java's memory and may release them before the
            // gradient is computed.
            NDArray indices = manager.create(rows, tokens.getShape()).duplicate();
            NDList P = positionEmbedding.forward(parameterStore, new NDList(indices), training);
            X = X.add(P.head());
        } else if (positions == Positions.SINUSOIDAL) {
            double[] P = new double[rows.length * numHiddens];
            for (int i = 0; i < rows.length; i++) {
                int start = (int) rows[i] * numHiddens;
                System.arraycopy(sinusoids, start, P, i * numHiddens, numHiddens);
            }
            double[] root = {Math.sqrt(numHiddens)};
            X = X.mul(RotaryEncoding.create(root, new Shape(1), manager, X));
            X = X.add(RotaryEncoding.create(P, X.getShape(), manager, X));
        }
        return Dropout.dropout(X, dropout, training).head();
    }

    /** Counts the parameters of an embedding, blocks and the normalization that follows them. */
    static long countParameters(
            int vocabSize, int numBlks, TransformerBlock.Builder block, int learnedPositions) {
        Checks.integer("vocabSize", vocabSize, 1);
        Checks.integer("numBlks", numBlks, 1);
        Checks.integer("learnedPositions", learnedPositions, 0);
        long tables = ((long) vocabSize + learnedPositions) * block.numHiddens;
        long lastNorm = block.normFirst ? block.normSize() : 0;
        return tables + numBlks * block.countParameters() + lastNorm;
    }
}
