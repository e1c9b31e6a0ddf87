package d2l;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A plot of curves. */
public final class Curves extends Figure<Curves> {

    // Told apart by colour-blind readers too; a line style goes with each, for print in grey.
    private static final List<String> COLORS =
            List.of("#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00");
    private static final List<String> DASHES =
            List.of(
                    "none",
                    "5.55 2.4",
                    "9.6 2.4 1.5 2.4",
                    "1.5 2.475",
                    "7.5 1.5 1.5 1.5 1.5 1.5");
    // Of the figure's size; the rest is left for labels.
    private static final double WIDE = 0.775;
    private static final double HIGH = 0.77;

    private record Curve(double[] x, double[] y) {}

    private final List<Curve> curves;
    private List<String> names = List.of();
    private Set<Integer> points = Set.of();
    private double[] ylim;
    private boolean hasLogX;
    private boolean hasLogY;

    /** One x serves every curve of y. */
    Curves(double[][] x, double[][] y) {
        super(3.5, 2.5);
        if (x.length != 1 && x.length != y.length) {
            String got = "%s of X and %s of Y".formatted(x.length, y.length);
            throw Checks.fault("curves", got, "one X for all curves, or one for each");
        }
        curves =
                IntStream.range(0, y.length)
                        .mapToObj(i -> new Curve(x[x.length == 1 ? 0 : i], y[i]))
                        .toList();
        for (int i = 0; i < curves.size(); i++) {
            Curve curve = curves.get(i);
            if (curve.x.length != curve.y.length) {
                String got = "%s points in X and %s in Y".formatted(curve.x.length, curve.y.length);
                throw Checks.fault("curve " + i, got, "as many of each");
            }
        }
    }

    @Override
    Curves self() {
        return this;
    }

    /** A name for each curve. */
    public Curves legend(String... names) {
        this.names = List.of(names);
        return this;
    }

    /** These curves, counted from 0, are drawn as points and not as lines. */
    public Curves points(int... which) {
        points = IntStream.of(which).boxed().collect(Collectors.toSet());
        return this;
    }

    /** From where to where the y axis goes. */
    public Curves ylim(double low, double high) {
        ylim = new double[] {low, high};
        return this;
    }

    /** A logarithmic x axis. */
    public Curves logX() {
        hasLogX = true;
        return this;
    }

    /** A logarithmic y axis. */
    public Curves logY() {
        hasLogY = true;
        return this;
    }

    @Override
    public String describe() {
        var labels = Stream.concat(Stream.of(xlabel, ylabel), names.stream());
        var say = Description.inTheLanguageOf(labels);
        var plot = say.linePlot().formatted(orElse(ylabel, say.values()), orElse(xlabel, say.index()));
        var lines =
                IntStream.range(0, curves.size())
                        .mapToObj(i -> describe(i < names.size() ? names.get(i) : say.curve(), i, say));
        return Stream.concat(Stream.of(plot), lines).collect(Collectors.joining(say.between()));
    }

    private String describe(String name, int i, Description say) {
        Curve curve = curves.get(i);
        int last = curve.x.length - 1;
        if (last < 0) {
            return say.noPoints().formatted(name);
        }
        return say.line()
                .formatted(
                        name,
                        last + 1,
                        Numbers.general(curve.x[0], 4),
                        Numbers.fixed(curve.y[0], 2),
                        Numbers.general(curve.x[last], 4),
                        Numbers.fixed(curve.y[last], 2),
                        say.extent(DoubleStream.of(curve.y).filter(Double::isFinite).toArray()));
    }

    /** An axis: the numbers from low to high lie from {@code start} to {@code end}. */
    private record Axis(double low, double high, double start, double end, boolean isLogarithmic) {

        double place(double value) {
            double share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
            return start + share * (end - start);
        }

        private double scaled(double value) {
            return isLogarithmic ? Math.log10(value) : value;
        }

        Ticks ticks(double room) {
            int most = (int) Math.max(1, Math.min(9, Math.abs(end - start) / room));
            return isLogarithmic
                    ? Ticks.logarithmic(low, high, most)
                    : Ticks.linear(low, high, most, false);
        }
    }

    /** What the values span, and a little more at both ends. */
    private static double[] limits(DoubleStream values, boolean isLogarithmic) {
        double[] seen =
                values.filter(Double::isFinite)
                        .filter(value -> !isLogarithmic || value > 0)
                        .map(value -> isLogarithmic ? Math.log10(value) : value)
                        .sorted()
                        .toArray();
        double low = seen.length == 0 ? 0 : seen[0];
        double high = seen.length == 0 ? 1 : seen[seen.length - 1];
        double margin = high > low ? (high - low) / 20 : 0.05;
        double[] limits = {low - margin, high + margin};
        return isLogarithmic ? DoubleStream.of(limits).map(p -> Math.pow(10, p)).toArray() : limits;
    }

