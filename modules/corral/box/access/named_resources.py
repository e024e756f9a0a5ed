"""The resources that a call names, of the services that `service_reference` lists. Hold the cloud's lock.

Which types a call is about is the reference's; this module finds their names in the call's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corral.box.access.managed_nodes import document_arn
from corral.box.access.service_reference import is_listed, resource_arn, resource_types
from corral.box.access.tagged_resources import TaggedResource, tag_context
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.box.images import IMAGES
from corral.box.service_linked_roles import service_linked_role_name

Fields = Mapping[str, Any]
Finder = Callable[[Call, Fields, str], Iterator[TaggedResource]]
_ANY = "*"
_LONGEST = 4  # variables of an ARN besides account and region: those of a listener's rule
# The parameter of calls about tags: any resource of the service, by its ARN.
_ARNS = ("ResourceArn", "resourceArn", "ResourceARN")


def named_resources(prefix: str, action: str, call: Call, fields: Fields, path: str) -> tuple[TaggedResource, ...]:
    """The resources of a call that requires this action; none if the action is about everything.

    A call that names no resource is about all of a type. Raises NotImplementedError for a type that is not found here.
    """
    if not is_listed(prefix) or not (types := resource_types(prefix, action)):
        return ()
    if (arn := next((str(fields[name]) for name in _ARNS if fields.get(name)), None)) is not None:
        return (TaggedResource(arn=_bare(arn)),)
    finders = [(kind, find) for kind in types if (find := _FINDERS.get((prefix, kind))) is not None]
    if not finders:
        raise NotImplementedError(f"the resource of {prefix}:{action} in a policy")
    found = tuple(one for _, find in finders for one in find(call, fields, path))
    return found or tuple(TaggedResource(arn=_any(prefix, kind, call.region)) for kind, _ in finders)


def _any(prefix: str, kind: str, region: str) -> str:
    return resource_arn(prefix, kind, region, *[_ANY] * _LONGEST)


def _bare(arn: str) -> str:
    """A log group's ARN as calls about tags are authorized: CloudWatch Logs User Guide, "Resources and operations"."""
    return arn.removesuffix(":*") if ":log-group:" in arn else arn


