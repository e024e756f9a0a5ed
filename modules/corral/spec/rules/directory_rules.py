"""Rules about a directory of people: TLS alone, ids that no system has, a secret that no job reads."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

from corral.model.users import FIRST_ID, LAST_ID
from corral.spec.models.access import AccessSpec, DirectorySpec
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.rules.access_rules import check_name
from corral.spec.rules.job_rules import secret_name_problem
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem
from corral.spec.validation_context import ValidationContext

_SERVER = re.compile(r"(ldaps?)://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/?")
_PART = r"[A-Za-z][A-Za-z0-9-]*=[^=,?\n]+"
_DN = re.compile(rf"{_PART}(,\s*{_PART})*")
# systemd takes 60001 to 65519 for homes and services of its own, and 65534 and 65535 are nobody and no user; NFS and
# Slurm hold ids of 31 bits. Source: systemd's UIDS-GIDS ("Summary").
_RANGES = ((FIRST_ID, LAST_ID), (65_536, 2**31 - 2))
_LOC: Loc = ("access", "directory")


def check(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about the directory, if there is one."""
    if (directory := spec.access.directory) is None:
        return
    yield from _check_others(spec.access)
    yield from _check_servers(directory)
    for key, dn in (("base", directory.base), ("bind_dn", directory.bind_dn)):
        if not _DN.fullmatch(dn):
            yield SpecFinding((*_LOC, key), f"{dn!r} is not a DN", "write it like ou=people,dc=example,dc=org")
    if problem := _filter_problem(directory.filter):
        yield problem.at((*_LOC, "filter"))
    if problem := secret_name_problem(directory.bind_secret):
        yield problem.at((*_LOC, "bind_secret"))
    elif directory.bind_secret in spec.jobs.secrets.values():
        yield SpecFinding((*_LOC, "bind_secret"), "is in jobs.secrets, so every job reads it", "use another secret")
    if directory.ca is not None and (problem := _ca_problem(directory.ca)):
        yield problem.at((*_LOC, "ca"))
    if directory.admin_group is not None:
        yield from check_name((*_LOC, "admin_group"), directory.admin_group)
    yield from _check_ids(directory)
    if context.base and context.base.storage.home is None:
        yield SpecFinding(
            _LOC,
            f"people of a directory need a home on all machines: base {context.base.name!r} has none",
            "set `home: {}` in its `storage`",
        )


def _check_others(access: AccessSpec) -> Iterator[SpecFinding]:
    """Two sources of people would give two people one id."""
    for key, other in (("users", access.users), ("groups", access.groups)):
        if other:
            yield SpecFinding(("access", key), "come from access.directory, which is also declared", "keep one of them")


def _check_servers(directory: DirectorySpec) -> Iterator[SpecFinding]:
    schemes: set[str] = set()
    for number, server in enumerate(directory.servers):
        loc = (*_LOC, "servers", number)
        if not (found := _SERVER.fullmatch(server)):
            yield SpecFinding(loc, f"{server!r} is not a server", "write it like ldaps://ldap.example.org")
        elif server in directory.servers[:number]:
            yield SpecFinding(loc, f"{server!r} is listed twice", "keep one")
        elif schemes and found[1] not in schemes:
            yield SpecFinding(loc, "mixes ldap:// with ldaps://, which SSSD cannot", "use one for all servers")
        else:
            schemes.add(found[1])


def _filter_problem(text: str) -> SpecProblem | None:
    fix = "write it like (memberOf=cn=gpu,ou=groups,dc=example,dc=org), other brackets as \\28 and \\29"
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0 or (depth == 0 and at < len(text) - 1):
            return SpecProblem(f"{text!r} is not one filter in brackets", fix)
    if depth or not text.startswith("(") or "\n" in text:
        return SpecProblem(f"{text!r} is not one filter in brackets", fix)
    if "?" in text:  # it separates the parts of SSSD's search base
        return SpecProblem(f"{text!r} has a question mark", "write it as \\3f")
    return None


def _ca_problem(text: str) -> SpecProblem | None:
    if "PRIVATE KEY" in text:
        return SpecProblem("has a private key, which must never leave its owner", "use the certificate alone")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        fix = "use the PEM text, from -----BEGIN CERTIFICATE----- on, as a block after `ca: |`"
        return SpecProblem("is not a certificate", fix)
    return None


def _check_ids(directory: DirectorySpec) -> Iterator[SpecFinding]:
    low, high = directory.min_id, directory.max_id
    if high < low:
        yield SpecFinding((*_LOC, "max_id"), f"{high} is below min_id {low}", "exchange them")
    elif not any(first <= low and high <= last for first, last in _RANGES):
        yield SpecFinding(
            (*_LOC, "min_id"),
            f"{low} to {high} has ids of the machines' systems",
            f"use a part of {' or of '.join(f'{first} to {last}' for first, last in _RANGES)}",
        )
