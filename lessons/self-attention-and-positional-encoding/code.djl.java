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

// %% six-words
var sentence = "the cat sat because it purred";
// How thing-like a word is, and how action-like.
var X = manager.create(new float[][] {{0, 0}, {3, 0}, {0, 2}, {0, 0}, {1, 0}, {0, 2}});

var query = X.get(4); // the fifth word
var scores = X.matMul(query); // how well does each word fit?
var weights = scores.exp().div(scores.exp().sum()); // softmax: positive, and they sum to 1
var output = weights.matMul(X); // the average, weighted by these shares

var words = sentence.split(" ");
for (int i = 0; i < words.length; i++) {
    System.out.printf("%5.0f%8.2f   %s%n", scores.getFloat(i), weights.getFloat(i), words[i]);
}
float thing = output.getFloat(0), action = output.getFloat(1);
System.out.println("(%.2f, %.2f)  it, having looked around".formatted(thing, action));

// %% all-words
/** Print each word's weights for all six, and its new vector. */
void printRows(NDArray weights, NDArray Y, String sentence) {
    var words = sentence.split(" ");
    for (int i = 0; i < words.length; i++) {
        for (float weight : weights.get(i).toFloatArray()) {
            System.out.printf("%6.2f", weight);
        }
        float thing = Y.getFloat(i, 0), action = Y.getFloat(i, 1);
        System.out.printf("   (%.2f, %.2f)  %s%n", thing, action, words[i]);
    }
}

weights = X.matMul(X.transpose()).softmax(1); // a row for each query
printRows(weights, weights.matMul(X), "the cat sat because it purred");

// %% three-roles
// things and actions both ask for a thing
var W_q = manager.create(new float[][] {{1, 0}, {1, 0}});
NDArray W_k = manager.eye(2), W_v = W_k;

NDArray Q = X.matMul(W_q), K = X.matMul(W_k), V = X.matMul(W_v);
weights = Q.matMul(K.transpose()).softmax(1);
printRows(weights, weights.matMul(V), "the cat sat because it purred");

// %% saturation
var widths = IntStream.rangeClosed(2, 10).map(power -> 1 << power).toArray();
var plain = new ArrayList<NDArray>(); // for each width, scores of shape (queries, keys)
var scaled = new ArrayList<NDArray>();
for (int width : widths) {
    var queries = manager.randomNormal(new Shape(1000, 1, width));
    var keys = manager.randomNormal(new Shape(1000, 10, width));
    plain.add(queries.mul(keys).sum(new int[] {2}));
    scaled.add(plain.get(plain.size() - 1).div(Math.sqrt(width)));
}

// %% scaling
for (int i : new int[] {0, 4, 8}) {
    for (var name : List.of("unscaled", "scaled")) {
        var scores = (name.equals("unscaled") ? plain : scaled).get(i);
        var spread = scores.sub(scores.mean()).square().mean().sqrt().getFloat();
        var largest = scores.softmax(1).max(new int[] {1}).mean().getFloat();
        System.out.printf(
                "d = %4d: spread %5.2f, largest weight %.2f  %s%n",
                widths[i], spread, largest, name);
    }
}

// %% slopes
/** Return the norm of the softmax's derivative: the median over the queries. */
double slope(NDArray scores) {
    var weights = scores.softmax(1);
    var column = weights.expandDims(2);
    var outer = column.mul(weights.expandDims(1)); // (queries, keys, keys)
    var derivative = column.mul(manager.eye(10)).sub(outer);
    return derivative.square().sum(new int[] {1, 2}).sqrt().median().getFloat();
}

double[] slopes(List<NDArray> scores) {
    return scores.stream().mapToDouble(each -> slope(each)).toArray();
}

var x = IntStream.range(2, 11).asDoubleStream().toArray();
Plots.curves(x, slopes(plain), slopes(scaled))
        .xlabel("log2(d)")
        .ylabel("Norm of the derivative")
        .ylim(0, 0.4)
        .figsize(6, 2.5)
        .legend("unscaled", "scaled")
        .show();

// %% shape-check
int numHiddens = 100, numHeads = 5;
X = manager.ones(new Shape(2, 4, numHiddens));
var validLens = manager.create(new int[] {3, 2});
var newAttention = new MultiHeadAttention(numHiddens, numHeads, 0.5f);
var attention = initialize(newAttention, X.getShape(), X.getShape(), X.getShape());
evaluate(attention, X, X, X, validLens).getShape()

