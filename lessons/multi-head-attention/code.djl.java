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

/** Return the largest difference between two arrays. */
float largestDifference(NDArray X, NDArray Y) {
    return X.sub(Y).abs().max().getFloat();
}

// %% one-average
var fruits = List.of("apple", "lemon", "pear");
var keys = manager.eye(3); // each fruit has its own number
var values = manager.create(new float[] {50, 40, 70}); // the price, in cents
var pear = manager.create(new float[] {0, 0, 6});
var lemon = manager.create(new float[] {0, 6, 0});

var names = List.of("pear", "lemon", "both");
var queries = List.of(pear, lemon, pear.add(lemon));
for (int i = 0; i < 3; i++) {
    var weights = keys.matMul(queries.get(i)).softmax(0);
    System.out.printf("%5s:", names.get(i));
    for (float weight : weights.toFloatArray()) {
        System.out.printf("%7.3f", weight);
    }
    System.out.println("   %.1f cents".formatted(weights.matMul(values).getFloat()));
}

// %% two-averages
var twoQueries = NDArrays.stack(new NDList(pear, lemon));
var heads = twoQueries.matMul(keys.transpose()).softmax(1).matMul(values);
var W_o = manager.create(new float[] {1, -1}); // the first minus the second
float pearMinusLemon = heads.matMul(W_o).getFloat();
float lemonMinusPear = heads.flip(0).matMul(W_o).getFloat();
System.out.println("the two heads: %.1f %.1f".formatted(heads.getFloat(0), heads.getFloat(1)));
System.out.println("a pear costs %.1f cents more than a lemon".formatted(pearMinusLemon));
System.out.println("a lemon costs %.1f cents more than a pear".formatted(lemonMinusPear));

// %% split-and-merge
/** Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads). */
NDArray split(NDArray X, int numHeads) {
    long batch = X.size(0), n = X.size(1), d = X.size(2);
    return X.reshape(batch, n, numHeads, d / numHeads).swapAxes(1, 2);
}

/** Put the heads side by side again: (batch, heads, n, width) to (batch, n, d). */
NDArray merge(NDArray X) {
    long batch = X.size(0), numHeads = X.size(1), n = X.size(2), width = X.size(3);
    return X.swapAxes(1, 2).reshape(batch, n, numHeads * width);
}

// %% multi-head
/** Transpose the last two axes. */
NDArray transpose(NDArray X) {
    int axes = X.getShape().dimension();
    return X.swapAxes(axes - 2, axes - 1);
}

/** Return scaled dot-product attention over the last two axes. */
NDArray attend(NDArray q, NDArray k, NDArray v) {
    double root = Math.sqrt(q.getShape().getLastDimension());
    return q.matMul(transpose(k)).div(root).softmax(-1).matMul(v);
}

/** Compute self-attention with heads: project, split, attend, merge, project. */
NDArray multiHead(
        NDArray X, NDArray W_q, NDArray W_k, NDArray W_v, NDArray W_o, int numHeads) {
    NDArray q = X.matMul(W_q), k = X.matMul(W_k), v = X.matMul(W_v);
    var attended = attend(split(q, numHeads), split(k, numHeads), split(v, numHeads));
    return merge(attended).matMul(W_o);
}

// %% shapes
Engine.getInstance().setRandomSeed(0);
int d = 8, numHeads = 2;
var X = manager.randomNormal(new Shape(1, 5, d));
Supplier<NDArray> drawMatrix = () -> manager.randomNormal(new Shape(d, d)).div(Math.sqrt(d));
NDArray W_q = drawMatrix.get(), W_k = drawMatrix.get(), W_v = drawMatrix.get();
W_o = drawMatrix.get();

