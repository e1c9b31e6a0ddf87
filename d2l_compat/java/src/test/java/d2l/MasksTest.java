package d2l;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;

/** A causal mask and a bias of the scores, beside lengths and each other, against loops. */
class MasksTest extends WithArrays {

    private static final double HIDDEN = Double.NEGATIVE_INFINITY;
    private static final int BATCH = 3;
    private static final int HEADS = 2;
    private static final int QUERIES = 3;
    private static final int KEYS = 4;
    private static final int WIDTH = 4;

    private NDArray call(Block layer, Map<String, Object> params, NDArray... inputs) {
        ParameterStore parameters = new ParameterStore(manager, false);
        NDList given = new NDList(inputs);
        return layer.forward(parameters, given, false, new PairList<>(params)).head();
    }

    /** Numbers, and minus infinity for one key in four; the first query sees nothing. */
    private NDArray bias(long... shape) {
        double[] numbers = random(shape).toDoubleArray();
        Random random = new Random(0);
        for (int at = 0; at < numbers.length; at++) {
            if (at % (QUERIES * KEYS) < KEYS || random.nextInt(4) == 0) {
                numbers[at] = HIDDEN;
            }
        }
        return manager.create(numbers, new Shape(shape));
    }

    // ---- the formulas, of all numbers in one row ----

    /**
     * Output and weights. Each head works in its columns; {@code lengths} has one for each query of
     * each example; the axes of a bias are the last of (batch, heads, queries, keys).
     */
    private static double[][] attend(
            double[][] given, double[] bias, int[] lengths, boolean causal, int heads) {
        double[] queries = given[0];
        double[] keys = given[1];
        double[] values = given[2];
        int size = WIDTH / heads;
        double[] output = new double[BATCH * QUERIES * WIDTH];
        double[] weights = new double[BATCH * heads * QUERIES * KEYS];
        for (int row = 0; row < weights.length / KEYS; row++) {
            int query = row % QUERIES;
            int head = row / QUERIES % heads;
            int example = row / QUERIES / heads;
            int q = example * QUERIES + query;
            double[] powers = new double[KEYS];
            for (int key = 0; key < KEYS; key++) {
                double product = 0;
                for (int c = head * size; c < (head + 1) * size; c++) {
                    product += queries[q * WIDTH + c] * keys[(example * KEYS + key) * WIDTH + c];
                }
                boolean isLater = causal && key - (KEYS - 1) > query - (QUERIES - 1);
                if (key < lengths[q] && !isLater) {
                    double more = bias == null ? 0 : bias[(row * KEYS + key) % bias.length];
                    powers[key] = Math.exp(product / Math.sqrt(size) + more);
                }
            }
            double sum = Arrays.stream(powers).sum();
            for (int key = 0; key < KEYS && sum > 0; key++) {
                double weight = powers[key] / sum;
                weights[row * KEYS + key] = weight;
                for (int c = head * size; c < (head + 1) * size; c++) {
                    double value = values[(example * KEYS + key) * WIDTH + c];
                    output[q * WIDTH + c] += weight * value;
                }
            }
        }
        return new double[][] {output, weights};
    }

    /** X Wᵀ: DJL's weights are (outputs, inputs). */
    private static double[] project(Linear layer, double[] X) {
        double[] weight =
                layer.getDirectParameters().get("weight").getArray().toDoubleArray();
        double[] projected = new double[X.length];
        for (int at = 0; at < X.length; at++) {
            for (int in = 0; in < WIDTH; in++) {
                int out = at % WIDTH;
                projected[at] += X[at - out + in] * weight[out * WIDTH + in];
            }
        }
        return projected;
    }

    private interface Formula {
        double[][] of(double[][] given, double[] bias, int[] lengths, boolean causal);
    }

    // ---- values and gradients ----

    private static Stream<Arguments> masks(long[]... shapes) {
        List<Arguments> masks = new ArrayList<>();
        int[][] lengths = {null, {3, 0, 4}, {4, 0, 2, 1, 3, 4, 2, 2, 4}};
        for (boolean causal : new boolean[] {false, true}) {
            for (int[] each : lengths) {
                masks.add(Arguments.of(causal, null, each));
                for (long[] shape : shapes) {
                    masks.add(Arguments.of(causal, shape, each));
                }
            }
        }
        return masks.stream();
    }

    static Stream<Arguments> masks() {
        return masks(new long[] {QUERIES, KEYS}, new long[] {BATCH, QUERIES, KEYS});
    }

    static Stream<Arguments> masksOfHeads() {
        return masks(
                new long[] {QUERIES, KEYS},
                new long[] {HEADS, QUERIES, KEYS},
                new long[] {BATCH, HEADS, QUERIES, KEYS});
    }

