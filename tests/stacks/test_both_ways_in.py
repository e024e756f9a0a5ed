"""What is not brought up: `corral up` and plain `pulumi up` refuse it in the same words, before anything is created.

`corral up` runs as a process. The programs run with Pulumi's official mocks, and get the config that Pulumi makes of
the files. Each kind of mistake in a spec, both ways: tests/spec/test_wrong_specs.py. With the real engine:
tests/engine/test_plain_pulumi.py, and tests/engine/test_extend.py for a cluster whose hour has passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import config as pulumi_config

from cli_session import copy_project
from corral.spec.yaml.yaml_reader import read_document
from corral.stacks import base_program, cluster_program
from corral.stacks.stack_inputs import require_not_expired
from environments import dev_cluster
from recorded import Recorder, record

PROGRAMS: Mapping[str, Callable[[], None]] = {"base": base_program.program, "cluster": cluster_program.program}
B, C = "stacks/base/Pulumi.dev.yaml: ", "stacks/cluster/Pulumi.dev.yaml: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A change of the shipped project that no way in may bring up. `edits`: by file, each old text with its new one.

    `files`: further files in the project. `programs`: those that find it.
    """

    name: str
    edits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ("cluster",)
    expected: tuple[str, ...]


WRONG = (
    Wrong(
        name="mistakes in both files",
        edits={
            "base/Pulumi.dev.yaml": ("usd_per_month: 2000", "usd_per_month: 0"),
            "cluster/Pulumi.dev.yaml": ("market: on-demand", "market: on-demnd"),
        },
        expected=(
            B + "budget.usd_per_month: 0 is too small - use 1 or more",
            C + "queues[0].capacity[1].market: invalid value 'on-demnd'; did you mean 'on-demand'?",
        ),
    ),
    Wrong(
        name="mistake in the base",
        edits={"base/Pulumi.dev.yaml": ("usd_per_month: 2000", "usd_per_month: 0")},
        programs=("base", "cluster"),
        expected=(B + "budget.usd_per_month: 0 is too small - use 1 or more",),
    ),
    Wrong(
        name="mistake in yaml that pulumi lets pass",
        edits={"cluster/Pulumi.dev.yaml": ("ttl: 12h", "ttl: !x 12h")},
        expected=(C + "line 29, column 12: tags such as !x are not supported - write plain values",),
    ),
    Wrong(
        name="no such base",
        edits={"cluster/Pulumi.dev.yaml": ("base: dev\n", "base: deb\n")},
        expected=(C + "base: unknown base 'deb' - did you mean 'dev'?",),
    ),
    Wrong(
        name="head with the address of another cluster's",
        files={
            "stacks/cluster/Pulumi.team-45.yaml": (
                "config: {aws:region: us-east-1, corral-cluster:spec: {base: dev, head: {}, queues: []}}\n"
            )
        },
        expected=(
            C + "head.address: conflicts with the head of 'team-45' on base 'dev' - set"
            " head.address of the one that is not deployed yet, here or in stacks/cluster/Pulumi.team-45.yaml",
        ),
    ),
    Wrong(
        name="mistake in the project's catalog",
        files={"catalog.toml": "[prices.'p4d.24xlarge'.us-east-1]\non_demand = -1\nas_of = 2026-11-01\n"},
        programs=("base", "cluster"),
        expected=('catalog.toml: prices."p4d.24xlarge".us-east-1.on_demand: -1 is too small - use more than 0',),
    ),
    Wrong(
        name="limit of money",
        edits={"cluster/Pulumi.dev.yaml": ("    base: dev\n", "    usd_per_hour_max: 1\n    base: dev\n")},
        expected=(
            C + "usd_per_hour_max: an hour with all nodes running costs up to 88.54 USD, the limit is 1.00 - lower"
            " nodes.max of queue train (4 p4d.24xlarge cost up to 87.83), or raise the limit: nothing was changed",
            "  corral plan dev",
        ),
    ),
)


