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
import ai.djl.nn.transformer.IdEmbedding;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.training.initializer.XavierInitializer;
import ai.djl.training.initializer.XavierInitializer.FactorType;
import ai.djl.training.initializer.XavierInitializer.RandomType;
import ai.djl.training.loss.Loss;
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

// %% causal-attention
/** Return products of queries and keys, divided by the root of their width. */
NDArray scaledDot(NDArray Q, NDArray K) {
    int axes = K.getShape().dimension();
    long d = K.getShape().getLastDimension();
    var root = makeScalar(Q.getManager(), Math.sqrt(d));
    return Q.matMul(K.swapAxes(axes - 2, axes - 1)).div(root);
}

/** Make the scores of hidden keys so low that the softmax gives them no weight. */
NDArray hide(NDArray scores, NDArray isVisible) {
    return scores.add(isVisible.logicalNot().mul(-1e9f));
}

/** Let each row attend to itself and the rows before it, as query, key and value. */
NDArray causalAttention(NDArray X) {
    var i = manager.arange((int) X.size(0));
    var isVisible = i.lte(i.expandDims(1));
    var weights = hide(scaledDot(X, X), isVisible).softmax(-1);
    return weights.matMul(X);
}

// %% one-more-token
String formatNumbers(NDArray vector) {
    var numbers = IntStream.range(0, (int) vector.size()).mapToObj(vector::getFloat);
    return numbers.map("%.2f"::formatted).collect(Collectors.joining(" "));
}

String formatPoint(NDArray vector) {
    return "(" + formatNumbers(vector).replace(" ", ", ") + ")";
}

var X = manager.create(new float[][] {{2, 0}, {0, 1}, {1, 2}, {2, 1}});

for (int n : new int[] {3, 4}) {
    System.out.println(n + " tokens");
    var Y = causalAttention(X.get(":{}", n));
    for (int i = 0; i < n; i++) {
        System.out.println("   " + formatPoint(Y.get(i)));
    }
}

// %% last-row
var keys = X.get(":3"); // kept from before, and so are the values
var values = X.get(":3");
var added = X.get("3:"); // all that is new
keys = keys.concat(added);
values = values.concat(added);
var weights = scaledDot(added, keys).softmax(-1);
System.out.println("weights " + formatNumbers(weights.get(0)));
System.out.println("result  " + formatPoint(weights.matMul(values).get(0)));

// %% cache
/** Keys and values of tokens, and the tokens' positions. */
record Tokens(NDArray keys, NDArray values, NDArray positions) {}

/** Keys and values of a batch of texts, in arrays that are allocated once. */
class KVCache {
    final NDArray keys;
    final NDArray values;
    int length = 0; // tokens so far

    /** Make an empty cache of the shape (batch, heads, maxLen, headSize). */
    KVCache(NDManager manager, Shape shape) {
        keys = manager.zeros(shape);
        values = manager.zeros(shape);
    }

    /** Add new tokens; return the keys and values of all, and their positions. */
    Tokens append(NDArray newKeys, NDArray newValues) {
        int end = length + (int) newKeys.size(2);
        long maxLen = keys.size(2);
        if (end > maxLen) {
            var message = "%d tokens do not fit into a cache for %d";
            throw new IllegalArgumentException(message.formatted(end, maxLen));
        }
        var slots = new NDIndex(":, :, {}:{}", length, end);
        keys.set(slots, newKeys);
        values.set(slots, newValues);
        length = end;
        var filled = new NDIndex(":, :, :{}", end);
        var positions = keys.getManager().arange(end);
        return new Tokens(keys.get(filled), values.get(filled), positions);
    }
}

// %% rotate
/** Turn each pair of neighbouring numbers by its position (RoPE). */
NDArray rotate(NDArray X, NDArray positions) {
    long d = X.getShape().getLastDimension();
    var omega = NDArrays.pow(10000, X.getManager().arange(0f, d, 2f).div(-d));
    var angles = positions.expandDims(1).mul(omega);
    var cos = angles.cos();
    var sin = angles.sin();
    var x = X.get("..., ::2");
    var y = X.get("..., 1::2");
    var first = x.mul(cos).sub(y.mul(sin));
    var second = x.mul(sin).add(y.mul(cos));
    return first.stack(second, -1).reshape(X.getShape());
}

// %% causal-self-attention
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

/** Reshape (batch, steps, features) to (batch, heads, steps, headSize). */
NDArray split(NDArray X, long headSize) {
    return X.reshape(X.size(0), X.size(1), -1, headSize).swapAxes(1, 2);
}

/**
 * Return averages of the values, (batch, heads, steps, headSize). Query heads share key
 * heads if these are fewer. Without a mask (null), queries see all keys.
 */
NDArray attend(NDArray q, NDArray k, NDArray v, NDArray isVisible) {
    long groupSize = q.size(1) / k.size(1);
    if (groupSize > 1) {
        k = k.repeat(1, groupSize);
        v = v.repeat(1, groupSize);
    }
    var scores = scaledDot(q, k);
    if (isVisible != null) {
        scores = hide(scores, isVisible);
    }
    return scores.softmax(-1).matMul(v);
}

/** Each token attends to itself and to those before it. */
class CausalSelfAttention extends ReadyBlock {
    final int headSize;
    final int numKvHeads;
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear W_o;

    CausalSelfAttention(int numHiddens, int numHeads, int numKvHeads) {
        headSize = numHiddens / numHeads;
        this.numKvHeads = numKvHeads;
        W_q = addProjection(numHiddens, numHiddens, false);
        W_k = addProjection(numHiddens, numKvHeads * headSize, false);
        W_v = addProjection(numHiddens, numKvHeads * headSize, false);
        W_o = addProjection(numHiddens, numHiddens, false);
    }

    KVCache makeCache(NDManager manager, long batchSize, long maxLen) {
        var shape = new Shape(batchSize, numKvHeads, maxLen, headSize);
        return new KVCache(manager, shape);
    }

    NDArray turn(NDArray X, NDArray positions) {
        return rotate(X, positions);
    }

    /** Return which keys each query sees; a position of -1 marks no token. */
    NDArray isVisible(NDArray positions, NDArray keyPositions) {
        var isEarlier = keyPositions.lte(positions.expandDims(1));
        return keyPositions.gte(0).logicalAnd(isEarlier);
    }

    @Override
    NDArray compute(NDList inputs, Object optionalCache) {
        var X = inputs.head();
        var cache = (KVCache) optionalCache;
        int start = cache == null ? 0 : cache.length;
        var positions = X.getManager().arange(start, start + (int) X.size(1));
        var q = turn(split(evaluate(W_q, X), headSize), positions);
        var k = turn(split(evaluate(W_k, X), headSize), positions);
        var v = split(evaluate(W_v, X), headSize);
        var seen = cache == null ? new Tokens(k, v, positions) : cache.append(k, v);
        var mask = isVisible(positions, seen.positions());
        var Y = attend(q, seen.keys(), seen.values(), mask);
        return evaluate(W_o, Y.swapAxes(1, 2).reshape(X.getShape()));
    }
}

// %% chunks
/** Return the output for inputs after the tokens in a cache; null stands for none. */
NDArray evaluateWithCache(Block layer, Object cache, NDArray... inputs) {
    var options = new PairList<String, Object>();
    if (cache != null) {
        options.add("cache", cache);
    }
    return layer.forward(parameters, new NDList(inputs), false, options).head();
}

