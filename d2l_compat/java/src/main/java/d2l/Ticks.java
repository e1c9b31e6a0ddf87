package d2l;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Where the ticks of an axis are, and what is written at them. */
record Ticks(double[] places, String[] labels) {

    private static final double[] STEPS = {1, 2, 2.5, 5, 10};

    /**
     * Round numbers from {@code low} to {@code high}, at most {@code most} + 1 and at least two
     * where that can be.
     */
    static Ticks linear(double low, double high, int most, boolean integers) {
        double rough = (high - low) / most;
        double scale = Math.pow(10, Math.floor(Math.log10(rough)));
        List<Double> steps = new ArrayList<>();
        for (double power : new double[] {scale / 10, scale, scale * 10}) {
            for (double step : STEPS) {
                double candidate = step * power;
                boolean whole = candidate >= 1 && candidate == Math.rint(candidate);
                if (candidate <= 0 || integers && !whole) {
                    continue;
                }
                steps.add(candidate);
            }
        }
        if (steps.isEmpty()) {
            steps.add(1.0);
        }
        int at = 0;
        while (at < steps.size() - 1 && steps.get(at) < rough * (1 - 1e-9)) {
            at++;
        }
        double[] places = multiples(low, high, steps.get(at));
        while (places.length < 2 && at > 0) {
            places = multiples(low, high, steps.get(--at));
        }
        return new Ticks(places, labels(places));
    }

    /** Powers of ten, or where there are not two of them, what lies between. */
    static Ticks logarithmic(double low, double high, int most) {
        int first = (int) Math.ceil(Math.log10(low) - 1e-9);
        int last = (int) Math.floor(Math.log10(high) + 1e-9);
        if (last <= first) {
            double[] places =
                    IntStream.rangeClosed(first - 1, last)
                            .mapToDouble(p -> Math.pow(10, p))
                            .flatMap(power -> DoubleStream.of(power, 2 * power, 5 * power))
                            .filter(place -> low <= place && place <= high)
                            .toArray();
            return new Ticks(places, labels(places));
        }
        int stride = (last - first) / most + 1;
        int[] powers =
                IntStream.rangeClosed(first, last)
                        .filter(p -> Math.floorMod(p, stride) == 0)
                        .toArray();
        return new Ticks(
                IntStream.of(powers).mapToDouble(p -> Math.pow(10, p)).toArray(),
                IntStream.of(powers).mapToObj(p -> "10^" + minus("" + p)).toArray(String[]::new));
    }

    private static double[] multiples(double low, double high, double step) {
        double slack = step * 1e-9;
        long first = (long) Math.ceil((low - slack) / step);
        long last = (long) Math.floor((high + slack) / step);
        return LongStream.rangeClosed(first, last).mapToDouble(i -> i * step).toArray();
    }

    /** As few decimals as show all of them exactly. */
    private static String[] labels(double[] places) {
        double range = places.length > 1 ? places[places.length - 1] - places[0] : 1;
        int decimals = 0;
        while (decimals < 12 && !roundTo(places, decimals, range * 1e-3)) {
            decimals++;
        }
        int shown = decimals;
        return DoubleStream.of(places)
                .mapToObj(place -> minus(Numbers.fixed(place == 0 ? 0 : place, shown)))
                .toArray(String[]::new);
    }

    private static boolean roundTo(double[] places, int decimals, double within) {
        double power = Math.pow(10, decimals);
        return DoubleStream.of(places)
                .allMatch(place -> Math.abs(Math.rint(place * power) / power - place) < within);
    }

    private static String minus(String number) {
        return number.replace('-', '\u2212');
    }
}
