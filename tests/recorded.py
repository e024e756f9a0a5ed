"""Pulumi's official mocks, and what a program registered with them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, settings

ACCOUNT = "123456789012"


@dataclass(kw_only=True)
class Recorder(pulumi.runtime.Mocks):
    """Answers every resource with an id and an ARN, and remembers the inputs as the engine would see them."""

    resources: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """The state of the new resource: its inputs, an ARN, and what computed fields our programs read."""
        self.resources[args.name] = (args.typ, args.inputs)
        computed = {
            "arn": f"arn:{args.name}",
            "bucket": args.inputs.get("bucket"),
            "keyId": f"{args.name}-id",
            "name": args.inputs.get("name", args.name),
        }
        return f"{args.name}-id", {**computed, **args.inputs}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        """Components make no calls: a call is a mistake."""
        raise AssertionError(f"a component called {args.token}")

    def of_type(self, token: str) -> dict[str, Mapping[str, Any]]:
        """The inputs of the resources of this type, by name."""
        return {name: inputs for name, (typ, inputs) in self.resources.items() if typ == token}


def record(build: Callable[[], object]) -> Recorder:
    """What the function registered."""
    recorder = Recorder()
    mocks.set_mocks(recorder, project="corral-test", stack="dev", preview=False)

    @pulumi.runtime.test
    def run() -> None:
        build()

    run()
    settings.reset_options()
    return recorder
