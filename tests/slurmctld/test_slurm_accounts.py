"""Declared accounts and QOS on a real slurmdbd and slurmctld, with jobs of people who reach their limits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from corral.agent.accounting.slurm_accounts import SlurmAccounts
from corral.agent.events import EventLog
from corral.agent.host.base import HostError
from corral.model.accounts import AccountPlan, AccountsPlan, QosPlan
from corral.model.cluster import ClusterPlan
from corral.model.users import AccessPlan, UserPlan
from render.plans import cpu, dev, train

pytestmark = pytest.mark.slurm

URGENT = QosPlan(name="urgent", priority=100, gpus_per_user=4, jobs_per_user=9, gpu_hours=2)
ACCOUNTS = AccountsPlan(
    accounts=(
        AccountPlan(name="everybody"),
        AccountPlan(name="research", shares=3),
        AccountPlan(name="vision", parent="research", shares=2, qos=("normal", "urgent")),
    ),
    qos=(URGENT,),
    enforced=True,
)
# Users of Debian's base system, so that nobody has to be added to this machine.
PEOPLE = AccessPlan(
    users=(UserPlan(name="games", uid=5, account="vision"), UserPlan(name="www-data", uid=33, account="everybody"))
)
UIDS = {user.name: user.uid for user in PEOPLE.users}


def plan(accounts: AccountsPlan = ACCOUNTS, access: AccessPlan = PEOPLE) -> ClusterPlan:
    return replace(dev(train(), cpu(), slurm_version="22.05"), accounts=accounts, access=access)


@dataclass
class Cluster:
    """A running head with accounting."""

    controller: Controller
    state: Path

    def command(self, words: object) -> str:
        done = self.controller.run(*words)  # type: ignore[misc]
        if done.returncode:
            raise HostError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def sync(self, wanted: ClusterPlan) -> list[str]:
        """Bring slurmdbd to the plan; the texts of the events."""
        journal = EventLog(self.state / "events.jsonl")
        before = len(list(journal.lines()))
        SlurmAccounts(self.command, journal, state_dir=self.state, listens=lambda: True).sync(wanted)
        return [line.split('"text": ')[1] for line in list(journal.lines())[before:]]

    def associations(self) -> set[str]:
        shown = ("assoc", "cluster=dev", "format=account,user,parentname,share,qos,defaultqos")
        return set(self.command(("sacctmgr", "-nP", "show", *shown)).split())

    def submit(self, user: str, *options: str) -> tuple[str, str]:
        """The id of the person's job, and the error of sbatch."""
        script = ("sbatch", "--parsable", "--output=/dev/null", "--time=60", "--mem=100", *options, "--wrap", "sleep 1")
        done = self.controller.run("setpriv", f"--reuid={UIDS[user]}", "--regid=60", "--clear-groups", *script)
        return done.stdout.strip(), done.stderr

    def reason(self, job: str) -> str:
        """Why the job waits, as soon as Slurm has looked at it."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            reason = self.command(("squeue", "-h", "-o%r", "-j", job)).strip()
            if reason not in ("None", ""):
                return reason
            time.sleep(0.2)
        raise AssertionError("Slurm has not looked at the job")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("head")
    with slurms.running_cluster(plan(), directory, accounting=True) as controller:
        cluster = Cluster(controller=controller, state=tmp_path_factory.mktemp("state"))
        cluster.sync(plan())
        yield cluster


def settings(cluster: Cluster) -> Mapping[str, str]:
    keys = ("priority", "flags", "grptresmins", "maxtresperuser", "maxjobsperuser")
    shown = cluster.command(("sacctmgr", "-nP", "show", "qos", "urgent", f"format={','.join(keys)}"))
    return dict(zip(keys, shown.strip().split("|"), strict=True))


def test_slurmdbd_has_the_declared_tree(cluster: Cluster) -> None:
    assert {
        "everybody||root|1|normal|",
        "research||root|3|normal|",
        "vision||research|2|normal,urgent|normal",
        "vision|games||1|normal,urgent|normal",
        "everybody|www-data||1|normal|",
    } <= cluster.associations()


def test_slurmdbd_has_the_declared_limits(cluster: Cluster) -> None:
    assert settings(cluster) == {
        "priority": "100",
        "flags": "NoDecay",
        "grptresmins": "gres/gpu=120",
        "maxtresperuser": "gres/gpu=4",
        "maxjobsperuser": "9",
    }


def test_the_same_plan_changes_nothing(cluster: Cluster) -> None:
    assert cluster.sync(plan()) == []


def test_a_person_uses_no_account_but_their_own(cluster: Cluster) -> None:
    _, error = cluster.submit("www-data", "--account=vision")
    assert "Invalid account or account/partition combination specified" in error


def test_a_person_uses_no_qos_but_those_of_their_account(cluster: Cluster) -> None:
    assert "Invalid qos specification" in cluster.submit("www-data", "--qos=urgent")[1]


def test_a_job_beyond_its_persons_gpus_waits_for_that_reason(cluster: Cluster) -> None:
    job, _ = cluster.submit("games", "--qos=urgent", "--partition=train", "--gres=gpu:8", "--time=1")
    assert cluster.reason(job) == "QOSMaxGRESPerUser"
    cluster.command(("scancel", job))


def test_a_job_whose_time_limit_exceeds_the_budget_waits_for_that_reason(cluster: Cluster) -> None:
    job, _ = cluster.submit("games", "--qos=urgent", "--partition=train", "--gres=gpu:4", "--time=31")
    assert cluster.reason(job) == "QOSGrpGRESMinutes"
    cluster.command(("scancel", job))


def test_a_job_belongs_to_its_persons_account_and_comes_by_its_qos_first(cluster: Cluster) -> None:
    jobs = [cluster.submit("games", "--hold", *more)[0] for more in ((), ("--qos=urgent",))]
    shown = [cluster.command(("squeue", "-h", "-o%a|%q", "-j", job)).strip() for job in jobs]
    cluster.command(("scancel", *jobs))
    assert shown == ["vision|normal", "vision|urgent"]


def test_people_see_their_own_jobs_in_sacct_and_no_others(cluster: Cluster) -> None:
    jobs = {user: cluster.submit(user)[0] for user in UIDS}
    everything = ("sacct", "--allocations", "--noheader", "--parsable2", "--format=jobid")
    until = time.monotonic() + 30
    while time.monotonic() < until and not set(jobs.values()) <= set(
        cluster.command((*everything, "--allusers")).split()
    ):
        time.sleep(0.2)
    as_games = ("setpriv", "--reuid=5", "--regid=60", "--clear-groups", *everything)
    own, others = (cluster.controller.run(*as_games, *more) for more in ((), ("--user=www-data",)))
    cluster.command(("scancel", *jobs.values()))
    assert (jobs["games"] in own.stdout.split(), jobs["www-data"] in (own.stdout + others.stdout).split()) == (
        True,
        False,
    )


def test_a_change_takes_back_what_the_plan_no_longer_has(cluster: Cluster) -> None:
    moved = AccessPlan(users=(replace(PEOPLE.users[0], account="research"), PEOPLE.users[1]))
    fewer = AccountsPlan(accounts=ACCOUNTS.accounts[:2], qos=(QosPlan(name="urgent", cpus=8),), enforced=True)
    cluster.command(("sacctmgr", "-i", "add", "account", "byhand", "cluster=dev"))
    cluster.command(("sacctmgr", "-i", "add", "user", "www-data", "account=byhand", "cluster=dev"))
    events = cluster.sync(plan(fewer, moved))
    there, limits = cluster.associations(), settings(cluster)
    cluster.sync(plan())
    assert {line.split("|")[0] for line in there} == {"root", "everybody", "research", "byhand"}
    assert ("research|games||1|normal|" in there, limits["flags"], limits["maxtresperuser"]) == (True, "", "")
    assert any("added by hand and kept: byhand, www-data@byhand" in text for text in events)


def test_people_see_their_own_share_and_what_they_may_use(cluster: Cluster) -> None:
    as_games = ("setpriv", "--reuid=5", "--regid=60", "--clear-groups")
    allowed = ("sacctmgr", "-nP", "show", "assoc", "user=games", "format=account,qos")
    shares = ("sshare", "-U", "-nP", "--format=account,user,rawshares")
    assert [cluster.controller.run(*as_games, *words).stdout.split() for words in (allowed, shares)] == [
        ["vision|normal,urgent"],
        ["vision|games|1"],
    ]
