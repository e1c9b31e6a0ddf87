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
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv1d;
import ai.djl.nn.core.Linear;
import ai.djl.nn.recurrent.RNN;
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.training.initializer.UniformInitializer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.LinearTracker;
import ai.djl.util.PairList;

import java.util.*;
import java.util.function.*;
import java.util.stream.*;

import d2l.*;

Engine.getInstance().setRandomSeed(0);
var manager = NDManager.newBaseManager(Device.cpu());
var parameters = new ParameterStore(manager, false);
int[] LAST = {-1}; // the last axis

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

/** Let the backward pass compute gradients of a layer's weights; return the layer. */
<B extends Block> B makeTrainable(B layer) {
    var weights = layer.getParameters().values();
    weights.forEach(each -> each.getArray().setRequiresGradient(true));
    return layer;
}

/** Make a projection with weights from -1/√n to 1/√n for n inputs. */
Linear makeProjection(int n, int units, boolean hasBias) {
    var linear = Linear.builder().setUnits(units).optBias(hasBias).build();
    var narrow = new UniformInitializer((float) (1 / Math.sqrt(n)));
    linear.setInitializer(narrow, Parameter.Type.WEIGHT);
    return initialize(linear, new Shape(1, n));
}

/**
 * Return a number as an array. DJL would make one of a plain number as well, but free
 * it before the backward pass needs it.
 */
NDArray makeScalar(NDManager manager, double number) {
    return manager.full(new Shape(1), (float) number);
}

void printDifference(String name, NDArray a, NDArray b) {
    float largest = a.sub(b).abs().max().getFloat();
    System.out.printf("%smax |a - b| = %.5f%n", name, largest);
}

// %% plain-attention
/** Return products of queries and keys, divided by the root of their width. */
NDArray scaledDot(NDArray Q, NDArray K) {
    int axes = K.getShape().dimension();
    long d = K.getShape().getLastDimension();
    var root = makeScalar(Q.getManager(), Math.sqrt(d));
    return Q.matMul(K.swapAxes(axes - 2, axes - 1)).div(root);
}

/** Return softmax(Q K^T / sqrt(d)) V. */
NDArray attention(NDArray Q, NDArray K, NDArray V) {
    return scaledDot(Q, K).softmax(-1).matMul(V);
}

/** Do the same with a mask, which is true for what a query sees. */
NDArray maskedAttention(NDArray Q, NDArray K, NDArray V, NDArray mask) {
    // Make the scores of hidden keys so low that the softmax gives them no weight.
    var scores = scaledDot(Q, K).add(mask.logicalNot().mul(-1e9f));
    return scores.softmax(-1).matMul(V);
}

// %% operations
int d = 64;
int kernelSize = 8;
System.out.println("    n         CNN         RNN   attention");
for (long n : new long[] {32, 128, 512, 2048}) {
    long cnn = kernelSize * n * d * d;
    long rnn = 2 * n * d * d;
    long attention = 4 * n * d * d + 2 * n * n * d;
    System.out.printf("%5d%,12d%,12d%,12d%n", n, cnn, rnn, attention);
}

// %% layers
var newConv = Conv1d.builder().setFilters(d).setKernelShape(new Shape(kernelSize));
var conv = makeTrainable(initialize(newConv.build(), new Shape(1, d, kernelSize)));
var newRnn = new RNN.Builder().setStateSize(d).setNumLayers(1).optBatchFirst(true);
newRnn.setActivation(RNN.Activation.TANH);
var rnn = makeTrainable(initialize(newRnn.build(), new Shape(1, 1, d)));
var W_q = makeTrainable(makeProjection(d, d, false));
var W_k = makeTrainable(makeProjection(d, d, false));
var W_v = makeTrainable(makeProjection(d, d, false));
var W_o = makeTrainable(makeProjection(d, d, false));

NDArray convolve(NDArray X) {
    // zeros in front: n outputs
    var padded = X.transpose().pad(new Shape(kernelSize - 1, 0), 0);
    return evaluate(conv, padded.expandDims(0)).squeeze(0).transpose();
}

NDArray attend(NDArray X) {
    var Y = attention(evaluate(W_q, X), evaluate(W_k, X), evaluate(W_v, X));
    return evaluate(W_o, Y);
}

List<UnaryOperator<NDArray>> layers =
        List.of(
                X -> convolve(X),
                X -> evaluate(rnn, X.expandDims(0)).squeeze(0),
                X -> attend(X));

// %% layers-timed
/** Return the time of a forward and a backward pass, the fastest of five. */
double milliseconds(UnaryOperator<NDArray> layer, double n) {
    double shortest = Double.POSITIVE_INFINITY;
    for (int i = 0; i < 5; i++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var X = scratch.randomNormal(new Shape((long) n, d));
            X.setRequiresGradient(true);
            long start = System.nanoTime();
            gradients.backward(layer.apply(X).sum());
            shortest = Math.min(shortest, (System.nanoTime() - start) / 1e6);
        }
    }
    return shortest;
}

