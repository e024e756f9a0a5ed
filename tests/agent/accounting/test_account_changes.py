"""What sacctmgr is told, from its outputs as Slurm 22.05 printed them; tests/slurmctld tries it on a real slurmdbd."""

from __future__ import annotations

import pwd
from dataclasses import replace

import pytest

from corral.agent.accounting.slurm_accounts import (
    Present,
    added_by_hand,
    changes,
    parse_present,
    people_accounts,
    removals,
)
from corral.model.accounts import AccountPlan, AccountsPlan, QosPlan
from corral.model.users import AccessPlan, UserPlan
from render.plans import DIRECTORY, cpu, dev

ASSOCIATIONS = """root|||1|normal|
root|root||1|normal|
mine||root|1|normal|
research||root|3|normal|
vision||research|2|normal,urgent|normal
vision|nobody||1|normal,urgent|normal
"""
OWNERS = "mine|mine\nresearch|corral\nroot|root\nvision|corral\n"
QOS = """normal|0||||||00:00:00||Normal QOS default
urgent|100|NoDecay|cpu=64,gres/gpu=32|gres/gpu=300000|gres/gpu=16|5|00:00:00||corral
"""
USERS = "nobody|vision\nroot|root\n"
PRESENT = parse_present(ASSOCIATIONS, OWNERS, QOS, USERS)
EMPTY = parse_present(
    "root|||1|normal|\nroot|root||1|normal|\n", "root|root\n", "normal|0||||||00:00:00||x\n", "root|root\n"
)
URGENT = QosPlan(name="urgent", priority=100, gpus=32, cpus=64, gpus_per_user=16, jobs_per_user=5, gpu_hours=5000)
RESEARCH = AccountPlan(name="research", shares=3)
VISION = AccountPlan(name="vision", parent="research", shares=2, qos=("normal", "urgent"))
DECLARED = AccountsPlan(accounts=(RESEARCH, VISION), qos=(URGENT,), enforced=True)


def words(
    plan: AccountsPlan = DECLARED,
    present: Present = PRESENT,
    qos: bool = True,
    former: str = "vision",
    now: str = "vision",
) -> list[str]:
    found = changes("dev", plan, {"nobody": now}, {"nobody": former}, present, qos=qos)
    return [" ".join(words) for words in found]


def test_what_is_as_declared_stays() -> None:
    assert words() == []


def test_a_new_cluster_gets_qos_then_accounts_then_people() -> None:
    assert words(present=EMPTY) == [
        "add qos urgent Description=corral Priority=100 Flags=NoDecay GrpTRES=cpu=64,gres/gpu=32"
        " GrpTRESMins=gres/gpu=300000 MaxTRESPerUser=gres/gpu=16 MaxJobsPerUser=5 GraceTime=0",
        "add account research cluster=dev parent=root organization=corral fairshare=3",
        "add account vision cluster=dev parent=research organization=corral fairshare=2"
        " qos=normal,urgent defaultqos=normal",
        "add user nobody account=vision cluster=dev",
    ]


def test_before_slurmctld_runs_qos_are_left_alone() -> None:
    assert words(present=EMPTY, qos=False) == [
        "add account research cluster=dev parent=root organization=corral fairshare=3",
        "add account vision cluster=dev parent=research organization=corral fairshare=2",
        "add user nobody account=vision cluster=dev",
    ]


@pytest.mark.parametrize(
    ("qos", "settings"),
    [
        (replace(URGENT, gpus=64), "GrpTRES=gres/gpu=64"),
        (replace(URGENT, gpus=None), "GrpTRES=gres/gpu=-1"),
        (replace(URGENT, gpu_hours=None), "Flags=-1 GrpTRESMins=gres/gpu=-1"),
        (replace(URGENT, jobs_per_user=None, priority=0), "Priority=0 MaxJobsPerUser=-1"),
        (replace(URGENT, cpus_per_user=8), "MaxTRESPerUser=cpu=8"),
    ],
)
def test_a_limit_that_changes_is_set_and_one_that_is_gone_is_lifted(qos: QosPlan, settings: str) -> None:
    assert words(replace(DECLARED, qos=(qos,))) == [f"modify qos urgent set {settings}"]


