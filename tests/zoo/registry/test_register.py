"""Environments of users: registered in one call, made in every way, trained and judged by the commands."""

import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from multiprocessing import active_children
from typing import get_type_hints

import gymnasium as gym
import numpy as np
import pytest
from joblib import parallel_config
from stable_baselines3.common.env_util import make_vec_env

import sb3_fair
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.envs.doughnut import DoughnutWorld
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.registration import ROWS, Row, add
from sb3_fair.zoo.registry.sending import receive
from sb3_fair.zoo.runs.parallel import in_parallel
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.train import build_model, training_env
from tests.zoo.forms import MAKERS, path_of

BANK = """
import gymnasium as gym
import numpy as np
import sb3_fair
from sb3_fair.fairness import FairnessSpec


class Bank(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def seen(self):
        self.group = int(self.np_random.integers(3))
        return np.array([self.group / 2, self.np_random.random()], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen(), {}

    def step(self, action):
        repaid = int(self.np_random.random() < 0.6)
        info = {"who": "abc"[self.group], "repaid": repaid}
        return self.seen(), float(action) * (2 * repaid - 1), False, False, info


spec = FairnessSpec(group="who", feedback="repaid", notions=("SP", "EO"))
absent = FairnessSpec(group="who", groups=("a", "z"))
blind = FairnessSpec(group="who", notions=("EO",))
beyond = FairnessSpec(group="who", features=slice(0, 2), low=0, high=0.1, notions=("IF",))
three = 3

sb3_fair.register("test/Loans-v0", Bank, spec, max_episode_steps=30, rules={"lend": lambda obs: 1}, title="My bank")
sb3_fair.register("test/Endless-v0", Bank, spec)
sb3_fair.register("test/Broken-v0", Bank, spec, max_episode_steps=30, rules={"lend": lambda obs: obs["score"]})
sb3_fair.register("test/Beyond-v0", Bank, spec, max_episode_steps=30, rules={"lend": lambda obs: 7})
sb3_fair.register("test/Half-v0", Bank, spec, max_episode_steps=30, rules={"lend": lambda obs: 0.5})


class Branches(Bank):  # decides on a person at each of two counters
    action_space = gym.spaces.MultiBinary(2)

    def step(self, action):
        needs = self.np_random.random(2)
        who = {"group": np.array(["a", "b"]), "features": needs[:, None], "feedback": (needs > 0.5).astype(int)}
        return self.seen(), float((needs - 0.5) @ action), False, False, {"individual": who}


class Odds(Bank):
    action_space = gym.spaces.Discrete(2, start=1)


class Dicts(Bank):
    observation_space = gym.spaces.Dict({"applicant": Bank.observation_space, "day": gym.spaces.Discrete(7)})

    def seen(self):
        return {"applicant": super().seen(), "day": 3}


class Tuples(Bank):
    observation_space = gym.spaces.Tuple([Bank.observation_space])

    def seen(self):
        return (super().seen(),)


class Vectors(Bank):
    def step(self, action):
        obs, reward, *told = super().step(action)
        return obs, np.array([reward, 1.0]), *told


several = FairnessSpec(feature_names=("need",), notions=("SP", "IF"))
sb3_fair.register("test/Branches-v0", Branches, several, max_episode_steps=20, hyperparams={"ppo": "branches.yml"})
sb3_fair.register("test/Odds-v0", Odds, FairnessSpec(group="who", favourable=(2,)), max_episode_steps=20)
sb3_fair.register("test/Dicts-v0", Dicts, spec, max_episode_steps=20)
sb3_fair.register("test/Tuples-v0", Tuples, spec, max_episode_steps=20)
sb3_fair.register("test/Vectors-v0", Vectors, spec, max_episode_steps=20)
"""
ENV = "my_bank:test/Loans-v0"
QUICK = ["--n-timesteps", 128, "--n-envs", 2, "-P", "n_eval_episodes:2", "-P", "n_steps:32", "-P", "batch_size:32"]


