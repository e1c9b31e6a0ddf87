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

/** A layer's output in evaluation. */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Makes the parameters of a layer that takes inputs of these shapes. */
<B extends Block> B initialized(B layer, Shape... shapes) {
    layer.initialize(manager, DataType.FLOAT32, shapes);
    return layer;
}

/** The largest difference between two arrays. */
float apart(NDArray X, NDArray Y) {
    return X.sub(Y).abs().max().getFloat();
}

// %% one-average
var fruits = List.of("apple", "lemon", "pear");
var keys = manager.eye(3); // a number of its own for each fruit
var values = manager.create(new float[] {50, 40, 70}); // what it costs, in cents
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
var both = NDArrays.stack(new NDList(pear, lemon));
var heads = both.matMul(keys.transpose()).softmax(1).matMul(values);
var W_o = manager.create(new float[] {1, -1}); // the first minus the second
float more = heads.matMul(W_o).getFloat(), less = heads.flip(0).matMul(W_o).getFloat();
System.out.println("the two heads: %.1f %.1f".formatted(heads.getFloat(0), heads.getFloat(1)));
System.out.println("a pear costs %.1f cents more than a lemon".formatted(more));
System.out.println("a lemon costs %.1f cents more than a pear".formatted(less));

// %% split-and-merge
/** Cut each vector into heads: (batch, n, d) to (batch, heads, n, d / heads). */
NDArray split(NDArray X, int numHeads) {
    long batch = X.size(0), n = X.size(1), d = X.size(2);
    return X.reshape(batch, n, numHeads, d / numHeads).swapAxes(1, 2);
}

/** And put them side by side again: (batch, heads, n, width) to (batch, n, d). */
NDArray merge(NDArray X) {
    long batch = X.size(0), numHeads = X.size(1), n = X.size(2), width = X.size(3);
    return X.swapAxes(1, 2).reshape(batch, n, numHeads * width);
}

// %% multi-head
/** Each matrix turned over, whatever is in front of its two axes. */
NDArray transposed(NDArray X) {
    int axes = X.getShape().dimension();
    return X.swapAxes(axes - 2, axes - 1);
}

/** Scaled dot-product attention, over the last two axes. */
NDArray attend(NDArray q, NDArray k, NDArray v) {
    double root = Math.sqrt(q.getShape().getLastDimension());
    return q.matMul(transposed(k)).div(root).softmax(-1).matMul(v);
}

/** Self-attention with several heads: project, split, attend, merge, project. */
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
Supplier<NDArray> matrix = () -> manager.randomNormal(new Shape(d, d)).div(Math.sqrt(d));
NDArray W_q = matrix.get(), W_k = matrix.get(), W_v = matrix.get();
W_o = matrix.get();

NDArray q = X.matMul(W_q), k = X.matMul(W_k), v = X.matMul(W_v);
var attended = attend(split(q, numHeads), split(k, numHeads), split(v, numHeads));
var merged = merge(attended);
var steps = new LinkedHashMap<String, NDArray>();
steps.put("X", X);
steps.put("X W_q", q);
steps.put("split", split(q, numHeads));
steps.put("attended", attended);
steps.put("merged", merged);
steps.put("output", merged.matMul(W_o));
steps.forEach((name, step) -> System.out.println("%8s %s".formatted(name, step.getShape())));

// %% head-by-head
int width = d / numHeads;
var oneByOne = new NDList();
for (int head = 0; head < numHeads; head++) {
    var columns = new NDIndex(":, {}:{}", head * width, (head + 1) * width);
    NDArray W_q1 = W_q.get(columns), W_k1 = W_k.get(columns), W_v1 = W_v.get(columns);
    oneByOne.add(attend(X.matMul(W_q1), X.matMul(W_k1), X.matMul(W_v1)));
}
var byHeads = NDArrays.concat(oneByOne, -1).matMul(W_o);

// %% the-layer
/** The weights of a projection, (outputs, inputs). */
NDArray weight(Linear projection) {
    return projection.getParameters().valueAt(0).getArray();
}

