"""A machine on EC2, by the commands that it runs and the files that it writes; nothing of it runs here.

What a whole boot runs and writes is in tests/golden/boot, line by line. Here is what a boot meets only sometimes.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from corral.agent.host.base import HostError, autoscaler, run, slurmctld, slurmd
from corral.agent.host.ec2 import Ec2Host
from corral.agent.host.lustre_client import MachineSize
from corral.agent.host.packages import Package
from corral.model.cluster import ArchivePlan

DISK = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123"
HEADER = "# Managed by corral: written by `corral-agent boot`.\n"


@dataclass(kw_only=True)
class Shell:
    """Writes down what it is to run, and prints what each program of these would."""

    prints: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def __call__(self, command: Sequence[str]) -> str:
        self.commands.append(" ".join(command))
        return self.prints.get(command[0], "")


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.fixture
def host(shell: Shell, tmp_path: Path) -> Ec2Host:
    return Ec2Host(shell, "us-east-1", tmp_path, attached_in_s=0, size=MachineSize(vcpus=96, memory_mib=1152 * 1024))


def attach(root: Path) -> None:
    (root / DISK.lstrip("/")).parent.mkdir(parents=True)
    (root / DISK.lstrip("/")).touch()


def test_a_lost_metadata_rule_is_added_again(host: Ec2Host, shell: Shell) -> None:
    host.restrict_metadata()
    shell.commands.clear()
    host.restrict_metadata()
    looks = ["systemctl enable --no-reload --now corral-fence", "ip -4 rule list priority 100"]
    assert shell.commands == [*looks, "systemctl restart corral-fence"]


def test_a_metadata_rule_that_is_there_stays(host: Ec2Host, shell: Shell) -> None:
    shell.prints["ip"] = "100: from all to 169.254.169.254 uidrange 1-4294967294 prohibit\n"
    host.restrict_metadata()
    assert "systemctl restart corral-fence" not in shell.commands


def test_people_leave_the_groups_whose_members_become_root(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("ubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
    (tmp_path / "etc/group").write_text("sudo:x:27:ubuntu\naudio:x:29:ubuntu\ndocker:x:990:ubuntu\n")
    host.restrict_users()
    assert shell.commands == ["gpasswd --delete ubuntu sudo", "gpasswd --delete ubuntu docker"]


def test_an_image_in_which_a_primary_group_becomes_root_does_not_boot(host: Ec2Host, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nada:x:1000:990::/home/ada:/bin/bash\n")
    (tmp_path / "etc/group").write_text("root:x:0:\ndocker:x:990:\n")
    with pytest.raises(HostError, match="users have a primary group whose members become root: ada docker - "):
        host.restrict_users()


def test_an_image_whose_sudo_reads_other_rules_last_does_not_boot(host: Ec2Host, tmp_path: Path) -> None:
    (tmp_path / "etc/sudoers.d").mkdir(parents=True)
    (tmp_path / "etc/sudoers").write_text("@includedir /etc/sudoers.d\n%team ALL=(ALL) NOPASSWD: ALL\n")
    with pytest.raises(HostError, match=r"sudo may let users become root: it reads /etc/sudoers: %team ALL=\(ALL\)"):
        host.restrict_users()


def test_an_image_without_sudo_boots(host: Ec2Host, shell: Shell) -> None:
    host.restrict_users()
    assert shell.commands == []


@pytest.mark.parametrize("kind", ["home", "lustre"])
def test_root_of_another_node_leaves_no_program_that_runs_as_root(host: Ec2Host, tmp_path: Path, kind: str) -> None:
    if kind == "home":
        host.mount_home("fs-1", Path("/shared"))
    else:
        host.mount_lustre("fs-2.fsx", "abc", Path("/shared"))
    options = re.search(r"Options=(.*)", (tmp_path / "etc/systemd/system/shared.mount").read_text())
    assert options and {"nosuid", "nodev"} <= set(options[1].split(","))


def test_a_lost_metadata_rule_of_ipv6_is_added_again(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/if_inet6").touch()
    commands: list[str] = []

    def run(command: Sequence[str]) -> str:
        commands.append(" ".join(command))
        return "100: the rule\n" if command[:2] == ("ip", "-4") else ""

    Ec2Host(run, "us-east-1", tmp_path).restrict_metadata()
    assert commands[-2:] == ["ip -6 rule list priority 100", "systemctl restart corral-fence"]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ("", "10.64.0.26 dev-head\n"),
        ("127.0.0.1 localhost\n", "127.0.0.1 localhost\n10.64.0.26 dev-head\n"),
        ("127.0.1.1 dev-head\n# 10.1.1.1 dev-head\n", "# 10.1.1.1 dev-head\n10.64.0.26 dev-head\n"),
        ("127.0.0.1 localhost dev-head # both\n", "127.0.0.1 localhost # both\n10.64.0.26 dev-head\n"),
    ],
)
def test_a_head_has_its_name_at_its_address_alone(host: Ec2Host, tmp_path: Path, known: str, expected: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text(known)
    host.set_name("dev-head", IPv4Address("10.64.0.26"))
    host.set_name("dev-head", IPv4Address("10.64.0.26"))
    assert (tmp_path / "etc/hosts").read_text() == expected


def test_cloud_init_leaves_the_hosts_file_to_the_boot(host: Ec2Host, tmp_path: Path) -> None:
    """Debian's cloud images write it at each boot (01_debian_cloud.cfg)."""
    host.set_name("dev-head", IPv4Address("10.64.0.26"))
    assert (tmp_path / "etc/cloud/cloud.cfg.d/60-corral.cfg").read_text() == f"{HEADER}manage_etc_hosts: false\n"


