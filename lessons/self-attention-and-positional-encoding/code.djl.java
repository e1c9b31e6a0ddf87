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
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv1d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.Dropout;
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

/** Return a layer's output in evaluation: nothing is dropped. */
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

// %% six-words
var sentence = "the cat sat because it purred";
// How thing-like a word is, and how action-like.
var X = manager.create(new float[][] {{0, 0}, {3, 0}, {0, 2}, {0, 0}, {1, 0}, {0, 2}});

var query = X.get(4); // the fifth word
var scores = X.matMul(query); // how well does each word fit?
// softmax: positive, and they sum to 1
var weights = scores.exp().div(scores.exp().sum());
var output = weights.matMul(X); // the average, weighted by these shares

var words = sentence.split(" ");
for (int i = 0; i < words.length; i++) {
    float score = scores.getFloat(i);
    float weight = weights.getFloat(i);
    System.out.printf("%5.0f%8.2f   %s%n", score, weight, words[i]);
}
float thing = output.getFloat(0);
float action = output.getFloat(1);
System.out.println("(%.2f, %.2f)  it, having looked around".formatted(thing, action));

// %% all-words
/** Print each word's weights for all six, and its new vector. */
void printRows(NDArray weights, NDArray Y, String sentence) {
    var words = sentence.split(" ");
    for (int i = 0; i < words.length; i++) {
        for (float weight : weights.get(i).toFloatArray()) {
            System.out.printf("%6.2f", weight);
        }
        float thing = Y.getFloat(i, 0);
        float action = Y.getFloat(i, 1);
        System.out.printf("   (%.2f, %.2f)  %s%n", thing, action, words[i]);
    }
}

weights = X.matMul(X.transpose()).softmax(1); // a row for each query
printRows(weights, weights.matMul(X), "the cat sat because it purred");

// %% three-roles
// things and actions both ask for a thing
var W_q = manager.create(new float[][] {{1, 0}, {1, 0}});
var W_k = manager.eye(2);
var W_v = manager.eye(2);

var Q = X.matMul(W_q);
var K = X.matMul(W_k);
var V = X.matMul(W_v);
weights = Q.matMul(K.transpose()).softmax(1);
printRows(weights, weights.matMul(V), "the cat sat because it purred");

// %% shape-check
int numHiddens = 100;
int numHeads = 5;
X = manager.ones(new Shape(2, 4, numHiddens));
var validLens = manager.create(new int[] {3, 2});
var shape = X.getShape();
var newAttention = new MultiHeadAttention(numHiddens, numHeads, 0.5f);
var attention = initialize(newAttention, shape, shape, shape);
evaluate(attention, X, X, X, validLens).getShape()

// %% six-tokens
var tokens = manager.randomNormal(new Shape(1, 6, numHiddens));
var order = manager.create(new int[] {3, 0, 5, 1, 4, 2});
// The first query may see one key, the second two, and so on.
var earlierOnly = manager.arange(1, 7).expandDims(0);

NDArray attendWithoutMask(NDArray X) {
    return evaluate(attention, X, X, X);
}

NDArray attendWithMask(NDArray X) {
    return evaluate(attention, X, X, X, earlierOnly);
}

/** Return how far shuffling before the layer is from shuffling after it. */
float effectOfOrder(UnaryOperator<NDArray> layer) {
    var before = layer.apply(tokens.get(":, {}", order));
    var after = layer.apply(tokens).get(":, {}", order);
    return largestDifference(before, after);
}

// %% equivariance
var ways = new LinkedHashMap<String, UnaryOperator<NDArray>>();
ways.put("without a mask", X -> attendWithoutMask(X));
ways.put("with a causal mask", X -> attendWithMask(X));
ways.forEach(
        (name, layer) -> {
            float largest = layer.apply(tokens).abs().max().getFloat();
            float difference = effectOfOrder(layer);
            System.out.printf("%s: largest output %.4f", name, largest);
            System.out.printf(", largest difference %.4f%n", difference);
        });

// %% cnn-and-rnn
int n = 10;
int d = 16;
int k = 3;

/** Draw an orthogonal matrix (Gram-Schmidt): rows of length 1 at right angles. */
NDArray orthogonal(int size) {
    var rows = new NDList();
    for (int i = 0; i < size; i++) {
        var row = manager.randomNormal(new Shape(size));
        for (var before : rows) {
            row = row.sub(before.mul(before.dot(row)));
        }
        rows.add(row.div(row.norm()));
    }
    return NDArrays.stack(rows);
}

