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
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.core.Linear;
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
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

// %% turn
/** Turn a vector of two numbers by 30 degrees for each position. */
NDArray turn(NDArray vector, int position) {
    double angle = Math.toRadians(30 * position);
    double cos = Math.cos(angle);
    double sin = Math.sin(angle);
    double x = vector.getDouble(0);
    double y = vector.getDouble(1);
    return manager.create(new double[] {x * cos - y * sin, x * sin + y * cos});
}

String formatVector(NDArray vector) {
    return "(%5.2f, %5.2f)".formatted(vector.getDouble(0), vector.getDouble(1));
}

// %% turned-by-hand
var query = manager.create(new double[] {1, 2});
var key = manager.create(new double[] {2, 2});
int[][] positionsOfBoth = {{2, 0}, {5, 3}, {9, 7}, {5, 4}, {9, 8}, {0, 2}};

System.out.println("positions  turned query     turned key      score");
for (int[] pair : positionsOfBoth) {
    int i = pair[0];
    int j = pair[1];
    var q = turn(query, i);
    var k = turn(key, j);
    System.out.printf("%4d%4d   %s  %s  ", i, j, formatVector(q), formatVector(k));
    System.out.printf("%5.2f%n", q.dot(k).getDouble());
}

// %% four-terms
// rotated to a vector's position, then added to it
var hand = manager.create(new double[] {1, 0});

System.out.println("positions    q.k    q.p    p.k    p.p    sum");
for (int[] pair : positionsOfBoth) {
    int i = pair[0];
    int j = pair[1];
    var p_i = turn(hand, i);
    var p_j = turn(hand, j);
    var terms = List.of(query.dot(key), query.dot(p_j), p_i.dot(key), p_i.dot(p_j));
    var score = query.add(p_i).dot(key.add(p_j));
    System.out.printf("%4d%4d ", i, j);
    terms.forEach(term -> System.out.printf("%7.2f", term.getDouble()));
    System.out.printf("%7.2f%n", score.getDouble());
}

// %% rotate
/** Return how far each pair turns from one position to the next, in radians. */
NDArray ropeFrequencies(int d, double base) {
    return NDArrays.pow(base, manager.arange(0f, d, 2f).div(-d));
}

/** Turn each pair of neighbouring numbers by position times frequency. */
NDArray rotate(NDArray X, NDArray positions, NDArray omega) {
    var angles = positions.expandDims(1).mul(omega);
    var cos = angles.cos();
    var sin = angles.sin();
    var x = X.get("..., ::2");
    var y = X.get("..., 1::2");
    var first = x.mul(cos).sub(y.mul(sin));
    var second = x.mul(sin).add(y.mul(cos));
    return first.stack(second, -1).reshape(X.getShape());
}

// %% spread
/** Return the largest difference between two scores at one distance. */
double spread(NDArray scores) {
    int n = (int) scores.size(0);
    double largest = 0;
    for (int offset = 1 - n; offset < n; offset++) {
        var diagonal = scores.diagonal(offset);
        largest = Math.max(largest, diagonal.max().sub(diagonal.min()).getFloat());
    }
    return largest;
}

// %% rotary-check
Engine.getInstance().setRandomSeed(0);
int d = 8;
int n = 40;
query = manager.randomNormal(new Shape(d));
key = manager.randomNormal(new Shape(d));
var positions = manager.arange(n);
var omega = ropeFrequencies(d, 10000);
var q = rotate(query.broadcast(n, d), positions, omega);
var k = rotate(key.broadcast(n, d), positions, omega);
var scores = q.matMul(k.transpose());
var layerOutput = evaluate(new RotaryEncoding(d), query.broadcast(1, n, d)).get(0);

float low = scores.min().getFloat();
float high = scores.max().getFloat();
double scoreSpread = spread(scores);
float lengthChange = q.norm(new int[] {1}).sub(query.norm()).abs().max().getFloat();
float layerDifference = largestDifference(layerOutput, q);
System.out.println("scores from %.2f to %.2f".formatted(low, high));
System.out.println(
        "at one distance they differ by %.4f at most".formatted(scoreSpread));
System.out.println("lengths change by %.4f at most".formatted(lengthChange));
System.out.println("the layer: largest difference %.4f".formatted(layerDifference));

