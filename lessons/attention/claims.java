// What the lesson claims, asked of its own objects. Each cell runs after the lesson's cell of the
// same name, in the same kernel; the first sentence that is not true fails it. What the lesson's
// cell has printed, with the words that stand for its figures, is in ``shown``.

// %% setup
/** The lesson's formulas, in plain Java. */
class Formula extends Plain {
    static double[][] attend(double[][] scores, double[][] values) {
        return times(softmax(scores), values);
    }

    static double[][] dot(double[][] Q, double[][] K) {
        return times(Q, transposed(K));
    }

    static double[][] scaled(double[][] Q, double[][] K) {
        var products = dot(Q, K);
        double root = Math.sqrt(K[0].length);
        return of(Q.length, K.length, (i, j) -> products[(int) i][(int) j] / root);
    }

    static double[][] additive(double[][] Q, double[][] K, double[] w) {
        return of(Q.length, K.length, (i, j) -> IntStream.range(0, w.length)
                .mapToDouble(c -> w[c] * Math.tanh(Q[(int) i][c] + K[(int) j][c]))
                .sum());
    }

    static double[][] gaussian(double[][] Q, double[][] K) {
        return of(Q.length, K.length, (i, j) -> -IntStream.range(0, K[0].length)
                .mapToDouble(c -> Math.pow(Q[(int) i][c] - K[(int) j][c], 2))
                .sum() / 2);
    }

    /** The scores, and minus infinity wherever a query may not see a key. */
    static double[][] hiding(double[][] scores, BiPredicate<Integer, Integer> sees) {
        return of(scores.length, scores[0].length, (i, j) ->
                sees.test((int) i, (int) j) ? scores[(int) i][(int) j] : Double.NEGATIVE_INFINITY);
    }

    /** Nadaraya's and Watson's weights, a row for each q. */
    static double[][] kernel(double[] q, double[] k, double width) {
        return Stream.of(of(q.length, k.length, (i, j) ->
                        Math.exp(-Math.pow(q[(int) i] - k[(int) j], 2) / (2 * width * width))))
                .map(row -> DoubleStream.of(row).map(each -> each / DoubleStream.of(row).sum()))
                .map(DoubleStream::toArray)
                .toArray(double[][]::new);
    }

    static double[] averages(double[][] weights, double[] y) {
        return Stream.of(weights).mapToDouble(row -> average(row, y)).toArray();
    }

    /** Of each point's prediction from the others, or from all. */
    static double error(double width, double[] x, double[] y, boolean withoutItself) {
        double sum = 0;
        for (int i = 0; i < x.length; i++) {
            double above = 0, below = 0;
            for (int j = 0; j < x.length; j++) {
                double step = (x[i] - x[j]) / width;
                double power = withoutItself && i == j ? 0 : Math.exp(-step * step / 2);
                above += power * y[j];
                below += power;
            }
            sum += Math.pow(above / below - y[i], 2);
        }
        return sum / x.length;
    }

    static double curve(double x) {
        return Math.sin(2 * x) + x / 2;
    }
}


// %% price-list
claim("a dictionary finds the lemon, and has no answer for the lime",
        shown.equals("lemon: 40\nlime: not in the list\n"));

// %% soft-look-up
double[][] FRUITS = {{2, 1}, {0, 3}, {3, 0}};
double[][] CENTS = {{50}, {40}, {70}};

{
    claim("keys and query are those of the text",
            Plain.apart(keys, FRUITS) == 0 && Plain.apart(query, new double[] {0, 1}) == 0);
    double[] expected = {1, 3, 0}, shares = Plain.softmax(expected);
    claim("the scores are the dot products of the lime with each fruit",
            Plain.apart(scores, expected) == 0);
    claim("the weights are the softmax of the scores", Plain.apart(weights, shares) < 1e-6);
    double price = 50 * shares[0] + 40 * shares[1] + 70 * shares[2];
    claim("the answer is the average of the prices", Math.abs(answer.getFloat() - price) < 1e-4);
    var lines = shown.split("\n");
    for (int i = 0; i < 3; i++) {
        claim("a line has a fruit's score, its weight and its name",
                isShown(lines[i], 3, expected[i], shares[i]) && lines[i].endsWith(fruits.get(i)));
    }
    claim("a lime costs about 42 cents", isShown(lines[3], 0, price) && Math.rint(price) == 42);
    claim("the fruits stand in the order of their keys",
            fruits.equals(List.of("apple", "lemon", "pear")));
}

// %% from-soft-to-hard
{
    int[] factors = {0, 1, 3, 10};
    var lines = shown.split("\n");
    for (int i = 0; i < 4; i++) {
        double factor = factors[i];
        double[] shares = Plain.softmax(factor, 3 * factor, 0);
        double price = 50 * shares[0] + 40 * shares[1] + 70 * shares[2];
        double[] printed = numbersIn(lines[i]);
        claim("a line has the factor, three weights and a price", printed.length == 5
                && printed[0] == factor
                && Plain.apart(Arrays.copyOfRange(printed, 1, 4), shares) < 0.51e-3
                && Math.abs(printed[4] - price) < 0.051);
        claim("at 0 all weights are equal", i != 0 || Plain.spread(shares) < 1e-9);
        claim("at 10 they are those of a dictionary, to three decimals",
                i != 3 || Plain.apart(shares, new double[] {0, 1, 0}) < 0.5e-3);
    }
}

// %% attend
{
    double[][] Q = Plain.drawn(3, 4, 1), K = Plain.drawn(5, 4, 2), V = Plain.drawn(5, 2, 3);
    var found = attend(Plain.array(Q), Plain.array(K), Plain.array(V));
    claim("an answer is the average of the values, in the shares of its own softmax",
            Plain.apart(found, Formula.attend(Formula.dot(Q, K), V)) < 1e-5);
}

