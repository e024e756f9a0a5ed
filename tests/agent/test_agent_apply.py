"""Apply without a Slurm: what is not all there is not touched, what is refused stays away, what fails is taken back."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.agent import apply_command
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


class Place:
    """A head with the files of a cluster, and its bucket. `down`: slurmctld does not answer after these restarts."""

    def __init__(self, directory: Path) -> None:
        self.bucket, self.root = directory / "bucket", directory / "root"
        self.did: list[str] = []
        self.down = 0
        self.refusal = ""

    def upload(self, plan: ClusterPlan) -> None:
        texts = {**cluster_files(plan), "deployed.json": deployed_json(deployed())}
        texts = {path: text for path, text in texts.items() if not path.startswith("accounting/")}
        hashes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
        manifest = Manifest(files=hashes, bundle="a", bundle_sha256="0", library="l", library_sha256="0")
        for path, text in {**texts, "manifest.json": to_json(manifest)}.items():
            (self.bucket / path).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / path).write_text(text)

    def restart(self, daemon: Daemon) -> None:
        self.did.append(f"restart {daemon.unit}")
        self.down -= 1

    def run(self, command: Sequence[str]) -> str:
        if command == ("scontrol", "ping"):
            if self.down >= 0 and self.did:
                raise HostError("down")
            return "Slurmctld(primary) at dev-head is UP"
        self.did.append(" ".join(command))
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
