package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * What a layer costs, whatever the machine: its multiplications, and the steps that must wait.
 *
 * <p>Counted is what is computed from the input, as far as a {@link Trace} can see it.
 */
public final class Counting {

    private Counting() {}

    /**
     * Of all products of matrices and convolutions that {@code layer} computes of {@code input},
     * those on the longest chain: each needs the result of the one before.
     */
    public static long longestChain(UnaryOperator<NDArray> layer, NDArray input) {
        try (NDManager scratch = input.getManager().newSubManager(input.getDevice())) {
            Trace trace = new Trace();
            NDArray output = layer.apply(trace.watch(copy(input, scratch)));
            Map<Trace.Product, Long> chains = new HashMap<>();
            // In the order in which they were computed: what one needs is there before it.
            for (Trace.Product product : trace.products()) {
                chains.put(product, 1 + longest(product.needs(), chains));
            }
            return longest(Trace.madeFrom(output), chains);
        }
    }

    private static long longest(List<Trace.Product> products, Map<Trace.Product, Long> chains) {
        return products.stream().mapToLong(chains::get).max().orElse(0);
    }

    /**
     * How often {@code layer} multiplies two numbers and adds the product to a sum: in products of
     * matrices, convolutions and attention, from the shapes of all that is multiplied.
     */
    public static long multiplyAdds(UnaryOperator<NDArray> layer, NDArray input) {
        try (NDManager scratch = input.getManager().newSubManager(input.getDevice())) {
            Trace trace = new Trace();
            layer.apply(trace.watch(copy(input, scratch)));
            return trace.products().stream().mapToLong(Trace.Product::multiplyAdds).sum();
        }
    }

    /** What is computed from the copy goes with its manager. */
    private static NDArray copy(NDArray input, NDManager manager) {
        NDArray copy = input.duplicate();
        copy.attach(manager);
        return copy;
    }
}
