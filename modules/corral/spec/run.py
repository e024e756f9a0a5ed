"""What a user declares for one training run: the model, the data, the layout, the queue that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from corral.catalog.instances import InstanceType
from corral.catalog.transformer import LatentAttention, TransformerModel
from corral.spec.amounts import Amount
from corral.spec.durations import DURATION_PATTERN, format_duration, parse_duration
from corral.spec.record import SpecRecord

CHOOSE = "choose"
DOWNLOAD_GB = 10.0  # of a machine that starts; an assumption
BEFORE, WHILE_TRAINING = "before", "while-training"  # when text is made into tokens
_MOST = 1_000_000  # of whatever a shape counts but tokens; no published model has more
Precision = Literal["fp32", "fp16", "bf16", "fp8"]
SpotShare = Literal["<5%", "5-10%", "10-15%", "15-20%", ">20%"]  # corral.catalog.spot_bands


def _chosen_or_fields(value: Any) -> Any:
    """None for the word `choose`; fields as they are. Raises PydanticCustomError for other words."""
    if value == CHOOSE:
        return None
    if isinstance(value, str):
        raise PydanticCustomError("choose_or_fields", "neither choose nor fields")
    return value


def _chosen_or_duration(value: Any) -> timedelta | None:
    if value == CHOOSE:
        return None
    try:
        found = parse_duration(value)
    except PydanticCustomError:
        raise PydanticCustomError("choose_or_duration", "neither choose nor a duration") from None
    if not found:
        raise PydanticCustomError("no_interval", "nothing")
    return found


Interval = Annotated[
    timedelta | None,
    PlainValidator(_chosen_or_duration),
    PlainSerializer(lambda value: CHOOSE if value is None else format_duration(value), return_type=str),
    WithJsonSchema({"type": "string", "pattern": rf"^choose$|{DURATION_PATTERN}", "examples": [CHOOSE, "30m", "1h"]}),
]


class LatentSpec(SpecRecord):
    """Attention whose queries, keys and values are made from short vectors (MLA, as DeepSeek-V3 has it)."""

    query_rank: int = Field(ge=1, le=_MOST, description="Length of the vector that queries are made from.")
    key_value_rank: int = Field(ge=1, le=_MOST, description="Length of the one for keys and values.")
    rotary: int = Field(ge=0, le=_MOST, description="Width of a query, and of the shared key, that has the position.")

    def attention(self) -> LatentAttention:
        """The same as the catalogue has it."""
        return LatentAttention(**self.model_dump())


class ShapeSpec(SpecRecord):
    """The shape of a decoder that the catalogue does not have."""

    layers: int = Field(ge=1, le=_MOST, description="How many layers it has.")
    hidden: int = Field(ge=1, le=_MOST, description="Width of what goes from layer to layer.")
    heads: int = Field(ge=1, le=_MOST, description="Attention heads of a layer.")
    kv_heads: int | None = Field(
        default=None, ge=1, le=_MOST, description="Heads of keys and values. Default: as many as heads."
    )
    head_dim: int | None = Field(default=None, ge=1, le=_MOST, description="Width of a head. Default: hidden / heads.")
    ffn: int = Field(ge=1, le=_MOST, description="Inner width of an MLP, or of one expert.")
    vocabulary: int = Field(ge=1, le=_MOST * 10, description="How many tokens it knows.")
    gated: bool = Field(default=True, description="Whether MLPs have three matrices (SwiGLU), not two. Default: true.")
    tied: bool = Field(
        default=False, description="Whether the output layer is the embedding once more. Default: false."
    )
    experts: int = Field(default=0, ge=0, le=_MOST, description="Experts of a layer, 0 for none. Default: 0.")
    top_k: int = Field(default=0, ge=0, le=_MOST, description="How many of them a token goes to. Default: 0.")
    shared: int = Field(default=0, ge=0, le=_MOST, description="Further experts that every token uses. Default: 0.")
    dense_layers: int = Field(
        default=0, ge=0, le=_MOST, description="First layers of a mixture that have no experts. Default: 0."
    )
    dense_ffn: int | None = Field(default=None, ge=1, le=_MOST, description="Inner width of an MLP of those layers.")
    latent: LatentSpec | None = Field(default=None, description="Latent attention (MLA). Default: plain attention.")

    def model(self) -> TransformerModel:
        """The same as a model of the catalogue, with what it says by default."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        heads = {"kv_heads": self.kv_heads or self.heads, "head_dim": self.head_dim or self.hidden // self.heads}
        latent = self.latent.attention() if self.latent else None
        own = {**heads, "dense_ffn": self.dense_ffn or 0, "latent": latent}
        return TransformerModel(name="own shape", **{**given, **own})


