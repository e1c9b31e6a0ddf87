package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.BinaryOperator;
import java.util.function.DoublePredicate;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Generates tokens: chooses each one from a model's logits, until enough are there or a stop token
 * comes. Choosing is done in double precision.
 *
 * <p>The choice has options, for example {@code Map.of("topK", 1)} for greedy decoding. The logits
 * are divided by {@code temperature}, a positive number, before the softmax. Then, in this order,
 * and each time with what is left summing to 1: {@code topK} keeps the k most probable tokens;
 * {@code topP}, above 0 and at most 1, keeps the smallest set of most probable tokens whose sum
 * reaches it (Holtzman et al., 2020); {@code minP}, likewise, keeps tokens with at least this
 * fraction of the largest probability (Nguyen et al., 2024). Of tokens with equal probabilities,
 * the first count as more probable.
 *
 * <p>Generating has two more: a text ends after the token {@code stop}, and the same {@code seed},
 * an integer of at least 0, gives the same tokens again. They are not those that Python draws with
 * this seed, since NumPy has another generator.
 */
public final class Generation {

    private Generation() {}

    /**
     * Returns the probabilities from which {@link #generate} draws the next token.
     *
     * @param logits shape (..., vocab)
     * @param options temperature, topK, topP and minP, as above
     * @return an array of the same shape, float64
     * @throws IllegalArgumentException for an option that is unknown or out of range
     */
    public static NDArray nextTokenProbs(NDArray logits, Map<String, ? extends Number> options) {
        Shape shape = logits.getShape();
        int vocab = checkVocab(shape);
        Choice choice = Choice.of(options);
        double[] numbers = toDoubles(logits);
        for (int start = 0; start < numbers.length; start += vocab) {
            double[] row = Arrays.copyOfRange(numbers, start, start + vocab);
            System.arraycopy(choice.probs(row), 0, numbers, start, vocab);
        }
        return logits.getManager().create(numbers, shape);
    }

    /**
     * Continues each prompt by up to {@code numTokens} tokens.
     *
     * <p>{@code predict} returns logits, shape (batch, steps, vocab), for tokens, integers of shape
     * (batch, steps), of which the first {@code validLens}, shape (batch), of each row are real and
     * the others padding. It is called with the prompts, then with one new token per row: it keeps
     * what it needs of earlier calls, usually a {@link KVCache}. What it computes from its inputs
     * is closed after each call.
     *
     * @param manager a manager on whose device the tokens are made
     * @param predict the function of tokens and validLens
     * @param prompts the tokens of each text, at least one
     * @param numTokens the largest number of new tokens
     * @param options temperature, topK, topP, minP, stop and seed, as above
     * @return the new tokens of each text
     * @throws IllegalArgumentException for arguments out of range, and logits that do not fit
     */
    public static int[][] generate(
            NDManager manager,
            BinaryOperator<NDArray> predict,
            int[][] prompts,
            int numTokens,
            Map<String, ? extends Number> options) {
        Checks.integer("numTokens", numTokens, 1);
        Choice choice = Choice.of(options);
        // Unlike Random's, its first numbers differ from seed to seed.
        SplittableRandom random =
                options.containsKey("seed")
                        ? new SplittableRandom(options.get("seed").longValue())
                        : new SplittableRandom();
        int batch = prompts.length;
        int[] lens = Stream.of(prompts).mapToInt(prompt -> prompt.length).toArray();
        int[] tokens = pad(prompts);
        int[][] texts = new int[batch][0];
        for (int step = 0; step < numTokens && !choice.areDone(texts); step++) {
            try (NDManager scratch = manager.newSubManager()) {
                Shape shape = new Shape(batch, tokens.length / batch);
                NDArray logits =
                        predict.apply(scratch.create(tokens, shape), scratch.create(lens));
                scratch.tempAttachAll(logits);
                checkLogits(logits.getShape(), shape);
                tokens = new int[batch];
                for (int row = 0; row < batch; row++) {
                    double[] last = toDoubles(logits.get(row, lens[row] - 1));
                    // A number for each row, so that rows do not influence each other's tokens.
                    tokens[row] = draw(choice.probs(last), random.nextDouble());
                }
            }
            for (int row = 0; row < batch; row++) {
                if (!choice.isDone(texts[row])) {
                    texts[row] = Arrays.copyOf(texts[row], step + 1);
                    texts[row][step] = tokens[row];
                }
            }
            Arrays.fill(lens, 1);
        }
        return texts;
    }

    /** The checked options; one that is absent has a value without an effect. */
    private record Choice(double temperature, int topK, double topP, double minP, int stop) {

        private static final List<String> NAMES =
                List.of("temperature", "topK", "topP", "minP", "stop", "seed");

        static Choice of(Map<String, ? extends Number> options) {
            for (String name : options.keySet()) {
                if (!NAMES.contains(name)) {
                    throw Checks.error("options", name, "one of " + String.join(", ", NAMES));
                }
            }
            double temperature =
                    read(
                            options,
                            "temperature",
                            1,
                            value -> 0 < value && value < Double.POSITIVE_INFINITY,
                            "a number above 0; for greedy decoding, topK=1");
            String fraction = "a number above 0 and at most 1";
            DoublePredicate isFraction = value -> 0 < value && value <= 1;
            double topP = read(options, "topP", 2, isFraction, fraction);
            double minP = read(options, "minP", 0, isFraction, fraction);
            int topK = (int) readInteger(options, "topK", 1);
            int stop = (int) readInteger(options, "stop", 0);
            readInteger(options, "seed", 0);
            return new Choice(temperature, topK, topP, minP, stop);
        }

