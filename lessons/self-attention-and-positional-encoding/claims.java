// What the lesson claims, asked of its own objects. Each cell runs after the lesson's cell of the
// same name, in the same kernel; the first sentence that is not true fails it. What the lesson's
// cell has printed, with the words that stand for its figures, is in ``shown``.

// %% setup
/** The lesson's formulas, in plain Java. */
class Formula extends Plain {
    /** The encoding, by its formula. */
    static double[][] sines(int rows, int width) {
        return of(rows, width, (i, column) -> {
            double angle = i * Math.pow(10000, -2 * Math.floor(column / 2) / width);
            return column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
        });
    }

    /** Row i, pair by pair, turned by the angle of position i, as complex numbers are. */
    static double[][] turned(double[][] X) {
        int width = X[0].length;
        var P = sines(X.length, width);
        return of(X.length, width, (row, column) -> {
            int i = (int) row, l = (int) column / 2 * 2;
            double sin = P[i][l], cos = P[i][l + 1];
            return column % 2 == 0
                    ? X[i][l] * cos + X[i][l + 1] * sin
                    : X[i][l + 1] * cos - X[i][l] * sin;
        });
    }

    static int[] all(int n) {
        return IntStream.range(0, n).map(i -> n).toArray();
    }

    static int[] causal(int n) {
        return IntStream.rangeClosed(1, n).toArray();
    }

    /** What a layer computes of one sequence; its weights go into ``maps``, one for each head. */
    static double[][] multiHead(
            MultiHeadAttention layer,
            double[][][] maps,
            boolean isRotary,
            double[][] X,
            double[][] values,
            int[] lens) {
        return multiHead(layer, maps, isRotary, X, X, values, lens);
    }

    static double[][] multiHead(
            MultiHeadAttention layer,
            double[][][] maps,
            boolean isRotary,
            double[][] queries,
            double[][] keys,
            double[][] values,
            int[] lens) {
        int n = queries.length, heads = maps.length, size = queries[0].length / heads;
        double[][] Q = through(layer.W_q, queries), K = through(layer.W_k, keys);
        double[][] V = through(layer.W_v, values), pooled = new double[n][0];
        for (int h = 0; h < heads; h++) {
            double[][] q = columns(Q, h * size, h * size + size);
            double[][] k = columns(K, h * size, h * size + size);
            var products = times(isRotary ? turned(q) : q, transposed(isRotary ? turned(k) : k));
            maps[h] = softmax(of(n, n, (i, j) ->
                    j < lens[(int) i]
                            ? products[(int) i][(int) j] / Math.sqrt(size)
                            : Double.NEGATIVE_INFINITY));
            var output = times(maps[h], columns(V, h * size, h * size + size));
            for (int i = 0; i < n; i++) {
                var before = DoubleStream.of(pooled[i]);
                pooled[i] = DoubleStream.concat(before, DoubleStream.of(output[i])).toArray();
            }
        }
        return through(layer.W_o, pooled);
    }

    /** The norm of dy_i/dx_j of a layer with two heads, by finite differences. */
    static double[][] influence(MultiHeadAttention layer, double[][] X, int[] lens) {
        int n = X.length, d = X[0].length;
        double step = 1e-4;
        var squares = new double[n][n];
        for (int j = 0; j < n; j++) {
            for (int column = 0; column < d; column++) {
                var ends = new double[2][][];
                for (int side = 0; side < 2; side++) {
                    var moved = Stream.of(X).map(double[]::clone).toArray(double[][]::new);
                    moved[j][column] += side == 0 ? step : -step;
                    ends[side] = multiHead(layer, new double[2][][], false, moved, moved, lens);
                }
                for (int i = 0; i < n; i++) {
                    for (int k = 0; k < d; k++) {
                        squares[i][j] += Math.pow((ends[0][i][k] - ends[1][i][k]) / (2 * step), 2);
                    }
                }
            }
        }
        return of(n, n, (i, j) -> Math.sqrt(squares[(int) i][(int) j]));
    }

    /** What sets tokens apart, relative to the whole. */
    static double diversity(double[][] X) {
        double[][] columns = transposed(X);
        return norm(of(X.length, columns.length, (i, j) ->
                X[(int) i][(int) j] - mean(columns[(int) j]))) / norm(X);
    }
}

double[][] WORDS = {{0, 0}, {3, 0}, {0, 2}, {0, 0}, {1, 0}, {0, 2}};

/** What is printed of weights and new vectors, a row for each word. */
double[] ofWords(double[][] weights, double[][] values) {
    var output = Plain.times(weights, values);
    var rows = IntStream.range(0, 6).mapToObj(i -> new double[][] {weights[i], output[i]});
    return rows.flatMapToDouble(row -> DoubleStream.of(Plain.flat(row))).toArray();
}

// %% six-words
{
    double[] expected = {0, 3, 0, 0, 1, 0}, shares = Plain.softmax(expected);
    claim("the scores are the dot products with the fifth word",
            Plain.apart(scores, expected) == 0);
    claim("the weights are the softmax of the scores",
            Plain.apart(weights, shares) < 1e-6);
    var rows = new double[14];
    for (int i = 0; i < 6; i++) {
        rows[2 * i] = expected[i];
        rows[2 * i + 1] = shares[i];
        rows[12] += shares[i] * WORDS[i][0];
        rows[13] += shares[i] * WORDS[i][1];
    }
    claim("scores, weights and their average are what is printed", isShown(shown, 2, rows));
    claim("it has become mostly cat", shares[1] > 0.74 && rows[12] > 2);
}

// %% all-words
{
    var expected = Plain.softmax(Plain.times(WORDS, Plain.transposed(WORDS)));
    claim("each word's weights are a softmax over its row", Plain.apart(weights, expected) < 1e-6);
    claim("a row has a word's weights and its new vector",
            isShown(shown, 2, ofWords(expected, WORDS)));
}

// %% three-roles
{
    var asked = Plain.times(WORDS, new double[][] {{1, 0}, {1, 0}});
    var expected = Plain.times(asked, Plain.transposed(WORDS));
    claim("purred's query meets the cat's key with 6, and the cat's meets purred's with 0",
            Plain.apart(Q.matMul(K.transpose()), expected) == 0
                    && expected[5][1] == 6
                    && expected[1][5] == 0);
    claim("a row has a word's weights and its new vector",
            isShown(shown, 2, ofWords(Plain.softmax(expected), WORDS)));
}