var builder = Conv1d.builder().setFilters(d).setKernelShape(new Shape(k));
var newConv = builder.optPadding(new Shape(k / 2)).optBias(false).build();
var conv = initialize(newConv, new Shape(1, d, n));
var W_xh = orthogonal(d);
var W_hh = orthogonal(d);

NDArray cnn(NDArray X) {
    return evaluate(conv, X.swapAxes(1, 2)).swapAxes(1, 2);
}

NDArray rnn(NDArray X, NDArray W_hh) {
    var H = X.get(":, 0").zerosLike();
    var outputs = new NDList();
    for (long t = 0; t < X.size(1); t++) {
        H = X.get(":, {}", t).matMul(W_xh).add(H.matMul(W_hh)).tanh();
        outputs.add(H);
    }
    return NDArrays.stack(outputs, 1);
}

// %% three-layers
X = manager.randomNormal(new Shape(1, n, d));
shape = X.getShape();
var newSmallAttention = new MultiHeadAttention(d, 2, 0);
var smallAttention = initialize(newSmallAttention, shape, shape, shape);

NDArray selfAttention(NDArray X) {
    return evaluate(smallAttention, X, X, X);
}

List<UnaryOperator<NDArray>> layers =
        List.of(X -> cnn(X), X -> rnn(X, W_hh), X -> selfAttention(X));
for (var layer : layers) {
    System.out.println(layer.apply(X).getShape());
}

// %% influence
/** Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n). */
NDArray influence(UnaryOperator<NDArray> layer, NDArray X) {
    long n = X.size(1);
    long d = X.size(2);
    long numbers = n * d;
    try (var scratch = manager.newSubManager();
            var gradients = Engine.getInstance().newGradientCollector()) {
        // With a copy of X for each number of the output, one backward pass is enough.
        var single = scratch.create(X.toFloatArray(), X.getShape());
        var copies = single.repeat(0, numbers);
        copies.setRequiresGradient(true);
        var directions = scratch.eye((int) numbers).reshape(numbers, n, d);
        gradients.backward(layer.apply(copies).mul(directions).sum());
        var jacobian = copies.getGradient().reshape(n, d, n, d);
        // over the numbers of y_i, and of x_j
        var norms = jacobian.square().sum(new int[] {1, 3}).sqrt();
        norms.attach(manager);
        return norms;
    }
}

var maps = layers.stream().map(layer -> influence(layer, X)).toList();

// %% influence-heatmaps
var names = List.of("CNN", "RNN", "Self-attention");
for (int i = 0; i < maps.size(); i++) {
    long connected = maps.get(i).countNonzero().getLong();
    long size = maps.get(i).size();
    System.out.printf(
            "%s: %d of %d pairs are connected%n", names.get(i), connected, size);
}
var shares = maps.stream().map(map -> map.div(map.max())).toList();
Plots.heatmaps(NDArrays.stack(new NDList(shares)).expandDims(0))
        .xlabel("Input j")
        .ylabel("Output i")
        .titles(names.toArray(String[]::new))
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% receptive-field
UnaryOperator<NDArray> stack(int depth) {
    return X -> {
        for (int i = 0; i < depth; i++) {
            X = cnn(X).tanh();
        }
        return X;
    };
}

var influences = new ArrayList<NDArray>();
for (int depth = 1; depth < 5; depth++) {
    influences.add(influence(stack(depth), X));
}

// %% reach
var sources = influences.get(1).get(2).nonzero().add(1).toLongArray();
var sourceNames = LongStream.of(sources).mapToObj(j -> "x_" + j);
System.out.print("two layers: y_3 depends on ");
System.out.println(sourceNames.collect(Collectors.joining(", ")));
for (int depth = 1; depth < 5; depth++) {
    var reached = influences.get(depth - 1).getFloat(4, 0) > 0 ? "yes" : "no";
    System.out.println("depth " + depth + ": y_5 depends on x_1: " + reached);
}

// %% sequential-operations
void printRow(long length, List<?> values) {
    System.out.printf("%4d", length);
    values.forEach(value -> System.out.printf("%16s", value));
    System.out.println();
}

