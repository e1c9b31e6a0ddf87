package d2l;

import static d2l.Generation.generate;
import static d2l.Generation.nextTokenProbs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.stream.IntStream;

/** Compares causal self-attention and its cache with loops, and tests the choice of tokens. */
class GenerationTest extends ArrayTestBase {

    private static final int[][] CHUNKS = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 3, 3, 3, 1}, {13}, {2, 8, 3}
    };

    private CausalSelfAttention build(int kvHeads, boolean rope, Integer window, int numSinks) {
        var layer = new CausalSelfAttention(16, 4, 0, false, kvHeads, rope, window, numSinks);
        return initialize(layer, random(1, 1, 16));
    }

    private NDArray call(CausalSelfAttention layer, KVCache cache, NDArray... inputs) {
        var params = new PairList<String, Object>(Map.of("cache", cache));
        return layer.forward(
                        new ParameterStore(manager, false), new NDList(inputs), false, params)
                .head();
    }

    private static double[] rotate(double[] head, int position) {
        double[] rotated = new double[4];
        for (int i = 0; i < 4; i += 2) {
            double angle = position * Math.pow(10000, -i / 4.0);
            rotated[i] = head[i] * Math.cos(angle) - head[i + 1] * Math.sin(angle);
            rotated[i + 1] = head[i] * Math.sin(angle) + head[i + 1] * Math.cos(angle);
        }
        return rotated;
    }

    /** Returns the output for one text, shape (steps, 16), computed from the layer's weights. */
    private static double[] attend(
            CausalSelfAttention layer,
            NDArray X,
            int kvHeads,
            boolean rope,
            Integer window,
            int numSinks) {
        double[][] q = LayersTest.project(layer.W_q, X);
        double[][] k = LayersTest.project(layer.W_k, X);
        double[][] v = LayersTest.project(layer.W_v, X);
        List<double[]> output = new ArrayList<>();
        for (int i = 0; i < q.length; i++) {
            double[] pooled = new double[16];
            for (int head = 0; head < 4; head++) {
                int start = head / (4 / kvHeads) * 4;
                double[] query = Arrays.copyOfRange(q[i], 4 * head, 4 * head + 4);
                double[] sum = new double[4];
                double total = 0;
                for (int j = 0; j <= i; j++) {
                    if (window != null && i - j >= window && j >= numSinks) {
                        continue;
                    }
                    double[] key = Arrays.copyOfRange(k[j], start, start + 4);
                    double[] left = rope ? rotate(query, i) : query;
                    double[] right = rope ? rotate(key, j) : key;
                    double score =
                            IntStream.range(0, 4).mapToDouble(c -> left[c] * right[c]).sum();
                    double weight = Math.exp(score / 2);
                    total += weight;
                    for (int c = 0; c < 4; c++) {
                        sum[c] += weight * v[j][start + c];
                    }
                }
                for (int c = 0; c < 4; c++) {
                    pooled[4 * head + c] = sum[c] / total;
                }
            }
            output.add(LayersTest.project(layer.W_o, pooled));
        }
        return output.stream().flatMapToDouble(Arrays::stream).toArray();
    }

    // ---- the cache ----

    @ParameterizedTest
    @CsvSource({
        "4, true, , 0", "2, false, , 0", "1, true, , 0",
        "4, true, 3, 0", "2, false, 3, 0", "1, true, 5, 2", "2, true, 5, 2", "4, false, 1, 1",
    })
    void chunksEqualWholeTextAndReference(
            int kvHeads, boolean rope, Integer window, int numSinks) {
        CausalSelfAttention wide = build(kvHeads, rope, window, numSinks);
        NDArray numbers = random(2, 13, 16);
        for (DataType type : new DataType[] {DataType.FLOAT64, DataType.FLOAT32}) {
            NDArray X = numbers.toType(type, true);
            var layer = new CausalSelfAttention(16, 4, 0, false, kvHeads, rope, window, numSinks);
            initialize(layer, X);
            for (String name : layer.getParameters().keys()) {
                NDArray weight = wide.getParameters().get(name).getArray();
                weight.toType(type, true).copyTo(layer.getParameters().get(name).getArray());
            }
            double tolerance = type == DataType.FLOAT64 ? 1e-10 : 1e-5;
            NDArray whole = call(layer, X);
            assertEquals(type, whole.getDataType());
            NDList results = new NDList(whole);
            for (int[] chunks : CHUNKS) {
                try (KVCache cache = layer.makeCache(2, 13)) {
                    NDList parts = new NDList();
                    int start = 0;
                    for (int chunk : chunks) {
                        NDArray next = X.get(":, {}:{}", start, start + chunk);
                        parts.add(call(layer, cache, next));
                        start += chunk;
                    }
                    results.add(NDArrays.concat(parts, 1));
                    assertArrayEquals(new long[] {13, 13}, cache.lengths());
                }
            }
            for (int row = 0; row < 2; row++) {
                double[] expected =
                        attend(wide, numbers.get(row), kvHeads, rope, window, numSinks);
                for (NDArray result : results) {
                    assertArrayEquals(expected, doubles(result.get(row)), tolerance);
                }
            }
        }
    }

    private static double[] doubles(NDArray array) {
        return array.toType(DataType.FLOAT64, true).toDoubleArray();
    }

    @ParameterizedTest
    @CsvSource({", 0", "3, 0", "5, 2", "1, 1"})
    void promptsOfDifferentLengthsEqualEachAlone(Integer window, int numSinks) {
        CausalSelfAttention layer = build(2, true, window, numSinks);
        NDArray X = random(3, 13, 16);
        int[] lens = {2, 7, 5};
        double[][] expected = new double[3][];
        NDArray padded = X.get(":, :7").duplicate();
        for (int row = 0; row < 3; row++) {
            expected[row] = attend(layer, X.get(row), 2, true, window, numSinks);
            if (lens[row] < 7) {
                padded.set(new NDIndex("{}, {}:", row, lens[row]), 100);
            }
        }
        try (KVCache cache = layer.makeCache(3, 13)) {
            NDArray prompts = call(layer, cache, padded, manager.create(lens));
            for (int row = 0; row < 3; row++) {
                double[] first = Arrays.copyOf(expected[row], lens[row] * 16);
                NDArray result = prompts.get("{}, :{}", row, lens[row]);
                assertArrayEquals(first, result.toDoubleArray(), 1e-10);
            }
            for (int step = 0; step < 5; step++) {
                NDList next = new NDList();
                for (int row = 0; row < 3; row++) {
                    next.add(X.get("{}, {}:{}", row, lens[row], lens[row] + 1));
                }
                NDArray result = call(layer, cache, NDArrays.stack(next));
                for (int row = 0; row < 3; row++) {
                    int start = lens[row]++ * 16;
                    assertArrayEquals(
                            Arrays.copyOfRange(expected[row], start, start + 16),
                            result.get(row).toDoubleArray(),
                            1e-10);
                }
            }
            // A chunk of which one text gets nothing, and another only a part.
            NDArray chunk = X.get("0:1, 7:10").repeat(0, 3);
            NDArray result = call(layer, cache, chunk, manager.create(new long[] {3, 0, 1}));
            assertArrayEquals(
                    Arrays.copyOfRange(expected[0], 7 * 16, 10 * 16),
                    result.get(0).toDoubleArray(),
                    1e-10);
            assertFalse(result.isNaN().any().getBoolean()); // also where there is only padding
            assertArrayEquals(new long[] {10, 12, 11}, cache.lengths());
        }
    }

    @Test
    void gradientMatchesDifferences() {
        CausalSelfAttention layer = build(2, true, 3, 1);
        NDArray X = random(1, 6, 16);
        NDArray direction = random(1, 6, 16);
        X.setRequiresGradient(true);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray loss = call(layer, X).mul(direction).sum();
            overwriteFreeMemory();
            collector.backward(loss);
        }
        double[] gradient = X.getGradient().toDoubleArray();
        double[] numbers = X.toDoubleArray();
        double[] d = direction.toDoubleArray();
        for (int i = 0; i < numbers.length; i += 5) {
            double[] losses = new double[2];
            for (int side = 0; side < 2; side++) {
                double[] moved = numbers.clone();
                moved[i] += side == 0 ? -1e-4 : 1e-4;
                double[] output =
                        attend(layer, manager.create(moved, new Shape(6, 16)), 2, true, 3, 1);
                losses[side] =
                        IntStream.range(0, d.length).mapToDouble(j -> output[j] * d[j]).sum();
            }
            assertEquals((losses[1] - losses[0]) / 2e-4, gradient[i], 1e-7);
        }
    }

    @Test
    void noGradientFlowsThroughCache() {
        CausalSelfAttention layer = build(4, false, null, 0);
        NDArray X = random(1, 2, 16);
        X.setRequiresGradient(true);
        try (KVCache cache = layer.makeCache(1, 4);
                GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            call(layer, cache, X);
            collector.backward(call(layer, cache, random(1, 1, 16)).sum());
        }
        assertEquals(0, X.getGradient().countNonzero().getLong());
    }

    @Test
    void dropoutActsOnlyInTraining() {
        NDArray X = random(1, 6, 16);
        var layer = initialize(new CausalSelfAttention(16, 4, 0.5f, true), X);
        assertEquals(call(layer, X), call(layer, X));
        assertNotEquals(call(layer, X), call(layer, true, X));
        assertEquals(8, layer.getParameters().size()); // weights and biases
        assertEquals(4, new CausalSelfAttention(16, 4, 0).getParameters().size());
    }

    @Test
    void emptyBatchGivesEmptyResult() {
        NDArray empty = random(0, 3, 16);
        assertEquals(empty.getShape(), call(build(2, true, 3, 1), empty).getShape());
    }

    @Test
    void cacheHasRoomForItsTokensAndCanBeReset() {
        CausalSelfAttention layer = build(2, false, null, 0);
        NDArray X = random(2, 6, 16);
        KVCache cache = layer.makeCache(2, 6);
        // Keys and values, batch, heads, tokens, width, bytes.
        assertEquals(2 * 2 * 2 * 6 * 4 * 8, cache.nbytes());
        NDArray first = call(layer, cache, X);
        double[][] values = LayersTest.project(layer.W_v, X.get(1));
        assertArrayEquals(
                Arrays.copyOfRange(values[5], 4, 8),
                cache.values().get(1, 1, 5).toDoubleArray(),
                1e-12);
        cache.reset();
        assertEquals(first, call(layer, cache, X));
        NDArray keys = cache.keys();
        cache.close();
        assertTrue(keys.isReleased());
        try (KVCache rolling = build(4, false, 3, 1).makeCache(2, 6)) {
            assertEquals(2 * 2 * 4 * 4 * 4 * 8, rolling.nbytes());
        }
    }

    @Test
    void slotsAreAllocatedOnceAndCallsLeaveNoArrays() {
        CausalSelfAttention layer = build(2, true, 3, 1);
        NDArray X = random(2, 5, 16);
        NDArray lens = manager.create(new int[] {4, 5});
        try (KVCache cache = layer.makeCache(2, 5)) {
            NDArray keys = cache.keys();
            NDManager own = keys.getManager();
            int before = manager.getManagedArrays().size();
            for (int step = 0; step < 3; step++) {
                try (NDManager scratch = manager.newSubManager()) {
                    NDArray batch = scratch.create(X.toDoubleArray(), X.getShape());
                    call(layer, cache, batch);
                    call(layer, cache, batch, lens);
                    assertEquals(3, scratch.getManagedArrays().size()); // X and the outputs
                }
            }
            assertEquals(before, manager.getManagedArrays().size());
            assertEquals(3, own.getManagedArrays().size()); // the slots, with two views
            // The views show what was written last: the key of the last token, at position 26.
            assertEquals(26, cache.lengths()[0] - 1);
            double[] last = LayersTest.project(layer.W_k, X.get(0))[3];
            double[] head = rotate(Arrays.copyOf(last, 4), 26);
            assertArrayEquals(head, keys.get(0, 0, 1 + 25 % 3).toDoubleArray(), 1e-12);
        }
    }

    @Test
    void appendReturnsPositions() {
        try (KVCache cache = new KVCache(manager, DataType.FLOAT64, 2, 1, 4, 9, 2, 1)) {
            NDArray X = random(2, 1, 3, 4);
            var first = cache.append(X, X, new long[] {1, 3});
            long[][] padded = {{-1, -1, -1, 0, -1, -1}, {-1, -1, -1, 0, 1, 2}};
            assertArrayEquals(padded, first.positions());
            var second = cache.append(X, X, null);
            long[][] held = {{0, -1, -1, 1, 2, 3}, {0, 1, 2, 3, 4, 5}};
            assertArrayEquals(held, second.positions());
            assertEquals(new Shape(2, 1, 6, 4), second.values().getShape());
            // The newest token replaces the oldest but the sink.
            long[][] third = cache.append(X, X, null).positions();
            assertArrayEquals(new long[] {0, 3, 2, 4, 5, 6}, third[0]);
        }
    }

    @Test
    void traceCountsProductsWithCachedKeys() {
        CausalSelfAttention layer = build(2, true, null, 0);
        for (int[] lens : new int[][] {{5, 5}, {2, 5}}) {
            try (KVCache cache = layer.makeCache(2, 8)) {
                call(layer, cache, random(2, 5, 16), manager.create(lens));
                long cost =
                        Counting.multiplyAdds(each -> call(layer, cache, each), random(2, 1, 16));
                int numKeys = lens[0] == 5 ? 6 : 9; // those of all slots if lengths differ
                assertEquals(2 * (16 * (16 + 8 + 8 + 16) + 2 * 16 * numKeys), cost);
            }
        }
    }

    @Test
    void refusedCallLeavesCacheAsItWas() {
        CausalSelfAttention layer = build(4, true, null, 0);
        NDArray X = random(2, 6, 16);
        try (KVCache cache = layer.makeCache(2, 4);
                KVCache other = build(2, false, null, 0).makeCache(2, 4);
                KVCache rolling = build(4, false, 3, 1).makeCache(2, 4);
                KVCache narrow = makeCache(DataType.FLOAT32)) {
            call(layer, cache, X.get(":, :3"));
            NDArray keys = cache.keys().duplicate();
            assertError(
                    "cache: got 5 tokens; need at most 4; make it larger",
                    () -> call(layer, cache, X.get(":, 3:5")));
            assertError(
                    "cache: got a cache for a batch of 2; need one for the batch of 1",
                    () -> call(layer, cache, X.get(":1, 3:4")));
            assertError(
                    "X: got dtype float32; need float64, as the layer's weights are; convert one"
                        + " of the two",
                    () -> call(layer, cache, X.toType(DataType.FLOAT32, true)));
            assertError(
                    "X: got shape (2, 6, 15); need a last dimension of 16",
                    () -> call(layer, cache, X.get(":, :, :15")));
            assertError(
                    "X: got shape (2, 0, 16); need at least one step",
                    () -> call(layer, cache, X.get(":, 3:3")));
            assertError(
                    "X: got dtype int32; need one floating-point dtype",
                    () -> call(layer, cache, X.toType(DataType.INT32, true)));
            assertError(
                    "X: got shape (6, 16); need 3 dimensions (batch, steps, features)",
                    () -> call(layer, cache, X.get(0)));
            NDArray next = X.get(":, 3:4");
            assertError(
                    "validLens: got a length of 2; need lengths from 0 to 1, the number of steps",
                    () -> call(layer, cache, next, manager.create(new int[] {1, 2})));
            assertError(
                    "validLens: got a length of -1; need lengths from 0 to 1, the number of steps",
                    () -> call(layer, cache, next, manager.create(new int[] {1, -1})));
            assertError(
                    "validLens: got shape (2, 1); need shape (2), a length per example",
                    () -> call(layer, cache, next, manager.create(new int[][] {{1}, {1}})));
            assertError(
                    "validLens: got dtype float32; need an integer dtype",
                    () -> call(layer, cache, next, manager.create(new float[] {1, 1})));
            assertArrayEquals(new long[] {3, 3}, cache.lengths());
            assertEquals(keys, cache.keys());
            assertArrayEquals(
                    call(layer, X).get(":, 3:4").toDoubleArray(),
                    call(layer, cache, next).toDoubleArray(),
                    1e-10);
            assertError(
                    "cache: got a cache for 2 heads of width 4; need one for 4 heads of width 4",
                    () -> call(layer, other, next));
            assertError(
                    "cache: got a cache for a window of 3 and 1 sinks; need one without a window",
                    () -> call(layer, rolling, next));
            assertError(
                    "cache: got a cache for a window of 3 and 1 sinks; need one for a window of 3"
                        + " and 0 sinks",
                    () -> call(build(4, true, 3, 0), rolling, next));
            assertError(
                    "keys: got shape (2, 4, 1, 4); need shape (2, 2, steps, 4), to fit the cache",
                    () -> other.append(random(2, 4, 1, 4), random(2, 4, 1, 4), null));
            assertError(
                    "values: got shape (2, 2, 2, 4); need shape (2, 2, 1, 4), to fit the cache",
                    () -> other.append(random(2, 2, 1, 4), random(2, 2, 2, 4), null));
            assertError(
                    "validLens: got shape (1); need shape (2), a length per example",
                    () -> other.append(random(2, 2, 1, 4), random(2, 2, 1, 4), new long[1]));
            assertError(
                    "cache, keys and values: got dtype float32, float64; need one floating-point"
                        + " dtype",
                    () -> call(layer, narrow, next));
            assertArrayEquals(new long[2], other.lengths());
            assertArrayEquals(new long[2], rolling.lengths());
            assertArrayEquals(new long[2], narrow.lengths());
        }
        var params = new PairList<String, Object>(Map.of("cash", 1));
        var store = new ParameterStore(manager, false);
        assertError(
                "params: got cash; need cache",
                () -> layer.forward(store, new NDList(X), false, params));
        var wrong = new PairList<String, Object>(Map.of("cache", "a text"));
        assertError(
                "cache: got String; need a KVCache",
                () -> layer.forward(store, new NDList(X), false, wrong));
    }

    private KVCache makeCache(DataType type) {
        return new KVCache(manager, type, 2, 4, 4, 4, null, 0);
    }

    @Test
    void sizesThatDoNotFitAreRejected() {
        assertError(
                "numKvHeads: got 3 with numHeads 4; need a divisor of numHeads, so that each serves"
                    + " equally many heads of queries",
                () -> build(3, false, null, 0));
        assertError(
                "numKvHeads: got 0; need an integer of at least 1",
                () -> build(0, false, null, 0));
        assertError(
                "numSinks: got 1 without a window; need a window", () -> build(4, false, null, 1));
        assertError(
                "numSinks: got -1; need an integer of at least 0", () -> build(4, false, 2, -1));
        assertError("window: got 0; need an integer of at least 1", () -> build(4, false, 0, 0));
        assertError(
                "rope: got true with 3 features per head; need an even number of features per head",
                () -> new CausalSelfAttention(6, 2, 0, false, 2, true, null, 0));
        assertError(
                "numHiddens: got 16 with numHeads 3; need a multiple of numHeads, so that every"
                    + " head gets an equal share",
                () -> new CausalSelfAttention(16, 3, 0));
        CausalSelfAttention layer = build(4, false, null, 0);
        assertError(
                "batchSize: got 0; need an integer of at least 1", () -> layer.makeCache(0, 1));
        assertError("maxLen: got 0; need an integer of at least 1", () -> layer.makeCache(1, 0));
    }

    // ---- the choice of tokens ----

    private static final double[] PROBS = {0.4, 0.3, 0.2, 0.1};

    private NDArray logits(double... probs) {
        return manager.create(probs).log();
    }

    /** Parses options such as {@code topK=3 topP=0.75}. */
    private static Map<String, Double> parse(String options) {
        Map<String, Double> parsed = new HashMap<>();
        for (String option : options.split(" ")) {
            String[] parts = option.split("=");
            parsed.put(parts[0], Double.valueOf(parts[1]));
        }
        return parsed;
    }

    @ParameterizedTest
    @CsvSource({
        "temperature=1, 4, 3, 2, 1",
        "temperature=0.5, 16, 9, 4, 1",
        "topK=1, 1, 0, 0, 0",
        "topK=4, 4, 3, 2, 1",
        "topP=0.69, 4, 3, 0, 0",
        "topP=0.71, 4, 3, 2, 0",
        "topP=1e-9, 1, 0, 0, 0",
        "topP=1, 4, 3, 2, 1",
        "minP=0.49, 4, 3, 2, 0",
        "minP=1, 1, 0, 0, 0",
        "topK=3 topP=0.75, 4, 3, 0, 0", // 4/9 + 3/9 is above 0.75
        "topP=0.75 minP=0.6, 4, 3, 0, 0",
    })
    void nextTokenProbsKeepMostProbableTokens(
            String options, double a, double b, double c, double d) {
        double sum = a + b + c + d;
        double[] expected = {a / sum, b / sum, c / sum, d / sum};
        // Also with the most probable token last, and in an axis behind others.
        NDArray both = NDArrays.stack(new NDList(logits(PROBS), logits(0.1, 0.2, 0.3, 0.4)));
        NDArray probs = nextTokenProbs(both.expandDims(0), parse(options));
        assertEquals(new Shape(1, 2, 4), probs.getShape());
        assertEquals(DataType.FLOAT64, probs.getDataType());
        assertArrayEquals(expected, probs.get(0, 0).toDoubleArray(), 1e-12);
        assertArrayEquals(expected, probs.get(0, 1).flip(0).toDoubleArray(), 1e-12);
    }

    @Test
    void firstOfEquallyProbableTokensCountsAsMoreProbable() {
        NDArray probs = nextTokenProbs(logits(0.2, 0.4, 0.4), Map.of("topK", 1));
        assertArrayEquals(new double[] {0, 1, 0}, probs.toDoubleArray());
    }

    @Test
    void largeLogitsDoNotOverflow() {
        NDArray large = manager.create(new float[] {1000, 1000, -1000});
        double[] probs = nextTokenProbs(large, Map.of("temperature", 0.1)).toDoubleArray();
        assertArrayEquals(new double[] {0.5, 0.5, 0}, probs);
    }

    @ParameterizedTest
    @CsvSource({
        "temperature, 0, 'a number above 0; for greedy decoding, topK=1'",
        "temperature, NaN, 'a number above 0; for greedy decoding, topK=1'",
        "temperature, Infinity, 'a number above 0; for greedy decoding, topK=1'",
        "topK, 0, an integer of at least 1",
        "topK, 1.5, an integer of at least 1",
        "topK, 5, 'at most 4, the size of the vocabulary'",
        "topP, 0, a number above 0 and at most 1",
        "topP, 1.1, a number above 0 and at most 1",
        "minP, 0, a number above 0 and at most 1",
        "minP, NaN, a number above 0 and at most 1",
        "stop, -1, an integer of at least 0",
        "seed, -1, an integer of at least 0",
        "topk, 1, 'one of temperature, topK, topP, minP, stop, seed'",
    })
    void optionsOutOfRangeAreRejected(String name, String text, String need) {
        Number value = Double.valueOf(text);
        if (text.matches("-?\\d")) {
            value = Integer.valueOf(text);
        }
        Map<String, Number> options = Map.of(name, value);
        String got = need.startsWith("one of") ? "options: got topk" : name + ": got " + value;
        BinaryOperator<NDArray> predict = (tokens, lens) -> logits(PROBS).reshape(1, 1, 4);
        assertError(
                got + "; need " + need,
                () -> generate(manager, predict, new int[][] {{0}}, 1, options));
    }

    @Test
    void generationFollowsDistributionAndSeed() {
        List<int[]> calls = new ArrayList<>();
        NDArray row = logits(PROBS);
        BinaryOperator<NDArray> predict =
                (tokens, lens) -> {
                    calls.add(tokens.toIntArray());
                    calls.add(lens.toIntArray());
                    NDArray spread = row.broadcast(tokens.getShape().addAll(row.getShape()));
                    spread.attach(tokens.getManager());
                    return spread;
                };
        int[][] prompts = {{1, 2, 3}, {3}};
        int before = manager.getManagedArrays().size();
        int[][] texts = generate(manager, predict, prompts, 2000, Map.of("seed", 0));
        assertEquals(before, manager.getManagedArrays().size());
        assertArrayEquals(new int[] {1, 2, 3, 3, 0, 0}, calls.get(0));
        assertArrayEquals(new int[] {3, 1}, calls.get(1));
        assertArrayEquals(new int[] {texts[0][0], texts[1][0]}, calls.get(2));
        assertArrayEquals(new int[] {1, 1}, calls.get(3));
        for (int[] text : texts) {
            for (int token = 0; token < 4; token++) {
                int wanted = token;
                double count = IntStream.of(text).filter(each -> each == wanted).count();
                assertEquals(PROBS[token], count / 2000, 0.05);
            }
        }
        assertFalse(Arrays.equals(texts[0], texts[1]));
        int[][] again = generate(manager, predict, prompts, 20, Map.of("seed", 0));
        int[][] stopped = generate(manager, predict, prompts, 50, Map.of("seed", 0, "stop", 3));
        for (int i = 0; i < 2; i++) {
            assertArrayEquals(Arrays.copyOf(texts[i], 20), again[i]);
            int[] text = texts[i];
            int end = IntStream.range(0, 50).filter(j -> text[j] == 3).findFirst().orElseThrow();
            assertArrayEquals(Arrays.copyOf(text, end + 1), stopped[i]);
        }
        // Other seeds give other first tokens.
        long numFirst =
                IntStream.range(0, 50)
                        .mapToObj(seed -> Map.of("seed", seed))
                        .map(each -> generate(manager, predict, prompts, 1, each)[0][0])
                        .distinct()
                        .count();
        assertEquals(4, numFirst);
    }

    @Test
    void logitsAreTakenAtLastTokenOfEachPrompt() {
        // The most probable token is the next number.
        BinaryOperator<NDArray> predict = (tokens, lens) -> tokens.add(1).oneHot(9).mul(10);
        int[][] prompts = {{5, 1}, {0}, {4, 3, 2}};
        int[][] texts = generate(manager, predict, prompts, 3, Map.of("topK", 1));
        assertArrayEquals(new int[][] {{2, 3, 4}, {1, 2, 3}, {3, 4, 5}}, texts);
    }

    @Test
    void logitsStayWithTheirManager() {
        NDArray constant = logits(PROBS).reshape(1, 1, 4);
        int before = manager.getManagedArrays().size();
        generate(manager, (tokens, lens) -> constant, new int[][] {{0}}, 3, Map.of());
        assertEquals(before, manager.getManagedArrays().size());
        assertFalse(constant.isReleased());
    }

    @Test
    void badPromptsAndLogitsAreRejected() {
        BinaryOperator<NDArray> predict = (tokens, lens) -> random(1, 2, 4);
        Map<String, Integer> none = Map.of();
        assertError(
                "numTokens: got 0; need an integer of at least 1",
                () -> generate(manager, predict, new int[][] {{1}}, 0, none));
        assertError(
                "prompts: got none; need a list of lists of tokens, at least one",
                () -> generate(manager, predict, new int[0][], 1, none));
        assertError(
                "prompts: got an empty prompt; need at least one token in each",
                () -> generate(manager, predict, new int[][] {{1}, {}}, 1, none));
        assertError(
                "prompts: got -1; need an integer of at least 0",
                () -> generate(manager, predict, new int[][] {{-1}}, 1, none));
        assertError(
                "logits: got shape (1, 2, 4); need shape (1, 1) and an axis for the vocabulary",
                () -> generate(manager, predict, new int[][] {{1}}, 1, none));
        for (double bad : new double[] {Double.NaN, Double.POSITIVE_INFINITY}) {
            assertError(
                    "logits: got a row whose largest number is %s; need a finite number"
                            .formatted(bad),
                    () -> nextTokenProbs(manager.create(new double[] {bad, 0}), none));
        }
        for (NDArray empty : new NDArray[] {manager.create(1.0), random(2, 0)}) {
            assertError(
                    "logits: got shape %s; need a last axis for the vocabulary"
                            .formatted(empty.getShape()),
                    () -> nextTokenProbs(empty, none));
        }
    }
}
