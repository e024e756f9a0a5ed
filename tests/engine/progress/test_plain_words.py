"""Words that YAML readers parse differently: the box reads them as `corral plan` and Pulumi do."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from corral.engine.pulumi.binary import find_pulumi
from corral.engine.pulumi.projects import base_of, region_of, secrets_provider_of, sync_box_copy
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.stack_files import read_environment
from corral.spec.yaml.yaml_reader import read_yaml

BASE = """\
config:
  aws:region: us-east-1
  corral-base:spec:
    network: {cidr: 10.64.0.0/16, zones: [use1-az1, use1-az2]}
    storage: {home: {}}
    tags: {Prod: no, Shift: 14:30, on: y, "Null": "null"}
"""
CLUSTER = """\
config:
  aws:region: us-east-1
  corral-cluster:spec:
    base: off
    head: {instance_type: m7i.2xlarge}
    queues:
      - name: on
        instance_type: p4d.24xlarge
        nodes: {max: 4}
        efa: off
        placement: off
        nvme: off
        capacity: [{market: spot}]
      - {name: train, instance_type: p4d.24xlarge, nodes: {max: 2}, efa: on, capacity: [{market: on-demand}]}
    slurm:
      extra:
        PriorityType: priority/multifactor
        PriorityDecayHalfLife: 10:00:00
"""
WORDS = """\
config:
  corral-cluster:spec:
    off: off
    on: on
    yes: yes
    no: no
    y: y
    n: N
    half: 12:30
    time: 10:00:00
    negative: -1:30
    equals: =
    tilde: ~
    nothing:
    truth: True
    float: 1.0
    exponent: 1e3
    dot: .5
    number: 123456789012345678
    quoted_octal: "012"
    quoted_date: "2026-11-21"
    quoted_number: "1e3"
    quoted_truth: "true"
    quoted_null: "null"
    empty: ""
    spaces: " two  spaces "
    lines: |
      one: 1

      # two
    odd: "\\u2028 \\x85 \\t \\\\ \\" \\U0001F600"
    13:45: noon
    <: >-
      folded
      text
"""


def project(root: Path, base: str = BASE, cluster: str = CLUSTER) -> Path:
    """A project with one environment, named `off`."""
    for kind, text in {"base": base, "cluster": cluster}.items():
        folder = root / "stacks" / kind
        folder.mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text(f"name: corral-{kind}\nruntime: python\n")
        (folder / "Pulumi.off.yaml").write_text(text)
    return root


def in_box(root: Path) -> Path:
    """The box's copy of the project's stacks."""
    return sync_box_copy(root / "stacks", root / "box" / "stacks")


def settings_by_pulumi(folder: Path, root: Path) -> Mapping[str, Any]:
    """The configuration that Pulumi passes to the stack `off` in this directory: the values of `config --json`."""
    (root / "state").mkdir(exist_ok=True)
    environ = {
        **os.environ,
        "PULUMI_BACKEND_URL": f"file://{root}/state",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = [str(find_pulumi().path), "--non-interactive", "-C", str(folder)]
    subprocess.run([*command, "stack", "init", "off"], env=environ, check=True, capture_output=True)
    config_command = [*command, "config", "--json", "--stack", "off"]
    found = json.loads(subprocess.run(config_command, env=environ, check=True, capture_output=True).stdout)
    return {name: json.loads(one["value"]) if "objectValue" in one else one["value"] for name, one in found.items()}


@pytest.mark.pulumi
def test_pulumi_in_the_box_plans_the_same_as_corral(tmp_path: Path) -> None:
    copy = in_box(project(tmp_path))
    found = {kind: settings_by_pulumi(copy / kind, tmp_path) for kind in ("base", "cluster")}
    context = ValidationContext(region=found["base"]["aws:region"])
    base = parse_base(
        found["base"]["corral-base:spec"], name="off", where="stacks/base/Pulumi.off.yaml", context=context
    )
    cluster = parse_cluster(
        found["cluster"]["corral-cluster:spec"],
        name="off",
        where="stacks/cluster/Pulumi.off.yaml",
        context=ValidationContext(region=found["cluster"]["aws:region"], base=base),
    )
    wanted = read_environment(tmp_path, "off")
    expected = plan_base(wanted.base)
    assert (plan_base(base), plan_cluster(cluster, plan_base(base))) == (
        expected,
        plan_cluster(wanted.cluster, expected),
    )


@pytest.mark.pulumi
@pytest.mark.parametrize("boxed", [False, True])
def test_pulumi_reads_file_and_copy_as_corral_does(boxed: bool, tmp_path: Path) -> None:
    root = project(tmp_path, cluster=WORDS)
    read = read_yaml(WORDS.encode())["config"]["corral-cluster:spec"]
    folder = in_box(root) if boxed else root / "stacks"
    assert settings_by_pulumi(folder / "cluster", tmp_path)["corral-cluster:spec"] == read


def test_copy_has_the_same_values_as_the_file(tmp_path: Path) -> None:
    copy = in_box(project(tmp_path, cluster=WORDS))
    copied = read_yaml((copy / "cluster/Pulumi.off.yaml").read_bytes())["config"]["corral-cluster:spec"]
    assert copied == read_yaml(WORDS.encode())["config"]["corral-cluster:spec"]


def test_environment_may_be_named_off(tmp_path: Path) -> None:
    assert base_of(project(tmp_path) / "stacks", "off") == "off"


def test_setting_that_other_readers_parse_is_text(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.off.yaml"
    file.write_text("secretsprovider: on\nconfig: {aws:region: no}\n")
    assert (secrets_provider_of(file), region_of(file)) == ("on", "no")
