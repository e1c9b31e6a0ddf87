"""Models of natural language as a reader of D2L writes them in MXNet."""

from typing import Any

from tests.shim.each.mxnet.adapter import to_numpy, tensor  # isort: skip
from mxnet import autograd, gluon, np
from mxnet.gluon import nn

# Paths of BERTModel's parts, in the adapter's notation.
HIDDEN, NEXT = "hidden", "nsp.output"
MASK_LM_LAYERS = "mlm.mlp.0", "mlm.mlp.1", "mlm.mlp.2"


class Classifier(nn.Block):
    """A linear layer on the mean of the word vectors of one sequence or several."""

    def __init__(self, table: Any, weight: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(*table.shape)
        self.dropout = nn.Dropout(0.9)
        self.matrix = tensor(weight)
        self.initialize()
        self.embedding.weight.set_data(tensor(table))

    def forward(self, X: Any) -> np.ndarray:
        words = np.concatenate(X, axis=1) if isinstance(X, list) else X
        return np.dot(self.dropout(self.embedding(words)).mean(axis=1), self.matrix)


classifier = Classifier


def losses(d2l: Any, model: Any, vocab_size: int, columns: list[Any], reduction: str) -> list[Any]:
    """Return BERT's losses for a batch, and the gradients with respect to both tasks' biases and the positions.

    Gluon's loss takes weights and returns one number for each example, so ``reduction`` is not used.
    """
    loss = gluon.loss.SoftmaxCELoss()
    shards = [[tensor(column)] for column in columns]
    with autograd.record(train_mode=False):
        results = d2l._get_batch_loss_bert(model, loss, vocab_size, *shards)
    results[-1][0].backward()
    parameters = model.mlm.mlp[-1].bias, model.nsp.output.bias, model.encoder.pos_embedding
    gradients = [parameter.grad() for parameter in parameters]
    return to_numpy([*(x for (x,) in results), *gradients])


def move_positions(model: Any, step: Any) -> None:
    positions = model.encoder.pos_embedding
    positions.set_data(positions.data() + tensor(step))
