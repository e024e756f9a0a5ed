"""The `dev` environment's plan as literal records, so that rendering is tested apart from planning."""

from dataclasses import replace
from ipaddress import IPv4Address

from corral.model.cluster import (
    ClusterPlan,
    GresPlan,
    HeadPlan,
    ImagePlan,
    LifetimePlan,
    LoginPlan,
    NicPlan,
    NodePlan,
    OfferPlan,
    PlacementGroupPlan,
    QueuePlan,
)
from corral.model.deployed import BootFacts, Deployed, DeployedLustre, DeployedTemplate
from corral.model.enums import InterfaceType, Market
from corral.model.lustre import DataLinkPlan, LustrePlan
from corral.model.run_forecast import RunForecastNumbers
from corral.model.users import DirectoryPlan, DirectorySchema

ZONES = ("use1-az1", "use1-az2")
LOGIN = LoginPlan(instance_type="c7i.xlarge", vcpus=4, memory_mib=8192, root_gib=100, zones={"login-1": "use1-az1"})
DIRECTORY = DirectoryPlan(
    servers=("ldaps://a.example.org", "ldaps://b.example.org"),
    base="dc=example,dc=org",
    filter="(memberOf=cn=gpu,dc=example,dc=org)",
    schema=DirectorySchema.RFC2307BIS,
    bind_dn="cn=reader,dc=example,dc=org",
    bind_secret="people/reader",
)
# A base's key for signatures, of the size of those that KMS makes.
LLAMA = RunForecastNumbers(
    name="llama",
    queue="train",
    nodes=4,
    gpus=32,
    step_s=3.25,
    tokens_per_s_per_gpu=4000.0,
    mfu=0.4,
    communication_share=0.1,
    memory_gib=60.0,
    memory_limit_gib=80.0,
    uncertainty=0.15,
    fits=True,
)
PUBLIC_KEY = """-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsSpAsZfeuKh53Rmm5rPg
CeG3m0VNnMWBGFo0bUr9vgRiazIlx7qOjl5l4Fuk2RDc0cmMwBCb9O54ffD/m0N6
3DVIR7I5CRA54KUSZlI1IIVi1Ey/cP4D+KWKM6r5QZK2rRGz7hWgFhnrkaANdW/G
TtQhxhpOXvyBz4MxZFs/KLUcsZYGzU7E11RkQ0l9e+aPXMxXeb9jJyPCyTVLaFdr
hy8rrhoTnEzitLSHYPuKO9QndBu9W8DVRheVsZgE+Q29iZmPs5fDnhW98i9YERks
wGD84+e9B/9OqdxzP0s+pApOsE9d+3IPp3N0ha9qUW8PHxMq9cNNBA5UX2vPS8bW
PQIDAQAB
-----END PUBLIC KEY-----
"""


def image(slurm_version: str = "23.11") -> ImagePlan:
    """The deep learning image, with this Slurm."""
    return ImagePlan(
        profile="ubuntu-24.04-dlami",
        image_id=None,
        parameter="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        system="ubuntu 24.04",
        python="3.12",
        slurm_version=slurm_version,
        slurm_sbin="/usr/sbin",
        default_user="ubuntu",
        root_device="/dev/sda1",
    )


def head() -> HeadPlan:
    return HeadPlan(
        host_name="dev-head",
        zone_id="use1-az1",
        instance_type="m7i.2xlarge",
        vcpus=8,
        memory_mib=32768,
        address=IPv4Address("10.64.0.26"),
        root_gib=100,
        state_gib=50,
        state_device="/dev/sdf",
    )


def train(max_nodes: int = 4) -> QueuePlan:
    """The queue of p4d machines."""
    cards = tuple(NicPlan(card=card, device=0, interface_type=InterfaceType.EFA_ONLY) for card in (1, 2, 3))
    return QueuePlan(
        name="train",
        instance_type="p4d.24xlarge",
        min_nodes=0,
        max_nodes=max_nodes,
        suspend_after_s=600,
        time_limit_s=None,
        is_default=True,
        efa=True,
        nics=(
            NicPlan(card=0, device=0, interface_type=InterfaceType.ENA),
            NicPlan(card=0, device=1, interface_type=InterfaceType.EFA_ONLY),
            *cards,
        ),
        node=NodePlan(
            sockets=2,
            cores_per_socket=24,
            threads_per_core=2,
            real_memory_mib=1120665,
            gres=GresPlan(type="a100", count=8),
        ),
        nvme_count=8,
        root_gib=200,
        offers=tuple(offer(number, zone) for number in (0, 1) for zone in ZONES),
    )


