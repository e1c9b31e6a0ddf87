// The lesson's code for the Deep Java Library, from Java 17 on. Each cell is woven into the text
// where it is asked for by name; all imports stand in the first, since an import in a later one
// can make the kernel forget variables.

// %% setup
import ai.djl.Device;
import ai.djl.Model;
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
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.NormalInitializer;
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

/** A layer's output in evaluation: nothing is dropped. */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Makes the parameters of a layer that takes three inputs of this shape. */
<B extends Block> B initialized(B layer, Shape shape) {
    layer.initialize(manager, DataType.FLOAT32, shape, shape, shape);
    return layer;
}

float largestDifference(NDArray one, NDArray other) {
    return one.sub(other).abs().max().getFloat();
}

/** A Boolean, written as in the other editions of this lesson. */
String written(boolean truth) {
    return truth ? "True" : "False";
}

// %% scaling
/** The standard deviation. */
double spread(NDArray x) {
    return x.sub(x.mean()).square().mean().sqrt().getFloat();
}

Engine.getInstance().setRandomSeed(0);
for (int width : new int[] {4, 64, 1024}) {
    var queries = manager.randomNormal(new Shape(2000, width));
    var keys = manager.randomNormal(new Shape(2000, width));
    var scores = queries.mul(keys).sum(new int[] {1});
    var scaled = scores.div(Math.sqrt(width));
    System.out.printf(
            "d = %4d: spread %5.2f, over sqrt(d) %.2f%n", width, spread(scores), spread(scaled));
}

// %% shape-check
int numHiddens = 100, numHeads = 5;
var X = manager.ones(new Shape(2, 4, numHiddens));
var validLens = manager.create(new int[] {3, 2});
var blank = new MultiHeadAttention(numHiddens, numHeads, 0.5f);
var attention = initialized(blank, X.getShape());
evaluate(attention, X, X, X, validLens).getShape()

// %% by-hand
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(2, 4, numHiddens));
var Y = evaluate(attention, X, X, X, validLens);

/** The formula, head by head, for one sequence. */
NDArray attendByHand(NDArray X, int validLen) {
    var Q = evaluate(attention.W_q, X).split(numHeads, 1);
    // What is past the valid length is cut off, not masked.
    var K = evaluate(attention.W_k, X).get(":{}", validLen).split(numHeads, 1);
    var V = evaluate(attention.W_v, X).get(":{}", validLen).split(numHeads, 1);
    var heads = new NDList();
    for (int head = 0; head < numHeads; head++) {
        var products = Q.get(head).matMul(K.get(head).transpose());
        var scores = products.div(Math.sqrt(numHiddens / numHeads));
        heads.add(scores.softmax(1).matMul(V.get(head)));
    }
    return evaluate(attention.W_o, NDArrays.concat(heads, 1));
}

var byHand = NDArrays.stack(new NDList(attendByHand(X.get(0), 3), attendByHand(X.get(1), 2)));
System.out.println("largest difference: %.5f".formatted(largestDifference(Y, byHand)));

// %% weights-check
var weights = attention.attentionWeights(); // (batch, heads, queries, keys)
System.out.println("shape of the weights: " + weights.getShape());
for (int i = 0; i < 2; i++) {
    int validLen = validLens.getInt(i);
    var valid = weights.get("{}, :, :, :{}", i, validLen);
    var masked = weights.get("{}, :, :, {}:", i, validLen);
    var sums = valid.sum(new int[] {2});
    System.out.printf(
            """
            sequence %d has %d valid keys
              sums of weights: %.5f to %.5f
              masked weights exactly 0: %d of %d
            """,
            i + 1,
            validLen,
            sums.min().getFloat(),
            sums.max().getFloat(),
            masked.size() - masked.countNonzero().getLong(),
            masked.size());
}

// %% weights-heatmaps
Plots.heatmaps(weights)
        .xlabel("Keys")
        .ylabel("Queries")
        .titles("Head 1", "Head 2", "Head 3", "Head 4", "Head 5")
        .figsize(8, 3.5)
        .cmap(ColorMap.BLUES)
        .show();

