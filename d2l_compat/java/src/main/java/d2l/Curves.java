package d2l;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A plot of curves. */
public final class Curves extends Figure<Curves> {

    // Colours that colour-blind readers can distinguish; the line styles are for print in grey.
    private static final List<String> COLORS =
            List.of("#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#555555");
    private static final List<String> DASHES =
            List.of(
                    "none",
                    "5.55 2.4",
                    "9.6 2.4 1.5 2.4",
                    "1.5 2.475",
                    "7.5 1.5 1.5 1.5 1.5 1.5",
                    "12 4.5");
    // Shares of the figure's size; the rest is for labels.
    private static final double AXES_WIDTH = 0.775;
    private static final double AXES_HEIGHT = 0.77;
    private static final double POINTS_APART = 4; // between the range bars of neighbouring curves

    private record Curve(double[] x, double[] y) {}

    /** The lowest and the highest number at a point. */
    record Range(double low, double high) {}

    private final List<Curve> curves;
    private List<String> names = List.of();
    private Set<Integer> points = Set.of();
    private double[] ylim;
    private List<Range[]> ranges = List.of();
    private boolean hasLogX;
    private boolean hasLogY;

    /** Makes a plot; a single x serves every curve of y. */
    Curves(double[][] x, double[][] y) {
        super(3.5, 2.5);
        if (x.length != 1 && x.length != y.length) {
            String got = "%s of X and %s of Y".formatted(x.length, y.length);
            throw Checks.error("curves", got, "one X for all curves, or one for each");
        }
        curves =
                IntStream.range(0, y.length)
                        .mapToObj(i -> new Curve(x[x.length == 1 ? 0 : i], y[i]))
                        .toList();
        for (int i = 0; i < curves.size(); i++) {
            Curve curve = curves.get(i);
            if (curve.x.length != curve.y.length) {
                String got = "%s points in X and %s in Y".formatted(curve.x.length, curve.y.length);
                throw Checks.error("curve " + i, got, "the same number of each");
            }
        }
    }

    @Override
    Curves self() {
        return this;
    }

    /** Sets a name for each curve. */
    public Curves legend(String... names) {
        this.names = List.of(names);
        return this;
    }

    /** Draws these curves, counted from 0, as points, not as lines. */
    public Curves points(int... indices) {
        points = IntStream.of(indices).boxed().collect(Collectors.toSet());
        return this;
    }

    /**
     * Draws a bar for each point of each curve, side by side with those of other curves. Each x has
     * a tick, and the legend is outside the axes, where it hides nothing.
     */
    Curves ranges(List<Range[]> ranges) {
        this.ranges = ranges;
        return this;
    }

    /** Sets the range of the y axis. */
    public Curves ylim(double low, double high) {
        ylim = new double[] {low, high};
        return this;
    }

    /** Makes the x axis logarithmic. */
    public Curves logX() {
        hasLogX = true;
        return this;
    }

    /** Makes the y axis logarithmic. */
    public Curves logY() {
        hasLogY = true;
        return this;
    }

    @Override
    public String describe() {
        var labels = Stream.concat(Stream.of(xlabel, ylabel), names.stream());
        var phrases = Description.forLabels(labels);
        String y = orDefault(ylabel, phrases.values());
        String x = orDefault(xlabel, phrases.index());
        var plot = phrases.linePlot().formatted(y, x);
        var lines = IntStream.range(0, curves.size()).mapToObj(i -> describe(i, phrases));
        return Stream.concat(Stream.of(plot), lines)
                .collect(Collectors.joining(phrases.separator()));
    }

    private String describe(int i, Description phrases) {
        String name = i < names.size() ? names.get(i) : phrases.curve();
        Curve curve = curves.get(i);
        double[] finite = DoubleStream.of(curve.y).filter(Double::isFinite).toArray();
        int last = curve.x.length - 1;
        if (last < 0) {
            return phrases.noPoints().formatted(name);
        }
        return phrases.line()
                .formatted(
                        name,
                        last + 1,
                        Numbers.formatGeneral(curve.x[0], 4),
                        Numbers.formatFixed(curve.y[0], 2),
                        Numbers.formatGeneral(curve.x[last], 4),
                        Numbers.formatFixed(curve.y[last], 2),
                        phrases.extent(finite));
    }

    /** An axis, which maps numbers from low to high to points from {@code start} to {@code end}. */
    private record Axis(double low, double high, double start, double end, boolean isLogarithmic) {

        double position(double value) {
            double share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
            return start + share * (end - start);
        }

        private double scaled(double value) {
            return isLogarithmic ? Math.log10(value) : value;
        }

