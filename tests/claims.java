// What the lessons' claims in Java are made of. It runs in the notebook's kernel before a lesson's
// first claims; it needs the imports and the ``manager`` of the lesson's first cell.

/** Fails in these words where it is not true. */
void claim(String sentence, boolean isTrue) {
    if (!isTrue) {
        throw new AssertionError(sentence);
    }
}

/** The numbers of a text, in their order. */
double[] numbersIn(String text) {
    return java.util.regex.Pattern.compile("(?<![\\w.])-?\\d[\\d,]*(?:\\.\\d+)?(?:e[-+]\\d+)?")
            .matcher(text)
            .results()
            .mapToDouble(found -> Double.parseDouble(found.group().replace(",", "")))
            .toArray();
}

/** Arithmetic in double precision and plain Java, to compare with. */
class Plain {
    static double[][] of(int rows, int columns, DoubleBinaryOperator number) {
        var made = new double[rows][columns];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                made[i][j] = number.applyAsDouble(i, j);
            }
        }
        return made;
    }

    /** An array's rows, whatever is around them. */
    static double[][] rows(NDArray X) {
        int width = (int) X.getShape().getLastDimension();
        var numbers = X.toType(DataType.FLOAT64, true).toDoubleArray();
        return IntStream.range(0, numbers.length / width)
                .mapToObj(i -> Arrays.copyOfRange(numbers, i * width, (i + 1) * width))
                .toArray(double[][]::new);
    }

    /** The first of them. */
    static double[] row(NDArray X) {
        return rows(X)[0];
    }

    /** Of whole numbers. */
    static long[][] wholeRows(NDArray X) {
        return Stream.of(rows(X))
                .map(row -> DoubleStream.of(row).mapToLong(each -> (long) each).toArray())
                .toArray(long[][]::new);
    }

    static NDArray array(double[][] rows) {
        return manager.create(flat(rows), new Shape(rows.length, rows[0].length))
                .toType(DataType.FLOAT32, false);
    }

    static double[] flat(double[][] rows) {
        return Stream.of(rows).flatMapToDouble(DoubleStream::of).toArray();
    }

    static double[][] drawn(int rows, int columns, int seed) {
        var random = new Random(seed);
        return of(rows, columns, (i, j) -> random.nextGaussian());
    }

    static double[][] transposed(double[][] A) {
        return of(A[0].length, A.length, (i, j) -> A[(int) j][(int) i]);
    }

    static double[][] plus(double[][] A, double[][] B) {
        return of(A.length, A[0].length, (i, j) -> A[(int) i][(int) j] + B[(int) i][(int) j]);
    }

    static double[][] times(double[][] A, double[][] B) {
        var product = new double[A.length][B[0].length];
        for (int i = 0; i < A.length; i++) {
            var sums = product[i];
            for (int k = 0; k < B.length; k++) {
                double a = A[i][k];
                var row = B[k];
                for (int j = 0; j < row.length; j++) {
                    sums[j] += a * row[j];
                }
            }
        }
        return product;
    }

    static double[][] columns(double[][] A, int from, int to) {
        return Stream.of(A).map(row -> Arrays.copyOfRange(row, from, to)).toArray(double[][]::new);
    }

    /** In loops: no claim computes anything as often, and a stream is slow for so short a row. */
    static double[] softmax(double... scores) {
        double highest = Double.NEGATIVE_INFINITY, sum = 0;
        for (double score : scores) {
            highest = Math.max(highest, score);
        }
        var weights = new double[scores.length];
        for (int i = 0; i < scores.length; i++) {
            weights[i] = Math.exp(scores[i] - highest);
            sum += weights[i];
        }
        for (int i = 0; i < scores.length; i++) {
            weights[i] /= sum;
        }
        return weights;
    }

    static double[][] softmax(double[][] scores) {
        return Stream.of(scores).map(row -> softmax(row)).toArray(double[][]::new);
    }

    /** The norm of diag(w) - w w^T. */
    static double slope(double[] weights) {
        double square = 0;
        for (int i = 0; i < weights.length; i++) {
            for (int j = 0; j < weights.length; j++) {
                square += Math.pow(weights[i] * ((i == j ? 1 : 0) - weights[j]), 2);
            }
        }
        return Math.sqrt(square);
    }

    /** The first parameter of a block: of a linear one the weights, of an embedding the table. */
    static double[][] weights(Block block) {
        return rows(block.getParameters().get(0).getValue().getArray());
    }

    /** Without its bias. */
    static double[][] through(Block linear, double[][] X) {
        return times(X, transposed(weights(linear)));
    }

    /** With its bias. */
    static double[][] throughAll(Block linear, double[][] X) {
        var bias = rows(linear.getParameters().get(1).getValue().getArray())[0];
        var product = through(linear, X);
        return of(X.length, bias.length, (i, j) -> product[(int) i][(int) j] + bias[(int) j]);
    }

    /** Of a table, the vectors of these letters, digits or places. */
    static double[][] rowsAt(Block table, long... at) {
        var rows = weights(table);
        return LongStream.of(at).mapToObj(i -> rows[(int) i]).toArray(double[][]::new);
    }

    static double average(double[] weights, double[] y) {
        return IntStream.range(0, y.length).mapToDouble(j -> weights[j] * y[j]).sum();
    }

    static int highest(double[] row) {
        double most = DoubleStream.of(row).max().getAsDouble();
        return IntStream.range(0, row.length).filter(j -> row[j] == most).findFirst().getAsInt();
    }

    static double largest(double[][] A) {
        return DoubleStream.of(flat(A)).map(Math::abs).max().getAsDouble();
    }

    /** How far apart numbers are, at most; infinitely where there are not as many, or NaN. */
    static double apart(double[] a, double[] b) {
        if (a.length != b.length || DoubleStream.of(a).anyMatch(Double::isNaN)) {
            return Double.POSITIVE_INFINITY;
        }
        return IntStream.range(0, a.length).mapToDouble(i -> Math.abs(a[i] - b[i])).max().orElse(0);
    }

    static double apart(double[][] a, double[][] b) {
        return apart(flat(a), flat(b));
    }

    static double apart(NDArray found, double[]... expected) {
        return apart(rows(found), expected);
    }

    static double mean(double[] numbers) {
        return DoubleStream.of(numbers).average().getAsDouble();
    }

    static double median(double[] numbers) {
        var sorted = DoubleStream.of(numbers).sorted().toArray();
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    static double spread(double[] numbers) {
        double mean = mean(numbers);
        return Math.sqrt(mean(DoubleStream.of(numbers).map(x -> Math.pow(x - mean, 2)).toArray()));
    }

    static double norm(double[][] A) {
        return Math.sqrt(DoubleStream.of(flat(A)).map(x -> x * x).sum());
    }

    /** The mean of the largest number of each row. */
    static double peak(double[][] A) {
        var peaks = Stream.of(A).mapToDouble(row -> DoubleStream.of(row).max().getAsDouble());
        return mean(peaks.toArray());
    }
}

/** Whether these are the numbers that are shown, as they are rounded to so many digits. */
boolean isShown(String text, int digits, double... expected) {
    return Plain.apart(numbersIn(text), expected) <= 0.51 * Math.pow(10, -digits);
}
