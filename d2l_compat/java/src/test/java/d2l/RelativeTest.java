package d2l;

import static d2l.AlibiSlopes.alibiSlopes;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.GradientCollector;

import d2l.RotaryEncoding.Layout;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Compares rotary encoding and ALiBi's slopes with their formulas in double precision. */
class RelativeTest extends ArrayTestBase {

    /** Rotates each row by its position, pair by pair, or back if {@code direction} is -1. */
    private static double[] rotate(
            double[] X,
            int steps,
            int width,
            int offset,
            double base,
            Layout layout,
            double scale,
            int direction) {
        double[] rotated = new double[X.length];
        for (int row = 0; row < X.length / width; row++) {
            int position = offset + row % steps;
            for (int pair = 0; pair < width / 2; pair++) {
                boolean isHalves = layout == Layout.HALVES;
                int first = row * width + (isHalves ? pair : 2 * pair);
                int second = isHalves ? first + width / 2 : first + 1;
                double angle = direction * scale * position / Math.pow(base, 2.0 * pair / width);
                double cos = Math.cos(angle);
                double sin = Math.sin(angle);
                rotated[first] = X[first] * cos - X[second] * sin;
                rotated[second] = X[first] * sin + X[second] * cos;
            }
        }
        return rotated;
    }

    @ParameterizedTest
    @CsvSource({
        "2, 0, 10000, INTERLEAVED, 1",
        "8, 15, 10000, INTERLEAVED, 1",
        "8, 15, 10000, HALVES, 1",
        "6, 3, 500, INTERLEAVED, 0.25",
        "6, 3, 500, HALVES, 3",
    })
    void rotationMatchesFormulaAndGradientRotatesBack(
            int width, int offset, double base, Layout layout, double scale) {
        RotaryEncoding layer = new RotaryEncoding(width, 20, base, layout, scale);
        NDArray X = random(2, 5, width);
        NDArray direction = random(2, 5, width);
        X.setRequiresGradient(true);
        double[] numbers = X.toDoubleArray();
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray rotated = call(layer, X, manager.create(offset));
            assertArrayEquals(
                    rotate(numbers, 5, width, offset, base, layout, scale, 1),
                    rotated.toDoubleArray(),
                    1e-12);
            NDArray loss = rotated.mul(direction).sum();
            overwriteFreeMemory(); // such as that of the table's rows
            collector.backward(loss);
        }
        assertArrayEquals(
                rotate(direction.toDoubleArray(), 5, width, offset, base, layout, scale, -1),
                X.getGradient().toDoubleArray(),
                1e-12);
    }

    @Test
    void defaultsAreThoseOfPaper() {
        NDArray X = random(1, 3, 8);
        double[] expected =
                rotate(X.toDoubleArray(), 3, 8, 0, 10000, Layout.INTERLEAVED, 1, 1);
        for (RotaryEncoding layer :
                new RotaryEncoding[] {new RotaryEncoding(8), new RotaryEncoding(8, 3)}) {
            assertArrayEquals(expected, call(layer, X).toDoubleArray(), 1e-12);
        }
        assertEquals(1000 * 8, new RotaryEncoding(8).P().length);
    }

    @ParameterizedTest
    @EnumSource
    void scoresDependOnlyOnDistance(Layout layout) {
        RotaryEncoding layer = new RotaryEncoding(8, 60, 10000, layout, 1);
        NDArray Q = call(layer, random(1, 1, 8).repeat(1, 60));
        NDArray K = call(layer, random(1, 1, 8).repeat(1, 60));
        NDArray scores = Q.matMul(K.swapAxes(1, 2)).get(0);
        for (int i = 1; i < 60; i++) {
            for (int j = 1; j < 60; j++) {
                assertEquals(
                        scores.getDouble(i - 1, j - 1), scores.getDouble(i, j), 1e-12);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void largePositionsAreExact(Layout layout) {
        RotaryEncoding layer = new RotaryEncoding(8, 100_000, 10000, layout, 1);
        NDArray X = manager.randomNormal(new Shape(1, 3, 8));
        NDArray rotated = call(layer, X, manager.create(99_990));
        assertEquals(DataType.FLOAT32, rotated.getDataType());
        double[] numbers = X.toType(DataType.FLOAT64, true).toDoubleArray();
        assertArrayEquals(
                rotate(numbers, 3, 8, 99_990, 10000, layout, 1, 1),
                rotated.toType(DataType.FLOAT64, true).toDoubleArray(),
                1e-6);
    }

    @Test
    void tableHasCosinesThenSines() {
        double[] P = new RotaryEncoding(4, 5, 100, Layout.HALVES, 0.5).P();
        for (int position = 0; position < 5; position++) {
            for (int pair = 0; pair < 2; pair++) {
                double angle = 0.5 * position / Math.pow(10, pair);
                assertEquals(Math.cos(angle), P[2 * position + pair], 1e-15);
                assertEquals(Math.sin(angle), P[10 + 2 * position + pair], 1e-15);
            }
        }
        assertEquals(0, new RotaryEncoding(4).getParameters().size());
    }

    @ParameterizedTest
    @EnumSource
    void emptyInputsAreAccepted(Layout layout) {
        RotaryEncoding layer = new RotaryEncoding(4, 10, 10000, layout, 1);
        for (NDArray empty : new NDArray[] {random(2, 0, 4), random(0, 3, 4)}) {
            assertEquals(empty.getShape(), call(layer, empty).getShape());
        }
        call(layer, random(2, 0, 4), manager.create(10));
        Shape[] shapes = {new Shape(2, 5, 4)};
        assertEquals(shapes[0], layer.getOutputShapes(shapes)[0]);
    }

    @Test
    void tableFollowsDeviceOfInputAndLeavesNoArrays() {
        NDArray X = random(2, 3, 8);
        int before = manager.getManagedArrays().size();
        try (NDManager scratch = manager.newSubManager()) {
            call(new RotaryEncoding(8), scratch.create(X.toDoubleArray(), X.getShape()));
        }
        assertEquals(before, manager.getManagedArrays().size());
        // This manager's device does not exist, so an array made there would fail.
        try (NDManager elsewhere = manager.newSubManager(Device.gpu(99))) {
            X.attach(elsewhere);
            assertEquals(X.getDevice(), call(new RotaryEncoding(8), X).getDevice());
        }
    }

    @Test
    void traceCountsRotatedQueriesAndKeys() {
        NDArray X = random(1, 5, 8);
        RotaryEncoding layer = new RotaryEncoding(8);
        long cost =
                Counting.multiplyAdds(
                        each -> call(layer, each).matMul(call(layer, each).swapAxes(1, 2)), X);
        assertEquals(5 * 5 * 8, cost);
    }

    @Test
    void badArgumentsAreRejected() {
        assertError(
                "numHiddens: got 7; need an even number, since pairs are rotated",
                () -> new RotaryEncoding(7));
        assertError(
                "numHiddens: got 0; need an integer of at least 1", () -> new RotaryEncoding(0));
        assertError(
                "maxLen: got 0; need an integer of at least 1", () -> new RotaryEncoding(8, 0));
        assertError(
                "maxLen: got 65536 with numHiddens 65536; need at most 2147483647 numbers in the"
                    + " table",
                () -> new RotaryEncoding(1 << 16, 1 << 16));
        for (double base : new double[] {1, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertError(
                    "base: got " + base + "; need a finite number above 1",
                    () -> new RotaryEncoding(8, 10, base, Layout.HALVES, 1));
        }
        assertError(
                "positionScale: got 0.0; need a finite number above 0",
                () -> new RotaryEncoding(8, 10, 10000, Layout.HALVES, 0));
        assertError(
                "layout: got null; need INTERLEAVED or HALVES",
                () -> new RotaryEncoding(8, 10, 10000, null, 1));
        RotaryEncoding layer = new RotaryEncoding(8, 10);
        NDArray X = random(2, 3, 8);
        call(layer, X, manager.create(7));
        assertError(
                "positions: got 3 positions from offset 8; need at most 10 in all; make the layer"
                    + " with a larger maxLen",
                () -> call(layer, X, manager.create(8)));
        assertError(
                "X: got shape (2, 3, 6); need a last dimension of 8",
                () -> call(layer, random(2, 3, 6)));
        assertError(
                "numHeads: got 0; need an integer of at least 1", () -> alibiSlopes(manager, 0));
    }

    @Test
    void slopesAreThoseOfPaper() {
        // The exponents of 1/2 in the code of Press et al. (2022).
        double[][] exponents = {
            {8},
            {4, 8},
            {4, 8, 2},
            {1, 2, 3, 4, 5, 6, 7, 8},
            {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5},
        };
        for (double[] each : exponents) {
            NDArray slopes = alibiSlopes(manager, each.length);
            assertEquals(DataType.FLOAT32, slopes.getDataType());
            for (int head = 0; head < each.length; head++) {
                assertEquals((float) Math.pow(0.5, each[head]), slopes.getFloat(head));
            }
        }
    }
}
