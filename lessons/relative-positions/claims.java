// What the lesson claims, asked of its own objects. Each cell runs after the lesson's cell of the
// same name, in the same kernel; the first sentence that is not true fails it. What the lesson's
// cell has printed, with the words that stand for its figures, is in ``shown``.

// %% setup
/** The lesson's formulas, in plain Java. */
class Formula extends Plain {
    static double dot(double[] x, double[] y) {
        double sum = 0;
        for (int i = 0; i < x.length; i++) {
            sum += x[i] * y[i];
        }
        return sum;
    }

    static double[] plus(double[] x, double[] y) {
        return plus(new double[][] {x}, new double[][] {y})[0];
    }

    /** A pair of numbers, turned by an angle: as far from zero as before, in another direction. */
    static double[] turned(double x, double y, double angle) {
        double length = Math.hypot(x, y), direction = Math.atan2(y, x) + angle;
        return new double[] {length * Math.cos(direction), length * Math.sin(direction)};
    }

    static double[] frequencies(int d, double base) {
        return IntStream.range(0, d / 2)
                .mapToDouble(l -> 1 / Math.pow(base, 2.0 * l / d))
                .toArray();
    }

    /** A vector whose pairs are neighbours, or one from each half, turned to a position. */
    static double[] rotated(double[] x, double position, double[] omega, boolean inHalves) {
        var all = new double[x.length];
        for (int l = 0; l < omega.length; l++) {
            int one = inHalves ? l : 2 * l, other = inHalves ? l + omega.length : 2 * l + 1;
            var pair = turned(x[one], x[other], position * omega[l]);
            all[one] = pair[0];
            all[other] = pair[1];
        }
        return all;
    }

    /** Row by row, from position 0 on. */
    static double[][] rotated(double[][] X, double[] omega, boolean inHalves) {
        return IntStream.range(0, X.length)
                .mapToObj(i -> rotated(X[i], i, omega, inHalves))
                .toArray(double[][]::new);
    }

    /** A vector that stands at each of n positions. */
    static double[][] repeated(double[] x, int n) {
        return of(n, x.length, (i, j) -> x[(int) j]);
    }

    static double[][] scores(double[][] Q, double[][] K) {
        return times(Q, transposed(K));
    }

    /** The most by which numbers with one i - j differ. */
    static double spread(double[][] scores) {
        var byDistance = new HashMap<Integer, DoubleSummaryStatistics>();
        for (int i = 0; i < scores.length; i++) {
            for (int j = 0; j < scores.length; j++) {
                byDistance.computeIfAbsent(i - j, any -> new DoubleSummaryStatistics())
                        .accept(scores[i][j]);
            }
        }
        return byDistance.values().stream()
                .mapToDouble(each -> each.getMax() - each.getMin()).max().getAsDouble();
    }

    /** Far distances share a bucket until the fourth power of the distance has grown fourfold. */
    static int bucket(int distance) {
        int bucket = Math.min(distance, 4);
        while (distance >= 4 && bucket < 7
                && Math.pow(distance / 4.0, 4) >= Math.pow(4, bucket - 3) - 1e-9) {
            bucket++;
        }
        return bucket;
    }
}

/** Whether a picture of this name shows such a map, with these words beside and below it. */
boolean isPictured(String picture, String name, double[][] map, String down, String across) {
    var title = "\"" + name + "\": ";
    var rows = "Heat map, %d rows (%s) by %d columns (%s), values from".formatted(
            map.length, down, map[0].length, across);
    if (!picture.startsWith(title + rows)) {
        return false;
    }
    var found = Arrays.copyOfRange(numbersIn(picture.substring(title.length())), 2, 4);
    var expected = DoubleStream.of(Plain.flat(map)).summaryStatistics();
    return Plain.apart(found, new double[] {expected.getMin(), expected.getMax()}) < 0.0061;
}

/** The pictures of a grid, one after the other. */
String[] picturesIn(String line) {
    return line.split("(?<=\\.) (?=\")");
}

/** Whether a line has for each length the median, the lowest and the highest, and then the name. */
boolean isRow(String line, double[][] ofSeeds, String name) {
    var expected = IntStream.range(0, ofSeeds[0].length).boxed()
            .map(at -> Stream.of(ofSeeds).mapToDouble(found -> found[at]).sorted().toArray())
            .flatMapToDouble(found -> DoubleStream.of(Plain.median(found), found[0], found[4]))
            .toArray();
    return isShown(line, 2, expected) && line.endsWith(")  " + name);
}

/** Of five seeds, at one of the lengths. */
double medianOf(double[][] ofSeeds, int at) {
    return Plain.median(Stream.of(ofSeeds).mapToDouble(found -> found[at]).toArray());
}

double leastOf(double[][] ofSeeds, int at) {
    return Stream.of(ofSeeds).mapToDouble(found -> found[at]).min().getAsDouble();
}

double mostOf(double[][] ofSeeds, int at) {
    return Stream.of(ofSeeds).mapToDouble(found -> found[at]).max().getAsDouble();
}

boolean isBetween(double low, double found, double high) {
    return low <= found && found <= high;
}

// %% turn
{
    double third = Math.PI / 6;
    for (int position : new int[] {0, 1, 5, -4, 12}) {
        var expected = Formula.turned(3, -1, position * third);
        claim("a vector is turned by 30 degrees for each position", Plain.apart(
                turn(manager.create(new double[] {3, -1}), position), expected) < 1e-9);
    }
    claim("a vector is written with two decimals", written(
            manager.create(new double[] {1.234, -5})).equals("( 1.23, -5.00)"));
}

// %% turned-by-hand
double[][] QUERY_AND_KEY = {{1, 2}, {2, 2}};
int[][] STANDING = {{2, 0}, {5, 3}, {9, 7}, {5, 4}, {9, 8}, {0, 2}};

/** The query, or the key, at a position. */
double[] at(int position, double[] vector) {
    return Formula.turned(vector[0], vector[1], position * Math.PI / 6);
}

{
    claim("query, key and positions are those of the text",
            Plain.apart(query, QUERY_AND_KEY[0]) == 0 && Plain.apart(key, QUERY_AND_KEY[1]) == 0
                    && Arrays.deepEquals(pairs, STANDING));
    var lines = shown.split("\n");
    var byDistance = new HashMap<Integer, Double>();
    for (int line = 0; line < 6; line++) {
        int i = STANDING[line][0], j = STANDING[line][1];
        double[] q = at(i, QUERY_AND_KEY[0]), k = at(j, QUERY_AND_KEY[1]);
        double score = Formula.dot(q, k);
        claim("a line has two positions, the turned query and key, and the score",
                isShown(lines[line + 1], 2, i, j, q[0], q[1], k[0], k[1], score));
        double before = byDistance.computeIfAbsent(i - j, any -> score);
        claim("the score depends on the distance alone", Math.abs(score - before) < 1e-9);
    }
    claim("and on its sign", Math.abs(byDistance.get(2) - byDistance.get(-2)) > 1);
}

