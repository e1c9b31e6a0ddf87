// The lesson's code for the Deep Java Library, from Java 17 on. Each cell is woven into the text
// where it is asked for by name; all imports stand in the first, since an import in a later one
// can make the kernel forget variables.

// %% setup
import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.training.initializer.XavierInitializer;
import ai.djl.training.initializer.XavierInitializer.FactorType;
import ai.djl.training.initializer.XavierInitializer.RandomType;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import ai.djl.util.PairList;

import java.util.*;
import java.util.function.*;
import java.util.stream.*;

import d2l.*;

Engine.getInstance().setRandomSeed(0);
var manager = NDManager.newBaseManager(Device.cpu()); // all arrays here are small
var parameters = new ParameterStore(manager, false);

/** A layer's output in evaluation. */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Makes the parameters of a layer that takes inputs of these shapes. */
<B extends Block> B initialized(B layer, Shape... shapes) {
    layer.initialize(manager, DataType.FLOAT32, shapes);
    return layer;
}

/** A number as an array. A plain one DJL has let go by the time that gradients are taken. */
NDArray number(NDManager manager, double number) {
    return manager.full(new Shape(1), (float) number);
}

/** The largest difference between two arrays. */
float apart(NDArray X, NDArray Y) {
    return X.sub(Y).abs().max().getFloat();
}

// %% price-list
var prices = Map.of("apple", 50, "lemon", 40, "pear", 70);
for (var fruit : List.of("lemon", "lime")) {
    var price = Objects.toString(prices.get(fruit), "not in the list");
    System.out.println(fruit + ": " + price);
}

// %% soft-look-up
var fruits = List.of("apple", "lemon", "pear");
var keys = manager.create(new float[][] {{2, 1}, {0, 3}, {3, 0}}); // how sweet, and how sour
var values = manager.create(new float[] {50, 40, 70}); // what it costs, in cents
var query = manager.create(new float[] {0, 1}); // a lime: not sweet, a little sour

var scores = keys.matMul(query); // how well does each key fit?
var weights = scores.exp().div(scores.exp().sum()); // softmax: positive, and they sum to 1
var answer = weights.matMul(values); // the average of the values, in these shares

for (int i = 0; i < 3; i++) {
    float score = scores.getFloat(i), weight = weights.getFloat(i);
    System.out.printf("%4.0f%8.3f   %s%n", score, weight, fruits.get(i));
}
System.out.println("a lime costs about %.0f cents".formatted(answer.getFloat()));

// %% from-soft-to-hard
for (int factor : new int[] {0, 1, 3, 10}) {
    weights = keys.matMul(query.mul(factor)).softmax(0);
    System.out.printf("query times %2d:", factor);
    for (float weight : weights.toFloatArray()) {
        System.out.printf("%8.3f", weight);
    }
    System.out.println("   %5.1f cents".formatted(weights.matMul(values).getFloat()));
}

// %% attend
/** Each matrix turned over, whatever is in front of its two axes. */
NDArray transposed(NDArray X) {
    int axes = X.getShape().dimension();
    return X.swapAxes(axes - 2, axes - 1);
}

/** Score, softmax, average: an answer for each query. */
NDArray attend(NDArray queries, NDArray keys, NDArray values) {
    var scores = queries.matMul(transposed(keys)); // (queries, keys)
    return scores.softmax(-1).matMul(values);
}

// %% three-customers
var queries = manager.create(new float[][] {{0, 1}, {1, 0}, {1, 1}}); // sour, sweet, both
// cents, and grams of sugar
values = manager.create(new float[][] {{50, 19}, {40, 2}, {70, 17}});
var answers = attend(queries, keys, values);
var names = List.of("sour", "sweet", "both");
for (int i = 0; i < 3; i++) {
    float price = answers.getFloat(i, 0), sugar = answers.getFloat(i, 1);
    System.out.printf("%6s: %.1f cents, %.1f g of sugar%n", names.get(i), price, sugar);
}

// %% batches
var shapes = List.of(new Shape(2, 3, 4), new Shape(2, 5, 4), new Shape(2, 5, 6));
var batch = shapes.stream().map(shape -> manager.randomNormal(shape)).toList();
System.out.println("queries" + " " + batch.get(0).getShape());
System.out.println("keys   " + " " + batch.get(1).getShape());
System.out.println("values " + " " + batch.get(2).getShape());
answers = attend(batch.get(0), batch.get(1), batch.get(2));
System.out.println("answers" + " " + answers.getShape());

