package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.PairList;

/** The masks in the {@code params} of an attention call: all of its masks but the lengths. */
record Masks(boolean causal, NDArray scoreBias, Integer window) {

    private static final String CAUSAL = "causal";
    private static final String SCORE_BIAS = "scoreBias";
    private static final String WINDOW = "window";

    /**
     * Reads the masks of a call.
     *
     * @param params the call's; null and an empty list mean no masks
     * @throws IllegalArgumentException for an unknown name, since a mask that is silently ignored
     *     would go unnoticed, or for a value of a wrong type
     */
    static Masks of(PairList<String, Object> params) {
        boolean causal = false;
        NDArray scoreBias = null;
        Integer window = null;
        for (var param : params == null ? new PairList<String, Object>() : params) {
            switch (param.getKey()) {
                case CAUSAL ->
                        causal =
                                Checks.instance(
                                        CAUSAL, param.getValue(), Boolean.class, "true or false");
                case SCORE_BIAS ->
                        scoreBias =
                                Checks.instance(
                                        SCORE_BIAS, param.getValue(), NDArray.class, "an NDArray");
                case WINDOW -> window = Checks.size(WINDOW, param.getValue());
                default ->
                        throw Checks.error(
                                "params", param.getKey(), "causal, scoreBias or window");
            }
        }
        return new Masks(causal, scoreBias, window);
    }

    /** Returns whether queries see no later keys; a window implies it. */
    boolean isCausal() {
        return causal || window != null;
    }

    /** Checks that the masks fit queries and keys without an axis of heads. */
    void check(NDArray queries, NDArray keys) {
        check(queries, keys, 0);
    }

    /** Checks that the masks fit this number of heads; 0 means no axis of heads. */
    void check(NDArray queries, NDArray keys, int numHeads) {
        long batch = queries.getShape().get(0);
        long numQueries = queries.getShape().get(1);
        long numKeys = keys.getShape().get(1);
        if (isCausal()) {
            Checks.causal(numQueries, numKeys);
        }
        if (scoreBias != null) {
            Checks.scoreBias(scoreBias.getShape(), batch, numQueries, numKeys, numHeads);
            Checks.floating("queries and scoreBias", queries, scoreBias);
        }
    }

    /**
     * Returns the {@code params} for a batch that has one row per example and head.
     *
     * @param manager the manager to which a repeated bias is attached
     * @return null if there are no masks
     */
    PairList<String, Object> headParams(long batch, int numHeads, NDManager manager) {
        PairList<String, Object> params = new PairList<>();
        if (causal) {
            params.add(CAUSAL, true);
        }
        if (scoreBias != null) {
            params.add(SCORE_BIAS, biasPerHead(batch, numHeads, manager));
        }
        if (window != null) {
            params.add(WINDOW, window);
        }
        return params.isEmpty() ? null : params;
    }

    /** Reshapes the bias to (queries, keys) or (batch * heads, queries, keys). */
    private NDArray biasPerHead(long batch, int numHeads, NDManager manager) {
        Shape shape = scoreBias.getShape();
        int axes = shape.dimension();
        if (axes == 2) {
            return scoreBias;
        }
        Shape scores = shape.slice(axes - 2);
        NDArray repeated = scoreBias.broadcast(new Shape(batch, numHeads).addAll(scores));
        NDArray perHead = repeated.reshape(new Shape(batch * numHeads).addAll(scores));
        repeated.attach(manager); // the bias's own manager may stay open longer
        perHead.attach(manager);
        return perHead;
    }
}
