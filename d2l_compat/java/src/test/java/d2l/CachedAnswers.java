package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Block;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.Map;

/**
 * Computes causal self-attention and linear attention of a whole text, and, with a cache or a
 * state, in chunks of some tokens.
 */
final class CachedAnswers {

    private CachedAnswers() {}

    static void cached(Case question) {
        NDArray x = question.get("x");
        int steps = (int) x.getShape().get(1);
        int batch = (int) x.getShape().get(0);
        boolean hasWindow = question.has("window");
        CausalSelfAttention layer =
                new CausalSelfAttention(
                        (int) x.getShape().getLastDimension(),
                        question.getInteger("num_heads"),
                        0,
                        false,
                        question.getInteger("num_kv_heads"),
                        question.has("rope_interleaved"),
                        hasWindow ? question.getInteger("window") : null,
                        (int) question.getNumber("num_sinks", 0));
        layer.initialize(question.manager(), x.getDataType(), x.getShape());
        AttentionAnswers.load(question, layer.W_q, layer.W_k, layer.W_v, layer.W_o);
        answer(question, layer);
        for (long size : question.get("chunks").toLongArray()) {
            try (KVCache cache = layer.makeCache(batch, steps)) {
                addChunks(question, layer, size, Map.of("cache", cache));
            }
        }
    }

    static void linear(Case question) {
        NDArray x = question.get("x");
        int width = (int) x.getShape().getLastDimension();
        NDArray decay = question.get("decay").toType(DataType.FLOAT64, true);
        int numHeads = (int) decay.size();
        var layer = new LinearAttention(width, numHeads, false, decay.toDoubleArray());
        layer.initialize(question.manager(), x.getDataType(), x.getShape());
        AttentionAnswers.load(question, layer.W_q, layer.W_k, layer.W_v, layer.W_o);
        answer(question, layer);
        for (long size : question.get("chunks").toLongArray()) {
            try (LinearState state = layer.makeState((int) x.getShape().get(0))) {
                addChunks(question, layer, size, Map.of("state", state));
            }
        }
    }

    private static void answer(Case question, Block layer) {
        NDList inputs = new NDList(question.get("x"));
        question.answer(() -> layer.forward(question.store(), inputs, false).head());
    }

    /** Calls a layer with some tokens at a time, and adds the outputs as one answer. */
    private static void addChunks(
            Case question, Block layer, long size, Map<String, Object> params) {
        NDArray x = question.get("x");
        long steps = x.getShape().get(1);
        NDList outputs = new NDList();
        for (long start = 0; start < steps; start += size) {
            NDArray next = x.get(":, {}:{}", start, Math.min(start + size, steps));
            var pairs = new PairList<>(params);
            outputs.addAll(layer.forward(question.store(), new NDList(next), false, pairs));
        }
        question.addAnswer("chunks_" + size, NDArrays.concat(outputs, 1));
    }
}
