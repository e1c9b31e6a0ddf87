package d2l;

import org.dflib.jjava.jupyter.Extension;
import org.dflib.jjava.jupyter.kernel.BaseKernel;
import org.dflib.jjava.jupyter.kernel.display.DisplayData;

/** Shows figures in Jupyter; the kernel finds this class by itself. */
public final class Notebook implements Extension {

    @Override
    public void install(BaseKernel kernel) {
        Figure.screen =
                (svg, text) -> {
                    DisplayData figure = new DisplayData(text);
                    figure.putSVG(svg);
                    kernel.display(figure);
                };
    }
}
