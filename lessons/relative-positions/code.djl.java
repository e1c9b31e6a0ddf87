// The lesson's code for the Deep Java Library, from Java 17 on. Each cell is woven into the text
// by name. All imports are in the first cell, since an import in a later one can make the kernel
// forget variables.

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

/** Return a layer's output in evaluation mode. */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Initialize a layer for inputs of these shapes, and return it. */
<B extends Block> B initialize(B layer, Shape... shapes) {
    layer.initialize(manager, DataType.FLOAT32, shapes);
    return layer;
}

/** Return a number as an array; DJL would free a plain number's array before the backward pass. */
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
    double angle = Math.toRadians(30 * position), cos = Math.cos(angle), sin = Math.sin(angle);
    double x = vector.getDouble(0), y = vector.getDouble(1);
    return manager.create(new double[] {x * cos - y * sin, x * sin + y * cos});
}

String formatVector(NDArray vector) {
    return "(%5.2f, %5.2f)".formatted(vector.getDouble(0), vector.getDouble(1));
}

// %% turned-by-hand
var query = manager.create(new double[] {1, 2});
var key = manager.create(new double[] {2, 2});
int[][] pairs = {{2, 0}, {5, 3}, {9, 7}, {5, 4}, {9, 8}, {0, 2}}; // the positions of query and key

System.out.println("positions  turned query     turned key      score");
for (var pair : pairs) {
    int i = pair[0], j = pair[1];
    NDArray q = turn(query, i), k = turn(key, j);
    System.out.printf("%4d%4d   %s  %s  ", i, j, formatVector(q), formatVector(k));
    System.out.printf("%5.2f%n", q.dot(k).getDouble());
}

// %% four-terms
var hand = manager.create(new double[] {1, 0}); // rotated to a vector's position, then added to it

System.out.println("positions    q.k    q.p    p.k    p.p    sum");
for (var pair : pairs) {
    int i = pair[0], j = pair[1];
    NDArray p_i = turn(hand, i), p_j = turn(hand, j);
    var terms = List.of(query.dot(key), query.dot(p_j), p_i.dot(key), p_i.dot(p_j));
    var score = query.add(p_i).dot(key.add(p_j));
    System.out.printf("%4d%4d ", i, j);
    terms.forEach(term -> System.out.printf(" %6.2f", term.getDouble()));
    System.out.printf(" %6.2f%n", score.getDouble());
}

// %% rotate
/** Return how far each pair turns from one position to the next, in radians. */
NDArray ropeFrequencies(int d, double base) {
    return NDArrays.pow(base, manager.arange(0f, d, 2f).div(-d));
}

/** Turn each pair of neighbouring numbers by position times frequency. */
NDArray rotate(NDArray X, NDArray positions, NDArray omega) {
    var angles = positions.expandDims(1).mul(omega);
    NDArray cos = angles.cos(), sin = angles.sin();
    NDArray x = X.get("..., ::2"), y = X.get("..., 1::2");
    NDArray first = x.mul(cos).sub(y.mul(sin)), second = x.mul(sin).add(y.mul(cos));
    return first.stack(second, -1).reshape(X.getShape());
}

// %% spread
/** Return the largest difference between two scores at one distance. */
double spread(NDArray scores) {
    int n = (int) scores.size(0);
    return IntStream.range(1 - n, n)
            .mapToObj(offset -> scores.diagonal(offset))
            .mapToDouble(diagonal -> diagonal.max().sub(diagonal.min()).getFloat())
            .max()
            .getAsDouble();
}

// %% rotary-check
Engine.getInstance().setRandomSeed(0);
int d = 8, n = 40;
query = manager.randomNormal(new Shape(d));
key = manager.randomNormal(new Shape(d));
var positions = manager.arange(n);
var omega = ropeFrequencies(d, 10000);
var q = rotate(query.broadcast(n, d), positions, omega);
var k = rotate(key.broadcast(n, d), positions, omega);
var scores = q.matMul(k.transpose());
var layerOutput = evaluate(new RotaryEncoding(d), query.broadcast(1, n, d)).get(0);

float low = scores.min().getFloat(), high = scores.max().getFloat();
float layerDifference = largestDifference(layerOutput, q);
float lengthChange = q.norm(new int[] {1}).sub(query.norm()).abs().max().getFloat();
System.out.println("scores from %.2f to %.2f".formatted(low, high));
System.out.println("at one distance they differ by %.4f at most".formatted(spread(scores)));
System.out.println("lengths change by %.4f at most".formatted(lengthChange));
System.out.println("the layer: largest difference %.4f".formatted(layerDifference));