double[] lengths = {32, 64, 128, 256, 512, 1024, 2048};
var times = new ArrayList<double[]>();
for (var layer : layers) {
    times.add(DoubleStream.of(lengths).map(n -> milliseconds(layer, n)).toArray());
}

// %% layers-drawn tags=["nbval-ignore-output"]
/** Return numbers side by side, each in this format. */
String formatAll(String format, double[] row) {
    var texts = DoubleStream.of(row).mapToObj(format::formatted);
    return texts.collect(Collectors.joining());
}

String[] names = {"CNN", "RNN", "attention"};
System.out.println("milliseconds   " + formatAll("%8.0f", lengths) + "  exponent");
for (int i = 0; i < names.length; i++) {
    var row = times.get(i);
    double slope = Math.log(row[6] / row[4]) / Math.log(4); // over the last two doublings
    System.out.printf("%-15s%s%10.1f%n", names[i], formatAll("%8.2f", row), slope);
}
Plots.curves(lengths, times.toArray(double[][]::new))
        .xlabel("tokens")
        .ylabel("milliseconds")
        .legend(names)
        .logX()
        .logY()
        .show();

// %% bytes
for (long n : new long[] {1000, 4000, 16_000}) {
    long square = 8 * n * n;
    System.out.printf("n = %,6d: 8 n^2 = %,13d, 4 n d = %,9d%n", n, square, 4 * n * d);
}

// %% online-by-hand
double[] someScores = {1, 3, 2};
double[] someValues = {10, 20, 30};
double m = Double.NEGATIVE_INFINITY;
double l = 0;
double o = 0;
for (int i = 0; i < 3; i++) {
    double s = someScores[i];
    double newM = Math.max(m, s);
    double shrink = Math.exp(m - newM);
    l = l * shrink + Math.exp(s - newM);
    o = o * shrink + Math.exp(s - newM) * someValues[i];
    m = newM;
    System.out.printf("s = %.0f: m = %.0f, l = %.3f, ", s, m, l);
    System.out.printf("o = %6.3f, o / l = %.3f%n", o, o / l);
}

// %% softmax-by-hand
var someWeights = manager.create(someScores).softmax(0);
double average = someWeights.dot(manager.create(someValues)).getDouble();
System.out.println("o / l = %.3f".formatted(average));

// %% overflow
String formatList(NDArray vector) {
    return Arrays.toString(vector.toFloatArray());
}

void printPowers(String name, NDArray s) {
    var powers = s.exp();
    System.out.printf("%-5s: powers  %s%n", name, formatList(powers));
    System.out.printf("%-5s: weights %s%n", name, formatList(powers.div(powers.sum())));
}

var large = manager.create(new float[] {100, 102});
printPowers("s", large);
printPowers("s - m", large.sub(large.max()));

// %% blocks
/** The result of attention, and for each query the logarithm of its sum of powers. */
record Attended(NDArray O, NDArray logSums) {}

/** Split rows into blocks of this size; the last may be smaller. */
NDList splitRows(NDArray X, int size) {
    long n = X.size(0);
    var starts = LongStream.iterate(size, start -> start < n, start -> start + size);
    return X.split(starts.toArray());
}

/** Compute attention by blocks of keys; also return the logarithms of the sums. */
Attended attendInBlocks(NDArray Q, NDArray K, NDArray V, int blockSize) {
    var manager = Q.getManager();
    var m = manager.full(new Shape(Q.size(0), 1), Float.NEGATIVE_INFINITY);
    var l = manager.zeros(new Shape(Q.size(0), 1));
    var O = manager.zeros(new Shape(Q.size(0), V.size(1)));
    var keyBlocks = splitRows(K, blockSize);
    var valueBlocks = splitRows(V, blockSize);
    for (int i = 0; i < keyBlocks.size(); i++) {
        var scores = scaledDot(Q, keyBlocks.get(i));
        var newM = NDArrays.maximum(m, scores.max(LAST, true));
        var shrink = m.sub(newM).exp();
        var powers = scores.sub(newM).exp();
        l = l.mul(shrink).add(powers.sum(LAST, true));
        O = O.mul(shrink).add(powers.matMul(valueBlocks.get(i)));
        m = newM;
    }
    return new Attended(O.div(l), m.add(l.log()));
}

// %% matrices
int n = 300;
var Q = manager.randomNormal(new Shape(n, d));
var K = manager.randomNormal(new Shape(n, d));
var V = manager.randomNormal(new Shape(n, d));
// a gradient for the output, to try the way back with
var gradO = manager.randomNormal(new Shape(n, d));
var expected = attention(Q, K, V);