@pytest.fixture
def bank(tmp_path, monkeypatch, registries):
    """A folder with a user's module."""
    (tmp_path / "my_bank.py").write_text(BANK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for module in ("my_bank", "my_other_bank"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("form", MAKERS)
def test_every_form_takes_the_path_of_single_environments(bank, monkeypatch, form):
    monkeypatch.syspath_prepend(bank)
    actions = np.random.default_rng(0).integers(2, size=(70, 2))
    expected, found = (
        [(reward, over, info["fairness"]["SP"]) for path in paths for _, reward, over, info in path]
        for paths in (path_of(each, ENV, actions, 0, objectives=("R", "SP"), window=20) for each in ("single", form))
    )
    np.testing.assert_allclose(np.array(found, dtype=float), np.array(expected, dtype=float))


def test_commands_take_an_environment_of_ones_own(bank, command):
    code, out, _ = command("envs", "--env-module", "my_bank")
    assert code == 0 and "My bank" in out and ENV in out
    assert "Dict(applicant Box(2), day Discrete(7))" in " ".join(out.split()) and "Tuple(Box(2))" in out
    code, out, err = command("train", "--algo", "ppo", "--env", ENV, *QUICK, "--no-progress")
    assert code == 0, err
    assert "lend" in out and "EO" in out
    code, out, err = command("evaluate", "--run", bank / "logs/ppo/test-Loans-v0_1", "--n-eval-episodes", 2)
    assert code == 0 and "lend" in out, err


def test_the_environments_of_several_modules_are_listed(bank, command):
    (bank / "my_other_bank.py").write_text(
        'import sb3_fair\nsb3_fair.register("test/Other-v0", "CartPole-v1", "a:b")\n'
    )
    (bank / "a.py").write_text("from sb3_fair.fairness import FairnessSpec\nb = FairnessSpec(group='side')\n")
    code, out, err = command("envs", "--env-module", "my_bank", "my_other_bank")
    assert code == 0 and ENV in out and "my_other_bank:test/Other-v0" in out, err


def test_several_people_a_step_are_trained_on_with_settings_beside_the_module(bank, command, monkeypatch, recwarn):
    settings = "n_timesteps: 64, n_envs: 2, n_steps: 32, batch_size: 32, env_kwargs: {objectives: [R, SP]}"
    (bank / "branches.yml").write_text(f"test/Branches-v0: {{{settings}}}\n")
    (bank / "elsewhere").mkdir()
    monkeypatch.syspath_prepend(bank)
    monkeypatch.chdir(bank / "elsewhere")
    given = ["--algo", "ppo", "--env", "my_bank:test/Branches-v0", "-P", "n_eval_episodes:2", "--no-progress"]
    code, out, err = command("train", *given)
    assert code == 0 and "SP" in out, err
    run = RunFolder("logs/ppo/test-Branches-v0_1")
    assert run.config["n_timesteps"] == 64 and run.config["env_kwargs"]["emit"] == "difference"
    assert run.front[0].probabilities == "policy" and not [w for w in recwarn if "executed" in str(w.message)]
    assert run.front[0].final["EO"].shape == (2,)  # audited although the actions are not discrete
    code, _, err = command("enjoy", "--run", run.path, "--film", "film.gif")
    assert code == 2 and "render" in err and len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize(("algo", "policy"), [("ppo", "MultiInput"), ("ppo_lstm", "MultiInput"), ("pcn", "PCNPolicy")])
def test_dict_observations_are_learned_from(bank, monkeypatch, algo, policy):
    monkeypatch.syspath_prepend(bank)
    plan = make_plan(algo, "my_bank:test/Dicts-v0")
    assert policy in type(build_model(plan, training_env(plan), "cpu").policy).__name__


@pytest.mark.parametrize("algo", ["ppo", "pcn"])
def test_observations_that_networks_do_not_take_are_refused(bank, monkeypatch, algo):
    monkeypatch.syspath_prepend(bank)
    plan = make_plan(algo, "my_bank:test/Tuples-v0")
    with pytest.raises(InputError, match=rf"observations must be of a space that {algo} can learn from: Tuple\(Box"):
        build_model(plan, training_env(plan), "cpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test/Branches-v0: {n_epoch: 4}", "unknown setting in branches.yml 'n_epoch'"),
        ("test/Other-v0: {n_epochs: 4}", "hyperparams must have an entry for test/Branches-v0, got test/Other-v0"),
    ],
)
def test_what_is_wrong_with_registered_settings_is_said_of_them(bank, command, text, message):
    (bank / "branches.yml").write_text(text)
    code, _, err = command("train", "--algo", "ppo", "--env", "my_bank:test/Branches-v0", "--no-progress")
    assert code == 2 and message in err, err


