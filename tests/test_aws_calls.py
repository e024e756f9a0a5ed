"""The calls of AWS in corral's source, compared with botocore's service model.

Every call names an operation and parameters that exist, with those that are required, and so does every name of an
operation in a table. Every member that a module reads exists in an answer of the operations that it calls, or that a
module which it imports or which imports it calls. Which answer exactly is compared while tests run (answer_shapes.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from botocore import xform_name
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.session import get_session

MODULES = Path(__file__).parents[1] / "modules"
PACKAGES = ("agent", "inventory", "preflight", "engine")
SERVICES = (
    *("budgets", "cloudwatch", "ec2", "ecr", "efs", "elbv2", "fsx", "iam", "kms", "logs", "pricing", "route53", "s3"),
    *("resourcegroupstaggingapi", "secretsmanager", "service-quotas", "sns", "ssm", "sts"),
)
# How a name of an operation begins, as methods of boto3 have it.
OPERATION = re.compile(r"^(describe|list|get|head|put|create|delete|run|terminate|simulate)_[a-z0-9_]+$")
MEMBER = re.compile(r"^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
ENVELOPE = {"Error", "Code", "Message", "ResponseMetadata", "HTTPHeaders", "HTTPStatusCode"}
# Reads that are not of an answer of AWS: `module: key`, and what they are of.
SLURM, POLICY, ERROR = (
    "scontrol's and squeue's fields",
    "the elements of a policy, a JSON text",
    "a part of an error's code",
)
OTHERS: Mapping[str, tuple[str, ...]] = {
    SLURM: (
        *("agent.cluster.partition_state: PartitionName", "agent.cluster.partition_state: State"),
        *("agent.config.merge: Nodes", "agent.head_status: State", "agent.head_status: Reason"),
        *("agent.head_status: StartTime", "agent.head_status: JobArrayID", "agent.head_status: UserName"),
        "agent.head_status: Account",
        *("agent.head_status: Name", "agent.head_status: Partition", "agent.head_status: RestartCnt"),
        *("agent.head_status: NodeList", "agent.head_status: NumNodes", "agent.head_status: SubmitTime"),
        *("agent.job_evidence.slurm_record: AllocTRES", "agent.job_evidence.slurm_record: End"),
        *("agent.job_evidence.slurm_record: ExitCode", "agent.job_evidence.slurm_record: JobID"),
        *("agent.job_evidence.slurm_record: JobIDRaw", "agent.job_evidence.slurm_record: NNodes"),
        *("agent.job_evidence.slurm_record: NodeList", "agent.job_evidence.slurm_record: Partition"),
        *("agent.job_evidence.slurm_record: Start", "agent.job_evidence.slurm_record: State"),
        "agent.job_evidence.slurm_record: User",
        *("agent.metrics.slurm_jobs: Account", "agent.metrics.slurm_jobs: EligibleTime"),
        *("agent.metrics.slurm_jobs: JobArrayID", "agent.metrics.slurm_jobs: Partition"),
        *(
            "agent.metrics.slurm_jobs: Reason",
            "agent.metrics.slurm_jobs: RestartCnt",
            "agent.metrics.slurm_jobs: State",
        ),
    ),
    POLICY: (
        *("engine.bootstrap.bucket_steps: Statement", "engine.bootstrap.key_steps: Statement"),
        "preflight.key_check: Statement",
        *("preflight.key_check: Principal", "preflight.key_check: Effect", "preflight.key_check: Action"),
    ),
    ERROR: (
        *("inventory.deletion: NotFound", "preflight.aws_query_cache: NotFound", "preflight.aws_query_cache: NoSuch"),
        *("preflight.aws_query_cache: Malformed", "preflight.existing_vpc_facts: NotFound"),
    ),
    "a member of what a machine's credentials are served as": (
        *("agent.ecr_password: AccessKeyId", "agent.ecr_password: SecretAccessKey", "agent.ecr_password: Token"),
    ),
    "a header of HTTP": ("agent.local_http: Host", "agent.local_http: Authorization"),
    "a member of the error PermanentRedirect": ("engine.backend.bucket_backend: Region",),
    "a key of a map of the answer": ("inventory.untagged: TagKeyValue",),
    "parameters of a request to SNS, which the agent answers": (
        *("agent.alert_topic: Action", "agent.alert_topic: Subject"),
    ),
    "members of shapes of botocore itself": (
        *("agent.cluster.boto_parsing: Reservations", "agent.cluster.boto_parsing: Instances"),
    ),
}
NO_OPERATIONS = {"head_queries"}  # a module's name


@cache
def model(service: str) -> ServiceModel:
    return get_session().get_service_model(service)


@cache
def operations() -> Mapping[str, tuple[OperationModel, ...]]:
    """The operations of the services, by the name of boto3's method."""
    found: dict[str, tuple[OperationModel, ...]] = {}
    for service in SERVICES:
        for name in model(service).operation_names:
            method = xform_name(name)
            found[method] = (*found.get(method, ()), model(service).operation_model(name))
    return found


