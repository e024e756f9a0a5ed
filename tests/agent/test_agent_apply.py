"""Apply without a Slurm: what is not all there is not touched, what is refused stays away, what fails is taken back."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.agent import apply_command, pending
from corral.agent.__main__ import main
from corral.agent.apply import Head, Outcome, Result, apply, carry_over
from corral.agent.boot import fetch
from corral.agent.changes import Step
from corral.agent.events import Journal
from corral.agent.hosts import Daemon, HostError
from corral.agent.leaving import Used
from corral.agent.store import DirectoryStore
from corral.model.cluster import ClusterPlan
from corral.model.jsons import to_json
from corral.model.manifest import Manifest
from corral.model.markets import Role
from corral.render import cluster_files, deployed_json
from render.plans import boot_facts, cpu, deployed, dev, train

SLURM_CONF, GRES_CONF = "/etc/slurm/slurm.conf", "/etc/slurm/gres.conf"


class Killed(BaseException):
    """The process that applies was killed."""


class Place:
    """A head with the files of a cluster, and its bucket. `down`: slurmctld does not answer after these restarts.

    `killed_in`: what is the last thing that a process lives to ask for.
    """

    def __init__(self, directory: Path) -> None:
        self.bucket, self.root = directory / "bucket", directory / "root"
        self.did: list[str] = []
        self.down = 0
        self.refusal = ""
        self.killed_in = ""
        self.home = self.root / "opt/corral"

    def upload(self, plan: ClusterPlan, **others: str) -> None:
        texts = {**cluster_files(plan), "deployed.json": deployed_json(deployed()), **others}
        texts = {path: text for path, text in texts.items() if not path.startswith("accounting/")}
        hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
        manifest = Manifest(files=hashes, bundle="a", bundle_sha256="0", library="l", library_sha256="0")
        for path, text in {**texts, "manifest.json": to_json(manifest)}.items():
            (self.bucket / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / path).write_text(text)

    def restart(self, daemon: Daemon, mark: Path | None = None) -> None:
        self.down -= 1
        self.do(f"restart {daemon.unit}")
        if mark:
            mark.unlink()

    def reload_sshd(self) -> None:
        self.do("reload sshd")

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

    def apply(self, *nodes: str, renewed: bool = False) -> Outcome:
        host: Any = self
        used = Used(nodes=frozenset(nodes), queues=frozenset())
        head = Head(
            host=host,
            run=self.run,
            used=lambda: used,
            journal=Journal(None),
            root=self.root,
            state=self.root / "var/lib/corral",
            refusal=lambda *_: self.refusal,
            renewed=renewed,
            answers_in_s=0,
        )
        return apply(DirectoryStore(self.bucket), head)

    def slurm_conf(self) -> str:
        return (self.root / "etc/slurm/slurm.conf").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.upload(dev(train(4), cpu(), slurm_version="22.05"))
    fetch(DirectoryStore(place.bucket), Role.HEAD, None, root=place.root)
    place.down = -1
    return place


def test_what_is_installed_already_is_nothing(place: Place) -> None:
    assert (place.apply().result, place.did) == (Result.NOTHING, [])


def test_a_queue_that_grows_restarts_slurmctld_and_tells_the_nodes(place: Place) -> None:
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = place.apply()
    assert (outcome.steps, place.did) == (
        (Step.RESTART_SLURMCTLD, Step.RECONFIGURE),
        ["restart slurmctld", "scontrol reconfigure"],
    )


def test_an_upload_that_is_under_way_is_left_alone(place: Place) -> None:
    before = place.slurm_conf()
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    (place.bucket / "slurm/gres.conf").write_text("of another up")
    outcome = place.apply()
    assert (outcome.result, place.slurm_conf() == before) == (Result.INCOMPLETE, True)


def test_what_slurm_would_refuse_is_not_installed(place: Place) -> None:
    before, place.refusal = place.slurm_conf(), "Parsing error"
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = place.apply()
    assert (outcome.result, outcome.why, place.slurm_conf() == before, place.did) == (
        Result.REFUSED,
        "Parsing error",
        True,
        [],
    )


def test_what_slurmctld_does_not_start_with_after_all_is_taken_back(place: Place) -> None:
    before, place.down = place.slurm_conf(), 1
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    outcome = place.apply()
    assert (outcome.result, place.slurm_conf() == before, place.did) == (
        Result.REFUSED,
        True,
        ["restart slurmctld", "restart slurmctld"],
    )


def test_another_agent_begins_anew_after_all_else_and_the_keeper_last(place: Place) -> None:
    place.apply(renewed=True)
    assert place.did == ["restart corral-credentials", "restart corral-agent"]


def test_the_first_keys_for_ssh_are_told_to_sshd(place: Place) -> None:
    place.upload(replace(dev(train(4), cpu(), slurm_version="22.05"), ssh_keys=("ssh-ed25519 AAAA ann",)))
    place.apply()
    assert place.did == ["reload sshd"]


def killed(place: Place, what: str, *nodes: str, renewed: bool = False) -> list[str]:
    """What the next apply does, after one that was killed in this."""
    place.killed_in = what
    with pytest.raises(Killed):
        place.apply(*nodes, renewed=renewed)
    place.did.clear()
    place.apply(*nodes)
    return place.did


@pytest.mark.parametrize("step", ["restart slurmctld", "scontrol reconfigure"])
def test_an_apply_that_was_killed_in_a_step_is_ended_by_the_next(place: Place, step: str) -> None:
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    assert killed(place, step) == ["restart slurmctld", "scontrol reconfigure"]


def test_what_the_next_apply_has_ended_is_not_done_again(place: Place) -> None:
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    killed(place, "scontrol reconfigure")
    place.did.clear()
    assert (place.apply().result, place.did, pending.is_pending(place.home)) == (Result.NOTHING, [], False)


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("restart slurmctld", ["restart slurmctld", "scontrol reconfigure"]),
        ("scontrol reconfigure", ["restart slurmctld", "scontrol reconfigure"]),
        ("restart corral-credentials", []),
        ("restart corral-agent", []),
    ],
)
def test_a_newer_agent_that_was_killed_in_a_step_begins_anew_after_all(
    place: Place, step: str, left: list[str]
) -> None:
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    assert killed(place, step, renewed=True) == [*left, "restart corral-credentials", "restart corral-agent"]


def test_daemons_that_have_begun_anew_do_so_once(place: Place) -> None:
    place.apply(renewed=True)
    assert (place.apply().result, pending.is_pending(place.home)) == (Result.NOTHING, False)


def killed_while_it_installs(place: Place, plan: ClusterPlan) -> None:
    """Slurm's files are the new ones; the last file of all cannot be written as long as a directory has its name."""
    last = place.root / "etc/ssh/corral_authorized_keys"
    last.mkdir(parents=True)
    place.upload(plan, **{"ssh/authorized_keys": "ssh-ed25519 AAAA"})
    with pytest.raises(IsADirectoryError):
        place.apply()
    last.rmdir()