// %% blocks-same
try (var scratch = manager.newSubManager()) {
    scratch.tempAttachAll(Q, K, V); // all that is computed from them is freed
    for (int blockSize : new int[] {1, 7, 64, 300}) {
        var found = attendInBlocks(Q, K, V, blockSize).O();
        printDifference("b = %3d: ".formatted(blockSize), found, expected);
    }
}

// %% empty-row
var hidden = manager.full(new Shape(2), Float.NEGATIVE_INFINITY);
var inputs = new NDList(Q.expandDims(0), K.expandDims(0), V.expandDims(0));
var validLens = manager.create(new int[] {0});
var layer = new DotProductAttention(0);
var nothing = evaluate(layer, inputs.get(0), inputs.get(1), inputs.get(2), validLens);
System.out.println("weights:   " + formatList(hidden.softmax(0)));
System.out.println("m - m':    " + hidden.max().sub(hidden.max()).getFloat());
System.out.println("d2l:       " + formatList(nothing.get("0, 0, :2")));

// %% backward
/** Return the gradients of sum(O * gradO); weights are computed once more. */
NDList gradientsInBlocks(
        NDArray Q,
        NDArray K,
        NDArray V,
        NDArray O,
        NDArray logSums,
        NDArray gradO,
        int blockSize) {
    double scale = 1 / Math.sqrt(Q.size(1));
    var gradQ = Q.zerosLike();
    var gradsK = new NDList();
    var gradsV = new NDList();
    var mean = gradO.mul(O).sum(LAST, true);
    var keyBlocks = splitRows(K, blockSize);
    var valueBlocks = splitRows(V, blockSize);
    for (int i = 0; i < keyBlocks.size(); i++) {
        var weights = scaledDot(Q, keyBlocks.get(i)).sub(logSums).exp();
        var gradWeights = gradO.matMul(valueBlocks.get(i).transpose());
        var gradScores = weights.mul(gradWeights.sub(mean));
        gradQ = gradQ.add(gradScores.matMul(keyBlocks.get(i)).mul(scale));
        gradsK.add(gradScores.transpose().matMul(Q).mul(scale));
        gradsV.add(weights.transpose().matMul(gradO));
    }
    return new NDList(gradQ, NDArrays.concat(gradsK), NDArrays.concat(gradsV));
}

// %% backward-same
var matrices = new NDList(Q, K, V);
matrices.forEach(matrix -> matrix.setRequiresGradient(true));
try (var gradients = Engine.getInstance().newGradientCollector()) {
    gradients.backward(attention(Q, K, V).mul(gradO).sum());
}
var blocks = attendInBlocks(Q, K, V, 64);
var grads = gradientsInBlocks(Q, K, V, blocks.O(), blocks.logSums(), gradO, 64);
for (int i = 0; i < 3; i++) {
    var wanted = matrices.get(i).getGradient();
    printDifference("QKV".charAt(i) + ": ", grads.get(i), wanted);
}

// %% kept
/**
 * Return how much is kept for the backward pass: DJL frees no result before its manager
 * is closed. A view counts as an array; what a recurrent layer keeps inside does not.
 */
double keptMegabytes(UnaryOperator<NDArray> function, double n) {
    try (var scratch = manager.newSubManager()) {
        var X = scratch.randomNormal(new Shape((long) n, d));
        function.apply(X);
        var results = scratch.getManagedArrays().stream().filter(array -> array != X);
        return results.mapToLong(array -> array.size() * Float.BYTES).sum() / 1e6;
    }
}

NDArray attendD2l(NDArray X) {
    return evaluate(new DotProductAttention(0), X, X, X);
}

List<UnaryOperator<NDArray>> functions =
        List.of(
                layers.get(0),
                layers.get(1),
                X -> attention(X, X, X),
                X -> attendInBlocks(X, X, X, 64).O(),
                X -> attendD2l(X.expandDims(0)));
double[] sizes = {1024, 2048, 4096};
var kept = new ArrayList<double[]>();
for (var function : functions) {
    kept.add(DoubleStream.of(sizes).map(n -> keptMegabytes(function, n)).toArray());
}

// %% kept-shown tags=["tolerance:relative=0.1"]
String[] names = {"CNN", "RNN", "attention", "in blocks", "d2l"};
System.out.println("megabytes   " + formatAll("%,8.0f", sizes));
for (int i = 0; i < names.length; i++) {
    System.out.printf("%-12s%s%n", names[i], formatAll("%8.1f", kept.get(i)));
}

// %% window
/** Return which keys each query sees: its own, and the window - 1 before it. */
NDArray windowMask(int n, int window) {
    var i = manager.arange(n);
    var distance = i.expandDims(1).sub(i);
    return distance.gte(0).logicalAnd(distance.lt(window));
}

