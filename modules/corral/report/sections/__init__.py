"""The sections of the page of a plan and its run, one module a subject: what they say, show, and list."""