/** Return the outputs for texts that are read some tokens at a time. */
NDArray runInChunks(Block attention, NDArray X, List<Integer> sizes, Object cache) {
    var outputs = new NDList();
    int start = 0;
    for (int size : sizes) {
        var chunk = X.get(":, {}:{}", start, start + size);
        outputs.add(evaluateWithCache(attention, cache, chunk));
        start += size;
    }
    return NDArrays.concat(outputs, 1);
}

void printDifference(String name, NDArray a, NDArray b) {
    float largest = a.sub(b).abs().max().getFloat();
    System.out.printf("%s: max |a - b| = %.4f%n", name, largest);
}

Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(2, 12, 32));
var attention = new CausalSelfAttention(32, 4, 4);
var whole = evaluate(attention, X);
KVCache cache = null;
for (int size : new int[] {1, 3, 12}) {
    cache = attention.makeCache(manager, 2, 12);
    var sizes = Collections.nCopies(12 / size, size);
    var outputs = runInChunks(attention, X, sizes, cache);
    printDifference("chunks of %2d".formatted(size), outputs, whole);
}

// %% full
try {
    evaluateWithCache(attention, cache, X.get(":, :1"));
} catch (IllegalArgumentException error) {
    System.out.println(error.getMessage());
}

// %% the-layer
/** Copy all weights into a layer or model with the same parts. */
void copyWeights(Block source, Block target) {
    var sources = source.getParameters().values();
    var targets = target.getParameters().values();
    for (int i = 0; i < sources.size(); i++) {
        sources.get(i).getArray().copyTo(targets.get(i).getArray());
    }
}

/** Make the layer of d2l with rotary positions; null stands for no window. */
d2l.CausalSelfAttention makeLayer(Integer window) {
    float dropout = 0;
    boolean bias = false;
    int numKvHeads = 4;
    boolean rope = true;
    int numSinks = 0;
    var layer =
            new d2l.CausalSelfAttention(
                    32, 4, dropout, bias, numKvHeads, rope, window, numSinks);
    return initialize(layer, X.getShape());
}

var layer = makeLayer(null);
copyWeights(attention, layer);
var layerCache = layer.makeCache(2, 12);
var layerOutputs = runInChunks(layer, X, List.of(5, 7), layerCache);
printDifference("the layer", layerOutputs, whole);

// %% forgotten-position
/** Wrong: turns each chunk as if the text began with it. */
class ForgetsPositions extends CausalSelfAttention {
    ForgetsPositions(int numHiddens, int numHeads, int numKvHeads) {
        super(numHiddens, numHeads, numKvHeads);
    }

    @Override
    NDArray turn(NDArray X, NDArray positions) {
        return rotate(X, positions.sub(positions.get(0)));
    }
}

// %% forgotten-position-shown
var forgetful = new ForgetsPositions(32, 4, 4);
copyWeights(attention, forgetful);
for (int size : new int[] {12, 3, 1}) {
    cache = forgetful.makeCache(manager, 2, 12);
    var sizes = Collections.nCopies(12 / size, size);
    var outputs = runInChunks(forgetful, X, sizes, cache);
    printDifference("chunks of %2d".formatted(size), outputs, whole);
}

// %% upper-left
// without content: all scores are zero
var queries = manager.zeros(new Shape(1, 1, 2, 4));
keys = manager.zeros(new Shape(1, 1, 5, 4));
values = manager.eye(5).reshape(1, 1, 5, 5); // so that the result shows the weights
// positions of keys and queries, both counted from 0
var isLower = manager.arange(5).lte(manager.arange(2).expandDims(1));
weights = attend(queries, keys, values, isLower).reshape(2, 5);
for (int i = 0; i < 2; i++) {
    System.out.println(formatNumbers(weights.get(i)));
}

// %% grammar
List<String> splitWords(String text) {
    return List.of(text.split(" "));
}

List<String> addS(List<String> words) {
    return words.stream().map(word -> word + "s").toList();
}

var ADJECTIVES = splitWords("old young small big happy tired quiet kind");
var NOUNS =
        splitWords(
                "dog cat bird horse farmer sailor singer nurse king cook doctor baker");
var PLURALS = addS(NOUNS);
var VERBS = splitWords("sleep run sing wait laugh see hear follow like help");
var SINGULAR_VERBS = addS(VERBS); // the dog sleeps, the dogs sleep

/** Words, and the probability of each after those before it. */
record Sentence(List<String> words, List<Double> probabilities) {
    void add(String word, double probability) {
        words.add(word);
        probabilities.add(probability);
    }
}

String choose(SplittableRandom rng, List<String> words) {
    return words.get(rng.nextInt(words.size()));
}

/** Add a noun phrase, and return whether it is plural. */
boolean addPhrase(Sentence sentence, SplittableRandom rng) {
    sentence.add("the", 1);
    boolean hasAdjective = rng.nextDouble() < 0.3;
    if (hasAdjective) {
        sentence.add(choose(rng, ADJECTIVES), 0.3 / 8);
    }
    boolean isPlural = rng.nextDouble() < 0.5;
    var noun = choose(rng, isPlural ? PLURALS : NOUNS);
    sentence.add(noun, (hasAdjective ? 1 : 0.7) / 24);
    return isPlural;
}

/** Return a sentence's words, and the probability of each after those before it. */
Sentence makeSentence(SplittableRandom rng) {
    var sentence = new Sentence(new ArrayList<>(), new ArrayList<>());
    boolean isPlural = addPhrase(sentence, rng);
    boolean hasClause = rng.nextDouble() < 0.5;
    if (hasClause) {
        sentence.add("that", 0.5);
        boolean clauseIsPlural = addPhrase(sentence, rng);
        sentence.add(choose(rng, clauseIsPlural ? VERBS : SINGULAR_VERBS), 1 / 10.0);
    }
    var verb = choose(rng, isPlural ? VERBS : SINGULAR_VERBS);
    sentence.add(verb, (hasClause ? 1 : 0.5) / 10);
    sentence.add(".", 1);
    return sentence;
}

// %% sentences
var rng = new SplittableRandom(10);
for (int i = 0; i < 4; i++) {
    System.out.println(String.join(" ", makeSentence(rng).words()));
}

// %% surprise
var sentence = makeSentence(new SplittableRandom(10));
for (int i = 0; i < sentence.words().size(); i++) {
    double surprise = Math.log(1 / sentence.probabilities().get(i));
    System.out.printf("%10s  %.2f%n", sentence.words().get(i), surprise);
}

// %% corpus
var VOCAB = new ArrayList<>(List.of(".", "the", "that"));
Stream.of(ADJECTIVES, NOUNS, PLURALS, VERBS, SINGULAR_VERBS).forEach(VOCAB::addAll);
var TOKENS = new HashMap<String, Integer>();
VOCAB.forEach(word -> TOKENS.put(word, TOKENS.size()));

record Corpus(NDArray texts, NDArray surprises) {}

