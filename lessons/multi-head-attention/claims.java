// What the lesson claims, asked of its own objects. Each cell runs after the lesson's cell of the
// same name, in the same kernel; the first sentence that is not true fails it. What the lesson's
// cell has printed, with the words that stand for its figures, is in ``shown``.

// %% setup
/** What attention puts out before W_o, and the map of each head. */
record Attended(double[][] merged, List<double[][]> maps) {}

/** The lesson's formulas, in plain Java. */
class Formula extends Plain {
    /** Each head by its own columns of queries, keys and values. */
    static Attended attended(
            double[][] q, double[][] k, double[][] v, int heads, boolean causal) {
        int width = q[0].length / heads;
        var merged = new double[q.length][q[0].length];
        var maps = new ArrayList<double[][]>();
        for (int from = 0; from < q[0].length; from += width) {
            var products = times(
                    columns(q, from, from + width), transposed(columns(k, from, from + width)));
            var map = softmax(of(q.length, k.length, (i, j) -> causal && j > i
                    ? Double.NEGATIVE_INFINITY
                    : products[(int) i][(int) j] / Math.sqrt(width)));
            var found = times(map, columns(v, from, from + width));
            for (int i = 0; i < q.length; i++) {
                System.arraycopy(found[i], 0, merged[i], from, width);
            }
            maps.add(map);
        }
        return new Attended(merged, maps);
    }

    /** Self-attention with these matrices. */
    static double[][] multiHead(double[][] X, List<double[][]> matrices, int heads) {
        var q = times(X, matrices.get(0));
        var k = times(X, matrices.get(1));
        var v = times(X, matrices.get(2));
        return times(attended(q, k, v, heads, false).merged(), matrices.get(3));
    }
}

/** Whether a line has these and then their median, the lowest and the highest. */
boolean hasSpread(String line, double[] found, double... first) {
    var sorted = DoubleStream.of(found).sorted().toArray();
    var spread = DoubleStream.of(Plain.median(found), sorted[0], sorted[sorted.length - 1]);
    return isShown(line, 3, DoubleStream.concat(DoubleStream.of(first), spread).toArray());
}

// %% one-average
double[] PRICES = {50, 40, 70};
double[][] ASKED = {{0, 0, 6}, {0, 6, 0}, {0, 6, 6}};

{
    claim("each fruit has a number of its own",
            Plain.apart(keys, new double[][] {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}) == 0);
    var lines = shown.split("\n");
    for (int i = 0; i < 3; i++) {
        var shares = Plain.softmax(ASKED[i]);
        var found = numbersIn(lines[i]);
        claim("a line has a query's name, its weights and the average", found.length == 4
                && lines[i].trim().startsWith(names.get(i))
                && Plain.apart(Arrays.copyOf(found, 3), shares) <= 0.00051
                && Math.abs(found[3] - Plain.average(shares, PRICES)) <= 0.051);
    }
}

// %% two-averages
{
    double ofPear = Plain.average(Plain.softmax(ASKED[0]), PRICES);
    double ofLemon = Plain.average(Plain.softmax(ASKED[1]), PRICES);
    claim("a head for each fruit",
            Plain.apart(Plain.row(heads), new double[] {ofPear, ofLemon}) < 1e-3);
    claim("the first minus the second", Plain.apart(Plain.row(W_o), new double[] {1, -1}) == 0);
    var lines = shown.split("\n");
    claim("both prices, and both differences", isShown(lines[0], 1, ofPear, ofLemon)
            && isShown(lines[1], 1, ofPear - ofLemon) && isShown(lines[2], 1, ofLemon - ofPear));
}

