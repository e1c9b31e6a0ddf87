"""ONNX Runtime, on the CPU."""

import onnx
import onnxruntime

from d2l_compat.conformance.adapters import Adapter, _onnx
from d2l_compat.conformance.files import Arrays, Case


def run(model: onnx.ModelProto, inputs: Arrays, outputs: list[str]) -> list[object]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
    return session.run(outputs, inputs)  # type: ignore[no-any-return]


def compute(case: Case) -> Arrays:
    return _onnx.compute(case, run)


adapter = Adapter("ONNX Runtime", ("onnxruntime", "onnx"), _onnx.OFFERS, compute, ("float32",))
