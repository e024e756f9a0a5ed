"""A machine on EC2, by the commands that it runs and the files that it writes; nothing of it runs here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from corral.agent.host_ec2 import Ec2Host
from corral.agent.hosts import Daemon, HostError, keeper, mariadb, munge, run, slurmctld, slurmd, slurmdbd
from corral.agent.lustre_client import Size
from corral.agent.packages import Package
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
    return Ec2Host(shell, "us-east-1", tmp_path, attached_in_s=0, size=Size(vcpus=96, memory_mib=1152 * 1024))


def attach(root: Path) -> None:
    (root / DISK.lstrip("/")).parent.mkdir(parents=True)
    (root / DISK.lstrip("/")).touch()


def test_a_machine_is_named(host: Ec2Host, shell: Shell) -> None:
    host.set_name("dev-head")
    assert shell.commands == ["hostnamectl set-hostname dev-head"]


def test_the_fence_stands_at_every_boot_and_no_network_daemon_takes_it_away(
    host: Ec2Host, shell: Shell, tmp_path: Path
) -> None:
    host.fence_metadata()
    assert shell.commands == [
        "systemctl try-restart systemd-networkd",
        "systemctl daemon-reload",
        "systemctl enable --now corral-fence",
    ]


def test_the_fence_is_a_rule_before_there_is_a_network(host: Ec2Host, tmp_path: Path) -> None:
    host.fence_metadata()
    rule = "priority 100 to 169.254.169.254 uidrange 1-4294967294 prohibit"
    lines = (tmp_path / "etc/systemd/system/corral-fence.service").read_text().splitlines()
    assert [line for line in lines if line.startswith(("Before", "Exec", "Wanted"))] == [
        "Before=network-pre.target",
        f"ExecStart=/usr/sbin/ip rule add {rule}",
        f"ExecStop=/usr/sbin/ip rule del {rule}",
        "WantedBy=sysinit.target",
    ]


def test_a_fence_that_stands_is_left_alone(host: Ec2Host, shell: Shell) -> None:
    host.fence_metadata()
    shell.commands.clear()
    host.fence_metadata()
    assert shell.commands == ["systemctl enable --now corral-fence"]


def test_names_without_a_dot_are_looked_up_in_the_clusters_zone(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.search("dev.corral.internal")
    text = (tmp_path / "etc/systemd/resolved.conf.d/60-corral.conf").read_text()
    assert (text, shell.commands) == (
        f"{HEADER}[Resolve]\nDomains=dev.corral.internal\n",
        ["systemctl restart systemd-resolved"],
    )


def test_an_empty_volume_gets_a_file_system_and_is_mounted(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    attach(tmp_path)
    host.mount_volume("vol-0123", Path("/var/lib/corral"))
    assert shell.commands == [
        f"wipefs --noheadings --output=TYPE {DISK}",
        f"mkfs.ext4 -q -L corral-state {DISK}",
        "systemctl daemon-reload",
        "systemctl enable --now var-lib-corral.mount",
    ]


def test_a_volume_that_an_earlier_head_left_is_mounted_as_it_is(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    attach(tmp_path)
    shell.prints["wipefs"] = "ext4\n"
    host.mount_volume("vol-0123", Path("/var/lib/corral"))
    assert shell.commands == [
        f"wipefs --noheadings --output=TYPE {DISK}",
        "systemctl daemon-reload",
        "systemctl enable --now var-lib-corral.mount",
    ]


def test_a_volume_that_never_comes_is_told_by_its_device(host: Ec2Host, shell: Shell) -> None:
    with pytest.raises(HostError, match=rf"^volume vol-0123 was not attached within 0 s: no {DISK}$"):
        host.mount_volume("vol-0123", Path("/var/lib/corral"))
    assert shell.commands == []


@pytest.mark.parametrize(
    ("mount", "unit", "lines"),
    [
        (
            lambda host: host.mount_home("fs-1", Path("/home")),
            "home.mount",
            [
                "What=fs-1.efs.us-east-1.amazonaws.com:/",
                "Where=/home",
                "Type=nfs4",
                "Options=nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev",
            ],
        ),
        (
            lambda host: host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", Path("/data/fast-1")),
            r"data-fast\x2d1.mount",
            [
                "What=fs-2.fsx.us-east-1.amazonaws.com@tcp:/abc",
                "Where=/data/fast-1",
                "Type=lustre",
                "Options=noatime,flock,lazystatfs,_netdev",
            ],
        ),
    ],
    ids=["home", "lustre"],
)
def test_a_file_system_is_mounted_by_its_unit(
    host: Ec2Host, tmp_path: Path, mount: Callable[[Ec2Host], None], unit: str, lines: Sequence[str]
) -> None:
    mount(host)
    text = (tmp_path / "etc/systemd/system" / unit).read_text()
    assert text.partition("[Mount]\n")[2].partition("\n\n")[0].splitlines() == lines


def test_a_mount_is_started_and_comes_back_after_a_reboot(host: Ec2Host, shell: Shell) -> None:
    host.mount_home("fs-1", Path("/home"))
    assert shell.commands == ["systemctl daemon-reload", "systemctl enable --now home.mount"]


def test_mounting_again_rewrites_nothing(host: Ec2Host, shell: Shell) -> None:
    host.mount_home("fs-1", Path("/home"))
    host.mount_home("fs-1", Path("/home"))
    assert shell.commands[2:] == ["systemctl enable --now home.mount"]


def test_lustre_is_tuned_whenever_it_is_mounted(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", Path("/data/fast-1"))
    text = (tmp_path / r"etc/systemd/system/corral-lustre-data-fast\x2d1.service").read_text()
    assert (shell.commands, text) == (
        [
            "systemctl daemon-reload",
            r"systemctl enable corral-lustre-data-fast\x2d1.service",
            "systemctl daemon-reload",
            r"systemctl enable --now data-fast\x2d1.mount",
        ],
        HEADER
        + r"""[Unit]
