"""Rules about login nodes: their type, their zones, and the names and the home that they need."""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.cluster import LOGIN
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.rules import name_rules, queue_rules
from corral.spec.spec_errors import SpecFinding
from corral.spec.validation_context import ValidationContext


def check(spec: ClusterSpecInput, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about login nodes, if there are any, and queues of their name."""
    for number, queue in enumerate(spec.queues):
        if queue.name == LOGIN:
            yield SpecFinding(
                ("queues", number, "name"),
                f"{LOGIN!r} is the name of login nodes, such as {LOGIN}-1",
                "use another name",
            )
    if (login := spec.login) is None:
        return
    yield from queue_rules.check_type(("login", "instance_type"), login.instance_type, context)
    for number, zone in enumerate(login.zones):
        loc = ("login", "zones", number)
        if zone in login.zones[:number]:
            yield SpecFinding(loc, f"{zone!r} is listed twice", "keep one")
        else:
            yield from name_rules.check_base_zone(loc, zone, context)
    if (more := len(login.zones)) > login.count:
        yield SpecFinding(
            ("login", "zones"), f"{more} zones for {login.count} login node{'s' * (login.count > 1)}", "remove some"
        )
    if context.base and context.base.storage.home is None:
        yield SpecFinding(
            ("login",),
            f"people's files on a login node would be on no other machine: base {context.base.name!r} has no home",
            "set `home: {}` in its `storage`",
        )
