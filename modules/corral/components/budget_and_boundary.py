"""Guards of a base: the budget, and the permissions boundary of its roles."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BasePlan, BudgetPlan
from corral.model.tags import BASE_TAG
from corral.plan.iam.iam_policies import boundary_policy

_WARN_PERCENT = 80  # of the budget, by AWS's forecast for the month
_SPENT_PERCENT = 100  # of the budget, actual cost


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardsArgs:
    """The plan of the base, and its account."""

    plan: BasePlan


class Guards(Component):
    """A permissions boundary for every role on the base, and a budget that sends mail."""

    def __init__(self, name: str, args: GuardsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Guards", name, f"corral-{args.plan.name}", opts)
        self.boundary = aws.iam.Policy(
            self.child("boundary"),
            description=f"The most that a role on corral base {args.plan.name} can do",
            policy=json.dumps(boundary_policy(args.plan.region)),
            tags=self.tags("boundary"),
            opts=self.child_options(),
        )
        if args.plan.budget:
            self._budget(args.plan.name, args.plan.budget)
        self.register_outputs({"boundary": self.boundary.arn})

    def _budget(self, base: str, budget: BudgetPlan) -> None:
        aws.budgets.Budget(
            self.child("budget"),
            name=f"corral-{base}",
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=str(budget.usd_per_month),
            limit_unit="USD",
            # Counts nothing until the tag is activated as a cost allocation tag in the paying account.
            cost_filters=[aws.budgets.BudgetCostFilterArgs(name="TagKeyValue", values=[f"user:{BASE_TAG}${base}"])],
            notifications=[
                self._notification("FORECASTED", _WARN_PERCENT, budget.notify),
                self._notification("ACTUAL", _SPENT_PERCENT, budget.notify),
            ],
            tags=self.tags("budget"),
            opts=self.child_options(),
        )

    @staticmethod
    def _notification(kind: str, percent: int, emails: tuple[str, ...]) -> aws.budgets.BudgetNotificationArgs:
        return aws.budgets.BudgetNotificationArgs(
            comparison_operator="GREATER_THAN",
            threshold=percent,
            threshold_type="PERCENTAGE",
            notification_type=kind,
            subscriber_email_addresses=list(emails),
        )
