"""enroot's own scripts pull from a registry that stands in for ECR, with the files that a machine has.

The registry has ECR's name, over HTTPS on loopback, and refuses every password but one. What enroot compiles, which
only unpacks, has a stand-in. Needs enroot's source, which corral fetches from GitHub: `make containers` runs it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import ssl
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from certificates import make_certificate
from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import install
from corral.catalog.container_sources import container_sources
from corral.model.cluster import JobsPlan, RepositoryPlan
from corral.model.containers import ContainerRuntime, ContainersPlan
from corral.model.enums import Role
from corral.render import account_files, cluster_files
from corral.stacks.container_sources import source_archives
from render.plans import dev

pytestmark = pytest.mark.container_sources
SOURCES = tuple(one.plan for one in container_sources()[ContainerRuntime.PYXIS])
PLAN = replace(
    dev(),
    containers=ContainersPlan(runtime=ContainerRuntime.PYXIS, sources=SOURCES),
    jobs=JobsPlan(registries=(RepositoryPlan(account=None, name="team/train"),)),
)
HOST, OTHER, LAYERS = "123456789012.dkr.ecr.us-east-1.amazonaws.com", "nvcr.example", "layers.s3.example"
PASSWORD = "eyJwYXlsb2FkIjoi" + "Zm9v" * 600 + "=="  # as long as ECR's
# A layer's file is the image, so no kernel has to unpack one.
STAND_INS = {"enroot-aufs2ovlfs": "exit 0", "enroot-mksquashovlfs": 'cp 1/inside "$2"'}


def packed() -> bytes:
    """An image's only layer, with the file `inside`."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        entry = tarfile.TarInfo("inside")
        entry.size = len(b"the image")
        tar.addfile(entry, io.BytesIO(b"the image"))
    return gzip.compress(held.getvalue())


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


LAYER = packed()
CONFIG = json.dumps({"architecture": "amd64", "config": {}}).encode()
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"digest": digest(CONFIG)},
        "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": digest(LAYER)}],
    }
).encode()
BLOBS: Mapping[str, bytes] = {digest(content): content for content in (CONFIG, LAYER)}


@dataclass(kw_only=True)
class Registry:
    """ECR, another registry, and S3 with the layers, at one port. `seen`: processes that showed a password.

    `keys`: by host, whether its requests had a password, as Authorization has it.
    """

    port: int = 0
    keys: dict[str, set[str]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its certificate for these hosts."""
    return make_certificate(tmp_path_factory.mktemp("certificate"), (HOST, OTHER, LAYERS))


@pytest.fixture
def registry(certificate: Path) -> Iterator[Registry]:
    held = Registry()
    right = "Basic " + base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            host, given = str(self.headers["Host"]), str(self.headers.get("Authorization", ""))
            held.keys.setdefault(host, set()).add("right" if given == right else "wrong" if given else "none")
            held.seen |= showing(PASSWORD) | showing(right.removeprefix("Basic "))
            if host == LAYERS:  # S3 refuses a request that is authorized twice
                self.answer(400 if given else 200, BLOBS[self.path.rpartition("/")[2]])
            elif host == HOST and given != right:
                realm = f'Basic realm="https://{HOST}/",service="ecr.amazonaws.com"'
                self.answer(401, b"", **{"WWW-Authenticate": realm})
            elif "/blobs/" in self.path:
                self.answer(307, b"", Location=f"https://{LAYERS}/{self.path.rpartition('/')[2]}")
            else:
                self.answer(200, MANIFEST)

        def answer(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        held.port = server.server_address[1]
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield held
        server.shutdown()
        thread.join()


def showing(text: str) -> set[str]:
    """The processes with this text among their words."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in file.read_bytes():
                found.add(file.parent.name)
        except OSError:
            continue
    return found


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine's files, and a user's home."""

    root: Path
    home: Path

    def pull(self, image: str) -> subprocess.CompletedProcess[str]:
        """Import an image into the file `image` of the home."""
        command = ("bash", str(self.root / "bin/enroot"), "import", "--output", str(self.home / "image"))
        environment = {"HOME": str(self.home), "PATH": f"{self.root}/bin:{os.defpath}"}
        return subprocess.run(
            [*command, f"docker://{image}"], env=environment, capture_output=True, text=True, cwd=self.home
        )

    def set_password(self, command: str) -> None:
        """What the machine's program does."""
        program = self.root / "opt/corral/bin/ecr-password"
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)

    def containing(self, text: str) -> list[str]:
        """The files of the machine and the home in which this text is."""
        files = (file for top in (self.root, self.home) for file in top.rglob("*") if file.is_file())
        return [file.name for file in files if text.encode() in file.read_bytes()]