def _by_name(prefix: str, kind: str, *parameters: str) -> Finder:
    """Finds resources by the parameters that have their names, ARNs, or lists of these."""

    def find(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
        for name in _values(fields, parameters):
            yield TaggedResource(arn=name if name.startswith("arn:") else resource_arn(prefix, kind, call.region, name))

    return find


def _values(fields: Fields, parameters: tuple[str, ...]) -> Iterator[str]:
    """The values of parameters: JSON's, or a form's by flat names (`AlarmNames.member.1`)."""
    for key, value in fields.items():
        if key.partition(".member.")[0] in parameters and value:
            yield from map(str, value if isinstance(value, list) else (value,))


def _role(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    """The role with its tags and its boundary."""
    for name in _values(fields, ("RoleName",)):
        yield _iam_entity("role", call, fields, name, _iam().roles.values())
    for arn in _values(fields, ("PolicySourceArn", "RoleArn")):
        yield TaggedResource(arn=arn)
    if (service := fields.get("AWSServiceName")) is not None:
        name = service_linked_role_name(str(service), fields.get("CustomSuffix")) or _ANY
        path = f"aws-service-role/{service}/{name}"
        yield TaggedResource(arn=resource_arn("iam", "role", call.region, path))


def _instance_profile(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    for name in _values(fields, ("InstanceProfileName",)):
        yield _iam_entity("instance-profile", call, fields, name, _iam().instance_profiles.values())


def _policy(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    for name in _values(fields, ("PolicyArn", "PolicyName")):
        if name.startswith("arn:"):
            yield TaggedResource(arn=name)
        else:
            yield TaggedResource(arn=resource_arn("iam", "policy", call.region, _with_path(fields, name)))


def _iam_entity(kind: str, call: Call, fields: Fields, name: str, known: Any) -> TaggedResource:
    held = next((one for one in known if one.name == name), None)
    if held is None:
        return TaggedResource(arn=resource_arn("iam", kind, call.region, _with_path(fields, name)))
    held_tags = held.tags.values() if isinstance(held.tags, Mapping) else held.tags
    tags = {tag["Key"]: tag["Value"] for tag in held_tags}
    boundary = getattr(held, "permissions_boundary_arn", None)
    limited = {"iam:permissionsboundary": boundary} if boundary else {}
    return TaggedResource(arn=held.arn, context={**tag_context(tags, ("aws", "iam")), **limited})


def _with_path(fields: Fields, name: str) -> str:
    """The name after the path of a new entity."""
    return f"{str(fields.get('Path', '/')).strip('/')}/{name}".lstrip("/")


def _secret(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    """The secret's ARN, which ends in six random characters."""
    from moto.secretsmanager.models import secretsmanager_backends

    known = secretsmanager_backends[ACCOUNT][call.region].secrets.values()
    for name in _values(fields, ("SecretId", "Name")):
        held = next((one for one in known if name in (one.arn, one.name)), None)
        if held is not None:
            tags = {tag["Key"]: tag["Value"] for tag in held.tags or ()}
            yield TaggedResource(arn=held.arn, context=tag_context(tags, ("aws", "secretsmanager")))
        elif name.startswith("arn:"):
            yield TaggedResource(arn=name)
        else:
            yield TaggedResource(arn=resource_arn("secretsmanager", "Secret", call.region, f"{name}-AbCdEf"))


def _log_group(call: Call, fields: Fields, path: str) -> Iterator[TaggedResource]:
    """A group is authorized as one with a stream without a name. Source: elastic/apm-aws-lambda#526 quotes AWS."""
    for name in _values(fields, ("logGroupName", "logGroupIdentifier")):
        stream = str(fields.get("logStreamName", ""))
        group = name.partition(":log-group:")[2] or name
        yield TaggedResource(arn=resource_arn("logs", "log-stream", call.region, group.removesuffix(":*"), stream))


def _parameter(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    """A public parameter is of no account. The image of the box's machines stands for one of AWS's."""
    public = {image.parameter for image in IMAGES}
    if fields.get("ResourceType", "Parameter") != "Parameter":
        return
    for given in _values(fields, ("Name", "Names", "Path", "ResourceId")):
        owner = "" if given in public or given.startswith("/aws/") else ACCOUNT
        name = given if owner or given.startswith("/aws/") else f"/aws/service{given}"
        yield TaggedResource(arn=resource_arn("ssm", "parameter", call.region, name.strip("/"), account=owner))


def _document(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    """A document by its name. Commands and sessions have their own resources: `managed_nodes`."""
    for name in _values(fields, ("Name",)):
        yield TaggedResource(arn=document_arn(call, name))


def _budget(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    for name in (fields.get("BudgetName"), (fields.get("Budget") or fields.get("NewBudget") or {}).get("BudgetName")):
        if name:
            yield TaggedResource(arn=resource_arn("budgets", "budget", call.region, str(name)))


def _repository(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    for name in _values(fields, ("repositoryName", "repositoryNames")):
        owner = str(fields.get("registryId", ACCOUNT))
        yield TaggedResource(arn=resource_arn("ecr", "repository", call.region, name, account=owner))


def _balancing(kind: str) -> Finder:
    """What a call of Elastic Load Balancing names by ARN, with its tags, or creates by its name.

    Both generations of its API have this prefix; the box has the second.
    """
    start = f":{kind.rstrip('/')}/"

    def find(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
        named = ("LoadBalancerArn", "ListenerArn", "RuleArn", "TargetGroupArn", "ResourceArns")
        if "Name" in fields and call.action in ("CreateLoadBalancer", "CreateTargetGroup"):
            if kind in ("targetgroup", f"loadbalancer/{_TYPES[fields.get('Type', 'application')]}/"):
                yield TaggedResource(arn=resource_arn("elasticloadbalancing", kind, call.region, fields["Name"], _ANY))
            return
        for arn in _values(fields, named):
            if start in arn:
                yield TaggedResource(arn=arn, context=tag_context(_balancing_tags(call, arn), _BALANCING_SCOPES))

    return find


def _balancing_tags(call: Call, arn: str) -> Mapping[str, str]:
    from moto.elbv2.models import elbv2_backends

    found: Mapping[str, str] = elbv2_backends[ACCOUNT][call.region].tagging_service.get_tag_dict_for_resource(arn)
    return found


def _in_path(prefix: str, kind: str, before: str = "") -> Finder:
    """Finds what the path of a call has after a word, which is the kind if none is given: .../hostedzone/Z0123/rrset"""
    before = before or kind

    def find(call: Call, _: Fields, path: str) -> Iterator[TaggedResource]:
        parts = path.strip("/").split("/")
        if before in parts[:-1]:
            yield TaggedResource(arn=resource_arn(prefix, kind, call.region, parts[parts.index(before) + 1]))

    return find


def _iam() -> Any:
    from moto.iam.models import iam_backends

    return iam_backends[ACCOUNT]["aws"]


_TYPES = {"application": "app", "gateway": "gwy", "network": "net"}
_BALANCING_SCOPES = ("aws", "elasticloadbalancing")
_BALANCING_KINDS = (
    *(f"loadbalancer/{kind}/" for kind in _TYPES.values()),
    *(f"listener/{kind}" for kind in _TYPES.values()),
    *("listener-rule/app", "listener-rule/net", "targetgroup"),
)
_FINDERS: Mapping[tuple[str, str], Finder] = {
    ("aps", "workspace"): _in_path("aps", "workspace", "workspaces"),
    ("budgets", "budget"): _budget,
    ("cloudwatch", "alarm"): _by_name("cloudwatch", "alarm", "AlarmName", "AlarmNames"),
    ("ecr", "repository"): _repository,
    **{("elasticloadbalancing", kind): _balancing(kind) for kind in _BALANCING_KINDS},
    ("iam", "group"): _by_name("iam", "group", "GroupName"),
    ("iam", "instance-profile"): _instance_profile,
    ("iam", "policy"): _policy,
    ("iam", "role"): _role,
    ("iam", "user"): _by_name("iam", "user", "UserName"),
    ("logs", "log-group"): _log_group,
    ("logs", "log-stream"): _log_group,
    ("route53", "change"): _in_path("route53", "change"),
    ("route53", "healthcheck"): _in_path("route53", "healthcheck"),
    ("route53", "hostedzone"): _in_path("route53", "hostedzone"),
    ("secretsmanager", "Secret"): _secret,
    ("sns", "topic"): _by_name("sns", "topic", "TopicArn", "Name"),
    ("ssm", "document"): _document,
    ("ssm", "parameter"): _parameter,
    ("sts", "role"): _role,
}