// %% equivariance
var tokens = manager.randomNormal(new Shape(1, 6, numHiddens));
var addPositions = new d2l.PositionalEncoding(numHiddens, 0);

NDArray shuffled(NDArray X) {
    var order = IntStream.of(3, 0, 5, 1, 4, 2);
    return NDArrays.stack(new NDList(order.mapToObj(i -> X.get(":, {}", i)).toList()), 1);
}

NDArray withoutPositions(NDArray X) {
    return evaluate(attention, X, X, X);
}

NDArray withPositions(NDArray X) {
    return withoutPositions(evaluate(addPositions, X));
}

void compare(String name, UnaryOperator<NDArray> layer) {
    var difference = layer.apply(shuffled(tokens)).sub(shuffled(layer.apply(tokens)));
    System.out.printf("%17s: %.4f%n", name, difference.abs().max().getFloat());
}

compare("without_positions", X -> withoutPositions(X));
compare("with_positions", X -> withPositions(X));

// %% three-layers
int n = 10, d = 16, k = 3;

/** Gram and Schmidt's: each row at a right angle to those before it, and of length 1. */
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

var conv =
        Conv1d.builder()
                .setFilters(d)
                .setKernelShape(new Shape(k))
                .optPadding(new Shape(k / 2))
                .optBias(false)
                .build();
conv.initialize(manager, DataType.FLOAT32, new Shape(1, d, n));
NDArray W_xh = orthogonal(d), W_hh = orthogonal(d);
var smallAttention = initialized(new MultiHeadAttention(d, 2, 0), new Shape(1, n, d));

NDArray cnn(NDArray X) {
    return evaluate(conv, X.swapAxes(1, 2)).swapAxes(1, 2);
}

NDArray rnn(NDArray X, NDArray W_hh) {
    var H = X.get(":, 0").zerosLike();
    var outputs = new NDList();
    for (long t = 0; t < X.getShape().get(1); t++) {
        H = X.get(":, {}", t).matMul(W_xh).add(H.matMul(W_hh)).tanh();
        outputs.add(H);
    }
    return NDArrays.stack(outputs, 1);
}

NDArray selfAttention(NDArray X) {
    return evaluate(smallAttention, X, X, X);
}

var layers = new LinkedHashMap<String, UnaryOperator<NDArray>>();
layers.put("CNN", X -> cnn(X));
layers.put("RNN", X -> rnn(X, W_hh));
layers.put("self_attention", X -> selfAttention(X));
X = manager.randomNormal(new Shape(1, n, d));
var shapes = new LinkedHashMap<String, Shape>();
layers.forEach((name, layer) -> shapes.put(name, layer.apply(X).getShape()));
shapes

// %% influence
/** How strongly input j acts on output i: the norm of dy_i/dx_j, shape (n, n). */
NDArray influence(UnaryOperator<NDArray> layer, NDArray X) {
    long n = X.getShape().get(1), d = X.getShape().get(2), numbers = n * d;
    try (var scratch = manager.newSubManager();
            var gradients = Engine.getInstance().newGradientCollector()) {
        // A copy of X for each number of the output, to hold the derivatives of that number:
        // a batch of copies needs only one way back.
        var copies = scratch.create(X.toFloatArray(), new Shape(1, n, d)).repeat(0, numbers);
        copies.setRequiresGradient(true);
        var oneOfEach = scratch.eye((int) numbers).reshape(numbers, n, d);
        gradients.backward(layer.apply(copies).mul(oneOfEach).sum());
        var jacobian = copies.getGradient().reshape(n, d, n, d);
        var norms = jacobian.square().sum(new int[] {1, 3}).sqrt();
        norms.attach(manager);
        return norms;
    }
}

var maps = layers.values().stream().map(layer -> influence(layer, X)).toList();
var names = List.copyOf(layers.keySet());
for (int i = 0; i < maps.size(); i++) {
    var connected = maps.get(i).countNonzero().getLong();
    System.out.printf("%s: %d of %d pairs are connected%n", names.get(i), connected, n * n);
}

