package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.Map;

/**
 * Computes causal self-attention and linear attention of a whole text, and, with a cache or a
 * state, in chunks of some tokens.
 */
final class CachedAnswers {

    private CachedAnswers() {}

    static void cached(Case testCase) {
        NDArray X = testCase.get("X");
        CausalSelfAttention layer = makeLayer(testCase);
        testCase.call(layer, new NDList(X), null, "X");
        int steps = (int) X.getShape().get(1);
        int batch = (int) X.getShape().get(0);
        for (int chunk : new int[] {1, 3, steps}) {
            try (KVCache cache = layer.makeCache(batch, steps)) {
                addChunks(testCase, layer, chunk, Map.of("cache", cache));
            }
        }
    }

    static void linear(Case testCase) {
        NDArray X = testCase.get("X");
        int width = (int) X.getShape().getLastDimension();
        NDArray decay = testCase.get("decay").toType(DataType.FLOAT64, true);
        int numHeads = (int) decay.size();
        var layer = new LinearAttention(width, numHeads, false, decay.toDoubleArray());
        layer.initialize(testCase.manager(), X.getDataType(), X.getShape());
        load(testCase, layer.W_q, layer.W_k, layer.W_v, layer.W_o);
        testCase.call(layer, new NDList(X), null, "X");
        for (int chunk : new int[] {1, 3, (int) X.getShape().get(1)}) {
            try (LinearState state = layer.makeState((int) X.getShape().get(0))) {
                addChunks(testCase, layer, chunk, Map.of("state", state));
            }
        }
    }

    /** Calls a layer with some tokens at a time, and adds the outputs as one answer. */
    private static void addChunks(
            Case testCase, Block layer, int chunk, Map<String, Object> params) {
        NDArray X = testCase.get("X");
        int steps = (int) X.getShape().get(1);
        ParameterStore store = new ParameterStore(X.getManager(), false);
        NDList outputs = new NDList();
        for (int start = 0; start < steps; start += chunk) {
            NDArray next = X.get(":, {}:{}", start, Math.min(start + chunk, steps));
            var pairs = new PairList<>(params);
            outputs.addAll(layer.forward(store, new NDList(next), false, pairs));
        }
        String name = chunk == steps ? "all" : String.valueOf(chunk);
        testCase.addAnswer("chunks_" + name, NDArrays.concat(outputs, 1));
    }

    /** Makes a layer with the case's sizes and projections, which have no bias. */
    private static CausalSelfAttention makeLayer(Case testCase) {
        NDArray X = testCase.get("X");
        boolean hasWindow = testCase.has("window");
        CausalSelfAttention layer =
                new CausalSelfAttention(
                        (int) X.getShape().getLastDimension(),
                        testCase.getInteger("num_heads"),
                        0,
                        false,
                        testCase.getInteger("num_kv_heads"),
                        testCase.getInteger("rope") == 1,
                        hasWindow ? testCase.getInteger("window") : null,
                        hasWindow ? testCase.getInteger("num_sinks") : 0);
        layer.initialize(testCase.manager(), X.getDataType(), X.getShape());
        load(testCase, layer.W_q, layer.W_k, layer.W_v, layer.W_o);
        return layer;
    }

    /** Loads the weights of W_q, W_k, W_v and W_o. */
    private static void load(Case testCase, Linear... projections) {
        String[] names = {"W_q", "W_k", "W_v", "W_o"};
        for (int i = 0; i < names.length; i++) {
            // DJL's weights are (outputs, inputs).
            NDArray weight = testCase.get(names[i]).transpose();
            AttentionAnswers.load(projections[i], "weight", weight);
        }
    }
}