System.out.println("   n             CNN             RNN  Self-attention");
for (long length : new long[] {4, 8, 16, 32}) {
    X = manager.zeros(new Shape(1, length, d));
    var chains = layers.stream().map(layer -> Counting.longestChain(layer, X));
    printRow(length, chains.toList());
}

// %% multiply-adds
System.out.println(
        "   n             CNN             RNN  Self-attention    as predicted");
for (long length : new long[] {8, 16, 32, 64, 128}) {
    X = manager.zeros(new Shape(1, length, d));
    var counts = layers.stream().map(layer -> Counting.multiplyAdds(layer, X)).toList();
    var predicted =
            List.of(
                    k * length * d * d,
                    2 * length * d * d,
                    4 * length * d * d + 2 * length * length * d);
    var texts = new ArrayList<String>();
    counts.forEach(count -> texts.add("%,d".formatted(count)));
    texts.add(counts.equals(predicted) ? "yes" : "no");
    printRow(length, texts);
}

// %% binary
for (int i = 0; i < 8; i++) {
    var bits = "%3s".formatted(Integer.toBinaryString(i)).replace(' ', '0');
    System.out.println(i + " in binary is " + bits);
}

// %% sinusoids
/** Return P (numPositions, numHiddens); pairs of columns share a frequency. */
NDArray sinusoids(int numPositions, int numHiddens) {
    // In double precision: the sine of a large angle needs the digits.
    var P = new double[numPositions][numHiddens];
    for (int position = 0; position < numPositions; position++) {
        for (int column = 0; column < numHiddens; column++) {
            double exponent = 2 * (column / 2) / (double) numHiddens;
            double angle = position / Math.pow(10000, exponent);
            P[position][column] = column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
        }
    }
    return manager.create(P).toType(DataType.FLOAT32, false);
}

var firstRows = sinusoids(3, 4);
for (int i = 0; i < 3; i++) {
    System.out.print(i + " ");
    for (float x : firstRows.get(i).toFloatArray()) {
        System.out.printf(" %5.2f", x);
    }
    System.out.println();
}

// %% positional-encoding
/** A layer that adds sines and cosines of the position to each vector. */
class PositionalEncoding extends AbstractBlock {
    final NDArray P;
    final float dropout;
    final int maxLen;

    PositionalEncoding(int numHiddens, float dropout) {
        this(numHiddens, dropout, 1000);
    }

    PositionalEncoding(int numHiddens, float dropout, int maxLen) {
        P = sinusoids(maxLen, numHiddens).expandDims(0);
        this.dropout = dropout;
        this.maxLen = maxLen;
    }

