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
var firstHead = keys.matMul(pear).softmax(0).matMul(values);
var secondHead = keys.matMul(lemon).softmax(0).matMul(values);
var heads = NDArrays.stack(new NDList(firstHead, secondHead));
var W_o = manager.create(new float[] {1, -1}); // the first minus the second
float pearMinusLemon = heads.matMul(W_o).getFloat();
float lemonMinusPear = heads.flip(0).matMul(W_o).getFloat();
System.out.printf("the two heads: %.1f %.1f%n", heads.getFloat(0), heads.getFloat(1));
System.out.printf("a pear costs %.1f cents more than a lemon%n", pearMinusLemon);
System.out.println(
        "a lemon costs %.1f cents more than a pear".formatted(lemonMinusPear));

// %% split-and-merge
/** Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads). */
NDArray split(NDArray X, int numHeads) {
    long batch = X.size(0);
    long n = X.size(1);
    long d = X.size(2);
    return X.reshape(batch, n, numHeads, d / numHeads).swapAxes(1, 2);
}

/** Put the heads side by side again: (batch, heads, n, width) to (batch, n, d). */
NDArray merge(NDArray X) {
    long batch = X.size(0);
    long numHeads = X.size(1);
    long n = X.size(2);
    long width = X.size(3);
    return X.swapAxes(1, 2).reshape(batch, n, numHeads * width);
}

// %% multi-head
/** Make a projection with weights from -1/√n to 1/√n for n inputs. */
Linear makeProjection(int units, boolean hasBias) {
    var linear = Linear.builder().setUnits(units).optBias(hasBias).build();
    var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    linear.setInitializer(narrow, Parameter.Type.WEIGHT);
    return linear;
}

/** Attention with several heads: project, split, attend, merge, project. */
class MultiHeadAttention extends AbstractBlock {
    final int numHiddens;
    final int numHeads;
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear W_o;
    NDArray attentionWeights;

    MultiHeadAttention(int numHiddens, int numHeads) {
        this.numHiddens = numHiddens;
        this.numHeads = numHeads;
        W_q = addChildBlock("W_q", makeProjection(numHiddens, false));
        W_k = addChildBlock("W_k", makeProjection(numHiddens, false));
        W_v = addChildBlock("W_v", makeProjection(numHiddens, false));
        W_o = addChildBlock("W_o", makeProjection(numHiddens, false));
    }

