package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Line plots and heat maps.
 *
 * <pre>{@code
 * Plots.curves(x, y).xlabel("Position").legend("sine", "cosine").figsize(6, 2.5).show();
 * }</pre>
 *
 * <p>A figure is written as SVG without a plotting library: the same bytes on every machine, with a
 * text alternative that is generated from the figure's content.
 */
public final class Plots {

    private Plots() {}

    /**
     * Plots curves over one x, shape (points); {@code y} is (points) or (curves, points).
     *
     * @throws IllegalArgumentException for a wrong rank, or curves of unequal length
     */
    public static Curves curves(NDArray x, NDArray y) {
        return new Curves(rows("X", x), rows("Y", y));
    }

    /** Plots curves over one x. */
    public static Curves curves(double[] x, double[]... y) {
        return new Curves(new double[][] {x}, y);
    }

    /** Plots curves that have an x each. */
    public static Curves curves(List<double[]> x, List<double[]> y) {
        return new Curves(x.toArray(double[][]::new), y.toArray(double[][]::new));
    }

    /** Plots curves over 0, 1, 2, ... */
    public static Curves curves(List<double[]> y) {
        int longest = y.stream().mapToInt(curve -> curve.length).max().orElse(0);
        double[] x = IntStream.range(0, longest).asDoubleStream().toArray();
        return curves(x, y.toArray(double[][]::new));
    }

    /**
     * Plots a grid of heat maps on one colour scale.
     *
     * @param matrices shape (grid rows, grid columns, matrix rows, matrix columns)
     * @throws IllegalArgumentException for a wrong rank, or if no number is finite
     */
    public static Heatmaps heatmaps(NDArray matrices) {
        Shape shape = matrices.getShape();
        if (shape.dimension() != 4) {
            String need = "4 dimensions (grid rows, grid columns, matrix rows, matrix columns)";
            throw Checks.error("matrices", "shape " + shape, need);
        }
        double[] numbers = numbers(matrices);
        int rows = (int) shape.get(0);
        int columns = (int) shape.get(1);
        double[][][][] grid = new double[rows][columns][(int) shape.get(2)][(int) shape.get(3)];
        int offset = 0;
        for (double[][][] gridRow : grid) {
            for (double[][] matrix : gridRow) {
                for (double[] row : matrix) {
                    System.arraycopy(numbers, offset, row, 0, row.length);
                    offset += row.length;
                }
            }
        }
        return new Heatmaps(shape, grid);
    }

    private static double[][] rows(String what, NDArray array) {
        Shape shape = array.getShape();
        if (shape.dimension() < 1 || shape.dimension() > 2) {
            throw Checks.error(
                    what, "shape " + shape, "1 dimension (points) or 2 (curves, points)");
        }
        double[] numbers = numbers(array);
        int length = (int) shape.getLastDimension();
        int count = shape.dimension() == 1 ? 1 : (int) shape.get(0);
        double[][] rows = new double[count][length];
        for (int i = 0; i < count; i++) {
            System.arraycopy(numbers, i * length, rows[i], 0, length);
        }
        return rows;
    }

    /** Returns all numbers of an array, row by row. */
    private static double[] numbers(NDArray array) {
        try (NDArray doubles = array.toType(DataType.FLOAT64, true)) {
            return doubles.toDoubleArray();
        }
    }
}
