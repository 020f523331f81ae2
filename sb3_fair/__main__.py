"""``python -m sb3_fair`` is the console script ``sb3-fair``."""

from sb3_fair.zoo.cli.commands import main

main()
