package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.PairList;

import java.util.Collections;
import java.util.List;
import java.util.stream.LongStream;

/** Checks for Transformer blocks and their models, with the same messages as in Python. */
final class BlockChecks {

    private static final String MEMORY =
            "a block with cross-attention, and only such a block, reads a memory";

    private BlockChecks() {}

    static void normEpsilon(float value) {
        if (!(0 < value && value < Float.POSITIVE_INFINITY)) {
            throw Checks.error("normEpsilon", value, "a number above 0");
        }
    }

    static void windowIsCausal(Integer window, boolean causal) {
        if (window != null && !causal) {
            throw Checks.error("window", window + " without a causal mask", "causal=true");
        }
    }

    /** Checks that a memory is given exactly if the block reads one. */
    static void memory(NDArray memory, NDArray memoryValidLens, boolean readsMemory) {
        if (readsMemory != (memory != null)) {
            String got = memory == null ? null : "a memory for a block without cross-attention";
            throw Checks.error("memory", got, MEMORY);
        }
        if (memory == null && memoryValidLens != null) {
            throw Checks.error("memoryValidLens", "lengths without a memory", MEMORY);
        }
    }

    /** Checks that an attention layer can use a cache; null means none. */
    static void cache(KVCache cache, NDArray scoreBias, boolean causal) {
        if (cache != null && !causal) {
            throw Checks.error(
                    "cache", "a cache for attention that is not causal", "causal=true");
        }
        if (cache != null && scoreBias != null) {
            throw Checks.error("scoreBias", "a bias together with a cache", "only one of them");
        }
    }

    /** Returns a cache for each block from a call's {@code params}; null, if there are none. */
    static List<KVCache> caches(PairList<String, Object> params, int numBlocks) {
        String need = "a list of %s caches, one for each block".formatted(numBlocks);
        List<?> caches = CallParams.get(params, "caches", List.class, need);
        if (caches == null) {
            return Collections.nCopies(numBlocks, null);
        }
        if (caches.size() != numBlocks) {
            throw Checks.error("caches", caches.size(), need);
        }
        return caches.stream()
                .map(each -> Checks.instance("cache", each, KVCache.class, "a KVCache"))
                .toList();
    }

    /** Checks that the blocks of a model fit together. */
    static void blocks(List<TransformerBlock> blocks, boolean causal) {
        String need = "a list of TransformerBlock with causal=" + causal;
        if (blocks.isEmpty()) {
            throw Checks.error("blocks", "an empty list", need);
        }
        int first = blocks.get(0).numHiddens();
        for (TransformerBlock block : blocks) {
            if (block.isCausal() != causal) {
                throw Checks.error("blocks", "a block with causal=" + block.isCausal(), need);
            }
            if (block.numHiddens() != first) {
                String got = "blocks of %s and %s features".formatted(first, block.numHiddens());
                throw Checks.error("blocks", got, "one number of features");
            }
        }
    }

    /** Checks tokens, integers of shape (batch, steps), each below {@code vocabSize}. */
    static void tokens(NDArray X, int vocabSize) {
        Shape shape = X.getShape();
        Checks.rank("X", shape, "batch", "steps");
        if (!X.getDataType().isInteger()) {
            String dtype = Checks.dtypeName(X.getDataType());
            throw Checks.error("X", "dtype " + dtype, "an integer dtype");
        }
        Checks.steps("X", shape, shape.get(1));
        for (long token : MaskedSoftmax.toLongArray(X)) {
            if (token < 0 || token >= vocabSize) {
                String need = "tokens from 0 to %s, of a vocabulary of %s";
                throw Checks.error(
                        "X", "a token of " + token, need.formatted(vocabSize - 1, vocabSize));
            }
        }
    }

    /** Checks that a table of positions has one for each token. */
    static void room(long[][] positions, int maxLen) {
        long needed =
                1 + LongStream.of(SelfAttention.flatten(positions)).max().orElse(-1);
        if (needed > maxLen) {
            throw Checks.error("X", needed + " positions", "at most maxLen = " + maxLen);
        }
    }
}