// %% four-terms
{
    claim("the hand is that of the text", Plain.apart(hand, new double[] {1, 0}) == 0);
    double[] q = QUERY_AND_KEY[0], k = QUERY_AND_KEY[1];
    var lines = shown.split("\n");
    var sums = new double[6];
    for (int line = 0; line < 6; line++) {
        int i = STANDING[line][0], j = STANDING[line][1];
        double[] p_i = at(i, new double[] {1, 0}), p_j = at(j, new double[] {1, 0});
        double[] terms = {Formula.dot(q, k), Formula.dot(q, p_j), Formula.dot(p_i, k),
            Formula.dot(p_i, p_j)};
        sums[line] = DoubleStream.of(terms).sum();
        claim("a line has two positions, four terms and their sum", isShown(
                lines[line + 1], 2, i, j, terms[0], terms[1], terms[2], terms[3], sums[line]));
        claim("the last term depends on the distance alone",
                Math.abs(terms[3] - Math.cos((i - j) * Math.PI / 6)) < 1e-9);
    }
    claim("the sum does not", Math.abs(sums[0] - sums[1]) > 1 && Math.abs(sums[1] - sums[2]) > 1);
}

// %% rotate
for (int width : new int[] {2, 8, 32}) {
    for (double base : new double[] {10000, 500}) {
        var expected = Formula.frequencies(width, base);
        claim("frequencies fall from 1 on, by one ratio",
                Plain.apart(frequencies(width, base), expected) < 1e-6);
        double[][] x = Plain.drawn(7, width, width);
        claim("each pair of neighbours is turned by position times frequency", Plain.apart(
                rotate(Plain.array(x), manager.arange(7), frequencies(width, base)),
                Formula.rotated(x, expected, false)) < 1e-5);
    }
}
{
    double[][] x = Plain.drawn(6, 8, 1), y = Formula.rotated(
            Stream.of(x).limit(3).toArray(double[][]::new), Formula.frequencies(8, 10000), false);
    var found = rotate(Plain.array(x).reshape(2, 3, 8), manager.arange(3), frequencies(8, 10000));
    claim("in front of the tokens there may be more axes", Plain.apart(found.get(0), y) < 1e-5);
}

// %% spread
for (int size : new int[] {1, 2, 6}) {
    double[][] drawn = Plain.drawn(size, size, size);
    claim("the most by which scores at one distance differ",
            Math.abs(spread(Plain.array(drawn)) - Formula.spread(drawn)) < 1e-5);
    claim("nothing where there is one score to a distance", spread(Plain.array(
            Plain.of(size, size, (i, j) -> Math.sin(i - j)))) == 0);
}

// %% rotary-check
double[][] queriesByHand(boolean inHalves) {
    return Formula.rotated(
            Formula.repeated(Plain.row(query), 40), Formula.frequencies(8, 10000), inHalves);
}

double[][] keysByHand(boolean inHalves) {
    return Formula.rotated(
            Formula.repeated(Plain.row(key), 40), Formula.frequencies(8, 10000), inHalves);
}

{
    claim("forty positions of one query and one key", d == 8 && n == 40
            && Plain.row(query).length == 8 && Plain.apart(query, Plain.row(key)) > 0.1);
    double[][] expected = queriesByHand(false), ofKeys = keysByHand(false);
    claim("queries and keys are turned to their positions",
            Plain.apart(q, expected) < 1e-5 && Plain.apart(k, ofKeys) < 1e-5);
    claim("and so are those of the layer", Plain.apart(byLayer, expected) < 1e-5);
    var products = Formula.scores(expected, ofKeys);
    claim("the scores are their products", Plain.apart(scores, products) < 1e-4);
    var all = DoubleStream.of(Plain.flat(products)).summaryStatistics();
    double before = Plain.norm(new double[][] {Plain.row(query)});
    double longer = Stream.of(expected).mapToDouble(row -> Plain.norm(new double[][] {row}))
            .map(length -> Math.abs(length - before)).max().getAsDouble();
    double byDistance = Formula.spread(products);
    claim("by hand nothing is left either", longer < 1e-9 && byDistance < 1e-9);
    claim("while the scores do differ", all.getMax() - all.getMin() > 1);
    var lines = shown.split("\n");
    claim("all of this is printed", isShown(lines[0], 2, all.getMin(), all.getMax())
            && isShown(lines[1], 4, byDistance) && isShown(lines[2], 4, longer)
            && isShown(lines[3], 4, 0));
}

// %% rotate-halves
for (int width : new int[] {2, 8, 32}) {
    double[][] x = Plain.drawn(7, width, width);
    claim("a number's partner is half the width away", Plain.apart(
            rotateHalves(Plain.array(x), manager.arange(7), frequencies(width, 10000)),
            Formula.rotated(x, Formula.frequencies(width, 10000), true)) < 1e-5);
}

// %% layouts
{
    int[] places = {0, 2, 4, 6, 1, 3, 5, 7};
    double[][] x = Plain.rows(X), turned = Formula.rotated(x, Formula.frequencies(8, 10000), false);
    UnaryOperator<double[][]> inOrder =
            rows -> Plain.of(rows.length, 8, (i, j) -> rows[(int) i][places[(int) j]]);
    var expected = Formula.rotated(inOrder.apply(x), Formula.frequencies(8, 10000), true);
    claim("neighbours are turned", Plain.apart(neighbours, turned) < 1e-5);
    claim("and halves, once reordered, by us and by the layer",
            Plain.apart(halves, expected) < 1e-5 && Plain.apart(byLayer, expected) < 1e-5);
    claim("the frequencies are the usual ones",
            Plain.apart(omega, Formula.frequencies(8, 10000)) < 1e-6);
    var lines = shown.split("\n");
    claim("neither has a difference", Plain.apart(inOrder.apply(turned), expected) < 1e-9
            && isShown(lines[0], 4, 0) && isShown(lines[1], 4, 0));
    claim("without the new order there is one",
            Plain.apart(turned, Formula.rotated(x, Formula.frequencies(8, 10000), true)) > 0.5);
}

// %% mixed
{
    claim("queries and keys are in halves", Plain.apart(qHalves, queriesByHand(true)) < 1e-5
            && Plain.apart(kHalves, keysByHand(true)) < 1e-5);
    double[] expected = {
        Formula.spread(Formula.scores(queriesByHand(false), keysByHand(false))),
        Formula.spread(Formula.scores(queriesByHand(true), keysByHand(true))),
        Formula.spread(Formula.scores(queriesByHand(false), keysByHand(true)))};
    var lines = shown.split("\n");
    var after = List.of("neighbours for both", "halves for both", "one of each");
    for (int i = 0; i < 3; i++) {
        claim("a line for each mixture",
                isShown(lines[i + 1], 4, expected[i]) && lines[i + 1].endsWith(after.get(i)));
    }
    claim("one of each depends on more than the distance",
            expected[0] < 1e-9 && expected[1] < 1e-9 && expected[2] > 1);
}