// %% points
NDArray curve(NDArray x) {
    return x.mul(2).sin().add(x.div(2));
}

record Points(NDArray x, NDArray y) {}

/** Measurements of the curve, with noise, at random places from 0 to 5. */
Points points(int count, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var x = manager.randomUniform(0, 5, new Shape(count)).sort();
    return new Points(x, curve(x).add(manager.randomNormal(new Shape(count)).mul(0.3)));
}

// %% kernel-regression
/** Scores: the logarithm of a Gaussian kernel, shape (queries, keys). */
NDArray closeness(NDArray queries, NDArray keys, NDArray width) {
    var two = number(width.getManager(), 2);
    return queries.expandDims(1).sub(keys).square().neg().div(width.square().mul(two));
}

var measured = points(40, 0);
NDArray x = measured.x(), y = measured.y();
var between = manager.linspace(0, 5, 101);
var fits = new LinkedHashMap<Number, NDArray>();
for (Number width : List.of(0.05, 0.3, 3)) {
    var scores = closeness(between, x, number(manager, width.doubleValue()));
    fits.put(width, scores.softmax(1).matMul(y));
}

// %% three-widths
double[] numbers(NDArray X) {
    return X.toType(DataType.FLOAT64, false).toDoubleArray();
}

var xs = new ArrayList<>(List.of(numbers(x), numbers(between)));
var ys = new ArrayList<>(List.of(numbers(y), numbers(curve(between))));
var legend = new ArrayList<>(List.of("measured", "true curve"));
fits.forEach((width, fit) -> {
    xs.add(numbers(between));
    ys.add(numbers(fit));
    legend.add("width " + width);
});
Plots.curves(xs, ys)
        .xlabel("x")
        .ylabel("y")
        .figsize(6, 3)
        .legend(legend.toArray(String[]::new))
        .points(0)
        .show();

// %% width-heatmaps
var maps = new NDList();
var titles = new ArrayList<String>();
for (Number width : fits.keySet()) {
    maps.add(closeness(x, x, number(manager, width.doubleValue())).softmax(1));
    titles.add("Width " + width);
}
var scaled = new NDList(maps.stream().map(map -> map.div(map.max())).toList());
Plots.heatmaps(NDArrays.stack(scaled).expandDims(0))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles(titles.toArray(String[]::new))
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% without-itself
/** The mean squared error of predicting each point from the others (or from all). */
NDArray error(NDArray width, Points points, boolean withoutItself) {
    var scores = closeness(points.x(), points.x(), width);
    if (withoutItself) {
        var itself = scores.getManager().eye((int) scores.size(0)).gt(0);
        var nothing = scores.zerosLike().add(Float.NEGATIVE_INFINITY);
        scores = NDArrays.where(itself, nothing, scores);
    }
    return scores.softmax(1).matMul(points.y()).sub(points.y()).square().mean();
}

// %% learned-width
/** Gradient descent on the logarithm of the width, which keeps it positive. */
double learnedWidth(Points points, double start, boolean withoutItself) {
    var logWidth = number(manager, Math.log(start));
    logWidth.setRequiresGradient(true);
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.1f)).build();
    for (int step = 0; step < 100; step++) {
        // All that a step computes goes with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            scratch.tempAttachAll(logWidth, points.x(), points.y());
            gradients.backward(error(logWidth.exp(), points, withoutItself));
        }
        try (var gradient = logWidth.getGradient()) {
            adam.update("log width", logWidth, gradient);
        }
    }
    return Math.exp(logWidth.getFloat());
}

// %% learned-widths
for (Number start : List.of(0.1, 1)) {
    double width = learnedWidth(measured, start.doubleValue(), true);
    System.out.println("from %s, without itself: %.2f".formatted(start, width));
}
double alone = learnedWidth(measured, 1, false);
System.out.println("from 1, itself among them: %.2f".formatted(alone));

// %% four-scores
NDArray dot(NDArray Q, NDArray K) {
    return Q.matMul(transposed(K));
}