/** Return sentences after a full stop, cut to size, and each word's surprise. */
Corpus makeCorpus(int numTexts, int numSteps, int seed) {
    var rng = new SplittableRandom(seed);
    var texts = new long[numTexts][];
    var surprises = new double[numTexts][];
    for (int i = 0; i < numTexts; i++) {
        var words = new ArrayList<>(List.of("."));
        var probabilities = new ArrayList<>(List.of(1.0));
        while (words.size() <= numSteps) {
            var sentence = makeSentence(rng);
            words.addAll(sentence.words());
            probabilities.addAll(sentence.probabilities());
        }
        var shortened = words.subList(0, numSteps + 1);
        texts[i] = shortened.stream().mapToLong(TOKENS::get).toArray();
        var kept = probabilities.subList(0, numSteps + 1);
        surprises[i] = kept.stream().mapToDouble(p -> -Math.log(p)).toArray();
    }
    return new Corpus(manager.create(texts), manager.create(surprises));
}

var trainTexts = makeCorpus(4000, 24, 0).texts();
var testCorpus = makeCorpus(500, 24, 1);
var testTexts = testCorpus.texts();
var testSurprises = testCorpus.surprises();
double bestLoss = testSurprises.get(":, 1:").mean().getDouble();
System.out.println(VOCAB.size() + " words");
System.out.println("best possible loss: %.3f".formatted(bestLoss));

// %% language-model
int[] LAST = {-1}; // the last axis

/** Make a table with this many vectors. */
Block makeEmbedding(int size, int width) {
    var builder = new IdEmbedding.Builder();
    var table = builder.setDictionarySize(size).setEmbeddingSize(width).build();
    table.setInitializer(new NormalInitializer(1), Parameter.Type.WEIGHT);
    return initialize(table, new Shape(1));
}

/** Make a vector of learned numbers. */
Parameter makeVector(int width, Initializer initializer) {
    var builder = Parameter.builder().setName("learnedVector");
    builder.setType(Parameter.Type.OTHER).optInitializer(initializer);
    var vector = builder.optShape(new Shape(width)).build();
    vector.initialize(manager, DataType.FLOAT32);
    return vector;
}

/** Divide each vector by its root mean square; scale by learned numbers. */
class RMSNorm extends ReadyBlock { // DJL 0.35 has none
    final Parameter scale;

    RMSNorm(int numHiddens) {
        scale = addParameter(makeVector(numHiddens, Initializer.ONES));
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        var X = inputs.head();
        var meanSquare = X.square().mean(LAST, true);
        return X.div(meanSquare.add(1e-6).sqrt()).mul(scale.getArray());
    }
}

class TransformerBlock extends ReadyBlock {
    final RMSNorm norm1;
    final CausalSelfAttention attention;
    final RMSNorm norm2;
    final Linear dense1;
    final Linear dense2;

    TransformerBlock(int numHiddens, int numHeads) {
        var newAttention = new CausalSelfAttention(numHiddens, numHeads, numHeads);
        norm1 = addChildBlock("norm1", new RMSNorm(numHiddens));
        attention = addChildBlock("attentionLayer", newAttention);
        norm2 = addChildBlock("norm2", new RMSNorm(numHiddens));
        dense1 = addProjection(numHiddens, 2 * numHiddens, true);
        dense2 = addProjection(2 * numHiddens, numHiddens, true);
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        var X = inputs.head();
        X = X.add(evaluateWithCache(attention, cache, evaluate(norm1, X)));
        var wide = Activation.gelu(evaluate(dense1, evaluate(norm2, X)));
        return X.add(evaluate(dense2, wide));
    }
}

class LanguageModel extends ReadyBlock {
    final Block embedding;
    final List<TransformerBlock> blocks = new ArrayList<>();
    final RMSNorm norm;
    final Linear output;

    LanguageModel(int numHiddens, int numHeads) {
        embedding = addChildBlock("wordTable", makeEmbedding(VOCAB.size(), numHiddens));
        for (int i = 0; i < 2; i++) {
            var block = new TransformerBlock(numHiddens, numHeads);
            blocks.add(addChildBlock("transformerBlock" + i, block));
        }
        norm = addChildBlock("lastNorm", new RMSNorm(numHiddens));
        output = addProjection(numHiddens, VOCAB.size(), true);
    }

    /** Return a cache for each block. */
    KVCache[] makeCaches(NDManager manager, long batchSize, long maxLen) {
        return blocks.stream()
                .map(block -> block.attention.makeCache(manager, batchSize, maxLen))
                .toArray(KVCache[]::new);
    }

    @Override
    NDArray compute(NDList inputs, Object optionalCaches) {
        var noCaches = new KVCache[blocks.size()];
        var caches = optionalCaches == null ? noCaches : (KVCache[]) optionalCaches;
        var X = evaluate(embedding, inputs.head());
        for (int i = 0; i < blocks.size(); i++) {
            X = evaluateWithCache(blocks.get(i), caches[i], X);
        }
        return evaluate(output, evaluate(norm, X));
    }
}

// %% train
/** Train a model by Adam, whose rate falls to a tenth; return it. */
<B extends Block> B fit(
        B model,
        BiFunction<B, NDManager, NDArray> computeLoss,
        int numSteps,
        float lr) {
    var weights = model.getParameters();
    weights.values().forEach(each -> each.getArray().setRequiresGradient(true));
    var schedule = LinearTracker.builder().setBaseValue(lr);
    schedule.optSlope(-0.9f * lr / numSteps).optMaxUpdates(numSteps);
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

/** Return a number for each model, (models, 1). */
<B extends Block> double[][] measureAll(List<B> models, ToDoubleFunction<B> measure) {
    var numbers = models.stream().mapToDouble(measure);
    return numbers.mapToObj(number -> new double[] {number}).toArray(double[][]::new);
}

// %% train-all
/** Return the loss of scores (..., choices), given the right choices. */
NDArray crossEntropy(NDArray scores, NDArray answers) {
    // DJL's loss takes a row for each answer.
    var rows = scores.reshape(-1, scores.getShape().getLastDimension());
    var labels = new NDList(answers.flatten());
    return Loss.softmaxCrossEntropyLoss().evaluate(labels, new NDList(rows));
}

/** Return the mean of minus the logarithm of each next word's probability. */
NDArray nextWordLoss(LanguageModel model, NDArray texts, KVCache[] caches) {
    var logits = evaluateWithCache(model, caches, texts.get(":, :-1"));
    return crossEntropy(logits, texts.get(":, 1:"));
}

/** Return the loss on 16 training texts. */
BiFunction<LanguageModel, NDManager, NDArray> languageLoss =
        (model, scratch) -> {
            var rows = scratch.randomInteger(0, 4000, new Shape(16), DataType.INT64);
            var texts = trainTexts.get(scratch, new NDIndex("{}", rows));
            return nextWordLoss(model, texts, null);
        };

var models = fitFive(() -> new LanguageModel(16, 4), languageLoss, 200, 0.02f);

/** Return the loss on the test texts. */
double testLoss(LanguageModel model, KVCache[] caches) {
    // All that a model computes from these is freed with this manager.
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(testTexts);
        return nextWordLoss(model, testTexts, caches).getFloat();
    }
}

var losses = measureAll(models, model -> testLoss(model, null));

// %% losses-shown tags=["tolerance:absolute=0.05"]
Ranges.print(Map.of("five models", losses), List.of("loss"), "");
System.out.println("best possible: %.3f".formatted(bestLoss));

