package d2l;

import java.util.function.Consumer;

/**
 * A figure: set its content, then {@link #show} it.
 *
 * @param <F> the kind of figure
 */
public abstract sealed class Figure<F extends Figure<F>> permits Curves, Heatmaps {

    static final String BLACK = "#000000";
    static final double LINE_WIDTH = 0.8;
    static final double TICK_LENGTH = 3.5;
    static final double PADDING = 7.2; // around the figure, a tenth of an inch
    static final double LABELED_AXIS_HEIGHT = 31; // an axis's ticks and label

    /** Shows a figure; outside of a notebook, does nothing. */
    static Consumer<Figure<?>> display = figure -> {};

    String xlabel = "";
    String ylabel = "";
    double width; // in points
    double height;

    Figure(double width, double height) {
        figsize(width, height);
    }

    abstract F self();

    /** Returns the content of an SVG file with a description, the same bytes on every machine. */
    public abstract String svg();

    /** Describes the figure in words: the kind, labels and extent of everything drawn in it. */
    public abstract String describe();

    /** Sets the label below the figure. */
    public F xlabel(String label) {
        xlabel = label;
        return self();
    }

    /** Sets the label to the left of the figure. */
    public F ylabel(String label) {
        ylabel = label;
        return self();
    }

    /** Sets the size, (width, height) in inches. */
    public final F figsize(double width, double height) {
        this.width = 72 * width;
        this.height = 72 * height;
        return self();
    }

    /** Shows the figure in the notebook; does nothing outside of one. */
    public void show() {
        display.accept(this);
    }

    /** Returns the height of the x axis's ticks and its label, if there is one, in points. */
    double xAxisHeight() {
        return xlabel.isEmpty() ? 17 : LABELED_AXIS_HEIGHT;
    }

    static String orDefault(String label, String defaultLabel) {
        return label.isEmpty() ? defaultLabel : label;
    }

    static void drawFrame(Svg svg, double x, double y, double width, double height) {
        drawFrame(svg, x, y, width, height, BLACK, LINE_WIDTH);
    }

    static void drawFrame(
            Svg svg,
            double x,
            double y,
            double width,
            double height,
            String color,
            double lineWidth) {
        svg.element(
                "rect",
                "x",
                x,
                "y",
                y,
                "width",
                width,
                "height",
                height,
                "fill",
                "none",
                "stroke",
                color,
                "stroke-width",
                lineWidth);
    }

    /** Draws a tick below an axis at {@code y}, and its label unless that is null. */
    static void drawTickBelow(Svg svg, double x, double y, String label) {
        svg.line(x, y, x, y + TICK_LENGTH, "stroke", BLACK, "stroke-width", LINE_WIDTH);
        if (label != null) {
            svg.text(x, y + 14.6, Svg.Anchor.MIDDLE, label);
        }
    }

    /** Draws a tick to the left of an axis at {@code x}, and its label unless that is null. */
    static void drawTickLeft(Svg svg, double x, double y, String label) {
        svg.line(x, y, x - TICK_LENGTH, y, "stroke", BLACK, "stroke-width", LINE_WIDTH);
        if (label != null) {
            svg.text(x - 2 * TICK_LENGTH, y + 3.8, Svg.Anchor.END, label);
        }
    }

    static void drawLabelBelow(Svg svg, double middle, double y, String label) {
        if (!label.isEmpty()) {
            svg.text(middle, y + 28.6, Svg.Anchor.MIDDLE, label);
        }
    }

    /** Draws a vertical label with its middle at {@code middle}. */
    static void drawLabelLeft(Svg svg, double middle, String label) {
        if (!label.isEmpty()) {
            String x = Svg.number(PADDING + 7.6);
            String rotation = "rotate(-90 %s %s)".formatted(x, Svg.number(middle));
            svg.text(PADDING + 7.6, middle, Svg.Anchor.MIDDLE, label, "transform", rotation);
        }
    }

    /** Returns the width of the y axis's ticks, their labels and its own label, in points. */
    double yAxisWidth(Ticks ticks) {
        double widest = 0;
        for (String label : ticks.labels()) {
            widest = Math.max(widest, Svg.width(label));
        }
        return (ylabel.isEmpty() ? 0 : 14) + widest + 2 * TICK_LENGTH;
    }
}
