"""The people of the cluster on a machine: their accounts, homes, keys, and what is left of those who were removed."""