// %% slopes
double[] SLOPES = {1 / 2.0, 1 / 4.0, 1 / 8.0, 1 / 16.0, 1 / 32.0, 1 / 64.0, 1 / 128.0, 1 / 256.0};

{
    claim("each head's slope is half of the one before", Plain.apart(slopes, SLOPES) == 0
            && Plain.apart(manager.create(byHand), SLOPES) == 0);
    claim("they are printed, and their difference", shown.equals(
            "slopes: 1/2 1/4 1/8 1/16 1/32 1/64 1/128 1/256\nlargest difference: 0.0000\n"));
}

// %% alibi-map
/** What slopes alone make of a row: entries so far away, down to none. */
double[][] fallingBy(double slope, int n) {
    return Plain.softmax(Plain.of(
            n, n, (i, j) -> j > i ? Double.NEGATIVE_INFINITY : -slope * (i - j)));
}

{
    var heads = DoubleStream.of(SLOPES).mapToObj(slope -> fallingBy(slope, 12)).toList();
    claim("there are eight heads", weights.getShape().equals(new Shape(1, 8, 12, 12)));
    for (int head = 0; head < 8; head++) {
        claim("each head's weights fall by its slope",
                Plain.apart(weights.get(0).get(head), heads.get(head)) < 1e-5);
    }
    var lines = shown.split("\n");
    claim("the last four of the first head are printed",
            isShown(lines[0], 3, Arrays.copyOfRange(heads.get(0)[11], 8, 12)));
    var pictures = picturesIn(lines[1]);
    var titles = List.of("Slope 1/2", "Slope 1/8", "Slope 1/128");
    claim("three maps", pictures.length == 3);
    for (int i = 0; i < 3; i++) {
        claim("three heads under their slopes, queries in rows", isPictured(
                pictures[i], titles.get(i), heads.get(new int[] {0, 2, 6}[i]), "Queries", "Keys"));
    }
}

// %% clipped
{
    var lines = shown.split("\n");
    for (int i = 0; i < 6; i++) {
        int row = i;
        var expected = IntStream.range(0, 6).mapToObj(j -> "%3d".formatted(
                row - j > 3 ? 3 : row - j < -3 ? -3 : row - j));
        claim("distances end at three",
                lines[i].equals(expected.collect(Collectors.joining(" "))));
    }
}

// %% bucket
{
    for (int distance = 1; distance < 200; distance++) {
        claim("buckets grow by one ratio", bucket(distance) == Formula.bucket(distance));
    }
    var lines = shown.split("\n");
    var distances = IntStream.rangeClosed(1, 20);
    claim("twenty distances and their buckets are printed",
            isShown(lines[0], 0, distances.asDoubleStream().toArray()) && isShown(lines[1], 0,
                    1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7));
}

// %% mask-alone
{
    var lines = shown.split("\n");
    double[] alike = IntStream.range(0, 8).mapToDouble(i -> 1 / 8.0).toArray();
    double[] counted = IntStream.range(0, 8).mapToDouble(i -> 1.0 / (i + 1)).toArray();
    claim("without a mask all tokens find the same",
            isShown(lines[0], 3, alike) && lines[0].endsWith("  without a mask"));
    claim("with a causal one each finds its place",
            isShown(lines[1], 3, counted) && lines[1].endsWith("  causal mask"));
}

// %% entries
/** Examples as plain numbers. */
class Texts {
    final long[][] letters, digits, asked, answers;

    Texts(Examples examples) {
        letters = Plain.wholeRows(examples.given().get(0));
        digits = Plain.wholeRows(examples.given().get(1));
        asked = Plain.wholeRows(examples.given().get(2));
        answers = Plain.wholeRows(examples.answers());
    }

    /** Where the letter that a text is asked for stands last; -1 where it does not. */
    int last(int i) {
        int at = letters[i].length - 1;
        while (at >= 0 && letters[i][at] != asked[i][0]) {
            at--;
        }
        return at;
    }
}

Texts drawnTexts(int count, int n) {
    try (var scratch = manager.newSubManager()) {
        return new Texts(entries(scratch, count, n));
    }
}

{
    for (int n : new int[] {5, 16}) {
        var drawn = drawnTexts(300, n);
        int anew = 0;
        var seen = new HashSet<String>();
        for (int i = 0; i < 300; i++) {
            int last = drawn.last(i);
            claim("the letter is there, and the answer is the digit that it had last",
                    last >= 0 && drawn.answers[i][0] == drawn.digits[i][last]);
            int first = 0;
            while (drawn.letters[i][first] != drawn.asked[i][0]) {
                first++;
            }
            anew += first < last ? 1 : 0;
            for (int j = 0; j < n; j++) {
                seen.add(drawn.letters[i][j] + " " + drawn.digits[i][j]);
            }
        }
        claim("texts have so many entries", drawn.letters[0].length == n);
        claim("of six letters and ten digits, all together", seen.size() == 60
                && seen.stream().allMatch(each -> each.matches("[0-5] [0-9]")));
        claim("often the letter stands there twice", anew > (n == 16 ? 200 : 80));
    }
    var lines = shown.split("\n");
    claim("three texts", lines.length == 3);
    for (var line : lines) {
        claim("letters with digits, a question and its answer",
                line.matches("([a-f][0-9] ){16} [a-f]\\? [0-9]"));
        char asked = line.charAt(line.length() - 4);
        claim("the right one", line.charAt(line.lastIndexOf(asked, line.length() - 5) + 1)
                == line.charAt(line.length() - 1));
    }
}

// %% no-positions
/** A scheme, in plain Java. */
interface Hand {
    default double[] added(double[] x, int position) {
        return x;
    }

    default double[] turned(double[] x, int position) {
        return x;
    }

    default double bias(double[] q, int distance) {
        return 0;
    }
}

record Unaware() implements Hand {}

{
    double[][] x = Plain.drawn(4, 6, 1);
    var scheme = new NoPositions();
    claim("nothing is added, turned or learned", scheme.parts().isEmpty()
            && Plain.apart(scheme.add(Plain.array(x), manager.arange(4)), x) < 1e-6
            && Plain.apart(scheme.turn(Plain.array(x), manager.arange(4)), x) < 1e-6
            && Plain.largest(Plain.rows(scheme.bias(Plain.array(x), manager.arange(1, 5)))) == 0);
}

// %% finder
/** A model in plain Java, for texts of n entries. */
class ByHand {
    final Finder model;
    final Hand scheme;
    final int n;
    // By place, and there for each letter with each digit.
    final double[][][] keys, values;
    final double[][] queries; // by letter

