"""Names of users and groups that machines have already."""

from __future__ import annotations

from functools import cache

from corral.catalog.loader.data_files import read_toml
from corral.model.users import USERS_GROUP

# The packages of Debian and systemd name their own accounts so (Debian Policy Manual, section 9.2.1).
_PREFIXES = ("_", "systemd-", "corral-", "nvidia-")


def is_system_account(name: str) -> bool:
    """Whether a machine has, or may get, a user or group of this name that no person is."""
    return name in _names() or name.startswith(_PREFIXES) or name == USERS_GROUP


def _names() -> frozenset[str]:
    return system_users() | system_groups()


@cache
def system_users() -> frozenset[str]:
    """The names of users that a machine has, or may get, beside those with a prefix of the system's."""
    return frozenset(read_toml("system_accounts.toml")["users"].split())


@cache
def system_groups() -> frozenset[str]:
    """The same for groups."""
    return frozenset(read_toml("system_accounts.toml")["groups"].split())