// %% split-and-merge
for (int heads : new int[] {1, 3, 4}) {
    var ours = Plain.array(Plain.drawn(10, 12, heads)).reshape(2, 5, 12);
    var cut = split(ours, heads);
    claim("the heads come before the tokens",
            cut.getShape().equals(new Shape(2, heads, 5, 12 / heads)));
    for (int batch = 0; batch < 2; batch++) {
        for (int head = 0; head < heads; head++) {
            int width = 12 / heads;
            claim("a head has its own columns", Plain.apart(cut.get(batch).get(head), Plain.columns(
                    Plain.rows(ours.get(batch)), head * width, (head + 1) * width)) < 1e-6);
        }
    }
    claim("merging undoes it", Plain.apart(merge(cut), Plain.rows(ours)) < 1e-6);
}

// %% multi-head
for (int heads : new int[] {1, 2, 3, 6}) {
    double[][] x = Plain.drawn(7, 12, 1);
    var matrices = IntStream.range(2, 6).mapToObj(seed -> Plain.drawn(12, 12, seed))
            .map(each -> Plain.of(12, 12, (i, j) -> each[(int) i][(int) j] / 4))
            .toList();
    var given = matrices.stream().map(Plain::array).toList();
    var found = multiHead(Plain.array(x).expandDims(0),
            given.get(0), given.get(1), given.get(2), given.get(3), heads);
    claim("several heads are one after the other",
            Plain.apart(found, Formula.multiHead(x, matrices, heads)) < 1e-3);
}

// %% shapes
double[][] expectedOutput() {
    var matrices = Stream.of(W_q, W_k, W_v, W_o).map(Plain::rows).toList();
    return Formula.multiHead(Plain.rows(X), matrices, 2);
}

{
    var shapes = List.of("(1, 5, 8)", "(1, 5, 8)", "(1, 2, 5, 4)", "(1, 2, 5, 4)", "(1, 5, 8)",
            "(1, 5, 8)");
    var lines = shown.split("\n");
    for (int i = 0; i < 6; i++) {
        claim("each step has its shape",
                lines[i].trim().equals(names.get(i) + " " + shapes.get(i)));
    }
    claim("the last step is the layer's output",
            Plain.apart(steps.get(5), expectedOutput()) < 1e-4);
}

// %% head-by-head
claim("one head after the other is the same", Plain.apart(byHeads, expectedOutput()) < 1e-4);

// %% the-layer
claim("the layer says the same, and so do we", Plain.apart(byLayer, expectedOutput()) < 1e-4
        && Plain.apart(ours, expectedOutput()) < 1e-4);

// %% all-alike
{
    var lines = shown.split("\n");
    double largest = Plain.largest(expectedOutput());
    claim("there is no difference, and something to differ", largest > 0.5
            && isShown(lines[0], 4, largest) && isShown(lines[1], 4, 0) && isShown(lines[2], 4, 0));
}

// %% merged-wrongly
{
    double[] mixed = Plain.flat(Plain.rows(attended)), right = Plain.flat(Plain.rows(merged));
    double share = IntStream.range(0, 40).filter(i -> mixed[i] == right[i]).count() / 40.0;
    claim("the wrong ones are as they lie", Plain.apart(Plain.flat(Plain.rows(wrong)), mixed) == 0);
    var lines = shown.split("\n");
    claim("the shapes are the same", lines[0].equals("shapes: (1, 5, 8) (1, 5, 8)"));
    claim("one number in five is in its place", share == 0.2 && isShown(lines[1], 2, share));
}

// %% wrong-root
{
    double[][] q = Plain.drawn(2000, 64, 1), k = Plain.drawn(10, 64, 2);
    var products = Plain.times(q, Plain.transposed(k));
    var lines = shown.split("\n");
    double[] roots = {64, 512};
    for (int which = 0; which < 2; which++) {
        double root = Math.sqrt(roots[which]);
        double peak = Plain.peak(Plain.softmax(
                Plain.of(2000, 10, (i, j) -> products[(int) i][(int) j] / root)));
        var found = numbersIn(lines[which]);
        claim("the wrong root flattens the weights",
                found[0] == roots[which] && Math.abs(found[1] - peak) < 0.04);
    }
}

