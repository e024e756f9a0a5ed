"""The network of a planned cluster as a graph of few numbers: its bisection, what a lost card and two leaves cost."""
