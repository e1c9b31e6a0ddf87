package d2l;

import ai.djl.ndarray.types.Shape;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A grid of heat maps on one colour scale. */
public final class Heatmaps extends Figure<Heatmaps> {

    private static final double GAP = 9.5; // between panels
    private static final double TITLE = 15.1;

    /** Below it a GPU has zero where the CPU still has a few bits. */
    private static final double SMALLEST = Float.MIN_NORMAL;

    private final double[][][][] grid;
    private final double low;
    private final double high;
    private List<String> titles = List.of();
    private ColorMap colorMap = ColorMap.REDS;

    /** Axes of that shape: grid rows, grid columns, matrix rows, matrix columns. */
    Heatmaps(Shape shape, double[][][][] grid) {
        super(2.5, 2.5);
        this.grid = grid;
        double[] finite =
                Stream.of(grid)
                        .flatMap(Stream::of)
                        .flatMapToDouble(Heatmaps::numbers)
                        .filter(Double::isFinite)
                        .sorted()
                        .toArray();
        if (finite.length == 0) {
            String got = "shape %s without a finite number".formatted(shape);
            throw Checks.fault("matrices", got, "at least one number");
        }
        double least = finite[0];
        double most = finite[finite.length - 1];
        // With both signs the scale is symmetric, so that zero has the middle colour.
        boolean isSigned = least < 0 && 0 < most;
        high = isSigned ? Math.max(-least, most) : most;
        low = isSigned ? -high : least;
    }

    private static DoubleStream numbers(double[][] matrix) {
        return Stream.of(matrix).flatMapToDouble(DoubleStream::of);
    }

    @Override
    Heatmaps self() {
        return this;
    }

    /** A title for each column of the grid. */
    public Heatmaps titles(String... titles) {
        if (titles.length != 0 && titles.length != grid[0].length) {
            String got = "%s for %s columns of heat maps".formatted(titles.length, grid[0].length);
            throw Checks.fault("titles", got, "one for each column");
        }
        this.titles = List.of(titles);
        return this;
    }

    /** The colours. */
    public Heatmaps cmap(ColorMap colorMap) {
        this.colorMap = colorMap;
        return this;
    }

    @Override
    public String describe() {
        var labels = Stream.concat(Stream.of(xlabel, ylabel), titles.stream());
        var say = Description.inTheLanguageOf(labels);
        return Stream.of(grid)
                .flatMap(
                        row ->
                                IntStream.range(0, row.length)
                                        .mapToObj(j -> describe(row[j], j, say)))
                .collect(Collectors.joining(say.between()));
    }

    private String describe(double[][] matrix, int column, Description say) {
        double[] values = numbers(matrix).filter(Double::isFinite).toArray();
        String title = titles.isEmpty() ? "" : say.title().formatted(titles.get(column));
        return title
                + say.heatMap()
                        .formatted(
                                matrix.length,
                                orElse(ylabel, say.unnamed()),
                                matrix[0].length,
                                orElse(xlabel, say.unnamed()),
                                say.extent(values),
                                DoubleStream.of(values).filter(value -> Math.abs(value) < SMALLEST).count(),
                                values.length,
                                colorMap,
                                Numbers.fixed(low, 2),
                                Numbers.fixed(high, 2));
    }

    /** Where on the colour scale a value is, from 0 to 1. */
    private double share(double value) {
        return high > low ? (value - low) / (high - low) : 0;
    }