// %% by-hand
/** Compute the formula, head by head, for one sequence. */
NDArray attendManually(NDArray X, NDArray validLen) {
    var Q = evaluate(attention.W_q, X).split(numHeads, 1);
    var K = evaluate(attention.W_k, X).split(numHeads, 1);
    var V = evaluate(attention.W_v, X).split(numHeads, 1);
    int n = (int) X.size(0);
    var masked = manager.arange(n).gte(validLen).broadcast(n, n);
    var minusInfinity = manager.full(new Shape(n, n), Float.NEGATIVE_INFINITY);
    var heads = new NDList();
    for (int head = 0; head < numHeads; head++) {
        var products = Q.get(head).matMul(K.get(head).transpose());
        var scores = products.div(Math.sqrt(numHiddens / numHeads));
        heads.add(NDArrays.where(masked, minusInfinity, scores).softmax(1).matMul(V.get(head)));
    }
    return evaluate(attention.W_o, NDArrays.concat(heads, 1));
}

X = manager.randomNormal(new Shape(2, 4, numHiddens));
var Y = evaluate(attention, X, X, X, validLens);
var sequenceOutputs = IntStream.range(0, 2)
        .mapToObj(i -> attendManually(X.get(i), validLens.get(i)));
var manualOutput = NDArrays.stack(new NDList(sequenceOutputs.toList()));

float maxAbs(NDArray X) {
    return X.abs().max().getFloat();
}

// %% by-hand-difference
System.out.println("largest number in Y:  %.5f".formatted(maxAbs(Y)));
System.out.println("largest difference:   %.5f".formatted(maxAbs(Y.sub(manualOutput))));

// %% weights-heatmaps
weights = attention.attentionWeights(); // (batch, heads, queries, keys)
Plots.heatmaps(weights)
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("Head 1", "Head 2", "Head 3", "Head 4", "Head 5")
        .figsize(8, 3.5)
        .cmap(ColorMap.BLUES)
        .show();

// %% six-tokens
var tokens = manager.randomNormal(new Shape(1, 6, numHiddens));
var order = manager.create(new int[] {3, 0, 5, 1, 4, 2});

/** The first query may see one key, the second two, and so on. */
NDArray causalLens(NDArray X) {
    int batch = (int) X.size(0), n = (int) X.size(1);
    var lens = X.getManager().arange(1, n + 1).expandDims(0);
    return lens.repeat(0, batch); // (batch, queries)
}

NDArray attendWithoutMask(NDArray X) {
    return evaluate(attention, X, X, X);
}

NDArray attendWithMask(NDArray X) {
    return evaluate(attention, X, X, X, causalLens(X));
}

/** Return how far shuffling before the layer is from shuffling after it. */
float effectOfOrder(UnaryOperator<NDArray> layer) {
    var before = layer.apply(tokens.get(":, {}", order));
    var after = layer.apply(tokens).get(":, {}", order);
    return maxAbs(before.sub(after));
}

// %% equivariance
for (var name : List.of("without a mask", "with a causal mask")) {
    UnaryOperator<NDArray> layer = X ->
            name.equals("without a mask") ? attendWithoutMask(X) : attendWithMask(X);
    float largestOutput = maxAbs(layer.apply(tokens)), difference = effectOfOrder(layer);
    var line = "%s: largest output %.4f, largest difference %.4f";
    System.out.println(line.formatted(name, largestOutput, difference));
}

// %% cnn-and-rnn
int n = 10, d = 16, k = 3;

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
NDArray W_xh = orthogonal(d), W_hh = orthogonal(d);

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
var newSmallAttention = new MultiHeadAttention(d, 2, 0);
var smallAttention = initialize(newSmallAttention, X.getShape(), X.getShape(), X.getShape());

NDArray selfAttention(NDArray X) {
    return evaluate(smallAttention, X, X, X);
}

var layers = new LinkedHashMap<String, UnaryOperator<NDArray>>();
layers.put("CNN", X -> cnn(X));
layers.put("RNN", X -> rnn(X, W_hh));
layers.put("selfAttention", X -> selfAttention(X));
var shapes = new LinkedHashMap<String, Shape>();
layers.forEach((name, layer) -> shapes.put(name, layer.apply(X).getShape()));
shapes

// %% influence
/** Return how strongly input j acts on output i: the norms of dy_i/dx_j, (n, n). */
NDArray influence(UnaryOperator<NDArray> layer, NDArray X) {
    long n = X.size(1), d = X.size(2), numbers = n * d;
    try (var scratch = manager.newSubManager();
            var gradients = Engine.getInstance().newGradientCollector()) {
        // With a copy of X for each number of the output, one backward pass is enough.
        var copies = scratch.create(X.toFloatArray(), new Shape(1, n, d)).repeat(0, numbers);
        copies.setRequiresGradient(true);
        var directions = scratch.eye((int) numbers).reshape(numbers, n, d);
        gradients.backward(layer.apply(copies).mul(directions).sum());
        var jacobian = copies.getGradient().reshape(n, d, n, d);
        var norms = jacobian.square().sum(new int[] {1, 3}).sqrt();
        norms.attach(manager);
        return norms;
    }
}