    /** Take X and, if it does not start at position 0, its offset. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var X = inputs.head();
        int offset = inputs.size() > 1 ? inputs.get(1).getInt() : 0;
        int end = offset + (int) X.size(1);
        if (offset < 0 || end > maxLen) {
            var message = "positions %d to %d, expected 0 to %d";
            throw new IllegalArgumentException(
                    message.formatted(offset, end - 1, maxLen - 1));
        }
        var encoded = X.add(P.get(":, {}:{}", offset, end));
        return Dropout.dropout(encoded, dropout, training);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}

var addPositions = new PositionalEncoding(numHiddens, 0);

NDArray attendWithPositions(NDArray X) {
    return attendWithoutMask(evaluate(addPositions, X));
}

// %% order-seen
float orderEffect = effectOfOrder(X -> attendWithPositions(X));
System.out.println("with positions: largest difference %.4f".formatted(orderEffect));

// %% scale-and-sum
int dModel = 512;
var ids = manager.randomInteger(0, 1000, new Shape(1, 60), DataType.INT64);

IdEmbedding makeDefaultEmbedding(int size, int width) {
    var builder = new IdEmbedding.Builder();
    return builder.setDictionarySize(size).setEmbeddingSize(width).build();
}

/** Make an embedding whose entries have this standard deviation. */
IdEmbedding makeEmbedding(int size, int width, double spread) {
    var embedding = makeDefaultEmbedding(size, width);
    var normal = new NormalInitializer((float) spread);
    embedding.setInitializer(normal, Parameter.Type.WEIGHT);
    return embedding;
}

var newEmbedding = makeEmbedding(1000, dModel, 1 / Math.sqrt(dModel));
var embedding = initialize(newEmbedding, ids.getShape());
var scaled = evaluate(embedding, ids).mul(Math.sqrt(dModel));
var encoding = new PositionalEncoding(dModel, 0);
var defaultEmbedding = initialize(makeDefaultEmbedding(1000, dModel), ids.getShape());

var vectors =
        List.of(
                evaluate(embedding, ids),
                scaled,
                encoding.P.get(":, :60"),
                evaluate(encoding, scaled),
                evaluate(defaultEmbedding, ids));

// %% lengths
names =
        List.of(
                "embedding",
                "scaled by sqrt(d)",
                "encoding",
                "sum of these two",
                "embedding, as DJL draws it");
for (int i = 0; i < names.size(); i++) {
    float length = vectors.get(i).norm(new int[] {2}).mean().getFloat();
    System.out.printf("%6.2f  %s%n", length, names.get(i));
}

// %% column-plot
int numSteps = 60;
int width = 32;
encoding = new PositionalEncoding(width, 0);
var P = evaluate(encoding, manager.zeros(new Shape(1, numSteps, width))).get(0);
Plots.curves(manager.arange(numSteps), P.get(":, 6:10").transpose())
        .xlabel("Row (position)")
        .figsize(6, 2.5)
        .legend("Col 6", "Col 7", "Col 8", "Col 9")
        .show();

// %% encoding-heatmap
Plots.heatmaps(P.reshape(1, 1, numSteps, width))
        .xlabel("Column (encoding dimension)")
        .ylabel("Row (position)")
        .figsize(3.5, 4)
        .cmap(ColorMap.BLUE_TO_RED)
        .show();

// %% wavelengths
var pair = manager.arange(width / 2);
// radians per position, one for each pair
var omega = NDArrays.pow(10000, pair.mul(-2).div(width));
var turns = NDArrays.div(2 * Math.PI, omega).round().toType(DataType.INT32, false);
System.out.println("positions per turn:");
System.out.println(Arrays.toString(turns.toIntArray()));

// %% dot-products
var products = P.matMul(P.transpose());
var distances = manager.arange(-20, 21); // i - j
var productsAround = new NDList();
for (int i : new int[] {20, 28, 36}) {
    productsAround.add(products.get(i).get(distances.neg().add(i)));
}
float gap = 0;
for (int offset = 1 - numSteps; offset < numSteps; offset++) {
    var diagonal = products.diagonal(offset);
    gap = Math.max(gap, diagonal.max().sub(diagonal.min()).getFloat());
}
System.out.println("P_i with itself: %.4f".formatted(products.getFloat(0, 0)));
System.out.println("largest gap at any one distance: %.4f".formatted(gap));
Plots.curves(distances, NDArrays.stack(productsAround))
        .xlabel("Distance i - j")
        .ylabel("Dot product")
        .figsize(6, 2.5)
        .legend("i = 20", "i = 28", "i = 36")
        .show();

// %% rotation
/** Turn the pairs (sine, cosine) of columns by one angle each, in radians. */
NDArray turn(NDArray X, NDArray angle) {
    var x = X.get("..., 0::2");
    var y = X.get("..., 1::2");
    var sin = angle.sin();
    var cos = angle.cos();
    var first = x.mul(cos).add(y.mul(sin));
    var second = y.mul(cos).sub(x.mul(sin));
    return first.stack(second, -1).reshape(X.getShape());
}

var rows = new LinkedHashMap<String, NDArray>();
rows.put("3", P.get(3));
rows.put("3, turned by 5", turn(P.get(3), omega.mul(5)));
rows.put("8", P.get(8));
rows.forEach(
        (name, row) -> {
            for (float x : row.get(":4").toFloatArray()) {
                System.out.printf("%7.4f ", x);
            }
            System.out.println("  row " + name);
        });
float largest = 0;
for (int delta : new int[] {1, 2, 5, 10, 30, -5}) {
    int start = Math.max(0, -delta);
    int end = numSteps - Math.max(0, delta);
    var turned = turn(P.get("{}:{}", start, end), omega.mul(delta));
    var target = P.get("{}:{}", start + delta, end + delta);
    largest = Math.max(largest, largestDifference(turned, target));
}
System.out.println("largest residual, all rows, six offsets: %.1e".formatted(largest));

// %% five-back
// To get a map's matrix, apply the map to the rows of the identity.
W_q = turn(manager.eye(width), omega.mul(-5));
W_k = manager.eye(width).mul(4);
Q = P.get(":20").matMul(W_q);
K = P.get(":20").matMul(W_k);
var backWeights = Q.matMul(K.transpose()).div(Math.sqrt(width)).softmax(1);
Plots.heatmaps(backWeights.reshape(1, 1, 20, 20))
        .xlabel("Key j")
        .ylabel("Query i")
        .figsize(3.5, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% task
record Examples(NDArray tokens, NDArray labels) {}

/**
 * Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first.
 *
 * <p>Return tokens (count, length), and count labels: 1 if so, else 0.
 */
Examples drawSequences(NDManager manager, int count, int length) {
    var shape = new Shape(count, length);
    var tokens = manager.randomInteger(2, 10, shape, DataType.INT64);
    var positions = manager.randomUniform(0, 1, shape).argSort(1);
    // two different ones
    var zeroPosition = positions.get(":, 0:1");
    var onePosition = positions.get(":, 1:2");
    tokens = tokens.scatter(zeroPosition, zeroPosition.zerosLike(), 1);
    tokens = tokens.scatter(onePosition, onePosition.onesLike(), 1);
    var zeroIsFirst = zeroPosition.lt(onePosition).squeeze(1);
    return new Examples(tokens, zeroIsFirst.toType(DataType.FLOAT32, false));
}

var examples = drawSequences(manager, 3, 8);
for (int i = 0; i < 3; i++) {
    var example = Arrays.toString(examples.tokens().get(i).toLongArray());
    System.out.println("%s -> %.0f".formatted(example, examples.labels().getFloat(i)));
}

// %% reader
/** Embedding, positions, self-attention, and a yes or no for the sequence. */
class Reader extends AbstractBlock {
    final int numHiddens = 32;
    final int numHeads = 4;
    final Block embedding;
    final Block positions;
    final boolean causal;
    final MultiHeadAttention attention;
    final Block output;

    Reader(Block positions, boolean causal) {
        embedding = addChildBlock("tokenEmbedding", makeEmbedding(10, numHiddens, 1));
        this.positions = addChildBlock("positionalEncoding", positions);
        this.causal = causal;
        var newAttention = new MultiHeadAttention(numHiddens, numHeads, 0);
        attention = addChildBlock("selfAttention", newAttention);
        var dense =
                new SequentialBlock()
                        .add(Linear.builder().setUnits(numHiddens).build())
                        .add(Activation.reluBlock())
                        .add(Linear.builder().setUnits(1).build());
        // Weights from -1/√n to 1/√n for n inputs, as in the attention.
        var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
        dense.setInitializer(narrow, Parameter.Type.WEIGHT);
        output = addChildBlock("yesOrNo", dense);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var embedded = embedding.forward(store, inputs, training);
        var X = positions.forward(store, embedded, training).head();
        var mask = new PairList<String, Object>(Map.of("causal", causal));
        var Y = attention.forward(store, new NDList(X, X, X), training, mask).head();
        var mean = new NDList(Y.mean(new int[] {1}));
        return new NDList(output.forward(store, mean, training).head().squeeze(-1));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = inputShapes[0].add(numHiddens); // (batch, tokens, numHiddens)
        embedding.initialize(manager, type, inputShapes);
        positions.initialize(manager, type, vectors);
        attention.initialize(manager, type, vectors, vectors, vectors);
        output.initialize(manager, type, vectors);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {new Shape(inputShapes[0].get(0))};
    }
}

Reader fixedReader() {
    return new Reader(new d2l.PositionalEncoding(32, 0), false);
}

// %% train
/** Train a reader on sequences of 8 tokens, starting from this seed. */
Reader train(Supplier<Reader> makeReader, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var reader = initialize(makeReader.get(), new Shape(128, 8));
    var weights = reader.getParameters();
    weights.values().forEach(each -> each.getArray().setRequiresGradient(true));
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(8e-3f)).build();
    var loss = Loss.sigmoidBinaryCrossEntropyLoss();
    for (int step = 0; step < 120; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var batch = drawSequences(scratch, 128, 8);
            var answers = reader.forward(parameters, new NDList(batch.tokens()), true);
            gradients.backward(loss.evaluate(new NDList(batch.labels()), answers));
        }
        for (var named : weights) {
            var array = named.getValue().getArray();
            try (var gradient = array.getGradient()) {
                adam.update(named.getKey(), array, gradient);
            }
        }
    }
    return reader;
}

