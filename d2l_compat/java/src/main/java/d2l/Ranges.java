package d2l;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Tables and plots of results from several seeds: median and range.
 *
 * <p>Results map names to numbers, (seeds, columns); names are shown in the map's order, so use a
 * {@code LinkedHashMap}.
 */
public final class Ranges {

    private Ranges() {}

    /**
     * Prints a table of medians and, in brackets, ranges, with two decimals and a row for each name.
     * A name with one seed has no range.
     *
     * @param results numbers by name, (seeds, columns)
     * @param columns the columns' headings; without any, there is no line of them
     * @param title the heading of the names
     * @throws IllegalArgumentException unless each name has the same number of columns, and there is
     *     a heading for each of them, if any
     */
    public static void print(Map<String, double[][]> results, List<?> columns, String title) {
        print(results, columns, title, 2);
    }

    /** Prints a table with this many decimals. */
    public static void print(
            Map<String, double[][]> results, List<?> columns, String title, int digits) {
        int count = countColumns(results);
        if (!columns.isEmpty() && columns.size() != count) {
            String got = "%s for %s columns of results".formatted(columns.size(), count);
            throw Checks.error("columns", got, "one for each");
        }
        List<List<String>> lines = new ArrayList<>();
        if (!columns.isEmpty()) {
            var headings = columns.stream().map(String::valueOf);
            lines.add(Stream.concat(Stream.of(title), headings).toList());
        }
        results.forEach(
                (name, runs) -> {
                    List<String> line = new ArrayList<>(List.of(name));
                    for (int j = 0; j < count; j++) {
                        double[] sorted = sortColumn(runs, j);
                        String median = Numbers.formatFixed(median(sorted), digits);
                        String low = Numbers.formatFixed(sorted[0], digits);
                        String high = Numbers.formatFixed(sorted[sorted.length - 1], digits);
                        String spread = " (%s-%s)".formatted(low, high);
                        if (runs.length == 1) {
                            spread = " ".repeat(spread.length()); // below the medians
                        }
                        line.add(median + spread);
                    }
                    lines.add(line);
                });
        int[] widths =
                IntStream.rangeClosed(0, count)
                        .map(j -> lines.stream().mapToInt(line -> width(line.get(j))).max().orElse(0))
                        .toArray();
        for (List<String> line : lines) {
            StringBuilder text = new StringBuilder(line.get(0));
            text.append(" ".repeat(widths[0] - width(line.get(0))));
            for (int j = 1; j <= count; j++) {
                text.append(" ".repeat(2 + widths[j] - width(line.get(j)))).append(line.get(j));
            }
            System.out.println(text.toString().stripTrailing());
        }
    }

    /**
     * Plots medians as curves, and ranges as bars side by side, over a logarithmic axis. Each x gets
     * a tick.
     *
     * @param x shape (points)
     * @param results numbers by name, (seeds, points)
     * @throws IllegalArgumentException unless each name has a number for every point
     */
    public static Curves plot(double[] x, Map<String, double[][]> results) {
        int count = countColumns(results);
        if (x.length != count) {
            String need = "shape (%s), as results has".formatted(count);
            throw Checks.error("x", "shape (%s)".formatted(x.length), need);
        }
        List<double[]> medians = new ArrayList<>();
        List<Curves.Range[]> ranges = new ArrayList<>();
        for (double[][] runs : results.values()) {
            double[] median = new double[count];
            Curves.Range[] range = new Curves.Range[count];
            for (int j = 0; j < count; j++) {
                double[] sorted = sortColumn(runs, j);
                median[j] = median(sorted);
                range[j] = new Curves.Range(sorted[0], sorted[sorted.length - 1]);
            }
            medians.add(median);
            ranges.add(range);
        }
        return Plots.curves(x, medians.toArray(double[][]::new))
                .ranges(ranges)
                .legend(results.keySet().toArray(String[]::new))
                .logX()
                .figsize(5, 3.5);
    }

    private static int countColumns(Map<String, double[][]> results) {
        if (results.isEmpty()) {
            throw Checks.error("results", "none", "a map of names and their numbers, at least one");
        }
        List<Integer> counts =
                results.values().stream()
                        .flatMap(Stream::of)
                        .map(run -> run.length)
                        .distinct()
                        .toList();
        if (counts.size() != 1 || results.values().stream().anyMatch(runs -> runs.length == 0)) {
            String got = "columns " + counts;
            throw Checks.error("results", got, "the same number for each name");
        }
        return counts.get(0);
    }

    /** Returns the seeds' numbers in a column, from low to high. */
    private static double[] sortColumn(double[][] runs, int column) {
        return Stream.of(runs).mapToDouble(run -> run[column]).sorted().toArray();
    }

    private static double median(double[] sorted) {
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /** Returns how many columns a text takes in a monospaced font: a Chinese character takes two. */
    private static int width(String text) {
        return text.chars()
                .map(c -> Description.isChinese(Character.toString(c)) ? 2 : 1)
                .sum();
    }
}
