// The lesson's code for the Deep Java Library, from Java 17 on. Each cell is woven into
// the text by name. All imports are in the first cell, since an import in a later one
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

/**
 * Return a layer's output. Blocks call this for their parts too, past the store and the
 * flag that they are given: all share one store, and none has dropout.
 */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Initialize a layer for inputs of these shapes, and return it. */
<B extends Block> B initialize(B layer, Shape... shapes) {
    layer.initialize(manager, DataType.FLOAT32, shapes);
    return layer;
}

/**
 * Return a number as an array. DJL would make one of a plain number as well, but free
 * it before the backward pass needs it.
 */
NDArray makeScalar(NDManager manager, double number) {
    return manager.full(new Shape(1), (float) number);
}

/** Return the largest difference between two arrays. */
float largestDifference(NDArray X, NDArray Y) {
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
// how sweet, and how sour
var keys = manager.create(new float[][] {{2, 1}, {0, 3}, {3, 0}});
var values = manager.create(new float[] {50, 40, 70}); // the price, in cents
var query = manager.create(new float[] {0, 1}); // a lime: not sweet, a little sour

var scores = keys.matMul(query); // how well does each key fit?
// softmax: positive, and they sum to 1
var weights = scores.exp().div(scores.exp().sum());
var answer = weights.matMul(values); // the average of the values, with these weights

for (int i = 0; i < 3; i++) {
    float score = scores.getFloat(i);
    float weight = weights.getFloat(i);
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
/** Transpose the last two axes. */
NDArray transpose(NDArray X) {
    int axes = X.getShape().dimension();
    return X.swapAxes(axes - 2, axes - 1);
}

/** Return an answer for each query: score, softmax, average. */
NDArray attend(NDArray queries, NDArray keys, NDArray values) {
    var scores = queries.matMul(transpose(keys)); // (queries, keys)
    return scores.softmax(-1).matMul(values);
}

// %% three-customers
// sour, sweet, both
var queries = manager.create(new float[][] {{0, 1}, {1, 0}, {1, 1}});
// cents, and grams of sugar
values = manager.create(new float[][] {{50, 19}, {40, 2}, {70, 17}});
var answers = attend(queries, keys, values);
var names = List.of("sour", "sweet", "both");
for (int i = 0; i < 3; i++) {
    float price = answers.getFloat(i, 0);
    float sugar = answers.getFloat(i, 1);
    System.out.printf("%6s: %.1f cents, %.1f g of sugar%n", names.get(i), price, sugar);
}

// %% batches
queries = manager.randomNormal(new Shape(2, 3, 4));
keys = manager.randomNormal(new Shape(2, 5, 4));
values = manager.randomNormal(new Shape(2, 5, 6));
answers = attend(queries, keys, values);
System.out.println("queries " + queries.getShape());
System.out.println("keys    " + keys.getShape());
System.out.println("values  " + values.getShape());
System.out.println("answers " + answers.getShape());

// %% points
NDArray curve(NDArray x) {
    return x.mul(2).sin().add(x.div(2));
}

record Points(NDArray x, NDArray y) {}

/** Draw noisy measurements of the curve at random x from 0 to 5. */
Points drawPoints(int count, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var x = manager.randomUniform(0, 5, new Shape(count)).sort();
    return new Points(x, curve(x).add(manager.randomNormal(new Shape(count)).mul(0.3)));
}

// %% kernel-regression
/** Return scores, the logarithm of a Gaussian kernel: shape (queries, keys). */
NDArray closeness(NDArray queries, NDArray keys, NDArray width) {
    var two = makeScalar(width.getManager(), 2);
    return queries.expandDims(1).sub(keys).square().neg().div(width.square().mul(two));
}

var points = drawPoints(40, 0);
var x = points.x();
var y = points.y();
var grid = manager.linspace(0, 5, 101);
var fits = new LinkedHashMap<Number, NDArray>();
for (Number width : List.of(0.05, 0.3, 3)) {
    var scores = closeness(grid, x, makeScalar(manager, width.doubleValue()));
    fits.put(width, scores.softmax(1).matMul(y));
}

// %% three-widths
double[] toDoubles(NDArray X) {
    return X.toType(DataType.FLOAT64, false).toDoubleArray();
}

var xs = new ArrayList<>(List.of(toDoubles(x), toDoubles(grid)));
var ys = new ArrayList<>(List.of(toDoubles(y), toDoubles(curve(grid))));
var legend = new ArrayList<>(List.of("measured", "true curve"));
fits.forEach(
        (width, fit) -> {
            xs.add(toDoubles(grid));
            ys.add(toDoubles(fit));
            legend.add("width " + width);
        });
Plots.curves(xs, ys)
        .xlabel("x")
        .ylabel("y")
        .figsize(6, 3.5)
        .legend(legend.toArray(String[]::new))
        .points(0)
        .show();

// %% width-heatmaps
var maps = new NDList();
var titles = new ArrayList<String>();
for (Number width : fits.keySet()) {
    var scores = closeness(x, x, makeScalar(manager, width.doubleValue()));
    var weights = scores.softmax(1);
    maps.add(weights.div(weights.max()));
    titles.add("Width " + width);
}
Plots.heatmaps(NDArrays.stack(maps).expandDims(0))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles(titles.toArray(String[]::new))
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% without-itself
/** Return the mean squared error of predicting each point from others (or all). */
NDArray error(NDArray width, Points points, boolean hideItself) {
    var scores = closeness(points.x(), points.x(), width);
    if (hideItself) {
        var itself = scores.getManager().eye((int) scores.size(0)).gt(0);
        var minusInfinity = scores.zerosLike().add(Float.NEGATIVE_INFINITY);
        scores = NDArrays.where(itself, minusInfinity, scores);
    }
    return scores.softmax(1).matMul(points.y()).sub(points.y()).square().mean();
}

// %% learned-width
/** Learn the width, by Adam on its logarithm, which keeps it positive. */
double learnWidth(Points points, double start, boolean hideItself) {
    var logWidth = makeScalar(manager, Math.log(start));
    logWidth.setRequiresGradient(true);
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.1f)).build();
    for (int step = 0; step < 100; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            scratch.tempAttachAll(logWidth, points.x(), points.y());
            gradients.backward(error(logWidth.exp(), points, hideItself));
        }
        try (var gradient = logWidth.getGradient()) {
            adam.update("log width", logWidth, gradient);
        }
    }
    return Math.exp(logWidth.getFloat());
}

