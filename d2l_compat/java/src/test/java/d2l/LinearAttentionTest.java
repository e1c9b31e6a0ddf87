package d2l;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.Map;

/** Compares the forms of linear attention to loops and to each other. */
class LinearAttentionTest extends ArrayTestBase {

    private static final double[] DECAY = {1, 0.9, 0.5, 0.2};

    private LinearAttention build(double... decay) {
        return initialize(new LinearAttention(16, 4, false, decay), random(1, 1, 16));
    }

    private NDArray call(LinearAttention layer, Map<String, Object> params, NDArray X) {
        ParameterStore parameters = new ParameterStore(manager, false);
        return layer.forward(parameters, new NDList(X), false, new PairList<>(params)).head();
    }

    private static double feature(double x) {
        return x > 0 ? x + 1 : Math.exp(x);
    }

    /** Returns the output for one text, shape (steps, 16), computed from the layer's weights. */
    private static double[] attend(LinearAttention layer, NDArray X, double[] decay) {
        double[][] q = LayersTest.project(layer.W_q, X);
        double[][] k = LayersTest.project(layer.W_k, X);
        double[][] v = LayersTest.project(layer.W_v, X);
        double[][] output = new double[q.length][];
        for (int i = 0; i < q.length; i++) {
            double[] pooled = new double[16];
            for (int start = 0; start < 16; start += 4) {
                double total = 0;
                for (int j = 0; j <= i; j++) {
                    double weight = 0;
                    for (int c = start; c < start + 4; c++) {
                        weight += feature(q[i][c]) * feature(k[j][c]);
                    }
                    weight *= Math.pow(decay[start / 4], i - j);
                    total += weight;
                    for (int c = start; c < start + 4; c++) {
                        pooled[c] += weight * v[j][c];
                    }
                }
                for (int c = start; c < start + 4; c++) {
                    pooled[c] /= total;
                }
            }
            output[i] = LayersTest.project(layer.W_o, pooled);
        }
        return Arrays.stream(output).flatMapToDouble(Arrays::stream).toArray();
    }

    @Test
    void allFormsEqualReference() {
        for (double[] decay : new double[][] {{1}, {0.5}, DECAY}) {
            LinearAttention layer = build(decay);
            double[] perHead = decay.length == 4 ? decay : new double[4];
            if (decay.length == 1) {
                Arrays.fill(perHead, decay[0]);
            }
            NDArray X = random(2, 13, 16);
            NDList results = new NDList(call(layer, Map.of(), X));
            for (int size : new int[] {1, 5, 13, 100, LinearAttention.WHOLE_TEXT}) {
                results.add(call(layer, Map.of("chunkSize", size), X));
            }
            try (LinearState state = layer.makeState(2)) {
                NDArray first =
                        call(layer, Map.of("state", state, "chunkSize", 3), X.get(":, :4"));
                NDArray second = call(layer, Map.of("state", state), X.get(":, 4:5"));
                NDArray rest =
                        call(layer, Map.of("state", state, "chunkSize", 1), X.get(":, 5:"));
                results.add(NDArrays.concat(new NDList(first, second, rest), 1));
            }
            for (int row = 0; row < 2; row++) {
                double[] expected = attend(layer, X.get(row), perHead);
                for (NDArray result : results) {
                    assertArrayEquals(expected, result.get(row).toDoubleArray(), 1e-12);
                }
            }
        }
    }