// %% costs
{
    var lines = shown.split("\n");
    int[] heads = {1, 2, 4, 8, 16};
    for (int i = 0; i < 5; i++) {
        int n = 10, d = 64, h = heads[i];
        claim("parameters and multiply-adds do not depend on the number of heads", isShown(
                lines[i + 1], 0, h, d / h, 4 * d * d, 4 * n * d * d + 2 * n * n * d, h * n * n));
    }
}

// %% questions
/** Examples as plain numbers. */
class Asked {
    final long[][] letters, first, second;
    final double[][] numbers, answers;

    Asked(Examples examples) {
        letters = Plain.wholeRows(examples.given().get(0));
        numbers = Plain.rows(examples.given().get(1));
        first = Plain.wholeRows(examples.given().get(2));
        second = Plain.wholeRows(examples.given().get(3));
        answers = Plain.rows(examples.answers());
    }
}

Asked drawnQuestions(int count, int sign) {
    try (var scratch = manager.newSubManager()) {
        return new Asked(questions(scratch, count, sign));
    }
}

for (int sign : new int[] {-1, 1}) {
    var drawn = drawnQuestions(200, sign);
    var found = new HashSet<Long>();
    for (int i = 0; i < 200; i++) {
        var numberOf = new HashMap<Long, Double>();
        for (int j = 0; j < 6; j++) {
            numberOf.put(drawn.letters[i][j], drawn.numbers[i][j]);
        }
        found.addAll(numberOf.keySet());
        claim("none of the six letters twice", numberOf.size() == 6);
        for (int j = 0; j < 6; j++) {
            long a = drawn.first[i][j], b = drawn.second[i][j];
            claim("the answer is the difference, or the sum, of two different letters", a != b
                    && Math.abs(numberOf.get(a) + sign * numberOf.get(b) - drawn.answers[i][j])
                            < 1e-4);
        }
    }
    var all = Plain.flat(drawn.numbers);
    claim("numbers of mean 0 and variance 1, and all letters", found.size() == 26
            && Math.abs(Plain.mean(all)) < 0.1 && Math.abs(Plain.spread(all) - 1) < 0.1);
}

{
    var lines = shown.split("\n");
    var words = lines[0].substring(8).trim().split(" +");
    var numberOf = new HashMap<String, Double>();
    for (int i = 0; i < 12; i += 2) {
        numberOf.put(words[i], Double.parseDouble(words[i + 1]));
    }
    claim("six entries and three questions are shown", numberOf.size() == 6 && lines.length == 4);
    for (int i = 1; i < 4; i++) {
        var said = lines[i].split(" ");
        claim("with the right answers", Math.abs(numberOf.get(said[0]) - numberOf.get(said[2])
                - Double.parseDouble(said[4])) < 0.11);
    }
}

// %% comparer
/** What the model makes of one set of entries and its questions; ``removed`` is a head, or -1. */
Attended attendedBy(Comparer model, Asked given, int i, int heads, int removed) {
    var numbers = Plain.transposed(new double[][] {given.numbers[i]});
    var entries = Plain.plus(
            Plain.rowsAt(model.letter, given.letters[i]), Plain.through(model.number, numbers));
    var queries = Plain.plus(
            Plain.rowsAt(model.first, given.first[i]), Plain.rowsAt(model.second, given.second[i]));
    var layer = model.attention;
    var found = Formula.attended(
            Plain.through(layer.W_q, queries), Plain.through(layer.W_k, entries),
            Plain.through(layer.W_v, entries), heads, false);
    int width = 32 / heads;
    for (var row : removed < 0 ? new double[0][] : found.merged()) {
        Arrays.fill(row, removed * width, (removed + 1) * width, 0);
    }
    return found;
}

double[] saidBy(Comparer model, Asked given, int i, int heads, int removed) {
    var merged = attendedBy(model, given, i, heads, removed).merged();
    return Plain.flat(Plain.throughAll(model.output, Plain.through(model.attention.W_o, merged)));
}

