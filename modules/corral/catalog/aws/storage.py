"""Limits on reading and writing checkpoints besides a file system's size: clients, services, copies to the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_toml
from corral.catalog.loader.suggestions import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreClientLimits:
    """The limits of one FSx for Lustre client; `server_gbps` is between it and one server, without EFA."""

    plain_gbps: float
    server_gbps: float
    efa_gbps: float
    no_efa_families: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EfsLimits:
    """The limits of EFS with Elastic throughput, per client and in total; `fast_regions` have higher ones."""

    client_mib_per_s: float
    read_gib_per_s: float
    write_gib_per_s: float
    fast_read_gib_per_s: float
    fast_write_gib_per_s: float
    fast_regions: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCopy:
    """The bandwidth of copies from one accelerator's memory to its host, for these families."""

    name: str
    gb_per_s: float
    families: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """The bytes per parameter in a checkpoint."""

    name: str
    weights: float
    master: float
    moments: float
    source: str

    @property
    def bytes_per_parameter(self) -> float:
        """The total bytes per parameter."""
        return self.weights + self.master + self.moments


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRates:
    """Sizes of text and tokens, and the tokenizer's rate on one server of the type `server`."""

    bytes_per_token: float
    tokenizer_bytes_per_s: float
    server: str
    source: str


@cache
def lustre_client_limits() -> LustreClientLimits:
    """Return the limits of FSx for Lustre clients."""
    row = read_toml("storage.toml")["lustre_client"]
    return LustreClientLimits(**{**row, "no_efa_families": tuple(row["no_efa_families"])})


def has_lustre_efa(family: str, efa_maximum: int) -> bool:
    """Return whether FSx supports EFA between a Lustre file system and machines of this family."""
    return efa_maximum > 0 and family not in lustre_client_limits().no_efa_families


@cache
def efs_limits() -> EfsLimits:
    """Return the limits of EFS."""
    row = read_toml("storage.toml")["efs"]
    return EfsLimits(**{**row, "fast_regions": tuple(row["fast_regions"])})


@cache
def host_copies() -> tuple[HostCopy, ...]:
    """Return every kind of copy, by name."""
    rows = read_toml("storage.toml")["host_copy"]
    return tuple(
        HostCopy(name=name, **{**rows[name], "families": tuple(rows[name]["families"])}) for name in sorted(rows)
    )


def find_host_copy(family: str) -> HostCopy | None:
    """Return the copy to the host on machines of this family; None if unknown."""
    return next((copy for copy in host_copies() if family in copy.families), None)


@cache
def checkpoint_states() -> Mapping[str, CheckpointState]:
    """Return the kinds of checkpoint state, by name, in the order of the file."""
    rows = read_toml("storage.toml")["checkpoint_states"]
    return MappingProxyType({name: CheckpointState(name=name, **row) for name, row in rows.items()})


def find_checkpoint_state(name: str) -> CheckpointState:
    """Return the state of this name (`mixed-adam`). Raises UnknownName."""
    known = checkpoint_states()
    if name not in known:
        raise UnknownName("state of a checkpoint", name, known)
    return known[name]


@cache
def text_rates() -> TextRates:
    """Return the figures for English text."""
    return TextRates(**read_toml("storage.toml")["text"])
