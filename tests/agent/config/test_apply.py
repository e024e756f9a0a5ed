"""Apply without Slurm: incomplete uploads wait, refused files are not installed, failed ones are rolled back."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.stores import VERSION, manifest_of, unsigned
from corral.agent.__main__ import main
from corral.agent.boot.sequence import fetch
from corral.agent.commands import apply as apply_command
from corral.agent.config import apply_journal
from corral.agent.config.apply import ApplyContext, ApplyOutcome, ApplyResult, apply_config, carry_over
from corral.agent.config.diff import ApplyStep
from corral.agent.config.merge import InUse
from corral.agent.events import EventLog
from corral.agent.host.base import Daemon, HostError
from corral.agent.users.accounts import AccountAction, AccountChange
from corral.agent.users.removed_jobs import known_people
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.serialization import to_json
from corral.model.users import HOMES, AccessPlan, UserPlan
from corral.render import cluster_files, deployed_json
from render.plans import DIRECTORY, boot_facts, cpu, deployed, dev, train

ADA = UserPlan(name="ada", uid=2001, ssh_keys=("ssh-ed25519 AAAA ada",))


class Killed(BaseException):
    """The process that applies was killed."""


class Head:
    """A head with the files of a cluster, and its bucket. `down`: slurmctld does not answer after these restarts.

    `killed_in`: the call in which the process is killed; `failing`: one that fails.
    """

    def __init__(self, directory: Path) -> None:
        self.bucket, self.root = directory / "bucket", directory / "root"
        self.did: list[str] = []
        self.down = 0
        self.refusal = ""
        self.killed_in = ""
        self.failing = ""
        self.home = self.root / "opt/corral"
        self.accounts: tuple[AccountChange, ...] = ()

    def upload(self, plan: ClusterPlan, **others: str) -> None:
        texts = {**cluster_files(plan), "deployed.json": deployed_json(deployed()), **others}
        texts = {path: text for path, text in texts.items() if not path.startswith("accounting/")}
        shutil.rmtree(self.bucket, ignore_errors=True)
        for path, text in texts.items():
            (self.bucket / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / path).write_text(text)
        (self.bucket / "manifest.json").write_text(to_json(manifest_of(self.bucket)))

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        self.down -= 1
        self.do(f"restart {daemon.unit}")
        if mark:
            mark.unlink()

    def stop(self, daemon: Daemon) -> None:
        self.do(f"stop {daemon.unit}")

    def reload_sshd(self) -> None:
        self.do("reload sshd")

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        self.do(" ".join(("accounts", *(user.name for user in access.users))))
        return self.accounts

    def sync_directory(self) -> None:
        self.do("directory")
        if self.failing == "directory":
            raise HostError("no password")

    def make_home(self, user: str) -> None:
        self.do(f"home {user}")

    def do(self, what: str) -> None:
        self.did.append(what)
        if what == self.killed_in:
            self.killed_in = ""
            raise Killed

    def run(self, command: Sequence[str]) -> str:
        if command == ("scontrol", "ping"):
            if self.down >= 0 and self.did:
                raise HostError("down")
            return "Slurmctld(primary) at dev-head is UP"
        self.do(" ".join(command))
        return ""

    def apply(self, *nodes: str, renewed: bool = False) -> ApplyOutcome:
        host: Any = self
        used = InUse(nodes=frozenset(nodes), queues=frozenset())
        context = ApplyContext(
            host=host,
            run=self.run,
            used=lambda: used,
            journal=EventLog(self.root / "events.jsonl"),
            sync_accounts=lambda plan: self.do(f"slurm accounts {' '.join(sorted(plan.accounts.names))}"),
            sync_directory=lambda _: self.sync_directory(),
            root=self.root,
            state=self.root / "var/lib/corral",
            refusal=lambda *_: self.refusal,
            renewed=renewed,
            answers_in_s=0,
        )
        return apply_config(unsigned(self.bucket), context)

    def slurm_conf(self) -> str:
        return (self.root / "etc/slurm/slurm.conf").read_text()


@pytest.fixture
def head(tmp_path: Path) -> Head:
    head = Head(tmp_path)
    head.upload(dev(train(4), cpu(), slurm_version="22.05"))
    fetch(unsigned(head.bucket), Role.HEAD, None, root=head.root)
    head.down = -1
    return head


def test_an_installed_configuration_is_nothing_to_do(head: Head) -> None:
    assert (head.apply().result, head.did) == (ApplyResult.NOTHING, [])


def test_a_queue_that_grows_restarts_slurmctld_and_reports_the_nodes(head: Head) -> None:
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = head.apply()
    assert (outcome.steps, head.did) == (
        (ApplyStep.RESTART_SLURMCTLD, ApplyStep.RECONFIGURE),
        ["restart slurmctld", "scontrol reconfigure"],
    )


def test_the_version_that_was_applied_is_remembered(head: Head) -> None:
    head.apply()
    assert (head.root / "var/lib/corral/manifest-version").read_text() == f"{VERSION}\n"


def test_a_new_head_has_the_users_own_lines(head: Head) -> None:
    (head.root / "etc/slurm/own.conf").write_text("KillWait=60\n")
    head.apply()
    (head.root / "etc/slurm/own.conf").write_text("# of a new head\n")
    carry_over(head.root, head.root / "var/lib/corral")
    assert (head.root / "etc/slurm/own.conf").read_text() == "KillWait=60\n"


def test_an_upload_in_progress_is_not_applied(head: Head) -> None:
    before = head.slurm_conf()
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    (head.bucket / "slurm/gres.conf").write_text("of another up")
    outcome = head.apply()
    assert (outcome.result, head.slurm_conf() == before) == (ApplyResult.INCOMPLETE, True)


def test_a_configuration_that_slurm_refuses_is_not_installed(head: Head) -> None:
    before, head.refusal = head.slurm_conf(), "Parsing error"
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = head.apply()
    assert (outcome.result, outcome.reason, head.slurm_conf() == before, head.did) == (
        ApplyResult.REFUSED,
        "Parsing error",
        True,
        [],
    )


def test_the_event_of_a_refused_configuration_has_the_reason(head: Head) -> None:
    head.refusal = "Parsing error"
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    head.apply()
    event = json.loads((head.root / "events.jsonl").read_text())
    assert (event["event"], event["reason"]) == ("configuration-refused", "Parsing error")


def test_files_with_which_slurmctld_does_not_start_are_rolled_back(head: Head) -> None:
    before, head.down = head.slurm_conf(), 1
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = head.apply()
    assert (outcome.result, head.slurm_conf() == before, head.did) == (
        ApplyResult.REFUSED,
        True,
        ["restart slurmctld", "restart slurmctld"],
    )


def test_a_newer_agents_daemons_restart_last_and_the_autoscaler_at_the_end(head: Head) -> None:
    head.apply(renewed=True)
    assert head.did == ["restart corral-credentials", "restart corral-agent"]


def with_access(access: AccessPlan) -> ClusterPlan:
    """The head's plan with these people and keys."""
    return replace(dev(train(4), cpu(), slurm_version="22.05"), access=access)


