"""The gRPC service that Pulumi's engine talks to: requests to `lifecycle`, results and errors back.

Neither resource types nor AWS calls are known here. Protocol: pulumi/proto/pulumi/provider.proto, v3.259.
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
from corral.box.provider.checks import Naming, checked
from corral.box.provider.cloud import Clients, Cloud, endpoint
from corral.box.provider.compare import Difference, Way
from corral.box.provider.configuration import UnknownSetting, configured
from corral.box.provider.invokes import invoked
from corral.box.provider.lifecycle import Settings
from corral.box.provider.problems import Gone, ProviderError, explained, told
from corral.box.provider.resource import Change, Resource
from corral.box.provider.tables import RESOURCES
from corral.box.provider.wire import from_struct, is_unknown, to_struct

Kinds = provider_pb2.PropertyDiff.Kind
KINDS: Mapping[tuple[Way, bool], Any] = {
    (Way.ADDED, False): Kinds.ADD,
    (Way.ADDED, True): Kinds.ADD_REPLACE,
    (Way.DELETED, False): Kinds.DELETE,
    (Way.DELETED, True): Kinds.DELETE_REPLACE,
    (Way.CHANGED, False): Kinds.UPDATE,
    (Way.CHANGED, True): Kinds.UPDATE_REPLACE,
}


class _Status(NamedTuple):
    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


class AwsService(provider_pb2_grpc.ResourceProviderServicer):
    """Package `aws` for one provider of a program."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._settings = Settings(region="us-east-1")
        self._clients = Clients("")

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The version that the SDK in use asks for."""
        return plugin_pb2.PluginInfo(version=self._version)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Nothing to do: the engine's address is not used."""
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Nothing to do: a call that runs is let finish, so that its object gets into the state."""
        return empty_pb2.Empty()

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        """A schema without types: the SDK is generated already."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": "aws", "version": self._version}))

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The provider's arguments; ones that the stand-in does not know are refused."""
        news = from_struct(request.news)
        failures = []
        if not is_unknown(news):
            try:
                configured(news)
            except UnknownSetting as error:
                failures = [provider_pb2.CheckFailure(property=error.name, reason=str(error))]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        """A change of arguments is an update of the provider; what it means is seen resource by resource."""
        changed = from_struct(request.old_inputs) != from_struct(request.news)
        return provider_pb2.DiffResponse(changes=_changes(changed))

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Takes region and default tags."""
        with _answering(context, "configuring the aws provider"):
            self._settings = configured(from_struct(request.args))
            self._clients = Clients(endpoint())
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The inputs with names and default tags, or what is wrong with them."""
        resource = _resource(request.type, context)
        news, olds = from_struct(request.news), from_struct(request.olds)
        naming = Naming(name=request.name, seed=request.randomSeed, proposed=request.autonaming.proposed_name)
        inputs, faults = checked(resource, news, olds, naming, self._settings.default_tags)
        failures = [provider_pb2.CheckFailure(property=fault.path, reason=fault.reason) for fault in faults]
        return provider_pb2.CheckResponse(inputs=to_struct(inputs), failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        """What differs, property by property, and what of it makes a new resource."""
        resource = _resource(request.type, context)
        old, new = from_struct(request.olds), from_struct(request.news)
        with _answering(context, f"comparing {request.name}"):
            found = lifecycle.diff(resource, self._settings, old, new, request.ignoreChanges)
        return provider_pb2.DiffResponse(
            changes=_changes(bool(found)),
            diffs=sorted(_names(found)),
            replaces=sorted({one.path for one in found if one.replaces}),
            detailedDiff={one.path: provider_pb2.PropertyDiff(kind=KINDS[one.way, one.replaces]) for one in found},
            hasDetailedDiff=True,
            deleteBeforeReplace=lifecycle.deletes_first(resource, request.name, old, new),
        )

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The new object, or in a preview what can be known of it."""
        resource = _resource(request.type, context)
        inputs = from_struct(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(lifecycle.previewed(resource, inputs)))
        with _answering(context, f"creating {request.name}"):
            id, state = lifecycle.create(resource, self._cloud(inputs), self._settings, inputs)
        return provider_pb2.CreateResponse(id=id, properties=to_struct(state))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The object as it is now; without an id where it is gone."""
        resource = _resource(request.type, context)
        known, inputs = from_struct(request.properties), from_struct(request.inputs)
        try:
            with _answering(context, f"reading {request.name}", Gone):
                cloud = self._cloud(known or inputs)
                state, inputs = lifecycle.read(resource, cloud, self._settings, request.id, known, inputs)
        except Gone:
            return provider_pb2.ReadResponse()
        id = resource.id_of(state, request.id)
        return provider_pb2.ReadResponse(id=id, properties=to_struct(state), inputs=to_struct(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The changed object, or in a preview what stays known of it."""
        resource = _resource(request.type, context)
        old, new = from_struct(request.olds), from_struct(request.news)
        names = _names(lifecycle.diff(resource, self._settings, old, new, request.ignoreChanges))
        if request.preview:
            return provider_pb2.UpdateResponse(properties=to_struct(lifecycle.previewed(resource, new, old, names)))
        with _answering(context, f"changing {request.name}"):
            change = Change(id=request.id, old=old, new=new, names=names)
            state = lifecycle.update(resource, self._cloud(old), self._settings, change)
        return provider_pb2.UpdateResponse(properties=to_struct(state))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Nothing; when it returns the object is gone."""
        resource = _resource(request.type, context)
        state = {**from_struct(request.old_inputs), **from_struct(request.properties)}
        with _answering(context, f"deleting {request.name}"):
            lifecycle.delete(resource, self._cloud(state), request.id, state)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The answer of a function such as getParameter."""
        arguments = from_struct(request.args)
        with _answering(context, f"calling {request.tok}"):
            cloud = self._cloud(arguments)
            with told(cloud.url):
                answer = invoked(cloud, request.tok, arguments)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(answer))
        return response

    def _cloud(self, properties: Mapping[str, Any]) -> Cloud:
        return Cloud(self._clients, properties.get("region") or self._settings.region)


def _changes(some: bool) -> Any:
    return provider_pb2.DiffResponse.DIFF_SOME if some else provider_pb2.DiffResponse.DIFF_NONE


def _names(found: list[Difference]) -> frozenset[str]:
    return frozenset(one.name for one in found)


def _resource(token: str, context: grpc.ServicerContext) -> Resource:
    if token not in RESOURCES:
        text = f"the box's stand-in for the aws provider has no resource type {token}"
        context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
    return RESOURCES[token]


@contextmanager
def _answering(context: grpc.ServicerContext, doing: str, *passed: type[Exception]) -> Iterator[None]:
    """A block whose errors reach the engine as a sentence; the `passed` ones reach the caller."""
    try:
        yield
    except passed:
        raise
    except lifecycle.HalfMade as error:
        _abort_half_made(context, doing, error)
    except ProviderError as error:
        context.abort(grpc.StatusCode.UNKNOWN, f"{doing}: {error}")
    except Exception as error:
        context.abort(grpc.StatusCode.INTERNAL, f"{doing}: {explained(error)}")


def _abort_half_made(context: grpc.ServicerContext, doing: str, error: lifecycle.HalfMade) -> NoReturn:
    text = f"{doing}: {error}"
    made = provider_pb2.ErrorResourceInitFailed(
        id=error.id, properties=to_struct(error.state), inputs=to_struct(error.state), reasons=[str(error)]
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=text)
    status.details.add().Pack(made)
    trailer = (("grpc-status-details-bin", status.SerializeToString()),)
    context.abort_with_status(_Status(grpc.StatusCode.UNKNOWN, text, trailer))
    raise AssertionError("abort raises")