@cache
def sources() -> Mapping[str, ast.Module]:
    """The modules of the packages that call AWS, by their dotted names."""
    files = [file for package in PACKAGES for file in (MODULES / "corral" / package).rglob("*.py")]
    names = {file: ".".join(file.relative_to(MODULES).with_suffix("").parts) for file in sorted(files)}
    return {name.removesuffix(".__init__"): ast.parse(file.read_bytes()) for file, name in names.items()}


def service_of(receiver: ast.expr, tree: ast.Module) -> str | None:
    """The service of the client in this expression: of `client("fsx")`, and of a name that it is assigned to."""
    if isinstance(receiver, ast.Call):
        words = [one.value for one in receiver.args[:1] if isinstance(one, ast.Constant)]
        return next((str(word) for word in words if word in SERVICES), None)
    if isinstance(receiver, ast.Name):
        values = {service_of(value, tree) for name, value in assignments(tree) if name == receiver.id} - {None}
        return values.pop() if len(values) == 1 else receiver.id if receiver.id in SERVICES else None
    return None


@cache
def assignments(tree: ast.Module) -> tuple[tuple[str, ast.expr], ...]:
    """Each name and the call that is assigned to it, also of several in one statement."""
    return tuple(assigned(tree))


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                for name, value in zip(names, values, strict=False):
                    if isinstance(name, ast.Name) and isinstance(value, ast.Call):
                        yield name.id, value


