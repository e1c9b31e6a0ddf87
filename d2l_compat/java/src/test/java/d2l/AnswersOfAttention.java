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

/** What attention answers, with the masks, or with the table, that a case has. */
final class AnswersOfAttention {

    private AnswersOfAttention() {}

    static void attention(Case asked) {
        List<String> inputs = new ArrayList<>(List.of("queries", "keys", "values"));
        NDList arrays = new NDList(inputs.stream().map(asked::get).toList());
        MultiHeadAttention layer = loaded(asked, arrays);
        if (asked.has("valid_lens")) {
            arrays.add(asked.get("valid_lens"));
        }
        PairList<String, Object> masks = new PairList<>();
        if (asked.has("causal")) {
            masks.add("causal", true);
        }
        if (asked.has("score_bias")) {
            masks.add("scoreBias", asked.get("score_bias"));
            inputs.add("score_bias");
        }
        asked.call(layer, arrays, masks, inputs.toArray(String[]::new));
        asked.answer("weights", layer.attentionWeights());
    }

    /** The same, with a bias made of the slopes and the distances. */
    static void alibi(Case asked) {
        int numHeads = asked.integer("num_heads");
        NDArray distances = asked.get("distances");
        NDArray slopes =
                AlibiSlopes.alibiSlopes(asked.manager(), numHeads)
                        .toType(distances.getDataType(), false);
        asked.answer("slopes", slopes);
        asked.arrays().put("score_bias", slopes.neg().reshape(numHeads, 1, 1).mul(distances));
        attention(asked);
    }

    /** Dot-product attention, with the table's row for each distance from a query to a key. */
    static void relative(Case asked) {
        DotProductAttention layer = new DotProductAttention(0);
        ParameterStore store = new ParameterStore(asked.manager(), false);
        LambdaBlock withTable =
                new LambdaBlock(
                        inputs -> {
                            NDArray bias = relativeBias(inputs.head(), asked.get("table"));
                            var masks = new PairList<String, Object>(Map.of("scoreBias", bias));
                            return layer.forward(store, inputs, false, masks);
                        });
        NDList inputs = new NDList(asked.get("queries"), asked.get("keys"), asked.get("values"));
        asked.call(withTable, inputs, null, "queries", "keys", "values", "table");
        asked.answer("weights", layer.attentionWeights());
    }

    /** Each query with the row for each key, over the root of d: shape (batch, steps, steps). */
    private static NDArray relativeBias(NDArray queries, NDArray table) {
        int far = (int) table.getShape().get(0) / 2;
        NDArray steps = queries.getManager().arange((int) queries.getShape().get(1));
        NDArray rows = steps.expandDims(1).sub(steps).clip(-far, far).add(far);
        NDArray vectors = Embedding.embedding(rows, table, SparseFormat.DENSE).head();
        // An array, since DJL would let go of a number before the gradient is taken.
        NDArray root =
                queries.getManager()
                        .create(new double[] {Math.sqrt(width(queries))})
                        .toType(queries.getDataType(), false);
        return queries.expandDims(2).mul(vectors).sum(new int[] {3}).div(root);
    }

    /** Of the case's sizes, and with its projections. */
    private static MultiHeadAttention loaded(Case asked, NDList inputs) {
        MultiHeadAttention layer =
                new MultiHeadAttention(
                        width(asked.get("keys")),
                        width(asked.get("queries")),
                        width(asked.get("values")),
                        width(asked.get("W_o")),
                        asked.integer("num_heads"),
                        0,
                        true);
        layer.initialize(asked.manager(), inputs.head().getDataType(), inputs.getShapes());
        Map<String, Linear> projections =
                Map.of("q", layer.W_q, "k", layer.W_k, "v", layer.W_v, "o", layer.W_o);
        projections.forEach(
                (role, projection) -> {
                    // DJL's are (outputs, inputs).
                    load(projection, "weight", asked.get("W_" + role).transpose());
                    load(projection, "bias", asked.get("b_" + role));
                });
        return layer;
    }

    private static void load(Linear projection, String name, NDArray array) {
        array.copyTo(projection.getDirectParameters().get(name).getArray());
    }

    private static int width(NDArray array) {
        return (int) array.getShape().getLastDimension();
    }
}
