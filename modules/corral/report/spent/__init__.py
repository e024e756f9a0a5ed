"""What a life of a cluster took: machines and what their time went into, interruptions, jobs, money.

From the events that its head wrote and the runs of its jobs, priced by the catalogue. `ledger.spent` is the entry.
"""