double errorByHand(Comparer model, Asked given, int heads, int removed) {
    return IntStream.range(0, given.letters.length).mapToObj(i -> {
        var said = saidBy(model, given, i, heads, removed);
        return IntStream.range(0, 6).mapToDouble(j -> Math.pow(said[j] - given.answers[i][j], 2));
    }).flatMapToDouble(each -> each).average().getAsDouble();
}

/** The same error over other questions. */
boolean isNear(double found, double expected) {
    return Math.abs(found - expected) <= 0.004 + 0.25 * expected;
}

{
    var sizes = new HashSet<Long>();
    for (int h : new int[] {1, 2, 4}) {
        var model = initialized(new Comparer(h));
        try (var scratch = manager.newSubManager()) {
            var examples = questions(scratch, 5, -1);
            var said = model.forward(parameters, examples.given(), false).head();
            var plain = new Asked(examples);
            for (int i = 0; i < 5; i++) {
                var ofOne = Plain.row(said.get(i).expandDims(0));
                claim("the model is its formula",
                        Plain.apart(ofOne, saidBy(model, plain, i, h, -1)) < 1e-4);
            }
        }
        sizes.add(model.getParameters().stream()
                .mapToLong(each -> each.getValue().getArray().size()).sum());
    }
    claim("equally many parameters with any number of heads", sizes.size() == 1);
}

// %% train
var unseen = drawnQuestions(300, -1);

{
    for (int h : new int[] {1, 2, 4}) {
        for (int seed : seeds) {
            claim("the errors are those of the models", isNear(
                    errors.get(h)[seed], errorByHand(models.get(h).get(seed), unseen, h, -1)));
        }
        claim("the five are five", models.get(h).stream()
                .map(each -> Plain.weights(each.letter)[0][0]).distinct().count() == 5);
    }
    Engine.getInstance().setRandomSeed(0);
    var untrained = initialized(new Comparer(2));
    for (var name : untrained.getParameters().keys()) {
        var before = Plain.rows(untrained.getParameters().get(name).getArray());
        claim("all parameters are trained", Plain.apart(
                models.get(2).get(0).getParameters().get(name).getArray(), before) > 1e-3);
    }
}

// %% errors
{
    var lines = shown.split("\n");
    var line = 1;
    for (int h : new int[] {1, 2, 4}) {
        claim("a line has the median, the lowest and the highest error",
                hasSpread(lines[line++], errors.get(h), h));
        double least = DoubleStream.of(errors.get(h)).min().getAsDouble();
        double most = DoubleStream.of(errors.get(h)).max().getAsDouble();
        claim("with one head the error stays near 1, with more it is gone",
                h == 1 ? least > 0.8 && most < 1.3 : most < 0.03);
    }
}

// %% two-heads-map
/** Whether a picture of this name shows such a map, with queries in rows. */
boolean isPictured(String picture, String name, double[][] map, String down, String across) {
    var rows = "%d rows (%s) by %d columns (%s)".formatted(
            map.length, down, map[0].length, across);
    return picture.startsWith("\"" + name + "\": Heat map, " + rows)
            && picture.contains("to %.2f,".formatted(Plain.largest(map)));
}

{
    var ours = new Asked(new Examples(given, given.get(1)));
    var maps = attendedBy(models.get(2).get(0), ours, 0, 2, -1).maps();
    var found = models.get(2).get(0).attention.attentionWeights();
    var lines = shown.split("\n");
    var pictures = lines[2].split("(?<=1\\.00\\.) ");
    var looked = new ArrayList<List<Long>>();
    for (int head = 0; head < 2; head++) {
        var map = maps.get(head);
        claim("the maps are those of the trained weights",
                Plain.apart(found.get(0).get(head), map) < 1e-3);
        claim("they are drawn under their names",
                isPictured(pictures[head], "Head " + (head + 1), map, "Questions", "Entries"));
        looked.add(Stream.of(map).map(each -> ours.letters[0][Plain.highest(each)]).toList());
    }
    var first = LongStream.of(ours.first[0]).boxed().toList();
    var second = LongStream.of(ours.second[0]).boxed().toList();
    claim("one head looks at the first letter of each question, the other at the second",
            looked.equals(List.of(first, second)) || looked.equals(List.of(second, first)));
    var asked = IntStream.range(0, 6)
            .mapToObj(i -> List.of('a' + first.get(i), 'a' + second.get(i)))
            .map(pair -> " %c-%c".formatted(pair.get(0).intValue(), pair.get(1).intValue()))
            .collect(Collectors.joining());
    claim("the questions are written beside them", lines[1].equals("questions:" + asked));
}

