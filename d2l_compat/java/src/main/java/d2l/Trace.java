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
 * Records the products that are computed from an array, and which of them need which.
 *
 * <p>{@link #watch} gives a stand-in for an array. It passes every call on to the array itself, and
 * what comes back is again a stand-in, which knows the products it was made from. So a layer can be
 * watched as it is, DJL's own included, where its products are matrix products ({@code matMul},
 * {@code batchMatMul}, {@code dot}), linear layers or convolutions. Nothing else is counted.
 *
 * <p>Two things fail, rather than go unseen: an operation between an array and a stand-in that is
 * called on the array, not on the stand-in; and recurrent layers, transposed convolutions and
 * {@code batchDot}, whose products cannot be counted here.
 */
public final class Trace {

    /** Each number of the result is a sum of {@code terms} products; {@code needs} came before. */
    public record Product(String name, long resultSize, long terms, List<Product> needs) {

        /** One addition goes with each multiplication. */
        public long multiplyAdds() {
            return resultSize * terms;
        }

        // Two products may have equal parts, and are two all the same.
        @Override
        public boolean equals(Object other) {
            return this == other;
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(this);
        }
    }

    // How a product's number of terms is known from the arrays that are multiplied.
    private static final Map<String, Terms> PRODUCTS =
            Map.of(
                    "matMul", (left, right) -> left.getShape().getLastDimension(),
                    "batchMatMul", (left, right) -> left.getShape().getLastDimension(),
                    "dot", (left, right) -> left.getShape().getLastDimension(),
                    "linear", (input, weight) -> weight.getShape().getLastDimension(),
                    "convolution", (input, weight) -> weight.size() / weight.getShape().get(0));

    private static final Set<String> UNCOUNTED =
            Set.of("rnn", "gru", "lstm", "deconvolution", "batchDot");

    private final List<Product> products = new ArrayList<>();

    /** A stand-in for the array. */
    public NDArray watch(NDArray array) {
        return standIn(NDArray.class, array, List.of());
    }

    /** All products so far, in the order in which they were computed. */
    public List<Product> products() {
        return Collections.unmodifiableList(products);
    }

    /** The products that an array was made from, those before them not counted. */
    public static List<Product> madeFrom(NDArray array) {
        return array instanceof Proxy
                        && Proxy.getInvocationHandler(array) instanceof StandIn standIn
                ? standIn.from
                : List.of();
    }

    private <T> T standIn(Class<T> face, Object real, List<Product> from) {
        ClassLoader loader = Trace.class.getClassLoader();
        return face.cast(
                Proxy.newProxyInstance(loader, new Class<?>[] {face}, new StandIn(real, from)));
    }

    private interface Terms {
        long of(NDArray left, NDArray right);
    }

    private final class StandIn implements InvocationHandler {

        private final Object real;
        private final List<Product> from;

        StandIn(Object real, List<Product> from) {
            this.real = real;
            this.from = from;
        }

        @Override
        public Object invoke(Object self, Method method, Object[] given) throws Throwable {
            Object[] arguments = given == null ? new Object[0] : given;
            if (Buffer.class.isAssignableFrom(method.getReturnType())) {
                // An array that met a stand-in asks for its numbers, to make a copy.
                throw new IllegalStateException("Trace: call the operation on the stand-in");
            }
            if (UNCOUNTED.contains(method.getName())) {
                throw new UnsupportedOperationException("Trace: cannot count " + method.getName());
            }
            Set<Product> needs = Collections.newSetFromMap(new IdentityHashMap<>());
            Object[] plain = Stream.of(arguments).map(argument -> plain(argument, needs)).toArray();
            needs.addAll(from);
            Object result;
            try {
                result = method.invoke(real, plain);
            } catch (InvocationTargetException thrown) {
                throw thrown.getCause();
            }
            List<Product> made = List.copyOf(needs);
            Terms terms = PRODUCTS.get(method.getName());
            if (terms != null) {
                // matMul(right) of an array; linear(input, weight, ...) of its inner workings.
                boolean isArray = real instanceof NDArray;
                NDArray left = (NDArray) (isArray ? real : plain[0]);
                NDArray right = (NDArray) plain[isArray ? 0 : 1];
                NDArray first = result instanceof NDList list ? list.head() : (NDArray) result;
                long number = terms.of(left, right);
                Product product = new Product(method.getName(), first.size(), number, made);
                products.add(product);
                made = List.of(product);
            }
            return wrapped(result, made);
        }

        private Object plain(Object argument, Set<Product> needs) {
            if (argument instanceof NDList list) {
                return new NDList(list.stream().map(each -> (NDArray) plain(each, needs)).toList());
            }
            if (argument instanceof Proxy
                    && Proxy.getInvocationHandler(argument) instanceof StandIn other) {
                needs.addAll(other.from);
                return other.real;
            }
            return argument;
        }

        private Object wrapped(Object result, List<Product> made) {
            if (result instanceof NDArray array) {
                return standIn(NDArray.class, array, made);
            }
            if (result instanceof NDArrayEx inner) {
                return standIn(NDArrayEx.class, inner, made);
            }
            if (result instanceof NDList list) {
                return new NDList(
                        list.stream().map(each -> (NDArray) wrapped(each, made)).toList());
            }
            return result;
        }
    }
}