NDArray scaledDot(NDArray Q, NDArray K) {
    double root = Math.sqrt(K.getShape().getLastDimension());
    return Q.matMul(transposed(K)).div(number(Q.getManager(), root));
}

NDArray bilinear(NDArray Q, NDArray K, NDArray W) {
    return Q.matMul(W).matMul(transposed(K));
}

NDArray additive(NDArray Q, NDArray K, NDArray W_q, NDArray W_k, NDArray w) {
    // shape (batch, queries, keys, num_hiddens)
    var everyPair = Q.matMul(W_q).expandDims(2).add(K.matMul(W_k).expandDims(1));
    return everyPair.tanh().matMul(w);
}

// %% two-layers
/** A projection, with weights from -1/√n to 1/√n for n inputs. */
Linear linear(int units, boolean hasBias) {
    var made = Linear.builder().setUnits(units).optBias(hasBias).build();
    var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    made.setInitializer(narrow, Parameter.Type.WEIGHT);
    return made;
}

/** Additive attention, of DJL's own layers. */
class AdditiveAttention {
    final Linear W_q, W_k, w_v;

    AdditiveAttention(int numHiddens, int querySize, int keySize) {
        W_q = initialized(linear(numHiddens, false), new Shape(1, querySize));
        W_k = initialized(linear(numHiddens, false), new Shape(1, keySize));
        w_v = initialized(linear(1, false), new Shape(1, numHiddens));
    }

    NDArray forward(NDArray Q, NDArray K, NDArray V) {
        var everyPair = evaluate(W_q, Q).expandDims(2).add(evaluate(W_k, K).expandDims(1));
        return evaluate(w_v, everyPair.tanh()).squeeze(-1).softmax(-1).matMul(V);
    }
}

/** The matrix that a layer multiplies with, on the right. */
NDArray matrix(Linear layer) {
    return layer.getParameters().valueAt(0).getArray().transpose();
}

NDArray Q = manager.randomNormal(new Shape(2, 3, 8));
NDArray K = manager.randomNormal(new Shape(2, 5, 8));
NDArray V = manager.randomNormal(new Shape(2, 5, 4));
var scaledLayer = new DotProductAttention(0);
var additiveLayer = new AdditiveAttention(16, 8, 8);
var layersSay = List.of(evaluate(scaledLayer, Q, K, V), additiveLayer.forward(Q, K, V));

NDArray W_q = matrix(additiveLayer.W_q), W_k = matrix(additiveLayer.W_k);
NDArray w = matrix(additiveLayer.w_v).squeeze(1);
var weSay = List.of(
        scaledDot(Q, K).softmax(-1).matMul(V),
        additive(Q, K, W_q, W_k, w).softmax(-1).matMul(V));

// %% two-layers-shown
names = List.of("scaled dot", "additive");
for (int i = 0; i < 2; i++) {
    float top = weSay.get(i).abs().max().getFloat();
    float difference = apart(layersSay.get(i), weSay.get(i));
    var line = "%10s: largest answer %.4f, largest difference %.4f";
    System.out.println(line.formatted(names.get(i), top, difference));
}

// %% gaussian-or-dot
NDArray gaussian(NDArray Q, NDArray K) {
    var steps = Q.expandDims(2).sub(K.expandDims(1)); // (batch, queries, keys, d)
    return steps.square().sum(new int[] {3}).div(-2);
}

float weightsDiffer(NDArray Q, NDArray K) {
    return apart(gaussian(Q, K).softmax(-1), dot(Q, K).softmax(-1));
}

var equallyLong = K.normalize(2, 2);

// %% gaussian-or-dot-shown
float ofAnyLength = weightsDiffer(Q, K), ofOneLength = weightsDiffer(Q, equallyLong);
System.out.println("keys of any length:    weights differ by up to %.4f".formatted(ofAnyLength));
System.out.println("keys of equal length:  weights differ by up to %.4f".formatted(ofOneLength));

