package d2l;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Block;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Computes the layers' outputs for arrays in a file, to compare them with the reference for all
 * frameworks: {@code java d2l.Answers IN.npz OUT.npz}. The names of the arrays and the kinds of
 * cases are those in tests/shim/compare_frameworks.
 */
final class Answers {

    /** A case: its arrays by name, and the list that receives its answers. */
    record Case(NDManager manager, String name, Map<String, NDArray> arrays, NDList answers) {

        boolean has(String array) {
            return arrays.containsKey(array);
        }

        NDArray get(String array) {
            return arrays.get(array);
        }

        int getInteger(String scalar) {
            return get(scalar).toArray()[0].intValue();
        }

        void addAnswer(String answerName, NDArray array) {
            NDArray detached = array.stopGradient();
            detached.setName(name + "." + answerName);
            answers.add(detached);
        }

        /** Calls a layer, and adds the output as an answer. */
        void call(Block layer, NDList inputs) {
            NDList output = layer.forward(new ParameterStore(manager, false), inputs, false);
            addAnswer("output", output.head());
        }

        /** Calls a layer, and adds the output and the gradients of sum(output * direction). */
        void call(
                Block layer,
                NDList inputs,
                PairList<String, Object> params,
                String... withRespectTo) {
            for (String input : withRespectTo) {
                get(input).setRequiresGradient(true);
            }
            ParameterStore store = new ParameterStore(manager, false);
            try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
                NDArray output = layer.forward(store, inputs, false, params).head();
                collector.backward(output.mul(get("direction")).sum());
                addAnswer("output", output);
            }
            for (String input : withRespectTo) {
                addAnswer("gradient_" + input, get(input).getGradient());
            }
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
                // kind.name.array
                int dot = array.getName().lastIndexOf('.');
                String caseName = array.getName().substring(0, dot);
                String arrayName = array.getName().substring(dot + 1);
                cases.computeIfAbsent(caseName, each -> new LinkedHashMap<>())
                        .put(arrayName, array);
            }
            cases.forEach(
                    (name, arrays) -> {
                        String[] parts = name.split("\\.");
                        answer(parts[0], new Case(manager, parts[1], arrays, answers));
                    });
            answers.encode(out, NDList.Encoding.NPZ);
        }
    }

    private static void answer(String kind, Case testCase) {
        switch (kind) {
            case "attention" -> AttentionAnswers.attention(testCase);
            case "alibi" -> AttentionAnswers.alibi(testCase);
            case "relative" -> AttentionAnswers.relative(testCase);
            case "rotary" -> rotary(testCase);
            case "cached" -> CachedAnswers.cached(testCase);
            case "linear" -> CachedAnswers.linear(testCase);
            case "encoding" -> encoding(testCase);
            default -> throw new IllegalArgumentException(kind);
        }
    }

    private static void rotary(Case testCase) {
        NDArray X = testCase.get("X");
        RotaryEncoding.Layout layout =
                testCase.getInteger("halves") == 0
                        ? RotaryEncoding.Layout.INTERLEAVED
                        : RotaryEncoding.Layout.HALVES;
        int width = (int) X.getShape().getLastDimension();
        int maxLen = testCase.getInteger("max_len");
        RotaryEncoding layer = new RotaryEncoding(width, maxLen, 10000, layout, 1);
        testCase.call(layer, new NDList(X, testCase.get("offset")), null, "X");
    }

    private static void encoding(Case testCase) {
        NDArray X = testCase.get("X");
        int maxLen = (int) X.getShape().get(1);
        int numHiddens = (int) X.getShape().getLastDimension();
        testCase.call(new PositionalEncoding(numHiddens, 0, maxLen), new NDList(X));
    }
}
