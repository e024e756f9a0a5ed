"""Cost: price lists, the cost of an environment, cost limits, rent or buy."""
