"""Record the resources that a Pulumi program registers, with Pulumi's own mocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, settings

ACCOUNT = "123456789012"


@dataclass(kw_only=True)
class Recorder(pulumi.runtime.Mocks):
    """Returns an id and an ARN for every resource, and records the inputs as the engine would see them.

    `dependencies`: by name, the names of the resources that are created first. `timeouts`: by name, how long the
    provider waits for the creation and for the deletion of a resource, if the program says so. `retained`: the names of
    those that a destroy leaves; `imports`: by name, the ids of those that exist already.
    """

    resources: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    dependencies: dict[str, set[str]] = field(default_factory=dict)
    timeouts: dict[str, tuple[str, str]] = field(default_factory=dict)
    retained: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """The state of a new resource: its inputs, an ARN, and the computed fields that corral's programs read."""
        self.resources[args.name] = (args.typ, args.inputs)
        computed = {
            "arn": f"arn:{args.name}",
            "bucket": args.inputs.get("bucket"),
            "keyId": f"{args.name}-id",
            "name": args.inputs.get("name", args.name),
        }
        return f"{args.name}-id", {**computed, **args.inputs}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        """Fail: components must not make calls."""
        raise AssertionError(f"a component called {args.token}")

    def of_type(self, token: str) -> dict[str, Mapping[str, Any]]:
        """The inputs of the resources of this type, by name."""
        return {name: inputs for name, (typ, inputs) in self.resources.items() if typ == token}


class RecordingMonitor(mocks.MockMonitor):
    """Pulumi's monitor of mocks, which does not pass all options of a resource on."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._recorder = recorder

    def RegisterResource(self, request: Any) -> Any:
        """Register a resource."""
        self._recorder.dependencies[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
        if request.customTimeouts.create:
            self._recorder.timeouts[request.name] = (request.customTimeouts.create, request.customTimeouts.delete)
        if request.retainOnDelete:
            self._recorder.retained.add(request.name)
        if request.importId:
            self._recorder.imports[request.name] = request.importId
        return super().RegisterResource(request)


def record(build: Callable[[], object], recorder: Recorder | None = None, *, stack: str = "dev") -> Recorder:
    """What the function registers. A given recorder keeps it even if the function raises."""
    recorder = recorder or Recorder()
    mocks.set_mocks(recorder, project="corral-test", stack=stack, preview=False, monitor=RecordingMonitor(recorder))

    @pulumi.runtime.test
    def run() -> None:
        build()

    try:
        run()
    finally:
        settings.reset_options()
    return recorder