@pytest.fixture
def machine(tmp_path: Path, registry: Registry, certificate: Path) -> Machine:
    root, home = tmp_path / "root", tmp_path / "home"
    texts = {**cluster_files(PLAN), **account_files(PLAN, "123456789012")}
    install(placements_for({name: text.encode() for name, text in texts.items()}, Role.COMPUTE, "train"), root)
    # What the machine compiles from its archive, and the directories that a job's prolog makes.
    archive = next(content for path, content in source_archives(PLAN.containers).items() if "enroot" in path)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(root / "source", filter="data")
    (source,) = (root / "source").iterdir()
    script = (source / "enroot.in").read_text()
    script = script.replace("@libdir@", str(source / "src")).replace("@sysconfdir@", str(root / "etc/enroot"))
    programs = {"enroot": script, **{name: f"#!/bin/sh\n{text}\n" for name, text in STAND_INS.items()}}
    (root / "bin").mkdir()
    for name, text in programs.items():
        (root / "bin" / name).write_text(text)
        (root / "bin" / name).chmod(0o755)
    for file in (root / "etc/enroot/enroot.conf.d/50-corral.conf", root / "etc/corral/enroot/.credentials"):
        text = file.read_text()
        for path in ("/run/", "/var/lib/", "/etc/corral/", "/opt/corral/"):
            text = text.replace(path, f"{root}{path}")
        file.write_text(text)
    (root / f"var/lib/enroot/{os.getuid()}").mkdir(parents=True)
    home.mkdir()
    # curl reads it: every host is the registry.
    (home / ".curlrc").write_text(f'connect-to = "::127.0.0.1:{registry.port}"\ncacert = "{certificate}/cert.pem"\n')
    made = Machine(root=root, home=home)
    made.set_password(f"echo {PASSWORD}")
    return made


def test_an_image_is_pulled_by_the_password_that_the_machine_has(machine: Machine, registry: Registry) -> None:
    done = machine.pull(f"{HOST}#team/train:1")
    assert done.returncode == 0, done.stderr
    assert (machine.home / "image").read_text() == "the image"
    assert registry.keys == {HOST: {"none", "right"}, LAYERS: {"none"}}


def test_the_password_is_in_no_process_list_no_output_and_no_file(machine: Machine, registry: Registry) -> None:
    done = machine.pull(f"{HOST}#team/train:1")
    held = base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()
    assert (registry.seen, machine.containing(held)) == (set(), [])
    assert machine.containing(PASSWORD) == ["ecr-password"]  # the stand-in itself
    assert all(text not in done.stdout + done.stderr for text in (PASSWORD, held))


def test_a_wrong_password_pulls_nothing(machine: Machine, registry: Registry) -> None:
    machine.set_password("echo wrong")
    done = machine.pull(f"{HOST}#team/train:1")
    assert (done.returncode, (machine.home / "image").exists()) == (1, False), done.stderr
    assert registry.keys == {HOST: {"none", "wrong"}}


def test_without_a_password_enroot_names_the_file_whose_first_line_leads_to_the_reason(machine: Machine) -> None:
    machine.set_password("echo 'a reason' >&2; exit 1")
    done = machine.pull(f"{HOST}#team/train:1")
    assert (done.returncode, "a reason" in done.stderr) == (1, False), done.stderr  # enroot drops it
    file = machine.root / "etc/corral/enroot/.credentials"
    assert str(file) in done.stderr
    assert "bin/ecr-password prints one" in file.read_text().splitlines()[0]


def test_another_registry_gets_no_password(machine: Machine, registry: Registry) -> None:
    done = machine.pull(f"{OTHER}#team/train:1")
    assert (done.returncode, registry.keys) == (0, {OTHER: {"none"}, LAYERS: {"none"}}), done.stderr


def test_a_user_with_settings_of_their_own_keeps_them(machine: Machine, registry: Registry) -> None:
    own = machine.home / ".config/enroot/.credentials"
    own.parent.mkdir(parents=True)
    own.write_text(f"machine {OTHER} login me password mine\n")
    assert machine.pull(f"{HOST}#team/train:1").returncode == 1
    assert registry.keys == {HOST: {"none"}}
    with own.open("a") as lines:
        lines.write((machine.root / "etc/corral/enroot/.credentials").read_text())
    done = machine.pull(f"{HOST}#team/train:1")
    assert done.returncode == 0, done.stderr