/** Train five readers of a kind, from five seeds. */
List<Reader> trainFive(Supplier<Reader> makeReader) {
    return IntStream.range(0, 5).mapToObj(seed -> train(makeReader, seed)).toList();
}

var fixedReaders = trainFive(() -> fixedReader());
var reader = fixedReaders.get(0);

// %% show-attention
/** Show what each token attends to, with frames around the 0 and the 1. */
void showAttention(String xlabel, int... tokens) {
    var sequence = manager.create(tokens).expandDims(0);
    evaluate(reader, sequence);
    var labels = IntStream.of(tokens).mapToObj(token -> "" + token);
    var tokenLabels = labels.toArray(String[]::new);
    Plots.heatmaps(reader.attention.attentionWeights())
            .xlabel(xlabel)
            .ylabel("Queries")
            .titles("Head 1", "Head 2", "Head 3", "Head 4")
            .figsize(8, 2.5)
            .cmap(ColorMap.BLUES)
            .xticklabels(tokenLabels)
            .yticklabels(tokenLabels)
            .marks(sequence.lt(2))
            .show();
}

// %% trained-maps tags=["tolerance:levels=16"]
showAttention("Keys: the 0 comes first", 5, 3, 0, 7, 2, 1, 9, 4);

// %% exchanged-maps tags=["tolerance:levels=16"]
showAttention("Keys: the 1 comes first", 5, 3, 1, 7, 2, 0, 9, 4);

