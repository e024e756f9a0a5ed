"""The fields of a cluster's own Slurm configuration: keys, programs around jobs, plugins."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corral.spec.models.base_model import SpecRecord
from corral.spec.models.queues import SlurmValue


class SlurmSpec(SpecRecord):
    """Your own lines in slurm.conf, and your own programs that Slurm runs."""

    extra: Mapping[str, SlurmValue] = Field(
        default={},
        description="Additional slurm.conf keys that the image's Slurm supports, such as MaxJobCount; keys that corral"
        " sets itself are rejected.",
    )
    prolog: str | None = Field(
        default=None,
        description="Script, with its #! line, that root runs on each node before a job's first step there, after"
        " corral's health check. If it fails, the node is drained and the job requeued. Default: none.",
    )
    epilog: str | None = Field(
        default=None,
        description="Script that root runs on each node after a job. If it fails, the node is drained. Default: none.",
    )
    prolog_slurmctld: str | None = Field(
        default=None,
        description="Script that user slurm runs on the head before a job gets its nodes. If it fails, the job is"
        " requeued. Default: none.",
    )
    epilog_slurmctld: str | None = Field(
        default=None, description="Script that user slurm runs on the head after a job. Default: none."
    )
    job_submit: str | None = Field(
        default=None,
        description="Lua text of job_submit.lua, whose functions slurmctld calls for each job that is submitted or"
        " modified. Default: none.",
    )
    plugstack: tuple[str, ...] = Field(
        default=(),
        description="Lines of plugstack.conf, which load SPANK plugins of your image: required or optional, the"
        " plugin's file, its arguments. Default: none.",
    )