NDArray q = split(X.matMul(W_q), numHeads);
NDArray k = split(X.matMul(W_k), numHeads);
NDArray v = split(X.matMul(W_v), numHeads);
var attended = attend(q, k, v);
var merged = merge(attended);
var steps = new LinkedHashMap<String, NDArray>();
steps.put("X", X);
steps.put("X W_q", X.matMul(W_q));
steps.put("split", q);
steps.put("attended", attended);
steps.put("merged", merged);
steps.put("output", merged.matMul(W_o));
steps.forEach((name, step) -> System.out.println("%8s %s".formatted(name, step.getShape())));

// %% head-by-head
int width = d / numHeads;
var headOutputs = new NDList();
for (int head = 0; head < numHeads; head++) {
    var columns = new NDIndex(":, {}:{}", head * width, (head + 1) * width);
    NDArray W_q1 = W_q.get(columns), W_k1 = W_k.get(columns), W_v1 = W_v.get(columns);
    headOutputs.add(attend(X.matMul(W_q1), X.matMul(W_k1), X.matMul(W_v1)));
}
var headwiseOutput = NDArrays.concat(headOutputs, -1).matMul(W_o);

// %% the-layer
/** Return the weights of a projection, (outputs, inputs). */
NDArray projectionWeights(Linear projection) {
    return projection.getParameters().valueAt(0).getArray();
}

var shape = X.getShape();
var layer = initialize(new MultiHeadAttention(d, numHeads, 0), shape, shape, shape);
W_q.transpose().copyTo(projectionWeights(layer.W_q));
W_k.transpose().copyTo(projectionWeights(layer.W_k));
W_v.transpose().copyTo(projectionWeights(layer.W_v));
W_o.transpose().copyTo(projectionWeights(layer.W_o));
var layerOutput = evaluate(layer, X, X, X);
var output = multiHead(X, W_q, W_k, W_v, W_o, numHeads);

// %% all-alike
System.out.println("largest output: %.4f".formatted(output.abs().max().getFloat()));
var line = "%12s: largest difference %.4f";
System.out.println(line.formatted("head by head", largestDifference(headwiseOutput, output)));
System.out.println(line.formatted("the layer", largestDifference(layerOutput, output)));

// %% merged-wrongly
var wrongMerge = attended.reshape(1, 5, d); // the right shape, and the wrong numbers
System.out.println("shapes: " + wrongMerge.getShape() + " " + merge(attended).getShape());
var shareInPlace = wrongMerge.eq(merge(attended)).toType(DataType.FLOAT32, false).mean().getFloat();
System.out.println("numbers in their place: %.2f".formatted(shareInPlace));

// %% wrong-root
/** Return the mean largest weight of a thousand queries in each of 8 heads. */
float sharpness(int width) {
    Engine.getInstance().setRandomSeed(0);
    var q = manager.randomNormal(new Shape(8, 1000, 64)); // 512 / 8 = 64
    var k = manager.randomNormal(new Shape(8, 10, 64));
    var weights = q.matMul(transpose(k)).div(Math.sqrt(width)).softmax(-1);
    return weights.max(new int[] {-1}).mean().getFloat();
}

line = "divided by the root of %15s: %.2f";
System.out.println(line.formatted("the head's 64", sharpness(64)));
System.out.println(line.formatted("the model's 512", sharpness(512)));

// %% costs
var tokens = manager.zeros(new Shape(1, 10, 64));
System.out.println("heads  width  parameters  multiply-adds  weights");
for (int numHeads : new int[] {1, 2, 4, 8, 16}) {
    var shape = tokens.getShape();
    var layer = initialize(new MultiHeadAttention(64, numHeads, 0), shape, shape, shape);
    long products = Counting.multiplyAdds(X -> evaluate(layer, X, X, X), tokens);
    long count = layer.getParameters().values().stream()
            .mapToLong(part -> part.getArray().size())
            .sum();
    evaluate(layer, tokens, tokens, tokens);
    long weights = layer.attentionWeights().size();
    System.out.printf(
            "%5d%7d%,12d%,15d%,9d%n", numHeads, 64 / numHeads, count, products, weights);
}

// %% questions
record Examples(NDList inputs, NDArray answers) {}

