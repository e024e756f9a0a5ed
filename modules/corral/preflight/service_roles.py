"""Whether the roles of AWS's own services are there, which they need before their first use by API.

Sources: EC2 User Guide, "Service-linked role for Spot Instance requests"; FSx for Lustre and EFS User Guides, "Using
service-linked roles".
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.markets import Market
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="service-roles")
PREFIX = "/aws-service-role/"


def ask(answers: Answers, wanted: Wanted) -> frozenset[str]:
    """The services that have their role."""
    roles = answers.every("iam", "list_roles", "Roles", PathPrefix=PREFIX)
    return frozenset(str(role["Path"]).removeprefix(PREFIX).strip("/") for role in roles)


def judge(wanted: Wanted, services: frozenset[str]) -> Iterator[Finding]:
    """Each service that the environment uses.

    Who makes a file system makes its role as well, if they may; the head, which launches spot machines, may not.
    """
    cluster, base = wanted.cluster, wanted.base
    used = {
        "spot.amazonaws.com": any(offer.market is Market.SPOT for queue in cluster.queues for offer in queue.offers),
        "fsx.amazonaws.com": bool(cluster.lustre),
        "elasticfilesystem.amazonaws.com": base.home is not None,
    }
    for service, is_used in used.items():
        if not is_used:
            continue
        if service in services:
            yield _TELL.ok(service, "has its role")
        elif service == "spot.amazonaws.com":
            text = "has no role in this account, and the head may not make it: no spot machine can be launched"
            yield _TELL.fail(service, text, "`corral bootstrap` makes it")
        else:
            text = "has no role in this account; it is made with the first file system by whoever may make roles"
            yield _TELL.warn(service, text, "`corral bootstrap` makes it")