// %% three-customers
{
    double[][] asked = {{0, 1}, {1, 0}, {1, 1}}, sold = {{50, 19}, {40, 2}, {70, 17}};
    var expected = Formula.attend(Formula.dot(asked, FRUITS), sold);
    claim("the three customers get their averages", Plain.apart(answers, expected) < 1e-4);
    claim("they are printed", isShown(shown, 1, Plain.flat(expected)));
    var asking = Stream.of(shown.split("\n")).map(line -> line.split(":")[0].strip()).toList();
    claim("in their order", asking.equals(List.of("sour", "sweet", "both")));
}

// %% batches
{
    claim("the shapes are printed", isShown(shown, 0, 2, 3, 4, 2, 5, 4, 2, 5, 6, 2, 3, 6));
    for (int i = 0; i < 2; i++) {
        double[][] Q = Plain.rows(batch.get(0).get(i)), K = Plain.rows(batch.get(1).get(i));
        var expected = Formula.attend(Formula.dot(Q, K), Plain.rows(batch.get(2).get(i)));
        claim("each of a batch is answered by itself",
                Plain.apart(answers.get(i), expected) < 1e-5);
    }
}

// %% points
{
    var some = points(4000, 7);
    double[] x = Plain.row(some.x()), y = Plain.row(some.y());
    double[] true_ = DoubleStream.of(x).map(Formula::curve).toArray();
    claim("the curve is sin(2x) + x/2", Plain.apart(curve(some.x()), true_) < 1e-5);
    claim("places are sorted", Arrays.equals(x, DoubleStream.of(x).sorted().toArray()));
    for (int i = 0; i < 4000; i++) {
        claim("and lie evenly from 0 to 5", Math.abs(x[i] - i / 800.0) < 0.2);
    }
    var noise = IntStream.range(0, 4000).mapToDouble(i -> y[i] - true_[i]).toArray();
    claim("noise spreads by 0.3", Math.abs(Plain.spread(noise) - 0.3) < 0.02
            && Math.abs(Plain.mean(noise)) < 0.02);
    var steps = IntStream.range(1, 4000).mapToDouble(i -> noise[i] * noise[i - 1]).toArray();
    claim("each point has noise of its own", Math.abs(Plain.mean(steps)) < 0.01);
    claim("another seed gives other points",
            Plain.apart(points(40, 1).x(), Plain.row(points(40, 2).x())) > 0.01);
}

// %% kernel-regression
/** Of 40 points at x. */
double[] ofPlaces(double[] q, double width) {
    return Formula.averages(Formula.kernel(q, Plain.row(x), width), Plain.row(y));
}

{
    double[] q = {0, 1, 4}, k = {1, 3};
    var expected = Plain.of(3, 2, (i, j) ->
            -Math.pow(q[(int) i] - k[(int) j], 2) / (2 * 0.7 * 0.7));
    var found = closeness(manager.create(new float[] {0, 1, 4}),
            manager.create(new float[] {1, 3}), number(manager, 0.7));
    claim("the scores are -(q - k)^2 / 2 sigma^2", Plain.apart(found, expected) < 1e-4);
    double[] places = IntStream.rangeClosed(0, 100).mapToDouble(i -> i / 20.0).toArray();
    claim("it is asked at 101 places from 0 to 5", Plain.apart(between, places) < 1e-6);
    claim("of forty points", x.size() == 40 && y.size() == 40);
    claim("with three widths", fits.keySet().toString().equals("[0.05, 0.3, 3]"));
    double[] true_ = DoubleStream.of(places).map(Formula::curve).toArray();
    var errors = new ArrayList<Double>();
    fits.forEach((width, fit) -> {
        var ours = ofPlaces(places, width.doubleValue());
        claim("the fit is Nadaraya's and Watson's", Plain.apart(fit, ours) < 1e-4);
        errors.add(Plain.mean(IntStream.range(0, 101)
                .mapToDouble(i -> Math.pow(ours[i] - true_[i], 2)).toArray()));
    });
    claim("in the middle lies something useful",
            errors.get(1) < errors.get(0) && errors.get(1) < errors.get(2) / 4);
    var follows = Plain.apart(ofPlaces(Plain.row(x), 0.01), Plain.row(y));
    claim("the narrower, the more the curve follows the noise",
            follows < Plain.apart(ofPlaces(Plain.row(x), 0.3), Plain.row(y)));
    claim("with 3 it is not far from the mean of everything",
            Plain.spread(Plain.row(fits.get(3))) < 0.3 * Plain.spread(Plain.row(y)));
}

// %% three-widths
{
    double[] atX = Plain.row(x), atY = Plain.row(y);
    var words = "%s: %d points from (%s, %.2f) to (%s, %.2f)";
    claim("the points are called measured", shown.contains("measured: 40 points from (")
            && shown.contains(", %.2f) to (".formatted(atY[0]))
            && shown.contains(", %.2f), values from".formatted(atY[39])));
    claim("the true curve has its name", shown.contains(
            words.formatted("true curve", 101, 0, Formula.curve(0), 5, Formula.curve(5))));
    for (Number width : List.of(0.05, 0.3, 3)) {
        double[] ends = ofPlaces(new double[] {0, 5}, width.doubleValue());
        claim("and so have the fits", shown.contains(
                words.formatted("width " + width, 101, 0, ends[0], 5, ends[1])));
    }
    claim("the axes are called x and y", shown.contains("plot of y against x"));
}

// %% width-heatmaps
{
    double[] at = Plain.row(x), widths = {0.05, 0.3, 3};
    int i = 0;
    for (double width : widths) {
        var expected = Formula.kernel(at, at, width);
        claim("a map has the weights of each query in a row",
                Plain.apart(maps.get(i), expected) < 1e-4);
        double most = Plain.largest(expected);
        var relative = Plain.of(40, 40, (q, k) -> expected[(int) q][(int) k] / most);
        claim("it is scaled to its own maximum", Plain.apart(scaled.get(i), relative) < 1e-3);
        i++;
    }
    for (int query = 0; query < 40; query++) {
        int highest = Plain.highest(Formula.kernel(at, at, 0.05)[query]);
        claim("a narrow width makes a diagonal", Math.abs(highest - query) <= 2);
        var wide = DoubleStream.of(Formula.kernel(at, at, 3)[query]).summaryStatistics();
        claim("with a wide one every query sees everything",
                wide.getMin() > 0.2 * wide.getMax());
    }
    var names = new ArrayList<String>();
    for (var map : shown.split("(?=\"Width)")) {
        names.add(map.substring(0, map.indexOf(':')));
        claim("a map has its queries in rows and its keys in columns",
                map.contains("40 rows (Queries) by 40 columns (Keys)") && map.contains("to 1.00,"));
    }
    claim("the maps have their names",
            names.equals(List.of("\"Width 0.05\"", "\"Width 0.3\"", "\"Width 3\"")));
}

