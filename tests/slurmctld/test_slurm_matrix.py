"""Each installed release of Slurm reads the planned values from a plan's files, without errors in its log.

The tests always run with the system's release, and with the releases that `make slurm-matrix` put into the cache.
Without these they are not collected; the test marked `slurm_matrix`, which that target runs, names the missing ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.slurm_head.controller import SlurmError, running_slurmctld
from tools.slurm_matrix.__main__ import PROJECT, for_release, plan_of
from tools.slurm_matrix.comparison import differences
from tools.slurm_matrix.roots import SYSTEM, slurm_roots

import slurms
from corral.agent.slurm import fixed_rows
from corral.catalog.slurm.conf_keys import ConfSection, ConfSetting, slurm_changes
from corral.catalog.slurm.releases import OLDEST, parse_release
from corral.render import cluster_files
from corral.render.slurm_conf import slurm_conf
from corral.spec.yaml.stack_files import environments
from render.plans import cpu, dev, train

pytestmark = pytest.mark.slurm

ROOTS = slurm_roots()
each_release = pytest.mark.parametrize("release", ROOTS)
# Values for keys of the table that need a special one to be accepted.
SAMPLES = {
    "SuspendExcStates": "DOWN",
    "PowerAction": "go Location=slurmctld Program=/bin/true",
    "PrologTimeout": "60",
    "EpilogTimeout": "60",
    "MaxBatchRequeue": "3",
    "NamespaceType": "namespace/none",
    "SuspendTime": "60",
    "PowerDownOnIdle": "NO",
    "Exclusive": "NO",
    "ExclusiveTopo": "NO",
    "MaxCPUsPerSocket": "4",
    "PreemptParameters": "reclaim_licenses",
    "HealthCheckTimeout": "60",
    "JobCompPassScript": "/bin/true",
    "AccountingStorageLoc": "x",
    "AccountingStoreJobComment": "YES",
    "FastSchedule": "0",
    "FrontendName": "x",
    "SallocDefaultCommand": "x",
}
# The last one is longer than its column, which is counted in bytes.
NAMES = ("fit", "a\n9|root|train", "a\u2028b\x0b", "\x1b[31mred", "é" * 30)
BEGINNINGS = {
    ConfSection.CONF: "Include own.conf",
    ConfSection.NODE: "NodeName=train-[1-4] ",
    ConfSection.PARTITION: "PartitionName=train ",
}


def test_the_release_of_this_system_is_among_those_that_are_tried() -> None:
    assert [release for release, root in ROOTS.items() if root == SYSTEM] == ["22.05"]


@pytest.mark.slurm_matrix
def test_every_release_that_debian_has_is_among_those_that_are_tried() -> None:
    assert tuple(ROOTS) == ("22.05", "24.11", "26.05")


@each_release
@pytest.mark.parametrize("environment", environments(PROJECT))
def test_a_shipped_environment_is_read_as_planned(environment: str, release: str, tmp_path: Path) -> None:
    assert differences(for_release(plan_of(environment), release), ROOTS[release], tmp_path) == ()


@each_release
def test_all_that_a_plan_can_say_is_read_as_planned(release: str, tmp_path: Path) -> None:
    assert differences(slurms.wide(release), ROOTS[release], tmp_path) == ()


@each_release
def test_a_difference_is_noticed(release: str, tmp_path: Path) -> None:
    files = cluster_files(dev(train(), cpu(), slurm_version=release))
    longer = {**files, "slurm/slurm.conf": files["slurm/slurm.conf"] + "MessageTimeout=61\n"}
    with running_slurmctld(longer, tmp_path, ROOTS[release]) as controller:
        log_errors = {line.partition("error: ")[2] for line in slurms.unexpected_log_lines(controller)}
    assert log_errors == {"MessageTimeout 1 specified more than once, latest value used"}


@each_release
def test_a_release_refuses_each_key_that_is_newer_in_the_table(release: str, tmp_path: Path) -> None:
    newer = [row for row in slurm_changes() if row.since and row.since > parse_release(release) and row.key in SAMPLES]
    taken = [row.text for row in newer if takes(row, release, tmp_path / row.key)]
    assert taken == []


@each_release
def test_a_release_takes_each_of_its_keys_in_the_table(release: str, tmp_path: Path) -> None:
    known = [row for row in slurm_changes() if row.holds(parse_release(release)) and row.key in SAMPLES]
    refused = [row.text for row in known if not takes(row, release, tmp_path / row.key)]
    assert refused == []


@each_release
def test_a_release_refuses_each_key_that_the_table_lacks(release: str, tmp_path: Path) -> None:
    gone = [row for row in slurm_changes() if row.until == OLDEST and row.key in SAMPLES]
    taken = [row.text for row in gone if takes(row, release, tmp_path / row.key)]
    assert (len(gone), taken) == (5, [])


@each_release
@pytest.mark.parametrize("line", ["SchedulerParametres=bf_continue", "PriorityTier=3"])
def test_a_release_ends_over_a_key_that_is_none_of_slurm_conf(line: str, release: str, tmp_path: Path) -> None:
    files = cluster_files(dev(train(), cpu(), slurm_version=release))
    mistyped = {**files, "slurm/slurm.conf": files["slurm/slurm.conf"] + f"{line}\n"}
    with pytest.raises(SlurmError, match="unrecognized key"), running_slurmctld(mistyped, tmp_path, ROOTS[release]):
        pass


@each_release
def test_a_name_of_a_job_ends_no_column(release: str, tmp_path: Path) -> None:
    plan = dev(train(), cpu(), slurm_version=release)
    with running_slurmctld(cluster_files(plan), tmp_path, ROOTS[release]) as controller:
        for name in NAMES:
            slurms.must(controller.run("sbatch", "--hold", f"--job-name={name}", "--wrap=hostname"))
        listed = controller.run("squeue", "--noheader", "--sort=i", "--Format=JobArrayID:48,RestartCnt:12,Name:40")
        rows = [*fixed_rows(slurms.must(listed).encode(), (48, 12, 40))]
    assert [name for _, _, name in rows] == [*NAMES[:-1], "é" * 20]


def takes(row: ConfSetting, release: str, directory: Path) -> bool:
    """True if slurmctld of this release starts with this key in its section."""
    plan = dev(train(), cpu(), slurm_version=release)
    setting = f"{row.key}={SAMPLES[row.key]}"
    beginning = BEGINNINGS[row.section]
    added = f"{setting}\n{beginning}" if row.section is ConfSection.CONF else f"{beginning}{setting} "
    files = {**cluster_files(plan), "slurm/slurm.conf": slurm_conf(plan).replace(beginning, added, 1)}
    directory.mkdir()
    try:
        with running_slurmctld(files, directory, ROOTS[release]):
            return True
    except SlurmError:
        return False