// %% rotate-halves
/** Turn the pairs in the same way, but pair number l with number l + d/2. */
NDArray rotateHalves(NDArray X, NDArray positions, NDArray omega) {
    var angles = positions.expandDims(1).mul(omega);
    NDArray cos = angles.cos(), sin = angles.sin();
    long half = X.getShape().getLastDimension() / 2;
    NDArray x = X.get("..., :{}", half), y = X.get("..., {}:", half);
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

float orderDifference = largestDifference(neighbours.get(reorder), halves);
layerDifference = largestDifference(layerOutput, halves);
System.out.println("reordered: largest difference %.4f".formatted(orderDifference));
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
System.out.print("slopes:");
for (int head = 0; head < 8; head++) {
    expected[head] = (float) Math.pow(2, -(head + 1));
    System.out.printf(" 1/%.0f", 1 / slopes.getFloat(head));
}
System.out.println();
float difference = largestDifference(slopes, manager.create(expected));
System.out.println("largest difference: %.4f".formatted(difference));

// %% alibi-map
n = 12;
positions = manager.arange(n);
var distances = positions.expandDims(1).sub(positions);
var zeros = manager.zeros(new Shape(1, n, 8)); // no content: all scores are zero
var shape = zeros.getShape();
var attention = initialize(new MultiHeadAttention(8, 8, 0), shape, shape, shape);
var bias = slopes.reshape(8, 1, 1).mul(distances).neg();
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
    System.out.printf("%3d", Math.min(i, 3));
    for (int j = 1; j < 6; j++) {
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
var names = List.of("without a mask", "causal mask");
for (int i = 0; i < 2; i++) {
    var inputs = new NDList(zeros, zeros, isFirst);
    var masks = new PairList<String, Object>(Map.of("causal", i == 1));
    var averages = new DotProductAttention(0).forward(parameters, inputs, false, masks).head();
    for (float x : averages.toFloatArray()) {
        System.out.printf("%.3f ", x);
    }
    System.out.println(" " + names.get(i));
}

// %% entries
record Examples(NDList inputs, NDArray answers) {}

/** Draw letters and digits, one of these letters, and the digit it had last. */
Examples drawEntries(NDManager manager, int count, int n) {
    var letters = manager.randomInteger(0, 6, new Shape(count, n), DataType.INT64);
    var digits = manager.randomInteger(0, 10, new Shape(count, n), DataType.INT64);
    var position = manager.randomInteger(0, n, new Shape(count, 1), DataType.INT64);
    var asked = letters.gather(position, 1);
    var last = letters.eq(asked).mul(manager.arange(1, n + 1)).argMax(1).expandDims(1);
    return new Examples(new NDList(letters, digits, asked), digits.gather(last, 1));
}

Engine.getInstance().setRandomSeed(0);
var examples = drawEntries(manager, 3, 16);
for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 16; j++) {
        long letter = examples.inputs().get(0).getLong(i, j);
        System.out.printf("%c%d ", (char) ('a' + letter), examples.inputs().get(1).getLong(i, j));
    }
    char asked = (char) ('a' + examples.inputs().get(2).getLong(i, 0));
    System.out.println(" %c? %d".formatted(asked, examples.answers().getLong(i, 0)));
}

// %% no-positions
/** The three places where a scheme can use positions; this one uses none. */
class NoPositions {
    /** Return the blocks that are trained. */
    List<Block> parts() {
        return List.of();
    }

    /** Return vectors at these positions as they enter the projections. */
    NDArray add(NDArray X, NDArray positions) {
        return X;
    }

    /** Return queries or keys as they enter the scores. */
    NDArray turn(NDArray X, NDArray positions) {
        return X;
    }

    /** Return the bias of scores of queries with keys at these distances. */
    NDArray bias(NDArray q, NDArray distances) {
        return distances.zerosLike();
    }
}

// %% finder
/** Make a table with a vector of this width for each letter, digit or distance. */
Block makeEmbedding(int size, int width) {
    var table = new IdEmbedding.Builder().setDictionarySize(size).setEmbeddingSize(width).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
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
    double root = Math.sqrt(K.getShape().getLastDimension());
    return Q.matMul(K.swapAxes(axes - 2, axes - 1)).div(makeScalar(Q.getManager(), root));
}

