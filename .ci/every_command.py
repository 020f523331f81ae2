"""Runs every command of sb3-fair and every Python example of the README once, in this folder; some with a user's own
environments.

Meant for an environment with nothing but `pip install .`: what only extras bring is missing here.
Usage: python every_command.py README.md
"""

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import typer

from sb3_fair.zoo.cli.commands import app

SMALL = "sb3_fair/JobHiring-Small-v0"
HARVEST = "sb3_fair/AllelopathicHarvest-All-v0"
PCN_RUN = "logs/pcn/sb3_fair-JobHiring-Small-v0_1"
TABLE = "--table log.csv --group gender --outcome fit --nominal land"
ONE = "--seeds 1 --jobs 1"
COMMANDS = f"""
demo --n-timesteps 2000 --no-progress
--version
envs
train --algo ppo --env {SMALL} --objectives R:SP --n-timesteps 1000 --no-progress
train --algo dqn --env bank:Loans-v0 --objectives R:SP --n-timesteps 500 --seeds 2 --jobs 2 --no-progress
train --algo ppo --env CartPole-v1 --fairness bank:leaning --objectives R:SP --n-timesteps 500 --no-progress
train --algo pcn {TABLE} --n-timesteps 2000 -P n_eval_episodes:4 --no-progress
tune --algo ppo --env bank:Counter-v0 --scores R:SP --n-trials 2 --n-jobs 2 --n-timesteps 500
tune --algo fair_ppo --env {HARVEST} --scores dp_norm --n-trials 1 --n-timesteps 4000 -E horizon:20
evaluate --run {PCN_RUN} --n-eval-episodes 2
evaluate --pretrained fair_qcm --n-eval-episodes 2
enjoy --run {PCN_RUN} --film film.gif
report --run {PCN_RUN}
audit log.csv --action hired --group gender --group land --feedback fit --window 50 --html audit.html
benchmark speed --quick --json speed.json
benchmark all --quick --algo dqn --env sb3_fair/Doughnut-v0 {ONE}
benchmark tuned --quick --algo fair_qcm {ONE}
benchmark rules --quick --scenario hiring-small --jobs 1
benchmark hiring --quick --experiment small {ONE}
benchmark fair-qcm --quick --experiment schemes {ONE}
benchmark f-ppo --quick --experiment epidemic-random {ONE}
benchmark fair-ppo --quick --experiment controls {ONE}
benchmark fmdp --quick --experiment history {ONE}
""".strip().splitlines()


def names(group: click.Group, before: str = "") -> list[str]:
    """The full names of all commands."""
    found = []
    for name, command in group.commands.items():
        deeper = isinstance(command, click.Group)
        found += names(command, f"{before}{name} ") if deeper else [before + name]
    return found


def run(title: str, command: list[str]) -> None:
    started = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(f"{time.perf_counter() - started:6.1f} s  {title}", flush=True)
    if done.returncode:
        sys.exit(f"{title} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")


rows = [f"{i * 7 % 3 // 2},{'mf'[i % 2]},{'ab'[i % 3 // 2]},{i % 5 // 3}" for i in range(200)]
Path("log.csv").write_text("\n".join(["hired,gender,land,fit", *rows]))
shutil.copy(Path(sys.argv[1]).parent / "tests/own_env/bank.py", ".")
lines = [f"{line} " for line in COMMANDS]
forgotten = [
    name for name in names(typer.main.get_command(app)) if not any(line.startswith(f"{name} ") for line in lines)
]
if forgotten:
    sys.exit(f"commands without a line here: {', '.join(forgotten)}")
command = str(Path(sys.executable).with_name("sb3-fair"))
jobs = [(f"sb3-fair {line}", [command, *shlex.split(line)]) for line in COMMANDS]
readme = Path(sys.argv[1]).read_text(encoding="utf-8")
examples = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
jobs += [
    (f"example {number} of the README", [sys.executable, "-c", example]) for number, example in enumerate(examples, 1)
]
demo, *others = jobs
run(*demo)  # others look at its run
with ThreadPoolExecutor(2) as two:
    list(two.map(run, *zip(*others, strict=True)))
figures = {figure["work"]: figure["value"] for figure in json.loads(Path("speed.json").read_text())["figures"]}
assert all(map(math.isfinite, figures.values()))
assert figures["hiring env, 1024 copies"] > figures["hiring env, single"]
assert figures["memory of seven notions, window 1000"] < 20
