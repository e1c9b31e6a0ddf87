package d2l;

import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A grid of heat maps on one colour scale. */
public final class Heatmaps extends Figure<Heatmaps> {

    private static final double GAP = 9.5; // between panels
    private static final double TITLE_HEIGHT = 15.1;

    /** Smaller values count as zero: GPUs round them to zero, CPUs do not. */
    private static final double SMALLEST_NORMAL = Float.MIN_NORMAL;

    private final double[][][][] grid;
    private final double low;
    private final double high;
    private final boolean[][][][] isMarked;
    private List<String> titles = List.of();
    private List<String> xticklabels = List.of();
    private List<String> yticklabels = List.of();
    private ColorMap colorMap = ColorMap.REDS;

    /** Makes a figure; the axes are grid rows, grid columns, matrix rows, matrix columns. */
    Heatmaps(Shape shape, double[][][][] grid) {
        super(2.5, 2.5);
        this.grid = grid;
        isMarked = new boolean[grid.length][grid[0].length][grid[0][0].length][grid[0][0][0].length];
        double[] finite =
                Stream.of(grid)
                        .flatMap(Stream::of)
                        .flatMapToDouble(Heatmaps::numbers)
                        .filter(Double::isFinite)
                        .sorted()
                        .toArray();
        if (finite.length == 0) {
            String got = "shape %s without a finite number".formatted(shape);
            throw Checks.error("matrices", got, "at least one number");
        }
        double min = finite[0];
        double max = finite[finite.length - 1];
        // The scale of values with both signs is symmetric, so that zero has the middle colour.
        boolean hasBothSigns = min < 0 && 0 < max;
        high = hasBothSigns ? Math.max(-min, max) : max;
        low = hasBothSigns ? -high : min;
    }

    private static DoubleStream numbers(double[][] matrix) {
        return Stream.of(matrix).flatMapToDouble(DoubleStream::of);
    }

    @Override
    Heatmaps self() {
        return this;
    }

    /** Sets a title for each column of the grid. */
    public Heatmaps titles(String... titles) {
        if (titles.length != 0 && titles.length != grid[0].length) {
            String got = "%s for %s columns of heat maps".formatted(titles.length, grid[0].length);
            throw Checks.error("titles", got, "one for each column");
        }
        this.titles = List.of(titles);
        return this;
    }

    /** Names the matrices' columns, for example by tokens; by default they are counted from 0. */
    public Heatmaps xticklabels(String... labels) {
        checkTickLabels("xticklabels", labels, grid[0][0][0].length, "columns");
        xticklabels = List.of(labels);
        return this;
    }

    /** Names the matrices' rows. */
    public Heatmaps yticklabels(String... labels) {
        checkTickLabels("yticklabels", labels, grid[0][0].length, "rows");
        yticklabels = List.of(labels);
        return this;
    }

    private static void checkTickLabels(String what, String[] labels, int count, String axis) {
        if (labels.length != count) {
            String got = "%s for %s %s".formatted(labels.length, count, axis);
            throw Checks.error(what, got, "one for each");
        }
    }

    /** Frames the cells where {@code marks}, which broadcast to the matrices' shape, are true. */
    public Heatmaps marks(NDArray marks) {
        Shape shape =
                new Shape(
                        grid.length, grid[0].length, grid[0][0].length, grid[0][0][0].length);
        try (NDArray booleans = marks.toType(DataType.BOOLEAN, true);
                NDArray broadcast = booleans.broadcast(shape)) {
            boolean[] flat = broadcast.toBooleanArray();
            int offset = 0;
            for (boolean[][][] gridRow : isMarked) {
                for (boolean[][] matrix : gridRow) {
                    for (boolean[] row : matrix) {
                        System.arraycopy(flat, offset, row, 0, row.length);
                        offset += row.length;
                    }
                }
            }
        } catch (EngineException error) {
            String need = "a shape that broadcasts to that of matrices, " + shape;
            throw Checks.error("marks", "shape " + marks.getShape(), need);
        }
        return this;
    }

    /** Sets the colour scale. */
    public Heatmaps cmap(ColorMap colorMap) {
        this.colorMap = colorMap;
        return this;
    }

    @Override
    public String describe() {
        var labels = Stream.concat(Stream.of(xlabel, ylabel), titles.stream());
        var phrases = Description.forLabels(labels);
        return IntStream.range(0, grid.length)
                .boxed()
                .flatMap(
                        i ->
                                IntStream.range(0, grid[i].length)
                                        .mapToObj(j -> describe(i, j, phrases)))
                .collect(Collectors.joining(phrases.separator()));
    }