// %% found
var samples = drawSequences(manager, 1000, 8);
tokens = samples.tokens();
var labels = samples.labels();
evaluate(reader, tokens);
// (sequences, heads, keys)
var received = reader.attention.attentionWeights().mean(new int[] {2});
var isZero = tokens.eq(0).expandDims(1);
var isOne = tokens.eq(1).expandDims(1);
var onZero = received.mul(isZero).sum(new int[] {2}); // (sequences, heads)
var onOne = received.mul(isOne).sum(new int[] {2});
var zeroIsFirst = labels.gt(0).expandDims(1).broadcast(onZero.getShape());
var onFirst = NDArrays.where(zeroIsFirst, onZero, onOne);
var onLast = NDArrays.where(zeroIsFirst, onOne, onZero);

// %% found-shares tags=["tolerance:absolute=0.02"]
System.out.println("    on 0    on 1   on the first   on the last");
for (int h = 0; h < 4; h++) {
    var means = new ArrayList<Float>();
    for (var share : List.of(onZero, onOne, onFirst, onLast)) {
        means.add(share.get(":, {}", h).mean().getFloat());
    }
    System.out.printf("%8.2f%8.2f%15.2f%14.2f", means.toArray());
    System.out.println("   head " + (h + 1));
}

// %% without-positions
/** Return the share of answers that agree with the labels. */
double accuracy(NDArray answers, NDArray labels) {
    var isRight = answers.gt(0).eq(labels.gt(0));
    return isRight.toType(DataType.FLOAT32, false).mean().getFloat();
}

/** Return the share right, with positions in queries and keys, in values, or both. */
double attentionAccuracy(Reader reader, boolean inScores, boolean inValues) {
    var X = evaluate(reader.embedding, tokens);
    var XWithP = evaluate(reader.positions, X);
    var queries = inScores ? XWithP : X;
    var values = inValues ? XWithP : X;
    var Y = evaluate(reader.attention, queries, queries, values);
    var answers = evaluate(reader.output, Y.mean(new int[] {1})).squeeze(-1);
    return accuracy(answers, labels);
}

/** Return a share for each of the five readers, as a column of a table. */
double[][] attentionAccuracies(boolean inScores, boolean inValues) {
    return fixedReaders.stream()
            .map(reader -> new double[] {attentionAccuracy(reader, inScores, inValues)})
            .toArray(double[][]::new);
}

var fullAccuracies = attentionAccuracies(true, true);
var scoresAccuracies = attentionAccuracies(true, false);
var valuesAccuracies = attentionAccuracies(false, true);

