package d2l;

import static d2l.MaskedSoftmax.maskedSoftmax;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv1d;
import ai.djl.nn.convolutional.Conv1dTranspose;
import ai.djl.nn.core.Linear;
import ai.djl.nn.recurrent.GRU;
import ai.djl.nn.recurrent.LSTM;
import ai.djl.nn.recurrent.RNN;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.Locale;
import java.util.function.UnaryOperator;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Compares the layers with their formulas, written as loops in double precision. */
class LayersTest extends ArrayTestBase {

    // ---- the formulas ----

    private static double[] softmax(double[] scores, int length) {
        double[] weights = new double[scores.length];
        double sum = 0;
        for (int i = 0; i < length; i++) {
            weights[i] = Math.exp(scores[i]);
            sum += weights[i];
        }
        for (int i = 0; i < length; i++) {
            weights[i] /= sum;
        }
        return weights;
    }

    /** Returns x W + b for one vector; DJL's weights are (outputs, inputs). */
    static double[] project(Linear layer, double[] x) {
        NDArray weight = layer.getDirectParameters().get("weight").getArray();
        boolean hasBias = layer.getDirectParameters().contains("bias");
        NDArray bias = hasBias ? layer.getDirectParameters().get("bias").getArray() : null;
        return IntStream.range(0, (int) weight.getShape().get(0))
                .mapToDouble(
                        out -> {
                            double sum = hasBias ? bias.getDouble(out) : 0;
                            for (int in = 0; in < x.length; in++) {
                                sum += x[in] * weight.getDouble(out, in);
                            }
                            return sum;
                        })
                .toArray();
    }

    static double[][] project(Linear layer, NDArray X) {
        return IntStream.range(0, (int) X.getShape().get(0))
                .mapToObj(i -> project(layer, X.get(i).toDoubleArray()))
                .toArray(double[][]::new);
    }

    /** Returns the output for one example. */
    private static double[][] computeAttention(
            MultiHeadAttention layer,
            int heads,
            NDArray queries,
            NDArray keys,
            NDArray values,
            int[] lengths) {
        double[][] q = project(layer.W_q, queries);
        double[][] k = project(layer.W_k, keys);
        double[][] v = project(layer.W_v, values);
        int size = q[0].length / heads;
        double[][] pooled = new double[q.length][q[0].length];
        for (int h = 0; h < heads; h++) {
            for (int i = 0; i < q.length; i++) {
                double[] scores = new double[k.length];
                for (int j = 0; j < k.length; j++) {
                    for (int c = h * size; c < (h + 1) * size; c++) {
                        scores[j] += q[i][c] * k[j][c] / Math.sqrt(size);
                    }
                }
                double[] weights = softmax(scores, lengths[i]);
                for (int c = h * size; c < (h + 1) * size; c++) {
                    for (int j = 0; j < k.length; j++) {
                        pooled[i][c] += weights[j] * v[j][c];
                    }
                }
            }
        }
        return IntStream.range(0, q.length)
                .mapToObj(i -> project(layer.W_o, pooled[i]))
                .toArray(double[][]::new);
    }

    private static double encoding(int position, int column, int numHiddens) {
        double angle = position / Math.pow(10000, 2.0 * (column / 2) / numHiddens);
        return column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
    }

    // ---- attention ----