var shape = X.getShape();
var layer = initialized(new MultiHeadAttention(d, numHeads, 0), shape, shape, shape);
W_q.transpose().copyTo(weight(layer.W_q));
W_k.transpose().copyTo(weight(layer.W_k));
W_v.transpose().copyTo(weight(layer.W_v));
W_o.transpose().copyTo(weight(layer.W_o));
var byLayer = evaluate(layer, X, X, X);
var ours = multiHead(X, W_q, W_k, W_v, W_o, numHeads);

// %% all-alike
System.out.println("largest output: %.4f".formatted(ours.abs().max().getFloat()));
var line = "%12s: largest difference %.4f";
System.out.println(line.formatted("head by head", apart(byHeads, ours)));
System.out.println(line.formatted("the layer", apart(byLayer, ours)));

// %% merged-wrongly
var wrong = attended.reshape(1, 5, d); // the right shape, and the wrong numbers
System.out.println("shapes: " + wrong.getShape() + " " + merge(attended).getShape());
var inPlace = wrong.eq(merge(attended)).toType(DataType.FLOAT32, false).mean().getFloat();
System.out.println("numbers in their place: %.2f".formatted(inPlace));

// %% wrong-root
/** The largest weight, on average over a thousand queries of 8 heads. */
float sharpness(double root) {
    Engine.getInstance().setRandomSeed(0);
    var q = manager.randomNormal(new Shape(8, 1000, 64)); // 512 / 8 = 64
    var k = manager.randomNormal(new Shape(8, 10, 64));
    var weights = q.matMul(transposed(k)).div(root).softmax(-1);
    return weights.max(new int[] {-1}).mean().getFloat();
}

line = "divided by the root of %15s: %.2f";
System.out.println(line.formatted("the head's 64", sharpness(Math.sqrt(64))));
System.out.println(line.formatted("the model's 512", sharpness(Math.sqrt(512))));

// %% costs
var tokens = manager.zeros(new Shape(1, 10, 64));
System.out.println("heads  width  parameters  multiply-adds  weights");
for (int numHeads : new int[] {1, 2, 4, 8, 16}) {
    var shape = tokens.getShape();
    var layer = initialized(new MultiHeadAttention(64, numHeads, 0), shape, shape, shape);
    long products = Counting.multiplyAdds(X -> evaluate(layer, X, X, X), tokens);
    long count = layer.getParameters().values().stream()
            .mapToLong(each -> each.getArray().size())
            .sum();
    evaluate(layer, tokens, tokens, tokens);
    long weights = layer.attentionWeights().size();
    System.out.printf(
            "%5d%7d%,12d%,15d%,9d%n", numHeads, 64 / numHeads, count, products, weights);
}

// %% questions
record Examples(NDList given, NDArray answers) {}

/** Entries, a letter and a number each; pairs of letters; what is right. */
Examples questions(NDManager manager, int count, int sign) {
    // none of the letters twice
    var order = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = order.get(":, :{}", 6);
    var numbers = manager.randomNormal(new Shape(count, 6));
    // For each question two different places.
    var places = manager.randomUniform(0, 1, new Shape(count, 6, 6)).argSort(2);
    NDArray first = places.get("..., 0"), second = places.get("..., 1");
    NDArray a = numbers.gather(first, 1), b = numbers.gather(second, 1);
    NDArray askedFirst = letters.gather(first, 1), askedSecond = letters.gather(second, 1);
    var given = new NDList(letters, numbers, askedFirst, askedSecond);
    return new Examples(given, a.add(b.mul(sign)));
}

/** A letter of the first row. */
char letter(NDArray letters, int i) {
    return (char) ('a' + letters.getLong(0, i));
}

Engine.getInstance().setRandomSeed(2);
var one = questions(manager, 1, -1);
NDArray letters = one.given().get(0), numbers = one.given().get(1);
NDArray first = one.given().get(2), second = one.given().get(3);
System.out.print("entries:");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c %.1f ", letter(letters, i), numbers.getFloat(0, i));
}
System.out.println();
for (int i = 0; i < 3; i++) {
    float answer = one.answers().getFloat(0, i);
    System.out.printf("%c - %c = %.1f%n", letter(first, i), letter(second, i), answer);
}

