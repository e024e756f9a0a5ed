"""What the commands of `corral-agent` find on the machine that they run on: its records, its host, its way to AWS."""

import argparse
from pathlib import Path

from corral.agent.health.readings import BoxProbe, Probe, SystemProbe
from corral.agent.hosts import BOX, Host, run
from corral.agent.store import DirectoryStore, Store, StoreError
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.jsons import from_json

FACTS = Path("/opt/corral/boot.json")
RECORDS = Path("/etc/corral")


def add_facts(parser: argparse.ArgumentParser) -> None:
    """The options that say where the cluster's files are."""
    parser.add_argument("--facts", type=Path, default=FACTS, help="where the files are (default: %(default)s)")
    parser.add_argument("--store", type=Path, help="a directory in the bucket's place")


def add_records(parser: argparse.ArgumentParser) -> None:
    """The option that says where the cluster's records are."""
    text = "where cluster.json and deployed.json are (default: %(default)s)"
    parser.add_argument("--records", type=Path, default=RECORDS, help=text)


def host_in(region: str) -> Host:
    """How this machine starts daemons and mounts."""
    if BOX.is_dir():
        from corral.agent.host_box import BoxHost

        return BoxHost()
    from corral.agent.host_ec2 import Ec2Host

    return Ec2Host(run, region)


def probe() -> Probe:
    """How this machine's health is read."""
    return BoxProbe() if BOX.is_dir() else SystemProbe()


def client(service: str, region: str) -> object:
    """A client of an AWS service, with botocore's own patience."""
    import boto3

    return boto3.client(service, region_name=region)


def impatient(service: str, region: str) -> object:
    """A client that asks once: EC2 answers InsufficientInstanceCapacity as a failure of its own (500), which botocore
    would ask for again and again. The keeper asks again by itself, and knows what for.
    """
    from botocore.config import Config

    from corral.agent.answers import quick_session

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=60)
    return quick_session().client(service, region_name=region, config=config)


def plan_in(records: Path = RECORDS) -> ClusterPlan:
    """The plan of this machine's cluster. Raises StoreError."""
    try:
        return from_json(ClusterPlan, (records / "cluster.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"the records in {records} are not those of this agent: {error}") from error


def records_in(records: Path = RECORDS) -> tuple[ClusterPlan, Deployed]:
    """The same, and what AWS made of it. Raises StoreError."""
    try:
        return plan_in(records), from_json(Deployed, (records / "deployed.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"the records in {records} are not those of this agent: {error}") from error


def boot_facts(file: Path = FACTS) -> BootFacts:
    """Where the cluster's files are. Raises StoreError."""
    try:
        return from_json(BootFacts, file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{file} does not say where the cluster's files are: {error}") from error


def store_of(chosen: argparse.Namespace) -> Store:
    """The bucket that --facts names, or the directory of --store in its place. Raises StoreError."""
    if chosen.store:
        return DirectoryStore(chosen.store)
    from corral.agent.s3 import BucketStore

    return BucketStore(boot_facts(chosen.facts))