var mask = windowMask(6, 3).toType(DataType.INT32, false);
for (int i = 0; i < 6; i++) {
    var row = IntStream.of(mask.get(i).toIntArray()).mapToObj(Integer::toString);
    System.out.println(row.collect(Collectors.joining(" ")));
}

// %% window-blocks
/** Return each block of keys or values together with the one before. */
NDArray pairBlocks(NDArray X, int window, int rest) {
    // A block of zeros stands in front, since the first block has none before it.
    var padded = X.pad(new Shape(0, 0, window, rest), 0);
    var blocks = padded.reshape(-1, window, X.size(1));
    return blocks.get(":-1").concat(blocks.get("1:"), 1);
}

/** Let each block of queries attend to its own block of keys and the one before. */
NDArray attendInWindow(NDArray Q, NDArray K, NDArray V, int window) {
    var manager = Q.getManager();
    int n = (int) Q.size(0);
    // fills the last block: later keys, which no query sees
    int rest = Math.floorMod(-n, window);
    var padded = Q.pad(new Shape(0, 0, 0, rest), 0);
    var queries = padded.reshape(-1, window, Q.size(1));
    var keys = pairBlocks(K, window, rest);
    var values = pairBlocks(V, window, rest);
    // Queries stand in the second half of their two blocks of keys.
    var i = manager.arange(window, 2 * window).expandDims(1);
    var distance = i.sub(manager.arange(2 * window));
    var isVisible = distance.gte(0).logicalAnd(distance.lt(window));
    isVisible = isVisible.expandDims(0).repeat(0, queries.size(0));
    isVisible.set(new NDIndex("0, :, :{}", window), 0);
    var Y = maskedAttention(queries, keys, values, isVisible);
    return Y.reshape(-1, V.size(1)).get(":{}", n);
}

// %% window-same
expected = maskedAttention(Q, K, V, windowMask(n, 32));
var options = new PairList<String, Object>(Map.of("window", 32));
var byD2l = layer.forward(parameters, inputs, false, options).head().get(0);
printDifference("", attendInWindow(Q, K, V, 32), expected);
printDifference("", byD2l, expected);

// %% off-by-one
var found = maskedAttention(Q, K, V, windowMask(n, 32 + 1));
printDifference("", found, expected);

// %% reach
/** Return which of 24 inputs the last output depends on, after several layers. */
NDArray findReach(int numLayers, int window) {
    // small, so that the weights are nearly equal
    var X = manager.randomNormal(new Shape(24, 8)).mul(0.1);
    X.setRequiresGradient(true);
    try (var gradients = Engine.getInstance().newGradientCollector()) {
        var H = X;
        for (int i = 0; i < numLayers; i++) {
            H = H.add(attendInWindow(H, H, H, window));
        }
        gradients.backward(H.get(-1).sum());
    }
    return X.getGradient().abs().sum(LAST).gt(0);
}

var isReached = IntStream.range(1, 7).mapToObj(numLayers -> findReach(numLayers, 4));
var reached = isReached.map(inputs -> inputs.countNonzero().getLong()).toList();

// %% reach-shown
for (int numLayers = 1; numLayers < 7; numLayers++) {
    System.out.printf("L = %d: %2d tokens, ", numLayers, reached.get(numLayers - 1));
    System.out.printf("L (w - 1) + 1 = %2d%n", 3 * numLayers + 1);
}

// %% linear-by-hand
var keys = manager.create(new float[][] {{1, 0}, {0, 1}, {1, 1}});
var values = manager.create(new float[] {10, 20, 30});
var query = manager.create(new float[] {1, 0});
var kv = manager.zeros(new Shape(2));
var k = manager.zeros(new Shape(2));
for (int i = 0; i < 3; i++) {
    kv = kv.add(keys.get(i).mul(values.get(i)));
    k = k.add(keys.get(i));
    System.out.println("kv = " + formatList(kv) + ", k = " + formatList(k));
}
float above = query.dot(kv).getFloat();
float below = query.dot(k).getFloat();
System.out.println("%.0f / %.0f = %.0f".formatted(above, below, above / below));

// %% linear-forms
NDArray makePositive(NDArray X) {
    return Activation.elu(X, 1).add(1);
}

/** Return the decay to the power of each key's distance; 0 for later keys. */
NDArray decayPowers(NDManager manager, long n, double decay) {
    var step = manager.arange(0f, n, 1f);
    var distance = step.expandDims(1).sub(step);
    return NDArrays.pow(decay, distance.maximum(0)).mul(distance.gte(0));
}

