"""CloudWatch alarms and logs, SNS topics, budgets."""
