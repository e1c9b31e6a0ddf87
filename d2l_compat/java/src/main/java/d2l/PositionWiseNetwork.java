package d2l;

import static d2l.MultiHeadAttention.project;
import static d2l.MultiHeadAttention.projection;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Activation;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;

/**
 * The network of a {@link TransformerBlock}, the same at each position: W_2 f(W_1 x), or with
 * SwiGLU W_2 (silu(W_gate x) * W_1 x), each with its biases.
 *
 * <p>Input: X, floating point, shape (..., numHiddens). Output: an array of X's shape and dtype.
 */
public final class PositionWiseNetwork extends AbstractBlock {

    /** The layer of the gates; null without SwiGLU. */
    public final Linear gate;

    public final Linear dense1;
    public final Linear dense2;

    private final TransformerBlock.Activation activation;
    private final int ffnNumHiddens;

    PositionWiseNetwork(TransformerBlock.Builder options) {
        activation = options.activation;
        ffnNumHiddens = options.ffnNumHiddens;
        gate =
                activation == TransformerBlock.Activation.SWIGLU
                        ? addChildBlock("gate", projection(ffnNumHiddens, options.bias))
                        : null;
        dense1 = addChildBlock("dense1", projection(ffnNumHiddens, options.bias));
        dense2 = addChildBlock("dense2", projection(options.numHiddens, options.bias));
    }

    @Override
    protected void initializeChildBlocks(
            NDManager manager, DataType dataType, Shape... inputShapes) {
        if (gate != null) {
            gate.initialize(manager, dataType, inputShapes);
        }
        dense1.initialize(manager, dataType, inputShapes);
        dense2.initialize(manager, dataType, new Shape(1, ffnNumHiddens));
    }

    @Override
    protected NDList forwardInternal(
            ParameterStore parameterStore,
            NDList inputs,
            boolean training,
            PairList<String, Object> params) {
        NDArray X = inputs.singletonOrThrow();
        NDArray hidden = project(dense1, X, parameterStore, training);
        NDArray activated =
                switch (activation) {
                    case RELU -> Activation.relu(hidden);
                    case GELU -> Activation.gelu(hidden);
                    case SWIGLU -> {
                        NDArray gates = project(gate, X, parameterStore, training);
                        yield hidden.mul(gates).mul(Activation.sigmoid(gates));
                    }
                };
        return new NDList(project(dense2, activated, parameterStore, training));
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
        return inputShapes;
    }
}
