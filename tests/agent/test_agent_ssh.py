"""ssh between the cluster's machines: the settings as ssh reads them, and the key of a first login."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from corral.agent.file_install import install
from corral.agent.ssh import ssh_client
from render.plans import cpu, dev, train

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine's files."""
    install(ssh_client(dev(train(), cpu())), tmp_path)
    tmp_path.chmod(0o755)
    return tmp_path


def option(root: Path, host: str, name: str) -> str:
    """What ssh would do for this host."""
    config = root / "etc/ssh/ssh_config.d/60-corral.conf"
    done = subprocess.run(["ssh", "-G", "-F", str(config), host], capture_output=True, text=True, check=True)
    return next(line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith(f"{name} "))


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("train-17", "/dev/null"),
        ("cpu-1.dev.corral.internal", "/dev/null"),
        ("github.com", "~/.ssh/known_hosts ~/.ssh/known_hosts2"),
    ],
)
def test_the_host_key_of_a_node_is_not_stored(root: Path, host: str, known: str) -> None:
    found = option(root, host, "userknownhostsfile")
    assert found.replace(str(Path.home()), "~") == known


def test_the_keys_of_a_login_do_not_travel_to_a_node(root: Path) -> None:
    assert option(root, "train-17", "forwardagent") == "no"


def log_in(root: Path, home: Path) -> None:
    """What a login of an ordinary user with this home runs, as all files of /etc/profile.d."""
    profile = root / "etc/profile.d/corral-ssh.sh"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run([*AS_NOBODY, "sh", "-eu", str(profile)], env=environment, check=True)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ordinary user's; the way there is open to all."""
    made = tmp_path_factory.mktemp("homes")
    if AS_NOBODY:
        os.chown(made, 65534, 65534)
    for work_dir in (made, *list(made.parents)[:3]):
        work_dir.chmod(work_dir.stat().st_mode | 0o755)
    return made


def test_a_first_login_makes_a_key_that_opens_the_users_own_account(root: Path, home: Path) -> None:
    log_in(root, home)
    public = (home / ".ssh/id_corral.pub").read_text()
    modes = [(home / f".ssh/{name}").stat().st_mode & 0o777 for name in ("", "id_corral", "authorized_keys")]
    assert ((home / ".ssh/authorized_keys").read_text(), modes) == (public, [0o700, 0o600, 0o600])


def test_a_later_login_leaves_the_keys_alone(root: Path, home: Path) -> None:
    log_in(root, home)
    first = (home / ".ssh/authorized_keys").read_text()
    log_in(root, home)
    assert (home / ".ssh/authorized_keys").read_text() == first