var maps = layers.values().stream().map(layer -> influence(layer, X)).toList();

// %% influence-heatmaps
var names = List.of("CNN", "RNN", "Self-attention");
for (int i = 0; i < maps.size(); i++) {
    var connected = maps.get(i).countNonzero().getLong();
    System.out.printf("%s: %d of %d pairs are connected%n", names.get(i), connected, n * n);
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

var influences = IntStream.rangeClosed(1, 4).mapToObj(depth -> influence(stack(depth), X)).toList();

// %% reach
var middle = influences.get(1).get(2).toFloatArray();
var sources = IntStream.range(0, n).filter(j -> middle[j] > 0).mapToObj(j -> "x_" + (j + 1));
System.out.println("two layers: y_3 depends on " + sources.collect(Collectors.joining(", ")));
for (int depth = 1; depth <= 4; depth++) {
    var reached = influences.get(depth - 1).getFloat(4, 0) > 0 ? "yes" : "no";
    System.out.println("depth " + depth + ": y_5 depends on x_1: " + reached);
}

// %% sequential-operations
void printRow(Object length, Stream<?> values) {
    System.out.printf("%4s", length);
    values.forEach(value -> System.out.printf("%16s", value));
    System.out.println();
}

System.out.println("   n             CNN             RNN  Self-attention");
for (int length : new int[] {4, 8, 16, 32}) {
    var zeros = manager.zeros(new Shape(1, length, d));
    printRow(length, layers.values().stream().map(layer -> Counting.longestChain(layer, zeros)));
}

// %% multiply-adds
System.out.println("   n             CNN             RNN  Self-attention    as predicted");
for (long n : new long[] {8, 16, 32, 64, 128}) {
    var zeros = manager.zeros(new Shape(1, n, d));
    var counted = layers.values().stream().map(layer -> Counting.multiplyAdds(layer, zeros));
    var counts = counted.toList();
    var predicted = List.of(k * n * d * d, 2 * n * d * d, 4 * n * d * d + 2 * n * n * d);
    var agree = counts.equals(predicted) ? "yes" : "no";
    printRow(n, Stream.concat(counts.stream().map("%,d"::formatted), Stream.of(agree)));
}

// %% binary
for (int i = 0; i < 8; i++) {
    var bits = "%3s".formatted(Integer.toBinaryString(i)).replace(' ', '0');
    System.out.println(i + " in binary is " + bits);
}

// %% sinusoids
/** Return P, with a row for each position; pairs of columns share a frequency. */
NDArray sinusoids(int numPositions, int numHiddens) {
    // In double precision: the sine of a large angle needs the digits.
    var numbers = IntStream.range(0, numPositions * numHiddens).mapToDouble(index -> {
        int position = index / numHiddens, column = index % numHiddens;
        double angle = position / Math.pow(10000, 2 * (column / 2) / (double) numHiddens);
        return column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
    });
    var P = manager.create(numbers.toArray(), new Shape(numPositions, numHiddens));
    return P.toType(DataType.FLOAT32, false);
}

var firstRows = sinusoids(3, 4);
for (int i = 0; i < 3; i++) {
    var row = new ArrayList<String>();
    for (float x : firstRows.get(i).toFloatArray()) {
        row.add("'%.2f'".formatted(x));
    }
    System.out.println(i + " " + row);
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
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var X = inputs.head();
        int offset = inputs.size() > 1 ? inputs.get(1).getInt() : 0;
        int end = offset + (int) X.size(1);
        if (offset < 0 || end > maxLen) {
            var message = "positions %d to %d, expected 0 to %d";
            throw new IllegalArgumentException(message.formatted(offset, end - 1, maxLen - 1));
        }
        return Dropout.dropout(X.add(P.get(":, {}:{}", offset, end)), dropout, training);
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

IdEmbedding makeDefaultEmbedding(int size, int numHiddens) {
    return new IdEmbedding.Builder().setDictionarySize(size).setEmbeddingSize(numHiddens).build();
}

/** Make an embedding whose entries have this standard deviation. */
IdEmbedding makeEmbedding(int size, int numHiddens, double spread) {
    var embedding = makeDefaultEmbedding(size, numHiddens);
    embedding.setInitializer(new NormalInitializer((float) spread), Parameter.Type.WEIGHT);
    return embedding;
}

double meanLength(NDArray vectors) {
    return vectors.norm(new int[] {2}).mean().getFloat();
}

var small = initialize(makeEmbedding(1000, dModel, 1 / Math.sqrt(dModel)), ids.getShape());
var embedded = evaluate(small, ids);
var scaledUp = embedded.mul(Math.sqrt(dModel));
var encoding = new PositionalEncoding(dModel, 0);
var sum = evaluate(encoding, scaledUp);
var lengths = Stream.of(embedded, scaledUp, encoding.P.get(":, :60"), sum)
        .map(vectors -> meanLength(vectors))
        .toList();
var defaultTable = initialize(makeDefaultEmbedding(1000, dModel), ids.getShape());
var defaultLength = meanLength(evaluate(defaultTable, ids));

// %% lengths
var labels = List.of("embedding", "scaled by sqrt(d)", "encoding", "sum of these two");
for (int i = 0; i < labels.size(); i++) {
    System.out.printf("%6.2f  %s%n", lengths.get(i), labels.get(i));
}
System.out.println("%6.2f  embedding, as DJL draws it".formatted(defaultLength));

// %% column-plot
int numSteps = 60, width = 32;
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
NDArray ropeFrequencies(NDManager manager, long width) {
    // radians per position, one for each pair
    var pairs = IntStream.range(0, (int) width / 2);
    var omega = pairs.mapToDouble(pair -> Math.pow(10000, -2.0 * pair / width));
    return manager.create(omega.toArray()).toType(DataType.FLOAT32, false);
}

var omega = ropeFrequencies(manager, width);
var turns = omega.pow(-1).mul(2 * Math.PI).round().toType(DataType.INT32, false);
System.out.println("positions per turn:");
System.out.println(Arrays.toString(turns.toIntArray()));

// %% dot-products
/** Return the largest difference between numbers at one distance i - j. */
float largestGap(NDArray square) {
    int n = (int) square.size(0);
    float gap = 0;
    for (int offset = 1 - n; offset < n; offset++) {
        var diagonal = square.diagonal(offset);
        gap = Math.max(gap, diagonal.max().sub(diagonal.min()).getFloat());
    }
    return gap;
}

var products = P.matMul(P.transpose());
var distances = IntStream.rangeClosed(-20, 20).asDoubleStream().toArray(); // i - j

double[] productsAround(int i) {
    return DoubleStream.of(distances).map(x -> products.getFloat(i, i - (int) x)).toArray();
}

System.out.println("P_i with itself: %.4f".formatted(products.getFloat(0, 0)));
System.out.println("largest gap at any one distance: %.4f".formatted(largestGap(products)));
Plots.curves(distances, productsAround(20), productsAround(28), productsAround(36))
        .xlabel("Distance i - j")
        .ylabel("Dot product")
        .figsize(6, 2.5)
        .legend("i = 20", "i = 28", "i = 36")
        .show();

// %% rotation
/** Turn the pairs of columns, points in the plane, by one angle each, in radians. */
NDArray turn(NDArray X, NDArray angle) {
    NDArray x = X.get("..., 0::2"), y = X.get("..., 1::2"); // all sines, all cosines
    NDArray sin = angle.sin(), cos = angle.cos();
    var pairs = new NDList(x.mul(cos).add(y.mul(sin)), y.mul(cos).sub(x.mul(sin)));
    return NDArrays.stack(pairs, -1).reshape(X.getShape());
}

void printFour(NDArray row, String name) {
    for (float x : row.get(":4").toFloatArray()) {
        System.out.printf("%7.4f ", x);
    }
    System.out.println("  row " + name);
}

printFour(P.get(3), "3");
printFour(turn(P.get(3), omega.mul(5)), "3, turned by 5");
printFour(P.get(8), "8");
float largestResidual = 0;
for (int delta : new int[] {1, 2, 5, 10, 30, -5}) {
    int start = Math.max(0, -delta), end = numSteps - Math.max(0, delta);
    var targets = P.get("{}:{}", start + delta, end + delta);
    var residual = turn(P.get("{}:{}", start, end), omega.mul(delta)).sub(targets);
    largestResidual = Math.max(largestResidual, maxAbs(residual));
}
System.out.println("largest residual, all rows, six offsets: %.1e".formatted(largestResidual));

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

// %% rotary
/** Attention that first turns queries and keys by their positions. */
class RotaryAttention extends DotProductAttention {
    RotaryAttention(float dropout) {
        super(dropout);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var rotated = new NDList(inputs);
        rotated.set(0, rotate(inputs.get(0)));
        rotated.set(1, rotate(inputs.get(1)));
        return super.forwardInternal(store, rotated, training, more);
    }

    NDArray rotate(NDArray X) {
        var position = X.getManager().arange((float) X.size(1)).expandDims(1);
        return turn(X, position.mul(ropeFrequencies(X.getManager(), X.size(2))));
    }
}

// %% rotary-scores
var rotary = new RotaryAttention(0);
var q = manager.randomNormal(new Shape(1, width));
var k_ = manager.randomNormal(new Shape(1, width));
Q = rotary.rotate(q.expandDims(1).repeat(1, numSteps));
K = rotary.rotate(k_.expandDims(1).repeat(1, numSteps));
scores = Q.matMul(K.swapAxes(1, 2)).get(0);

// %% rotary-check
float lowest = scores.min().getFloat(), highest = scores.max().getFloat();
System.out.println("scores from %.2f to %.2f".formatted(lowest, highest));
System.out.println("largest gap at any one distance: %.4f".formatted(largestGap(scores)));

// %% task
record Examples(NDArray tokens, NDArray labels) {}

/** Draw tokens 2 to 9 with one 0 and one 1, and whether the 0 comes first. */
Examples drawSequences(NDManager manager, int count, int length) {
    var shape = new Shape(count, length);
    var tokens = manager.randomInteger(2, 10, shape, DataType.INT64);
    var positions = manager.randomUniform(0, 1, shape).argSort(1);
    // two different ones
    NDArray zeroPosition = positions.get(":, 0:1"), onePosition = positions.get(":, 1:2");
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

// %% learned-positions
/** A table of positions, trained like every other weight. */
class LearnedPositionalEncoding extends AbstractBlock {
    final IdEmbedding P;

    LearnedPositionalEncoding(int numHiddens, int maxLen) {
        P = addChildBlock("P", makeEmbedding(maxLen, numHiddens, 1));
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        P.initialize(manager, type, new Shape(inputShapes[0].get(1)));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var X = inputs.head();
        var position = X.getManager().arange((int) X.size(1));
        return new NDList(X.add(P.forward(store, new NDList(position), training).head()));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}

// %% reader
/** Embedding, positions, self-attention, and a yes or no for the sequence. */
class Reader extends AbstractBlock {
    final Block embedding, positions, output;
    final MultiHeadAttention attention;
    final boolean causal;

    Reader(Block positions, DotProductAttention heads, boolean causal) {
        embedding = addChildBlock("tokenEmbedding", makeEmbedding(10, 32, 1));
        this.positions = addChildBlock("positionalEncoding", positions);
        attention = addChildBlock("selfAttention", new MultiHeadAttention(32, 4, heads));
        var dense = new SequentialBlock()
                .add(Linear.builder().setUnits(32).build())
                .add(Activation.reluBlock())
                .add(Linear.builder().setUnits(1).build());
        output = addChildBlock("yesOrNo", dense.addSingleton(Y -> Y.squeeze(-1)));
        // Weights from -1/√n to 1/√n for n inputs, as in the attention.
        var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
        output.setInitializer(narrow, Parameter.Type.WEIGHT);
        this.causal = causal;
    }

    @Override
    protected void initializeChildBlocks(NDManager manager, DataType type, Shape... inputShapes) {
        var vectors = inputShapes[0].addAll(new Shape(32)); // (batch, tokens, 32)
        embedding.initialize(manager, type, inputShapes);
        positions.initialize(manager, type, vectors);
        attention.initialize(manager, type, vectors, vectors, vectors);
        output.initialize(manager, type, new Shape(vectors.get(0), 32));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> more) {
        var embedded = embedding.forward(store, inputs, training);
        var X = positions.forward(store, embedded, training).head();
        var attentionInputs = causal ? new NDList(X, X, X, causalLens(X)) : new NDList(X, X, X);
        var Y = attention.forward(store, attentionInputs, training).head();
        return output.forward(store, new NDList(Y.mean(new int[] {1})), training);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {new Shape(inputShapes[0].get(0))};
    }
}

// %% train
/** Train a reader on sequences of 8 tokens, starting from this seed. */
Reader train(Supplier<Reader> makeReader, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    var reader = initialize(makeReader.get(), new Shape(128, 8));
    reader.getParameters().values().forEach(each -> each.getArray().setRequiresGradient(true));
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
        reader.getParameters().forEach(named -> {
            var weights = named.getValue().getArray();
            try (var gradient = weights.getGradient()) {
                adam.update(named.getKey(), weights, gradient);
            }
        });
    }
    return reader;
}

var fixed = new d2l.PositionalEncoding(32, 0);
var reader = train(() -> new Reader(fixed, new DotProductAttention(0), false), 0);
var example = manager.create(new int[][] {{5, 3, 0, 7, 2, 1, 9, 4}, {5, 1, 3, 7, 2, 6, 9, 0}});
evaluate(reader, example);
weights = reader.attention.attentionWeights();

// %% trained-maps tags=["tolerance:levels=16"]
Plots.heatmaps(weights)
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("Head 1", "Head 2", "Head 3", "Head 4")
        .figsize(8, 4)
        .cmap(ColorMap.BLUES)
        .show();

// %% found
var samples = drawSequences(manager, 1000, 8);
tokens = samples.tokens();
evaluate(reader, tokens);
var received = reader.attention.attentionWeights().mean(new int[] {2}); // (batch, heads, keys)

/** Shares of weight, of shape (sequences, heads). */
NDArray shareOn(int token) {
    var isThere = tokens.eq(token).toType(DataType.FLOAT32, false).expandDims(1);
    return received.mul(isThere).sum(new int[] {2});
}

NDArray zero = shareOn(0), one = shareOn(1);
var zeroIsFirst = samples.labels().gt(0).expandDims(1).repeat(1, 4);
var first = NDArrays.where(zeroIsFirst, zero, one);
var last = NDArrays.where(zeroIsFirst, one, zero);

// %% found-shares tags=["tolerance:absolute=0.02"]
var means = Stream.of(zero, one, first, last).map(each -> each.mean(new int[] {0})).toList();
System.out.println("    on 0    on 1   on the first   on the last");
for (int h = 0; h < 4; h++) {
    float onZero = means.get(0).getFloat(h), onOne = means.get(1).getFloat(h);
    float onFirst = means.get(2).getFloat(h), onLast = means.get(3).getFloat(h);
    System.out.printf("%8.2f%8.2f%15.2f%14.2f", onZero, onOne, onFirst, onLast);
    System.out.println("   head " + (h + 1));
}

// %% without-positions
/** Return the share of answers that agree with the labels. */
double accuracy(NDArray answers, NDArray labels) {
    return answers.gt(0).eq(labels.gt(0)).toType(DataType.FLOAT32, false).mean().getFloat();
}

double attentionAccuracy(NDArray queries, NDArray keys, NDArray values) {
    var Y = evaluate(reader.attention, queries, keys, values).mean(new int[] {1});
    return accuracy(evaluate(reader.output, Y), samples.labels());
}

X = evaluate(reader.embedding, samples.tokens());
var XWithP = evaluate(reader.positions, X);
double fullAccuracy = attentionAccuracy(XWithP, XWithP, XWithP);
double scoresAccuracy = attentionAccuracy(XWithP, XWithP, X);
double valuesAccuracy = attentionAccuracy(X, X, XWithP);

// %% without-positions-shown tags=["tolerance:absolute=0.02"]
System.out.println(
        "share right, positions everywhere:                %.3f".formatted(fullAccuracy));
System.out.println(
        "share right, positions in queries and keys alone: %.3f".formatted(scoresAccuracy));
System.out.println(
        "share right, positions in values alone:           %.3f".formatted(valuesAccuracy));

// %% five-readers
// The same sequences for every reader.
int[] testLengths = {8, 16, 32, 64};
var tests = IntStream.of(testLengths).mapToObj(n -> drawSequences(manager, 500, n)).toList();

/** Return the share of the sequences that the reader gets right. */
double testAccuracy(Reader reader, Examples test) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(test.tokens(), test.labels());
        return accuracy(evaluate(reader, test.tokens()), test.labels());
    }
}

Reader plainReader(Block positions, boolean causal) {
    return new Reader(positions, new DotProductAttention(0), causal);
}

var identity = Blocks.identityBlock();
var readers = new LinkedHashMap<String, Supplier<Reader>>();
readers.put("fixed", () -> plainReader(fixed, false));
readers.put("learned", () -> plainReader(new LearnedPositionalEncoding(32, 64), false));
readers.put("rotary", () -> new Reader(identity, new RotaryAttention(0), false));
readers.put("mask", () -> plainReader(identity, true));
readers.put("fixed_mask", () -> plainReader(fixed, true));

// %% past-the-end
var results = new LinkedHashMap<String, double[][]>(); // by seed and length
readers.forEach((name, makeReader) -> {
    var runs = new double[5][];
    for (int seed = 0; seed < 5; seed++) {
        var reader = train(makeReader, seed);
        runs[seed] = tests.stream().mapToDouble(test -> testAccuracy(reader, test)).toArray();
    }
    results.put(name, runs);
});

/** Return the five shares at each length, from low to high. */
List<double[]> sharesByLength(double[][] runs) {
    var lengths = IntStream.range(0, testLengths.length);
    return lengths.mapToObj(i -> Stream.of(runs).mapToDouble(run -> run[i]).sorted().toArray())
            .toList();
}

// %% past-the-end-figure tags=["tolerance:absolute=0.25", "tolerance:points=50"]
names = List.of("fixed encoding", "learned table", "RoPE", "causal mask", "fixed, causal mask");
var kinds = results.values().stream().map(runs -> sharesByLength(runs)).toList();
List<double[]> xs = new ArrayList<>(), ys = new ArrayList<>();
IntStream.of(testLengths).forEach(length -> System.out.printf("%15d", length));
System.out.println("   tokens");
for (int i = 0; i < kinds.size(); i++) {
    kinds.get(i).forEach(shares -> System.out.printf("%15.2f", shares[2])); // the median
    System.out.println("   " + names.get(i));
    for (var shares : kinds.get(i)) {
        System.out.printf("%15s", "(%.2f-%.2f)".formatted(shares[0], shares[4]));
    }
    System.out.println();
    xs.add(IntStream.of(testLengths).asDoubleStream().toArray());
    ys.add(kinds.get(i).stream().mapToDouble(shares -> shares[2]).toArray());
}
for (int i = 0; i < testLengths.length; i++) { // the ranges, as bars beside each other
    for (int j = 0; j < kinds.size(); j++) {
        double x = testLengths[i] + j / 2.0;
        var shares = kinds.get(j).get(i);
        xs.add(new double[] {x, x});
        ys.add(new double[] {shares[0], shares[4]});
    }
}
Plots.curves(xs, ys)
        .xlabel("Tokens (trained on 8)")
        .ylabel("Share right")
        .ylim(0, 1.05)
        .figsize(6, 3)
        .legend(names.toArray(String[]::new))
        .show();

// %% solution-bias
X = manager.randomNormal(new Shape(1, 4, 8));
var b_k = manager.randomNormal(new Shape(8));
scores = X.matMul(X.swapAxes(1, 2));
var shifted = X.matMul(X.add(b_k).swapAxes(1, 2));
var difference = maxAbs(scores.softmax(-1).sub(shifted.softmax(-1)));

// %% solution-bias-shown
System.out.println("scores differ by up to %.2f".formatted(maxAbs(scores.sub(shifted))));
System.out.println("weights differ by up to %.5f".formatted(difference));

// %% solution-stacking
/** Return the norm of the deviations from the mean token, divided by the norm of X. */
double diversity(NDArray X) {
    var differences = X.sub(X.mean(new int[] {1}, true));
    return differences.norm().getFloat() / X.norm().getFloat();
}

var start = manager.randomNormal(new Shape(1, 16, 64));

var shape = start.getShape();
var blocks = Stream.generate(() -> new MultiHeadAttention(64, 4, 0))
        .limit(8)
        .map(block -> initialize(block, shape, shape, shape))
        .toList();

/** Return the diversity before the first layer, and after each. */
double[] stackUp(boolean skip, float sharpness) {
    var X = evaluate(new d2l.PositionalEncoding(64, 0), start);
    var curve = new ArrayList<>(List.of(diversity(X)));
    for (var block : blocks) {
        var pooled = evaluate(block, X.mul(sharpness), X, X);
        X = skip ? pooled.add(X) : pooled.mul(X.norm()).div(pooled.norm());
        curve.add(diversity(X));
    }
    return curve.stream().mapToDouble(x -> x).toArray();
}

var curves = List.of(stackUp(false, 1), stackUp(false, 10), stackUp(true, 1));

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
tokens = drawSequences(manager, 500, 8).tokens();
reader = initialize(plainReader(identity, false), tokens.getShape());
difference = maxAbs(evaluate(reader, tokens).sub(evaluate(reader, mirror(tokens))));
System.out.println("largest difference between the answers to both: %.5f".formatted(difference));

// %% solution-causal
NDArray attendCausally(NDArray X) {
    return evaluate(smallAttention, X, X, X, causalLens(X));
}

X = manager.randomNormal(new Shape(1, n, d));
var causalMap = influence(X -> attendCausally(X), X);

// %% solution-causal-map
boolean future = IntStream.range(0, n)
        .anyMatch(i -> IntStream.range(i + 1, n).anyMatch(j -> causalMap.getFloat(i, j) != 0));
System.out.println("any influence of the future: " + (future ? "yes" : "no"));
var connected = causalMap.countNonzero().getLong();
System.out.println("%d of %d pairs are connected".formatted(connected, causalMap.size()));
Plots.heatmaps(causalMap.div(causalMap.max()).reshape(1, 1, n, n))
        .xlabel("Input j")
        .ylabel("Output i")
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-fading
int nFar = 24;
X = manager.randomNormal(new Shape(1, nFar, d));

/** Return the first token's influence on each output, relative to that on the first output. */
NDArray fadingCurve(UnaryOperator<NDArray> layer) {
    var curve = influence(layer, X).get(":, 0");
    return curve.div(curve.get(0));
}

var smallerW_hh = W_hh.mul(0.8);
var fadingCurves = new NDList(
        fadingCurve(X -> rnn(X, W_hh)),
        fadingCurve(X -> rnn(X, smallerW_hh)),
        fadingCurve(X -> selfAttention(X)));

// %% solution-fading-figure
Plots.curves(manager.arange(nFar), NDArrays.stack(fadingCurves))
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
    var kernel = manager.ones(new Shape(1, 1, 3));
    var signal = manager.eye(1, n, 0).expandDims(0);
    int depth = 0;
    for (int gap = 1; signal.getFloat(0, 0, n - 1) == 0; gap *= growth, depth++) {
        var gaps = new Shape(gap);
        var reached = Conv1d.conv1d(signal, kernel, null, new Shape(1), gaps, gaps).head();
        signal = reached.minimum(1); // 1 if it arrives, else 0
    }
    return depth;
}

