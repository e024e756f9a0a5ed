"""A Llama-like model as plain functions of PyTorch, for gpu_step.py: weights in fp32, everything else in bf16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

HEAD_DIM = 128
ROTARY_BASE = 10_000.0

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The model, and the tokens of a sequence. Every head has its own keys, and the output layer its own weights."""

    layers: int
    hidden: int
    ffn: int
    vocab: int
    seq_len: int

    @property
    def matmul_parameters(self) -> int:
        """The weights of all matrix products."""
        return self.layers * (4 * self.hidden**2 + 3 * self.hidden * self.ffn) + self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.matmul_parameters + self.vocab * self.hidden + (2 * self.layers + 1) * self.hidden

    @property
    def flops_per_token(self) -> int:
        """6 W + 12 L a d s: attention is not halved. Source: PaLM, arXiv:2204.02311, appendix B."""
        return 6 * self.matmul_parameters + 12 * self.layers * self.hidden * self.seq_len


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The weights. `ends`: those before and after the layers."""

    layers: Sequence[Weights]
    ends: Weights

    def parameters(self) -> list[Tensor]:
        """All weights in a list."""
        return [weight for weights in (*self.layers, self.ends) for weight in weights.values()]


def new_model(shape: Shape) -> Model:
    """A model with random weights."""
    hidden, ffn = shape.hidden, shape.ffn
    matrices = {"qkv": (3 * hidden, hidden), "out": (hidden, hidden), "gate": (2 * ffn, hidden), "down": (hidden, ffn)}
    layers = [
        {
            **{name: random_matrix(*size) for name, size in matrices.items()},
            "norm_1": ones(hidden),
            "norm_2": ones(hidden),
        }
        for _ in range(shape.layers)
    ]
    ends = {name: random_matrix(shape.vocab, hidden) for name in ("embedding", "head")}
    return Model(layers=layers, ends={**ends, "norm": ones(hidden)})


def random_matrix(rows: int, columns: int) -> Tensor:
    """A trainable matrix on the GPU, in fp32."""
    return torch.empty(rows, columns, device="cuda").normal_(0, 0.02).requires_grad_()


def ones(width: int) -> Tensor:
    """A trainable vector on the GPU, in fp32."""
    return torch.ones(width, device="cuda", requires_grad=True)


def rotary_angles(shape: Shape) -> Tensor:
    """The angle of each position and pair of a head's numbers, [seq_len, HEAD_DIM / 2]."""
    rates = ROTARY_BASE ** -(torch.arange(0, HEAD_DIM, 2, device="cuda") / HEAD_DIM)
    return torch.outer(torch.arange(shape.seq_len, device="cuda"), rates)


def apply_layer(x: Tensor, weights: Weights, angles: Tensor) -> Tensor:
    """x after causal attention and a gated MLP, [batch, seq_len, hidden] in bf16."""
    batch, seq_len, hidden = x.shape
    projected = functional.linear(rms_norm(x, weights["norm_1"]), weights["qkv"].bfloat16())
    query, key, value = projected.view(batch, seq_len, 3, hidden // HEAD_DIM, HEAD_DIM).permute(2, 0, 3, 1, 4)
    attended = functional.scaled_dot_product_attention(
        rotate(query, angles), rotate(key, angles), value, is_causal=True
    )
    x = x + functional.linear(attended.transpose(1, 2).reshape(x.shape), weights["out"].bfloat16())
    gate, up = functional.linear(rms_norm(x, weights["norm_2"]), weights["gate"].bfloat16()).chunk(2, dim=-1)
    return x + functional.linear(functional.silu(gate) * up, weights["down"].bfloat16())


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """x scaled to a root mean square of 1 at each position, times the weight."""
    return functional.rms_norm(x.float(), weight.shape, weight, 1e-5).bfloat16()


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """x with each pair of numbers turned by the angle of its position."""
    first, second = x.float().chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).bfloat16()


def mean_loss(x: Tensor, ends: Weights, targets: Tensor) -> Tensor:
    """The mean cross-entropy of the next tokens."""
    logits = functional.linear(rms_norm(x, ends["norm"]), ends["head"].bfloat16())
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