// %% without-itself
for (double width : new double[] {0.05, 0.2, 1}) {
    for (boolean withoutItself : new boolean[] {true, false}) {
        double expected = Formula.error(width, Plain.row(x), Plain.row(y), withoutItself);
        var found = error(number(manager, width), measured, withoutItself);
        claim("the error is that of predictions from the others, or from all",
                Math.abs(found.getFloat() - expected) < 1e-4);
    }
}

// %% learned-width
/** Whether hardly any error is smaller than that of this width: the descent has a hundred steps. */
boolean isBest(double width, Points points) {
    double[] x = Plain.row(points.x()), y = Plain.row(points.y());
    var others = IntStream.range(0, 60).mapToDouble(i -> 0.04 * Math.pow(1.05, i)); // to 0.7
    double least = others.map(each -> Formula.error(each, x, y, true)).min().getAsDouble();
    return Formula.error(width, x, y, true) < 1.015 * least;
}

// %% learned-widths
{
    double fromBelow = learnedWidth(measured, 0.1, true);
    double fromAbove = learnedWidth(measured, 1, true);
    claim("from either start the descent ends at about the same width",
            Math.abs(fromBelow - fromAbove) < 0.03);
    claim("where the error is smallest",
            isBest(fromBelow, measured) && isBest(fromAbove, measured));
    claim("between the two that were too narrow and too wide", fromBelow > 0.1 && fromAbove < 0.4);
    claim("where points see themselves, it ends far below", alone < fromAbove / 2);
    var own = Formula.kernel(Plain.row(x), Plain.row(x), alone);
    var itself = IntStream.range(0, 40).mapToDouble(i -> own[i][i]).toArray();
    claim("most of them see themselves more than all others", Plain.median(itself) > 0.5);
    claim("the three are printed", isShown(shown, 2, 0.1, fromBelow, 1, fromAbove, 1, alone));
}

// %% four-scores
{
    double[][] Q = Plain.drawn(3, 8, 1), K = Plain.drawn(5, 8, 2), W = Plain.drawn(8, 8, 3);
    double[][] first = Plain.drawn(8, 16, 4), second = Plain.drawn(8, 16, 5);
    double[][] last = Plain.drawn(1, 16, 6);
    NDArray q = Plain.array(Q).expandDims(0), k = Plain.array(K).expandDims(0);
    claim("the dot product", Plain.apart(dot(q, k), Formula.dot(Q, K)) < 1e-4);
    claim("the scaled dot product", Plain.apart(scaledDot(q, k), Formula.scaled(Q, K)) < 1e-4);
    claim("the bilinear score",
            Plain.apart(bilinear(q, k, Plain.array(W)), Formula.dot(Plain.times(Q, W), K)) < 1e-4);
    var expected = Formula.additive(Plain.times(Q, first), Plain.times(K, second), last[0]);
    var found = additive(q, k, Plain.array(first), Plain.array(second), Plain.array(last).get(0));
    claim("the additive score", Plain.apart(found, expected) < 1e-4);
}

// %% two-layers
double largestAnswer(int which) {
    return Plain.largest(Plain.rows(weSay.get(which)));
}

for (int i = 0; i < 2; i++) {
    double[][] q = Plain.rows(Q.get(i)), k = Plain.rows(K.get(i)), v = Plain.rows(V.get(i));
    var scaled = Formula.attend(Formula.scaled(q, k), v);
    double[][] left = Plain.through(additiveLayer.W_q, q);
    double[][] right = Plain.through(additiveLayer.W_k, k);
    var w = Plain.weights(additiveLayer.w_v)[0];
    var additive = Formula.attend(Formula.additive(left, right, w), v);
    for (var say : List.of(layersSay, weSay)) {
        claim("the layers compute the formulas, and so do we",
                Plain.apart(say.get(0).get(i), scaled) < 1e-5
                        && Plain.apart(say.get(1).get(i), additive) < 1e-5);
    }
}
claim("the additive layer has sixteen features", w.size() == 16);

// %% two-layers-shown
{
    var lines = shown.split("\n");
    for (int i = 0; i < 2; i++) {
        claim("the largest answer is printed, and that the layer says the same",
                isShown(lines[i], 4, largestAnswer(i), 0) && largestAnswer(i) > 0.1);
    }
    claim("under their names",
            lines[0].startsWith("scaled dot:") && lines[1].startsWith("  additive:"));
}

// %% gaussian-or-dot
/** How far the weights of nearness and of the dot product are from each other. */
double weightsApart(NDArray keys) {
    return IntStream.range(0, 2).mapToDouble(i -> {
        double[][] q = Plain.rows(Q.get(i)), k = Plain.rows(keys.get(i));
        var near = Plain.softmax(Formula.gaussian(q, k));
        return Plain.apart(near, Plain.softmax(Formula.dot(q, k)));
    }).max().getAsDouble();
}

{
    claim("the Gaussian score is minus half the squared distance", Plain.apart(
            gaussian(Q, K).get(1),
            Formula.gaussian(Plain.rows(Q.get(1)), Plain.rows(K.get(1)))) < 1e-4);
    double[][] all = Plain.rows(K), one = Plain.rows(equallyLong);
    for (int i = 0; i < 10; i++) {
        double length = Plain.norm(new double[][] {all[i]});
        var unit = DoubleStream.of(all[i]).map(each -> each / length).toArray();
        claim("the keys of one length have the directions they had",
                Plain.apart(one[i], unit) < 1e-6);
    }
    claim("among keys of one length nearness and dot product are the same thing",
            weightsApart(equallyLong) < 1e-6 && weightsApart(K) > 0.05);
}

