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

/** Compares attention under all combinations of masks to formulas written as loops. */
class MasksTest extends ArrayTestBase {

    private static final double HIDDEN = Double.NEGATIVE_INFINITY;
    private static final int BATCH = 3;
    private static final int HEADS = 2;
    private static final int QUERIES = 3;
    private static final int KEYS = 4;
    private static final int WIDTH = 4;

    private NDArray call(Block layer, Map<String, Object> params, NDArray... inputs) {
        ParameterStore parameters = new ParameterStore(manager, false);
        NDList list = new NDList(inputs);
        return layer.forward(parameters, list, false, new PairList<>(params)).head();
    }

    /** Draws a bias that hides one key in four, and all keys from the first query. */
    private NDArray bias(long... shape) {
        double[] numbers = random(shape).toDoubleArray();
        Random random = new Random(0);
        for (int i = 0; i < numbers.length; i++) {
            if (i % (QUERIES * KEYS) < KEYS || random.nextInt(4) == 0) {
                numbers[i] = HIDDEN;
            }
        }
        return manager.create(numbers, new Shape(shape));
    }

    // ---- the formulas, on flat arrays ----

    /**
     * Returns output and weights. Each head uses its own columns. {@code lengths} is (batch,
     * queries); a bias is (batch, heads, queries, keys), or lacks the first of these axes.
     */
    private static double[][] attend(
            double[][] inputs, double[] bias, int[] lengths, boolean causal, int heads) {
        double[] queries = inputs[0];
        double[] keys = inputs[1];
        double[] values = inputs[2];
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
                    double scoreBias = bias == null ? 0 : bias[(row * KEYS + key) % bias.length];
                    powers[key] = Math.exp(product / Math.sqrt(size) + scoreBias);
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

    /** Returns X Wᵀ: DJL's weights are (outputs, inputs). */
    private static double[] project(Linear layer, double[] X) {
        double[] weight =
                layer.getDirectParameters().get("weight").getArray().toDoubleArray();
        double[] projected = new double[X.length];
        for (int i = 0; i < X.length; i++) {
            for (int in = 0; in < WIDTH; in++) {
                int out = i % WIDTH;
                projected[i] += X[i - out + in] * weight[out * WIDTH + in];
            }
        }
        return projected;
    }

    private interface Formula {
        double[][] compute(double[][] inputs, double[] bias, int[] lengths, boolean causal);
    }

    // ---- values and gradients ----

    private static Stream<Arguments> masks(long[]... biasShapes) {
        List<Arguments> masks = new ArrayList<>();
        int[][] lengths = {null, {3, 0, 4}, {4, 0, 2, 1, 3, 4, 2, 2, 4}};
        for (boolean causal : new boolean[] {false, true}) {
            for (int[] validLens : lengths) {
                masks.add(Arguments.of(causal, null, validLens));
                for (long[] biasShape : biasShapes) {
                    masks.add(Arguments.of(causal, biasShape, validLens));
                }
            }
        }
        return masks.stream();
    }

    static Stream<Arguments> masks() {
        return masks(new long[] {QUERIES, KEYS}, new long[] {BATCH, QUERIES, KEYS});
    }

    static Stream<Arguments> headMasks() {
        return masks(
                new long[] {QUERIES, KEYS},
                new long[] {HEADS, QUERIES, KEYS},
                new long[] {BATCH, HEADS, QUERIES, KEYS});
    }

    @ParameterizedTest
    @MethodSource("masks")
    void maskedAttentionMatchesFormula(boolean causal, long[] biasShape, int[] lengths) {
        DotProductAttention layer = new DotProductAttention(0.5f);
        Formula formula =
                (inputs, bias, lens, isCausal) -> attend(inputs, bias, lens, isCausal, 1);
        double[] weights = assertMatches(formula, layer, causal, biasShape, lengths);
        assertWeights(weights, layer.attentionWeights());
    }

    @ParameterizedTest
    @MethodSource("headMasks")
    void maskedHeadsMatchFormula(boolean causal, long[] biasShape, int[] lengths) {
        NDArray X = random(1, 1, WIDTH);
        MultiHeadAttention layer =
                initialize(new MultiHeadAttention(WIDTH, HEADS, 0.5f), X, X, X);
        Formula formula =
                (inputs, bias, lens, isCausal) -> {
                    double[][] projected = {
                        project(layer.W_q, inputs[0]),
                        project(layer.W_k, inputs[1]),
                        project(layer.W_v, inputs[2])
                    };
                    double[][] result = attend(projected, bias, lens, isCausal, HEADS);
                    return new double[][] {project(layer.W_o, result[0]), result[1]};
                };
        double[] weights = assertMatches(formula, layer, causal, biasShape, lengths);
        assertWeights(weights, layer.attentionWeights());
    }

    private static void assertWeights(double[] expected, NDArray weights) {
        double[] actual = weights.toDoubleArray();
        assertArrayEquals(expected, actual, 1e-12);
        for (int i = 0; i < actual.length; i++) {
            assertEquals(expected[i] == 0, actual[i] == 0);
        }
    }

    /** Checks the layer's output and all gradients; returns the weights of the formula. */
    private double[] assertMatches(
            Formula formula, Block layer, boolean causal, long[] biasShape, int[] lengths) {
        NDArray direction = random(BATCH, QUERIES, WIDTH);
        NDList inputs =
                new NDList(
                        random(BATCH, QUERIES, WIDTH),
                        random(BATCH, KEYS, WIDTH),
                        random(BATCH, KEYS, WIDTH));
        NDArray bias = biasShape == null ? null : bias(biasShape);
        NDList differentiable = new NDList(inputs);
        if (bias != null) {
            differentiable.add(bias);
        }
        differentiable.forEach(each -> each.setRequiresGradient(true));
        int[] lengthsPerQuery = new int[BATCH * QUERIES];
        for (int i = 0; i < lengthsPerQuery.length; i++) {
            lengthsPerQuery[i] =
                    lengths == null ? KEYS : lengths[i * lengths.length / lengthsPerQuery.length];
        }
        if (lengths != null) {
            boolean isPerQuery = lengths.length > BATCH;
            Shape lensShape = isPerQuery ? new Shape(BATCH, QUERIES) : new Shape(BATCH);
            inputs.add(manager.create(lengths, lensShape));
        }
        Map<String, Object> params =
                bias == null
                        ? Map.of("causal", causal)
                        : Map.of("causal", causal, "scoreBias", bias);

        double[][] numbers =
                differentiable.stream().map(NDArray::toDoubleArray).toArray(double[][]::new);
        double[] biasNumbers = bias == null ? null : numbers[3];
        double[] directionNumbers = direction.toDoubleArray();
        double[][] expected = formula.compute(numbers, biasNumbers, lengthsPerQuery, causal);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray output = call(layer, params, inputs.toArray(NDArray[]::new));
            assertArrayEquals(expected[0], output.toDoubleArray(), 1e-12);
            collector.backward(output.mul(direction).sum());
        }
        for (int i = 0; i < numbers.length; i++) {
            double[] gradient = differentiable.get(i).getGradient().toDoubleArray();
            for (int j = 0; j < gradient.length; j++) {
                double[] losses = new double[2];
                double number = numbers[i][j];
                for (int side = 0; side < 2; side++) {
                    numbers[i][j] = number + (side == 0 ? 1e-5 : -1e-5);
                    double[][] result =
                            formula.compute(numbers, biasNumbers, lengthsPerQuery, causal);
                    for (int k = 0; k < directionNumbers.length; k++) {
                        losses[side] += result[0][k] * directionNumbers[k];
                    }
                }
                numbers[i][j] = number;
                assertEquals((losses[0] - losses[1]) / 2e-5, gradient[j], 1e-8);
            }
        }
        return expected[1];
    }

