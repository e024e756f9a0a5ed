"""The ids of created resources.

Serialised, this is deployed.json, which machines read next to cluster.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LOG_STREAM = "events"  # in the cluster's log group: the head writes no other
LOGIN_STREAMS = "login-"  # the login nodes' streams, one each, start with it


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFacts:
    """What a machine needs to find everything else, and to believe it: keys and hashes of the agent and its library.

    `public_key`: of the key that signs the manifests, in PEM.
    """

    cluster: str
    region: str
    bucket: str
    prefix: str
    bundle_key: str
    bundle_sha256: str
    library_key: str
    library_sha256: str
    public_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedTemplate:
    """A launch template: the version that new instances of its offer use."""

    id: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedLustre:
    """A Lustre file system as clients mount it: `<dns_name>@tcp:/<mount_name>`."""

    id: str
    dns_name: str
    mount_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The ids of a deployed cluster and of the parts of its base that machines use. `templates` is keyed by offer.

    `people_role`: what the job role is for jobs, on login nodes; None without them.
    """

    account: str
    region: str
    vpc_id: str
    bucket: str
    key_arn: str
    subnets: Mapping[str, str]
    security_group: str
    image_id: str
    head_interface: str
    state_volume: str
    templates: Mapping[str, DeployedTemplate]
    placement_groups: Mapping[str, str]
    lustre: Mapping[str, DeployedLustre]
    home: str | None
    hosted_zone: str
    munge_secret: str
    log_group: str
    topic: str
    job_role: str
    ends_at: str | None
    people_role: str | None = None