// %% learned-widths
for (Number start : List.of(0.1, 1)) {
    double width = learnWidth(points, start.doubleValue(), true);
    System.out.println("from %s, without itself: %.2f".formatted(start, width));
}
double unmaskedWidth = learnWidth(points, 1, false);
System.out.println("from 1, itself among them: %.2f".formatted(unmaskedWidth));

// %% four-scores
NDArray dot(NDArray Q, NDArray K) {
    return Q.matMul(transpose(K));
}

NDArray scaledDot(NDArray Q, NDArray K) {
    double root = Math.sqrt(K.getShape().getLastDimension());
    return Q.matMul(transpose(K)).div(makeScalar(Q.getManager(), root));
}

NDArray bilinear(NDArray Q, NDArray K, NDArray W) {
    return Q.matMul(W).matMul(transpose(K));
}

NDArray additive(NDArray Q, NDArray K, NDArray W_q, NDArray W_k, NDArray w) {
    // shape (batch, queries, keys, num_hiddens)
    var everyPair = Q.matMul(W_q).expandDims(2).add(K.matMul(W_k).expandDims(1));
    return everyPair.tanh().matMul(w);
}

// %% two-layers
/** Make a projection with weights from -1/√n to 1/√n for n inputs. */
Linear makeProjection(int units, boolean hasBias) {
    var layer = Linear.builder().setUnits(units).optBias(hasBias).build();
    var uniform = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    layer.setInitializer(uniform, Parameter.Type.WEIGHT);
    return layer;
}

/** Additive attention, made of DJL's layers. */
class AdditiveAttention {
    final Linear W_q;
    final Linear W_k;
    final Linear w_v;

    AdditiveAttention(int numHiddens, int querySize, int keySize) {
        W_q = initialize(makeProjection(numHiddens, false), new Shape(1, querySize));
        W_k = initialize(makeProjection(numHiddens, false), new Shape(1, keySize));
        w_v = initialize(makeProjection(1, false), new Shape(1, numHiddens));
    }

