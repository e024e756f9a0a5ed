"""The fields of a run file: a training run's model, data, layout and queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from corral.catalog.accelerators.transformer import LatentAttention, TransformerModel
from corral.catalog.aws.instance_types import InstanceType
from corral.spec.models.base_model import SpecRecord
from corral.spec.models.durations import DURATION_PATTERN, format_duration, parse_duration
from corral.spec.models.number_format import Amount

CHOOSE = "choose"
DOWNLOAD_GB = 10.0  # per machine start; an assumption
BEFORE, WHILE_TRAINING = "before", "while-training"  # when text is tokenized
_MAX = 1_000_000  # upper limit of every count but tokens; no published model has more
Precision = Literal["fp32", "fp16", "bf16", "fp8"]
SpotShare = Literal["<5%", "5-10%", "10-15%", "15-20%", ">20%"]  # corral.catalog.aws.spot_interruption_rates


def _chosen_or_fields(value: Any) -> Any:
    """Return None for `choose`, and fields unchanged. Raises PydanticCustomError for other text."""
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
    """Multi-head latent attention (MLA), as in DeepSeek-V3: queries, keys and values come from compressed vectors."""

    query_rank: int = Field(ge=1, le=_MAX, description="Rank of the query compression.")
    key_value_rank: int = Field(ge=1, le=_MAX, description="Rank of the key-value compression.")
    rotary: int = Field(
        ge=0, le=_MAX, description="Width of the rotary (position) part of a query and of the shared key."
    )

    def attention(self) -> LatentAttention:
        """Convert to the catalog's type."""
        return LatentAttention(**self.model_dump())