/** A model that finds a letter's last digit; the question follows the text. */
class Finder extends AbstractBlock {
    final NoPositions scheme;
    final Block letter = addChildBlock("letterTable", makeEmbedding(6, 32));
    final Block digit = addChildBlock("digitTable", makeEmbedding(10, 32));
    final Linear W_q = addChildBlock("W_q", makeProjection(32, false));
    final Linear W_k = addChildBlock("W_k", makeProjection(32, false));
    final Linear W_v = addChildBlock("W_v", makeProjection(32, false));
    final Linear output = addChildBlock("outputLayer", makeProjection(10, true));
    NDArray attentionWeights;

    Finder(NoPositions scheme) {
        this.scheme = scheme;
        scheme.parts().forEach(part -> addChildBlock("schemePart", part));
    }

    /** Take the text's letters and digits, and the letters asked for. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        NDArray letters = inputs.get(0), digits = inputs.get(1), asked = inputs.get(2);
        int n = (int) letters.size(1);
        var i = letters.getManager().arange(n, n + 1); // of the question
        var j = letters.getManager().arange(n); // of the entries
        var X = scheme.add(evaluate(letter, letters).add(evaluate(digit, digits)), j);
        var question = scheme.add(evaluate(letter, asked), i);
        var q = scheme.turn(evaluate(W_q, question), i);
        var k = scheme.turn(evaluate(W_k, X), j);
        var scores = scaledDot(q, k).add(scheme.bias(q, i.sub(j)));
        attentionWeights = scores.softmax(-1);
        return new NDList(evaluate(output, attentionWeights.matMul(evaluate(W_v, X))));
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

// %% schemes
class Sinusoids extends NoPositions {
    @Override
    NDArray add(NDArray X, NDArray positions) {
        int d = (int) X.getShape().getLastDimension();
        var angles = positions.expandDims(1).mul(ropeFrequencies(d, 10000));
        return X.add(angles.sin().stack(angles.cos(), -1).reshape(-1, d));
    }
}

class Rotary extends NoPositions {
    NDArray omega = ropeFrequencies(32, 10000);

    @Override
    NDArray turn(NDArray X, NDArray positions) {
        return rotate(X, positions, omega);
    }
}

class ALiBi extends NoPositions {
    @Override
    NDArray bias(NDArray q, NDArray distances) {
        return distances.div(-2);
    }
}

// %% learned-schemes
class Table extends NoPositions {
    final int reach;
    final Block vectors; // for the distances from 1 on

    Table(int reach) {
        this.reach = reach;
        vectors = makeEmbedding(reach, 32);
    }

    @Override
    List<Block> parts() {
        return List.of(vectors);
    }

    @Override
    NDArray bias(NDArray q, NDArray distances) {
        return scaledDot(q, evaluate(vectors, distances.minimum(reach).sub(1)));
    }
}

class Buckets extends NoPositions {
    final Block numbers = makeEmbedding(8, 1);

    Buckets() {
        numbers.setInitializer(Initializer.ZEROS, Parameter.Type.WEIGHT);
    }

    @Override
    List<Block> parts() {
        return List.of(numbers);
    }

    @Override
    NDArray bias(NDArray q, NDArray distances) {
        var buckets = IntStream.of(distances.toIntArray()).map(x -> bucket(x, 8, 16)).toArray();
        return evaluate(numbers, distances.getManager().create(buckets)).squeeze(-1);
    }
}

// %% train
/** Return the loss of the scores for each digit as the answer. */
NDArray loss(Block model, Examples examples) {
    // DJL's loss takes a row for each answer.
    var rows = model.forward(parameters, examples.inputs(), true).head().reshape(-1, 10);
    var answers = new NDList(examples.answers().flatten());
    return Loss.softmaxCrossEntropyLoss().evaluate(answers, new NDList(rows));
}

/** Train the model for 100 steps, each on new examples, starting from this seed. */
<B extends Block> B train(int seed, B model) {
    Engine.getInstance().setRandomSeed(seed);
    initialize(model);
    model.getParameters().values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.02f)).build();
    for (int step = 0; step < 100; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            gradients.backward(loss(model, drawEntries(scratch, 256, 16)));
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

// The same texts for every model.
int[] lengths = {16, 32, 64, 128};
var tests = new TreeMap<Integer, Examples>();
for (int n : lengths) {
    tests.put(n, drawEntries(manager, 500, n));
}

double accuracy(Block model, int n) {
    var test = tests.get(n);
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var predictions = model.forward(parameters, test.inputs(), false).head().argMax(2);
        return predictions.eq(test.answers()).toType(DataType.FLOAT32, false).mean().getFloat();
    }
}