    @Override
    public String svg() {
        double wide = WIDE * width;
        double high = HIGH * height;
        double top = PAD;
        double bottom = top + high;
        double[] xlim =
                limits(curves.stream().flatMapToDouble(c -> DoubleStream.of(c.x)), hasLogX);
        double[] ylim =
                this.ylim != null
                        ? this.ylim
                        : limits(
                                curves.stream().flatMapToDouble(c -> DoubleStream.of(c.y)),
                                hasLogY);
        Axis vertical = new Axis(ylim[0], ylim[1], bottom, top, hasLogY);
        Ticks yticks = vertical.ticks(20);
        double left = PAD + left(yticks);
        Axis horizontal = new Axis(xlim[0], xlim[1], left, left + wide, hasLogX);
        Ticks xticks = horizontal.ticks(30);

        Svg svg = new Svg();
        Object[] grid = {"stroke", "#b0b0b0", "stroke-opacity", 0.4, "stroke-width", LINE};
        for (int i = 0; i < xticks.places().length; i++) {
            double x = horizontal.place(xticks.places()[i]);
            svg.line(x, bottom, x, top, grid);
            tickBelow(svg, x, bottom, xticks.labels()[i]);
        }
        for (int i = 0; i < yticks.places().length; i++) {
            double y = vertical.place(yticks.places()[i]);
            svg.line(left, y, left + wide, y, grid);
            tickLeft(svg, left, y, yticks.labels()[i]);
        }
        labelBelow(svg, left + wide / 2, bottom, xlabel);
        labelLeft(svg, top + high / 2, ylabel);
        svg.openWindow(left, top, wide, high);
        for (int i = 0; i < curves.size(); i++) {
            svg.element("path", drawn(i, curves.get(i), horizontal, vertical));
        }
        svg.close("svg");
        frame(svg, left, top, wide, high);
        if (!names.isEmpty()) {
            legend(svg, left, top, wide, high, horizontal, vertical);
        }
        return svg.document(left + wide + PAD, bottom + below() + PAD, describe());
    }

    private Object[] drawn(int i, Curve curve, Axis horizontal, Axis vertical) {
        return points.contains(i)
                ? dots(i, path(curve, horizontal, vertical).replaceAll("[ML]([^ML]+)", "M$1h0"))
                : stroke(i, path(curve, horizontal, vertical));
    }

    /** Lines of no length, whose ends are round. */
    private static Object[] dots(int curve, String path) {
        String color = COLORS.get(curve % COLORS.size());
        return new Object[] {
            "d", path, "fill", "none", "stroke", color, "stroke-width", 6, "stroke-linecap", "round"
        };
    }

    private static Object[] stroke(int curve, String path) {
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

    /** The points, with a gap where a number is not finite. */
    private static String path(Curve curve, Axis horizontal, Axis vertical) {
        StringBuilder path = new StringBuilder();
        boolean isDrawing = false;
        for (int i = 0; i < curve.x.length; i++) {
            double x = horizontal.place(curve.x[i]);
            double y = vertical.place(curve.y[i]);
            boolean isSeen = Double.isFinite(x) && Double.isFinite(y);
            if (isSeen) {
                path.append(isDrawing ? 'L' : 'M')
                        .append(Svg.number(x))
                        .append(' ')
                        .append(Svg.number(y));
            }
            isDrawing = isSeen;
        }
        return path.toString();
    }

    /** In the place where it hides the fewest points. */
    private void legend(
            Svg svg,
            double left,
            double top,
            double wide,
            double high,
            Axis horizontal,
            Axis vertical) {
        int count = Math.min(names.size(), curves.size());
        double boxWidth = 36 + names.stream().limit(count).mapToDouble(Svg::width).max().orElse(0);
        double boxHeight = 3 + 15 * count;
        double[] xs = {left + 5, left + (wide - boxWidth) / 2, left + wide - 5 - boxWidth};
        double[] ys = {top + 5, top + (high - boxHeight) / 2, top + high - 5 - boxHeight};
        int[][] order = {{2, 0}, {0, 0}, {0, 2}, {2, 2}, {2, 1}, {0, 1}, {1, 2}, {1, 0}, {1, 1}};
        double x = xs[2];
        double y = ys[0];
        long fewest = Long.MAX_VALUE;
        for (int[] place : order) {
            double boxX = xs[place[0]];
            double boxY = ys[place[1]];
            long hidden = 0;
            for (Curve curve : curves) {
                // Along the curve, not at its points alone: they may be far apart.
                for (int i = 0; i + 1 < curve.x.length; i++) {
                    for (int part = 0; part <= 10; part++) {
                        double px = between(horizontal, curve.x, i, part);
                        double py = between(vertical, curve.y, i, part);
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
        svg.element(
                "rect", "x", x, "y", y, "width", boxWidth, "height", boxHeight, "rx", 2, "fill",
                "#ffffff", "stroke", "#cccccc", "opacity", 0.8);
        for (int i = 0; i < count; i++) {
            double baseline = y + 11.6 + 15 * i;
            String at = Svg.number(baseline - 3.5);
            svg.element(
                    "path",
                    points.contains(i)
                            ? dots(i, "M%s %sh0".formatted(Svg.number(x + 14), at))
                            : stroke(i, "M%s %sh20".formatted(Svg.number(x + 4), at)));
            svg.text(x + 32, baseline, Svg.Anchor.START, names.get(i));
        }
    }

    private static double between(Axis axis, double[] values, int i, int tenths) {
        double from = axis.place(values[i]);
        return from + (axis.place(values[i + 1]) - from) * tenths / 10;
    }
}