// %% rotate-halves
/** Turn the pairs in the same way, but pair number l with number l + d/2. */
NDArray rotateHalves(NDArray X, NDArray positions, NDArray omega) {
    var angles = positions.expandDims(1).mul(omega);
    var cos = angles.cos();
    var sin = angles.sin();
    long half = X.getShape().getLastDimension() / 2;
    var x = X.get("..., :{}", half);
    var y = X.get("..., {}:", half);
    return x.mul(cos).sub(y.mul(sin)).concat(x.mul(sin).add(y.mul(cos)), -1);
}

// %% layouts
Engine.getInstance().setRandomSeed(0);
var X = manager.randomNormal(new Shape(n, d));
var order = manager.create(new int[] {0, 2, 4, 6, 1, 3, 5, 7});
var reorder = new NDIndex(":, {}", order);
var neighbours = rotate(X, positions, omega);
var halves = rotateHalves(X.get(reorder), positions, omega);
var layer = new RotaryEncoding(d, 1000, 10000, RotaryEncoding.Layout.HALVES, 1);
layerOutput = evaluate(layer, X.get(reorder).expandDims(0)).get(0);

float difference = largestDifference(neighbours.get(reorder), halves);
layerDifference = largestDifference(layerOutput, halves);
System.out.println("reordered: largest difference %.4f".formatted(difference));
System.out.println("the layer: largest difference %.4f".formatted(layerDifference));

// %% mixed
var qHalves = rotateHalves(query.broadcast(n, d), positions, omega);
var kHalves = rotateHalves(key.broadcast(n, d), positions, omega);

double neighboursSpread = spread(q.matMul(k.transpose()));
double halvesSpread = spread(qHalves.matMul(kHalves.transpose()));
double mixedSpread = spread(q.matMul(kHalves.transpose()));
System.out.println("at one distance, scores differ by");
System.out.println("%.4f  with neighbours for both".formatted(neighboursSpread));
System.out.println("%.4f  with halves for both".formatted(halvesSpread));
System.out.println("%.4f  with one of each".formatted(mixedSpread));

// %% slopes
var slopes = AlibiSlopes.alibiSlopes(manager, 8);
var expected = new float[8];
for (int head = 0; head < 8; head++) {
    expected[head] = (float) Math.pow(2, -(head + 1));
}

System.out.print("slopes:");
for (float slope : slopes.toFloatArray()) {
    System.out.printf(" 1/%.0f", 1 / slope);
}
System.out.println();
difference = largestDifference(slopes, manager.create(expected));
System.out.println("largest difference: %.4f".formatted(difference));

// %% alibi-map
n = 12;
positions = manager.arange(n);
var distances = positions.expandDims(1).sub(positions);
var bias = slopes.reshape(8, 1, 1).mul(distances).neg(); // (heads, queries, keys)
var zeros = manager.zeros(new Shape(1, n, 8)); // no content: all scores are zero
var shape = zeros.getShape();
var attention = initialize(new MultiHeadAttention(8, 8, 0), shape, shape, shape);
var masks = new PairList<String, Object>(Map.of("causal", true, "scoreBias", bias));
attention.forward(parameters, new NDList(zeros, zeros, zeros), false, masks);
var weights = attention.attentionWeights();

System.out.print("last row, first head:");
for (float weight : weights.get("0, 0, -1, -4:").toFloatArray()) {
    System.out.printf(" %.3f", weight);
}
System.out.println();
Plots.heatmaps(weights.get(new NDIndex(":, {}", manager.create(new int[] {0, 2, 6}))))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("Slope 1/2", "Slope 1/8", "Slope 1/128")
        .figsize(7, 2.7)
        .cmap(ColorMap.BLUES)
        .show();

// %% clipped
for (int i = 0; i < 6; i++) {
    for (int j = 0; j < 6; j++) {
        System.out.printf("%4d", Math.min(Math.max(i - j, -3), 3));
    }
    System.out.println();
}

// %% bucket
/** Return a distance's bucket: its own if near, a shared and wider one if far. */
int bucket(int distance, int count, int far) {
    int near = count / 2;
    if (distance < near) {
        return distance;
    }
    double share = Math.log((double) distance / near) / Math.log((double) far / near);
    return Math.min(near + (int) ((count - near) * share), count - 1);
}

