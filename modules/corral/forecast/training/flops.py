"""Floating-point operations of training per token, as model FLOPs (MFU) and hardware FLOPs (HFU)."""

from __future__ import annotations

from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.layout import Recompute

_TRAINING = 3  # forward once, backward twice: with respect to the inputs and to the weights


def attention_flops(shape: TransformerModel, seq_len: float, *, causal: bool = False) -> float:
    """Forward FLOPs of one token in the attention core of one layer; `causal` counts the unmasked half.

    4 a d s: PaLM (arXiv:2204.02311) appendix B, without its factor 3 for training. Latent queries and keys are wider.
    """
    return 2 * (shape.query_width + shape.value_width) * seq_len * (0.5 if causal else 1)


def model_flops_per_token(shape: TransformerModel, seq_len: float, *, causal: bool = False) -> float:
    """6 W + 12 L a d s, or 6 W + 6 L a d s if causal: what MFU counts, no recomputation. PaLM, appendix B."""
    attention = shape.layers * attention_flops(shape, seq_len, causal=causal)
    return _TRAINING * (2 * shape.matmul_parameters + attention)


def recomputed_flops(shape: TransformerModel, seq_len: float, recompute: Recompute, *, causal: bool = False) -> float:
    """Recomputed FLOPs of one token in one layer."""
    attention = attention_flops(shape, seq_len, causal=causal)
    match recompute:
        case Recompute.NONE:
            return 0.0
        case Recompute.SELECTIVE:
            return attention
        case Recompute.OPERATORS:
            return shape.layer_matmul  # half of the 2 x; the other half and the output of attention are stored
        case Recompute.FULL:
            return 2 * shape.layer_matmul + attention


def hardware_flops_per_token(
    shape: TransformerModel, seq_len: float, recompute: Recompute, *, causal: bool = False
) -> float:
    """Model FLOPs and the recomputed ones: what HFU counts. With FULL, 96 B s L h^2 (...) of Narayanan et al. eq. 3."""
    again = shape.layers * recomputed_flops(shape, seq_len, recompute, causal=causal)
    return model_flops_per_token(shape, seq_len, causal=causal) + again


def six_n_flops_per_token(shape: TransformerModel) -> float:
    """6 N, N the active parameters: the rule of thumb, without attention."""
    return 6 * shape.active_parameters
