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
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.LayerNorm;
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.training.initializer.XavierInitializer;
import ai.djl.training.initializer.XavierInitializer.FactorType;
import ai.djl.training.initializer.XavierInitializer.RandomType;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.LinearTracker;
import ai.djl.util.PairList;

import java.util.*;
import java.util.function.*;
import java.util.stream.*;

import d2l.*;

Engine.getInstance().setRandomSeed(0);
var manager = NDManager.newBaseManager(Device.cpu()); // all arrays here are small
var parameters = new ParameterStore(manager, false);
int[] LAST = {-1}; // the last axis

/**
 * Return a layer's output. Blocks call this for their parts too, past the store and the
 * flag that they are given: all share one store, and none has dropout.
 */
NDArray evaluate(Block layer, NDArray... inputs) {
    return layer.forward(parameters, new NDList(inputs), false).head();
}

/** Return the output for inputs after the words in a cache; null stands for none. */
NDArray evaluateWithCache(Block layer, Object cache, NDArray... inputs) {
    var options = new PairList<String, Object>();
    if (cache != null) {
        options.add("cache", cache);
    }
    return layer.forward(parameters, new NDList(inputs), false, options).head();
}

/** Initialize a layer for inputs of these shapes, and return it. */
<B extends Block> B prepare(B layer, Shape... shapes) {
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

/** A block whose parts are initialized when they are made, since widths are known. */
abstract class ReadyBlock extends AbstractBlock {
    /** Return the output. The option cache is null if the caller gives none. */
    abstract NDArray compute(NDList inputs, Object cache);

    /** Add a projection with weights from -1/√n to 1/√n for n inputs. */
    Linear addProjection(int n, int units, boolean hasBias) {
        var linear = Linear.builder().setUnits(units).optBias(hasBias).build();
        var narrow = new XavierInitializer(RandomType.UNIFORM, FactorType.IN, 1);
        linear.setInitializer(narrow, Parameter.Type.WEIGHT);
        linear.initialize(manager, DataType.FLOAT32, new Shape(1, n));
        return addChildBlock("linearLayer", linear);
    }

    /** Add a table with this many vectors. */
    Block addEmbedding(int size, int width) {
        var builder = new IdEmbedding.Builder();
        var table = builder.setDictionarySize(size).setEmbeddingSize(width).build();
        table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
        table.initialize(manager, DataType.FLOAT32, new Shape(1));
        return addChildBlock("vectorTable", table);
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore store,
            NDList inputs,
            boolean training,
            PairList<String, Object> options) {
        var cache = options == null ? null : options.get("cache");
        return new NDList(compute(inputs, cache));
    }

    /** DJL asks for shapes only where it initializes a block for its inputs. */
    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        throw new UnsupportedOperationException();
    }
}

// %% block-by-hand
void printWords(String name, NDArray rows) {
    System.out.println(name);
    var words = List.of("old", "dog");
    for (int i = 0; i < 2; i++) {
        float[] row = rows.get(i).toFloatArray();
        var numbers = new StringJoiner(", ", "(", ")");
        for (float x : row) {
            numbers.add("%.0f".formatted(x));
        }
        System.out.printf("   %s  %s%n", words.get(i), numbers);
    }
}

var X = manager.create(new float[][] {{4, 0}, {0, 2}});
var weights = manager.full(new Shape(2, 2), 0.5f); // each looks at both alike
X = X.add(weights.matMul(X));
printWords("after attention:", X);

// %% network-by-hand
var W_1 = manager.create(new float[][] {{1, -1, 1}, {-1, 1, 1}});
var b_1 = manager.create(new float[] {0, 0, -4});
var W_2 = manager.create(new float[][] {{1, 0}, {0, 1}, {1, 1}});
var hidden = Activation.relu(X.matMul(W_1).add(b_1));
printWords("hidden:", hidden);
printWords("network:", hidden.matMul(W_2));
printWords("after the network:", X.add(hidden.matMul(W_2)));

// %% norms-by-hand
/** Subtract the mean, and divide by the standard deviation. */
NDArray layerNorm(NDArray x) {
    var centered = x.sub(x.mean());
    return centered.div(centered.square().mean().sqrt());
}

/** Divide by the root of the mean of the squares. */
NDArray rmsNorm(NDArray x) {
    return x.div(x.square().mean().sqrt());
}

void printNorm(String name, UnaryOperator<NDArray> norm) {
    var x = manager.create(new float[] {1, 2, 6});
    for (int factor : new int[] {1, 10}) {
        float[] y = norm.apply(x.mul(factor)).toFloatArray();
        System.out.printf("%-10s %2d * (1, 2, 6): ", name, factor);
        System.out.printf("%5.2f %5.2f %5.2f%n", y[0], y[1], y[2]);
    }
}

printNorm("layer_norm", x -> layerNorm(x));
printNorm("rms_norm", x -> rmsNorm(x));

// %% activations
var x = manager.arange(-4, 4.01f, 0.1f);
var curves = new NDList(Activation.relu(x), Activation.gelu(x), Activation.swish(x, 1));
Plots.curves(x, NDArrays.stack(curves))
        .xlabel("input")
        .ylabel("output")
        .legend("ReLU", "GELU", "SiLU")
        .figsize(4.5, 3)
        .show();

// %% attention
/** Keys and values of the words so far. */
class KVCache {
    NDArray keys;
    NDArray values;
    int length = 0;

    /** Add those of new words; return all. */
    NDList append(NDArray newKeys, NDArray newValues) {
        keys = length > 0 ? keys.concat(newKeys, 2) : newKeys;
        values = length > 0 ? values.concat(newValues, 2) : newValues;
        length = (int) keys.size(2);
        return new NDList(keys, values);
    }
}

/** Make the scores of hidden keys so low that the softmax gives them no weight. */
NDArray hide(NDArray scores, NDArray mask) {
    return scores.add(mask.logicalNot().mul(-1e9f));
}

/** Let the rows of X attend to those of memory, where a mask is true. */
class MultiHeadAttention extends ReadyBlock {
    final int numHeads;
    double scale;
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear W_o;
    NDArray attentionWeights;

    MultiHeadAttention(int numHiddens, int numHeads) {
        this.numHeads = numHeads;
        scale = 1 / Math.sqrt(numHiddens / numHeads);
        W_q = addProjection(numHiddens, numHiddens, false);
        W_k = addProjection(numHiddens, numHiddens, false);
        W_v = addProjection(numHiddens, numHiddens, false);
        W_o = addProjection(numHiddens, numHiddens, false);
    }

    /** Reshape (batch, words, features) to (batch, heads, words, headSize). */
    NDArray split(NDArray X) {
        long headSize = X.size(2) / numHeads;
        return X.reshape(X.size(0), X.size(1), numHeads, headSize).swapAxes(1, 2);
    }

