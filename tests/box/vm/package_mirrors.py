"""For tests of the package proxy: a Debian mirror on this machine, apt, and the relay of a VPC's process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from corral.box.vm.debian_mirrors import DebianMirrors, Mirror
from corral.box.vm.package_proxy import Refuses, serve_packages
from corral.box.vpc.relay import relay_to_daemon
from corral.box.vpc.vpc_state import DAEMON_SOCKET

SMALL, LARGE = "corral-small", "corral-large+x"
LARGE_BYTES = 3_000_000
CALLER = "10.64.1.7"


@dataclass(slots=True, kw_only=True)
class TestMirror:
    """A running mirror. It counts the requests, and cuts the next answer whose path ends so after some bytes.

    After half of a body it waits for `proceed`.
    """

    __test__ = False

    root: Path
    url: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    cuts: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    proceed: threading.Event = field(default_factory=threading.Event)
    stop: Callable[[], None] = lambda: None


class _MirrorHandler(SimpleHTTPRequestHandler):
    def __init__(self, mirror: TestMirror, *args: object) -> None:
        self.mirror = mirror
        super().__init__(*args, directory=str(mirror.root))

    def send_head(self):
        name = unquote(self.path.rpartition("/")[2])
        self.mirror.requests[name] += 1
        self.path = urlsplit(self.path).path  # a proxy gets whole URLs
        if name not in self.mirror.redirects:
            return super().send_head()
        self.send_response(302)
        self.send_header("Location", self.mirror.redirects[name])
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def copyfile(self, source, outputfile) -> None:
        data = source.read()
        cut = self.mirror.cuts.pop(unquote(self.path.rpartition("/")[2]), len(data))
        with contextlib.suppress(ConnectionError):
            outputfile.write(data[: min(cut, len(data) // 2)])
            assert self.mirror.proceed.wait(20)
            outputfile.write(data[len(data) // 2 : cut])

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def running_mirror(root: Path, context: ssl.SSLContext | None = None) -> Iterator[TestMirror]:
    """A mirror of the archive in this directory."""
    mirror = TestMirror(root=root)
    mirror.proceed.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_MirrorHandler, mirror))
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    mirror.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}/debian"
    mirror.stop = stop
    yield mirror
    stop()


def build_archive(root: Path) -> None:
    """Write an archive as Debian's: pool/ and dists/trixie/, with a Release that names the index by its hash."""
    entries = [_build_package(root, SMALL, b"small"), _build_package(root, LARGE, os.urandom(LARGE_BYTES))]
    index = "\n".join(entries).encode()
    name = "main/binary-amd64/Packages"
    digest = hashlib.sha256(index).hexdigest()
    dist = root / "dists" / "trixie"
    by_hash = dist / "main" / "binary-amd64" / "by-hash" / "SHA256"
    by_hash.mkdir(parents=True)
    (by_hash / digest).write_bytes(index)
    (dist / name).write_bytes(index)
    (dist / "Release").write_text(
        "Origin: Debian\nLabel: Debian\nSuite: stable\nCodename: trixie\nComponents: main\nArchitectures: amd64\n"
        "Date: Sat, 09 Aug 2025 09:00:00 UTC\nAcquire-By-Hash: yes\n"
        f"SHA256:\n {digest} {len(index)} {name}\n"
    )


def _build_package(root: Path, name: str, content: bytes) -> str:
    """Build a package with this file in pool/; return its entry of the index."""
    tree = root.parent / "trees" / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "content").write_bytes(content)
    fields = f"Package: {name}\nVersion: 1.0~1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\n"
    (tree / "DEBIAN" / "control").write_text(f"{fields}Description: a test\n")
    path = root / "pool" / "main" / f"{name}_1.0~1_amd64.deb"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, path], check=True, capture_output=True)
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return f"{fields}Filename: {path.relative_to(root)}\nSize: {len(data)}\nSHA256: {digest}\nDescription: a test\n"


@contextlib.contextmanager
def relay(directory: Path, caller: str = CALLER) -> Iterator[str]:
    """The URL of a port from which the VPC's process relays a machine's connections to the proxy."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                arguments = (directory, listener.accept()[0], (caller, 40000), "10.64.0.1")
                threading.Thread(target=relay_to_daemon, args=arguments, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@contextlib.contextmanager
def running_proxy(directory: Path, mirror: Mirror, **options: Refuses) -> Iterator[Path]:
    """The proxy of a VPC with this directory; its cache is there too."""
    cache = directory / "cache"
    server = serve_packages(directory / DAEMON_SOCKET, DebianMirrors(archive=mirror, security=mirror), cache, **options)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield cache
    server.shutdown()
    server.server_close()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineApt:
    """apt with a state of its own, which knows only Debian's well-known names and the proxy."""

    root: Path
    proxy: str
    sources: str = "deb [trusted=yes arch=amd64] http://deb.debian.org/debian trixie main\n"

    def get(self, *arguments: str, retries: int = 0) -> subprocess.CompletedProcess[str]:
        """Run apt-get; its output and errors are in stdout. Downloads go to `root`."""
        for name in ("lists/partial", "archives/partial", "log"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "sources.list").write_text(self.sources)
        (self.root / "status").touch()
        (self.root / "apt.conf").write_text(
            f'Dir::Etc::sourcelist "{self.root}/sources.list"; Dir::Etc::sourceparts "-"; Dir::Etc::parts "-";\n'
            f'Dir::Etc::main "-"; Dir::Etc::preferencesparts "-"; Dir::State "{self.root}";\n'
            f'Dir::State::status "{self.root}/status"; Dir::Cache "{self.root}"; Dir::Log "{self.root}/log";\n'
            'APT::Architecture "amd64"; APT::Architectures "amd64"; APT::Sandbox::User "root";\n'
            f'Acquire::Languages "none"; Acquire::Retries "{retries}"; Acquire::http::Proxy "{self.proxy}";\n'
        )
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "APT_CONFIG": str(self.root / "apt.conf")}
        return subprocess.run(
            ["apt-get", *arguments],
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )

    def package(self, name: str) -> Path:
        return self.root / f"{name}_1.0~1_amd64.deb"


def trusted_context(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate for 127.0.0.1 that signs itself, and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "certificate.pem"
    path.write_bytes(
        certificate.public_bytes(Encoding.PEM) + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, path
