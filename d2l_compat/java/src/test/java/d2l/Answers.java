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
 * What the layers answer to arrays from a file, so that they can be held to the reference the
 * Python frameworks are held to: {@code java d2l.Answers IN.npz OUT.npz}. The arrays' names, and
 * what each kind of case asks, are those in tests/shim/compare_frameworks.
 */
final class Answers {

    /** A case's arrays, and where its answers go, by name. */
    record Case(NDManager manager, String name, Map<String, NDArray> arrays, NDList answers) {

        boolean has(String array) {
            return arrays.containsKey(array);
        }

        NDArray get(String array) {
            return arrays.get(array);
        }

        int integer(String scalar) {
            return get(scalar).toArray()[0].intValue();
        }

        void answer(String what, NDArray array) {
            NDArray plain = array.stopGradient();
            plain.setName(name + "." + what);
            answers.add(plain);
        }

        /** The output, as an answer. */
        void call(Block layer, NDList inputs) {
            NDList output = layer.forward(new ParameterStore(manager, false), inputs, false);
            answer("output", output.head());
        }

        /** The output, and the gradients in the case's direction, as answers. */
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
                answer("output", output);
            }
            for (String input : withRespectTo) {
                answer("gradient_" + input, get(input).getGradient());
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
                int dot = array.getName().lastIndexOf('.');
                cases.computeIfAbsent(
                                array.getName().substring(0, dot), each -> new LinkedHashMap<>())
                        .put(array.getName().substring(dot + 1), array);
            }
            cases.forEach(
                    (name, arrays) -> {
                        String[] parts = name.split("\\.");
                        answer(parts[0], new Case(manager, parts[1], arrays, answers));
                    });
            answers.encode(out, NDList.Encoding.NPZ);
        }
    }

    private static void answer(String kind, Case asked) {
        switch (kind) {
            case "attention" -> AnswersOfAttention.attention(asked);
            case "alibi" -> AnswersOfAttention.alibi(asked);
            case "relative" -> AnswersOfAttention.relative(asked);
            case "rotary" -> rotary(asked);
            case "encoding" -> encoding(asked);
            default -> throw new IllegalArgumentException(kind);
        }
    }

    private static void rotary(Case asked) {
        NDArray X = asked.get("X");
        RotaryEncoding.Layout layout =
                asked.integer("halves") == 0
                        ? RotaryEncoding.Layout.INTERLEAVED
                        : RotaryEncoding.Layout.HALVES;
        int width = (int) X.getShape().getLastDimension();
        int maxLen = asked.integer("max_len");
        RotaryEncoding layer = new RotaryEncoding(width, maxLen, 10000, layout, 1);
        asked.call(layer, new NDList(X, asked.get("offset")), null, "X");
    }

    private static void encoding(Case asked) {
        NDArray X = asked.get("X");
        int maxLen = (int) X.getShape().get(1);
        int numHiddens = (int) X.getShape().getLastDimension();
        asked.call(new PositionalEncoding(numHiddens, 0, maxLen), new NDList(X));
    }
}