System.out.print("distance:");
for (int distance = 1; distance <= 20; distance++) {
    System.out.printf(" %2d", distance);
}
System.out.println();
System.out.print("bucket:  ");
for (int distance = 1; distance <= 20; distance++) {
    System.out.printf(" %2d", bucket(distance, 8, 16));
}
System.out.println();

// %% mask-alone
// one number per token: is it the first?
var isFirst = manager.eye(8).get(":, :1").expandDims(0);
zeros = manager.zeros(new Shape(1, 8, 2)); // all scores are zero
for (boolean causal : new boolean[] {false, true}) {
    var inputs = new NDList(zeros, zeros, isFirst);
    var causalMask = new PairList<String, Object>(Map.of("causal", causal));
    var averaging = new DotProductAttention(0);
    var averages = averaging.forward(parameters, inputs, false, causalMask).head();
    for (float x : averages.toFloatArray()) {
        System.out.printf("%.3f ", x);
    }
    System.out.println(causal ? " causal mask" : " without a mask");
}

// %% entries
String LETTERS = "abcdef";

record Examples(NDList inputs, NDArray answers) {}

/**
 * Draw texts, and a letter to ask for.
 *
 * @param nearest the smallest distance back at which the letter stood last
 * @param farthest the largest one
 * @return letters and digits (count, numEntries), the letters asked for and the answers
 *     (count, 1)
 */
Examples drawEntries(
        NDManager manager, int count, int numEntries, int nearest, int farthest) {
    var texts = new Shape(count, numEntries);
    var questions = new Shape(count, 1);
    var letters = manager.randomInteger(0, 6, texts, DataType.INT64);
    var digits = manager.randomInteger(0, 10, texts, DataType.INT64);
    var asked = manager.randomInteger(0, 6, questions, DataType.INT64);
    var back = manager.randomInteger(nearest, farthest + 1, questions, DataType.INT64);
    var last = back.neg().add(numEntries);
    var others = asked.add(manager.randomInteger(1, 6, texts, DataType.INT64)).mod(6);
    var positions = manager.arange(numEntries);
    letters = NDArrays.where(positions.eq(last), asked.broadcast(texts), letters);
    letters = NDArrays.where(positions.gt(last), others, letters);
    return new Examples(new NDList(letters, digits, asked), digits.gather(last, 1));
}

/** Return names such as b2, for one text's entries. */
List<String> nameEntries(NDArray letters, NDArray digits) {
    var names = new ArrayList<String>();
    for (int i = 0; i < letters.size(); i++) {
        char letter = LETTERS.charAt((int) letters.getLong(i));
        names.add("" + letter + digits.getLong(i));
    }
    return names;
}

// %% entries-shown
Engine.getInstance().setRandomSeed(1);
var examples = drawEntries(manager, 3, 16, 1, 16);
for (int i = 0; i < 3; i++) {
    var letters = examples.inputs().get(0).get(i);
    var digits = examples.inputs().get(1).get(i);
    int asked = (int) examples.inputs().get(2).getLong(i, 0);
    long answer = examples.answers().getLong(i, 0);
    System.out.print(String.join(" ", nameEntries(letters, digits)));
    System.out.printf("  %c? %d%n", LETTERS.charAt(asked), answer);
}

// %% no-positions
/** The three places where a scheme can use positions; by default, it uses none. */
class PositionScheme {
    /** Return the blocks that are trained. */
    List<Block> parts() {
        return List.of();
    }

    /** Return vectors (batch, n, d), at n positions, as they enter projections. */
    NDArray add(NDArray X, NDArray positions) {
        return X;
    }

    /** Return queries or keys (batch, n, d) as they enter the scores. */
    NDArray turn(NDArray X, NDArray positions) {
        return X;
    }

    /** Return what is added to scores of queries (batch, 1, d) with n keys. */
    NDArray bias(NDArray q, NDArray distances) {
        return distances.zerosLike();
    }
}

class NoPositions extends PositionScheme {}

// %% finder
var normal = new NormalInitializer(1);

/** Make a table with a vector of this width for each letter, digit or distance. */
Block makeEmbedding(int size, int width, Initializer initializer) {
    var builder = new IdEmbedding.Builder();
    var table = builder.setDictionarySize(size).setEmbeddingSize(width).build();
    table.setInitializer(initializer, Parameter.Type.WEIGHT);
    return table;
}

