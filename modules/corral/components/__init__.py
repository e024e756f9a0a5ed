"""Plans to Pulumi resources: one component a concern, nothing decided here.

Children are named `<component>-<key>` with stable words as keys, so that no resource changes its identity when a list
is reordered. Counts, names and CIDRs come from the plan as plain values; `pulumi.Input` fields are others' ids.
"""