// %% influence-heatmaps
var scaled = maps.stream().map(map -> map.div(map.max())).toList();
Plots.heatmaps(NDArrays.stack(new NDList(scaled)).expandDims(0))
        .xlabel("Input j")
        .ylabel("Output i")
        .titles("CNN", "RNN", "Self-attention")
        .figsize(8, 3)
        .cmap(ColorMap.BLUES)
        .show();

// %% receptive-field
UnaryOperator<NDArray> stacked(int depth) {
    return X -> {
        for (int i = 0; i < depth; i++) {
            X = cnn(X).tanh();
        }
        return X;
    };
}

var middle = influence(stacked(2), X).get(2).toFloatArray();
var sees = IntStream.range(0, n).filter(j -> middle[j] > 0).mapToObj(j -> "x_" + (j + 1));
System.out.println("two layers: y_3 depends on " + sees.collect(Collectors.joining(", ")));
for (int depth = 1; depth <= 4; depth++) {
    boolean reached = influence(stacked(depth), X).getFloat(4, 0) > 0;
    System.out.printf("%d layers: y_5 depends on x_1: %s%n", depth, written(reached));
}

// %% sequential-operations
/** Products on the longest chain that ends with one of these. */
long longest(List<Trace.Product> products) {
    return products.stream().mapToLong(p -> 1 + longest(p.needs())).max().orElse(0);
}

long sequentialProducts(UnaryOperator<NDArray> layer, int n) {
    try (var scratch = manager.newSubManager()) {
        // A stand-in for an array: what is computed from it remembers its products.
        var X = new Trace().watch(scratch.zeros(new Shape(1, n, d)));
        return longest(Trace.madeFrom(layer.apply(X)));
    }
}

void printRow(Object first, Stream<?> others) {
    System.out.printf("%4s", first);
    others.forEach(other -> System.out.printf("%16s", other));
    System.out.println();
}

printRow("n", names.stream());
for (int length : new int[] {4, 8, 16, 32}) {
    printRow(length, layers.values().stream().map(layer -> sequentialProducts(layer, length)));
}

// %% multiply-adds
long multiplyAdds(UnaryOperator<NDArray> layer, int n) {
    try (var scratch = manager.newSubManager()) {
        var trace = new Trace();
        layer.apply(trace.watch(scratch.zeros(new Shape(1, n, d))));
        return trace.products().stream().mapToLong(Trace.Product::multiplyAdds).sum();
    }
}

List<Long> predicted(long n) {
    return List.of(k * n * d * d, 2 * n * d * d, 4 * n * d * d + 2 * n * n * d);
}

printRow("n", Stream.concat(names.stream(), Stream.of("as predicted")));
for (int length : new int[] {8, 16, 32, 64, 128}) {
    var counts = layers.values().stream().map(layer -> multiplyAdds(layer, length)).toList();
    var shown = counts.stream().map("%,d"::formatted);
    var agree = written(counts.equals(predicted(length)));
    printRow(length, Stream.concat(shown, Stream.of(agree)));
}

// %% positional-encoding
/** Adds sines and cosines of the position to each vector of a sequence. */
class PositionalEncoding extends AbstractBlock {
    final NDArray P;
    final int maxLen;
    final float dropout;

    PositionalEncoding(int numHiddens, float dropout, int maxLen) {
        this.maxLen = maxLen;
        this.dropout = dropout;
        // Double precision: in single, far positions would be off by more than 5e-5.
        var numbers = IntStream.range(0, maxLen * numHiddens).mapToDouble(at -> {
            int position = at / numHiddens, column = at % numHiddens;
            double angle = position / Math.pow(10000, 2 * (column / 2) / (double) numHiddens);
            return column % 2 == 0 ? Math.sin(angle) : Math.cos(angle);
        });
        P = manager.create(numbers.toArray(), new Shape(1, maxLen, numHiddens))
                .toType(DataType.FLOAT32, false);
    }

