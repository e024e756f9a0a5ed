"""A key that signs manifests, as KMS does it: made and used by openssl."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

from corral.model.manifest import Manifest, SignedManifest, statement
from corral.model.serialization import to_json


class SigningKey:
    """A key pair. `public`: in PEM."""

    def __init__(self, directory: Path) -> None:
        self._private = directory / "private.pem"
        made = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self._private]
        subprocess.run(made, check=True, capture_output=True)
        shown = ["openssl", "pkey", "-in", self._private, "-pubout"]
        self.public = subprocess.run(shown, check=True, capture_output=True, text=True).stdout

    def document(self, manifest: Manifest, prefix: str = "clusters/dev") -> bytes:
        """manifest.json, signed by this key for the cluster of this prefix."""
        text = to_json(manifest)
        command = ["openssl", "dgst", "-sha256", "-sign", self._private]
        signature = subprocess.run(command, input=statement(prefix, text), check=True, capture_output=True).stdout
        return to_json(SignedManifest(manifest=text, signature=base64.b64encode(signature).decode())).encode()
