"""Put the code cells with the same name, one for each framework, into a set of tabs.

Each figure gets its own text alternative.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx_design.shared import create_component

from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.figures import SVG
from tools.site.code import LANGUAGES


class FrameworkTabs(SphinxTransform):
    default_priority = 400  # after MyST-NB has created the cells

    def apply(self) -> None:
        sets: dict[str, nodes.Element] = {}
        for cell in list(self.document.findall(_is_cell)):
            metadata = cell["cell_metadata"]["d2l"]
            name, framework = metadata["name"], metadata["framework"]
            if name not in sets:
                sets[name] = create_component("tab-set", classes=["sd-tab-set", "notranslate"])
                sets[name]["ids"] = [f"cell-{name}"]
                cell.parent.insert(cell.parent.index(cell), sets[name])
            cell.parent.remove(cell)
            language = "python" if FRAMEWORKS[framework].is_python else "java"
            for block in cell.findall(nodes.literal_block):
                if block.parent.get("nb_element") == "cell_code_source":
                    block["language"] = LANGUAGES[language]
            figures = list(cell.findall(_is_figure))
            for figure, alternative in zip(figures, metadata["alternatives"], strict=True):
                for image in figure.findall(nodes.image):
                    image["alt"] = alternative
            sets[name] += _make_tab(framework, _unwrap(cell))


def _is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "d2l" in node.get("cell_metadata", {})


def _is_figure(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("mime_type") == SVG


def _unwrap(cell: nodes.Element) -> list[nodes.Node]:
    """Return the code of a cell and its outputs without the boxes that MyST-NB puts around each."""
    return [child for box in cell.children for child in box.children]


def _make_tab(framework: str, contents: list[nodes.Node]) -> nodes.Element:
    label = nodes.rubric("", FRAMEWORKS[framework].title, classes=["sd-tab-label"])
    label["sync_group"], label["sync_id"] = "framework", framework
    content = create_component("tab-content", classes=["sd-tab-content"], children=contents)
    return create_component("tab-item", classes=["sd-tab-item"], children=[label, content])


def setup(app: Sphinx) -> None:
    app.add_transform(FrameworkTabs)