    /** Take queries, keys and values; the option causal is true or false. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var q = split(evaluate(W_q, inputs.get(0)), numHeads);
        var k = split(evaluate(W_k, inputs.get(1)), numHeads);
        var v = split(evaluate(W_v, inputs.get(2)), numHeads);
        var root = makeScalar(q.getManager(), Math.sqrt(q.size(3)));
        var scores = q.matMul(k.swapAxes(2, 3)).div(root);
        if (options != null && Boolean.TRUE.equals(options.get("causal"))) {
            // the last query sees all keys, the one before it one fewer, ...
            int numQueries = (int) scores.size(2);
            int numKeys = (int) scores.size(3);
            var i = q.getManager().arange(numKeys - numQueries, numKeys);
            var j = q.getManager().arange(numKeys);
            var isVisible = j.lte(i.expandDims(1)).broadcast(scores.getShape());
            var minusInfinity = scores.zerosLike().add(Float.NEGATIVE_INFINITY);
            scores = NDArrays.where(isVisible, scores, minusInfinity);
        }
        attentionWeights = scores.softmax(-1);
        return new NDList(evaluate(W_o, merge(attentionWeights.matMul(v))));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, numHiddens);
        getChildren().values().forEach(part -> part.initialize(manager, type, vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}

// %% shapes
Engine.getInstance().setRandomSeed(0);
int d = 8;
int numHeads = 2;
var X = manager.randomNormal(new Shape(1, 5, d));
var layer = initialize(new MultiHeadAttention(d, numHeads));
var output = evaluate(layer, X, X, X);
var v = split(evaluate(layer.W_v, X), numHeads);
var attended = layer.attentionWeights.matMul(v);
var steps = new LinkedHashMap<String, NDArray>();
steps.put("X", X);
steps.put("X W_v", evaluate(layer.W_v, X));
steps.put("split", v);
steps.put("weights", layer.attentionWeights);
steps.put("attended", attended);
steps.put("merged", merge(attended));
steps.put("output", output);
steps.forEach((name, step) -> System.out.printf("%8s %s%n", name, step.getShape()));

// %% head-by-head
/** Return the weights of a projection, (outputs, inputs). */
NDArray projectionWeights(Linear projection) {
    return projection.getParameters().valueAt(0).getArray();
}

var W_q = projectionWeights(layer.W_q).transpose(); // stored transposed
var W_k = projectionWeights(layer.W_k).transpose();
var W_v = projectionWeights(layer.W_v).transpose();
W_o = projectionWeights(layer.W_o).transpose();
int width = d / numHeads;
var headOutputs = new NDList();
for (int head = 0; head < numHeads; head++) {
    var columns = new NDIndex(":, {}:{}", head * width, (head + 1) * width);
    var q = X.matMul(W_q.get(columns));
    var k = X.matMul(W_k.get(columns));
    var v = X.matMul(W_v.get(columns));
    var weights = q.matMul(k.swapAxes(1, 2)).div(Math.sqrt(width)).softmax(-1);
    headOutputs.add(weights.matMul(v));
}
var headwiseOutput = NDArrays.concat(headOutputs, -1).matMul(W_o);

// %% the-layer
/** Copy all weights into a layer or model with the same parts. */
void copyWeights(Block source, Block target) {
    var sources = source.getParameters().values();
    var targets = target.getParameters().values();
    for (int i = 0; i < sources.size(); i++) {
        sources.get(i).getArray().copyTo(targets.get(i).getArray());
    }
}

/** Return a layer's output for these queries over X, with a causal mask. */
NDArray evaluateCausal(Block layer, NDArray queries, NDArray X) {
    var causal = new PairList<String, Object>(Map.of("causal", true));
    return layer.forward(parameters, new NDList(queries, X, X), false, causal).head();
}

var shape = X.getShape();
var d2lLayer =
        initialize(new d2l.MultiHeadAttention(d, numHeads, 0), shape, shape, shape);
copyWeights(layer, d2lLayer);
var d2lOutput = evaluate(d2lLayer, X, X, X);
var lastQueries = X.get(":, -2:"); // the last two of five queries
var d2lCausalOutput = evaluateCausal(d2lLayer, lastQueries, X);
var causalOutput = evaluateCausal(layer, lastQueries, X);

// %% all-alike
System.out.println("largest output: %.4f".formatted(output.abs().max().getFloat()));
float difference = largestDifference(headwiseOutput, output);
System.out.printf("head by head:         largest difference %.4f%n", difference);
difference = largestDifference(d2lOutput, output);
System.out.printf("d2l's layer:          largest difference %.4f%n", difference);
difference = largestDifference(d2lCausalOutput, causalOutput);
System.out.println(
        "d2l's layer, causal:  largest difference %.4f".formatted(difference));

// %% merged-wrongly
var wrongMerge = attended.reshape(1, 5, d); // the right shape, and the wrong numbers
var rightMerge = merge(attended);
System.out.println("shapes: " + wrongMerge.getShape() + " " + rightMerge.getShape());
var isInPlace = wrongMerge.eq(rightMerge);
float shareInPlace = isInPlace.toType(DataType.FLOAT32, false).mean().getFloat();
System.out.println("numbers in their place: %.2f".formatted(shareInPlace));

// %% wrong-root
/** Return the mean largest weight of a thousand queries in each of 8 heads. */
float sharpness(int width) {
    Engine.getInstance().setRandomSeed(0);
    var q = manager.randomNormal(new Shape(8, 1000, 64)); // 512 / 8 = 64
    var k = manager.randomNormal(new Shape(8, 10, 64));
    var weights = q.matMul(k.swapAxes(1, 2)).div(Math.sqrt(width)).softmax(-1);
    return weights.max(new int[] {-1}).mean().getFloat();
}

var line = "divided by the root of %15s: %.2f";
System.out.println(line.formatted("the head's 64", sharpness(64)));
System.out.println(line.formatted("the model's 512", sharpness(512)));

// %% costs
var tokens = manager.zeros(new Shape(1, 10, 64));
System.out.println("heads  width  parameters  multiply-adds  weights");
for (int numHeads : new int[] {1, 2, 4, 8, 16}) {
    var layer = initialize(new MultiHeadAttention(64, numHeads));
    long products = Counting.multiplyAdds(X -> evaluate(layer, X, X, X), tokens);
    var matrices = layer.getParameters().values();
    long numParameters = matrices.stream().mapToLong(W -> W.getArray().size()).sum();
    evaluate(layer, tokens, tokens, tokens);
    long numWeights = layer.attentionWeights.size();
    System.out.printf("%5d%7d%,12d", numHeads, 64 / numHeads, numParameters);
    System.out.printf("%,15d%,9d%n", products, numWeights);
}

// %% questions
String LETTERS = "abcdefghijklmnopqrstuvwxyz";

record Examples(NDList inputs, NDArray answers) {}

/**
 * Draw entries (a letter and a number each), pairs of letters, and the answers. An
 * answer is the first letter's number plus sign times the second's. Inputs are letters,
 * numbers, and the first and the second letters of questions; all are (count, 6).
 */
Examples drawQuestions(NDManager manager, int count, int sign) {
    // no letter twice
    var alphabets = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = alphabets.get(":, :{}", 6);
    var numbers = manager.randomNormal(new Shape(count, 6));
    // Each question asks for two different entries.
    var indices = manager.randomUniform(0, 1, new Shape(count, 6, 6)).argSort(2);
    var firstIndices = indices.get("..., 0");
    var secondIndices = indices.get("..., 1");
    var first = letters.gather(firstIndices, 1);
    var second = letters.gather(secondIndices, 1);
    var firstNumbers = numbers.gather(firstIndices, 1);
    var secondNumbers = numbers.gather(secondIndices, 1);
    var answers = firstNumbers.add(secondNumbers.mul(sign));
    return new Examples(new NDList(letters, numbers, first, second), answers);
}

/** Return the characters at these indices. */
String[] pickCharacters(String characters, NDArray indices) {
    return LongStream.of(indices.toLongArray())
            .mapToObj(index -> "" + characters.charAt((int) index))
            .toArray(String[]::new);
}

Engine.getInstance().setRandomSeed(2);
var example = drawQuestions(manager, 1, -1);
var letters = example.inputs().get(0);
var numbers = example.inputs().get(1);
var first = example.inputs().get(2);
var second = example.inputs().get(3);
var letterNames = pickCharacters(LETTERS, letters);
var firstNames = pickCharacters(LETTERS, first);
var secondNames = pickCharacters(LETTERS, second);
var entries = new ArrayList<String>();
for (int i = 0; i < 6; i++) {
    entries.add("%s %.1f".formatted(letterNames[i], numbers.getFloat(0, i)));
}
System.out.println("entries: " + String.join("  ", entries));
for (int i = 0; i < 3; i++) {
    float answer = example.answers().getFloat(0, i);
    System.out.printf("%s - %s = %.1f%n", firstNames[i], secondNames[i], answer);
}

// %% comparer
/** Make a table with a vector for each letter, token or place. */
Block makeEmbedding(int size) {
    var builder = new IdEmbedding.Builder();
    var table = builder.setDictionarySize(size).setEmbeddingSize(32).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return table;
}

/** A model that compares the numbers of two letters. */
class Comparer extends AbstractBlock {
    final Block letter;
    final Block first;
    final Block second;
    final Linear number;
    final MultiHeadAttention attention;
    final Linear output;