    @ParameterizedTest
    @EnumSource(names = {"FLOAT16", "FLOAT32", "FLOAT64"})
    void biasThatHidesAllKeysGivesZeroOutputAndGradients(DataType type) {
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
    void stepWithCacheEqualsLastRowOfFullAttention() {
        NDArray X = random(2, 5, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        NDArray whole = call(layer, Map.of("causal", true), X, X, X);
        NDArray step = call(layer, Map.of("causal", true), X.get(":, 4:"), X, X);
        assertArrayEquals(
                whole.get(":, 4:").toDoubleArray(), step.toDoubleArray(), 1e-12);
        // The first steps do not depend on later ones.
        NDArray firstSteps = X.get(":, :3");
        assertArrayEquals(
                whole.get(":, :3").toDoubleArray(),
                call(layer, Map.of("causal", true), firstSteps, firstSteps, firstSteps)
                        .toDoubleArray(),
                1e-12);
    }

    @Test
    void masksAcceptEmptyInputs() {
        NDArray X = random(2, 3, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        for (long[] shape : new long[][] {{2, 0, 8}, {0, 3, 8}}) {
            NDArray empty = random(shape);
            long n = shape[1];
            for (NDArray bias : new NDArray[] {random(n, n), random(shape[0], 2, n, n)}) {
                Map<String, Object> params = Map.of("causal", true, "scoreBias", bias);
                assertEquals(empty.getShape(), call(layer, params, empty, empty, empty).getShape());
            }
        }
        NDArray noKeys = random(2, 0, 8);
        Map<String, Object> params = Map.of("scoreBias", random(3, 0));
        assertEquals(X.zerosLike(), call(layer, params, X, noKeys, noKeys));
    }

    @Test
    void masksLeaveNoArraysWithManagerOfBias() {
        NDArray X = random(2, 3, 8);
        NDArray bias = random(2, 3, 3);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
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
    void traceCountsMaskedAttention() {
        NDArray X = random(1, 5, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        Map<String, Object> params = Map.of("causal", true, "scoreBias", random(2, 5, 5));
        long cost = Counting.multiplyAdds(each -> call(layer, params, each, each, each), X);
        assertEquals(4 * 5 * 8 * 8 + 2 * 5 * 5 * 8, cost);
    }

    @Test
    void badMasksAreRejected() {
        NDArray X = random(2, 3, 8);
        NDArray shorter = X.get(":, :2");
        MultiHeadAttention multiHead = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        DotProductAttention attention = new DotProductAttention(0);
        for (Block layer : new Block[] {multiHead, attention}) {
            assertError(
                    "causal attention: got 3 queries and 2 keys; need at least one key for each"
                        + " query",
                    () -> call(layer, Map.of("causal", true), X, shorter, shorter));
            call(layer, Map.of("causal", false), X, shorter, shorter);
            assertError(
                    "causal: got Integer; need true or false",
                    () -> call(layer, Map.of("causal", 1), X, X, X));
            assertError(
                    "scoreBias: got double[]; need an NDArray",
                    () -> call(layer, Map.of("scoreBias", new double[9]), X, X, X));
            assertError(
                    "params: got score_bias; need causal, scoreBias or window",
                    () -> call(layer, Map.of("score_bias", random(3, 3)), X, X, X));
            NDArray float32 = manager.zeros(new Shape(3, 3));
            assertError(
                    "queries and scoreBias: got dtype float64, float32; need one floating-point"
                        + " dtype",
                    () -> call(layer, Map.of("scoreBias", float32), X, X, X));
        }
        assertError(
                "scoreBias: got shape (3, 2); need shape (queries, keys), here (3, 3) or (batch,"
                    + " queries, keys), here (2, 3, 3)",
                () -> call(attention, Map.of("scoreBias", random(3, 2)), X, X, X));
        assertError(
                "scoreBias: got shape (3, 3, 3); need shape (queries, keys), here (3, 3) or"
                    + " (heads, queries, keys), here (2, 3, 3) or (batch, heads, queries, keys),"
                    + " here (2, 2, 3, 3)",
                () -> call(multiHead, Map.of("scoreBias", random(3, 3, 3)), X, X, X));
    }
}