class LayoutSpec(SpecRecord):
    """How the run is laid over accelerators; together the degrees are as many as there are."""

    tensor: int = Field(default=1, ge=1, le=_MOST, description="Ranks that share each matrix. Default: 1.")
    pipeline: int = Field(default=1, ge=1, le=_MOST, description="Stages that the layers are cut into. Default: 1.")
    context: int = Field(default=1, ge=1, le=_MOST, description="Ranks that share each sequence. Default: 1.")
    expert: int = Field(
        default=1, ge=1, le=_MOST, description="Ranks that share the experts, within the other degrees. Default: 1."
    )
    data: int | None = Field(
        default=None, ge=1, le=_MOST, description="Ranks that share the batch. Default: what the others leave."
    )
    sharding: Literal["none", "zero1", "zero2", "zero3"] = Field(
        default="zero1",
        description="What data ranks divide: nothing, the optimizer, gradients too, parameters too (zero3 is FSDP)."
        " Default: zero1.",
    )
    micro_batch: int = Field(
        default=1, ge=1, le=_MOST, description="Sequences that a data rank computes at a time. Default: 1."
    )
    virtual_stages: int = Field(
        default=1, ge=1, le=_MOST, description="Parts of the model that each stage has (interleaving). Default: 1."
    )
    recompute: Literal["none", "selective", "operators", "full"] = Field(
        default="none",
        description="What is computed a second time instead of kept: nothing, the core of attention, every second"
        " operator of a layer, each layer. Default: none.",
    )


class CheckpointSpec(SpecRecord):
    """How the run saves its state."""

    interval: Interval = Field(
        default=None, description="How often: choose for the best by Daly's formula, or a duration. Default: choose."
    )
    to: str | None = Field(
        default=None,
        description="The file system: the name of a Lustre of the cluster or its base, or home. Default: the cluster's"
        " first Lustre, else the base's, else home.",
    )
    keep: int = Field(default=3, ge=1, le=_MOST, description="How many are kept at a time. Default: 3.")
    asynchronous: bool = Field(
        default=True,
        description="Whether training goes on while a copy in the host's memory is written. Default: true.",
    )


class LoaderSpec(SpecRecord):
    """How the run reads its data."""

    source: str | None = Field(
        default=None, alias="from", description="The file system that it reads, named as in checkpoint.to."
    )
    bytes_per_token: float | None = Field(
        default=None,
        gt=0,
        le=_MOST,
        description="Bytes that a token takes there. Default: 2, or 4 with a vocabulary over 65,536.",
    )
    file_mib: float = Field(default=1024, gt=0, le=_MOST, description="Size of a file in MiB. Default: 1024.")
    workers: int = Field(
        default=2, ge=0, le=1024, description="Processes that load data for each accelerator. Default: 2."
    )
    tokenize: Literal["none", "before", "while-training"] = Field(
        default="none",
        description="When text is made into tokens: not at all, as the data are tokens; once before the run, on a"
        " server that is paid for; or while it trains, by its nodes. Default: none.",
    )


class RunWishes(SpecRecord):
    """A run file: `--run run.yaml`."""

    model: str | None = Field(default=None, description="A model of corral's catalogue, such as llama3-8b.")
    shape: ShapeSpec | None = Field(default=None, description="The shape of another model, instead of `model`.")
    tokens: Amount = Field(description="How many tokens it trains on, such as 15T or 300B.")
    sequence_length: int = Field(ge=1, le=10**8, description="Tokens of a sequence.")
    batch_sequences: int | None = Field(
        default=None, ge=1, le=10**9, description="Sequences of a step, on all accelerators together."
    )
    batch_tokens: Amount | None = Field(default=None, description="Tokens of a step, instead of `batch_sequences`.")
    precision: Precision = Field(
        default="bf16", description="Numbers that matrix products take; fp32 means TF32 where there is. Default: bf16."
    )
    offload: Literal["none", "optimizer"] = Field(
        default="none",
        description="What the host's memory holds: nothing, or the optimizer's state, stepped there. Default: none.",
    )
    layout: Annotated[LayoutSpec | None, BeforeValidator(_chosen_or_fields)] = Field(
        default=None, description="choose for the fastest that fits, or the degrees. Default: choose."
    )
    queue: str | None = Field(default=None, description="The queue whose machines it runs on. Default: the first one.")
    nodes: int | None = Field(default=None, ge=1, description="How many of its nodes. Default: all that it may have.")
    checkpoint: CheckpointSpec | None = Field(default=None, description="How it saves its state. Default: not said.")
    loader: LoaderSpec | None = Field(default=None, description="How it reads its data. Default: not said.")
    download_gb: float = Field(
        default=DOWNLOAD_GB,
        ge=0,
        le=_MOST,
        description="GB that each machine downloads through the NAT gateway when it starts, container images and"
        " packages. Default: 10, a large image.",
    )
    spot_interruptions: SpotShare | None = Field(
        default=None,
        description="The share of such spot machines that AWS takes back in a month, as its Spot Instance Advisor shows"
        " it today. Default: as in the catalogue's copy, else any share.",
    )
    usd_total_max: float | None = Field(
        default=None,
        gt=0,
        description="Most US dollars that the whole run may cost in any market that can give its nodes; `corral plan`"
        " refuses more. Default: no limit.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A run as declared, with what its words mean in an environment. `layout`: None where it is to be chosen.

    `nodes` machines of the type `machine`, joined by EFA or not. File systems are named, `home` is the base's.
    """

    file: str
    model: TransformerModel
    tokens: int
    sequence_length: int
    batch_sequences: int
    precision: Precision
    offload_optimizer: bool
    layout: LayoutSpec | None
    queue: str
    machine: InstanceType
    nodes: int
    efa: bool
    checkpoint: CheckpointSpec | None
    loader: LoaderSpec | None
    usd_total_max: float | None = None
    download_gb: float = DOWNLOAD_GB
    spot_interruptions: SpotShare | None = None

    @property
    def accelerators(self) -> int:
        """How many it has."""
        return self.nodes * (self.machine.accelerator.count if self.machine.accelerator else 0)
