package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.util.PairList;

/** The masks that a call of attention may ask for beside the lengths, in its {@code params}. */
record Masks(boolean causal, NDArray scoreBias) {

    private static final String CAUSAL = "causal";
    private static final String SCORE_BIAS = "scoreBias";

    /**
     * What a call was given.
     *
     * @param params null, like an empty list, asks for nothing
     * @throws IllegalArgumentException for another name, since nobody sees that a mask is missing,
     *     or for a value of another kind
     */
    static Masks of(PairList<String, Object> params) {
        boolean causal = false;
        NDArray scoreBias = null;
        PairList<String, Object> given = params == null ? new PairList<>() : params;
        for (var param : given) {
            switch (param.getKey()) {
                case CAUSAL ->
                        causal =
                                Checks.instance(
                                        CAUSAL, param.getValue(), Boolean.class, "true or false");
                case SCORE_BIAS ->
                        scoreBias =
                                Checks.instance(
                                        SCORE_BIAS, param.getValue(), NDArray.class, "an NDArray");
                default ->
                        throw Checks.fault(
                                "params", param.getKey(), CAUSAL + " or " + SCORE_BIAS);
            }
        }
        return new Masks(causal, scoreBias);
    }

    /** They fit one head's queries and keys. */
    void check(NDArray queries, NDArray keys) {
        check(queries, keys, 0);
    }

    /** They fit so many heads; 0 stands for attention without an axis of heads. */
    void check(NDArray queries, NDArray keys, int numHeads) {
        Shape of = queries.getShape();
        long numKeys = keys.getShape().get(1);
        if (causal) {
            Checks.causal(of.get(1), numKeys);
        }
        if (scoreBias != null) {
            Checks.scoreBias(scoreBias.getShape(), of.get(0), of.get(1), numKeys, numHeads);
            Checks.floating("queries and scoreBias", queries, scoreBias);
        }
    }

    /**
     * The same for a batch in which each example stands once for each head, as {@code params}.
     *
     * @param manager with which a bias that had to be repeated goes
     * @return null where nothing was asked for
     */
    PairList<String, Object> forHeads(long batch, int numHeads, NDManager manager) {
        PairList<String, Object> params = new PairList<>();
        if (causal) {
            params.add(CAUSAL, true);
        }
        if (scoreBias != null) {
            params.add(SCORE_BIAS, perHead(batch, numHeads, manager));
        }
        return params.isEmpty() ? null : params;
    }

    /** In the order of the heads: (queries, keys), or (batch * heads, queries, keys). */
    private NDArray perHead(long batch, int numHeads, NDManager manager) {
        Shape shape = scoreBias.getShape();
        int axes = shape.dimension();
        if (axes == 2) {
            return scoreBias;
        }
        Shape scores = shape.slice(axes - 2);
        NDArray repeated = scoreBias.broadcast(new Shape(batch, numHeads).addAll(scores));
        NDArray perHead = repeated.reshape(new Shape(batch * numHeads).addAll(scores));
        repeated.attach(manager); // the bias's own may live longer
        perHead.attach(manager);
        return perHead;
    }
}