def test_the_last_key_that_is_removed_opens_the_head_no_more(head: Head) -> None:
    keys = head.root / "etc/ssh/corral_authorized_keys"
    head.upload(with_access(AccessPlan(ssh_keys=("ssh-ed25519 AAAA ann",))))
    head.apply()
    assert keys.read_text().splitlines()[1:] == ["ssh-ed25519 AAAA ann"]
    head.upload(with_access(AccessPlan()))
    head.apply()
    assert keys.read_text().splitlines()[1:] == []
    assert head.did == []  # sshd reads keys at each login


def test_people_have_accounts_before_nodes_hear_of_them(head: Head) -> None:
    head.upload(with_access(AccessPlan(users=(ADA,))))
    head.apply()
    assert head.did == ["accounts ada", "home ada", "scontrol reconfigure"]


def test_a_person_who_was_removed_is_an_event_and_has_no_keys(head: Head) -> None:
    head.upload(with_access(AccessPlan(users=(ADA,))))
    head.apply()
    assert "ssh-ed25519 AAAA ada" in (head.root / "etc/ssh/corral_users/ada").read_text()
    head.upload(with_access(AccessPlan()))
    head.accounts = (AccountChange(action=AccountAction.LOCK, name="ada", uid=2001),)
    head.apply()
    assert not (head.root / "etc/ssh/corral_users/ada").exists()
    assert json.loads((head.root / "events.jsonl").read_text().splitlines()[-2])["text"] == "ada, uid 2001"
    assert known_people(head.root) == {"ada": 2001}


