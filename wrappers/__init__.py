"""Wrappers that turn any environment into a fairness MDP, each with its VecEnv twin."""

if __name__ != "sb3_fair.wrappers":
    raise ImportError("import this folder as sb3_fair.wrappers")