    ByHand(Finder model, Hand scheme, int n) {
        this.model = model;
        this.scheme = scheme;
        this.n = n;
        keys = new double[n][][];
        values = new double[n][][];
        double[][] letters = Plain.weights(model.letter), digits = Plain.weights(model.digit);
        double[][] W_k = Plain.transposed(Plain.weights(model.W_k));
        double[][] W_v = Plain.transposed(Plain.weights(model.W_v));
        for (int i = 0; i < n; i++) {
            int place = i;
            var X = IntStream.range(0, 60)
                    .mapToObj(pair -> Formula.plus(letters[pair / 10], digits[pair % 10]))
                    .map(x -> scheme.added(x, place))
                    .toArray(double[][]::new);
            keys[i] = Stream.of(Plain.times(X, W_k))
                    .map(x -> scheme.turned(x, place))
                    .toArray(double[][]::new);
            values[i] = Plain.times(X, W_v);
        }
        var asked = Stream.of(letters).map(x -> scheme.added(x, n)).toArray(double[][]::new);
        queries = Stream.of(Plain.through(model.W_q, asked))
                .map(x -> scheme.turned(x, n))
                .toArray(double[][]::new);
    }

    /** What the question for a letter looks at. */
    double[] weights(long[] letters, long[] digits, long asked) {
        var q = queries[(int) asked];
        var scores = new double[n];
        for (int i = 0; i < n; i++) {
            var k = keys[i][(int) (10 * letters[i] + digits[i])];
            scores[i] = Formula.dot(q, k) / Math.sqrt(32) + scheme.bias(q, n - i);
        }
        return Plain.softmax(scores);
    }

    double[][] weights(Texts texts) {
        return IntStream.range(0, texts.letters.length)
                .mapToObj(i -> weights(texts.letters[i], texts.digits[i], texts.asked[i][0]))
                .toArray(double[][]::new);
    }

    /** For each text ten scores, one for each digit. */
    double[][] said(Texts texts) {
        var weights = weights(texts);
        var found = new double[weights.length][32];
        for (int t = 0; t < found.length; t++) {
            for (int i = 0; i < n; i++) {
                var v = values[i][(int) (10 * texts.letters[t][i] + texts.digits[t][i])];
                for (int c = 0; c < 32; c++) {
                    found[t][c] += weights[t][i] * v[c];
                }
            }
        }
        return Plain.throughAll(model.output, found);
    }
}

/** Scores and weights are those by hand, for texts of this length. */
boolean isByHand(Finder model, Hand scheme, int n) {
    try (var scratch = manager.newSubManager()) {
        var drawn = entries(scratch, 20, n);
        var texts = new Texts(drawn);
        var said = model.forward(parameters, drawn.given(), false).head();
        var byHand = new ByHand(model, scheme, n);
        return Plain.apart(said, byHand.said(texts)) < 2e-3
                && Plain.apart(model.attentionWeights, byHand.weights(texts)) < 1e-3;
    }
}

{
    var model = initialized(new Finder(new NoPositions()));
    claim("the model is its formula",
            isByHand(model, new Unaware(), 16) && isByHand(model, new Unaware(), 40));
    claim("its parts start as they should", Math.abs(Plain.spread(Plain.flat(Plain.weights(
                    model.digit))) - 1) < 0.2
            && isBetween(0.95, Plain.largest(Plain.weights(model.W_q)) * Math.sqrt(32), 1));
}

// %% schemes
/** Sinusoids that are added. */
record Added(double[] omega) implements Hand {
    @Override
    public double[] added(double[] x, int position) {
        return IntStream.range(0, x.length)
                .mapToDouble(i -> x[i] + (i % 2 == 0
                        ? Math.sin(position * omega[i / 2])
                        : Math.cos(position * omega[i / 2])))
                .toArray();
    }
}

/** Queries and keys that are turned. */
record Turned(double[] omega, boolean inHalves) implements Hand {
    @Override
    public double[] turned(double[] x, int position) {
        return Formula.rotated(x, position, omega, inHalves);
    }
}

/** Half a unit less with each position of distance. */
record Falling() implements Hand {
    @Override
    public double bias(double[] q, int distance) {
        return -0.5 * distance;
    }
}

double[] OMEGA = Formula.frequencies(32, 10000);

for (int n : new int[] {16, 40}) {
    claim("sinusoids are added",
            isByHand(initialized(new Finder(new Sinusoids())), new Added(OMEGA), n));
    claim("queries and keys are turned",
            isByHand(initialized(new Finder(new Rotary())), new Turned(OMEGA, false), n));
    claim("scores fall", isByHand(initialized(new Finder(new ALiBi())), new Falling(), n));
}

// %% learned-schemes
/** A vector for each distance, the last one for all beyond. */
record Tabled(double[][] vectors) implements Hand {
    @Override
    public double bias(double[] q, int distance) {
        var vector = vectors[Math.min(distance, vectors.length) - 1];
        return Formula.dot(q, vector) / Math.sqrt(32);
    }
}

/** A number for each bucket. */
record InBuckets(double[] numbers) implements Hand {
    @Override
    public double bias(double[] q, int distance) {
        return numbers[Formula.bucket(distance)];
    }
}

{
    var model = initialized(new Finder(new Buckets()));
    var numbers = ((Buckets) model.scheme).numbers.getParameters().valueAt(0).getArray();
    claim("eight numbers start at zero", numbers.getShape().size() == 8
            && Plain.largest(Plain.rows(numbers)) == 0);
    double[] others = Plain.flat(Plain.drawn(8, 1, 3));
    numbers.set(Plain.array(new double[][] {others}).toFloatArray());
    for (int n : new int[] {16, 40}) {
        claim("each bucket has a number", isByHand(model, new InBuckets(others), n));
        for (int reach : new int[] {16, 32}) {
            var withTable = initialized(new Finder(new Table(reach)));
            var vectors = Plain.weights(((Table) withTable.scheme).vectors);
            claim("each distance has a vector, as far as the table reaches", vectors.length == reach
                    && isByHand(withTable, new Tabled(vectors), n));
        }
    }
}

// %% train
/** The scheme of a lesson's model, with what it has learned. */
Hand schemeOf(Finder model) {
    var scheme = model.scheme;
    return scheme instanceof Sinusoids ? new Added(OMEGA)
            : scheme instanceof Rotary ? new Turned(OMEGA, false)
            : scheme instanceof ALiBi ? new Falling()
            : scheme instanceof Table table ? new Tabled(Plain.weights(table.vectors))
            : scheme instanceof Buckets buckets
                    ? new InBuckets(Plain.flat(Plain.weights(buckets.numbers)))
            : new Unaware();
}