/** Return each model's accuracy at each length. */
double[][] measureAccuracies(List<? extends Block> models, int... lengths) {
    return models.stream()
            .map(model -> IntStream.of(lengths).mapToDouble(n -> accuracy(model, n)).toArray())
            .toArray(double[][]::new);
}

// %% train-all
var seeds = List.of(0, 1, 2, 3, 4);
List<Supplier<NoPositions>> schemes = List.of(
        NoPositions::new, Sinusoids::new, Rotary::new, ALiBi::new,
        () -> new Table(16), Buckets::new);
var models = new LinkedHashMap<Class<?>, List<Finder>>();
for (var scheme : schemes) {
    var schemeModels = seeds.stream().map(seed -> train(seed, new Finder(scheme.get()))).toList();
    models.put(scheme.get().getClass(), schemeModels);
}
var accuracies = models.values().stream()
        .map(schemeModels -> measureAccuracies(schemeModels, lengths))
        .toList();

// %% in-rows
/** Return the seeds' values at one length, from low to high. */
double[] sortedColumn(double[][] runs, int j) {
    return Stream.of(runs).mapToDouble(run -> run[j]).sorted().toArray();
}

/** Print each name's median over the seeds, and the range, at each length. */
void printRows(List<String> names, List<double[][]> results) {
    for (int i = 0; i < names.size(); i++) {
        for (int j = 0; j < results.get(i)[0].length; j++) {
            var values = sortedColumn(results.get(i), j);
            double low = values[0], median = values[2], high = values[4];
            System.out.printf("%18s", "%.2f (%.2f-%.2f)".formatted(median, low, high));
        }
        System.out.println("  " + names.get(i));
    }
}

// %% shares tags=["tolerance:absolute=0.15", "tolerance:points=30"]
names = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");
for (int n : lengths) {
    System.out.printf("%18d", n);
}
System.out.println("  entries");
printRows(names, accuracies);
List<double[]> xs = new ArrayList<>(), ys = new ArrayList<>();
var plotted = accuracies.subList(1, 6);
for (var runs : plotted) {
    xs.add(IntStream.of(lengths).asDoubleStream().toArray());
    ys.add(IntStream.range(0, 4).mapToDouble(i -> sortedColumn(runs, i)[2]).toArray());
}
for (int i = 0; i < 4; i++) { // the ranges, as bars beside each other
    for (int j = 0; j < plotted.size(); j++) {
        var values = sortedColumn(plotted.get(j), i);
        xs.add(new double[] {lengths[i] + j, lengths[i] + j});
        ys.add(new double[] {values[0], values[4]});
    }
}
Plots.curves(xs, ys)
        .xlabel("Entries (trained on 16)")
        .ylabel("Share right")
        .ylim(0, 1.05)
        .figsize(6, 4.5)
        .legend(names.subList(1, 6).toArray(String[]::new))
        .show();

// %% ask-for-all
record Maps(String text, NDArray weights) {}

/** Ask for every letter of a new text; return the text and the weights. */
Maps askAllLetters(int n) {
    Engine.getInstance().setRandomSeed(1);
    var inputs = drawEntries(manager, 1, n).inputs();
    NDArray letters = inputs.get(0), digits = inputs.get(1);
    var schemeWeights = new NDList();
    for (var scheme : List.of(Sinusoids.class, Rotary.class, ALiBi.class)) {
        var model = models.get(scheme).get(0);
        evaluate(model, letters, digits, manager.arange(6).expandDims(0));
        schemeWeights.add(model.attentionWeights);
    }
    var text = new StringBuilder();
    LongStream.of(letters.toLongArray()).forEach(x -> text.append((char) ('a' + x)));
    text.append('\n');
    LongStream.of(digits.toLongArray()).forEach(text::append);
    return new Maps(text.toString(), NDArrays.stack(schemeWeights));
}

// %% maps tags=["nbval-ignore-output"]
var shortMaps = askAllLetters(16);
System.out.println(shortMaps.text());
Plots.heatmaps(shortMaps.weights().swapAxes(0, 1))
        .xlabel("Entries")
        .ylabel("Letter asked for")
        .titles("Sinusoids", "Rotary", "ALiBi")
        .figsize(8, 2.2)
        .cmap(ColorMap.BLUES)
        .show();