// %% write
/** Texts, and the logits by step. */
record Written(NDArray tokens, NDList logits) {}

/** Continue texts, (batch, steps), with a cache; also return the logits, by step. */
Written write(
        LanguageModel model,
        NDArray prompt,
        int numTokens,
        UnaryOperator<NDArray> choose) {
    long maxLen = prompt.size(1) + numTokens;
    var caches = model.makeCaches(prompt.getManager(), prompt.size(0), maxLen);
    var tokens = prompt;
    var newTokens = prompt;
    var steps = new NDList();
    for (int i = 0; i < numTokens; i++) {
        var logits = evaluateWithCache(model, caches, newTokens).get(":, -1");
        newTokens = choose.apply(logits);
        tokens = tokens.concat(newTokens, 1);
        steps.add(logits);
    }
    return new Written(tokens, steps);
}

NDArray greedy(NDArray logits) {
    return logits.argMax(-1).expandDims(1);
}

/** Draw an index for each row of probabilities. */
NDArray draw(NDArray probs) {
    // DJL's randomMultinomial does not support PyTorch. Divided by exponential random
    // numbers, an index has the largest quotient as often as its probability says.
    var uniform = probs.getManager().randomUniform(0, 1, probs.getShape());
    return probs.div(uniform.log().neg()).argMax(-1).expandDims(1);
}

NDArray sample(NDArray logits) {
    return draw(logits.softmax(-1));
}

// %% written tags=["nbval-ignore-output"]
/** Return texts of one full stop, (count, 1). */
NDArray startTexts(NDManager manager, int count) {
    return manager.full(new Shape(count, 1), TOKENS.get("."), DataType.INT64);
}

int[][] toRows(NDArray tokens) {
    int n = (int) tokens.size(1);
    var all = tokens.toType(DataType.INT32, true).toIntArray();
    var rows = new int[(int) tokens.size(0)][];
    Arrays.setAll(rows, i -> Arrays.copyOfRange(all, i * n, (i + 1) * n));
    return rows;
}

List<String> toWords(int[] tokens) {
    return IntStream.of(tokens).mapToObj(VOCAB::get).toList();
}

var model = models.get(0);
Engine.getInstance().setRandomSeed(0);
var texts = write(model, startTexts(manager, 4), 12, logits -> sample(logits)).tokens();
for (int[] tokens : toRows(texts.get(":, 1:"))) {
    System.out.println(String.join(" ", toWords(tokens)));
}

// %% same-as-recomputed
/** Do the same without a cache: read the whole text again for each token. */
Written writeSlowly(
        LanguageModel model,
        NDArray tokens,
        int numTokens,
        UnaryOperator<NDArray> choose) {
    var steps = new NDList();
    for (int i = 0; i < numTokens; i++) {
        var logits = evaluate(model, tokens).get(":, -1");
        tokens = tokens.concat(choose.apply(logits), 1);
        steps.add(logits);
    }
    return new Written(tokens, steps);
}

var prompt = testTexts.get(":8, :6");
var written = write(model, prompt, 10, logits -> greedy(logits));
var writtenSlowly = writeSlowly(model, prompt, 10, logits -> greedy(logits));
var fast = written.tokens();
var slow = writtenSlowly.tokens();
System.out.println("same tokens: " + fast.contentEquals(slow));
var fastLogits = NDArrays.stack(written.logits());
printDifference("logits", fastLogits, NDArrays.stack(writtenSlowly.logits()));

// %% d2l-generate
var caches = model.makeCaches(manager, 8, 16);
var tokens =
        Generation.generate(
                manager,
                (newTokens, lens) -> evaluateWithCache(model, caches, newTokens),
                toRows(prompt),
                10,
                Map.of("topK", 1));
var expected = toRows(fast.get(":, 6:"));
System.out.println("same tokens: " + Arrays.deepEquals(tokens, expected));

// %% choices
/** Set all other probabilities to zero; let the rest sum to one. */
NDArray keep(NDArray probs, NDArray isKept) {
    var kept = probs.mul(isKept);
    return kept.div(kept.sum(LAST, true));
}

NDArray applyTemperature(NDArray probs, double temperature) {
    return probs.log().div(temperature).softmax(-1);
}

/** Keep the k most probable words. */
NDArray topK(NDArray probs, int k) {
    var largest = probs.topK(k, -1).head();
    return keep(probs, probs.gte(largest.get("..., -1:")));
}

/** Keep the most probable words, until they have a share of p. */
NDArray topP(NDArray probs, double p) {
    var words = probs.argSort(-1, false);
    var ordered = probs.gather(words, -1);
    var shareBefore = ordered.cumSum(-1).sub(ordered);
    var isNeeded = shareBefore.lt(p).toType(DataType.FLOAT32, false);
    return keep(probs, probs.zerosLike().scatter(words, isNeeded, -1));
}

/** Keep words with at least this fraction of the largest probability. */
NDArray minP(NDArray probs, double p) {
    return keep(probs, probs.gte(probs.max(LAST, true).mul(p)));
}

// %% choices-by-hand
void printRow(String name, NDArray probs) {
    System.out.printf("%s  %s%n", formatNumbers(probs), name);
}

var probs = manager.create(new float[] {0.5f, 0.25f, 0.15f, 0.1f});
printRow("as it is", probs);
printRow("temperature 2", applyTemperature(probs, 2));
printRow("temperature 1/2", applyTemperature(probs, 0.5));
printRow("top-k 2", topK(probs, 2));
printRow("top-p 0.8", topP(probs, 0.8));
printRow("min-p 0.4", minP(probs, 0.4));

// %% ways
List<UnaryOperator<NDArray>> ways =
        List.of(
                probs -> probs,
                probs -> applyTemperature(probs, 2),
                probs -> applyTemperature(probs, 0.5),
                probs -> topK(probs, 10),
                probs -> topP(probs, 0.9),
                probs -> minP(probs, 0.1));

/** Return the probabilities of the next word. */
NDArray predict(String text) {
    var tokens = splitWords(text).stream().mapToLong(TOKENS::get).toArray();
    var logits = evaluate(model, manager.create(tokens).expandDims(0));
    return logits.get("0, -1").softmax(-1);
}

// %% choices-drawn tags=["tolerance:absolute=0.05"]
var curves = new NDList();
for (var text : List.of(". the", ". the dogs that the cat")) {
    curves.add(predict(text).sort().flip(0));
}
Plots.curves(manager.arange(1, VOCAB.size() + 1), NDArrays.stack(curves))
        .xlabel("Words, the most probable first")
        .ylabel("Probability")
        .legend("the ...", "the dogs that the cat ...")
        .logY()
        .figsize(5, 3)
        .show();

// %% is-sentence
// a letter for each kind of word
var KINDS = new HashMap<>(Map.of(".", ".", "the", "t", "that", "r"));
var WORDS_OF_KIND =
        Map.of(
                "a", ADJECTIVES,
                "n", NOUNS,
                "p", PLURALS,
                "s", SINGULAR_VERBS,
                "v", VERBS);
WORDS_OF_KIND.forEach((kind, words) -> words.forEach(word -> KINDS.put(word, kind)));
var CLAUSE = "(rta?(ns|pv))?";
var SENTENCE = "ta?(n" + CLAUSE + "s|p" + CLAUSE + "v)\\.";

