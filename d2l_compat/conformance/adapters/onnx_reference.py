"""ONNX' reference evaluator."""

import onnx
from onnx.reference import ReferenceEvaluator

from d2l_compat.conformance.adapters import Adapter, _onnx
from d2l_compat.conformance.files import Arrays, Case


def run(model: onnx.ModelProto, inputs: Arrays, outputs: list[str]) -> list[object]:
    return ReferenceEvaluator(model).run(outputs, inputs)  # type: ignore[no-any-return]


def compute(case: Case) -> Arrays:
    return _onnx.compute(case, run)


SCALE = "the scale is a float32 attribute, whose square root is taken in float32, as in the operator's definition"
adapter = Adapter(
    "ONNX ReferenceEvaluator",
    ("onnx",),
    _onnx.OFFERS,
    compute,
    differences={"scale": SCALE},
)
