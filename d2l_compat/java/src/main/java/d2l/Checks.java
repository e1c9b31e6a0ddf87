package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Argument checks, with the same messages as in the Python frameworks.
 *
 * <p>Every message has the form {@code what: got this; need that}. Names are spelled as in Java:
 * {@code validLens}, not {@code valid_lens}. Integers are formatted with {@code %s}, since {@code
 * %d} would use the digits of the user's locale.
 */
final class Checks {

    private Checks() {}

    static IllegalArgumentException error(String what, Object got, String need) {
        return new IllegalArgumentException("%s: got %s; need %s".formatted(what, got, need));
    }

    static void integer(String what, long value, long minimum) {
        if (value < minimum) {
            throw error(what, value, "an integer of at least " + minimum);
        }
    }

    /** Returns {@code value} if it is an Integer of at least 1. */
    static int size(String what, Object value) {
        int size = instance(what, value, Integer.class, "an integer of at least 1");
        integer(what, size, 1);
        return size;
    }

    static void dropout(float value) {
        if (!(0 <= value && value <= 1)) {
            throw error("dropout", value, "a probability, from 0 to 1");
        }
    }

    static void heads(int numHiddens, int numHeads) {
        integer("numHiddens", numHiddens, 1);
        integer("numHeads", numHeads, 1);
        if (numHiddens % numHeads != 0) {
            throw error(
                    "numHiddens",
                    "%s with numHeads %s".formatted(numHiddens, numHeads),
                    "a multiple of numHeads, so that every head gets an equal share");
        }
    }

    /** Checks the shape of a batch that has one row per example and head. */
    static void headRows(Shape shape, int numHeads) {
        rank("X", shape, "batch * heads", "steps", "numHiddens / heads");
        if (shape.get(0) % numHeads != 0) {
            String got = "shape %s with numHeads %s".formatted(shape, numHeads);
            throw error("X", got, "a batch that is a multiple of numHeads");
        }
    }

    /** Checks that there are {@code min} to {@code max} arrays, which {@code need} names. */
    static void inputCount(NDList inputs, int min, int max, String need) {
        if (inputs.size() < min || inputs.size() > max) {
            throw error("inputs", inputs.size() + " arrays", need);
        }
    }

    /** Checks that all arrays have the same floating-point dtype. */
    static void floating(String what, NDArray... arrays) {
        List<DataType> types = Stream.of(arrays).map(NDArray::getDataType).distinct().toList();
        if (types.size() > 1 || !types.get(0).isFloating()) {
            String names = types.stream().map(Checks::dtypeName).collect(Collectors.joining(", "));
            throw error(what, "dtype " + names, "one floating-point dtype");
        }
    }

    /** Returns a name like float32 in any locale; DJL's own method depends on the default one. */
    static String dtypeName(DataType type) {
        return type.name().toLowerCase(Locale.ROOT);
    }

    /** Checks that {@code shape} has one dimension for each name in {@code axes}. */
    static void rank(String what, Shape shape, String... axes) {
        if (shape.dimension() != axes.length) {
            String need = "%s dimensions (%s)".formatted(axes.length, String.join(", ", axes));
            throw error(what, "shape " + shape, need);
        }
    }

    static void lastDimension(String what, Shape shape, long size) {
        if (shape.getLastDimension() != size) {
            throw error(what, "shape " + shape, "a last dimension of " + size);
        }
    }

    /**
     * Checks for shapes (batch, queries, features), (batch, keys, features) and (batch, keys,
     * features).
     */
    static void attentionInputs(Shape queries, Shape keys, Shape values) {
        rank("queries", queries, "batch", "queries", "features");
        rank("keys", keys, "batch", "keys", "features");
        rank("values", values, "batch", "keys", "features");
        if (queries.get(0) != keys.get(0) || keys.get(0) != values.get(0)) {
            String got = "%s, %s and %s".formatted(queries.get(0), keys.get(0), values.get(0));
            throw error("batch sizes of queries, keys and values", got, "equal batch sizes");
        }
        if (queries.get(2) == 0) {
            throw error("queries", "shape " + queries, "at least one feature");
        }
        if (keys.get(1) != values.get(1)) {
            String got = "%s keys and %s values".formatted(keys.get(1), values.get(1));
            throw error("keys and values", got, "one value for each key");
        }
    }

    /** Returns {@code value} cast to {@code type}. */
    static <T> T instance(String what, Object value, Class<T> type, String need) {
        if (!type.isInstance(value)) {
            throw error(what, value == null ? null : value.getClass().getSimpleName(), need);
        }
        return type.cast(value);
    }