Description=corral: parameters of Lustre for data-fast\x2d1.mount
After=data-fast\x2d1.mount

[Service]
Type=oneshot
ExecStart=-/usr/sbin/lctl set_param osc.*.max_rpcs_in_flight=64
ExecStart=-/usr/sbin/lctl set_param osc.*.max_dirty_mb=256
ExecStart=-/usr/sbin/lctl set_param mdc.*.max_rpcs_in_flight=64
ExecStart=-/usr/sbin/lctl set_param mdc.*.max_mod_rpcs_in_flight=50
ExecStart=-/usr/sbin/lctl set_param ldlm.namespaces.*.lru_max_age=600000

[Install]
WantedBy=data-fast\x2d1.mount
""",
    )


def test_the_modules_of_lustre_have_their_options_before_the_first_mount(tmp_path: Path) -> None:
    file = tmp_path / "etc/modprobe.d/60-corral-lustre.conf"
    seen: list[tuple[str, bool]] = []

    def run(command: Sequence[str]) -> str:
        seen.append((" ".join(command), file.exists()))
        return ""

    host = Ec2Host(run, "us-east-1", tmp_path, size=Size(vcpus=96, memory_mib=1152 * 1024))
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", Path("/scratch"))
    assert seen[-1] == ("systemctl enable --now scratch.mount", True)


MUNGE = Package(name="munge", program="/usr/sbin/munged", version="0.5.*")
LUSTRE = Package(
    name="lustre-client-modules",
    program="/usr/sbin/mount.lustre",
    version="2.15.*",
    archive=ArchivePlan(line="https://lustre.example/ubuntu noble main", key="https://lustre.example/key.asc"),
    of_kernel=True,
)
APT = "apt-get --quiet --option=DPkg::Lock::Timeout=300 --option=Acquire::Retries=5"
INSTALL = (
    f"env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 {APT} install --yes --no-install-recommends"
    " --option=Dpkg::Options::=--force-confold"
)


def test_what_an_image_lacks_is_installed_in_the_version_that_it_names(host: Ec2Host, shell: Shell) -> None:
    host.install((MUNGE,))
    assert shell.commands == [
        f"{APT} update",
        "uname --kernel-release",
        f"{INSTALL} munge=0.5.*",
        "apt-mark hold munge",
    ]


def test_what_apt_was_killed_in_is_installed_whole(tmp_path: Path) -> None:
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
    assert commands[5:] == [
        "env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 dpkg --configure --pending --force-confold",
        f"{INSTALL} munge=0.5.*",
        "apt-mark hold munge",
    ]


def test_nothing_is_upgraded_under_a_job_though_an_image_has_no_such_unit(tmp_path: Path) -> None:
    commands: list[str] = []

    def run(command: Sequence[str]) -> str:
        commands.append(" ".join(command))
        raise HostError("Unit not found.")

    Ec2Host(run, "us-east-1", tmp_path).stop_updates()
    assert commands == [
        "systemctl stop --no-block apt-daily.timer",
        "systemctl mask apt-daily.timer",
        "systemctl stop --no-block apt-daily-upgrade.timer",
        "systemctl mask apt-daily-upgrade.timer",
        "systemctl stop --no-block unattended-upgrades.service",
        "systemctl mask unattended-upgrades.service",
    ]


def test_the_home_of_the_images_user_is_made_of_the_skeleton(host: Ec2Host, shell: Shell) -> None:
    shell.prints["getent"] = "ubuntu:x:1000:1001:Ubuntu:/home/ubuntu:/bin/bash\n"
    host.make_home("ubuntu")
    assert shell.commands == [
        "getent passwd ubuntu",
        "rm --recursive --force /home/.corral-ubuntu",
        "cp --recursive /etc/skel /home/.corral-ubuntu",
        "install --directory --mode=0700 /home/.corral-ubuntu/.ssh",
        "chown --recursive --no-dereference 1000:1001 /home/.corral-ubuntu",
        "chmod 0750 /home/.corral-ubuntu",
        "mv --no-target-directory /home/.corral-ubuntu /home/ubuntu",
    ]


def test_a_home_that_is_there_stays_as_it_is(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    shell.prints["getent"] = "ubuntu:x:1000:1001:Ubuntu:/home/ubuntu:/bin/bash\n"
    (tmp_path / "home/ubuntu").mkdir(parents=True)
    host.make_home("ubuntu")
    assert shell.commands == ["getent passwd ubuntu"]


def test_an_image_without_the_user_needs_no_home(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("getent passwd ubuntu failed with 2: ")

    Ec2Host(run, "us-east-1", tmp_path).make_home("ubuntu")
    assert not (tmp_path / "home").exists()


def test_sshd_is_restarted_where_it_runs(host: Ec2Host, shell: Shell) -> None:
    host.reload_sshd()
    assert shell.commands == ["systemctl try-restart ssh"]


def test_an_image_without_sshd_boots_and_says_why_nothing_was_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("systemctl try-restart ssh failed with 5: Unit ssh.service not found.")

    Ec2Host(run, "us-east-1", tmp_path).reload_sshd()
    assert caplog.messages == ["sshd: systemctl try-restart ssh failed with 5: Unit ssh.service not found."]


def test_gpus_are_waited_for_and_no_longer_than_a_minute(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.wake_gpus()
    text = (tmp_path / "etc/systemd/system/corral-persistence.service").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("Wants", "Before", "Exec", "Timeout"))]
    assert (shell.commands, lines) == (
        [
            "systemctl daemon-reload",
            "systemctl enable corral-persistence",
            "timeout 60 systemctl start corral-persistence",
        ],
        [
            "Wants=nvidia-persistenced.service",
            "Before=slurmd.service",
            "ExecStart=/usr/bin/nvidia-smi --persistence-mode=1",
            "TimeoutStartSec=60",
        ],
    )


def test_gpus_that_do_not_wake_are_left_to_the_check(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        if command[0] == "timeout":
            raise HostError("timeout 60 systemctl start corral-persistence failed with 124: ")
        return ""

    Ec2Host(run, "us-east-1", tmp_path).wake_gpus()


def test_an_image_that_lacks_nothing_never_asks_apt(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/munged").touch()
    host.install((MUNGE,))
    assert shell.commands == []


def test_the_client_of_lustre_is_that_of_the_kernel_and_of_its_own_archive(host: Ec2Host, shell: Shell) -> None:
    shell.prints["uname"] = "6.17.0-1019-aws\n"
    host.install((LUSTRE,))
    key = "/etc/apt/keyrings/corral-lustre-client-modules.asc"
    curl = "curl --fail --silent --show-error --location --retry 5 --create-dirs"
    assert shell.commands == [
        f"{curl} --output {key} https://lustre.example/key.asc",
        f"{APT} update",
        "uname --kernel-release",
        f"{INSTALL} lustre-client-modules-6.17.0-1019-aws=2.15.*",
        "apt-mark hold lustre-client-modules-6.17.0-1019-aws",
    ]


def test_a_kernel_without_a_client_of_lustre_is_told_with_what_helps(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        if "install" in command:
            raise HostError("apt-get failed with 100: E: Unable to locate package lustre-client-modules-7.0.0-1014-aws")
        return "7.0.0-1014-aws\n"

    with pytest.raises(HostError, match=r"-1014-aws - if it is Lustre's client for this kernel, name an image with"):
        Ec2Host(run, "us-east-1", tmp_path).install((LUSTRE,))


def test_the_lists_of_packages_are_fetched_once_nobody_else_does(tmp_path: Path) -> None:
    waited: list[float] = []

    def run(command: Sequence[str]) -> str:
        if command[-1] == "update" and len(waited) < 2:
            raise HostError("E: Could not get lock /var/lib/apt/lists/lock")
        return ""

    Ec2Host(run, "us-east-1", tmp_path, wait=waited.append).install((MUNGE,))
    assert waited == [5.0, 5.0]


def test_an_archive_that_is_never_reached_is_told(tmp_path: Path) -> None:
    def run(command: Sequence[str]) -> str:
        raise HostError("E: no network")

    with pytest.raises(HostError, match=r"^E: no network$"):
        Ec2Host(run, "us-east-1", tmp_path, wait=lambda _: None).install((MUNGE,))


def test_munge_is_restarted_for_it_may_run_with_the_key_of_its_package(host: Ec2Host, shell: Shell) -> None:
    host.start(munge())
    assert shell.commands == [
        "install -d --owner=munge /etc/munge",
        "install -d --owner=munge /var/lib/munge",
        "install -d --owner=munge /var/log/munge",
        "install -d --owner=munge /run/munge",
        "systemctl daemon-reload",
        "systemctl enable munge",
        "systemctl restart munge",
    ]


def test_slurmctld_is_started_with_the_directories_of_its_user(host: Ec2Host, shell: Shell) -> None:
    host.start(slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"))
    assert shell.commands == [
        "install -d --owner=slurm /var/lib/corral/slurmctld",
        "install -d --owner=slurm /var/log/slurm",
        "systemctl daemon-reload",
        "systemctl enable slurmctld",
        "systemctl restart slurmctld",
    ]


def unit(lines: Sequence[str]) -> list[str]:
    """The lines of a drop-in before those of its service."""
    return list(lines[: lines.index("[Service]") - 1])


def test_slurmctld_does_not_start_without_its_state(host: Ec2Host, tmp_path: Path) -> None:
    host.start(slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"))
    lines = (tmp_path / "etc/systemd/system/slurmctld.service.d/corral.conf").read_text().splitlines()
    assert unit(lines)[-2:] == ["RequiresMountsFor=/var/lib/corral/slurmctld /var/log/slurm", "After=slurmdbd.service"]


def test_mariadb_is_debians_with_its_data_on_the_state_volume(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.start(mariadb())
    drop_in = tmp_path / "etc/systemd/system/mariadb.service.d/corral.conf"
    assert (shell.commands, unit(drop_in.read_text().splitlines())[1:]) == (
        [
            "install -d --owner=mysql /var/lib/corral/mariadb",
            "install -d --owner=mysql /run/mysqld",
            "systemctl daemon-reload",
            "systemctl enable mariadb",
            "systemctl restart mariadb",
        ],
        ["[Unit]", "ConditionPathExists=", "RequiresMountsFor=/var/lib/corral/mariadb /run/mysqld"],
    )


def test_slurmdbd_waits_for_its_database(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.start(slurmdbd("/usr/sbin"))
    lines = (tmp_path / "etc/systemd/system/slurmdbd.service.d/corral.conf").read_text().splitlines()
    assert (shell.commands, unit(lines)[-2:]) == (
        [
            "install -d --owner=slurm /var/log/slurm",
            "install -d --owner=slurm /run/slurmdbd",
            "systemctl daemon-reload",
            "systemctl enable slurmdbd",
            "systemctl restart slurmdbd",
        ],
        ["After=munge.service", "After=mariadb.service"],
    )


def test_slurmdbd_is_told_the_socket_of_its_database(host: Ec2Host, tmp_path: Path) -> None:
    """Its library has that of its own system built in: Debian moved it to /run/mariadbd."""
    host.start(slurmdbd("/usr/sbin"))
    lines = (tmp_path / "etc/systemd/system/slurmdbd.service.d/corral.conf").read_text().splitlines()
    assert lines[lines.index("[Service]") + 1] == "Environment=MYSQL_UNIX_PORT=/run/mysqld/mysqld.sock"


def test_slurmd_reads_its_options_from_debians_place(host: Ec2Host, tmp_path: Path) -> None:
    host.start(slurmd("/usr/sbin"), ("--conf-server", "10.64.0.26:6817", "-N", "train-1"))
    expected = f"{HEADER}SLURMD_OPTIONS='--conf-server 10.64.0.26:6817 -N train-1'\n"
    assert (tmp_path / "etc/default/slurmd").read_text() == expected


def test_slurmd_starts_without_a_slurm_conf_which_debians_unit_wants(host: Ec2Host, tmp_path: Path) -> None:
    host.start(slurmd("/usr/sbin"))
    text = (tmp_path / "etc/systemd/system/slurmd.service.d/corral.conf").read_text()
    expected = (
        f"{HEADER}[Unit]\nConditionPathExists=\nRequiresMountsFor=/var/spool/slurmd /var/log/slurm\n\n[Service]\n"
    )
    assert text.startswith(expected)


@pytest.mark.parametrize("daemon", [slurmctld("/usr/sbin", "/s"), slurmdbd("/usr/sbin"), slurmd("/usr/sbin"), munge()])
def test_a_daemon_of_a_package_that_crashes_is_started_again(host: Ec2Host, tmp_path: Path, daemon: Daemon) -> None:
    host.start(daemon)
    lines = (tmp_path / f"etc/systemd/system/{daemon.unit}.service.d/corral.conf").read_text().splitlines()
    assert (lines.count("[Service]"), lines[-2:]) == (1, ["Restart=on-failure", "RestartSec=5"])


def test_a_daemon_without_options_leaves_etc_default_alone(host: Ec2Host, tmp_path: Path) -> None:
    host.start(munge())
    assert not (tmp_path / "etc/default").exists()


def test_the_keeper_has_a_unit_of_its_own(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.start(keeper())
    assert (shell.commands, (tmp_path / "etc/systemd/system/corral-agent.service").read_text()) == (
        ["systemctl daemon-reload", "systemctl enable corral-agent", "systemctl restart corral-agent"],
        HEADER
        + """[Unit]