FORMS = {
    "make_vec": lambda env_id: sb3_fair.make_vec(env_id, 2),
    "gymnasium": gym.make,
    "sb3": lambda env_id: make_vec_env(env_id, 2),
}
SAID = {"words": {"R": "profit"}, "title": "Bank"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["world", "gymnasium"])
def test_every_form_says_what_was_registered(bank, form, kind):
    if kind == "world":
        sb3_fair.register("test/Other-v0", DoughnutWorld, rules={"lend": lambda w: np.eye(5)[[0] * w.n_worlds]}, **SAID)
    else:
        spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0))
        sb3_fair.register("test/Other-v0", "CartPole-v1", spec, rules={"lend": lambda obs: 1}, **SAID)
    env = FORMS[form]("test/Other-v0")
    assert attribute(env, "words")["R"] == "profit" and attribute(env, "source") == "Bank"
    assert ("spread" in attribute(env, "words")) == ("oracle" in attribute(env, "rules")) == (kind == "world")
    assert len(sb3_fair.evaluate("lend", env, 2).table()["length"]) == 2
    with pytest.raises(ValueError, match=r"rule must be one of .*'lend'"):
        sb3_fair.evaluate("lent", env, 2)


def test_names_that_copies_in_processes_lack_end_no_process(bank, monkeypatch):
    monkeypatch.syspath_prepend(bank)
    with closing(gym.make_vec(ENV, num_envs=2, vec_env="subproc", objectives=("R", "SP"))) as env:
        env.reset(seed=0)
        assert not hasattr(env, "reward_rnage")
        for ask in (env.get_attr, env.call, env.env_method):
            with pytest.raises(AttributeError, match="'GymnasiumVector' object has no attribute 'reward_rnage'"):
                ask("reward_rnage")
        assert env.get_attr("objective_names") == (("R", "SP"),) * 2
        assert np.isfinite(env.step(np.array([1, 0]))[1]).all()


@pytest.mark.parametrize("make", [gym.make, sb3_fair.make_vec, partial(sb3_fair.make_vec, vec_env="subproc")])
def test_a_keyword_that_nobody_knows_is_told_with_those_of_every_id(registries, make):
    sb3_fair.register("test/Other-v0", "CartPole-v1", FairnessSpec(group=lambda obs, info: 0))
    with pytest.raises(TypeError, match=r"'objective'.*every ID also takes .*did you mean 'objectives'"):
        make("test/Other-v0", objective=("R", "SP"))


def test_no_process_outlives_what_it_was_made_for(bank, monkeypatch):
    monkeypatch.syspath_prepend(bank)
    before = {*active_children()}  # those of other tests may be ending
    with pytest.raises(ValueError, match="weights must be"):
        sb3_fair.make_vec(ENV, 2, vec_env="subproc", objectives=("R", "SP"), scalarise=(1, 2, 3))
    assert before >= {*active_children()}
    assert len(sb3_fair.evaluate("lend", ENV, 2, vec_env="subproc").table()["length"]) == 2
    assert before >= {*active_children()}


