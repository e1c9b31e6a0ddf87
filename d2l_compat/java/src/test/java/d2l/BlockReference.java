package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;

import java.util.Arrays;
import java.util.function.DoubleUnaryOperator;
import java.util.function.UnaryOperator;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/**
 * A Transformer block for one text without padding, written as loops in double precision, with the
 * weights of a {@link TransformerBlock}.
 */
record BlockReference(TransformerBlock block, TransformerBlock.Builder options) {

    /** The bias of a score, by head, query and key. */
    interface Bias {
        double get(int head, int query, int key);
    }

    /** Returns the rows of an array of shape (steps, features). */
    static double[][] rows(NDArray X) {
        return IntStream.range(0, (int) X.getShape().get(0))
                .mapToObj(i -> X.get(i).toDoubleArray())
                .toArray(double[][]::new);
    }

    static double[] flatten(double[][] rows) {
        return Arrays.stream(rows).flatMapToDouble(Arrays::stream).toArray();
    }

    /** Returns the block's output, (steps, features); {@code memory} may be null. */
    double[][] compute(double[][] X, double[][] memory, Bias scoreBias) {
        double[][] hidden = add(X, block.norm1, Y -> attend(Y, scoreBias));
        if (memory != null) {
            hidden = add(hidden, block.norm2, Y -> read(Y, memory));
        }
        return add(hidden, block.norm3, this::feed);
    }

    private double[][] add(double[][] X, Block norm, UnaryOperator<double[][]> layer) {
        double[][] Y = layer.apply(options.normFirst ? normalize(norm, X) : X);
        double[][] sum = new double[X.length][];
        for (int i = 0; i < X.length; i++) {
            double[] x = X[i];
            double[] y = Y[i];
            sum[i] = IntStream.range(0, x.length).mapToDouble(c -> x[c] + y[c]).toArray();
        }
        return options.normFirst ? sum : normalize(norm, sum);
    }

    double[][] normalize(Block norm, double[][] X) {
        return Arrays.stream(X).map(x -> normalize(norm, x)).toArray(double[][]::new);
    }

    private double[] normalize(Block norm, double[] x) {
        double[] gamma = norm.getDirectParameters().get("gamma").getArray().toDoubleArray();
        boolean isRms = options.norm == TransformerBlock.Norm.RMS;
        double[] beta =
                isRms
                        ? new double[x.length]
                        : norm.getDirectParameters().get("beta").getArray().toDoubleArray();
        double mean = isRms ? 0 : DoubleStream.of(x).average().orElseThrow();
        double sum = DoubleStream.of(x).map(each -> (each - mean) * (each - mean)).sum();
        double root = Math.sqrt(sum / x.length + options.normEpsilon);
        return IntStream.range(0, x.length)
                .mapToDouble(c -> (x[c] - mean) / root * gamma[c] + beta[c])
                .toArray();
    }

    private static double[][] project(Linear layer, double[][] X) {
        return Arrays.stream(X).map(x -> LayersTest.project(layer, x)).toArray(double[][]::new);
    }

    private double[][] attend(double[][] X, Bias scoreBias) {
        SelfAttention layer = block.attention;
        double[][] q = project(layer.W_q, X);
        double[][] k = project(layer.W_k, X);
        if (options.positions == TransformerBlock.Positions.ROPE) {
            rotate(q);
            rotate(k);
        }
        Bias bias = (head, i, j) -> scoreBias.get(head, i, j) + bias(head, i, j);
        return project(layer.W_o, pool(q, k, project(layer.W_v, X), bias));
    }

    private double[][] read(double[][] X, double[][] memory) {
        MultiHeadAttention layer = block.crossAttention;
        double[][] q = project(layer.W_q, X);
        double[][] k = project(layer.W_k, memory);
        double[][] v = project(layer.W_v, memory);
        return project(layer.W_o, pool(q, k, v, (head, i, j) -> 0));
    }

    /** Rotates the pairs of each head's features by the position. */
    private void rotate(double[][] X) {
        int size = options.numHiddens / options.numHeads;
        for (int i = 0; i < X.length; i++) {
            for (int c = 0; c < X[i].length; c += 2) {
                double angle = i * Math.pow(10000, -(c % size) / (double) size);
                double x = X[i][c];
                double y = X[i][c + 1];
                X[i][c] = x * Math.cos(angle) - y * Math.sin(angle);
                X[i][c + 1] = x * Math.sin(angle) + y * Math.cos(angle);
            }
        }
    }

    /** Returns ALiBi's bias, or minus infinity for hidden keys. */
    private double bias(int head, int i, int j) {
        boolean isInWindow =
                options.window == null || i - j < options.window || j < options.numSinks;
        if ((options.causal && j > i) || !isInWindow) {
            return Double.NEGATIVE_INFINITY;
        }
        boolean hasAlibi = options.positions == TransformerBlock.Positions.ALIBI;
        double slope = Math.pow(2, -8.0 * (head + 1) / options.numHeads);
        return hasAlibi ? -slope * Math.abs(i - j) : 0;
    }

    private double[][] pool(double[][] q, double[][] k, double[][] v, Bias bias) {
        int size = options.numHiddens / options.numHeads;
        int group = q[0].length / k[0].length; // heads of queries for each head of keys
        double[][] pooled = new double[q.length][q[0].length];
        for (int head = 0; head < options.numHeads; head++) {
            int start = head / group * size;
            for (int i = 0; i < q.length; i++) {
                double total = 0;
                double[] sum = new double[size];
                for (int j = 0; j < k.length; j++) {
                    double score = 0;
                    for (int c = 0; c < size; c++) {
                        score += q[i][head * size + c] * k[j][start + c];
                    }
                    double weight = Math.exp(score / Math.sqrt(size) + bias.get(head, i, j));
                    total += weight;
                    for (int c = 0; c < size; c++) {
                        sum[c] += weight * v[j][start + c];
                    }
                }
                for (int c = 0; c < size; c++) {
                    pooled[i][head * size + c] = sum[c] / total;
                }
            }
        }
        return pooled;
    }

    private double[][] feed(double[][] X) {
        PositionWiseNetwork network = block.network;
        double[][] hidden = project(network.dense1, X);
        switch (options.activation) {
            case RELU -> replace(hidden, x -> Math.max(x, 0));
            case GELU -> replace(hidden, x -> x * (1 + erf(x / Math.sqrt(2))) / 2);
            case SWIGLU -> {
                double[][] gates = project(network.gate, X);
                replace(gates, x -> x / (1 + Math.exp(-x)));
                for (int i = 0; i < hidden.length; i++) {
                    double[] gate = gates[i];
                    double[] row = hidden[i];
                    Arrays.setAll(row, c -> row[c] * gate[c]);
                }
            }
        }
        return project(network.dense2, hidden);
    }

    private static void replace(double[][] X, DoubleUnaryOperator function) {
        for (double[] x : X) {
            Arrays.setAll(x, c -> function.applyAsDouble(x[c]));
        }
    }

    /** Returns the error function by a series whose terms have the sign of x. */
    private static double erf(double x) {
        double term = 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * x;
        double sum = 0;
        for (int n = 1; sum + term != sum; n++) {
            sum += term;
            term *= 2 * x * x / (2 * n + 1);
        }
        return sum;
    }
}
