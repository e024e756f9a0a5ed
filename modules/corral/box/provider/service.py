"""The gRPC service for Pulumi's engine: passes requests to `lifecycle`, and returns results and errors.

Source of the protocol: pulumi/proto/pulumi/provider.proto, v3.259.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from corral.box.provider import lifecycle
from corral.box.provider.aws_clients import ClientCache, RegionClients, box_endpoint
from corral.box.provider.configuration import ProviderSettings, UnknownArgument, parse_settings
from corral.box.provider.diff import Difference, DiffKind
from corral.box.provider.invokes import invoke
from corral.box.provider.property_validation import Autonaming, check_inputs
from corral.box.provider.protobuf_values import from_struct, is_unknown, to_struct
from corral.box.provider.provider_errors import NotFound, ProviderError, describe_error, translate_errors
from corral.box.provider.resource import Resource, ResourceUpdate, Timeouts
from corral.box.provider.tables import RESOURCES
from corral.box.state.directory import StateDirectory, default_directory
from corral.box.switches import NEW_BOX, switches_of

Kinds = provider_pb2.PropertyDiff.Kind
KINDS: Mapping[tuple[DiffKind, bool], Any] = {
    (DiffKind.ADDED, False): Kinds.ADD,
    (DiffKind.ADDED, True): Kinds.ADD_REPLACE,
    (DiffKind.DELETED, False): Kinds.DELETE,
    (DiffKind.DELETED, True): Kinds.DELETE_REPLACE,
    (DiffKind.CHANGED, False): Kinds.UPDATE,
    (DiffKind.CHANGED, True): Kinds.UPDATE_REPLACE,
}


class _Status(NamedTuple):
    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


class AwsService(provider_pb2_grpc.ResourceProviderServicer):
    """The package `aws` for one provider of a program."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._settings = ProviderSettings(region="us-east-1")
        self._clients = ClientCache("")
        self._switches = NEW_BOX

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The version that the SDK requires."""
        return plugin_pb2.PluginInfo(version=self._version)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Do nothing: the provider does not call the engine."""
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Do nothing: running calls finish, so that the state records their objects."""
        return empty_pb2.Empty()

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        """A schema without types: the SDK is already generated."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": "aws", "version": self._version}))

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Check the provider's arguments; unsupported ones are refused."""
        news = from_struct(request.news)
        failures = []
        if not is_unknown(news):
            try:
                parse_settings(news)
            except UnknownArgument as error:
                failures = [provider_pb2.CheckFailure(property=error.name, reason=str(error))]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Compare the provider's arguments; a change updates the provider, and resources show its effect."""
        changed = from_struct(request.old_inputs) != from_struct(request.news)
        return provider_pb2.DiffResponse(changes=_changes(changed))

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Set the region and the default tags."""
        with _answering(context, "configuring the aws provider"):
            self._settings = parse_settings(from_struct(request.args))
            self._clients = ClientCache(box_endpoint())
            self._switches = switches_of(StateDirectory(default_directory()).switches)
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Validate the inputs, and add automatic names and default tags."""
        resource = _resource(request.type, context)
        news, olds = from_struct(request.news), from_struct(request.olds)
        naming = Autonaming(name=request.name, seed=request.randomSeed, proposed=request.autonaming.proposed_name)
        inputs, errors = check_inputs(resource, news, olds, naming, self._settings.default_tags)
        failures = [provider_pb2.CheckFailure(property=error.path, reason=error.reason) for error in errors]
        return provider_pb2.CheckResponse(inputs=to_struct(inputs), failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The differing properties, and those of them that replace the resource."""
        resource = _resource(request.type, context)
        old, new = from_struct(request.olds), from_struct(request.news)
        with _answering(context, f"comparing {request.name}"):
            found = lifecycle.diff(resource, self._settings, old, new, request.ignoreChanges)
        return provider_pb2.DiffResponse(
            changes=_changes(bool(found)),
            diffs=sorted(_names(found)),
            replaces=sorted({one.path for one in found if one.replaces}),
            detailedDiff={one.path: provider_pb2.PropertyDiff(kind=KINDS[one.kind, one.replaces]) for one in found},
            hasDetailedDiff=True,
            deleteBeforeReplace=lifecycle.deletes_before_replace(resource, request.name, old, new),
        )

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Create an object; a preview returns what is known before."""
        resource = _resource(request.type, context)
        inputs = from_struct(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(lifecycle.preview(resource, inputs)))
        with _answering(context, f"creating {request.name}"):
            cloud = self._cloud(inputs, request.timeout or resource.timeouts.create)
            id, state = lifecycle.create(resource, cloud, self._settings, inputs)
        return provider_pb2.CreateResponse(id=id, properties=to_struct(state))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The current object; a response without an id if it does not exist."""
        resource = _resource(request.type, context)
        known, inputs = from_struct(request.properties), from_struct(request.inputs)
        try:
            with _answering(context, f"reading {request.name}", NotFound):
                cloud = self._cloud(known or inputs)
                state, inputs = lifecycle.read(resource, cloud, self._settings, request.id, known, inputs)
        except NotFound:
            return provider_pb2.ReadResponse()
        id = resource.id_of(state, request.id)
        return provider_pb2.ReadResponse(id=id, properties=to_struct(state), inputs=to_struct(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Update an object; a preview returns what is known before."""
        resource = _resource(request.type, context)
        old, new = from_struct(request.olds), from_struct(request.news)
        names = _names(lifecycle.diff(resource, self._settings, old, new, request.ignoreChanges))
        if request.preview:
            return provider_pb2.UpdateResponse(properties=to_struct(lifecycle.preview(resource, new, old, names)))
        with _answering(context, f"changing {request.name}"):
            change = ResourceUpdate(id=request.id, old=old, new=new, names=names)
            cloud = self._cloud(old, request.timeout or resource.timeouts.update)
            state = lifecycle.update(resource, cloud, self._settings, change)
        return provider_pb2.UpdateResponse(properties=to_struct(state))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Delete an object and wait until it is deleted."""
        resource = _resource(request.type, context)
        state = {**from_struct(request.old_inputs), **from_struct(request.properties)}
        with _answering(context, f"deleting {request.name}"):
            cloud = self._cloud(state, request.timeout or resource.timeouts.delete)
            lifecycle.delete(resource, cloud, request.id, state)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Call a function such as getParameter."""
        arguments = from_struct(request.args)
        with _answering(context, f"calling {request.tok}"):
            cloud = self._cloud(arguments)
            with translate_errors(cloud.url):
                answer = invoke(cloud, request.tok, arguments)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(answer))
        return response

    def _cloud(self, properties: Mapping[str, Any], timeout_s: float = Timeouts().create) -> RegionClients:
        region = properties.get("region") or self._settings.region
        return RegionClients(self._clients, region, timeout_s, self._switches)