// %% without-a-head
{
    for (int h : new int[] {2, 4}) {
        for (int seed : seeds) {
            var costs = removed.get(h).get(seed);
            claim("each head is removed once", costs.length == h);
            for (int head = 0; head < h; head++) {
                claim("the error without a head is that of the others", isNear(
                        costs[head], errorByHand(models.get(h).get(seed), unseen, h, head)));
            }
            double least = DoubleStream.of(costs).min().getAsDouble();
            double most = DoubleStream.of(costs).max().getAsDouble();
            claim("of two each is needed; of four some, and some are not missed",
                    h == 2 ? least > 0.7 : least < 0.1 && most > 0.3);
            claim("afterwards the model hears all its heads again",
                    errorByHand(models.get(h).get(seed), unseen, h, -1) < 0.03);
        }
    }
}

// %% without-a-head-shown
{
    var lines = shown.split("\n");
    int line = 0;
    for (int h : new int[] {2, 4}) {
        claim("how many heads there are", numbersIn(lines[line++])[0] == h);
        for (int seed : seeds) {
            var expected = DoubleStream.concat(
                    DoubleStream.of(seed), DoubleStream.of(removed.get(h).get(seed))).toArray();
            claim("a line for each seed", isShown(lines[line++], 3, expected));
        }
    }
}

// %% texts
record PlainTexts(long[][] tokens, long[][] digits) {}

PlainTexts drawnTexts(int count) {
    try (var scratch = manager.newSubManager()) {
        var drawn = texts(scratch, count);
        var tokens = Plain.wholeRows(drawn.given().head());
        return new PlainTexts(tokens, Plain.wholeRows(drawn.answers()));
    }
}

/** Letter and digit, as they stand side by side in half of a text. */
List<List<Long>> pairsOf(long[] tokens, int from) {
    return IntStream.range(0, 4)
            .mapToObj(i -> List.of(tokens[from + 2 * i], tokens[from + 2 * i + 1])).toList();
}

{
    var drawn = drawnTexts(200);
    int moved = 0;
    for (int i = 0; i < 200; i++) {
        var first = pairsOf(drawn.tokens()[i], 0);
        var again = pairsOf(drawn.tokens()[i], 8);
        claim("the second half has the same pairs",
                new HashSet<>(first).equals(new HashSet<>(again)));
        claim("each with a letter of its own and a digit",
                first.stream().map(each -> each.get(0)).distinct().count() == 4
                        && first.stream().allMatch(each -> each.get(0) < 26 && each.get(1) >= 26
                                && each.get(1) < 36));
        for (int j = 0; j < 4; j++) {
            claim("what is right is the digit after the letter",
                    drawn.digits()[i][j] == again.get(j).get(1) - 26);
        }
        moved += first.equals(again) ? 0 : 1;
    }
    claim("in another order", moved > 150);
    var lines = shown.split("\n");
    for (int i = 0; i < 3; i++) {
        claim("three texts are written down",
                lines[i].equals(written(three.get(i))) && lines[i].split(" ").length == 16);
    }
}