    /** Take X, memory and the mask. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        var X = inputs.get(0);
        var memory = inputs.get(1);
        var q = split(evaluate(W_q, X));
        var keysAndValues =
                new NDList(split(evaluate(W_k, memory)), split(evaluate(W_v, memory)));
        if (cache != null) {
            var ofNewWords = keysAndValues;
            keysAndValues =
                    ((KVCache) cache).append(ofNewWords.get(0), ofNewWords.get(1));
        }
        var products = q.matMul(keysAndValues.get(0).swapAxes(2, 3));
        var scores = products.mul(makeScalar(X.getManager(), scale));
        attentionWeights = hide(scores, inputs.get(2)).softmax(-1);
        var Y = attentionWeights.matMul(keysAndValues.get(1));
        return evaluate(W_o, Y.swapAxes(1, 2).reshape(X.getShape()));
    }
}

// %% networks
/** Two matrices with GELU in between, applied to each word by itself. */
class FeedForward extends ReadyBlock {
    final Linear dense1;
    final Linear dense2;

    FeedForward(int numHiddens) {
        dense1 = addProjection(numHiddens, 4 * numHiddens, true);
        dense2 = addProjection(4 * numHiddens, numHiddens, true);
    }

    NDArray activation(NDArray X) {
        return Activation.gelu(X);
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        return evaluate(dense2, activation(evaluate(dense1, inputs.head())));
    }
}

/** A network whose hidden numbers are multiplied by gates. */
class SwiGLU extends ReadyBlock {
    final Linear gate;
    final Linear dense1;
    final Linear dense2;

    SwiGLU(int numHiddens) {
        int numHidden = 8 * numHiddens / 3;
        gate = addProjection(numHiddens, numHidden, false);
        dense1 = addProjection(numHiddens, numHidden, false);
        dense2 = addProjection(numHidden, numHiddens, false);
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        var X = inputs.head();
        var gates = Activation.swish(evaluate(gate, X), 1); // SiLU
        return evaluate(dense2, gates.mul(evaluate(dense1, X)));
    }
}

// %% transformer-block
LayerNorm makeLayerNorm(int numHiddens) {
    return prepare(LayerNorm.builder().build(), new Shape(1, numHiddens));
}

/** What a model's blocks consist of. */
class Options {
    int numHiddens = 32;
    int numHeads = 4;
    boolean hasPositions = true;
    boolean normFirst = true;
    boolean hasResidual = true;
    IntFunction<Block> norm = numHiddens -> makeLayerNorm(numHiddens);
    IntFunction<Block> network = numHiddens -> new FeedForward(numHiddens);
    BiFunction<Integer, Integer, MultiHeadAttention> attention =
            (numHiddens, numHeads) -> new MultiHeadAttention(numHiddens, numHeads);
}

/** Return the usual options after some changes. */
Options makeOptions(Consumer<Options> change) {
    var options = new Options();
    change.accept(options);
    return options;
}

/** Attention and a network, each of which adds to what it was given. */
class TransformerBlock extends ReadyBlock {
    final boolean normFirst;
    final boolean hasResidual;
    final Block norm1;
    final MultiHeadAttention attention;
    final Block norm2;
    final MultiHeadAttention crossAttention;
    final Block norm3;
    final Block network;

    TransformerBlock(Options options, boolean readsMemory) {
        normFirst = options.normFirst;
        hasResidual = options.hasResidual;
        norm1 = addNorm(options);
        attention = addAttention(options);
        // a decoder's block also attends to an encoder's output
        norm2 = readsMemory ? addNorm(options) : null;
        crossAttention = readsMemory ? addAttention(options) : null;
        norm3 = addNorm(options);
        network = addChildBlock("network", options.network.apply(options.numHiddens));
    }

    Block addNorm(Options options) {
        return addChildBlock("norm", options.norm.apply(options.numHiddens));
    }

    MultiHeadAttention addAttention(Options options) {
        var layer = options.attention.apply(options.numHiddens, options.numHeads);
        return addChildBlock("attention", layer);
    }

    /** Add what a layer makes of X; normalize its input, or the sum. */
    NDArray add(NDArray X, Block norm, UnaryOperator<NDArray> layer) {
        var Y = layer.apply(normFirst ? evaluate(norm, X) : X);
        var sum = hasResidual ? X.add(Y) : Y;
        return normFirst ? sum : evaluate(norm, sum);
    }

    /** Take X and its mask, and in a decoder memory and its mask. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        var mask = inputs.get(1);
        UnaryOperator<NDArray> lookAround =
                X -> evaluateWithCache(attention, cache, X, X, mask);
        var X = add(inputs.head(), norm1, lookAround);
        if (inputs.size() > 2) {
            var memory = inputs.get(2);
            var memoryMask = inputs.get(3);
            X = add(X, norm2, Y -> evaluate(crossAttention, Y, memory, memoryMask));
        }
        return add(X, norm3, Y -> evaluate(network, Y));
    }
}

// %% block-same
class ReluNetwork extends FeedForward {
    ReluNetwork(int numHiddens) {
        super(numHiddens);
    }

    @Override
    NDArray activation(NDArray X) {
        return Activation.relu(X);
    }
}

void printDifference(String name, NDArray a, NDArray b) {
    float largest = a.sub(b).abs().max().getFloat();
    System.out.printf("%s: max |a - b| = %.5f%n", name, largest);
}

/** Copy all weights into a layer with the same parts. */
void copyWeights(Block source, Block target) {
    var sources = source.getParameters().values();
    var targets = target.getParameters().values();
    for (int i = 0; i < sources.size(); i++) {
        sources.get(i).getArray().copyTo(targets.get(i).getArray());
    }
}

Engine.getInstance().setRandomSeed(0);
var withRelu =
        makeOptions(
                options -> {
                    options.normFirst = false;
                    options.network = numHiddens -> new ReluNetwork(numHiddens);
                });
var block = new TransformerBlock(withRelu, false);
X = manager.randomNormal(new Shape(2, 6, 32));
var layer = new d2l.MultiHeadAttention(32, 4, 0);
prepare(layer, X.getShape(), X.getShape(), X.getShape());
copyWeights(block.attention, layer);

var validLens = manager.create(new int[] {6, 4});
var mask = manager.arange(6).lt(validLens.expandDims(1)).reshape(2, 1, 1, 6);
var Y = evaluate(block.norm1, X.add(evaluate(layer, X, X, X, validLens)));
Y = evaluate(block.norm3, Y.add(evaluate(block.network, Y)));
printDifference("d2l", evaluate(block, X, mask), Y);

// %% parameters
/** Divide each vector by its root mean square; scale by learned numbers. */
class RMSNorm extends ReadyBlock { // DJL 0.35 has none
    final Parameter scale;

