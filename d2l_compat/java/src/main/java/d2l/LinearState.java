package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;

/**
 * What a linear attention layer keeps of the tokens that it has read, for a batch of texts; its
 * size does not depend on their number.
 *
 * <p>A layer makes a state with {@link LinearAttention#makeState}. The arrays have a manager of the
 * state's own, and {@link #close} releases them. A state is for generating, not for training: no
 * gradient flows through it into earlier calls.
 */
public final class LinearState implements AutoCloseable {

    private final NDManager manager;
    private NDArray kv;
    private NDArray k;

    /** Makes a state with the dtype and the device of {@code like}, and closed with its manager. */
    LinearState(NDArray like, int batchSize, int numHeads, int headSize) {
        Checks.integer("batchSize", batchSize, 1);
        manager = like.getManager().newSubManager(like.getDevice());
        Shape shape = new Shape(batchSize, numHeads, headSize);
        kv = manager.zeros(shape.add(headSize), like.getDataType());
        k = manager.zeros(shape, like.getDataType());
    }

    /**
     * Returns the sum of the products of keys and values, with decay.
     *
     * @return an array of shape (batch, heads, features, features), valid until the next call
     */
    public NDArray kv() {
        return kv;
    }

    /**
     * Returns the sum of the keys, with decay.
     *
     * @return an array of shape (batch, heads, features), valid until the next call
     */
    public NDArray k() {
        return k;
    }

    /** Returns the size of both sums, in bytes. */
    public long nbytes() {
        return (kv.size() + k.size()) * kv.getDataType().getNumOfBytes();
    }

    /** Forgets all tokens. */
    public void reset() {
        try (NDArray zeroKv = kv.zerosLike();
                NDArray zeroK = k.zerosLike()) {
            replace(zeroKv, zeroK);
        }
    }

    /** Replaces the sums, without their gradients. */
    void replace(NDArray newKv, NDArray newK) {
        // New arrays, since a gradient may still need the numbers in the old ones.
        NDArray oldKv = kv;
        NDArray oldK = k;
        kv = keep(newKv);
        k = keep(newK);
        oldKv.close();
        oldK.close();
    }

    private NDArray keep(NDArray array) {
        NDArray kept = Trace.unwatch(array.stopGradient());
        kept.attach(manager);
        return kept;
    }

    /** Checks that a layer can use the state. */
    void checkFits(long batch, int numHeads, int headSize) {
        Shape shape = k.getShape();
        if (shape.get(0) != batch) {
            String got = "a state for a batch of " + shape.get(0);
            throw Checks.error("state", got, "one for the batch of " + batch);
        }
        if (shape.get(1) != numHeads || shape.get(2) != headSize) {
            String got = "a state for %s heads of width %s".formatted(shape.get(1), shape.get(2));
            String need = "one for %s heads of width %s".formatted(numHeads, headSize);
            throw Checks.error("state", got, need);
        }
    }

    /** Releases the sums. */
    @Override
    public void close() {
        manager.close();
    }
}
