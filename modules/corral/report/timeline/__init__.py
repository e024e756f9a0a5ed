"""Views of a cluster's history: events and jobs as bars over time, on a terminal and as a page."""