/** Compute linear attention with a matrix of weights, all at once. */
NDArray attendInParallel(NDArray Q, NDArray K, NDArray V, double decay) {
    int axes = Q.getShape().dimension();
    long n = Q.size(axes - 2);
    var positiveK = makePositive(K).swapAxes(axes - 2, axes - 1);
    var products = makePositive(Q).matMul(positiveK);
    var weights = products.mul(decayPowers(Q.getManager(), n, decay));
    return weights.matMul(V).div(weights.sum(LAST, true));
}

/** Compute the same with two sums, which do not grow. */
NDArray attendTokenByToken(NDArray Q, NDArray K, NDArray V, double decay) {
    var manager = Q.getManager();
    var a = makeScalar(manager, decay);
    var kv = manager.zeros(new Shape(K.size(1), V.size(1)));
    var k = manager.zeros(new Shape(K.size(1)));
    var queries = makePositive(Q);
    var keys = makePositive(K);
    var outputs = new NDList();
    for (long i = 0; i < Q.size(0); i++) {
        var query = queries.get(i);
        var key = keys.get(i);
        kv = kv.mul(a).add(key.expandDims(1).mul(V.get(i)));
        k = k.mul(a).add(key);
        outputs.add(query.matMul(kv).div(query.dot(k)));
    }
    return NDArrays.stack(outputs);
}

// %% linear-same
expected = attendTokenByToken(Q, K, V, 0.9);
printDifference("", attendInParallel(Q, K, V, 0.9), expected);

// %% chunks
/** Use a matrix of weights in each chunk; two sums lead from chunk to chunk. */
NDArray attendInChunks(NDArray Q, NDArray K, NDArray V, double decay, int size) {
    var manager = Q.getManager();
    var kv = manager.zeros(new Shape(K.size(1), V.size(1)));
    var k = manager.zeros(new Shape(K.size(1)));
    var outputs = new NDList();
    var queryChunks = splitRows(makePositive(Q), size);
    var keyChunks = splitRows(makePositive(K), size);
    var valueChunks = splitRows(V, size);
    for (int i = 0; i < queryChunks.size(); i++) {
        var queries = queryChunks.get(i);
        var keys = keyChunks.get(i);
        var values = valueChunks.get(i);
        long n = queries.size(0);
        var step = manager.arange(0f, n, 1f).expandDims(1);
        var products = queries.matMul(keys.transpose());
        var weights = products.mul(decayPowers(manager, n, decay));
        // for what came before the chunk
        var oldQueries = queries.mul(NDArrays.pow(decay, step.add(1)));
        var total = weights.sum(LAST).add(oldQueries.matMul(k)).expandDims(1);
        outputs.add(weights.matMul(values).add(oldQueries.matMul(kv)).div(total));
        // as the next chunk sees them
        var newKeys = keys.mul(NDArrays.pow(decay, step.neg().add(n - 1)));
        var shrink = makeScalar(manager, Math.pow(decay, n));
        kv = kv.mul(shrink).add(newKeys.transpose().matMul(values));
        k = k.mul(shrink).add(newKeys.sum(new int[] {0}));
    }
    // DJL's concat copies a single array, and the copy would have no gradient.
    return outputs.size() == 1 ? outputs.head() : NDArrays.concat(outputs);
}

// %% chunks-same
try (var scratch = manager.newSubManager()) {
    scratch.tempAttachAll(Q, K, V);
    for (int size : new int[] {1, 64, 300}) {
        var found = attendInChunks(Q, K, V, 0.9, size);
        printDifference("c = %3d: ".formatted(size), found, expected);
    }
}

// %% forms-timed
List<UnaryOperator<NDArray>> forms =
        List.of(
                X -> attention(X, X, X),
                X -> attendInWindow(X, X, X, 64),
                X -> attendInChunks(X, X, X, 1, 64));
double[] formLengths = {512, 1024, 2048, 4096};
var formTimes = new ArrayList<double[]>();
for (var form : forms) {
    formTimes.add(DoubleStream.of(formLengths).map(n -> milliseconds(form, n)).toArray());
}

// %% forms-timed-shown tags=["nbval-ignore-output"]
System.out.println("milliseconds   " + formatAll("%,8.0f", formLengths));
String[] names = {"attention", "in a window", "chunks"};
for (int i = 0; i < names.length; i++) {
    System.out.printf("%-15s%s%n", names[i], formatAll("%8.2f", formTimes.get(i)));
}

// %% linear-layer
/** A block whose parts are initialized when they are made, since widths are known. */
abstract class ReadyBlock extends AbstractBlock {
    abstract NDArray compute(NDList inputs);

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        return new NDList(compute(inputs));
    }

    /** DJL asks for shapes only where it initializes a block for its inputs. */
    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        throw new UnsupportedOperationException();
    }
}

/** Causal linear attention with several heads, in its parallel form. */
class LinearAttention extends ReadyBlock {
    final int numHeads;
    final double decay;
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear W_o;

