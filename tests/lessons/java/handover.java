/**
 * Hands the values of a notebook's kernel to the claims, which are in Python: as JSON, with arrays in
 * base64. What JSON has no form for stays here, under a number.
 */
class Handover {
    /** What the cells have left behind, by the cell's name and the variable's. */
    static final Map<String, Object> kept = new HashMap<>();
    /** NumPy's names; whole numbers are all handed over as the widest. */
    private static final Map<DataType, String> TYPES =
            Map.of(DataType.BOOLEAN, "?", DataType.FLOAT32, "f4", DataType.FLOAT64, "f8");
    private static final Map<Object, String> numbers = new IdentityHashMap<>();
    private static final List<Object> figures = new ArrayList<>();

    /** Of the figures the last ones are the cell's: others may come before, of the cell in another language. */
    static void keep(String cell, int numFigures, Object... namesAndValues) {
        for (int i = 0; i < namesAndValues.length; i += 2) {
            kept.put(cell + "/" + namesAndValues[i], namesAndValues[i + 1]);
        }
        var shown = figures.subList(figures.size() - numFigures, figures.size());
        kept.put(cell + "/figures", List.copyOf(shown));
        figures.clear();
    }

    /** From here on the figures that are shown are kept. */
    @SuppressWarnings("unchecked")
    static void watchFigures() throws ReflectiveOperationException {
        var field = Figure.class.getDeclaredField("display");
        field.setAccessible(true);
        var display = (Consumer<Object>) field.get(null);
        field.set(null, (Consumer<Object>) figure -> {
            figures.add(figure);
            display.accept(figure);
        });
    }

    static void write(String file, Object value) throws Exception {
        java.nio.file.Files.writeString(java.nio.file.Path.of(file), json(value));
    }

    static NDArray array(String type, String bytes, long... shape) {
        var buffer = java.nio.ByteBuffer.wrap(Base64.getDecoder().decode(bytes));
        buffer.order(java.nio.ByteOrder.LITTLE_ENDIAN);
        return manager.create(buffer, new Shape(shape), DataType.valueOf(type));
    }

    /** The parameters of a block, in their order. */
    static List<NDArray> parameters(ai.djl.nn.Block block) {
        return block.getParameters().values().stream().map(each -> each.getArray()).toList();
    }

    static String json(Object value) throws ReflectiveOperationException {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            return String.valueOf(value);
        }
        if (value instanceof String || value instanceof Character || value instanceof Enum) {
            return quoted(value.toString());
        }
        if (value instanceof Class<?> type) {
            return quoted(type.getSimpleName());
        }
        if (value instanceof NDArray array) {
            return array(array);
        }
        if (value instanceof Map<?, ?> map) {
            var pairs = new ArrayList<Object>();
            map.forEach((key, of) -> pairs.add(Arrays.asList(key, of)));
            return "{\"map\": " + json(pairs) + "}";
        }
        if (value instanceof Iterable<?> all) {
            var items = new ArrayList<String>();
            for (var each : all) {
                items.add(json(each));
            }
            return items.toString();
        }
        if (value.getClass().isArray()) {
            var items = new ArrayList<Object>();
            for (int i = 0; i < java.lang.reflect.Array.getLength(value); i++) {
                items.add(java.lang.reflect.Array.get(value, i));
            }
            return json(items);
        }
        if (value instanceof Record || value instanceof Figure) {
            return "{\"of\": " + quoted(value.getClass().getSimpleName())
                    + ", \"fields\": " + json(fields(value)) + "}";
        }
        var number = numbers.computeIfAbsent(value, each -> String.valueOf(numbers.size()));
        kept.put(number, value);
        // A function's own class has no name that code could use.
        Class<?> type = value.getClass();
        type = type.isSynthetic() ? type.getInterfaces()[0] : type;
        return "{\"kept\": " + quoted(number) + ", \"of\": " + quoted(type.getSimpleName()) + "}";
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    private static String array(NDArray array) {
        var type = array.getDataType();
        var numbers = array.toType(DataType.FLOAT64, true).toDoubleArray();
        var buffer = java.nio.ByteBuffer.allocate(8 * numbers.length);
        buffer.order(java.nio.ByteOrder.LITTLE_ENDIAN);
        buffer.asDoubleBuffer().put(numbers);
        return "{\"array\": \"" + Base64.getEncoder().encodeToString(buffer.array())
                + "\", \"shape\": " + Arrays.toString(array.getShape().getShape())
                + ", \"type\": " + quoted(TYPES.getOrDefault(type, "i8")) + "}";
    }

    private static Map<String, Object> fields(Object value) throws ReflectiveOperationException {
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
