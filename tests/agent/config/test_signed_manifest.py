"""A machine believes a manifest that the base's key has signed for its cluster, and no older one again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.signed_manifest import ManifestError, remember_version, seen_version, signed_manifest
from corral.model.manifest import Manifest, SignedManifest
from corral.model.serialization import to_json
from signing_keys import SigningKey

PREFIX = "clusters/dev"
MANIFEST = Manifest(
    version=1000, files={"cluster.json": "0" * 64}, bundle="a", bundle_sha256="1", library="l", library_sha256="2"
)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey(tmp_path_factory.mktemp("other"))


def test_a_manifest_signed_by_the_bases_key_is_believed(key: SigningKey) -> None:
    assert signed_manifest(key.document(MANIFEST), PREFIX, key.public, 1000) == MANIFEST


def test_a_manifest_signed_by_another_key_is_not(key: SigningKey, other: SigningKey) -> None:
    with pytest.raises(ManifestError, match=r"clusters/dev is not signed by the key of its base"):
        signed_manifest(other.document(MANIFEST), PREFIX, key.public, 0)


def test_a_manifest_of_another_cluster_is_not(key: SigningKey) -> None:
    with pytest.raises(ManifestError, match="is not signed"):
        signed_manifest(key.document(MANIFEST, "clusters/prod"), PREFIX, key.public, 0)


def test_a_changed_manifest_is_not(key: SigningKey) -> None:
    signed = key.document(MANIFEST).replace(b'\\"bundle\\": \\"a\\"', b'\\"bundle\\": \\"b\\"')
    assert signed != key.document(MANIFEST)
    with pytest.raises(ManifestError, match="is not signed"):
        signed_manifest(signed, PREFIX, key.public, 0)


@pytest.mark.parametrize("signature", ["", "AAAA", "not base64!"])
def test_a_manifest_without_a_signature_is_not(key: SigningKey, signature: str) -> None:
    signed = to_json(SignedManifest(manifest=to_json(MANIFEST), signature=signature)).encode()
    with pytest.raises(ManifestError):
        signed_manifest(signed, PREFIX, key.public, 0)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"files": {}}', to_json(MANIFEST).encode()])
def test_what_is_no_signed_manifest_is_not(key: SigningKey, content: bytes) -> None:
    with pytest.raises(ManifestError, match="clusters/dev has no signature"):
        signed_manifest(content, PREFIX, key.public, 0)


def test_an_older_manifest_is_not_believed_again(key: SigningKey) -> None:
    with pytest.raises(ManifestError, match="has version 1000, and 1001 was deployed later"):
        signed_manifest(key.document(MANIFEST), PREFIX, key.public, 1001)


def test_the_highest_version_is_remembered(tmp_path: Path) -> None:
    for version in (1000, 1002, 1001):
        remember_version(version, tmp_path)
    assert seen_version(tmp_path / "var/lib/corral/manifest-version") == 1002


def test_a_new_cluster_has_seen_none(tmp_path: Path) -> None:
    assert seen_version(tmp_path / "manifest-version") == 0


def test_a_signature_of_the_same_text_is_the_same(key: SigningKey) -> None:
    assert key.document(MANIFEST) == key.document(MANIFEST)
    assert key.document(MANIFEST) != key.document(replace(MANIFEST, version=1001))
