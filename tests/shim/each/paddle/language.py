"""Models of natural language as a reader of D2L writes them in PaddlePaddle."""

from typing import Any

import paddle
from paddle import nn

from tests.shim.each.paddle.adapter import tensor, to_numpy

# Paths of BERTModel's parts, in the adapter's notation.
HIDDEN, NEXT = "hidden.0", "nsp.output"
MASK_LM_LAYERS = "mlm.mlp.0", "mlm.mlp.2", "mlm.mlp.3"


class Classifier(nn.Layer):
    """A linear layer on the mean of the word vectors of one sequence or several."""

    def __init__(self, table: Any, weight: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(*table.shape)
        self.embedding.weight.set_value(tensor(table))
        self.dropout = nn.Dropout(0.9)
        self.matrix = tensor(weight)

    def forward(self, X: Any) -> paddle.Tensor:
        words = paddle.concat(X, 1) if isinstance(X, list) else X
        return self.dropout(self.embedding(words)).mean(axis=1) @ self.matrix


classifier = Classifier


def losses(d2l: Any, model: Any, vocab_size: int, columns: list[Any], reduction: str) -> list[Any]:
    """Return BERT's losses for a batch, and the gradients with respect to both tasks' biases and the positions."""
    model.clear_gradients()
    loss = nn.CrossEntropyLoss(reduction=reduction)
    results = d2l._get_batch_loss_bert(model, loss, vocab_size, *map(tensor, columns))
    results[-1].backward()
    parameters = model.mlm.mlp[-1].bias, model.nsp.output.bias, model.encoder.pos_embedding
    return to_numpy([*results, *(parameter.grad for parameter in parameters)])


def move_positions(model: Any, step: Any) -> None:
    positions = model.encoder.pos_embedding
    positions.set_value(positions + tensor(step))
