"""Believe a manifest: it is signed by the base's key, for this cluster, and not older than one that was seen.

Machines run as root what the manifest names, so who may write to the bucket must not be who decides. openssl is on
every image that has root certificates, whose package depends on it.
Sources: KMS API Reference, "Sign" (RSASSA_PKCS1_V1_5_SHA_256, RAW); openssl-dgst(1).
"""

import base64
import binascii
import subprocess
import tempfile
from pathlib import Path

from corral.agent.config_store import StoreError
from corral.agent.file_install import Placement, install
from corral.model.manifest import Manifest, SignedManifest, statement
from corral.model.serialization import from_json

SEEN = Path("/var/lib/corral/manifest-version")  # on the state volume, which outlives the head
_VERIFIED = "Verified OK"


class ManifestError(StoreError):
    """A manifest must not be believed."""


def signed_manifest(content: bytes, prefix: str, public_key: str, seen: int) -> Manifest:
    """Return the manifest in manifest.json.

    `public_key`: the base's, in PEM. `seen`: the highest version that is known. Raises ManifestError if it is not
    signed by this key for this prefix, or is older.
    """
    try:
        signed = from_json(SignedManifest, content.decode())
        signature = base64.b64decode(signed.signature, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ManifestError(f"the manifest of {prefix} has no signature: {error}") from error
    if not _is_signed(statement(prefix, signed.manifest), signature, public_key):
        raise ManifestError(
            f"the manifest of {prefix} is not signed by the key of its base: somebody else wrote it, or the base has"
            " another key since this machine was launched - run `corral up`, then replace the machine"
        )
    manifest = from_json(Manifest, signed.manifest)
    if manifest.version < seen:
        raise ManifestError(
            f"the manifest of {prefix} has version {manifest.version}, and {seen} was deployed later: somebody put an"
            " old one back - run `corral up`"
        )
    return manifest


def seen_version(file: Path = SEEN) -> int:
    """Return the highest version that this machine has seen; 0 for none."""
    return int(file.read_text(encoding="ascii")) if file.exists() else 0


def remember_version(version: int, root: Path = Path("/"), path: Path = SEEN) -> None:
    """Remember a version that was believed, if it is the highest."""
    if version > seen_version(root / path.relative_to("/")):
        install((Placement(path=str(path), content=f"{version}\n".encode()),), root)


def _is_signed(text: bytes, signature: bytes, public_key: str) -> bool:
    with tempfile.TemporaryDirectory() as temporary:
        key, file = Path(temporary, "key.pem"), Path(temporary, "signature")
        key.write_text(public_key, encoding="ascii")
        file.write_bytes(signature)
        command = ["openssl", "dgst", "-sha256", "-verify", str(key), "-signature", str(file)]
        done = subprocess.run(command, input=text, capture_output=True, check=False)
    return done.returncode == 0 and done.stdout.decode().strip() == _VERIFIED
