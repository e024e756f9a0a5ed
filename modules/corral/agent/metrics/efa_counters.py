"""What EFA interfaces have sent and received, from lines `DEVICE COUNTER VALUE` of sysfs. Pure; `health.probes` reads.

tx_bytes and rx_bytes include RDMA: in the recorded counters they are send_bytes plus rdma_read_resp_bytes, and
recv_bytes plus rdma_read_bytes. Sources: EC2 User Guide, "Monitor an Elastic Fabric Adapter on Amazon EC2"; the names:
Linux, drivers/infiniband/hw/efa/efa_verbs.c, EFA_DEFINE_PORT_STATS.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EfaCounters:
    """The counters of an interface since its driver was loaded. `resent`: packets; 0 before there was such a counter.

    `dropped`: received packets that the driver dropped.
    """

    device: str
    sent_bytes: int
    received_bytes: int
    dropped: int
    resent: int


def read_counters(text: str) -> tuple[EfaCounters, ...]:
    """The EFA interfaces. Devices without these counters, as other makes have them, are left out."""
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2].isdigit():
            found.setdefault(words[0], {})[words[1]] = int(words[2])
    return tuple(
        EfaCounters(
            device=device,
            sent_bytes=values["tx_bytes"],
            received_bytes=values["rx_bytes"],
            dropped=values.get("rx_drops", 0),
            resent=values.get("retrans_pkts", 0),
        )
        for device, values in found.items()
        if {"tx_bytes", "rx_bytes"} <= values.keys()
    )