// %% gaussian-or-dot-shown
claim("how far they differ is printed", isShown(shown, 4, weightsApart(K), 0));

// %% saturation
for (int at : new int[] {0, 2, 4, 6, 8}) {
    var random = new Random(at); // queries and keys of our own
    int width = 4 << at;
    double[] tops = new double[2], norms = new double[2];
    for (int which = 0; which < 2; which++) {
        double root = which == 0 ? 1 : Math.sqrt(width);
        var rows = Stream.generate(() -> {
            var query = random.doubles(width).map(each -> random.nextGaussian()).toArray();
            return Plain.softmax(random.doubles(10).map(each -> DoubleStream.of(query)
                    .map(x -> x * random.nextGaussian() / root)
                    .sum()).toArray());
        }).limit(1000).toArray(double[][]::new);
        tops[which] = Plain.peak(rows);
        norms[which] = Plain.median(Stream.of(rows).mapToDouble(Plain::slope).toArray());
    }
    for (int which = 0; which < 2; which++) {
        claim("the largest weight is that of independent queries and keys",
                Math.abs(largest[which][at] - tops[which]) < 0.03);
        claim("and so is the slope of the query in the middle",
                Math.abs(slopes[which][at] - norms[which]) < 0.03);
    }
}

{
    for (var level : List.of(largest[1], slopes[1])) {
        var all = DoubleStream.of(level).summaryStatistics();
        claim("with the root both stay about the same at every width",
                level.length == 9 && all.getMin() > 0.85 * all.getMax());
    }
    claim("without the root wide queries are nearly dictionaries",
            largest[0][8] > 0.9 && largest[0][0] < 0.6);
    claim("and the slope dwindles away", slopes[0][8] < 0.01);
    claim("widths double", Arrays.equals(widths, IntStream.range(0, 9).map(i -> 4 << i).toArray()));
}

// %% largest-weight
for (int which = 0; which < 2; which++) {
    var name = List.of("unscaled", "scaled").get(which);
    double from = largest[which][0], to = largest[which][8];
    claim("the curves have their names", shown.contains(
            "%s: 9 points from (2, %.2f) to (10, %.2f)".formatted(name, from, to)));
}

// %% slope
for (int which = 0; which < 2; which++) {
    var name = List.of("unscaled", "scaled").get(which);
    double from = slopes[which][0], to = slopes[which][8];
    claim("the curves have their names", shown.contains(
            "%s: 9 points from (2, %.2f) to (10, %.2f)".formatted(name, from, to)));
}

// %% masked
List<BiPredicate<Integer, Integer>> SEES =
        List.of((i, j) -> j < 3, (i, j) -> j <= i, (i, j) -> j < 3 && j <= i);

{
    var rows = Plain.rows(scores);
    var given = List.of(real, causal, real.logicalAnd(causal));
    var pictures = shown.split("(?<=1\\.00\\.) ");
    var titles = List.of("\"Padding\"", "\"Causal\"", "\"Both\"");
    for (int which = 0; which < 3; which++) {
        var expected = Plain.softmax(Formula.hiding(rows, SEES.get(which)));
        claim("the weights are a softmax over what each query may see",
                Plain.apart(maskedWeights(scores, given.get(which)), expected) < 1e-6);
        for (var row : expected) {
            claim("each row sums to one", Math.abs(DoubleStream.of(row).sum() - 1) < 1e-9);
        }
        long hidden = DoubleStream.of(Plain.flat(expected)).filter(each -> each == 0).count();
        double most = Plain.largest(expected);
        claim("the maps show the weights under their masks", pictures[which].contains(
                "values from 0.00 to %.2f, %d of 25 zero".formatted(most, hidden)));
        claim("they have their names, with queries in rows", pictures[which].startsWith(
                titles.get(which) + ": Heat map, 5 rows (Queries) by 5 columns (Keys)"));
    }
}

// %% last-queries
{
    double[][] rows = Plain.rows(X), scores = Formula.scaled(rows, rows);
    var expected = Formula.attend(Formula.hiding(scores, SEES.get(1)), rows);
    claim("the layer lets each query see itself and what came before",
            Plain.apart(ofAll, expected) < 1e-5);
    claim("where there are fewer queries than keys, they are the last ones",
            Plain.apart(ofTwo, Arrays.copyOfRange(expected, 3, 5)) < 1e-5);
    claim("the two see four keys and five, and there is no difference",
            isShown(shown, 4, 4, 5, 0));
}

// %% empty-row
{
    BiPredicate<Integer, Integer> sees = (i, j) -> j >= 2 && j <= i;
    double[][] byHand = Plain.rows(weights), byLayer = Plain.rows(layer.attentionWeights());
    var expected = Plain.softmax(Formula.hiding(Plain.rows(scores), sees));
    double[][] rows = Plain.rows(X);
    var ofLayer = Plain.softmax(Formula.hiding(Formula.scaled(rows, rows), sees));
    var heard = attended(layer, X, X, Map.of("causal", true, "scoreBias", hidden)).get(0);
    for (int i = 0; i < 5; i++) {
        if (i < 2) {
            claim("of a softmax over nothing plain code makes NaN",
                    DoubleStream.of(byHand[i]).allMatch(Double::isNaN));
            claim("and the layer zeros", Plain.apart(byLayer[i], new double[5]) == 0);
            claim("a query that may see nothing hears nothing",
                    Plain.apart(heard.get(i), new double[8]) == 0);
        } else {
            claim("the others see what they may", Plain.apart(byHand[i], expected[i]) < 1e-6
                    && Plain.apart(byLayer[i], ofLayer[i]) < 1e-5);
        }
    }
    var lines = shown.split("\n");
    claim("the first query's weights are printed",
            lines[0].split("NaN", -1).length == 6 && isShown(lines[1], 2, 0, 0, 0, 0, 0));
}