int rightOf(double[][] said, Texts texts) {
    return (int) IntStream.range(0, said.length)
            .filter(i -> Plain.highest(said[i]) == texts.answers[i][0])
            .count();
}

/** How many of 500 questions are right; they are the ones that ``shareRight`` asks next. */
double shareByHand(Function<Texts, double[][]> model, int n) {
    int right = 0;
    for (int part = 0; part < 5; part++) {
        var texts = drawnTexts(100, n);
        right += rightOf(model.apply(texts), texts);
    }
    return right / 500.0;
}

/** The lesson's share by hand; the lesson's own function is held to it on the same texts. */
double shareHeld(Block model, Function<Texts, double[][]> byHand, int n) {
    Engine.getInstance().setRandomSeed(n);
    double ours = shareByHand(byHand, n);
    Engine.getInstance().setRandomSeed(n);
    claim("the share of right answers is that by hand",
            Math.abs(shareRight(model, n) - ours) < 0.0045); // two may be too close to call
    return ours;
}

double shareOf(Finder model, int n) {
    return shareHeld(model, new ByHand(model, schemeOf(model), n)::said, n);
}

/** The same share, of other 500 questions. */
boolean isNear(double found, double expected) {
    double p = Math.min(Math.max(expected, 0.02), 0.98);
    return Math.abs(found - expected) <= 0.01 + 4 * Math.sqrt(2 * p * (1 - p) / 500);
}

{
    var model = initialized(new Finder(new Rotary()));
    try (var scratch = manager.newSubManager()) {
        var drawn = entries(scratch, 50, 16);
        var texts = new Texts(drawn);
        var said = Plain.softmax(new ByHand(model, schemeOf(model), 16).said(texts));
        double expected = IntStream.range(0, 50)
                .mapToDouble(i -> -Math.log(said[i][(int) texts.answers[i][0]]))
                .average().getAsDouble();
        claim("the error is the cross-entropy",
                Math.abs(error(model, drawn).getFloat() - expected) < 1e-3);
    }
    claim("before training the answers are guessed", shareOf(model, 16) < 0.25);
}

// %% train-all
{
    var classes = List.of(NoPositions.class, Sinusoids.class, Rotary.class, ALiBi.class,
            Table.class, Buckets.class);
    claim("six schemes, and four lengths", List.copyOf(models.keySet()).equals(classes)
            && Arrays.equals(lengths, new int[] {16, 32, 64, 128}) && shares.size() == 6);
    for (int i = 0; i < 6; i++) {
        var ofScheme = models.get(classes.get(i));
        claim("five seeds", ofScheme.size() == 5 && shares.get(i).length == 5);
        claim("the five are five", ofScheme.stream()
                .map(each -> Plain.weights(each.letter)[0][0]).distinct().count() == 5);
        for (int seed : seeds) {
            var model = ofScheme.get(seed);
            claim("each has its own scheme", model.scheme.getClass() == classes.get(i));
            Engine.getInstance().setRandomSeed(seed);
            var untrained = initialized(new Finder(schemes.get(i).get()));
            for (var name : untrained.getParameters().keys()) {
                var before = Plain.rows(untrained.getParameters().get(name).getArray());
                double changed = Plain.apart(model.getParameters().get(name).getArray(), before);
                claim("all parameters are trained, each from its seed's",
                        isBetween(1e-3, changed, 4));
            }
            for (int at = 0; at < 4; at++) {
                claim("the models are their formulas",
                        isByHand(model, schemeOf(model), lengths[at]));
                claim("the shares are those of the models",
                        isNear(shares.get(i)[seed][at], shareOf(model, lengths[at])));
            }
        }
    }
    double[][] none = shares.get(0), sinusoids = shares.get(1), rotary = shares.get(2);
    double[][] alibi = shares.get(3), table = shares.get(4), buckets = shares.get(5);
    claim("without positions about half is right", isBetween(0.38, medianOf(none, 0), 0.55));
    claim("sinusoids hold at the trained length, and not beyond", medianOf(sinusoids, 0) >= 0.93
            && medianOf(sinusoids, 1) < 0.5 && medianOf(sinusoids, 2) < 0.3
            && medianOf(sinusoids, 3) < 0.3);
    claim("at 128 sinusoids are no better than nothing",
            medianOf(sinusoids, 3) < medianOf(none, 3) + 0.05);
    claim("turning holds at the trained length", leastOf(rotary, 0) >= 0.95);
    claim("beyond it fades, and does not fail",
            isBetween(0.8, medianOf(rotary, 1), 0.95) && isBetween(0.5, medianOf(rotary, 3), 0.85)
                    && IntStream.range(0, 3)
                            .allMatch(at -> medianOf(rotary, at) > medianOf(rotary, at + 1)));
    claim("ALiBi holds at all lengths",
            IntStream.range(0, 4).allMatch(at -> leastOf(alibi, at) >= 0.88));
    claim("the table nearly does", leastOf(table, 0) >= 0.9 && medianOf(table, 3) >= 0.8);
    claim("buckets fade", leastOf(buckets, 0) >= 0.88 && isBetween(0.8, medianOf(buckets, 1), 0.93)
            && isBetween(0.65, medianOf(buckets, 3), 0.85));
    claim("the order at eight times the length", medianOf(alibi, 3) > medianOf(table, 3)
            && medianOf(table, 3) > medianOf(buckets, 3)
            && medianOf(buckets, 3) > medianOf(rotary, 3)
            && medianOf(rotary, 3) > Math.max(medianOf(none, 3), medianOf(sinusoids, 3)));
}

// %% in-rows
{
    double[][] drawn = Plain.drawn(5, 3, 1);
    for (int at = 0; at < 3; at++) {
        int place = at;
        claim("a column is sorted", Plain.apart(column(drawn, at),
                Stream.of(drawn).mapToDouble(row -> row[place]).sorted().toArray()) == 0);
    }
}

// %% shares
List<String> SCHEMES = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");

{
    var lines = shown.split("\n");
    claim("the lengths stand above",
            isShown(lines[0], 0, 16, 32, 64, 128) && lines[0].endsWith("  entries"));
    var drawn = DoubleStream.builder().add(16);
    for (int i = 0; i < 6; i++) {
        var ofScheme = shares.get(i);
        claim("a line for each scheme", isRow(lines[i + 1], ofScheme, SCHEMES.get(i)));
        var medians = IntStream.range(0, 4).mapToDouble(at -> medianOf(ofScheme, at)).toArray();
        var all = DoubleStream.of(medians).summaryStatistics();
        if (i > 0) {
            DoubleStream.of(4, 16, medians[0], 128, medians[3], all.getMin(), all.getMax())
                    .forEach(drawn);
        }
        claim("a curve for each scheme but none",
                lines[7].contains(". " + SCHEMES.get(i) + ": 4 points") == (i > 0));
    }
    for (int at = 0; at < 4; at++) {
        for (int i = 1; i < 6; i++) {
            double low = leastOf(shares.get(i), at), high = mostOf(shares.get(i), at);
            int x = lengths[at] + i - 1;
            DoubleStream.of(2, x, low, x, high, low, high).forEach(drawn);
        }
    }
    claim("medians as curves, ranges as bars", isShown(lines[7], 2, drawn.build().toArray()));
    claim("with their names", lines[7].startsWith(
            "Line plot of Share right against Entries (trained on 16). sinusoids"));
}

