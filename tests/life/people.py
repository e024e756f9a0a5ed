"""People outside of a cluster, who come by ssh, and what they bring."""

from __future__ import annotations

import importlib.metadata
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import training
from clusters import Cluster

SOON_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody on a machine of their own. `options`: of ssh and scp."""

    options: Sequence[str]

    def run(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """A command that ended on a host of the printed entries."""
        return subprocess.run(["ssh", *self.options, host, command], capture_output=True, text=True)

    def on(self, host: str, command: str) -> str:
        """What a command printed on a host, which must succeed."""
        done = self.run(host, command)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def on_head(self, command: str) -> str:
        """What a command printed on the head, which must succeed."""
        return self.on("dev-head", command)

    @contextmanager
    def tunnel(self, to: str) -> Iterator[str]:
        """An address on this machine that leads to an address behind the head."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen(["ssh", *self.options, "-N", "-L", f"127.0.0.1:{port}:{to}", "dev-head"])
        try:
            deadline = time.monotonic() + SOON_S
            while not _listens(port):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def make_key(directory: Path, name: str) -> str:
    """The public part of a new key of this person's."""
    key = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return key.with_suffix(".pub").read_text().strip()


def person_outside(cluster: Cluster, directory: Path, name: str, *options: str) -> Person:
    """The person with the key of `make_key`, and the entries that `corral ssh-config` prints with these options."""
    config = directory / f"{name}.ssh"
    config.write_text(cluster.life.corral("ssh-config", cluster.name, "--box", "--user", name, *options).out)
    known = ("-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={directory / 'known'}")
    return Person(options=("-F", str(config), "-i", str(directory / name), "-o", "LogLevel=ERROR", *known))


def as_person(cluster: Cluster, name: str, command: str) -> str:
    """What a command printed on the head, as this person in their home. Errors are printed, too."""
    switch = (
        "setpriv",
        f"--reuid={name}",
        f"--regid={name}",
        "--init-groups",
        "env",
        f"HOME=/home/{name}",
        f"USER={name}",
    )
    return cluster.on_head(*switch, "sh", "-c", f"cd /home/{name} && {{ {command}; }} 2>&1")


def copy_packages(target: Path, names: Sequence[str]) -> None:
    """Copy the installed distributions of these names, and all that they need, for the machines' Python."""
    wanted, seen = list(names), set()
    for name in wanted:
        key = re.sub(r"[-_.]+", "-", name).lower()
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another system or Python
        if key in seen:
            continue
        seen.add(key)
        needs = (re.match(r"[\w.-]+", need) for need in found.requires or () if "extra ==" not in need)
        wanted += [need[0] for need in needs if need]
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                training.linked(str(file.locate()), str(target / file))


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
