package d2l;

import org.dflib.jjava.jupyter.Extension;
import org.dflib.jjava.jupyter.kernel.BaseKernel;
import org.dflib.jjava.jupyter.kernel.display.DisplayData;

/** Shows figures in Jupyter; the kernel loads this class automatically. */
public final class Notebook implements Extension {

    @Override
    public void install(BaseKernel kernel) {
        Figure.display =
                figure -> {
                    DisplayData data = new DisplayData(figure.describe());
                    data.putSVG(figure.svg());
                    kernel.display(data);
                };
    }
}
