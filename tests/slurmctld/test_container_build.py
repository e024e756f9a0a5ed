"""The script that compiles what runs containers, with the real compiler, headers and Slurm, and archives of our own.

It writes to overlays of /etc, /opt, /usr/local and /var/lib. `make containers` does the same with enroot and Pyxis.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from container_archives import ARCHIVES, CONTAINERS
from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import install
from corral.model.enums import Role
from corral.render import cluster_files
from render.plans import cpu, dev

pytestmark = pytest.mark.slurm
PLAN = replace(dev(cpu(), slurm_version="22.05"), containers=CONTAINERS)
FILES = {**{name: text.encode() for name, text in cluster_files(PLAN).items()}, **ARCHIVES}
PATIENCE_S = 60
# Each directory that the script writes to becomes an overlay, whose upper layer stays.
OVERLAYS = """
set -eu
for name in etc opt usr/local var/lib; do
    mkdir -p "$1/$name" "$1/work/$name"
    mount -t overlay overlay -o "lowerdir=/$name,upperdir=$1/$name,workdir=$1/work/$name" "/$name"
done
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a machine writes, and its next run of the script."""

    root: Path

    def build(self, *arguments: str, before: str = "true") -> subprocess.CompletedProcess[str]:
        """Run the script, after this command of the shell."""
        words = ("sh", "-c", f'{before}; exec /opt/corral/containers/build.sh "$@"', "build", *arguments)
        command = ("unshare", "--mount", "sh", "-c", OVERLAYS, "overlays", str(self.root), *words)
        return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    install(placements_for(FILES, Role.COMPUTE, "cpu"), tmp_path / "root")
    return Machine(tmp_path / "root")


def test_enroot_and_the_plugin_are_compiled(machine: Machine) -> None:
    slurms.must(machine.build())
    made = [
        str(file.relative_to(machine.root))
        for file in (machine.root / "opt/corral/enroot").rglob("*")
        if file.is_file()
    ]
    plugins = [f"opt/corral/enroot/lib/spank_{name}.so" for name in ("job_role", "pyxis")]
    assert sorted(made)[:3] == ["opt/corral/enroot/bin/enroot", *plugins]
    assert (machine.root / "usr/local/bin/enroot").readlink() == Path("/opt/corral/enroot/bin/enroot")


def test_slurms_hooks_of_enroot_are_on(machine: Machine) -> None:
    slurms.must(machine.build())
    assert sorted(file.name for file in (machine.root / "etc/enroot/hooks.d").iterdir()) == [
        "50-slurm-pmi.sh",
        "50-slurm-pytorch.sh",
    ]


def test_a_second_run_compiles_nothing(machine: Machine) -> None:
    slurms.must(machine.build())
    plugin = machine.root / "opt/corral/enroot/lib/spank_pyxis.so"
    before = plugin.stat().st_mtime_ns
    slurms.must(machine.build())
    assert plugin.stat().st_mtime_ns == before


def test_another_archive_is_compiled(machine: Machine) -> None:
    slurms.must(machine.build())
    plugin = machine.root / "opt/corral/enroot/lib/spank_pyxis.so"
    before = plugin.stat().st_mtime_ns
    with (machine.root / "opt/corral/containers/build.sh").open("a") as script:
        script.write("# newer\n")
    slurms.must(machine.build())
    assert plugin.stat().st_mtime_ns > before


def test_an_instance_store_has_the_containers(machine: Machine) -> None:
    slurms.must(machine.build("/var/lib/disk/enroot", before="mkdir /var/lib/disk"))
    assert (machine.root / "var/lib/enroot").readlink() == Path("/var/lib/disk/enroot")


@pytest.mark.parametrize("trap", ["mkdir {}", "ln -s /etc {}"], ids=["a directory", "a link"])
def test_a_directory_that_a_user_made_first_is_refused(trap: str, machine: Machine) -> None:
    path = "/var/lib/disk/enroot"
    before = f"mkdir /var/lib/disk; {trap.format(path)}; chown -h 2000 {path}"
    done = machine.build(path, before=before)
    assert (done.returncode, done.stderr) == (1, f"corral: {path} belongs to another user\n")


def test_what_is_missing_is_named_at_once(machine: Machine) -> None:
    hidden = "for name in make parallel; do mount --bind /dev/null /usr/bin/$name; done"
    done = machine.build(before=hidden)
    assert (done.returncode, done.stderr) == (
        1,
        "corral: containers need make parallel - install the packages that have them\n",
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A cluster whose machines have the plugin."""
    machine = Machine(tmp_path_factory.mktemp("machine"))
    install(placements_for(FILES, Role.COMPUTE, "cpu"), machine.root)
    slurms.must(machine.build())
    directory = tmp_path_factory.mktemp("containers")
    with slurms.running_cluster_with_nodes(PLAN, directory) as controller:
        shutil.copytree(machine.root / "opt/corral/enroot/lib", controller.directory / "opt/corral/enroot/lib")
        controller.directory.chmod(0o1777)  # jobs of a user write their output there
        yield controller


def output(cluster: Controller, command: str, user: int = 0) -> list[str]:
    """What a job of this user printed that runs this command on the only node, once it is over."""
    words = ("sbatch", "--parsable", "--partition=cpu", "--time=5", "--output=/mnt/out-%j", "--chdir=/")
    become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    job = slurms.must(cluster.run(*become, *words, f"--wrap={command} 2>&1; echo over")).strip()
    file, until = cluster.directory / f"out-{job}", time.monotonic() + PATIENCE_S
    while not file.exists() or "over" not in file.read_text().splitlines():
        assert time.monotonic() < until, cluster.log()
        time.sleep(0.1)
    return file.read_text().splitlines()


@pytest.mark.long
def test_srun_has_the_plugins_option_and_the_node_receives_it(cluster: Controller) -> None:
    lines = output(cluster, "srun --container-image=/scratch/image.sqsh printenv TASK_IN")
    assert lines == ["/scratch/image.sqsh", "over"]


@pytest.mark.long  # slurmctld and srun wait for half a minute
def test_a_task_without_the_plugin_does_not_start(cluster: Controller) -> None:
    away = "mv /opt/corral/enroot/lib/spank_pyxis.so /mnt/away.so"
    back = "mv /mnt/away.so /opt/corral/enroot/lib/spank_pyxis.so"
    assert "started" not in output(cluster, f"({away}; srun echo started; {back})")


GAMES, UNSET = 5, "env --unset=AWS_CONTAINER_CREDENTIALS_FULL_URI"
OTHER = "env AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/other"


@pytest.mark.parametrize(
    "task",
    ["", "srun ", f"{UNSET} srun --container-image=/scratch/image.sqsh ", f"{OTHER} srun "],
    ids=["script", "task", "container", "another value"],
)
def test_the_job_role_is_found_in_scripts_and_in_tasks_of_a_user(task: str, cluster: Controller) -> None:
    lines = output(cluster, f"{task}printenv AWS_CONTAINER_CREDENTIALS_FULL_URI", GAMES)
    assert lines == ["http://127.0.0.1:250/credentials", "over"]


def test_root_keeps_the_machines_own_role(cluster: Controller) -> None:
    assert output(cluster, "srun sh -c 'echo ${AWS_CONTAINER_CREDENTIALS_FULL_URI-unset}'") == ["unset", "over"]