// %% saturation
Engine.getInstance().setRandomSeed(0);
var widths = IntStream.rangeClosed(2, 10).map(power -> 1 << power).toArray();
// For each width: unscaled, and scaled.
var largest = new double[2][widths.length];
var slopes = new double[2][widths.length];
for (int i = 0; i < widths.length; i++) {
    query = manager.randomNormal(new Shape(1000, 1, widths[i]));
    var tenKeys = manager.randomNormal(new Shape(1000, 10, widths[i]));
    var scoresOfBoth = List.of(dot(query, tenKeys), scaledDot(query, tenKeys));
    for (int k = 0; k < 2; k++) {
        var weights = scoresOfBoth.get(k).softmax(-1).squeeze(1);
        largest[k][i] = weights.max(new int[] {1}).mean().getFloat();
        var column = weights.expandDims(2);
        var outer = column.mul(weights.expandDims(1)); // (queries, keys, keys)
        var derivative = column.mul(manager.eye(10)).sub(outer);
        var norms = derivative.square().sum(new int[] {1, 2}).sqrt();
        slopes[k][i] = norms.median().getFloat();
    }
}

// %% largest-weight
var powers = IntStream.rangeClosed(2, 10).asDoubleStream().toArray();
Plots.curves(powers, largest)
        .xlabel("log2(d)")
        .ylabel("Largest weight")
        .ylim(0, 1.05)
        .figsize(6, 2.5)
        .legend("unscaled", "scaled")
        .show();

// %% slope
Plots.curves(powers, slopes)
        .xlabel("log2(d)")
        .ylabel("Norm of the derivative")
        .ylim(0, 0.4)
        .figsize(6, 2.5)
        .legend("unscaled", "scaled")
        .show();

// %% masked
/** A softmax over what each query may see; the rest gets a weight of zero. */
NDArray maskedWeights(NDArray scores, NDArray maySee) {
    var nothing = scores.zerosLike().add(Float.NEGATIVE_INFINITY);
    return NDArrays.where(maySee, scores, nothing).softmax(-1);
}

void show(NDList maps, String... titles) {
    Plots.heatmaps(NDArrays.stack(maps).expandDims(0))
            .xlabel("Keys")
            .ylabel("Queries")
            .titles(titles)
            .figsize(8, 3)
            .cmap(ColorMap.BLUES)
            .show();
}

Engine.getInstance().setRandomSeed(0);
var position = manager.arange(5);
var real = position.lt(3).broadcast(5, 5); // three real keys, two of padding
var causal = position.lte(position.expandDims(1)); // nothing that comes later
scores = manager.randomNormal(new Shape(5, 5));
var masks = Stream.of(real, causal, real.logicalAnd(causal));
show(
        new NDList(masks.map(maySee -> maskedWeights(scores, maySee)).toList()),
        "Padding", "Causal", "Both");

// %% last-queries
/** Scaled attention of X's last queries, with these masks. */
NDArray attended(DotProductAttention layer, NDArray queries, NDArray X, Map<String, Object> masks) {
    var inputs = new NDList(queries, X, X);
    return layer.forward(parameters, inputs, false, new PairList<>(masks)).head();
}

Engine.getInstance().setRandomSeed(0);
var layer = new DotProductAttention(0);
var X = manager.randomNormal(new Shape(1, 5, 8));
var ofAll = attended(layer, X, X, Map.of("causal", true));
var ofTwo = attended(layer, X.get(":, -2:"), X, Map.of("causal", true));
var seen = layer.attentionWeights().get(0).gt(0).sum(new int[] {1}).toLongArray();
System.out.println("two queries: keys seen " + Arrays.toString(seen));
float difference = apart(ofTwo, ofAll.get(":, -2:"));
System.out.println("from the last two of five: largest difference %.4f".formatted(difference));

// %% empty-row
void printRow(String name, NDArray weights) {
    System.out.print(name);
    for (float weight : weights.toFloatArray()) {
        System.out.printf(" %5.2f", weight);
    }
    System.out.println();
}

real = position.gte(2).broadcast(5, 5); // here the padding comes first
weights = maskedWeights(scores, real.logicalAnd(causal));
printRow("by hand:   ", weights.get(0));
var nothing = manager.full(new Shape(5, 5), Float.NEGATIVE_INFINITY);
var hidden = NDArrays.where(real, nothing.zerosLike(), nothing);
attended(layer, X, X, Map.of("causal", true, "scoreBias", hidden));
printRow("the layer: ", layer.attentionWeights().get(0).get(0));

// %% dictionaries
record Examples(NDList given, NDArray answers) {}

