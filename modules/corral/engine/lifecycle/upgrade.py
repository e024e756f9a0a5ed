"""Updates the pinned images of a cluster to the newest. Nothing else changes what its machines boot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from corral.engine.engine_errors import WRONG_INPUT, EngineError
from corral.engine.lifecycle.expiry_check import check_expiry
from corral.engine.lifecycle.preflight_gate import require_usable_images
from corral.engine.lifecycle.session import CLUSTER, EngineSession, stack_account
from corral.engine.lifecycle.up import Confirm, UpResult, up
from corral.engine.pulumi.stack import Stack, resources
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.spec.yaml.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUpgrade:
    """A pinned image that is no longer the newest of its profile. `key`: `image`, or `image-<profile>` of a queue."""

    key: str
    profile: str
    pinned: str
    newest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeResult:
    """The upgraded images and the result of the deployment; None if every image was the newest."""

    moved: tuple[ImageUpgrade, ...]
    up: UpResult | None

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        up = self.up.to_document() if self.up else None
        return {"schema": "corral.upgrade-image/1", "moved": [asdict(one) for one in self.moved], "up": up}


def upgrade_images(
    session: EngineSession, environment: Environment, base: BasePlan, plan: ClusterPlan, *, confirm: Confirm | None
) -> UpgradeResult:
    """Pins the newest image of each profile that the cluster uses, then deploys it.

    Running instances keep their image; new ones boot the new one. Raises EngineError if the cluster is not up, or if
    its machines could not boot a newest image.
    """
    with session.stack(CLUSTER, plan.name) as cluster:
        state = cluster.state()
        if not resources(state):
            hint = f"its first deployment uses the newest image: corral up {plan.name}{cluster.account_option}"
            raise EngineError(f"{cluster.title} is not up", (hint,), WRONG_INPUT)
        check_expiry(cluster, state, environment.cluster)
        moves = _upgrades(cluster, plan)
        if not moves:
            session.display.write(f"{cluster.title} has the newest images")
            return UpgradeResult(moved=(), up=None)
        require_usable_images(cluster, base, plan)
        for move in moves:
            session.display.write(f"  {move.key}  {move.profile}: {move.pinned} -> {move.newest}")
        if confirm is not None and not confirm(f"{cluster.title}: use these images for new instances?"):
            raise EngineError(f"{cluster.title}: nothing was changed")
        _pin(cluster, moves)
    return UpgradeResult(moved=tuple(moves), up=up(session, environment, confirm=None))


def _upgrades(cluster: Stack, plan: ClusterPlan) -> Sequence[ImageUpgrade]:
    ssm = stack_account(cluster).client("ssm")
    moves = []
    for key, image in plan.images.items():
        if image.parameter is None:
            continue  # an image given by id follows the spec
        newest = ssm.get_parameter(Name=image.parameter)["Parameter"]["Value"]
        pinned = ssm.get_parameter(Name=f"/corral/{plan.name}/{key}")["Parameter"]["Value"]
        if pinned != newest:
            moves.append(ImageUpgrade(key=key, profile=image.profile, pinned=pinned, newest=newest))
    return moves


def _pin(cluster: Stack, moves: Sequence[ImageUpgrade]) -> None:
    ssm = stack_account(cluster).client("ssm")
    for move in moves:
        ssm.put_parameter(Name=f"/corral/{cluster.name}/{move.key}", Value=move.newest, Overwrite=True)
