package d2l;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.training.ParameterStore;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;

import java.nio.ByteBuffer;

/** The base class of tests of layers: a manager that is closed after each test, and helpers. */
abstract class ArrayTestBase {

    NDManager manager;

    @BeforeEach
    void open() {
        Engine.getInstance().setRandomSeed(0);
        manager = NDManager.newBaseManager();
    }

    @AfterEach
    void close() {
        manager.close();
    }

    NDArray random(long... shape) {
        return manager.randomNormal(new Shape(shape)).toType(DataType.FLOAT64, false);
    }

    NDArray call(Block layer, boolean training, NDArray... inputs) {
        return layer.forward(new ParameterStore(manager, false), new NDList(inputs), training)
                .head();
    }

    NDArray call(Block layer, NDArray... inputs) {
        return call(layer, false, inputs);
    }

    <B extends Block> B initialize(B layer, NDArray... inputs) {
        layer.initialize(manager, inputs[0].getDataType(), new NDList(inputs).getShapes());
        return layer;
    }

    static void assertError(String message, Executable action) {
        assertEquals(message, assertThrows(IllegalArgumentException.class, action).getMessage());
    }

    /** Collects garbage, and writes NaN to the memory that becomes free. */
    static void overwriteFreeMemory() {
        for (int round = 0; round < 5; round++) {
            System.gc();
            for (int i = 0; i < 20_000; i++) {
                ByteBuffer.allocateDirect(Double.BYTES).putDouble(0, Double.NaN);
            }
        }
    }
}
