"""Kills trainings of every algorithm at random times, resumes them, and compares them with uninterrupted ones.

``python -m tests.kill_training --kills 100`` from the root of the repository takes half an hour on two idle cores.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.plan import Plan
from tests.zoo.runs.test_resume import learned, rows

ROOT = Path(__file__).parents[1]
MAIN = [sys.executable, "-m", "sb3_fair.zoo"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
GO_ON = re.compile(r"go on with: sb3-fair (train --resume .*)")
HARVEST = "sb3_fair/AllelopathicHarvest-v0"
REPLAY = ("-P", "buffer_size:5000", "-P", "train_freq:4")
SHORT = ("-E", "episode_length:100", "-E", "team_size:10")
HIRING = "sb3_fair/JobHiring-Small-v0"
SCENARIOS = {
    "pcn": (HIRING, 8_000, *SHORT, "-P", "n_fill_episodes:10", "-P", "n_episodes:10", "-P", "n_updates:10"),
    "f_ppo": ("sb3_fair/Lending-v0", 12_000, "-E", "episode_length:300"),
    "ppo_lagrangian": ("sb3_fair/Lending-v0", 12_000, "-E", "episode_length:300"),
    "fair_ppo": (HARVEST, 6_000, "-E", "horizon:200"),
    "fair_qcm": ("sb3_fair/Doughnut-v0", 4_000, *REPLAY),
    "tabular_fair_qcm": ("sb3_fair/Doughnut-Small-v0", 40_000),
    "recurrent_dqn": (HIRING, 2_000, *SHORT, *REPLAY),
    "ppo": (HARVEST, 8_000),
    "a2c": ("sb3_fair/FraudDetection-v0", 8_000),
    "dqn": (HARVEST, 8_000, *REPLAY),
    "trpo": ("sb3_fair/EpidemicControl-v0", 4_000),
    "qrdqn": (HIRING, 2_000, *SHORT, *REPLAY),
    "ppo_lstm": (HIRING, 2_000, *SHORT, "-P", "n_steps:32"),
}
"""The main scenario of each algorithm, steps that take some seconds, and settings that are not the zoo's."""


@dataclass
class Chain:
    """A training that was killed again and again.

    :param wrong: what differs from the uninterrupted training, and what went wrong on the way
    """

    algo: str
    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def train(algo: str, folder: Path, *options: str) -> list[str]:
    """The command that trains in ``folder``."""
    env, steps, *settings = SCENARIOS[algo]
    given = f"train --algo {algo} --env {env} --n-timesteps {steps} --audit SP -P n_eval_episodes:2 --device cpu"
    return [*MAIN, *given.split(), "--log-dir", str(folder), "--checkpoint-minutes", str(1 / 60), *settings, *options]


def begin(command: list[str]) -> subprocess.Popen[str]:
    """A process that can be interrupted, even where this one ignores Ctrl-C."""
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run_of(folder: Path) -> RunFolder | None:
    """The run in ``folder``, if its training has begun."""
    found = [RunFolder(file.parent) for file in folder.glob("*/*/config.yml")]
    return found[0] if found else None


def chain(algo: str, kills: int, chance: random.Random, place: Path, signals=SIGNALS) -> Chain:
    """Trains once without and once with interruptions; what differs.

    :param kills: most kills; the training goes on to its end after the last
    :param place: a folder for both
    """
    done = Chain(algo)
    started = time.monotonic()
    whole = begin(train(algo, place / "whole"))
    errors = whole.communicate()[1]
    if whole.returncode:
        done.wrong.append(f"uninterrupted: {errors[-500:]}")
        return done
    seconds = time.monotonic() - started
    command = train(algo, place / "parts")
    while True:
        began, process = time.monotonic(), begin(command)
        last = done.kills.total() >= kills
        try:
            errors = process.communicate(timeout=None if last else chance.uniform(0.4, 0.9) * seconds)[1]
        except subprocess.TimeoutExpired:
            number = chance.choice(signals)
            process.send_signal(number)
            try:
                errors = process.communicate(timeout=120)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                done.wrong.append(f"{number.name} is ignored")
                return done
            done.kills[number.name] += 1
        else:
            number = None
            if process.returncode == 0 and not last and not done.kills:  # faster than the first, as on a busy machine
                seconds = time.monotonic() - began
                shutil.rmtree(place / "parts")
                continue
        run = run_of(place / "parts")
        if process.returncode == 0 or (number is not None and run is not None and run.finished):
            break
        if number is None:
            done.wrong.append(f"{number and number.name}: exit code {process.returncode}: {errors[-500:]}")
            return done
        if run is not None:
            said = GO_ON.search(errors)
            command = [*MAIN, *(shlex.split(said[1]) if said else ("train", "--resume", str(run.path)))]
            if process.returncode == 128 + number and not said and "sb3-fair: stopped" not in errors:
                done.wrong.append(f"{number.name} does not say how to go on: {errors[-500:]}")
    done.wrong += differences(algo, run_of(place / "whole"), run)
    return done


def differences(algo: str, expected: RunFolder, found: RunFolder) -> list[str]:
    """What is not the same in two finished runs."""
    cls = Plan.from_config(expected.config).algorithm.cls
    weights, again = (learned(cls.load(run.model, device="cpu")) for run in (expected, found))
    wrong = [f"weights {name}" for name in weights if not np.array_equal(weights[name], again[name])]
    if (expected.path / "front.json").read_text() != (found.path / "front.json").read_text():
        wrong.append("front.json")
    if algo == "a2c":  # it counts iterations between rows from a resumption
        steps = [int(row["time/total_timesteps"]) for row in rows(found.path)]
        if any(later <= earlier for earlier, later in pairwise(steps)):
            wrong.append(f"rows at {steps}")
    elif rows(found.path) != rows(expected.path):
        wrong.append(f"progress.csv: {len(rows(found.path))} rows, not {len(rows(expected.path))}, or other numbers")
    return wrong + [f"{file.name} is left" for file in found.path.glob("checkpoint*")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="in all")
    parser.add_argument("--algo", nargs="+", default=list(ALGORITHMS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, totals, wrong = random.Random(given.seed), Counter(), 0
    while totals.total() < given.kills:
        for algo in given.algo:
            with TemporaryDirectory() as place:
                done = chain(algo, 3, chance, Path(place))
            totals += done.kills
            wrong += bool(done.wrong)
            print(f"{algo}: {dict(done.kills)}, {done.wrong or 'the same'}", flush=True)
            if totals.total() >= given.kills:
                break
    print(f"{totals.total()} kills {dict(totals)}; {wrong} trainings went wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