class Locked(gym.Wrapper):
    """Cannot be sent to other processes, nor be closed."""

    fairness_spec = threading.Lock()

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def close(self):
        raise RuntimeError("closed for ever")


def test_an_environment_that_cannot_be_closed_hides_no_message_and_no_evaluation(registries):
    sb3_fair.register("test/Locked-v0", Locked)
    with pytest.raises(ValueError, match="'fairness_spec' of environments in other processes must be picklable"):
        sb3_fair.make_vec("test/Locked-v0", 2, vec_env="subproc")
    sb3_fair.register("test/Open-v0", Locked, FairnessSpec(group=lambda obs, info: 0))
    assert len(sb3_fair.evaluate(lambda obs: 1, "test/Open-v0", 2).table()["length"]) == 2


def test_an_id_is_new_again_after_gymnasium_forgot_it(registries):
    for title in ("first", "second"):
        sb3_fair.register("test/Other-v0", "CartPole-v1", FairnessSpec(group=lambda obs, info: 0), title=title)
        assert attribute(gym.make("test/Other-v0"), "source") == title
        with pytest.raises(ValueError, match=r"id must be new, .*registry\.pop\('test/Other-v0'\) frees it"):
            sb3_fair.register("test/Other-v0", "CartPole-v1")
        gym.registry.pop("test/Other-v0")


def test_an_id_that_gymnasium_refuses_leaves_no_row(registries):
    gym.register("test/Plain", "gymnasium.envs.classic_control:CartPoleEnv")
    with pytest.raises(ValueError, match=r"id must be one that Gymnasium takes, got 'test/Plain-v0': Can't register"):
        sb3_fair.register("test/Plain-v0", "CartPole-v1")
    assert "test/Plain-v0" not in ROWS


def test_without_rules_none_is_known():
    with pytest.raises(ValueError, match=r"rule must be one of \(\), got 'lend'"):
        sb3_fair.evaluate("lend", gym.make("CartPole-v1"), 1)


