"""The parts of :mod:`sb3_fair.zoo.tuning.tune`."""
