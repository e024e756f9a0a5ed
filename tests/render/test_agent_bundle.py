"""The agent's bundle: the same bytes everywhere, small, and runnable by a Python that has nothing else."""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from corral.render import agent_bundle
from corral.render.agent_bundle import stored_gzip

SMALL = 1000 * 1024  # bytes, before any compression; every boot fetches it


def test_two_processes_make_the_same_bytes(tmp_path: Path) -> None:
    program = "import sys; from corral.render import agent_bundle; sys.stdout.buffer.write(agent_bundle())"
    command = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", program]
    assert subprocess.run(command, capture_output=True, check=True).stdout == agent_bundle()


def test_members_carry_no_time_and_no_owner() -> None:
    with tarfile.open(fileobj=io.BytesIO(agent_bundle())) as archive:
        kinds = {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode, m.isreg()) for m in archive}
    assert kinds == {(0, 0, 0, "", "", 0o644, True)}


def test_members_are_the_sorted_sources_of_two_packages() -> None:
    with tarfile.open(fileobj=io.BytesIO(agent_bundle())) as archive:
        names = archive.getnames()
    assert names == sorted(names)
    assert {name.split("/")[1] for name in names} == {"__init__.py", "agent", "model"}


def test_bundle_is_small() -> None:
    assert len(agent_bundle()) < SMALL


def test_nothing_follows_the_end_of_the_archive() -> None:
    """tarfile fills it up to 10 KiB, as tapes want it."""
    data = gzip.decompress(agent_bundle())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        sizes = [512 + -(-member.size // 512) * 512 for member in archive]
    assert (len(data), data[-1024:]) == (sum(sizes) + 1024, bytes(1024))


@given(data=st.binary() | st.integers(65_530, 131_080).map(bytes))
def test_a_stored_gzip_holds_the_data(data: bytes) -> None:
    assert gzip.decompress(stored_gzip(data)) == data


def test_unpacked_it_runs_without_any_site_package(tmp_path: Path) -> None:
    subprocess.run(["tar", "-xz", "-C", str(tmp_path)], input=agent_bundle(), check=True)
    command = ["/usr/bin/python3", "-I", "-S", str(tmp_path / "corral/agent/entry_point.py"), "--help"]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["usage:", "corral-agent"]
