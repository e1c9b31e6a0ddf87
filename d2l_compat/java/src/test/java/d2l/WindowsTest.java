package d2l;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Compares attention within a window to the same attention with a matrix of biases. */
class WindowsTest extends ArrayTestBase {

    private static final double HIDDEN = Double.NEGATIVE_INFINITY;

    private NDArray call(Block layer, Map<String, Object> params, NDList inputs) {
        ParameterStore parameters = new ParameterStore(manager, false);
        return layer.forward(parameters, inputs, false, new PairList<>(params)).head();
    }

    /** Returns a bias of shape (batch, queries, keys), minus infinity outside of the window. */
    private NDArray band(NDArray bias, int window) {
        int numQueries = (int) bias.getShape().get(1);
        int numKeys = (int) bias.getShape().get(2);
        double[] numbers = bias.toDoubleArray();
        for (int i = 0; i < numbers.length; i++) {
            int distance = numKeys - numQueries + i / numKeys % numQueries - i % numKeys;
            if (distance < 0 || distance >= window) {
                numbers[i] = HIDDEN;
            }
        }
        return manager.create(numbers, bias.getShape());
    }

    /** Draws a bias that hides one key in four, and all keys from the last query. */
    private NDArray bias(int numQueries, int numKeys) {
        double[] numbers = random(2, numQueries, numKeys).toDoubleArray();
        Random random = new Random(0);
        for (int i = 0; i < numbers.length; i++) {
            boolean isLast = i / numKeys % numQueries == numQueries - 1;
            if (isLast || random.nextInt(4) == 0) {
                numbers[i] = HIDDEN;
            }
        }
        return manager.create(numbers, new Shape(2, numQueries, numKeys));
    }

    private NDArray lens(int numQueries, int numKeys) {
        int[] lens = new Random(0).ints(2L * numQueries, 0, numKeys + 1).toArray();
        return manager.create(lens, new Shape(2, numQueries));
    }

    private NDList inputs(int numQueries, int numKeys) {
        return new NDList(random(2, numQueries, 3), random(2, numKeys, 3), random(2, numKeys, 2));
    }

    // The last block may be full, the window longer or shorter than a block, and the keys so few
    // that there are no blocks.
    @ParameterizedTest
    @CsvSource({
        "150, 150, 5", "128, 192, 64", "10, 300, 5", "1, 300, 100", "129, 400, 70", "200, 200, 199",
        "3, 4, 2", "4, 4, 9", "1, 130, 1",
    })
    void windowEqualsMaskedMatrix(int numQueries, int numKeys, int window) {
        NDArray bias = bias(numQueries, numKeys);
        NDArray shared = bias.get(0);
        NDArray perExample = manager.create(new int[] {numKeys, numKeys / 2});
        NDArray[][] masks = {
            {null, null},
            {null, lens(numQueries, numKeys)},
            {bias, perExample},
            {bias, lens(numQueries, numKeys)},
            {shared, null},
        };
        for (NDArray[] mask : masks) {
            NDList inputs = inputs(numQueries, numKeys);
            if (mask[1] != null) {
                inputs.add(mask[1]);
            }
            Map<String, Object> params = new HashMap<>(Map.of("window", window));
            NDArray base = random(2, numQueries, numKeys).mul(0);
            if (mask[0] != null) {
                params.put("scoreBias", mask[0]);
                base = base.add(mask[0]);
            }
            DotProductAttention layer = new DotProductAttention(0.5f);
            NDArray output = call(layer, params, inputs);
            DotProductAttention matrix = new DotProductAttention(0.5f);
            NDArray expected = call(matrix, Map.of("scoreBias", band(base, window)), inputs);
            assertArrayEquals(expected.toDoubleArray(), output.toDoubleArray(), 1e-12);
            assertEquals(matrix.attentionWeights(), layer.attentionWeights());
        }
    }

    @Test
    void headsHaveTheirOwnBiasesAndLengths() {
        NDArray X = random(2, 150, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        NDArray lens = manager.create(new int[] {150, 40});
        NDArray biases = bias(150, 150).expandDims(0).repeat(0, 2);
        NDArray bands = band(biases.reshape(4, 150, 150), 9).reshape(2, 2, 150, 150);
        Map<String, Object> params = Map.of("window", 9, "scoreBias", biases);
        NDList inputs = new NDList(X, X, X, lens);
        double[] output = call(layer, params, inputs).toDoubleArray();
        double[] weights = layer.attentionWeights().toDoubleArray();
        NDArray expected = call(layer, Map.of("scoreBias", bands), inputs);
        assertArrayEquals(expected.toDoubleArray(), output, 1e-12);
        assertArrayEquals(layer.attentionWeights().toDoubleArray(), weights, 1e-12);
    }

    /** Returns the gradients with respect to queries, keys, values and bias. */
    private double[][] gradients(Map<String, Object> params, NDList inputs, NDArray bias) {
        NDList sources = new NDList(inputs.get(0), inputs.get(1), inputs.get(2), bias);
        sources.forEach(each -> each.setRequiresGradient(true));
        NDArray direction = manager.arange(560).reshape(2, 140, 2).sin();
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray loss =
                    call(new DotProductAttention(0), params, inputs).mul(direction).sum();
            overwriteFreeMemory();
            collector.backward(loss);
        }
        return sources.stream()
                .map(each -> each.getGradient().toDoubleArray())
                .toArray(double[][]::new);
    }

