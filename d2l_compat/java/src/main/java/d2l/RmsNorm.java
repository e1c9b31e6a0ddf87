package d2l;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.training.ParameterStore;
import ai.djl.training.initializer.Initializer;
import ai.djl.util.PairList;

/**
 * Divides each vector by its root mean square, and scales it: Zhang and Sennrich (2019).
 *
 * <p>Input: X, floating point, shape (..., numHiddens). Output: an array of X's shape and dtype.
 */
public final class RmsNorm extends AbstractBlock {

    private final Parameter gamma;
    private final float epsilon;

    /** Makes the layer; {@code epsilon} is added to the mean square. */
    RmsNorm(int numHiddens, float epsilon) {
        this.epsilon = epsilon;
        gamma =
                addParameter(
                        Parameter.builder()
                                .setName("gamma")
                                .setType(Parameter.Type.GAMMA)
                                .optInitializer(Initializer.ONES)
                                .optShape(new Shape(numHiddens))
                                .build());
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray X = inputs.singletonOrThrow();
        NDArray meanSquare = X.square().mean(new int[] {-1}, true);
        NDArray scale = parameterStore.getValue(gamma, X.getDevice(), training);
        return new NDList(X.div(meanSquare.add(epsilon).sqrt()).mul(scale));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}
