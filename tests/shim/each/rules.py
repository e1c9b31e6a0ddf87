"""Rules for parameters of public names: what each needs, and the error messages for bad values.

A rule applies to every public name that has a parameter of this name, in every framework. Rules for
``function.parameter`` replace those for ``parameter``.

The tables map a need to the parameters that have it, separated by spaces. In a message, ``...`` stands for
any text; with ``what: need`` the message names ``what`` instead of the parameter.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import numpy as np

from tests.shim.each.calls import Lazy, tensor


@dataclass(frozen=True)
class BadValue:
    """A bad value and its error message, in which ``...`` stands for any text."""

    value: Any
    error: type[Exception]
    got: str
    need: str
    what: str = ""  # the name in the message, if not the parameter's


def show_value(x: Any) -> str:
    """Return the repr of a number or a string, and the type name of anything else."""
    return repr(x) if x is None or isinstance(x, (int, float, str)) else type_name(x)


def type_name(x: Any) -> str:
    return type(x).__name__


def show_dtype(x: Any) -> str:
    """Return how messages show a value that should have been an array of numbers."""
    return f"{type_name(x)} of dtype {np.asarray(x).dtype}"


def _bad_shape(array: np.ndarray) -> tuple[Any, type[Exception], str]:
    return tensor(array, str(array.dtype)), ValueError, f"shape {array.shape}"


def _bad_dtype(array: np.ndarray, dtype: str) -> tuple[Any, type[Exception], str]:
    return tensor(array, dtype), TypeError, f"dtype {dtype}"


def _bad_first_number(array: np.ndarray, number: int) -> tuple[Any, type[Exception], str]:
    changed = array.copy()
    changed.flat[0] = number
    return tensor(changed, str(array.dtype)), ValueError, f"...{number}"


DEFECTS: dict[str, Callable[[np.ndarray], tuple[Any, type[Exception], str]]] = {
    "a list": lambda x: ([1.0], TypeError, "list"),
    "a dimension less": lambda x: _bad_shape(x[0]),
    "a dimension more": lambda x: _bad_shape(x[None]),
    "a row more": lambda x: _bad_shape(np.concatenate([x, x[:1]])),
    "a column more": lambda x: _bad_shape(np.concatenate([x, x[..., :1]], -1)),
    "no features": lambda x: _bad_shape(x[..., :0]),
    "integers": lambda x: _bad_dtype(x, "int32"),
    "bools": lambda x: _bad_dtype(x, "bool"),
    "fractions": lambda x: (tensor(x + 0.5, "float32"), ValueError, "dtype float32 with fractions"),
    "below 0": lambda x: _bad_first_number(x, -1),
    "too large": lambda x: _bad_first_number(x, 99),
}


# Wrong types.

OBJECT = object()
NOT_INTEGERS = "1", 1.5, True, None, (), OBJECT
NOT_NUMBERS = "fast", True, None, (), OBJECT
NOT_STRINGS = 3, None, [], OBJECT
NOT_LISTS = 3, "no", None, OBJECT
NOT_CALLABLES_OR_LISTS = 3, "no", None, [], OBJECT

SIZES = """
    CausalSelfAttention.num_kv_heads alibi_slopes.num_heads batch_size embed_size eval_step feature_dim
    ffn_num_hiddens ffn_num_input ffn_num_outputs groups head_size height in_channels input_channels
    key_size max_len max_window_size min_threshold n
    num_blks num_channels num_classes num_epochs num_examples num_feat num_heads num_hiddens
    num_inputs num_items num_kv_heads num_layers num_outputs num_steps num_train num_users num_val query_size r_min
    steps value_size vocab_size width
"""
# Other integers from 1: no upper limit is tested, and some may also be None or a list.
COUNTS = """
    chunk_size every_n k max_epochs norm_shape r_max strides transpose_output.num_heads transpose_qkv.num_heads
    load_data_fashion_mnist.resize load_data_nmt.num_examples num_tokens top_k window
"""
COUNTS_FROM_0 = """
    CausalSelfAttention.num_sinks K learned_positions min_freq num_gpus num_noise_words num_preds num_sinks offset
    SyntheticRegressionData.num_val check_len.n hit_and_auc.k print_ranges.digits