    NDArray forward(NDArray Q, NDArray K, NDArray V) {
        var everyPair =
                evaluate(W_q, Q).expandDims(2).add(evaluate(W_k, K).expandDims(1));
        return evaluate(w_v, everyPair.tanh()).squeeze(-1).softmax(-1).matMul(V);
    }
}

/** Return a layer's matrix, which multiplies its inputs from the right. */
NDArray getMatrix(Linear layer) {
    return layer.getParameters().valueAt(0).getArray().transpose();
}

var Q = manager.randomNormal(new Shape(2, 3, 8));
var K = manager.randomNormal(new Shape(2, 5, 8));
var V = manager.randomNormal(new Shape(2, 5, 4));
var scaledLayer = new DotProductAttention(0);
var additiveLayer = new AdditiveAttention(16, 8, 8);
var layerOutputs =
        List.of(evaluate(scaledLayer, Q, K, V), additiveLayer.forward(Q, K, V));

var W_q = getMatrix(additiveLayer.W_q);
var W_k = getMatrix(additiveLayer.W_k);
var w = getMatrix(additiveLayer.w_v).squeeze(1);
var manualOutputs =
        List.of(
                scaledDot(Q, K).softmax(-1).matMul(V),
                additive(Q, K, W_q, W_k, w).softmax(-1).matMul(V));

// %% two-layers-shown
names = List.of("scaled dot", "additive");
for (int i = 0; i < 2; i++) {
    float largest = manualOutputs.get(i).abs().max().getFloat();
    float difference = largestDifference(layerOutputs.get(i), manualOutputs.get(i));
    var line = "%10s: largest answer %.4f, largest difference %.4f";
    System.out.println(line.formatted(names.get(i), largest, difference));
}

// %% gaussian-or-dot
NDArray gaussian(NDArray Q, NDArray K) {
    var differences = Q.expandDims(2).sub(K.expandDims(1)); // (batch, queries, keys, d)
    return differences.square().sum(new int[] {3}).div(-2);
}

float weightDifference(NDArray Q, NDArray K) {
    var distanceWeights = gaussian(Q, K).softmax(-1);
    var productWeights = dot(Q, K).softmax(-1);
    return largestDifference(distanceWeights, productWeights);
}

var unitKeys = K.normalize(2, 2);

// %% gaussian-or-dot-shown
float anyLength = weightDifference(Q, K);
float equalLength = weightDifference(Q, unitKeys);
System.out.println(
        "keys of any length:    weights differ by up to %.4f".formatted(anyLength));
System.out.println(
        "keys of equal length:  weights differ by up to %.4f".formatted(equalLength));

// %% saturation
Engine.getInstance().setRandomSeed(0);
var widths = IntStream.rangeClosed(2, 10).map(power -> 1 << power).toArray();
// The first row is for unscaled scores, the second for scaled ones.
var largestWeights = new double[2][widths.length];
var slopes = new double[2][widths.length];
for (int i = 0; i < widths.length; i++) {
    query = manager.randomNormal(new Shape(1000, 1, widths[i]));
    var tenKeys = manager.randomNormal(new Shape(1000, 10, widths[i]));
    var bothScores = List.of(dot(query, tenKeys), scaledDot(query, tenKeys));
    for (int k = 0; k < 2; k++) {
        var weights = bothScores.get(k).softmax(-1).squeeze(1);
        largestWeights[k][i] = weights.max(new int[] {1}).mean().getFloat();
        var column = weights.expandDims(2);
        var outer = column.mul(weights.expandDims(1)); // (queries, keys, keys)
        var derivative = column.mul(manager.eye(10)).sub(outer);
        var norms = derivative.square().sum(new int[] {1, 2}).sqrt();
        slopes[k][i] = norms.median().getFloat();
    }
}

// %% largest-weight
var powers = IntStream.rangeClosed(2, 10).asDoubleStream().toArray();
Plots.curves(powers, largestWeights)
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
/** Take the softmax over the visible keys; the others get a weight of zero. */
NDArray maskedWeights(NDArray scores, NDArray isVisible) {
    var minusInfinity = scores.zerosLike().add(Float.NEGATIVE_INFINITY);
    return NDArrays.where(isVisible, scores, minusInfinity).softmax(-1);
}