System.out.println("   n   plain  dilated");
for (int length : new int[] {5, 14, 41, 122}) {
    System.out.printf("%4d%8d%9d%n", length, countLayers(length, 1), countLayers(length, 3));
}

// %% solution-decoding
var layer = smallAttention;
encoding = new PositionalEncoding(d, 0);

/** Return the output of a new token, and the cache with its key and value. */
NDList decodeToken(NDArray x, NDArray keys, NDArray values) {
    keys = NDArrays.concat(new NDList(keys, evaluate(layer.W_k, x)), 1);
    values = NDArrays.concat(new NDList(values, evaluate(layer.W_v, x)), 1);
    // cut into heads; transposeOutput puts them together again
    var heads = Stream.of(evaluate(layer.W_q, x), keys, values).map(layer::transposeQkv);
    var pooled = layer.transposeOutput(evaluate(layer.attention, heads.toArray(NDArray[]::new)));
    return new NDList(evaluate(layer.W_o, pooled), keys, values);
}

tokens = manager.randomNormal(new Shape(1, n, d));
NDArray cachedKeys = tokens.get(":, :0"), cachedValues = cachedKeys; // the cache, still empty
var outputs = new NDList();
for (int i = 0; i < n; i++) {
    var x = evaluate(encoding, tokens.get(":, {}:{}", i, i + 1), manager.create(i));
    var step = decodeToken(x, cachedKeys, cachedValues);
    outputs.add(step.get(0));
    cachedKeys = step.get(1);
    cachedValues = step.get(2);
}