    RMSNorm(int numHiddens) {
        var builder = Parameter.builder().setName("scale");
        builder.setType(Parameter.Type.GAMMA).optInitializer(Initializer.ONES);
        builder.optShape(new Shape(numHiddens));
        scale = addParameter(builder.build());
        scale.initialize(manager, DataType.FLOAT32);
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        var X = inputs.head();
        var meanSquare = X.square().mean(LAST, true);
        return X.div(meanSquare.add(1e-6).sqrt()).mul(scale.getArray());
    }
}

long countParameters(Block model) {
    var parameters = model.getParameters().values();
    return parameters.stream().mapToLong(each -> each.getArray().size()).sum();
}

void printSize(String name, Block part, long formula) {
    System.out.printf("%-18s%7d%7d%n", name, countParameters(part), formula);
}

int d = 48;
block = new TransformerBlock(makeOptions(settings -> settings.numHiddens = 48), false);
printSize("MultiHeadAttention", new MultiHeadAttention(d, 4), 4 * d * d);
printSize("FeedForward", new FeedForward(d), 8 * d * d + 5 * d);
printSize("SwiGLU", new SwiGLU(d), 8 * d * d);
printSize("LayerNorm", makeLayerNorm(d), 2 * d);
printSize("RMSNorm", new RMSNorm(d), d);
printSize("TransformerBlock", block, 12 * d * d + 9 * d);

// %% llama
long d = 4096;
long headSize = 128;
long attentionSize = 2 * d * d + 2 * d * 8 * headSize; // 8 key heads for 32 query heads
long networkSize = 3 * d * 14336;
long blockSize = attentionSize + networkSize + 2 * d;
long embeddingSize = 128256 * d; // and as much again for the output
long total = 32 * blockSize + 2 * embeddingSize + d;
System.out.println("attention  %,13d".formatted(32 * attentionSize));
System.out.println("networks   %,13d".formatted(32 * networkSize));
System.out.println("words      %,13d".formatted(2 * embeddingSize));
System.out.println("in all     %,13d".formatted(total));

// %% language
// in alphabetical order
var NOUNS =
        new TreeMap<>(
                Map.of(
                        "dog", "kano",
                        "horse", "kavalo",
                        "bird", "uzelo",
                        "cook", "koko",
                        "cat", "gata",
                        "cow", "vaka",
                        "girl", "mika",
                        "queen", "rega"));
var ADJECTIVES =
        new TreeMap<>(
                Map.of(
                        "old", "vek",
                        "small", "pik",
                        "happy", "lin",
                        "red", "ros",
                        "quick", "rap",
                        "good", "bon"));
var VERBS =
        new TreeMap<>(
                Map.of(
                        "saw", "vid",
                        "heard", "aud",
                        "followed", "sek",
                        "helped", "yut",
                        "fed", "nut",
                        "called", "vok"));
var PLURALS = Map.of("o", "i", "a", "e"); // kano, kani; gata, gate

record Phrase(
        List<String> source,
        List<String> target,
        List<Integer> origins,
        String ending) {}

record Pair(List<String> source, List<String> target, List<Integer> origins) {}

/** Return this many words of a dictionary, none of them twice. */
List<String> drawWords(Random rng, Map<String, String> dictionary, int count) {
    var words = new ArrayList<>(dictionary.keySet());
    Collections.shuffle(words, rng);
    return words.subList(0, count);
}

/** Return a word without its ending. */
String findStem(String word) {
    return word.substring(0, word.length() - 1);
}

/** Return a word's last letter. */
String findEnding(String word) {
    return word.substring(word.length() - 1);
}

/** Return a phrase's words, their translation, where each comes from, its ending. */
Phrase makePhrase(Random rng, int numAdjectives) {
    var noun = drawWords(rng, NOUNS, 1).get(0);
    var adjectives = drawWords(rng, ADJECTIVES, numAdjectives);
    var translation = NOUNS.get(noun);
    boolean isPlural = rng.nextBoolean();
    var singular = findEnding(translation);
    var ending = isPlural ? PLURALS.get(singular) : singular;

    var source = new ArrayList<>(List.of("the"));
    source.addAll(adjectives);
    source.add(isPlural ? noun + "s" : noun);
    var target = new ArrayList<>(List.of("l" + ending, findStem(translation) + ending));
    var origins = new ArrayList<>(List.of(0, numAdjectives + 1));
    for (int i = numAdjectives; i > 0; i--) {
        target.add(ADJECTIVES.get(source.get(i)) + ending);
        origins.add(i);
    }
    return new Phrase(source, target, origins, ending);
}

/** Return a sentence, its translation, and the place where each word comes from. */
Pair makeSentence(Random rng, int maxAdjectives) {
    var subject = makePhrase(rng, rng.nextInt(maxAdjectives + 1));
    var thing = makePhrase(rng, rng.nextInt(maxAdjectives + 1));
    var verb = drawWords(rng, VERBS, 1).get(0);
    boolean isPlural = PLURALS.containsValue(subject.ending());
    var source = new ArrayList<>(subject.source());
    source.add(verb);
    source.addAll(thing.source());
    source.add(".");
    var target = new ArrayList<>(subject.target());
    target.addAll(thing.target());
    target.addAll(List.of(VERBS.get(verb) + (isPlural ? "ent" : "et"), "."));
    int verbPlace = subject.source().size();
    var origins = new ArrayList<>(subject.origins());
    thing.origins().forEach(origin -> origins.add(verbPlace + 1 + origin));
    origins.addAll(List.of(verbPlace, source.size() - 1));
    return new Pair(source, target, origins);
}

Pair makeSentence(Random rng) {
    return makeSentence(rng, 1);
}

// %% sentences
var rng = new Random(3);
for (int i = 0; i < 3; i++) {
    var pair = makeSentence(rng);
    System.out.println(String.join(" ", pair.source()));
    System.out.println("   " + String.join(" ", pair.target()));
}

// %% corpus
var SOURCE_WORDS = new ArrayList<>(List.of("", ".", "the"));
SOURCE_WORDS.addAll(NOUNS.keySet());
NOUNS.keySet().forEach(noun -> SOURCE_WORDS.add(noun + "s"));
SOURCE_WORDS.addAll(ADJECTIVES.keySet());
SOURCE_WORDS.addAll(VERBS.keySet());
var TARGET_WORDS = new ArrayList<>(List.of("", "<start>", "."));
var ALL_ENDINGS = List.of("o", "a", "i", "e");
ALL_ENDINGS.forEach(ending -> TARGET_WORDS.add("l" + ending));
for (var noun : NOUNS.values()) {
    TARGET_WORDS.addAll(List.of(noun, findStem(noun) + PLURALS.get(findEnding(noun))));
}
for (var adjective : ADJECTIVES.values()) {
    ALL_ENDINGS.forEach(ending -> TARGET_WORDS.add(adjective + ending));
}
VERBS.values().forEach(verb -> TARGET_WORDS.addAll(List.of(verb + "et", verb + "ent")));
var SOURCE_TOKENS = new HashMap<String, Integer>();
SOURCE_WORDS.forEach(word -> SOURCE_TOKENS.put(word, SOURCE_TOKENS.size()));
var TARGET_TOKENS = new HashMap<String, Integer>();
TARGET_WORDS.forEach(word -> TARGET_TOKENS.put(word, TARGET_TOKENS.size()));
int PAD = 0; // the token of no word
int START = 1; // what a translation begins with
int NUM_STEPS = 10; // the longest sentence, with two adjectives in each phrase

/** Return the tokens of texts, (texts, NUM_STEPS), filled up with padding. */
NDArray pad(List<List<String>> texts, Map<String, Integer> tokens) {
    var rows = new long[texts.size()][NUM_STEPS]; // zeros, which are padding
    for (int i = 0; i < rows.length; i++) {
        var text = texts.get(i);
        for (int place = 0; place < text.size(); place++) {
            rows[i][place] = tokens.get(text.get(place));
        }
    }
    return manager.create(rows);
}

/** Return the tokens of sentences and of their translations. */
NDList encodePairs(List<Pair> pairs) {
    var sources = pairs.stream().map(Pair::source).toList();
    var targets = pairs.stream().map(Pair::target).toList();
    return new NDList(pad(sources, SOURCE_TOKENS), pad(targets, TARGET_TOKENS));
}

rng = new Random(0);
var testPairs = Stream.generate(() -> makeSentence(rng)).limit(1000).toList();
var testSources = testPairs.stream().map(Pair::source).collect(Collectors.toSet());
var trainPairs =
        Stream.generate(() -> makeSentence(rng))
                .filter(pair -> !testSources.contains(pair.source()))
                .limit(10000)
                .toList();
var encoded = encodePairs(trainPairs);
var sources = encoded.get(0);
var targets = encoded.get(1);
encoded = encodePairs(testPairs);
var heldOut = encoded.get(0);
var answers = encoded.get(1);
int numSourceWords = SOURCE_WORDS.size() - 1;
int numTargetWords = TARGET_WORDS.size() - 2;
System.out.println(numSourceWords + " words, and " + numTargetWords);
System.out.println(6 * (16 * 7) * (16 * 7) + " sentences are possible");

// %% masks
/** Return which words may be seen, by every word and in every head. */
NDArray makePaddingMask(NDArray tokens) {
    return tokens.neq(PAD).expandDims(1).expandDims(1);
}

/** Return that words see themselves and those before them, also those in a cache. */
NDArray makeCausalMask(NDManager manager, int numSteps, int numBefore) {
    var positions = manager.arange(numBefore, numBefore + numSteps);
    return manager.arange(numBefore + numSteps).lte(positions.expandDims(1));
}

// %% teacher-forcing
/** Return what a decoder reads: a start, and all words but the last. */
NDArray shift(NDArray targets) {
    var shape = new Shape(targets.size(0), 1);
    var starts = targets.getManager().full(shape, START, DataType.INT64);
    return starts.concat(targets.get(":, :-1"), 1);
}

List<String> nameWords(NDArray tokens, List<String> words) {
    return LongStream.of(tokens.toLongArray())
            .mapToObj(token -> token == PAD ? "-" : words.get((int) token))
            .toList();
}

var sourceNames = nameWords(heldOut.get(0), SOURCE_WORDS);
var inputNames = nameWords(shift(answers.get(":1")), TARGET_WORDS);
var answerNames = nameWords(answers.get(0), TARGET_WORDS);
System.out.printf("%-12s%s%n", "reads", "should say");
for (int i = 0; i < NUM_STEPS; i++) {
    System.out.printf("%-12s%s%n", inputNames.get(i), answerNames.get(i));
}

// %% masks-drawn
void drawMask(
        NDArray mask,
        String xlabel,
        String ylabel,
        List<String> columns,
        List<String> rows) {
    var all = mask.toType(DataType.FLOAT32, false).broadcast(new Shape(1, 1, 10, 10));
    Plots.heatmaps(all)
            .xlabel(xlabel)
            .ylabel(ylabel)
            .figsize(7, 5.6)
            .cmap(ColorMap.BLUES)
            .xticklabels(columns.toArray(String[]::new))
            .yticklabels(rows.toArray(String[]::new))
            .show();
}

var paddingMask = makePaddingMask(heldOut.get(":1"));
var causalMask = makeCausalMask(manager, NUM_STEPS, 0);
drawMask(paddingMask, "Read", "Reading", sourceNames, sourceNames);
drawMask(causalMask, "Written", "Writing", inputNames, inputNames);
drawMask(paddingMask, "Read", "Writing", sourceNames, inputNames);

// %% translator
/** A block that reads a sentence, and a block that writes its translation. */
class Translator extends ReadyBlock {
    final Block sourceEmbedding;
    final Block targetEmbedding;
    final Block position;
    final TransformerBlock encoder;
    final Block encoderNorm;
    final TransformerBlock decoder;
    final Block decoderNorm;
    final Linear output;

