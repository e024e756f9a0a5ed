"""Rules about access: public keys, never private ones; names and ids that no system of a machine has."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence

from corral.catalog.aws.system_accounts import is_system_account
from corral.model.users import FIRST_ID, LAST_ID, derived_id
from corral.spec.models.access import AccessSpec
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem

_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_TYPES_OF_HARDWARE = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")
# What useradd, sudo, sshd, Slurm and files named after people all accept; 31 characters fit into utmp.
_NAME = re.compile(r"[a-z]([a-z0-9_.-]{0,29}[a-z0-9_-])?")


def check(access: AccessSpec) -> Iterator[SpecFinding]:
    """Yield findings about access."""
    yield from _check_keys(("access", "ssh_keys"), access.ssh_keys)
    for name, user in access.users.items():
        loc = ("access", "users", name)
        yield from check_name(loc, name)
        yield from _check_keys((*loc, "ssh_keys"), user.ssh_keys)
        for number, group in enumerate(user.groups):
            yield from _check_group((*loc, "groups", number), group, access)
            if group in user.groups[:number]:
                yield SpecFinding((*loc, "groups", number), f"{group!r} is listed twice", "keep one")
    used = {group for user in access.users.values() for group in user.groups}
    for name, gid in access.groups.items():
        if name not in used:
            yield SpecFinding(("access", "groups", name), "nobody in access.users is in this group", "remove it")
        if not FIRST_ID <= gid <= LAST_ID:
            yield SpecFinding(("access", "groups", name), f"{gid} is not an id", f"use {FIRST_ID} to {LAST_ID}")
    yield from _check_ids(access)


def check_name(loc: Loc, name: str) -> Iterator[SpecFinding]:
    """Yield a finding if no person or group can have this name."""
    if not _NAME.fullmatch(name):
        yield SpecFinding(
            loc,
            f"{name!r} is not a valid name",
            "use up to 31 lowercase letters, digits, dots, hyphens and underscores, a letter first and no dot last",
        )
    elif is_system_account(name):
        yield SpecFinding(loc, f"{name!r} is a user or group of the machines' system", "use another name")


def _check_group(loc: Loc, name: str, access: AccessSpec) -> Iterator[SpecFinding]:
    if name in access.users:
        yield SpecFinding(loc, f"{name!r} is a person, whose own group it is", "use another name")
    else:
        yield from check_name(loc, name)


def _check_ids(access: AccessSpec) -> Iterator[SpecFinding]:
    """Yield a finding for each id that an earlier person or group has."""
    ids = {("users", name): user.uid or derived_id(name) for name, user in access.users.items()}
    groups = sorted({group for user in access.users.values() for group in user.groups} - access.users.keys())
    ids |= {("groups", name): access.groups.get(name) or derived_id(name) for name in groups}
    for (kind, name), earlier in _shared_ids(ids).items():
        fix = f"declare {'its uid' if kind == 'users' else f'access.groups.{name}'}, another number"
        yield SpecFinding(("access", kind, name), f"has the id {ids[kind, name]} of {earlier}", fix)


def _shared_ids(ids: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], str]:
    """Who has the id of somebody before, and of whom."""
    first: dict[int, str] = {}
    return {key: first[uid] for key, uid in ids.items() if first.setdefault(uid, key[1]) != key[1]}


def _check_keys(loc: Loc, keys: Sequence[str]) -> Iterator[SpecFinding]:
    for number, key in enumerate(keys):
        if problem := _key_problem(key):
            yield problem.at((*loc, number))
        elif key.split()[:2] in [other.split()[:2] for other in keys[:number]]:
            yield SpecFinding((*loc, number), "is listed twice", "keep one")


def _key_problem(key: str) -> SpecProblem | None:
    if "PRIVATE KEY" in key:
        return SpecProblem(
            "is a private key, which must never leave its owner",
            "use the line of the .pub file, and generate a new pair",
        )
    type, _, rest = key.strip().partition(" ")
    if type not in (*_TYPES, *_TYPES_OF_HARDWARE) or "\n" in key.strip():
        return SpecProblem("is not a public key", "use the line of the .pub file, such as ssh-ed25519 AAAA... you@host")
    try:
        content = base64.b64decode(rest.split(" ")[0], validate=True)
    except (binascii.Error, IndexError):
        content = b""
    inner = content[4 : 4 + int.from_bytes(content[:4])]
    return (
        None
        if inner.decode(errors="replace") == type
        else SpecProblem("is incomplete or damaged", "copy the line of the .pub file again")
    )