/** Draw entries (a letter and a number each), pairs of letters, and the answers. */
Examples drawQuestions(NDManager manager, int count, int sign) {
    // no letter twice
    var alphabets = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = alphabets.get(":, :{}", 6);
    var numbers = manager.randomNormal(new Shape(count, 6));
    // Each question asks for two different entries.
    var indices = manager.randomUniform(0, 1, new Shape(count, 6, 6)).argSort(2);
    NDArray first = indices.get("..., 0"), second = indices.get("..., 1");
    NDArray a = numbers.gather(first, 1), b = numbers.gather(second, 1);
    NDArray firstLetters = letters.gather(first, 1), secondLetters = letters.gather(second, 1);
    var inputs = new NDList(letters, numbers, firstLetters, secondLetters);
    return new Examples(inputs, a.add(b.mul(sign)));
}

/** Return a letter of the first row. */
char getLetter(NDArray letters, int i) {
    return (char) ('a' + letters.getLong(0, i));
}

Engine.getInstance().setRandomSeed(2);
var example = drawQuestions(manager, 1, -1);
NDArray letters = example.inputs().get(0), numbers = example.inputs().get(1);
NDArray first = example.inputs().get(2), second = example.inputs().get(3);
System.out.print("entries:");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c %.1f ", getLetter(letters, i), numbers.getFloat(0, i));
}
System.out.println();
for (int i = 0; i < 3; i++) {
    float answer = example.answers().getFloat(0, i);
    System.out.printf("%c - %c = %.1f%n", getLetter(first, i), getLetter(second, i), answer);
}

// %% comparer
/** Make a table with a vector for each letter, token or place. */
Block makeEmbedding(int size) {
    var table = new IdEmbedding.Builder().setDictionarySize(size).setEmbeddingSize(32).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return table;
}

/** Make a projection with weights from -1/√n to 1/√n for n inputs. */
Linear makeProjection(int units, boolean hasBias) {
    var layer = Linear.builder().setUnits(units).optBias(hasBias).build();
    var uniform = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    layer.setInitializer(uniform, Parameter.Type.WEIGHT);
    return layer;
}

/** A model that compares the numbers of two letters. */
class Comparer extends AbstractBlock {
    final Block letter = addChildBlock("letterTable", makeEmbedding(26));
    final Block first = addChildBlock("firstTable", makeEmbedding(26));
    final Block second = addChildBlock("secondTable", makeEmbedding(26));
    final Block number = addChildBlock("numberLayer", makeProjection(32, false));
    final MultiHeadAttention attention;
    final Block output = addChildBlock("outputLayer", makeProjection(1, true));

    Comparer(int numHeads) {
        attention = addChildBlock("attentionLayer", new MultiHeadAttention(32, numHeads, 0));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var numberVectors = evaluate(number, inputs.get(1).expandDims(2));
        var entries = evaluate(letter, inputs.get(0)).add(numberVectors);
        var queries = evaluate(first, inputs.get(2)).add(evaluate(second, inputs.get(3)));
        var Y = evaluate(attention, queries, entries, entries);
        return new NDList(evaluate(output, Y).squeeze(2));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 6, 32);
        for (var table : List.of(letter, first, second)) {
            table.initialize(manager, type, inputShapes);
        }
        number.initialize(manager, type, new Shape(1, 1));
        attention.initialize(manager, type, vectors, vectors, vectors);
        output.initialize(manager, type, vectors);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[2]};
    }
}

// %% train
/** Initialize the model, and train it on new examples in each step. */
void fit(
        Block model, int steps, Function<NDManager, Examples> draw, BinaryOperator<NDArray> loss) {
    initialize(model);
    model.getParameters().values().forEach(part -> part.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build();
    for (int step = 0; step < steps; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var batch = draw.apply(scratch);
            var predictions = model.forward(parameters, batch.inputs(), true).head();
            gradients.backward(loss.apply(predictions, batch.answers()));
        }
        model.getParameters().forEach(pair -> {
            var weights = pair.getValue().getArray();
            try (var gradient = weights.getGradient()) {
                adam.update(pair.getKey(), weights, gradient);
            }
        });
    }
}