    private String describe(int i, int j, Description phrases) {
        double[][] matrix = grid[i][j];
        double[] values = numbers(matrix).filter(Double::isFinite).toArray();
        long numZeros =
                DoubleStream.of(values).filter(value -> Math.abs(value) < SMALLEST_NORMAL).count();
        String title = titles.isEmpty() ? "" : phrases.title().formatted(titles.get(j));
        return title
                + phrases.heatMap()
                        .formatted(
                                matrix.length,
                                orDefault(ylabel, phrases.unnamed()),
                                matrix[0].length,
                                orDefault(xlabel, phrases.unnamed()),
                                phrases.extent(values),
                                numZeros,
                                values.length,
                                colorMap,
                                Numbers.formatFixed(low, 2),
                                Numbers.formatFixed(high, 2))
                + describeFrames(matrix, isMarked[i][j], phrases);
    }

    private static String describeFrames(
            double[][] matrix, boolean[][] isMarked, Description phrases) {
        int count = 0;
        int largest = 0;
        for (int row = 0; row < matrix.length; row++) {
            int best = 0;
            for (int column = 0; column < matrix[row].length; column++) {
                count += isMarked[row][column] ? 1 : 0;
                boolean isFirst = Double.isNaN(matrix[row][best]);
                best = isFirst || matrix[row][column] > matrix[row][best] ? column : best;
            }
            largest += isMarked[row][best] ? 1 : 0;
        }
        String frames = phrases.frames().formatted(count, largest, matrix.length);
        return count == 0 ? "" : phrases.separator() + frames;
    }

    /** Returns a value's position on the colour scale, from 0 to 1. */
    private double normalize(double value) {
        return high > low ? (value - low) / (high - low) : 0;
    }

