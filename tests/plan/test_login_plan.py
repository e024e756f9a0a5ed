"""Login nodes in a plan: their names, zones, load balancer, cost, addresses and quotas."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.required_quotas import quotas_needed
from corral.model.cluster import ClusterPlan, LoadBalancerPlan
from corral.model.enums import BalancerScheme
from corral.model.serialization import from_json, to_json
from corral.plan.addresses import fixed_addresses
from corral.plan.cluster import plan_cluster
from corral.spec.models.access import AccessSpec
from corral.spec.models.cluster import LoadBalancerSpec, LoginSpec
from corral.spec.rules import login_rules
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster


def with_login(**fields: Any) -> ClusterPlan:
    """The cluster `dev` with these login nodes."""
    spec = read_environment(PROJECT, "dev").cluster
    return plan_cluster(spec.model_copy(update={"login": LoginSpec(**fields)}), dev_base())


def test_login_nodes_alternate_between_their_zones() -> None:
    plan = with_login(count=3, zones=("use1-az2", "use1-az1"))
    assert plan.login and plan.login.zones == {"login-1": "use1-az2", "login-2": "use1-az1", "login-3": "use1-az2"}


def test_a_login_node_without_a_declared_zone_is_where_the_head_is() -> None:
    plan = with_login()
    assert plan.login and plan.login.zones == {"login-1": plan.head.zone_id}


def test_a_cluster_without_login_nodes_has_none() -> None:
    assert (dev_cluster().login, dev_cluster().gate) == (None, "dev-head")


def test_people_come_to_the_first_login_node() -> None:
    assert with_login(count=2).gate == "dev-login-1"


def test_login_nodes_and_their_volumes_cost_by_the_hour_whether_anybody_works_or_not() -> None:
    prices = catalog_prices("us-east-1")
    before, after = (
        {item.what: item.usd_per_hour for item in forecast_cost(dev_base(), plan, prices).cluster}
        for plan in (dev_cluster(), with_login(count=2))
    )
    # 2 x 0.1785 USD; 2 x 100 GiB at 0.08 USD a month of 730 hours.
    added = {what: usd and round(usd.low, 4) for what, usd in after.items() if what not in before}
    assert added == {"login nodes, c7i.xlarge": 0.357, "login nodes' volumes": 0.0219}


def test_a_login_node_has_an_address_that_no_node_gets() -> None:
    zone = dev_base().zones[0]
    assert fixed_addresses(with_login(count=2), zone) - fixed_addresses(dev_cluster(), zone) == 2


def test_login_nodes_count_for_the_quota_of_their_vcpus_and_volumes() -> None:
    before, after = (
        {need.quota.code: (need.wanted, need.who) for need in quotas_needed(dev_base(), plan)}
        for plan in (dev_cluster(), with_login(count=2))
    )
    standard, gp3 = "L-1216C47A", "L-7A658B76"
    assert (after[standard][0] - before[standard][0], after[standard][1]) == (8, ("the head and login nodes",))
    assert round((after[gp3][0] - before[gp3][0]) * 1024) == 200


OFFICE = IPv4Network("203.0.113.0/24")


def balanced(scheme: str = "internet-facing", **fields: Any) -> ClusterPlan:
    """The cluster `dev` with login nodes behind a load balancer."""
    declared = {"allow": (str(OFFICE),), "scheme": BalancerScheme(scheme)}
    return with_login(load_balancer=LoadBalancerSpec.model_validate(declared), **fields)


def test_a_load_balancer_is_in_the_zones_of_login_nodes_since_it_reaches_no_others() -> None:
    plan = balanced("internal", count=3, zones=("use1-az2", "use1-az1"))
    assert plan.login and plan.login.load_balancer == LoadBalancerPlan(
        scheme=BalancerScheme.INTERNAL, allow=(OFFICE,), zones=("use1-az1", "use1-az2")
    )


def added_by(plan: ClusterPlan) -> dict[str, float | None]:
    """What the plan costs an hour beyond the same with login nodes alone, by item."""
    prices = catalog_prices("us-east-1")
    before, after = (
        {item.what: item.usd_per_hour for item in forecast_cost(dev_base(), one, prices).cluster}
        for one in (with_login(), plan)
    )
    return {what: usd and round(usd.low, 4) for what, usd in after.items() if usd != before.get(what)}


def test_a_load_balancer_costs_by_the_hour_with_its_public_address_and_the_secret_of_the_host_key() -> None:
    assert added_by(balanced()) == {
        "load balancer": 0.0225,
        "load balancer's public address": 0.005,
        "secret": 0.0011,  # 2 x 0.40 USD a month of 730 hours
    }


def test_an_internal_load_balancer_has_no_public_address() -> None:
    assert added_by(balanced("internal")) == {"load balancer": 0.0225, "secret": 0.0011}


def test_traffic_through_a_load_balancer_is_billed_by_use_with_its_unit() -> None:
    by_use = forecast_cost(dev_base(), balanced(), catalog_prices("us-east-1")).by_use
    assert [(one.usd, one.unit) for one in by_use if "load balancer" in one.what] == [(0.006, "unit and hour")]


def test_an_internal_load_balancer_takes_an_address_of_its_zone_and_another_none_of_the_nodes() -> None:
    zone = dev_base().zones[0]
    alone = fixed_addresses(with_login(), zone)
    more = [fixed_addresses(balanced(scheme), zone) - alone for scheme in ("internal", "internet-facing")]
    assert more == [1, 0]


def test_the_plan_of_a_load_balancer_is_the_same_after_a_way_through_json() -> None:
    assert from_json(ClusterPlan, to_json(balanced())) == balanced()


def test_a_key_of_the_images_user_is_refused_with_a_load_balancer() -> None:
    good = read_environment(PROJECT, "dev").cluster
    declared = {"allow": (str(OFFICE),)}
    login = LoginSpec(load_balancer=LoadBalancerSpec.model_validate(declared))
    spec = good.model_copy(update={"login": login, "access": AccessSpec(ssh_keys=("ssh-ed25519 AAAA ada",))})
    context = ValidationContext(region="us-east-1")
    assert ("access", "ssh_keys") in [finding.loc for finding in login_rules.check(spec, context)]
