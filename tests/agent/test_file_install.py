"""Installing files: atomically, with their mode, only if they differ, never over the user's own."""

from pathlib import Path

import pytest

from corral.agent.file_install import Placement, install

CONF = Placement(path="/etc/slurm/slurm.conf", content=b"one\n")


def test_a_missing_file_is_written_below_the_root(tmp_path: Path) -> None:
    assert install([CONF], tmp_path) == ("/etc/slurm/slurm.conf",)
    assert (tmp_path / "etc/slurm/slurm.conf").read_bytes() == b"one\n"


def test_the_same_file_is_not_written_again(tmp_path: Path) -> None:
    install([CONF], tmp_path)
    assert install([CONF], tmp_path) == ()


def test_a_file_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    install([CONF], tmp_path)
    changed = install([Placement(path=CONF.path, content=b"two\n")], tmp_path)
    assert (changed, (tmp_path / "etc/slurm/slurm.conf").read_bytes()) == ((CONF.path,), b"two\n")


def test_the_mode_is_the_planned_one_whatever_the_umask(tmp_path: Path) -> None:
    install([Placement(path="/opt/corral/bin/resume", content=b"", mode=0o755)], tmp_path)
    assert (tmp_path / "opt/corral/bin/resume").stat().st_mode & 0o7777 == 0o755


def test_a_wrong_mode_is_corrected(tmp_path: Path) -> None:
    install([CONF], tmp_path)
    (tmp_path / "etc/slurm/slurm.conf").chmod(0o600)
    assert install([CONF], tmp_path) == (CONF.path,)


def test_a_file_whose_owner_does_not_exist_is_not_left_behind_half_done(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="nobody-at-all"):
        install([Placement(path="/etc/munge/munge.key", content=b"key", owner="nobody-at-all")], tmp_path)
    assert list((tmp_path / "etc/munge").iterdir()) == []


def test_a_file_that_is_only_installed_if_missing_is_written_once(tmp_path: Path) -> None:
    own = Placement(path="/etc/slurm/own.conf", content=b"# yours\n", only_if_missing=True)
    install([own], tmp_path)
    (tmp_path / "etc/slurm/own.conf").write_bytes(b"KillWait=60\n")
    assert install([own], tmp_path) == ()


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    install([CONF], tmp_path)
    broken = Placement(path=CONF.path, content="not bytes")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        install([broken], tmp_path)
    assert {file.name: file.read_bytes() for file in (tmp_path / "etc/slurm").iterdir()} == {"slurm.conf": b"one\n"}