// %% dictionaries
/** Entries and questions of our own, drawn by Java: letters, digits, letters asked for, answers. */
long[][][] ownDictionaries(int count, int size, int seed) {
    var random = new Random(seed);
    var drawn = new long[4][count][];
    for (int i = 0; i < count; i++) {
        var letters = random.longs(0, 26).distinct().limit(size).toArray();
        var digits = random.longs(size, 0, 10).toArray();
        var order = random.ints(0, size).distinct().limit(size).toArray();
        drawn[0][i] = letters;
        drawn[1][i] = digits;
        drawn[2][i] = IntStream.of(order).mapToLong(at -> letters[at]).toArray();
        drawn[3][i] = IntStream.of(order).mapToLong(at -> digits[at]).toArray();
    }
    return drawn;
}

/** Letters, digits, letters asked for and answers, as whole numbers. */
long[][][] wholes(Examples examples) {
    var all = Stream.concat(examples.given().stream(), Stream.of(examples.answers()));
    return all.map(each -> Plain.wholeRows(each)).toArray(long[][][]::new);
}

int placeOf(long letter, long[] letters) {
    return IntStream.range(0, letters.length)
            .filter(i -> letters[i] == letter).findFirst().orElse(-1);
}

for (int size : new int[] {6, 26}) {
    var some = wholes(dictionaries(manager, 2000, size));
    double[] firsts = new double[26], counted = new double[10], places = new double[size];
    for (int i = 0; i < 2000; i++) {
        long[] letters = some[0][i], digits = some[1][i], asked = some[2][i];
        claim("no letter is in a dictionary twice", letters.length == size
                && LongStream.of(letters).distinct().count() == size);
        claim("no letter is asked for twice", LongStream.of(asked).distinct().count() == size);
        for (int j = 0; j < size; j++) {
            int place = placeOf(asked[j], letters);
            claim("the answers are the digits of the letters asked for",
                    place >= 0 && some[3][i][j] == digits[place]);
            counted[(int) digits[j]] += 10 / (2000.0 * size);
        }
        firsts[(int) letters[0]] += 26 / 2000.0;
        places[placeOf(asked[0], letters)] += size / 2000.0;
    }
    claim("letters, digits and the order of the questions are drawn evenly",
            Stream.of(firsts, places).flatMapToDouble(DoubleStream::of)
                            .allMatch(share -> Math.abs(share - 1) < 0.5)
                    && DoubleStream.of(counted).allMatch(share -> Math.abs(share - 1) < 0.15));
}

for (var line : shown.split("\n")) {
    var sides = Stream.of(line.split("  ->  ")).map(side -> List.of(side.split(" "))).toList();
    claim("six entries are printed, and the same in another order", sides.get(0).size() == 6
            && Set.copyOf(sides.get(0)).equals(Set.copyOf(sides.get(1)))
            && sides.get(0).stream().allMatch(entry -> entry.matches("[a-z]\\d")));
}
claim("three of them", shown.split("\n").length == 3);

// %% look-up
double[][] scoresOf(LookUp model, double[][] queries, double[][] keys) {
    return Formula.scaled(
            Plain.through(model.W_q, queries), Plain.through(model.W_k, keys));
}

/** What a model says to queries, keys and values; its scores are given. */
double[][] saying(LookUp model, double[][] scores, double[][] values) {
    return Plain.throughAll(
            model.output, Formula.attend(scores, Plain.through(model.W_v, values)));
}

double[][] entriesOf(LookUp model, long[] letters, long[] digits) {
    return Plain.plus(Plain.rowsAt(model.letter, letters), Plain.rowsAt(model.digit, digits));
}

double[][] answerOf(LookUp model, long[] letters, long[] digits, long[] questions) {
    var entries = entriesOf(model, letters, digits);
    return saying(model, scoresOf(model, Plain.rowsAt(model.letter, questions), entries), entries);
}

/** How often the highest of each row is right. */
double shareOfHighest(double[][][] said, long[][] right) {
    return IntStream.range(0, said.length).mapToDouble(i -> IntStream.range(0, said[i].length)
            .mapToDouble(j -> Plain.highest(said[i][j]) == right[i][j] ? 1 : 0)
            .average().getAsDouble()).average().getAsDouble();
}

NDArray[] arrays(long[][][] dictionaries) {
    return Stream.of(dictionaries).limit(3).map(each -> manager.create(each))
            .toArray(NDArray[]::new);
}

/** The parameters of a model just made: tables of spread 1, projections within 1/sqrt(32). */
boolean startsAsItShould(Block model) {
    return model.getParameters().stream().map(each -> each.getValue()).allMatch(each -> {
        double spread = Plain.spread(Plain.flat(Plain.rows(each.getArray())));
        double most = Plain.largest(Plain.rows(each.getArray()));
        return each.getName().contains("bias")
                ? most == 0
                : each.getShape().get(0) == 26 || each.getName().contains("embedding")
                        ? Math.abs(spread - 1) < 0.2
                        : most <= 1 / Math.sqrt(32) && most > 0.8 / Math.sqrt(32);
    });
}

{
    var model = initialized(new LookUp());
    var ours = ownDictionaries(5, 7, 1);
    var said = evaluate(model, arrays(ours));
    for (int i = 0; i < 5; i++) {
        claim("the model is its formula", Plain.apart(
                said.get(i), answerOf(model, ours[0][i], ours[1][i], ours[2][i])) < 1e-4);
    }
    claim("it has two tables, three matrices, and an output with its bias",
            model.getParameters().size() == 7
                    && model.getParameters().values().stream()
                            .allMatch(each -> each.requiresGradient()));
    claim("its weights start as they should", startsAsItShould(model));
}