    @ParameterizedTest
    @CsvSource({"false,false", "true,false", "false,true", "true,true"})
    void multiHeadAttentionMatchesFormula(boolean hasInputSizes, boolean bias) {
        NDArray queries = random(2, 3, 5);
        NDArray keys = random(2, 4, 6);
        NDArray values = random(2, 4, 7);
        NDArray validLens = manager.create(new int[][] {{4, 0, 2}, {1, 3, 4}});
        MultiHeadAttention layer =
                hasInputSizes
                        ? new MultiHeadAttention(6, 5, 7, 8, 2, 0.5f, bias)
                        : new MultiHeadAttention(8, 2, 0.5f, bias);
        initialize(layer, queries, keys, values);
        if (bias) {
            for (Linear each : new Linear[] {layer.W_q, layer.W_k, layer.W_v, layer.W_o}) {
                random(8).copyTo(each.getDirectParameters().get("bias").getArray());
            }
        }
        NDArray output = call(layer, queries, keys, values, validLens);
        assertEquals(new Shape(2, 3, 8), output.getShape());
        for (int b = 0; b < 2; b++) {
            int[] lengths = validLens.get(b).toIntArray();
            double[][] expected =
                    computeAttention(layer, 2, queries.get(b), keys.get(b), values.get(b), lengths);
            for (int i = 0; i < 3; i++) {
                assertArrayEquals(expected[i], output.get(b, i).toDoubleArray(), 1e-12);
            }
        }
        assertEquals(new Shape(2, 2, 3, 4), layer.attentionWeights().getShape());
        assertEquals(bias ? 8 : 4, layer.getParameters().size());
    }

    /** Attention with negated queries. */
    private static final class NegatedAttention extends DotProductAttention {

        NegatedAttention() {
            super(0);
        }

        @Override
        protected NDList forwardInternal(
                ParameterStore store,
                NDList inputs,
                boolean training,
                PairList<String, Object> params) {
            NDList negated = new NDList(inputs);
            negated.set(0, inputs.get(0).neg());
            return super.forwardInternal(store, negated, training, params);
        }
    }

    @Test
    void attentionOfHeadsCanBeReplaced() {
        NDArray X = random(2, 3, 8);
        MultiHeadAttention plain = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        MultiHeadAttention negated =
                initialize(new MultiHeadAttention(8, 2, new NegatedAttention()), X, X, X);
        for (String name : plain.getParameters().keys()) {
            NDArray weight = plain.getParameters().get(name).getArray();
            weight.copyTo(negated.getParameters().get(name).getArray());
        }
        double[] before = call(plain, X, X, X).toDoubleArray();
        double[] output = call(negated, X, X, X).toDoubleArray();
        assertTrue(IntStream.range(0, 48).allMatch(i -> Math.abs(before[i] - output[i]) > 1e-6));
        NDArray W_q = plain.W_q.getDirectParameters().get("weight").getArray();
        W_q.neg().copyTo(W_q);
        assertArrayEquals(call(plain, X, X, X).toDoubleArray(), output, 1e-12);
        assertEquals(plain.attentionWeights().getShape(), negated.attentionWeights().getShape());
    }

    @Test
    void headsAreSplitAndMerged() {
        MultiHeadAttention layer = new MultiHeadAttention(6, 2, 0);
        NDArray X = random(2, 4, 6);
        NDArray split = layer.transposeQkv(X);
        assertEquals(new Shape(4, 4, 3), split.getShape());
        for (int b = 0; b < 2; b++) {
            for (int head = 0; head < 2; head++) {
                NDArray slice = X.get("{}, :, {}:{}", b, 3 * head, 3 * head + 3);
                assertEquals(slice, split.get(2 * b + head));
            }
        }
        assertEquals(X, layer.transposeOutput(split));
        assertError(
                "X: got shape (2, 4, 5); need a last dimension of 6",
                () -> layer.transposeQkv(random(2, 4, 5)));
        assertError(
                "X: got shape (4, 6); need 3 dimensions (batch, steps, numHiddens)",
                () -> layer.transposeQkv(random(4, 6)));
        assertError(
                "X: got shape (3, 4, 3) with numHeads 2; need a batch that is a multiple of"
                    + " numHeads",
                () -> layer.transposeOutput(random(3, 4, 3)));
        assertError(
                "X: got shape (4, 4, 6); need a last dimension of 3",
                () -> layer.transposeOutput(random(4, 4, 6)));
    }

