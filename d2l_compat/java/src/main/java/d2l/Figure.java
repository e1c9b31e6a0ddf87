package d2l;

import java.util.function.Consumer;

/**
 * A figure: say what is on it, then {@link #show} it.
 *
 * @param <F> the kind of figure
 */
public abstract sealed class Figure<F extends Figure<F>> permits Curves, Heatmaps {

    static final String INK = "#000000";
    static final double LINE = 0.8;
    static final double TICK = 3.5;
    static final double PAD = 7.2; // around it all, a tenth of an inch
    static final double BELOW = 31; // an axis's ticks and label

    /** Shows a figure. Outside a notebook there is nothing to show it on. */
    static Consumer<Figure<?>> screen = figure -> {};

    String xlabel = "";
    String ylabel = "";
    double width; // in points
    double height;

    Figure(double width, double height) {
        figsize(width, height);
    }

    abstract F self();

    /** The figure as an SVG file, with its description; the same figure gives the same bytes, everywhere. */
    public abstract String svg();

    /** The figure in words: the kind, labels and extent of everything drawn in it. */
    public abstract String describe();

    /** What is written below the figure. */
    public F xlabel(String label) {
        xlabel = label;
        return self();
    }

    /** What is written beside the figure. */
    public F ylabel(String label) {
        ylabel = label;
        return self();
    }

    /** Size, (width, height) in inches. */
    public final F figsize(double width, double height) {
        this.width = 72 * width;
        this.height = 72 * height;
        return self();
    }

    /** Shows the figure in the notebook; does nothing outside of one. */
    public void show() {
        screen.accept(this);
    }

    /** Below the lowest axes, in points: their ticks, and the label where there is one. */
    double below() {
        return xlabel.isEmpty() ? 17 : BELOW;
    }

    static String orElse(String label, String otherwise) {
        return label.isEmpty() ? otherwise : label;
    }

    static void frame(Svg svg, double x, double y, double width, double height) {
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
                INK,
                "stroke-width",
                LINE);
    }

    /** A tick below an axis at {@code y}, and its label unless that is null. */
    static void tickBelow(Svg svg, double x, double y, String label) {
        svg.line(x, y, x, y + TICK, "stroke", INK, "stroke-width", LINE);
        if (label != null) {
            svg.text(x, y + 14.6, Svg.Anchor.MIDDLE, label);
        }
    }

    /** A tick to the left of an axis at {@code x}, and its label unless that is null. */
    static void tickLeft(Svg svg, double x, double y, String label) {
        svg.line(x, y, x - TICK, y, "stroke", INK, "stroke-width", LINE);
        if (label != null) {
            svg.text(x - 2 * TICK, y + 3.8, Svg.Anchor.END, label);
        }
    }

    static void labelBelow(Svg svg, double middle, double y, String label) {
        if (!label.isEmpty()) {
            svg.text(middle, y + 28.6, Svg.Anchor.MIDDLE, label);
        }
    }

    /** Upright, with its middle at {@code middle}. */
    static void labelLeft(Svg svg, double middle, String label) {
        if (!label.isEmpty()) {
            String x = Svg.number(PAD + 7.6);
            String turn = "rotate(-90 %s %s)".formatted(x, Svg.number(middle));
            svg.text(PAD + 7.6, middle, Svg.Anchor.MIDDLE, label, "transform", turn);
        }
    }

    /** Room to the left of an axis for its ticks, their labels and its own. */
    double left(Ticks ticks) {
        double widest = 0;
        for (String label : ticks.labels()) {
            widest = Math.max(widest, Svg.width(label));
        }
        return (ylabel.isEmpty() ? 0 : 14) + widest + 2 * TICK;
    }
}