// %% train
/** A model that remembers what it was trained on. */
class Remembering extends LookUp {
    final List<long[][]> letters = new ArrayList<>(), questions = new ArrayList<>();

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        letters.add(Plain.wholeRows(inputs.get(0)));
        questions.add(Plain.wholeRows(inputs.get(2)));
        return super.forwardInternal(store, inputs, training, more);
    }
}

/** In plain Java, what share of questions a model answers right. */
double plainShare(LookUp model, int size, BiFunction<double[][], double[][], double[][]> scores) {
    var ours = ownDictionaries(100, size, 9);
    var said = new double[100][][];
    for (int i = 0; i < 100; i++) {
        var entries = entriesOf(model, ours[0][i], ours[1][i]);
        var questions = Plain.rowsAt(model.letter, ours[2][i]);
        said[i] = saying(model, scores.apply(questions, entries), entries);
    }
    return shareOfHighest(said, ours[3]);
}

void claimAllRight(Map<Integer, double[]> shares) {
    claim("tested on 6, 12 and 26 entries",
            List.copyOf(shares.keySet()).equals(List.of(6, 12, 26)));
    shares.forEach((size, right) -> {
        claim("five seeds, from low to high", right.length == 5
                && Arrays.equals(right, DoubleStream.of(right).sorted().toArray()));
        claim("all five are right on " + size, right[0] >= 0.99 && right[4] <= 1);
    });
}

{
    var memory = new Remembering();
    trained(memory, 0, ofSix);
    claim("trained for 150 steps on 64 dictionaries of 6 entries", memory.letters.size() == 150
            && memory.letters.stream().allMatch(rows -> rows.length == 64 && rows[0].length == 6)
            && memory.questions.stream().allMatch(rows -> rows[0].length == 6));
    var known = new HashSet<String>();
    memory.letters.forEach(rows -> Stream.of(rows).map(Arrays::toString).forEach(known::add));
    claim("every batch is drawn anew", known.size() > 9500);
    for (int size : new int[] {6, 26}) {
        memory.letters.clear();
        double share = shareRight(memory, size);
        var tested = memory.letters.get(0);
        claim("tested on 500 dictionaries of the size asked for",
                tested.length == 500 && tested[0].length == size);
        claim("on new ones, that is",
                Stream.of(tested).filter(row -> known.contains(Arrays.toString(row))).count() < 5);
        claim("the share is that of right answers", Math.abs(share - plainShare(
                memory, size, (queries, keys) -> scoresOf(memory, queries, keys))) < 0.02);
    }
    claimAllRight(shares);
    for (var model : models) {
        claim("in plain Java each model is right as well, on 26 at once", plainShare(
                model, 26, (queries, keys) -> scoresOf(model, queries, keys)) > 0.98);
    }
    claim("the five models are five", models.stream()
            .map(model -> Plain.weights(model.W_q)[0][0]).distinct().count() == 5);
    claim("the first of them is that of seed 0",
            Plain.apart(Plain.weights(memory.W_q), Plain.weights(models.get(0).W_q)) < 1e-3);
    Engine.getInstance().setRandomSeed(0);
    var untrained = initialized(new LookUp());
    for (var name : untrained.getParameters().keys()) {
        var before = Plain.rows(untrained.getParameters().get(name).getArray());
        claim("all parameters are trained", Plain.apart(
                models.get(0).getParameters().get(name).getArray(), before) > 0.01);
    }
    claim("an untrained model is not right", shareRight(untrained, 6) < 0.3);
    var scores = Plain.drawn(50, 10, 4);
    var right = IntStream.range(0, 50).mapToLong(i -> i % 10).toArray();
    claim("a share counts how often the highest is right", Math.abs(
            shareOf(Plain.array(scores).expandDims(0), manager.create(right).expandDims(0))
                    - shareOfHighest(new double[][][] {scores}, new long[][] {right})) < 1e-6);
}

// %% shares
/** Whether a line for each has its size, the median, the lowest and the highest. */
boolean areShown(String text, int digits, Map<Integer, double[]> found) {
    var lines = text.split("\n");
    int at = 0;
    for (var size : found.keySet()) {
        var all = DoubleStream.of(found.get(size)).summaryStatistics();
        double median = Plain.median(found.get(size));
        if (!isShown(lines[at++].replace('-', ' '), digits,
                size, median, all.getMin(), all.getMax())) {
            return false;
        }
    }
    return at == lines.length;
}

claim("a line has the median, the lowest and the highest share", areShown(shown, 3, shares));

// %% trained-map
{
    long[] in = Plain.wholeRows(letters)[0], has = Plain.wholeRows(digits)[0];
    long[] asks = Plain.wholeRows(questions)[0];
    var model = models.get(0);
    var expected = Plain.softmax(
            scoresOf(model, Plain.rowsAt(model.letter, asks), entriesOf(model, in, has)));
    var map = Plain.rows(model.weights);
    claim("the map is that of the trained weights", Plain.apart(map, expected) < 1e-3);
    var lines = shown.split("\n");
    for (int i = 0; i < 6; i++) {
        int place = placeOf(asks[i], in);
        claim("each letter asked for finds the entry with that letter",
                place >= 0 && map[i][place] > 0.9);
        var printed = lines[1].substring(11).split(" ")[i];
        claim("entries and letters are printed in the order of the map",
                printed.equals("" + (char) ('a' + asks[i]))
                        && lines[0].substring(11).split(" ")[place].startsWith(printed));
    }
    claim("a row is a letter asked for, a column an entry",
            lines[2].contains("6 rows (Letters asked for) by 6 columns (Entries)"));
}