    LinearAttention(int numHiddens, int numHeads, double decay) {
        this.numHeads = numHeads;
        this.decay = decay;
        W_q = addChildBlock("W_q", makeProjection(numHiddens, numHiddens, false));
        W_k = addChildBlock("W_k", makeProjection(numHiddens, numHiddens, false));
        W_v = addChildBlock("W_v", makeProjection(numHiddens, numHiddens, false));
        W_o = addChildBlock("W_o", makeProjection(numHiddens, numHiddens, false));
    }

    /** Reshape (batch, steps, features) to (batch, heads, steps, headSize). */
    NDArray split(NDArray X) {
        long headSize = X.size(2) / numHeads;
        return X.reshape(X.size(0), X.size(1), numHeads, headSize).swapAxes(1, 2);
    }

    @Override
    NDArray compute(NDList inputs) {
        var X = inputs.head();
        var q = split(evaluate(W_q, X));
        var k = split(evaluate(W_k, X));
        var v = split(evaluate(W_v, X));
        var pooled = attendInParallel(q, k, v, decay);
        return evaluate(W_o, pooled.swapAxes(1, 2).reshape(X.getShape()));
    }
}

// %% linear-layer-same
var layer = new LinearAttention(16, 2, 0.9);
var newD2lLayer = new d2l.LinearAttention(16, 2, false, 0.9); // without biases
var d2lLayer = initialize(newD2lLayer, new Shape(1, 1, 16));
for (int i = 0; i < 4; i++) {
    var weights = layer.getParameters().valueAt(i).getArray();
    weights.copyTo(d2lLayer.getParameters().valueAt(i).getArray());
}
var X = manager.randomNormal(new Shape(2, 50, 16));
var state = new PairList<String, Object>(Map.of("state", d2lLayer.makeState(2)));
var parts = new NDList();
for (var part : List.of(X.get(":, :30"), X.get(":, 30:"))) {
    parts.add(d2lLayer.forward(parameters, new NDList(part), false, state).head());
}
printDifference("", NDArrays.concat(parts, 1), evaluate(layer, X));

// %% state-bytes
var softmaxLayer = initialize(new CausalSelfAttention(256, 4, 0), new Shape(1, 1, 256));
var linearLayer = initialize(new d2l.LinearAttention(256, 4), new Shape(1, 1, 256));
long bytesPerToken = softmaxLayer.makeCache(1, 1000).nbytes() / 1000;
long bytesOfState = linearLayer.makeState(1).nbytes();

// %% state-bytes-shown
System.out.printf("state                      %,11d bytes%n", bytesOfState);
for (int n : new int[] {100, 1000, 10_000, 100_000}) {
    System.out.printf("cache of %,7d tokens    %,11d bytes%n", n, bytesPerToken * n);
}

// %% draw-pairs
int NUM_KEYS = 32;
int NUM_VALUES = 8;

/**
 * Draw pairs of a key and a value, then each key once more; also return answers.
 *
 * <p>A token is a key and a value; where the value is asked for, it is NUM_VALUES.
 */
NDList drawPairs(NDManager manager, int batchSize, int numPairs) {
    var allNumbers = manager.randomUniform(0, 1, new Shape(batchSize, NUM_KEYS));
    var keys = allNumbers.argSort(1).get(":, :{}", numPairs);
    var shape = keys.getShape();
    var values = manager.randomInteger(0, NUM_VALUES, shape, DataType.INT64);
    var order = manager.randomUniform(0, 1, shape).argSort(1);
    var asked = manager.full(shape, NUM_VALUES, DataType.INT64);
    var allKeys = keys.concat(keys.gather(order, 1), 1);
    return new NDList(allKeys, values.concat(asked, 1), values.gather(order, 1));
}

var pairs = drawPairs(manager, 1, 3);

// %% pairs-shown
for (int i = 0; i < 6; i++) {
    long key = pairs.get(0).getLong(0, i);
    long value = pairs.get(1).getLong(0, i);
    System.out.print("(" + key + ", " + (value < NUM_VALUES ? value : "?") + ") ");
}
var answers = LongStream.of(pairs.get(2).toLongArray()).mapToObj(Long::toString);
System.out.println("-> " + answers.collect(Collectors.joining(" ")));

// %% recaller
/** Make a table with this many vectors. */
Block makeEmbedding(int size, int width) {
    var builder = new IdEmbedding.Builder();
    var table = builder.setDictionarySize(size).setEmbeddingSize(width).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return initialize(table, new Shape(1));
}

/** Read pairs with layers of attention, and name the value of each key asked for. */
class Recaller extends ReadyBlock {
    final Block key = addChildBlock("keyTable", makeEmbedding(NUM_KEYS, 16));
    final Block value = addChildBlock("valueTable", makeEmbedding(NUM_VALUES + 1, 16));
    final List<Block> layers;
    final Linear dense;

