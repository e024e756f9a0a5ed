"""fetch.py of the user data, run against fakes of the metadata service and S3."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from corral.model.deployed import BootFacts
from corral.model.enums import Role
from corral.model.manifest import Manifest
from corral.model.serialization import to_json
from corral.render import agent_bundle, agent_library, user_data
from render.plans import boot_facts, dev
from signing_keys import SigningKey

ROLE = {"AccessKeyId": "AKIA", "SecretAccessKey": "secret/+", "Token": "session=="}


@dataclass(kw_only=True)
class Servers:
    """Objects by path, the requested paths, the expected owners, and how often the bucket refuses first.

    `documents`: more of the metadata service.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    wrongly_signed: list[str] = field(default_factory=list)
    documents: dict[str, bytes] = field(default_factory=dict)
    refuses: int = 0
    url: str = ""

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        documents = {
            **self.documents,
            "/latest/meta-data/iam/security-credentials/": b"head-role",
            "/latest/meta-data/iam/security-credentials/head-role": json.dumps(ROLE).encode(),
            "/latest/dynamic/instance-identity/document": b'{"accountId": "210987654321"}',
        }
        if path == "/latest/api/token":
            return (200, b"token") if method == "PUT" else (405, b"")
        if path in documents:
            return (200, documents[path]) if headers.get("x-aws-ec2-metadata-token") == "token" else (401, b"")
        if path.startswith("/latest/"):
            return 404, b""
        self.paths.append(path)
        self.owners.append(headers["x-amz-expected-bucket-owner"])
        if self.refuses:
            self.refuses -= 1
            return 403, b"<Code>AccessDenied</Code>"
        if headers["authorization"] != self._signature(path, headers):
            self.wrongly_signed.append(path)
        return (200, self.objects[path]) if path in self.objects else (404, b"<Code>NoSuchKey</Code>")

    def _signature(self, path: str, headers: dict[str, str]) -> str:
        """As botocore signs the same request."""
        signer = S3SigV4Auth(
            Credentials(ROLE["AccessKeyId"], ROLE["SecretAccessKey"], ROLE["Token"]), "s3", "us-east-1"
        )
        request = AWSRequest("GET", f"{self.url}{path}", {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"})
        request.context["timestamp"] = headers["x-amz-date"]
        for name in ("x-amz-date", "x-amz-expected-bucket-owner", "x-amz-security-token"):
            request.headers[name] = headers[name]
        words = signer.string_to_sign(request, signer.canonical_request(request))
        signer._inject_signature_to_request(request, signer.signature(words, request))
        return str(request.headers["Authorization"])


@pytest.fixture
def servers() -> Iterator[Servers]:
    known = Servers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = known.answer(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        known.url = f"http://127.0.0.1:{server.server_port}"
        yield known
        server.shutdown()


def facts() -> BootFacts:
    agent, library = (hashlib.sha256(made).hexdigest() for made in (agent_bundle(), agent_library()))
    return replace(boot_facts(), bundle_sha256=agent, library_sha256=library)


def fetch(
    tmp_path: Path, servers: Servers, known: BootFacts, *, held: bool = True, library: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """What fetch.py did in tmp_path/home, where the bucket holds the library (the cluster's, where none is given), and
    the agent if that is `held`.
    """
    if held:
        servers.objects[f"/{known.bucket}/{known.bundle_key}"] = agent_bundle()
    servers.objects[f"/{known.bucket}/{known.library_key}"] = library or agent_library()
    home = tmp_path / "home"
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws/config").write_text(f"[default]\nendpoint_url = {servers.url}\n")
    home.mkdir(exist_ok=True)
    (home / "boot.json").write_text(to_json(known))
    (program,) = (
        file["content"]
        for file in yaml.safe_load(user_data(dev(), Role.COMPUTE, known))["write_files"]
        if file["path"].endswith("fetch.py")
    )
    (home / "fetch.py").write_text(
        program.replace("http://169.254.169.254", servers.url).replace("sleep(1)", "sleep(0)")
    )
    command = [sys.executable, "-S", str(home / "fetch.py"), str(home)]
    return subprocess.run(command, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)


def test_the_agent_runs_with_the_library_that_was_fetched_and_nothing_else(tmp_path: Path, servers: Servers) -> None:
    assert fetch(tmp_path, servers, facts()).stderr == ""
    python_path = f"{tmp_path}/home/agent:{tmp_path}/home/library"
    program = (
        "import boto3, corral.agent.__main__; print(boto3.client('ec2', region_name='us-east-1').meta.service_model)"
    )
    command = ["/usr/bin/python3", "-S", "-c", program]
    done = subprocess.run(command, cwd="/", env={"PYTHONPATH": python_path}, capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "ServiceModel(ec2)\n")


def test_requests_have_botocores_signature(tmp_path: Path, servers: Servers) -> None:
    fetch(tmp_path, servers, facts())
    assert (len(servers.paths), servers.wrongly_signed) == (2, [])


def test_a_request_expects_the_instances_account_as_the_buckets_owner(tmp_path: Path, servers: Servers) -> None:
    fetch(tmp_path, servers, facts())
    assert servers.owners == ["210987654321", "210987654321"]


def test_what_is_there_already_is_not_fetched_again(tmp_path: Path, servers: Servers) -> None:
    fetch(tmp_path, servers, facts())
    servers.paths.clear()
    assert (fetch(tmp_path, servers, facts()).returncode, servers.paths) == (0, [])


def test_another_agent_replaces_the_previous_one(tmp_path: Path, servers: Servers) -> None:
    (tmp_path / "home/agent").mkdir(parents=True)
    (tmp_path / "home/agent/old.py").touch()
    fetch(tmp_path, servers, facts())
    assert not (tmp_path / "home/agent/old.py").exists()


def test_a_refusal_is_retried_until_the_role_may_read(tmp_path: Path, servers: Servers) -> None:
    servers.refuses = 3
    assert fetch(tmp_path, servers, facts()).returncode == 0


def test_a_bucket_that_keeps_refusing_is_an_error_with_its_reason(tmp_path: Path, servers: Servers) -> None:
    servers.refuses = 100
    assert fetch(tmp_path, servers, facts()).stderr == (
        "s3://corral-dev-123456789012-us-east-1/clusters/dev/library/fedcba9876543210.tar.gz cannot be read: "
        "HTTP Error 403: Forbidden b'<Code>AccessDenied</Code>'\n"
    )


@pytest.mark.parametrize("name", ["agent", "library"])
def test_an_archive_with_another_hash_is_refused_and_left_packed(tmp_path: Path, servers: Servers, name: str) -> None:
    wrong = {"bundle_sha256" if name == "agent" else "library_sha256": "0" * 64}
    done = fetch(tmp_path, servers, replace(facts(), **wrong))
    assert (done.returncode, "has the hash" in done.stderr, (tmp_path / "home" / name).exists()) == (1, True, False)


def packed(name: str, mode: int = 0o644) -> bytes:
    """An archive with this file alone."""
    made, member = io.BytesIO(), tarfile.TarInfo(name)
    member.mode = mode
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        archive.addfile(member)
    return made.getvalue()


def test_an_archive_is_unpacked_with_pythons_filter(tmp_path: Path, servers: Servers) -> None:
    """Without one Python 3.12 and 3.13 print a warning to the console. This one takes away the others' write bit."""
    library = packed("module.py", 0o666)
    fetch(tmp_path, servers, replace(facts(), library_sha256=hashlib.sha256(library).hexdigest()), library=library)
    assert (tmp_path / "home/library/module.py").stat().st_mode & 0o777 == 0o644


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey(tmp_path_factory.mktemp("key"))


def manifest_of(newer: BootFacts) -> Manifest:
    return Manifest(
        version=1000,
        files={},
        bundle=newer.bundle_key.removeprefix("clusters/dev/"),
        bundle_sha256=newer.bundle_sha256,
        library=newer.library_key.removeprefix("clusters/dev/"),
        library_sha256=newer.library_sha256,
    )


def without_agent(
    tmp_path: Path, servers: Servers, key: SigningKey, manifest: bytes
) -> subprocess.CompletedProcess[str]:
    """What fetch.py did when the agent that it was launched with is gone, and this is manifest.json."""
    known = replace(facts(), bundle_key="clusters/dev/agent/old.tar.gz", public_key=key.public)
    servers.objects[f"/{known.bucket}/clusters/dev/manifest.json"] = manifest
    servers.objects[f"/{known.bucket}/{facts().bundle_key}"] = agent_bundle()
    return fetch(tmp_path, servers, known, held=False)


@pytest.mark.parametrize(
    "signed",
    [
        lambda key, other, manifest: other.document(manifest),
        lambda key, other, manifest: key.document(manifest, "clusters/prod"),
        lambda key, other, manifest: key.document(manifest).replace(b"1000", b"1001"),
    ],
    ids=["by another key", "for another cluster", "then changed"],
)
def test_a_manifest_that_is_not_signed_for_the_cluster_ends_the_boot(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    servers: Servers,
    key: SigningKey,
    signed: Callable[[SigningKey, SigningKey, Manifest], bytes],
) -> None:
    other = SigningKey(tmp_path_factory.mktemp("other"))
    done = without_agent(tmp_path, servers, key, signed(key, other, manifest_of(facts())))
    assert (done.returncode, (tmp_path / "home/agent").exists(), done.stderr) == (
        1,
        False,
        "the manifest of clusters/dev is not signed by the key of its base, or an old one was put back\n",
    )


@pytest.mark.parametrize(("version", "code"), [("1000", 0), ("1001", 1)])
def test_a_manifest_older_than_the_heads_ends_the_boot(
    tmp_path: Path, servers: Servers, key: SigningKey, version: str, code: int
) -> None:
    servers.documents["/latest/meta-data/tags/instance/corral:manifest"] = version.encode()
    assert without_agent(tmp_path, servers, key, key.document(manifest_of(facts()))).returncode == code


def test_where_a_later_up_has_taken_the_agent_away_the_manifests_comes(
    tmp_path: Path, servers: Servers, key: SigningKey
) -> None:
    newer = facts()
    old = packed("old.py")
    launched = replace(
        newer,
        public_key=key.public,
        bundle_key="clusters/dev/agent/old.tar.gz",
        bundle_sha256="0" * 64,
        library_key="clusters/dev/library/old.tar.gz",
        library_sha256=hashlib.sha256(old).hexdigest(),
    )
    servers.objects[f"/{newer.bucket}/clusters/dev/manifest.json"] = key.document(manifest_of(newer))
    servers.objects[f"/{newer.bucket}/{newer.bundle_key}"] = agent_bundle()
    servers.objects[f"/{newer.bucket}/{newer.library_key}"] = agent_library()
    done = fetch(tmp_path, servers, launched, held=False, library=old)
    left = json.loads((tmp_path / "home/boot.json").read_text())
    there = [(tmp_path / "home" / name).exists() for name in ("agent/corral", "library/boto3", "library/old.py")]
    assert (done.stderr, left["bundle_key"], left["library_key"], there) == (
        "",
        newer.bundle_key,
        newer.library_key,
        [True, True, False],
    )
