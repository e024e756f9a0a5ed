"""A person outside of the cluster works on it by ssh: files, an editor's server, submitit, and a notebook.

Everything goes through `ssh -F` with what `corral ssh-config` prints.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from canaries import Secret, locations, shown
from clusters import UP_IN_S, Cluster
from people import Person, copy_packages, make_key, person_outside

import boxes
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
PYTHON = "PYTHON=/usr/bin/python3 PYTHONPATH=/home/python"
# What VS Code's Remote-SSH does on a host: a server in the home that outlives its session, on a port of loopback.
EDITOR = "~/.vscode-server/cli/servers/Stable-0123456789abcdef"
SERVE = f"cd {EDITOR}; nohup /usr/bin/python3 server.py >log 2>&1 </dev/null & echo $!"
SERVER = """
import http.server, pathlib
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
pathlib.Path("port").write_text(str(server.server_port))
server.serve_forever()
"""
SUBMITS = """
import os, sys, submitit
def square(number):
    if number < 0:
        raise ValueError(f"{number} is negative")
    return os.getuid(), os.environ["SLURMD_NODENAME"], number * number
executor = submitit.AutoExecutor(folder=os.path.expanduser("~/runs"))
executor.update_parameters(slurm_partition="train", timeout_min=10, cpus_per_task=1)
print([job.result() for job in executor.map_array(square, [2, 3, 4])])
try:
    executor.submit(square, -1).result()
except submitit.core.utils.FailedJobError as error:
    print([line for line in str(error).splitlines() if line.startswith("ValueError")])
"""


def test_a_person_works_from_outside_by_ssh(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("outside")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        person = come(cluster, directory)
        copy_files(person, directory)
        edit(cluster, person, directory)
        submit_from_python(cluster, person)
        open_a_notebook(cluster, person)
        cluster.life.done("down", "dev")


def come(cluster: Cluster, directory: Path) -> Person:
    """The cluster with a person, and her way to it."""
    with cluster.spec.open("a") as spec:
        key = make_key(directory, "ada")
        spec.write(f"    access:\n      users:\n        ada: {{uid: 2000, ssh_keys: ['{key}']}}\n")
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    cluster.until(lambda: cluster.on_head("id", "ada"))
    person = person_outside(cluster, directory, "ada")
    with step("ssh with the printed entry opens the head as that person"):
        assert person.on_head("id -un; hostname").splitlines() == ["ada", "dev-head"]
    return person


def copy_files(person: Person, directory: Path) -> None:
    """A program there, a result back."""
    (directory / "program.py").write_bytes(bytes(range(256)) * 4096)
    with step("scp brings a megabyte there and back unchanged"):
        there, back = directory / "program.py", directory / "back.py"
        for words in ((str(there), "dev-head:program.py"), ("dev-head:program.py", str(back))):
            subprocess.run(["scp", "-q", *person.options, *words], check=True)
        assert back.read_bytes() == there.read_bytes()


def edit(cluster: Cluster, person: Person, directory: Path) -> None:
    """An editor with a server on the head."""
    (directory / "server.py").write_text(SERVER)
    person.on_head(f"mkdir -p {EDITOR}")
    subprocess.run(
        ["scp", "-q", *person.options, str(directory / "server.py"), f"dev-head:{EDITOR[2:]}/server.py"], check=True
    )
    number = person.on_head(SERVE)
    with step("a process of hers stays when its session has ended"):
        port = cluster.until(lambda: person.on_head(f"cat {EDITOR}/port 2>/dev/null || true"))
        assert person.on_head(f"ps -o user= -p {number}") == "ada"
    with step("another session reaches its port on loopback"), person.tunnel(f"127.0.0.1:{port}") as address:
        assert urllib.request.urlopen(f"{address}/server.py").read().decode() == SERVER
    person.on_head(f"kill {number}")


def submit_from_python(cluster: Cluster, person: Person) -> None:
    """submitit on the head: an array, and a function that fails."""
    copy_packages(cluster.home() / "python", ("submitit", "jupyter-server", "ipykernel"))
    (cluster.home() / "submits.py").write_text(SUBMITS)
    answers = person.on_head("PYTHONPATH=/home/python /usr/bin/python3 /home/submits.py").splitlines()
    with step("submitit's jobs run as her on a node and return their results"):
        assert answers[0] == "[(2000, 'train-1', 4), (2000, 'train-1', 9), (2000, 'train-1', 16)]"
    with step("submitit reports why a job failed"):
        assert answers[1] == "['ValueError: -1 is negative']"


def open_a_notebook(cluster: Cluster, person: Person) -> None:
    """jupyter.sbatch, by the lines that it prints."""
    job = person.on_head(f"{PYTHON} sbatch --parsable /opt/corral/jobs/train/jupyter.sbatch")
    text = cluster.until(
        lambda: (shown := person.on_head(f"cat jupyter-{job}.out 2>&1 || true")) and "to end it" in shown and shown
    )
    tunnel = re.search(r"ssh -N -L 8888:(\S+) dev-head$", text, re.MULTILINE)
    page = re.search(r"http://localhost:8888(/\?token=\w+)$", text, re.MULTILINE)
    assert tunnel and page, text
    with step("a notebook is reached by the line that its job prints"), person.tunnel(tunnel[1]) as address:
        answer = json.load(urllib.request.urlopen(f"{address}/api{page[1]}"))
        kernels = json.load(urllib.request.urlopen(f"{address}/api/kernels{page[1]}"))
        assert (sorted(answer), kernels) == (["version"], [])
    runtime = "home: ada/.local/share/jupyter/runtime/jpserver"
    files = (f"{runtime}-open.html", f"{runtime}.json", f"home: ada/jupyter-{job}.out")
    token = {"Jupyter's token": Secret(page[1].partition("=")[2].encode(), files)}
    with step("the notebook's token is in files of hers, which nobody else reads, and nowhere else"):
        assert locations(cluster, token, [*shown(cluster, int(job))]) == {"Jupyter's token": files}
        assert person.on_head(f"stat -c %a jupyter-{job}.out .local/share/jupyter/runtime").split() == ["600", "700"]
    person.on_head(f"scancel {job}")
    with step("scancel ends it"):
        assert cluster.end(int(job))[0] == "CANCELLED"