    /** The inputs are X and, where it does not start at position 0, its offset. */
    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> params) {
        var X = inputs.head();
        int offset = inputs.size() > 1 ? inputs.get(1).getInt() : 0;
        int end = offset + (int) X.getShape().get(1);
        if (offset < 0 || end > maxLen) {
            var fault = "no positions %d to %d: there are 0 to %d";
            throw new IllegalArgumentException(fault.formatted(offset, end - 1, maxLen - 1));
        }
        return Dropout.dropout(X.add(P.get(":, {}:{}", offset, end)), dropout, training);
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return new Shape[] {inputShapes[0]};
    }
}

// %% encoding-checks
Engine.getInstance().setRandomSeed(0);
var encoding = new PositionalEncoding(7, 0, 10);
var zeros = manager.zeros(new Shape(1, 10, 7));
var oneByOne = new NDList();
for (int i = 0; i < 10; i++) {
    oneByOne.add(evaluate(encoding, zeros.get(":, :1"), manager.create(i)));
}
var atOnce = evaluate(encoding, zeros);
var library = evaluate(new d2l.PositionalEncoding(7, 0, 10), zeros);
var dropping = new PositionalEncoding(7, 0.5f, 10);
var dropped = dropping.forward(parameters, new NDList(zeros), true).head();
var droppedOrDoubled = dropped.eq(0).logicalOr(dropped.eq(encoding.P.mul(2)));
// DJL saves what is a parameter, and trains those that ask for a gradient.
var saved = encoding.getParameters();
var trained = saved.stream().filter(named -> named.getValue().requiresGradient()).toList();

boolean same = atOnce.contentEquals(NDArrays.concat(oneByOne, 1));
System.out.println("one by one as all at once: " + written(same));
System.out.println("the same as the library's: " + written(encoding.P.allClose(library)));
System.out.println(
        "dropped or doubled in training: " + written(droppedOrDoubled.all().getBoolean()));
System.out.println("trained: " + trained + "  saved: " + saved.keys());
for (int offset : new int[] {-1, 1}) {
    try {
        evaluate(encoding, zeros, manager.create(offset));
    } catch (IllegalArgumentException error) {
        System.out.println(error.getClass().getSimpleName() + ": " + error.getMessage());
    }
}

// %% scale-and-sum
Engine.getInstance().setRandomSeed(0);
int dModel = 512;
var embedding =
        new IdEmbedding.Builder().setDictionarySize(1000).setEmbeddingSize(dModel).build();
var spreadOfOne = new NormalInitializer((float) (1 / Math.sqrt(dModel)));
embedding.setInitializer(spreadOfOne, Parameter.Type.WEIGHT);
embedding.initialize(manager, DataType.FLOAT32, new Shape(1, 60));
var encoding = new PositionalEncoding(dModel, 0, 1000);

var E = evaluate(embedding, manager.randomInteger(0, 1000, new Shape(1, 60), DataType.INT64));
var scaledE = E.mul(Math.sqrt(dModel));
var named = new LinkedHashMap<String, NDArray>();
named.put("embedding", E);
named.put("scaled", scaledE);
named.put("encoding", encoding.P.get(":, :60"));
named.put("their sum", evaluate(encoding, scaledE));
named.forEach((name, vectors) -> {
    var lengths = vectors.square().sum(new int[] {2}).sqrt();
    System.out.printf("%10s: mean length %.2f%n", name, lengths.mean().getFloat());
});

// %% column-plot
int numSteps = 60, width = 32;
var encoding = new PositionalEncoding(width, 0, 1000);
var P = evaluate(encoding, manager.zeros(new Shape(1, numSteps, width))).get(0);
Plots.curves(manager.arange(numSteps), P.get(":, 6:10").transpose())
        .xlabel("Row (position)")
        .figsize(6, 2.5)
        .legend("Col 6", "Col 7", "Col 8", "Col 9")
        .show();

