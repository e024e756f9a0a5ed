"""jupyter.sbatch with a stand-in for JupyterLab: who gets its token."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.render.job_scripts import job_files
from render.plans import dev, train

PATIENCE_S = 20
NOBODY, ROOTS = 65534, 20417
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="files of other users and groups need root: run as root")
# It answers as a JupyterLab in which nothing runs.
SERVES = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer).serve_forever()
"""
# It looks whether its port is free, as Jupyter does, and finds it taken when it wants to listen.
LOSES_ITS_PORT = """
import pathlib, socket, sys, time
(port,) = (int(one[7:]) for one in sys.argv if one.startswith("--port="))
with socket.create_server(("127.0.0.1", port)) as free:
    port = free.getsockname()[1]
pathlib.Path("chosen").write_text(str(port))
time.sleep(4)
sys.exit("the port is taken")
"""


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextmanager
def job(directory: Path, tools: Path, jupyter: str, idle_s: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """The script in this directory, which gets its output, with this program for JupyterLab."""
    package, bin_ = tools / "packages/jupyterlab", tools / "bin"
    for one in (package, bin_):
        one.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(jupyter)
    (bin_ / "scontrol").write_text("#!/bin/sh\necho NodeName=train-1 NodeAddr=127.0.0.1 NodeHostName=x\n")
    (bin_ / "scontrol").chmod(0o755)
    (tools / "jupyter").write_text(job_files(dev(train()))["jobs/train/jupyter.sbatch"])
    environment = {
        "PATH": f"{bin_}:/usr/bin:/bin",
        "HOME": str(directory),
        "PYTHON": sys.executable,
        "PYTHONPATH": str(package.parent),
        "IDLE_S": str(idle_s),
        "SLURMD_NODENAME": "train-1",
        "SLURM_JOB_ID": "17",
    }
    with output(directory).open("ab") as file:
        process = subprocess.Popen(
            ["bash", str(tools / "jupyter")],
            cwd=directory,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
        process.wait(PATIENCE_S)


def output(directory: Path) -> Path:
    return directory / "jupyter-17.out"


def lines(directory: Path) -> list[str]:
    """What a job has printed, once it can be used; tokens as TOKEN, ports as PORT."""
    deadline = time.monotonic() + PATIENCE_S
    while "corral: to end it:" not in (text := output(directory).read_text()):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    return hidden(text).splitlines()


def hidden(text: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", re.sub(r"\b[0-9a-f]{48}\b", "TOKEN", text))


def test_the_port_that_jupyter_listens_at_is_printed_with_its_token(tmp_path: Path) -> None:
    with job(tmp_path, tmp_path, SERVES):
        assert lines(tmp_path) == [
            "corral: on your machine:  ssh -N -L 8888:127.0.0.1:PORT dev-head",
            "corral: in your browser:  http://localhost:8888/?token=TOKEN",
            "corral: to end it:        scancel 17",
        ]


def test_a_program_that_takes_jupyters_port_gets_no_token(tmp_path: Path) -> None:
    with job(tmp_path, tmp_path, LOSES_ITS_PORT) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not (tmp_path / "chosen").exists() or not (tmp_path / "chosen").read_text():
            assert time.monotonic() < deadline, output(tmp_path).read_text()
            time.sleep(0.01)
        with socket.create_server(("127.0.0.1", int((tmp_path / "chosen").read_text()))) as thief:
            thief.settimeout(0.1)
            connected = 0
            while process.poll() is None:
                try:
                    thief.accept()[0].close()
                    connected += 1
                except TimeoutError:
                    continue
    assert (connected, process.returncode, output(tmp_path).read_text()) == (0, 1, "the port is taken\n")


def test_an_output_that_others_can_have_opened_gets_no_token(open_directory: Path, tmp_path: Path) -> None:
    file = open_directory / "jupyter-17.address"
    with job(open_directory, tmp_path, SERVES):
        printed = lines(open_directory)[1]
        found = (printed, hidden(file.read_text()), f"{file.stat().st_mode:o}")
    assert found == (
        f"corral: in your browser:  what is in {file}, since others may read this output",
        "http://localhost:8888/?token=TOKEN\n",
        "100600",
    )


def test_the_file_with_the_token_goes_with_its_job(open_directory: Path, tmp_path: Path) -> None:
    with job(open_directory, tmp_path, SERVES, idle_s=2) as process:
        lines(open_directory)
        process.wait(PATIENCE_S)
    assert [one.name for one in open_directory.iterdir()] == ["jupyter-17.out"]


def test_no_file_that_somebody_left_gets_the_token(open_directory: Path, tmp_path: Path) -> None:
    theirs = open_directory / "theirs"
    theirs.touch()
    (open_directory / "jupyter-17.address").symlink_to(theirs)
    with job(open_directory, tmp_path, SERVES):
        lines(open_directory)
    assert theirs.read_text() == ""


@AS_ROOT
@pytest.mark.parametrize(
    ("mode", "group", "is_printed"),
    [(0o700, ROOTS, True), (0o750, 0, True), (0o750, ROOTS, False), (0o711, 0, False)],
    ids=["nobody enters", "the user's own group enters", "a group enters", "everybody enters"],
)
def test_a_closed_directory_keeps_the_output_from_others(
    open_directory: Path, tmp_path: Path, mode: int, group: int, is_printed: bool
) -> None:
    home = open_directory / "home"
    home.mkdir()
    os.chown(home, 0, group)
    home.chmod(mode)
    with job(home, tmp_path, SERVES):
        assert ("?token=TOKEN" in lines(home)[1]) == is_printed


@AS_ROOT
def test_an_output_of_somebody_else_gets_no_token(tmp_path: Path) -> None:
    """Who guesses a job's number may make its output first."""
    output(tmp_path).touch()
    os.chown(output(tmp_path), NOBODY, NOBODY)
    with job(tmp_path, tmp_path / "tools", SERVES):
        assert "TOKEN" not in lines(tmp_path)[1]


def test_no_module_of_the_directory_runs(tmp_path: Path) -> None:
    for module in ("json", "secrets", "runpy", "jupyterlab", "http"):
        (tmp_path / f"{module}.py").write_text(f"open('ran-{module}', 'w')")
    with job(tmp_path, tmp_path / "tools", SERVES):
        lines(tmp_path)
    assert [*tmp_path.glob("ran-*")] == []
