"""Facts from outside: instance types, prices, regions, images, file system sizes, each with its source.

Data files hold the facts; the packages here load them into frozen records, once per process. They decide nothing and
import only the standard library.
"""
