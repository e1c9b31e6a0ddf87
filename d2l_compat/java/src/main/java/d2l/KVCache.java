package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Keys and values of the tokens that an attention layer has read, for a batch of texts.
 *
 * <p>The slots for them are allocated once, on a manager of the cache's own, and {@link #close}
 * releases them. With a window there are {@code numSinks + window} slots: the first {@code
 * numSinks} tokens stay, and each new one replaces the oldest of the others. A layer makes a cache
 * that fits with {@link CausalSelfAttention#makeCache}. A cache is for generating, not for
 * training: no gradient flows through it.
 */
public final class KVCache implements AutoCloseable {

    /**
     * Old and new tokens together, so that a query finds even those that later tokens of its own
     * chunk replace.
     *
     * @param keys shape (batch, kv heads, keys, features), valid until the next call
     * @param values the same shape
     * @param positions the position of each key, counted from 0 in each text; -1 if there is none
     */
    public record Tokens(NDArray keys, NDArray values, long[][] positions) {}

    private final NDManager manager;
    private final NDArray slots; // keys and values, one behind the other
    private final NDArray keys;
    private final NDArray values;
    private final long[] lengths;
    private final long size;
    private final int numSinks;
    private final boolean isRolling; // whether new tokens may replace old ones

    /**
     * Makes a cache.
     *
     * @param manager a manager with which the cache is closed, if not earlier
     * @param dataType the dtype of keys and values
     * @param batchSize the number of texts
     * @param numKvHeads the number of heads of keys and values
     * @param headSize the features of a head
     * @param maxLen the largest number of tokens, if there is no window
     * @param window how many of the latest tokens are kept; null means all
     * @param numSinks with a window, how many of the first tokens are kept as well
     * @throws IllegalArgumentException for an argument out of range
     */
    public KVCache(
            NDManager manager,
            DataType dataType,
            int batchSize,
            int numKvHeads,
            int headSize,
            int maxLen,
            Integer window,
            int numSinks) {
        Checks.window(window, numSinks);
        Checks.integer("maxLen", maxLen, 1);
        Checks.integer("batchSize", batchSize, 1);
        Checks.integer("numKvHeads", numKvHeads, 1);
        Checks.integer("headSize", headSize, 1);
        this.isRolling = window != null;
        this.numSinks = numSinks;
        this.size = isRolling ? (long) numSinks + window : maxLen;
        this.lengths = new long[batchSize];
        this.manager = manager.newSubManager();
        Shape shape = new Shape(2, batchSize, numKvHeads, size, headSize);
        this.slots = this.manager.zeros(shape, dataType);
        this.keys = slots.get(0);
        this.values = slots.get(1);
    }

    /** Returns the slots of the keys, shape (batch, kv heads, slots, features). */
    public NDArray keys() {
        return keys;
    }

    /** Returns the slots of the values, of the same shape. */
    public NDArray values() {
        return values;
    }

    /** Returns how many tokens each text has so far. */
    public long[] lengths() {
        return lengths.clone();
    }

    /** Returns the size of keys and values, in bytes. */
    public long nbytes() {
        return slots.size() * slots.getDataType().getNumOfBytes();
    }

    /** Forgets all tokens; the slots are kept. */
    public void reset() {
        Arrays.fill(lengths, 0);
    }

    /**
     * Adds the keys and values of new tokens.
     *
     * @param newKeys shape (batch, kv heads, steps, features), of the cache's dtype
     * @param newValues the same
     * @param validLens how many tokens of each text are real; the others are padding after them.
     *     null means all
     * @return the tokens that a query may see, on the manager of {@code newKeys}
     * @throws IllegalArgumentException if they do not fit; the cache is then left as it was
     */
    public Tokens append(NDArray newKeys, NDArray newValues, long[] validLens) {
        Checks.cacheShapes(newKeys.getShape(), newValues.getShape(), keys.getShape());
        Checks.floating("cache, keys and values", keys, newKeys, newValues);
        int batch = lengths.length;
        int numSteps = (int) newKeys.getShape().get(2);
        long[] lens = Checks.textLens(validLens, batch, numSteps);
        long[] newLengths = new long[batch];
        Arrays.setAll(newLengths, row -> lengths[row] + lens[row]);
        long longest = LongStream.of(newLengths).max().orElseThrow();
        if (!isRolling && longest > size) {
            throw Checks.error(
                    "cache", longest + " tokens", "at most %s; make it larger".formatted(size));
        }
        NDManager target = newKeys.getManager();
        // Intermediate arrays are closed with this manager.
        try (NDManager scratch = target.newSubManager(newKeys.getDevice())) {
            scratch.tempAttachAll(newKeys, slots);
            NDArray added = Trace.unwatch(newKeys.stack(newValues).stopGradient());
            boolean isUniform =
                    LongStream.of(lengths).allMatch(each -> each == lengths[0])
                            && LongStream.of(lens).allMatch(each -> each == numSteps);
            NDArray all;
            long[][] positions = new long[batch][];
            if (isUniform && longest <= size) {
                slots.set(new NDIndex(":, :, :, {}:{}", lengths[0], longest), added);
                all = slots.get(":, :, :, :{}", longest);
                Arrays.fill(positions, LongStream.range(0, longest).toArray());
            } else {
                all = slots.concat(added, 3);
                Arrays.setAll(positions, row -> positions(row, lens[row], numSteps));
                long[] sources =
                        IntStream.range(0, batch)
                                .mapToObj(row -> sources(row, newLengths[row]))
                                .flatMapToLong(each -> each)
                                .toArray();
                NDArray index = scratch.create(sources, new Shape(1, batch, 1, size, 1));
                NDArray kept = all.gather(index.broadcast(slots.getShape()), 3);
                slots.set(new NDIndex(":"), kept); // in place, unlike copyTo
            }
            System.arraycopy(newLengths, 0, lengths, 0, batch);
            Tokens tokens = new Tokens(all.get(0), all.get(1), positions);
            tokens.keys().attach(target);
            tokens.values().attach(target);
            return tokens;
        }
    }

    /**
     * Checks that a layer can use the cache. A cache without a window has all that a layer with a
     * window needs.
     */
    void checkFits(int batch, int numKvHeads, int headSize, Integer window, int sinks) {
        if (lengths.length != batch) {
            String got = "a cache for a batch of " + lengths.length;
            throw Checks.error("cache", got, "one for the batch of " + batch);
        }
        Shape shape = keys.getShape();
        if (shape.get(1) != numKvHeads || shape.get(3) != headSize) {
            String got = "a cache for %s heads of width %s".formatted(shape.get(1), shape.get(3));
            String need = "one for %s heads of width %s".formatted(numKvHeads, headSize);
            throw Checks.error("cache", got, need);
        }
        boolean hasSameWindow =
                window != null && window == size - numSinks && sinks == numSinks;
        if (isRolling && !hasSameWindow) {
            String windowAndSinks = "for a window of %s and %s sinks";
            String got = "a cache " + windowAndSinks.formatted(size - numSinks, numSinks);
            String need = "one " + windowAndSinks.formatted(window, sinks);
            throw Checks.error("cache", got, window == null ? "one without a window" : need);
        }
    }

    /** Returns the positions in the slots of a text, then those of its new tokens. */
    private long[] positions(int row, long validLen, int numSteps) {
        LongStream held = LongStream.range(0, size).map(slot -> heldPosition(slot, lengths[row]));
        LongStream added = newPositions(lengths[row], validLen, numSteps);
        return LongStream.concat(held, added).toArray();
    }

    /** Returns where each slot's token is: in the old slots, or behind them among the new ones. */
    private LongStream sources(int row, long newLength) {
        return LongStream.range(0, size)
                .map(
                        slot -> {
                            long held = heldPosition(slot, newLength);
                            boolean isNew = held >= lengths[row];
                            return isNew ? size + held - lengths[row] : slot;
                        });
    }

    /** Returns the position in a slot after {@code length} tokens; -1 if there is none. */
    private long heldPosition(long slot, long length) {
        long last = length - 1;
        if (slot > last) {
            return -1;
        }
        if (!isRolling || slot < numSinks) {
            return slot;
        }
        long numRolling = size - numSinks;
        return slot + numRolling * ((last - slot) / numRolling);
    }

    /** Returns the positions of a text's new tokens; -1 for padding. */
    static LongStream newPositions(long length, long validLen, int numSteps) {
        return LongStream.range(0, numSteps).map(step -> step < validLen ? length + step : -1);
    }

    /** Releases the slots. */
    @Override
    public void close() {
        manager.close();
    }
}