def offer(pool: int, zone: str) -> OfferPlan:
    market = (Market.SPOT, Market.ON_DEMAND)[pool]
    return OfferPlan(
        key=f"train-{pool}-{market}-{zone}",
        pool=pool,
        market=market,
        zone_id=zone,
        max_price_usd_per_hour=None,
        placement_group=f"train-{zone}",
    )


def cpu() -> QueuePlan:
    """A queue without accelerators and EFA, with a static node and a time limit."""
    return replace(
        train(),
        name="cpu",
        instance_type="m7i.2xlarge",
        min_nodes=1,
        max_nodes=1,
        time_limit_s=36 * 3600,
        is_default=False,
        efa=False,
        nics=(NicPlan(card=0, device=0, interface_type=InterfaceType.ENA),),
        node=NodePlan(sockets=1, cores_per_socket=4, threads_per_core=2, real_memory_mib=31129, gres=None),
        nvme_count=0,
        root_gib=200,
        offers=(),
    )


def dev(*queues: QueuePlan, slurm_version: str = "23.11") -> ClusterPlan:
    """The cluster `dev`, with other queues where given."""
    return ClusterPlan(
        name="dev",
        base="dev",
        region="us-east-1",
        dns_zone="dev.corral.internal",
        prefix="clusters/dev",
        image=image(slurm_version),
        head=head(),
        queues=queues or (train(),),
        placement_groups=tuple(PlacementGroupPlan(key=f"train-{zone}", queue="train", zone_id=zone) for zone in ZONES),
        lustre=(
            LustrePlan(
                name="scratch",
                zone_id="use1-az1",
                size_gib=1200,
                deployment="SCRATCH_2",
                mount="/scratch",
                data=(DataLinkPlan(path="/data", s3="s3://corpus/text", imports=("NEW",), exports=()),),
            ),
        ),
        home=True,
        lifetime=LifetimePlan(ttl_s=12 * 3600, idle_s=3600),
        notify=("a@b.c",),
        tags={"corral:base": "dev", "corral:cluster": "dev"},
    )


def boot_facts() -> BootFacts:
    return BootFacts(
        cluster="dev",
        region="us-east-1",
        bucket="corral-dev-123456789012-us-east-1",
        prefix="clusters/dev",
        bundle_key="clusters/dev/agent/0123456789abcdef.tar.gz",
        bundle_sha256="0123456789abcdef" * 4,
        library_key="clusters/dev/library/fedcba9876543210.tar.gz",
        library_sha256="fedcba9876543210" * 4,
        public_key=PUBLIC_KEY,
    )


def deployed() -> Deployed:
    return Deployed(
        account="123456789012",
        region="us-east-1",
        vpc_id="vpc-1",
        bucket="corral-dev-123456789012-us-east-1",
        key_arn="arn:aws:kms:us-east-1:123456789012:key/1",
        subnets={"use1-az1": "subnet-1", "use1-az2": "subnet-2"},
        security_group="sg-1",
        image_id="ami-1",
        head_interface="eni-1",
        state_volume="vol-1",
        templates={offer(0, "use1-az1").key: DeployedTemplate(id="lt-1", version="1")},
        placement_groups={"train-use1-az1": "pg-1"},
        lustre={"scratch": DeployedLustre(id="fs-1", dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abc")},
        home="fs-2",
        hosted_zone="Z1",
        munge_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-1",
        log_group="/corral/dev",
        topic="arn:aws:sns:us-east-1:123456789012:dev",
        job_role="arn:aws:iam::123456789012:role/job-1",
        ends_at="2026-11-22T00:00:00+00:00",
    )