// %% saturation
for (int i : new int[] {0, 4, 8}) {
    double[][] as = Plain.rows(plain.get(i)), queries = Plain.drawn(1000, widths[i], 1);
    double root = Math.sqrt(widths[i]);
    claim("a thousand queries have ten scores each",
            plain.get(i).getShape().equals(new Shape(1000, 10)));
    claim("the scaled scores are the plain ones over the root of the width",
            Plain.apart(scaled.get(i).mul(root), as) < 1e-4 * root);
    claim("plain scores spread like the root of the width",
            Math.abs(Plain.spread(Plain.flat(as)) / root - 1) < 0.1);
    var random = new Random(2); // keys of our own, ten for each query
    var ours = Plain.of(1000, 10, (query, key) -> DoubleStream.of(queries[(int) query])
            .map(x -> x * random.nextGaussian())
            .sum());
    claim("the weights saturate as those of independent queries and keys",
            Math.abs(Plain.peak(Plain.softmax(ours)) - Plain.peak(Plain.softmax(as))) < 0.04);
}

// %% scaling
{
    var rows = shown.split("\n");
    for (int i = 0; i < 6; i++) {
        var scores = Plain.rows((i % 2 == 0 ? plain : scaled).get(i / 2 * 4));
        double spread = Plain.spread(Plain.flat(scores)), peak = Plain.peak(Plain.softmax(scores));
        claim("a row has a width, its scores' spread and the mean of the largest weights",
                isShown(rows[i], 2, 4 << i / 2 * 4, spread, peak));
    }
}

// %% slopes
for (var each : List.of(plain.get(0), plain.get(4), scaled.get(0), scaled.get(8))) {
    var norms = Stream.of(Plain.softmax(Plain.rows(each))).mapToDouble(Plain::slope).toArray();
    claim("the slope is the median over the queries",
            Math.abs(slope(each) - Plain.median(norms)) < 5e-3);
}

{
    double[] falling = slopes(plain), level = DoubleStream.of(slopes(scaled)).sorted().toArray();
    claim("with the root the slope hardly depends on the width", level[0] > 0.8 * level[8]);
    claim("without it there is next to nothing left", falling[0] > 0.2 && falling[8] < 0.05);
    var words = "unscaled: 9 points from (2, %.2f) to (10, %.2f)";
    claim("the curve without the root is called unscaled",
            shown.contains(words.formatted(falling[0], falling[8])));
}

// %% shape-check
claim("the shape stays as it was", isShown(shown, 0, 2, 4, 100));

// %% by-hand
for (int i = 0; i < 2; i++) {
    int valid = i == 0 ? 3 : 2;
    int[] lens = {valid, valid, valid, valid};
    var rows = Plain.rows(X.get(i));
    var expected = Formula.multiHead(attention, new double[5][][], false, rows, rows, lens);
    claim("the layer computes the formula", Plain.apart(Y.get(i), expected) < 1e-5);
    claim("by hand it is the formula, too", Plain.apart(byHand.get(i), expected) < 1e-5);
}

// %% by-hand-difference
claim("the largest number and the largest difference are printed",
        isShown(shown, 5, Plain.largest(Plain.rows(Y)), 0));

// %% weights-heatmaps
for (int i = 0; i < 2; i++) {
    var maps = new double[5][][];
    var rows = Plain.rows(X.get(i));
    int valid = i == 0 ? 3 : 2;
    Formula.multiHead(attention, maps, false, rows, rows, new int[] {valid, valid, valid, valid});
    for (int h = 0; h < 5; h++) {
        claim("the weights are the softmax's, and padding gets none",
                Plain.apart(weights.get(i).get(h), maps[h]) < 1e-5);
    }
}

// %% equivariance
{
    int[] shuffle = {3, 0, 5, 1, 4, 2};
    var rows = Plain.rows(tokens);
    var moved = IntStream.of(shuffle).mapToObj(i -> rows[i]).toArray(double[][]::new);
    double[] apart = new double[2], upTo = new double[2];
    for (int masked = 0; masked < 2; masked++) {
        int[] lens = masked == 0 ? Formula.all(6) : Formula.causal(6);
        var after = Formula.multiHead(attention, new double[5][][], false, moved, moved, lens);
        var before = Formula.multiHead(attention, new double[5][][], false, rows, rows, lens);
        var both = IntStream.of(shuffle).mapToObj(i -> before[i]).toArray(double[][]::new);
        apart[masked] = Plain.apart(after, both);
        upTo[masked] = Plain.largest(before);
    }
    claim("six tokens are moved", !Arrays.equals(rows, moved) && rows.length == 6);
    claim("without a mask order goes unseen, with one it does not",
            apart[0] < 1e-12 && apart[1] > 0.01);
    claim("these are printed", isShown(shown, 4, upTo[0], apart[0], upTo[1], apart[1]));
}

// %% three-layers
{
    for (var W : List.of(W_xh, W_hh)) {
        var square = Plain.times(Plain.rows(W), Plain.transposed(Plain.rows(W)));
        var identity = Plain.of(d, d, (i, j) -> i == j ? 1 : 0);
        claim("the RNN's matrices are orthogonal", Plain.apart(square, identity) < 1e-5);
    }
    claim("the RNN has two matrices", Plain.apart(W_xh, Plain.rows(W_hh)) > 0.1);
    double[][] H = new double[1][d], inputs = Plain.times(Plain.rows(X), Plain.rows(W_xh));
    var Y = rnn(X, W_hh);
    for (int t = 0; t < n; t++) {
        var sum = Plain.plus(new double[][] {inputs[t]}, Plain.times(H, Plain.rows(W_hh)));
        H = Plain.of(1, d, (i, j) -> Math.tanh(sum[0][(int) j]));
        claim("the RNN computes its formula", Plain.apart(Y.get(0).get(t), H) < 1e-5);
    }
    claim("each layer keeps the shape", isShown(shown, 0, 1, 10, 16, 1, 10, 16, 1, 10, 16));
}

