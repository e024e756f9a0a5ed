"""The shape of a transformer and its parameter counts: all, active, and in matrix products."""

from __future__ import annotations

from dataclasses import dataclass

_NORMS = 2  # per layer, one vector each; the model has one more at its end


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Queries, keys and values from compressed vectors (MLA, DeepSeek-V2, arXiv:2405.04434, 2.1).

    `query_rank` and `key_value_rank` are the lengths of these vectors; `rotary` is the additional width of each query,
    and of the one key that all heads share, for the position.
    """

    query_rank: int
    key_value_rank: int
    rotary: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerModel:
    """A decoder. `gated`: three MLP matrices (SwiGLU), not two. `ffn` is the width of an MLP or of one expert.

    `biases`: every matrix and norm has a bias, as in GPT; `positions`: learned position embeddings, 0 with rotary ones.
    `experts` is 0 for a dense model; every token uses the `shared` experts. The first `dense_layers` of a mixture have
    one MLP of width `dense_ffn` instead. Figures per layer are the mean of all layers if these differ.

    `active`: a published number of active parameters, which replaces the computed one. `caveat`: parts of the model
    that these figures omit.
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
    dense_layers: int = 0
    dense_ffn: int = 0
    latent: LatentAttention | None = None
    active: float | None = None
    source: str | None = None
    caveat: str | None = None

    @property
    def is_moe(self) -> bool:
        """Whether it is a mixture of experts."""
        return self.experts > 0

    @property
    def query_width(self) -> int:
        """Width of all queries of a layer, including the rotary part of latent attention."""
        return self.heads * (self.head_dim + (self.latent.rotary if self.latent else 0))

    @property
    def key_value_width(self) -> int:
        """Width of all keys and values of a layer, as attention reads them."""
        return self.kv_heads * (2 * self.head_dim + (self.latent.rotary if self.latent else 0))

    @property
    def value_width(self) -> int:
        """Width of attention's output."""
        return self.heads * self.head_dim

    @property
    def latent_width(self) -> int:
        """Total length of the compressed vectors of a layer; 0 if attention is not latent."""
        return self.latent.query_rank + self.latent.key_value_rank if self.latent else 0

    @property
    def attention_matmul(self) -> int:
        """Parameters of a layer's projections: 2 h a d + 2 h kv d; latent ones project down to the ranks and up."""
        if self.latent is None:
            return self.hidden * (self.query_width + self.key_value_width + self.value_width)
        latent = self.latent
        down = self.hidden * (latent.query_rank + latent.key_value_rank + latent.rotary)
        up = latent.query_rank * self.query_width + latent.key_value_rank * 2 * self.heads * self.head_dim
        return down + up + self.value_width * self.hidden

    @property
    def mlp_matmul(self) -> int:
        """Parameters of one MLP, or of one expert."""
        return self._matrices * self.hidden * self.ffn

    @property
    def mlps_in_use(self) -> int:
        """The number of MLPs that a token uses in a layer."""
        return self.top_k + self.shared if self.is_moe else 1

    @property
    def routed_matmul(self) -> float:
        """Parameters of the experts, including shared ones, that a token uses in a layer; 0 for a dense model."""
        return self._mean(self.mlps_in_use * self.mlp_matmul, 0) if self.is_moe else 0

    @property
    def mlp_width_in_use(self) -> float:
        """Total inner width of all MLPs that a token uses in a layer."""
        return self._mean(self.mlps_in_use * self.ffn, self.dense_ffn)

    @property
    def expert_parameters(self) -> float:
        """Parameters of a layer's routed experts: what expert parallelism divides."""
        return self._mean(self.experts * self.mlp_matmul, 0)

    @property
    def shared_layer_parameters(self) -> float:
        """Parameters of a layer without its routed experts."""
        mlps = self.shared if self.is_moe else 1
        router = self.hidden * self.experts
        dense = self._matrices * self.hidden * self.dense_ffn
        return self.attention_matmul + self._mean(mlps * self.mlp_matmul + router, dense) + self._vectors

    @property
    def layer_parameters(self) -> float:
        """Parameters of a layer, all experts included."""
        return self.shared_layer_parameters + self.expert_parameters

    @property
    def embedding(self) -> int:
        """Parameters of one embedding table."""
        return self.vocabulary * self.hidden

    @property
    def embeddings(self) -> int:
        """Parameters of the input and output embeddings; counted once if tied."""
        return self.embedding * (1 if self.tied else 2)

    @property
    def parameters(self) -> float:
        """Every parameter. GPT: 12 L h^2 (1 + 13/(12h) + (V+s)/(12Lh)), Narayanan et al. 2021 (arXiv:2104.04473) eq. 2.

        That equation omits the last norm: 2h of many billions.
        """
        tables = self.embeddings + self.positions * self.hidden
        return self.layers * self.layer_parameters + tables + self.hidden * (2 if self.biases else 1)

    @property
    def active_parameters(self) -> float:
        """Parameters that one token uses, including embeddings; the published figure if there is one."""
        idle = (self.layers - self.dense_layers) * (self.experts - self.top_k) * self.mlp_matmul if self.is_moe else 0
        return self.active if self.active is not None else self.parameters - idle

    @property
    def matmul_parameters(self) -> float:
        """W: parameters of the matrix products of one token, L (2had + 2h kv d + 2 or 3 hf x MLPs) + Vh."""
        return self.layers * self.layer_matmul + self.embedding

    @property
    def layer_matmul(self) -> float:
        """A layer's part of W. From a published number of active parameters, subtract both embedding tables."""
        if self.active is not None:
            layers = self.active - self.embeddings
            return max(self.attention_matmul, layers / self.layers)
        return self.attention_matmul + self._matrices * self.hidden * self.mlp_width_in_use

    @property
    def _matrices(self) -> int:
        return 3 if self.gated else 2

    def _mean(self, routed: float, dense: float) -> float:
        """Return the mean per layer of a value that differs between dense and routed layers."""
        if not self.dense_layers:
            return routed
        return (routed * (self.layers - self.dense_layers) + dense * self.dense_layers) / self.layers

    @property
    def _vectors(self) -> int:
        """Norms and biases of a layer: 2h, or GPT's 13h (h and f = 4h)."""
        norms = _NORMS * self.hidden * (2 if self.biases else 1)
        norms += self.latent_width
        attention = self.query_width + self.key_value_width + self.hidden
        return norms + (attention + self.ffn + self.hidden if self.biases else 0)