// %% reader
/** Logits at the letters of the second half, and the layers' maps; one layer may be left out. */
Attended readBy(Reader model, long[] tokens, int leftOut) {
    var places = LongStream.range(0, 16).toArray();
    var X = Plain.plus(Plain.rowsAt(model.token, tokens), Plain.rowsAt(model.place, places));
    var maps = new ArrayList<double[][]>();
    for (int i = 0; i < model.layers.size(); i++) {
        var layer = model.layers.get(i);
        // two heads in all
        var found = Formula.attended(Plain.through(layer.W_q, X), Plain.through(layer.W_k, X),
                Plain.through(layer.W_v, X), 2 / model.layers.size(), true);
        maps.add(found.maps().get(0));
        if (i != leftOut) {
            X = Plain.plus(X, Plain.through(layer.W_o, found.merged()));
        }
    }
    var asked = new double[][] {X[8], X[10], X[12], X[14]};
    return new Attended(Plain.throughAll(model.output, asked), maps);
}

double shareByHand(Reader model, PlainTexts drawn, int leftOut) {
    int right = 0;
    for (int i = 0; i < drawn.tokens().length; i++) {
        var logits = readBy(model, drawn.tokens()[i], leftOut).merged();
        for (int j = 0; j < 4; j++) {
            right += Plain.highest(logits[j]) == drawn.digits()[i][j] ? 1 : 0;
        }
    }
    return right / (4.0 * drawn.tokens().length);
}

for (int count : new int[] {1, 2}) {
    var model = initialized(new Reader(count));
    var drawn = drawnTexts(3);
    var said = evaluate(model, manager.create(drawn.tokens()));
    for (int i = 0; i < 3; i++) {
        claim("the reader is its formula", Plain.apart(
                said.get(i), readBy(model, drawn.tokens()[i], -1).merged()) < 1e-3);
    }
}

// %% train-readers
{
    var drawn = drawnTexts(300);
    for (int count : new int[] {1, 2}) {
        for (int seed : seeds) {
            double share = shareByHand(readers.get(count).get(seed), drawn, -1);
            claim("the shares are those of the readers",
                    Math.abs(shares.get(count)[seed] - share) < 0.06);
            claim("one layer is as good as the most frequent digit, two have solved it",
                    count == 1 ? share > 0.32 && share < 0.44 : share > 0.95);
        }
        claim("the five readers are five", readers.get(count).stream()
                .map(each -> Plain.weights(each.token)[0][0]).distinct().count() == 5);
    }
    Engine.getInstance().setRandomSeed(0);
    var untrained = initialized(new Reader(2));
    for (var name : untrained.getParameters().keys()) {
        var before = Plain.rows(untrained.getParameters().get(name).getArray());
        claim("all parameters of a reader are trained", Plain.apart(
                readers.get(2).get(0).getParameters().get(name).getArray(), before) > 1e-3);
    }
}

// %% readers-shares
{
    var lines = shown.split("\n");
    claim("a line for one layer and for two",
            hasSpread(lines[0], shares.get(1), 1) && hasSpread(lines[1], shares.get(2), 2));
}

// %% readers-maps
{
    var read = Plain.wholeRows(tokens)[0];
    var byHand = readBy(readers.get(2).get(0), read, -1).maps();
    var lines = shown.split("\n");
    var pictures = lines[1].split("(?<=1\\.00\\.) ");
    var titles = List.of("First layer", "Second layer");
    claim("the text is written above", lines[0].equals(written(tokens)));
    for (int layer = 0; layer < 2; layer++) {
        var found = readers.get(2).get(0).layers.get(layer).attentionWeights();
        claim("the maps are those of the layers", Plain.apart(found, byHand.get(layer)) < 1e-3);
        claim("they are drawn under their names, queries in rows", isPictured(
                pictures[layer], titles.get(layer), byHand.get(layer), "Queries", "Keys"));
    }
    for (int digit = 1; digit < 8; digit += 2) {
        claim("in the first layer each digit looks one back",
                Plain.highest(byHand.get(0)[digit]) == digit - 1);
    }
    for (int letter = 8; letter < 16; letter += 2) {
        int at = letter;
        int before = IntStream.range(0, 8).filter(i -> read[i] == read[at]).findFirst().getAsInt();
        claim("in the second each letter looks behind its first appearance",
                Plain.highest(byHand.get(1)[letter]) == before + 1);
    }
}

