package d2l;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Writes a drawing, in points (1/72 inch).
 *
 * <p>Nothing here asks the machine for its fonts: text is placed by its anchor, so that the same
 * figure is the same bytes everywhere.
 */
final class Svg {

    /** Which part of a text stands at its place. */
    enum Anchor {
        START,
        MIDDLE,
        END
    }

    private static final String FONT = "DejaVu Sans, sans-serif";
    // What writes Chinese as it is written in Taiwan, where it is installed.
    private static final String CHINESE =
            "DejaVu Sans, Noto Sans CJK TC, Noto Sans TC, PingFang TC, Microsoft JhengHei, sans-serif";

    // Hundredths of an em in DejaVu Sans, from the blank to the tilde: only to size boxes.
    private static final int[] WIDTHS = {
        32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64,
                64,
        64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75,
                79,
        60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35,
                63,
        63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84
    };

    private static final int STOPS = 33; // of a gradient: more than a colour map is made from

    private final StringBuilder body = new StringBuilder();

    /** The whole drawing as a file of this size; what it shows in words goes with it. */
    String document(double width, double height, String description) {
        String title = description.split("[,.，。]")[0];
        return """
<svg xmlns="http://www.w3.org/2000/svg" width="%1$spt" height="%2$spt" viewBox="0 0 %1$s %2$s" role="img">
<title>%5$s</title><desc>%6$s</desc>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<g font-family="%4$s" font-size="10">
%3$s</g>
</svg>
"""
                .formatted(
                        number(width),
                        number(height),
                        body,
                        Description.isChinese(body.toString()) ? CHINESE : FONT,
                        escape(title),
                        escape(description));
    }

    /** Adds an element; attributes and their values take turns. */
    void element(String tag, Object... attributes) {
        begin(tag, attributes);
        body.append("/>\n");
    }

    /** What is drawn from here to {@code close("svg")} is seen within this rectangle only. */
    void openWindow(double x, double y, double width, double height) {
        String box = "%s %s %s %s";
        box = box.formatted(number(x), number(y), number(width), number(height));
        begin("svg", "x", x, "y", y, "width", width, "height", height, "viewBox", box);
        body.append(">\n");
    }

    void close(String tag) {
        body.append("</").append(tag).append(">\n");
    }

    private void begin(String tag, Object... attributes) {
        body.append('<').append(tag);
        for (int i = 0; i < attributes.length; i += 2) {
            Object value = attributes[i + 1];
            String text = value instanceof Number n ? number(n.doubleValue()) : escape("" + value);
            body.append(' ').append(attributes[i]).append("=\"").append(text).append('"');
        }
    }

    void line(double x1, double y1, double x2, double y2, Object... attributes) {
        Object[] all = new Object[attributes.length + 2];
        all[0] = "d";
        all[1] = "M%s %sL%s %s".formatted(number(x1), number(y1), number(x2), number(y2));
        System.arraycopy(attributes, 0, all, 2, attributes.length);
        element("path", all);
    }

    void text(double x, double y, Anchor anchor, String text, Object... attributes) {
        StringBuilder more = new StringBuilder();
        for (int i = 0; i < attributes.length; i += 2) {
            more.append(" %s=\"%s\"".formatted(attributes[i], attributes[i + 1]));
        }
        String[] parts = text.split("\\^", 2); // 10^3: a power
        String shown = escape(parts[0]);
        if (parts.length > 1) {
            shown += "<tspan dy=\"-3.5\" font-size=\"7\">%s</tspan>".formatted(escape(parts[1]));
        }
        body.append(
                "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\"%s>%s</text>\n"
                        .formatted(
                                number(x),
                                number(y),
                                anchor.name().toLowerCase(Locale.ROOT),
                                more,
                                shown));
    }

    /**
     * Cells, each a square of its own, which no viewer can blur: colours as 0xRRGGBB, or -1 for a cell
     * that is left blank.
     */
    void cells(double x, double y, double width, double height, int[][] colors) {
        Map<Integer, StringBuilder> squares = new LinkedHashMap<>(); // by colour
        for (int row = 0; row < colors.length; row++) {
            for (int column = 0; column < colors[row].length; column++) {
                if (colors[row][column] >= 0) {
                    squares.computeIfAbsent(colors[row][column], color -> new StringBuilder())
                            .append("M%d %dh1v1h-1z".formatted(column, row));
                }
            }
        }
        String across = number(width / colors[0].length, 6);
        String down = number(height / colors.length, 6);
        String place = "matrix(%s 0 0 %s %s %s)".formatted(across, down, number(x), number(y));
        begin("g", "transform", place, "shape-rendering", "crispEdges");
        body.append('>');
        squares.forEach(
                (color, d) -> body.append("<path fill=\"#%06x\" d=\"%s\"/>".formatted(color, d)));
        body.append("</g>\n");
    }

    /** A rectangle with all the colours, the lowest below. */
    void gradient(double x, double y, double width, double height, ColorMap colors) {
        StringBuilder stops = new StringBuilder();
        for (int i = 0; i < STOPS; i++) {
            double share = (double) i / (STOPS - 1);
            stops.append(
                    "<stop offset=\"%s\" stop-color=\"#%06x\"/>"
                            .formatted(number(share, 5), colors.color(share)));
        }
        // Other drawings on a page have gradients, too: the same name, then, is the same gradient.
        String name = "bar_%08x".formatted(stops.toString().hashCode());
        body.append(
                "<defs><linearGradient id=\"%s\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">%s</linearGradient></defs>\n"
                        .formatted(name, stops));
        String fill = "url(#%s)".formatted(name);
        element("rect", "x", x, "y", y, "width", width, "height", height, "fill", fill);
    }

    /** About as wide as this text of 10 points will be. */
    static double width(String text) {
        String[] parts = text.split("\\^", 2);
        double power = parts.length > 1 ? 0.7 * width(parts[1]) : 0;
        return power
                + parts[0].chars().map(Svg::width).sum() / 10.0;
    }

    private static int width(int character) {
        if (Description.isChinese(Character.toString(character))) {
            return 100;
        }
        return character < 32 || character > 126 ? 84 : WIDTHS[character - 32];
    }

    /** Two decimals at most: a hundredth of a point is nothing an eye sees. */
    static String number(double value) {
        return number(value, 2);
    }

    private static String number(double value, int decimals) {
        String text = Numbers.fixed(value, decimals);
        text = text.replaceFirst("\\.?0+$", "");
        return text.isEmpty() || text.equals("-") || text.equals("-0") ? "0" : text;
    }

    static String escape(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;")
                .replace("'", "&#x27;");
    }
}
