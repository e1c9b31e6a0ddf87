package d2l;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * What the layers answer to arrays from a file, so that they can be held to the reference the
 * Python frameworks are held to: {@code java d2l.Answers IN.npz OUT.npz}.
 */
final class Answers {

    private Answers() {}

    public static void main(String[] files) throws IOException {
        try (NDManager manager = NDManager.newBaseManager();
                InputStream in = Files.newInputStream(Path.of(files[0]));
                OutputStream out = Files.newOutputStream(Path.of(files[1]))) {
            Map<String, NDArray> given =
                    NDList.decode(manager, in).stream()
                            .collect(Collectors.toMap(NDArray::getName, Function.identity()));
            NDList answers = multiHead(manager, given);
            answers.add(encoding(manager, given));
            answers.encode(out, NDList.Encoding.NPZ);
        }
    }

    private static NDList multiHead(NDManager manager, Map<String, NDArray> given) {
        NDArray queries = given.get("queries");
        NDArray keys = given.get("keys");
        NDArray values = given.get("values");
        MultiHeadAttention layer =
                new MultiHeadAttention(
                        width(keys),
                        width(queries),
                        width(values),
                        width(given.get("W_o")),
                        integer(given.get("num_heads")),
                        0,
                        true);
        layer.initialize(
                manager,
                queries.getDataType(),
                queries.getShape(),
                keys.getShape(),
                values.getShape());
        Map<String, Linear> projections =
                Map.of("q", layer.W_q, "k", layer.W_k, "v", layer.W_v, "o", layer.W_o);
        projections.forEach(
                (role, projection) -> {
                    // DJL's are (outputs, inputs).
                    load(projection, "weight", given.get("W_" + role).transpose());
                    load(projection, "bias", given.get("b_" + role));
                });
        NDList inputs = new NDList(queries, keys, values);
        inputs.forEach(input -> input.setRequiresGradient(true));
        NDList all = new NDList(inputs);
        if (given.containsKey("valid_lens")) {
            all.add(given.get("valid_lens"));
        }
        NDArray output;
        try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
            output = layer.forward(new ParameterStore(manager, false), all, false).head();
            collector.backward(output.mul(given.get("direction")).sum());
        }
        return new NDList(
                named("output", output),
                named("weights", layer.attentionWeights()),
                named("gradient_queries", queries.getGradient()),
                named("gradient_keys", keys.getGradient()),
                named("gradient_values", values.getGradient()));
    }

    private static void load(Linear projection, String name, NDArray array) {
        array.copyTo(projection.getDirectParameters().get(name).getArray());
    }

    private static NDArray encoding(NDManager manager, Map<String, NDArray> given) {
        int numHiddens = integer(given.get("num_hiddens_of_P"));
        int maxLen = integer(given.get("max_len"));
        DataType type = given.get("queries").getDataType();
        NDArray zeros = manager.zeros(new Shape(1, maxLen, numHiddens), type);
        PositionalEncoding layer = new PositionalEncoding(numHiddens, 0, maxLen);
        ParameterStore none = new ParameterStore(manager, false);
        return named("P", layer.forward(none, new NDList(zeros), false).head());
    }

    private static int width(NDArray array) {
        return (int) array.getShape().getLastDimension();
    }

    private static int integer(NDArray scalar) {
        return scalar.toArray()[0].intValue();
    }

    private static NDArray named(String name, NDArray array) {
        NDArray plain = array.stopGradient();
        plain.setName(name);
        return plain;
    }
}