def test_warnings_are_one_line(bank):
    line = f"train --algo pcn --env {ENV} --n-timesteps 400 -P n_fill_episodes:2 -P n_episodes:2 -P n_eval_episodes:2"
    command = [sys.executable, "-m", "sb3_fair.zoo", *line.split(), "--no-progress"]
    ended = subprocess.run(command, cwd=bank, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.startswith("sb3-fair: 8 of 10 copies") and len(ended.stderr.strip().splitlines()) == 1


def test_a_spec_makes_a_fairness_mdp_of_any_id(bank, command):
    (bank / "my_spec.py").write_text(
        "from sb3_fair.fairness import FairnessSpec\n"
        "def side(obs, info):\n    return 'left' if obs[2] < 0 else 'right'\n"
        "spec = FairnessSpec(group=side)\n"
    )
    given = ["--algo", "ppo", "--env", "CartPole-v1", *QUICK]
    code, _, err = command("train", *given, "--no-progress")
    assert code == 2 and "fairness must be given for 'CartPole-v1'" in err
    code, out, err = command("train", *given, "--fairness", "my_spec:spec", "--no-progress")
    assert code == 0 and "SP" in out, err
    (bank / "best.yml").write_text(
        "CartPole-v1: {env_kwargs: {objectives: [R], spec: 'my_spec:spec'}}"
    )  # as tune writes it
    again = ["--fairness", "my_spec:spec", "--conf-file", bank / "best.yml", "--no-progress"]
    code, _, err = command("train", *given, *again)
    assert code == 0, err
    code, _, err = command("evaluate", "--run", bank / "logs/ppo/CartPole-v1_1", "--n-eval-episodes", 1)
    assert code == 0, err


def in_a_notebook(folder, code):
    """Output and warnings of the bank and what follows it, in a process that has no file."""
    ended = subprocess.run([sys.executable, "-c", BANK + code], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def test_processes_know_what_a_notebook_registers(tmp_path):
    code = """
from functools import partial
from threading import Lock
from sb3_fair.zoo.runs.parallel import in_parallel

def spaces(number):
    return [str(sb3_fair.make_vec(env).action_space) for env in ("test/Loans-v0", "test/Late-v0")]

gym.register("Plain-v0", Bank)
sb3_fair.register("test/Late-v0", "Plain-v0", spec, max_episode_steps=30)
sb3_fair.register("test/Locked-v0", partial(Bank, Lock()), spec, max_episode_steps=30)
print(*in_parallel(spaces, [(1,), (2,)], n_jobs=2))
gym.registry.pop("test/Loans-v0")
sb3_fair.register("test/Loans-v0", Odds, FairnessSpec(group="who", favourable=(2,)), max_episode_steps=30)
print(*in_parallel(spaces, [(1,), (2,)], n_jobs=2))
"""
    told, warned = in_a_notebook(tmp_path, code)
    first, then = ["Discrete(2)", "Discrete(2)"], ["Discrete(2, start=1)", "Discrete(2)"]
    assert told.splitlines() == [f"{first} {first}", f"{then} {then}"]
    assert (
        "test/Locked-v0 is unknown to other processes, to which it cannot be sent (TypeError: cannot pickle" in warned
    )


def test_processes_forget_what_a_notebook_registers_no_more(tmp_path):
    (tmp_path / "loans.py").write_text(BANK)
    code = """
from functools import partial
from sb3_fair.zoo.runs.parallel import in_parallel

def space(number, env):
    return str(sb3_fair.make_vec(env).action_space)

gym.registry.pop("test/Loans-v0")
gym.register("Plain-v0", partial(Odds))
sb3_fair.register("test/Loans-v0", "Plain-v0", FairnessSpec(group="who", favourable=(2,)), max_episode_steps=30)
print(*in_parallel(space, [(1, "test/Loans-v0"), (2, "test/Loans-v0")], n_jobs=2))
for name in [name for name in gym.registry if name.startswith("test/")]:
    gym.registry.pop(name)
import loans
print(*in_parallel(space, [(1, "loans:test/Loans-v0"), (2, "loans:test/Loans-v0")], n_jobs=2))
"""
    told, _ = in_a_notebook(tmp_path, code)
    assert told.splitlines() == ["Discrete(2, start=1) Discrete(2, start=1)", "Discrete(2) Discrete(2)"]


def test_threads_have_what_is_registered_as_it_is(registries):
    gym.register("test/Plain-v0", lambda: None)
    add(Row("test/Ours-v0", lambda: None))
    before = gym.registry["test/Plain-v0"], ROWS["test/Ours-v0"]
    with parallel_config(backend="threading"):
        assert set(in_parallel(abs, [(1,), (2,)], n_jobs=2)) == {1, 2}
    assert gym.registry["test/Plain-v0"] is before[0] and ROWS["test/Ours-v0"] is before[1]


def test_what_a_process_cannot_read_stops_nothing():
    with pytest.warns(UserWarning, match="test/Lost-v0 is unknown to process .* No module named 'no_such_module'"):
        receive({"test/Lost-v0": b"cno_such_module\nName\n."})


@pytest.mark.slow
def test_seeds_and_studies_of_what_a_notebook_registers_have_processes(tmp_path):
    code = """
from dataclasses import replace
from sb3_fair.zoo.runs.plan import make_plan
from sb3_fair.zoo.runs.seeds import train_all
from sb3_fair.zoo.tuning.tune import make_tuning, tune

given = {"n_timesteps": 64, "n_envs": 2, "hyperparams": {"n_steps": 32, "batch_size": 32, "n_eval_episodes": 1}}
plan = make_plan("ppo", "test/Loans-v0", **given)
train_all([plan, replace(plan, seed=1)], n_jobs=2)
tune(make_tuning("ppo", "test/Loans-v0", only=["gamma"], **given), n_trials=2, n_jobs=2)
"""
    in_a_notebook(tmp_path, code)
    assert len(list(tmp_path.glob("logs/ppo/*/report.html"))) == 2
    assert (tmp_path / "logs/tune/ppo_test-Loans-v0/best.yml").is_file()


@pytest.mark.slow
def test_processes_of_seeds_and_studies_find_the_module(bank):
    for given in (["train", "--seeds", 2, "--jobs", 2], ["tune", "--n-trials", 2, "--n-jobs", 2, "--only", "gamma"]):
        command = [sys.executable, "-m", "sb3_fair.zoo", *given, "--algo", "ppo", "--env", ENV, *QUICK]
        ended = subprocess.run([*map(str, command)], cwd=bank, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("env", "fairness", "message"),
    [
        (ENV, "my_bank:three", "fairness must be a FairnessSpec for test/Loans-v0, got 3"),
        (ENV, "my_bank:nothing", "fairness must be 'module:name' with a name that the module has"),
        (ENV, "nowhere:spec", "fairness must name a module that can be imported"),
        (ENV, "my_bank:absent", "fairness must have groups that occur, got 'z'"),
        (ENV, "my_bank:blind", "no decision had feedback"),
        (ENV, "my_bank:beyond", "features must be within"),
        ("my_bank:test/Endless-v0", None, "max_episode_steps must be given for test/Endless-v0"),
        ("my_bank:test/Loan-v0", None, "env must be an ID that its module registers"),
        ("my_bank:test/Broken-v0", None, "rules must return actions, but 'lend' of my_bank:test/Broken-v0 fails: Ind"),
        (
            "my_bank:test/Beyond-v0",
            None,
            "'lend' of my_bank:test/Beyond-v0 must return an action of Discrete(2), got",
        ),
        ("my_bank:test/Half-v0", None, "'lend' of my_bank:test/Half-v0 must return an action of Discrete(2), got 0.5"),
        ("my_bank:test/Odds-v0", None, "ppo needs actions that start at 0"),
        ("my_bank:test/Vectors-v0", None, "R must be one number per step, got the array reward"),
    ],
)
def test_what_does_not_fit_is_one_line(bank, command, env, fairness, message):
    given = [] if fairness is None else ["--fairness", fairness]
    code, _, err = command("train", "--algo", "ppo", "--env", env, *given, *QUICK)
    assert code == 2 and message in err and len(err.strip().splitlines()) == 1, err
    assert not (bank / "logs").exists()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"id": "CartPole-v1"}, ValueError, "id must be new"),
        ({"id": "sb3_fair/Lending-v0"}, ValueError, "id must be new, .* registered already by sb3_fair"),
        ({"id": 3}, TypeError, "id must be a text"),
        ({"id": "Loans"}, ValueError, "id must be a name with a version, such as 'Loans-v0', got 'Loans'"),
        ({"id": "Lo ans-v0"}, ValueError, "id must be a name with a version"),
        ({"entry_point": "CartPol-v1"}, ValueError, "entry_point must be 'module:name' or an ID"),
        ({"entry_point": 3}, TypeError, "entry_point must be a class"),
        ({"fairness": 3}, TypeError, "fairness must be a FairnessSpec"),
        ({"hyperparams": {"ppo": 3}}, ValueError, "hyperparams must be"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps must be a positive integer or None, got 0"),
        ({"rules": {"lend": 1}}, ValueError, r"rules must be a dict \(each value a callable\), got {'lend': 1}"),
        ({"reference_point": {"R": "x"}}, ValueError, "reference_point must be a dict"),
        ({"title": 3}, ValueError, "title must be a string or None, got 3"),
    ],
)
def test_wrong_arguments_of_register_are_named(given, error, message):
    with pytest.raises(error, match=message):
        sb3_fair.register(**{"id": "test/New-v0", "entry_point": "CartPole-v1", **given})
    assert "test/New-v0" not in gym.registry and "Loans" not in ROWS


def test_its_types_can_be_asked_for():
    assert get_type_hints(sb3_fair.register)["id"] is str
