"""The people of a cluster, and the file by which nodes hear of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.model.users import AccessPlan, GroupPlan, RemovedJobs, UserPlan, derived_id, parse_users_conf, users_conf

ACCESS = AccessPlan(
    users=(
        UserPlan(name="ada", uid=2001, groups=("speech", "vision")),
        UserPlan(name="bob", uid=2002, ssh_keys=("ssh-ed25519 AAAA bob",), admin=True),
    ),
    groups=(GroupPlan(name="speech", gid=2100), GroupPlan(name="vision", gid=2101)),
    removed_jobs=RemovedJobs.CANCEL,
)


def test_nodes_read_everybody_without_keys_and_administrators() -> None:
    ada, bob = ACCESS.users
    expected = replace(ACCESS, users=(ada, replace(bob, ssh_keys=(), admin=False)))
    assert parse_users_conf(users_conf(ACCESS)) == expected


def test_slurm_reads_comments_alone() -> None:
    assert all(line.startswith("#") for line in users_conf(ACCESS).splitlines())


@pytest.mark.parametrize("lines", range(1, 6))
def test_a_part_of_the_file_names_nobody(lines: int) -> None:
    part = "\n".join(users_conf(ACCESS).splitlines()[:lines])
    with pytest.raises(ValueError):
        parse_users_conf(part)


def test_an_id_depends_on_the_name_alone() -> None:
    assert (derived_id("ada"), derived_id("bob"), derived_id("vision")) == (50398, 38650, 33852)