    @ParameterizedTest
    @MethodSource("masks")
    void attentionWithMasksIsTheFormula(boolean causal, long[] shape, int[] lengths) {
        DotProductAttention layer = new DotProductAttention(0.5f);
        Formula formula =
                (given, bias, lens, isCausal) -> attend(given, bias, lens, isCausal, 1);
        double[] weights = assertIs(formula, layer, causal, shape, lengths);
        assertWeights(weights, layer.attentionWeights());
    }

    @ParameterizedTest
    @MethodSource("masksOfHeads")
    void headsWithMasksAreTheFormula(boolean causal, long[] shape, int[] lengths) {
        NDArray X = random(1, 1, WIDTH);
        MultiHeadAttention layer =
                initialized(new MultiHeadAttention(WIDTH, HEADS, 0.5f), X, X, X);
        Formula formula =
                (given, bias, lens, isCausal) -> {
                    double[][] projected = {
                        project(layer.W_q, given[0]),
                        project(layer.W_k, given[1]),
                        project(layer.W_v, given[2])
                    };
                    double[][] result = attend(projected, bias, lens, isCausal, HEADS);
                    return new double[][] {project(layer.W_o, result[0]), result[1]};
                };
        double[] weights = assertIs(formula, layer, causal, shape, lengths);
        assertWeights(weights, layer.attentionWeights());
    }

    private static void assertWeights(double[] expected, NDArray weights) {
        double[] got = weights.toDoubleArray();
        assertArrayEquals(expected, got, 1e-12);
        for (int at = 0; at < got.length; at++) {
            assertEquals(expected[at] == 0, got[at] == 0);
        }
    }