def _changes(some: bool) -> Any:
    return provider_pb2.DiffResponse.DIFF_SOME if some else provider_pb2.DiffResponse.DIFF_NONE


def _names(found: list[Difference]) -> frozenset[str]:
    return frozenset(one.name for one in found)


def _resource(token: str, context: grpc.ServicerContext) -> Resource:
    if token not in RESOURCES:
        text = f"the box's stand-in for the aws provider does not support the resource type {token}"
        context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
    return RESOURCES[token]


@contextmanager
def _answering(context: grpc.ServicerContext, doing: str, *passed: type[Exception]) -> Iterator[None]:
    """A block whose errors reach the engine as a sentence; the errors `passed` reach the caller."""
    try:
        yield
    except passed:
        raise
    except lifecycle.InitFailed as error:
        _abort_half_made(context, doing, error)
    except ProviderError as error:
        context.abort(grpc.StatusCode.UNKNOWN, f"{doing}: {error}")
    except Exception as error:
        context.abort(grpc.StatusCode.INTERNAL, f"{doing}: {describe_error(error)}")


def _abort_half_made(context: grpc.ServicerContext, doing: str, error: lifecycle.InitFailed) -> NoReturn:
    text = f"{doing}: {error}"
    made = provider_pb2.ErrorResourceInitFailed(
        id=error.id, properties=to_struct(error.state), inputs=to_struct(error.state), reasons=[str(error)]
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=text)
    status.details.add().Pack(made)
    trailer = (("grpc-status-details-bin", status.SerializeToString()),)
    context.abort_with_status(_Status(grpc.StatusCode.UNKNOWN, text, trailer))
    raise AssertionError("abort raises")