    Comparer(int numHeads) {
        letter = addChildBlock("letterTable", makeEmbedding(26));
        first = addChildBlock("firstTable", makeEmbedding(26));
        second = addChildBlock("secondTable", makeEmbedding(26));
        number = addChildBlock("numberLayer", makeProjection(32, false));
        attention =
                addChildBlock("attentionLayer", new MultiHeadAttention(32, numHeads));
        output = addChildBlock("outputLayer", makeProjection(1, true));
    }

    /** Take the letters and numbers of entries, and both letters of each question. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var numbers = inputs.get(1).expandDims(2);
        var entries = evaluate(letter, inputs.get(0)).add(evaluate(number, numbers));
        var firstVectors = evaluate(first, inputs.get(2));
        var queries = firstVectors.add(evaluate(second, inputs.get(3)));
        var attended = evaluate(attention, queries, entries, entries);
        return new NDList(evaluate(output, attended).squeeze(2));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 32);
        for (var table : List.of(letter, first, second)) {
            table.initialize(manager, type, vectors);
        }
        number.initialize(manager, type, new Shape(1, 1));
        attention.initialize(manager, type, vectors);
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
        Block model,
        int numSteps,
        Function<NDManager, Examples> draw,
        BinaryOperator<NDArray> loss) {
    initialize(model);
    var weights = model.getParameters();
    weights.values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build();
    for (int step = 0; step < numSteps; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var batch = draw.apply(scratch);
            var predictions = model.forward(parameters, batch.inputs(), true).head();
            gradients.backward(loss.apply(predictions, batch.answers()));
        }
        for (var named : weights) {
            var array = named.getValue().getArray();
            try (var gradient = array.getGradient()) {
                adam.update(named.getKey(), array, gradient);
            }
        }
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

// %% comparer-errors
// The same questions for every model.
var differences = drawQuestions(manager, 500, -1);

/** Return the mean squared error. */
double error(Block model, Examples examples) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(examples.inputs(), examples.answers());
        var predictions = model.forward(parameters, examples.inputs(), false).head();
        return meanSquare.apply(predictions, examples.answers()).getFloat();
    }
}

