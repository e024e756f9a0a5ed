"""The autoscaler's interfaces to EC2, Slurm and DNS. The tests' simulator implements them too."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from corral.agent.cluster.models import Instance, ReservedCapacity, SlurmNode
from corral.model.deployed import DeployedTemplate


class Cloud(Protocol):
    """EC2, as `ec2_client.Ec2` implements it."""

    def launch(
        self,
        template: DeployedTemplate,
        nodes: Sequence[str],
        token: str,
        *,
        at_least: int,
        tags: Mapping[str, Mapping[str, str]],
    ) -> tuple[Instance, ...]:
        """Launch instances for the first of the nodes, and return them. `tags`: by kind. Raises Ec2Error."""
        ...

    def instances(self) -> tuple[Instance, ...]:
        """Return all instances that are or were nodes. Raises Ec2Error."""
        ...

    def reserved_capacity(self, reservations: Sequence[str]) -> Mapping[str, ReservedCapacity]:
        """Return the capacity of reservations and capacity blocks, by id. Raises Ec2Error."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Terminate instances. Raises Ec2Error."""
        ...


class Scheduler(Protocol):
    """slurmctld, as the module `slurm` implements it. Every call raises AgentError if slurmctld does not answer."""

    def nodes(self) -> tuple[SlurmNode, ...]:
        """Return all nodes."""
        ...

    def set_addresses(self, addresses: Mapping[str, str]) -> None:
        """Set the addresses of nodes."""
        ...

    def power_down(self, nodes: Sequence[str], reason: str) -> None:
        """Set nodes DOWN and power them down at once. An empty reason keeps theirs."""
        ...

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Drain nodes."""
        ...

    def request_checkpoints(self, nodes: Sequence[str]) -> None:
        """Signal the jobs on nodes to save a checkpoint."""
        ...

    def requeue_jobs(self, nodes: Sequence[str]) -> None:
        """Requeue the jobs on nodes."""
        ...

    def replace(self, nodes: Sequence[str], reason: str) -> None:
        """Power nodes down as soon as no job uses them. An empty reason keeps theirs."""
        ...

    def power_up(self, nodes: Sequence[str]) -> None:
        """Power nodes up."""
        ...

    def undrain(self, nodes: Sequence[str]) -> None:
        """Return drained nodes to service."""
        ...

    def stop_queue(self, queue: str) -> None:
        """Set a partition DOWN: it starts no more jobs."""
        ...

    def notify_waiting(self, jobs: Sequence[int], text: str) -> None:
        """Print a message on the terminals of interactive jobs."""
        ...


class DnsNames(Protocol):
    """The cluster's private zone, as `dns.Zone` implements it."""

    def publish(self, addresses: Mapping[str, str]) -> None:
        """Publish the addresses of nodes that were just launched. Raises AgentError."""
        ...
