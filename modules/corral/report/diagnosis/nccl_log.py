"""NCCL's and its plugin's own lines in a job's output: which network each node uses.

Sources of the forms: NVIDIA/nccl#1597 ("Selected Provider is efa (found 16 nics)", "Using network Libfabric"),
NVIDIA/nccl#226 ("NET/Plugin : No plugin found"), aws/aws-ofi-nccl's messages since 1.14 ("Selected provider is efa,
fabric is efa (found 1 nics)"), aws/aws-ofi-nccl#889 (the plugin has found EFA and gives up: "Using network Socket"),
awslabs/awsome-distributed-ai#386 ("Channel 13/0 : 0[0] -> 8[0] [receive] via NET/Socket/0").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PROVIDER = re.compile(
    r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO NET/OFI Selected [Pp]rovider is (?P<provider>[\w-]+)"
    r"(?:.*\(found (?P<nics>\d+) nics\))?"
)
_NETWORK = re.compile(
    r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO (?:Using network |Channel .* via NET/(?=Socket))(?P<network>[\w .-]+)"
)
# Before the line about the network, which is lost at times: without a plugin, NCCL uses no EFA.
_WITHOUT_PLUGIN = re.compile(
    r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO (?:NET/Plugin ?: ?No plugin found|NET/Socket ?: ?Using )"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNetwork:
    """What a host's NCCL said. `network`: `Libfabric`, `Socket` or the like; None or "" if it said nothing.

    `nics`: how many the plugin found.
    """

    network: str = ""
    provider: str = ""
    nics: int | None = None


def node_networks(lines: Iterable[str]) -> Mapping[str, NodeNetwork]:
    """What NCCL said on each host, by the name that it prints."""
    networks: dict[str, str] = {}
    providers: dict[str, tuple[str, int | None]] = {}
    without: set[str] = set()
    for line in lines:
        if found := _PROVIDER.search(line):
            providers[found["host"]] = (found["provider"], int(found["nics"]) if found["nics"] else None)
        elif found := _NETWORK.search(line):
            networks[found["host"]] = found["network"].strip()
        elif found := _WITHOUT_PLUGIN.search(line):
            without.add(found["host"])
    networks |= dict.fromkeys(without - networks.keys() - providers.keys(), "Socket")
    return {
        host: NodeNetwork(
            network=networks.get(host, ""),
            provider=providers.get(host, ("", None))[0],
            nics=providers.get(host, ("", None))[1],
        )
        for host in sorted({*networks, *providers})
    }