var seeds = List.of(0, 1, 2, 3, 4);
var models = new LinkedHashMap<Integer, List<Comparer>>();
var errors = new LinkedHashMap<Integer, double[]>();
for (int numHeads : new int[] {1, 2, 4}) {
    var runs = seeds.stream().map(seed -> train(numHeads, seed, -1)).toList();
    models.put(numHeads, runs);
    var runErrors = runs.stream().mapToDouble(model -> error(model, differences));
    errors.put(numHeads, runErrors.toArray());
}

// %% errors tags=["tolerance:absolute=0.03"]
/** Return numbers as a column of a table, (seeds, 1). */
double[][] toColumn(double[] runs) {
    var rows = DoubleStream.of(runs).mapToObj(x -> new double[] {x});
    return rows.toArray(double[][]::new);
}

var results = new LinkedHashMap<String, double[][]>();
errors.forEach((numHeads, runs) -> results.put("" + numHeads, toColumn(runs)));
Ranges.print(results, List.of("mean squared error"), "heads", 3);

// %% two-heads-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(4);
var inputs = drawQuestions(manager, 1, -1).inputs();
letters = inputs.get(0);
first = inputs.get(2);
second = inputs.get(3);
evaluate(models.get(2).get(0), inputs.toArray(NDArray[]::new));

String[] nameQuestions(NDArray first, NDArray second) {
    var names = pickCharacters(LETTERS, first);
    var secondNames = pickCharacters(LETTERS, second);
    for (int i = 0; i < names.length; i++) {
        names[i] += "-" + secondNames[i];
    }
    return names;
}

// Both letters of each question are framed.
var isAsked = letters.eq(first.transpose()).logicalOr(letters.eq(second.transpose()));
Plots.heatmaps(models.get(2).get(0).attention.attentionWeights)
        .xlabel("Entries")
        .ylabel("Questions")
        .titles("Head 1", "Head 2")
        .figsize(6, 3)
        .cmap(ColorMap.BLUES)
        .xticklabels(pickCharacters(LETTERS, letters))
        .yticklabels(nameQuestions(first, second))
        .marks(isAsked)
        .show();

// %% without-a-head
/** Return the error after setting a head's rows of W_o to zero. */
double errorWithout(Comparer model, int head) {
    int numHeads = model.attention.numHeads;
    var changed = initialize(new Comparer(numHeads));
    copyWeights(model, changed);
    var W_o = projectionWeights(changed.attention.W_o); // stored transposed
    long width = W_o.size(1) / numHeads;
    W_o.set(new NDIndex(":, {}:{}", head * width, (head + 1) * width), 0);
    return error(changed, differences);
}

var errorsWithout = new LinkedHashMap<Integer, List<double[]>>();
for (int numHeads : new int[] {2, 4}) {
    var runs = new ArrayList<double[]>();
    for (var model : models.get(numHeads)) {
        var headNumbers = IntStream.range(0, numHeads);
        runs.add(headNumbers.mapToDouble(head -> errorWithout(model, head)).toArray());
    }
    errorsWithout.put(numHeads, runs);
}

