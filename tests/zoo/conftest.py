"""What several test files of the zoo share."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.runs import train as training
from sb3_fair.zoo.runs.checkpoint import before
from sb3_fair.zoo.runs.plan import make_plan
from tests.zoo.waiting import wait_until

HIRING = {
    "env": "sb3_fair/JobHiring-Small-v0",
    "env_kwargs": {"team_size": 5, "episode_length": 20},
    "objectives": ("R", "SP"),
    "window": 50,
}
LENDING = {"env": "sb3_fair/Lending-v0", "env_kwargs": {"episode_length": 20}}
DOUGHNUTS = {"env": "sb3_fair/Doughnut-Small-v0"}
ROLLOUTS = {"n_steps": 32, "batch_size": 32, "n_epochs": 1}
REPLAY = {"learning_starts": 40, "buffer_size": 1000, "batch_size": 32}
QUICK = {
    "pcn": (
        HIRING,
        {"n_fill_episodes": 4, "n_episodes": 4, "n_updates": 2, "updates_per_step": None, "eval_freq": 0.3,
         "n_eval_episodes": 1, "n_eval_commands": 1, "eval_optimism": [], "buffer_size": 10},
    ),
    "f_ppo": (LENDING, ROLLOUTS),
    "ppo_lagrangian": (LENDING, ROLLOUTS),
    "fair_ppo": (HIRING, ROLLOUTS),
    "fair_qcm": (DOUGHNUTS, REPLAY),
    "tabular_fair_qcm": (DOUGHNUTS, {}),
    "recurrent_dqn": (HIRING, {**REPLAY, "sequence_length": 5, "burn_in": 5}),
    "ppo": (HIRING, ROLLOUTS),
    "a2c": (HIRING, {"n_steps": 2}),
    "dqn": (HIRING, REPLAY),
    "trpo": (HIRING, {"n_steps": 32, "batch_size": 32}),
    "qrdqn": (HIRING, {**REPLAY, "policy_kwargs": {"n_quantiles": 10, "net_arch": [16]}}),
    "ppo_lstm": (HIRING, ROLLOUTS),
}  # fmt: skip


def make_quick_plan(algo, n_timesteps=600, **changes):
    """A plan that is trained in a second."""
    where, hyperparams = QUICK[algo]
    kwargs = {**where.get("env_kwargs", {}), **({"window": where["window"]} if "window" in where else {})}
    return make_plan(
        algo,
        where["env"],
        objectives=where.get("objectives"),
        env_kwargs=kwargs,
        hyperparams={**hyperparams, "n_eval_episodes": 2} | changes,
        n_envs=2,
        n_timesteps=n_timesteps,
        audit=("SP",),
        seed=3,
    )


@pytest.fixture
def quick_plan():
    """Makes a plan that is trained in a second."""
    return make_quick_plan


def interrupted(plan, folder, at=(training, "policies_of"), **options):
    """A run that was killed when it was about to be evaluated, or to call another function, with one checkpoint."""
    with pytest.MonkeyPatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(*at, lambda *_: 1 / 0)
        training.train(plan, log_dir=folder, checkpoint_minutes=0, **options)
    (path,) = folder.glob("*/*/config.yml")
    run = RunFolder(path.parent)
    before(run.checkpoint).unlink(missing_ok=True)
    assert run.checkpoint.is_file() and not run.finished
    return run


@pytest.fixture
def dask_cluster():
    """Starts a scheduler and workers, each a process of its own."""
    distributed = pytest.importorskip("distributed")

    @contextmanager
    def cluster(folder, workers=2, threads=1, **variables):
        """Its address, and all processes, the scheduler first.

        :param variables: of the workers' environment
        """
        folder.mkdir(exist_ok=True)
        file = folder / "scheduler.json"
        environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        options = ["--scheduler-file", str(file), "--no-dashboard"]

        def start(*command):
            command = [sys.executable, "-m", *command, *options]
            started = subprocess.Popen(command, cwd=folder, env=environment | variables, stderr=subprocess.DEVNULL)
            stack.callback(started.wait)
            stack.callback(started.kill)
            return started

        with ExitStack() as stack:
            processes = [start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")]
            wait_until(file.is_file)
            for _ in range(workers):
                processes.append(start("distributed.cli.dask_worker", "--no-nanny", "--nthreads", str(threads)))
            address = json.loads(file.read_text())["address"]
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=120)
            yield address, processes

    return cluster