// %% without-positions-shown tags=["tolerance:absolute=0.1"]
var results = new LinkedHashMap<String, double[][]>();
results.put("everywhere", fullAccuracies);
results.put("in queries and keys alone", scoresAccuracies);
results.put("in values alone", valuesAccuracies);
Ranges.print(results, List.of("share right"), "positions", 3);
System.out.println(
        "the first reader: %.3f %.3f %.3f"
                .formatted(
                        fullAccuracies[0][0], scoresAccuracies[0][0], valuesAccuracies[0][0]));

// %% learned-positions
/** A table of positions, trained like every other weight. */
class LearnedPositionalEncoding extends AbstractBlock {
    final IdEmbedding P;

    LearnedPositionalEncoding(int numHiddens, int maxLen) {
        P = addChildBlock("P", makeEmbedding(maxLen, numHiddens, 1));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType type, Shape... inputShapes) {
        P.initialize(manager, type, new Shape(inputShapes[0].get(1)));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var X = inputs.head();
        var position = X.getManager().arange((int) X.size(1));
        var vectors = P.forward(store, new NDList(position), training).head();
        return new NDList(X.add(vectors));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}

// %% accuracies
// The same sequences for every reader.
var lengths = List.of(8, 16, 32, 64);
var tests =
        lengths.stream().map(length -> drawSequences(manager, 500, length)).toList();

/** Return the share of sequences that the reader gets right, for each length. */
double[] accuracies(Reader reader) {
    var shares = DoubleStream.builder();
    for (var test : tests) {
        // All that a model computes from these is freed with this manager.
        try (var scratch = manager.newSubManager()) {
            scratch.tempAttachAll(test.tokens(), test.labels());
            shares.add(accuracy(evaluate(reader, test.tokens()), test.labels()));
        }
    }
    return shares.build().toArray();
}

/** Return the accuracies of some readers, (readers, lengths). */
double[][] accuraciesOf(List<Reader> readers) {
    return readers.stream().map(reader -> accuracies(reader)).toArray(double[][]::new);
}

// %% fifteen-readers
Reader learnedReader() {
    return new Reader(new LearnedPositionalEncoding(32, 64), false);
}

Reader causalReader() {
    return new Reader(Blocks.identityBlock(), true);
}

var runs =
        List.of(
                accuraciesOf(fixedReaders),
                accuraciesOf(trainFive(() -> learnedReader())),
                accuraciesOf(trainFive(() -> causalReader())));

// %% past-the-end tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = List.of("sinusoids", "table", "mask");
results = new LinkedHashMap<>();
for (int i = 0; i < names.size(); i++) {
    results.put(names.get(i), runs.get(i));
}
Ranges.print(results, lengths, "tokens");
Ranges.plot(lengths.stream().mapToDouble(length -> length).toArray(), results)
        .xlabel("Tokens (trained on 8)")
        .ylabel("Share right")
        .ylim(0, 1.05)
        .show();

// %% solution-bias
X = manager.randomNormal(new Shape(1, 4, 8));
var b_k = manager.randomNormal(new Shape(8));
scores = X.matMul(X.swapAxes(1, 2));
var shifted = X.matMul(X.add(b_k).swapAxes(1, 2));
float difference = largestDifference(scores.softmax(-1), shifted.softmax(-1));

// %% solution-bias-shown
float scoresDifference = largestDifference(scores, shifted);
System.out.println("scores differ by up to %.2f".formatted(scoresDifference));
System.out.println("weights differ by up to %.5f".formatted(difference));

// %% solution-diversity
/** Return the norm of the deviations from the mean token, divided by the norm of X. */
double diversity(NDArray X) {
    var deviations = X.sub(X.mean(new int[] {1}, true));
    return deviations.norm().getFloat() / X.norm().getFloat();
}

/** Return the diversity before the first layer, and after each. */
double[] stackUp(
        NDArray X, List<MultiHeadAttention> layers, boolean skip, float sharpness) {
    var curve = DoubleStream.builder();
    curve.add(diversity(X));
    for (var layer : layers) {
        var pooled = evaluate(layer, X.mul(sharpness), X, X);
        X = skip ? X.add(pooled) : pooled.mul(X.norm()).div(pooled.norm());
        curve.add(diversity(X));
    }
    return curve.build().toArray();
}

// %% solution-stacking
var start = manager.randomNormal(new Shape(1, 16, 64));
X = evaluate(new d2l.PositionalEncoding(64, 0), start);
shape = X.getShape();
var blocks = new ArrayList<MultiHeadAttention>();
for (int i = 0; i < 8; i++) {
    blocks.add(initialize(new MultiHeadAttention(64, 4, 0), shape, shape, shape));
}
var curves =
        List.of(
                stackUp(X, blocks, false, 1),
                stackUp(X, blocks, false, 10),
                stackUp(X, blocks, true, 1));

// %% solution-stacking-figure
Plots.curves(curves)
        .xlabel("Layers")
        .ylabel("Diversity")
        .ylim(0, 1.05)
        .figsize(6, 2.5)
        .legend("attention alone", "queries ten times as long", "with skip connections")
        .show();

// %% solution-mirrored
/** Exchange the 0 and the 1 of every sequence. */
NDArray mirror(NDArray tokens) {
    return NDArrays.where(tokens.lt(2), tokens.neg().add(1), tokens);
}

Engine.getInstance().setRandomSeed(0);
reader = initialize(new Reader(Blocks.identityBlock(), false), new Shape(500, 8));
tokens = drawSequences(manager, 500, 8).tokens();
var answers = evaluate(reader, tokens);
difference = largestDifference(answers, evaluate(reader, mirror(tokens)));
System.out.println(
        "largest difference between the answers to both: %.5f".formatted(difference));

// %% solution-causal
NDArray causalAttention(NDArray X) {
    var causal = new PairList<String, Object>(Map.of("causal", true));
    var inputs = new NDList(X, X, X);
    return smallAttention.forward(parameters, inputs, false, causal).head();
}

X = manager.randomNormal(new Shape(1, n, d));
var causalMap = influence(X -> causalAttention(X), X);

// %% solution-causal-map
var position = manager.arange(n);
var isLater = position.gt(position.expandDims(1));
boolean future = causalMap.mul(isLater).countNonzero().getLong() > 0;
System.out.println("any influence of the future: " + (future ? "yes" : "no"));
long connected = causalMap.countNonzero().getLong();
System.out.printf("%d of %d pairs are connected%n", connected, causalMap.size());
Plots.heatmaps(causalMap.div(causalMap.max()).reshape(1, 1, n, n))
        .xlabel("Input j")
        .ylabel("Output i")
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-fading
NDArray shrinkingRnn(NDArray X) {
    return rnn(X, W_hh.mul(0.8));
}

int nFar = 24;
X = manager.randomNormal(new Shape(1, nFar, d));
List<UnaryOperator<NDArray>> fadingLayers =
        List.of(X -> rnn(X, W_hh), X -> shrinkingRnn(X), X -> selfAttention(X));
var fadingCurves =
        fadingLayers.stream().map(layer -> influence(layer, X).get(":, 0")).toList();

// %% solution-fading-figure
var relative = fadingCurves.stream().map(curve -> curve.div(curve.get(0))).toList();
Plots.curves(manager.arange(nFar), NDArrays.stack(new NDList(relative)))
        .xlabel("Distance from the first token")
        .ylabel("Influence")
        .ylim(1e-8, 10)
        .logY()
        .figsize(6, 2.5)
        .legend("RNN", "RNN, matrix times 0.8", "self-attention")
        .show();

// %% solution-dilated
/** Count layers with k = 3 until the first of n tokens reaches the last output. */
int countLayers(int n, int growth) {
    var signal = manager.zeros(new Shape(1, 1, n));
    signal.set(new NDIndex("..., 0"), 1);
    var kernel = manager.ones(new Shape(1, 1, 3));
    int depth = 0;
    while (signal.getFloat(0, 0, n - 1) == 0) {
        var step = new Shape((long) Math.pow(growth, depth));
        var stride = new Shape(1);
        // no bias; the padding is as wide as the dilation
        signal = Conv1d.conv1d(signal, kernel, null, stride, step, step).head();
        signal = signal.minimum(1); // 1 if it arrives, else 0
        depth++;
    }
    return depth;
}

System.out.println("   n   plain  dilated");
for (int length : new int[] {5, 14, 41, 122}) {
    int plain = countLayers(length, 1);
    int dilated = countLayers(length, 3);
    System.out.printf("%4d%8d%9d%n", length, plain, dilated);
}