// %% influence-heatmaps
{
    // By finite differences: each number of X is moved up and down.
    double step = 0.01;
    var moves = manager.eye(n * d).reshape(n * d, n, d).mul(step);
    int which = 0;
    for (var layer : layers.values()) {
        var change = layer.apply(X.add(moves)).sub(layer.apply(X.sub(moves))).div(2 * step);
        var squares = change.reshape(n, d, n, d).square().sum(new int[] {1, 3});
        var norms = Plain.transposed(Plain.rows(squares.sqrt())); // they were (inputs, outputs)
        var map = Plain.rows(maps.get(which));
        claim("influence is the norm of the derivative of output i for input j",
                Plain.apart(map, norms) < 0.01 * Plain.largest(norms));
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                boolean[] connected = {Math.abs(i - j) <= 1, j <= i, true};
                claim("the pictures are a band, a lower triangle, and everything",
                        map[i][j] > 0 == connected[which]);
            }
        }
        which++;
    }
    var printed = numbersIn(shown.substring(0, shown.indexOf("\"CNN\"")));
    claim("28, 55 and 100 of 100 pairs are connected",
            Arrays.equals(printed, new double[] {28, 100, 55, 100, 100, 100}));
    claim("each map is scaled to its own maximum",
            shown.split("values from 0.00 to 1.00", -1).length >= 3);
}

// %% reach
{
    for (int depth = 1; depth <= 4; depth++) {
        var map = Plain.rows(seen.get(depth - 1));
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                claim("a further convolution reaches one place further on both sides",
                        map[i][j] > 0 == Math.abs(i - j) <= depth);
            }
        }
    }
    var lines = shown.split("\n");
    claim("after two layers y_3 depends on x_1 to x_5",
            lines[0].endsWith(" x_1, x_2, x_3, x_4, x_5"));
    for (int depth = 1; depth <= 4; depth++) {
        claim("x_1 reaches y_5 with the fourth layer",
                lines[depth].endsWith(depth < 4 ? "no" : "yes"));
    }
}

// %% sequential-operations
claim("only the RNN takes more steps for a longer sequence",
        isShown(shown, 0, 4, 1, 4, 4, 8, 1, 8, 4, 16, 1, 16, 4, 32, 1, 32, 4));

// %% multiply-adds
{
    var rows = IntStream.of(8, 16, 32, 64, 128).mapToObj(n ->
            new double[] {n, 3 * n * 256, 2 * n * 256, 4 * n * 256 + 2 * n * n * 16});
    claim("multiply-adds are those of the formulas",
            isShown(shown, 0, rows.flatMapToDouble(DoubleStream::of).toArray()));
    claim("all five are as predicted", shown.split(" yes\n", -1).length == 6);
}

// %% binary
{
    var counted = IntStream.range(0, 8).mapToObj(i -> "" + i / 4 + i / 2 % 2 + i % 2).toList();
    var last = Stream.of(shown.split("\n")).map(row -> row.substring(row.length() - 3)).toList();
    claim("zero to seven are counted in three bits", last.equals(counted));
}

// %% sinusoids
{
    for (int[] size : new int[][] {{3, 4}, {20, 7}, {1000, 32}, {5, 1}}) {
        claim("the sinusoids are those of the formula",
                Plain.apart(sinusoids(size[0], size[1]), Formula.sines(size[0], size[1])) < 1e-6);
    }
    var P = Formula.sines(3, 4);
    var rows = IntStream.range(0, 3).mapToObj(i ->
            DoubleStream.concat(DoubleStream.of(i), DoubleStream.of(P[i])));
    claim("the first three rows are printed",
            isShown(shown, 2, rows.flatMapToDouble(row -> row).toArray()));
}

// %% positional-encoding
{
    var zeros = manager.zeros(new Shape(1, 5, 7));
    var layer = new PositionalEncoding(7, 0, 10);
    for (int offset : new int[] {0, 3, 5}) {
        var rows = Arrays.copyOfRange(Formula.sines(10, 7), offset, offset + 5);
        var added = evaluate(layer, zeros.add(1), manager.create(offset)).sub(1);
        claim("the encoding adds the rows from its offset on", Plain.apart(added, rows) < 1e-6);
    }
    claim("the encoding is neither trained nor saved", layer.getParameters().isEmpty());
    for (int offset : new int[] {-1, 6}) {
        String words = "";
        try {
            evaluate(layer, zeros, manager.create(offset));
        } catch (IllegalArgumentException fault) {
            words = fault.getMessage();
        }
        claim("there are no positions past the ends", words.equals(
                "no positions %d to %d: there are 0 to 9".formatted(offset, offset + 4)));
    }
}

// %% order-seen
{
    int[] shuffle = {3, 0, 5, 1, 4, 2};
    double[][] rows = Plain.rows(tokens), P = Formula.sines(6, 100), still = Plain.plus(rows, P);
    var order = IntStream.of(shuffle).mapToObj(i -> rows[i]).toArray(double[][]::new);
    var moved = Plain.plus(order, P);
    var before = Formula.multiHead(
            attention, new double[5][][], false, still, still, Formula.all(6));
    var after = Formula.multiHead(
            attention, new double[5][][], false, moved, moved, Formula.all(6));
    var both = IntStream.of(shuffle).mapToObj(i -> before[i]).toArray(double[][]::new);
    double apart = Plain.apart(after, both);
    claim("with positions order is seen", apart > 0.01 && isShown(shown, 4, apart));
}

// %% lengths
{
    double[] printed = numbersIn(shown), expected = {1, Math.sqrt(512), 16, Math.sqrt(768)};
    for (int i = 0; i < 4; i++) {
        claim("embedding and encoding have comparable lengths once the one is scaled",
                Math.abs(printed[i] / expected[i] - 1) < 0.02);
    }
    claim("DJL's own embeddings are printed, too", isShown(shown.split("\n")[4], 2, defaultLength));
}

// %% column-plot
{
    var expected = Formula.sines(60, 32);
    claim("P is the encoding", Plain.apart(P, expected) < 1e-6);
    for (int column = 6; column < 10; column++) {
        var words = "Col %d: 60 points from (0, %.2f) to (59, %.2f)";
        claim("the curves are columns 6 to 9",
                shown.contains(words.formatted(column, expected[0][column], expected[59][column])));
    }
}

// %% encoding-heatmap
claim("the map is of 60 positions, with zero in the middle of its colours",
        shown.contains("60 rows") && shown.contains("by 32 columns")
                && shown.contains("colours RdBu_r from -1.00 to 1.00"));

