"""Reads the lessons' objects in Java, which stay in the kernel of their notebook (tests/lessons/java/values.py)."""

from typing import Any

import numpy as np

from tests.lessons.java.values import Code, Kept, Names, call, literal

Arrays = dict[str, np.ndarray]
MANAGER = Code("manager")
PROJECTIONS = "W_q", "W_k", "W_v", "W_o"


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
        letters, numbers, first, second = names["inputs"]
        return [letters, numbers, np.stack([first, second], axis=-1)]

    def lesson_drawn(self, names: Names, function: str, *args: Any) -> list[np.ndarray]:
        """What the lesson's function of this name draws at random; once, since much comes over."""
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
        return Adapter.lesson_test(names[function](MANAGER, *args))

    @staticmethod
    def lesson_test(examples: Any) -> list[np.ndarray]:
        """Questions have their two letters side by side, as in the other frameworks."""
        if not hasattr(examples, "inputs"):
            return [*examples]
        *given, last = examples.inputs
        if len(given) == 3:
            given[2:], last = [], np.stack([given[2], last], axis=-1)
        return [*given, last, examples.answers]

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
        return names["new RotaryAttention"](0).call("rotate", X)

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
        after = names["train"](maker, 0)
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
        its = self.lesson_weights(model, ("letter", "digit"), PROJECTIONS[:3])
        scheme = model.get("scheme")
        if scheme.kind == "Table":
            return its | {"vectors": scheme.parameters("vectors")[0][0]}
        if scheme.kind == "Buckets":
            return its | {"numbers": scheme.parameters("numbers")[0][0].ravel()}
        return its

    @staticmethod
    def lesson_weights(
        model: Kept, tables: tuple[str, ...], matrices: tuple[str, ...] = ()
    ) -> Arrays:
        *found, (weight, bias) = model.parameters(*tables, *matrices, "output")
        names = [path.rpartition(".")[2] for path in (*tables, *matrices)]
        its = {name: array for name, (array,) in zip(names, found, strict=True)}
        its |= {name: its[name].T for name in names[len(tables) :]}
        return its | {"output": weight.T, "bias": bias}

    def lesson_layers(
        self, model: Kept, count: int, tables: tuple[str, ...] = ("token", "place")
    ) -> tuple[Arrays, list[Arrays]]:
        """Of a model of so many layers: its tables, output and bias; and the projections of each layer."""
        paths = [f"layers.get({i}).{W}" for i in range(count) for W in PROJECTIONS]
        of_layers = np.split(np.array([array for (array,) in model.parameters(*paths)]), count)
        layers = [dict(zip(PROJECTIONS, its.mT, strict=True)) for its in of_layers]
        return self.lesson_weights(model, tables), layers
