"""The packages that a head, a login node or a node needs, and the apt commands that install those it lacks.

Pure. A package whose program exists is not installed, so a complete image never runs apt.
Sources: apt-get(8), apt_preferences(5); FSx for Lustre User Guide, "Installing the Lustre client"; Systems Manager User
Guide, "Manually installing SSM Agent on Debian Server instances".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from corral.agent.file_install import HEADER, Placement
from corral.agent.host.package_hooks import STAND_INS
from corral.model.cluster import ArchivePlan, ClusterPlan, ImagePlan, QueuePlan
from corral.model.partitions import partition_of

_LUSTRE, _AGENT = "lustre-client-modules", "amazon-ssm-agent"
_FILE = "/opt/corral/{name}.deb"
_CURL = (
    *("curl", "--fail", "--silent", "--show-error", "--location", "--create-dirs"),
    *("--proto", "=https", "--proto-redir", "=https"),  # no redirection leads to a server without a certificate
    *("--retry", "5", "--retry-connrefused", "--retry-all-errors"),
)
# By package, a program of it that shows that it is installed.
_OF_CONTAINERS = {
    "bsdextrautils": "column",
    "curl": "curl",
    "gcc": "gcc",
    "jq": "jq",
    "make": "make",
    "parallel": "parallel",
    "squashfs-tools": "mksquashfs",
    "zstd": "zstd",
}
_KEY = "/etc/apt/keyrings/corral-{name}.asc"
# At first boot Ubuntu's apt-daily may hold the dpkg lock.
_APT = ("apt-get", "--quiet", "--option=DPkg::Lock::Timeout=300", "--option=Acquire::Retries=5")
_NONINTERACTIVE = ("env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1")
_SCRIPTS_PATH = f"{STAND_INS}:/usr/sbin:/usr/bin:/sbin:/bin"  # of packages' scripts
_INSTALL = (
    *_NONINTERACTIVE,
    *_APT,
    "install",
    "--yes",
    "--no-install-recommends",
    "--option=Dpkg::Options::=--force-confold",
    f"--option=DPkg::Path={_SCRIPTS_PATH}",  # apt sets the PATH of dpkg, whatever its own is
)
# Translated descriptions of packages are as large as the lists themselves, and no boot reads them.
UPDATE = (*_APT, "--option=Acquire::Languages=none", "update")
CONFIGURE = (
    *_NONINTERACTIVE,
    f"PATH={_SCRIPTS_PATH}",
    "dpkg",
    "--configure",
    "--pending",
    "--force-confold",
)  # completes an interrupted dpkg
# Source: the units of the packages apt and unattended-upgrades in Ubuntu 24.04.
UPDATERS = ("apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service")
# The Lustre client fits one kernel: after a kernel upgrade the next boot could not mount Lustre.
_KERNEL_PIN = f"""{HEADER}Package: linux-aws* linux-headers-* linux-image-* linux-modules-*
Pin: release *
Pin-Priority: -1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package: `program` exists if it is installed; `version` may end with a star, and is empty for any.

    `archive`: its archive if not the system's own. `of_kernel`: it fits one kernel, whose release ends its name.
    `url`: a .deb that no archive has; `unit`: the daemon that it brings. `required`: without it, a boot fails.
    """

    name: str
    program: str
    version: str = ""
    archive: ArchivePlan | None = None
    of_kernel: bool = False
    url: str = ""
    unit: str = ""
    required: bool = True


def head_packages(plan: ClusterPlan) -> tuple[Package, ...]:
    """The head's packages, sorted by name."""
    image = plan.image
    daemons = (_slurm(image, "slurmctld"), _slurm(image, "slurmdbd"), _other(image, "mariadb-server", "mariadbd"))
    return _sorted((*_shared(plan, image, needs_shell=True), *daemons))


def login_packages(plan: ClusterPlan) -> tuple[Package, ...]:
    """The packages of login nodes, sorted by name: Slurm's commands without a daemon."""
    return _sorted(_shared(plan, plan.image, needs_shell=True))


def node_packages(plan: ClusterPlan, queue: QueuePlan) -> tuple[Package, ...]:
    """The packages of this queue's nodes, sorted by name."""
    image = plan.image_of(queue)
    return _sorted((*_shared(plan, image, needs_shell=False), _slurm(image, "slurmd"), *_disks(image, queue)))


def directory_packages(plan: ClusterPlan) -> tuple[Package, ...]:
    """What reads a directory of people, if the plan has one. libpam-sss also enters itself into PAM's files."""
    if not plan.access.directory:
        return ()
    return (
        Package(name="libnss-sss", program="/usr/share/doc/libnss-sss/copyright"),
        Package(name="libpam-sss", program="/usr/share/pam-configs/sss"),
        Package(name="sssd-ldap", program="/usr/sbin/sssd"),
    )


def missing_packages(wanted: Sequence[Package], has: Callable[[str], bool]) -> tuple[Package, ...]:
    """The packages whose program is missing."""
    return tuple(package for package in wanted if not has(package.program))


