"""Samplers of tuning studies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

MANY = 250
"""From so many trials on, a study with several scores is for evolution rather than for a model of the scores."""
STARTUP = 10
"""Trials with random values, before a model of the scores is trusted; no trial is pruned before half of them."""
POPULATION = 20

SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed, n_startup_trials=STARTUP),
    "nsgaii": lambda seed: NSGAIISampler(seed=seed, population_size=POPULATION),
    "random": lambda seed: RandomSampler(seed=seed),
}
AUTO = "auto"
PRUNERS: dict[str, BasePruner] = {
    "none": NopPruner(),
    "median": MedianPruner(n_startup_trials=STARTUP // 2, n_warmup_steps=1),
    "halving": SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
}


def _passed_on(name: str) -> Callable[..., Any]:
    return lambda self, *given: getattr(self._sampler, name)(*given)


class NumberedSampler(BaseSampler):
    """Asks another sampler, which is seeded anew for every trial.

    What it proposes follows from the seed, the trial's number and the trials before: it does not matter which process
    asks, nor how often the study was interrupted, and two processes do not propose the same.

    :param name: in :data:`SAMPLERS`, or ``"auto"``: TPE, and from :data:`MANY` trials on NSGA-II for several scores
    """

    infer_relative_search_space = _passed_on("infer_relative_search_space")
    sample_relative = _passed_on("sample_relative")
    sample_independent = _passed_on("sample_independent")
    after_trial = _passed_on("after_trial")

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.seed = seed
        self._sampler: BaseSampler = RandomSampler(seed=seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        name = self.name
        if name == AUTO:
            name = "nsgaii" if len(study.directions) > 1 and trial.number >= MANY else "tpe"
        seed = int(np.random.SeedSequence((self.seed, trial.number)).generate_state(1)[0])
        self._sampler = SAMPLERS[name](seed)
        self._sampler.before_trial(study, trial)
