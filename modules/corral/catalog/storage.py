"""What limits reading and writing of checkpoints beside the size of a Lustre: clients, services, copies to the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreClientLimits:
    """The most that one client of FSx for Lustre has; `server_gbps` is between it and one server, without EFA."""

    plain_gbps: float
    server_gbps: float
    efa_gbps: float
    gds_gbps: float
    gds_families: tuple[str, ...]
    no_efa_families: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EfsLimits:
    """The most that EFS with Elastic throughput gives to one client, and to all; `fast_regions` have more."""

    client_mib_per_s: float
    read_gib_per_s: float
    write_gib_per_s: float
    fast_read_gib_per_s: float
    fast_write_gib_per_s: float
    fast_regions: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Limits:
    """What S3 gives to one connection and one machine, and how many requests a prefix takes in a second."""

    connection_mb_per_s: float
    client_gbps: float
    puts_per_s: int
    gets_per_s: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCopy:
    """How fast one accelerator of these families copies its memory to that of its host."""

    name: str
    gb_per_s: float
    families: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """What a checkpoint holds of each parameter, in bytes."""

    name: str
    weights: float
    master: float
    moments: float
    source: str

    @property
    def bytes_per_parameter(self) -> float:
        """All of it."""
        return self.weights + self.master + self.moments


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRates:
    """Text and the tokens that are made of it; the tokenizer's rate is that of one server of the type `server`."""

    bytes_per_token: float
    tokenizer_bytes_per_s: float
    server: str
    source: str


@cache
def lustre_client_limits() -> LustreClientLimits:
    """Those of FSx for Lustre."""
    row = read_toml("storage.toml")["lustre_client"]
    lists = {key: tuple(row[key]) for key in ("gds_families", "no_efa_families")}
    return LustreClientLimits(**{**row, **lists})


@cache
def efs_limits() -> EfsLimits:
    """Those of EFS."""
    row = read_toml("storage.toml")["efs"]
    return EfsLimits(**{**row, "fast_regions": tuple(row["fast_regions"])})


@cache
def s3_limits() -> S3Limits:
    """Those of S3."""
    return S3Limits(**read_toml("storage.toml")["s3"])


@cache
def host_copies() -> tuple[HostCopy, ...]:
    """Every kind of copy, by name."""
    rows = read_toml("storage.toml")["host_copy"]
    return tuple(
        HostCopy(name=name, **{**rows[name], "families": tuple(rows[name]["families"])}) for name in sorted(rows)
    )


def find_host_copy(family: str) -> HostCopy | None:
    """The copy to the host on machines of this family; None where no figure is known."""
    return next((copy for copy in host_copies() if family in copy.families), None)


@cache
def checkpoint_states() -> Mapping[str, CheckpointState]:
    """What checkpoints hold, by name, in the order of the file."""
    rows = read_toml("storage.toml")["checkpoint_states"]
    return MappingProxyType({name: CheckpointState(name=name, **row) for name, row in rows.items()})


def find_checkpoint_state(name: str) -> CheckpointState:
    """The state of this name (`mixed-adam`). Raises UnknownName where there is none."""
    known = checkpoint_states()
    if name not in known:
        raise UnknownName("state of a checkpoint", name, known)
    return known[name]


@cache
def text_rates() -> TextRates:
    """Those of English text."""
    return TextRates(**read_toml("storage.toml")["text"])
