package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.Map;

/** Computes causal self-attention of a whole text, and with a cache in chunks of some tokens. */
final class CachedAnswers {

    private CachedAnswers() {}

    static void cached(Case testCase) {
        NDArray X = testCase.get("X");
        CausalSelfAttention layer = makeLayer(testCase);
        testCase.call(layer, new NDList(X), null, "X");
        int steps = (int) X.getShape().get(1);
        testCase.addAnswer("chunks_1", attendInChunks(layer, X, 1));
        testCase.addAnswer("chunks_3", attendInChunks(layer, X, 3));
        testCase.addAnswer("chunks_all", attendInChunks(layer, X, steps));
    }

    private static NDArray attendInChunks(CausalSelfAttention layer, NDArray X, int chunk) {
        int steps = (int) X.getShape().get(1);
        ParameterStore store = new ParameterStore(X.getManager(), false);
        NDList outputs = new NDList();
        try (KVCache cache = layer.makeCache((int) X.getShape().get(0), steps)) {
            var params = new PairList<String, Object>(Map.of("cache", cache));
            for (int start = 0; start < steps; start += chunk) {
                NDArray next = X.get(":, {}:{}", start, Math.min(start + chunk, steps));
                outputs.addAll(layer.forward(store, new NDList(next), false, params));
            }
        }
        return NDArrays.concat(outputs, 1);
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
        Map<String, Linear> projections =
                Map.of("W_q", layer.W_q, "W_k", layer.W_k, "W_v", layer.W_v, "W_o", layer.W_o);
        // DJL's weights are (outputs, inputs).
        projections.forEach(
                (name, projection) ->
                        AttentionAnswers.load(
                                projection, "weight", testCase.get(name).transpose()));
        return layer;
    }
}