/** Make a projection with weights from -1/√n to 1/√n for n inputs. */
Linear makeProjection(int units, boolean hasBias) {
    var linear = Linear.builder().setUnits(units).optBias(hasBias).build();
    var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    linear.setInitializer(narrow, Parameter.Type.WEIGHT);
    return linear;
}

/** Return products of queries and keys, divided by the root of their width. */
NDArray scaledDot(NDArray Q, NDArray K) {
    int axes = K.getShape().dimension();
    long d = K.getShape().getLastDimension();
    var root = makeScalar(Q.getManager(), Math.sqrt(d));
    return Q.matMul(K.swapAxes(axes - 2, axes - 1)).div(root);
}

/** A model that finds a letter's last digit; the question follows the text. */
class Finder extends AbstractBlock {
    final PositionScheme scheme;
    final Block letter;
    final Block digit;
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear output;
    NDArray attentionWeights;

    Finder(PositionScheme scheme) {
        this.scheme = scheme;
        scheme.parts().forEach(part -> addChildBlock("schemePart", part));
        letter = addChildBlock("letterTable", makeEmbedding(6, 32, normal));
        digit = addChildBlock("digitTable", makeEmbedding(10, 32, normal));
        W_q = addChildBlock("W_q", makeProjection(32, false));
        W_k = addChildBlock("W_k", makeProjection(32, false));
        W_v = addChildBlock("W_v", makeProjection(32, false));
        output = addChildBlock("outputLayer", makeProjection(10, true));
    }

    /** Take the text's letters and digits, and the letters asked for. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var letters = inputs.get(0);
        var digits = inputs.get(1);
        var asked = inputs.get(2);
        int n = (int) letters.size(1);
        var i = letters.getManager().arange(n, n + 1); // the question's position
        var j = letters.getManager().arange(n); // the entries'
        var question = scheme.add(evaluate(letter, asked), i);
        var X = scheme.add(evaluate(letter, letters).add(evaluate(digit, digits)), j);
        var q = scheme.turn(evaluate(W_q, question), i);
        var k = scheme.turn(evaluate(W_k, X), j);
        var scores = scaledDot(q, k).add(scheme.bias(q, i.sub(j)));
        attentionWeights = scores.softmax(-1);
        var found = attentionWeights.matMul(evaluate(W_v, X));
        return new NDList(evaluate(output, found));
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

// %% schemes
class Sinusoids extends PositionScheme {
    final NDArray omega = ropeFrequencies(32, 10000);

    @Override
    NDArray add(NDArray X, NDArray positions) {
        var angles = positions.expandDims(1).mul(omega);
        return X.add(angles.sin().stack(angles.cos(), -1).reshape(-1, 32));
    }
}

class Rotary extends PositionScheme {
    NDArray omega = ropeFrequencies(32, 10000);

    @Override
    NDArray turn(NDArray X, NDArray positions) {
        return rotate(X, positions, omega);
    }
}

class ALiBi extends PositionScheme {
    final float slope;

    ALiBi(float slope) {
        this.slope = slope;
    }

    @Override
    NDArray bias(NDArray q, NDArray distances) {
        return distances.mul(-slope);
    }
}

// %% learned-schemes
class Table extends PositionScheme {
    final int reach;
    final Block vectors; // of distances from 1 on

    Table(int reach) {
        this.reach = reach;
        vectors = makeEmbedding(reach, 32, Initializer.ZEROS);
    }

    @Override
    List<Block> parts() {
        return List.of(vectors);
    }

    @Override
    NDArray bias(NDArray q, NDArray distances) {
        var rows = distances.minimum(reach).sub(1);
        return scaledDot(q, evaluate(vectors, rows));
    }
}

class Buckets extends PositionScheme {
    final Block numbers = makeEmbedding(8, 1, Initializer.ZEROS);

    @Override
    List<Block> parts() {
        return List.of(numbers);
    }

    @Override
    NDArray bias(NDArray q, NDArray distances) {
        var manager = distances.getManager();
        var rows = IntStream.of(distances.toIntArray()).map(x -> bucket(x, 8, 16));
        var biases = evaluate(numbers, manager.create(rows.toArray())).squeeze(-1);
        // Adam moves a number by about 0.015 per step; a score has to move by several
        // units.
        return biases.mul(makeScalar(manager, 10));
    }
}

// %% train
/** Return the loss of the scores for each digit as the answer. */
NDArray loss(Block model, Examples examples) {
    // DJL's loss takes a row for each answer.
    var rows = model.forward(parameters, examples.inputs(), true).head().squeeze(1);
    var answers = new NDList(examples.answers().squeeze(1));
    return Loss.softmaxCrossEntropyLoss().evaluate(answers, new NDList(rows));
}

/** Train a model; return it. */
<B extends Block> B fit(B model) {
    var weights = model.getParameters();
    weights.values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.015f)).build();
    for (int step = 0; step < 120; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            gradients.backward(loss(model, drawEntries(scratch, 64, 16, 1, 16)));
        }
        for (var named : weights) {
            var array = named.getValue().getArray();
            try (var gradient = array.getGradient()) {
                adam.update(named.getKey(), array, gradient);
            }
        }
    }
    return model;
}