/** Return whether words are a sentence of the language, with its full stop. */
boolean isSentence(List<String> words) {
    var kinds = words.stream().map(KINDS::get).collect(Collectors.joining());
    return kinds.matches(SENTENCE);
}

// %% sentences-written
/** Write 200 texts; return the share whose first sentence is right. */
double shareOfSentences(LanguageModel model, UnaryOperator<NDArray> way) {
    int numRight = 0;
    try (var scratch = manager.newSubManager()) {
        var prompt = startTexts(scratch, 200);
        UnaryOperator<NDArray> choose = logits -> draw(way.apply(logits.softmax(-1)));
        var texts = write(model, prompt, 12, choose).tokens();
        for (int[] tokens : toRows(texts.get(":, 1:"))) {
            var words = toWords(tokens);
            int end = words.contains(".") ? words.indexOf(".") + 1 : words.size();
            numRight += isSentence(words.subList(0, end)) ? 1 : 0;
        }
    }
    return numRight / 200.0;
}

Engine.getInstance().setRandomSeed(0);
var shares = new ArrayList<double[][]>();
for (var way : ways) {
    shares.add(measureAll(models, model -> shareOfSentences(model, way)));
}

// %% sentences-shown tags=["tolerance:absolute=0.15"]
/** Return the results by their names, in this order. */
LinkedHashMap<String, double[][]> nameResults(
        List<String> names, List<double[][]> results) {
    var named = new LinkedHashMap<String, double[][]>();
    for (int i = 0; i < names.size(); i++) {
        named.put(names.get(i), results.get(i));
    }
    return named;
}

var names =
        List.of(
                "as it is",
                "temperature 2",
                "temperature 1/2",
                "top-k 10",
                "top-p 0.9",
                "min-p 0.1");
Ranges.print(nameResults(names, shares), List.of("right"), "");

// %% operations
/** Return the multiplications in the layers for one more token. */
long countOperations(long context) {
    long numHiddens = 16;
    long numLayers = 2;
    long projections = 4 * numHiddens * numHiddens;
    long feedForward = 4 * numHiddens * numHiddens;
    long scoresAndAverages = 2 * context * numHiddens;
    return numLayers * (projections + feedForward + scoresAndAverages);
}

System.out.println("context  with cache   recomputed   ratio");
for (int n : new int[] {1, 16, 256, 4096}) {
    long cached = countOperations(n);
    long recomputed = LongStream.rangeClosed(1, n).map(i -> countOperations(i)).sum();
    double ratio = (double) recomputed / cached;
    System.out.printf("%7d%,12d%,13d%8.1f%n", n, cached, recomputed, ratio);
}

// %% milliseconds
/** Return the shortest time of five calls, in milliseconds. */
double measure(LanguageModel model, NDArray tokens, KVCache[] caches) {
    double shortest = Double.POSITIVE_INFINITY;
    for (int i = 0; i < 5; i++) {
        try (var scratch = manager.newSubManager()) {
            scratch.tempAttachAll(tokens);
            long start = System.nanoTime();
            evaluateWithCache(model, caches, tokens);
            shortest = Math.min(shortest, (System.nanoTime() - start) / 1e6);
        }
    }
    return shortest;
}

var big = new LanguageModel(128, 4);
texts = manager.randomInteger(0, VOCAB.size(), new Shape(1, 1025), DataType.INT64);
var contexts = new double[] {16, 64, 256, 1024};
var recomputed = new double[4];
var cached = new double[4];
for (int i = 0; i < 4; i++) {
    int n = (int) contexts[i];
    recomputed[i] = measure(big, texts.get(":, :{}", n + 1), null);
    try (var scratch = manager.newSubManager()) {
        var filled = big.makeCaches(scratch, 1, n + 5);
        evaluateWithCache(big, filled, texts.get(scratch, new NDIndex(":, :{}", n)));
        cached[i] = measure(big, texts.get(":, :1"), filled);
    }
}

// %% milliseconds-drawn tags=["nbval-ignore-output"]
Plots.curves(contexts, recomputed, cached)
        .xlabel("Tokens before")
        .ylabel("Milliseconds for one more")
        .legend("recomputed", "with cache")
        .logX()
        .logY()
        .figsize(5, 3)
        .show();

// %% padded-cache
/** A cache for texts that begin with padding, whose position is -1. */
class PaddedCache extends KVCache {
    final NDArray numPadding; // how many tokens of padding each text has

    PaddedCache(NDManager manager, Shape shape, NDArray numPadding) {
        super(manager, shape);
        this.numPadding = numPadding;
    }

    @Override
    Tokens append(NDArray newKeys, NDArray newValues) {
        var tokens = super.append(newKeys, newValues);
        var isPadding = tokens.positions().lt(numPadding.expandDims(1));
        var positions = tokens.positions().broadcast(isPadding.getShape());
        var minusOnes = positions.onesLike().neg();
        positions = NDArrays.where(isPadding, minusOnes, positions);
        // for all heads and queries
        positions = positions.expandDims(1).expandDims(1);
        return new Tokens(tokens.keys(), tokens.values(), positions);
    }
}

// %% padded
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(2, 10, 32));
var numPadding = manager.create(new int[] {5, 0}); // the first text has only 5 tokens
cache = new PaddedCache(manager, new Shape(2, 4, 10, 8), numPadding);
var hidden = runInChunks(attention, X, List.of(9, 1), cache);
cache = attention.makeCache(manager, 2, 10);
var seen = runInChunks(attention, X, List.of(9, 1), cache);
var alone = evaluate(attention, X.get(":1, 5:"));
printDifference("padding hidden", hidden.get(":1, 5:"), alone);
printDifference("padding seen", seen.get(":1, 5:"), alone);

// %% padded-layer
layerCache = layer.makeCache(2, 10);
var prompts = X.get(":, :9").duplicate();
// here padding comes after the tokens
prompts.set(new NDIndex("0, :4"), X.get("0, 5:9"));
evaluateWithCache(layer, layerCache, prompts, manager.create(new int[] {4, 9}));
var last = evaluateWithCache(layer, layerCache, X.get(":, 9:"));
System.out.println("tokens in the cache: " + Arrays.toString(layerCache.lengths()));
printDifference("the layer", last.get(":1"), alone.get(":, -1:"));

// %% bytes
long nbytes = 0;
for (var each : model.makeCaches(manager, 1, 1000)) {
    nbytes += (each.keys.size() + each.values.size()) * Float.BYTES;
}
System.out.println("our model, 1,000 tokens: " + nbytes + " bytes");
System.out.println(
        "2 x 2 layers x 4 heads x 4 numbers x 4 bytes x 1,000 = "
                + 2 * 2 * 4 * 4 * 4 * 1000);

// %% published
/** Return the kilobytes that one token takes in the cache, in numbers of 2 bytes. */
double kilobytes(int numbers, int layers) {
    return 2.0 * numbers * layers / 1024;
}

void printCosts(String name, int layers, int heads, int kvHeads) {
    double each = kilobytes(2 * heads * 128, layers);
    double shared = kilobytes(2 * kvHeads * 128, layers);
    System.out.printf("%-14s%7d%7d%11d", name, layers, heads, kvHeads);
    System.out.printf("%8.0f KB%8.0f KB%n", each, shared);
}

