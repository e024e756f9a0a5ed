"""The guard of a base: its budget."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BudgetPlan
from corral.model.tags import BASE_TAG

_WARN_PERCENT = 80  # of the budget, by AWS's forecast for the month
_SPENT_PERCENT = 100  # of the budget, actual cost


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardsArgs:
    """The name of the base, and its budget."""

    base: str
    budget: BudgetPlan


class Guards(Component):
    """A budget that sends mail."""

    def __init__(self, name: str, args: GuardsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Guards", name, f"corral-{args.base}", opts)
        self._budget(args.base, args.budget)
        self.register_outputs({})

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