// %% comparer
/** A table with a vector for each of so many letters, tokens or places. */
Block embedding(int size) {
    var table = new IdEmbedding.Builder().setDictionarySize(size).setEmbeddingSize(32).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return table;
}

/** A projection, with weights from -1/√n to 1/√n for n inputs. */
Linear linear(int units, boolean hasBias) {
    var made = Linear.builder().setUnits(units).optBias(hasBias).build();
    var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
    made.setInitializer(narrow, Parameter.Type.WEIGHT);
    return made;
}

/** How much greater is the first letter's number than the second's? */
class Comparer extends AbstractBlock {
    final Block letter = addChildBlock("letterTable", embedding(26));
    final Block first = addChildBlock("firstTable", embedding(26));
    final Block second = addChildBlock("secondTable", embedding(26));
    final Block number = addChildBlock("numberLayer", linear(32, false));
    final MultiHeadAttention attention;
    final Block output = addChildBlock("outputLayer", linear(1, true));

    Comparer(int numHeads) {
        attention = addChildBlock("attentionLayer", new MultiHeadAttention(32, numHeads, 0));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var ofNumbers = evaluate(number, inputs.get(1).expandDims(2));
        var entries = evaluate(letter, inputs.get(0)).add(ofNumbers);
        var queries = evaluate(first, inputs.get(2)).add(evaluate(second, inputs.get(3)));
        var found = evaluate(attention, queries, entries, entries);
        return new NDList(evaluate(output, found).squeeze(2));
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
/** Makes the model's weights, and takes so many steps, each on new examples. */
void train(
        Block model, int steps, Function<NDManager, Examples> draw, BinaryOperator<NDArray> error) {
    initialized(model);
    model.getParameters().values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build();
    for (int step = 0; step < steps; step++) {
        // All that a step computes goes with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var batch = draw.apply(scratch);
            var answers = model.forward(parameters, batch.given(), true).head();
            gradients.backward(error.apply(answers, batch.answers()));
        }
        model.getParameters().forEach(named -> {
            var weights = named.getValue().getArray();
            try (var gradient = weights.getGradient()) {
                adam.update(named.getKey(), weights, gradient);
            }
        });
    }
}

BinaryOperator<NDArray> meanSquare = (answers, right) -> answers.sub(right).square().mean();

Comparer trained(int numHeads, int seed, int sign) {
    Engine.getInstance().setRandomSeed(seed);
    var model = new Comparer(numHeads);
    train(model, 250, scratch -> questions(scratch, 32, sign), meanSquare);
    return model;
}

// The same questions for every model.
var differences = questions(manager, 500, -1);

double error(Block model, Examples test) {
    // All that a model computes of these goes with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.given(), test.answers());
        var answers = model.forward(parameters, test.given(), false).head();
        return meanSquare.apply(answers, test.answers()).getFloat();
    }
}

var seeds = List.of(0, 1, 2, 3, 4);
var models = new TreeMap<Integer, List<Comparer>>();
var errors = new TreeMap<Integer, double[]>();
for (int h : new int[] {1, 2, 4}) {
    var ofH = seeds.stream().map(seed -> trained(h, seed, -1)).toList();
    models.put(h, ofH);
    errors.put(h, ofH.stream().mapToDouble(model -> error(model, differences)).toArray());
}

// %% errors tags=["tolerance:absolute=0.03"]
/** The median, and the range. */
String spread(double... found) {
    var sorted = DoubleStream.of(found).sorted().toArray();
    double low = sorted[0], median = sorted[2], high = sorted[4];
    return "%.3f (%.3f-%.3f)".formatted(median, low, high);
}

System.out.println("heads  mean squared error, five seeds: median (range)");
errors.forEach((h, found) -> System.out.println("%5d  %s".formatted(h, spread(found))));