    Translator(Options options) {
        int numHiddens = options.numHiddens;
        sourceEmbedding = addEmbedding(SOURCE_WORDS.size(), numHiddens);
        targetEmbedding = addEmbedding(TARGET_WORDS.size(), numHiddens);
        position = options.hasPositions ? addEmbedding(NUM_STEPS, numHiddens) : null;
        encoder = addChildBlock("encoder", new TransformerBlock(options, false));
        encoderNorm = addChildBlock("norm", options.norm.apply(numHiddens));
        decoder = addChildBlock("decoder", new TransformerBlock(options, true));
        decoderNorm = addChildBlock("norm", options.norm.apply(numHiddens));
        output = addProjection(numHiddens, TARGET_WORDS.size(), true);
    }

    /** Return vectors of words, to which those of their positions are added. */
    NDArray embed(Block embedding, NDArray tokens, int start) {
        var X = evaluate(embedding, tokens);
        if (position == null) {
            return X;
        }
        var places = tokens.getManager().arange(start, start + (int) tokens.size(1));
        return X.add(evaluate(position, places));
    }

    /** Return what the decoder reads, and which of it are words. */
    NDList encode(NDArray source) {
        var mask = makePaddingMask(source);
        var X = embed(sourceEmbedding, source, 0);
        return new NDList(evaluate(encoderNorm, evaluate(encoder, X, mask)), mask);
    }


    /** Return the logits of the word after each of these. */
    NDArray decode(NDArray tokens, NDArray memory, NDArray memoryMask, KVCache cache) {
        int start = cache == null ? 0 : cache.length;
        var X = embed(targetEmbedding, tokens, start);
        var mask = makeCausalMask(tokens.getManager(), (int) tokens.size(1), start);
        X = evaluateWithCache(decoder, cache, X, mask, memory, memoryMask);
        return evaluate(output, evaluate(decoderNorm, X));
    }

