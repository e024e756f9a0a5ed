"""Fault injection as the daemon serves it: `fault_service` is what the daemon holds.

`instance_actions` apply faults to running instances, `describe` lists the active ones. What a fault is, and which one
applies to a call, is in `faults`; what one does to a launch, in `ec2.launch_faults`.
"""