    /** Checks that every query has a key, since the last query is aligned with the last key. */
    static void causal(long numQueries, long numKeys) {
        if (numQueries > numKeys) {
            String got = "%s queries and %s keys".formatted(numQueries, numKeys);
            throw error("causal attention", got, "at least one key for each query");
        }
    }

    /** Checks the shape of a bias; numHeads is 0 for attention without an axis of heads. */
    static void scoreBias(Shape shape, long batch, long numQueries, long numKeys, int numHeads) {
        Shape scores = new Shape(numQueries, numKeys);
        Map<String, Shape> allowed = new LinkedHashMap<>();
        allowed.put("queries, keys", scores);
        if (numHeads == 0) {
            allowed.put("batch, queries, keys", new Shape(batch).addAll(scores));
        } else {
            allowed.put("heads, queries, keys", new Shape(numHeads).addAll(scores));
            allowed.put(
                    "batch, heads, queries, keys", new Shape(batch, numHeads).addAll(scores));
        }
        if (!allowed.containsValue(shape)) {
            String need =
                    allowed.entrySet().stream()
                            .map(each -> "(%s), here %s".formatted(each.getKey(), each.getValue()))
                            .collect(Collectors.joining(" or "));
            throw error("scoreBias", "shape " + shape, "shape " + need);
        }
    }

    /** Checks the arguments of a rotary encoding. */
    static void rotary(
            int numHiddens, int maxLen, double base, Object layout, double positionScale) {
        integer("numHiddens", numHiddens, 1);
        integer("maxLen", maxLen, 1);
        tableSize(maxLen, numHiddens);
        if (numHiddens % 2 != 0) {
            throw error("numHiddens", numHiddens, "an even number, since pairs are rotated");
        }
        finiteAbove("base", base, 1);
        finiteAbove("positionScale", positionScale, 0);
        instance("layout", layout, RotaryEncoding.Layout.class, "INTERLEAVED or HALVES");
    }

    private static void finiteAbove(String what, double value, int bound) {
        if (!(bound < value && value < Double.POSITIVE_INFINITY)) {
            throw error(what, value, "a finite number above " + bound);
        }
    }

    private static void integerType(String what, NDArray array) {
        if (!array.getDataType().isInteger()) {
            throw error(what, "dtype " + dtypeName(array.getDataType()), "an integer dtype");
        }
    }

    /** Checks for integers of shape (batch) or (batch, queries). */
    static void validLens(NDArray validLens, long batch, long numQueries) {
        integerType("validLens", validLens);
        Shape shape = validLens.getShape();
        Shape perExample = new Shape(batch);
        Shape perQuery = new Shape(batch, numQueries);
        if (!shape.equals(perExample) && !shape.equals(perQuery)) {
            String need = "shape %s, a length per example, or %s, one per query";
            throw error("validLens", "shape " + shape, need.formatted(perExample, perQuery));
        }
    }

    /** Checks a length; {@code unit} says what there are {@code largest} of. */
    static void lengthRange(long length, long largest, String unit) {
        if (length < 0 || length > largest) {
            String need = "lengths from 0 to %s, the number of %s".formatted(largest, unit);
            throw error("validLens", "a length of " + length, need);
        }
    }

    /** Checks the arguments of causal self-attention, but for the dropout. */
    static void causalSizes(
            int numHiddens,
            int numHeads,
            int numKvHeads,
            boolean rope,
            Integer window,
            int numSinks) {
        heads(numHiddens, numHeads);
        integer("numKvHeads", numKvHeads, 1);
        if (numHeads % numKvHeads != 0) {
            throw error(
                    "numKvHeads",
                    "%s with numHeads %s".formatted(numKvHeads, numHeads),
                    "a divisor of numHeads, so that each serves equally many heads of queries");
        }
        window(window, numSinks);
        if (numSinks > 0 && window == null) {
            throw error("numSinks", numSinks + " without a window", "a window");
        }
        int headSize = numHiddens / numHeads;
        if (rope && headSize % 2 != 0) {
            String got = "true with %s features per head".formatted(headSize);
            throw error("rope", got, "an even number of features per head");
        }
    }

    /** Checks a window, of which null means none. */
    static void window(Integer window, int numSinks) {
        if (window != null) {
            integer("window", window, 1);
        }
        integer("numSinks", numSinks, 0);
    }