    /** Take sentences, and what the decoder reads. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        var read = encode(inputs.get(0));
        return decode(inputs.get(1), read.get(0), read.get(1), null);
    }
}

// %% fit
/** Let the backward pass compute gradients of a model's weights. */
void requireGradients(Block model) {
    var weights = model.getParameters().values();
    weights.forEach(each -> each.getArray().setRequiresGradient(true));
}

/** Train a model by Adam, whose rate falls to a fiftieth; return it. */
<B extends Block> B fit(
        B model,
        BiFunction<B, NDManager, NDArray> computeLoss,
        int numSteps,
        float lr) {
    requireGradients(model);
    var weights = model.getParameters();
    var schedule = LinearTracker.builder().setBaseValue(lr);
    schedule.optSlope(-0.98f * lr / numSteps).optMaxUpdates(numSteps);
    var adam = Optimizer.adam().optLearningRateTracker(schedule.build()).build();
    for (int step = 0; step < numSteps; step++) {
        // All that a step computes is freed with its manager.
        try (var scratch = manager.newSubManager();
                var gradients = Engine.getInstance().newGradientCollector()) {
            gradients.backward(computeLoss.apply(model, scratch));
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

/** Draw 32 of these rows' numbers. */
NDIndex drawBatch(NDManager manager, NDArray rows) {
    var shape = new Shape(32);
    var batch = manager.randomInteger(0, rows.size(0), shape, DataType.INT64);
    return new NDIndex("{}", batch);
}

/** Train a model from each of five seeds. */
<B extends Block> List<B> fitFive(
        Supplier<B> makeModel,
        BiFunction<B, NDManager, NDArray> computeLoss,
        int numSteps,
        float lr) {
    var models = new ArrayList<B>();
    for (int seed = 0; seed < 5; seed++) {
        Engine.getInstance().setRandomSeed(seed);
        models.add(fit(makeModel.get(), computeLoss, numSteps, lr));
    }
    return models;
}

// %% train
/** Return the mean loss over words; padding does not count. */
NDArray wordLoss(NDArray logits, NDArray targets) {
    var logProbabilities = logits.logSoftmax(-1);
    var ofTargets = logProbabilities.gather(targets.expandDims(-1), -1).squeeze(-1);
    return ofTargets.booleanMask(targets.neq(PAD)).mean().neg();
}

/** Return the loss on 32 training sentences. */
NDArray translationLoss(Translator model, NDManager scratch) {
    var batch = drawBatch(scratch, sources);
    var source = sources.get(scratch, batch);
    var target = targets.get(scratch, batch);
    return wordLoss(evaluate(model, source, shift(target)), target);
}

/** Train a translator from each of five seeds. */
List<Translator> trainTranslators(Consumer<Options> change) {
    return fitFive(
            () -> new Translator(makeOptions(change)),
            (model, scratch) -> translationLoss(model, scratch),
            300,
            0.01f);
}

var translators = trainTranslators(options -> {}); // the usual options

// %% translate
record Translation(NDArray tokens, NDArray logits) {}

/** Write the most probable word each time; return the words, and all logits. */
Translation translate(Translator model, NDArray source, boolean usesCache) {
    var read = model.encode(source);
    var shape = new Shape(source.size(0), 1);
    var tokens = source.getManager().full(shape, START, DataType.INT64);
    var cache = usesCache ? new KVCache() : null;
    var steps = new NDList();
    for (int step = 0; step < NUM_STEPS; step++) {
        var newTokens = usesCache ? tokens.get(":, -1:") : tokens;
        var logits = model.decode(newTokens, read.get(0), read.get(1), cache);
        logits = logits.get(":, -1");
        steps.add(logits);
        tokens = tokens.concat(logits.argMax(-1).expandDims(1), 1);
    }
    return new Translation(tokens.get(":, 1:"), NDArrays.stack(steps, 1));
}

/** Return the share of true values. */
double computeShare(NDArray isTrue) {
    return isTrue.toType(DataType.FLOAT32, false).mean().getFloat();
}

/** Return the share of sentences all of whose words are right. */
double rightShare(Translator model, NDArray source, NDArray target) {
    try (var scratch = manager.newSubManager()) {
        // All that is computed from these is freed with this manager.
        scratch.tempAttachAll(source, target);
        boolean usesCache = true;
        var tokens = translate(model, source, usesCache).tokens();
        // after the full stop all is right
        var isWrong = tokens.neq(target).logicalAnd(target.neq(PAD));
        return computeShare(isWrong.sum(new int[] {1}).eq(0));
    }
}

// %% translated
boolean usesCache = true;
var tokens = translate(translators.get(0), heldOut.get(":3"), usesCache).tokens();
for (int i = 0; i < 3; i++) {
    var words = nameWords(tokens.get(i), TARGET_WORDS);
    System.out.println(String.join(" ", testPairs.get(i).source()));
    words = words.subList(0, words.indexOf(".") + 1);
    System.out.println("   " + String.join(" ", words));
}

// %% right-shown
var shares =
        translators.stream().map(model -> rightShare(model, heldOut, answers)).toList();
var formatted = shares.stream().map("%.3f"::formatted).collect(Collectors.joining(" "));
System.out.println("right translations: " + formatted);

// %% cache-same
var first100 = heldOut.get(":100");
var translation = translate(translators.get(0), first100, true);
var sameTranslation = translate(translators.get(0), first100, false); // no cache
boolean isSame = translation.tokens().contentEquals(sameTranslation.tokens());
System.out.println("same words: " + isSame);
printDifference("logits", translation.logits(), sameTranslation.logits());

// %% attention-map
/** Draw which words a model looks at while it writes the first translation. */
void drawAttention(Translator model, Pair pair) {
    evaluate(model, heldOut.get(":1"), shift(answers.get(":1")));
    var largest = model.decoder.crossAttention.attentionWeights.max(new int[] {1}).get(0);
    int[] origins = pair.origins().stream().mapToInt(i -> i).toArray();
    int numSource = pair.source().size();
    largest = largest.get(":{}, :{}", origins.length, numSource);
    Plots.heatmaps(largest.expandDims(0).expandDims(0))
            .xlabel("Read")
            .ylabel("Writing")
            .figsize(6.4, 5)
            .cmap(ColorMap.BLUES)
            .xticklabels(pair.source().toArray(String[]::new))
            .yticklabels(pair.target().toArray(String[]::new))
            .marks(manager.create(origins).expandDims(1).eq(manager.arange(numSource)))
            .show();
}

drawAttention(translators.get(0), testPairs.get(0));

// %% alignment
/** Return what kind of word a word of the translation is. */
String findKind(String word) {
    if (word.equals(".")) {
        return "stop";
    }
    if (word.startsWith("l") && word.length() == 2) {
        return "article";
    }
    if (word.endsWith("t")) {
        return "verb";
    }
    return ADJECTIVES.containsValue(findStem(word)) ? "adjective" : "noun";
}

/** Return for each sentence the largest weights of the heads, (10 * 10). */
float[][] findLargestWeights(Translator model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(heldOut, answers);
        evaluate(model, heldOut, shift(answers));
        var largest = model.decoder.crossAttention.attentionWeights.max(new int[] {1});
        var rows = new float[testPairs.size()][];
        Arrays.setAll(rows, i -> largest.get(i).toFloatArray());
        return rows;
    }
}

/**
 * Return the mean weight of the head that looks most at a word's origin, by kind.
 *
 * <p>An article is measured twice: at the word "the", and at its noun.
 */
List<Double> measureAlignment(Translator model) {
    var largest = findLargestWeights(model);
    var byKind = new HashMap<String, List<Float>>();
    KINDS.forEach(kind -> byKind.put(kind, new ArrayList<>()));
    for (int i = 0; i < testPairs.size(); i++) {
        var target = testPairs.get(i).target();
        var origins = testPairs.get(i).origins();
        for (int place = 0; place < target.size(); place++) {
            var kind = findKind(target.get(place));
            int row = NUM_STEPS * place;
            byKind.get(kind).add(largest[i][row + origins.get(place)]);
            if (kind.equals("article")) {
                byKind.get("its noun").add(largest[i][row + origins.get(place + 1)]);
            }
        }
    }
    return KINDS.stream().map(kind -> computeMean(byKind.get(kind))).toList();
}

<N extends Number> double computeMean(List<N> numbers) {
    return numbers.stream().mapToDouble(Number::doubleValue).average().getAsDouble();
}

var KINDS = List.of("noun", "adjective", "verb", "stop", "article", "its noun");
var alignments = translators.stream().map(model -> measureAlignment(model)).toList();

// %% alignment-shown tags=["tolerance:absolute=0.6"]
/** Return a row for each number, as Ranges takes them. */
double[][] makeColumn(List<Double> numbers) {
    var rows = numbers.stream().map(number -> new double[] {number});
    return rows.toArray(double[][]::new);
}

/** Give each of these results a name. */
<T> Map<String, T> nameResults(List<String> names, List<T> results) {
    var named = new LinkedHashMap<String, T>();
    for (int i = 0; i < names.size(); i++) {
        named.put(names.get(i), results.get(i));
    }
    return named;
}

var names = List.of(
        "nouns",
        "adjectives",
        "verbs",
        "full stops",
        "articles",
        "articles, at their noun");
var ofKinds = new ArrayList<double[][]>();
for (int i = 0; i < KINDS.size(); i++) {
    int column = i;
    var ofKind = alignments.stream().map(means -> means.get(column)).toList();
    ofKinds.add(makeColumn(ofKind));
}
Ranges.print(nameResults(names, ofKinds), List.of(), "");

// %% removed
/** Leave a row as it is. */
class NoNorm extends ReadyBlock {
    @Override
    NDArray compute(NDList inputs, Object cache) {
        return inputs.head();
    }
}

/** Add nothing. */
class NoNetwork extends ReadyBlock {
    @Override
    NDArray compute(NDList inputs, Object cache) {
        return inputs.head().zerosLike();
    }
}

/** Take the products of queries and keys as they are. */
class UnscaledAttention extends MultiHeadAttention {
    UnscaledAttention(int numHiddens, int numHeads) {
        super(numHiddens, numHeads);
        scale = 1;
    }
}

double computeTestLoss(Translator model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(heldOut, answers);
        return wordLoss(evaluate(model, heldOut, shift(answers)), answers).getFloat();
    }
}

/** Return for each model the share of right translations and the loss. */
double[][] report(List<? extends Translator> models) {
    var rows = new ArrayList<double[]>();
    for (var model : models) {
        double share = rightShare(model, heldOut, answers);
        rows.add(new double[] {share, computeTestLoss(model)});
    }
    return rows.toArray(double[][]::new);
}

/** Train translators with these options, and report on them. */
double[][] reportTrained(Consumer<Options> change) {
    return report(trainTranslators(change));
}

var results = List.of(
        report(translators),
        reportTrained(settings -> settings.hasPositions = false),
        reportTrained(settings -> settings.hasResidual = false),
        reportTrained(settings -> settings.norm = n -> new NoNorm()),
        reportTrained(settings -> settings.attention = UnscaledAttention::new),
        reportTrained(settings -> settings.numHeads = 1),
        reportTrained(settings -> settings.network = n -> new NoNetwork()));

// %% removed-shown tags=["tolerance:absolute=2.5"]
names = List.of(
        "complete",
        "no positions",
        "no residual",
        "no norm",
        "no scaling",
        "one head",
        "no network");
Ranges.print(nameResults(names, results), List.of("right", "loss"), "", 3);

// %% since-2017
var options = List.of(
        reportTrained(settings -> settings.normFirst = false),
        report(translators),
        reportTrained(settings -> settings.norm = RMSNorm::new),
        reportTrained(settings -> settings.network = SwiGLU::new));

// %% since-2017-shown tags=["tolerance:absolute=2.5"]
names = List.of("norm after", "norm first", "RMSNorm", "SwiGLU");
Ranges.print(nameResults(names, options), List.of("right", "loss"), "", 3);

// %% stack
/** Blocks that read one text; the mask says what a word sees. */
class Stack extends ReadyBlock {
    final Block embedding;
    final Block position;
    final List<TransformerBlock> blocks = new ArrayList<>();
    final Block norm;
    final Linear output;
    final NDList rows = new NDList(); // what each block returned

    Stack(int numWords, int numOutputs, int numBlocks, Options options) {
        embedding = addEmbedding(numWords, options.numHiddens);
        position = addEmbedding(2 * NUM_STEPS, options.numHiddens);
        for (int i = 0; i < numBlocks; i++) {
            var block = new TransformerBlock(options, false);
            blocks.add(addChildBlock("block", block));
        }
        norm = addChildBlock("norm", makeLayerNorm(options.numHiddens));
        output = addProjection(options.numHiddens, numOutputs, true);
    }

    Stack(int numWords, int numOutputs) {
        this(numWords, numOutputs, 2, new Options());
    }

    /** Take tokens and a mask. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        var tokens = inputs.get(0);
        var mask = inputs.get(1);
        var places = tokens.getManager().arange((int) tokens.size(1));
        var X = evaluate(embedding, tokens).add(evaluate(position, places));
        rows.clear();
        for (var block : blocks) {
            X = evaluate(block, X, mask);
            rows.add(X);
        }
        return evaluate(output, evaluate(norm, X));
    }
}

// %% encoder-only
var ENDINGS = List.of("", "o", "a", "i", "e");

/** Return the ending of each word that was read; verb and full stop have none. */
long[] nameEndings(Pair pair) {
    var endings = new long[NUM_STEPS]; // zeros, which are padding
    for (int i = 0; i < pair.target().size(); i++) {
        int ending = ENDINGS.indexOf(findEnding(pair.target().get(i)));
        if (ending > 0) {
            endings[pair.origins().get(i)] = ending;
        }
    }
    return endings;
}

NDArray nameAllEndings(List<Pair> pairs) {
    var rows = pairs.stream().map(pair -> nameEndings(pair)).toArray(long[][]::new);
    return manager.create(rows);
}

var endings = nameAllEndings(trainPairs);
var testEndings = nameAllEndings(testPairs);

NDArray makeTaggerMask(NDArray tokens, boolean isCausal) {
    var mask = makePaddingMask(tokens);
    if (isCausal) {
        int numSteps = (int) tokens.size(1);
        mask = mask.logicalAnd(makeCausalMask(tokens.getManager(), numSteps, 0));
    }
    return mask;
}

/** Return the loss of naming the ending that each word gets in the translation. */
NDArray taggerLoss(Stack model, NDManager scratch, boolean isCausal) {
    var batch = drawBatch(scratch, sources);
    var source = sources.get(scratch, batch);
    var logits = evaluate(model, source, makeTaggerMask(source, isCausal));
    return wordLoss(logits, endings.get(scratch, batch));
}

double rightEndings(Stack model, boolean isCausal) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(heldOut, testEndings);
        var logits = evaluate(model, heldOut, makeTaggerMask(heldOut, isCausal));
        var isRight = logits.argMax(-1).eq(testEndings);
        return computeShare(isRight.booleanMask(testEndings.neq(PAD)));
    }
}

var tagged = new ArrayList<List<Double>>();
for (boolean isCausal : new boolean[] {false, true}) {
    BiFunction<Stack, NDManager, NDArray> computeLoss =
            (model, scratch) -> taggerLoss(model, scratch, isCausal);
    Supplier<Stack> makeTagger = () -> new Stack(SOURCE_WORDS.size(), ENDINGS.size());
    var taggers = fitFive(makeTagger, computeLoss, 100, 0.01f);
    tagged.add(taggers.stream().map(model -> rightEndings(model, isCausal)).toList());
}

// %% encoder-only-shown tags=["tolerance:absolute=0.05"]
var taggedByMask = new LinkedHashMap<String, double[][]>();
taggedByMask.put("no mask", makeColumn(tagged.get(0)));
taggedByMask.put("causal", makeColumn(tagged.get(1)));
Ranges.print(taggedByMask, List.of(), "");

// %% decoder-only
/** Write each sentence and its translation as one text, without padding between. */
NDArray join(NDArray sources, NDArray targets) {
    var rows = new long[(int) sources.size(0)][];
    var isWord = (LongPredicate) token -> token != PAD;
    for (int i = 0; i < rows.length; i++) {
        var source = LongStream.of(sources.get(i).toLongArray()).filter(isWord);
        var target = LongStream.of(targets.get(i).toLongArray()).filter(isWord);
        var shifted = target.map(token -> token + SOURCE_WORDS.size());
        var text = LongStream.concat(source, shifted).toArray();
        rows[i] = Arrays.copyOf(text, 2 * NUM_STEPS); // filled up with zeros
    }
    return manager.create(rows);
}

var texts = join(sources, targets);
var testTexts = join(heldOut, answers);

/** Return the loss on the words of 32 translations. */
NDArray nextWordLoss(Stack model, NDManager scratch) {
    var batch = texts.get(scratch, drawBatch(scratch, texts));
    var mask = makeCausalMask(scratch, 2 * NUM_STEPS - 1, 0);
    var logits = evaluate(model, batch.get(":, :-1"), mask);
    var next = batch.get(":, 1:");
    var isTarget = next.gte(SOURCE_WORDS.size());
    return wordLoss(logits, next.mul(isTarget));
}

/** Write the word at this place of texts, if it belongs to a translation. */
void writeWord(Stack model, NDArray tokens, int step) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(tokens, testTexts);
        var mask = makeCausalMask(scratch, step, 0);
        var logits = evaluate(model, tokens.get(":, :{}", step), mask).get(":, -1");
        var given = testTexts.get(":, {}", step);
        var isTarget = given.gte(SOURCE_WORDS.size());
        var word = NDArrays.where(isTarget, logits.argMax(-1), given);
        tokens.set(new NDIndex(":, {}", step), word);
    }
}

/** Return the share of right translations; each is written after its sentence. */
double rightTexts(Stack model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(testTexts);
        var tokens = testTexts.mul(testTexts.lt(SOURCE_WORDS.size()));
        for (int step = 1; step < 2 * NUM_STEPS; step++) {
            writeWord(model, tokens, step);
        }
        return computeShare(tokens.neq(testTexts).sum(new int[] {1}).eq(0));
    }
}