    @Test
    void defaultChunkEqualsWholeText() {
        LinearAttention layer = build(DECAY);
        NDArray X = random(1, 300, 16);
        NDArray whole = call(layer, Map.of("chunkSize", LinearAttention.WHOLE_TEXT), X);
        NDArray output = call(layer, Map.of(), X);
        assertArrayEquals(whole.toDoubleArray(), output.toDoubleArray(), 1e-12);
        // In chunks of 128, 128 and 44 steps.
        long cost = Counting.multiplyAdds(each -> call(layer, Map.of(), each), X);
        long within = 2 * 16 * (2 * 128 * 128 + 44 * 44);
        long sums = 2 * 300 * 4 * 4 * 4 + 300 * 16;
        assertEquals(4 * 300 * 16 * 16 + within + sums, cost);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4, LinearAttention.WHOLE_TEXT})
    void gradientMatchesDifferences(int chunkSize) {
        LinearAttention layer = build(DECAY);
        NDArray X = random(1, 6, 16);
        NDArray direction = random(1, 6, 16);
        X.setRequiresGradient(true);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector();
                LinearState state = layer.makeState(1)) {
            var params = Map.<String, Object>of("chunkSize", chunkSize, "state", state);
            NDArray loss = call(layer, params, X).mul(direction).sum();
            call(layer, params, random(1, 2, 16)); // replaces the sums in the state
            overwriteFreeMemory();
            collector.backward(loss);
        }
        double[] gradient = X.getGradient().toDoubleArray();
        double[] numbers = X.toDoubleArray();
        double[] weights = direction.toDoubleArray();
        for (int i = 0; i < numbers.length; i += 13) {
            double difference = 0;
            for (double step : new double[] {1e-6, -1e-6}) {
                double[] moved = numbers.clone();
                moved[i] += step;
                double[] output = attend(layer, manager.create(moved, new Shape(6, 16)), DECAY);
                for (int j = 0; j < output.length; j++) {
                    difference += Math.signum(step) * output[j] * weights[j];
                }
            }
            assertEquals(difference / 2e-6, gradient[i], 1e-6);
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1e4, -1e4})
    void largeNumbersGiveFiniteResults(double size) {
        for (DataType type : new DataType[] {DataType.FLOAT32, DataType.FLOAT64}) {
            NDArray X = manager.full(new Shape(1, 5, 16), (float) size).toType(type, true);
            LinearAttention layer = initialize(new LinearAttention(16, 4), X);
            X.setRequiresGradient(true);
            try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
                NDArray output = call(layer, Map.of(), X);
                assertEquals(type, output.getDataType());
                assertFalse(output.isNaN().any().getBoolean());
                collector.backward(output.sum());
            }
            NDArray gradient = X.getGradient();
            assertFalse(gradient.isNaN().logicalOr(gradient.isInfinite()).any().getBoolean());
        }
    }

    @Test
    void stateHasFixedSizeAndCanBeReset() {
        LinearAttention layer = build(0.5);
        NDArray X = random(2, 9, 16);
        LinearState state = layer.makeState(2);
        NDArray first = call(layer, Map.of("state", state), X);
        assertEquals(2 * 4 * (4 * 4 + 4) * 8, state.nbytes());
        assertEquals(new Shape(2, 4, 4, 4), state.kv().getShape());
        assertEquals(new Shape(2, 4, 4), state.k().getShape());
        NDManager own = state.kv().getManager();
        assertEquals(2, own.getManagedArrays().size());
        // The sums are those of the features and values.
        double[][] k = LayersTest.project(layer.W_k, X.get(1));
        double sum = 0;
        for (int i = 0; i < 9; i++) {
            sum += Math.pow(0.5, 8 - i) * feature(k[i][7]);
        }
        assertEquals(sum, state.k().getDouble(1, 1, 3), 1e-12);
        state.reset();
        assertEquals(2, own.getManagedArrays().size());
        assertArrayEquals(new double[2 * 4 * 4 * 4], state.kv().toDoubleArray());
        assertArrayEquals(new double[2 * 4 * 4], state.k().toDoubleArray());
        int before = manager.getManagedArrays().size();
        assertEquals(first, call(layer, Map.of("state", state), X));
        assertEquals(before + 1, manager.getManagedArrays().size()); // the output
        state.close();
        assertFalse(own.isOpen());
    }

    @Test
    void arraysAreMadeOnDeviceOfInput() {
        LinearAttention layer = build(DECAY);
        NDArray X = random(2, 3, 16);
        // This manager's device does not exist, so an array made there would fail.
        try (NDManager elsewhere = manager.newSubManager(Device.gpu(99))) {
            X.attach(elsewhere);
            layer.W_k.getDirectParameters().get("weight").getArray().attach(elsewhere);
            LinearState state = layer.makeState(2);
            assertEquals(X.getDevice(), call(layer, Map.of("state", state), X).getDevice());
            state.reset();
            assertEquals(X.getDevice(), state.kv().getDevice());
        }
    }

    @Test
    void refusedCallLeavesStateAsItWas() {
        LinearAttention layer = build(1);
        NDArray X = random(2, 3, 16);
        try (LinearState state = layer.makeState(2);
                LinearState other = new LinearState(X, 2, 2, 8);
                LinearState narrow = new LinearState(manager.ones(new Shape(1)), 2, 4, 4)) {
            call(layer, Map.of("state", state), X);
            NDArray kv = state.kv().duplicate();
            NDArray k = state.k().duplicate();
            assertError(
                    "state: got a state for a batch of 2; need one for the batch of 1",
                    () -> call(layer, Map.of("state", state), X.get(":1")));
            assertError(
                    "state: got a state for 2 heads of width 8; need one for 4 heads of width 4",
                    () -> call(layer, Map.of("state", other), X));
            assertError(
                    "X and state: got dtype float64, float32; need one floating-point dtype",
                    () -> call(layer, Map.of("state", narrow), X));
            assertError(
                    "state: got String; need a LinearState",
                    () -> call(layer, Map.of("state", "a text"), X));
            assertError(
                    "chunkSize: got 0; need an integer of at least 1",
                    () -> call(layer, Map.of("state", state, "chunkSize", 0), X));
            assertError(
                    "params: got cache; need state or chunkSize",
                    () -> call(layer, Map.of("state", state, "cache", 1), X));
            assertError(
                    "X: got shape (2, 3, 15); need a last dimension of 16",
                    () -> call(layer, Map.of("state", state), X.get(":, :, :15")));
            assertError(
                    "X: got dtype float32; need float64, as the layer's weights are; convert one"
                        + " of the two",
                    () -> call(layer, Map.of("state", state), X.toType(DataType.FLOAT32, true)));
            assertEquals(kv, state.kv());
            assertEquals(k, state.k());
        }
    }

    @Test
    void sizesThatDoNotFitAreRejected() {
        assertError(
                "numHiddens: got 16 with numHeads 3; need a multiple of numHeads, so that every"
                    + " head gets an equal share",
                () -> new LinearAttention(16, 3));
        assertError(
                "decay: got 3 numbers; need one number, or 4, one per head",
                () -> build(0.5, 0.5, 0.5));
        for (double bad : new double[] {0, -0.5, 1.5, Double.NaN}) {
            assertError(
                    "decay: got %s; need a number above 0 and at most 1".formatted(bad),
                    () -> build(1, 1, 1, bad));
        }
        assertError(
                "batchSize: got 0; need an integer of at least 1", () -> build(1).makeState(0));
    }
}
