"""`python -m corral.cli` is `corral`."""

from corral.cli import main

main()