int numWords = SOURCE_WORDS.size() + TARGET_WORDS.size();
var stacks =
        fitFive(
                () -> new Stack(numWords, numWords),
                (model, scratch) -> nextWordLoss(model, scratch),
                300,
                0.01f);
var oneStack = stacks.stream().map(model -> rightTexts(model)).toList();

// %% decoder-only-shown
Ranges.print(Map.of("one stack", makeColumn(oneStack)), List.of(), "", 3);

// %% deep
/** Return the weights of a projection, (outputs, inputs). */
NDArray projectionWeights(Linear projection) {
    return projection.getParameters().valueAt(0).getArray();
}

/** Draw matrices that keep a row's size; all biases are zero already. */
void drawMatrices(Block model) {
    for (var part : model.getChildren().values()) {
        if (part instanceof Linear linear) {
            var weights = projectionWeights(linear);
            float std = (float) (1 / Math.sqrt(weights.size(1)));
            try (var scratch = manager.newSubManager()) {
                var type = DataType.FLOAT32;
                scratch.randomNormal(0, std, weights.getShape(), type).copyTo(weights);
            }
        } else {
            drawMatrices(part);
        }
    }
}

/** Draw matrices that keep a row's size; make what is added to it small, if asked. */
void initialize(Stack model, boolean hasSmallBranches) {
    drawMatrices(model);
    if (hasSmallBranches) {
        double factor = 1 / Math.sqrt(2 * model.blocks.size());
        for (var block : model.blocks) {
            var network = (FeedForward) block.network;
            projectionWeights(block.attention.W_o).muli(factor);
            projectionWeights(network.dense2).muli(factor);
        }
    }
}

