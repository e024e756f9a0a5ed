"""The shape of a transformer, and what follows from it alone: parameters, active ones, those in matrix products."""

from __future__ import annotations

from dataclasses import dataclass

_NORMS = 2  # in a layer, and one vector each; a third kind is the last norm of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A decoder. `gated`: three MLP matrices (SwiGLU), not two. `ffn` is the width of one expert where there are any.

    `biases`: every matrix and norm has a bias, as GPT's; `positions`: learned position embeddings, 0 with rotary ones.
    `experts` is 0 for a dense model; `shared` experts are used by every token. `active` is the published number of
    active parameters, which replaces the computed one where a model has other layers than these (latent attention).
    """

    name: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    biases: bool = False
    positions: int = 0
    experts: int = 0
    top_k: int = 0
    shared: int = 0
    active: float | None = None

    @property
    def is_moe(self) -> bool:
        """Whether a token uses some of many experts."""
        return self.experts > 0

    @property
    def attention_matmul(self) -> int:
        """Parameters of the four projections of a layer: 2 h a d + 2 h kv d."""
        return 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)

    @property
    def mlp_matmul(self) -> int:
        """Parameters of one MLP, or of one expert."""
        return (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def mlps_in_use(self) -> int:
        """How many MLPs a token goes through in a layer."""
        return self.top_k + self.shared if self.is_moe else 1

    @property
    def expert_parameters(self) -> int:
        """Parameters of a layer's routed experts: what expert parallelism divides."""
        return self.experts * self.mlp_matmul

    @property
    def shared_layer_parameters(self) -> int:
        """Parameters of a layer without its routed experts."""
        mlps = self.shared if self.is_moe else 1
        router = self.hidden * self.experts
        return self.attention_matmul + mlps * self.mlp_matmul + router + self._vectors

    @property
    def layer_parameters(self) -> int:
        """Parameters of a layer, all experts included."""
        return self.shared_layer_parameters + self.expert_parameters

    @property
    def embedding(self) -> int:
        """Parameters of the table of tokens, once."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Every parameter. GPT: 12 L h^2 (1 + 13/(12h) + (V+s)/(12Lh)), Narayanan et al. 2021 (arXiv:2104.04473) eq. 2.

        That equation leaves out the last norm, which is 2h of many billions.
        """
        tables = self.embedding * (1 if self.tied else 2) + self.positions * self.hidden
        return self.layers * self.layer_parameters + tables + self.hidden * (2 if self.biases else 1)

    @property
    def active_parameters(self) -> float:
        """Parameters that one token uses, embeddings included; the published figure where there is one."""
        idle = self.layers * (self.experts - self.top_k) * self.mlp_matmul if self.is_moe else 0
        return self.active if self.active is not None else self.parameters - idle

    @property
    def matmul_parameters(self) -> float:
        """W: parameters of the matrix products of one token, L (2had + 2h kv d + 2 or 3 hf x MLPs) + Vh."""
        return self.layers * self.layer_matmul + self.embedding

    @property
    def layer_matmul(self) -> float:
        """What a layer adds to W. Of a published number of active parameters, both embedding tables are taken off."""
        if self.active is not None:
            layers = self.active - self.embedding * (1 if self.tied else 2)
            return max(self.attention_matmul, layers / self.layers)
        return self.attention_matmul + self.mlps_in_use * self.mlp_matmul

    @property
    def _vectors(self) -> int:
        """Norms and biases of a layer: 2h, or GPT's 13h (h and f = 4h)."""
        norms = _NORMS * self.hidden * (2 if self.biases else 1)
        attention = self.head_dim * (self.heads + 2 * self.kv_heads) + self.hidden
        return norms + (attention + self.ffn + self.hidden if self.biases else 0)