System.out.println("               layers  heads  key heads   one each     shared");
printCosts("Llama 2 70B", 80, 64, 8);
printCosts("Llama 3 8B", 32, 32, 8);
printCosts("Mistral 7B", 32, 32, 8);

// %% which-head
Engine.getInstance().setRandomSeed(0);
var q = manager.randomNormal(new Shape(1, 8, 5, 4));
var k = manager.randomNormal(new Shape(1, 2, 5, 4));
var v = manager.randomNormal(new Shape(1, 2, 5, 4));
var shared = attend(q, k, v, null);
for (int head = 0; head < 8; head++) {
    int keyHead = head / 4;
    var query = new NDIndex(":, {}:{}", head, head + 1);
    var key = new NDIndex(":, {}:{}", keyHead, keyHead + 1);
    var alone = attend(q.get(query), k.get(key), v.get(key), null);
    var name = "query head %d, key head %d".formatted(head, keyHead);
    printDifference(name, shared.get(query), alone);
}

// %% reports
record Examples(NDList inputs, NDArray answers) {}

/**
 * Draw reports, a pupil to ask for in each subject, and the 16 marks asked for.
 *
 * <p>Reports have the shape (count, 8 pupils, 4 subjects, 4 marks). A mark tells how
 * far a pupil is above or below average: its mean is 0 and its variance 1.
 */
Examples drawReports(NDManager manager, int count) {
    var reports = manager.randomNormal(new Shape(count, 8, 4, 4));
    var asked = manager.randomInteger(0, 8, new Shape(count, 4), DataType.INT64);
    var pupils = asked.reshape(count, 1, 4, 1).repeat(3, 4); // for all four marks
    var answers = reports.gather(pupils, 1).reshape(count, 16);
    return new Examples(new NDList(reports, asked), answers);
}

// %% report-reader
/** Four heads, one for each subject, which ask for a pupil; heads share keys. */
class ReportReader extends ReadyBlock {
    final int headSize;
    final Block pupil = addChildBlock("pupilTable", makeEmbedding(8, 32));
    final Linear marks = addProjection(16, 32, false);
    final Linear W_q;
    final Linear W_k;
    final Linear W_v;
    final Linear output;

    ReportReader(int numKvHeads, int headSize) {
        this.headSize = headSize;
        W_q = addProjection(32, headSize, false);
        W_k = addProjection(32, numKvHeads * headSize, false);
        W_v = addProjection(32, numKvHeads * headSize, false);
        output = addProjection(4 * headSize, 16, true);
    }

    /** Take reports and the pupils asked for. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        var reports = inputs.get(0);
        var asked = inputs.get(1);
        long count = reports.size(0);
        var pupils = evaluate(pupil, reports.getManager().arange(8));
        var X = evaluate(marks, reports.reshape(count, 8, 16)).add(pupils);
        // one query per head
        var q = evaluate(W_q, evaluate(pupil, asked)).expandDims(2);
        var k = split(evaluate(W_k, X), headSize);
        var v = split(evaluate(W_v, X), headSize);
        var Y = attend(q, k, v, null);
        return evaluate(output, Y.reshape(count, 4 * headSize));
    }
}

// %% train-report-readers
/** Return the mean squared error of a model's answers. */
NDArray meanSquaredError(Block model, Examples examples) {
    var answers = model.forward(parameters, examples.inputs(), false).head();
    return answers.sub(examples.answers()).square().mean();
}

/** Return the mean squared error on 64 reports. */
BiFunction<ReportReader, NDManager, NDArray> reportLoss =
        (model, scratch) -> meanSquaredError(model, drawReports(scratch, 64));

Engine.getInstance().setRandomSeed(100);
var testReports = drawReports(manager, 2000);

double testError(ReportReader model) {
    try (var scratch = manager.newSubManager()) {
        scratch.tempAttachAll(testReports.inputs(), testReports.answers());
        return meanSquaredError(model, testReports).getFloat();
    }
}

int[][] sizes = {{4, 4}, {1, 4}, {1, 16}}; // key heads, and numbers in each
var errors = new ArrayList<double[][]>();
for (int[] size : sizes) {
    Supplier<ReportReader> makeReader = () -> new ReportReader(size[0], size[1]);
    var readers = fitFive(makeReader, reportLoss, 150, 0.04f);
    errors.add(measureAll(readers, reader -> testError(reader)));
}

// %% report-errors tags=["tolerance:absolute=0.05"]
var sizeNames = Stream.of(sizes).map(size -> size[0] + " x " + size[1]).toList();
Ranges.print(nameResults(sizeNames, errors), List.of("error"), "key heads");

// %% latent
/** Multi-head latent attention (MLA): keys and values come from one short vector. */
class LatentAttention extends ReadyBlock {
    final int numHeads = 4;
    final int headSize = 8;
    final int latentSize = 8;
    final int ropeSize = 4;
    final Linear W_q = addProjection(32, 32, false);
    final Linear W_q_rope = addProjection(32, numHeads * ropeSize, false);
    final Linear W_latent = addProjection(32, latentSize, false);
    final Linear W_k_rope = addProjection(32, ropeSize, false);
    final Linear W_k = addProjection(latentSize, 32, false);
    final Linear W_v = addProjection(latentSize, 32, false);
    final Linear W_o = addProjection(32, 32, false);
    final double scale = 1 / Math.sqrt(headSize + ropeSize);

    /** Return what is kept of tokens: a latent vector each, and a rotated key. */
    NDList compress(NDArray X, NDArray positions) {
        var rotatedKeys = rotate(evaluate(W_k_rope, X), positions);
        return new NDList(evaluate(W_latent, X), rotatedKeys);
    }

    /** Return attention weights from scores of content, and of places. */
    NDArray computeWeights(
            NDArray scores, NDArray X, NDArray positions, NDArray rotatedKeys) {
        var q = rotate(split(evaluate(W_q_rope, X), ropeSize), positions);
        scores = scores.add(q.matMul(rotatedKeys.swapAxes(1, 2).expandDims(1)));
        var keyPositions = X.getManager().arange((int) rotatedKeys.size(1));
        var isVisible = keyPositions.lte(positions.expandDims(1));
        var factor = makeScalar(X.getManager(), scale);
        return hide(scores.mul(factor), isVisible).softmax(-1);
    }

    /** Let tokens at these positions attend to all that is kept. */
    NDArray attendTo(
            NDArray X, NDArray positions, NDArray latents, NDArray rotatedKeys) {
        var q = split(evaluate(W_q, X), headSize);
        var k = split(evaluate(W_k, latents), headSize);
        var v = split(evaluate(W_v, latents), headSize);
        var scores = q.matMul(k.swapAxes(2, 3));
        var Y = computeWeights(scores, X, positions, rotatedKeys).matMul(v);
        return evaluate(W_o, Y.swapAxes(1, 2).reshape(X.getShape()));
    }

    @Override
    NDArray compute(NDList inputs, Object cache) {
        return attendTo(inputs.get(0), inputs.get(1), inputs.get(2), inputs.get(3));
    }
}

// %% absorbed
/** The same without keys and values: their matrices go to queries and outputs. */
class AbsorbedAttention extends LatentAttention {
    /** Return the weights of a projection, (heads, headSize, latentSize). */
    NDArray splitWeights(Linear projection) {
        var weights = projection.getParameters().valueAt(0).getArray();
        return weights.reshape(numHeads, -1, latentSize);
    }