Engine.getInstance().setRandomSeed(0);
var position = manager.arange(5);
var isReal = position.lt(3).broadcast(5, 5); // three real keys, two of padding
var causalMask = position.lte(position.expandDims(1)); // no later key
scores = manager.randomNormal(new Shape(5, 5));
var masks = List.of(isReal, causalMask, isReal.logicalAnd(causalMask));
maps = new NDList(masks.stream().map(mask -> maskedWeights(scores, mask)).toList());
Plots.heatmaps(NDArrays.stack(maps).expandDims(0))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("Padding", "Causal", "Both")
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% last-queries
/** Return the scaled attention of these queries over X, with these masks. */
NDArray maskedAttention(
        DotProductAttention layer,
        NDArray queries,
        NDArray X,
        Map<String, Object> masks) {
    var inputs = new NDList(queries, X, X);
    return layer.forward(parameters, inputs, false, new PairList<>(masks)).head();
}

Engine.getInstance().setRandomSeed(0);
var layer = new DotProductAttention(0);
var X = manager.randomNormal(new Shape(1, 5, 8));
var outputAll = maskedAttention(layer, X, X, Map.of("causal", true));
var outputLastTwo = maskedAttention(layer, X.get(":, -2:"), X, Map.of("causal", true));
var keysSeen = layer.attentionWeights().get(0).gt(0).sum(new int[] {1}).toLongArray();
System.out.println("two queries: keys seen " + Arrays.toString(keysSeen));
float difference = largestDifference(outputLastTwo, outputAll.get(":, -2:"));
System.out.println(
        "from the last two of five: largest difference %.4f".formatted(difference));

// %% empty-row
void printRow(String name, NDArray weights) {
    System.out.print(name);
    for (float weight : weights.toFloatArray()) {
        System.out.printf(" %5.2f", weight);
    }
    System.out.println();
}

isReal = position.gte(2).broadcast(5, 5); // here the padding comes first
weights = maskedWeights(scores, isReal.logicalAnd(causalMask));
printRow("by hand:   ", weights.get(0));
var minusInfinity = manager.full(new Shape(5, 5), Float.NEGATIVE_INFINITY);
var bias = NDArrays.where(isReal, minusInfinity.zerosLike(), minusInfinity);
maskedAttention(layer, X, X, Map.of("causal", true, "scoreBias", bias));
printRow("the layer: ", layer.attentionWeights().get(0).get(0));

// %% dictionaries
String LETTERS = "abcdefghijklmnopqrstuvwxyz";

record Examples(NDList inputs, NDArray answers) {}

/**
 * Draw entries (a letter and a digit each), letters to ask for, and the answers.
 *
 * <p>Return four arrays of whole numbers, each of shape (count, size).
 */
Examples drawDictionaries(NDManager manager, int count, int size) {
    // no letter twice
    var alphabets = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = alphabets.get(":, :{}", size);
    var digits = manager.randomInteger(0, 10, new Shape(count, size), DataType.INT64);
    var order = manager.randomUniform(0, 1, new Shape(count, size)).argSort(1);
    var questions = letters.gather(order, 1);
    var answers = digits.gather(order, 1);
    return new Examples(new NDList(letters, digits, questions), answers);
}

/** Return names such as p2, for one dictionary's entries. */
List<String> namePairs(NDArray letters, NDArray digits) {
    var pairs = new ArrayList<String>();
    for (int i = 0; i < letters.size(); i++) {
        char letter = LETTERS.charAt((int) letters.getLong(i));
        pairs.add("" + letter + digits.getLong(i));
    }
    return pairs;
}

var samples = drawDictionaries(manager, 3, 6);
for (int i = 0; i < 3; i++) {
    var letters = samples.inputs().get(0).get(i);
    var digits = samples.inputs().get(1).get(i);
    var questions = samples.inputs().get(2).get(i);
    var answers = samples.answers().get(i);
    System.out.print(String.join(" ", namePairs(letters, digits)));
    System.out.println("  ->  " + String.join(" ", namePairs(questions, answers)));
}

// %% look-up
/** Make a table with a vector for each letter or digit. */
Block makeEmbedding(int size) {
    var builder = new IdEmbedding.Builder();
    var table = builder.setDictionarySize(size).setEmbeddingSize(32).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return table;
}

