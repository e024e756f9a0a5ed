"""The fields of access: keys of the image's user, and the cluster's people."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corral.model.users import FIRST_ID, LAST_ID, DirectorySchema, RemovedJobs
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


class DirectorySpec(SpecRecord):
    """A directory of people, in place of `users`: LDAP, or Active Directory by its LDAP. Machines read it by SSSD."""

    servers: tuple[str, ...] = Field(
        min_length=1,
        description="Servers, tried in this order: ldaps://HOST, or ldap://HOST, which then uses StartTLS.",
    )
    base: str = Field(description="DN below which users and groups are searched: ou=people,dc=example,dc=org.")
    filter: str = Field(
        description="LDAP filter of who may log in: (memberOf=cn=gpu,ou=groups,dc=example,dc=org). All others do not"
        " exist on the machines."
    )
    scheme: DirectorySchema = Field(
        default=DirectorySchema.RFC2307BIS,
        alias="schema",
        description="How members of groups are stored: rfc2307 (by name), rfc2307bis (by DN) or ad (Active Directory"
        " with POSIX attributes). Default: rfc2307bis.",
    )
    bind_dn: str = Field(
        description="DN that machines log in to the directory as. It needs to read users and groups, and nothing more."
    )
    bind_secret: str = Field(
        description="Name of the Secrets Manager secret that holds the password of `bind_dn`, as text. Only root of the"
        " machines reads it."
    )
    ca: str | None = Field(
        default=None,
        description="Certificates of the authority that signed those of the servers, in PEM. Default: the authorities"
        " that the image trusts.",
    )
    admin_group: str | None = Field(
        default=None,
        description="Group of the directory whose members may become root on head and login nodes by sudo."
        " Default: nobody.",
    )
    min_id: int = Field(
        default=FIRST_ID,
        description=f"Lowest id of users and groups; lower ones do not exist on the machines. Default: {FIRST_ID}.",
    )
    max_id: int = Field(default=LAST_ID, description=f"Highest id of users and groups. Default: {LAST_ID}.")


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
    directory: DirectorySpec | None = Field(
        default=None, description="A directory that people come from, in place of `users`. Default: none."
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
    shows_jobs: bool = Field(default=False, description="Whether people see each other's jobs. Default: false.")
