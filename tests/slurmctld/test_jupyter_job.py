"""jupyter.sbatch on a real node with a real JupyterLab: who may open it, and when it ends."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from render.plans import dev, train

pytestmark = [
    pytest.mark.long,
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a node with devices of its own needs root: run the tests as root"),
]
PATIENCE_S = 120
IDLE_S = 6
CELL_S = 2 * IDLE_S
# What a page does: it runs a cell, and asks for the kernels all the time (jupyterlab/jupyterlab#19796).
PAGE = """
import json, sys, threading, time, urllib.request, uuid
import websocket

server, token, cell_s = sys.argv[1:]
headers = {"Authorization": f"token {token}"}
def fetch(method, path):
    request = urllib.request.Request(f"http://{server}/api/{path}", method=method, headers=headers)
    return json.load(urllib.request.urlopen(request))
kernel = fetch("POST", "kernels")["id"]
channels = websocket.create_connection(f"ws://{server}/api/kernels/{kernel}/channels", header=headers)
code = f"import time; time.sleep({cell_s}); open('/mnt/cell-ended', 'w').write(str(time.time()))"
channels.send(json.dumps({
    "header": {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "page"},
    "parent_header": {}, "metadata": {}, "channel": "shell", "content": {"code": code, "silent": False},
}))
while True:
    try:
        fetch("GET", "kernels")
        fetch("GET", "sessions")
    except OSError:
        break
    time.sleep(0.5)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A cluster whose node train-1 is up."""
    directory = tmp_path_factory.mktemp("jupyter")
    (directory / "home").mkdir(mode=0o700)  # as homes of people
    (directory / "page.py").write_text(PAGE)
    with slurms.running_cluster_with_nodes(dev(train(max_nodes=1), slurm_version="22.05"), directory) as controller:
        slurms.must(controller.run("srun", "true"))
        yield controller


def submit(cluster: Controller, **environment: str) -> str:
    """The id of a job of the script with these variables."""
    variables = {"PYTHON": sys.executable, "HOME": "/mnt/home", "IDLE_S": str(IDLE_S), **environment}
    exported = ",".join(f"{name}={value}" for name, value in variables.items())
    words = ("--parsable", "--chdir=/mnt/home", f"--export=ALL,{exported}", "/opt/corral/jobs/train/jupyter.sbatch")
    return slurms.must(cluster.run("sbatch", *words, "--allow-root")).strip()


def output(cluster: Controller, job: str) -> Path:
    return cluster.directory / f"home/jupyter-{job}.out"


def opened(cluster: Controller, job: str) -> tuple[str, str]:
    """The address behind the tunnel and the token, once the job has printed them."""
    deadline = time.monotonic() + PATIENCE_S
    while "corral: to end it:" not in (text := shown(cluster, job)):
        assert time.monotonic() < deadline, text + cluster.run("squeue").stdout
        time.sleep(0.2)
    tunnel = re.search(r"^corral: on your machine:  ssh -N -L 8888:(\S+:\d+) dev-head$", text, re.MULTILINE)
    page = re.search(r"^corral: in your browser:  http://localhost:8888/\?token=(\w{48})$", text, re.MULTILINE)
    assert tunnel and page and f"corral: to end it:        scancel {job}\n" in text
    return tunnel[1], page[1]


def shown(cluster: Controller, job: str) -> str:
    file = output(cluster, job)
    return file.read_text() if file.exists() else ""


def ended(cluster: Controller, job: str) -> tuple[str, str]:
    """State and exit code, once the job has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        words = slurms.scontrol(cluster, "--oneliner", "show", "job", job).split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if fields["JobState"] not in ("PENDING", "RUNNING", "COMPLETING"):
            return fields["JobState"], fields["ExitCode"]
        assert time.monotonic() < deadline, shown(cluster, job)
        time.sleep(0.2)


def test_it_runs_while_a_cell_does_and_then_ends_though_its_page_is_open(cluster: Controller) -> None:
    job = submit(cluster)
    server, token = opened(cluster, job)
    began = time.time()
    page = cluster.run(sys.executable, "/mnt/page.py", server, token, str(CELL_S))
    assert (page.returncode, page.stderr) == (0, "")
    assert ended(cluster, job) == ("COMPLETED", "0:0")
    assert float((cluster.directory / "cell-ended").read_text()) - began >= CELL_S
    assert f"corral: no cell ran for {IDLE_S} s, the job ends\n" in shown(cluster, job)


def test_its_owner_alone_reads_the_token_and_nobody_comes_in_without_it(cluster: Controller) -> None:
    job = submit(cluster, IDLE_S="0")
    server, token = opened(cluster, job)
    client = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).status)"
    answers = [
        cluster.run(sys.executable, "-c", client, f"http://{server}/api/kernels{query}")
        for query in (f"?token={token}", "?token=other", "")
    ]
    command_lines = cluster.run("ps", "axww", "-o", "args").stdout
    cluster.run("scancel", job)
    assert [(one.stdout, one.stderr.splitlines()[-1:]) for one in answers] == [
        ("200\n", []),
        ("", ["urllib.error.HTTPError: HTTP Error 403: Forbidden"]),
        ("", ["urllib.error.HTTPError: HTTP Error 403: Forbidden"]),
    ]
    assert (f"{output(cluster, job).stat().st_mode:o}", token in command_lines) == ("100600", False)
    assert "jupyterlab" in command_lines
    assert ended(cluster, job)[0] == "CANCELLED"


def test_it_has_one_gpu_and_its_share_of_the_cores(cluster: Controller) -> None:
    job = submit(cluster, PYTHON="/bin/false")
    words = slurms.scontrol(cluster, "--oneliner", "show", "job", job).split()
    assert {"NumCPUs=12", "TresPerNode=gres:gpu:1", "TimeLimit=08:00:00", "Requeue=0"} - {*words} == set()


def test_without_jupyter_it_reports_how_to_install_it(cluster: Controller) -> None:
    job = submit(cluster, PYTHON="/usr/bin/python3")
    assert ended(cluster, job) == ("FAILED", "2:0")
    assert shown(cluster, job) == (
        "corral: /usr/bin/python3 has no jupyterlab"
        " - python3 -m venv ~/jupyter && ~/jupyter/bin/pip install jupyterlab\n"
    )
