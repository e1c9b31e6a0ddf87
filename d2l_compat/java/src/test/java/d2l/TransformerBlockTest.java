package d2l;

import static d2l.BlockReference.flatten;
import static d2l.BlockReference.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import d2l.TransformerBlock.Activation;
import d2l.TransformerBlock.Builder;
import d2l.TransformerBlock.Norm;
import d2l.TransformerBlock.Positions;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Compares Transformer blocks with loops, and tests the models made of them. */
class TransformerBlockTest extends ArrayTestBase {

    private static final int WIDTH = 16;
    private static final int VOCAB = 11;
    private static final int[][] CHUNKS = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 3, 3, 3, 1}, {13}, {2, 8, 3}
    };

    private static Builder options() {
        // The epsilon is large enough to make a difference.
        return TransformerBlock.builder(WIDTH, 4, 24).optNormEpsilon(1e-3f);
    }

    private static Stream<Builder> blockOptions() {
        return Stream.of(
                options(),
                options().optNormFirst(false).optActivation(Activation.RELU),
                options()
                        .optNorm(Norm.RMS)
                        .optActivation(Activation.SWIGLU)
                        .optBias(false)
                        .optPositions(Positions.ROPE)
                        .optNumKvHeads(2),
                options().optNorm(Norm.RMS).optNormFirst(false).optPositions(Positions.ALIBI),
                options()
                        .optCausal(true)
                        .optPositions(Positions.ALIBI)
                        .optWindow(3)
                        .optNumSinks(1)
                        .optNumKvHeads(1),
                options()
                        .optCausal(true)
                        .optNorm(Norm.RMS)
                        .optActivation(Activation.SWIGLU)
                        .optPositions(Positions.ROPE),
                options().optCausal(true).optCrossAttention(true).optNumKvHeads(2),
                options()
                        .optCrossAttention(true)
                        .optNormFirst(false)
                        .optActivation(Activation.SWIGLU),
                options().optCausal(true).optNormFirst(false).optWindow(3));
    }

    /** The options of decoders, each with the positions of the model. */
    private record Kind(BlockModel.Positions positions, Builder options) {}

    private static Stream<Kind> decoderKinds() {
        return Stream.of(
                new Kind(BlockModel.Positions.SINUSOIDAL, options().optCausal(true)),
                new Kind(
                        BlockModel.Positions.LEARNED,
                        options().optCausal(true).optNumKvHeads(2).optWindow(3).optNumSinks(1)),
                new Kind(
                        BlockModel.Positions.NONE,
                        options()
                                .optCausal(true)
                                .optPositions(Positions.ROPE)
                                .optNumKvHeads(1)
                                .optBias(false)
                                .optNorm(Norm.RMS)
                                .optActivation(Activation.SWIGLU)),
                new Kind(
                        BlockModel.Positions.NONE,
                        options()
                                .optCausal(true)
                                .optPositions(Positions.ALIBI)
                                .optWindow(4)
                                .optCrossAttention(true)
                                .optNormFirst(false)));
    }

    private static List<TransformerBlock> blocks(Builder options, int count) {
        return Stream.generate(options::build).limit(count).toList();
    }

    /** Initializes a block or a model with random parameters, so that none is 0 or 1. */
    private <B extends Block> B randomize(B layer) {
        boolean isModel = layer instanceof BlockModel;
        Shape shape = isModel ? new Shape(1, 1) : new Shape(1, 1, WIDTH);
        layer.initialize(manager, DataType.FLOAT64, shape);
        for (var each : layer.getParameters().values()) {
            NDArray array = each.getArray();
            random(array.getShape().getShape()).mul(0.5).copyTo(array);
        }
        return layer;
    }

    private BlockDecoder decoder(Kind kind, int maxLen) {
        List<TransformerBlock> blocks = blocks(kind.options(), 2);
        return randomize(new BlockDecoder(VOCAB, blocks, kind.positions(), 0, maxLen));
    }

    private NDArray call(Block layer, Map<String, Object> params, NDArray... inputs) {
        var store = new ParameterStore(manager, false);
        return layer.forward(store, new NDList(inputs), false, new PairList<>(params)).head();
    }

    /** Returns a memory and its lengths for a block that reads one. */
    private Map<String, Object> memory(Builder options) {
        return options.crossAttention
                ? Map.of(
                        "memory", random(2, 5, WIDTH),
                        "memoryValidLens", manager.create(new int[] {2, 5}))
                : Map.of();
    }

    /** Returns the output for the first tokens of a text in a batch. */
    private static double[] compute(
            TransformerBlock block,
            Builder options,
            NDArray X,
            int row,
            int steps,
            Map<String, Object> memory) {
        double[][] read = null;
        if (options.crossAttention) {
            NDArray text = ((NDArray) memory.get("memory")).get(row);
            read = Arrays.copyOf(rows(text), row == 0 ? 2 : 5);
        }
        var reference = new BlockReference(block, options);
        double[][] text = Arrays.copyOf(rows(X.get(row)), steps);
        return flatten(reference.compute(text, read, (head, i, j) -> 0));
    }

    private static double[] doubles(NDArray array) {
        return array.toType(DataType.FLOAT64, true).toDoubleArray();
    }

    // ---- the block ----

    @ParameterizedTest
    @MethodSource("blockOptions")
    void blockMatchesFormula(Builder options) {
        TransformerBlock block = randomize(options.build());
        TransformerBlock narrow = options.build();
        narrow.initialize(manager, DataType.FLOAT32, new Shape(1, 1, WIDTH));
        for (String name : block.getParameters().keys()) {
            NDArray array = block.getParameters().get(name).getArray();
            NDArray copy = narrow.getParameters().get(name).getArray();
            array.toType(DataType.FLOAT32, true).copyTo(copy);
        }
        NDArray X = random(2, 7, WIDTH);
        NDArray lens = manager.create(new int[] {7, 4});
        Map<String, Object> memory = memory(options);
        double[] first = compute(block, options, X, 0, 7, memory);
        double[] second = compute(block, options, X, 1, 7, memory);
        double[] cut = compute(block, options, X, 1, 4, memory);
        NDArray whole = call(block, memory, X);
        assertArrayEquals(first, whole.get(0).toDoubleArray(), 1e-10);
        assertArrayEquals(second, whole.get(1).toDoubleArray(), 1e-10);
        NDArray padded = call(block, memory, X, lens);
        assertArrayEquals(first, padded.get(0).toDoubleArray(), 1e-10);
        assertArrayEquals(cut, padded.get("1, :4").toDoubleArray(), 1e-10);
        assertTrue(padded.isNaN().none().getBoolean()); // also where there is only padding
        assertTrue(call(block, memory, X, lens.mul(0)).isNaN().none().getBoolean());

        NDArray shortX = X.toType(DataType.FLOAT32, true);
        Map<String, Object> shortMemory = new HashMap<>(memory);
        shortMemory.computeIfPresent(
                "memory", (name, array) -> ((NDArray) array).toType(DataType.FLOAT32, true));
        NDArray result = call(narrow, shortMemory, shortX, lens);
        assertEquals(DataType.FLOAT32, result.getDataType());
        assertArrayEquals(first, doubles(result.get(0)), 1e-4);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 2, 4, 5})
    void scoreBiasIsAdded(int index) {
        Builder options = blockOptions().toList().get(index);
        TransformerBlock block = randomize(options.build());
        var reference = new BlockReference(block, options);
        NDArray X = random(2, 7, WIDTH);
        for (NDArray bias : new NDArray[] {random(7, 7), random(4, 7, 7), random(2, 4, 7, 7)}) {
            NDArray each = bias.broadcast(2, 4, 7, 7);
            NDArray result = call(block, Map.of("scoreBias", bias), X);
            for (int row = 0; row < 2; row++) {
                double[] numbers = each.get(row).toDoubleArray();
                double[][] expected =
                        reference.compute(
                                rows(X.get(row)),
                                null,
                                (head, i, j) -> numbers[(head * 7 + i) * 7 + j]);
                assertArrayEquals(flatten(expected), result.get(row).toDoubleArray(), 1e-10);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 5, 6})
    void gradientMatchesDifferences(int index) {
        Builder options = blockOptions().toList().get(index);
        TransformerBlock block = randomize(options.build());
        Map<String, Object> memory = memory(options);
        NDArray X = random(2, 3, WIDTH);
        NDArray direction = random(2, 3, WIDTH);
        X.setRequiresGradient(true);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray loss = call(block, memory, X).mul(direction).sum();
            overwriteFreeMemory();
            collector.backward(loss);
        }
        double[] gradient = X.getGradient().toDoubleArray();
        double[] numbers = X.toDoubleArray();
        double[] d = direction.toDoubleArray();
        for (int i = 0; i < numbers.length; i += 7) {
            double[] losses = new double[2];
            for (int side = 0; side < 2; side++) {
                double[] moved = numbers.clone();
                moved[i] += side == 0 ? -1e-4 : 1e-4;
                NDArray movedX = manager.create(moved, X.getShape());
                for (int row = 0; row < 2; row++) {
                    double[] output = compute(block, options, movedX, row, 3, memory);
                    int start = row * output.length;
                    losses[side] +=
                            IntStream.range(0, output.length)
                                    .mapToDouble(j -> output[j] * d[start + j])
                                    .sum();
                }
            }
            assertEquals((losses[1] - losses[0]) / 2e-4, gradient[i], 1e-5);
        }
    }

    @Test
    void dropoutActsOnlyInTraining() {
        NDArray X = random(2, 7, WIDTH);
        TransformerBlock block = randomize(options().optDropout(0.5f).build());
        assertEquals(call(block, X), call(block, X));
        NDArray added = call(block, true, X).sub(X);
        assertNotEquals(added, call(block, true, X).sub(X));
        // Both layers' results were dropped.
        double share = added.abs().lt(1e-12).countNonzero().getLong() / (double) added.size();
        assertEquals(0.25, share, 0.1);
        for (boolean isCausal : new boolean[] {false, true}) {
            Builder options = options().optDropout(0.5f).optCausal(isCausal);
            TransformerBlock reader = randomize(options.optCrossAttention(true).build());
            SelfAttention attention = reader.attention;
            assertEquals(call(attention, X), call(attention, X));
            assertNotEquals(call(attention, X), call(attention, true, X));
            MultiHeadAttention reading = reader.crossAttention;
            assertNotEquals(call(reading, X, X, X), call(reading, true, X, X, X));
        }
        BlockModel.Positions positions = BlockModel.Positions.LEARNED;
        BlockEncoder encoder =
                randomize(new BlockEncoder(VOCAB, blocks(options(), 1), positions, 0.5f, 9));
        NDArray tokens = manager.create(new int[][] {{1, 2, 3}});
        assertEquals(call(encoder, tokens), call(encoder, tokens));
        assertNotEquals(call(encoder, tokens), call(encoder, true, tokens));
    }

    @Test
    void costOfWindowIsThatOfCausalSelfAttention() {
        NDArray X = random(1, 400, WIDTH);
        TransformerBlock block = randomize(options().optCausal(true).optWindow(3).build());
        var attention = new CausalSelfAttention(WIDTH, 4, 0, true, 4, false, 3, 0);
        initialize(attention, X);
        long cost = Counting.multiplyAdds(each -> call(attention, each), X);
        assertEquals(cost, Counting.multiplyAdds(each -> call(block.attention, each), X));
        assertTrue(cost < 2 * 400 * 400 * WIDTH); // that of all pairs
    }

    @Test
    void callsLeaveOnlyOutputAndWeightsOfCrossAttention() {
        Kind kind = decoderKinds().toList().get(3);
        BlockDecoder decoder = decoder(kind, 13);
        TransformerBlock block = decoder.blks.get(0);
        NDArray memory = random(1, 5, WIDTH);
        int before = manager.getManagedArrays().size();
        List<KVCache> caches = decoder.makeCaches(1, 13);
        int withCaches = manager.getManagedArrays().size();
        try (NDManager scratch = manager.newSubManager()) {
            NDArray X = scratch.ones(new Shape(1, 3, WIDTH), DataType.FLOAT64);
            call(block, Map.of("memory", memory), X);
            assertEquals(3, scratch.getManagedArrays().size());
            NDArray weights = block.crossAttention.attentionWeights();
            assertEquals(new Shape(1, 4, 3, 5), weights.getShape());
            assertEquals(12, weights.sum().getDouble(), 1e-12);
        }
        try (NDManager scratch = manager.newSubManager()) {
            NDArray tokens = scratch.create(new int[][] {{1, 2, 3}});
            call(decoder, Map.of("memory", memory, "caches", caches), tokens);
            assertEquals(4, scratch.getManagedArrays().size()); // with the weights of two blocks
            NDArray weights = block.crossAttention.attentionWeights();
            assertEquals(12, weights.sum().getDouble(), 1e-12);
        }
        assertEquals(withCaches, manager.getManagedArrays().size());
        caches.forEach(KVCache::close);
        assertEquals(before, manager.getManagedArrays().size());
    }

    // ---- models ----

    @ParameterizedTest
    @EnumSource
    void encoderEqualsItsBlocks(BlockModel.Positions positions) {
        Builder options = options().optNormFirst(positions != BlockModel.Positions.NONE);
        BlockEncoder encoder =
                randomize(new BlockEncoder(VOCAB, blocks(options, 2), positions, 0, 9));
        int[][] tokens = {{1, 2, 3, 4, 5, 6, 10}, {4, 3, 2, 1, 0, 0, 0}};
        int[] lens = {7, 4};
        NDArray result = call(encoder, manager.create(tokens), manager.create(lens));
        double[][] table = rows(encoder.embedding.getParameters().valueAt(0).getArray());
        double[] sinusoids = new PositionalEncoding(WIDTH, 0, 9).P();
        for (int row = 0; row < 2; row++) {
            double[][] X = new double[lens[row]][WIDTH];
            for (int i = 0; i < X.length; i++) {
                for (int c = 0; c < WIDTH; c++) {
                    double x = table[tokens[row][i]][c];
                    X[i][c] =
                            switch (positions) {
                                case NONE -> x;
                                case SINUSOIDAL -> 4 * x + sinusoids[i * WIDTH + c];
                                case LEARNED ->
                                        x
                                                + encoder.positionEmbedding
                                                        .getParameters()
                                                        .valueAt(0)
                                                        .getArray()
                                                        .getDouble(i, c);
                            };
                }
            }
            for (TransformerBlock block : encoder.blks) {
                X = new BlockReference(block, options).compute(X, null, (head, i, j) -> 0);
            }
            if (options.normFirst) {
                X = new BlockReference(encoder.blks.get(1), options).normalize(encoder.norm, X);
            } else {
                assertNull(encoder.norm);
            }
            NDArray text = result.get("{}, :{}", row, lens[row]);
            assertArrayEquals(flatten(X), text.toDoubleArray(), 1e-10);
        }
    }

    @ParameterizedTest
    @EnumSource
    void gradientOfTableMatchesDifferences(BlockModel.Positions positions) {
        BlockEncoder encoder =
                randomize(new BlockEncoder(VOCAB, blocks(options(), 1), positions, 0, 9));
        NDArray tokens = manager.create(new long[][] {{1, 2, 3}, {3, 1, 1}});
        NDArray direction = random(2, 3, WIDTH);
        boolean isLearned = positions == BlockModel.Positions.LEARNED;
        NDArray table =
                (isLearned ? encoder.positionEmbedding : encoder.embedding)
                        .getParameters()
                        .valueAt(0)
                        .getArray();
        table.setRequiresGradient(true);
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            NDArray loss = call(encoder, tokens).mul(direction).sum();
            overwriteFreeMemory(); // such as that of the positions
            collector.backward(loss);
        }
        NDArray gradient = table.getGradient().duplicate();
        table.setRequiresGradient(false);
        for (int column = 0; column < WIDTH; column += 5) {
            double x = table.getDouble(1, column);
            double[] losses = new double[2];
            for (int side = 0; side < 2; side++) {
                table.set(new NDIndex(1, column), x + (side == 0 ? -1e-4 : 1e-4));
                losses[side] = call(encoder, tokens).mul(direction).sum().getDouble();
            }
            table.set(new NDIndex(1, column), x);
            double slope = (losses[1] - losses[0]) / 2e-4;
            assertEquals(slope, gradient.getDouble(1, column), 1e-5);
        }
    }

    @ParameterizedTest
    @MethodSource("decoderKinds")
    void decoderWithCachesEqualsWholeText(Kind kind) {
        BlockDecoder decoder = decoder(kind, 13);
        NDArray tokens = manager.randomInteger(0, VOCAB, new Shape(2, 13), DataType.INT64);
        Map<String, Object> memory = memory(kind.options());
        NDArray whole = call(decoder, memory, tokens);
        assertEquals(new Shape(2, 13, VOCAB), whole.getShape());
        NDArray changed = tokens.duplicate();
        changed.set(new NDIndex(":, 8"), tokens.get(":, 8").add(1).mod(VOCAB));
        NDArray difference =
                call(decoder, memory, changed)
                        .sub(whole)
                        .abs()
                        .max(new int[] {2})
                        .max(new int[] {0});
        assertEquals(0, difference.get(":8").max().getDouble(), 1e-10);
        assertTrue(difference.getDouble(8) > 1e-3);
        for (int[] chunks : CHUNKS) {
            Map<String, Object> params = new HashMap<>(memory);
            params.put("caches", decoder.makeCaches(2, 13));
            NDList parts = new NDList();
            int start = 0;
            for (int chunk : chunks) {
                NDArray next = tokens.get(":, {}:{}", start, start + chunk);
                parts.add(call(decoder, params, next));
                start += chunk;
            }
            NDArray joined = NDArrays.concat(parts, 1);
            assertArrayEquals(whole.toDoubleArray(), joined.toDoubleArray(), 1e-10);
        }
        // Texts of different lengths: the second has two tokens fewer.
        Map<String, Object> params = new HashMap<>(memory);
        params.put("caches", decoder.makeCaches(2, 13));
        call(decoder, params, tokens.get(":, :7"), manager.create(new int[] {7, 5}));
        NDArray both = tokens.get("0, 7:9").stack(tokens.get("1, 5:7"));
        NDArray result = call(decoder, params, both);
        double[] first = whole.get("0, 7:9").toDoubleArray();
        assertArrayEquals(first, result.get(0).toDoubleArray(), 1e-10);
        double[] second = whole.get("1, 5:7").toDoubleArray();
        assertArrayEquals(second, result.get(1).toDoubleArray(), 1e-10);
    }

    private static long countParameters(Block model) {
        return model.getParameters().values().stream()
                .mapToLong(each -> each.getArray().size())
                .sum();
    }

    @ParameterizedTest
    @MethodSource("decoderKinds")
    void parametersAreAsManyAsFormulaSays(Kind kind) {
        int numLearned = kind.positions() == BlockModel.Positions.LEARNED ? 9 : 0;
        assertEquals(
                countParameters(decoder(kind, 9)),
                BlockDecoder.countParameters(VOCAB, 2, kind.options(), numLearned));
        Builder options = options().optBias(false);
        var encoder = new BlockEncoder(VOCAB, blocks(options, 3), kind.positions(), 0, 9);
        assertEquals(
                countParameters(randomize(encoder)),
                BlockEncoder.countParameters(VOCAB, 3, options, numLearned));
    }

    @Test
    void publishedModelsHaveParametersOfFormula() {
        Builder llama =
                TransformerBlock.builder(4096, 32, 14336)
                        .optNumKvHeads(8)
                        .optNorm(Norm.RMS)
                        .optActivation(Activation.SWIGLU)
                        .optBias(false);
        // Llama 3 8B.
        assertEquals(8_030_261_248L, BlockDecoder.countParameters(128256, 32, llama, 0));
        // GPT-2's output shares the embedding.
        Builder gpt2 = TransformerBlock.builder(768, 12, 3072);
        assertEquals(124_439_808, BlockEncoder.countParameters(50257, 12, gpt2, 1024));
    }

    @Test
    void decoderGeneratesWithCaches() {
        Kind kind =
                new Kind(
                        BlockModel.Positions.NONE,
                        options().optCausal(true).optPositions(Positions.ROPE));
        BlockDecoder decoder = decoder(kind, 1);
        int[][] prompts = {{1, 2, 3}, {4}};
        Map<String, Object> params = Map.of("caches", decoder.makeCaches(2, 20));
        int[][] texts =
                Generation.generate(
                        manager,
                        (tokens, lens) -> call(decoder, params, tokens, lens),
                        prompts,
                        6,
                        Map.of("topK", 1));
        for (int row = 0; row < 2; row++) {
            int start = prompts[row].length;
            int[] whole = Arrays.copyOf(prompts[row], start + 6);
            System.arraycopy(texts[row], 0, whole, start, 6);
            NDArray likeliest =
                    call(decoder, manager.create(whole).expandDims(0)).argMax(2).get(0);
            long[] expected = likeliest.get("{}:{}", start - 1, start + 5).toLongArray();
            assertArrayEquals(expected, IntStream.of(texts[row]).asLongStream().toArray());
        }
    }

    @Test
    void parametersAreSavedAndLoaded() throws Exception {
        for (Kind kind : decoderKinds().toList()) {
            BlockDecoder decoder = decoder(kind, 9);
            var bytes = new ByteArrayOutputStream();
            decoder.saveParameters(new DataOutputStream(bytes));
            var other = new BlockDecoder(VOCAB, blocks(kind.options(), 2), kind.positions(), 0, 9);
            other.loadParameters(
                    manager,
                    new DataInputStream(new ByteArrayInputStream(bytes.toByteArray())));
            NDArray tokens = manager.create(new int[][] {{1, 2, 3}, {4, 5, 6}});
            Map<String, Object> memory = memory(kind.options());
            assertEquals(call(decoder, memory, tokens), call(other, memory, tokens));
        }
    }

    // ---- bad input ----

    @Test
    void optionsThatDoNotFitAreRejected() {
        Builder options = options();
        assertError("norm: got null; need LAYER or RMS", () -> options().optNorm(null).build());
        assertError(
                "activation: got null; need RELU, GELU or SWIGLU",
                () -> options().optActivation(null).build());
        assertError(
                "positions: got null; need NONE, ROPE or ALIBI",
                () -> options().optPositions(null).build());
        assertError(
                "window: got 3 without a causal mask; need causal=true",
                () -> options().optWindow(3).build());
        for (float epsilon : new float[] {0, Float.NaN, Float.POSITIVE_INFINITY}) {
            assertError(
                    "normEpsilon: got " + epsilon + "; need a number above 0",
                    () -> options().optNormEpsilon(epsilon).build());
        }
        assertError(
                "dropout: got 1.5; need a probability, from 0 to 1",
                () -> options().optDropout(1.5f).build());
        assertError(
                "ffnNumHiddens: got 0; need an integer of at least 1",
                () -> TransformerBlock.builder(16, 4, 0).build());
        assertError(
                "numKvHeads: got 3 with numHeads 4; need a divisor of numHeads, so that each serves"
                    + " equally many heads of queries",
                () -> options().optNumKvHeads(3).build());
        assertError(
                "rope: got true with 3 features per head; need an even number of features per head",
                () -> TransformerBlock.builder(6, 2, 8).optPositions(Positions.ROPE).build());
        assertError(
                "vocabSize: got 0; need an integer of at least 1",
                () -> BlockEncoder.countParameters(0, 1, options, 0));
        assertError(
                "numBlks: got 0; need an integer of at least 1",
                () -> BlockDecoder.countParameters(1, 0, options, 0));
        assertError(
                "learnedPositions: got -1; need an integer of at least 0",
                () -> BlockDecoder.countParameters(1, 1, options, -1));
    }

    @Test
    void modelsRejectBlocksThatDoNotFit() {
        List<TransformerBlock> blocks = blocks(options(), 1);
        assertError(
                "blocks: got a block with causal=false; need a list of TransformerBlock with"
                    + " causal=true",
                () -> new BlockDecoder(VOCAB, blocks));
        assertError(
                "blocks: got blocks of 16 and 32 features; need one number of features",
                () ->
                        new BlockEncoder(
                                VOCAB,
                                List.of(
                                        blocks.get(0),
                                        TransformerBlock.builder(32, 4, 8).build())));
        assertError(
                "blocks: got an empty list; need a list of TransformerBlock with causal=false",
                () -> new BlockEncoder(VOCAB, List.of()));
        assertError(
                "vocabSize: got 0; need an integer of at least 1",
                () -> new BlockEncoder(0, blocks));
        assertError(
                "positions: got null; need NONE, SINUSOIDAL or LEARNED",
                () -> new BlockEncoder(VOCAB, blocks, null, 0, 1));
        assertError(
                "dropout: got -1.0; need a probability, from 0 to 1",
                () -> new BlockEncoder(VOCAB, blocks, BlockModel.Positions.NONE, -1, 1));
        assertError(
                "maxLen: got 0; need an integer of at least 1",
                () -> new BlockEncoder(VOCAB, blocks, BlockModel.Positions.LEARNED, 0, 0));
    }

    @Test
    void memoryIsGivenExactlyIfItIsRead() {
        NDArray X = random(2, 3, WIDTH);
        NDArray memory = random(2, 5, WIDTH);
        NDArray lens = manager.create(new int[] {2, 5});
        String need = "; need a block with cross-attention, and only such a block, reads a memory";
        TransformerBlock block = randomize(options().build());
        assertError(
                "memory: got a memory for a block without cross-attention" + need,
                () -> call(block, Map.of("memory", memory), X));
        assertError(
                "memoryValidLens: got lengths without a memory" + need,
                () -> call(block, Map.of("memoryValidLens", lens), X));
        TransformerBlock reader = randomize(options().optCrossAttention(true).build());
        assertError("memory: got null" + need, () -> call(reader, X));
        assertError(
                "memory: got shape (5, 16); need 3 dimensions (batch, steps, features)",
                () -> call(reader, Map.of("memory", memory.get(0)), X));
        assertError(
                "memory: got dtype float32; need float64, as the layer's weights are; convert one"
                    + " of the two",
                () -> call(reader, Map.of("memory", memory.toType(DataType.FLOAT32, true)), X));
        assertError(
                "batch sizes of queries, keys and values: got 2, 1 and 1; need equal batch sizes",
                () -> call(reader, Map.of("memory", memory.get(":1")), X));
        assertError(
                "validLens: got a length of 6; need lengths from 0 to 5, the number of keys",
                () -> call(reader, Map.of("memory", memory, "memoryValidLens", lens.add(1)), X));
        assertError(
                "memory: got String; need an NDArray",
                () -> call(reader, Map.of("memory", "a text"), X));
        assertError(
                "params: got memories; need one of cache, memory, memoryValidLens, scoreBias",
                () -> call(block, Map.of("memories", memory), X));
    }

    @Test
    void refusedCallLeavesCachesAsTheyWere() {
        Kind kind =
                new Kind(
                        BlockModel.Positions.LEARNED,
                        options().optCausal(true).optCrossAttention(true));
        BlockDecoder decoder = decoder(kind, 5);
        NDArray tokens = manager.create(new int[][] {{1, 2, 3, 4, 5, 6}});
        NDArray memory = random(1, 5, WIDTH);
        List<KVCache> caches = decoder.makeCaches(1, 4);
        Map<String, Object> params = Map.of("caches", caches, "memory", memory);
        call(decoder, params, tokens.get(":, :3"));
        assertError(
                "cache: got 5 tokens; need at most 4; make it larger",
                () -> call(decoder, params, tokens.get(":, 3:5")));
        assertError(
                "X: got 6 positions; need at most maxLen = 5",
                () -> call(decoder, params, tokens.get(":, 3:6")));
        NDArray next = tokens.get(":, 3:4");
        NDArray narrow = memory.get(":, :, :8");
        assertError(
                "memory: got shape (1, 5, 8); need a last dimension of 16",
                () -> call(decoder, Map.of("caches", caches, "memory", narrow), next));
        assertError(
                "memory: got null; need a block with cross-attention, and only such a block, reads"
                    + " a memory",
                () -> call(decoder, Map.of("caches", caches), next));
        assertError(
                "X: got a token of 11; need tokens from 0 to 10, of a vocabulary of 11",
                () -> call(decoder, params, next.add(7)));
        assertError(
                "X: got a token of -1; need tokens from 0 to 10, of a vocabulary of 11",
                () -> call(decoder, params, next.sub(5)));
        assertError(
                "X: got dtype float64; need an integer dtype",
                () -> call(decoder, params, next.toType(DataType.FLOAT64, true)));
        assertError(
                "X: got shape (1); need 2 dimensions (batch, steps)",
                () -> call(decoder, params, next.get(0)));
        assertError(
                "X: got shape (1, 0); need at least one step",
                () -> call(decoder, params, tokens.get(":, 3:3")));
        assertError(
                "validLens: got a length of 2; need lengths from 0 to 1, the number of steps",
                () -> call(decoder, params, next, manager.create(new int[] {2})));
        assertError(
                "cache: got a cache for a batch of 1; need one for the batch of 2",
                () -> call(decoder, params, next.repeat(0, 2)));
        assertError(
                "caches: got 1; need a list of 2 caches, one for each block",
                () -> call(decoder, Map.of("caches", caches.subList(0, 1)), next));
        assertError(
                "caches: got String; need a list of 2 caches, one for each block",
                () -> call(decoder, Map.of("caches", "a text"), next));
        assertError(
                "cache: got String; need a KVCache",
                () -> call(decoder, Map.of("caches", List.of("a", "b")), next));
        BlockEncoder encoder = randomize(new BlockEncoder(VOCAB, blocks(options(), 1)));
        assertError(
                "params: got caches; need none",
                () -> call(encoder, Map.of("caches", caches), next));
        for (KVCache cache : caches) {
            assertArrayEquals(new long[] {3}, cache.lengths());
        }
        NDArray whole = call(decoder, Map.of("memory", memory), tokens.get(":, :4"));
        assertArrayEquals(
                whole.get(":, 3:").toDoubleArray(),
                call(decoder, params, next).toDoubleArray(),
                1e-10);
    }

    @Test
    void cacheNeedsCausalBlockAndNoBias() {
        NDArray X = random(2, 3, WIDTH);
        TransformerBlock block = randomize(options().build());
        assertError(
                "cache: got a cache for attention that is not causal; need causal=true",
                () -> call(block, Map.of("cache", block.makeCache(2, 4)), X));
        TransformerBlock causal = randomize(options().optCausal(true).build());
        KVCache cache = causal.makeCache(2, 4);
        assertError(
                "scoreBias: got a bias together with a cache; need only one of them",
                () -> call(causal, Map.of("cache", cache, "scoreBias", random(3, 3)), X));
        assertError(
                "scoreBias: got shape (3, 4); need shape (queries, keys), here (3, 3) or (heads,"
                    + " queries, keys), here (4, 3, 3) or (batch, heads, queries, keys), here (2,"
                    + " 4, 3, 3)",
                () -> call(causal, Map.of("scoreBias", random(3, 4)), X));
        TransformerBlock alibi =
                randomize(options().optCausal(true).optPositions(Positions.ALIBI).build());
        assertError(
                "cache: got a cache for a batch of 2; need one for the batch of 1",
                () -> call(alibi, Map.of("cache", cache), X.get(":1")));
        assertError(
                "validLens: got a length of 4; need lengths from 0 to 3, the number of steps",
                () -> call(alibi, Map.of("cache", cache), X, manager.create(new int[] {4, 0})));
        assertArrayEquals(new long[2], cache.lengths());
    }
}