BinaryOperator<NDArray> meanSquare =
        (predictions, answers) -> predictions.sub(answers).square().mean();

Comparer train(int numHeads, int seed, int sign) {
    Engine.getInstance().setRandomSeed(seed);
    var model = new Comparer(numHeads);
    fit(model, 250, scratch -> drawQuestions(scratch, 32, sign), meanSquare);
    return model;
}

// The same questions for every model.
var differences = drawQuestions(manager, 500, -1);

double error(Block model, Examples test) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var predictions = model.forward(parameters, test.inputs(), false).head();
        return meanSquare.apply(predictions, test.answers()).getFloat();
    }
}

var seeds = List.of(0, 1, 2, 3, 4);
var models = new TreeMap<Integer, List<Comparer>>();
var errors = new TreeMap<Integer, double[]>();
for (int h : new int[] {1, 2, 4}) {
    var runs = seeds.stream().map(seed -> train(h, seed, -1)).toList();
    models.put(h, runs);
    errors.put(h, runs.stream().mapToDouble(model -> error(model, differences)).toArray());
}

// %% errors tags=["tolerance:absolute=0.03"]
/** Return the median and the range as text. */
String formatMedianAndRange(double... runs) {
    var sorted = DoubleStream.of(runs).sorted().toArray();
    double low = sorted[0], median = sorted[2], high = sorted[4];
    return "%.3f (%.3f-%.3f)".formatted(median, low, high);
}

System.out.println("heads  mean squared error, five seeds: median (range)");
errors.forEach((h, runs) ->
        System.out.println("%5d  %s".formatted(h, formatMedianAndRange(runs))));

