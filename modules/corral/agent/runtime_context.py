"""The context of a command: the machine's records, its host, its AWS clients."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.agent import imds_client
from corral.agent.config.signed_manifest import signed_manifest
from corral.agent.config_store import DirectoryStore, ManifestStore, StoreError
from corral.agent.health.probes import BoxProbe, Probe, SystemProbe
from corral.agent.host.base import BOX, Host, run
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.manifest import Manifest
from corral.model.serialization import from_json

FACTS = Path("/opt/corral/boot.json")
RECORDS = Path("/etc/corral")


def add_facts(parser: argparse.ArgumentParser) -> None:
    """Add the options for the source of the cluster's files."""
    parser.add_argument(
        "--facts", type=Path, default=FACTS, help="file that names the bucket and the archives (default: %(default)s)"
    )
    parser.add_argument("--store", type=Path, help="directory to use instead of the bucket")


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the option for the directory of the cluster's records."""
    text = "directory of cluster.json and deployed.json (default: %(default)s)"
    parser.add_argument("--records", type=Path, default=RECORDS, help=text)


def host_in(region: str) -> Host:
    """The host of this machine, which starts daemons and mounts."""
    if BOX.is_dir():
        from corral.agent.host.box import BoxHost

        return BoxHost()
    from corral.agent.host.ec2 import Ec2Host

    return Ec2Host(run, region)


def probe() -> Probe:
    """The health probe of this machine."""
    return BoxProbe() if BOX.is_dir() else SystemProbe()


def client(service: str, region: str) -> object:
    """A client of an AWS service, with botocore's default retries."""
    import boto3

    return boto3.client(service, region_name=region)


def client_without_retries(service: str, region: str) -> object:
    """A client of an AWS service that does not retry.

    EC2 reports InsufficientInstanceCapacity as a server error (500), which botocore would retry. The autoscaler tries
    another offer instead.
    """
    from botocore.config import Config

    from corral.agent.cluster.boto_parsing import fast_session

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=60)
    return fast_session().client(service, region_name=region, config=config)


def own_credentials() -> Callable[[], Any]:
    """What returns the credentials of the machine's role, which renew themselves; None if there are none."""
    import boto3

    return boto3.Session().get_credentials


def plan_in(records: Path = RECORDS) -> ClusterPlan:
    """The plan of this machine's cluster. Raises StoreError."""
    try:
        return from_json(ClusterPlan, (records / "cluster.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"cannot read the records in {records}: {error}") from error


def records_in(records: Path = RECORDS) -> tuple[ClusterPlan, Deployed]:
    """The plan, and the ids of its AWS resources. Raises StoreError."""
    try:
        return plan_in(records), from_json(Deployed, (records / "deployed.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"cannot read the records in {records}: {error}") from error


def boot_facts(file: Path = FACTS) -> BootFacts:
    """The machine's boot facts: the bucket and the archives. Raises StoreError."""
    try:
        return from_json(BootFacts, file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{file} does not contain valid boot facts: {error}") from error


def store_of(chosen: argparse.Namespace, seen: int) -> ManifestStore:
    """The directory of --store, or the bucket named by --facts. Raises StoreError, MetadataError.

    `seen`: the highest version of a manifest that is known. A directory's manifest has no signature: root named it.

    The bucket must be the instance's own account's. The facts do not name it: a running head keeps those that it was
    launched with, and its records may be of an older agent.
    """
    if chosen.store:
        return ManifestStore(DirectoryStore(chosen.store), lambda content: from_json(Manifest, content.decode()))
    return bucket_store(boot_facts(chosen.facts), imds_client.account_number(), seen)


def bucket_store(facts: BootFacts, account: str, seen: int) -> ManifestStore:
    """The files that a manifest in the bucket names, if it is signed by the base's key and not older than `seen`."""
    from corral.agent.s3 import BucketStore

    def believe(content: bytes) -> Manifest:
        return signed_manifest(content, facts.prefix, facts.public_key, seen)

    return ManifestStore(BucketStore(facts, account), believe)


def newest_end(facts: BootFacts, account: str, seen: int) -> str | None:
    """The end of the cluster in the bucket: `corral extend` may have moved it. Raises StoreError."""
    store = bucket_store(facts, account, seen)
    return from_json(Deployed, store.read(store.manifest(), ("deployed.json",))["deployed.json"].decode()).ends_at