    @Override
    public String svg() {
        int rows = grid.length;
        int columns = grid[0].length;
        int matrixRows = grid[0][0].length;
        int matrixColumns = grid[0][0][0].length;
        double titleHeight = titles.isEmpty() ? 0 : TITLE_HEIGHT;
        double rowGap = GAP + titleHeight;

        int tickLines = xticklabels.stream().mapToInt(Svg::countLines).max().orElse(1);
        double extraHeight = (tickLines - 1) * Svg.LINE_HEIGHT;
        double axisHeight = LABELED_AXIS_HEIGHT + extraHeight;
        // A few passes: the labels' size depends on the ticks, and the ticks on the panels' size.
        double cellSize = height / rows / matrixRows;
        double left = 0;
        Ticks yticks = null;
        Ticks scale = null;
        for (int pass = 0; pass < 3; pass++) {
            yticks = ticks(matrixRows, cellSize, 20, yticklabels);
            double barHeight = barHeight(rows, cellSize * matrixRows, rowGap);
            int maxTicks = (int) Math.max(1, Math.min(9, barHeight / 20));
            scale = Ticks.linear(low, high > low ? high : low + 1, maxTicks, false);
            left = yAxisWidth(yticks);
            double scaleWidth = barHeight / 20 + 2 * TICK_LENGTH + labelWidth(scale);
            double otherWidth = left + (columns - 1) * GAP * 1.05 + scaleWidth;
            double otherHeight = rows * titleHeight + (rows - 1) * GAP + axisHeight;
            cellSize =
                    Math.min(
                            (width - 6 - otherWidth) / (1.05 * columns * matrixColumns),
                            (height - 6 - otherHeight) / (rows * matrixRows));
        }
        left += PADDING;
        double panelWidth = cellSize * matrixColumns;
        double panelHeight = cellSize * matrixRows;
        double gridWidth = columns * panelWidth + (columns - 1) * GAP;
        double gridHeight = rows * panelHeight + (rows - 1) * rowGap;
        double overhang = Math.max(0, Svg.width(xlabel) / 2 - panelWidth / 2 - left + PADDING);
        left += overhang;
        Ticks xticks = ticks(matrixColumns, cellSize, 30, xticklabels);

        Svg svg = new Svg();
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                double x = left + j * (panelWidth + GAP);
                double y = PADDING + titleHeight + i * (panelHeight + rowGap);
                drawPanel(svg, x, y, cellSize, grid[i][j]);
                drawFrames(svg, x, y, cellSize, isMarked[i][j]);
                for (int t = 0; t < xticks.positions().length; t++) {
                    double position = x + (xticks.positions()[t] + 0.5) * cellSize;
                    String label = i == rows - 1 ? xticks.labels()[t] : null;
                    drawTickBelow(svg, position, y + panelHeight, label);
                }
                for (int t = 0; t < yticks.positions().length; t++) {
                    double position = y + (yticks.positions()[t] + 0.5) * cellSize;
                    drawTickLeft(svg, x, position, j == 0 ? yticks.labels()[t] : null);
                }
                if (i == rows - 1) {
                    drawLabelBelow(svg, x + panelWidth / 2, y + panelHeight + extraHeight, xlabel);
                }
                if (j == 0) {
                    drawLabelLeft(svg, y + panelHeight / 2, ylabel);
                }
                if (!titles.isEmpty()) {
                    double middle = x + panelWidth / 2;
                    svg.text(middle, y - 6, Svg.Anchor.MIDDLE, titles.get(j), "font-size", 12);
                }
            }
        }
        double barX = left + gridWidth * 1.05;
        double barHeight = 0.6 * gridHeight;
        double barY = PADDING + titleHeight + (gridHeight - barHeight) / 2;
        drawColorBar(svg, barX, barY, barHeight, scale);
        double right = barX + barHeight / 20 + 2 * TICK_LENGTH + labelWidth(scale);
        double bottom = PADDING + titleHeight + gridHeight + xAxisHeight() + extraHeight;
        return svg.document(right + PADDING, bottom + PADDING, describe());
    }

    private static double barHeight(int rows, double panelHeight, double rowGap) {
        return 0.6 * (rows * panelHeight + (rows - 1) * rowGap);
    }

    private static Ticks ticks(int cells, double cellSize, double spacing, List<String> labels) {
        if (!labels.isEmpty()) {
            double[] positions = IntStream.range(0, cells).asDoubleStream().toArray();
            return new Ticks(positions, labels.toArray(String[]::new));
        }
        int maxTicks = (int) Math.max(1, Math.min(9, cells * cellSize / spacing));
        return Ticks.linear(-0.5, cells - 0.5, maxTicks, true);
    }

    private static double labelWidth(Ticks ticks) {
        return Stream.of(ticks.labels()).mapToDouble(Svg::width).max().orElse(0);
    }

    private void drawPanel(Svg svg, double x, double y, double cellSize, double[][] matrix) {
        int[][] colors =
                Stream.of(matrix)
                        .map(row -> DoubleStream.of(row).mapToInt(this::color).toArray())
                        .toArray(int[][]::new);
        double panelWidth = cellSize * matrix[0].length;
        double panelHeight = cellSize * matrix.length;
        svg.cells(x, y, panelWidth, panelHeight, colors);
        drawFrame(svg, x, y, panelWidth, panelHeight);
    }

    /** Draws a black frame with a white edge, visible on any colour, around each marked cell. */
    private static void drawFrames(
            Svg svg, double x, double y, double cellSize, boolean[][] isMarked) {
        for (int row = 0; row < isMarked.length; row++) {
            for (int column = 0; column < isMarked[row].length; column++) {
                if (isMarked[row][column]) {
                    double left = x + column * cellSize;
                    double top = y + row * cellSize;
                    drawFrame(svg, left, top, cellSize, cellSize, "#ffffff", 2.5);
                    drawFrame(svg, left, top, cellSize, cellSize, BLACK, 1.2);
                }
            }
        }
    }

    private int color(double value) {
        return Double.isFinite(value) ? colorMap.color(normalize(value)) : -1;
    }

    private void drawColorBar(Svg svg, double x, double y, double barHeight, Ticks ticks) {
        double barWidth = barHeight / 20;
        svg.gradient(x, y, barWidth, barHeight, colorMap);
        drawFrame(svg, x, y, barWidth, barHeight);
        for (int t = 0; t < ticks.positions().length; t++) {
            double position = y + barHeight * (1 - normalize(ticks.positions()[t]));
            double end = x + barWidth;
            svg.line(
                    end, position, end + TICK_LENGTH, position, "stroke", BLACK, "stroke-width",
                    LINE_WIDTH);
            svg.text(end + 2 * TICK_LENGTH, position + 3.8, Svg.Anchor.START, ticks.labels()[t]);
        }
    }
}