// %% binary
for (int i = 0; i < 8; i++) {
    var bits = "%3s".formatted(Integer.toBinaryString(i)).replace(' ', '0');
    System.out.println(i + " in binary is " + bits);
}

// %% encoding-heatmap
Plots.heatmaps(P.reshape(1, 1, numSteps, width))
        .xlabel("Column (encoding dimension)")
        .ylabel("Row (position)")
        .figsize(3.5, 4)
        .cmap(ColorMap.BLUE_TO_RED)
        .show();

// %% dot-products
var products = P.matMul(P.transpose()).toFloatArray();

double product(int i, int j) {
    return products[i * numSteps + j];
}

double[] around(int i) {
    return IntStream.rangeClosed(-20, 20).mapToDouble(distance -> product(i, i - distance)).toArray();
}

/** How much the products of all positions at one distance differ. */
double spreadAt(int distance) {
    var rows = IntStream.range(Math.max(0, distance), numSteps + Math.min(0, distance));
    var same = rows.mapToDouble(i -> product(i, i - distance)).summaryStatistics();
    return same.getMax() - same.getMin();
}

var largest = IntStream.range(1 - numSteps, numSteps).mapToDouble(i -> spreadAt(i)).max();
System.out.println("P_i with itself: %.4f".formatted(product(0, 0)));
System.out.println("largest spread at any one distance: %.4f".formatted(largest.getAsDouble()));
var distances = IntStream.rangeClosed(-20, 20).asDoubleStream().toArray(); // i - j
Plots.curves(distances, around(20), around(28), around(36))
        .xlabel("Distance i - j")
        .ylabel("Dot product")
        .figsize(6, 2.5)
        .legend("i = 20", "i = 28", "i = 36")
        .show();

// %% rotation
var pairs = P.reshape(numSteps, width / 2, 2, 1); // (position, pair, sine and cosine, 1)
var frequencies =
        IntStream.range(0, width / 2).mapToDouble(j -> Math.pow(10000, -2.0 * j / width));
var omega = manager.create(frequencies.toArray()).toType(DataType.FLOAT32, false);
double largestResidual = 0;
for (int delta : new int[] {1, 2, 5, 10, 30, -5}) {
    var sin = omega.mul(delta).sin();
    var cos = omega.mul(delta).cos();
    var rotations = NDArrays.stack(new NDList(cos, sin, sin.neg(), cos), 1).reshape(-1, 2, 2);
    int start = Math.max(0, -delta), end = numSteps - Math.max(0, delta);
    var turned = rotations.matMul(pairs.get("{}:{}", start, end));
    var targets = pairs.get("{}:{}", start + delta, end + delta);
    double residual = turned.sub(targets).abs().max().getFloat();
    largestResidual = Math.max(largestResidual, residual);
    System.out.printf(
            "delta %2d: %d pairs, on target: %s%n",
            delta, (end - start) * omega.size(), written(residual < 1e-5));
}
System.out.println("largest residual: %.1e".formatted(largestResidual));

// %% solution-stacking
/** The share of X in which its tokens differ: 0 where all are the same. */
double diversity(NDArray X) {
    var differences = X.sub(X.mean(new int[] {1}, true));
    return differences.norm().getFloat() / X.norm().getFloat();
}

Engine.getInstance().setRandomSeed(0);
int depth = 8;
var shape = new Shape(1, 16, 64);
var blocks =
        Stream.generate(() -> initialized(new MultiHeadAttention(64, 4, 0), shape))
                .limit(depth)
                .toList();
var start = evaluate(new d2l.PositionalEncoding(64, 0), manager.randomNormal(shape));

double[] diversities(boolean skip) {
    var X = start;
    var curve = new ArrayList<>(List.of(diversity(X)));
    for (var block : blocks) {
        var Y = evaluate(block, X, X, X);
        X = skip ? Y.add(X) : Y;
        curve.add(diversity(X));
    }
    return curve.stream().mapToDouble(x -> x).toArray();
}

