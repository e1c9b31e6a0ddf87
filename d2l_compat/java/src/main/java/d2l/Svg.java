package d2l;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Writes a drawing; its unit is the point (1/72 inch).
 *
 * <p>Text is placed by its anchor, without measuring the machine's fonts, so that the same figure
 * is the same bytes everywhere.
 */
final class Svg {

    /** The part of a text that is at its position. */
    enum Anchor {
        START,
        MIDDLE,
        END
    }

    private static final String FONT = "DejaVu Sans, sans-serif";
    // Fonts with Taiwan's forms of Chinese characters; the viewer uses the first one installed.
    private static final String CHINESE_FONTS =
            "DejaVu Sans, Noto Sans CJK TC, Noto Sans TC, PingFang TC, Microsoft JhengHei, sans-serif";

    // Hundredths of an em in DejaVu Sans, from the space to the tilde: only to size boxes.
    private static final int[] WIDTHS = {
        32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64,
                64,
        64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75,
                79,
        60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35,
                63,
        63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84
    };

    static final double LINE_HEIGHT = 12; // of text

    private static final int STOPS = 33; // in a gradient: more than a colour map has anchors

    private final StringBuilder body = new StringBuilder();

    /** Returns the drawing as the content of a file, with a description in words. */
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
                        Description.isChinese(body.toString()) ? CHINESE_FONTS : FONT,
                        escape(title),
                        escape(description));
    }

    /** Adds an element; {@code attributes} alternate names and values. */
    void element(String tag, Object... attributes) {
        begin(tag, attributes);
        body.append("/>\n");
    }

    /** Clips what is drawn until {@code close("svg")} to this rectangle. */
    void openClip(double x, double y, double width, double height) {
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

    /** Writes a text, whose first line stands on {@code y}. */
    void text(double x, double y, Anchor anchor, String text, Object... attributes) {
        String[] lines = text.split("\n");
        for (int i = 0; i < lines.length; i++) {
            line(x, y + i * LINE_HEIGHT, anchor, lines[i], attributes);
        }
    }

    private void line(double x, double y, Anchor anchor, String text, Object... attributes) {
        StringBuilder otherAttributes = new StringBuilder();
        for (int i = 0; i < attributes.length; i += 2) {
            otherAttributes.append(" %s=\"%s\"".formatted(attributes[i], attributes[i + 1]));
        }
        String[] parts = text.split("\\^", 2); // 10^3: a power
        String content = escape(parts[0]);
        if (parts.length > 1) {
            content += "<tspan dy=\"-3.5\" font-size=\"7\">%s</tspan>".formatted(escape(parts[1]));
        }
        body.append(
                "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\"%s>%s</text>\n"
                        .formatted(
                                number(x),
                                number(y),
                                anchor.name().toLowerCase(Locale.ROOT),
                                otherAttributes,
                                content));
    }

    /**
     * Draws each cell as a separate square, so that no viewer can blur it. Colours are 0xRRGGBB,
     * or -1 for a blank cell.
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
        String cellWidth = number(width / colors[0].length, 6);
        String cellHeight = number(height / colors.length, 6);
        String matrix =
                "matrix(%s 0 0 %s %s %s)".formatted(cellWidth, cellHeight, number(x), number(y));
        begin("g", "transform", matrix, "shape-rendering", "crispEdges");
        body.append('>');
        squares.forEach(
                (color, d) -> body.append("<path fill=\"#%06x\" d=\"%s\"/>".formatted(color, d)));
        body.append("</g>\n");
    }

    /** Draws a rectangle with all the colours, the lowest at the bottom. */
    void gradient(double x, double y, double width, double height, ColorMap colors) {
        StringBuilder stops = new StringBuilder();
        for (int i = 0; i < STOPS; i++) {
            double share = (double) i / (STOPS - 1);
            stops.append(
                    "<stop offset=\"%s\" stop-color=\"#%06x\"/>"
                            .formatted(number(share, 5), colors.color(share)));
        }
        // The id depends on the stops, since all drawings on a web page share the ids.
        String id = "bar_%08x".formatted(stops.toString().hashCode());
        body.append(
                "<defs><linearGradient id=\"%s\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">%s</linearGradient></defs>\n"
                        .formatted(id, stops));
        String fill = "url(#%s)".formatted(id);
        element("rect", "x", x, "y", y, "width", width, "height", height, "fill", fill);
    }

    static int countLines(String text) {
        return text.split("\n").length;
    }

    /** Returns the approximate width of a text of 10 points, which may have several lines. */
    static double width(String text) {
        return Stream.of(text.split("\n")).mapToDouble(Svg::lineWidth).max().orElse(0);
    }

    private static double lineWidth(String text) {
        String[] parts = text.split("\\^", 2);
        double exponentWidth = parts.length > 1 ? 0.7 * lineWidth(parts[1]) : 0;
        return exponentWidth + parts[0].chars().map(Svg::width).sum() / 10.0;
    }

    private static int width(int character) {
        if (Description.isChinese(Character.toString(character))) {
            return 100;
        }
        return character < 32 || character > 126 ? 84 : WIDTHS[character - 32];
    }

    /** Formats a number with at most two decimals: nobody sees a hundredth of a point. */
    static String number(double value) {
        return number(value, 2);
    }

    private static String number(double value, int decimals) {
        String text = Numbers.formatFixed(value, decimals);
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