/** Entries, each a letter with a digit; then the letters asked for, and what is right. */
Examples dictionaries(NDManager manager, int count, int size) {
    // none of the letters twice
    var order = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = order.get(":, :{}", size);
    var digits = manager.randomInteger(0, 10, new Shape(count, size), DataType.INT64);
    var asked = manager.randomUniform(0, 1, new Shape(count, size)).argSort(1); // in another order
    var given = new NDList(letters, digits, letters.gather(asked, 1));
    return new Examples(given, digits.gather(asked, 1));
}

String written(NDArray letters, NDArray digits) {
    long[] x = letters.toLongArray(), y = digits.toLongArray();
    return IntStream.range(0, x.length)
            .mapToObj(i -> (char) ('a' + x[i]) + "" + y[i])
            .collect(Collectors.joining(" "));
}

var three = dictionaries(manager, 3, 6);
for (int i = 0; i < 3; i++) {
    NDArray letters = three.given().get(0).get(i), digits = three.given().get(1).get(i);
    NDArray questions = three.given().get(2).get(i), answers = three.answers().get(i);
    System.out.println(written(letters, digits) + "  ->  " + written(questions, answers));
}

// %% look-up
/** A table with a vector for each of so many letters or digits. */
Block embedding(int size) {
    var table = new IdEmbedding.Builder().setDictionarySize(size).setEmbeddingSize(32).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return table;
}

/** A score for each digit as the answer; queries, keys and values are learned. */
class LookUp extends AbstractBlock {
    final Block letter = addChildBlock("letter", embedding(26));
    final Block digit = addChildBlock("digit", embedding(10));
    final Block W_q = addChildBlock("W_q", linear(32, false));
    final Block W_k = addChildBlock("W_k", linear(32, false));
    final Block W_v = addChildBlock("W_v", linear(32, false));
    final Block output = addChildBlock("output", linear(10, true));
    NDArray weights;

    /** The inputs are the entries' letters and digits, and the letters asked for. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var entries = evaluate(letter, inputs.get(0)).add(evaluate(digit, inputs.get(1)));
        return new NDList(answer(evaluate(letter, inputs.get(2)), entries, entries));
    }

    NDArray answer(NDArray queries, NDArray keys, NDArray values) {
        weights = scores(queries, keys).softmax(-1);
        return evaluate(output, weights.matMul(evaluate(W_v, values)));
    }

    NDArray scores(NDArray queries, NDArray keys) {
        return scaledDot(evaluate(W_q, queries), evaluate(W_k, keys));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        getChildren().values().forEach(part -> part.initialize(manager, type, new Shape(1, 32)));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[2].add(10)};
    }
}

// %% train
/** The model, trained for 150 steps, each on new examples, starting from this seed. */
<B extends Block> B trained(B model, int seed, Function<NDManager, Examples> draw) {
    Engine.getInstance().setRandomSeed(seed);
    initialized(model);
    model.getParameters().values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.015f)).build();
    var error = Loss.softmaxCrossEntropyLoss();
    for (int step = 0; step < 150; step++) {
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var batch = draw.apply(scratch);
            var answers = model.forward(parameters, batch.given(), true).head();
            // DJL's error takes a row for each answer.
            var rows = new NDList(answers.reshape(-1, 10));
            gradients.backward(error.evaluate(new NDList(batch.answers().flatten()), rows));
        }
        model.getParameters().forEach(named -> {
            var weights = named.getValue().getArray();
            try (var gradient = weights.getGradient()) {
                adam.update(named.getKey(), weights, gradient);
            }
        });
    }
    return model;
}

/** Of scores for each digit, how often the highest is that of the right one. */
double shareOf(NDArray answers, NDArray right) {
    return answers.argMax(2).eq(right).toType(DataType.FLOAT32, false).mean().getFloat();
}

// The same questions for every model.
var tests = new TreeMap<Integer, Examples>();
for (int size : new int[] {6, 12, 26}) {
    tests.put(size, dictionaries(manager, 500, size));
}

double shareRight(Block model, Examples test) {
    // All that a model computes of these goes with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.given(), test.answers());
        var answers = evaluate(model, test.given().toArray(NDArray[]::new));
        return shareOf(answers, test.answers());
    }
}