def archives(packages: Sequence[Package]) -> tuple[Placement, ...]:
    """apt's files for third-party archives, and a kernel pin if a package fits one kernel."""
    lists = tuple(
        Placement(path=f"/etc/apt/sources.list.d/corral-{package.name}.list", content=_source(package, package.archive))
        for package in packages
        if package.archive
    )
    kernel = Placement(path="/etc/apt/preferences.d/60-corral-kernel", content=_KERNEL_PIN.encode())
    return (*lists, kernel) if any(package.of_kernel for package in packages) else lists


def key_commands(packages: Sequence[Package]) -> tuple[tuple[str, ...], ...]:
    """The commands that fetch the archives' keys.

    AWS publishes no fingerprint of its key of the Lustre client's archive (FSx for Lustre User Guide, "Installing the
    Lustre client", 2026-11), so the certificate of the key's bucket is what proves it. apt itself follows no
    redirection from HTTPS to HTTP.
    """
    return tuple(
        (*_CURL, "--output", _KEY.format(name=package.name), package.archive.key)
        for package in packages
        if package.archive
    )


def file_commands(package: Package) -> tuple[tuple[str, ...], ...]:
    """The commands that install a package that no archive has, and start its daemon; none for another.

    AWS signs its agent with a key that expires and is published as text on a page, so its bucket's certificate is what
    proves the file, as it proves the keys of the archives.
    """
    if not package.url:
        return ()
    file = _FILE.format(name=package.name)
    return (
        (*_CURL, "--output", file, package.url),
        (*_INSTALL, file),
        ("systemctl", "enable", "--now", package.unit),
    )


def of_archives(packages: Sequence[Package]) -> tuple[Package, ...]:
    """The packages that apt fetches itself."""
    return tuple(package for package in packages if not package.url)


def install_command(packages: Sequence[Package], kernel: str) -> tuple[str, ...]:
    """The command that installs the packages. `kernel`: the release of the running kernel.

    Recommended packages are left out: mdadm recommends a mail server. Existing configuration files stay.
    """
    return (*_INSTALL, *(_apt_argument(package, kernel) for package in packages))


def hold_command(packages: Sequence[Package], kernel: str) -> tuple[str, ...]:
    """The command that holds their versions: an upgrade would restart daemons and replace libraries under jobs."""
    return ("apt-mark", "hold", *(_name(package, kernel) for package in packages))


def _apt_argument(package: Package, kernel: str) -> str:
    name = _name(package, kernel)
    return f"{name}={package.version}" if package.version else name


def _name(package: Package, kernel: str) -> str:
    return f"{package.name}-{kernel}" if package.of_kernel else package.name


def _source(package: Package, archive: ArchivePlan) -> bytes:
    return f"{HEADER}deb [signed-by={_KEY.format(name=package.name)}] {archive.line}\n".encode()


def _shared(plan: ClusterPlan, image: ImagePlan, *, needs_shell: bool) -> Iterator[Package]:
    yield _other(image, "munge", "munged")
    if image.ssm_agent:
        url = image.ssm_agent.format(region=plan.region, domain=partition_of(plan.region).dns_suffix)
        yield Package(name=_AGENT, program=f"/usr/bin/{_AGENT}", url=url, unit=_AGENT, required=needs_shell)
    commands = PurePosixPath(image.slurm_sbin).with_name("bin")
    yield Package(name="slurm-client", program=f"{commands}/scontrol", version=_slurm_version(image))
    yield from directory_packages(plan)
    if plan.containers.are_used:
        yield from _compilers(image)
    if plan.home:
        yield _other(image, "nfs-common", "mount.nfs4")
    if plan.lustre and image.lustre:
        version = image.packages.get(_LUSTRE, "")
        yield Package(
            name=_LUSTRE, program="/usr/sbin/mount.lustre", version=version, archive=image.lustre, of_kernel=True
        )


def _compilers(image: ImagePlan) -> Iterator[Package]:
    """What compiles enroot and Pyxis, and what enroot calls (its debian/control)."""
    headers = PurePosixPath(image.slurm_sbin).parent / "include/slurm/spank.h"
    yield Package(name="libslurm-dev", program=str(headers), version=_slurm_version(image))
    yield Package(name="libc6-dev", program="/usr/include/stdio.h")
    for name, program in _OF_CONTAINERS.items():
        yield Package(name=name, program=f"/usr/bin/{program}")


def _disks(image: ImagePlan, queue: QueuePlan) -> Iterator[Package]:
    if queue.nvme_mount:
        yield _other(image, "xfsprogs", "mkfs.xfs")
        if queue.nvme_count > 1:
            yield _other(image, "mdadm", "mdadm")


def _slurm(image: ImagePlan, daemon: str) -> Package:
    return Package(name=daemon, program=f"{image.slurm_sbin}/{daemon}", version=_slurm_version(image))


def _slurm_version(image: ImagePlan) -> str:
    """The release that slurm.conf is rendered for; another may not read it."""
    return f"{image.slurm_version}.*"


def _other(image: ImagePlan, name: str, program: str) -> Package:
    return Package(name=name, program=f"/usr/sbin/{program}", version=image.packages.get(name, ""))


def _sorted(packages: Iterable[Package]) -> tuple[Package, ...]:
    return tuple(sorted(packages, key=lambda package: package.name))
