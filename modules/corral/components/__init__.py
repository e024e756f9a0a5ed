"""Plans to Pulumi resources: one component per concern. `plan` decides; components only declare.

Children are named `<component>-<key>` with stable words as keys, so that reordering a list changes no resource's
identity. Counts, names and CIDRs are plain values of the plan; `pulumi.Input` fields hold ids of other resources.
"""