// %% tests
var lengths = List.of(16, 32, 64, 128);
var longLengths = lengths.subList(1, 4);
// The same texts for every model.
Engine.getInstance().setRandomSeed(100);
var nearTests = new LinkedHashMap<Integer, Examples>();
for (int n : lengths) {
    nearTests.put(n, drawEntries(manager, 500, n, 1, 16));
}
var farTests = new LinkedHashMap<Integer, Examples>();
for (int n : longLengths) {
    farTests.put(n, drawEntries(manager, 500, n, 17, n));
}

/** Return the share of right answers. */
double accuracy(Block model, Examples test) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var scores = model.forward(parameters, test.inputs(), false).head();
        var predictions = scores.argMax(-1);
        var isRight = predictions.eq(test.answers());
        return isRight.toType(DataType.FLOAT32, false).mean().getFloat();
    }
}

/** Return the share of right answers, (models, tests). */
double[][] accuracies(List<? extends Block> models, Collection<Examples> tests) {
    var shares = new ArrayList<double[]>();
    for (var model : models) {
        var row = tests.stream().mapToDouble(test -> accuracy(model, test));
        shares.add(row.toArray());
    }
    return shares.toArray(double[][]::new);
}

/** Return the results by their names, in this order. */
LinkedHashMap<String, double[][]> nameResults(
        List<String> names, List<double[][]> results) {
    var named = new LinkedHashMap<String, double[][]>();
    for (int i = 0; i < names.size(); i++) {
        named.put(names.get(i), results.get(i));
    }
    return named;
}

// %% train-all
/** Train a model with this scheme from each of five seeds. */
List<Finder> trainFinders(Supplier<PositionScheme> makeScheme) {
    var models = new ArrayList<Finder>();
    for (int seed = 0; seed < 5; seed++) {
        Engine.getInstance().setRandomSeed(seed);
        models.add(fit(initialize(new Finder(makeScheme.get()))));
    }
    return models;
}

var schemes = new LinkedHashMap<Class<?>, Supplier<PositionScheme>>();
schemes.put(NoPositions.class, NoPositions::new);
schemes.put(Sinusoids.class, Sinusoids::new);
schemes.put(Rotary.class, Rotary::new);
schemes.put(ALiBi.class, () -> new ALiBi(1f / 2));
schemes.put(Table.class, () -> new Table(16));
schemes.put(Buckets.class, Buckets::new);
var models = new LinkedHashMap<Class<?>, List<Finder>>();
schemes.forEach((kind, makeScheme) -> models.put(kind, trainFinders(makeScheme)));
var near =
        models.values().stream()
                .map(runs -> accuracies(runs, nearTests.values()))
                .toList();
var far =
        models.values().stream()
                .map(runs -> accuracies(runs, farTests.values()))
                .toList();

// %% near-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
var names = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");
var results = nameResults(names, near);
Ranges.print(results, lengths, "entries");
Ranges.plot(lengths.stream().mapToDouble(n -> n).toArray(), results)
        .xlabel("Entries (trained on 16)")
        .ylabel("Share right, answer near")
        .ylim(0, 1.05)
        .show();

// %% far-shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");
results = nameResults(names, far);
Ranges.print(results, longLengths, "entries");
Ranges.plot(longLengths.stream().mapToDouble(n -> n).toArray(), results)
        .xlabel("Entries (trained on 16)")
        .ylabel("Share right, answer far")
        .ylim(0, 1.05)
        .show();

