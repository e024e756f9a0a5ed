"""The machine that the agent runs on: `base` is the interface; `ec2` and `box` implement it."""