// %% wavelengths
{
    var turns = IntStream.range(0, 16).mapToDouble(l -> 2 * Math.PI * Math.pow(10000, l / 16.0));
    claim("wavelengths grow from two pi towards ten thousand times that",
            Arrays.equals(numbersIn(shown), turns.map(Math::rint).toArray()));
    var frequencies = IntStream.range(0, 16).mapToDouble(l -> Math.pow(10000, -l / 16.0)).toArray();
    claim("omega is in radians per position", Plain.apart(omega, frequencies) < 1e-6);
}

// %% dot-products
{
    var expected = Plain.of(60, 60, (i, j) -> IntStream.range(0, 16)
            .mapToDouble(l -> Math.cos((i - j) * Math.pow(10000, -l / 16.0))).sum());
    claim("a dot product of two positions depends on their distance alone",
            Plain.apart(products, expected) < 1e-4);
    for (int i : new int[] {20, 28, 36}) {
        double far = expected[0][20];
        double least = Arrays.stream(expected[0], 0, 21).min().getAsDouble();
        var words = "i = %d: 41 points from (-20, %.2f) to (20, %.2f), values from %.2f to 16.00";
        claim("the three curves are one", shown.contains(words.formatted(i, far, far, least)));
    }
    claim("a position with itself gives 16, and one distance one number",
            shown.contains(": 16.0000\n") && shown.contains(": 0.0000\n"));
}

// %% rotation
{
    double[] angle = {0.3, -1, 2};
    double[][] some = Plain.drawn(4, 6, 3);
    var expected = Plain.of(4, 6, (row, column) -> {
        int i = (int) row, l = (int) column / 2 * 2;
        // A point's own angle, measured from the cosine's axis, grows by this one.
        double length = Math.hypot(some[i][l], some[i][l + 1]);
        double turned = Math.atan2(some[i][l], some[i][l + 1]) + angle[l / 2];
        return length * (column % 2 == 0 ? Math.sin(turned) : Math.cos(turned));
    });
    var turned = turn(Plain.array(some), Plain.array(new double[][] {angle}).get(0));
    claim("pairs are turned by their angles", Plain.apart(turned, expected) < 1e-5);
    var P = Formula.sines(60, 32);
    var rows = shown.split("\n");
    for (int i = 0; i < 3; i++) {
        var printed = Arrays.copyOf(numbersIn(rows[i]), 4);
        claim("a turn by five takes row 3 to row 8",
                Plain.apart(printed, Arrays.copyOf(P[i == 0 ? 3 : 8], 4)) < 0.51e-4);
    }
    double residual = numbersIn(rows[3])[0];
    claim("what is left over is rounding", residual > 0 && residual < 1e-5);
}

// %% five-back
for (int i = 0; i < 20; i++) {
    // By the angle-addition formulas: the query at i is four times the position 5 before it.
    int row = i;
    var scores = IntStream.range(0, 20).mapToDouble(j -> 4 / Math.sqrt(32) * IntStream.range(0, 16)
            .mapToDouble(l -> Math.cos((row - 5 - j) * Math.pow(10000, -l / 16.0))).sum());
    var expected = Plain.softmax(scores.toArray());
    claim("each query looks five places back",
            Plain.apart(lookingBack.get(i), expected) < 1e-4);
    double most = DoubleStream.of(expected).max().getAsDouble();
    claim("from the sixth on the largest weight is there", i < 5 || expected[i - 5] == most);
    claim("it is about a third, where there are neighbours on both sides",
            i < 8 || i > 16 || Math.abs(most - 0.33) < 0.06);
}

// %% rotary
{
    double[][] Q = Plain.drawn(5, 8, 1), K = Plain.drawn(5, 8, 2), V = Plain.drawn(5, 8, 3);
    var scores = Plain.times(Formula.turned(Q), Plain.transposed(Formula.turned(K)));
    var weights = Plain.softmax(Plain.of(5, 5, (i, j) -> scores[(int) i][(int) j] / Math.sqrt(8)));
    var inputs = Stream.of(Q, K, V).map(each -> Plain.array(each).expandDims(0));
    var found = evaluate(new RotaryAttention(0), inputs.toArray(NDArray[]::new));
    claim("queries and keys are turned, and values are not",
            Plain.apart(found, Plain.times(weights, V)) < 1e-5);
}

// %% rotary-scores
{
    // Turned by nothing at position 0.
    double[][] q = Plain.rows(Q.get(0).get(":1")), k = Plain.rows(K.get(0).get(":1"));
    var queries = Formula.turned(Plain.of(60, 32, (i, j) -> q[0][(int) j]));
    var keys = Formula.turned(Plain.of(60, 32, (i, j) -> k[0][(int) j]));
    var expected = Plain.times(queries, Plain.transposed(keys));
    claim("the scores are those of one query and one key at every position",
            Plain.apart(scores, expected) < 1e-3);
    for (int by = -59; by < 60; by++) {
        int distance = by;
        var diagonal = IntStream.range(Math.max(0, by), Math.min(60, 60 + by))
                .mapToDouble(i -> expected[i][i - distance]).summaryStatistics();
        claim("at one distance they are all the same",
                diagonal.getMax() - diagonal.getMin() < 1e-9);
    }
}

// %% rotary-check
{
    var all = DoubleStream.of(Plain.flat(Plain.rows(scores))).summaryStatistics();
    claim("the scores differ widely", all.getMax() - all.getMin() > 1);
    claim("their range is printed", isShown(shown.split("\n")[0], 2, all.getMin(), all.getMax()));
    claim("at one distance they do not differ", isShown(shown.split("\n")[1], 4, 0));
}

// %% task
/** Sequences of our own, drawn by Java. */
long[][] ownSequences(int count, int length, int seed) {
    var random = new Random(seed);
    return Stream.generate(() -> {
        var tokens = random.longs(length, 2, 10).toArray();
        var places = random.ints(0, length).distinct().limit(2).toArray();
        tokens[places[0]] = 0;
        tokens[places[1]] = 1;
        return tokens;
    }).limit(count).toArray(long[][]::new);
}

int placeOf(long token, long[] tokens) {
    return IntStream.range(0, tokens.length).filter(i -> tokens[i] == token).findFirst().getAsInt();
}

boolean isZeroFirst(long[] tokens) {
    return placeOf(0, tokens) < placeOf(1, tokens);
}

