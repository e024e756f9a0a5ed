"""Facts of others: instance types, prices, regions, images, file system sizes, each with its source.

They stand in data files; the modules here load them into frozen records, once a process. Nothing is decided here, and
nothing but the standard library is imported.
"""