    /** Checks that an array has the dtype of a projection's weights. */
    static void weightType(String what, NDArray array, Linear projection) {
        Parameter weight = projection.getDirectParameters().get("weight");
        DataType type = weight.getArray().getDataType();
        if (array.getDataType() != type) {
            throw error(
                    what,
                    "dtype " + dtypeName(array.getDataType()),
                    dtypeName(type) + ", as the layer's weights are; convert one of the two");
        }
    }

    /** Checks the shape of texts, (batch, steps, numHiddens). */
    static void texts(Shape X, int numHiddens) {
        rank("X", X, "batch", "steps", "features");
        lastDimension("X", X, numHiddens);
        steps("X", X, X.get(1));
    }

    /** Checks the shape of texts, and that they have the dtype of a projection's weights. */
    static void texts(NDArray X, int numHiddens, Linear projection) {
        floating("X", X);
        texts(X.getShape(), numHiddens);
        weightType("X", X, projection);
    }

    static void steps(String what, Shape shape, long numSteps) {
        if (numSteps == 0) {
            throw error(what, "shape " + shape, "at least one step");
        }
    }

    /** Checks new keys and values for a cache, by its keys' shape. */
    static void cacheShapes(Shape keys, Shape values, Shape cache) {
        rank("keys", keys, "batch", "kv heads", "steps", "features");
        rank("values", values, "batch", "kv heads", "steps", "features");
        long numSteps = keys.get(2);
        steps("keys", keys, numSteps);
        cacheShape("keys", keys, cache, numSteps, "steps");
        cacheShape("values", values, cache, numSteps, String.valueOf(numSteps));
    }

    private static void cacheShape(
            String what, Shape shape, Shape cache, long numSteps, String steps) {
        if (!shape.equals(new Shape(cache.get(0), cache.get(1), numSteps, cache.get(3)))) {
            String need = "shape (%s, %s, %s, %s), to fit the cache";
            throw error(
                    what,
                    "shape " + shape,
                    need.formatted(cache.get(0), cache.get(1), steps, cache.get(3)));
        }
    }

    /** Returns a length for each example; null means all steps. */
    static long[] textLens(NDArray validLens, int batch, long numSteps) {
        if (validLens == null) {
            return textLens((long[]) null, batch, numSteps);
        }
        integerType("validLens", validLens);
        textLensShape(validLens.getShape(), batch);
        return textLens(MaskedSoftmax.toLongArray(validLens), batch, numSteps);
    }

    /** Returns a length for each example; null means all steps. */
    static long[] textLens(long[] validLens, int batch, long numSteps) {
        if (validLens == null) {
            return LongStream.generate(() -> numSteps).limit(batch).toArray();
        }
        textLensShape(new Shape(validLens.length), batch);
        LongStream.of(validLens).forEach(each -> lengthRange(each, numSteps, "steps"));
        return validLens;
    }

    private static void textLensShape(Shape shape, int batch) {
        if (!shape.equals(new Shape(batch))) {
            String need = "shape %s, a length per example".formatted(new Shape(batch));
            throw error("validLens", "shape " + shape, need);
        }
    }

    /** Returns the decay of each head; a single one is that of all heads. */
    static double[] decay(double[] decay, int numHeads) {
        if (decay.length != 1 && decay.length != numHeads) {
            String need = "one number, or %s, one per head".formatted(numHeads);
            throw error("decay", decay.length + " numbers", need);
        }
        double[] perHead = new double[numHeads];
        for (int head = 0; head < numHeads; head++) {
            perHead[head] = decay[decay.length == 1 ? 0 : head];
            if (!(0 < perHead[head] && perHead[head] <= 1)) {
                throw error("decay", perHead[head], "a number above 0 and at most 1");
            }
        }
        return perHead;
    }

    /** Checks that a table fits in a Java array. */
    static void tableSize(int maxLen, int numHiddens) {
        if ((long) maxLen * numHiddens > Integer.MAX_VALUE) {
            String got = "%s with numHiddens %s".formatted(maxLen, numHiddens);
            throw error("maxLen", got, "at most " + Integer.MAX_VALUE + " numbers in the table");
        }
    }

    /** Checks that the positions {@code offset} to {@code offset + numSteps - 1} exist. */
    static void positions(long offset, long numSteps, long maxLen) {
        integer("offset", offset, 0);
        if (offset > maxLen - numSteps) { // offset + numSteps could overflow
            String need = "at most %s in all; make the layer with a larger maxLen";
            String got = "%s positions from offset %s".formatted(numSteps, offset);
            throw error("positions", got, need.formatted(maxLen));
        }
    }
}
