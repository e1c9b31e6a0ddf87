package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * Counts a layer's multiplications, and the steps that have to follow one another.
 *
 * <p>Both are counted among the products that a {@link Trace} records.
 */
public final class Counting {

    private Counting() {}

    /**
     * Returns the length of the longest chain of matrix products and convolutions that {@code
     * layer} computes from {@code input}. In a chain, each needs the result of the previous one.
     */
    public static long longestChain(UnaryOperator<NDArray> layer, NDArray input) {
        try (NDManager scratch = input.getManager().newSubManager(input.getDevice())) {
            Trace trace = new Trace();
            NDArray output = layer.apply(trace.watch(copy(input, scratch)));
            Map<Trace.Product, Long> chainLengths = new HashMap<>();
            // In the order of computation, so that each product comes after those that it needs.
            for (Trace.Product product : trace.products()) {
                chainLengths.put(product, 1 + longest(product.sources(), chainLengths));
            }
            return longest(Trace.sources(output), chainLengths);
        }
    }

    private static long longest(
            List<Trace.Product> products, Map<Trace.Product, Long> chainLengths) {
        return products.stream().mapToLong(chainLengths::get).max().orElse(0);
    }

    /**
     * Returns how often {@code layer} multiplies two numbers and adds the product to a sum. Counted
     * are matrix products, convolutions and attention, from the shapes of their operands.
     */
    public static long multiplyAdds(UnaryOperator<NDArray> layer, NDArray input) {
        try (NDManager scratch = input.getManager().newSubManager(input.getDevice())) {
            Trace trace = new Trace();
            layer.apply(trace.watch(copy(input, scratch)));
            return trace.products().stream().mapToLong(Trace.Product::multiplyAdds).sum();
        }
    }

    /** Copies the input to {@code manager}, which then closes all that is computed from it. */
    private static NDArray copy(NDArray input, NDManager manager) {
        NDArray copy = input.duplicate();
        copy.attach(manager);
        return copy;
    }
}
