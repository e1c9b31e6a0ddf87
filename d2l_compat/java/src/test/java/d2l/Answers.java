package d2l;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Answers the conformance suite's cases with the package's layers: {@code java d2l.Answers IN.npz
 * OUT.npz}. Input arrays are named {@code KIND/CASE/ARRAY}, and answers {@code CASE/ANSWER}. The
 * program that writes the file, d2l_compat/conformance/adapters/_java.py, explains the arrays.
 */
final class Answers {

    /** A case: its arrays and options by name, and the list that receives its answers. */
    record Case(NDManager manager, String name, Map<String, NDArray> arrays, NDList answers) {

        /** The inputs with respect to which gradients are computed, if the case has them. */
        private static final List<String> DIFFERENTIATED =
                List.of("queries", "keys", "values", "bias", "table", "x");

        boolean has(String array) {
            return arrays.containsKey(array);
        }

        NDArray get(String array) {
            return arrays.get(array);
        }

        double getNumber(String option, double defaultNumber) {
            return has(option) ? get(option).toArray()[0].doubleValue() : defaultNumber;
        }

        int getInteger(String option) {
            return get(option).toArray()[0].intValue();
        }

        ParameterStore store() {
            return new ParameterStore(manager, false);
        }

        void addAnswer(String answerName, NDArray array) {
            NDArray detached = array.stopGradient();
            detached.setName(name + "/" + answerName);
            answers.add(detached);
        }

        /** Adds the output that a function computes, and gradients of sum(output * direction). */
        void answer(Supplier<NDArray> compute) {
            List<String> inputs = DIFFERENTIATED.stream().filter(this::has).toList();
            inputs.forEach(input -> get(input).setRequiresGradient(true));
            try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
                NDArray output = compute.get();
                collector.backward(output.mul(get("direction")).sum());
                addAnswer("output", output);
            }
            inputs.forEach(input -> addAnswer("gradient_" + input, get(input).getGradient()));
        }
    }

    private Answers() {}

    public static void main(String[] files) throws IOException {
        try (NDManager manager = NDManager.newBaseManager();
                InputStream in = Files.newInputStream(Path.of(files[0]));
                OutputStream out = Files.newOutputStream(Path.of(files[1]))) {
            NDList answers = new NDList();
            Map<String, Map<String, NDArray>> cases = new LinkedHashMap<>();
            for (NDArray array : NDList.decode(manager, in)) {
                int slash = array.getName().lastIndexOf('/');
                String caseName = array.getName().substring(0, slash);
                String arrayName = array.getName().substring(slash + 1);
                cases.computeIfAbsent(caseName, each -> new LinkedHashMap<>())
                        .put(arrayName, array);
            }
            cases.forEach(
                    (name, arrays) -> {
                        String[] parts = name.split("/", 2);
                        answer(parts[0], new Case(manager, parts[1], arrays, answers));
                    });
            answers.encode(out, NDList.Encoding.NPZ);
        }
    }

    private static void answer(String kind, Case question) {
        switch (kind) {
            case "attention" -> AttentionAnswers.attention(question);
            case "multi_head" -> AttentionAnswers.multiHead(question);
            case "alibi_slopes" -> question.addAnswer("output", AttentionAnswers.slopes(question));
            case "alibi" -> AttentionAnswers.alibi(question);
            case "relative" -> AttentionAnswers.relative(question);
            case "rope" -> rope(question);
            case "cached" -> CachedAnswers.cached(question);
            case "linear" -> CachedAnswers.linear(question);
            default -> throw new IllegalArgumentException(kind);
        }
    }

    private static void rope(Case question) {
        NDArray x = AttentionAnswers.joinHeads(question.get("x"));
        NDArray offset = question.get("positions").get(0);
        int width = (int) x.getShape().get(2);
        int maxLen = (int) (offset.toLongArray()[0] + x.getShape().get(1));
        RotaryEncoding layer =
                new RotaryEncoding(
                        width,
                        maxLen,
                        question.getNumber("base", RotaryEncoding.BASE),
                        question.has("layout_halves")
                                ? RotaryEncoding.Layout.HALVES
                                : RotaryEncoding.Layout.INTERLEAVED,
                        question.getNumber("position_scale", 1));
        question.answer(
                () -> {
                    NDList inputs =
                            new NDList(AttentionAnswers.joinHeads(question.get("x")), offset);
                    NDArray rotated = layer.forward(question.store(), inputs, false).head();
                    return rotated.reshape(question.get("x").getShape());
                });
    }
}
