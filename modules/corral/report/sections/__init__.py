"""The sections of the HTML page of a plan and its run, one module per subject."""