/** A dictionary with learned queries, keys and values, which scores each digit. */
class LookUp extends AbstractBlock {
    final Block letter = addChildBlock("letter", makeEmbedding(26));
    final Block digit = addChildBlock("digit", makeEmbedding(10));
    final Block W_q = addChildBlock("W_q", makeProjection(32, false));
    final Block W_k = addChildBlock("W_k", makeProjection(32, false));
    final Block W_v = addChildBlock("W_v", makeProjection(32, false));
    final Block output = addChildBlock("output", makeProjection(10, true));
    NDArray attentionWeights;

    /** Take the entries' letters and digits, and the letters asked for. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var letters = inputs.get(0);
        var digits = inputs.get(1);
        var questions = inputs.get(2);
        var entries = evaluate(letter, letters).add(evaluate(digit, digits));
        return new NDList(answer(evaluate(letter, questions), entries, entries));
    }

    NDArray answer(NDArray queries, NDArray keys, NDArray values) {
        var scores = scaledDot(evaluate(W_q, queries), evaluate(W_k, keys));
        attentionWeights = scores.softmax(-1);
        return evaluate(output, attentionWeights.matMul(evaluate(W_v, values)));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 32);
        getChildren().values().forEach(part -> part.initialize(manager, type, vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[2].add(10)};
    }
}

// %% train
/** Train the model for 150 steps from this seed, each on new examples. */
<B extends Block> B train(B model, int seed, Function<NDManager, Examples> draw) {
    Engine.getInstance().setRandomSeed(seed);
    initialize(model);
    var weightsByName = model.getParameters();
    weightsByName.values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.015f)).build();
    var loss = Loss.softmaxCrossEntropyLoss();
    for (int step = 0; step < 150; step++) {
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var examples = draw.apply(scratch);
            var scores = model.forward(parameters, examples.inputs(), true).head();
            // DJL's loss takes a row for each answer.
            var rows = new NDList(scores.reshape(-1, 10));
            var answers = new NDList(examples.answers().flatten());
            gradients.backward(loss.evaluate(answers, rows));
        }
        for (var named : weightsByName) {
            var array = named.getValue().getArray();
            try (var gradient = array.getGradient()) {
                adam.update(named.getKey(), array, gradient);
            }
        }
    }
    return model;
}

Function<NDManager, Examples> drawBatch = scratch -> drawDictionaries(scratch, 64, 6);

// %% accuracies
/** Return how often the right digit has the highest score. */
double accuracy(NDArray scores, NDArray answers) {
    var isRight = scores.argMax(-1).eq(answers);
    return isRight.toType(DataType.FLOAT32, false).mean().getFloat();
}

// The same questions for every model.
var sizes = List.of(6, 12, 26);
var tests = new LinkedHashMap<Integer, Examples>();
for (int size : sizes) {
    tests.put(size, drawDictionaries(manager, 500, size));
}

double testAccuracy(Block model, Examples test) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var scores = model.forward(parameters, test.inputs(), false).head();
        return accuracy(scores, test.answers());
    }
}

/** Return the share of right answers, (models, sizes). */
double[][] accuracies(List<? extends Block> models) {
    var shares = new ArrayList<double[]>();
    for (var model : models) {
        var row = DoubleStream.builder();
        for (var test : tests.values()) {
            row.add(testAccuracy(model, test));
        }
        shares.add(row.build().toArray());
    }
    return shares.toArray(double[][]::new);
}

var seeds = List.of(0, 1, 2, 3, 4);
var models = seeds.stream().map(seed -> train(new LookUp(), seed, drawBatch)).toList();
var lookUpAccuracies = accuracies(models);

// %% shares tags=["tolerance:absolute=0.02"]
Ranges.print(Map.of("right", lookUpAccuracies), sizes, "entries", 3);

