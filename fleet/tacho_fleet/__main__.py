"""`python -m tacho_fleet` is `tacho-fleet`."""

from tacho_fleet.cli import main

main()
