"""The fields of access: keys of the image's user, and the cluster's people."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corral.model.users import FIRST_ID, LAST_ID, RemovedJobs
from corral.spec.models.base_model import SpecRecord


class UserSpec(SpecRecord):
    """A person, who has the same name, id, groups and home on each machine."""

    uid: int | None = Field(
        default=None,
        ge=FIRST_ID,
        le=LAST_ID,
        description=f"User id, {FIRST_ID} to {LAST_ID}, which is also the id of the person's own group."
        " Default: derived from the name.",
    )
    groups: tuple[str, ...] = Field(
        default=(), description="Groups that people share, such as a project's. Default: none."
    )
    ssh_keys: tuple[str, ...] = Field(
        default=(),
        description="Public keys for SSH to login nodes, or to the head: ssh-ed25519 AAAA.... Default: none.",
    )
    account: str | None = Field(
        default=None, description="Name in `accounts` that the person's jobs belong to. Default: everybody."
    )
    admin: bool = Field(
        default=False, description="Whether the person may become root on head and login nodes by sudo. Default: false."
    )


class AccessSpec(SpecRecord):
    """Who has access. Machines have no public address: shells and SSH go through Session Manager."""

    ssh_keys: tuple[str, ...] = Field(
        default=(),
        description="Public keys for SSH to login nodes, or to the head, as the image's user: ssh-ed25519 AAAA...."
        " Default: none.",
    )
    users: Mapping[str, UserSpec] = Field(
        default={},
        description="People by user name. Remove one to lock the account on all machines within a minute of"
        " `corral up`; files stay. Default: none, everybody is the image's user.",
    )
    groups: Mapping[str, int] = Field(
        default={},
        description="Ids of groups in `users`, where they must be those of your files. Default: derived from the name.",
    )
    removed_jobs: RemovedJobs = Field(
        default=RemovedJobs.FINISH,
        description="What happens to the running jobs of a removed person: finish or cancel. Waiting ones are"
        " cancelled. Default: finish.",
    )
    shows_jobs: bool = Field(
        default=False, description="Whether people in `users` see each other's jobs. Default: false."
    )
