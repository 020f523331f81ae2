"""The command line `sb3-fair`."""

from sb3_fair.zoo.cli.commands import app, main

__all__ = ["app", "main"]