// %% ask-for-all
/** The text of so many entries: once more, from its seed. */
Texts asked(int n) {
    Engine.getInstance().setRandomSeed(1);
    return drawnTexts(1, n);
}

/** What the questions for the six letters look at, by hand. */
double[][] mapOf(Class<?> scheme, int n) {
    var model = models.get(scheme).get(0);
    var byHand = new ByHand(model, schemeOf(model), n);
    var text = asked(n);
    return IntStream.range(0, 6)
            .mapToObj(letter -> byHand.weights(text.letters[0], text.digits[0], letter))
            .toArray(double[][]::new);
}

String lettersOf(int n) {
    return LongStream.of(asked(n).letters[0])
            .mapToObj(letter -> "abcdef".substring((int) letter, (int) letter + 1))
            .collect(Collectors.joining());
}

String digitsOf(int n) {
    return LongStream.of(asked(n).digits[0]).mapToObj(Long::toString).collect(Collectors.joining());
}

/** In how many rows the greatest weight lies on the last entry with the letter asked for. */
long rowsFound(double[][] map, String letters) {
    return IntStream.range(0, 6)
            .filter(letter -> Plain.highest(map[letter]) == letters.lastIndexOf('a' + letter))
            .count();
}

List<Class<?>> MAPPED = List.of(Sinusoids.class, Rotary.class, ALiBi.class);
List<String> TITLES = List.of("Sinusoids", "Rotary", "ALiBi");

for (int n : new int[] {16, 32}) {
    var found = maps(n);
    claim("a text of this length, letters above digits",
            lettersOf(n).length() == n && found.text().equals(lettersOf(n) + "\n" + digitsOf(n)));
    claim("all six letters are there", lettersOf(n).chars().distinct().count() == 6);
    claim("a map for each of three schemes",
            found.weights().getShape().equals(new Shape(3, 1, 6, n)));
    for (int i = 0; i < 3; i++) {
        claim("the maps are those by hand",
                Plain.apart(found.weights().get(i), mapOf(MAPPED.get(i), n)) < 2e-3);
    }
}

// %% maps
{
    var lines = shown.split("\n");
    var pictures = picturesIn(lines[2]);
    claim("the text, and three maps", lines[0].equals(lettersOf(16))
            && lines[1].equals(digitsOf(16)) && pictures.length == 3);
    long found = 0;
    for (int i = 0; i < 3; i++) {
        var map = mapOf(MAPPED.get(i), 16);
        claim("they are drawn under their names, letters in rows",
                isPictured(pictures[i], TITLES.get(i), map, "Letter asked for", "Entries"));
        found += rowsFound(map, lettersOf(16));
    }
    claim("nearly every question looks at the last entry with its letter", found >= 15);
}

// %% maps-past-the-end
/** Whether this is the map of one scheme, under its name, letters in rows. */
boolean isPastTheEnd(String picture, int scheme) {
    return isPictured(picture, TITLES.get(scheme), mapOf(MAPPED.get(scheme), 32), "Letter", "Entries");
}

{
    var lines = shown.split("\n");
    claim("the text, and a map", lines[0].equals(lettersOf(32))
            && lines[1].equals(digitsOf(32)) && lines.length == 3);
    claim("the first is that with sinusoids", isPastTheEnd(lines[2], 0));
    claim("with ALiBi more questions still look at the last entry with their letter",
            rowsFound(mapOf(ALiBi.class, 32), lettersOf(32))
                    > rowsFound(mapOf(Sinusoids.class, 32), lettersOf(32)));
}

// %% rotary-past-the-end
claim("the second is that with rotary positions", isPastTheEnd(shown.strip(), 1));

// %% alibi-past-the-end
claim("the third is that with ALiBi", isPastTheEnd(shown.strip(), 2));

// %% weight-found
/** On all entries with the letter, and on the last; the lesson's function is held to it. */
double[] weightOf(Finder model, int n) {
    Engine.getInstance().setRandomSeed(n);
    var texts = drawnTexts(500, n);
    var weights = new ByHand(model, schemeOf(model), n).weights(texts);
    double onAll = 0, onLast = 0;
    for (int i = 0; i < 500; i++) {
        for (int j = 0; j < n; j++) {
            onAll += texts.letters[i][j] == texts.asked[i][0] ? weights[i][j] / 500 : 0;
        }
        onLast += weights[i][texts.last(i)] / 500;
    }
    Engine.getInstance().setRandomSeed(n);
    claim("the weights are those by hand",
            Plain.apart(weightFound(model, n), new double[] {onAll, onLast}) < 1e-3);
    return new double[] {onAll, onLast};
}

{
    claim("at two lengths", List.copyOf(weight.keySet()).equals(List.of(16, 32)));
    var ofSchemes = List.copyOf(models.values());
    for (int n : new int[] {16, 32}) {
        for (int i = 0; i < 6; i++) {
            for (int seed : seeds) {
                var ours = weightOf(ofSchemes.get(i).get(seed), n);
                claim("they are about the same on other texts",
                        Plain.apart(weight.get(n).get(i)[seed], ours) < 0.13);
            }
        }
    }
    double[][] before = weight.get(16).get(1), after = weight.get(32).get(1);
    claim("sinusoids find the letter in long texts as in short ones",
            medianOf(before, 0) > 0.95 && medianOf(after, 0) > 0.95);
    claim("and no longer the last entry with it",
            medianOf(before, 1) > 0.8 && isBetween(0.1, medianOf(after, 1), 0.4));
    claim("ALiBi does", medianOf(weight.get(32).get(3), 1) > 0.6);
}

// %% weight-shown
{
    var lines = shown.split("\n");
    int line = 0;
    for (int n : new int[] {16, 32}) {
        claim("what is shown", lines[line++].equals(
                n + " entries: weight on the letter, and on the last entry with it"));
        for (int i = 0; i < 6; i++) {
            claim("a line for each scheme",
                    isRow(lines[line++], weight.get(n).get(i), SCHEMES.get(i)));
        }
    }
}