class ShapeSpec(SpecRecord):
    """The shape of a decoder that is not in the catalog."""

    layers: int = Field(ge=1, le=_MAX, description="Number of layers.")
    hidden: int = Field(ge=1, le=_MAX, description="Hidden size.")
    heads: int = Field(ge=1, le=_MAX, description="Attention heads per layer.")
    kv_heads: int | None = Field(
        default=None, ge=1, le=_MAX, description="Key-value heads per layer. Default: the same as heads."
    )
    head_dim: int | None = Field(default=None, ge=1, le=_MAX, description="Width of a head. Default: hidden / heads.")
    ffn: int = Field(ge=1, le=_MAX, description="Inner width of an MLP, or of one expert.")
    vocabulary: int = Field(ge=1, le=_MAX * 10, description="Vocabulary size.")
    gated: bool = Field(default=True, description="MLPs have three matrices (SwiGLU) instead of two. Default: true.")
    tied: bool = Field(
        default=False, description="The output layer shares its weights with the embedding. Default: false."
    )
    experts: int = Field(default=0, ge=0, le=_MAX, description="Experts per layer, 0 for none. Default: 0.")
    top_k: int = Field(default=0, ge=0, le=_MAX, description="Routed experts per token. Default: 0.")
    shared: int = Field(default=0, ge=0, le=_MAX, description="Additional experts that every token uses. Default: 0.")
    dense_layers: int = Field(
        default=0, ge=0, le=_MAX, description="Number of first layers without experts. Default: 0."
    )
    dense_ffn: int | None = Field(
        default=None, ge=1, le=_MAX, description="Inner width of an MLP in the layers without experts."
    )
    latent: LatentSpec | None = Field(
        default=None, description="Multi-head latent attention (MLA). Default: standard attention."
    )

    def model(self) -> TransformerModel:
        """Convert to the catalog's type, with defaults filled in."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        heads = {"kv_heads": self.kv_heads or self.heads, "head_dim": self.head_dim or self.hidden // self.heads}
        latent = self.latent.attention() if self.latent else None
        own = {**heads, "dense_ffn": self.dense_ffn or 0, "latent": latent}
        return TransformerModel(name="own shape", **{**given, **own})


class LayoutSpec(SpecRecord):
    """Parallelism: the product of the degrees is the number of accelerators."""

    tensor: int = Field(default=1, ge=1, le=_MAX, description="Ranks that share each matrix. Default: 1.")
    pipeline: int = Field(default=1, ge=1, le=_MAX, description="Pipeline stages. Default: 1.")
    context: int = Field(default=1, ge=1, le=_MAX, description="Ranks that share each sequence. Default: 1.")
    expert: int = Field(
        default=1, ge=1, le=_MAX, description="Ranks that share the experts, within the other degrees. Default: 1."
    )
    data: int | None = Field(
        default=None,
        ge=1,
        le=_MAX,
        description="Ranks that share the batch. Default: all that the other degrees leave.",
    )
    sharding: Literal["none", "zero1", "zero2", "zero3"] = Field(
        default="zero1",
        description="State that data ranks shard: none; zero1 the optimizer; zero2 also gradients; zero3 also"
        " parameters, like FSDP. Default: zero1.",
    )
    micro_batch: int = Field(
        default=1, ge=1, le=_MAX, description="Sequences per micro-batch of a data rank. Default: 1."
    )
    virtual_stages: int = Field(
        default=1, ge=1, le=_MAX, description="Model chunks per pipeline stage (interleaving). Default: 1."
    )
    recompute: Literal["none", "selective", "operators", "full"] = Field(
        default="none",
        description="Activations to recompute instead of storing: none; selective, the attention core; operators, every"
        " second operator of a layer; full, whole layers. Default: none.",
    )


class CheckpointSpec(SpecRecord):
    """How the run saves its state."""

    interval: Interval = Field(
        default=None, description="Checkpoint interval: a duration, or choose to use Daly's formula. Default: choose."
    )
    to: str | None = Field(
        default=None,
        description="File system: a Lustre file system of the cluster or its base by name, or home. Default: the"
        " cluster's first Lustre file system, then the base's, then home.",
    )
    keep: int = Field(default=3, ge=1, le=_MAX, description="Number of checkpoints to keep. Default: 3.")
    asynchronous: bool = Field(
        default=True,
        description="Continue training while a copy in host memory is written. Default: true.",
    )


class LoaderSpec(SpecRecord):
    """How the run reads its data."""

    source: str | None = Field(
        default=None, alias="from", description="File system to read from, named as in checkpoint.to."
    )
    bytes_per_token: float | None = Field(
        default=None,
        gt=0,
        le=_MAX,
        description="Bytes per token in the files. Default: 2, or 4 with a vocabulary over 65,536.",
    )
    file_mib: float = Field(default=1024, gt=0, le=_MAX, description="Size of a file in MiB. Default: 1024.")
    workers: int = Field(default=2, ge=0, le=1024, description="Data loader processes per accelerator. Default: 2.")
    tokenize: Literal["none", "before", "while-training"] = Field(
        default="none",
        description="When to tokenize text: none, the data is already tokenized; before, once before the run, on a"
        " billed server; while-training, on the run's nodes. Default: none.",
    )


class RunSpecInput(SpecRecord):
    """A run file: `--run run.yaml`."""

    model: str | None = Field(default=None, description="A model in corral's catalog, such as llama3-8b.")
    shape: ShapeSpec | None = Field(default=None, description="The shape of another model, instead of `model`.")
    tokens: Amount = Field(description="Number of training tokens, such as 15T or 300B.")
    sequence_length: int = Field(ge=1, le=10**8, description="Tokens per sequence.")
    batch_sequences: int | None = Field(
        default=None, ge=1, le=10**9, description="Global batch size: sequences per step."
    )
    batch_tokens: Amount | None = Field(default=None, description="Tokens per step, instead of `batch_sequences`.")
    precision: Precision = Field(
        default="bf16",
        description="Number format of matrix products; fp32 uses TF32 where available. Default: bf16.",
    )
    offload: Literal["none", "optimizer"] = Field(
        default="none",
        description="State in host memory: none, or the optimizer's, which the host then updates. Default: none.",
    )
    layout: Annotated[LayoutSpec | None, BeforeValidator(_chosen_or_fields)] = Field(
        default=None, description="The degrees, or choose to use the fastest layout that fits. Default: choose."
    )
    queue: str | None = Field(default=None, description="The queue to run on. Default: the first queue.")
    nodes: int | None = Field(default=None, ge=1, description="Number of nodes. Default: the queue's maximum.")
    checkpoint: CheckpointSpec | None = Field(
        default=None, description="How the run saves its state. Default: the defaults of its fields."
    )
    loader: LoaderSpec | None = Field(
        default=None, description="How the run reads its data. Default: not included in the forecast."
    )
    download_gb: float = Field(
        default=DOWNLOAD_GB,
        ge=0,
        le=_MAX,
        description="GB that each machine downloads through the NAT gateway at start, such as container images and"
        " packages. Default: 10, a large image.",
    )
    spot_interruptions: SpotShare | None = Field(
        default=None,
        description="Frequency of spot interruptions per month, as the Spot Instance Advisor shows it today. Default:"
        " the value in the catalog; without one, the full range.",
    )
    usd_total_max: float | None = Field(
        default=None,
        gt=0,
        description="Maximum cost of the whole run in US dollars, in every market that can provide its nodes;"
        " `corral plan` refuses more. Default: no limit.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A declared run, resolved in an environment. `layout`: None if corral chooses it.

    `nodes` is the number of machines of the type `machine`; `efa`: EFA connects them. File systems are referenced by
    name; `home` is the base's.
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
        """The number of accelerators."""
        return self.nodes * (self.machine.accelerator.count if self.machine.accelerator else 0)