def test_a_boot_does_not_wait_until_slurmd_has_reached_the_head(host: Ec2Host, shell: Shell) -> None:
    host.start(slurmd("/usr/sbin"))
    assert shell.commands[-1] == "systemctl restart --no-block slurmd"


@pytest.mark.parametrize(
    ("region", "domain"),
    [("us-gov-west-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")],
)
def test_the_name_of_a_home_is_in_the_partitions_domain(shell: Shell, tmp_path: Path, region: str, domain: str) -> None:
    Ec2Host(shell, region, tmp_path).mount_home("fs-1", Path("/home"))
    unit = (tmp_path / "etc/systemd/system/home.mount").read_text()
    assert f"What=fs-1.efs.{region}.{domain}:/" in unit


def test_a_volume_that_an_earlier_head_left_is_mounted_as_it_is(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    attach(tmp_path)
    shell.prints["wipefs"] = "ext4\n"
    host.mount_volume("vol-0123", Path("/var/lib/corral"))
    assert shell.commands == [
        f"wipefs --noheadings --output=TYPE {DISK}",
        "systemctl daemon-reload",
        "systemctl enable --no-reload --now var-lib-corral.mount",
    ]


def test_a_head_that_reboots_waits_for_its_volume_however_long_that_takes(host: Ec2Host, tmp_path: Path) -> None:
    attach(tmp_path)
    host.mount_volume("vol-0123", Path("/var/lib/corral"))
    unit = r"dev-disk-by\x2did-nvme\x2dAmazon_Elastic_Block_Store_vol0123.device"
    assert "JobRunningTimeoutSec=infinity\n" in (tmp_path / f"etc/systemd/system/{unit}.d/corral.conf").read_text()


def test_a_volume_that_is_never_attached_is_named_by_its_device(host: Ec2Host, shell: Shell) -> None:
    with pytest.raises(HostError, match=rf"^volume vol-0123 was not attached within 0 s: no {DISK}$"):
        host.mount_volume("vol-0123", Path("/var/lib/corral"))
    assert shell.commands == []


def test_mounting_again_rewrites_nothing(host: Ec2Host, shell: Shell) -> None:
    host.mount_home("fs-1", Path("/home"))
    host.mount_home("fs-1", Path("/home"))
    assert shell.commands[2:] == ["systemctl enable --no-reload --now home.mount"]


def test_lustre_is_tuned_after_the_mount_of_a_path_with_a_dash(host: Ec2Host, tmp_path: Path) -> None:
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", Path("/data/fast-1"))
    text = (tmp_path / r"etc/systemd/system/corral-lustre-data-fast\x2d1.service").read_text()
    assert [line for line in text.splitlines() if line.startswith(("After", "Wanted"))] == [
        r"After=data-fast\x2d1.mount",
        r"WantedBy=data-fast\x2d1.mount",
    ]


def test_lustre_without_efa_is_mounted_by_tcp(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sys/class/infiniband/rdmap36s0/device").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/rdmap36s0/device/driver").symlink_to("/sys/bus/pci/drivers/efa")

    def run(command: Sequence[str]) -> str:
        if command[0] == "ip":
            return '[{"dst":"default","dev":"enp71s0"}]'
        if command[1:] == ("start", "corral-lustre-efa"):
            raise HostError(
                "systemctl start corral-lustre-efa failed with 1: modprobe: FATAL: Module kefalnd not found"
            )
        return ""

    Ec2Host(run, "us-east-1", tmp_path).set_up_lustre_efa(2, (Path("/scratch"),))
    assert [message.partition(": systemctl")[0] for message in caplog.messages] == [
        "Lustre: 1 of 2 EFA interfaces exist",
        "Lustre uses TCP instead of EFA",
    ]


def test_a_machine_without_efa_devices_sets_up_nothing(host: Ec2Host, shell: Shell) -> None:
    host.set_up_lustre_efa(8, (Path("/scratch"),))
    assert shell.commands == []


MUNGE = Package(name="munge", program="/usr/sbin/munged", version="0.5.*")
LUSTRE = Package(
    name="lustre-client-modules",
    program="/usr/sbin/mount.lustre",
    version="2.15.*",
    archive=ArchivePlan(line="https://lustre.example/ubuntu noble main", key="https://lustre.example/key.asc"),
    of_kernel=True,
)
APT = "apt-get --quiet --option=DPkg::Lock::Timeout=300 --option=Acquire::Retries=5"
UPDATE = f"{APT} --option=Acquire::Languages=none update"
ENV = "env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1"
PATH = "/opt/corral/stand-ins:/usr/sbin:/usr/bin:/sbin:/bin"
INSTALL = (
    f"{ENV} {APT} install --yes --no-install-recommends --option=Dpkg::Options::=--force-confold"
    f" --option=DPkg::Path={PATH}"
)


@pytest.mark.parametrize("fails", [False, True])
def test_no_package_starts_its_daemon_while_apt_installs_it(tmp_path: Path, fails: bool) -> None:
    policy, codes = tmp_path / "usr/sbin/policy-rc.d", list[int]()

    def run(command: Sequence[str]) -> str:
        if "install" in command:
            codes.append(subprocess.run([policy, "munge", "start"], check=False).returncode)
            if fails:
                raise HostError("the mirror is away")
        return ""

    with contextlib.suppress(HostError):
        Ec2Host(run, "us-east-1", tmp_path).install((MUNGE,))
    assert (codes, policy.exists()) == ([101], False)


def test_units_are_read_once_for_all_daemons(host: Ec2Host, shell: Shell) -> None:
    daemons = (slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"), autoscaler())
    host.write_units(daemons)
    for daemon in daemons:
        host.start(daemon)
    assert [command for command in shell.commands if "daemon-reload" in command] == ["systemctl daemon-reload"]


def test_an_interrupted_apt_run_is_completed(tmp_path: Path) -> None:
    """A program may be there though its package is not configured; what the image had is not apt's."""
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/slurmd").touch()
    packages = (MUNGE, Package(name="slurmd", program="/usr/sbin/slurmd"))
    commands: list[str] = []

    def run(command: Sequence[str]) -> str:
        commands.append(" ".join(command))
        if "install" in command and len(commands) == 3:
            (tmp_path / "usr/sbin/munged").touch()
            raise HostError("killed")
        return ""

    host = Ec2Host(run, "us-east-1", tmp_path)
    with pytest.raises(HostError):
        host.install(packages)
    host.install(packages)
    host.install(packages)
    assert commands[3:] == [
        f"{ENV} PATH={PATH} dpkg --configure --pending --force-confold",
        "systemctl daemon-reload",
        UPDATE,
        "uname --kernel-release",
        f"{INSTALL} munge=0.5.*",
        "systemctl daemon-reload",
        "apt-mark hold munge",
    ]


AGENT = Package(
    name="amazon-ssm-agent",
    program="/usr/bin/amazon-ssm-agent",
    url="https://ssm.example/agent.deb",
    unit="amazon-ssm-agent",
)
OF_AGENT = [
    "curl --fail --silent --show-error --location --create-dirs --proto =https --proto-redir =https"
    " --retry 5 --retry-connrefused --retry-all-errors"
    " --output /opt/corral/amazon-ssm-agent.deb https://ssm.example/agent.deb",
    f"{INSTALL} /opt/corral/amazon-ssm-agent.deb",
    "systemctl enable --now amazon-ssm-agent",
]


def test_systems_managers_agent_runs_before_apt_can_fail(tmp_path: Path) -> None:
    commands: list[str] = []

    def run(command: Sequence[str]) -> str:
        commands.append(" ".join(command))
        if command[-1] == "update":
            raise HostError("E: no network")
        return ""

    with pytest.raises(HostError):
        Ec2Host(run, "us-east-1", tmp_path, wait=lambda _: None).install((AGENT, MUNGE))
    assert commands[:4] == [*OF_AGENT, UPDATE]


def test_a_node_boots_without_systems_managers_agent(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        if command[0] == "curl":
            raise HostError("curl: (22) The requested URL returned error: 403")
        return ""

    Ec2Host(run, "us-east-1", tmp_path).install((replace(AGENT, required=False),))


def test_an_image_that_lacks_the_agent_alone_needs_no_archive(host: Ec2Host, shell: Shell) -> None:
    host.install((AGENT,))
    assert shell.commands == OF_AGENT


def test_upgrades_are_disabled_even_if_the_image_lacks_a_unit(tmp_path: Path) -> None:
    commands: list[str] = []

    def run(command: Sequence[str]) -> str:
        commands.append(" ".join(command))
        raise HostError("Unit not found.")

    Ec2Host(run, "us-east-1", tmp_path).stop_updates()
    assert commands == [
        "systemctl stop --no-block apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service",
        "systemctl mask --no-reload apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service",
    ]


def test_an_existing_home_is_left_alone(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    shell.prints["getent"] = "ubuntu:x:1000:1001:Ubuntu:/home/ubuntu:/bin/bash\n"
    (tmp_path / "home/ubuntu").mkdir(parents=True)
    host.make_home("ubuntu")
    assert shell.commands == ["getent passwd ubuntu"]


def test_an_administrator_of_a_head_has_a_shared_home_and_one_of_the_heads_own(host: Ec2Host, shell: Shell) -> None:
    shell.prints["getent"] = "grace:x:2001:2001::/var/lib/corral/homes/grace:/bin/bash\n"
    host.make_home("grace")
    assert [command for command in shell.commands if command.startswith(("mv", "install --directory --mode=0755"))] == [
        "install --directory --mode=0755 /var/lib/corral/homes",
        "mv --no-target-directory /home/.corral-grace /home/grace",
        "mv --no-target-directory /var/lib/corral/homes/.corral-grace /var/lib/corral/homes/grace",
    ]


def test_an_image_without_the_user_needs_no_home(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("getent passwd ubuntu failed with 2: ")

    Ec2Host(run, "us-east-1", tmp_path).make_home("ubuntu")
    assert not (tmp_path / "home").exists()


def test_an_image_without_sshd_boots_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("systemctl try-restart ssh failed with 5: Unit ssh.service not found.")

    Ec2Host(run, "us-east-1", tmp_path).reload_sshd()
    assert caplog.messages == ["sshd: systemctl try-restart ssh failed with 5: Unit ssh.service not found."]


def test_gpus_without_persistence_mode_are_left_to_the_check(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        if command[0] == "timeout":
            raise HostError("timeout 60 systemctl start corral-persistence failed with 124: ")
        return ""

    Ec2Host(run, "us-east-1", tmp_path).enable_gpu_persistence()


def test_a_complete_image_never_runs_apt(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/munged").touch()
    host.install((MUNGE,))
    assert shell.commands == []


def test_a_kernel_without_a_lustre_client_is_an_error_with_a_hint(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        if "install" in command:
            raise HostError("apt-get failed with 100: E: Unable to locate package lustre-client-modules-7.0.0-1014-aws")
        return "7.0.0-1014-aws\n"

    with pytest.raises(
        HostError, match=r"-1014-aws - if the Lustre client for this kernel is missing, use an image with"
    ):
        Ec2Host(run, "us-east-1", tmp_path).install((LUSTRE,))


def test_package_lists_are_fetched_once_their_lock_is_free(tmp_path: Path) -> None:
    waited: list[float] = []

    def run(command: Sequence[str]) -> str:
        if command[-1] == "update" and len(waited) < 2:
            raise HostError("E: Could not get lock /var/lib/apt/lists/lock")
        return ""

    Ec2Host(run, "us-east-1", tmp_path, wait=waited.append).install((MUNGE,))
    assert waited == [5.0, 5.0]


def test_an_unreachable_archive_is_an_error(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("E: no network")

    with pytest.raises(HostError, match=r"^E: no network$"):
        Ec2Host(run, "us-east-1", tmp_path, wait=lambda _: None).install((MUNGE,))


@pytest.mark.skipif(shutil.which("systemd-escape") is None, reason="systemd-escape is missing: apt install systemd")
@pytest.mark.parametrize("path", ["/home", "/data/fast-1", "/scratch.2/a_b"])
def test_a_unit_is_called_as_systemd_calls_it(host: Ec2Host, tmp_path: Path, path: str) -> None:
    host.mount_home("fs-1", Path(path))
    (unit,) = (tmp_path / "etc/systemd/system").iterdir()
    assert unit.name == run(("systemd-escape", "-p", "--suffix=mount", path)).strip()


def test_a_command_gives_what_it_prints() -> None:
    assert run(("echo", "a b")) == "a b\n"


def test_a_command_that_fails_is_one_sentence() -> None:
    with pytest.raises(HostError, match=r"^sh -c 'echo no >&2; exit 3' failed with 3: no$"):
        run(("sh", "-c", "echo no >&2; exit 3"))


def test_a_program_that_is_missing_is_one_sentence() -> None:
    with pytest.raises(HostError, match=r"^mount\.none /a: .*No such file or directory"):
        run(("mount.none", "/a"))


@pytest.mark.skipif(shutil.which("wipefs") is None, reason="wipefs is missing: apt install util-linux")
def test_wipefs_distinguishes_an_empty_disk_from_a_file_system(tmp_path: Path) -> None:
    for name in ("empty", "ext4"):
        with (tmp_path / name).open("wb") as disk:
            disk.truncate(4 << 20)
    run(("mkfs.ext4", "-q", str(tmp_path / "ext4")))
    printed = [run(("wipefs", "--noheadings", "--output=TYPE", str(tmp_path / name))) for name in ("empty", "ext4")]
    assert printed == ["", "ext4\n"]


def test_a_daemon_is_restarted_and_a_machine_ended_by_systemd() -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        commands.append(command)
        return ""

    host = Ec2Host(run, "us-east-1")
    host.restart(slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"))
    host.power_off()
    assert commands == [("systemctl", "restart", "slurmctld"), ("systemctl", "poweroff")]


def test_the_process_that_restarts_the_autoscaler_may_end_with_it(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.restart(autoscaler(), tmp_path / "renewed")
    script = f"systemctl restart corral-agent && rm -f {tmp_path}/renewed"
    assert shell.commands == [f"systemd-run --quiet --collect --wait /bin/sh -c {script}"]


def test_lines_of_programs_are_read_from_the_journal_once(host: Ec2Host, shell: Shell) -> None:
    host.journal(("/usr/sbin/sshd", "/usr/bin/sudo"), "MESSAGE,_EXE")
    assert shell.commands == [
        "journalctl --quiet --output=json --output-fields=MESSAGE,_EXE --cursor-file=/opt/corral/journal-cursor"
        " _EXE=/usr/sbin/sshd + _EXE=/usr/bin/sudo"
    ]
