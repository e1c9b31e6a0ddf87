package d2l;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

import java.awt.Color;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import javax.xml.parsers.DocumentBuilderFactory;

/** Tests of the figures, whose descriptions match those of the Python frameworks. */
class PlotsTest {

    private static Curves curves() {
        double[] x = {0.5, 1234.5678, 1e-5};
        return Plots.curves(
                        x,
                        new double[] {0.125, -0.001, 2.675},
                        new double[] {1, Double.NaN, 123456.789})
                .xlabel("x & y")
                .ylabel("\"q\"")
                .legend("a<b", "c");
    }

    private static Heatmaps heatmaps() {
        try (NDManager manager = NDManager.newBaseManager()) {
            float[] numbers = {0, 0.5f, -0.25f, Float.NaN, 1, 0, 0, 0.125f};
            NDArray matrices = manager.create(numbers, new Shape(1, 2, 2, 2));
            return Plots.heatmaps(matrices)
                    .xlabel("K")
                    .ylabel("Q")
                    .titles("A", "B")
                    .cmap(ColorMap.BLUE_TO_RED);
        }
    }

    private static Document parse(Figure<?> figure) throws Exception {
        byte[] svg = figure.svg().getBytes(StandardCharsets.UTF_8);
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(svg));
    }

    private static List<Element> elements(Figure<?> figure, String tag) throws Exception {
        NodeList nodes = parse(figure).getElementsByTagName(tag);
        List<Element> elements = new ArrayList<>();
        for (int i = 0; i < nodes.getLength(); i++) {
            elements.add((Element) nodes.item(i));
        }
        return elements;
    }

    private static List<String> texts(Figure<?> figure) throws Exception {
        return elements(figure, "text").stream().map(Element::getTextContent).toList();
    }

    /** Returns a heat map's colours by column and row: {@code "1 0"}. */
    private static Map<String, Color> cells(Element heatMap) {
        Map<String, Color> cells = new HashMap<>();
        NodeList paths = heatMap.getElementsByTagName("path");
        for (int i = 0; i < paths.getLength(); i++) {
            Element path = (Element) paths.item(i);
            Color color = Color.decode(path.getAttribute("fill"));
            Matcher square = Pattern.compile("M(\\d+ \\d+)h1v1h-1z").matcher(path.getAttribute("d"));
            while (square.find()) {
                cells.put(square.group(1), color);
            }
        }
        return cells;
    }

    @Test
    void curveDescriptionsMatchPython() {
        assertEquals(
                "Line plot of \"q\" against x & y. a<b: 3 points from (0.5, 0.12) to (1e-05, 2.67),"
                    + " values from -0.00 to 2.67. c: 3 points from (0.5, 1.00) to (1e-05,"
                    + " 123456.79), values from 1.00 to 123456.79.",
                curves().describe());
    }

    @Test
    void descriptionsWithoutLabelsMatchPython() {
        assertEquals(
                "Line plot of values against index. Curve: 3 points from (0, 1.00) to (2, 3.00),"
                    + " values from 1.00 to 3.00.",
                Plots.curves(List.of(new double[] {1, 2, 3})).describe());
    }

    @Test
    void chineseDescriptionsMatchPython() {
        double[] x = {1, 2, 3};
        Curves curves = Plots.curves(x, new double[] {1, 4, 9}, new double[] {2, 0, -2});
        assertEquals(
                "折線圖，縱軸是數值，橫軸是橫列。"
                        + "甲：3 個點，從 (1, 1.00) 到 (3, 9.00)，數值從 1.00 到 9.00。"
                        + "b：3 個點，從 (1, 2.00) 到 (3, -2.00)，數值從 -2.00 到 2.00。",
                curves.xlabel("橫列").legend("甲", "b").describe());
        try (NDManager manager = NDManager.newBaseManager()) {
            float[] numbers = {1e-40f, 2, Float.NaN, Float.NaN}; // a GPU has zero for the first
            NDArray matrices = manager.create(numbers, new Shape(1, 2, 1, 2));
            assertEquals(
                    "「頭 1」：熱圖，縱軸 1 格，是未命名的軸；橫軸 2 格，是未命名的軸；數值從 0.00 到 2.00，零有 1 個（共 2 個）；"
                            + "顏色 Reds，從 0.00 到 2.00。"
                            + "「b」：熱圖，縱軸 1 格，是未命名的軸；橫軸 2 格，是未命名的軸；沒有數值，零有 0 個（共 0 個）；"
                            + "顏色 Reds，從 0.00 到 2.00。",
                    Plots.heatmaps(matrices).titles("頭 1", "b").describe());
        }
    }

    @Test
    void chineseTextHasWidthAndFont() {
        assertEquals(4 * Svg.width("位"), Svg.width("位置編碼"));
        assertEquals(10, Svg.width("（"));
        Curves plain = Plots.curves(List.of(new double[] {1, 2}));
        assertFalse(plain.svg().contains("Noto"));
        assertTrue(plain.xlabel("位置").svg().contains("Noto Sans CJK TC"));
    }

    @Test
    void heatMapDescriptionsMatchPython() {
        assertEquals(
                "\"A\": Heat map, 2 rows (Q) by 2 columns (K), values from -0.25 to 0.50, 1 of 3"
                    + " zero; colours RdBu_r from -1.00 to 1.00. \"B\": Heat map, 2 rows (Q) by 2"
                    + " columns (K), values from 0.00 to 1.00, 2 of 4 zero; colours RdBu_r from"
                    + " -1.00 to 1.00.",
                heatmaps().describe());
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "-0.0, -0",
        "1234.5, 1234",
        "12345, 1.234e+04",
        "0.0001, 0.0001",
        "0.00001234, 1.234e-05",
        "-20, -20",
        "59, 59",
        "99999, 1e+05",
        "9999.5, 1e+04",
        "1e100, 1e+100"
    })
    void significantDigitsMatchPython(double value, String expected) {
        assertEquals(expected, Numbers.formatGeneral(value, 4));
    }

    @ParameterizedTest
    @CsvSource({"0.125, 0.12", "0.375, 0.38", "1.005, 1.00", "-0.001, -0.00", "2.5, 2.50"})
    void decimalsMatchPython(double value, String expected) {
        assertEquals(expected, Numbers.formatFixed(value, 2));
    }

    @Test
    void figuresAreTheSameInAnyLocale() {
        String svg = curves().svg();
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("fa-IR")); // with other digits
        try {
            curveDescriptionsMatchPython();
            heatMapDescriptionsMatchPython();
            badArgumentsAreRejected();
            assertEquals("1e-05", Numbers.formatGeneral(1e-5, 4));
            assertEquals(svg, curves().svg());
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void namesMayContainPercentSigns() {
        String description = Plots.curves(List.of(new double[] {1, 2})).legend("100 %d").describe();
        assertTrue(
                description.startsWith("Line plot of values against index. 100 %d: 2 points"),
                description);
    }

    @Test
    void largeNumbersHaveTicks() throws Exception {
        double[] x = {1e10, 1e10 + 5};
        List<String> texts = texts(Plots.curves(x, new double[] {0, 1}).figsize(20, 2.5));
        assertTrue(texts.containsAll(List.of("10000000000", "10000000005")), texts.toString());
    }

    @Test
    void drawingContainsItsDescription() throws Exception {
        for (Figure<?> figure : List.of(curves(), heatmaps())) {
            assertEquals(figure.describe(), elements(figure, "desc").get(0).getTextContent());
            String title = elements(figure, "title").get(0).getTextContent();
            assertTrue(figure.describe().startsWith(title) && title.length() > 5, title);
        }
    }

    @Test
    void colorScaleWithBothSignsIsSymmetric() {
        try (NDManager manager = NDManager.newBaseManager()) {
            NDArray matrix = manager.create(new float[] {-3, 1}, new Shape(1, 1, 1, 2));
            assertTrue(
                    Plots.heatmaps(matrix).describe().endsWith("colours Reds from -3.00 to 3.00."));
        }
    }

    @Test
    void sameFigureGivesSameBytes() {
        assertEquals(curves().svg(), curves().svg());
        assertEquals(heatmaps().svg(), heatmaps().svg());
    }

    @Test
    void ticksAreRoundNumbers() throws Exception {
        double[] x = new double[60];
        double[] y = new double[60];
        for (int i = 0; i < 60; i++) {
            x[i] = i;
            y[i] = Math.sin(i);
        }
        Curves figure = Plots.curves(x, y).xlabel("position").legend("sine").figsize(6, 2.5);
        assertEquals(
                List.of(
                        "0",
                        "10",
                        "20",
                        "30",
                        "40",
                        "50",
                        "60",
                        "−1.0",
                        "−0.5",
                        "0.0",
                        "0.5",
                        "1.0",
                        "position",
                        "sine"),
                texts(figure));
        Element frame = elements(figure, "rect").get(1);
        assertEquals("334.8", frame.getAttribute("width")); // as matplotlib's at this size
        assertEquals("138.6", frame.getAttribute("height"));
    }

    @Test
    void logarithmicAxisHasPowersOfTen() throws Exception {
        double[] y = {1, 1e-2, 1e-4, 1e-6};
        List<String> texts = texts(Plots.curves(List.of(y)).logY().figsize(6, 2.5));
        assertTrue(texts.containsAll(List.of("100", "10−2", "10−4", "10−6")), texts.toString());
    }

    @Test
    void shortLogarithmicAxisHasNumbersBetweenPowers() throws Exception {
        double[] x = {8, 16, 32, 64};
        Curves figure = Plots.curves(x, x).logX().figsize(6, 2.5);
        List<String> texts = texts(figure);
        assertEquals(List.of("10", "20", "50"), texts.subList(0, 3));
        // Each doubling is as wide as the one before, up to the rounding of positions.
        Element curve =
                elements(figure, "path").stream()
                        .filter(path -> path.getAttribute("stroke-width").equals("1.5"))
                        .findFirst()
                        .orElseThrow();
        double[] positions =
                Stream.of(curve.getAttribute("d").substring(1).split("L"))
                        .mapToDouble(point -> Double.parseDouble(point.split(" ")[0]))
                        .toArray();
        assertEquals(positions[1] - positions[0], positions[2] - positions[1], 0.021);
        assertEquals(positions[2] - positions[1], positions[3] - positions[2], 0.021);
    }

    @Test
    void curvesMayBeDrawnAsPoints() {
        double[][] ys = {{1, Double.NaN, 3}, {1, 2, 3}};
        double[] x = {0, 1, 2};
        String svg = Plots.curves(x, ys).legend("measured", "true").points(0).svg();
        Matcher dots = Pattern.compile("d=\"((?:M[\\d.]+ [\\d.]+h0)+)\"").matcher(svg);
        List<Integer> counts = dots.results().map(d -> d.group(1).split("h0").length).toList();
        assertEquals(List.of(2, 1), counts); // the finite points, and one in the legend
        assertFalse(Plots.curves(x, ys).svg().contains("h0M"));
    }

    @Test
    void curvesMayHaveSeparateX() {
        List<double[]> x = List.of(new double[] {1, 2}, new double[] {3, 3, 3});
        List<double[]> y = List.of(new double[] {0, 1}, new double[] {4, 5, 6});
        assertEquals(
                "Line plot of values against index. one: 2 points from (1, 0.00) to (2, 1.00),"
                    + " values from 0.00 to 1.00. Curve: 3 points from (3, 4.00) to (3, 6.00),"
                    + " values from 4.00 to 6.00.",
                Plots.curves(x, y).legend("one").describe());
    }

    @Test
    void curvesDifferInColorAndLineStyle() throws Exception {
        double[] y = {1, 2};
        List<Element> strokes =
                elements(Plots.curves(List.of(y, y, y, y, y, y)), "path").stream()
                        .filter(path -> path.getAttribute("stroke-width").equals("1.5"))
                        .toList();
        assertEquals(
                List.of("#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#555555"),
                strokes.stream().map(path -> path.getAttribute("stroke")).toList());
        assertEquals(
                6,
                strokes.stream()
                        .map(path -> path.getAttribute("stroke-dasharray"))
                        .distinct()
                        .count());
    }

    @Test
    void eachNumberIsOneCell() throws Exception {
        assertEquals(List.of(), elements(heatmaps(), "image"), "a viewer may blur an image");
        List<Map<String, Color>> panels =
                elements(heatmaps(), "g").stream()
                        .filter(g -> g.getAttribute("shape-rendering").equals("crispEdges"))
                        .map(PlotsTest::cells)
                        .toList();
        assertEquals(2, panels.size());
        Map<String, Color> left = panels.get(0);
        assertEquals(Set.of("0 0", "1 0", "0 1"), left.keySet(), "NaN is blank");
        assertTrue(left.get("0 0").getGreen() > 0xF0, "zero is white");
        assertTrue(left.get("0 1").getBlue() > left.get("0 1").getRed(), "negative values are blue");
        assertEquals(new Color(0x67001F), panels.get(1).get("0 0"), "the largest is the darkest red");
    }

    @Test
    void cellsMayBeNamedAndFramed() throws Exception {
        try (NDManager manager = NDManager.newBaseManager()) {
            NDArray marks = manager.create(new boolean[] {true, false, false, true});
            Heatmaps figure =
                    heatmaps()
                            .xticklabels("a\n1", "b\n2")
                            .yticklabels("x", "y")
                            .marks(marks.reshape(2, 2));
            List<String> below = List.of("a", "1", "b", "2");
            List<String> left = List.of("x", "y");
            assertEquals(below, texts(figure).subList(0, 4));
            assertEquals(left, texts(figure).subList(4, 6));
            List<Element> frames =
                    elements(figure, "rect").stream()
                            .filter(rect -> rect.getAttribute("stroke-width").equals("1.2"))
                            .toList();
            assertEquals(4, frames.size());
            assertTrue(number(frames.get(0), "x") < number(frames.get(1), "x"));
            assertTrue(number(frames.get(0), "y") < number(frames.get(1), "y"));
            // In "A", row x has its largest value in column b; in "B" in column a.
            assertTrue(
                    figure.describe()
                            .contains(
                                    "-1.00 to 1.00. 2 cells framed; 0 of 2 rows have their largest"
                                            + " value in one. \"B\""),
                    figure.describe());
            assertTrue(figure.describe().endsWith("2 of 2 rows have their largest value in one."));
            NDArray three = manager.ones(new Shape(3));
            assertEquals(
                    "marks: got shape (3); need a shape that broadcasts to that of matrices,"
                            + " (1, 2, 2, 2)",
                    errorMessage(() -> heatmaps().marks(three)));
            assertEquals(
                    "xticklabels: got 1 for 2 columns; need one for each",
                    errorMessage(() -> heatmaps().xticklabels("a")));
        }
    }

    private static double number(Element element, String attribute) {
        return Double.parseDouble(element.getAttribute(attribute));
    }

    private static final Map<String, double[][]> RESULTS = new LinkedHashMap<>();

    static {
        RESULTS.put("one", new double[][] {{0.5, 1}, {0.25, 0.75}, {0.125, 1}});
        RESULTS.put("兩個", new double[][] {{1, 0}, {0, 0.5}});
    }

    @Test
    void rangesArePrintedAsInPython() {
        PrintStream before = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
        try {
            Ranges.print(RESULTS, List.of(16, "far"), "entries");
            Map<String, double[][]> results = new LinkedHashMap<>();
            results.put("five", new double[][] {{1}, {3}});
            results.put("a", new double[][] {{2}});
            Ranges.print(results, List.of(), "", 3);
        } finally {
            System.setOut(before);
        }
        assertEquals(
                """
                entries                16               far
                one      0.25 (0.12-0.50)  1.00 (0.75-1.00)
                兩個     0.50 (0.00-1.00)  0.25 (0.00-0.50)
                five  2.000 (1.000-3.000)
                a     2.000
                """,
                bytes.toString(StandardCharsets.UTF_8).replace(System.lineSeparator(), "\n"));
    }

    @Test
    void rangesAreBarsBesideMedians() throws Exception {
        Curves figure = Ranges.plot(new double[] {16, 64}, RESULTS).ylim(0, 1);
        assertTrue(
                figure.describe()
                        .contains("one：2 個點，從 (16, 0.25) 到 (64, 1.00)，數值從 0.25 到 1.00。"),
                figure.describe());
        assertTrue(texts(figure).containsAll(List.of("16", "64", "one", "兩個")));
        List<Element> bars =
                elements(figure, "path").stream()
                        .filter(path -> path.getAttribute("stroke-width").equals("1.5"))
                        .filter(path -> !path.hasAttribute("stroke-linejoin"))
                        .toList();
        assertEquals(4, bars.size());
        assertEquals(
                List.of("#0072B2", "#0072B2", "#D55E00", "#D55E00"),
                bars.stream().map(bar -> bar.getAttribute("stroke")).toList());
        // At the same x the second curve's bar is four points to the right of the first one's.
        double[] first = coordinates(bars.get(0));
        double[] second = coordinates(bars.get(2));
        assertEquals(4, second[0] - first[0], 0.011);
        // The first bar is 3/8 of the axis, the second all of it.
        assertEquals(0.375, (first[1] - first[3]) / (second[1] - second[3]), 1e-3);
        assertEquals(
                "x: got shape (1); need shape (2), as results has",
                errorMessage(() -> Ranges.plot(new double[1], RESULTS)));
    }

    private static double[] coordinates(Element path) {
        String[] numbers = path.getAttribute("d").substring(1).split("[L ]");
        return Stream.of(numbers).mapToDouble(Double::parseDouble).toArray();
    }

    @Test
    void badResultsAreRejected() {
        assertEquals(
                "results: got none; need a map of names and their numbers, at least one",
                errorMessage(() -> Ranges.print(Map.of(), List.of(), "")));
        assertEquals(
                "results: got columns [1, 2]; need the same number for each name",
                errorMessage(
                        () -> Ranges.print(Map.of("a", new double[][] {{1}, {1, 2}}), List.of(), "")));
        assertEquals(
                "columns: got 1 for 2 columns of results; need one for each",
                errorMessage(() -> Ranges.print(RESULTS, List.of(16), "")));
    }

    @Test
    void colorBarHasAllColorsFromBottom() throws Exception {
        Element gradient = elements(heatmaps(), "linearGradient").get(0);
        assertEquals("1 0", gradient.getAttribute("y1") + " " + gradient.getAttribute("y2"));
        NodeList stops = gradient.getElementsByTagName("stop");
        for (int i = 0; i < stops.getLength(); i++) {
            Element stop = (Element) stops.item(i);
            int color = Color.decode(stop.getAttribute("stop-color")).getRGB() & 0xFFFFFF;
            double share = Double.parseDouble(stop.getAttribute("offset"));
            assertEquals(ColorMap.BLUE_TO_RED.color(share), color);
            assertEquals((double) i / (stops.getLength() - 1), share, 1e-5);
        }
        String name = gradient.getAttribute("id");
        assertEquals(
                1,
                elements(heatmaps(), "rect").stream()
                        .filter(rect -> rect.getAttribute("fill").equals("url(#" + name + ")"))
                        .count());
    }

    @Test
    void colorsMatchMatplotlib() {
        int[] expected = {0xE3EEF8, 0xABCFE5, 0x6AADD5, 0x1B6AAF, 0x08306B};
        double[] values = {0.1, 0.333, 0.5, 0.777, 1};
        for (int i = 0; i < values.length; i++) {
            for (int shift : new int[] {0, 8, 16}) {
                int actual = ColorMap.BLUES.color(values[i]) >> shift & 0xFF;
                assertEquals(expected[i] >> shift & 0xFF, actual, 1.0);
            }
        }
    }

    @Test
    void badArgumentsAreRejected() {
        assertEquals(
                "curve 0: got 2 points in X and 3 in Y; need the same number of each",
                errorMessage(() -> Plots.curves(new double[2], new double[3])));
        double[][] one = {new double[2]};
        assertEquals(
                "curves: got 2 of X and 1 of Y; need one X for all curves, or one for each",
                errorMessage(() -> new Curves(new double[2][2], one)));
        assertEquals(
                "titles: got 1 for 2 columns of heat maps; need one for each column",
                errorMessage(() -> heatmaps().titles("only")));
        try (NDManager manager = NDManager.newBaseManager()) {
            NDArray matrix = manager.zeros(new Shape(2, 2));
            assertEquals(
                    "matrices: got shape (2, 2); need 4 dimensions (grid rows, grid columns, matrix"
                        + " rows, matrix columns)",
                    errorMessage(() -> Plots.heatmaps(matrix)));
            assertEquals(
                    "matrices: got shape (1, 1, 2, 2) without a finite number; need at least one"
                        + " number",
                    errorMessage(() -> Plots.heatmaps(matrix.div(0).reshape(1, 1, 2, 2))));
        }
    }

    private static String errorMessage(Executable action) {
        return assertThrows(IllegalArgumentException.class, action).getMessage();
    }

    @Test
    void constantValuesCanBeDrawn() throws Exception {
        try (NDManager manager = NDManager.newBaseManager()) {
            assertFalse(Plots.heatmaps(manager.ones(new Shape(1, 1, 3, 3))).svg().contains("NaN"));
        }
        assertFalse(Plots.curves(List.of(new double[] {1, 1})).svg().contains("NaN"));
    }
}
