"""A project's own types and prices: plans use them, and all errors are reported at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from calls import corral

from environments import PROJECT

TYPE = """
[instances."p9.test"]
architecture = "x86_64"
vcpus = 8
cores = 4
threads_per_core = 2
sockets = 1
memory_mib = 65536
accelerator = { product = "X1", vendor = "nvidia", count = 2, memory_mib = 81920 }
network_cards = [{ first = 0, last = 0, interface_types = ["interface"], maximum_interfaces = 4 }]
network_gbps = 25
network_baseline_gbps = 10
efa_maximum = 0
markets = ["on-demand", "spot"]

[prices."p9.test".us-east-1]
on_demand = 3.5
as_of = 2026-11-01
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose `dev` uses a type that corral does not know."""
    shutil.copytree(PROJECT / "stacks", tmp_path / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "stacks/cluster/Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("p4d.24xlarge", "p9.test"))
    return tmp_path


def test_own_type_can_be_planned(project: Path) -> None:
    (project / "catalog.toml").write_text(TYPE)
    done = corral("plan", "dev", "--project", str(project))
    assert (done.returncode, "gpu:x1:2" in done.stdout, "3.50" in done.stdout) == (0, True, True), done.stderr


def test_type_is_unknown_without_the_catalog(project: Path) -> None:
    done = corral("plan", "dev", "--project", str(project))
    assert (done.returncode, "queues[0].instance_type: 'p9.test' is not in the catalog" in done.stderr) == (2, True)


def test_mistakes_in_it_are_reported_all_at_once(project: Path) -> None:
    (project / "catalog.toml").write_text(TYPE.replace("cores = 4", "core = 4").replace("vcpus = 8", 'vcpus = "8"'))
    done = corral("plan", "dev", "--project", str(project))
    errors = [line.split(" - ")[0] for line in done.stderr.splitlines()]
    assert (done.returncode, errors) == (
        2,
        [
            "catalog.toml: instances.\"p9.test\".vcpus: expected a whole number, found '8'",
            'catalog.toml: instances."p9.test".core: unknown field',
            'catalog.toml: instances."p9.test".cores: is missing',
        ],
    )
