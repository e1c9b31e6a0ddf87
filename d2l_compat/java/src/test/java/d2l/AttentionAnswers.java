package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.LambdaBlock;
import ai.djl.nn.core.Embedding;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Computes attention for the cases with masks, with ALiBi and with relative positions. */
final class AttentionAnswers {

    private AttentionAnswers() {}

    static void attention(Case testCase) {
        List<String> inputs = new ArrayList<>(List.of("queries", "keys", "values"));
        NDList arrays = new NDList(inputs.stream().map(testCase::get).toList());
        MultiHeadAttention layer = makeLayer(testCase, arrays);
        if (testCase.has("valid_lens")) {
            arrays.add(testCase.get("valid_lens"));
        }
        PairList<String, Object> masks = new PairList<>();
        if (testCase.has("causal")) {
            masks.add("causal", true);
        }
        if (testCase.has("window")) {
            masks.add("window", testCase.getInteger("window"));
        }
        if (testCase.has("score_bias")) {
            masks.add("scoreBias", testCase.get("score_bias"));
            inputs.add("score_bias");
        }
        testCase.call(layer, arrays, masks, inputs.toArray(String[]::new));
        testCase.addAnswer("weights", layer.attentionWeights());
    }

    /** Computes multi-head attention with a bias from ALiBi's slopes and the distances. */
    static void alibi(Case testCase) {
        int numHeads = testCase.getInteger("num_heads");
        NDArray distances = testCase.get("distances");
        NDArray slopes =
                AlibiSlopes.alibiSlopes(testCase.manager(), numHeads)
                        .toType(distances.getDataType(), false);
        testCase.addAnswer("slopes", slopes);
        testCase.arrays().put("score_bias", slopes.neg().reshape(numHeads, 1, 1).mul(distances));
        attention(testCase);
    }

    /** Computes dot-product attention with a vector for each distance from a query to a key. */
    static void relative(Case testCase) {
        DotProductAttention layer = new DotProductAttention(0);
        ParameterStore store = new ParameterStore(testCase.manager(), false);
        LambdaBlock relativeAttention =
                new LambdaBlock(
                        inputs -> {
                            NDArray bias = relativeBias(inputs.head(), testCase.get("table"));
                            var masks = new PairList<String, Object>(Map.of("scoreBias", bias));
                            return layer.forward(store, inputs, false, masks);
                        });
        NDList inputs =
                new NDList(testCase.get("queries"), testCase.get("keys"), testCase.get("values"));
        testCase.call(relativeAttention, inputs, null, "queries", "keys", "values", "table");
        testCase.addAnswer("weights", layer.attentionWeights());
    }

    /** Returns the products of queries and vectors over the root of d, (batch, steps, steps). */
    private static NDArray relativeBias(NDArray queries, NDArray table) {
        int maxDistance = (int) table.getShape().get(0) / 2;
        NDArray steps = queries.getManager().arange((int) queries.getShape().get(1));
        NDArray distances = steps.expandDims(1).sub(steps).clip(-maxDistance, maxDistance);
        NDArray rows = distances.add(maxDistance);
        NDArray vectors = Embedding.embedding(rows, table, SparseFormat.DENSE).head();
        // An array, since DJL would release a number before the gradient is computed.
        NDArray root =
                queries.getManager()
                        .create(new double[] {Math.sqrt(width(queries))})
                        .toType(queries.getDataType(), false);
        return queries.expandDims(2).mul(vectors).sum(new int[] {3}).div(root);
    }

    /** Makes a layer with the case's sizes and projections. */
    private static MultiHeadAttention makeLayer(Case testCase, NDList inputs) {
        MultiHeadAttention layer =
                new MultiHeadAttention(
                        width(testCase.get("keys")),
                        width(testCase.get("queries")),
                        width(testCase.get("values")),
                        width(testCase.get("W_o")),
                        testCase.getInteger("num_heads"),
                        0,
                        true);
        layer.initialize(testCase.manager(), inputs.head().getDataType(), inputs.getShapes());
        Map<String, Linear> projections =
                Map.of("q", layer.W_q, "k", layer.W_k, "v", layer.W_v, "o", layer.W_o);
        projections.forEach(
                (role, projection) -> {
                    // DJL's weights are (outputs, inputs).
                    load(projection, "weight", testCase.get("W_" + role).transpose());
                    load(projection, "bias", testCase.get("b_" + role));
                });
        return layer;
    }

    static void load(Linear projection, String name, NDArray array) {
        array.copyTo(projection.getDirectParameters().get(name).getArray());
    }

    private static int width(NDArray array) {
        return (int) array.getShape().getLastDimension();
    }
}