// %% maps-past-the-end tags=["nbval-ignore-output"]
var longMaps = askAllLetters(32);
System.out.println(longMaps.text());
Plots.heatmaps(longMaps.weights().get(0).expandDims(0))
        .xlabel("Entries")
        .ylabel("Letter")
        .titles("Sinusoids")
        .figsize(7, 2)
        .cmap(ColorMap.BLUES)
        .show();

// %% rotary-past-the-end tags=["nbval-ignore-output"]
Plots.heatmaps(longMaps.weights().get(1).expandDims(0))
        .xlabel("Entries")
        .ylabel("Letter")
        .titles("Rotary")
        .figsize(7, 2)
        .cmap(ColorMap.BLUES)
        .show();

// %% alibi-past-the-end tags=["nbval-ignore-output"]
Plots.heatmaps(longMaps.weights().get(2).expandDims(0))
        .xlabel("Entries")
        .ylabel("Letter")
        .titles("ALiBi")
        .figsize(7, 2)
        .cmap(ColorMap.BLUES)
        .show();

// %% weight-found
/** Return the weight on all entries with the letter, and on the last of them. */
double[] measureWeight(Finder model, int n) {
    var inputs = tests.get(n).inputs();
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(inputs);
        model.forward(parameters, inputs, false);
        var weights = model.attentionWeights.squeeze(1);
        var isMatch = inputs.get(0).eq(inputs.get(2));
        var last = isMatch.mul(scratch.arange(1, n + 1)).argMax(1).expandDims(1);
        float letterWeight = weights.mul(isMatch).sum().getFloat() / 500;
        return new double[] {letterWeight, weights.gather(last, 1).mean().getFloat()};
    }
}

var letterWeights = new TreeMap<Integer, List<double[][]>>();
for (int n : new int[] {16, 32}) {
    letterWeights.put(n, models.values().stream()
            .map(schemeModels -> schemeModels.stream().map(model -> measureWeight(model, n)))
            .map(runs -> runs.toArray(double[][]::new))
            .toList());
}

// %% weight-shown tags=["tolerance:absolute=0.2"]
names = List.of("none", "sinusoids", "rotary", "ALiBi", "table", "buckets");
letterWeights.forEach((n, schemeWeights) -> {
    System.out.println(n + " entries: weight on the letter, and on the last entry with it");
    printRows(names, schemeWeights);
});

// %% stretch
BiFunction<NDArray, Double, NDArray> unchanged = (omega, factor) -> omega;

/** Position interpolation: slow all pairs down. */
BiFunction<NDArray, Double, NDArray> linear = (omega, factor) -> omega.div(factor);

/** NTK-aware: slow the slowest pair as above, and keep the fastest. */
BiFunction<NDArray, Double, NDArray> largerBase = (omega, factor) -> {
    int d = 2 * (int) omega.size();
    return ropeFrequencies(d, 10000 * Math.pow(factor, d / (d - 2.0)));
};

/** YaRN: keep pairs that turned twice in training, slow those below a quarter. */
BiFunction<NDArray, Double, NDArray> byParts = (omega, factor) -> {
    double low = 1 / 4.0, high = 2;
    var turns = omega.mul(16 / (2 * Math.PI));
    var ramp = turns.sub(low).div(high - low).clip(0, 1);
    return ramp.mul(omega).add(ramp.neg().add(1).mul(omega).div(factor));
};

// %% wavelengths
omega = ropeFrequencies(32, 10000);
var ways = List.of(unchanged, linear, largerBase, byParts);
var wavelengths = ways.stream()
        .map(way -> NDArrays.div(2 * Math.PI, way.apply(omega, 4.0)).toFloatArray())
        .toList();
System.out.println("pair  turns in 16   unchanged      linear larger base    by parts");
for (int pair : new int[] {0, 1, 2, 3, 4, 6, 9, 12, 15}) {
    System.out.printf("%4d%13.3f", pair, 16 / wavelengths.get(0)[pair]);
    wavelengths.forEach(row -> System.out.printf("%12.1f", row[pair]));
    System.out.println();
}

// %% stretched
double stretchedAccuracy(Finder model, int n, BiFunction<NDArray, Double, NDArray> way) {
    var rotary = (Rotary) model.scheme;
    rotary.omega = way.apply(omega, n / 16.0);
    double share = accuracy(model, n);
    rotary.omega = omega;
    return share;
}

var stretchedAccuracies = new ArrayList<double[][]>();
for (var way : ways) {
    stretchedAccuracies.add(models.get(Rotary.class).stream()
            .map(model -> IntStream.of(lengths).skip(1)
                    .mapToDouble(n -> stretchedAccuracy(model, n, way))
                    .toArray())
            .toArray(double[][]::new));
}

