"""Rules about what jobs may access: buckets, repositories of images, and secrets by name; and about declared runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from corral.model.partitions import partition_of
from corral.model.urls import parse_image, parse_repository
from corral.spec.models.cluster import BucketSpec, JobsSpec
from corral.spec.rules.name_rules import s3_problem
from corral.spec.rules.tag_rules import looks_secret
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")  # Secrets Manager API reference, CreateSecret, Name
_RUN = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]{0,62}")
_MOST_RUNS = 16  # each is some series of the head, and takes up to a second to forecast
_OURS = ("AWS_", "SLURM", "NCCL_", "FI_", "LD_", "PATH", "HOME", "USER", "SHELL", "MASTER_", "CORRAL_")


def check(jobs: JobsSpec, region: str) -> Iterator[SpecFinding]:
    """Yield findings about buckets, repositories, secrets and runs."""
    for number, repository in enumerate(jobs.registries):
        loc: Loc = ("jobs", "registries", number)
        if problem := _repository_problem(repository, region):
            yield problem.at(loc)
        elif parse_repository(repository) in map(parse_repository, jobs.registries[:number]):
            yield SpecFinding(loc, f"{repository!r} is listed twice", "keep one")
    for number, image in enumerate(jobs.images):
        if problem := _image_problem(image, jobs.registries):
            yield problem.at(("jobs", "images", number))
        elif image in jobs.images[:number]:
            yield SpecFinding(("jobs", "images", number), f"{image!r} is listed twice", "keep one")
    for number, bucket in enumerate(jobs.buckets):
        yield from _check_bucket(("jobs", "buckets", number, "s3"), bucket, jobs.buckets[:number])
    for variable, secret in jobs.secrets.items():
        if problem := _variable_problem(variable) or secret_name_problem(secret):
            yield problem.at(("jobs", "secrets", variable))
    for name, path in jobs.runs.items():
        if problem := _run_problem(name, path):
            yield problem.at(("jobs", "runs", name))
    if len(jobs.runs) > _MOST_RUNS:
        yield SpecFinding(("jobs", "runs"), f"{len(jobs.runs)} runs are too many", f"declare {_MOST_RUNS} or fewer")


def _check_bucket(loc: Loc, bucket: BucketSpec, earlier: tuple[BucketSpec, ...]) -> Iterator[SpecFinding]:
    if problem := s3_problem(bucket.s3):
        yield problem.at(loc)
    elif any(bucket.s3.rstrip("/") == other.s3.rstrip("/") for other in earlier):
        yield SpecFinding(loc, f"{bucket.s3!r} is listed twice", "keep one")


def _repository_problem(text: str, region: str) -> SpecProblem | None:
    found, domain = parse_repository(text), partition_of(region).dns_suffix
    if found is None:
        return SpecProblem(
            f"{text!r} is not an ECR repository",
            f"write it like team/train or 123456789012.dkr.ecr.{region}.{domain}/team/train, without a tag",
        )
    if found.region not in (None, region):
        return SpecProblem(
            f"{text!r} is in {found.region}, and the jobs' role has no access to other regions",
            f"replicate it to {region}",
        )
    if found.domain not in (None, domain):
        return SpecProblem(f"{text!r} is not a host of {region}", f"its hosts end in {domain}")
    return None


def _image_problem(text: str, repositories: tuple[str, ...]) -> SpecProblem | None:
    found = parse_image(text)
    if found is None or parse_repository(found[0]) is None:
        return SpecProblem(f"{text!r} is not an image in ECR", "write it like team/train:1 or team/train@sha256:...")
    if found[0] not in repositories:
        return SpecProblem(f"jobs may not pull from {found[0]!r}", f"add {found[0]} to jobs.registries")
    return None


def _variable_problem(name: str) -> SpecProblem | None:
    if not _VARIABLE.fullmatch(name):
        return SpecProblem(f"{name!r} is not the name of an environment variable", "write it like HF_TOKEN")
    if name.startswith(_OURS):
        return SpecProblem(f"{name!r} is reserved for the system, Slurm or corral", "use another variable")
    return None


def _run_problem(name: str, path: str) -> SpecProblem | None:
    if not _RUN.fullmatch(name):
        return SpecProblem(f"{name!r} is not a run's name", "use up to 63 letters, digits, dots and dashes")
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or PurePosixPath(path).suffix not in (".yaml", ".yml"):
        return SpecProblem(
            f"{path!r} is not a run file of the project",
            "write its path from the project's directory, like runs/llama3-8b.yaml",
        )
    return None


def secret_name_problem(name: str) -> SpecProblem | None:
    """Return why this is not the name of a secret; None if it is."""
    if looks_secret(name) or "://" in name:  # a webhook is its URL
        return SpecProblem("looks like the secret itself", "store it in Secrets Manager and use its name here")
    if not _SECRET.fullmatch(name):
        return SpecProblem(f"{name!r} is not a secret's name", "use letters, digits and / _ + = . @ - only")
    return None