// %% solution-rank
{
    var lines = shown.split("\n");
    int[] heads = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        int width = 8 / heads[i];
        claim("the rank is the head's width", isShown(lines[i], 0, heads[i], width, width));
    }
    for (int rank = 1; rank < 6; rank++) {
        var product = Plain.times(Plain.drawn(9, rank, rank), Plain.drawn(rank, 7, rank + 9));
        claim("ranks are counted right", rank(Plain.array(product)) == rank);
    }
    claim("twenty tokens of width 8", X.getShape().equals(new Shape(1, 20, 8)));
}

// %% solution-order
{
    claim("the second of two heads comes first", Arrays.equals(
            order.toIntArray(), new int[] {4, 5, 6, 7, 0, 1, 2, 3}));
    double largest = Plain.largest(expectedOutput());
    claim("before and after", Plain.apart(before, expectedOutput()) < 1e-4
            && Plain.apart(after, expectedOutput()) < 1e-4);
    double[][] whole = Plain.rows(W_q);
    claim("the columns are exchanged", Plain.apart(exchanged.apply(W_q), Plain.of(
            8, 8, (i, j) -> whole[(int) i][((int) j + 4) % 8])) == 0);
    var lines = shown.split("\n");
    claim("nothing has changed", isShown(lines[0], 4, largest) && isShown(lines[1], 4, 0));
}

// %% solution-sum
{
    var test = drawnQuestions(300, 1);
    for (int seed : seeds) {
        double found = errorByHand(adders.get(seed), test, 1, -1);
        claim("one head can add", ofSums[seed] < 0.4
                && Math.abs(ofSums[seed] - found) <= 0.01 + 0.3 * found);
    }
    claim("the five adders are five", DoubleStream.of(ofSums).distinct().count() == 5);
}

// %% solution-sum-shown
claim("the median, the lowest and the highest error", hasSpread(shown, ofSums));

// %% solution-mean-map
{
    var ours = new Asked(new Examples(given, given.get(1)));
    var byHand = attendedBy(models.get(2).get(0), ours, 0, 2, -1).maps();
    double[][] one = byHand.get(0), other = byHand.get(1);
    var mean = Plain.of(6, 6, (i, j) -> (one[(int) i][(int) j] + other[(int) i][(int) j]) / 2);
    claim("the maps are the two heads'", Plain.apart(weights.get(0).get(0), one) < 1e-3
            && Plain.apart(weights.get(0).get(1), other) < 1e-3);
    var pictures = shown.split("(?<=1\\.00\\.) ");
    var titles = List.of("Head 1", "Head 2", "Mean");
    var all = List.of(one, other, mean);
    for (int i = 0; i < 3; i++) {
        claim("three maps under their names",
                isPictured(pictures[i], titles.get(i), all.get(i), "Questions", "Entries"));
    }
    for (var row : mean) {
        claim("two entries matter in each row",
                DoubleStream.of(row).filter(each -> each > 0.25).count() == 2);
    }
}

// %% solution-without-a-layer
{
    var drawn = drawnTexts(300);
    for (int layer = 0; layer < 2; layer++) {
        for (int seed : seeds) {
            double share = shareByHand(readers.get(2).get(seed), drawn, layer);
            claim("without a layer little is left", left.get(layer)[seed] < 0.355
                    && Math.abs(left.get(layer)[seed] - share) < 0.06);
        }
    }
    claim("afterwards the readers are whole again",
            shareByHand(readers.get(2).get(0), drawn, -1) > 0.95);
}

// %% solution-without-a-layer-shown
{
    var lines = shown.split("\n");
    for (int layer = 0; layer < 2; layer++) {
        claim("a line for each layer", hasSpread(lines[layer], left.get(layer))
                && lines[layer].contains(List.of("first", "second").get(layer)));
    }
}