for (int length : new int[] {8, 21}) {
    var some = sequences(manager, 4000, length);
    var rows = Plain.wholeRows(some.tokens());
    var zeroes = new double[length];
    double others = 0, first = 0;
    for (int i = 0; i < 4000; i++) {
        var sorted = LongStream.of(rows[i]).sorted().toArray();
        claim("a sequence has one 0 and one 1 among tokens from 2 to 9",
                sorted[0] == 0 && sorted[1] == 1 && sorted[2] >= 2 && sorted[length - 1] <= 9);
        claim("the label says whether the 0 comes first",
                some.labels().getFloat(i) == (isZeroFirst(rows[i]) ? 1 : 0));
        zeroes[placeOf(0, rows[i])] += length / 4000.0;
        others += (LongStream.of(rows[i]).sum() - 1) / (4000.0 * (length - 2));
        first += isZeroFirst(rows[i]) ? 1 / 4000.0 : 0;
    }
    claim("as often as not the 0 comes first", Math.abs(first - 0.5) < 0.03);
    claim("the 0 stands anywhere",
            DoubleStream.of(zeroes).allMatch(share -> Math.abs(share - 1) < 0.3));
    claim("the others are drawn evenly", Math.abs(others - 5.5) < 0.1);
}

// What draws, about earlier cells as well: from here on the lesson seeds its drawings, or shows
// none of their numbers.
{
    var half = new PositionalEncoding(7, 0.5f, 10);
    var ones = manager.ones(new Shape(1, 10, 7));
    var kept = Plain.rows(half.forward(parameters, new NDList(ones), true).head());
    int dropped = 0;
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 7; j++) {
            dropped += kept[i][j] == 0 ? 1 : 0;
            double whole = 1 + Formula.sines(10, 7)[i][j];
            claim("in training numbers are dropped or doubled",
                    kept[i][j] == 0 || Math.abs(kept[i][j] - 2 * whole) < 1e-5);
        }
    }
    claim("in training about half of the numbers are dropped", dropped > 15 && dropped < 55);
    claim("in evaluation none is",
            Plain.apart(evaluate(half, ones).sub(1), Formula.sines(10, 7)) < 1e-6);
}

{
    var made = new IdEmbedding.Builder().setDictionarySize(1000).setEmbeddingSize(512).build();
    var rows = Plain.weights(initialized(made, new Shape(1)));
    double length = Math.sqrt(512) * Plain.spread(Plain.flat(rows));
    claim("DJL's own embeddings are as long as the lesson's",
            Math.abs(defaultLength / length - 1) < 0.03);
}

// %% learned-positions
{
    var table = initialized(new LearnedPositionalEncoding(4, 9), new Shape(1, 6, 4));
    var all = table.getParameters().values();
    claim("the table has a row for each position, and is all there is to train",
            all.size() == 1
                    && all.get(0).getShape().equals(new Shape(9, 4))
                    && all.get(0).requiresGradient());
    var rows = Arrays.copyOf(Plain.rows(all.get(0).getArray()), 6);
    claim("the table's first rows are added",
            Plain.apart(evaluate(table, manager.ones(new Shape(1, 6, 4))).sub(1), rows) < 1e-6);
}

// %% reader
/** Of a reader of this kind its answer to a sequence; its weights go into ``maps``. */
double answer(
        Reader reader,
        String kind,
        long[] tokens,
        boolean toScores,
        boolean toValues,
        double[][][] maps) {
    int n = tokens.length;
    var table = Plain.weights(reader.embedding);
    var alone = LongStream.of(tokens).mapToObj(i -> table[(int) i]).toArray(double[][]::new);
    var X = kind.startsWith("fixed")
            ? Plain.plus(alone, Formula.sines(n, 32))
            : kind.equals("learned") ? Plain.plus(alone, Plain.weights(reader.positions)) : alone;
    int[] lens = kind.endsWith("mask") ? Formula.causal(n) : Formula.all(n);
    double[][] asked = toScores ? X : alone, values = toValues ? X : alone;
    var Y = Formula.multiHead(reader.attention, maps, kind.equals("rotary"), asked, values, lens);
    var mean = Plain.times(Plain.of(1, n, (i, j) -> 1.0 / n), Y);
    var two = reader.output.getParameters().values().stream().map(each -> each.getArray()).toList();
    var first = Plain.transposed(Plain.rows(two.get(0)));
    var inner = Plain.plus(Plain.times(mean, first), Plain.rows(two.get(1)))[0];
    var second = Plain.rows(two.get(2))[0];
    return two.get(3).getFloat(0)
            + IntStream.range(0, 32).mapToDouble(i -> Math.max(0, inner[i]) * second[i]).sum();
}

double[] answers(Reader reader, String kind, long[][] sequences) {
    return Stream.of(sequences)
            .mapToDouble(tokens -> answer(reader, kind, tokens, true, true, new double[4][][]))
            .toArray();
}

/** Whether a reader's positions are those of the formula, with nothing to train. */
boolean hasFixedEncoding(Reader reader) {
    var added = evaluate(reader.positions, manager.zeros(new Shape(1, 64, 32)));
    return reader.positions.getParameters().isEmpty()
            && Plain.apart(added, Formula.sines(64, 32)) < 1e-6;
}

double shareOfRight(double[] answers, long[][] sequences) {
    return IntStream.range(0, answers.length)
            .mapToDouble(i -> answers[i] > 0 == isZeroFirst(sequences[i]) ? 1 : 0)
            .average().getAsDouble();
}

// %% train
{
    var ours = ownSequences(1000, 8, 1);
    var expected = answers(reader, "fixed", ours);
    claim("the trained reader has the fixed encoding, which is that of the formula",
            hasFixedEncoding(reader));
    claim("the trained reader computes what its weights say",
            Plain.apart(evaluate(reader, manager.create(ours)), expected) < 1e-2);
    claim("it is right on sequences that nobody has trained it on",
            shareOfRight(expected, ours) >= 0.98);
}

// %% trained-maps
{
    long[][] two = {{5, 3, 0, 7, 2, 1, 9, 4}, {5, 1, 3, 7, 2, 6, 9, 0}};
    int decided = 0, there = 0;
    for (int i = 0; i < 2; i++) {
        var maps = new double[4][][];
        answer(reader, "fixed", two[i], true, true, maps);
        for (int h = 0; h < 4; h++) {
            claim("the maps are those of the trained weights",
                    Plain.apart(weights.get(i).get(h), maps[h]) < 1e-3);
            for (var row : maps[h]) {
                double most = DoubleStream.of(row).max().getAsDouble();
                int key = IntStream.range(0, 8).filter(j -> row[j] == most).findFirst().getAsInt();
                decided += most > 0.8 ? 1 : 0;
                there += most > 0.8 && two[i][key] < 2 ? 1 : 0;
            }
        }
    }
    claim("many queries give nearly all their weight to one key", decided > 16);
    claim("there stand the 0 and the 1", there > 0.7 * decided);
}