// %% slopes-trained
var alibiModels = new LinkedHashMap<String, List<Finder>>();
alibiModels.put("1/2", models.get(ALiBi.class));
alibiModels.put("1/8", trainFinders(() -> new ALiBi(1f / 8)));
alibiModels.put("1/32", trainFinders(() -> new ALiBi(1f / 32)));
var tests = List.of(nearTests.get(16), nearTests.get(64), farTests.get(64));
var slopeShares = new LinkedHashMap<String, double[][]>();
alibiModels.forEach((name, runs) -> slopeShares.put(name, accuracies(runs, tests)));

// %% slopes-shown tags=["tolerance:absolute=0.15"]
Ranges.print(slopeShares, List.of("16", "64, near", "64, far"), "slope");

// %% find-last
/** Mark, for each letter asked for, the last entry with it. */
NDArray findLast(NDArray letters, NDArray asked) {
    var isMatch = letters.eq(asked);
    var places = letters.getManager().arange(1, (int) letters.size(1) + 1);
    var last = isMatch.mul(places).max(new int[] {-1}, true); // 0 without a match
    return places.eq(last);
}

// %% ask-for-all
/** Ask for all letters of a new text; draw the weights, and frame the right ones. */
void showWeights(List<Class<?>> kinds, List<String> titles, int n) {
    Engine.getInstance().setRandomSeed(1);
    var inputs = drawEntries(manager, 1, n, 1, 16).inputs();
    var letters = inputs.get(0);
    var digits = inputs.get(1);
    var asked = manager.arange(6).expandDims(0);
    var weights = new NDList();
    for (var kind : kinds) {
        var model = models.get(kind).get(0);
        evaluate(model, letters, digits, asked);
        weights.add(model.attentionWeights);
    }
    var entries = nameEntries(letters.get(0), digits.get(0));
    Plots.heatmaps(NDArrays.stack(weights, 1))
            .xlabel("Entries")
            .ylabel("Asked for")
            .titles(titles.toArray(String[]::new))
            .figsize(8, 2.4)
            .cmap(ColorMap.BLUES)
            .xticklabels(
                    entries.stream()
                            .map(entry -> entry.charAt(0) + "\n" + entry.charAt(1))
                            .toArray(String[]::new))
            .yticklabels(LETTERS.split(""))
            .marks(findLast(letters, asked.transpose()))
            .show();
}

// %% maps tags=["nbval-ignore-output"]
showWeights(
        List.of(Sinusoids.class, Rotary.class, ALiBi.class),
        List.of("Sinusoids", "Rotary", "ALiBi"),
        16);

// %% sinusoids-past-the-end tags=["nbval-ignore-output"]
showWeights(List.of(Sinusoids.class), List.of("Sinusoids, 32 entries"), 32);

// %% alibi-past-the-end tags=["nbval-ignore-output"]
showWeights(List.of(ALiBi.class), List.of("ALiBi, 32 entries"), 32);

// %% weight-found
/** Return the mean weight on the letter and on its last entry, (models, 2). */
double[][] measureWeights(List<Finder> models, Examples test) {
    var shares = new double[models.size()][];
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs());
        var letters = test.inputs().get(0);
        var asked = test.inputs().get(2);
        var isMatch = letters.eq(asked);
        var isLast = findLast(letters, asked);
        for (int i = 0; i < shares.length; i++) {
            var model = models.get(i);
            model.forward(parameters, test.inputs(), false);
            var weights = model.attentionWeights.squeeze(1);
            double onLetter = weights.mul(isMatch).sum(new int[] {1}).mean().getFloat();
            double onLast = weights.mul(isLast).sum(new int[] {1}).mean().getFloat();
            shares[i] = new double[] {onLetter, onLast};
        }
    }
    return shares;
}

var nearWeights =
        models.values().stream()
                .map(runs -> measureWeights(runs, nearTests.get(32)))
                .toList();
var farWeights =
        models.values().stream()
                .map(runs -> measureWeights(runs, farTests.get(32)))
                .toList();

// %% weight-shown tags=["tolerance:absolute=0.2"]
names = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");
var columns = List.of("on the letter", "on its last entry");
Ranges.print(nameResults(names, nearWeights), columns, "near");
Ranges.print(nameResults(names, farWeights), columns, "far");

