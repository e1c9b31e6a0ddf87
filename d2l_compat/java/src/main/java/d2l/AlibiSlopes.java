package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;

/** How much each head's scores fall with each position of distance: ALiBi, Press et al. (2022). */
public final class AlibiSlopes {

    private AlibiSlopes() {}

    /**
     * A slope for each head. Multiplied by minus the distance i - j, they make a bias of the
     * scores for {@link DotProductAttention}.
     *
     * @param manager with which the result goes
     * @param numHeads how many heads there are, H
     * @return 2^(-8h/H) for head h, counted from 1, float32, shape (numHeads); where H is no power
     *     of two, as in the authors' code: those of the power below, and then every second one of
     *     the power above
     * @throws IllegalArgumentException where numHeads is below 1
     */
    public static NDArray alibiSlopes(NDManager manager, int numHeads) {
        Checks.integer("numHeads", numHeads, 1);
        int below = Integer.highestOneBit(numHeads);
        float[] slopes = new float[numHeads];
        for (int head = 0; head < numHeads; head++) {
            double of = head < below ? head + 1 : head - below + 0.5;
            slopes[head] = (float) Math.pow(2, -8 * of / below);
        }
        return manager.create(slopes);
    }
}
