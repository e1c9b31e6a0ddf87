package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.nn.core.Linear;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What multi-head attention answers, with the masks that a case has. */
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