// %% stretch
BiFunction<NDArray, Double, NDArray> unchanged = (omega, factor) -> omega;

/** Position interpolation: slow all pairs down. */
BiFunction<NDArray, Double, NDArray> linear = (omega, factor) -> omega.div(factor);

/** NTK-aware: slow the slowest pair as above, and keep the fastest. */
BiFunction<NDArray, Double, NDArray> largerBase =
        (omega, factor) -> {
            int d = 2 * (int) omega.size();
            return ropeFrequencies(d, 10000 * Math.pow(factor, d / (d - 2.0)));
        };

/** YaRN: keep pairs that turned twice in training, slow those below a quarter. */
BiFunction<NDArray, Double, NDArray> byParts =
        (omega, factor) -> {
            double low = 1 / 4.0;
            double high = 2;
            var turns = omega.mul(16 / (2 * Math.PI));
            var ramp = turns.sub(low).div(high - low).clip(0, 1);
            return ramp.mul(omega).add(ramp.neg().add(1).mul(omega).div(factor));
        };

var ways = List.of(unchanged, linear, largerBase, byParts);

// %% wavelengths
omega = ropeFrequencies(32, 10000);
var wavelengths = new ArrayList<float[]>();
for (var way : ways) {
    wavelengths.add(NDArrays.div(2 * Math.PI, way.apply(omega, 4.0)).toFloatArray());
}
System.out.println("pair  turns in 16   unchanged      linear larger base    by parts");
for (int pair : new int[] {0, 1, 2, 3, 4, 6, 9, 12, 15}) {
    System.out.printf("%4d%13.3f", pair, 16 / wavelengths.get(0)[pair]);
    wavelengths.forEach(row -> System.out.printf("%12.1f", row[pair]));
    System.out.println();
}

// %% stretched
/** Return the rotary models' shares of right answers, (models, tests). */
double[][] stretchedAccuracies(
        BiFunction<NDArray, Double, NDArray> way, Map<Integer, Examples> tests) {
    var omega = ropeFrequencies(32, 10000);
    var shares = new ArrayList<double[]>();
    for (var model : models.get(Rotary.class)) {
        var scheme = (Rotary) model.scheme;
        var row = DoubleStream.builder();
        for (int n : tests.keySet()) {
            scheme.omega = way.apply(omega, n / 16.0);
            row.add(accuracy(model, tests.get(n)));
        }
        scheme.omega = omega;
        shares.add(row.build().toArray());
    }
    return shares.toArray(double[][]::new);
}

var longTests = new LinkedHashMap<Integer, Examples>();
longLengths.forEach(n -> longTests.put(n, nearTests.get(n)));
var stretchedNear =
        ways.stream().map(way -> stretchedAccuracies(way, longTests)).toList();
var stretchedFar =
        ways.stream().map(way -> stretchedAccuracies(way, farTests)).toList();

// %% stretched-shares tags=["tolerance:absolute=0.15"]
names = List.of("unchanged", "linear", "larger base", "by parts");
Ranges.print(nameResults(names, stretchedNear), longLengths, "near");
Ranges.print(nameResults(names, stretchedFar), longLengths, "far");

// %% solution-values
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(6, 8));
omega = ropeFrequencies(8, 10000);

/** Attend among six tokens that are shifted by this many positions. */
NDArray shiftedOutput(int shift, boolean turnValues, boolean turnBack) {
    var positions = manager.arange(6).add(shift);
    var rotated = rotate(X, positions, omega);
    var values = turnValues ? rotated : X;
    var Y = scaledDot(rotated, rotated).softmax(-1).matMul(values);
    return turnBack ? rotate(Y, positions.neg(), omega) : Y;
}

float change(boolean turnValues, boolean turnBack) {
    var start = shiftedOutput(0, turnValues, turnBack);
    return largestDifference(shiftedOutput(5, turnValues, turnBack), start);
}

System.out.println("five positions on, outputs differ by");
System.out.println("%.4f  with values as they are".formatted(change(false, false)));
System.out.println("%.4f  with values turned".formatted(change(true, false)));
System.out.println("%.4f  with outputs turned back".formatted(change(true, true)));

