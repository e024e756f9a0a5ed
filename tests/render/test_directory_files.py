"""What a cluster has for people of a directory: SSSD's file, and what sshd and sudo read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.file_placements import is_needed, placements_for
from corral.agent.file_install import Placement, install
from corral.model.enums import Role
from corral.model.users import AccessPlan, DirectoryPlan, DirectorySchema
from corral.render import cluster_files
from corral.render.access import access_files
from render.plans import DIRECTORY, LOGIN, dev


def files(directory: DirectoryPlan = DIRECTORY) -> Mapping[str, str]:
    return access_files(replace(dev(), access=AccessPlan(directory=directory)))


def settings(directory: DirectoryPlan = DIRECTORY) -> dict[str, str]:
    lines = files(directory)["directory/sssd.conf"].splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def test_a_cluster_without_a_directory_has_none_of_its_files() -> None:
    assert [name for name in cluster_files(dev()) if name.startswith("directory/")] == []


def test_the_domain_lets_in_by_the_filter_and_by_tls_alone() -> None:
    found = settings()
    assert {key: found[key] for key in found if key not in ("filter_users", "filter_groups")} == {
        "services": "nss, pam, ssh",
        "domains": "directory",
        "memcache_timeout": "60",
        "id_provider": "ldap",
        "access_provider": "ldap",
        "auth_provider": "none",
        "chpass_provider": "none",
        "sudo_provider": "none",
        "autofs_provider": "none",
        "ldap_uri": "ldaps://a.example.org, ldaps://b.example.org",
        "ldap_id_use_start_tls": "false",
        "ldap_tls_reqcert": "demand",
        "ldap_default_bind_dn": "cn=reader,dc=example,dc=org",
        "ldap_schema": "rfc2307bis",
        "ldap_search_base": "dc=example,dc=org",
        "ldap_user_search_base": "dc=example,dc=org?subtree?(memberOf=cn=gpu,dc=example,dc=org)",
        "ldap_referrals": "false",
        "ldap_access_order": "filter, expire",
        "ldap_access_filter": "(memberOf=cn=gpu,dc=example,dc=org)",
        "ldap_account_expire_policy": "shadow",
        "min_id": "2000",
        "max_id": "59999",
        "entry_cache_timeout": "300",
        "override_homedir": "/home/%u",
        "default_shell": "/bin/bash",
    }


def test_ldap_without_s_starts_tls() -> None:
    assert settings(replace(DIRECTORY, servers=("ldap://a.example.org",)))["ldap_id_use_start_tls"] == "true"


def test_active_directory_has_its_own_ids_lowercase_names_and_its_own_sign_of_a_locked_account() -> None:
    found = settings(replace(DIRECTORY, schema=DirectorySchema.AD))
    keys = ("ldap_schema", "ldap_id_mapping", "case_sensitive", "ldap_account_expire_policy")
    assert [found[key] for key in keys] == ["ad", "false", "false", "ad"]


@pytest.mark.parametrize("name", ["slurm", "munge", "ubuntu", "root"])
def test_a_user_of_the_system_is_nobody_of_the_directory(name: str) -> None:
    assert name in settings()["filter_users"].split(", ")


def test_an_own_authority_is_the_only_one_that_is_believed() -> None:
    found = files(replace(DIRECTORY, ca="PEM\n"))
    assert found["directory/ca.pem"] == "PEM\n"
    assert "ldap_tls_cacert = /etc/sssd/corral-ca.pem" in found["directory/sssd.conf"].splitlines()


def test_sshd_takes_keys_of_the_directory_for_nobody_of_the_image() -> None:
    assert files()["access/sshd.conf"].splitlines()[-3:] == [
        "Match User *,!root,!ubuntu",
        "    AuthorizedKeysCommand /opt/corral/bin/directory-keys %u %U",
        "    AuthorizedKeysCommandUser nobody",
    ]


@pytest.mark.parametrize(
    ("group", "lines"),
    [
        ("", []),
        (
            "operators",
            [
                "Match Group operators User *,!root,!ubuntu",
                "    AuthorizedKeysCommand /opt/corral/bin/directory-keys %u %U",
                "    AuthorizedKeysCommandUser nobody",
            ],
        ),
    ],
)
def test_a_head_of_a_cluster_with_login_nodes_lets_in_the_group_of_administrators(group: str, lines: list[str]) -> None:
    access = AccessPlan(directory=replace(DIRECTORY, admin_group=group))
    found = access_files(replace(dev(), access=access, login=LOGIN))
    assert found["access/head-sshd.conf"].splitlines()[1:] == lines


@pytest.mark.parametrize(("group", "lines"), [("", []), ("operators", ["%operators ALL=(ALL:ALL) NOPASSWD: ALL"])])
def test_the_group_of_administrators_alone_has_sudo(group: str, lines: list[str]) -> None:
    assert files(replace(DIRECTORY, admin_group=group))["access/sudoers"].splitlines()[1:] == lines


@pytest.mark.parametrize("role", [Role.HEAD, Role.LOGIN, Role.COMPUTE])
def test_each_machine_knows_the_people_and_only_root_reads_how(role: Role, tmp_path: Path) -> None:
    texts = {
        name: text.encode() for name, text in files(replace(DIRECTORY, ca="PEM\n")).items() if is_needed(name, role)
    }
    found = [one for one in placements_for(texts, role, None) if _is_of_directory(one)]
    install(found, tmp_path)
    assert {one.path: (tmp_path / one.path[1:]).stat().st_mode & 0o777 for one in found} == {
        "/etc/sssd/sssd.conf": 0o600,
        "/etc/sssd/corral-ca.pem": 0o644,
        "/opt/corral/bin/directory-keys": 0o755,
    }


@pytest.mark.parametrize(
    ("role", "homes"),
    [(Role.HEAD, "/var/lib/corral/homes/%u"), (Role.LOGIN, "/home/%u"), (Role.COMPUTE, "/home/%u")],
)
def test_a_head_that_is_left_to_administrators_has_homes_of_its_own(role: Role, homes: str) -> None:
    texts = access_files(replace(dev(), access=AccessPlan(directory=DIRECTORY), login=LOGIN))
    needed = {name: text.encode() for name, text in texts.items() if is_needed(name, role)}
    (conf,) = [one for one in placements_for(needed, role, None) if one.path == "/etc/sssd/sssd.conf"]
    assert f"override_homedir = {homes}" in conf.content.decode().splitlines()


def _is_of_directory(placement: Placement) -> bool:
    return placement.path.startswith("/etc/sssd/") or placement.path.endswith("directory-keys")


def test_no_file_has_the_password_or_where_it_is() -> None:
    texts = cluster_files(replace(dev(), access=AccessPlan(directory=DIRECTORY)))
    assert [name for name, text in texts.items() if "people/reader" in text or "authtok" in text] == ["cluster.json"]


def test_people_of_a_directory_see_their_own_jobs_alone() -> None:
    texts = cluster_files(replace(dev(), access=AccessPlan(directory=DIRECTORY)))
    assert "PrivateData=jobs,usage" in texts["slurm/slurm.conf"].splitlines()