    @Test
    void gradientsAreThoseOfMaskedMatrix() {
        NDList inputs = inputs(140, 150);
        NDList copies = new NDList(inputs.stream().map(NDArray::duplicate).toList());
        NDArray lens = lens(140, 150);
        inputs.add(lens);
        copies.add(lens);
        NDArray bias = bias(140, 150);
        NDArray band = band(bias, 20);
        double[][] actual = gradients(Map.of("window", 20, "scoreBias", bias), inputs, bias);
        double[][] expected = gradients(Map.of("scoreBias", band), copies, band);
        for (int i = 0; i < 4; i++) {
            assertArrayEquals(expected[i], actual[i], 1e-12); // NaN would differ
        }
        // The last query sees no key.
        double[] last = Arrays.copyOfRange(actual[0], 139 * 3, 140 * 3);
        assertArrayEquals(new double[3], last);
        assertEquals(0, Arrays.stream(expected[0]).filter(Double::isNaN).count());
    }

    @ParameterizedTest
    @CsvSource({"5, 0, 4", "70, 3, 2", "2, 250, 1", "199, 1, 4", "200, 1, 2"})
    void causalSelfAttentionWithoutCacheEqualsCachedTokens(
            int window, int numSinks, int numKvHeads) {
        NDArray X = random(2, 200, 16);
        var layer = new CausalSelfAttention(16, 4, 0, false, numKvHeads, true, window, numSinks);
        initialize(layer, X);
        try (KVCache cache = layer.makeCache(2, 200)) {
            NDArray expected = call(layer, Map.of("cache", cache), new NDList(X));
            NDArray output = call(layer, Map.of(), new NDList(X));
            assertArrayEquals(expected.toDoubleArray(), output.toDoubleArray(), 1e-12);
        }
    }

    @Test
    void costGrowsWithLength() {
        var layer = new CausalSelfAttention(16, 4, 0, false, 4, false, 64, 0);
        initialize(layer, random(1, 1, 16));
        long[] cost = new long[2];
        for (int i = 0; i < 2; i++) {
            NDArray X = random(1, 512L << i, 16);
            cost[i] = Counting.multiplyAdds(each -> call(layer, Map.of(), new NDList(each)), X);
        }
        assertEquals(2 * cost[0], cost[1]);
        DotProductAttention attention = new DotProductAttention(0);
        NDArray X = random(1, 256, 16).toType(DataType.FLOAT32, false);
        long inBlocks =
                Counting.multiplyAdds(
                        each -> call(attention, Map.of("window", 3), new NDList(each, each, each)),
                        X);
        assertEquals(2 * 256 * 128 * 16, inBlocks);
    }

    @Test
    void blocksLeaveOneArrayWithManagerOfInputs() {
        NDArray bias = bias(150, 150);
        int before = manager.getManagedArrays().size();
        DotProductAttention layer = new DotProductAttention(0);
        try (NDManager own = manager.newSubManager()) {
            NDArray X = own.ones(new Shape(2, 150, 4), DataType.FLOAT64);
            NDList inputs = new NDList(X, X, X, own.create(new int[] {150, 3}));
            call(layer, Map.of("window", 5, "scoreBias", bias), inputs);
            assertEquals(3, own.getManagedArrays().size());
        }
        assertEquals(before, manager.getManagedArrays().size());
    }

    @Test
    void arraysAreMadeOnDeviceOfInput() {
        NDArray X = random(2, 150, 4);
        NDArray bias = random(150, 150);
        NDList inputs = new NDList(X, X, X, manager.create(new int[] {150, 3}));
        // This manager's device does not exist, so an array made there would fail.
        try (NDManager elsewhere = manager.newSubManager(Device.gpu(99))) {
            X.attach(elsewhere);
            DotProductAttention layer = new DotProductAttention(0);
            NDArray output = call(layer, Map.of("window", 5, "scoreBias", bias), inputs);
            assertEquals(X.getDevice(), output.getDevice());
            assertEquals(X.getDevice(), layer.attentionWeights().getDevice());
        }
    }

    @Test
    void badWindowsAreRejected() {
        NDArray X = random(2, 5, 8);
        NDList inputs = new NDList(X, X, X);
        MultiHeadAttention multiHead = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        for (Block layer : new Block[] {multiHead, new DotProductAttention(0)}) {
            assertError(
                    "window: got 0; need an integer of at least 1",
                    () -> call(layer, Map.of("window", 0), inputs));
            assertError(
                    "window: got String; need an integer of at least 1",
                    () -> call(layer, Map.of("window", "no"), inputs));
            NDArray shorter = X.get(":, :3");
            assertError(
                    "causal attention: got 5 queries and 3 keys; need at least one key for each"
                        + " query",
                    () -> call(layer, Map.of("window", 2), new NDList(X, shorter, shorter)));
            NDArray long200 = random(2, 200, 8);
            NDArray lens = manager.create(new int[] {1, 201});
            call(layer, Map.of("window", 2), new NDList(long200, long200, long200));
            assertError(
                    "validLens: got a length of 201; need lengths from 0 to 200, the number of"
                        + " keys",
                    () ->
                            call(
                                    layer,
                                    Map.of("window", 2),
                                    new NDList(long200, long200, long200, lens)));
        }
        // The weights are still those of the last call that was not refused.
        assertEquals(new Shape(2, 2, 200, 200), multiHead.attentionWeights().getShape());
        NDArray last = multiHead.attentionWeights().get(":, :, 199");
        assertArrayEquals(
                new double[] {1, 1, 1, 1}, last.sum(new int[] {2}).toDoubleArray(), 1e-12);
    }
}
