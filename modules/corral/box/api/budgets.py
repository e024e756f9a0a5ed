"""Budgets with tags, subscribers and changes. No budget alarms: nothing in the box has a cost."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import Any

import moto.budgets.urls
from moto.budgets.models import Budget, BudgetsBackend
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.utilities.tagging_service import TaggingService

from corral.box.api_errors import ApiError


class BoxBudgets(BudgetsBackend):
    """The budgets of one account."""

    _url_module = moto.budgets.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.tagger = TaggingService(key_name="Key", value_name="Value", tag_name="ResourceTags")

    def get(self, account_id: str, name: str) -> Budget:
        """The budget of that name."""
        if name not in self.budgets[account_id]:
            raise ApiError("NotFoundException", f"Unable to get budget: {name} - the budget doesn't exist.")
        return self.budgets[account_id][name]

    def notification(self, account_id: str, name: str, details: dict[str, Any]) -> Any:
        """The notification of a budget with these details."""
        for held in self.get(account_id, name).notifications:
            if held.details == {**held.details, **details}:
                return held
        raise ApiError("NotFoundException", f"The budget {name} has no such notification.")


class BoxBudgetsResponse(BaseResponse):
    """The actions of AWS Budgets."""

    def __init__(self) -> None:
        super().__init__(service_name="budgets")
        self.automated_parameter_parsing = True

    @property
    def backend(self) -> Any:
        """The backend of the call."""
        from moto.budgets.models import budgets_backends

        return budgets_backends[self.current_account][self.partition]

    def create_budget(self) -> ActionResult:
        """CreateBudget, with notifications and tags."""
        budget = self._get_param("Budget")
        self.backend.create_budget(self._account, budget, self._get_param("NotificationsWithSubscribers", []))
        if tags := self._get_param("ResourceTags"):
            self.backend.tagger.tag_resource(self._arn(budget["BudgetName"]), tags)
        return EmptyResult()

    def update_budget(self) -> ActionResult:
        """UpdateBudget: replaces the definition, not the notifications."""
        wanted = self._get_param("NewBudget")
        held = self.backend.get(self._account, wanted["BudgetName"])
        held.budget = {**Budget(wanted, []).budget, "TimePeriod": wanted.get("TimePeriod", held.budget["TimePeriod"])}
        return EmptyResult()

    def describe_budget(self) -> ActionResult:
        """DescribeBudget."""
        return ActionResult({"Budget": self.backend.get(self._account, self._get_param("BudgetName")).to_dict()})

    def describe_budgets(self) -> ActionResult:
        """DescribeBudgets."""
        return ActionResult({"Budgets": self.backend.describe_budgets(self._account)})

    def delete_budget(self) -> ActionResult:
        """DeleteBudget."""
        name = self._get_param("BudgetName")
        self.backend.delete_budget(self._account, name)
        self.backend.tagger.delete_all_tags_for_resource(self._arn(name))
        return EmptyResult()

    def create_notification(self) -> ActionResult:
        """CreateNotification."""
        self._budget.add_notification(self._get_param("Notification"), self._get_param("Subscribers"))
        return EmptyResult()

    def update_notification(self) -> ActionResult:
        """UpdateNotification."""
        self._notification("OldNotification").details = self._get_param("NewNotification")
        return EmptyResult()

    def delete_notification(self) -> ActionResult:
        """DeleteNotification."""
        self._budget.notifications.remove(self._notification("Notification"))
        return EmptyResult()

    def describe_notifications_for_budget(self) -> ActionResult:
        """DescribeNotificationsForBudget."""
        return ActionResult({"Notifications": [held.details for held in self._budget.notifications]})

    def create_subscriber(self) -> ActionResult:
        """CreateSubscriber."""
        self._notification("Notification").subscribers.append(self._get_param("Subscriber"))
        return EmptyResult()

    def update_subscriber(self) -> ActionResult:
        """UpdateSubscriber."""
        subscribers = self._notification("Notification").subscribers
        subscribers[subscribers.index(self._get_param("OldSubscriber"))] = self._get_param("NewSubscriber")
        return EmptyResult()

    def delete_subscriber(self) -> ActionResult:
        """DeleteSubscriber."""
        self._notification("Notification").subscribers.remove(self._get_param("Subscriber"))
        return EmptyResult()

    def describe_subscribers_for_notification(self) -> ActionResult:
        """DescribeSubscribersForNotification."""
        return ActionResult({"Subscribers": self._notification("Notification").subscribers})

    def tag_resource(self) -> ActionResult:
        """TagResource."""
        self.backend.tagger.tag_resource(self._known_arn(), self._get_param("ResourceTags"))
        return EmptyResult()

    def untag_resource(self) -> ActionResult:
        """UntagResource."""
        self.backend.tagger.untag_resource_using_names(self._known_arn(), self._get_param("ResourceTagKeys"))
        return EmptyResult()

    def list_tags_for_resource(self) -> ActionResult:
        """ListTagsForResource."""
        return ActionResult(self.backend.tagger.list_tags_for_resource(self._known_arn()))

    @property
    def _account(self) -> str:
        return str(self._get_param("AccountId"))

    @property
    def _budget(self) -> Any:
        return self.backend.get(self._account, self._get_param("BudgetName"))

    def _notification(self, parameter: str) -> Any:
        return self.backend.notification(self._account, self._get_param("BudgetName"), self._get_param(parameter))

    def _arn(self, name: str) -> str:
        return f"arn:{self.partition}:budgets::{self.current_account}:budget/{name}"

    def _known_arn(self) -> str:
        arn = str(self._get_param("ResourceARN"))
        self.backend.get(self.current_account, arn.partition(":budget/")[2])
        return arn


def install() -> None:
    """Replace moto's budgets with the box's."""
    from moto.budgets.models import budgets_backends

    moto.budgets.urls.url_paths["{0}/$"] = BoxBudgetsResponse.dispatch
    budgets_backends.backend = BoxBudgets
