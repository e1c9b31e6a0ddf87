"""Reads the lessons' objects in Java, which stay in the kernel of their notebook (tests/java/values.py)."""

from typing import Any

import numpy as np

from tests.java.values import Code, Kept, Names, call, literal

Arrays = dict[str, np.ndarray]
MANAGER = Code("manager")
PROJECTIONS = "W_q", "W_k", "W_v", "W_o"
TABLES = "letter", "first", "second"


def last(output: list[np.ndarray]) -> Arrays:
    weight, bias = output
    return {"output": weight.T, "bias": bias}


class Adapter:
    HAND = "float64"
    FUSED = False

    def __init__(self) -> None:
        self._drawn: dict[tuple[Any, ...], list[np.ndarray]] = {}

    @staticmethod
    def tensor(x: Any) -> np.ndarray:
        return np.asarray(x)

    @staticmethod
    def lesson_question(names: Names) -> list[np.ndarray]:
        letters, numbers, first, second = names["given"]
        return [letters, numbers, np.stack([first, second], axis=-1)]

    def lesson_drawn(self, names: Names, function: str, *args: Any) -> list[np.ndarray]:
        """What the lesson's function of this name draws at random; once, since much comes over."""
        if (function, *args) not in self._drawn:
            self._drawn[function, *args] = self._draw(names, function, *args)
        return [array.copy() for array in self._drawn[function, *args]]

    @staticmethod
    def _draw(names: Names, function: str, *args: Any) -> list[np.ndarray]:
        if function == "questions":
            count, _, sign = args
            drawn = names[function](MANAGER, count, sign)
            letters, values, first, second = drawn.given
            return [letters, values, np.stack([first, second], axis=-1), drawn.answers]
        if function == "sequences" and len(args) == 1:
            args = *args, 8
        drawn = names[function](MANAGER, *args)
        return [*drawn.given, drawn.answers] if hasattr(drawn, "given") else [*drawn]

    @staticmethod
    def lesson_each(names: Names, function: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """In one question, since each takes the kernel a tenth of a second."""
        return names.java.get(f"List.of({', '.join(call(function, *args) for args in arguments)})")

    @staticmethod
    def projections(block: Kept, roles: str = "qkvo") -> Arrays:
        names = [f"W_{role}" for role in roles]
        return {name: W.T for name, (W,) in zip(names, block.parameters(*names), strict=True)}

    def lesson_projections(self, names: Names, layer: str = "attention") -> Arrays:
        return self.projections(names[layer])

    def lesson_blocks(self, names: Names) -> list[Arrays]:
        return [self.projections(block) for block in names["blocks"]]

    def lesson_relative(self, names: Names) -> Arrays:
        relative = names["relative"]
        return self.projections(relative, "qkv") | {"table": relative.parameters("table")[0][0]}

    @staticmethod
    def lesson_relative_scores(names: Names, X: np.ndarray) -> np.ndarray:
        return names["relative"].call("scores", X)

    @staticmethod
    def lesson_relative_output(names: Names, X: np.ndarray) -> np.ndarray:
        return names["relative"].call("forward", X)

    @staticmethod
    def lesson_turned(names: Names, X: np.ndarray) -> np.ndarray:
        return names["new RotaryAttention"](0).call("turned", X)

    @staticmethod
    def lesson_new_encoding(names: Names, num_hiddens: int, dropout: float, max_len: int) -> Kept:
        return names["new PositionalEncoding"](num_hiddens, Code(f"{dropout}f"), max_len)

    @staticmethod
    def lesson_encoding(
        layer: Kept, X: np.ndarray, offset: int = 0, training: bool = False
    ) -> np.ndarray:
        inputs = Code(f"new NDList({literal(X)}, manager.create({offset}))")
        return layer.call("forward", Code("parameters"), inputs, training)[0]

    @staticmethod
    def lesson_kept(layer: Kept) -> list[str]:
        return layer.get("getParameters().keys()")

    @staticmethod
    def new_reader(names: Names, kind: str) -> Kept:
        return names["initialized"](names["readers"][kind](), Code("new Shape(1, 8)"))

    def lesson_reader(self, names: Names, kind: str = "") -> tuple[Arrays, Kept]:
        reader = self.new_reader(names, kind) if kind else names["reader"]
        ((embedding,), parts) = reader.parameters("embedding", "output")
        W_1, b_1, W_2, b_2 = parts
        weights = {"embedding": embedding, "W_1": W_1.T, "b_1": b_1, "W_2": W_2.T, "b_2": b_2}
        if kind == "learned":
            weights["P"] = reader.parameters("positions")[0][0]
        return weights | self.projections(reader.get("attention")), reader

    def lesson_learned_table(self, names: Names) -> list[np.ndarray]:
        """Before training, and after it, from the same seed."""
        maker = names["readers"]["learned"]
        maker.java.run("Engine.getInstance().setRandomSeed(0);")
        before = self.new_reader(names, "learned")
        after = names["trained"](maker, 0)
        return [reader.parameters("positions")[0][0] for reader in (before, after)]

    @staticmethod
    def own_causal(*inputs: np.ndarray) -> None:
        """DJL has no attention of its own of which a lesson speaks."""

    @staticmethod
    def lesson_error(names: Names, width: np.ndarray, without_itself: bool) -> np.ndarray:
        points = Code(f"new Points({literal(names['x'])}, {literal(names['y'])})")
        return names["error"](width, points, without_itself)

    @staticmethod
    def lesson_bias(model: Kept, distances: np.ndarray) -> np.ndarray:
        return model.call("scheme.bias", None, distances.astype("int32"))

    def lesson_finder(self, model: Kept) -> Arrays:
        """Also what its scheme has learned: vectors, a row for each distance, or numbers, one for each bucket."""
        its = self.one_head(model)
        scheme = model.get("scheme")
        if scheme.kind == "Table":
            return its | {"vectors": scheme.parameters("vectors")[0][0]}
        if scheme.kind == "Buckets":
            return its | {"numbers": scheme.parameters("numbers")[0][0].ravel()}
        return its

    def lesson_look_up(self, names: Names) -> Arrays:
        return self.one_head(names["models"][0])

    def one_head(self, model: Kept) -> Arrays:
        """The tables letter and digit, W_q, W_k, W_v, output and bias."""
        names = "letter", "digit", "W_q", "W_k", "W_v"
        *found, output = model.parameters(*names, "output")
        its = {name: array for name, (array,) in zip(names, found, strict=True)}
        return {name: W.T if name in PROJECTIONS else W for name, W in its.items()} | last(output)

    def lesson_comparer(self, model: Kept) -> Arrays:
        """The tables letter, first, second, the matrices number, W_q, W_k, W_v, W_o, output, and the bias."""
        attention = [f"attention.{W}" for W in PROJECTIONS]
        *found, output = model.parameters(*TABLES, "number", *attention, "output")
        names = *TABLES, "number", *PROJECTIONS
        its = {name: array for name, (array,) in zip(names, found, strict=True)}
        return {name: W if name in TABLES else W.T for name, W in its.items()} | last(output)

    def lesson_layers(
        self, model: Kept, count: int, tables: tuple[str, ...] = ("token", "place")
    ) -> tuple[Arrays, list[Arrays]]:
        """Of a model of so many layers: its tables, output and bias; and the projections of each layer."""
        paths = [f"layers.get({i}).{W}" for i in range(count) for W in PROJECTIONS]
        *found, output = model.parameters(*tables, *paths, "output")
        arrays = [array for (array,) in found]
        around = dict(zip(tables, arrays, strict=False)) | last(output)
        of_layers = np.split(np.array(arrays[len(tables) :]), count)
        return around, [dict(zip(PROJECTIONS, its.mT, strict=True)) for its in of_layers]