/** For each number of entries the models' shares, from low to high. */
Map<Integer, double[]> sharesRight(List<? extends Block> models) {
    var shares = new TreeMap<Integer, double[]>();
    tests.forEach((size, test) -> {
        var right = models.stream().mapToDouble(model -> shareRight(model, test));
        shares.put(size, right.sorted().toArray());
    });
    return shares;
}

Function<NDManager, Examples> ofSix = scratch -> dictionaries(scratch, 64, 6);
var seeds = List.of(0, 1, 2, 3, 4);
var models = seeds.stream().map(seed -> trained(new LookUp(), seed, ofSix)).toList();
var shares = sharesRight(models);

// %% shares tags=["tolerance:absolute=0.02"]
shares.forEach((size, right) -> {
    double low = right[0], median = right[2], high = right[4];
    System.out.printf("%2d entries: %.3f (%.3f-%.3f) right%n", size, median, low, high);
});

// %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
Engine.getInstance().setRandomSeed(0);
var one = dictionaries(manager, 1, 6);
NDArray letters = one.given().get(0), digits = one.given().get(1), questions = one.given().get(2);
evaluate(models.get(0), letters, digits, questions);
System.out.println("entries:   " + written(letters, digits));
var asksFor = LongStream.of(questions.toLongArray()).mapToObj(x -> "" + (char) ('a' + x));
System.out.println("asked for: " + asksFor.collect(Collectors.joining(" ")));
Plots.heatmaps(models.get(0).weights.expandDims(0))
        .xlabel("Entries")
        .ylabel("Letters asked for")
        .figsize(3.5, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% letters-in-keys
var many = tests.get(6);
letters = many.given().get(0);
digits = many.given().get(1);
questions = many.given().get(2);
answers = many.answers();
var model = models.get(0);
NDArray asked = evaluate(model.letter, questions), letter = evaluate(model.letter, letters);
NDArray digit = evaluate(model.digit, digits), both = letter.add(digit);
double[] right = {
    shareOf(model.answer(asked, both, both), answers),
    shareOf(model.answer(asked, letter, digit), answers),
    shareOf(model.answer(asked, digit, both), answers),
    shareOf(model.answer(asked, both, letter), answers)
};

// %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
var names = List.of(
        "as trained",
        "letters alone in the keys, digits alone in the values",
        "digits alone in the keys",
        "letters alone in the values");
for (int i = 0; i < names.size(); i++) {
    System.out.println("%.3f  %s".formatted(right[i], names.get(i)));
}

// %% removed
evaluate(model, letters, digits, questions);
var sharpest = model.weights.argMax(2); // the entry each question looks at
var isIt = sharpest.oneHot(6).gt(0);
scores = model.scores(asked, both);
var withoutIt = maskedWeights(scores, isIt.logicalNot()).matMul(evaluate(model.W_v, both));
var itAlone = maskedWeights(scores, isIt).matMul(evaluate(model.W_v, both));
double[] kept = {
    shareOf(evaluate(model.output, withoutIt), answers),
    shareOf(evaluate(model.output, itAlone), answers)
};

// %% removed-shown tags=["tolerance:absolute=0.03"]
names = List.of("that entry hidden", "that entry alone");
for (int i = 0; i < names.size(); i++) {
    System.out.println("%.3f  right with %s".formatted(kept[i], names.get(i)));
}

// %% same-answer
values = manager.create(new float[][] {{0, 0}, {1, 0}, {0, 1}, {1, 1}});
var ways = List.<List<Number>>of(
        List.of(0.5, 0, 0, 0.5), List.of(0, 0.5, 0.5, 0), List.of(0.25, 0.25, 0.25, 0.25));
for (var way : ways) {
    var shares = way.stream().mapToDouble(Number::doubleValue).toArray();
    var answer = manager.create(shares).toType(DataType.FLOAT32, false).matMul(values);
    System.out.println(way + " -> " + Arrays.toString(answer.toFloatArray()));
}

// %% solution-box
var near = between.expandDims(1).sub(x).abs().lt(0.3);
var box = maskedWeights(manager.zeros(new Shape(101, 40)), near).matMul(y);
difference = 0;
int empty = 0;
for (int i = 0; i < 101; i++) {
    var seen = y.get(near.get(i));
    if (seen.size() == 0) {
        empty++;
    } else {
        difference = Math.max(difference, apart(box.get(i), seen.mean()));
    }
}
var line = "largest difference: %.4f; places without a point nearby: %d";
System.out.println(line.formatted(difference, empty));

// %% solution-width
var byCount = new LinkedHashMap<Integer, double[]>(); // from low to high
for (int count : new int[] {20, 80, 320}) {
    var found = seeds.stream().mapToDouble(seed -> learnedWidth(points(count, seed), 1, true));
    byCount.put(count, found.sorted().toArray());
}

// %% solution-width-shown
byCount.forEach((count, found) -> {
    double low = found[0], median = found[2], high = found[4];
    System.out.printf("%3d points: %.2f (%.2f-%.2f)%n", count, median, low, high);
});

// %% solution-additive
class AdditiveLookUp extends LookUp {
    final Block w = addChildBlock("w", linear(1, false));

    @Override
    NDArray scores(NDArray queries, NDArray keys) {
        NDArray Q = evaluate(W_q, queries), K = evaluate(W_k, keys);
        var everyPair = Q.expandDims(2).add(K.expandDims(1));
        return evaluate(w, everyPair.tanh()).squeeze(-1);
    }
}

var additiveModels = seeds.stream()
        .map(seed -> trained(new AdditiveLookUp(), seed, ofSix))
        .toList();
shares = sharesRight(additiveModels);

// %% solution-additive-shown tags=["tolerance:absolute=0.02"]
shares.forEach((size, right) -> {
    double low = right[0], median = right[2], high = right[4];
    System.out.printf("%2d entries: %.3f (%.3f-%.3f) right%n", size, median, low, high);
});

// %% solution-reversal
/** Writes digits backwards; queries are learned, keys are a place plus a digit. */
class Reverser extends AbstractBlock {
    final Block digit = addChildBlock("digit", embedding(10));
    final Block asks = addChildBlock("asks", embedding(8));
    final Block stands = addChildBlock("stands", embedding(8));
    final Block output = addChildBlock("output", linear(10, true));
    NDArray weights;

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var digits = evaluate(digit, inputs.head());
        var position = inputs.head().getManager().arange(8);
        var keys = digits.add(evaluate(stands, position));
        weights = scaledDot(evaluate(asks, position), keys).softmax(-1);
        return new NDList(evaluate(output, weights.matMul(digits)));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        getChildren().values().forEach(part -> part.initialize(manager, type, new Shape(1, 32)));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0].add(10)};
    }
}

