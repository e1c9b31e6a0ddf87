package d2l;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** The ticks of an axis: their positions and labels. */
record Ticks(double[] positions, String[] labels) {

    private static final double[] ROUND_STEPS = {1, 2, 2.5, 5, 10};

    /**
     * Chooses round numbers from {@code low} to {@code high}: at most {@code maxTicks} + 1, and at
     * least two if possible.
     */
    static Ticks linear(double low, double high, int maxTicks, boolean onlyIntegers) {
        double minStep = (high - low) / maxTicks;
        double scale = Math.pow(10, Math.floor(Math.log10(minStep)));
        List<Double> steps = new ArrayList<>();
        for (double power : new double[] {scale / 10, scale, scale * 10}) {
            for (double step : ROUND_STEPS) {
                double candidate = step * power;
                boolean isWhole = candidate >= 1 && candidate == Math.rint(candidate);
                if (candidate > 0 && (isWhole || !onlyIntegers)) {
                    steps.add(candidate);
                }
            }
        }
        if (steps.isEmpty()) {
            steps.add(1.0);
        }
        int i = 0;
        while (i < steps.size() - 1 && steps.get(i) < minStep * (1 - 1e-9)) {
            i++;
        }
        double[] positions = multiples(low, high, steps.get(i));
        while (positions.length < 2 && i > 0) {
            i--;
            positions = multiples(low, high, steps.get(i));
        }
        return new Ticks(positions, labels(positions));
    }

    /** Chooses powers of ten or, if there are fewer than two, numbers between them. */
    static Ticks logarithmic(double low, double high, int maxTicks) {
        int first = (int) Math.ceil(Math.log10(low) - 1e-9);
        int last = (int) Math.floor(Math.log10(high) + 1e-9);
        if (last <= first) {
            double[] positions =
                    IntStream.rangeClosed(first - 1, last)
                            .mapToDouble(p -> Math.pow(10, p))
                            .flatMap(power -> DoubleStream.of(power, 2 * power, 5 * power))
                            .filter(position -> low <= position && position <= high)
                            .toArray();
            return new Ticks(positions, labels(positions));
        }
        int stride = (last - first) / maxTicks + 1;
        int[] powers =
                IntStream.rangeClosed(first, last)
                        .filter(p -> Math.floorMod(p, stride) == 0)
                        .toArray();
        return new Ticks(
                IntStream.of(powers).mapToDouble(p -> Math.pow(10, p)).toArray(),
                IntStream.of(powers)
                        .mapToObj(p -> "10^" + useMinusSign("" + p))
                        .toArray(String[]::new));
    }

    /** Puts a tick at each of these numbers. */
    static Ticks at(double[] positions) {
        return new Ticks(positions, labels(positions));
    }

    private static double[] multiples(double low, double high, double step) {
        double slack = step * 1e-9;
        long first = (long) Math.ceil((low - slack) / step);
        long last = (long) Math.floor((high + slack) / step);
        return LongStream.rangeClosed(first, last).mapToDouble(i -> i * step).toArray();
    }

    /** Formats the positions with the fewest decimals that show all of them exactly. */
    private static String[] labels(double[] positions) {
        double range = positions.length > 1 ? positions[positions.length - 1] - positions[0] : 1;
        int decimals = 0;
        while (decimals < 12 && !areExact(positions, decimals, range * 1e-3)) {
            decimals++;
        }
        String[] labels = new String[positions.length];
        for (int i = 0; i < labels.length; i++) {
            double position = positions[i] == 0 ? 0 : positions[i]; // no -0
            labels[i] = useMinusSign(Numbers.formatFixed(position, decimals));
        }
        return labels;
    }

    private static boolean areExact(double[] numbers, int decimals, double tolerance) {
        double power = Math.pow(10, decimals);
        return DoubleStream.of(numbers)
                .allMatch(x -> Math.abs(Math.rint(x * power) / power - x) < tolerance);
    }

    private static String useMinusSign(String number) {
        return number.replace('-', '\u2212');
    }
}
