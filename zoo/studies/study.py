"""What all studies share: YAML files, seeds, folders, means over seeds, and the runner of their experiments."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sb3_fair.common.whole_file import write_whole
from sb3_fair.fairness import intervals
from sb3_fair.zoo import names
from sb3_fair.zoo.packaged import packaged
from sb3_fair.zoo.studies.grid import Job, Result, run_grid

FIRST_SEED = 100
"""Of the runs that count; settings were chosen on smaller ones."""
Results = Mapping[str, Result]


def read(name: str) -> dict[str, Any]:
    """The YAML file of a study."""
    return packaged("studies", name)


def numbers(seeds: int, quick: bool, first: int = FIRST_SEED) -> range:
    """The seeds of the runs; of a quick study at most two."""
    return range(first, first + (min(seeds, 2) if quick else seeds))


def conduct(
    jobs: Mapping[str, Iterable[Job]],
    tell: Callable[[str, Results], Any],
    folder: str | Path,
    n_jobs: int,
    finish: Callable[[dict[str, Any], Results], None] = lambda *_: None,
) -> dict[str, Any]:
    """Does the jobs of all experiments, and writes what their results tell into ``study.json``."""
    results = run_grid([*chain(*jobs.values())], folder, n_jobs)
    found = {name: tell(name, results) for name in jobs}
    finish(found, results)
    write_whole(Path(folder, "study.json"), json.dumps(found, indent=1))
    return found


@dataclass(frozen=True)
class Study:
    """Experiments that are trained, evaluated and told of in tables and figures when it is called.

    :param experiments: their names
    :param jobs: f(experiment, seeds, quick) -> its runs
    :param tell: f(experiment, results, seeds, folder) -> what ``study.json`` says of it
    :param finish: f(what was found, results, seeds, folder) draws what is about several experiments
    """

    experiments: Sequence[str]
    jobs: Callable[[str, range, bool], Iterable[Job]]
    tell: Callable[[str, Results, range, Path], Any]
    finish: Callable[[Mapping[str, Any], Results, range, Path], None] = lambda *_: None

    def __call__(
        self,
        experiments: Sequence[str] | None = None,
        *,
        log_dir: str | Path,
        seeds: int,
        first_seed: int = FIRST_SEED,
        quick: bool = False,
        n_jobs: int = -1,
    ) -> dict[str, Any]:
        """Trains what the experiments need, evaluates it on the same episodes, prints tables and draws figures.

        :param experiments: names of some; None: all
        :param log_dir: for the results of the runs, which are not done again, tables, figures and ``study.json``
        :param seeds: runs per learner
        :param first_seed: of the runs; below 100 to choose settings
        :param quick: at most two seeds, and a fraction of the steps
        :param n_jobs: processes; -1: one per core
        :return: what ``study.json`` holds: experiment -> learner or curve -> mean and ends of 95 % intervals over seeds
        """
        chosen = names.choose_all("experiment", experiments, self.experiments)
        some = numbers(seeds, quick, first_seed)
        of_others = f"-{first_seed}" if first_seed != FIRST_SEED else ""
        folder = Path(log_dir) / (size(quick) + of_others)
        return conduct(
            {name: self.jobs(name, some, quick) for name in chosen},
            lambda name, results: self.tell(name, results, some, folder),
            folder,
            n_jobs,
            lambda found, results: self.finish(found, results, some, folder),
        )


def size(quick: bool) -> str:
    """What the folders of quick and full studies are called."""
    return "quick" if quick else "full"


def mean_and_interval(values: ArrayLike) -> list[float]:
    """Mean, and the ends of its 95 % confidence interval; of a single value: three times that."""
    mean, *ends = intervals.mean_and_interval(values)
    return [float(mean), *(float(mean if np.isnan(end) else end) for end in ends)]


def over(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and 95 % interval over runs of every figure that some run has; figures may be nested."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = [run.get(name, np.nan) for run in runs]
        found[name] = over(values) if isinstance(values[0], Mapping) else mean_and_interval(values)
    return found