def named_arguments(call: ast.Call) -> list[str]:
    return [word.arg for word in call.keywords if word.arg]


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, str | None]]:
    """The calls of operations by name: the call with the parameters, the operation, the service if it shows.

    A method is one of AWS's if an operation has its name and its arguments are named as AWS names them; `paginate`
    calls the operation of its paginator, and `call` of AwsQueryCache the one in its second argument.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, words = node.func.value, [one.value for one in node.args if isinstance(one, ast.Constant)]
        if node.func.attr in ("call", "list_all", "list_existing") and words and words[0] in SERVICES:
            if isinstance(node.args[1], ast.Constant):
                yield node, str(words[1]), str(words[0])
        elif node.func.attr == "paginate" and isinstance(of, ast.Call) and of.args:
            if isinstance(of.args[0], ast.Constant) and isinstance(of.func, ast.Attribute):
                yield node, str(of.args[0].value), service_of(of.func.value, tree)
        elif node.func.attr in operations() and not node.args:
            if all(MEMBER.match(name) for name in named_arguments(node)) and is_client(of, tree):
                yield node, node.func.attr, service_of(of, tree)
        elif service_of(of, tree) and named_arguments(node):
            yield node, node.func.attr, service_of(of, tree)


def is_client(receiver: ast.expr, tree: ast.Module) -> bool:
    """Whether this may be a boto3 client: it is one, or an attribute or parameter that holds one."""
    return service_of(receiver, tree) is not None or "client" in ast.dump(receiver) or isinstance(receiver, ast.Name)


def candidates(operation: str, service: str | None) -> list[OperationModel]:
    found = operations().get(operation, ())
    return [one for one in found if service is None or one.service_model.service_name == service]


def literal_differences(shape: Shape, value: ast.expr, path: str) -> Iterator[str]:
    """What a literal in a request has that its shape lacks: keys of dicts, and dicts in place of lists."""
    if isinstance(value, ast.Dict):
        if shape.type_name == "map":
            return
        if shape.type_name != "structure":
            yield f"{path} is a {shape.type_name}"
            return
        keys = [key.value for key in value.keys if isinstance(key, ast.Constant)]
        if None not in value.keys:
            yield from (f"{path} lacks {name}" for name in shape.required_members if name not in keys)
        for key, one in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant):
                if key.value not in shape.members:
                    yield f"{path} has no {key.value}"
                else:
                    yield from literal_differences(shape.members[key.value], one, f"{path}.{key.value}")
    elif isinstance(value, (ast.List, ast.Tuple)):
        if shape.type_name != "list":
            yield f"{path} is a list, not {shape.type_name}"
            return
        for one in value.elts:
            yield from literal_differences(shape.member, one, f"{path}[]")
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)) and shape.type_name == "list":
        yield from literal_differences(shape.member, value.elt, f"{path}[]")
    elif isinstance(value, ast.Constant):
        wanted = {str: ("string", "blob", "timestamp"), bool: ("boolean",), int: ("integer", "long", "float", "double")}
        allowed = wanted.get(type(value.value), ())
        if allowed and shape.type_name not in allowed:
            yield f"{path} is {value.value!r}, not {shape.type_name}"
        if shape.type_name == "string" and shape.enum and value.value not in shape.enum:
            yield f"{path} is {value.value!r}, which {shape.name} lacks"


def request_differences(operation: OperationModel, call: ast.Call, *, whole: bool) -> list[str]:
    """What is wrong with the named arguments of a call. `whole`: they are all of the request."""
    shape = operation.input_shape
    known = shape.members if shape else {}
    names = named_arguments(call)
    whole = whole and len(names) == len(call.keywords)
    lines = [f"no parameter {name}" for name in names if name not in known]
    lines += [f"lacks {name}" for name in (shape.required_members if shape and whole else ()) if name not in names]
    for word in call.keywords:
        if word.arg in known:
            lines += literal_differences(known[word.arg], word.value, word.arg)
    return lines


def call_differences(tree: ast.Module) -> list[str]:
    """One line for each call that no operation of its name accepts."""
    lines = []
    for call, name, service in calls(tree):
        found = candidates(name, service)
        whole = not (isinstance(call.func, ast.Attribute) and call.func.attr == "paginate")
        attempts = [request_differences(one, call, whole=whole) for one in found]
        if not found:
            lines.append(f"line {call.lineno}: {service or 'AWS'} has no {name}")
        elif all(attempts):
            lines.append(f"line {call.lineno}: {name}: {', '.join(attempts[0])}")
    return lines


@cache
def named_operations(tree: ast.Module) -> set[str]:
    """The operations that a module calls or names in a text."""
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {name for _, name, _ in calls(tree)} | {word for word in words if word in operations()}


@cache
def imported(tree: ast.Module) -> set[str]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    whole = {f"{node.module}.{alias.name}" for node in found for alias in node.names}
    return whole | {str(node.module) for node in found}


def related_operations(module: str) -> set[str]:
    """The operations of the module, of those that it imports, and of those that import it."""
    own = imported(sources()[module])
    related = {name for name, tree in sources().items() if name == module or name in own or module in imported(tree)}
    return {one for name in related for one in named_operations(sources()[name])}


@cache
def answer_members(operation: str) -> frozenset[str]:
    """The members of everything in the answers of the operations of this name."""
    return frozenset(
        name for one in operations().get(operation, ()) if one.output_shape for name in members(one.output_shape, ())
    )


def members(shape: Shape, above: tuple[str, ...]) -> Iterator[str]:
    if shape.name in above:
        return
    if shape.type_name == "structure":
        for name, one in shape.members.items():
            yield name
            yield from members(one, (*above, shape.name))
    elif shape.type_name == "list":
        yield from members(shape.member, (*above, shape.name))
    elif shape.type_name == "map":
        yield from members(shape.value, (*above, shape.name))


def keys_read(tree: ast.Module) -> Iterator[str]:
    """The key of each read by a literal that is named as AWS's members are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            key: ast.expr | None = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            key = node.args[0] if node.args else None
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            key = node.left
        else:
            continue
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and MEMBER.match(key.value):
            yield key.value