// %% two-heads-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(4);
var inputs = drawQuestions(manager, 1, -1).inputs();
evaluate(models.get(2).get(0), inputs.toArray(NDArray[]::new));
System.out.print("entries:  ");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c", getLetter(inputs.get(0), i));
}
System.out.println();
System.out.print("questions:");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c-%c", getLetter(inputs.get(2), i), getLetter(inputs.get(3), i));
}
System.out.println();
Plots.heatmaps(models.get(2).get(0).attention.attentionWeights())
        .xlabel("Entries")
        .ylabel("Questions")
        .titles("Head 1", "Head 2")
        .figsize(6, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% without-a-head
/** Return the error after setting a head's rows of W_o to zero. */
double errorWithout(Comparer model, int numHeads, int head) {
    var W_o = projectionWeights(model.attention.W_o); // stored transposed
    int width = 32 / numHeads;
    var original = W_o.duplicate();
    W_o.set(new NDIndex(":, {}:{}", head * width, (head + 1) * width), 0);
    double result = error(model, differences);
    original.copyTo(W_o);
    return result;
}

var errorsWithout = new TreeMap<Integer, List<double[]>>();
for (int h : new int[] {2, 4}) {
    errorsWithout.put(h, models.get(h).stream()
            .map(model -> IntStream.range(0, h).mapToDouble(head -> errorWithout(model, h, head)))
            .map(DoubleStream::toArray)
            .toList());
}

// %% without-a-head-shown tags=["tolerance:absolute=0.05"]
errorsWithout.forEach((h, runs) -> {
    System.out.println(h + " heads, without one of them:");
    for (int seed : seeds) {
        System.out.print("   seed " + seed + ":");
        for (double cost : runs.get(seed)) {
            System.out.printf(" %6.3f", cost);
        }
        System.out.println();
    }
});

// %% texts
/** Draw letters, each followed by its digit; then the same pairs, shuffled. */
Examples drawTexts(NDManager manager, int count) {
    var alphabets = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = alphabets.get(":, :{}", 4);
    var digits = manager.randomInteger(0, 10, new Shape(count, 4), DataType.INT64);
    var order = manager.randomUniform(0, 1, new Shape(count, 4)).argSort(1);
    // tokens 26 to 35 are digits
    var pairs = NDArrays.stack(new NDList(letters, digits.add(26)), 2);
    var repeated = pairs.gather(order.expandDims(2).repeat(2, 2), 1);
    var tokens = pairs.concat(repeated, 1).reshape(count, 16);
    return new Examples(new NDList(tokens), digits.gather(order, 1));
}

String formatTokens(NDArray tokens) {
    return LongStream.of(tokens.toLongArray())
            .mapToObj(x -> x < 26 ? "" + (char) ('a' + x) : "" + (x - 26))
            .collect(Collectors.joining(" "));
}

var samples = drawTexts(manager, 3).inputs().head();
for (int i = 0; i < 3; i++) {
    System.out.println(formatTokens(samples.get(i)));
}

// %% reader
/** One or two residual layers, with two causal heads in all. */
class Reader extends AbstractBlock {
    final Block token = addChildBlock("tokenTable", makeEmbedding(36));
    final Block place = addChildBlock("placeTable", makeEmbedding(16));
    final List<MultiHeadAttention> layers = new ArrayList<>();
    final Block output = addChildBlock("outputLayer", makeProjection(10, true));

    Reader(int numLayers) {
        for (int i = 0; i < numLayers; i++) {
            var layer = new MultiHeadAttention(32, 2 / numLayers, 0);
            layers.add(addChildBlock("attentionLayer" + i, layer));
        }
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var tokens = inputs.head();
        var position = tokens.getManager().arange((int) tokens.size(1));
        var X = evaluate(token, tokens).add(evaluate(place, position));
        PairList<String, Object> causal = new PairList<>(Map.of("causal", true));
        for (var layer : layers) {
            X = X.add(layer.forward(store, new NDList(X, X, X), training, causal).head());
        }
        // the letters of the second half
        return new NDList(evaluate(output, X.get(":, {}::2", tokens.size(1) / 2)));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 16, 32);
        token.initialize(manager, type, inputShapes);
        place.initialize(manager, type, inputShapes);
        layers.forEach(layer -> layer.initialize(manager, type, vectors, vectors, vectors));
        output.initialize(manager, type, vectors);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {new Shape(inputShapes[0].get(0), 4, 10)};
    }
}

// %% train-readers
BinaryOperator<NDArray> crossEntropy = (logits, digits) -> {
    // DJL's loss takes a row for each answer.
    var rows = new NDList(logits.reshape(-1, 10));
    return Loss.softmaxCrossEntropyLoss().evaluate(new NDList(digits.flatten()), rows);
};

Reader trainReader(int numLayers, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var model = new Reader(numLayers);
    fit(model, 300, scratch -> drawTexts(scratch, 64), crossEntropy);
    return model;
}

// The same texts for every model.
var test = drawTexts(manager, 500);

double accuracy(Reader model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var isRight = evaluate(model, test.inputs().head()).argMax(2).eq(test.answers());
        return isRight.toType(DataType.FLOAT32, false).mean().getFloat();
    }
}

var readers = new TreeMap<Integer, List<Reader>>();
var accuracies = new TreeMap<Integer, double[]>();
for (int count : new int[] {1, 2}) {
    var runs = seeds.stream().map(seed -> trainReader(count, seed)).toList();
    readers.put(count, runs);
    accuracies.put(count, runs.stream().mapToDouble(model -> accuracy(model)).toArray());
}

// %% readers-shares tags=["tolerance:absolute=0.02"]
accuracies.forEach((count, runs) ->
        System.out.println("layers: %d, right: %s".formatted(count, formatMedianAndRange(runs))));