Plots.curves(List.of(diversities(false), diversities(true)))
        .xlabel("Layers")
        .ylabel("Diversity")
        .ylim(0, 1.05)
        .figsize(6, 2.5)
        .legend("attention alone", "with skip connections")
        .show();

// %% solution-learned
/** A table of positions, trained like every other weight. */
class LearnedPositionalEncoding extends AbstractBlock {
    final Parameter P;

    LearnedPositionalEncoding(int numHiddens, int maxLen) {
        P = addParameter(
                Parameter.builder()
                        .setName("P")
                        .setType(Parameter.Type.WEIGHT)
                        .optShape(new Shape(maxLen, numHiddens))
                        .build());
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store, NDList inputs, boolean training, PairList<String, Object> params) {
        var X = inputs.head();
        var table = store.getValue(P, X.getDevice(), training);
        return new NDList(X.add(table.get(":{}", X.getShape().get(1))));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}

/** Embedding, encoding, self-attention, and a yes or no for the sequence. */
Block reader(Block encoding) {
    return new SequentialBlock()
            .add(new IdEmbedding.Builder().setDictionarySize(10).setEmbeddingSize(32).build())
            .add(encoding)
            .add(X -> new NDList(X.head(), X.head(), X.head()))
            .add(new MultiHeadAttention(32, 4, 0))
            .addSingleton(Y -> Y.mean(new int[] {1}))
            .add(Linear.builder().setUnits(32).build())
            .add(Activation.reluBlock())
            .add(Linear.builder().setUnits(1).build())
            .addSingleton(Y -> Y.squeeze(-1));
}

// %% solution-learned-data
record Examples(NDArray tokens, NDArray labels) {}

var random = new Random(0);

/** Tokens 2 to 9, with one 0 and one 1 among them; does the 0 come first? */
Examples sequences(NDManager manager, int count, int length) {
    var tokens = new int[count][];
    var labels = new float[count];
    for (int i = 0; i < count; i++) {
        tokens[i] = random.ints(length, 2, 10).toArray();
        var places = random.ints(0, length).distinct().limit(2).toArray();
        tokens[i][places[0]] = 0;
        tokens[i][places[1]] = 1;
        labels[i] = places[0] < places[1] ? 1 : 0;
    }
    return new Examples(manager.create(tokens), manager.create(labels));
}

/** Every sequence twice: as it is, and with its 0 and 1 exchanged. */
Examples mirrored(Examples once) {
    var tokens = once.tokens();
    var exchanged = NDArrays.where(tokens.lt(2), tokens.neg().add(1), tokens);
    return new Examples(
            tokens.concat(exchanged), once.labels().concat(once.labels().neg().add(1)));
}

var both = mirrored(sequences(manager, 1, 8));
for (int i = 0; i < 2; i++) {
    var tokens = Arrays.toString(both.tokens().get(i).toIntArray());
    System.out.printf("%s -> %.0f%n", tokens, both.labels().getFloat(i));
}

// %% solution-learned-training
var test = mirrored(sequences(manager, 500, 8));

double shareRight(Block encoding) {
    Engine.getInstance().setRandomSeed(1);
    var adam = Optimizer.adam().optLearningRateTracker(Tracker.fixed(3e-3f)).build();
    var config = new DefaultTrainingConfig(Loss.sigmoidBinaryCrossEntropyLoss()).optOptimizer(adam);
    try (var model = Model.newInstance("reader")) {
        model.setBlock(reader(encoding));
        try (var trainer = model.newTrainer(config)) {
            trainer.initialize(new Shape(128, 8));
            for (int step = 0; step < 300; step++) {
                // All that a step computes goes with its manager.
                try (var scratch = trainer.getManager().newSubManager();
                        var gradients = trainer.newGradientCollector()) {
                    var batch = sequences(scratch, 128, 8);
                    var answers = trainer.forward(new NDList(batch.tokens()));
                    var loss = trainer.getLoss().evaluate(new NDList(batch.labels()), answers);
                    gradients.backward(loss);
                }
                trainer.step();
            }
            var answers = trainer.evaluate(new NDList(test.tokens())).head();
            var right = answers.gt(0).eq(test.labels().gt(0));
            return right.toType(DataType.FLOAT32, false).mean().getFloat();
        }
    }
}

void train(String name, Block encoding) {
    var percent = 100 * shareRight(encoding);
    System.out.printf("%8s: %.1f%%%n", name, percent);
}

train("none", Blocks.identityBlock());
train("fixed", new d2l.PositionalEncoding(32, 0));
train("learned", new LearnedPositionalEncoding(32, 8));

// %% solution-causal
Engine.getInstance().setRandomSeed(0);
NDArray causalAttention(NDArray X) {
    long batch = X.getShape().get(0);
    var validLens = manager.arange(1, n + 1).expandDims(0).repeat(0, batch); // (batch, queries)
    return evaluate(smallAttention, X, X, X, validLens);
}

X = manager.randomNormal(new Shape(1, n, d));
var causal = influence(X -> causalAttention(X), X);
boolean future = IntStream.range(0, n)
        .anyMatch(i -> IntStream.range(i + 1, n).anyMatch(j -> causal.getFloat(i, j) != 0));
System.out.println("any influence of the future: " + written(future));
var connected = causal.countNonzero().getLong();
System.out.println("pairs connected: %d of %d".formatted(connected, causal.size()));
Plots.heatmaps(causal.div(causal.max()).reshape(1, 1, n, n))
        .xlabel("Input j")
        .ylabel("Output i")
        .cmap(ColorMap.BLUES)
        .show();

// %% solution-fading
Engine.getInstance().setRandomSeed(0);
int far = 24;
X = manager.randomNormal(new Shape(1, far, d));

/** The first token's influence on each output, relative to that on the first. */
NDArray fading(UnaryOperator<NDArray> layer) {
    var curve = influence(layer, X).get(":, 0");
    return curve.div(curve.get(0));
}

var curves = new NDList(fading(X -> rnn(X, W_hh.mul(0.8))), fading(X -> selfAttention(X)));
Plots.curves(manager.arange(far), NDArrays.stack(curves))
        .xlabel("Distance from the first token")
        .ylabel("Influence")
        .ylim(1e-7, 10)
        .logarithmic()
        .figsize(6, 2.5)
        .legend("RNN", "self-attention")
        .show();

// %% solution-dilated
/** Layers with k = 3 until the first of n tokens reaches the last output. */
int layersToCross(int n, int growth) {
    var kernel = manager.ones(new Shape(1, 1, 3));
    var signal = manager.eye(1, n, 0).expandDims(0);
    int depth = 0;
    for (int gap = 1; signal.getFloat(0, 0, n - 1) == 0; gap *= growth, depth++) {
        var gaps = new Shape(gap);
        var reached = Conv1d.conv1d(signal, kernel, null, new Shape(1), gaps, gaps).head();
        signal = reached.minimum(1); // only whether it arrives
    }
    return depth;
}

System.out.println("%4s%8s%9s".formatted("n", "plain", "dilated"));
for (int length : new int[] {5, 14, 41, 122}) {
    System.out.printf("%4d%8d%9d%n", length, layersToCross(length, 1), layersToCross(length, 3));
}

// %% solution-decoding
Engine.getInstance().setRandomSeed(0);
var encoding = new PositionalEncoding(d, 0, 1000);
tokens = manager.randomNormal(new Shape(1, n, d));
var kept = new NDList();
var outputs = new NDList();
for (int i = 0; i < n; i++) {
    var x = evaluate(encoding, tokens.get(":, {}:{}", i, i + 1), manager.create(i));
    kept.add(x);
    var soFar = NDArrays.concat(kept, 1);
    outputs.add(evaluate(smallAttention, x, soFar, soFar));
}
var allAtOnce = causalAttention(evaluate(encoding, tokens));
System.out.println("largest difference: %.5f".formatted(largestDifference(allAtOnce, NDArrays.concat(outputs, 1))));