// %% letters-in-keys
/** The model's share of right answers where keys and values are made of one part or of both. */
double shareWith(boolean[] inKeys, boolean[] inValues) {
    long[][] in = Plain.wholeRows(letters), has = Plain.wholeRows(digits);
    long[][] asks = Plain.wholeRows(questions);
    var said = new double[in.length][][];
    for (int i = 0; i < in.length; i++) {
        double[][][] of = {Plain.rowsAt(model.letter, in[i]), Plain.rowsAt(model.digit, has[i])};
        var parts = new double[2][][];
        for (int part = 0; part < 2; part++) {
            var which = part == 0 ? inKeys : inValues;
            parts[part] = which[0] && which[1] ? Plain.plus(of[0], of[1]) : of[which[0] ? 0 : 1];
        }
        var scores = scoresOf(model, Plain.rowsAt(model.letter, asks[i]), parts[0]);
        said[i] = saying(model, scores, parts[1]);
    }
    return shareOfHighest(said, Plain.wholeRows(answers));
}

{
    boolean[] whole = {true, true}, ofLetters = {true, false}, ofDigits = {false, true};
    double[] expected = {
        shareWith(whole, whole), shareWith(ofLetters, ofDigits),
        shareWith(ofDigits, whole), shareWith(whole, ofLetters)
    };
    claim("the four shares are those of what their names say",
            Plain.apart(right, expected) < 0.003);
    claim("letters alone are enough in the keys, and digits alone in the values",
            expected[0] > 0.99 && expected[1] > 0.99);
    claim("with letters alone in the values it is right one time in ten",
            Math.abs(expected[3] - 0.1) < 0.04);
    claim("with digits alone in the keys it does little better",
            expected[2] > 0.15 && expected[2] < 0.37);
    claim("of 500 dictionaries", letters.size(0) == 500 && letters.size(1) == 6);
}

// %% letters-in-keys-shown
{
    var lines = shown.split("\n");
    var expected = List.of(
            "as trained", "letters alone in the keys, digits alone in the values",
            "digits alone in the keys", "letters alone in the values");
    for (int at = 0; at < 4; at++) {
        claim("a line has a share and its name", isShown(lines[at], 3, right[at])
                && lines[at].endsWith("  " + expected.get(at)));
    }
}

// %% removed
{
    long[][] in = Plain.wholeRows(letters), has = Plain.wholeRows(digits);
    long[][] asks = Plain.wholeRows(questions);
    double[][][] without = new double[500][][], alone = new double[500][][];
    for (int i = 0; i < 500; i++) {
        var entries = entriesOf(model, in[i], has[i]);
        var scores = scoresOf(model, Plain.rowsAt(model.letter, asks[i]), entries);
        var highest = Stream.of(scores).mapToInt(Formula::highest).toArray();
        without[i] = saying(model, Formula.hiding(scores, (q, k) -> highest[q] != k), entries);
        alone[i] = saying(model, Formula.hiding(scores, (q, k) -> highest[q] == k), entries);
    }
    double guessed = shareOfHighest(without, Plain.wholeRows(answers));
    double known = shareOfHighest(alone, Plain.wholeRows(answers));
    claim("the shares are those without the entry looked at hardest, and with it alone",
            Math.abs(kept[0] - guessed) < 0.003
                    && Math.abs(kept[1] - known) < 0.003);
    claim("without that entry the model guesses", Math.abs(guessed - 0.1) < 0.04);
    claim("with that entry alone it is as good as before", known > 0.99);
}

// %% removed-shown
{
    var lines = shown.split("\n");
    claim("both are printed", isShown(lines[0], 3, kept[0])
            && lines[0].endsWith("right with that entry hidden")
            && isShown(lines[1], 3, kept[1])
            && lines[1].endsWith("right with that entry alone"));
}

// %% same-answer
{
    double[][] ends = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    var lines = shown.split("\n");
    var ways = new HashSet<String>();
    for (var line : lines) {
        var printed = numbersIn(line);
        var average = Plain.times(new double[][] {Arrays.copyOf(printed, 4)}, ends)[0];
        claim("the answer is the average in these shares", printed.length == 6
                && Plain.apart(Arrays.copyOfRange(printed, 4, 6), average) < 1e-9);
        claim("it is the same each time", Plain.apart(average, new double[] {0.5, 0.5}) < 1e-9);
        ways.add(line.split("->")[0]);
    }
    claim("of three ways to look", ways.size() == 3 && lines.length == 3);
}

// %% solution-box
{
    double[] at = Plain.row(x), y = Plain.row(measured.y());
    int lonely = 0;
    for (int i = 0; i <= 100; i++) {
        double place = i / 20.0;
        var inside = IntStream.range(0, 40).filter(j -> Math.abs(at[j] - place) < 0.3).toArray();
        lonely += inside.length == 0 ? 1 : 0;
        claim("a box averages all points within 0.3, each alike", inside.length == 0
                ? Float.isNaN(box.getFloat(i))
                : Math.abs(box.getFloat(i) - IntStream.of(inside).mapToDouble(j -> y[j])
                        .average().getAsDouble()) < 1e-5);
    }
    claim("the difference and the places without a point are printed",
            isShown(shown, 4, 0, lonely));
}

// %% solution-width
{
    claim("of 20, 80 and 320 points", List.copyOf(byCount.keySet()).equals(List.of(20, 80, 320)));
    var medians = new ArrayList<Double>();
    byCount.forEach((count, found) -> {
        var again = new double[5];
        for (int seed = 0; seed < 5; seed++) {
            var drawn = points(count, seed);
            again[seed] = learnedWidth(drawn, 1, true);
            claim("a learned width has the smallest error", isBest(again[seed], drawn));
        }
        claim("the widths are those of five draws",
                Plain.apart(found, DoubleStream.of(again).sorted().toArray()) < 1e-3);
        medians.add(Plain.median(found));
    });
    claim("more points, narrower",
            medians.get(0) > medians.get(1) && medians.get(1) > medians.get(2));
}

// %% solution-width-shown
claim("a line has the median, the narrowest and the widest", areShown(shown, 2, byCount));

// %% solution-additive
double[][] additiveScores(AdditiveLookUp model, double[][] queries, double[][] keys) {
    return Formula.additive(
            Plain.through(model.W_q, queries), Plain.through(model.W_k, keys),
            Plain.weights(model.w)[0]);
}

