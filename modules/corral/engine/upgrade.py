"""Moving a cluster's pinned images to the newest: nothing else ever changes what its machines boot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from corral.engine.ended import refuse_ended
from corral.engine.errors import WRONG_INPUT, EngineError
from corral.engine.stack import Stack, resources
from corral.engine.up import Ask, UpResult, up
from corral.engine.workplace import CLUSTER, Workplace, account_of
from corral.model.cluster import ClusterPlan
from corral.spec.files import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An image that is not the newest of its profile any more. `key`: `image`, or `image-<profile>` of a queue."""

    key: str
    profile: str
    pinned: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeResult:
    """What was moved, and what the up that followed did; None where nothing had to be moved."""

    moved: tuple[Move, ...]
    up: UpResult | None

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        up = self.up.to_document() if self.up else None
        return {"schema": "corral.upgrade-image/1", "moved": [asdict(one) for one in self.moved], "up": up}


def upgrade_images(place: Workplace, environment: Environment, plan: ClusterPlan, *, ask: Ask | None) -> UpgradeResult:
    """Pins the newest image of each profile that the cluster uses, then brings it up with them.

    A running head and running nodes keep the image that they booted; new ones take the new one.
    Raises EngineError where the cluster is not up.
    """
    with place.stack(CLUSTER, plan.name) as cluster:
        state = cluster.state()
        if not resources(state):
            hint = f"its first up takes the newest image: corral up {plan.name}{cluster.account_option}"
            raise EngineError(f"{cluster.title}: is not up", (hint,), WRONG_INPUT)
        refuse_ended(cluster, state, environment.cluster)
        moves = _moves(cluster, plan)
        if not moves:
            place.printer.say(f"{cluster.title}: has the newest images")
            return UpgradeResult(moved=(), up=None)
        for move in moves:
            place.printer.say(f"  {move.key}  {move.profile}: {move.pinned} -> {move.newest}")
        if ask is not None and not ask(f"{cluster.title}: let new machines boot this?"):
            raise EngineError(f"{cluster.title}: nothing was changed")
        _pin(cluster, moves)
    return UpgradeResult(moved=tuple(moves), up=up(place, environment, ask=None))


def _moves(cluster: Stack, plan: ClusterPlan) -> Sequence[Move]:
    ssm = account_of(cluster).client("ssm")
    moves = []
    for key, image in plan.images.items():
        if image.parameter is None:
            continue  # an id of the user's own follows the spec
        newest = ssm.get_parameter(Name=image.parameter)["Parameter"]["Value"]
        pinned = ssm.get_parameter(Name=f"/corral/{plan.name}/{key}")["Parameter"]["Value"]
        if pinned != newest:
            moves.append(Move(key=key, profile=image.profile, pinned=pinned, newest=newest))
    return moves


def _pin(cluster: Stack, moves: Sequence[Move]) -> None:
    ssm = account_of(cluster).client("ssm")
    for move in moves:
        ssm.put_parameter(Name=f"/corral/{cluster.name}/{move.key}", Value=move.newest, Overwrite=True)