// %% trained-map tags=["tolerance:levels=16", "tolerance:zeros=6"]
Engine.getInstance().setRandomSeed(0);
var example = drawDictionaries(manager, 1, 6);
var letters = example.inputs().get(0);
var digits = example.inputs().get(1);
var questions = example.inputs().get(2);
evaluate(models.get(0), letters, digits, questions);
Plots.heatmaps(models.get(0).attentionWeights.expandDims(0))
        .xlabel("Entries")
        .ylabel("Letters asked for")
        .figsize(3.5, 3)
        .cmap(ColorMap.BLUES)
        .xticklabels(namePairs(letters.get(0), digits.get(0)).toArray(String[]::new))
        .yticklabels(
                LongStream.of(questions.toLongArray())
                        .mapToObj(letter -> "" + LETTERS.charAt((int) letter))
                        .toArray(String[]::new))
        .marks(questions.transpose().eq(letters))
        .show();

// %% letters-in-keys
var test = tests.get(6);
letters = test.inputs().get(0);
digits = test.inputs().get(1);
questions = test.inputs().get(2);
answers = test.answers();
var model = models.get(0);
queries = evaluate(model.letter, questions);
var letterVectors = evaluate(model.letter, letters);
var digitVectors = evaluate(model.digit, digits);
var entries = letterVectors.add(digitVectors);
double[] partAccuracies = {
    accuracy(model.answer(queries, entries, entries), answers),
    accuracy(model.answer(queries, letterVectors, digitVectors), answers),
    accuracy(model.answer(queries, digitVectors, entries), answers),
    accuracy(model.answer(queries, entries, letterVectors), answers)
};

// %% letters-in-keys-shown tags=["tolerance:absolute=0.03"]
names =
        List.of(
                "as trained",
                "letters alone in the keys, digits alone in the values",
                "digits alone in the keys",
                "letters alone in the values");
for (int i = 0; i < names.size(); i++) {
    System.out.println("%.3f  %s".formatted(partAccuracies[i], names.get(i)));
}

// %% removed
evaluate(model, letters, digits, questions);
var heaviest = model.attentionWeights.argMax(2); // what each question looks at
var isHeaviest = heaviest.oneHot(6).gt(0);
scores = scaledDot(evaluate(model.W_q, queries), evaluate(model.W_k, entries));
values = evaluate(model.W_v, entries);
var othersOnly = maskedWeights(scores, isHeaviest.logicalNot()).matMul(values);
var heaviestOnly = maskedWeights(scores, isHeaviest).matMul(values);
double[] maskedAccuracies = {
    accuracy(evaluate(model.output, othersOnly), answers),
    accuracy(evaluate(model.output, heaviestOnly), answers)
};

// %% removed-shown tags=["tolerance:absolute=0.03"]
names = List.of("that entry hidden", "that entry alone");
for (int i = 0; i < names.size(); i++) {
    System.out.println(
            "%.3f  right with %s".formatted(maskedAccuracies[i], names.get(i)));
}

// %% same-answer
values = manager.create(new float[][] {{0, 0}, {1, 0}, {0, 1}, {1, 1}});
var weightSets =
        List.<List<Number>>of(
                List.of(0.5, 0, 0, 0.5),
                List.of(0, 0.5, 0.5, 0),
                List.of(0.25, 0.25, 0.25, 0.25));
for (var weights : weightSets) {
    var numbers = weights.stream().mapToDouble(Number::doubleValue).toArray();
    var answer = manager.create(numbers).toType(DataType.FLOAT32, false).matMul(values);
    System.out.println(weights + " -> " + Arrays.toString(answer.toFloatArray()));
}

// %% solution-box
var isNear = grid.expandDims(1).sub(x).abs().lt(0.3);
var box = maskedWeights(manager.zeros(new Shape(101, 40)), isNear).matMul(y);
difference = 0;
int numEmpty = 0;
for (int i = 0; i < 101; i++) {
    var nearby = y.get(isNear.get(i));
    if (nearby.size() == 0) {
        numEmpty++;
    } else {
        difference = Math.max(difference, largestDifference(box.get(i), nearby.mean()));
    }
}
var line = "largest difference: %.4f; places without a point nearby: %d";
System.out.println(line.formatted(difference, numEmpty));

// %% solution-width
var counts = List.of(20, 80, 320);
var learnedWidths = new double[5][counts.size()];
for (int seed = 0; seed < 5; seed++) {
    for (int i = 0; i < counts.size(); i++) {
        var fewPoints = drawPoints(counts.get(i), seed);
        learnedWidths[seed][i] = learnWidth(fewPoints, 1, true);
    }
}