// %% found
{
    var rows = Plain.wholeRows(drawn.tokens());
    for (int i = 0; i < 1000; i += 50) {
        var maps = new double[4][][];
        answer(reader, "fixed", rows[i], true, true, maps);
        int ofZero = placeOf(0, rows[i]), ofOne = placeOf(1, rows[i]);
        int[] places = {ofZero, ofOne, Math.min(ofZero, ofOne), Math.max(ofZero, ofOne)};
        for (int h = 0; h < 4; h++) {
            for (int which = 0; which < 4; which++) {
                double share = Plain.mean(Plain.transposed(maps[h])[places[which]]);
                var found = List.of(zero, one, first, last).get(which).getFloat(i, h);
                claim("a head's shares are of the 0, the 1, the first and the last of them",
                        Math.abs(share - found) < 1e-3);
            }
        }
    }
}

// %% found-shares
{
    var rows = shown.split("\n");
    for (int h = 0; h < 4; h++) {
        var column = ":, " + h;
        var shares = Stream.of(zero, one, first, last).map(each -> Plain.rows(each.get(column))[0]);
        var means = DoubleStream.concat(shares.mapToDouble(Plain::mean), DoubleStream.of(h + 1));
        claim("a row has a head's mean shares", isShown(rows[h + 1], 2, means.toArray()));
    }
}

// %% without-positions
/** What share of sequences a fixed reader gets right, with positions here or there alone. */
double shareWith(boolean toScores, boolean toValues, long[][] sequences) {
    var answers = Stream.of(sequences).mapToDouble(tokens ->
            answer(reader, "fixed", tokens, toScores, toValues, new double[4][][]));
    return shareOfRight(answers.toArray(), sequences);
}

{
    var rows = Plain.wholeRows(drawn.tokens());
    claim("these are the shares with positions in queries and keys, or in values, alone",
            Math.abs(inQueriesAndKeys - shareWith(true, false, rows)) < 0.002
                    && Math.abs(inValues - shareWith(false, true, rows)) < 0.002);
    claim("without positions in its values it is still right almost every time",
            shareWith(true, false, ownSequences(1000, 8, 2)) > 0.95);
    claim("with positions everywhere it is as it was trained",
            Math.abs(asTrained - shareWith(true, true, rows)) < 0.002);
    claim("with positions in the values alone it is right far less often",
            inValues < inQueriesAndKeys - 0.2);
}

// %% without-positions-shown
claim("these shares are printed", isShown(shown, 3, asTrained, inQueriesAndKeys, inValues));

// %% five-readers
/** A reader with a learned table that remembers what it read, and whether it was trained on it. */
class Remembering extends Reader {
    final List<long[]> trainedOn = new ArrayList<>(), testedOn = new ArrayList<>();

    Remembering() {
        super(new LearnedPositionalEncoding(32, 64), new DotProductAttention(0), false);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        (training ? trainedOn : testedOn).addAll(List.of(Plain.wholeRows(inputs.head())));
        return super.forwardInternal(store, inputs, training, more);
    }
}

{
    var kinds = List.of("fixed", "learned", "rotary", "mask", "fixed_mask");
    claim("there are five kinds of readers", List.copyOf(readers.keySet()).equals(kinds));
    for (var kind : readers.keySet()) {
        var untrained = initialized(readers.get(kind).get(), new Shape(64, 8));
        claim("the fixed encoding is that of the formula, and is not trained",
                !kind.startsWith("fixed") || hasFixedEncoding(untrained));
        for (int length : new int[] {8, 21}) {
            var ours = ownSequences(5, length, 3);
            var expected = answers(untrained, kind, ours);
            claim("the reader called " + kind + " is what its name says",
                    Plain.apart(evaluate(untrained, manager.create(ours)), expected) < 1e-4);
        }
    }
    var memory = new Remembering();
    trained(() -> memory, 0);
    Engine.getInstance().setRandomSeed(0);
    var untrained = initialized(readers.get("learned").get(), new Shape(64, 8));
    double[][] before = Plain.weights(untrained.positions);
    double[][] after = Plain.weights(memory.positions);
    for (int i = 0; i < 64; i++) {
        double moved = Plain.apart(before[i], after[i]);
        claim("the learned table is trained, up to its eighth row",
                i < 8 ? moved > 0.01 : moved == 0);
    }
    claim("readers are trained on 120 batches of 128 sequences of 8 tokens",
            memory.trainedOn.size() == 120 * 128
                    && memory.trainedOn.stream().allMatch(tokens -> tokens.length == 8));
    var known = memory.trainedOn.stream().map(Arrays::toString).collect(Collectors.toSet());
    claim("every batch is drawn anew", known.size() > 15000);
    for (int length : new int[] {8, 8, 16, 64}) {
        memory.testedOn.clear();
        double share = accuracy(memory, length);
        var rows = memory.testedOn.toArray(long[][]::new);
        long again = Stream.of(rows).filter(tokens -> !known.add(Arrays.toString(tokens))).count();
        claim("readers are tested on sequences drawn anew, not on those that they were trained on",
                again < 0.02 * rows.length);
        claim("they are tested on five hundred, of the length asked for",
                rows.length == 500 && rows[0].length == length);
        claim("the share is that of right answers",
                Math.abs(share - shareOfRight(answers(memory, "learned", rows), rows)) < 0.003);
    }
}

