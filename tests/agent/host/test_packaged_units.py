"""What systemd makes of the packages' units with a boot's additions, on Ubuntu 24.04, Debian 12 and Debian 13.

The units are in `packages`, with their sources. systemd itself reads them and reports what it understood; none runs.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from corral.agent.host.base import mariadb, munge, slurmctld, slurmd, slurmdbd
from corral.agent.host.ec2 import Ec2Host
from corral.agent.host.lustre_client import MachineSize
from corral.render.slurmdbd_conf import slurmdbd_conf
from environments import dev_cluster

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt install systemd"
)
PACKAGES = Path(__file__).parent / "packages"
UBUNTU, OLD, NEW = "ubuntu-24.04", "debian-12", "debian-13"
SYSTEMS = (UBUNTU, OLD, NEW)
SLICE = "/sys/fs/cgroup/system.slice"
STATE = Path("/var/lib/corral")
DAEMONS = {
    "munge": munge(),
    "mariadb": mariadb(),
    "slurmctld": slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"),
    "slurmdbd": slurmdbd("/usr/sbin"),
    "slurmd": slurmd("/usr/sbin", ("/home",)),
}
# Ubuntu's own units of these were not found: Debian 12 and 13 have an older and a newer package with the same ones.
LIKE_DEBIAN = ("munge", "mariadb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A unit as systemd has understood it: the values of each property, in systemd's words."""

    lines: tuple[str, ...]

    def values(self, name: str) -> list[str]:
        """The values of a property, without their origin."""
        found = (line.partition(": ") for line in self.lines)
        return [re.sub(r" \(origin-.*\)$", "", value) for key, _, value in found if key == name]


def load(units: Path, unit: str) -> Loaded:
    """What systemd understands of a unit in this directory."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(units / unit)],
        capture_output=True,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{units}:", "SYSTEMD_LOG_LEVEL": "debug", "PATH": "/usr/bin:/bin"},
    )
    of_unit = re.search(rf"-> Unit {re.escape(unit)}:\n(.*?)(?=\n\t-> Unit |\Z)", done.stdout, re.DOTALL)
    assert of_unit, done.stderr
    return Loaded(lines=tuple(line.strip() for line in of_unit[1].splitlines()))


def on(system: str, name: str, root: Path) -> Loaded:
    """A daemon's unit, as its package has it on this system and a boot completes it."""
    Ec2Host(lambda _: "", "us-east-1", root).start(DAEMONS[name], ("--option",))
    units = root / "etc/systemd/system"
    text = (PACKAGES / system / f"{name}.service").read_text()
    (units / f"{name}.service").write_text(re.sub(r"/usr/sbin/\w+", "/bin/true", text))
    return load(units, f"{name}.service")


def written(system: str, file: str) -> str:
    return (PACKAGES / system / file).read_text()


PAIRS = [(system, name) for system in SYSTEMS for name in DAEMONS if system != UBUNTU or name not in LIKE_DEBIAN]


@pytest.mark.parametrize(("system", "name"), PAIRS)
def test_a_daemon_is_restarted_after_a_failure(system: str, name: str, tmp_path: Path) -> None:
    assert on(system, name, tmp_path).values("Restart") == ["on-failure"]


