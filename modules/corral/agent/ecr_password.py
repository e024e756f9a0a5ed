"""The password for the cluster's registries in ECR, by the job role: the program `/opt/corral/bin/ecr-password`.

enroot runs it in each pull, as the file that `render/containers` renders says; people run it for other programs. It
uses the job role wherever it runs, and neither keys nor profiles of the user's own.
Source: ECR API reference, GetAuthorizationToken: good for 12 hours, at all registries that the caller may pull from.
"""

import base64
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.model.cluster import ClusterPlan

USER = "AWS"  # the user's name at every registry of ECR
_CONNECT_S, _READ_S, _ATTEMPTS = 5, 10, 3  # a pull waits for the password


class RegistryError(AgentError):
    """There is no password."""


def check_registries(plan: ClusterPlan) -> None:
    """Raise RegistryError if jobs of this cluster may not log in to ECR."""
    if not plan.jobs.registries:
        raise RegistryError(
            "jobs of this cluster may not log in to ECR: add the repository to jobs.registries"
            " in the environment's file"
        )


def ecr_client(region: str, uri: str) -> Any:
    """A client of ECR with the job role, whose credentials the machine serves at `uri`. Raises RegistryError."""
    import boto3
    from botocore.config import Config
    from botocore.utils import ContainerMetadataFetcher

    with aws_errors_as(RegistryError, f"get the job role's credentials from {uri}"):
        held = ContainerMetadataFetcher().retrieve_full_uri(uri)
        return boto3.client(
            "ecr",
            region_name=region,
            aws_access_key_id=held["AccessKeyId"],
            aws_secret_access_key=held["SecretAccessKey"],
            aws_session_token=held["Token"],
            config=Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"total_max_attempts": _ATTEMPTS}),
        )


def ecr_password(client: Any) -> str:
    """Return the password of the user AWS at registries of ECR, good for 12 hours. Raises RegistryError."""
    with aws_errors_as(RegistryError, "get a password from ECR"):
        answer = client.get_authorization_token()
    return password_in(answer["authorizationData"][0]["authorizationToken"])


def password_in(token: str) -> str:
    """Return the password in a token of ECR, which is `AWS:PASSWORD` in base64. Raises RegistryError."""
    try:
        user, _, password = base64.b64decode(token, validate=True).decode("ascii").partition(":")
    except ValueError:  # the error's own text would contain a part of the token
        user = password = ""
    if user != USER or not password:
        raise RegistryError("ECR's token is not a user's name and a password")
    return password