// %% two-heads-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(4);
var given = questions(manager, 1, -1).given();
evaluate(models.get(2).get(0), given.toArray(NDArray[]::new));
System.out.print("entries:  ");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c", letter(given.get(0), i));
}
System.out.println();
System.out.print("questions:");
for (int i = 0; i < 6; i++) {
    System.out.printf(" %c-%c", letter(given.get(2), i), letter(given.get(3), i));
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
/** The error once a head's output is zero: its rows of W_o are. */
double errorWithout(Comparer model, int numHeads, int head) {
    var W_o = weight(model.attention.W_o); // transposed: its rows are columns
    int width = 32 / numHeads;
    var kept = W_o.duplicate();
    W_o.set(new NDIndex(":, {}:{}", head * width, (head + 1) * width), 0);
    double found = error(model, differences);
    kept.copyTo(W_o);
    return found;
}

var removed = new TreeMap<Integer, List<double[]>>();
for (int h : new int[] {2, 4}) {
    removed.put(h, models.get(h).stream()
            .map(model -> IntStream.range(0, h).mapToDouble(head -> errorWithout(model, h, head)))
            .map(DoubleStream::toArray)
            .toList());
}

// %% without-a-head-shown tags=["tolerance:absolute=0.05"]
removed.forEach((h, ofModels) -> {
    System.out.println(h + " heads, without one of them:");
    for (int seed : seeds) {
        System.out.print("   seed " + seed + ":");
        for (double cost : ofModels.get(seed)) {
            System.out.printf(" %6.3f", cost);
        }
        System.out.println();
    }
});

// %% texts
/** Letters, each with its digit after it; then the same pairs, shuffled. */
Examples texts(NDManager manager, int count) {
    var order = manager.randomUniform(0, 1, new Shape(count, 26)).argSort(1);
    var letters = order.get(":, :{}", 4);
    var digits = manager.randomInteger(0, 10, new Shape(count, 4), DataType.INT64);
    var again = manager.randomUniform(0, 1, new Shape(count, 4)).argSort(1);
    // tokens 26 to 35 are digits
    var pairs = NDArrays.stack(new NDList(letters, digits.add(26)), 2);
    var repeated = pairs.gather(again.expandDims(2).repeat(2, 2), 1);
    var tokens = pairs.concat(repeated, 1).reshape(count, 16);
    return new Examples(new NDList(tokens), digits.gather(again, 1));
}

String written(NDArray tokens) {
    return LongStream.of(tokens.toLongArray())
            .mapToObj(x -> x < 26 ? "" + (char) ('a' + x) : "" + (x - 26))
            .collect(Collectors.joining(" "));
}

var three = texts(manager, 3).given().head();
for (int i = 0; i < 3; i++) {
    System.out.println(written(three.get(i)));
}

// %% reader
/** One or two layers, of two causal heads in all; what they bring is added. */
class Reader extends AbstractBlock {
    final Block token = addChildBlock("tokenTable", embedding(36));
    final Block place = addChildBlock("placeTable", embedding(16));
    final List<MultiHeadAttention> layers = new ArrayList<>();
    final Block output = addChildBlock("outputLayer", linear(10, true));

    Reader(int numLayers) {
        for (int i = 0; i < numLayers; i++) {
            layers.add(addChildBlock("attentionLayer" + i, new MultiHeadAttention(32, 2 / numLayers, 0)));
        }
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var tokens = inputs.head();
        var places = tokens.getManager().arange((int) tokens.size(1));
        var X = evaluate(token, tokens).add(evaluate(place, places));
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
BinaryOperator<NDArray> crossEntropy = (scores, digits) -> {
    // DJL's takes a row for each answer.
    var rows = new NDList(scores.reshape(-1, 10));
    return Loss.softmaxCrossEntropyLoss().evaluate(new NDList(digits.flatten()), rows);
};

Reader reader(int numLayers, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var model = new Reader(numLayers);
    train(model, 300, scratch -> texts(scratch, 64), crossEntropy);
    return model;
}

// The same texts for every model.
var test = texts(manager, 500);

double shareRight(Reader model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.given(), test.answers());
        var right = evaluate(model, test.given().head()).argMax(2).eq(test.answers());
        return right.toType(DataType.FLOAT32, false).mean().getFloat();
    }
}

var readers = new TreeMap<Integer, List<Reader>>();
var shares = new TreeMap<Integer, double[]>();
for (int count : new int[] {1, 2}) {
    var ofCount = seeds.stream().map(seed -> reader(count, seed)).toList();
    readers.put(count, ofCount);
    shares.put(count, ofCount.stream().mapToDouble(model -> shareRight(model)).toArray());
}

// %% readers-shares tags=["tolerance:absolute=0.02"]
shares.forEach((count, found) ->
        System.out.println("layers: %d, right: %s".formatted(count, spread(found))));

// %% readers-maps tags=["nbval-ignore-output"]
Engine.getInstance().setRandomSeed(4);
tokens = texts(manager, 1).given().head();
var model = readers.get(2).get(0);
evaluate(model, tokens);
System.out.println(written(tokens));
var maps = model.layers.stream().map(layer -> layer.attentionWeights()).toList();
Plots.heatmaps(NDArrays.concat(new NDList(maps), 1))
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("First layer", "Second layer")
        .figsize(7, 3.5)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-rank
/** How often a row times a column can be taken away until nothing is left but rounding. */
int rank(NDArray A) {
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
    int rank = rank(q.matMul(k.transpose()));
    System.out.printf("heads: %d, width: %d, rank: %d%n", numHeads, d / numHeads, rank);
}

// %% solution-order
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(1, 5, d));
// the second of two heads comes first
var order = manager.create(new int[] {4, 5, 6, 7, 0, 1, 2, 3});
var exchanged = Stream.of(W_q, W_k, W_v).map(W -> W.get(new NDIndex(":, {}", order))).toList();
var before = multiHead(X, W_q, W_k, W_v, W_o, 2);
var after = multiHead(
        X, exchanged.get(0), exchanged.get(1), exchanged.get(2), W_o.get(order), 2);