@pytest.mark.parametrize(("system", "name"), PAIRS)
def test_a_boot_starts_the_daemons_and_systemd_only_once_one_has_ended(system: str, name: str, tmp_path: Path) -> None:
    """22.05's slurmd, and slurmctld and slurmdbd of each release, wait for a file in /etc/slurm by themselves."""
    assert on(system, name, tmp_path).values("ConditionPathExists") == [
        "|/run/corral/booting untested",
        "|/var/lib/cloud/instance/corral-booted untested",
    ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_head_that_is_away_does_not_end_slurmd(system: str, tmp_path: Path) -> None:
    """systemd's default is 90 s, in which a unit of Type=notify must be ready; slurmd is ready once it has a head."""
    assert on(system, "slurmd", tmp_path).values("TimeoutStartSec") == ["infinity"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_before_each_start_of_slurmd_an_empty_scope_is_stopped(system: str, tmp_path: Path) -> None:
    """slurmd takes a scope that is there for its own; an empty one goes with the first job that ends."""
    (command,) = (line for line in on(system, "slurmd", tmp_path).values("Command Line") if SLICE in line)
    for name, populated in (("train-1_slurmstepd.scope", 0), ("slurmstepd.scope", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    script = shlex.split(command)[-1].replace("\\$\\$", "$").replace(SLICE, str(tmp_path)).replace("systemctl", "echo")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert done.stdout == "stop train-1_slurmstepd.scope\nreset-failed *slurmstepd.scope\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_slurmd_does_not_start_without_its_file_systems(system: str, tmp_path: Path) -> None:
    """systemd tries a mount that failed once more at each start of a unit that wants it."""
    unit = on(system, "slurmd", tmp_path)
    assert "/usr/bin/mountpoint --quiet /home" in unit.values("Command Line")[0]
    assert ("home.mount" in unit.values("Wants"), "home.mount" in unit.values("After")) == (True, True)


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("munge", ["1min 30s", "1min 30s"]),
        ("slurmctld", ["1min 30s", "1min 30s"]),
        ("slurmdbd", ["1min 30s", "1min 30s"]),
        ("mariadb", ["15min", "15min"]),
    ],
)
def test_other_daemons_keep_the_limit_of_their_package(name: str, limits: list[str], tmp_path: Path) -> None:
    found = [on(system, name, tmp_path / system).values("TimeoutStartSec") for system in (OLD, NEW)]
    assert [limit for (limit,) in found] == limits


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("slurmd", ["notify", "simple", "notify"]),
        ("slurmctld", ["notify", "simple", "notify"]),
        ("slurmdbd", ["simple", "simple", "simple"]),
    ],
)
def test_from_23_11_on_slurm_reports_the_end_of_its_start(name: str, types: list[str], tmp_path: Path) -> None:
    found = [on(system, name, tmp_path / system).values("Type") for system in SYSTEMS]
    assert [one for (one,) in found] == types


@pytest.mark.parametrize(("system", "name"), PAIRS)
def test_a_daemon_runs_as_the_owner_of_its_directories(system: str, name: str, tmp_path: Path) -> None:
    """Debian 12's slurmctld and slurmdbd would start as root, and write through links of slurm's."""
    unit, user = on(system, name, tmp_path), DAEMONS[name].user
    found = [] if user == "root" else [user]
    assert (unit.values("User"), unit.values("Group")) == (found, found)


def test_what_prepares_a_start_of_slurmctld_has_no_more_rights_than_slurmctld(tmp_path: Path) -> None:
    """`+` would make it root's, among files of slurm's."""
    on(OLD, "slurmctld", tmp_path)
    lines = next(tmp_path.rglob("slurmctld.service.d/*")).read_text().splitlines()
    assert [line for line in lines if line.startswith("ExecStartPre")] == [
        "ExecStartPre=/opt/corral/bin/restore-scripts"
    ]


def test_slurm_may_write_where_slurmdbd_writes_its_process_id() -> None:
    (file,) = re.findall(r"^PidFile=(.*)$", slurmdbd_conf(dev_cluster()), re.MULTILINE)
    daemon = slurmdbd("/usr/sbin")
    assert (str(Path(file).parent) in daemon.modes, daemon.user) == (True, "slurm")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", ["slurmctld", "slurmdbd", "slurmd"])