// %% past-the-end
{
    claim("each kind has five runs of four lengths", results.size() == 5
            && results.values().stream().allMatch(runs -> runs.length == 5 && runs[0].length == 4));
    results.forEach((kind, runs) -> {
        claim("on 8 tokens every reader is right nearly every time",
                Stream.of(runs).allMatch(run -> run[0] >= 0.98));
        claim("no seed is used twice", kind.equals("mask")
                || Stream.of(runs).map(Arrays::toString).distinct().count() == 5);
    });
    // The first of the fixed readers is the one trained before: it reads sequences of our own.
    for (int i = 0; i < 4; i++) {
        var ours = ownSequences(1000, 8 << i, 4);
        double share = shareOfRight(answers(reader, "fixed", ours), ours);
        claim("shares are those of new sequences of each length",
                Math.abs(results.get("fixed")[0][i] - share) < 0.08);
    }
    double[][] medians = new double[4][5], least = new double[4][5], most = new double[4][5];
    for (int i = 0; i < 4; i++) {
        int kind = 0, length = i;
        for (var runs : results.values()) {
            var shares = Stream.of(runs).mapToDouble(run -> run[length]).sorted().toArray();
            least[i][kind] = shares[0];
            medians[i][kind] = shares[2];
            most[i][kind++] = shares[4];
        }
    }
    // In the order of the table: fixed, learned, RoPE, mask, fixed and mask.
    for (int kind = 0; kind < 2; kind++) {
        claim("on 16 tokens the fixed encoding and the table are right six to eight times in ten",
                Math.abs(medians[1][kind] - 0.7) < 0.15);
        for (int i : new int[] {1, 2}) {
            claim("on 16 and on 32 tokens RoPE is far ahead of these",
                    medians[i][2] > medians[i][kind] + 0.15 && least[i][2] > medians[i][kind]);
        }
    }
    claim("some of the fixed ones are misled on the longest", least[3][0] < 0.455);
    claim("on 64 tokens RoPE has come down to chance", Math.abs(medians[3][2] - 0.5) < 0.1);
    claim("readers with a causal mask hold up, even on eight times the length",
            Math.min(medians[3][3], medians[3][4]) > 0.8);
}

// %% past-the-end-figure
{
    var rows = shown.split("\n");
    int at = 1;
    for (var runs : results.values()) {
        double[] medians = new double[4], ranges = new double[8];
        for (int i = 0; i < 4; i++) {
            int length = i;
            var shares = Stream.of(runs).mapToDouble(run -> run[length]).toArray();
            medians[i] = Plain.median(shares);
            ranges[2 * i] = DoubleStream.of(shares).min().getAsDouble();
            ranges[2 * i + 1] = DoubleStream.of(shares).max().getAsDouble();
        }
        claim("the table has each kind's medians and ranges",
                isShown(rows[at++], 2, medians) && isShown(rows[at++], 2, ranges));
    }
    String[] ends = {
        "fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask"
    };
    for (int i = 0; i < 5; i++) {
        claim("the rows have their names", rows[2 * i + 1].endsWith("   " + ends[i]));
        claim("the curves have theirs", shown.contains(ends[i] + ": 4 points from (8, "));
    }
}

// %% solution-bias
{
    var rows = Plain.rows(X);
    var b = Plain.rows(b_k)[0];
    var biased = Plain.of(4, 8, (i, j) -> rows[(int) i][(int) j] + b[(int) j]);
    var expected = Plain.times(rows, Plain.transposed(biased));
    claim("a bias of the keys changes the scores", Plain.apart(shifted, expected) < 1e-4
            && Plain.apart(scores, expected) > 0.1);
    claim("and no weights",
            Plain.apart(scores.softmax(-1), Plain.softmax(expected)) < 1e-5 && difference < 1e-5);
}

// %% solution-bias-shown
{
    double most = Plain.apart(scores, Plain.rows(shifted));
    claim("how far the scores differ is printed", isShown(shown.split("\n")[0], 2, most));
    claim("and that the weights do not", isShown(shown.split("\n")[1], 5, 0));
}

// %% solution-stacking
{
    var some = Plain.drawn(5, 6, 5);
    claim("diversity is the norm of what sets the tokens apart, relative to the whole",
            Math.abs(diversity(Plain.array(some).expandDims(0)) - Formula.diversity(some)) < 1e-5);
    for (int which = 0; which < 3; which++) {
        double sharpness = which == 1 ? 10 : 1;
        var X = Plain.plus(Plain.rows(start), Formula.sines(16, 64));
        var expected = new double[9];
        expected[0] = Formula.diversity(X);
        for (int depth = 1; depth <= 8; depth++) {
            var before = X;
            var queries = Plain.of(16, 64, (i, j) -> sharpness * before[(int) i][(int) j]);
            var pooled = Formula.multiHead(blocks.get(depth - 1), new double[4][][], false,
                    queries, X, X, Formula.all(16));
            double longer = Plain.norm(X) / Plain.norm(pooled);
            X = which == 2
                    ? Plain.plus(pooled, X)
                    : Plain.of(16, 64, (i, j) -> longer * pooled[(int) i][(int) j]);
            expected[depth] = Formula.diversity(X);
        }
        claim("the curves are those of attention alone, of sharper queries, of skip connections",
                Plain.apart(curves.get(which), expected) < 5e-3);
    }
    double[] alone = curves.get(0), sharper = curves.get(1), skip = curves.get(2);
    claim("attention alone averages the tokens away",
            alone.length == 9 && alone[0] > 0.5 && alone[4] < 0.05);
    claim("sharper weights delay it", IntStream.range(1, 5).allMatch(i -> sharper[i] > alone[i]));
    claim("but only delay it", sharper[8] < sharper[0] / 2);
    claim("skip connections keep the tokens apart", skip[8] > Math.max(0.5, sharper[8]));
    var corners = blocks.stream().map(block -> Plain.weights(block.W_q)[0][0]);
    claim("the eight layers are eight", corners.distinct().count() == 8);
}

// %% solution-stacking-figure
{
    var names = List.of("attention alone", "queries ten times as long", "with skip connections");
    for (int i = 0; i < 3; i++) {
        double from = curves.get(i)[0], to = curves.get(i)[8];
        var words = "%s: 9 points from (0, %.2f) to (8, %.2f)".formatted(names.get(i), from, to);
        claim("the curves have their names in their order", shown.contains(words));
    }
}

// %% solution-mirrored
{
    var ours = ownSequences(200, 8, 6);
    var exchanged = Stream.of(ours).map(tokens -> LongStream.of(tokens).map(i -> i < 2 ? 1 - i : i))
            .map(LongStream::toArray)
            .toArray(long[][]::new);
    var mirror = Plain.wholeRows(mirrored(manager.create(ours)));
    claim("0 and 1 are exchanged", Arrays.deepEquals(mirror, exchanged));
    double[] answers = answers(reader, "none", ours);
    double[] others = answers(reader, "none", exchanged);
    claim("it is a reader without positions and mask",
            Plain.apart(evaluate(reader, manager.create(ours)), answers) < 1e-4);
    claim("in the mirror it answers the same, and not the same to all",
            Plain.apart(answers, others) < 1e-9 && Plain.spread(answers) > 1e-3);
    claim("the difference is printed", isShown(shown, 5, 0));
}