def test_a_directory_is_there_before_sshd_reads_of_it(head: Head) -> None:
    head.upload(with_access(AccessPlan(directory=DIRECTORY)))
    head.apply()
    assert head.did[:3] == ["accounts", "directory", "reload sshd"]


def test_a_directory_that_is_no_longer_declared_is_stopped_and_its_password_gone(head: Head) -> None:
    head.upload(with_access(AccessPlan(directory=DIRECTORY)))
    head.apply()
    (head.root / "etc/sssd/conf.d").mkdir()
    (head.root / "etc/sssd/conf.d/60-corral.conf").write_text("secret")
    head.did.clear()
    head.upload(with_access(AccessPlan()))
    head.apply()
    assert head.did[:3] == ["accounts", "stop sssd", "reload sshd"]
    assert [file.name for file in (head.root / "etc/sssd").rglob("*")] == ["conf.d"]


def test_a_directory_that_fails_is_an_event_and_the_rest_is_applied(head: Head) -> None:
    head.upload(with_access(AccessPlan(directory=DIRECTORY)))
    head.failing = "directory"
    assert head.apply().result is ApplyResult.APPLIED
    events = [json.loads(line) for line in (head.root / "events.jsonl").read_text().splitlines()]
    assert next((one["event"], one["text"]) for one in events) == ("directory-failed", "no password")


def killed(head: Head, what: str, *nodes: str, renewed: bool = False) -> list[str]:
    """What the next apply does, after one that was killed in this."""
    head.killed_in = what
    with pytest.raises(Killed):
        head.apply(*nodes, renewed=renewed)
    head.did.clear()
    head.apply(*nodes)
    return head.did


@pytest.mark.parametrize("step", ["restart slurmctld", "scontrol reconfigure"])
def test_an_apply_that_was_killed_in_a_step_is_completed_by_the_next(head: Head, step: str) -> None:
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    assert killed(head, step) == ["restart slurmctld", "scontrol reconfigure"]


def test_a_completed_apply_is_not_repeated(head: Head) -> None:
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    killed(head, "scontrol reconfigure")
    head.did.clear()
    assert (head.apply().result, head.did, apply_journal.is_pending(head.home)) == (
        ApplyResult.NOTHING,
        [],
        False,
    )


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("restart slurmctld", ["restart slurmctld", "scontrol reconfigure"]),
        ("scontrol reconfigure", ["restart slurmctld", "scontrol reconfigure"]),
        ("restart corral-credentials", []),
        ("restart corral-agent", []),
    ],
)
def test_a_newer_agent_that_was_killed_in_a_step_still_restarts(head: Head, step: str, left: list[str]) -> None:
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    assert killed(head, step, renewed=True) == [*left, "restart corral-credentials", "restart corral-agent"]


def test_daemons_restart_once(head: Head) -> None:
    head.apply(renewed=True)
    assert (head.apply().result, apply_journal.is_pending(head.home)) == (ApplyResult.NOTHING, False)


def killed_while_it_installs(head: Head, plan: ClusterPlan) -> None:
    """Slurm's files are the new ones; the last file of all cannot be written as long as a directory has its name."""
    last = head.root / "etc/ssh/corral_users/eve"
    last.mkdir(parents=True)
    head.upload(plan, **{"access/keys/eve": "ssh-ed25519 AAAA"})
    with pytest.raises(IsADirectoryError):
        head.apply()
    last.rmdir()


