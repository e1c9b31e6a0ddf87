package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;

/** The slopes by which each head's scores fall with distance: ALiBi, Press et al. (2022). */
public final class AlibiSlopes {

    private AlibiSlopes() {}

    /**
     * Returns a slope for each head. Multiplied by minus the distance i - j, they make a {@code
     * scoreBias} for {@link DotProductAttention}.
     *
     * @param manager the result's manager
     * @param numHeads the number of heads, H
     * @return 2^(-8h/H) for head h, counted from 1, float32, shape (numHeads); if H is not a power
     *     of two, as in the authors' code: the slopes of the next lower power, then every second
     *     slope of the next higher one
     * @throws IllegalArgumentException if numHeads is below 1
     */
    public static NDArray alibiSlopes(NDManager manager, int numHeads) {
        Checks.integer("numHeads", numHeads, 1);
        int lowerPower = Integer.highestOneBit(numHeads);
        float[] slopes = new float[numHeads];
        for (int head = 0; head < numHeads; head++) {
            double h = head < lowerPower ? head + 1 : head - lowerPower + 0.5;
            slopes[head] = (float) Math.pow(2, -8 * h / lowerPower);
        }
        return manager.create(slopes);
    }
}
