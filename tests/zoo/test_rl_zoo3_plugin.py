"""Do rl_zoo3's own train and enjoy take our algorithms, environments and settings?"""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import yaml

from sb3_fair.common.front import Front
from sb3_fair.common.plain import plain
from sb3_fair.zoo import rl_zoo3_plugin
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.registry.pairs import obstacles
from sb3_fair.zoo.registry.registration import WORLDS
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.settings import AROUND
from sb3_fair.zoo.runs.train import build_model, training_env

HIRING, LENDING, DOUGHNUTS = "sb3_fair/JobHiring-Small-v0", "sb3_fair/Lending-v0", "sb3_fair/Doughnut-Small-v0"
SMALL_TEAM = "--env-kwargs team_size:5 episode_length:20"
ROLLOUTS = "n_steps:16 batch_size:32 n_epochs:1"
REPLAY = "learning_starts:40 buffer_size:1000 batch_size:32"
RUNS = {
    "f_ppo": f"--env {LENDING} --env-kwargs episode_length:20 -params {ROLLOUTS}",
    "ppo_lagrangian": f"--env {LENDING} --env-kwargs episode_length:20 -params {ROLLOUTS}",
    "fair_ppo": f"--env {HIRING} {SMALL_TEAM} -params {ROLLOUTS}",
    "fair_qcm": f"--env {DOUGHNUTS} -params {REPLAY}",
    "tabular_fair_qcm": f"--env {DOUGHNUTS}",
    "recurrent_dqn": f"--env {HIRING} {SMALL_TEAM} -params {REPLAY} sequence_length:5 burn_in:5",
    "ppo": f"--env {HIRING} {SMALL_TEAM} -params {ROLLOUTS}",
}
needs_rl_zoo3 = pytest.mark.skipif(find_spec("rl_zoo3") is None, reason="rl_zoo3 is not installed")


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_settings_are_what_rl_zoo3_hands_to_the_environment_and_the_algorithm(algo):
    algorithm = ALGORITHMS[algo]
    for env in WORLDS:
        if [*obstacles(algorithm, env, {})]:
            continue
        entry = rl_zoo3_plugin.settings(algo, env)
        assert yaml.safe_load(yaml.safe_dump(plain(entry))) == plain(entry)
        assert entry.pop("n_timesteps") > 0 and entry.pop("n_envs") > 0
        assert entry.pop("policy", None) == algorithm.policy or "Harvest" in env
        given = entry.pop("env_kwargs")
        assert algorithm.vector or len(given["scalarise"]) == len(given["objectives"])
        assert entry.keys() <= {*algorithm.settings, *AROUND}


def test_what_is_given_goes_before_what_the_zoo_has():
    entry = rl_zoo3_plugin.settings("f_ppo", LENDING, {"episode_length": 20})
    usual = rl_zoo3_plugin.settings("f_ppo", LENDING)["env_kwargs"]
    assert usual["detail"] and usual["scalarise"] == [1.0] and usual["episode_length"] > 20
    assert entry["env_kwargs"] == usual | {"episode_length": 20}


@pytest.mark.parametrize("env", ["sb3_fair/LoanAllocation-v0", "sb3_fair/HomeVisits-v0", DOUGHNUTS])
def test_fair_qcm_has_the_memory_that_it_trains_with(env):
    plan = make_plan("fair_qcm", env)
    given = rl_zoo3_plugin.settings("fair_qcm", env)["env_kwargs"]
    assert given["memory"] == build_model(plan, training_env(plan), "cpu").memory.name


def test_normalisation_and_wrappers_are_handed_on(monkeypatch):
    wrapper = "gymnasium.wrappers.FlattenObservation"
    plan = replace(make_plan("ppo", LENDING), normalize={}, env_wrapper=wrapper)
    monkeypatch.setattr(rl_zoo3_plugin, "make_plan", lambda *_, **__: plan)
    entry = rl_zoo3_plugin.settings("ppo", LENDING)
    assert entry["normalize"] == {} and entry["env_wrapper"] == wrapper
    assert "vec_env_wrapper" not in entry


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rl_zoo3", None)
    with pytest.raises(ImportError, match=r'pip install "sb3-fair\[rl-zoo3\]"'):
        rl_zoo3_plugin.register()