// %% without-a-head-shown tags=["tolerance:absolute=0.05"]
errorsWithout.forEach(
        (numHeads, runs) -> {
            System.out.println(numHeads + " heads, without one of them:");
            for (int seed : seeds) {
                System.out.print("   seed " + seed + ":");
                for (double headError : runs.get(seed)) {
                    System.out.printf(" %6.3f", headError);
                }
                System.out.println();
            }
        });

// %% texts
/**
 * Draw letters, each followed by its digit; then the same pairs, shuffled. Return
 * tokens (count, 16), and the digits to predict (count, 4).
 */
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

String[] nameTokens(NDArray tokens) {
    return pickCharacters(LETTERS + "0123456789", tokens);
}

var samples = drawTexts(manager, 3).inputs().head();
for (int i = 0; i < 3; i++) {
    System.out.println(String.join(" ", nameTokens(samples.get(i))));
}

// %% reader
/** One or two residual layers, with two causal heads in all. */
class Reader extends AbstractBlock {
    final Block token;
    final Block place;
    final List<MultiHeadAttention> layers = new ArrayList<>();
    final Linear output;

    Reader(int numLayers) {
        token = addChildBlock("tokenTable", makeEmbedding(36));
        place = addChildBlock("placeTable", makeEmbedding(16));
        int numHeads = 2 / numLayers;
        for (int i = 0; i < numLayers; i++) {
            var layer = new MultiHeadAttention(32, numHeads);
            layers.add(addChildBlock("attentionLayer" + i, layer));
        }
        output = addChildBlock("outputLayer", makeProjection(10, true));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var tokens = inputs.head();
        var positions = tokens.getManager().arange((int) tokens.size(1));
        var X = evaluate(token, tokens).add(evaluate(place, positions));
        for (var layer : layers) {
            X = X.add(evaluateCausal(layer, X, X));
        }
        // the letters of the second half
        return new NDList(evaluate(output, X.get(":, {}::2", tokens.size(1) / 2)));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = new Shape(1, 32);
        getChildren().values().forEach(part -> part.initialize(manager, type, vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {new Shape(inputShapes[0].get(0), 4, 10)};
    }
}

// %% train-readers
BinaryOperator<NDArray> crossEntropy =
        (logits, digits) -> {
            // DJL's loss takes a row for each answer.
            var rows = new NDList(logits.reshape(-1, 10));
            var answers = new NDList(digits.flatten());
            return Loss.softmaxCrossEntropyLoss().evaluate(answers, rows);
        };

Reader trainReader(int numLayers, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var model = new Reader(numLayers);
    fit(model, 300, scratch -> drawTexts(scratch, 64), crossEntropy);
    return model;
}

// %% reader-accuracies
// The same texts for every model.
var test = drawTexts(manager, 500);

double accuracy(Reader model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.inputs(), test.answers());
        var predictions = evaluate(model, test.inputs().head()).argMax(2);
        var isRight = predictions.eq(test.answers());
        return isRight.toType(DataType.FLOAT32, false).mean().getFloat();
    }
}

var readers = new LinkedHashMap<Integer, List<Reader>>();
var accuracies = new LinkedHashMap<Integer, double[]>();
for (int numLayers : new int[] {1, 2}) {
    var runs = seeds.stream().map(seed -> trainReader(numLayers, seed)).toList();
    readers.put(numLayers, runs);
    var shares = runs.stream().mapToDouble(model -> accuracy(model));
    accuracies.put(numLayers, shares.toArray());
}

// %% readers-shares tags=["tolerance:absolute=0.02"]
results = new LinkedHashMap<>();
accuracies.forEach((numLayers, runs) -> results.put("" + numLayers, toColumn(runs)));
Ranges.print(results, List.of("right"), "layers", 3);

