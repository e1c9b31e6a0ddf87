package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.internal.NDArrayEx;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.Buffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Records the products that are computed from an array, and how they depend on each other.
 *
 * <p>{@link #watch} returns a proxy of an array. The proxy forwards every call to the array, and
 * returns a proxy of the result, with the products from which it was computed. So any layer can be
 * watched, DJL's own included. Recorded are matrix products ({@code matMul}, {@code batchMatMul},
 * {@code dot}), linear layers and convolutions, and nothing else.
 *
 * <p>Two things raise an exception, since they would be missed: an operation between an array and a
 * proxy that is called on the array, not on the proxy; and recurrent layers, transposed
 * convolutions and {@code batchDot}, which cannot be counted here.
 */
public final class Trace {

    /**
     * A product, which needs the results of others.
     *
     * @param name the operation
     * @param resultSize how many numbers the result has
     * @param terms how many multiplications go into each number of the result
     * @param sources the products whose results this one uses without another product in between
     */
    public record Product(String name, long resultSize, long terms, List<Product> sources) {

        /** Returns the number of multiplications, each with an addition. */
        public long multiplyAdds() {
            return resultSize * terms;
        }

        // By identity: different products may have equal components.
        @Override
        public boolean equals(Object other) {
            return this == other;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(this);
        }
    }

    // The number of terms of each operation, from the arrays that it multiplies.
    private static final Map<String, TermCount> PRODUCTS =
            Map.of(
                    "matMul", (left, right) -> left.getShape().getLastDimension(),
                    "batchMatMul", (left, right) -> left.getShape().getLastDimension(),
                    "dot", (left, right) -> left.getShape().getLastDimension(),
                    "linear", (input, weight) -> weight.getShape().getLastDimension(),
                    "convolution", (input, weight) -> weight.size() / weight.getShape().get(0));

    private static final Set<String> UNCOUNTED =
            Set.of("rnn", "gru", "lstm", "deconvolution", "batchDot");

    private final List<Product> products = new ArrayList<>();

    /** Returns a proxy of the array. */
    public NDArray watch(NDArray array) {
        return proxy(NDArray.class, array, List.of());
    }

    /** Returns all products so far, in the order of their computation. */
    public List<Product> products() {
        return Collections.unmodifiableList(products);
    }

    /** Returns the products whose results an array uses without another product in between. */
    public static List<Product> sources(NDArray array) {
        if (array instanceof Proxy
                && Proxy.getInvocationHandler(array) instanceof Handler handler) {
            return handler.sources;
        }
        return List.of();
    }

    /** Returns the array that a proxy forwards to; an array that is no proxy is returned as it is. */
    static NDArray unwatch(NDArray array) {
        if (array instanceof Proxy
                && Proxy.getInvocationHandler(array) instanceof Handler handler) {
            return (NDArray) handler.target;
        }
        return array;
    }

    private <T> T proxy(Class<T> type, Object target, List<Product> sources) {
        ClassLoader loader = Trace.class.getClassLoader();
        Handler handler = new Handler(target, sources);
        return type.cast(Proxy.newProxyInstance(loader, new Class<?>[] {type}, handler));
    }

    private interface TermCount {
        long count(NDArray left, NDArray right);
    }

    private final class Handler implements InvocationHandler {

        private final Object target;
        private final List<Product> sources;

        Handler(Object target, List<Product> sources) {
            this.target = target;
            this.sources = sources;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
            if (Buffer.class.isAssignableFrom(method.getReturnType())) {
                // An operation called on an array copies the numbers of a proxy in its arguments.
                throw new IllegalStateException("Trace: call the operation on the watched array");
            }
            if (UNCOUNTED.contains(method.getName())) {
                throw new UnsupportedOperationException("Trace: cannot count " + method.getName());
            }
            Set<Product> allSources = Collections.newSetFromMap(new IdentityHashMap<>());
            Object[] unwrapped =
                    args == null
                            ? new Object[0]
                            : Stream.of(args).map(arg -> unwrap(arg, allSources)).toArray();
            allSources.addAll(sources);
            Object result;
            try {
                result = method.invoke(target, unwrapped);
            } catch (InvocationTargetException exception) {
                throw exception.getCause();
            }
            List<Product> resultSources = List.copyOf(allSources);
            TermCount terms = PRODUCTS.get(method.getName());
            if (terms != null) {
                // NDArray has matMul(right), NDArrayEx linear(input, weight, ...).
                boolean isArray = target instanceof NDArray;
                NDArray left = (NDArray) (isArray ? target : unwrapped[0]);
                NDArray right = (NDArray) unwrapped[isArray ? 0 : 1];
                NDArray output = result instanceof NDList list ? list.head() : (NDArray) result;
                long numTerms = terms.count(left, right);
                Product product =
                        new Product(method.getName(), output.size(), numTerms, resultSources);
                products.add(product);
                resultSources = List.of(product);
            }
            return wrap(result, resultSources);
        }

        private Object unwrap(Object argument, Set<Product> allSources) {
            if (argument instanceof NDList list) {
                return new NDList(
                        list.stream().map(each -> (NDArray) unwrap(each, allSources)).toList());
            }
            if (argument instanceof Proxy
                    && Proxy.getInvocationHandler(argument) instanceof Handler handler) {
                allSources.addAll(handler.sources);
                return handler.target;
            }
            return argument;
        }

        private Object wrap(Object result, List<Product> sources) {
            if (result instanceof NDArray array) {
                return proxy(NDArray.class, array, sources);
            }
            if (result instanceof NDArrayEx inner) {
                return proxy(NDArrayEx.class, inner, sources);
            }
            if (result instanceof NDList list) {
                return new NDList(
                        list.stream().map(each -> (NDArray) wrap(each, sources)).toList());
            }
            return result;
        }
    }
}