def test_an_apply_that_was_killed_while_it_installed_is_done_by_the_next(place: Place) -> None:
    killed_while_it_installs(place, dev(train(6), cpu(), slurm_version="22.05"))
    seen = (pending.is_pending(place.home), "train-[1-6]" in place.slurm_conf(), place.did.copy())
    place.apply()
    assert (seen, place.did) == ((True, True, []), ["restart slurmctld", "scontrol reconfigure"])


def test_what_was_installed_and_never_told_takes_nothing_from_a_job_that_has_come_since(place: Place) -> None:
    killed_while_it_installs(place, dev(train(2), cpu(), slurm_version="22.05"))
    assert place.apply("train-3").leaving == ("train-3",)


def test_what_was_installed_and_never_told_goes_where_it_is_wanted_no_more(place: Place) -> None:
    before = place.slurm_conf()
    killed_while_it_installs(place, dev(train(2), cpu(), slurm_version="22.05"))
    place.upload(dev(train(4), cpu(), slurm_version="22.05"))
    (place.bucket / "ssh/authorized_keys").unlink()
    assert (place.apply().result, place.slurm_conf() == before, place.did) == (Result.NOTHING, True, [])


def test_what_slurmctld_does_not_start_with_is_taken_back_by_the_next_too(place: Place) -> None:
    before = place.slurm_conf()
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    place.killed_in = "restart slurmctld"
    with pytest.raises(Killed):
        place.apply()
    place.upload(dev(train(4), cpu(), slurm_version="22.05"))
    place.down = 1
    place.apply()
    assert (place.slurm_conf() == before, pending.is_pending(place.home)) == (True, False)


def test_a_refused_configuration_leaves_the_newer_agent_for_the_next_one(place: Place) -> None:
    place.refusal = "Parsing error"
    place.upload(dev(train(6), cpu(), slurm_version="22.05"))
    place.apply(renewed=True)
    seen = (place.did.copy(), pending.is_pending(place.home))
    place.refusal = ""
    place.apply()
    assert (seen, place.did[-2:]) == (([], False), ["restart corral-credentials", "restart corral-agent"])


def test_a_mark_that_cannot_be_read_is_every_step(place: Place) -> None:
    (place.home / "apply.json").write_text("{")
    place.apply()
    assert place.did == [
        "reload sshd",
        "restart mariadb",
        "restart slurmdbd",
        "restart slurmctld",
        "scontrol reconfigure",
    ]


def test_nodes_are_told_what_a_head_has_fetched_in_a_boot_since(place: Place) -> None:
    killed_while_it_installs(place, dev(train(6), cpu(), slurm_version="22.05"))
    fetch(DirectoryStore(place.bucket), Role.HEAD, None, root=place.root)
    carry_over(place.root, place.root / "var/lib/corral")
    place.apply()
    assert (place.did, "train-[1-6]" in place.slurm_conf()) == (["restart slurmctld", "scontrol reconfigure"], True)


def test_the_mark_is_roots_alone(place: Place) -> None:
    killed_while_it_installs(place, dev(train(6), cpu(), slurm_version="22.05"))
    assert (place.home / "apply.json").stat().st_mode & 0o7777 == 0o600


def test_a_new_head_keeps_what_the_lost_one_had_in_use(place: Place) -> None:
    place.upload(dev(train(2), cpu(), slurm_version="22.05"))
    place.apply("train-3")
    fetch(DirectoryStore(place.bucket), Role.HEAD, None, root=place.root)
    carry_over(place.root, place.root / "var/lib/corral")
    assert [line.split()[0] for line in place.slurm_conf().splitlines() if line.startswith("NodeName=train")] == [
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
    monkeypatch.setattr(apply_command, "_locked", lambda *_: True)
    assert main(["apply", "--facts", str(tmp_path / "boot.json"), "--store", str(tmp_path)]) == 0
    assert regions == ["us-east-1"]
