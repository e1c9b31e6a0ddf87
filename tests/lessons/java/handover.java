/**
 * Hands the values of a notebook's kernel to the claims, which are in Python: as JSON, with arrays in
 * base64. Values that JSON cannot represent stay here, under a number.
 */
class Handover {
    /** The values that the cells have set, by cell and variable, and the values that stay here. */
    static final Map<String, Object> stored = new HashMap<>();
    /** NumPy's names of types; all integers are handed over as the widest type. */
    private static final Map<DataType, String> TYPES =
            Map.of(DataType.BOOLEAN, "?", DataType.FLOAT32, "f4", DataType.FLOAT64, "f8");
    private static final Map<Object, String> numbers = new IdentityHashMap<>();
    private static final List<Object> figures = new ArrayList<>();

    /** Stores a cell's values and its last figures; earlier figures are the same cell's in another language. */
    static void store(String cell, int numFigures, Object... namesAndValues) {
        for (int i = 0; i < namesAndValues.length; i += 2) {
            stored.put(cell + "/" + namesAndValues[i], namesAndValues[i + 1]);
        }
        var ownFigures = figures.subList(figures.size() - numFigures, figures.size());
        stored.put(cell + "/figures", List.copyOf(ownFigures));
        figures.clear();
    }

    /** Records the figures that are shown from now on. */
    @SuppressWarnings("unchecked")
    static void recordFigures() throws ReflectiveOperationException {
        var field = Figure.class.getDeclaredField("display");
        field.setAccessible(true);
        var display = (Consumer<Object>) field.get(null);
        field.set(null, (Consumer<Object>) figure -> {
            figures.add(figure);
            display.accept(figure);
        });
    }

    static void write(String file, Object value) throws Exception {
        java.nio.file.Files.writeString(java.nio.file.Path.of(file), toJson(value));
    }

    static NDArray createArray(String type, String bytes, long... shape) {
        var buffer = java.nio.ByteBuffer.wrap(Base64.getDecoder().decode(bytes));
        buffer.order(java.nio.ByteOrder.LITTLE_ENDIAN);
        return manager.create(buffer, new Shape(shape), DataType.valueOf(type));
    }

    /** Returns the parameters of a block, in order. */
    static List<NDArray> listParameters(ai.djl.nn.Block block) {
        return block.getParameters().values().stream().map(each -> each.getArray()).toList();
    }

    static String toJson(Object value) throws ReflectiveOperationException {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            return String.valueOf(value);
        }
        if (value instanceof String || value instanceof Character || value instanceof Enum) {
            return quote(value.toString());
        }
        if (value instanceof Class<?> type) {
            return quote(type.getSimpleName());
        }
        if (value instanceof NDArray array) {
            return encodeArray(array);
        }
        if (value instanceof Map<?, ?> map) {
            var pairs = new ArrayList<Object>();
            map.forEach((key, item) -> pairs.add(Arrays.asList(key, item)));
            return "{\"map\": " + toJson(pairs) + "}";
        }
        if (value instanceof Iterable<?> all) {
            var items = new ArrayList<String>();
            for (var each : all) {
                items.add(toJson(each));
            }
            return items.toString();
        }
        if (value.getClass().isArray()) {
            var items = new ArrayList<Object>();
            for (int i = 0; i < java.lang.reflect.Array.getLength(value); i++) {
                items.add(java.lang.reflect.Array.get(value, i));
            }
            return toJson(items);
        }
        if (value instanceof Record || value instanceof Figure) {
            return "{\"class\": " + quote(value.getClass().getSimpleName())
                    + ", \"fields\": " + toJson(readFields(value)) + "}";
        }
        var number = numbers.computeIfAbsent(value, each -> String.valueOf(numbers.size()));
        stored.put(number, value);
        // A function's own class has no name that code could use.
        Class<?> type = value.getClass();
        type = type.isSynthetic() ? type.getInterfaces()[0] : type;
        return "{\"number\": " + quote(number) + ", \"class\": " + quote(nameInCode(type)) + "}";
    }

    /** Returns the name that code uses; a class of a cell may be nested in another one. */
    private static String nameInCode(Class<?> type) {
        var name = type.getCanonicalName(); // JShell puts each cell's classes into a class in the package REPL
        var isOfCell = name != null && name.startsWith("REPL.");
        return isOfCell ? name.replaceFirst("REPL\\.[^.]*\\.", "") : type.getSimpleName();
    }

    private static String quote(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    private static String encodeArray(NDArray array) {
        var type = array.getDataType();
        var values = array.toType(DataType.FLOAT64, true).toDoubleArray();
        var buffer = java.nio.ByteBuffer.allocate(8 * values.length);
        buffer.order(java.nio.ByteOrder.LITTLE_ENDIAN);
        buffer.asDoubleBuffer().put(values);
        return "{\"array\": \"" + Base64.getEncoder().encodeToString(buffer.array())
                + "\", \"shape\": " + Arrays.toString(array.getShape().getShape())
                + ", \"type\": " + quote(TYPES.getOrDefault(type, "i8")) + "}";
    }

    private static Map<String, Object> readFields(Object value) throws ReflectiveOperationException {
        var found = new LinkedHashMap<String, Object>();
        for (Class<?> type = value.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (var field : type.getDeclaredFields()) {
                if (!java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    found.put(field.getName(), field.get(value));
                }
            }
        }
        return found;
    }
}