    @Test
    void float32HasFullPrecision() {
        NDArray X = manager.randomNormal(new Shape(1, 4, 8));
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        NDArray output = call(layer, X, X, X);
        NDArray wide = X.toType(DataType.FLOAT64, true);
        MultiHeadAttention exact = initialize(new MultiHeadAttention(8, 2, 0), wide, wide, wide);
        for (String name : layer.getParameters().keys()) {
            NDArray weight = layer.getParameters().get(name).getArray();
            weight.toType(DataType.FLOAT64, true)
                    .copyTo(exact.getParameters().get(name).getArray());
        }
        assertEquals(DataType.FLOAT32, output.getDataType());
        assertArrayEquals(
                call(exact, wide, wide, wide).toDoubleArray(),
                output.toType(DataType.FLOAT64, true).toDoubleArray(),
                1e-6);
    }

    @Test
    void maskedWeightsAreZeroAndOthersSumToOne() {
        NDArray weights = maskedSoftmax(random(2, 3, 5), manager.create(new int[] {2, 5}));
        for (int i = 0; i < 3; i++) {
            assertArrayEquals(new double[3], weights.get("0, {}, 2:", i).toDoubleArray(), 0);
            assertEquals(1, weights.get(0, i).sum().getDouble(), 1e-12);
            assertTrue(weights.get(1, i).min().getDouble() > 0);
        }
    }

    @Test
    void float16IsMasked() {
        NDArray scores = random(2, 3, 5);
        NDArray lens = manager.create(new int[] {2, 0});
        NDArray weights = maskedSoftmax(scores.toType(DataType.FLOAT16, true), lens);
        assertEquals(DataType.FLOAT16, weights.getDataType());
        assertArrayEquals(
                maskedSoftmax(scores, lens).toDoubleArray(),
                weights.toType(DataType.FLOAT64, true).toDoubleArray(),
                1e-3);
        assertEquals(3 * 2, weights.countNonzero().getLong());
    }

    @Test
    void maskedScoresMayBeNonFinite() {
        NDArray scores = random(1, 2, 4);
        NDArray lens = manager.create(new int[] {2});
        double[] clean = maskedSoftmax(scores, lens).toDoubleArray();
        scores.set(new NDIndex("0, 0, 2:"), Double.NaN);
        scores.set(new NDIndex("0, 1, 2:"), Double.POSITIVE_INFINITY);
        assertArrayEquals(clean, maskedSoftmax(scores, lens).toDoubleArray(), 0);
    }

