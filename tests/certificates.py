"""A certificate that a server of a test shows, and that its clients trust: its own authority, made by openssl."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def make_certificate(directory: Path, hosts: Sequence[str]) -> Path:
    """Writes key.pem and cert.pem for these hosts; returns the directory."""
    names = ",".join(f"DNS:{host}" for host in hosts)
    words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test")
    files = ("-addext", f"subjectAltName={names}", "-keyout", directory / "key.pem", "-out", directory / "cert.pem")
    subprocess.run([*words, *files], check=True, capture_output=True)
    return directory