    @Override
    NDArray attendTo(
            NDArray X, NDArray positions, NDArray latents, NDArray rotatedKeys) {
        // (batch, heads, steps, latentSize)
        var q = split(evaluate(W_q, X), headSize).matMul(splitWeights(W_k));
        latents = latents.expandDims(1); // the same for all heads
        var scores = q.matMul(latents.swapAxes(2, 3));
        var weights = computeWeights(scores, X, positions, rotatedKeys);
        var Y = weights.matMul(latents).matMul(splitWeights(W_v).swapAxes(1, 2));
        return evaluate(W_o, Y.swapAxes(1, 2).reshape(X.getShape()));
    }
}

// %% latent-compared
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(2, 10, 32));
var positions = manager.arange(10);
var latent = new LatentAttention();
var absorbed = new AbsorbedAttention();
copyWeights(latent, absorbed);
var kept = latent.compress(X, positions);
whole = latent.attendTo(X, positions, kept.get(0), kept.get(1));
var lastX = X.get(":, 9:");
last = absorbed.attendTo(lastX, positions.get("9:"), kept.get(0), kept.get(1));
printDifference("the last token, absorbed", last, whole.get(":, 9:"));
long perToken = kept.get(0).size(2) + kept.get(1).size(2);
System.out.println("numbers per token: " + perToken + " instead of " + 2 * 32);
double latentCost = kilobytes(512 + 64, 60);
double headCost = kilobytes(2 * 128 * 128, 60);
System.out.println("DeepSeek-V2: %.1f KB per token".formatted(latentCost));
System.out.println("with 128 heads of 128: %.0f KB".formatted(headCost));

// %% slots
var slots = new String[] {"-", "-", "-", "-"};
for (int position = 0; position < 8; position++) {
    slots[position % 4] = "" + position;
    System.out.println("after token " + position + ": " + String.join(" ", slots));
}

// %% rolling-cache
/** Keys and values of the last `window` tokens. */
class RollingCache extends KVCache {
    final NDArray positions;

    /** Make an empty cache of the shape (batch, heads, window, headSize). */
    RollingCache(NDManager manager, Shape shape) {
        super(manager, shape);
        positions = manager.full(new Shape(shape.get(2)), -1); // no slot has a token
    }

    /** Add new tokens; return old and new ones, even those that are replaced. */
    @Override
    Tokens append(NDArray newKeys, NDArray newValues) {
        int end = length + (int) newKeys.size(2);
        var newPositions = keys.getManager().arange(length, end);
        var allKeys = keys.concat(newKeys, 2);
        var allValues = values.concat(newValues, 2);
        var allPositions = positions.concat(newPositions);
        long window = positions.size();
        // of the tokens that stay
        long first = Math.max(0, newPositions.size() - window);
        var staying = newPositions.get("{}:", first);
        var slots = staying.mod(window);
        keys.set(new NDIndex(":, :, {}", slots), newKeys.get(":, :, {}:", first));
        values.set(new NDIndex(":, :, {}", slots), newValues.get(":, :, {}:", first));
        positions.set(new NDIndex("{}", slots), staying);
        length = end;
        return new Tokens(allKeys, allValues, allPositions);
    }
}

// %% window-attention
/** Each token attends to the last `window` tokens, itself among them. */
class WindowAttention extends CausalSelfAttention {
    final int window = 4;

    WindowAttention(int numHiddens, int numHeads, int numKvHeads) {
        super(numHiddens, numHeads, numKvHeads);
    }

    @Override
    RollingCache makeCache(NDManager manager, long batchSize, long maxLen) {
        var shape = new Shape(batchSize, numKvHeads, window, headSize);
        return new RollingCache(manager, shape);
    }

    @Override
    NDArray isVisible(NDArray positions, NDArray keyPositions) {
        var distances = positions.expandDims(1).sub(keyPositions);
        var isVisible = super.isVisible(positions, keyPositions);
        return isVisible.logicalAnd(distances.lt(window));
    }
}

// %% rolling
Engine.getInstance().setRandomSeed(0);
X = manager.randomNormal(new Shape(1, 30, 32));
var windowAttention = new WindowAttention(32, 4, 4);
whole = evaluate(windowAttention, X);
RollingCache rolling = null;
var unevenSizes = List.of(1, 3, 10, 16);
for (var chunkSizes :
        List.of(Collections.nCopies(30, 1), Collections.nCopies(10, 3), unevenSizes)) {
    rolling = windowAttention.makeCache(manager, 1, 30);
    var outputs = runInChunks(windowAttention, X, chunkSizes, rolling);
    printDifference(chunkSizes.size() + " chunks", outputs, whole);
}
var positionsKept = Arrays.toString(rolling.positions.toIntArray());
System.out.println("positions kept: " + positionsKept);

// %% rolling-layer
layer = makeLayer(4);
copyWeights(windowAttention, layer);
layerCache = layer.makeCache(1, 30);
layerOutputs = runInChunks(layer, X, unevenSizes, layerCache);
printDifference("the layer", layerOutputs, whole);
System.out.println("slots: " + layerCache.keys().size(2));

// %% lookups
String LETTERS = "abcdefghijklmnopqrstuvwxyz";
int WINDOW = 16;

/**
 * Draw texts of letters with digits, and answers: a letter's digit, or 10 if new.
 *
 * <p>In a text, a letter always has the same digit. It is new if it was not among the
 * last 16 entries. All have the shape (count, numEntries).
 */
Examples drawLookups(NDManager manager, int count, int numEntries) {
    var shape = new Shape(count, numEntries);
    var letters = manager.randomInteger(0, 26, shape, DataType.INT64);
    var alphabets = new Shape(count, 26);
    var digitOfLetter = manager.randomInteger(0, 10, alphabets, DataType.INT64);
    var digits = digitOfLetter.gather(letters, 1);
    var i = manager.arange(numEntries);
    var distances = i.expandDims(1).sub(i);
    var isBefore = distances.gt(0).logicalAnd(distances.lte(WINDOW));
    var isSame = letters.expandDims(2).eq(letters.expandDims(1));
    var isKnown = isSame.logicalAnd(isBefore).sum(new int[] {2}).gt(0);
    var tens = digits.zerosLike().add(10);
    var answers = NDArrays.where(isKnown, digits, tens);
    return new Examples(new NDList(letters, digits), answers);
}

// %% softmax-plus-one
/** Softmax with 1 more in the denominator: a score of zero that has no value. */
NDArray softmaxPlusOne(NDArray scores) {
    var zero = scores.get("..., :1").zerosLike();
    return zero.concat(scores, -1).softmax(-1).get("..., 1:");
}

// %% recaller
/** A head that looks for each entry's letter among the 16 entries before it. */
class Recaller extends ReadyBlock {
    final boolean hasStart;
    final Block letter = addChildBlock("letterTable", makeEmbedding(26, 32));
    final Block digit = addChildBlock("digitTable", makeEmbedding(10, 32));
    // before the first entry
    final Parameter start = addParameter(makeVector(32, new NormalInitializer(1)));
    final Linear W_q = addProjection(32, 32, false);
    final Linear W_k = addProjection(32, 32, false);
    final Linear W_v = addProjection(32, 32, false);
    final Linear output = addProjection(32, 11, true);
    NDArray attentionWeights;