    @ParameterizedTest
    @EnumSource(names = {"FLOAT16", "FLOAT32", "FLOAT64"})
    void queryWithoutValidKeyHasZeroOutputAndGradients(DataType type) {
        NDArray X = random(1, 3, 4).toType(type, true);
        X.setRequiresGradient(true);
        DotProductAttention layer = new DotProductAttention(0);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray pooled = call(layer, X, X, X, manager.create(new int[] {0}));
            assertEquals(0, pooled.abs().max().toType(DataType.FLOAT64, true).getDouble());
            collector.backward(pooled.sum());
        }
        assertEquals(0, layer.attentionWeights().countNonzero().getLong());
        assertEquals(0, X.getGradient().countNonzero().getLong());
        assertFalse(X.getGradient().isNaN().any().getBoolean());
    }

    @ParameterizedTest
    @EnumSource(names = {"INT8", "UINT8", "INT32", "INT64"})
    void lengthsMayHaveAnyIntegerType(DataType type) {
        NDArray scores = random(2, 1, 3);
        NDArray lens = manager.create(new int[] {1, 3}).toType(type, true);
        NDArray expected = maskedSoftmax(scores, manager.create(new int[] {1, 3}));
        assertEquals(expected, maskedSoftmax(scores, lens));
    }

    @Test
    void dropoutActsOnlyInTraining() {
        NDArray X = random(4, 10, 8);
        DotProductAttention layer = new DotProductAttention(0.5f);
        NDArray evaluated = call(layer, X, X, X);
        assertEquals(evaluated, call(layer, X, X, X));
        assertNotEquals(evaluated, call(layer, true, X, X, X));
        assertEquals(1, layer.attentionWeights().sum(new int[] {2}).min().getDouble(), 1e-12);
    }

    /** Checks that about a quarter of the numbers is dropped, and the rest scaled up. */
    private static void assertQuarterIsDropped(NDArray original, NDArray dropped) {
        double[] before = original.toDoubleArray();
        double[] after = dropped.toDoubleArray();
        long zeros = DoubleStream.of(after).filter(number -> number == 0).count();
        assertEquals(0.25, (double) zeros / after.length, 0.02);
        for (int i = 0; i < after.length; i++) {
            assertEquals(after[i] == 0 ? 0 : before[i] / 0.75, after[i], 1e-12);
        }
    }

    @Test
    void attentionDropsWeights() {
        NDArray queries = random(1, 100, 8);
        NDArray keys = random(1, 200, 8);
        NDArray identity = manager.eye(200).toType(DataType.FLOAT64, false).expandDims(0);
        DotProductAttention layer = new DotProductAttention(0.25f);
        NDArray dropped = call(layer, true, queries, keys, identity);
        assertQuarterIsDropped(layer.attentionWeights(), dropped);
    }

    @Test
    void headsDropWeightsOnlyInTraining() {
        NDArray X = random(2, 10, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
        assertNotEquals(call(layer, true, X, X, X), call(layer, true, X, X, X));
        assertEquals(call(layer, X, X, X), call(layer, X, X, X));
    }

    @Test
    void initialWeightsAreWithinInverseRootOfInputSize() {
        NDArray queries = random(1, 2, 16);
        NDArray keys = random(1, 3, 25);
        NDArray values = random(1, 3, 36);
        MultiHeadAttention layer =
                initialize(new MultiHeadAttention(64, 4, 0), queries, keys, values);
        for (Linear each : new Linear[] {layer.W_q, layer.W_k, layer.W_v, layer.W_o}) {
            NDArray weight = each.getDirectParameters().get("weight").getArray();
            double bound = 1 / Math.sqrt(weight.getShape().get(1));
            double largest = weight.abs().max().getDouble();
            assertTrue(0.9 * bound < largest && largest <= bound, largest + " of " + bound);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void resultWithoutQueriesIsEmpty(boolean training) {
        NDArray X = random(2, 3, 8);
        NDArray empty = random(2, 0, 8);
        NDArray validLens = manager.create(new int[] {3, 2});
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
        assertEquals(empty.getShape(), call(layer, training, empty, X, X).getShape());
        assertEquals(new Shape(2, 2, 0, 3), layer.attentionWeights().getShape());
        assertEquals(empty.getShape(), call(layer, training, empty, X, X, validLens).getShape());
        assertEquals(empty.getShape(), call(layer, training, empty, empty, empty).getShape());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void resultWithoutKeysIsZero(boolean training) {
        NDArray X = random(2, 3, 8);
        NDArray empty = random(2, 0, 8);
        NDArray validLens = manager.create(new int[] {0, 0});
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
        assertEquals(X.zerosLike(), call(layer, training, X, empty, empty));
        assertEquals(new Shape(2, 2, 3, 0), layer.attentionWeights().getShape());
        assertEquals(X.zerosLike(), call(layer, training, X, empty, empty, validLens));
    }

    @Test
    void emptyBatchGivesEmptyResult() {
        NDArray X = random(1, 3, 8);
        NDArray empty = random(0, 3, 8);
        NDArray validLens = manager.create(new Shape(0), DataType.INT32);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        assertEquals(empty.getShape(), call(layer, empty, empty, empty).getShape());
        assertEquals(empty.getShape(), call(layer, empty, empty, empty, validLens).getShape());
        assertEquals(new Shape(0, 2, 3, 3), layer.attentionWeights().getShape());
    }

    @Test
    void rejectedCallKeepsLastWeights() {
        NDArray X = random(2, 3, 8);
        NDArray other = random(2, 3, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        call(layer, X, X, X);
        NDArray last = layer.attentionWeights();
        NDList[] badInputs = {
            new NDList(other, other, other.get(":, :2")),
            new NDList(other, other, other, manager.create(new int[] {3, 4})),
            new NDList(other, other, other, manager.create(new float[] {3, 3})),
        };
        for (NDList inputs : badInputs) {
            Executable call = () -> call(layer, inputs.toArray(NDArray[]::new));
            assertThrows(IllegalArgumentException.class, call);
            assertEquals(last, layer.attentionWeights());
            // Also without multi-head attention, which has its own checks.
            call = () -> call(layer.attention, inputs.toArray(NDArray[]::new));
            assertThrows(IllegalArgumentException.class, call);
            assertEquals(last, layer.attentionWeights());
        }
    }

    @Test
    void arraysAreMadeOnDeviceOfInput() {
        NDArray X = random(2, 3, 8);
        // This manager's device does not exist, so an array made there would fail.
        try (NDManager elsewhere = manager.newSubManager(Device.gpu(99))) {
            X.attach(elsewhere);
            NDArray weights = maskedSoftmax(X, manager.create(new int[] {2, 5}));
            assertEquals(X.getDevice(), weights.getDevice());
            NDArray encoded = call(new PositionalEncoding(8, 0), X);
            assertEquals(X.getDevice(), encoded.getDevice());
        }
    }

    @Test
    void callLeavesNoArraysWithManagerOfLayer() {
        NDArray X = random(2, 3, 8);
        Block model =
                new SequentialBlock()
                        .add(new PositionalEncoding(8, 0.5f))
                        .add(list -> new NDList(list.head(), list.head(), list.head()))
                        .add(new MultiHeadAttention(8, 2, 0.5f));
        initialize(model, X);
        int before = manager.getManagedArrays().size();
        ParameterStore parameters = new ParameterStore(manager, false);
        for (int step = 0; step < 3; step++) {
            try (NDManager scratch = manager.newSubManager()) {
                NDArray batch = scratch.create(X.toDoubleArray(), X.getShape());
                model.forward(parameters, new NDList(batch), true);
            }
        }
        assertEquals(before, manager.getManagedArrays().size());
    }

    @Test
    void callLeavesNoArraysWithManagerOfLengths() {
        NDArray X = random(2, 3, 8);
        NDArray validLens = manager.create(new int[] {1, 3});
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0.5f), X, X, X);
        int before = manager.getManagedArrays().size();
        for (int step = 0; step < 3; step++) {
            try (NDManager scratch = manager.newSubManager()) {
                NDArray batch = scratch.create(X.toDoubleArray(), X.getShape());
                call(layer, true, batch, batch, batch, validLens);
                call(layer.attention, true, batch, batch, batch, validLens);
            }
        }
        assertEquals(before, manager.getManagedArrays().size());
    }

    @Test
    void outputShapesAreKnownBeforeAndAfterInitialization() {
        NDArray X = random(2, 3, 8);
        Shape[] inputs = {new Shape(2, 5, 8), new Shape(2, 3, 8), new Shape(2, 3, 8)};
        MultiHeadAttention layer = new MultiHeadAttention(12, 2, 0);
        assertEquals(new Shape(2, 5, 12), layer.getOutputShapes(inputs)[0]);
        initialize(layer, X, X, X);
        assertEquals(new Shape(2, 5, 12), layer.getOutputShapes(inputs)[0]);
        assertEquals(new Shape(2, 5, 8), new DotProductAttention(0).getOutputShapes(inputs)[0]);
        assertEquals(inputs[0], new PositionalEncoding(8, 0).getOutputShapes(inputs)[0]);
    }

    @Test
    void badArgumentsAreRejected() {
        assertError(
                "numHiddens: got 100 with numHeads 3; need a multiple of numHeads, so that every"
                    + " head gets an equal share",
                () -> new MultiHeadAttention(100, 3, 0));
        assertError(
                "numHeads: got 0; need an integer of at least 1",
                () -> new MultiHeadAttention(8, 0, 0));
        assertError(
                "dropout: got 1.5; need a probability, from 0 to 1",
                () -> new DotProductAttention(1.5f));
        assertError(
                "querySize: got 0; need an integer of at least 1",
                () -> new MultiHeadAttention(8, 0, 8, 8, 2, 0));
        NDArray X = random(2, 3, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        assertError(
                "queries: got shape (3, 8); need 3 dimensions (batch, queries, features)",
                () -> call(layer, X.get(0), X, X));
        assertError(
                "keys: got shape (2, 3, 7); need a last dimension of 8",
                () -> call(layer, X, X.get(":, :, :7"), X));
        assertError(
                "batch sizes of queries, keys and values: got 1, 2 and 2; need equal batch sizes",
                () -> call(layer, X.get(":1"), X, X));
        assertError(
                "keys and values: got 3 keys and 2 values; need one value for each key",
                () -> call(layer, X, X, X.get(":, :2")));
        assertError(
                "queries, keys and values: got dtype float64, float32; need one floating-point"
                    + " dtype",
                () -> call(layer, X, X, X.toType(DataType.FLOAT32, true)));
        assertError(
                "validLens: got dtype float32; need an integer dtype",
                () -> call(layer, X, X, X, manager.create(new float[] {3, 2})));
        assertError(
                "validLens: got dtype boolean; need an integer dtype",
                () -> call(layer, X, X, X, manager.create(new boolean[] {true, false})));
        assertError(
                "validLens: got shape (3); need shape (2), a length per example, or (2, 3), one per"
                    + " query",
                () -> call(layer, X, X, X, manager.create(new int[] {3, 2, 1})));
        assertError(
                "validLens: got a length of 4; need lengths from 0 to 3, the number of keys",
                () -> call(layer, X, X, X, manager.create(new int[] {3, 4})));
        assertError(
                "validLens: got a length of -1; need lengths from 0 to 3, the number of keys",
                () -> call(layer, X, X, X, manager.create(new int[] {3, -1})));
        assertError(
                "inputs: got 1 arrays; need queries, keys, values and perhaps validLens",
                () -> call(layer, X));
        MultiHeadAttention fixed = new MultiHeadAttention(8, 5, 8, 8, 2, 0);
        assertError(
                "queries: got shape (2, 3, 8); need a last dimension of 5",
                () -> initialize(fixed, X, X, X));
        assertThrows(IllegalStateException.class, () -> fixed.attentionWeights());
    }

    @ParameterizedTest
    @ValueSource(strings = {"fa-IR", "tr-TR"}) // other digits; another lower-case letter for I
    void messagesAreTheSameInAnyLocale(String language) {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag(language));
        try {
            badArgumentsAreRejected();
            badPositionsAreRejected();
        } finally {
            Locale.setDefault(before);
        }
    }

    // ---- positional encoding ----

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 32})
    void encodingMatchesFormulaAtAnyWidthAndOffset(int width) {
        NDArray zeros = manager.zeros(new Shape(2, 5, width), DataType.FLOAT64);
        NDArray encoded = call(new PositionalEncoding(width, 0.5f, 20), zeros, manager.create(15));
        for (int i = 0; i < 5; i++) {
            for (int column = 0; column < width; column++) {
                assertEquals(
                        encoding(15 + i, column, width),
                        encoded.getDouble(1, i, column),
                        1e-12);
            }
        }
    }

    @Test
    void encodingIsRoundedOnce() {
        NDArray zeros = manager.zeros(new Shape(1, 1000, 8));
        NDArray encoded = call(new PositionalEncoding(8, 0), zeros);
        assertEquals(DataType.FLOAT32, encoded.getDataType());
        assertEquals((float) encoding(999, 1, 8), encoded.getFloat(0, 999, 1));
        assertEquals(encoding(999, 1, 8), new PositionalEncoding(8, 0).P()[999 * 8 + 1], 1e-12);
    }

    @Test
    void encodingIsAddedToInput() {
        NDArray X = random(1, 3, 4);
        NDArray sum = call(new PositionalEncoding(4, 0), X);
        assertEquals(X.getDouble(0, 2, 1) + encoding(2, 1, 4), sum.getDouble(0, 2, 1), 1e-12);
    }

    @Test
    void encodingAppliesDropoutToSum() {
        NDArray X = random(4, 100, 32).add(10); // without zeros
        PositionalEncoding layer = new PositionalEncoding(32, 0.25f);
        assertQuarterIsDropped(call(layer, X), call(layer, true, X));
    }

    @Test
    void emptyInputsAreAccepted() {
        PositionalEncoding layer = new PositionalEncoding(4, 0, 10);
        for (NDArray empty : new NDArray[] {random(2, 0, 4), random(0, 3, 4)}) {
            assertEquals(empty.getShape(), call(layer, empty).getShape());
        }
        call(layer, random(2, 0, 4), manager.create(10));
    }

    @Test
    void badPositionsAreRejected() {
        PositionalEncoding layer = new PositionalEncoding(4, 0, 10);
        NDArray X = random(1, 3, 4);
        call(layer, X, manager.create(7));
        assertError(
                "positions: got 3 positions from offset 8; need at most 10 in all; make the layer"
                    + " with a larger maxLen",
                () -> call(layer, X, manager.create(8)));
        for (long far : new long[] {1L << 40, Long.MAX_VALUE}) {
            assertError(
                    "positions: got 3 positions from offset "
                            + far
                            + "; need at most 10 in all; make the layer with a larger maxLen",
                    () -> call(layer, X, manager.create(far)));
        }
        assertError(
                "maxLen: got 65536 with numHiddens 65536; need at most 2147483647 numbers in the"
                    + " table",
                () -> new PositionalEncoding(1 << 16, 0, 1 << 16));
        assertError(
                "offset: got -1; need an integer of at least 0",
                () -> call(layer, X, manager.create(-1)));
        assertError(
                "offset: got dtype float32, shape (); need an integer of at least 0",
                () -> call(layer, X, manager.create(1f)));
        assertError(
                "X: got shape (1, 3, 5); need a last dimension of 4",
                () -> call(layer, random(1, 3, 5)));
        assertError(
                "X: got dtype int32; need one floating-point dtype",
                () -> call(layer, manager.ones(new Shape(1, 3, 4), DataType.INT32)));
    }

    @Test
    void weightsLoadIntoLayerWithMorePositions() throws Exception {
        NDArray X = random(1, 3, 8);
        Block small = initialize(model(10), X);
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        small.saveParameters(new DataOutputStream(file));
        Block large = model(2000);
        large.loadParameters(
                manager, new DataInputStream(new ByteArrayInputStream(file.toByteArray())));
        assertEquals(4, large.getParameters().size());
        assertEquals(call(small, X), call(large, X));
        NDArray longer = random(1, 11, 8);
        assertEquals(longer.getShape(), call(large, longer).getShape());
        assertThrows(IllegalArgumentException.class, () -> call(small, longer));
    }

    private static Block model(int maxLen) {
        return new SequentialBlock()
                .add(new PositionalEncoding(8, 0, maxLen))
                .add(list -> new NDList(list.head(), list.head(), list.head()))
                .add(new MultiHeadAttention(8, 2, 0));
    }

    // ---- the trace ----

    @Test
    void traceRecordsProductsAndTheirSources() {
        NDArray X = random(1, 5, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        Trace trace = new Trace();
        NDArray watched = trace.watch(X);
        NDArray output = call(layer, watched, watched, watched);
        long counted = trace.products().stream().mapToLong(Trace.Product::multiplyAdds).sum();
        assertEquals(4 * 5 * 8 * 8 + 2 * 5 * 5 * 8, counted);
        assertEquals(6, trace.products().size());
        Trace.Product last = Trace.sources(output).get(0);
        assertEquals(trace.products().get(5), last);
        Trace.Product pooling = last.sources().get(0);
        assertEquals(2, pooling.sources().size()); // the scores, and the projected values
        assertArrayEquals(call(layer, X, X, X).toDoubleArray(), output.toDoubleArray());
    }

    @Test
    void operationThatTraceWouldMissIsRejected() {
        NDArray X = random(2, 2);
        NDArray watched = new Trace().watch(X);
        String message =
                assertThrows(IllegalStateException.class, () -> X.matMul(watched)).getMessage();
        assertEquals("Trace: call the operation on the watched array", message);
    }

    private static Stream<Arguments> uncountableLayers() {
        return Stream.of(
                Arguments.of(
                        "rnn",
                        RNN.builder()
                                .setStateSize(2)
                                .setNumLayers(1)
                                .setActivation(RNN.Activation.TANH)
                                .build()),
                Arguments.of("gru", GRU.builder().setStateSize(2).setNumLayers(1).build()),
                Arguments.of("lstm", LSTM.builder().setStateSize(2).setNumLayers(1).build()),
                Arguments.of(
                        "deconvolution",
                        Conv1dTranspose.builder()
                                .setKernelShape(new Shape(2))
                                .setFilters(2)
                                .build()));
    }

    @ParameterizedTest
    @MethodSource("uncountableLayers")
    void uncountableLayerIsRejected(String operation, Block layer) {
        NDArray X = manager.ones(new Shape(2, 3, 4));
        initialize(layer, X);
        NDArray watched = new Trace().watch(X);
        Executable call = () -> call(layer, watched);
        assertEquals(
                "Trace: cannot count " + operation,
                assertThrows(UnsupportedOperationException.class, call).getMessage());
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "5, 1", "5, 3"})
    void attentionCostMatchesFormula(int n, int batch) {
        NDArray X = random(batch, n, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        UnaryOperator<NDArray> attend = each -> call(layer, each, each, each);
        assertEquals(batch * (4 * n * 8 * 8 + 2 * n * n * 8), Counting.multiplyAdds(attend, X));
        assertEquals(4, Counting.longestChain(attend, X));
        assertEquals(8, Counting.longestChain(each -> attend.apply(attend.apply(each)), X));
    }

    @Test
    void convolutionCostMatchesFormula() {
        NDArray X = random(2, 3, 10);
        Conv1d layer = Conv1d.builder().setFilters(5).setKernelShape(new Shape(4)).build();
        initialize(layer, X);
        assertEquals(2 * 7 * 5 * 3 * 4, Counting.multiplyAdds(each -> call(layer, each), X));
        assertEquals(1, Counting.longestChain(each -> call(layer, each), X));
    }

    @Test
    void longestChainFollowsDependencies() {
        NDArray X = random(4, 4);
        UnaryOperator<NDArray> parallel = each -> each.matMul(X).add(each.matMul(X)).tanh();
        assertEquals(1, Counting.longestChain(parallel, X));
        assertEquals(2 * 4 * 4 * 4, Counting.multiplyAdds(parallel, X));
        // Two paths through each step make a billion in all, which must not be enumerated.
        UnaryOperator<NDArray> repeatedCube =
                each -> {
                    for (int step = 0; step < 30; step++) {
                        each = each.matMul(each).matMul(each);
                    }
                    return each;
                };
        assertEquals(60, Counting.longestChain(repeatedCube, X));
        assertEquals(0, Counting.longestChain(each -> each.add(1), X));
        assertEquals(0, Counting.multiplyAdds(each -> each.mul(each), X));
    }

    @Test
    void countingLeavesNoArraysWithManagerOfInput() {
        NDArray X = random(1, 5, 8);
        MultiHeadAttention layer = initialize(new MultiHeadAttention(8, 2, 0), X, X, X);
        int before = manager.getManagedArrays().size();
        Counting.multiplyAdds(each -> call(layer, each, each, each), X);
        Counting.longestChain(each -> call(layer, each, each, each), X);
        assertEquals(before, manager.getManagedArrays().size());
    }

    @Test
    void gradientDoesNotReadFreedMemory() {
        var layer = new DotProductAttention(0);
        NDArray numbers = random(1, 3, 4);
        var gradients = new ArrayList<double[]>();
        for (boolean overwrite : new boolean[] {false, true}) {
            NDArray X = numbers.duplicate();
            X.setRequiresGradient(true);
            try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
                NDArray loss = call(layer, X, X, X).square().sum();
                if (overwrite) {
                    overwriteFreeMemory();
                }
                collector.backward(loss);
                gradients.add(X.getGradient().toDoubleArray());
            }
        }
        assertArrayEquals(gradients.get(0), gradients.get(1));
    }
}