"""
FLAGS = "bias causal cross_attention norm_first output rope use_bias"
SHARES = "iou_threshold nms_threshold pos_threshold"
INTEGER_FROM_0, INTEGER_FROM_1 = "an integer of at least 0", "an integer of at least 1"
TEMPERATURE = "a number above 0; for greedy decoding, top_k=1"
LAYER_OR_FUNCTION = "a layer or a function"
VOCABULARY = "a vocabulary, such as a Vocab"
DEVICES = "a list of devices, at least one"
MEMORY = "a block with cross-attention, and only such a block, reads a memory"
BLOCK_LISTS = {
    f"a list of TransformerBlock with causal={causal}": f"{name}.blocks"
    for name, causal in (("BlockDecoder", True), ("BlockEncoder", False))
}

# fmt: off
WRONG_TYPES: list[tuple[tuple[Any, ...], Callable[[Any], str], dict[str, str]]] = [
    (NOT_INTEGERS, show_value, {
        INTEGER_FROM_1: SIZES,
        INTEGER_FROM_0: COUNTS_FROM_0,
        f"gpu: {INTEGER_FROM_0}": "i",
        "an integer of at least 2": "eta",
        "an integer": "max_tokens",
    }),
    (("1", 1.5, True, OBJECT), show_value, {INTEGER_FROM_1: COUNTS, INTEGER_FROM_0: "seed stop tokenize_nmt.num_examples"}),
    (NOT_NUMBERS, show_value, {
        "a probability, from 0 to 1": "dropout",
        "a number": """learning_rate sigma bot_mul eps SGD.lr sgd.lr train_ch3.lr train_ch6.lr
        train_ch8.lr train_seq2seq.lr""",
        "a number above 0": "theta ls prefact norm_epsilon",
        TEMPERATURE: "temperature",
        "a number above 0 and at most 1": "top_p min_p",
        "a finite number above 1": "base",
        "a finite number above 0": "position_scale",
        "a number of at least 0": "gradient_clip_val",
        "a standard deviation of at least 0": "noise",
        "a number from 0 to 1": SHARES,
        "a share, from 0 to 1": "valid_ratio test_ratio",
        "a number that float32 can represent": "value SyntheticRegressionData.b synthetic_data.b",
    }),
    (("fast", True, None, OBJECT), show_value, {"a number above 0 and at most 1": "LinearAttention.decay"}),
    (("no", 1.5, (), OBJECT), type_name, {
        "True or False": f"{FLAGS} is_train use_random_iter use_1x1conv",
    }),
    (NOT_LISTS, type_name, BLOCK_LISTS),
    ((1,), type_name, {"True or False": FLAGS}),  # others accept 0 and 1
    (NOT_CALLABLES_OR_LISTS, show_value, {
        LAYER_OR_FUNCTION: """evaluator f f_grad forward_fn get_params init_state layer loss net net_D net_fn net_G
        objective predict trainer_fn updater train_2d.trainer""",
        "a model with an encoder and a decoder": "predict_seq2seq.net",
        VOCABULARY: "src_vocab tgt_vocab",
        "a pandas table with user_id, item_id, rating, timestamp": """
        load_data_ml100k.data split_data_ml100k.data""",
        "a list of arrays, at least one": "split_batch_multi_inputs.X",
    }),
    (NOT_CALLABLES_OR_LISTS, type_name, {
        "a layer": """rnn encoder decoder train_ch6.net train_batch_ch13.net train_ch13.net
        evaluate_accuracy_gpus.net""",
        "a ... recurrent layer": "rnn_layer",
        "a Keras model": "TrainCallback.net",
        "a model that is a layer": "train_seq2seq.net",
        "a..., or another object with...step": "trainer",
        "a class": "add_to_class.Class",
        "a function": "method",
        "an HPOSearcher": "searcher",
        "an HPOScheduler": "scheduler",
        "a DataModule, or another object with train_dataloader and val_dataloader": "Trainer.fit.data",
        VOCABULARY: "vocab",
        "a dict...": "test_input candidates",
        "a label for each name": "reorg_train_valid.labels",
        "how often each word occurs, as subsample returns it": "counter",
        "a dict of distributions, which have rvs()": "config_space",
        "a dict, or None": "initial_config",
        "a dictionary": "train_concise_ch11.hyperparams",
        "a dictionary of names and their numbers, at least one": "plot_ranges.results print_ranges.results",
    }),
    (NOT_LISTS, show_value, {
        "batches (inputs, labels)": "data_iter test_iter train_iter",
        "batches of at least 3 arrays": "train_ranking.train_iter",
        "batches of at least 1 arrays": "train_recsys_rating.train_iter",
        DEVICES: "split_batch.devices",
        "a list of tokens": "TokenEmbedding.[].tokens",
        "a list of strings": "lines",
        "a list of parameters": "sgd.params",
        "a list of gradients": "grads",
        "a tuple or a list of tensors": "data_arrays",
        "examples (center, context, noise words), at least one": "batchify.data",
        "the same number of premises, hypotheses and labels, at least one": "SNLIDataset.dataset",
    }),
    (NOT_LISTS, type_name, {
        "a list of token indices": "corpus",
        "a list of lists of tokens": "build_array_nmt.lines",
        "a list of lists of tokens, at least one": "prompts",
        "a list of lists of words": "get_centers_and_contexts.corpus subsample.sentences",
        "a list of lists of word indices": "all_contexts",
        "a list of tokens": "line tokens_a",
        "a list of tokens, or None": "tokens_b",
        "a list of sentences": "src_sentences tgt_sentences",
        "a list of words, at least one": "premise hypothesis",
        "a list of lists, at least one": "xlist ylist",
        "letters (rows, columns), like env_info['desc']": "env_desc",
    }),
    ((3, None, OBJECT), show_value, {
        "batches, at least one": """train_ch6.train_iter train_ch11.data_iter
        train_ch13.train_iter train_concise_ch11.data_iter TrainCallback.train_iter""",
        "points (x1, x2), at least one": "show_trace_2d.results",
    }),
    ((3, "no", None), show_value, {"(height, width), in pixels": "crop_size"}),
    (("no", None), show_value, {"(height, width), in pixels": "resize"}),
    ((3, "cpu", OBJECT), show_value, {DEVICES: "devices"}),
    ((3, OBJECT), type_name, {
        "batches of 4 tensors...": "train_seq2seq.data_iter",
        "a list of tokens": "Vocab.tokens count_corpus.tokens reserved_tokens",
        "a list": "check_len.a",
        "a list of names": "xticklabels yticklabels print_ranges.columns",
        "a list of items": "rankedlist test_matrix",
        "a tuple of sizes": "check_shape.shape",
    }),
    (NOT_STRINGS, type_name, {
        "a string": "description print_ranges.title text",
        "a curve's name as a string": "ProgressBoard.draw.label",
        "a string of at least one character": "prefix",
        "a sentence as a string": "pred_seq label_seq predict_sentiment.sequence src_sentence",
        "a file's name": "fname data_path extract.filename",
        "a folder's name": "data_dir voc_dir download.folder",
        "a folder's name, or None": "download_extract.folder extract.folder",
        "a name": "copyfile.filename target_dir",
        "url: an https address, or a name": "url embedding_name download_extract.name",
    }),
    (("n", OBJECT), show_dtype, {
        "an array of real numbers": """Animator.add.x Animator.add.y ProgressBoard.draw.x
        ProgressBoard.draw.y sampling_weights indices bbox bboxes x1 x2 matrices sizes ratios
        plot.X plot.Y plot_ranges.x marks action logits"""
    }),
    ((3, "no", []), type_name, {"a tensor": "score_bias H", "a KVCache": "cache", "a LinearState": "state"}),
    ((3, None, []), show_value, {"the name of an MXNet optimizer, or an optimizer": "tr_name"}),
]
# fmt: on

# Wrong values; each key is how messages show the value.


def numbers(*values: float) -> dict[str, Any]:
    return {str(x): x for x in values}


NAN, INFINITY, HUGE_NUMBER = float("nan"), float("inf"), 2**40
EQUAL_SHARES = "a multiple of num_heads, so that every head gets an equal share"

# fmt: off
WRONG_VALUES: list[tuple[dict[str, Any], dict[str, str]]] = [
    (numbers(0, -1), {INTEGER_FROM_1: f"{SIZES} {COUNTS}"}),
    (numbers(1, -1), {"an integer of at least 2": "eta"}),
    (numbers(HUGE_NUMBER), {"an integer of at most 2147483647": SIZES}),
    (numbers(-1), {INTEGER_FROM_0: f"{COUNTS_FROM_0} seed stop tokenize_nmt.num_examples", f"gpu: {INTEGER_FROM_0}": "i"}),
    (numbers(128, HUGE_NUMBER), {"gpu: an integer of at most 127": "i"}),
    ({"8 with num_heads 3": 3}, {f"num_hiddens: {EQUAL_SHARES}": "num_heads transpose_qkv.num_heads"}),
    (numbers(-0.1, 1.5, 2, NAN), {
        "a probability, from 0 to 1": "dropout",
        "a number from 0 to 1": SHARES,
        "a share, from 0 to 1": "valid_ratio test_ratio",
    }),
    (numbers(0, -1, NAN), {"a number above 0": "theta ls prefact norm_epsilon", "a finite number above 0": "position_scale"}),
    (numbers(0, -1, NAN, INFINITY), {TEMPERATURE: "temperature"}),
    (numbers(0, -0.5, 1.5, NAN), {"a number above 0 and at most 1": "top_p min_p LinearAttention.decay"}),
    ({"3 numbers": [0.5, 0.5, 0.5]}, {"one number, or 2, one per head": "LinearAttention.decay"}),
    (numbers(4), {"at most 3, the size of the vocabulary": "top_k"}),
    ({"3 with num_heads 2": 3}, {
        "a divisor of num_heads, so that each serves equally many heads of queries": """
            CausalSelfAttention.num_kv_heads TransformerBlock.num_kv_heads count_transformer_parameters.num_kv_heads""",
    }),
    ({"1 without a window": 1}, {"a window": "CausalSelfAttention.num_sinks TransformerBlock.num_sinks"}),
    (numbers(1, 0.5, NAN, INFINITY), {"a finite number above 1": "base"}),
    (numbers(-1, NAN), {"a number of at least 0": "gradient_clip_val", "a standard deviation of at least 0": "noise"}),
    (numbers(1e39), {"a number that float32 can represent": "value SyntheticRegressionData.b synthetic_data.b"}),
    ({"'x'": "x", "None": None, "3": 3}, {
        "'interleaved' or 'halves'": "layout",
        "one of 'layer', 'rms'": "norm",
        "one of 'relu', 'gelu', 'swiglu'": "activation",
        "'word' or 'char'": "tokenize.token",
        "'explicit' or 'implicit'": "feedback",
        "'random' or 'seq-aware'": "split_mode",
        "'FrozenLake-v1', the only environment": "make_env.name",
    }),
    ({"'x'": "x", "3": 3}, {
        "one of None, 'rope', 'alibi'": "TransformerBlock.positions",
        "one of None, 'sinusoidal', 'learned'": "BlockEncoder.positions BlockDecoder.positions",
    }),
    ({"an empty list": []}, BLOCK_LISTS),
    ({"0": [], "2": [None, None]}, {"a list of 1 caches, one for each block": "caches"}),
    ({"a memory for a block without cross-attention": 1}, {MEMORY: "memory"}),
    ({"lengths without a memory": 1}, {MEMORY: "memory_valid_lens"}),
    ({"a cache for attention that is not causal": 1}, {"causal=True": "TransformerBlock.cache"}),
    ({"no examples": []}, {
        "at least one batch": "data_iter test_iter train_iter train_ranking.train_iter",
    }),
    ({"none": []}, {
        DEVICES: "devices split_batch.devices",
        "a list of words, at least one": "premise hypothesis",
        "a list of lists, at least one": "xlist ylist",
        "examples (center, context, noise words), at least one": "batchify.data",
        "a list of lists of tokens, at least one": "prompts",
        "points (x1, x2), at least one": "show_trace_2d.results",
    }),
    ({"none": {}}, {
        "a dictionary of names and their numbers, at least one": "plot_ranges.results print_ranges.results",
    }),
    ({"0 for 1 parameters": []}, {"one for each parameter": "grads"}),
    ({"list": []}, {"a list of numbers above 0, at least one": "sizes ratios"}),
    ({"an empty list": []}, {"at least one integer": "norm_shape strides"}),
    (numbers(3), {"the result of voc_colormap2label": "colormap2label"}),
    ({"''": ""}, {"a string of at least one character": "prefix"}),
    ({"shape (0,)": []}, {"four numbers, (x1, y1, x2, y2)": "bbox", "shape (boxes, 4)": "bboxes"}),
    ({"3": 3, "None": None, "list": []}, {"an image of 3 x 3 pixels, like the feature": "voc_rand_crop.label"}),
]
# fmt: on

# Defects of arrays.

TOKENS = "BERTEncoder.tokens BERTModel.tokens BlockDecoder.X BlockEncoder.X Seq2SeqEncoder.X TransformerEncoder.X"
LENGTHS = "shape (2,), a length per example, or (2, 3), one per query"
TEXT_LENGTHS = """
    BlockDecoder.valid_lens BlockEncoder.valid_lens CausalSelfAttention.valid_lens KVCache.append.valid_lens
    TransformerBlock.valid_lens"""
RANGES = {
    "tokens from 0 to 6, of a vocabulary of 7": f"{TOKENS}",
    "segments from 0 to 1, of two sentences": "segments",
    "positions from 0 to 2, of those in X": "pred_positions",
    "labels from 0 to 9": "get_fashion_mnist_labels.labels",
}
# fmt: off
DEFECT_NEEDS: dict[str, dict[str, str]] = {
    "below 0": {
        **RANGES, "lengths of at least 0": "valid_lens", "lengths from 0 to 3, the number of steps": TEXT_LENGTHS,
    },
    "too large": {**RANGES, "lengths from 0 to 3, the number of steps": TEXT_LENGTHS},
    "a list": {
        "a tensor": f"""
            queries keys values DotProductAttention.score_bias MultiHeadAttention.score_bias
            {TOKENS} segments pred_positions MaskLM.X PositionWiseFFN.X NextSentencePred.X
            PositionalEncoding.X RotaryEncoding.X CausalSelfAttention.X LinearAttention.X TransformerBlock.X AddNorm.X AddNorm.Y
            inputs GRU.inputs GRU.X
            masked_softmax.X sequence_mask.X Y_hat squared_loss.y_hat squared_loss.y linreg.X
            linreg.w SyntheticRegressionData.w synthetic_data.w boxes boxes1 boxes2
            offset_boxes.anchors assigned_bb offset_inverse.anchors offset_inverse.offset_preds
            cls_probs multibox_target.anchors multibox_prior.data nms.boxes split_batch.X
            split_batch.y split_batch_multi_inputs.y positive negative transpose_qkv.X transpose_output.X check_shape.x update_D.X update_D.Z
            update_G.Z""",
        "an integer tensor": f"valid_lens {TEXT_LENGTHS} valid_len Y",
        "queries: a tensor": "TransformerEncoderBlock.X",
        "a number that float32 can represent": "linreg.b",
        "a matrix of numbers, (rows, columns)": "corr2d.X corr2d.K",
    },
    "integers": {
        "queries, keys and values: one floating-point dtype": """
            queries keys values TransformerEncoderBlock.X""",
        "queries and score_bias: one floating-point dtype": """
            DotProductAttention.score_bias MultiHeadAttention.score_bias""",
        "one floating-point dtype": """
            MaskLM.X PositionWiseFFN.X NextSentencePred.X PositionalEncoding.X RotaryEncoding.X
            CausalSelfAttention.X LinearAttention.X TransformerBlock.X AddNorm.X AddNorm.Y GRU.inputs GRU.X masked_softmax.X Y_hat squared_loss.y_hat
            SyntheticRegressionData.w synthetic_data.w positive negative""",
        "X, w and b: one floating-point dtype": "linreg.X linreg.w",
        "cache, keys and values: one floating-point dtype": "KVCache.append.keys KVCache.append.values",
    },
    "bools": {
        "an integer dtype": f"valid_lens {TEXT_LENGTHS} {TOKENS} segments pred_positions valid_len Y",
        "a dtype of numbers": "transpose_qkv.X transpose_output.X",
    },
    "fractions": {
        "whole numbers, of lengths": "valid_lens valid_len",
        "whole numbers, of tokens": f"{TOKENS}",
        "whole numbers, of segments": "segments",
        "whole numbers, of positions": "pred_positions",
        "labels: labels from 0 to 9": "get_fashion_mnist_labels.labels",
    },
    "a dimension less": {
        "3 dimensions (batch, queries, features)": "queries",
        "3 dimensions (batch, keys, features)": "keys values",
        f"valid_lens: {LENGTHS}": "valid_lens",
        "shape (queries, keys), here (3, 3) or (batch, queries, keys), here (2, 3, 3)": """
            DotProductAttention.score_bias""",
        "2 dimensions (batch, steps)": f"{TOKENS} segments MaskedSoftmaxCELoss.label",
        "2 dimensions (batch, predictions)": "pred_positions",
        "3 dimensions (batch, steps, vocab_size)": "pred",
        "3 dimensions (batch, steps, features)": """
            MaskLM.X PositionalEncoding.X RotaryEncoding.X CausalSelfAttention.X LinearAttention.X TransformerBlock.X""",
        "4 dimensions (batch, kv heads, steps, features)": "KVCache.append.keys KVCache.append.values",
        "queries: 3 dimensions (batch, queries, features)": "TransformerEncoderBlock.X",
        "3 dimensions (steps, batch, features)": "GRU.inputs GRU.X",
        "3 dimensions (batch, queries, keys)": "masked_softmax.X",
        "shape (2,), a length per example": f"valid_len {TEXT_LENGTHS}",
        "as many labels as there are rows in Y_hat, of shape (2, 3)": "Y",
        "y: one number for each prediction": "squared_loss.y",
        "shape (features,) or (features, outputs)": "SyntheticRegressionData.w synthetic_data.w",
        "a matrix of numbers, (rows, columns)": "corr2d.X corr2d.K",
        "2 dimensions (boxes, 4)": """
            boxes boxes1 boxes2 offset_boxes.anchors assigned_bb offset_inverse.anchors
            offset_inverse.offset_preds""",
        "shape (boxes, 4)": "ground_truth nms.boxes",
        "shape (anchors, 4)": "assign_anchor_to_bbox.anchors",
        "shape (batch, classes + 1, anchors)": "cls_probs",
        "shape (batch, anchors * 4), here (1, 12)": "offset_preds",
        "shape (batch, boxes, 5)": "multibox_target.labels",
        "shape (steps, 3), a number for each state of the map, and at least one step": """
            V_all pi_all V pi""",
        "3 dimensions (batch, steps, num_hiddens)": "transpose_qkv.X",
        "3 dimensions (batch * heads, steps, num_hiddens / heads)": "transpose_output.X",
        "an image (...)": "colormap feature",
    },
    "a dimension more": {
        f"{LENGTHS}": "valid_lens",
        "shape (2,), a length per example": TEXT_LENGTHS,
        "3 dimensions (batch, steps, features)": "CausalSelfAttention.X LinearAttention.X TransformerBlock.X",
        "4 dimensions (batch, kv heads, steps, features)": "KVCache.append.keys KVCache.append.values",
        "an image (...)": "colormap feature",
    },
    "no features": {
        "at least one feature": "queries",
        f"{LENGTHS}": "valid_lens",
        "at least one feature, in the last dimension": """
            MaskLM.X PositionWiseFFN.X NextSentencePred.X CausalSelfAttention.X LinearAttention.X TransformerBlock.X""",
        "a last axis for the vocabulary": "logits",
        "shape (2,), a length per example": TEXT_LENGTHS,
        "shape (2, 2, steps, 4), to fit the cache": "KVCache.append.keys",
        "shape (2, 2, 3, 4), to fit the cache": "KVCache.append.values",
        "a last dimension of 8": "PositionalEncoding.X RotaryEncoding.X",
        "queries: at least one feature": "TransformerEncoderBlock.X",
        "at least one step, example and feature": "GRU.inputs GRU.X",
        "at least one class, in the last dimension": "Y_hat",
        "K: at least one row and column, and no more than X has": "corr2d.X corr2d.K",
        "images (..., height, width)": "multibox_prior.data",
    },
    "a row more": {
        "batch sizes of queries, keys and values: equal batch sizes": "queries keys values",
        f"{LENGTHS}": "valid_lens",
        "shape (queries, keys), here (3, 3) or (heads, queries, keys), here (2, 3, 3) or (batch, heads, queries, keys), here (2, 2, 3, 3)": """
            MultiHeadAttention.score_bias""",
        "shape (2, 3)": "MaskedSoftmaxCELoss.label",
        "label: shape (3, 3)": "pred",
        "shape (2, 3), a segment for each token": "segments",
        "a row for each of 2 examples": "pred_positions",
        "pred_positions: a row for each of 3 examples": "MaskLM.X",
        "valid_lens: shape (3,), a length per example, or (3, 3), one per query": """
            TransformerEncoderBlock.X masked_softmax.X""",
        "X and Y: equal shapes": "AddNorm.X AddNorm.Y",
        "positive and negative: equal shapes": "positive negative",
        "valid_len: shape (3,), a length per example": "sequence_mask.X",
        "valid_lens: shape (3,), a length per example": """
            BlockDecoder.X BlockEncoder.X CausalSelfAttention.X TransformerBlock.X""",
        "shape (2,), a length per example": f"valid_len {TEXT_LENGTHS}",
        "shape (2, 2, steps, 4), to fit the cache": "KVCache.append.keys",
        "shape (2, 2, 3, 4), to fit the cache": "KVCache.append.values",
        "Y: as many labels as there are rows in Y_hat, of shape (3, 3)": "Y_hat",
        "as many labels as there are rows in Y_hat, of shape (2, 3)": "Y",
        "y: one label for each prediction": "accuracy.y accuracy.y_hat",
        "y: one number for each prediction": "squared_loss.y_hat squared_loss.y",
        "X: a last dimension of 9": "linreg.w",
        "b: one number for each output, or one for all": "linreg.b",
        "anchors and assigned_bb: the same number of each": """
            offset_boxes.anchors assigned_bb""",
        "anchors and offset_preds: the same number of each": """
            offset_inverse.anchors offset_inverse.offset_preds""",
        "offset_preds: shape (batch, anchors * 4), here (2, 12)": "cls_probs",
        "shape (batch, anchors * 4), here (1, 12)": "offset_preds",
        "scores: shape (4,)": "nms.boxes",
        "shape (3,)": "scores",
        "y: a label for each input": "split_batch.X split_batch.y split_batch_multi_inputs.y",
        "X: a batch that is a multiple of num_heads": "transpose_output.X",
        "shape: (2, 3, 8)": "check_shape.x",
        "X and Z: the same number of rows in each, at least one": "update_D.X update_D.Z",
    },
    "a column more": {
        "a last dimension of 8": """
            MaskLM.X PositionalEncoding.X RotaryEncoding.X CausalSelfAttention.X LinearAttention.X TransformerBlock.X GRU.inputs GRU.X linreg.X""",
        "shape (2, 2, steps, 4), to fit the cache": "KVCache.append.keys",
        "shape (2, 2, 3, 4), to fit the cache": "KVCache.append.values",
        "...: a last dimension of 8": "TransformerEncoderBlock.X",
        "X and Y: equal shapes": "AddNorm.X AddNorm.Y",
        "a last dimension of 4": """
            boxes boxes1 boxes2 offset_boxes.anchors assigned_bb offset_inverse.anchors
            offset_inverse.offset_preds""",
        "shape (boxes, 4)": "ground_truth",
        "shape (anchors, 4)": "assign_anchor_to_bbox.anchors",
        "shape (1, anchors, 4)": "multibox_detection.anchors multibox_target.anchors",
        "shape (batch, boxes, 5)": "multibox_target.labels",
        "shape (steps, 3), a number for each state of the map, and at least one step": """
            V_all pi_all V pi""",
        "num_hiddens: a multiple of num_heads, so that every head gets an equal share": """
            transpose_qkv.X""",
    },
}
# fmt: on


def _apply_rules(parameter: str, good: Any) -> Iterator[BadValue]:
    """Yield the bad values of all rules for this parameter, or ``function.parameter``."""
    for values, show, needs in WRONG_TYPES:
        for what, need in _match_needs(needs, parameter):
            yield from (BadValue(x, TypeError, show(x), need, what) for x in values)
    for by_message, needs in WRONG_VALUES:
        for what, need in _match_needs(needs, parameter):
            yield from (BadValue(x, ValueError, got, need, what) for got, x in by_message.items())
    if isinstance(good, Lazy) and good.array is not None:
        for defect, needs in DEFECT_NEEDS.items():
            for what, need in _match_needs(needs, parameter):
                x, error, got = DEFECTS[defect](good.array)
                yield BadValue(x, error, "..." if what else got, need, what)


def _match_needs(needs: dict[str, str], parameter: str) -> Iterator[tuple[str, str]]:
    """Yield each need of a parameter, with the name in the message if that is not the parameter's."""
    for need, parameters in needs.items():
        if parameter in parameters.split():
            what, _, rest = need.rpartition(": ")
            yield what, rest


