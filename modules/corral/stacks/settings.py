"""What both programs need before they can begin: their spec from the stack's config, the provider, the account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws


def spec_object(project: str) -> Mapping[str, Any]:
    """The `<project>:spec` of this stack's config. Raises pulumi.RunError where there is none."""
    spec = pulumi.Config(project).get_object("spec")
    if not isinstance(spec, dict):
        raise pulumi.RunError(f"Pulumi.{pulumi.get_stack()}.yaml: {project}:spec is missing - see the shipped `dev`")
    return spec


def region() -> str:
    """The region of this stack. Raises pulumi.RunError where the config names none."""
    return pulumi.Config("aws").require("region")


def provider(tags: Mapping[str, str]) -> aws.Provider:
    """The one explicit provider of a program. An explicit provider does not read `aws:region`, so it is passed."""
    return aws.Provider("aws", region=region(), default_tags=aws.ProviderDefaultTagsArgs(tags=tags))


def account_id(through: aws.Provider) -> str:
    """The account that the provider's credentials belong to."""
    return str(aws.get_caller_identity(opts=pulumi.InvokeOptions(provider=through)).account_id)


def kept_ids(base: str, through: aws.Provider) -> Mapping[str, str]:
    """What an earlier life of this base kept, found by its tags: `corral:keep` word to the resource's id.

    A base whose state still holds these resources finds the same ids, which changes nothing.
    Raises pulumi.RunError where two resources claim to be the same thing.
    """
    found = aws.resourcegroupstaggingapi.get_resources(
        tag_filters=[
            aws.resourcegroupstaggingapi.GetResourcesTagFilterArgs(key="corral:base", values=[base]),
            aws.resourcegroupstaggingapi.GetResourcesTagFilterArgs(key="corral:keep", values=[]),
        ],
        opts=pulumi.InvokeOptions(provider=through),
    )
    kept: dict[str, str] = {}
    for mapping in found.resource_tag_mapping_lists:
        word, name = mapping.tags["corral:keep"], _id_of(mapping.resource_arn)
        if kept.setdefault(word, name) != name:
            raise pulumi.RunError(f"both {kept[word]} and {name} are tagged as the {word} of base {base} - untag one")
    return kept


def _id_of(arn: str) -> str:
    """The id that Pulumi knows the resource of this ARN by: its last part."""
    return arn.rpartition(":")[2].rpartition("/")[2]
