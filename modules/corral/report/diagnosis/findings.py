"""What a diagnosis may find."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """The kinds of findings, the causes of others first; the values appear in documents."""

    OUT_OF_MEMORY = "out-of-memory"
    WRONG_NETWORK = "wrong-network-settings"
    THROTTLED_GPU = "throttled-gpu"
    SLOW_FILE_SYSTEM = "slow-file-system"
    STRAGGLER = "straggler"
    DATA_LOADER = "data-loader"
    COMMUNICATION = "communication"
    CHECKPOINTS = "checkpoint-stalls"
    MEMORY_BOUND = "memory-bound"
    IDLE_GPUS = "idle-gpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinding:
    """What is wrong, where, why that is believed, and what to do first. `nodes`: empty if it concerns all."""

    kind: FindingKind
    title: str
    evidence: tuple[str, ...]
    first: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The findings, the cause of others first. `unknown`: what could not be looked at, a phrase each."""

    findings: tuple[JobFinding, ...]
    unknown: tuple[str, ...]
