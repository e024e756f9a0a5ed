"""One small environment as literal plan records, the input of tests of views and costs."""

from ipaddress import IPv4Address, IPv4Network

from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import InstanceRates, Service, ServiceRate
from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.base import BasePlan, BudgetPlan, HomePlan, PublicPlan, ZonePlan
from corral.model.cluster import (
    ClusterPlan,
    GresPlan,
    HeadPlan,
    ImagePlan,
    LifetimePlan,
    NicPlan,
    NodePlan,
    OfferPlan,
    QueuePlan,
)
from corral.model.enums import InterfaceType, Market
from corral.model.lustre import DataLinkPlan, LustrePlan

BASE = BasePlan(
    name="dev",
    region="us-east-1",
    vpc_cidr=IPv4Network("10.64.0.0/16"),
    zones=(
        ZonePlan(zone_id="use1-az1", private=IPv4Network("10.64.0.0/19"), heads=IPv4Network("10.64.0.0/26")),
        ZonePlan(zone_id="use1-az2", private=IPv4Network("10.64.32.0/19"), heads=IPv4Network("10.64.32.0/26")),
    ),
    public=PublicPlan(zone_id="use1-az1", cidr=IPv4Network("10.64.224.0/26")),
    interface_endpoints=("ec2", "ssm"),
    home=HomePlan(token="corral-dev-home", throughput="elastic"),
    budget=BudgetPlan(usd_per_month=20_000, notify=("a@example.org",)),
    tags={"corral:base": "dev"},
)
QUEUE = QueuePlan(
    name="train",
    instance_type="p4d.24xlarge",
    min_nodes=1,
    max_nodes=4,
    suspend_after_s=600,
    time_limit_s=None,
    is_default=True,
    efa=True,
    nics=(
        NicPlan(card=0, device=0, interface_type=InterfaceType.ENA),
        NicPlan(card=0, device=1, interface_type=InterfaceType.EFA_ONLY),
        NicPlan(card=1, device=0, interface_type=InterfaceType.EFA_ONLY),
    ),
    node=NodePlan(
        sockets=2,
        cores_per_socket=24,
        threads_per_core=2,
        real_memory_mib=1_120_665,
        gres=GresPlan(type="a100", count=8),
    ),
    nvme_count=8,
    root_gib=200,
    offers=(
        OfferPlan(
            key="train-spot-use1-az1",
            pool=1,
            market=Market.SPOT,
            zone_id="use1-az1",
            max_price_usd_per_hour=6.0,
            placement_group="train-use1-az1",
        ),
        OfferPlan(
            key="train-on-demand-use1-az1",
            pool=2,
            market=Market.ON_DEMAND,
            zone_id="use1-az1",
            max_price_usd_per_hour=None,
            placement_group="train-use1-az1",
        ),
    ),
)
CLUSTER = ClusterPlan(
    name="dev",
    base="dev",
    region="us-east-1",
    dns_zone="dev.corral.internal",
    prefix="clusters/dev",
    image=ImagePlan(
        profile="ubuntu-24.04-dlami",
        image_id=None,
        parameter="/aws/service/deeplearning/ami/x86_64/base/latest/ami-id",
        system="Ubuntu 24.04",
        python="3.12",
        slurm_version="23.11",
        slurm_sbin="/usr/sbin",
        default_user="ubuntu",
        root_device="/dev/sda1",
    ),
    head=HeadPlan(
        host_name="head-dev",
        zone_id="use1-az1",
        instance_type="m7i.2xlarge",
        vcpus=8,
        memory_mib=32_768,
        address=IPv4Address("10.64.0.23"),
        root_gib=100,
        state_gib=46,
        state_device="/dev/sdf",
    ),
    queues=(QUEUE,),
    placement_groups=(),
    lustre=(
        LustrePlan(
            name="scratch",
            zone_id="use1-az1",
            size_gib=1200,
            deployment="SCRATCH_2",
            mount="/scratch",
            data=(DataLinkPlan(path="/data", s3="s3://bucket/corpus", imports=("NEW",), exports=()),),
        ),
    ),
    home=True,
    lifetime=LifetimePlan(ttl_s=43_200, idle_s=3600),
    notify=(),
)


UNPRICED_LUSTRE = AwsResource(
    kind=ResourceKind.LUSTRE,
    id="fs-1",
    tags={"corral:base": "dev", "Name": "data"},
    size_gib=19_200,
    type="PERSISTENT_2 SSD 250",
)  # RoundPrices has no price for it


class RoundPrices:
    """A price list in round numbers, so that sums are easy to verify."""

    def instance(self, instance_type: str) -> InstanceRates | None:
        return {
            "p4d.24xlarge": InstanceRates(on_demand=20.0, spot=Usd(2.0, 8.0), source="instances"),
            "m7i.2xlarge": InstanceRates(on_demand=0.4, spot=Usd(0.1, 0.2), source="instances"),
        }.get(instance_type)

    def service(self, service: Service) -> ServiceRate | None:
        usd = {
            Service.NAT_GATEWAY_HOUR: 0.05,
            Service.NAT_GATEWAY_GB: 0.04,
            Service.PUBLIC_IPV4_HOUR: 0.005,
            Service.INTERFACE_ENDPOINT_HOUR: 0.01,
            Service.LOAD_BALANCER_HOUR: 0.04,
            Service.GP3_GIB_MONTH: 0.1,
            Service.EFS_GIB_MONTH: 0.3,
            Service.S3_GIB_MONTH: 0.02,
            "lustre-scratch-2-gib-month": 0.146,
            Service.KMS_KEY_MONTH: 3.65,
            Service.HOSTED_ZONE_MONTH: 0.73,
            Service.SECRET_MONTH: 0.73,
        }
        return ServiceRate(usd=usd[service], source="services") if service in usd else None