    Recaller(Block... layers) {
        this.layers = List.of(layers);
        this.layers.forEach(layer -> addChildBlock("attentionLayer", layer));
        dense = addChildBlock("outputLayer", makeProjection(16, NUM_VALUES, true));
    }

    @Override
    NDArray compute(NDList inputs) {
        var X = evaluate(key, inputs.get(0)).add(evaluate(value, inputs.get(1)));
        for (var layer : layers) {
            X = X.add(evaluate(layer, X));
        }
        return evaluate(dense, X.get(":, {}:", X.size(1) / 2));
    }
}

// %% train
/** Train on 2, 4, 8 and 16 pairs in turn; the learning rate falls to a tenth. */
Recaller train(Recaller model) {
    int numSteps = 400;
    float lr = 0.02f;
    int[] numsPairs = {2, 4, 8, 16};
    makeTrainable(model);
    var schedule = LinearTracker.builder().setBaseValue(lr);
    schedule.optSlope((0.1f - 1) * lr / numSteps).optMaxUpdates(numSteps);
    var adam = Optimizer.adam().optLearningRateTracker(schedule.build()).build();
    for (int step = 0; step < numSteps; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            var examples = drawPairs(scratch, 32, numsPairs[step % 4]);
            var logits = evaluate(model, examples.get(0), examples.get(1));
            // DJL's loss takes a row for each answer.
            var rows = new NDList(logits.reshape(-1, NUM_VALUES));
            var labels = new NDList(examples.get(2).flatten());
            gradients.backward(Loss.softmaxCrossEntropyLoss().evaluate(labels, rows));
        }
        for (var named : model.getParameters()) {
            var array = named.getValue().getArray();
            try (var gradient = array.getGradient()) {
                adam.update(named.getKey(), array, gradient);
            }
        }
    }
    return model;
}

/** Train five models, each from a seed of its own. */
List<Recaller> trainFive(Supplier<Recaller> makeModel) {
    var models = new ArrayList<Recaller>();
    for (int seed = 0; seed < 5; seed++) {
        Engine.getInstance().setRandomSeed(seed);
        models.add(train(makeModel.get()));
    }
    return models;
}

// %% train-all
Supplier<Block> makeSoftmax =
        () -> initialize(new CausalSelfAttention(16, 4, 0), new Shape(1, 1, 16));
Supplier<Block> makeLinear = () -> new LinearAttention(16, 4, 1);
var softmaxModels = trainFive(() -> new Recaller(makeSoftmax.get()));
var oneHeadModels = trainFive(() -> new Recaller(new LinearAttention(16, 1, 1)));
var fourHeadsModels = trainFive(() -> new Recaller(makeLinear.get()));

// %% recall
var numsPairs = List.of(2, 4, 8, 16);
var texts = numsPairs.stream().map(number -> drawPairs(manager, 500, number)).toList();

/** Return 1 for each right answer, and 0 for each wrong one. */
NDArray isRight(Recaller model, NDList text) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(text);
        var answers = evaluate(model, text.get(0), text.get(1)).argMax(-1);
        var isRight = answers.eq(text.get(2)).toType(DataType.FLOAT32, false);
        isRight.attach(manager);
        return isRight;
    }
}

/** Return each model's share of right answers, for each number of pairs. */
double[][] recall(List<Recaller> models) {
    var shares = new double[models.size()][texts.size()];
    for (int i = 0; i < models.size(); i++) {
        for (int j = 0; j < texts.size(); j++) {
            var right = isRight(models.get(i), texts.get(j));
            shares[i][j] = right.mean().getFloat();
        }
    }
    return shares;
}

var softmaxRecall = recall(softmaxModels);
var oneHeadRecall = recall(oneHeadModels);
var fourHeadsRecall = recall(fourHeadsModels);

// %% recall-shown tags=["tolerance:absolute=0.15"]
var oneLayer = new LinkedHashMap<String, double[][]>();
oneLayer.put("softmax", softmaxRecall);
oneLayer.put("16 x 16", oneHeadRecall);
oneLayer.put("4 x 4 x 4", fourHeadsRecall);
Ranges.print(oneLayer, numsPairs, "pairs");
Ranges.plot(numsPairs.stream().mapToDouble(number -> number).toArray(), oneLayer)
        .xlabel("pairs")
        .ylabel("recall")
        .ylim(0, 1.05)
        .show();

// %% train-stacks
var twoLinearModels = trainFive(() -> new Recaller(makeLinear.get(), makeLinear.get()));
var mixedModels = trainFive(() -> new Recaller(makeLinear.get(), makeSoftmax.get()));
var twoLinearRecall = recall(twoLinearModels);
var mixedRecall = recall(mixedModels);

