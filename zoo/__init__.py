"""Scenarios, tuned hyperparameters and the command line."""

if __name__ != "sb3_fair.zoo":
    raise ImportError("import this folder as sb3_fair.zoo")
