"""The settings that both programs share: the stack's config, the provider, the account, retained resources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from corral.catalog.loader.suggestions import UnknownName
from corral.model.tags import BASE_TAG, KEEP_TAG
from corral.render.nearest_release import ReleaseError
from corral.spec.spec_errors import SpecErrors
from corral.stacks.admission import AdmissionError
from corral.stacks.container_sources import SourceError


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn user errors in this block into pulumi.RunError, which Pulumi shows without a traceback."""
    try:
        yield
    except (SpecErrors, UnknownName, ReleaseError, AdmissionError, SourceError) as error:
        raise pulumi.RunError(str(error)) from None


def project_dir() -> Path:
    """The project's directory: Pulumi runs a program in its own, `stacks/base` or `stacks/cluster`."""
    return Path.cwd().parent.parent


def stack_config(project: str) -> Mapping[str, Any]:
    """Return the region and the spec from this stack's config, by full key."""
    region, spec = pulumi.Config("aws").get("region"), pulumi.Config(project).get("spec")
    found: dict[str, Any] = {} if region is None else {"aws:region": region}
    if spec is not None:
        found[f"{project}:spec"] = _value(spec)
    return found


def region() -> str:
    """The region of this stack. Raises pulumi.RunError if the config has none."""
    return pulumi.Config("aws").require("region")


def provider(tags: Mapping[str, str]) -> aws.Provider:
    """The one explicit provider of a program. An explicit provider does not read `aws:region`, so it is passed."""
    return aws.Provider("aws", region=region(), default_tags=aws.ProviderDefaultTagsArgs(tags=tags))


def account_id(through: aws.Provider) -> str:
    """The account that the provider's credentials belong to."""
    return str(aws.get_caller_identity(opts=pulumi.InvokeOptions(provider=through)).account_id)


def retained_ids(base: str, through: aws.Provider) -> Mapping[str, str]:
    """Return the ids of resources that an earlier deployment of this base retained, by keep tag.

    If the state still holds these resources, the ids are the same and nothing changes. Deleted resources, which the
    tagging API lists for hours, are left out: an import of one would fail. So are those that only carry the tags.
    Raises pulumi.RunError if two resources have the same value.
    """
    found = aws.resourcegroupstaggingapi.get_resources(
        tag_filters=[
            aws.resourcegroupstaggingapi.GetResourcesTagFilterArgs(key=BASE_TAG, values=[base]),
            aws.resourcegroupstaggingapi.GetResourcesTagFilterArgs(key=KEEP_TAG, values=[]),
        ],
        opts=pulumi.InvokeOptions(provider=through),
    )
    retained: dict[str, str] = {}
    for mapping in _own(base, found.resource_tag_mapping_lists):
        word, name = mapping.tags[KEEP_TAG], _id_of(mapping.resource_arn)
        if retained.setdefault(word, name) != name:
            raise pulumi.RunError(
                f"both {retained[word]} and {name} are tagged as the {word} of base {base} - untag one"
            )
    return retained


def public_key(key_id: pulumi.Output[str], through: aws.Provider) -> pulumi.Output[str]:
    """Return the public half of a KMS key, in PEM."""
    found = aws.kms.get_public_key_output(key_id=key_id, opts=pulumi.InvokeOutputOptions(provider=through))
    pem: pulumi.Output[str] = found.public_key_pem
    return pem


def _own(base: str, mappings: Sequence[Any]) -> list[Any]:
    if not mappings:
        return []  # a first deployment does without boto3
    from corral.inventory.existing import exists
    from corral.inventory.kept_proof import kept_problem
    from corral.inventory.scan import open_session

    session = open_session(region())
    arns = {one.resource_arn for one in mappings if exists(session, one.resource_arn)}
    own = {arn for arn in arns if kept_problem(session, base, arn) is None}
    return [one for one in mappings if one.resource_arn in own]


def _value(text: str) -> Any:
    """The value of a setting: Pulumi passes objects as JSON, text unchanged, and a missing value as empty text."""
    try:
        return json.loads(text)
    except ValueError:
        return text or None


def _id_of(arn: str) -> str:
    """The id that Pulumi knows the resource of this ARN by: its last part."""
    return arn.rpartition(":")[2].rpartition("/")[2]