record Kind(boolean normFirst, boolean hasSmallBranches) {}

Stack makeDeep(int numBlocks, Kind kind, int seed) {
    Engine.getInstance().setRandomSeed(seed);
    int numWords = TARGET_WORDS.size();
    var options = new Options();
    options.numHiddens = 16;
    options.normFirst = kind.normFirst();
    var model = new Stack(numWords, numWords, numBlocks, options);
    initialize(model, kind.hasSmallBranches());
    return model;
}

/** Return the loss on the next word of translations, without what they translate. */
NDArray languageLoss(Stack model, NDArray targets) {
    var mask = makeCausalMask(targets.getManager(), NUM_STEPS, 0);
    return wordLoss(evaluate(model, shift(targets), mask), targets);
}

// %% measure-depth
/** Return the root of the mean of the squares. */
double computeSize(NDArray X) {
    return X.square().mean().sqrt().getFloat();
}

/** Return, by block, the size of rows, how words differ, and a gradient's size. */
List<double[]> measureDepth(Stack model) {
    int numBlocks = model.blocks.size();
    var sizes = new double[numBlocks];
    var spreads = new double[numBlocks];
    var gradients = new double[numBlocks];
    requireGradients(model);
    try (var scratch = manager.newSubManager();
            var collector = Engine.getInstance().newGradientCollector()) {
        var targets = answers.get(scratch, new NDIndex(":64"));
        collector.backward(languageLoss(model, targets));
        var wordPlaces = targets.neq(PAD).flatten().nonzero().flatten();
        for (int i = 0; i < numBlocks; i++) {
            var X = model.rows.get(i);
            var words = X.reshape(-1, X.size(2)).get(new NDIndex("{}", wordPlaces));
            sizes[i] = computeSize(X);
            spreads[i] = computeSize(words.sub(words.mean(new int[] {0}))) / sizes[i];
            var weights = projectionWeights(model.blocks.get(i).attention.W_q);
            gradients[i] = weights.getGradient().norm().getFloat();
        }
    }
    return List.of(sizes, spreads, gradients);
}