    /** So is the output, and so are the gradients of all that is given; returns the weights. */
    private double[] assertIs(
            Formula formula, Block layer, boolean causal, long[] shape, int[] lengths) {
        NDArray direction = random(BATCH, QUERIES, WIDTH);
        NDList inputs =
                new NDList(
                        random(BATCH, QUERIES, WIDTH),
                        random(BATCH, KEYS, WIDTH),
                        random(BATCH, KEYS, WIDTH));
        NDArray bias = shape == null ? null : bias(shape);
        NDList floats = new NDList(inputs);
        if (bias != null) {
            floats.add(bias);
        }
        floats.forEach(each -> each.setRequiresGradient(true));
        int[] perQuery = new int[BATCH * QUERIES];
        Arrays.setAll(
                perQuery,
                at -> lengths == null ? KEYS : lengths[at * lengths.length / perQuery.length]);
        if (lengths != null) {
            boolean isPerQuery = lengths.length > BATCH;
            Shape of = isPerQuery ? new Shape(BATCH, QUERIES) : new Shape(BATCH);
            inputs.add(manager.create(lengths, of));
        }
        Map<String, Object> params =
                bias == null
                        ? Map.of("causal", causal)
                        : Map.of("causal", causal, "scoreBias", bias);

        double[][] given = floats.stream().map(NDArray::toDoubleArray).toArray(double[][]::new);
        double[] ofBias = bias == null ? null : given[3];
        double[] to = direction.toDoubleArray();
        double[][] expected = formula.of(given, ofBias, perQuery, causal);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray output = call(layer, params, inputs.toArray(NDArray[]::new));
            assertArrayEquals(expected[0], output.toDoubleArray(), 1e-12);
            collector.backward(output.mul(direction).sum());
        }
        for (int i = 0; i < given.length; i++) {
            double[] got = floats.get(i).getGradient().toDoubleArray();
            for (int at = 0; at < got.length; at++) {
                double[] losses = new double[2];
                double number = given[i][at];
                for (int side = 0; side < 2; side++) {
                    given[i][at] = number + (side == 0 ? 1e-5 : -1e-5);
                    double[] output = formula.of(given, ofBias, perQuery, causal)[0];
                    for (int j = 0; j < output.length; j++) {
                        losses[side] += output[j] * to[j];
                    }
                }
                given[i][at] = number;
                assertEquals((losses[0] - losses[1]) / 2e-5, got[at], 1e-8);
            }
        }
        return expected[1];
    }

    @ParameterizedTest
    @EnumSource(names = {"FLOAT16", "FLOAT32", "FLOAT64"})
    void whereABiasHidesEveryKeyAllIsZeroGradientsIncluded(DataType type) {
        NDArray X = random(1, 3, 4).toType(type, true);
        NDArray bias = manager.full(new Shape(3, 3), Float.NEGATIVE_INFINITY).toType(type, true);
        X.setRequiresGradient(true);
        bias.setRequiresGradient(true);
        DotProductAttention layer = new DotProductAttention(0);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray pooled = call(layer, Map.of("scoreBias", bias), X, X, X);
            assertEquals(0, pooled.countNonzero().getLong());
            assertEquals(type, pooled.getDataType());
            collector.backward(pooled.sum());
        }
        assertEquals(0, layer.attentionWeights().countNonzero().getLong());
        for (NDArray each : new NDArray[] {X, bias}) {
            assertEquals(0, each.getGradient().countNonzero().getLong());
            assertFalse(each.getGradient().isNaN().any().getBoolean());
        }
    }

    @Test
    void aStepWithACacheIsTheLastRowOfAllSteps() {
        NDArray X = random(2, 5, 8);
        MultiHeadAttention layer = initialized(new MultiHeadAttention(8, 2, 0), X, X, X);
        NDArray whole = call(layer, Map.of("causal", true), X, X, X);
        NDArray step = call(layer, Map.of("causal", true), X.get(":, 4:"), X, X);
        assertArrayEquals(
                whole.get(":, 4:").toDoubleArray(), step.toDoubleArray(), 1e-12);
        // And the first steps know nothing of those to come.
        NDArray fewer = X.get(":, :3");
        assertArrayEquals(
                whole.get(":, :3").toDoubleArray(),
                call(layer, Map.of("causal", true), fewer, fewer, fewer).toDoubleArray(),
                1e-12);
    }

    @Test
    void whereThereIsNothingMasksChangeNothing() {
        NDArray X = random(2, 3, 8);
        MultiHeadAttention layer = initialized(new MultiHeadAttention(8, 2, 0), X, X, X);
        for (long[] shape : new long[][] {{2, 0, 8}, {0, 3, 8}}) {
            NDArray none = random(shape);
            long n = shape[1];
            for (NDArray bias : new NDArray[] {random(n, n), random(shape[0], 2, n, n)}) {
                Map<String, Object> params = Map.of("causal", true, "scoreBias", bias);
                assertEquals(none.getShape(), call(layer, params, none, none, none).getShape());
            }
        }
        NDArray noKeys = random(2, 0, 8);
        Map<String, Object> params = Map.of("scoreBias", random(3, 0));
        assertEquals(X.zerosLike(), call(layer, params, X, noKeys, noKeys));
    }

    @Test
    void masksLeaveNothingWithTheBiasesManager() {
        NDArray X = random(2, 3, 8);
        NDArray bias = random(2, 3, 3);
        MultiHeadAttention layer = initialized(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
        int before = manager.getManagedArrays().size();
        try (NDManager scratch = manager.newSubManager()) {
            NDArray batch = scratch.create(X.toDoubleArray(), X.getShape());
            Map<String, Object> params = Map.of("causal", true, "scoreBias", bias);
            call(layer, params, batch, batch, batch);
            call(layer.attention, params, batch, batch, batch);
        }
        assertEquals(before, manager.getManagedArrays().size());
    }

    @Test
    void theTraceSeesThroughMasks() {
        NDArray X = random(1, 5, 8);
        MultiHeadAttention layer = initialized(new MultiHeadAttention(8, 2, 0), X, X, X);
        Map<String, Object> params = Map.of("causal", true, "scoreBias", random(2, 5, 5));
        long cost = Counting.multiplyAdds(each -> call(layer, params, each, each, each), X);
        assertEquals(4 * 5 * 8 * 8 + 2 * 5 * 5 * 8, cost);
    }

    @Test
    void faultsAreNamed() {
        NDArray X = random(2, 3, 8);
        NDArray fewer = X.get(":, :2");
        MultiHeadAttention heads = initialized(new MultiHeadAttention(8, 2, 0), X, X, X);
        DotProductAttention attention = new DotProductAttention(0);
        for (Block layer : new Block[] {heads, attention}) {
            assertFault(
                    "causal attention: got 3 queries and 2 keys; need at least one key for each"
                        + " query",
                    () -> call(layer, Map.of("causal", true), X, fewer, fewer));
            call(layer, Map.of("causal", false), X, fewer, fewer);
            assertFault(
                    "causal: got Integer; need true or false",
                    () -> call(layer, Map.of("causal", 1), X, X, X));
            assertFault(
                    "scoreBias: got double[]; need an NDArray",
                    () -> call(layer, Map.of("scoreBias", new double[9]), X, X, X));
            assertFault(
                    "params: got score_bias; need causal or scoreBias",
                    () -> call(layer, Map.of("score_bias", random(3, 3)), X, X, X));
            NDArray single = manager.zeros(new Shape(3, 3));
            assertFault(
                    "queries and scoreBias: got dtype float64, float32; need one floating-point"
                        + " dtype",
                    () -> call(layer, Map.of("scoreBias", single), X, X, X));
        }
        assertFault(
                "scoreBias: got shape (3, 2); need shape (queries, keys), here (3, 3) or (batch,"
                    + " queries, keys), here (2, 3, 3)",
                () -> call(attention, Map.of("scoreBias", random(3, 2)), X, X, X));
        assertFault(
                "scoreBias: got shape (3, 3, 3); need shape (queries, keys), here (3, 3) or"
                    + " (heads, queries, keys), here (2, 3, 3) or (batch, heads, queries, keys),"
                    + " here (2, 2, 3, 3)",
                () -> call(heads, Map.of("scoreBias", random(3, 3, 3)), X, X, X));
    }
}
