"""Parts of URLs: buckets of S3, repositories of ECR, workspaces of Amazon Managed Service for Prometheus."""

import re
from dataclasses import dataclass

from corral.model.partitions import partition_of

_NAME = r"(?=.{2,256}$)[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
# Source: ECR API reference, CreateRepository, repositoryName; ECR User Guide, "Private registry".
_REPOSITORY = re.compile(rf"(?:(\d{{12}})\.dkr\.ecr\.([a-z0-9-]+)\.([a-z.]+)/)?({_NAME})")
# Source: OCI distribution specification, "Pulling manifests"; ECR takes sha256 alone.
_VERSION = re.compile(r"(.+?)(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(sha256:[0-9a-f]{64}))")
WORKSPACE = r"ws-[A-Za-z0-9-]{1,61}"
# The public host, that for FIPS, and those of a VPC endpoint. Source: Amazon Managed Service for Prometheus User Guide,
# "Ingest metrics to your workspace", "Using with interface VPC endpoints".
_REMOTE_WRITE = re.compile(
    r"https://(?:vpce-[a-z0-9-]+\.)?aps-workspaces(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?([a-z.]+)"
    rf"/workspaces/({WORKSPACE})/api/v1/remote_write"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository of ECR. `account`, `region`, `domain`: of its host; None if only its name is stated."""

    account: str | None
    region: str | None
    domain: str | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWriteUrl:
    """The parts of a workspace's URL for remote write."""

    region: str
    domain: str
    workspace: str


def bucket_of(url: str) -> str:
    """The bucket of `s3://bucket` or `s3://bucket/prefix`."""
    return url.removeprefix("s3://").split("/")[0]


def parse_repository(text: str) -> Repository | None:
    """The repository of `team/train` or `ACCOUNT.dkr.ecr.REGION.DOMAIN/team/train`; None for anything else."""
    if (found := _REPOSITORY.fullmatch(text)) is None:
        return None
    account, region, domain, name = found.groups()
    return Repository(account=account, region=region, domain=domain, name=name)


def parse_image(text: str) -> tuple[str, str] | None:
    """The repository of `team/train:1` or `team/train@sha256:...`, and the tag or digest; None for anything else."""
    if (found := _VERSION.fullmatch(text)) is None:
        return None
    repository, tag, digest = found.groups()
    return repository, tag or digest


def registry_host(account: str, region: str) -> str:
    """Return the host of an account's registry, as image references name it."""
    return f"{account}.dkr.ecr.{region}.{partition_of(region).dns_suffix}"


def parse_remote_write(text: str) -> RemoteWriteUrl | None:
    """The parts of `https://aps-workspaces.REGION.DOMAIN/workspaces/ws-.../api/v1/remote_write`, or None."""
    if (found := _REMOTE_WRITE.fullmatch(text)) is None:
        return None
    region, domain, workspace = found.groups()
    return RemoteWriteUrl(region=region, domain=domain, workspace=workspace)


def remote_write_url(workspace: str, region: str) -> str:
    """The public URL to which a workspace's series are written."""
    host = f"aps-workspaces.{region}.{partition_of(region).dns_suffix}"
    return f"https://{host}/workspaces/{workspace}/api/v1/remote_write"