def wrong_project(directory: Path, wrong: Wrong) -> Path:
    copy_project(directory, small=False)
    for name, (old, new) in wrong.edits.items():
        file = directory / "stacks" / name
        assert file.read_text().count(old) == 1
        file.write_text(file.read_text().replace(old, new))
    for name, text in wrong.files.items():
        (directory / name).write_text(text)
    return directory


def configure(project: Path, kind: str, **more: str) -> None:
    """Gives Pulumi's runtime the config that the engine would make of the file of this stack."""
    document = read_document((project / "stacks" / kind / "Pulumi.dev.yaml").read_bytes())
    shown: dict[str, Any] = {} if document.mistakes else document.value["config"]
    texts = {key: one if isinstance(one, str) else json.dumps(one, sort_keys=True) for key, one in shown.items()}
    pulumi_config.set_all_config({**texts, **more})


def refusal_of_corral_up(project: Path) -> tuple[str, ...]:
    """The lines of `corral up`, where it has neither an account nor a backend to go on with."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(project), "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-m", "corral.cli", "up", "dev", "--yes"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return tuple(done.stderr.removeprefix("corral: ").splitlines())


def refusal_of_program(program: Callable[[], None], recorder: Recorder) -> tuple[str, ...]:
    """The lines that Pulumi shows of a program that ends; nothing may have been created."""
    with pytest.raises(pulumi.RunError) as caught:
        record(program, recorder)
    assert set(recorder.of_type("pulumi:providers:aws")) == set(recorder.resources)
    return tuple(str(caught.value).splitlines())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name.replace(" ", "_"))
def test_both_ways_in_refuse_it_in_the_same_words(
    wrong: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, found = wrong_project(tmp_path, wrong), {}
    for kind in wrong.programs:
        configure(project, kind)
        monkeypatch.chdir(project / "stacks" / kind)
        found[kind] = refusal_of_program(PROGRAMS[kind], Recorder())
    ways = ("corral up", *wrong.programs)
    assert {"corral up": refusal_of_corral_up(project), **found} == dict.fromkeys(ways, wrong.expected)


# --- what takes more than files: an answer of the account, or the image of the box


@dataclass(kw_only=True)
class Parameters(Recorder):
    """Answers for the parameters below /corral/dev: these names with these values."""

    values: Mapping[str, str]

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        """The lookup of a cluster's end."""
        assert (args.token, args.args) == ("aws:ssm/getParametersByPath:getParametersByPath", {"path": "/corral/dev"})
        return {"names": list(self.values), "values": list(self.values.values())}


def test_a_program_refuses_a_cluster_whose_hour_has_passed() -> None:
    up = Parameters(values={"/corral/dev/image": "ami-1", "/corral/dev/ends-at": "2026-01-02T03:04:05Z"})
    assert refusal_of_program(lambda: require_not_expired(dev_cluster(), None), up) == (
        "cluster dev: it expired at 2026-01-02 03:04 UTC, and its head shuts down: nothing was changed",
        "  to continue: corral extend dev 4h, then corral up dev",
        "  to delete it: corral down dev",
    )


@pytest.mark.parametrize("values", [{}, {"/corral/dev/ends-at": "2999-01-02T03:04:05Z"}], ids=["not up", "not over"])
def test_a_program_goes_on_with_a_cluster_whose_hour_has_not_passed(values: Mapping[str, str]) -> None:
    assert record(lambda: require_not_expired(dev_cluster(), None), Parameters(values=values)).resources == {}


def test_a_program_creates_nothing_for_a_slurm_that_lacks_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "    slurm: {extra: {MaxBatchRequeue: 5}}\n    lifetime:"
    wrong = Wrong(name="own key", edits={"cluster/Pulumi.dev.yaml": ("    lifetime:", own)}, expected=())
    project = wrong_project(tmp_path, wrong)
    configure(project, "cluster", **{"corral-cluster:imageProfile": "box-debian-12"})
    monkeypatch.chdir(project / "stacks/cluster")
    assert refusal_of_program(cluster_program.program, Recorder()) == (
        "slurm.extra: MaxBatchRequeue is for Slurm from 23.02, this is 22.05",
    )
