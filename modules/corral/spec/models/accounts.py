"""The fields of Slurm's accounts and QOS."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from corral.spec.models.base_model import SpecRecord
from corral.spec.models.durations import Duration

_LARGEST = 2_000_000_000


class AccountSpec(SpecRecord):
    """An account of Slurm: a team or a project, whose people share priority and limits."""

    parent: str | None = Field(
        default=None, description="The account above it, whose fair share it divides. Default: none."
    )
    shares: int = Field(
        default=1, ge=1, le=65533, description="Its part of the parent's fair share, against its siblings'. Default: 1."
    )
    qos: tuple[str, ...] = Field(
        default=(),
        description="Names in `qos` that its jobs may use, the default first; `normal` is Slurm's own."
        " Default: what the parent may use.",
    )


class QosSpec(SpecRecord):
    """A quality of service: priority and limits of the jobs that use it, by `--qos` or by their account's default."""

    priority: int = Field(default=0, ge=0, le=_LARGEST, description="Added to the priority of its jobs. Default: 0.")
    gpus: int | None = Field(
        default=None, ge=1, le=_LARGEST, description="GPUs that all its running jobs may have. Default: no limit."
    )
    cpus: int | None = Field(
        default=None, ge=1, le=_LARGEST, description="CPUs that all its running jobs may have. Default: no limit."
    )
    gpus_per_user: int | None = Field(
        default=None, ge=1, le=_LARGEST, description="GPUs that each person's running jobs may have. Default: no limit."
    )
    cpus_per_user: int | None = Field(
        default=None, ge=1, le=_LARGEST, description="CPUs that each person's running jobs may have. Default: no limit."
    )
    jobs_per_user: int | None = Field(
        default=None, ge=1, le=_LARGEST, description="Running jobs of each person. Default: no limit."
    )
    gpu_hours: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST // 60,
        description="GPU hours that all its jobs may use, ever. A job starts only if its time limit fits into what is"
        " left. Default: no limit.",
    )
    preempts: tuple[str, ...] = Field(
        default=(),
        description="Names in `qos` whose running jobs are requeued if a job of this QOS needs their nodes."
        " Default: none.",
    )
    grace: Duration = Field(
        default=timedelta(minutes=2),
        description="Time for its jobs to save a checkpoint, after a signal, before another QOS preempts them."
        " Default: 2m.",
    )
