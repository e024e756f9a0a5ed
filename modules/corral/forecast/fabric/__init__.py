"""The network of a planned cluster: topology, bisection, all-reduce time, and the cost of a failed network card."""