// %% readers-maps tags=["nbval-ignore-output"]
Engine.getInstance().setRandomSeed(4);
tokens = drawTexts(manager, 1).inputs().head();
var model = readers.get(2).get(0);
evaluate(model, tokens);
System.out.println(formatTokens(tokens));
var maps = model.layers.stream().map(layer -> layer.attentionWeights()).toList();
Plots.heatmaps(NDArrays.concat(new NDList(maps), 1))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("First layer", "Second layer")
        .figsize(7, 3.5)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-rank
/** Return the rank: subtract products of a column and a row until only rounding errors are left. */
int computeRank(NDArray A) {
    int rank = 0;
    while (A.abs().max().getFloat() > 1e-4) {
        long largest = A.abs().argMax().getLong();
        long i = largest / A.size(1), j = largest % A.size(1);
        var column = A.get("..., {}", j).expandDims(1);
        A = A.sub(column.mul(A.get(i)).div(A.getFloat(i, j)));
        rank++;
    }
    return rank;
}

Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(1, 20, d));
for (int numHeads : new int[] {1, 2, 4, 8}) {
    // the first head's
    var q = split(X.matMul(W_q), numHeads).get(0).get(0);
    var k = split(X.matMul(W_k), numHeads).get(0).get(0);
    int rank = computeRank(q.matMul(k.transpose()));
    System.out.printf("heads: %d, width: %d, rank: %d%n", numHeads, d / numHeads, rank);
}

// %% solution-order
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(1, 5, d));
// the second of two heads comes first
var order = manager.create(new int[] {4, 5, 6, 7, 0, 1, 2, 3});
var columns = new NDIndex(":, {}", order);
var reorderedWeights = Stream.of(W_q, W_k, W_v).map(W -> W.get(columns)).toList();
var originalOutput = multiHead(X, W_q, W_k, W_v, W_o, 2);
var reorderedOutput = multiHead(
        X,
        reorderedWeights.get(0),
        reorderedWeights.get(1),
        reorderedWeights.get(2),
        W_o.get(order),
        2);
System.out.println("largest output: %.4f".formatted(originalOutput.abs().max().getFloat()));
float difference = largestDifference(reorderedOutput, originalOutput);
System.out.println("largest difference: %.4f".formatted(difference));

// %% solution-sum
var adders = seeds.stream().map(seed -> train(1, seed, 1)).toList();
var sums = drawQuestions(manager, 500, 1);
var sumErrors = adders.stream().mapToDouble(model -> error(model, sums)).toArray();

// %% solution-sum-shown tags=["tolerance:absolute=0.03"]
System.out.println("one head, sums: mean squared error " + formatMedianAndRange(sumErrors));

// %% solution-mean-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(0);
inputs = drawQuestions(manager, 1, -1).inputs();
evaluate(models.get(2).get(0), inputs.toArray(NDArray[]::new));
var weights = models.get(2).get(0).attention.attentionWeights();
Plots.heatmaps(weights.concat(weights.mean(new int[] {1}, true), 1))
        .xlabel("Entries")
        .ylabel("Questions")
        .titles("Head 1", "Head 2", "Mean")
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-without-a-layer
/** Return the accuracy when one layer contributes nothing. */
double accuracyWithout(Reader model, int layer) {
    var W_o = projectionWeights(model.layers.get(layer).W_o);
    var original = W_o.duplicate();
    W_o.zerosLike().copyTo(W_o);
    double result = accuracy(model);
    original.copyTo(W_o);
    return result;
}

var accuraciesWithout = new TreeMap<Integer, double[]>();
for (int layer : new int[] {0, 1}) {
    var runs = readers.get(2).stream().mapToDouble(model -> accuracyWithout(model, layer));
    accuraciesWithout.put(layer, runs.toArray());
}

// %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
accuraciesWithout.forEach((layer, runs) -> {
    var name = List.of("first", "second").get(layer);
    var sorted = DoubleStream.of(runs).sorted().toArray();
    double low = sorted[0], median = sorted[2], high = sorted[4];
    var line = "without the %6s: %.3f (%.3f-%.3f) right";
    System.out.println(line.formatted(name, median, low, high));
});
