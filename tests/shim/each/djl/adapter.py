"""The adapter of DJL, whose objects stay in the notebook's Java kernel (tests/lessons/java/values.py)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.lessons.java.values import Code, JavaObject, Names, render_literal, to_camel_case

Arrays = dict[str, np.ndarray]
MANAGER = Code("manager")
RANDOMIZE = """
for (var each : testedBlock.getParameters().values()) {
    manager.randomNormal(each.getArray().getShape()).mul(0.5f).copyTo(each.getArray());
}
"""
PROJECTIONS = "W_q", "W_k", "W_v", "W_o"


class Adapter:
    NORM_EPSILON = 1e-5  # what layer normalization adds to the variance
    RMS_EPSILON = 1e-6  # what RMSNorm adds to the mean square
    INTEGER_DTYPE = "int64"

    def __init__(self) -> None:
        self._drawn: dict[tuple[Any, ...], list[np.ndarray]] = {}

    @staticmethod
    def tensor(x: Any) -> np.ndarray:
        return np.asarray(x)

    @staticmethod
    def lesson_question(names: Names) -> list[np.ndarray]:
        letters, numbers, first, second = names["inputs"]
        return [letters, numbers, np.stack([first, second], axis=-1)]

    def lesson_draw(self, names: Names, function: str, *args: Any) -> list[np.ndarray]:
        """Call a lesson's function that draws at random, but only once, since copying from the kernel is slow."""
        if (function, *args) not in self._drawn:
            self._drawn[function, *args] = self._draw(names, function, *args)
        return [array.copy() for array in self._drawn[function, *args]]

    @staticmethod
    def _draw(names: Names, function: str, *args: Any) -> list[np.ndarray]:
        if function == "draw_questions":
            count, _, sign = args
            args = count, sign
        if function == "draw_sequences" and len(args) == 1:
            args = *args, 8
        return Adapter.lesson_arrays(names[function](MANAGER, *args))

    @staticmethod
    def lesson_arrays(examples: Any) -> list[np.ndarray]:
        """Return the arrays of examples, with a question's two letters side by side as in other frameworks."""
        if not hasattr(examples, "inputs"):
            return [*examples]
        arrays = [*examples.inputs]
        if len(arrays) == 4:
            arrays[2:] = [np.stack(arrays[2:], axis=-1)]
        return [*arrays, examples.answers]

    @staticmethod
    def projections(block: JavaObject, roles: str = "qkvo") -> Arrays:
        return Adapter.matrices(block, [f"W_{role}" for role in roles])

    def lesson_projections(self, names: Names, layer: str = "attention") -> Arrays:
        return self.projections(names[layer])

    def lesson_blocks(self, names: Names) -> list[Arrays]:
        return [self.projections(block) for block in names["blocks"]]

    @staticmethod
    def lesson_new_encoding(
        names: Names, num_hiddens: int, dropout: float, max_len: int
    ) -> JavaObject:
        return names["new PositionalEncoding"](num_hiddens, Code(f"{dropout}f"), max_len)

    @staticmethod
    def lesson_encode(
        layer: JavaObject, X: np.ndarray, offset: int = 0, training: bool = False
    ) -> np.ndarray:
        inputs = Code(f"new NDList({render_literal(X)}, manager.create({offset}))")
        return layer.call("forward", Code("parameters"), inputs, training)[0]

    @staticmethod
    def lesson_state_names(layer: JavaObject) -> list[str]:
        return layer.get("getParameters().keys()")

    @staticmethod
    def new_reader(names: Names, kind: str) -> JavaObject:
        return names["initialize"](names[f"{kind}_reader"](), Code("new Shape(1, 8)"))

    def lesson_reader(self, names: Names, kind: str = "") -> tuple[Arrays, JavaObject]:
        reader = self.new_reader(names, kind) if kind else names["reader"]
        ((embedding,), parts) = reader.parameters("embedding", "output")
        W_1, b_1, W_2, b_2 = parts
        weights = {"embedding": embedding, "W_1": W_1.T, "b_1": b_1, "W_2": W_2.T, "b_2": b_2}
        if kind == "learned":
            weights["P"] = reader.parameters("positions")[0][0]
        return weights | self.projections(reader.get("attention")), reader

    def lesson_learned_table(self, names: Names) -> list[np.ndarray]:
        """Return the table before and after training, from the same seed."""
        names.java.run("Engine.getInstance().setRandomSeed(0);")
        before = self.new_reader(names, "learned")
        after = names["train"](Code("() -> learnedReader()"), 0)
        return [reader.parameters("positions")[0][0] for reader in (before, after)]

    @staticmethod
    def native_causal_attention(*inputs: np.ndarray) -> None:
        """Return None: no lesson mentions an attention function of DJL."""

    @staticmethod
    def lesson_error(names: Names, width: np.ndarray, without_itself: bool) -> np.ndarray:
        points = Code(f"new Points({render_literal(names['x'])}, {render_literal(names['y'])})")
        return names["error"](width, points, without_itself)

    @staticmethod
    def lesson_bias(model: JavaObject, distances: np.ndarray) -> np.ndarray:
        return model.call("scheme.bias", None, distances.astype("int32"))

    def lesson_finder(self, model: JavaObject) -> Arrays:
        weights = self.lesson_weights(model, ("letter", "digit"), PROJECTIONS[:3])
        scheme = model.get("scheme")
        if scheme.kind == "Table":
            return weights | {"vectors": scheme.parameters("vectors")[0][0]}
        if scheme.kind == "Buckets":
            return weights | {"numbers": scheme.parameters("numbers")[0][0].ravel()}
        return weights

    @staticmethod
    def lesson_logits(model: JavaObject, tokens: np.ndarray) -> np.ndarray:
        return np.asarray(model(tokens))

    @staticmethod
    def matrices(block: JavaObject, names: Iterable[str]) -> Arrays:
        paths = [*names]
        return {name: W.T for name, (W,) in zip(paths, block.parameters(*paths), strict=True)}

    def lesson_matrices(self, names: Names, layer: str, matrices: Iterable[str]) -> Arrays:
        return self.matrices(names[layer], matrices)

    @staticmethod
    def lesson_start(model: JavaObject) -> np.ndarray:
        return np.asarray(model.get("start.getArray()"))

    @staticmethod
    def lesson_way(way: JavaObject, probs: np.ndarray) -> np.ndarray:
        return np.asarray(way(probs))

    @staticmethod
    def lesson_weights(
        model: JavaObject, tables: tuple[str, ...], matrices: tuple[str, ...] = ()
    ) -> Arrays:
        *arrays, (weight, bias) = model.parameters(*tables, *matrices, "output")
        names = [path.rpartition(".")[2] for path in (*tables, *matrices)]
        weights = {name: array for name, (array,) in zip(names, arrays, strict=True)}
        weights |= {name: weights[name].T for name in names[len(tables) :]}
        return weights | {"output": weight.T, "bias": bias}

    def lesson_layers(
        self,
        model: JavaObject,
        layers: int | Iterable[str],
        tables: tuple[str, ...] = ("token", "place"),
    ) -> tuple[Arrays, list[Arrays]]:
        if isinstance(layers, int):
            layers = [f"layers.get({i})" for i in range(layers)]
        paths = [f"{layer}.{W}" for layer in layers for W in PROJECTIONS]
        arrays = np.array([array for (array,) in model.parameters(*paths)])
        matrices = arrays.reshape(-1, len(PROJECTIONS), *arrays.shape[1:])
        projections = [dict(zip(PROJECTIONS, layer.mT, strict=True)) for layer in matrices]
        return self.lesson_weights(model, tables), projections

    @staticmethod
    def lesson_block(
        names: Names,
        num_hiddens: int,
        num_heads: int,
        *,
        inputs: Iterable[np.ndarray],
        reads_memory: bool = False,
        **options: Any,
    ) -> JavaObject:
        """Make a block of the lesson's class, with random parameters."""
        options |= {"num_hiddens": num_hiddens, "num_heads": num_heads}
        changes = "".join(
            f"options.{to_camel_case(name)} = {_render_option(option)};"
            for name, option in options.items()
        )
        made = f"makeOptions(options -> {{ {changes} }}), {render_literal(reads_memory)}"
        names.java.run(f"var testedBlock = new TransformerBlock({made}); {RANDOMIZE}")
        return names.java.get("testedBlock")

    @staticmethod
    def lesson_call(layer: JavaObject, *inputs: np.ndarray) -> np.ndarray:
        return np.asarray(layer(*inputs))

    @staticmethod
    def lesson_parts(model: JavaObject, paths: Iterable[str]) -> dict[str, Arrays]:
        paths = [*paths]
        fields = [to_camel_case(path) for path in paths]
        for i, path in enumerate(paths):
            owner, _, name = path.rpartition(".")
            if owner.endswith("network"):  # of a type without fields
                is_gated = f"{owner}.gate" in paths
                place = ["gate", "dense1", "dense2"].index(name) - (not is_gated)
                fields[i] = f"{to_camel_case(owner)}.getChildren().valueAt({place})"
        arrays = model.parameters(*fields)
        return {path: _name_arrays(path, part) for path, part in zip(paths, arrays, strict=True)}

    @staticmethod
    def lesson_translate(names: Names, model: JavaObject, source: np.ndarray) -> list[np.ndarray]:
        uses_cache = True
        return [*names["translate"](model, source.astype("int64"), uses_cache)]


def _render_option(option: Any) -> str:
    if not isinstance(option, str):
        return render_literal(option)
    if option == "UnscaledAttention":
        return f"{option}::new"
    return f"n -> new {option}({'' if option.startswith('No') else 'n'})"


def _name_arrays(path: str, arrays: list[np.ndarray]) -> Arrays:
    """Name a part's arrays as in other frameworks."""
    name = path.rpartition(".")[2]
    if "norm" in name:
        return dict(zip(("gamma", "beta"), arrays, strict=False))
    if name.endswith(("embedding", "position")):
        return {"table": arrays[0]}
    return dict(zip(("weight", "bias"), [arrays[0].T, *arrays[1:]], strict=False))