// %% solution-decoding-cost
var fullOutput = attendCausally(evaluate(encoding, tokens));
difference = maxAbs(fullOutput.sub(NDArrays.concat(outputs, 1)));
System.out.println("largest difference: %.5f".formatted(difference));
System.out.println("tokens  without cache  with cache");
for (int length : new int[] {10, 100, 1000}) {
    X = manager.zeros(new Shape(1, length, d));
    long plainCount = Counting.multiplyAdds(X -> evaluate(layer, X.get(":, -1:"), X, X), X);
    long cachedCount = Counting.multiplyAdds(X -> {
        var cache = X.get(":, :-1"); // as wide as its keys and values
        return decodeToken(X.get(":, -1:"), cache, cache).head();
    }, X);
    System.out.printf("%6d%,15d%,12d%n", length, plainCount, cachedCount);
}

// %% solution-relative
/** Attention that adds to each key a learned vector for its distance. */
class RelativeAttention {
    final Block W_q, W_k, W_v, table;
    final int maxDistance;

    RelativeAttention(int numHiddens, int maxDistance) {
        this.maxDistance = maxDistance;
        W_q = makeProjection(numHiddens);
        W_k = makeProjection(numHiddens);
        W_v = makeProjection(numHiddens);
        table = initialize(makeEmbedding(2 * maxDistance + 1, numHiddens, 1), new Shape(1));
    }