def test_an_apply_that_was_killed_while_it_installed_is_repeated_by_the_next(head: Head) -> None:
    killed_while_it_installs(head, dev(train(6), cpu(), slurm_version="22.05"))
    seen = (apply_journal.is_pending(head.home), "train-[1-6]" in head.slurm_conf(), head.did.copy())
    head.apply()
    assert (seen, head.did) == ((True, True, []), ["restart slurmctld", "scontrol reconfigure"])


def test_an_interrupted_install_takes_nothing_from_a_later_job(head: Head) -> None:
    killed_while_it_installs(head, dev(train(2), cpu(), slurm_version="22.05"))
    assert head.apply("train-3").pending_removal == ("train-3",)


def test_an_interrupted_install_is_reverted_if_it_is_no_longer_declared(head: Head) -> None:
    before = head.slurm_conf()
    killed_while_it_installs(head, dev(train(2), cpu(), slurm_version="22.05"))
    head.upload(dev(train(4), cpu(), slurm_version="22.05"))
    assert (head.apply().result, head.slurm_conf() == before, head.did) == (ApplyResult.NOTHING, True, [])


def test_the_next_apply_also_rolls_back(head: Head) -> None:
    before = head.slurm_conf()
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    head.killed_in = "restart slurmctld"
    with pytest.raises(Killed):
        head.apply()
    head.upload(dev(train(4), cpu(), slurm_version="22.05"))
    head.down = 1
    head.apply()
    assert (head.slurm_conf() == before, apply_journal.is_pending(head.home)) == (True, False)


def test_a_refused_configuration_leaves_the_newer_agent_for_the_next_one(head: Head) -> None:
    head.refusal = "Parsing error"
    head.upload(dev(train(6), cpu(), slurm_version="22.05"))
    head.apply(renewed=True)
    seen = (head.did.copy(), apply_journal.is_pending(head.home))
    head.refusal = ""
    head.apply()
    assert (seen, head.did[-2:]) == (([], False), ["restart corral-credentials", "restart corral-agent"])


def test_an_unreadable_journal_means_every_step(head: Head) -> None:
    (head.home / "apply.json").write_text("{")
    head.apply()
    assert head.did == [
        "accounts",
        "reload sshd",
        "restart mariadb",
        "restart slurmdbd",
        "slurm accounts ",
        "restart slurmctld",
        "scontrol reconfigure",
    ]


def test_a_head_that_rebooted_in_an_apply_still_reconfigures(head: Head) -> None:
    killed_while_it_installs(head, dev(train(6), cpu(), slurm_version="22.05"))
    fetch(unsigned(head.bucket), Role.HEAD, None, root=head.root)
    carry_over(head.root, head.root / "var/lib/corral")
    head.apply()
    assert (head.did, "train-[1-6]" in head.slurm_conf()) == (
        ["restart slurmctld", "scontrol reconfigure"],
        True,
    )


def test_only_root_can_read_the_journal(head: Head) -> None:
    killed_while_it_installs(head, dev(train(6), cpu(), slurm_version="22.05"))
    assert (head.home / "apply.json").stat().st_mode & 0o7777 == 0o600


def test_a_new_head_keeps_what_the_lost_one_had_in_use(head: Head) -> None:
    head.upload(dev(train(2), cpu(), slurm_version="22.05"))
    head.apply("train-3")
    fetch(unsigned(head.bucket), Role.HEAD, None, root=head.root)
    carry_over(head.root, head.root / "var/lib/corral")
    assert [line.split()[0] for line in head.slurm_conf().splitlines() if line.startswith("NodeName=train")] == [
        "NodeName=train-[1-2]",
        "NodeName=train-3",
    ]


def test_a_newer_agent_applies_what_is_new_though_it_cannot_read_what_an_older_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boot.json").write_text(to_json(boot_facts()))
    regions: list[str] = []
    monkeypatch.setattr(apply_command, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(apply_command, "host_in", regions.append)
    monkeypatch.setattr(apply_command, "_apply_locked", lambda *_: True)
    assert main(["apply", "--facts", str(tmp_path / "boot.json"), "--store", str(tmp_path)]) == 0
    assert regions == ["us-east-1"]