// %% readers-maps tags=["nbval-ignore-output"]
Engine.getInstance().setRandomSeed(4);
tokens = drawTexts(manager, 1).inputs().head();
var model = readers.get(2).get(0);
evaluate(model, tokens);
// First layer: a digit looks at its letter, just before it. Second layer: a letter of
// the second half looks just after its first appearance.
var marks = manager.zeros(new Shape(2, 16, 16));
for (int i = 1; i < 8; i += 2) {
    marks.set(new NDIndex("0, {}, {}", i, i - 1), 1);
}
for (int i = 8; i < 16; i += 2) {
    for (int j = 0; j < 8; j += 2) {
        if (tokens.getLong(0, i) == tokens.getLong(0, j)) {
            marks.set(new NDIndex("1, {}, {}", i, j + 1), 1);
        }
    }
}
var maps = model.layers.stream().map(layer -> layer.attentionWeights).toList();
Plots.heatmaps(NDArrays.concat(new NDList(maps), 1))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("First layer", "Second layer")
        .figsize(8, 4)
        .cmap(ColorMap.BLUES)
        .xticklabels(nameTokens(tokens))
        .yticklabels(nameTokens(tokens))
        .marks(marks)
        .show();

// %% solution-rank
/**
 * Return the rank: subtract products of a column and a row until only rounding errors
 * are left.
 */
int computeRank(NDArray A) {
    int rank = 0;
    while (A.abs().max().getFloat() > 1e-4) {
        long largest = A.abs().argMax().getLong();
        long i = largest / A.size(1);
        long j = largest % A.size(1);
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
layer = initialize(new MultiHeadAttention(d, 2));
// the second of two heads comes first
var order = manager.create(new int[] {4, 5, 6, 7, 0, 1, 2, 3});
var reordered = initialize(new MultiHeadAttention(d, 2));
// stored transposed
projectionWeights(layer.W_q).get(order).copyTo(projectionWeights(reordered.W_q));
projectionWeights(layer.W_k).get(order).copyTo(projectionWeights(reordered.W_k));
projectionWeights(layer.W_v).get(order).copyTo(projectionWeights(reordered.W_v));
var columns = new NDIndex(":, {}", order);
projectionWeights(layer.W_o).get(columns).copyTo(projectionWeights(reordered.W_o));
var originalOutput = evaluate(layer, X, X, X);
var reorderedOutput = evaluate(reordered, X, X, X);
float largestOutput = originalOutput.abs().max().getFloat();
difference = largestDifference(reorderedOutput, originalOutput);
System.out.println("largest output: %.4f".formatted(largestOutput));
System.out.println("largest difference: %.4f".formatted(difference));

// %% solution-sum
var adders = seeds.stream().map(seed -> train(1, seed, 1)).toList();
var sums = drawQuestions(manager, 500, 1);
var sumErrors = adders.stream().mapToDouble(model -> error(model, sums)).toArray();

// %% solution-sum-shown tags=["tolerance:absolute=0.03"]
Ranges.print(
        Map.of("1", toColumn(sumErrors)), List.of("mean squared error"), "heads", 3);

// %% solution-mean-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(0);
inputs = drawQuestions(manager, 1, -1).inputs();
letters = inputs.get(0);
first = inputs.get(2);
second = inputs.get(3);
evaluate(models.get(2).get(0), inputs.toArray(NDArray[]::new));
var weights = models.get(2).get(0).attention.attentionWeights;
isAsked = letters.eq(first.transpose()).logicalOr(letters.eq(second.transpose()));
Plots.heatmaps(weights.concat(weights.mean(new int[] {1}, true), 1))
        .xlabel("Entries")
        .ylabel("Questions")
        .titles("Head 1", "Head 2", "Mean")
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .xticklabels(pickCharacters(LETTERS, letters))
        .yticklabels(nameQuestions(first, second))
        .marks(isAsked)
        .show();

// %% solution-without-a-layer
/** Return the accuracy when one layer contributes nothing. */
double accuracyWithout(Reader model, int layer) {
    var changed = initialize(new Reader(model.layers.size()));
    copyWeights(model, changed);
    var W_o = projectionWeights(changed.layers.get(layer).W_o);
    W_o.zerosLike().copyTo(W_o);
    return accuracy(changed);
}

var accuraciesWithout = new ArrayList<double[]>();
for (int layer : new int[] {0, 1}) {
    var runs = readers.get(2).stream();
    var shares = runs.mapToDouble(model -> accuracyWithout(model, layer));
    accuraciesWithout.add(shares.toArray());
}

// %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
results = new LinkedHashMap<>();
results.put("without the first", toColumn(accuraciesWithout.get(0)));
results.put("without the second", toColumn(accuraciesWithout.get(1)));
Ranges.print(results, List.of("right"), "layer", 3);