def modules_of(package: str) -> Iterator[tuple[str, ast.Module]]:
    return ((name, tree) for name, tree in sources().items() if name.startswith(f"corral.{package}"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_call_has_an_operation_and_parameters_of_the_model(package: str) -> None:
    assert [f"{name}, {line}" for name, tree in modules_of(package) for line in call_differences(tree)] == []


def test_two_hundred_calls_are_found_most_with_their_service() -> None:
    found = [service for tree in sources().values() for _, _, service in calls(tree)]
    assert (len(found) >= 200, sum(service is not None for service in found) >= 180) == (True, True)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_an_operation_is_one(package: str) -> None:
    words = {node.value for _, tree in modules_of(package) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named = {word for word in words if isinstance(word, str) and OPERATION.match(word)}
    assert sorted(named - operations().keys() - NO_OPERATIONS) == []


def unknown_reads(module: str) -> list[str]:
    """The members that the module reads and that no answer of its operations has."""
    known = {name for one in related_operations(module) for name in answer_members(one)} | ENVELOPE
    return [f"{module.removeprefix('corral.')}: {key}" for key in keys_read(sources()[module]) if key not in known]


def test_every_member_that_is_read_is_in_an_answer_of_the_model() -> None:
    unknown = {line for module in sources() for line in unknown_reads(module)}
    assert sorted(unknown) == sorted(line for lines in OTHERS.values() for line in lines)


def test_members_are_read_in_six_hundred_lines() -> None:
    assert sum(1 for tree in sources().values() for _ in keys_read(tree)) >= 500


@pytest.mark.parametrize(
    ("source", "difference"),
    [
        ("ec2.describe_instances(Filter=[])", "line 1: describe_instances: no parameter Filter"),
        ("ec2.describe_instance(Filters=[])", "line 1: ec2 has no describe_instance"),
        (
            "ec2.describe_instances(Filters=[{'Names': 'a', 'Values': []}])",
            "line 1: describe_instances: Filters[] has no Names",
        ),
        ("ec2.release_address(AllocationId=['a'])", "line 1: release_address: AllocationId is a list, not string"),
        ("client('kms').describe_key(Key='a')", "line 1: describe_key: no parameter Key, lacks KeyId"),
        ("kms = client('kms')\nkms.describe_key()", "line 2: describe_key: lacks KeyId"),
        ("ec2.get_paginator('describe_vpcs').paginate(Filter=[])", "line 1: describe_vpcs: no parameter Filter"),
        (
            "ec2.run_instances(MinCount='1', MaxCount=1)",
            "line 1: run_instances: MinCount is '1', not integer",
        ),
        (
            "ec2.create_tags(Resources=[], Tags=[{'Key': 'a'}], DryRun=1)",
            "line 1: create_tags: DryRun is 1, not boolean",
        ),
        ("aws.call('sts', 'get_caller_identity', Account='1')", "line 1: get_caller_identity: no parameter Account"),
        (
            "s3.put_bucket_versioning(Bucket='a', VersioningConfiguration={'Status': 'On'})",
            "line 1: put_bucket_versioning: VersioningConfiguration.Status is 'On', which BucketVersioningStatus lacks",
        ),
    ],
)
def test_a_call_that_the_model_refuses_is_found(source: str, difference: str) -> None:
    assert call_differences(ast.parse(source)) == [difference]


def test_reads_by_subscript_by_get_and_by_in_are_found() -> None:
    source = "answer['Vpcs'][0].get('VpcId', ''), 'Tags' in answer, answer['lower']"
    assert sorted(keys_read(ast.parse(source))) == ["Tags", "VpcId", "Vpcs"]