// %% solution-layouts
class RotaryHalves extends Rotary {
    @Override
    NDArray turn(NDArray X, NDArray positions) {
        return rotateHalves(X, positions, omega);
    }
}

/** Return the weights of a projection, (outputs, inputs). */
NDArray projectionWeights(Linear projection) {
    return projection.getParameters().valueAt(0).getArray();
}

/** Return the model in the other layout, its queries and keys reordered or not. */
Finder convertToHalves(Finder model, boolean reorder) {
    var converted = initialize(new Finder(new RotaryHalves()));
    for (var named : converted.getParameters()) {
        var source = model.getParameters().get(named.getKey());
        source.getArray().copyTo(named.getValue().getArray());
    }
    var order = manager.arange(0, 32, 2).concat(manager.arange(1, 32, 2));
    if (reorder) {
        for (var part : List.of(converted.W_q, converted.W_k)) {
            var rows = projectionWeights(part).get(order);
            rows.copyTo(projectionWeights(part)); // stored transposed
        }
    }
    return converted;
}

// %% solution-layouts-compared
var asTrained = models.get(Rotary.class);
var inHalves = asTrained.stream().map(model -> convertToHalves(model, false)).toList();
var inHalvesReordered =
        asTrained.stream().map(model -> convertToHalves(model, true)).toList();
var test16 = List.of(nearTests.get(16));
var layoutAccuracies =
        Stream.of(asTrained, inHalves, inHalvesReordered)
                .map(runs -> accuracies(runs, test16))
                .toList();

// %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
names = List.of("as trained", "in halves", "in halves, reordered");
Ranges.print(nameResults(names, layoutAccuracies), List.of(), "");

// %% solution-untouched
Engine.getInstance().setRandomSeed(0);
var table = new Table(32);
var model = initialize(new Finder(table));
var vectors = table.vectors.getParameters().valueAt(0).getArray();
vectors.setRequiresGradient(true);
try (var gradients = Engine.getInstance().newGradientCollector()) {
    gradients.backward(loss(model, drawEntries(manager, 64, 16, 1, 16)));
}
var hasGradient = vectors.getGradient().abs().sum(new int[] {1}).gt(0);
System.out.println("distances with a gradient:");
var touched = LongStream.of(hasGradient.nonzero().add(1).toLongArray());
System.out.println(touched.mapToObj(Long::toString).collect(Collectors.joining(" ")));

// %% solution-two-layers
/** Two causal layers above each other, and no encoding at all. */
class TwoLayers extends AbstractBlock {
    final Block letter;
    final Block digit;
    final MultiHeadAttention first;
    final MultiHeadAttention second;
    final Linear output;

    TwoLayers() {
        letter = addChildBlock("letterTable", makeEmbedding(6, 32, normal));
        digit = addChildBlock("digitTable", makeEmbedding(10, 32, normal));
        first = addChildBlock("firstLayer", new MultiHeadAttention(32, 1, 0));
        second = addChildBlock("secondLayer", new MultiHeadAttention(32, 1, 0));
        output = addChildBlock("outputLayer", makeProjection(10, true));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var letters = inputs.get(0);
        var digits = inputs.get(1);
        var asked = inputs.get(2);
        var entries = evaluate(letter, letters).add(evaluate(digit, digits));
        var X = entries.concat(evaluate(letter, asked), 1);
        var causal = new PairList<String, Object>(Map.of("causal", true));
        X = X.add(first.forward(store, new NDList(X, X, X), training, causal).head());
        X = X.add(second.forward(store, new NDList(X, X, X), training, causal).head());
        return new NDList(evaluate(output, X.get(":, -1:")));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 17, 32); // 16 entries and the question
        for (var part : List.of(letter, digit, output)) {
            part.initialize(manager, type, vectors);
        }
        for (var part : List.of(first, second)) {
            part.initialize(manager, type, vectors, vectors, vectors);
        }
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[2].add(10)};
    }
}

// %% solution-two-layers-trained
var twoLayers = new ArrayList<TwoLayers>();
for (int seed = 0; seed < 5; seed++) {
    Engine.getInstance().setRandomSeed(seed);
    twoLayers.add(fit(initialize(new TwoLayers())));
}
var twoLayerAccuracies = accuracies(twoLayers, nearTests.values());

// %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
Ranges.print(Map.of("two layers", twoLayerAccuracies), lengths, "entries");