    @Override
    public String svg() {
        int rows = grid.length;
        int columns = grid[0].length;
        int cellsHigh = grid[0][0].length;
        int cellsWide = grid[0][0][0].length;
        double title = titles.isEmpty() ? 0 : TITLE;
        double rowGap = GAP + title;

        // A few passes: the labels' room depends on the ticks, and those on the panels' size.
        double unit = height / rows / cellsHigh;
        double left = 0;
        Ticks yticks = null;
        Ticks scale = null;
        for (int pass = 0; pass < 3; pass++) {
            yticks = ticks(cellsHigh, unit, 20);
            double bar = barHeight(rows, unit * cellsHigh, rowGap);
            int most = (int) Math.max(1, Math.min(9, bar / 20));
            scale = Ticks.linear(low, high > low ? high : low + 1, most, false);
            left = left(yticks);
            double beside = left + (columns - 1) * GAP * 1.05 + bar / 20 + 2 * TICK + widest(scale);
            double above = rows * title + (rows - 1) * GAP + BELOW;
            unit =
                    Math.min(
                            (width - 6 - beside) / (1.05 * columns * cellsWide),
                            (height - 6 - above) / (rows * cellsHigh));
        }
        left += PAD;
        double panelWidth = unit * cellsWide;
        double panelHeight = unit * cellsHigh;
        double gridWidth = columns * panelWidth + (columns - 1) * GAP;
        double gridHeight = rows * panelHeight + (rows - 1) * rowGap;
        double overhang = Math.max(0, Svg.width(xlabel) / 2 - panelWidth / 2 - left + PAD);
        left += overhang;
        Ticks xticks = ticks(cellsWide, unit, 30);

        Svg svg = new Svg();
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                double x = left + j * (panelWidth + GAP);
                double y = PAD + title + i * (panelHeight + rowGap);
                panel(svg, x, y, unit, grid[i][j]);
                for (int t = 0; t < xticks.places().length; t++) {
                    double place = x + (xticks.places()[t] + 0.5) * unit;
                    tickBelow(
                            svg, place, y + panelHeight, i == rows - 1 ? xticks.labels()[t] : null);
                }
                for (int t = 0; t < yticks.places().length; t++) {
                    double place = y + (yticks.places()[t] + 0.5) * unit;
                    tickLeft(svg, x, place, j == 0 ? yticks.labels()[t] : null);
                }
                if (i == rows - 1) {
                    labelBelow(svg, x + panelWidth / 2, y + panelHeight, xlabel);
                }
                if (j == 0) {
                    labelLeft(svg, y + panelHeight / 2, ylabel);
                }
                if (!titles.isEmpty()) {
                    double middle = x + panelWidth / 2;
                    svg.text(middle, y - 6, Svg.Anchor.MIDDLE, titles.get(j), "font-size", 12);
                }
            }
        }
        double barX = left + gridWidth * 1.05;
        double barHeight = 0.6 * gridHeight;
        double barY = PAD + title + (gridHeight - barHeight) / 2;
        bar(svg, barX, barY, barHeight, scale);
        double right = barX + barHeight / 20 + 2 * TICK + widest(scale);
        return svg.document(
                right + PAD, PAD + title + gridHeight + below() + PAD, describe());
    }

    private static double barHeight(int rows, double panelHeight, double rowGap) {
        return 0.6 * (rows * panelHeight + (rows - 1) * rowGap);
    }

    private static Ticks ticks(int cells, double unit, double room) {
        int most = (int) Math.max(1, Math.min(9, cells * unit / room));
        return Ticks.linear(-0.5, cells - 0.5, most, true);
    }

    private static double widest(Ticks ticks) {
        return Stream.of(ticks.labels()).mapToDouble(Svg::width).max().orElse(0);
    }

    private void panel(Svg svg, double x, double y, double unit, double[][] matrix) {
        int[][] colors =
                Stream.of(matrix)
                        .map(row -> DoubleStream.of(row).mapToInt(this::color).toArray())
                        .toArray(int[][]::new);
        double panelWidth = unit * matrix[0].length;
        double panelHeight = unit * matrix.length;
        svg.cells(x, y, panelWidth, panelHeight, colors);
        frame(svg, x, y, panelWidth, panelHeight);
    }

    private int color(double value) {
        return Double.isFinite(value) ? colorMap.color(share(value)) : -1;
    }

    private void bar(Svg svg, double x, double y, double barHeight, Ticks ticks) {
        double barWidth = barHeight / 20;
        svg.gradient(x, y, barWidth, barHeight, colorMap);
        frame(svg, x, y, barWidth, barHeight);
        for (int t = 0; t < ticks.places().length; t++) {
            double place = y + barHeight * (1 - share(ticks.places()[t]));
            double end = x + barWidth;
            svg.line(end, place, end + TICK, place, "stroke", INK, "stroke-width", LINE);
            svg.text(end + 2 * TICK, place + 3.8, Svg.Anchor.START, ticks.labels()[t]);
        }
    }
}