        Axis shifted(double points) {
            return new Axis(low, high, start + points, end + points, isLogarithmic);
        }

        Ticks ticks(double spacing) {
            int maxTicks = (int) Math.max(1, Math.min(9, Math.abs(end - start) / spacing));
            return isLogarithmic
                    ? Ticks.logarithmic(low, high, maxTicks)
                    : Ticks.linear(low, high, maxTicks, false);
        }
    }

    /** Returns the range of the values, with a margin at both ends. */
    private static double[] limits(DoubleStream values, boolean isLogarithmic, double share) {
        double[] sorted =
                values.filter(Double::isFinite)
                        .filter(value -> !isLogarithmic || value > 0)
                        .map(value -> isLogarithmic ? Math.log10(value) : value)
                        .sorted()
                        .toArray();
        double low = sorted.length == 0 ? 0 : sorted[0];
        double high = sorted.length == 0 ? 1 : sorted[sorted.length - 1];
        double margin = high > low ? (high - low) * share : share;
        double[] limits = {low - margin, high + margin};
        return isLogarithmic ? DoubleStream.of(limits).map(p -> Math.pow(10, p)).toArray() : limits;
    }

    @Override
    public String svg() {
        double axesWidth = AXES_WIDTH * width;
        double axesHeight = AXES_HEIGHT * height;
        double top = PADDING;
        double bottom = top + axesHeight;
        double[] xlim =
                limits(
                        curves.stream().flatMapToDouble(c -> DoubleStream.of(c.x)),
                        hasLogX,
                        ranges.isEmpty() ? 0.05 : 0.08);
        double[] ylim =
                this.ylim != null
                        ? this.ylim
                        : limits(DoubleStream.concat(ys(), rangeEnds()), hasLogY, 0.05);
        Axis vertical = new Axis(ylim[0], ylim[1], bottom, top, hasLogY);
        Ticks yticks = vertical.ticks(20);
        double left = PADDING + yAxisWidth(yticks);
        Axis horizontal = new Axis(xlim[0], xlim[1], left, left + axesWidth, hasLogX);
        Ticks xticks = ranges.isEmpty() ? horizontal.ticks(30) : Ticks.at(curves.get(0).x);

        Svg svg = new Svg();
        Object[] grid = {"stroke", "#b0b0b0", "stroke-opacity", 0.4, "stroke-width", LINE_WIDTH};
        for (int i = 0; i < xticks.positions().length; i++) {
            double x = horizontal.position(xticks.positions()[i]);
            svg.line(x, bottom, x, top, grid);
            drawTickBelow(svg, x, bottom, xticks.labels()[i]);
        }
        for (int i = 0; i < yticks.positions().length; i++) {
            double y = vertical.position(yticks.positions()[i]);
            svg.line(left, y, left + axesWidth, y, grid);
            drawTickLeft(svg, left, y, yticks.labels()[i]);
        }
        drawLabelBelow(svg, left + axesWidth / 2, bottom, xlabel);
        drawLabelLeft(svg, top + axesHeight / 2, ylabel);
        svg.openClip(left, top, axesWidth, axesHeight);
        for (int i = 0; i < curves.size(); i++) {
            double shift = ranges.isEmpty() ? 0 : POINTS_APART * (i - (curves.size() - 1) / 2.0);
            Axis shifted = horizontal.shifted(shift);
            svg.element("path", pathAttributes(i, curves.get(i), shifted, vertical));
            for (int j = 0; !ranges.isEmpty() && j < curves.get(i).x.length; j++) {
                double x = shifted.position(curves.get(i).x[j]);
                Range range = ranges.get(i)[j];
                double low = vertical.position(range.low);
                double high = vertical.position(range.high);
                String color = COLORS.get(i % COLORS.size());
                svg.line(x, low, x, high, "stroke", color, "stroke-width", 1.5);
            }
        }
        svg.close("svg");
        drawFrame(svg, left, top, axesWidth, axesHeight);
        if (!names.isEmpty()) {
            drawLegend(svg, left, top, axesWidth, axesHeight, horizontal, vertical);
        }
        double right = left + axesWidth + (ranges.isEmpty() ? 0 : 6 + legendWidth());
        return svg.document(right + PADDING, bottom + xAxisHeight() + PADDING, describe());
    }

    private DoubleStream ys() {
        return curves.stream().flatMapToDouble(curve -> DoubleStream.of(curve.y));
    }

    private DoubleStream rangeEnds() {
        return ranges.stream()
                .flatMap(Stream::of)
                .flatMapToDouble(range -> DoubleStream.of(range.low, range.high));
    }