var STACKS = List.of(
        new Kind(false, false),
        new Kind(false, true),
        new Kind(true, false),
        new Kind(true, true));
var atStart = STACKS.stream().map(kind -> measureDepth(makeDeep(32, kind, 0))).toList();

// %% depth-drawn
void drawByBlock(
        List<List<double[]>> measured,
        int index,
        List<String> names,
        String... labels) {
    var curves = measured.stream().map(each -> each.get(index)).toList();
    var blocks = IntStream.rangeClosed(1, curves.get(0).length).asDoubleStream();
    Plots.curves(blocks.toArray(), curves.toArray(double[][]::new))
            .xlabel(labels[0])
            .ylabel(labels[1])
            .legend(names.toArray(String[]::new))
            .logY()
            .figsize(4.5, 3)
            .show();
}

names = List.of("norm after", "norm after, small", "norm first", "norm first, small");
drawByBlock(atStart, 0, names, "block", "size");
drawByBlock(atStart, 1, names, "block", "difference among words");
drawByBlock(atStart, 2, names, "block", "gradient of W_q");

// %% train-deep
/** Return the loss on 32 training translations. */
NDArray deepLoss(Stack model, NDManager scratch) {
    return languageLoss(model, targets.get(scratch, drawBatch(scratch, targets)));
}

double computeLanguageLoss(Stack model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(answers);
        return languageLoss(model, answers).getFloat();
    }
}

var deepLosses = new ArrayList<List<Double>>();
var afterTraining = new ArrayList<List<double[]>>();
for (var kind : STACKS) {
    var losses = new ArrayList<Double>();
    Stack model = null;
    for (int seed = 0; seed < 5; seed++) {
        model = makeDeep(16, kind, seed);
        fit(model, (deep, scratch) -> deepLoss(deep, scratch), 60, 0.005f);
        losses.add(computeLanguageLoss(model));
    }
    deepLosses.add(losses);
    afterTraining.add(measureDepth(model));
}

// %% deep-losses-shown tags=["tolerance:absolute=1"]
double entropy = 0;
double numAnswers = answers.neq(PAD).countNonzero().getLong();
for (int token = 1; token < TARGET_WORDS.size(); token++) {
    double share = answers.eq(token).countNonzero().getLong() / numAnswers;
    entropy -= share > 0 ? share * Math.log(share) : 0;
}
System.out.println("from how frequent words are: %.2f".formatted(entropy));
names = List.of("norm after", "norm after, small", "norm first", "norm first, small");
var lossColumns = deepLosses.stream().map(losses -> makeColumn(losses)).toList();
Ranges.print(nameResults(names, lossColumns), List.of(), "");

// %% depth-trained-drawn
names = List.of("norm after", "norm after, small", "norm first", "norm first, small");
drawByBlock(afterTraining, 1, names, "block", "difference among words");
drawByBlock(afterTraining, 2, names, "block", "gradient of W_q");

// %% solution-gpt2
d = 768;
blockSize = 12 * d * d + 13 * d;
total = 12 * blockSize + (50257 + 1024) * d + 2 * d;
System.out.println("%,d".formatted(total));

// %% solution-wrong-article
var OTHER_GENDER = Map.of("lo", "la", "la", "lo", "li", "le", "le", "li");
var tokens = shift(answers);
var wrongArticles = tokens.get(":, 1").toLongArray();
for (int i = 0; i < wrongArticles.length; i++) {
    var article = TARGET_WORDS.get((int) wrongArticles[i]);
    wrongArticles[i] = TARGET_TOKENS.get(OTHER_GENDER.get(article));
}
tokens.set(new NDIndex(":, 1"), manager.create(wrongArticles));

/** Return the first nouns that a model writes after the wrong articles. */
long[] writeFirstNouns(Translator model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(heldOut, tokens);
        return evaluate(model, heldOut, tokens).get(":, 1").argMax(-1).toLongArray();
    }
}

var rightNouns = answers.get(":, 1").toLongArray();
var afterWrong = new ArrayList<double[]>();
for (var model : translators) {
    var nouns = writeFirstNouns(model);
    double numRight = 0;
    double numAgreeing = 0;
    for (int i = 0; i < nouns.length; i++) {
        var noun = TARGET_WORDS.get((int) nouns[i]);
        var article = TARGET_WORDS.get((int) wrongArticles[i]);
        numRight += nouns[i] == rightNouns[i] ? 1 : 0;
        numAgreeing += noun.endsWith(findEnding(article)) ? 1 : 0;
    }
    afterWrong.add(new double[] {numRight / nouns.length, numAgreeing / nouns.length});
}

// %% solution-wrong-article-shown tags=["tolerance:absolute=0.6"]
var nounRows = afterWrong.toArray(double[][]::new);
var headings = List.of("right", "agrees with the article");
Ranges.print(Map.of("first noun", nounRows), headings, "");

// %% solution-no-mask
/** Wrong: in training, a decoder that sees the words it has to say. */
class SeesAll extends Translator {
    SeesAll() {
        super(new Options());
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        var read = encode(inputs.get(0));
        var tokens = inputs.get(1);
        var X = embed(targetEmbedding, tokens, 0);
        var shape = new Shape(NUM_STEPS, NUM_STEPS);
        var mask = tokens.getManager().ones(shape, DataType.BOOLEAN);
        X = evaluate(decoder, X, mask, read.get(0), read.get(1));
        return evaluate(output, evaluate(decoderNorm, X));
    }
}

Engine.getInstance().setRandomSeed(0);
var model =
        fit(
                new SeesAll(),
                (each, scratch) -> translationLoss(each, scratch),
                300,
                0.01f);
double[] shareAndLoss = report(List.of(model))[0];
double share = shareAndLoss[0];
double loss = shareAndLoss[1];

// %% solution-no-mask-shown tags=["tolerance:absolute=0.05"]
System.out.println("loss %.3f, right translations %.3f".formatted(loss, share));

// %% solution-two-adjectives
rng = new Random(1);
var longPairs =
        Stream.generate(() -> makeSentence(rng, 2))
                .limit(1000)
                .filter(pair -> pair.source().size() > 8)
                .toList();
var longEncoded = encodePairs(longPairs);
var longSources = longEncoded.get(0);
var longAnswers = longEncoded.get(1);
var longShares =
        translators.stream()
                .map(model -> rightShare(model, longSources, longAnswers))
                .toList();

// %% solution-two-adjectives-shown tags=["tolerance:absolute=0.3"]
Ranges.print(Map.of("longer sentences", makeColumn(longShares)), List.of(), "");