// %% stretch
/** Frequencies for a text so many times as long as in training: unchanged, linear, and so on. */
double[] stretchedBy(int way, double[] omega, double factor) {
    int d = 2 * omega.length;
    return IntStream.range(0, omega.length).mapToDouble(l -> {
        double turns = 16 * omega[l] / (2 * Math.PI);
        double slowed = omega[l] / factor;
        // from a quarter of a turn to two: from slowed to as it was
        double kept = turns >= 2 ? 1 : turns <= 0.25 ? 0 : (turns - 0.25) / 1.75;
        return switch (way) {
            case 0 -> omega[l];
            case 1 -> slowed;
            case 2 -> omega[l] * Math.pow(factor, -2.0 * l / (d - 2));
            default -> slowed + kept * (omega[l] - slowed);
        };
    }).toArray();
}

{
    var ours = List.of(unchanged, linear, largerBase, byParts);
    for (int d : new int[] {8, 32}) {
        double[] before = Formula.frequencies(d, 10000);
        for (double factor : new double[] {1, 2, 4, 8}) {
            for (int way = 0; way < 4; way++) {
                double[] expected = stretchedBy(way, before, factor);
                var found = Plain.row(ours.get(way).apply(frequencies(d, 10000), factor));
                claim("frequencies are stretched", found.length == d / 2
                        && IntStream.range(0, d / 2)
                                .allMatch(l -> Math.abs(found[l] / expected[l] - 1) < 1e-4));
            }
        }
        double[] larger = stretchedBy(2, before, 4), byFour = stretchedBy(1, before, 4);
        claim("with a larger base the fastest pair stays, the slowest is as in interpolation",
                larger[0] == 1 && Math.abs(larger[d / 2 - 1] / byFour[d / 2 - 1] - 1) < 1e-9);
    }
}

// %% wavelengths
{
    var lines = shown.split("\n");
    int[] told = {0, 1, 2, 3, 4, 6, 9, 12, 15};
    claim("nine pairs", lines.length == 10);
    for (int line = 0; line < 9; line++) {
        int pair = told[line];
        var found = numbersIn(lines[line + 1]);
        claim("a line has a pair, its turns and four wavelengths", found.length == 6
                && found[0] == pair
                && Math.abs(found[1] - 16 * OMEGA[pair] / (2 * Math.PI)) < 0.00051);
        for (int way = 0; way < 4; way++) {
            double expected = 2 * Math.PI / stretchedBy(way, OMEGA, 4)[pair];
            claim("the wavelengths are those of the formulas",
                    Math.abs(found[way + 2] - expected) < 0.051 + 1e-6 * expected
                            && Math.abs(wavelengths.get(way)[pair] / expected - 1) < 1e-4);
        }
    }
}

// %% stretched
{
    var rotaries = models.get(Rotary.class);
    claim("four ways, five seeds", stretched.size() == 4
            && stretched.stream().allMatch(each -> each.length == 5 && each[0].length == 3));
    for (int way = 0; way < 4; way++) {
        for (int seed : seeds) {
            var model = rotaries.get(seed);
            for (int at = 0; at < 3; at++) {
                int n = lengths[at + 1];
                var hand = new Turned(stretchedBy(way, OMEGA, n / 16.0), false);
                Engine.getInstance().setRandomSeed(n);
                double ours = shareByHand(new ByHand(model, hand, n)::said, n);
                Engine.getInstance().setRandomSeed(n);
                claim("the share with stretched frequencies is that by hand",
                        Math.abs(shareStretched(model, n, ways.get(way)) - ours) < 0.0045);
                claim("the shares are those of the models",
                        isNear(stretched.get(way)[seed][at], ours));
            }
            claim("afterwards the frequencies are what they were",
                    Plain.apart(((Rotary) model.scheme).frequencies, OMEGA) < 1e-6);
        }
    }
    for (int at = 0; at < 2; at++) {
        double before = medianOf(stretched.get(0), at);
        for (int way = 1; way < 4; way++) {
            claim("all three ways help at 32 and at 64", medianOf(stretched.get(way), at) > before);
        }
    }
    for (int way = 0; way < 3; way++) {
        claim("by parts is the best at 128",
                medianOf(stretched.get(3), 2) >= medianOf(stretched.get(way), 2) + 0.03);
    }
}

// %% stretched-shares
{
    var lines = shown.split("\n");
    var told = List.of("unchanged", "linear", "larger base", "by parts");
    claim("the lengths stand above",
            isShown(lines[0], 0, 32, 64, 128) && lines[0].endsWith("  entries"));
    for (int way = 0; way < 4; way++) {
        claim("a line for each way", isRow(lines[way + 1], stretched.get(way), told.get(way)));
    }
}

// %% solution-values
/** Attention among tokens from this position on, in plain Java. */
double[][] attendedFrom(double[][] X, int position, boolean turned, boolean back) {
    double[] omega = Formula.frequencies(8, 10000);
    var moved = IntStream.range(0, 6)
            .mapToObj(i -> Formula.rotated(X[i], i + position, omega, false))
            .toArray(double[][]::new);
    var products = Formula.scores(moved, moved);
    var weights = Plain.softmax(Plain.of(
            6, 6, (i, j) -> products[(int) i][(int) j] / Math.sqrt(8)));
    var Y = Plain.times(weights, turned ? moved : X);
    return IntStream.range(0, 6)
            .mapToObj(i -> back ? Formula.rotated(Y[i], -i - position, omega, false) : Y[i])
            .toArray(double[][]::new);
}

{
    double[][] x = Plain.rows(X);
    var lines = shown.split("\n");
    var after = List.of("values as they are", "values turned", "outputs turned back");
    var changes = new double[3];
    claim("six tokens of width 8", x.length == 6 && x[0].length == 8);
    for (int i = 0; i < 3; i++) {
        boolean turned = i > 0, back = i > 1;
        for (int position : new int[] {0, 5, 9}) {
            claim("the outputs are those by hand", Plain.apart(outputs(position, turned, back),
                    attendedFrom(x, position, turned, back)) < 1e-4);
        }
        changes[i] = Plain.apart(
                attendedFrom(x, 5, turned, back), attendedFrom(x, 0, turned, back));
        claim("a line for each",
                isShown(lines[i + 1], 4, changes[i]) && lines[i + 1].endsWith(after.get(i)));
    }
    claim("only turned values change, unless they are turned back",
            changes[0] < 1e-9 && changes[1] > 0.1 && changes[2] < 1e-9);
}

// %% solution-layouts
for (var model : models.get(Rotary.class)) {
    for (boolean reorder : new boolean[] {false, true}) {
        var other = inHalves(model, reorder);
        int[] places = IntStream.range(0, 32)
                .map(i -> reorder ? (i < 16 ? 2 * i : 2 * i - 31) : i).toArray();
        for (var name : model.getParameters().keys()) {
            var before = Plain.rows(model.getParameters().get(name).getArray());
            var found = other.getParameters().get(name).getArray();
            boolean isMoved = name.contains("W_q") || name.contains("W_k");
            claim("queries and keys are reordered, and nothing else", Plain.apart(
                    found, Plain.of(before.length, before[0].length,
                            (i, j) -> before[isMoved ? places[(int) i] : (int) i][(int) j])) == 0);
        }
        claim("a number's partner is in the other half",
                isByHand(other, new Turned(OMEGA, true), 16));
    }
    claim("the model itself is as it was", isByHand(model, new Turned(OMEGA, false), 16));
}