def test_a_daemon_has_the_options_that_a_boot_writes(system: str, name: str, tmp_path: Path) -> None:
    Ec2Host(lambda _: "", "us-east-1", tmp_path).start(DAEMONS[name], ("--option",))
    (file,) = (tmp_path / "etc/default").iterdir()
    (assignment,) = (line for line in file.read_text().splitlines() if not line.startswith("#"))
    lines = written(system, f"{name}.service").splitlines()
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    read = [line for line in lines if line.startswith("EnvironmentFile=")]
    assert (read, start.split()[-1]) == (
        [f"EnvironmentFile=-/etc/default/{file.name}"],
        f"${assignment.partition('=')[0]}",
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_slurmdbd_runs_no_program_outside_of_the_systems_whatever_is_mounted_later(system: str, tmp_path: Path) -> None:
    unit = on(system, "slurmdbd", tmp_path)
    limits = {name: unit.values(name) for name in ("NoExecPaths", "ExecPaths")}
    flags = re.findall(r"^MountFlags=(.*)$", next(tmp_path.rglob("slurmdbd.service.d/*")).read_text(), re.MULTILINE)
    assert (limits, flags) == ({"NoExecPaths": ["/"], "ExecPaths": ["/usr -/opt"]}, ["private"])


def test_slurmdbd_of_an_image_with_its_own_slurm_may_run_that() -> None:
    assert "ExecPaths=/usr -/opt /srv/slurm" in slurmdbd("/srv/slurm/sbin").limits


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_restart_of_slurmd_ends_no_job(system: str, tmp_path: Path) -> None:
    loaded = on(system, "slurmd", tmp_path)
    assert (loaded.values("KillMode"), loaded.values("Delegate")) == (["process"], ["yes"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_only_22_05s_slurmd_does_not_start_without_a_boot(system: str) -> None:
    """From 23.11 on an image's slurmd, or a new package's, would wait for a head: user data holds it off."""
    lines = written(system, "slurmd.service").splitlines()
    assert ("ConditionPathExists=/etc/slurm/slurm.conf" in lines) is (system == OLD)


@pytest.mark.parametrize("name", ["slurmctld", "slurmdbd"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_new_package_does_not_start_a_head_without_its_files(system: str, name: str) -> None:
    conditions = [line for line in written(system, f"{name}.service").splitlines() if line.startswith("Condition")]
    assert len(conditions) == 1


def test_a_slurmd_that_does_not_start_is_no_failure_of_its_package() -> None:
    """The part that debhelper adds, which Debian 13's package has and Ubuntu's source has not yet."""
    text = written(NEW, "slurmd.postinst")
    assert ("deb-systemd-invoke $_dh_action 'slurmd.service' >/dev/null || true" in text, "#DEBHELPER#" in text) == (
        True,
        False,
    )


def test_ubuntus_slurm_is_debian_13s_to_the_byte() -> None:
    files = [f"{name}.{kind}" for name in ("slurmctld", "slurmdbd", "slurmd") for kind in ("service", "default")]
    assert [written(UBUNTU, file) == written(NEW, file) for file in files] == [True] * 6


def test_debians_munge_is_the_same_before_and_after_ubuntus() -> None:
    assert written(OLD, "munge.service") == written(NEW, "munge.service")


def test_debians_mariadb_is_the_same_but_for_its_version() -> None:
    versions = [re.sub(r"MariaDB [\d.]+ ", "", written(system, "mariadb.service")) for system in (OLD, NEW)]
    assert versions[0] == versions[1]


def test_munge_makes_a_key_only_where_a_boot_has_written_none() -> None:
    texts = [written(system, "munge.postinst") for system in (OLD, NEW)]
    assert ["if [ -e /etc/munge/munge.key ]" in text and "mungekey -c" in text for text in texts] == [True, True]


def test_no_file_has_been_changed() -> None:
    listed = re.findall(r"^(\w{64})  (\S+/\S+)$", written(".", "README.md"), re.MULTILINE)
    files = sorted(path for path in PACKAGES.glob("*/*"))
    assert sorted((path, digest) for digest, path in listed) == [
        (str(file.relative_to(PACKAGES)), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files
    ]


def mounts(root: Path) -> Path:
    """The units of a machine with a state volume, a home and a Lustre file system."""
    disk = root / "dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol1"
    disk.parent.mkdir(parents=True)
    disk.touch()
    host = Ec2Host(lambda _: "ext4\n", "us-east-1", root, size=MachineSize(vcpus=8, memory_mib=32 * 1024))
    host.mount_volume("vol-1", STATE)
    host.mount_home("fs-2", Path("/home"))
    host.mount_lustre("fs-1.fsx.us-east-1.amazonaws.com", "abc", Path("/scratch"))
    return root / "etc/systemd/system"


def test_the_boot_of_a_head_does_not_wait_for_its_state_volume(tmp_path: Path) -> None:
    """Only the units that require the mount wait: neither the network nor a lost volume delays local-fs.target."""
    loaded = load(mounts(tmp_path), "var-lib-corral.mount")
    assert (loaded.values("Before"), "network-online.target" in loaded.values("After")) == (["umount.target"], False)


@pytest.mark.parametrize("unit", ["home.mount", "scratch.mount"])
def test_a_shared_file_system_is_mounted_after_the_network(tmp_path: Path, unit: str) -> None:
    loaded = load(mounts(tmp_path), unit)
    wants, after = loaded.values("Wants"), loaded.values("After")
    assert ("network-online.target" in wants, "network-online.target" in after) == (True, True)


@pytest.mark.parametrize("name", ["mariadb", "slurmctld"])
def test_a_daemon_does_not_start_without_its_state_volume(name: str, tmp_path: Path) -> None:
    units = mounts(tmp_path)
    on(OLD, name, tmp_path)
    loaded = load(units, f"{name}.service")
    assert [unit in loaded.values("Requires") for unit in ("var-lib-corral.mount",)] == [True]