@pytest.mark.parametrize(
    ("account", "settings"),
    [
        (replace(VISION, shares=9), "fairshare=9"),
        (replace(VISION, parent=None), "parent=root"),
        (replace(VISION, qos=("urgent",)), "qos=urgent defaultqos=urgent"),
        (replace(VISION, qos=("urgent", "normal")), "qos=urgent,normal defaultqos=urgent"),
        (replace(VISION, qos=()), "qos= defaultqos=-1"),
    ],
)
def test_an_account_that_changes_is_set(account: AccountPlan, settings: str) -> None:
    assert words(replace(DECLARED, accounts=(RESEARCH, account))) == [
        f"modify account vision cluster=dev set {settings}"
    ]


def test_an_account_made_by_hand_is_taken_over_when_it_is_declared() -> None:
    assert words(replace(DECLARED, accounts=(AccountPlan(name="mine"), RESEARCH, VISION))) == [
        "modify account name=mine set organization=corral"
    ]


def test_an_account_below_another_inherits_its_qos_without_a_change() -> None:
    there = parse_present(f"{ASSOCIATIONS}deep||vision|1|normal,urgent|normal\n", f"{OWNERS}deep|corral\n", QOS, USERS)
    assert words(replace(DECLARED, accounts=(RESEARCH, VISION, AccountPlan(name="deep", parent="vision"))), there) == []


def test_who_changes_accounts_leaves_the_former_one() -> None:
    assert words(now="research") == [
        "add user nobody account=research cluster=dev",
        "modify user nobody cluster=dev set defaultaccount=research",
        "delete user nobody account=vision cluster=dev",
    ]


def test_who_was_added_by_hand_to_another_account_stays_there() -> None:
    assert "delete user nobody account=vision cluster=dev" not in words(now="research", former="research")


def test_what_corral_made_and_nobody_declares_is_deleted() -> None:
    unused = replace(PRESENT, users={})
    assert [" ".join(words) for words in removals(AccountsPlan(), unused)] == [
        "delete account vision",
        "delete account research",
        "delete qos urgent",
    ]


def test_an_account_with_users_is_not_deleted() -> None:
    assert "delete account vision" not in [" ".join(words) for words in removals(AccountsPlan(), PRESENT)]


def test_what_is_there_by_hand_is_named() -> None:
    assert added_by_hand(DECLARED, {"nobody": "research"}, PRESENT) == ("mine", "nobody@vision")


def test_users_of_the_machine_without_an_account_get_everybodys() -> None:
    users = [
        pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh"))
        for name, uid in (("root", 0), ("nobody", 65534), ("admin", 1000), ("old", 1001), ("ada", 10123))
    ]
    access = AccessPlan(users=(UserPlan(name="ada", uid=10123, account="vision"),))
    assert people_accounts(replace(dev(cpu()), access=access), users, ["old"]) == {
        "admin": "everybody",
        "ada": "vision",
    }


def test_people_of_a_directory_have_everybodys_account_whatever_their_ids() -> None:
    users = [pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh")) for name, uid in (("ada", 70001), ("x", 99))]
    access = AccessPlan(directory=replace(DIRECTORY, min_id=70000, max_id=80000))
    assert people_accounts(replace(dev(cpu()), access=access), users, []) == {"ada": "everybody"}


def test_preemption_changes_by_what_differs_and_after_all_qos_exist() -> None:
    there = parse_present(ASSOCIATIONS, OWNERS, "a|0||||||00:00:00|b,c|corral\nb|0||||||00:02:00||corral\n", USERS)
    qos = (QosPlan(name="a", preempts=("b", "d")), QosPlan(name="b", grace_s=300), QosPlan(name="d"))
    assert [words[1:] for words in changes("dev", AccountsPlan(qos=qos), {}, {}, there)] == [
        ("qos", "b", "set", "GraceTime=300"),
        ("qos", "d", "Description=corral", "Priority=0", "GraceTime=0"),
        ("qos", "a", "set", "preempt+=d"),
        ("qos", "a", "set", "preempt-=c"),
    ]


def test_slurms_own_qos_gets_its_former_settings_back() -> None:
    there = parse_present(ASSOCIATIONS, OWNERS, "normal|7||cpu=8||||00:02:00|a|corral\na|0||||||00:00:00||x\n", USERS)
    assert list(removals(AccountsPlan(), there))[-1] == (
        *("modify", "qos", "normal", "set", "Description=Normal QOS default"),
        *("Priority=0", "GrpTRES=cpu=-1", "GraceTime=0", "preempt-=a"),
    )