// %% solution-width-shown
Ranges.print(Map.of("width", learnedWidths), counts, "points");

// %% solution-additive
class AdditiveLookUp extends LookUp {
    final Block w = addChildBlock("w", makeProjection(1, false));

    @Override
    NDArray answer(NDArray queries, NDArray keys, NDArray values) {
        var Q = evaluate(W_q, queries);
        var K = evaluate(W_k, keys);
        var everyPair = Q.expandDims(2).add(K.expandDims(1));
        attentionWeights = evaluate(w, everyPair.tanh()).squeeze(-1).softmax(-1);
        return evaluate(output, attentionWeights.matMul(evaluate(W_v, values)));
    }
}

var additiveModels =
        seeds.stream()
                .map(seed -> train(new AdditiveLookUp(), seed, drawBatch))
                .toList();
var additiveAccuracies = accuracies(additiveModels);

// %% solution-additive-shown tags=["tolerance:absolute=0.02"]
Ranges.print(Map.of("right", additiveAccuracies), sizes, "entries", 3);

// %% solution-reversal
/** A model that writes digits backwards; a key is the sum of place and digit. */
class Reverser extends AbstractBlock {
    final Block digit = addChildBlock("digit", makeEmbedding(10));
    final Block query = addChildBlock("query", makeEmbedding(8));
    final Block place = addChildBlock("place", makeEmbedding(8));
    final Block output = addChildBlock("output", makeProjection(10, true));
    NDArray attentionWeights;

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var digits = inputs.head();
        var position = digits.getManager().arange(8);
        var queries = evaluate(query, position);
        var values = evaluate(digit, digits);
        var keys = values.add(evaluate(place, position));
        attentionWeights = scaledDot(queries, keys).softmax(-1);
        return new NDList(evaluate(output, attentionWeights.matMul(values)));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 32);
        getChildren().values().forEach(part -> part.initialize(manager, type, vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0].add(10)};
    }
}

// %% solution-reversers
Examples drawReversals(NDManager manager, int count) {
    var digits = manager.randomInteger(0, 10, new Shape(count, 8), DataType.INT64);
    return new Examples(new NDList(digits), digits.flip(1));
}

Function<NDManager, Examples> drawReversalBatch = scratch -> drawReversals(scratch, 64);
var reversers =
        seeds.stream()
                .map(seed -> train(new Reverser(), seed, drawReversalBatch))
                .toList();
digits = manager.randomInteger(0, 10, new Shape(500, 8), DataType.INT64);
var reverserAccuracies =
        reversers.stream()
                .map(reverser -> accuracy(evaluate(reverser, digits), digits.flip(1)))
                .toList();

// %% solution-reversal-map tags=["tolerance:levels=16", "tolerance:absolute=0.02"]
System.out.print("right:");
reverserAccuracies.forEach(share -> System.out.printf(" %.3f", share));
System.out.println();
Plots.heatmaps(reversers.get(0).attentionWeights.get(":1").expandDims(0))
        .xlabel("Digits read")
        .ylabel("Digits written")
        .figsize(3.5, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-twice
letters = manager.create(new long[][] {{0, 1, 0, 2}, {0, 1, 0, 2}});
// a3 b5 a7 c9; a7 b5 a3 c9
digits = manager.create(new long[][] {{3, 5, 7, 9}, {7, 5, 3, 9}});
questions = manager.create(new long[][] {{0}, {0}});
var predictions = new ArrayList<long[]>();
var attentionMaps = new ArrayList<NDArray>();
for (var model : models) {
    var scores = evaluate(model, letters, digits, questions);
    predictions.add(scores.argMax(-1).toLongArray());
    attentionMaps.add(model.attentionWeights.squeeze(1));
}

// %% solution-twice-shown tags=["nbval-ignore-output"]
for (int i = 0; i < 2; i++) {
    var pairs = String.join(" ", namePairs(letters.get(i), digits.get(i)));
    System.out.println("weights of " + pairs + ", and the answer to a:");
    for (int seed = 0; seed < 5; seed++) {
        for (float weight : attentionMaps.get(seed).get(i).toFloatArray()) {
            System.out.printf("%.2f ", weight);
        }
        System.out.println("-> " + predictions.get(seed)[i]);
    }
}
