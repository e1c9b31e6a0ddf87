"""Models of natural language as a reader of D2L writes them in PyTorch."""

from typing import Any

import torch
from torch import nn

from tests.shim.each.pytorch.adapter import tensor, to_numpy

# Paths of BERTModel's parts, in the adapter's notation.
HIDDEN, NEXT = "hidden.0", "nsp.output"
MASK_LM_LAYERS = "mlm.mlp.0", "mlm.mlp.2", "mlm.mlp.3"


class Classifier(nn.Module):
    """A linear layer on the mean of the word vectors of one sequence or several."""

    def __init__(self, table: Any, weight: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(tensor(table))
        self.dropout = nn.Dropout(0.9)
        self.weight = nn.Parameter(tensor(weight))

    def forward(self, X: Any) -> torch.Tensor:
        words = torch.cat(X, 1) if isinstance(X, list) else X
        return self.dropout(self.embedding(words)).mean(dim=1) @ self.weight


classifier = Classifier


def losses(d2l: Any, model: Any, vocab_size: int, columns: list[Any], reduction: str) -> list[Any]:
    """Return BERT's losses for a batch, and the gradients with respect to both tasks' biases and the positions."""
    model.zero_grad()
    loss = nn.CrossEntropyLoss(reduction=reduction)
    results = d2l._get_batch_loss_bert(model, loss, vocab_size, *map(tensor, columns))
    results[-1].backward()
    parameters = model.mlm.mlp[-1].bias, model.nsp.output.bias, model.encoder.pos_embedding
    return to_numpy([*results, *(parameter.grad for parameter in parameters)])


def move_positions(model: Any, step: Any) -> None:
    model.encoder.pos_embedding.data += tensor(step)
