"""A user's environments go through every command, as the shipped ones do."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sb3_fair.common.run_folder import RunFolder
from tests.kill_training import MAIN, SCENARIOS, chain
from tests.zoo.waiting import wait_until

BANK = "tests.own_env.bank"
LOANS, COUNTER = f"{BANK}:Loans-v0", f"{BANK}:Counter-v0"
QUICK = "--n-timesteps 600 -P n_eval_episodes:2 --no-progress"
COMMANDS = {
    "ppo": f"train --algo ppo --env {LOANS} --objectives R:SP:EO {QUICK}",
    "dqn": f"train --algo dqn --env {LOANS} --objectives R:SP {QUICK}",
    "pcn": f"train --algo pcn --env {LOANS} --objectives R:SP {QUICK} -P n_fill_episodes:4 -P n_episodes:4",
    "f_ppo": f"train --algo f_ppo --env {LOANS} {QUICK}",
    "ppo_lagrangian": f"train --algo ppo_lagrangian --env {LOANS} {QUICK}",
    "fair_ppo": f"train --algo fair_ppo --env {LOANS} {QUICK}",
    "fair_qcm": f"train --algo fair_qcm --env {LOANS} -E 'scheme:{{welfare: nash}}' {QUICK}",
    "track": f"train --algo ppo --env {LOANS} --track {QUICK}",
    "world, ppo": f"train --algo ppo --env {COUNTER} --objectives R:SP {QUICK}",
    "world, pcn": f"train --algo pcn --env {COUNTER} --objectives R:SP {QUICK} -P n_fill_episodes:4 -P n_episodes:4",
    "world, f_ppo": f"train --algo f_ppo --env {COUNTER} {QUICK}",
    "CartPole, ppo": f"train --algo ppo --env CartPole-v1 --fairness {BANK}:leaning --objectives R:SP {QUICK}",
    "CartPole, pcn": f"train --algo pcn --env CartPole-v1 --fairness {BANK}:leaning --objectives R:SP {QUICK}",
    "Box, ppo": f"train --algo ppo --env Pendulum-v1 --fairness {BANK}:pushing --objectives R:SP {QUICK}",
    "MultiBinary, ppo": f"train --algo ppo --env {BANK}:Counters-v0 --objectives R:SP {QUICK}",
    "world, MultiBinary, ppo": f"train --algo ppo --env {BANK}:Counterpart-v0 --objectives R:SP {QUICK}",
    "world, MultiBinary, pcn": f"train --algo pcn --env {BANK}:Counterpart-v0 --objectives R:SP {QUICK} "
    "-P n_fill_episodes:4 -P n_episodes:4",
    "MultiDiscrete, ppo": f"train --algo ppo --env {BANK}:Hours-v0 --objectives R:SP {QUICK}",
    "tune": f"tune --algo ppo --env {LOANS} --scores R:SP --n-trials 2 --n-jobs 2 --only gamma --n-timesteps 300",
    "tune, world": f"tune --algo ppo --env {COUNTER} --n-trials 1 --only gamma --n-timesteps 300",
    "tune, CartPole": f"tune --algo ppo --env CartPole-v1 --fairness {BANK}:leaning --n-trials 1 --only gamma "
    "--n-timesteps 300",
    "envs": f"envs --env-module {BANK}",
}


def sb3_fair(line, folder):
    """What a command prints in ``folder``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"}
    ended = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m sb3_fair.zoo {line}'],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_take_environments_of_users(name, tmp_path):
    out = sb3_fair(COMMANDS[name], tmp_path)
    runs = [RunFolder(file.parent) for file in tmp_path.glob("logs/*/*/model.zip")]
    if name.startswith("tune"):
        assert list(tmp_path.glob("logs/tune/*/best.yml"))
    elif name == "envs":
        assert "Loans-v0" in out and "Counter-v0" in out
    else:
        assert runs[0].front and (runs[0].path / "report.html").exists()
    if name == "track":
        assert list(tmp_path.rglob("*.wandb"))
    if name in ("ppo", "world, pcn"):
        told = sb3_fair(f"evaluate --run {runs[0].path} --n-eval-episodes 2", tmp_path)
        assert ("south" if name == "ppo" else "young") in told and "known if favourable" in told
        sb3_fair(f"report --run {runs[0].path}", tmp_path)
    if name == "ppo":
        sb3_fair(f"enjoy --run {runs[0].path} --film film.gif", tmp_path)
        assert (tmp_path / "film.gif").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("env", [LOANS, COUNTER])
def test_trainings_in_environments_of_users_go_on_where_they_were_killed(env, tmp_path, monkeypatch):
    monkeypatch.setitem(SCENARIOS, "ppo", (env, 12_000))
    chance = random.Random(2)
    for attempt in range(3):  # on a machine that gets less busy, a training may end before it can be killed
        done = chain("ppo", 1, chance, tmp_path / str(attempt), [signal.SIGKILL])
        if done.wrong or done.kills.total():
            break
    assert not done.wrong and done.kills.total() == 1


@pytest.mark.slow
def test_several_seeds_go_on_where_they_were_killed(tmp_path):
    line = f"train --algo ppo --env {LOANS} --n-timesteps 20000 -P n_eval_episodes:2 --seeds 2 --jobs 2"
    process = subprocess.Popen(
        [*MAIN, *line.split(), "--checkpoint-minutes", "0", "--no-progress"],
        cwd=tmp_path, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(lambda: len({file.parent for file in tmp_path.glob("logs/ppo/*/checkpoint*")}) == 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    runs = sorted(Path(tmp_path, "logs", "ppo").iterdir())
    assert len(runs) == 2 and not any((run / "model.zip").exists() for run in runs)
    for run in runs:
        sb3_fair(f"train --resume {run} --no-progress", tmp_path)
        assert RunFolder(run).finished