Description=corral-agent
After=network-online.target munge.service slurmctld.service
Wants=network-online.target
RequiresMountsFor=/var/lib/corral

[Service]
ExecStart=/opt/corral/bin/corral-agent keep
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
""",
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt install systemd")
def test_systemd_finds_nothing_wrong_with_the_units(host: Ec2Host, tmp_path: Path) -> None:
    units = tmp_path / "etc/systemd/system"
    host.start(keeper())
    host.mount_home("fs-1", Path("/home"))
    host.mount_lustre("fs-2.fsx.us-east-1.amazonaws.com", "abc", Path("/data/fast-1"))
    tuning = units / r"corral-lustre-data-fast\x2d1.service"
    tuning.write_text(tuning.read_text().replace("/usr/sbin/lctl", "/bin/true"))
    program = tmp_path / "corral-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = units / "corral-agent.service"
    unit.write_text(unit.read_text().replace("/opt/corral/bin/corral-agent", str(program)))
    names = sorted(str(file) for file in units.iterdir() if file.is_file())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True)
    assert (len(names), done.returncode, [line for line in done.stderr.splitlines() if "corral" in line]) == (4, 0, [])


@pytest.mark.skipif(shutil.which("systemd-escape") is None, reason="systemd-escape is missing: apt install systemd")
@pytest.mark.parametrize("place", ["/home", "/data/fast-1", "/scratch.2/a_b"])
def test_a_unit_is_called_as_systemd_calls_it(host: Ec2Host, tmp_path: Path, place: str) -> None:
    host.mount_home("fs-1", Path(place))
    (unit,) = (tmp_path / "etc/systemd/system").iterdir()
    assert unit.name == run(("systemd-escape", "-p", "--suffix=mount", place)).strip()


def test_a_command_gives_what_it_prints() -> None:
    assert run(("echo", "a b")) == "a b\n"


def test_a_command_that_fails_is_one_sentence() -> None:
    with pytest.raises(HostError, match=r"^sh -c 'echo no >&2; exit 3' failed with 3: no$"):
        run(("sh", "-c", "echo no >&2; exit 3"))


def test_a_program_that_is_missing_is_one_sentence() -> None:
    with pytest.raises(HostError, match=r"^mount\.none /a: .*No such file or directory"):
        run(("mount.none", "/a"))


@pytest.mark.skipif(shutil.which("wipefs") is None, reason="wipefs is missing: apt install util-linux")
def test_wipefs_tells_an_empty_disk_from_one_with_a_file_system(tmp_path: Path) -> None:
    for name in ("empty", "ext4"):
        with (tmp_path / name).open("wb") as disk:
            disk.truncate(4 << 20)
    run(("mkfs.ext4", "-q", str(tmp_path / "ext4")))
    printed = [run(("wipefs", "--noheadings", "--output=TYPE", str(tmp_path / name))) for name in ("empty", "ext4")]
    assert printed == ["", "ext4\n"]


def test_a_daemon_is_restarted_and_a_machine_ended_by_systemd() -> None:
    said: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        said.append(command)
        return ""

    host = Ec2Host(run, "us-east-1")
    host.restart(slurmctld("/usr/sbin", "/var/lib/corral/slurmctld"))
    host.power_off()
    assert said == [("systemctl", "restart", "slurmctld"), ("systemctl", "poweroff")]


def test_who_restarts_the_keeper_may_end_with_it(host: Ec2Host, shell: Shell, tmp_path: Path) -> None:
    host.restart(keeper(), tmp_path / "renewed")
    script = f"systemctl restart corral-agent && rm -f {tmp_path}/renewed"
    assert shell.commands == [f"systemd-run --quiet --collect --wait /bin/sh -c {script}"]