    Recaller(boolean hasStart) {
        this.hasStart = hasStart;
    }

    /** Return the scores of the answers. */
    NDArray answer(NDArray letters, NDArray digits, boolean keepsStart, int window) {
        var manager = letters.getManager();
        long count = letters.size(0);
        int n = (int) letters.size(1);
        var X = evaluate(letter, letters).add(evaluate(digit, digits));
        var i = manager.arange(n);
        var distances = i.expandDims(1).sub(i);
        var isVisible = distances.gt(0).logicalAnd(distances.lte(window));
        if (hasStart) {
            var zeros = manager.zeros(new Shape(count, 1, 32));
            X = zeros.add(start.getArray()).concat(X, 1);
            var startColumn = manager.full(new Shape(n, 1), keepsStart ? 1 : 0);
            isVisible = startColumn.gt(0).concat(isVisible, 1);
        }
        var q = evaluate(W_q, evaluate(letter, letters));
        var k = evaluate(W_k, X);
        var v = evaluate(W_v, X);
        var scores = hide(scaledDot(q, k), isVisible); // an entry may see no key
        attentionWeights = hasStart ? scores.softmax(-1) : softmaxPlusOne(scores);
        return evaluate(output, attentionWeights.matMul(v));
    }

    /** Take letters and digits. */
    @Override
    NDArray compute(NDList inputs, Object cache) {
        return answer(inputs.get(0), inputs.get(1), true, WINDOW);
    }
}

// %% train-recallers
/** Return the loss on 64 texts of 16 entries. */
BiFunction<Recaller, NDManager, NDArray> recallLoss =
        (model, scratch) -> {
            var examples = drawLookups(scratch, 64, 16);
            var scores = model.forward(parameters, examples.inputs(), false).head();
            return crossEntropy(scores, examples.answers());
        };

var recallers = fitFive(() -> new Recaller(true), recallLoss, 150, 0.02f);
var withoutStart = fitFive(() -> new Recaller(false), recallLoss, 150, 0.02f);

// %% sink-map tags=["nbval-ignore-output"]
Engine.getInstance().setRandomSeed(3);
var lookups = drawLookups(manager, 1, 16).inputs();
var letters = lookups.get(0);
var digits = lookups.get(1);
evaluate(recallers.get(0), letters, digits);
var columns = new ArrayList<>(List.of("start"));
var entries = new ArrayList<String>();
for (int i = 0; i < 16; i++) {
    char letter = LETTERS.charAt((int) letters.getLong(0, i));
    columns.add(letter + "\n" + digits.getLong(0, i));
    entries.add("" + letter + digits.getLong(0, i));
}
Plots.heatmaps(recallers.get(0).attentionWeights.expandDims(1))
        .xlabel("Entries before")
        .ylabel("Entry")
        .figsize(6, 4.8)
        .cmap(ColorMap.BLUES)
        .xticklabels(columns.toArray(String[]::new))
        .yticklabels(entries.toArray(String[]::new))
        .show();

// %% recalled
Engine.getInstance().setRandomSeed(100);
var testLookups = drawLookups(manager, 200, 64);
letters = testLookups.inputs().get(0);
digits = testLookups.inputs().get(1);
var answers = testLookups.answers();

/** Return the share of cases in which something is true as well. */
double share(NDArray isTrue, NDArray isCase) {
    double numTrue = isTrue.logicalAnd(isCase).countNonzero().getLong();
    return numTrue / isCase.countNonzero().getLong();
}

/** Return shares of right answers, new letters and known ones, after 16 entries. */
double[][] recallShares(List<Recaller> models, boolean keepsStart, int window) {
    var shares = new ArrayList<double[]>();
    for (var model : models) {
        try (var scratch = manager.newSubManager()) {
            scratch.tempAttachAll(letters, digits, answers);
            var late = new NDIndex(":, {}:", WINDOW);
            var isNew = answers.get(late).eq(10);
            var scores = model.answer(letters, digits, keepsStart, window);
            var isRight = scores.argMax(-1).eq(answers).get(late);
            double newShare = share(isRight, isNew);
            double knownShare = share(isRight, isNew.logicalNot());
            shares.add(new double[] {newShare, knownShare});
        }
    }
    return shares.toArray(double[][]::new);
}

var recall =
        List.of(
                recallShares(recallers, true, WINDOW),
                recallShares(recallers, false, WINDOW),
                recallShares(withoutStart, true, WINDOW));

// %% recalled-shown tags=["tolerance:absolute=0.2"]
names = List.of("start kept", "start evicted", "extra zero");
var headings = List.of("new letter", "known letter");
Ranges.print(nameResults(names, recall), headings, "");

// %% solution-rewind
prompt = testTexts.get(":1, :6");
var rewound = model.makeCaches(manager, 1, 7);
evaluateWithCache(model, rewound, prompt);

/** Return the logits after one more word, with the cache and without. */
NDList continueWith(String word) {
    var newToken = manager.create(new long[][] {{TOKENS.get(word)}});
    for (var cache : rewound) {
        cache.length = 6; // forget what came after the prompt
    }
    var fast = evaluateWithCache(model, rewound, newToken);
    var slow = evaluate(model, prompt.concat(newToken, 1));
    return new NDList(fast.get(":, -1"), slow.get(":, -1"));
}

for (var word : List.of("old", "cooks")) {
    var logits = continueWith(word);
    printDifference(word, logits.get(0), logits.get(1));
}

// %% solution-half-window
var half = recallShares(recallers, true, 8);

// %% solution-half-window-shown tags=["tolerance:absolute=0.1"]
Ranges.print(Map.of("window of 8", half), List.of("new letter", "known letter"), "");

// %% solution-quantized
record Quantized(NDArray whole, NDArray scale) {}

/** Round to whole multiples, -127 to 127, of a scale for each token and head. */
Quantized quantize(NDArray X) {
    var scale = X.abs().max(LAST, true).div(127).maximum(1e-9f); // not 0
    var whole = X.div(scale).round().toType(DataType.INT8, false);
    return new Quantized(whole, scale);
}

/** Keep keys and values as they are after rounding to whole numbers. */
class RoundedCache extends KVCache {
    RoundedCache(NDManager manager, Shape shape) {
        super(manager, shape);
    }

    @Override
    Tokens append(NDArray newKeys, NDArray newValues) {
        var roundedKeys = quantize(newKeys);
        var roundedValues = quantize(newValues);
        return super.append(
                roundedKeys.whole().mul(roundedKeys.scale()),
                roundedValues.whole().mul(roundedValues.scale()));
    }
}

// %% solution-quantized-shown tags=["tolerance:absolute=0.05"]
List<Function<Shape, KVCache>> cacheKinds =
        List.of(
                shape -> new KVCache(manager, shape),
                shape -> new RoundedCache(manager, shape));
var cacheShape = new Shape(500, 4, 24, 4);
for (var makeCache : cacheKinds) {
    // one for each block
    KVCache[] newCaches = {makeCache.apply(cacheShape), makeCache.apply(cacheShape)};
    double loss = testLoss(model, newCaches);
    var name = newCaches[0].getClass().getSimpleName();
    System.out.printf("%-12s loss %.4f%n", name, loss);
}
