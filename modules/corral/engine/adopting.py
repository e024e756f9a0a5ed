"""Before anything is made in somebody else's VPC: whether it is such that machines can work there."""

from __future__ import annotations

from corral.engine.errors import CANNOT_START, EngineError
from corral.engine.stack import Stack
from corral.engine.workplace import account_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.preflight.adoption import adoption_problems


def require_ground(stack: Stack, base: BasePlan, cluster: ClusterPlan) -> None:
    """Raises EngineError with everything that is wrong with the adopted VPC; nothing is asked where none is."""
    if base.adopted_vpc is None:
        return
    from corral.preflight.adopted import adoption_facts

    problems = adoption_problems(base, cluster, adoption_facts(account_of(stack), base, cluster))
    if problems:
        raise EngineError(f"{stack.title}: {base.adopted_vpc} cannot be used as it is", problems, CANNOT_START)
