"""Can this account start this plan now? What is asked of AWS is read here and never changed; judging it is pure."""