{
    var ours = ownDictionaries(5, 7, 1);
    var model = initialized(new AdditiveLookUp());
    var said = evaluate(model, arrays(ours));
    for (int i = 0; i < 5; i++) {
        var entries = entriesOf(model, ours[0][i], ours[1][i]);
        var scores = additiveScores(model, Plain.rowsAt(model.letter, ours[2][i]), entries);
        claim("the additive model is its formula",
                Plain.apart(said.get(i), saying(model, scores, entries)) < 1e-4);
    }
    claimAllRight(shares);
    for (var each : additiveModels) {
        claim("in plain Java each of them is right as well", plainShare(
                each, 26, (queries, keys) -> additiveScores(each, queries, keys)) > 0.98);
    }
    claim("the five are five", additiveModels.stream()
            .map(each -> Plain.weights(each.w)[0][0]).distinct().count() == 5);
    claim("w is trained, too", Plain.largest(Plain.weights(additiveModels.get(0).w)) > 0.2);
}

// %% solution-additive-shown
claim("a line has the median, the lowest and the highest share", areShown(shown, 3, shares));

// %% solution-reversal
double[][] mapOf(Reverser model, long[] digits) {
    var keys = Plain.plus(Plain.weights(model.stands), Plain.rowsAt(model.digit, digits));
    return Plain.softmax(Formula.scaled(Plain.weights(model.asks), keys));
}

double shareReversed(Reverser model, long[][] digits) {
    var said = Stream.of(digits).map(each -> Plain.throughAll(
            model.output, Plain.times(mapOf(model, each), Plain.rowsAt(model.digit, each))));
    var right = Stream.of(digits).map(each -> IntStream.range(0, 8).mapToLong(i -> each[7 - i]))
            .map(LongStream::toArray).toArray(long[][]::new);
    return shareOfHighest(said.toArray(double[][][]::new), right);
}

{
    var read = Plain.wholeRows(test.given().head());
    var counted = new double[10];
    var digits = Stream.of(read).flatMapToLong(LongStream::of);
    digits.forEach(digit -> counted[(int) digit] += 1 / 400.0);
    claim("500 sequences of eight digits, drawn evenly", read.length == 500 && read[0].length == 8
            && DoubleStream.of(counted).allMatch(share -> Math.abs(share - 1) < 0.25));
    var random = new Random(5);
    var ours = Stream.generate(() -> random.longs(8, 0, 10).toArray()).limit(100)
            .toArray(long[][]::new);
    for (int seed = 0; seed < 5; seed++) {
        claim("a reverser writes what its formula says", Math.abs(
                reversed.get(seed) - shareReversed(reversers.get(seed), read)) < 0.002);
        claim("backwards, that is, and any digits",
                reversed.get(seed) > 0.99 && shareReversed(reversers.get(seed), ours) > 0.99);
    }
    claim("the five are five", reversers.stream()
            .map(each -> Plain.weights(each.asks)[0][0]).distinct().count() == 5);
}

// %% solution-reversal-map
{
    var lines = shown.split("\n");
    claim("the shares are printed",
            isShown(lines[0], 3, reversed.stream().mapToDouble(share -> share).toArray()));
    var map = mapOf(reversers.get(0), Plain.wholeRows(test.given().head())[0]);
    claim("the map is that of the trained weights",
            Plain.apart(reversers.get(0).weights.get(0), map) < 1e-3);
    for (int i = 0; i < 8; i++) {
        claim("the map runs from one corner to the other", map[i][7 - i] > 0.7);
    }
    claim("the first digit written looks at the last one read",
            lines[1].contains("8 rows (Digits written) by 8 columns (Digits read)")
                    && lines[1].contains("to %.2f,".formatted(Plain.largest(map))));
}

// %% solution-twice
{
    long[] in = {0, 1, 0, 2}, asks = {0};
    long[][] has = {{3, 5, 7, 9}, {7, 5, 3, 9}};
    for (int i = 0; i < 2; i++) {
        for (int seed = 0; seed < 5; seed++) {
            var model = models.get(seed);
            var entries = entriesOf(model, in, has[i]);
            var scores = scoresOf(model, Plain.rowsAt(model.letter, asks), entries);
            var map = Plain.softmax(scores)[0];
            float[] found = looked.get(seed).get(i).toFloatArray();
            claim("a weight for each of the four", found.length == 4);
            for (int j = 0; j < 4; j++) {
                claim("the weights are those of the models", Math.abs(found[j] - map[j]) < 1e-3);
            }
            claim("each gives the weight to the two entries with an a", map[0] + map[2] > 0.95);
            int highest = Plain.highest(saying(model, scores, entries)[0]);
            boolean isSure = Math.max(map[0], map[2]) > 0.8;
            claim("the answer is the highest, and the digit of the entry that has nearly all",
                    said.get(seed)[i] == highest
                            && (!isSure || highest == has[i][map[0] > map[2] ? 0 : 2]));
        }
    }
    for (int seed = 0; seed < 5; seed++) {
        float[] first = looked.get(seed).get(0).toFloatArray();
        float[] second = looked.get(seed).get(1).toFloatArray();
        claim("the entries exchanged, the weights go with them",
                Math.abs(first[0] - second[2]) < 1e-3 && Math.abs(first[2] - second[0]) < 1e-3
                        && said.get(seed)[0] == said.get(seed)[1]);
    }
}

// %% solution-twice-shown
{
    var lines = shown.split("\n");
    claim("two orders, five models each", lines.length == 12
            && lines[0].contains("a3 b5 a7 c9") && lines[6].contains("a7 b5 a3 c9"));
    for (int i = 0; i < 2; i++) {
        for (int seed = 0; seed < 5; seed++) {
            var sides = lines[6 * i + seed + 1].split("->");
            float[] weights = looked.get(seed).get(i).toFloatArray();
            var looking = IntStream.range(0, 4).mapToDouble(j -> weights[j]).toArray();
            claim("a line has four weights and an answer", isShown(sides[0], 2, looking)
                    && isShown(sides[1], 0, said.get(seed)[i]));
        }
    }
}