// %% solution-layouts-compared
{
    claim("three kinds, five seeds",
            inLayouts.size() == 3 && inLayouts.stream().allMatch(each -> each.length == 5));
    var rotaries = models.get(Rotary.class);
    for (int seed : seeds) {
        var model = rotaries.get(seed);
        var ours = new double[3];
        ours[0] = shareOf(model, 16);
        for (int kind = 1; kind < 3; kind++) {
            var other = inHalves(model, kind == 2);
            ours[kind] = shareHeld(other, new ByHand(other, new Turned(OMEGA, true), 16)::said, 16);
        }
        for (int kind = 0; kind < 3; kind++) {
            claim("the shares are those of the models",
                    isNear(inLayouts.get(kind)[seed][0], ours[kind]));
        }
        double trained = inLayouts.get(0)[seed][0];
        claim("as trained, nearly all is right", trained >= 0.95);
        claim("in the other layout less", inLayouts.get(1)[seed][0] <= trained - 0.05);
        claim("reordered as much, of the same questions the same", ours[2] == ours[0]
                && Math.abs(inLayouts.get(2)[seed][0] - trained) <= 0.03);
    }
}

// %% solution-layouts-shown
{
    var lines = shown.split("\n");
    var told = List.of("as trained", "in halves", "in halves, reordered");
    for (int kind = 0; kind < 3; kind++) {
        claim("a line for each kind", isRow(lines[kind], inLayouts.get(kind), told.get(kind)));
    }
}

// %% solution-untouched
/** The error of a model with this table, by hand. */
double errorOf(Finder model, double[][] vectors, Texts texts) {
    var said = Plain.softmax(new ByHand(model, new Tabled(vectors), 16).said(texts));
    return IntStream.range(0, said.length)
            .mapToDouble(i -> -Math.log(said[i][(int) texts.answers[i][0]]))
            .average().getAsDouble();
}

{
    Engine.getInstance().setRandomSeed(0);
    initialized(new Finder(new Table(32)));
    var texts = drawnTexts(64, 16); // the ones of the lesson
    double[][] found = Plain.rows(vectors.getGradient());
    double step = 1e-4;
    for (int row : new int[] {0, 1, 7, 15, 16, 31}) {
        for (int column : new int[] {0, 5, 31}) {
            double[][] above = Plain.rows(vectors), below = Plain.rows(vectors);
            above[row][column] += step;
            below[row][column] -= step;
            double more = errorOf(model, above, texts), less = errorOf(model, below, texts);
            claim("the gradient is the error's slope",
                    Math.abs(found[row][column] - (more - less) / (2 * step)) < 1e-5);
        }
    }
    for (int row = 0; row < 32; row++) {
        claim("a distance that no text has gets none",
                (Plain.largest(new double[][] {found[row]}) > 0) == (row < 16));
    }
    claim("the distances of a text are printed", shown.equals(
            "distances with a gradient:\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"));
}

// %% solution-two-layers
/** Two layers of one causal head each, in plain Java: the scores for the answer. */
double[] scoresBy(TwoLayers model, long[] letters, long[] digits, long asked) {
    var entries = Plain.plus(
            Plain.rowsAt(model.letter, letters), Plain.rowsAt(model.digit, digits));
    var X = Stream.concat(Stream.of(entries), Stream.of(Plain.rowsAt(model.letter, asked)))
            .toArray(double[][]::new);
    for (var layer : model.layers) {
        double[][] q = Plain.through(layer.W_q, X), k = Plain.through(layer.W_k, X);
        var products = Formula.scores(q, k);
        var weights = Plain.softmax(Plain.of(X.length, X.length, (i, j) -> j > i
                ? Double.NEGATIVE_INFINITY
                : products[(int) i][(int) j] / Math.sqrt(32)));
        var found = Plain.times(weights, Plain.through(layer.W_v, X));
        X = Plain.plus(X, Plain.through(layer.W_o, found));
    }
    return Plain.throughAll(model.output, new double[][] {X[X.length - 1]})[0];
}

double[][] saidBy(TwoLayers model, Texts texts) {
    return IntStream.range(0, texts.letters.length)
            .mapToObj(i -> scoresBy(model, texts.letters[i], texts.digits[i], texts.asked[i][0]))
            .toArray(double[][]::new);
}

boolean isByHand(TwoLayers model, int n) {
    try (var scratch = manager.newSubManager()) {
        var drawn = entries(scratch, 10, n);
        var said = model.forward(parameters, drawn.given(), false).head();
        return Plain.apart(said, saidBy(model, new Texts(drawn))) < 2e-3;
    }
}

{
    var model = initialized(new TwoLayers());
    claim("two layers", model.layers.size() == 2);
    claim("the model is its formula", isByHand(model, 16) && isByHand(model, 40));
}

// %% solution-two-layers-trained
{
    claim("the five are five", twoLayers.stream()
            .map(each -> Plain.weights(each.letter)[0][0]).distinct().count() == 5);
    for (int seed : seeds) {
        var model = twoLayers.get(seed);
        Engine.getInstance().setRandomSeed(seed);
        var untrained = initialized(new TwoLayers());
        for (var name : untrained.getParameters().keys()) {
            var before = Plain.rows(untrained.getParameters().get(name).getArray());
            double changed = Plain.apart(model.getParameters().get(name).getArray(), before);
            claim("all parameters are trained, each from its seed's", isBetween(1e-3, changed, 4));
        }
        claim("the share at the trained length is that by hand", isNear(
                found[seed][0], shareHeld(model, texts -> saidBy(model, texts), 16)));
        for (int at = 1; at < 4; at++) {
            claim("the models are their formulas", isByHand(model, lengths[at]));
            var texts = drawnTexts(100, lengths[at]);
            double ours = rightOf(saidBy(model, texts), texts) / 100.0;
            double p = Math.min(Math.max(ours, 0.02), 0.98);
            claim("and the shares theirs", Math.abs(found[seed][at] - ours)
                    <= 0.01 + 4 * Math.sqrt(p * (1 - p) * (1 / 100.0 + 1 / 500.0)));
        }
    }
    claim("two layers find much at the trained length, and little beyond",
            isBetween(0.7, medianOf(found, 0), 0.92) && medianOf(found, 3) < 0.4);
}

// %% solution-two-layers-shown
{
    var lines = shown.split("\n");
    claim("the lengths stand above, the shares below", isShown(lines[0], 0, 16, 32, 64, 128)
            && lines[0].endsWith("  entries") && isRow(lines[1], found, "two layers"));
}