// %% stacks-shown tags=["tolerance:absolute=0.15"]
var twoLayers = new LinkedHashMap<String, double[][]>();
twoLayers.put("two linear", twoLinearRecall);
twoLayers.put("mixed", mixedRecall);
Ranges.print(twoLayers, numsPairs, "pairs");

// %% decay-by-hand
for (double a : new double[] {0.5, 0.9, 0.99}) {
    var steps = IntStream.of(1, 10, 100);
    var powers = steps.mapToObj(r -> "a^%d = %.4f".formatted(r, Math.pow(a, r)));
    System.out.printf("a = %.2f: %s%n", a, powers.collect(Collectors.joining(", ")));
}

// %% train-decaying
var decayingModels = trainFive(() -> new Recaller(new LinearAttention(16, 4, 0.9)));

// %% recall-by-age
/** Return the recall of each quarter of the pairs, from the oldest to the newest. */
double[][] recallByAge(List<Recaller> models) {
    var text = texts.get(3);
    var keys = text.get(0);
    // Find where each key that is asked for stands among the pairs.
    var asked = keys.get(":, 16:").expandDims(2);
    var isSame = asked.eq(keys.get(":, :16").expandDims(1));
    var place = isSame.toType(DataType.INT32, false).argMax(2);
    var quarter = place.mul(4).div(16).floor();
    var shares = new double[models.size()][4];
    for (int i = 0; i < models.size(); i++) {
        var right = isRight(models.get(i), text);
        for (int j = 0; j < 4; j++) {
            shares[i][j] = right.get(quarter.eq(j)).mean().getFloat();
        }
    }
    return shares;
}

var lastingByAge = recallByAge(fourHeadsModels);
var decayingByAge = recallByAge(decayingModels);

// %% recall-by-age-shown tags=["tolerance:absolute=0.15"]
var byAge = new LinkedHashMap<String, double[][]>();
byAge.put("a = 1", lastingByAge);
byAge.put("a = 0.9", decayingByAge);
Ranges.print(byAge, List.of("oldest", "older", "newer", "newest"), "");

// %% solution-merge
/** Combine attention to some keys with attention to others. */
NDArray merge(NDArray O, NDArray logSums, NDArray otherO, NDArray otherLogSums) {
    var shares = logSums.concat(otherLogSums, 1).softmax(1);
    return shares.get(":, :1").mul(O).add(shares.get(":, 1:").mul(otherO));
}

var first = attendInBlocks(Q, K.get(":100"), V.get(":100"), 64);
var second = attendInBlocks(Q, K.get("100:"), V.get("100:"), 64);
var merged = merge(first.O(), first.logSums(), second.O(), second.logSums());
printDifference("", merged, attention(Q, K, V));

// %% solution-causal
record CausalOutput(NDArray O, int numBlocks) {}

/** Compute causal attention without later blocks; also count the blocks. */
CausalOutput attendCausally(NDArray Q, NDArray K, NDArray V, int size) {
    var outputs = new NDList();
    int numBlocks = 0;
    int n = (int) Q.size(0);
    for (int start = 0; start < n; start += size) {
        int end = Math.min(start + size, n);
        var i = manager.arange(start, end).expandDims(1);
        var isVisible = i.gte(manager.arange(end));
        var queries = Q.get("{}:{}", start, end);
        var seenKeys = K.get(":{}", end);
        outputs.add(maskedAttention(queries, seenKeys, V.get(":{}", end), isVisible));
        numBlocks += (end + size - 1) / size; // rounded up
    }
    return new CausalOutput(NDArrays.concat(outputs), numBlocks);
}

var causal = attendCausally(Q, K, V, 64);
var byMask = maskedAttention(Q, K, V, windowMask(300, 300));
System.out.print(causal.numBlocks() + " / " + 5 * 5 + ", ");
printDifference("", causal.O(), byMask);

// %% solution-powers
for (int j : new int[] {100, 126, 128, 200}) {
    float power = (float) Math.pow(0.5, -j);
    var text = Float.isInfinite(power) ? "inf" : "%.3g".formatted(power);
    System.out.println("j = " + j + ": a^-j = " + text);
}

// %% solution-delta
keys = manager.create(new float[][] {{1, 0}, {0, 1}, {1, 0}});
values = manager.create(new float[] {10, 20, 30});
var memory = manager.zeros(new Shape(2));
for (int i = 0; i < 3; i++) {
    var remembered = memory.dot(keys.get(i));
    memory = memory.add(keys.get(i).mul(values.get(i).sub(remembered)));
    System.out.printf("%2.0f -> %.0f: ", remembered.getFloat(), values.getFloat(i));
    System.out.println("memory = " + formatList(memory));
}