// %% stretched-shares tags=["tolerance:absolute=0.15"]
for (int n : new int[] {32, 64, 128}) {
    System.out.printf("%18d", n);
}
System.out.println("  entries");
printRows(List.of("unchanged", "linear", "larger base", "by parts"), stretchedAccuracies);

// %% solution-values
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(6, 8));
omega = ropeFrequencies(8, 10000);

/** Attend among six tokens that are shifted by this many positions. */
NDArray shiftedOutput(int shift, boolean turnValues, boolean turnBack) {
    var positions = manager.arange(6).add(shift);
    var q = rotate(X, positions, omega);
    var Y = scaledDot(q, q).softmax(-1).matMul(turnValues ? q : X);
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
    converted.getParameters().forEach(named -> {
        var source = model.getParameters().get(named.getKey()).getArray();
        source.copyTo(named.getValue().getArray());
    });
    var order = manager.arange(0, 32, 2).concat(manager.arange(1, 32, 2));
    if (reorder) {
        for (var part : List.of(converted.W_q, converted.W_k)) {
            projectionWeights(part).get(order).copyTo(projectionWeights(part)); // stored transposed
        }
    }
    return converted;
}

// %% solution-layouts-compared
var rotaryModels = models.get(Rotary.class);
var halvesModels = rotaryModels.stream().map(model -> convertToHalves(model, false)).toList();
var reorderedModels = rotaryModels.stream().map(model -> convertToHalves(model, true)).toList();
var layoutAccuracies = List.of(
        measureAccuracies(rotaryModels, 16),
        measureAccuracies(halvesModels, 16),
        measureAccuracies(reorderedModels, 16));

// %% solution-layouts-shown tags=["tolerance:absolute=0.15"]
printRows(List.of("as trained", "in halves", "in halves, reordered"), layoutAccuracies);

// %% solution-untouched
Engine.getInstance().setRandomSeed(0);
var table = new Table(32);
var model = initialize(new Finder(table));
var vectors = table.vectors.getParameters().valueAt(0).getArray();
vectors.setRequiresGradient(true);
try (var gradients = Engine.getInstance().newGradientCollector()) {
    gradients.backward(loss(model, drawEntries(manager, 64, 16)));
}
var hasGradient = vectors.getGradient().abs().sum(new int[] {1}).gt(0);
System.out.println("distances with a gradient:");
System.out.println(LongStream.of(hasGradient.nonzero().add(1).toLongArray())
        .mapToObj(distance -> "" + distance)
        .collect(Collectors.joining(" ")));

// %% solution-two-layers
/** Two causal layers above each other, and no encoding at all. */
class TwoLayers extends AbstractBlock {
    final Block letter = addChildBlock("letterTable", makeEmbedding(6, 32));
    final Block digit = addChildBlock("digitTable", makeEmbedding(10, 32));
    final List<MultiHeadAttention> layers = new ArrayList<>();
    final Linear output = addChildBlock("outputLayer", makeProjection(10, true));

    TwoLayers() {
        for (int i = 0; i < 2; i++) {
            layers.add(addChildBlock("attentionLayer" + i, new MultiHeadAttention(32, 1, 0)));
        }
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var entries = evaluate(letter, inputs.get(0)).add(evaluate(digit, inputs.get(1)));
        var X = entries.concat(evaluate(letter, inputs.get(2)), 1);
        PairList<String, Object> causal = new PairList<>(Map.of("causal", true));
        for (var layer : layers) {
            X = X.add(layer.forward(store, new NDList(X, X, X), training, causal).head());
        }
        return new NDList(evaluate(output, X.get(":, -1:")));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 17, 32);
        for (var part : List.of(letter, digit, output)) {
            part.initialize(manager, type, vectors);
        }
        layers.forEach(layer -> layer.initialize(manager, type, vectors, vectors, vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[2].add(10)};
    }
}

// %% solution-two-layers-trained
var twoLayers = seeds.stream().map(seed -> train(seed, new TwoLayers())).toList();
var twoLayerAccuracies = measureAccuracies(twoLayers, lengths);

// %% solution-two-layers-shown tags=["tolerance:absolute=0.15"]
for (int n : lengths) {
    System.out.printf("%18d", n);
}
System.out.println("  entries");
printRows(List.of("two layers"), Collections.singletonList(twoLayerAccuracies));
