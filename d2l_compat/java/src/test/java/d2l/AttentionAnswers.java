package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.core.Embedding;
import ai.djl.nn.core.Linear;
import ai.djl.util.PairList;

import d2l.Answers.Case;

import java.util.List;
import java.util.function.Supplier;

/** Computes attention with masks, with ALiBi and with relative positions. */
final class AttentionAnswers {

    private static final List<String> INPUTS = List.of("queries", "keys", "values");

    private AttentionAnswers() {}

    static void attention(Case question) {
        attention(question, () -> bias(question));
    }

    static void alibi(Case question) {
        Shape scores = scoresShape(question);
        int numQueries = (int) scores.get(2);
        int numKeys = (int) scores.get(3);
        NDManager manager = question.manager();
        NDArray positions = manager.arange(numKeys - numQueries, numKeys).expandDims(1);
        NDArray distances = positions.sub(manager.arange(numKeys)).abs();
        NDArray slopes = AlibiSlopes.alibiSlopes(manager, (int) scores.get(1));
        NDArray bias = slopes.neg().reshape(-1, 1, 1).mul(distances);
        attention(question, () -> bias.toType(question.get("queries").getDataType(), true));
    }

    static NDArray slopes(Case question) {
        return AlibiSlopes.alibiSlopes(question.manager(), question.getInteger("num_heads"));
    }

    /** Computes attention with a vector for each distance from a query to a key. */
    static void relative(Case question) {
        NDArray queries = question.get("queries");
        NDArray table = question.get("table");
        int maxDistance = (int) table.getShape().get(0) / 2;
        NDArray steps = question.manager().arange((int) queries.getShape().get(2));
        NDArray distances = steps.expandDims(1).sub(steps).clip(-maxDistance, maxDistance);
        NDArray rows = distances.add(maxDistance);
        // An array, since DJL would release a number before the gradient is computed.
        double[] width = {Math.sqrt(queries.getShape().get(3))};
        NDArray root = question.manager().create(width).toType(queries.getDataType(), true);
        attention(
                question,
                () -> {
                    NDArray vectors = Embedding.embedding(rows, table, SparseFormat.DENSE).head();
                    return queries.expandDims(3).mul(vectors).sum(new int[] {4}).div(root);
                });
    }

    /** Computes attention of each head by itself; the function returns a bias, or null. */
    private static void attention(Case question, Supplier<NDArray> makeBias) {
        DotProductAttention layer = new DotProductAttention(0);
        Shape scores = scoresShape(question);
        question.answer(
                () -> {
                    NDList inputs = inputs(question);
                    inputs.replaceAll(AttentionAnswers::joinHeads);
                    if (question.has("lengths")) {
                        inputs.add(question.get("lengths").repeat(0, scores.get(1)));
                    }
                    PairList<String, Object> masks = masks(question);
                    NDArray bias = makeBias.get();
                    if (bias != null) {
                        masks.add("scoreBias", joinHeads(bias.broadcast(scores)));
                    }
                    NDArray output = layer.forward(question.store(), inputs, false, masks).head();
                    return output.reshape(question.get("direction").getShape());
                });
        question.addAnswer("weights", layer.attentionWeights().reshape(scores));
    }

    static void multiHead(Case question) {
        MultiHeadAttention layer = makeLayer(question);
        question.answer(
                () -> {
                    NDList inputs = inputs(question);
                    if (question.has("lengths")) {
                        inputs.add(question.get("lengths"));
                    }
                    PairList<String, Object> masks = masks(question);
                    NDArray bias = bias(question);
                    if (bias != null) {
                        masks.add("scoreBias", bias.broadcast(scoresShape(question)));
                    }
                    return layer.forward(question.store(), inputs, false, masks).head();
                });
        question.addAnswer("weights", layer.attentionWeights());
    }

    private static NDList inputs(Case question) {
        NDList inputs = new NDList();
        INPUTS.forEach(name -> inputs.add(question.get(name)));
        return inputs;
    }

    private static PairList<String, Object> masks(Case question) {
        PairList<String, Object> masks = new PairList<>();
        masks.add("causal", question.has("causal_lower_right"));
        if (question.has("window")) {
            masks.add("window", question.getInteger("window"));
        }
        return masks;
    }

    /** Returns the sum of the case's bias and its mask, which is minus infinity or 0, or null. */
    private static NDArray bias(Case question) {
        if (!question.has("bias")) {
            return question.get("mask");
        }
        NDArray bias = question.get("bias");
        return question.has("mask") ? bias.add(question.get("mask")) : bias;
    }

    /** Returns (batch, heads, queries, keys). */
    private static Shape scoresShape(Case question) {
        Shape queries = question.get("queries").getShape();
        Shape keys = question.get("keys").getShape();
        int steps = queries.dimension() - 2;
        long numHeads =
                question.has("num_heads") ? question.getInteger("num_heads") : queries.get(1);
        return new Shape(queries.get(0), numHeads, queries.get(steps), keys.get(steps));
    }

    /** Reshapes (batch, heads, ...) to (batch * heads, ...). */
    static NDArray joinHeads(NDArray x) {
        return x.reshape(new Shape(-1).addAll(x.getShape().slice(2)));
    }

    /** Makes a layer with the case's sizes and projections. */
    private static MultiHeadAttention makeLayer(Case question) {
        NDList inputs = inputs(question);
        MultiHeadAttention layer =
                new MultiHeadAttention(
                        width(question.get("keys")),
                        width(question.get("queries")),
                        width(question.get("values")),
                        width(question.get("W_o")),
                        question.getInteger("num_heads"),
                        0,
                        question.has("b_q"));
        layer.initialize(question.manager(), inputs.head().getDataType(), inputs.getShapes());
        load(question, layer.W_q, layer.W_k, layer.W_v, layer.W_o);
        return layer;
    }

    /** Loads the case's projections into W_q, W_k, W_v and W_o. */
    static void load(Case question, Linear... projections) {
        for (int i = 0; i < projections.length; i++) {
            char role = "qkvo".charAt(i);
            var parameters = projections[i].getDirectParameters();
            // DJL's weights are (outputs, inputs).
            NDArray weight = question.get("W_" + role).transpose();
            weight.copyTo(parameters.get("weight").getArray());
            if (question.has("b_" + role)) {
                question.get("b_" + role).copyTo(parameters.get("bias").getArray());
            }
        }
    }

    private static int width(NDArray array) {
        return (int) array.getShape().getLastDimension();
    }
}
