"""User data: the little that a machine does before the agent is there."""

from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts
from corral.model.jsons import to_json
from corral.model.markets import Role
from corral.model.timers import RESUME_TIMEOUT_S
from corral.render.texts import fill


def cloud_config(plan: ClusterPlan, role: Role, boot: BootFacts) -> str:
    """The cloud-config of a machine in this role. It holds no secret: user data can be read by who may describe it.

    A compute machine that cannot boot ends itself; a head stays, for someone to look at it.
    """
    script = {"role": role.value, "cluster": plan.name}
    return fill(
        "boot/user-data.yaml.j2",
        **script,
        facts=to_json(boot),
        fetch=fill("boot/fetch.py.j2"),
        boot=fill("boot/boot.sh.j2", **script, powers_off=role is Role.COMPUTE, boots_within_s=RESUME_TIMEOUT_S),
    )
