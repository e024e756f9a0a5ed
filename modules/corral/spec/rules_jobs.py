"""Rules about what jobs may use: buckets, and secrets by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.spec.cluster import BucketSpec, JobsSpec
from corral.spec.errors import Finding, Loc
from corral.spec.rules_names import s3_problem
from corral.spec.rules_tags import looks_secret

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATTERNS = frozenset("*?$")  # stand for anything in an ARN of a policy. Source: IAM User Guide, "Resource"
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")  # Secrets Manager API reference, CreateSecret, Name
_OURS = ("AWS_", "SLURM", "NCCL_", "FI_", "LD_", "PATH", "HOME", "USER", "SHELL", "MASTER_", "CORRAL_")


def check(jobs: JobsSpec) -> Iterator[Finding]:
    """What is wrong with these."""
    for number, bucket in enumerate(jobs.buckets):
        yield from _check_bucket(("jobs", "buckets", number, "s3"), bucket, jobs.buckets[:number])
    for variable, secret in jobs.secrets.items():
        if message := _variable_problem(variable) or _secret_problem(secret):
            yield Finding(("jobs", "secrets", variable), message)


def _check_bucket(loc: Loc, bucket: BucketSpec, earlier: tuple[BucketSpec, ...]) -> Iterator[Finding]:
    if message := s3_problem(bucket.s3):
        yield Finding(loc, message)
    elif _PATTERNS & set(bucket.s3):
        wide = "which a policy takes for more than this one place"
        yield Finding(loc, f"{bucket.s3!r} has * or ? or $ in it, {wide} - name a prefix without them")
    elif any(bucket.s3.rstrip("/") == other.s3.rstrip("/") for other in earlier):
        yield Finding(loc, f"{bucket.s3!r} is listed twice - keep one")


def _variable_problem(name: str) -> str | None:
    if not _VARIABLE.fullmatch(name):
        return f"{name!r} is not the name of an environment variable - write it like HF_TOKEN"
    if name.startswith(_OURS):
        return f"{name!r} belongs to the system, to Slurm or to corral - use another variable"
    return None


def _secret_problem(name: str) -> str | None:
    if looks_secret(name):
        return "looks like the secret itself - keep that in Secrets Manager and write its name here"
    if not _SECRET.fullmatch(name):
        return f"{name!r} is not the name of a secret - letters, digits and / _ + = . @ - only"
    return None