Examples backwards(NDManager manager, int count) {
    var digits = manager.randomInteger(0, 10, new Shape(count, 8), DataType.INT64);
    return new Examples(new NDList(digits), digits.flip(1));
}

var reversers = seeds.stream()
        .map(seed -> trained(new Reverser(), seed, scratch -> backwards(scratch, 64)))
        .toList();
digits = manager.randomInteger(0, 10, new Shape(500, 8), DataType.INT64);
var reversed = reversers.stream()
        .map(each -> shareOf(evaluate(each, digits), digits.flip(1)))
        .toList();

// %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
System.out.print("right:");
reversed.forEach(share -> System.out.printf(" %.3f", share));
System.out.println();
Plots.heatmaps(reversers.get(0).weights.get(":1").expandDims(0))
        .xlabel("Digits read")
        .ylabel("Digits written")
        .figsize(3.5, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-twice
letters = manager.create(new long[][] {{0, 1, 0, 2}, {0, 1, 0, 2}});
digits = manager.create(new long[][] {{3, 5, 7, 9}, {7, 5, 3, 9}}); // a3 b5 a7 c9; a7 b5 a3 c9
asked = manager.create(new long[][] {{0}, {0}});
var said = models.stream()
        .map(model -> evaluate(model, letters, digits, asked).argMax(-1).toLongArray())
        .toList();
var looked = models.stream().map(model -> model.weights.squeeze(1)).toList();

// %% solution-twice-shown tags=["nbval-ignore-output"]
for (int i = 0; i < 2; i++) {
    var entries = written(letters.get(i), digits.get(i));
    System.out.println("weights of " + entries + ", and the answer to a:");
    for (int seed = 0; seed < 5; seed++) {
        for (float weight : looked.get(seed).get(i).toFloatArray()) {
            System.out.printf("%.2f ", weight);
        }
        System.out.println("-> " + said.get(seed)[i]);
    }
}