def test_it_says_what_must_come_first(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rl_zoo3_plugin", "--algo", "pcn"])
    with pytest.raises(SystemExit, match="train or enjoy must come first, then options of rl_zoo3, got '--algo'"):
        rl_zoo3_plugin.main()


def run(folder, *command):
    ran = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    return ran.stdout


@needs_rl_zoo3
@pytest.mark.slow
def test_pcn_trains_in_rl_zoo3_and_is_enjoyed_with_its_best_command(tmp_path):
    plugin = ("-m", "sb3_fair.zoo.rl_zoo3_plugin")
    learn = f"-n 2000 -f logs --seed 1 --num-threads 1 --device cpu {SMALL_TEAM} objectives:['R','SP']"
    settings = "-params n_fill_episodes:4 n_updates:2"
    run(tmp_path, *plugin, "train", "--algo", "pcn", "--env", HIRING, *learn.split(), *settings.split())
    folder = tmp_path / "logs" / "pcn" / "sb3_fair-JobHiring-Small-v0_1"
    front = Front.load(folder / "front.json")
    config = yaml.unsafe_load((folder / "sb3_fair-JobHiring-Small-v0" / "config.yml").read_text())
    ((name, command),) = config["vec_env_wrapper"][0].items()
    assert name == "sb3_fair.wrappers.VecDesiredReturn"
    assert command["desired_return"] == plain(front[0].command.desired_return)
    assert all(policy.deterministic for policy in front)  # as enjoy plays them
    assert config["env_kwargs"]["objectives"] == ["R", "SP"] and config["env_kwargs"]["team_size"] == 5
    look = ("-n", "100", "-f", "logs", "--no-render", "--num-threads", "1", "--device", "cpu")
    assert "Mean reward" in run(tmp_path, *plugin, "enjoy", "--algo", "pcn", "--env", HIRING, *look)
    trained = ("-i", str(folder / "sb3_fair-JobHiring-Small-v0.zip"))
    run(tmp_path, *plugin, "train", "--algo", "pcn", "--env", HIRING, *learn.split(), *settings.split(), *trained)
    assert (tmp_path / "logs" / "pcn" / "sb3_fair-JobHiring-Small-v0_2" / "front.json").exists()


@needs_rl_zoo3
@pytest.mark.slow
def test_all_other_algorithms_train_and_are_enjoyed_in_rl_zoo3(tmp_path):
    learn = "-n 200 -f logs --seed 1 --num-threads 1 --device cpu --eval-freq 200 --eval-episodes 1"
    look = "-n 60 -f logs --no-render --num-threads 1 --device cpu"
    commands = [
        command
        for algo, options in RUNS.items()
        for command in (
            f"train --algo {algo} {learn} {options}",
            f"enjoy --algo {algo} {look} --env {options.split()[1]}",
        )
    ]
    code = "import sys\nfrom sb3_fair.zoo.rl_zoo3_plugin import main\n"
    code += f"for command in {commands}:\n    sys.argv = ['plugin', *command.split()]\n    main()\n"
    shown = run(tmp_path, "-c", code)
    assert shown.count("Saving to") == len(RUNS)
    assert shown.count("Mean reward: ") >= len(RUNS)
    assert {path.parent.name for path in tmp_path.glob("logs/*/*_1")} == set(RUNS)
    for algo in RUNS:
        assert list(tmp_path.glob(f"logs/{algo}/*_1/best_model.zip"))


@needs_rl_zoo3
@pytest.mark.slow
def test_a_table_learns_on_and_evaluations_keep_the_settings_that_are_not_given(tmp_path):
    learn = f"train --algo tabular_fair_qcm --env {DOUGHNUTS} -n 200 -f logs --eval-freq 100 --eval-episodes 1"
    learn += " --eval-env-kwargs episode_length:10"
    trained = " -i logs/tabular_fair_qcm/sb3_fair-Doughnut-Small-v0_1/sb3_fair-Doughnut-Small-v0.zip"
    for command in (learn, learn + trained):
        run(tmp_path, "-m", "sb3_fair.zoo.rl_zoo3_plugin", *command.split())
    assert len(list(tmp_path.glob("logs/tabular_fair_qcm/*/best_model.zip"))) == 2


@needs_rl_zoo3
@pytest.mark.slow
def test_environments_are_told_the_policys_probabilities_in_training_and_in_evaluations(tmp_path):
    code = """
import sys
import rl_zoo3.train
from sb3_fair.wrappers import FairMDP
from sb3_fair.zoo import rl_zoo3_plugin

step, told = FairMDP.step, set()

def listen(self, action):
    told.add(getattr(action, "probabilities", None) is not None)
    return step(self, action)

FairMDP.step = listen
rl_zoo3_plugin.register()
rl_zoo3.train.train()
print("told:", told)
"""
    options = f"--algo ppo --env {HIRING} -n 64 -f logs --eval-freq 32 --eval-episodes 1 {SMALL_TEAM}"
    assert "told: {True}" in run(tmp_path, "-c", code, *options.split(), "-params", *ROLLOUTS.split())
