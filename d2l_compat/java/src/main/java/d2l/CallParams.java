package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.util.PairList;

import java.util.List;

/** Reads the {@code params} of a call, of which null and an entry that is null mean none. */
final class CallParams {

    private CallParams() {}

    /** Checks that there are no other names, since an entry that is ignored would go unnoticed. */
    static void checkNames(PairList<String, Object> params, String... names) {
        for (String name : params == null ? List.<String>of() : params.keys()) {
            if (!List.of(names).contains(name)) {
                String need = names.length == 0 ? "none" : "one of " + String.join(", ", names);
                throw Checks.error("params", name, need);
            }
        }
    }

    /** Returns an entry, or null. */
    static <T> T get(PairList<String, Object> params, String name, Class<T> type, String need) {
        Object value = params == null ? null : params.get(name);
        return value == null ? null : Checks.instance(name, value, type, need);
    }

    /** Returns an entry that is an array, or null. */
    static NDArray getArray(PairList<String, Object> params, String name) {
        return get(params, name, NDArray.class, "an NDArray");
    }

    /** Returns the entries with these names. */
    static PairList<String, Object> select(PairList<String, Object> params, String... names) {
        PairList<String, Object> selected = new PairList<>();
        for (String name : names) {
            Object value = params == null ? null : params.get(name);
            if (value != null) {
                selected.add(name, value);
            }
        }
        return selected;
    }
}