    Block makeProjection(int numHiddens) {
        var linear = Linear.builder().setUnits(numHiddens).optBias(false).build();
        return initialize(linear, new Shape(1, numHiddens));
    }

    NDArray scores(NDArray X) {
        NDArray Q = evaluate(W_q, X), K = evaluate(W_k, X);
        var position = manager.arange((int) X.size(1));
        var distance = position.expandDims(1).sub(position); // i - j
        var row = distance.clip(-maxDistance, maxDistance).add(maxDistance);
        var keys = K.expandDims(1).add(evaluate(table, row)); // (batch, queries, keys, numHiddens)
        return Q.expandDims(2).mul(keys).sum(new int[] {3}).div(Math.sqrt(X.size(2)));
    }

    NDArray forward(NDArray X) {
        return scores(X).softmax(-1).matMul(evaluate(W_v, X));
    }
}

var fourTokens = manager.randomNormal(new Shape(1, 4, d));
var relative = new RelativeAttention(d, 3);
var middleTokens = manager.randomNormal(new Shape(1, 3, d));
// The four tokens are at 0 to 3 and at 7 to 10.
var repeated = NDArrays.concat(new NDList(fourTokens, middleTokens, fourTokens), 1);
scores = relative.scores(repeated).get(0);
var reversedOutput = relative.forward(fourTokens.flip(1)).flip(1);

// %% solution-relative-shown
var shiftDifference = maxAbs(scores.get(":4, :4").sub(scores.get("7:, 7:")));
difference = maxAbs(relative.forward(fourTokens).sub(reversedOutput));
System.out.println("scores at 0 and at 7: largest difference %.5f".formatted(shiftDifference));
System.out.println("in the other order: largest difference %.2f".formatted(difference));