System.out.println("largest output: %.4f".formatted(before.abs().max().getFloat()));
System.out.println("largest difference: %.4f".formatted(apart(after, before)));

// %% solution-sum
var adders = seeds.stream().map(seed -> trained(1, seed, 1)).toList();
var sums = questions(manager, 500, 1);
var ofSums = adders.stream().mapToDouble(model -> error(model, sums)).toArray();

// %% solution-sum-shown tags=["tolerance:absolute=0.03"]
System.out.println("one head, sums: mean squared error " + spread(ofSums));

// %% solution-mean-map tags=["tolerance:levels=16"]
Engine.getInstance().setRandomSeed(0);
given = questions(manager, 1, -1).given();
evaluate(models.get(2).get(0), given.toArray(NDArray[]::new));
var weights = models.get(2).get(0).attention.attentionWeights();
Plots.heatmaps(weights.concat(weights.mean(new int[] {1}, true), 1))
        .xlabel("Entries")
        .ylabel("Questions")
        .titles("Head 1", "Head 2", "Mean")
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-without-a-layer
/** What is right where one layer brings nothing. */
double shareWithout(Reader model, int leftOut) {
    var W_o = weight(model.layers.get(leftOut).W_o);
    var kept = W_o.duplicate();
    W_o.zerosLike().copyTo(W_o);
    double found = shareRight(model);
    kept.copyTo(W_o);
    return found;
}

var left = new TreeMap<Integer, double[]>();
for (int layer : new int[] {0, 1}) {
    var ofModels = readers.get(2).stream().mapToDouble(model -> shareWithout(model, layer));
    left.put(layer, ofModels.toArray());
}

// %% solution-without-a-layer-shown tags=["tolerance:absolute=0.1"]
left.forEach((layer, found) -> {
    var name = List.of("first", "second").get(layer);
    var sorted = DoubleStream.of(found).sorted().toArray();
    double low = sorted[0], median = sorted[2], high = sorted[4];
    var line = "without the %6s: %.3f (%.3f-%.3f) right";
    System.out.println(line.formatted(name, median, low, high));
});
