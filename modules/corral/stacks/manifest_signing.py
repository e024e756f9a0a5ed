"""Sign the manifest of a cluster with the key of its base, by KMS: the private key never leaves it.

Pulumi has no resource for a signature, so the program calls KMS. The version of a manifest only rises, and stays while
its files do, so that an `up` without changes has none.
"""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from typing import Any

from corral.inventory.scan import open_session
from corral.model.manifest import MANIFEST, Manifest, SignedManifest, statement
from corral.model.serialization import from_json, to_json
from corral.model.signing import SIGNING_ALGORITHM, signing_alias


def sign_next(region: str, base: str, prefix: str, bucket: str, manifest: Manifest) -> str:
    """Return manifest.json for these files, as the successor of the one in the bucket. `manifest`: of any version."""
    session = open_session(region)
    former = read_signed(session.client("s3"), bucket, prefix)
    return sign(session.client("kms"), base, prefix, successor(manifest, former, int(time.time())))


def sign(kms: Any, base: str, prefix: str, manifest: Manifest) -> str:
    """Return manifest.json: the manifest and its signature by the base's key."""
    text = to_json(manifest)
    signature = kms.sign(
        KeyId=signing_alias(base),
        Message=statement(prefix, text),
        MessageType="RAW",
        SigningAlgorithm=SIGNING_ALGORITHM,
    )["Signature"]
    return to_json(SignedManifest(manifest=text, signature=base64.b64encode(signature).decode()))


def successor(manifest: Manifest, former: Manifest | None, now: int) -> Manifest:
    """Return the manifest in its version: the former's if it has the same files, else the time, but a higher one."""
    if former is None:
        return replace(manifest, version=now)
    if replace(manifest, version=former.version) == former:
        return former
    return replace(manifest, version=max(now, former.version + 1))


def read_signed(s3: Any, bucket: str, prefix: str) -> Manifest | None:
    """Return the manifest in the bucket; None without one that this version can read."""
    try:
        content = s3.get_object(Bucket=bucket, Key=f"{prefix}/{MANIFEST}")["Body"].read()
        return from_json(Manifest, from_json(SignedManifest, content.decode()).manifest)
    except (s3.exceptions.NoSuchKey, ValueError):
        return None
