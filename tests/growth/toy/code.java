// %% setup
import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import d2l.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

var manager = NDManager.newBaseManager(@DEVICE@);

// %% sum
var sum = manager.ones(new Shape(2, 3)).sum();
System.out.println("sum: %.1f".formatted(sum.getFloat()));

// %% curve
Plots.curves(manager.arange(3f), manager.create(new float[][] {{0, 1, 4}}))
        .xlabel("x")
        .legend("@TITLE@")
        .show();

// %% words
System.out.println("three");