    private double legendWidth() {
        return 36 + names.stream().limit(curves.size()).mapToDouble(Svg::width).max().orElse(0);
    }

    private Object[] pathAttributes(int i, Curve curve, Axis horizontal, Axis vertical) {
        String path = path(curve, horizontal, vertical);
        return points.contains(i)
                ? pointAttributes(i, path.replaceAll("[ML]([^ML]+)", "M$1h0"))
                : lineAttributes(i, path);
    }

    /** Returns the attributes of lines without length, whose round ends are the points. */
    private static Object[] pointAttributes(int curve, String path) {
        String color = COLORS.get(curve % COLORS.size());
        return new Object[] {
            "d", path, "fill", "none", "stroke", color, "stroke-width", 6, "stroke-linecap", "round"
        };
    }

    private static Object[] lineAttributes(int curve, String path) {
        return new Object[] {
            "d",
            path,
            "fill",
            "none",
            "stroke",
            COLORS.get(curve % COLORS.size()),
            "stroke-width",
            1.5,
            "stroke-dasharray",
            DASHES.get(curve % DASHES.size()),
            "stroke-linejoin",
            "round"
        };
    }

    /** Returns the path of a curve, with a gap where a number is not finite. */
    private static String path(Curve curve, Axis horizontal, Axis vertical) {
        StringBuilder path = new StringBuilder();
        boolean isDrawing = false;
        for (int i = 0; i < curve.x.length; i++) {
            double x = horizontal.position(curve.x[i]);
            double y = vertical.position(curve.y[i]);
            boolean isFinite = Double.isFinite(x) && Double.isFinite(y);
            if (isFinite) {
                path.append(isDrawing ? 'L' : 'M')
                        .append(Svg.number(x))
                        .append(' ')
                        .append(Svg.number(y));
            }
            isDrawing = isFinite;
        }
        return path.toString();
    }

    /** Draws the legend where it hides the fewest points, or outside the axes. */
    private void drawLegend(
            Svg svg,
            double left,
            double top,
            double axesWidth,
            double axesHeight,
            Axis horizontal,
            Axis vertical) {
        int count = Math.min(names.size(), curves.size());
        double boxWidth = legendWidth();
        double boxHeight = 3 + 15 * count;
        double freeWidth = axesWidth - boxWidth;
        double freeHeight = axesHeight - boxHeight;
        double[] xs = {left + 5, left + freeWidth / 2, left + axesWidth - 5 - boxWidth};
        double[] ys = {top + 5, top + freeHeight / 2, top + axesHeight - 5 - boxHeight};
        int[][] order = {{2, 0}, {0, 0}, {0, 2}, {2, 2}, {2, 1}, {0, 1}, {1, 2}, {1, 0}, {1, 1}};
        double x = xs[2];
        double y = ys[0];
        long fewest = Long.MAX_VALUE;
        for (int[] candidate : order) {
            double boxX = xs[candidate[0]];
            double boxY = ys[candidate[1]];
            long hidden = 0;
            for (Curve curve : curves) {
                // Count along the curve, since its points may be far apart.
                for (int i = 0; i + 1 < curve.x.length; i++) {
                    for (int part = 0; part <= 10; part++) {
                        double px = interpolate(horizontal, curve.x, i, part);
                        double py = interpolate(vertical, curve.y, i, part);
                        if (px >= boxX
                                && px <= boxX + boxWidth
                                && py >= boxY
                                && py <= boxY + boxHeight) {
                            hidden++;
                        }
                    }
                }
            }
            if (hidden < fewest) {
                fewest = hidden;
                x = boxX;
                y = boxY;
            }
        }
        if (!ranges.isEmpty()) {
            x = left + axesWidth + 6;
            y = ys[1];
        }
        svg.element(
                "rect", "x", x, "y", y, "width", boxWidth, "height", boxHeight, "rx", 2, "fill",
                "#ffffff", "stroke", "#cccccc", "opacity", 0.8);
        for (int i = 0; i < count; i++) {
            double baseline = y + 11.6 + 15 * i;
            String middle = Svg.number(baseline - 3.5);
            svg.element(
                    "path",
                    points.contains(i)
                            ? pointAttributes(i, "M%s %sh0".formatted(Svg.number(x + 14), middle))
                            : lineAttributes(i, "M%s %sh20".formatted(Svg.number(x + 4), middle)));
            svg.text(x + 32, baseline, Svg.Anchor.START, names.get(i));
        }
    }

    private static double interpolate(Axis axis, double[] values, int i, int tenths) {
        double from = axis.position(values[i]);
        return from + (axis.position(values[i + 1]) - from) * tenths / 10;
    }
}