// %% solution-causal-map
{
    var map = Plain.rows(causal);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            claim("with a causal mask influence is a full lower triangle", map[i][j] > 0 == j <= i);
        }
    }
    var expected = Formula.influence(smallAttention, Plain.rows(X), Formula.causal(n));
    claim("it is that of the formula", Plain.apart(map, expected) < 1e-4);
    var lines = shown.split("\n");
    claim("no influence of the future, and 55 of 100 pairs",
            lines[0].endsWith(": no") && isShown(lines[1], 0, 55, 100));
    claim("the map is scaled to its maximum", lines[2].contains("values from 0.00 to 1.00"));
}

// %% solution-fading
for (int which = 0; which < 2; which++) {
    // By the chain rule.
    double factor = which == 0 ? 1 : 0.8;
    double[][] inner = Plain.of(d, d, (i, j) -> factor * W_hh.getFloat((long) i, (long) j));
    double[][] rows = Plain.rows(X), outer = Plain.rows(W_xh), given = Plain.times(rows, outer);
    double[][] H = new double[1][d], slope = null;
    var expected = new double[24];
    for (int t = 0; t < 24; t++) {
        var sum = Plain.plus(new double[][] {given[t]}, Plain.times(H, inner));
        H = Plain.of(1, d, (i, j) -> Math.tanh(sum[0][(int) j]));
        var slopes = DoubleStream.of(H[0]).map(state -> 1 - state * state).toArray();
        var before = t == 0 ? outer : Plain.times(slope, inner);
        slope = Plain.of(d, d, (i, j) -> before[(int) i][(int) j] * slopes[(int) j]);
        expected[t] = Plain.norm(slope);
    }
    var found = Plain.rows(faded.get(which))[0];
    claim("influence is followed along 24 positions", found.length == 24);
    for (int t = 0; t < 24; t++) {
        claim("the RNN's influence fades as the chain rule says",
                Math.abs(found[t] / (expected[t] / expected[0]) - 1) < 2e-3);
    }
    double least = DoubleStream.of(Plain.rows(faded.get(2))[0]).min().getAsDouble();
    claim("for self-attention there is no such decay", found[23] < 1e-2 && least > 0.1);
    var ofFirst = Plain.transposed(Formula.influence(smallAttention, rows, Formula.all(24)))[0];
    var relative = DoubleStream.of(ofFirst).map(each -> each / ofFirst[0]).toArray();
    claim("its influence is that of the formula", Plain.apart(faded.get(2), relative) < 1e-3);
}

// %% solution-fading-figure
{
    var names = List.of("RNN", "RNN, matrix times 0.8", "self-attention");
    for (int i = 0; i < 3; i++) {
        var words = "%s: 24 points from (0, 1.00) to (23, %.2f)";
        claim("the curves have their names in their order",
                shown.contains(words.formatted(names.get(i), faded.get(i).getFloat(23))));
    }
}

// %% solution-dilated
claim("growing steps cross the sequence in logarithmically many layers",
        isShown(shown, 0, 5, 4, 2, 14, 13, 3, 41, 40, 4, 122, 121, 5));

// %% solution-decoding
{
    var whole = Plain.plus(Plain.rows(tokens), Formula.sines(10, 16));
    var maps = new double[2][][];
    var expected = Formula.multiHead(smallAttention, maps, false, whole, whole, Formula.causal(10));
    claim("one token at a time gives what all at once give",
            Plain.apart(NDArrays.concat(outputs, 1), expected) < 1e-5);
    claim("the cache has grown to all keys and values",
            Plain.apart(cachedKeys, Plain.through(smallAttention.W_k, whole)) < 1e-5
                    && Plain.apart(cachedValues, Plain.through(smallAttention.W_v, whole)) < 1e-5);
}

// %% solution-decoding-cost
{
    var rows = IntStream.of(10, 100, 1000).mapToObj(n -> {
        int attending = 2 * 256 + 2 * n * 16; // the query, the output, scores and average
        return new double[] {n, attending + 2 * n * 256, attending + 2 * 256};
    });
    var lines = shown.split("\n", 2);
    claim("the outputs are the same", isShown(lines[0], 5, 0));
    claim("the cache saves the projections of earlier tokens",
            isShown(lines[1], 0, rows.flatMapToDouble(DoubleStream::of).toArray()));
}

// %% solution-relative
{
    var same = manager.ones(new Shape(1, 11, 1)).mul(Plain.array(Plain.drawn(1, 16, 7)));
    var found = Plain.rows(relative.scores(same));
    double[] last = found[10], first = found[0];
    double[] of = {last[0], last[8], last[9], first[0], first[1], first[2], first[3]}; // 3 to -3
    for (int i = 0; i < 11; i++) {
        for (int j = 0; j < 11; j++) {
            double expected = of[3 - Math.max(-3, Math.min(3, i - j))];
            claim("scores depend on the distance, up to the table's ends",
                    Math.abs(found[i][j] - expected) < 1e-4);
        }
    }
    claim("each of the seven distances has a vector of its own",
            DoubleStream.of(of).map(score -> Math.rint(1000 * score)).distinct().count() == 7);
    double[][] rows = Plain.rows(four), Q = Plain.through(relative.W_q, rows);
    double[][] K = Plain.through(relative.W_k, rows), table = Plain.weights(relative.table);
    var weights = Plain.softmax(Plain.of(4, 4, (i, j) -> IntStream.range(0, 16)
            .mapToDouble(k -> Q[(int) i][k] * (K[(int) j][k] + table[(int) (i - j) + 3][k]) / 4)
            .sum()));
    claim("relative attention is its formula", Plain.apart(relative.forward(four),
            Plain.times(weights, Plain.through(relative.W_v, rows))) < 1e-5);
    claim("a phrase has the same scores at both places",
            Plain.apart(scores.get(":4, :4"), Plain.rows(scores.get("7:, 7:"))) < 1e-5);
}

// %% solution-relative-shown
{
    var printed = numbersIn(shown.split(": ")[1] + " " + shown.split(": ")[2]);
    claim("the scores are the same at both places, and the outputs differ in the other order",
            printed.length == 2 && printed[0] == 0 && printed[1] > 0.1);
}
