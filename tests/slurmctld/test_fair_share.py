"""Fair share of declared accounts on a real slurmctld with a node: short jobs start in the order of Slurm's formula."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from tools.slurm_head.controller import Controller

import slurms
from corral.model.accounts import AccountPlan, AccountsPlan
from corral.model.users import AccessPlan, UserPlan
from render.plans import cpu, dev
from slurmctld.accounting_head import submit_as, sync_accounts

pytestmark = [pytest.mark.slurm, pytest.mark.long]
# Users of Debian's base system, so that nobody has to be added to this machine.
PEOPLE = {"games": ("vision", 5), "www-data": ("speech", 33)}
SHARES = {"vision": 3, "speech": 1, "everybody": 1}
PLAN = replace(
    dev(cpu(), slurm_version="22.05"),
    accounts=AccountsPlan(
        accounts=tuple(AccountPlan(name=name, shares=shares) for name, shares in SHARES.items()), enforced=True
    ),
    access=AccessPlan(users=tuple(UserPlan(name=name, uid=uid, account=of) for name, (of, uid) in PEOPLE.items())),
    extra_slurm={"PriorityCalcPeriod": "1"},  # minutes; Slurm's default is 5
)
PEOPLE_OF = ("vision", "speech")
JOBS = 150  # of two seconds, of each person
PERIODS_S = 280


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    directory = tmp_path_factory.mktemp("fair")
    with slurms.running_cluster_with_nodes(PLAN, directory, accounting=True) as controller:
        sync_accounts(controller, PLAN, directory)
        controller.restart()  # with all accounts from the start
        for name, (_, uid) in PEOPLE.items():
            submit_as(controller, uid, f"--array=1-{JOBS}", f"--job-name={name}", "--wrap=sleep 2")
        yield controller


def shown(cluster: Controller) -> Mapping[str, tuple[float, float, float]]:
    """Each account's part of the shares, its part of the usage at the last calculation, and its factor."""
    columns = "--format=account,user,normshares,effectvusage,levelfs"
    lines = slurms.must(cluster.run("sshare", "-a", "-nP", columns)).splitlines()
    rows = ([cell.strip() for cell in line.split("|")] for line in lines)
    return {row[0]: (float(row[2]), float(row[3]), float(row[4])) for row in rows if row[0] in PEOPLE_OF and not row[1]}


def started(cluster: Controller) -> list[str]:
    """The person of each job that has begun, in order."""
    words = ("sacct", "--allusers", "-nXP", "--starttime=now-1hour", "--format=start,user,state")
    rows = (line.split("|") for line in slurms.must(cluster.run(*words)).splitlines())
    return [user for start, user, state in sorted(rows) if start != "Unknown" and state != "PENDING"]


def test_accounts_get_their_shares_and_factors_are_those_of_the_formula(cluster: Controller) -> None:
    until = time.monotonic() + PERIODS_S
    while time.monotonic() < until:
        time.sleep(5)
    parts = shown(cluster)
    counts = {account: started(cluster).count(name) for name, (account, _) in PEOPLE.items()}
    shares = sum(SHARES.values()) + 1  # Slurm's own: root's
    assert {name: part[0] for name, part in parts.items()} == pytest.approx(
        {name: SHARES[name] / shares for name in PEOPLE_OF}, abs=1e-5
    )
    # Source: Slurm's "Fair Tree Fairshare Algorithm", LF = S / U.
    assert {name: factor for name, (_, _, factor) in parts.items()} == pytest.approx(
        {name: share / used for name, (share, used, _) in parts.items()}, rel=1e-3
    )
    assert 2 < counts["vision"] / counts["speech"] < 4.5, counts