# Parameters without a rule, with the reason: ``parameter``, ``function.parameter`` or ``framework.function.parameter``.
UNCHECKED: dict[str, str] = {
    parameter: why
    for why, parameters in {
        "stored or passed on unchanged": """
            BlockSeq2Seq.lr BlockSeq2Seq.tgt_pad RNNLM.lr RNNLMScratch.lr Seq2Seq.lr Seq2Seq.tgt_pad LeNet.lr LinearRegressionScratch.lr
            SoftmaxRegression.lr TrainCallback.device_name batch_axis hyperparams inter_mat
            padding_token sha1_hash states test_seq_iter train_ranking.candidates
            train_ranking.num_items train_ranking.num_users train_ranking.test_iter
            train_recsys_rating.test_iter weight""",
        "axes in Keras, not sizes": """
            tensorflow.AddNorm.norm_shape tensorflow.TransformerEncoder.norm_shape
            tensorflow.TransformerEncoderBlock.norm_shape""",
        "an optimizer of Keras": "tensorflow.train_epoch_ch8.updater",
        "a list, with a state for each layer": "tensorflow.GRU.H jax.GRU.state",
        "matplotlib's": """
            axes cmap figsize fmts legend show_images.imgs titles xlabel xlim xscale ylabel ylim yscale""",
        "the framework's": """
            args device dtype kernel_init key kwargs name options optimizer_D optimizer_G parent split_f
            strategy trainable trainer_D trainer_G training""",
        "any truth value": "averaged save_attention_weights",
        "every other token is <unk>": "Vocab.[].tokens",
        "used in some modes only": "split_data_ml100k.test_ratio",
        "positional only in the framework": "mlx.GRU.H mxnet.HingeLossbRec.margin",
        "init_seq2seq ignores other modules": "module",
        "evaluate_ranking only indexes it": "seq",
        "tested in test_errors.py": "defaults feat_mapper model load_array.rows",
    }.items()
    for parameter in parameters.split()
}


def find_bad_values(framework: str, call: str, parameter: Parameter, good: Any) -> list[BadValue]:
    """Return bad values for a parameter of a call; None is not among them if it is a good value.

    Raises LookupError if the parameter has no rule and is not listed in ``UNCHECKED``.
    """
    name = f"{call.partition(',')[0]}.{parameter.name}"
    if UNCHECKED.keys() & {name, f"{framework}.{name}"}:
        return []
    takes_none = parameter.default is None or good is None
    values = [*_apply_rules(name, good)] or [*_apply_rules(parameter.name, good)]
    if not values and parameter.name not in UNCHECKED:
        raise LookupError(f"{name} has no rule")
    return [bad for bad in values if not (takes_none and bad.value is None)]


def matches_message(expected: str, message: str) -> bool:
    """Return whether a message is the expected one, in which ``...`` stands for any text."""
    pattern = ".*".join(map(re.escape, expected.split("...")))
    return re.fullmatch(pattern, message, re.DOTALL) is not None