        private static double read(
                Map<String, ? extends Number> options,
                String name,
                double fallback,
                DoublePredicate isAllowed,
                String need) {
            Number value = options.get(name);
            if (value == null) {
                return fallback;
            }
            if (!isAllowed.test(value.doubleValue())) {
                throw Checks.error(name, value, need);
            }
            return value.doubleValue();
        }

        /** Returns an integer, or the one below the minimum if it is absent. */
        private static double readInteger(
                Map<String, ? extends Number> options, String name, int minimum) {
            return read(
                    options,
                    name,
                    minimum - 1,
                    value -> value >= minimum && value == Math.rint(value),
                    "an integer of at least " + minimum);
        }

        boolean isDone(int[] text) {
            return text.length > 0 && text[text.length - 1] == stop;
        }

        boolean areDone(int[][] texts) {
            return Stream.of(texts).allMatch(this::isDone);
        }

        /** Returns the probability of each token; a choice keeps some of the most probable ones. */
        double[] probs(double[] logits) {
            int vocab = logits.length;
            if (topK > vocab) {
                String need = "at most %s, the size of the vocabulary".formatted(vocab);
                throw Checks.error("topK", topK, need);
            }
            double largest = DoubleStream.of(logits).max().orElseThrow();
            if (!Double.isFinite(largest)) {
                String got = "a row whose largest number is " + largest;
                throw Checks.error("logits", got, "a finite number");
            }
            double[] probs =
                    DoubleStream.of(logits)
                            .map(logit -> Math.exp((logit - largest) / temperature))
                            .toArray();
            // From the most probable token on; the sort is stable.
            int[] order =
                    IntStream.range(0, vocab)
                            .boxed()
                            .sorted(Comparator.comparingDouble(token -> -probs[token]))
                            .mapToInt(Integer::intValue)
                            .toArray();
            double[] sorted = IntStream.of(order).mapToDouble(token -> probs[token]).toArray();
            normalize(sorted, vocab);
            int kept = topK > 0 ? topK : vocab;
            normalize(sorted, kept);
            // Rounding may leave a sum below 1; what comes before a token decides whether it is
            // still needed.
            double before = sorted[0];
            int needed = 1;
            while (needed < kept && before < topP) {
                before += sorted[needed++];
            }
            normalize(sorted, needed);
            while (sorted[needed - 1] < minP * sorted[0]) {
                needed--;
            }
            normalize(sorted, needed);
            double[] result = new double[vocab];
            for (int rank = 0; rank < needed; rank++) {
                result[order[rank]] = sorted[rank];
            }
            return result;
        }
    }

    /** Divides by the sum of the first numbers. */
    private static void normalize(double[] numbers, int count) {
        double sum = DoubleStream.of(numbers).limit(count).sum();
        Arrays.setAll(numbers, i -> numbers[i] / sum);
    }

    /** Returns the first token at which the sum of probabilities exceeds a number below 1. */
    private static int draw(double[] probs, double number) {
        double rest = number;
        int token = 0;
        while (token < probs.length - 1 && rest >= probs[token]) {
            rest -= probs[token++];
        }
        return token;
    }

    /** Returns the prompts padded at the end with zeros, one after the other. */
    private static int[] pad(int[][] prompts) {
        if (prompts.length == 0) {
            throw Checks.error("prompts", "none", "a list of lists of tokens, at least one");
        }
        if (Stream.of(prompts).anyMatch(each -> each.length == 0)) {
            throw Checks.error("prompts", "an empty prompt", "at least one token in each");
        }
        int longest = Stream.of(prompts).mapToInt(prompt -> prompt.length).max().orElseThrow();
        int[] tokens = new int[prompts.length * longest];
        for (int row = 0; row < prompts.length; row++) {
            IntStream.of(prompts[row]).forEach(token -> Checks.integer("prompts", token, 0));
            System.arraycopy(prompts[row], 0, tokens, row * longest, prompts[row].length);
        }
        return tokens;
    }

    private static double[] toDoubles(NDArray array) {
        try (NDArray doubles = array.toType(DataType.FLOAT64, true)) {
            return doubles.toDoubleArray();
        }
    }

    private static int checkVocab(Shape shape) {
        if (shape.dimension() == 0 || shape.getLastDimension() == 0) {
            throw Checks.error("logits", "shape " + shape, "a last axis for the vocabulary");
        }
        return (int) shape.getLastDimension();
    }

    private static void checkLogits(Shape logits, Shape tokens) {
        if (logits.dimension() != 3 || !logits.slice(0, 2).equals(tokens)) {
            String need = "shape %s and an axis for the vocabulary".formatted(tokens);
            throw Checks.error("logits", "shape " + logits, need);
        }
        checkVocab(logits);
    }
}
