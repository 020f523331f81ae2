"""Are both faces of a wrapper what their core says?"""

from functools import partial, reduce
from inspect import signature

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import Autoreset
from stable_baselines3.common import env_checker as sb3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper, VecMonitor

from sb3_fair import wrappers
from sb3_fair.fairness import FairnessSpec, Scheme
from sb3_fair.wrappers import Choices
from sb3_fair.wrappers.faces import Core, Face, VecFace
from sb3_fair.wrappers.observations import rows_of
from tests.pcn.chain import SPACES, Chain
from tests.wrappers.bank import Foreign
from tests.wrappers.test_fmdp import CARTPOLE, FROZENLAKE
from tests.wrappers.test_group_label import Queue, by_info
from tests.wrappers.test_scheme import SCHEMES
from tests.wrappers.test_vector_reward import EMITTED, LEVELS, Told
from tests.wrappers.town import Town

FACES = [
    (name, f"Vec{name}")
    for name, face in vars(wrappers).items()
    if face is not Face and Face in getattr(face, "__mro__", ())
]


class Doubling(Core):
    """Pays twice the reward and shows how often."""

    _adds = True

    def __init__(self, env, times=2):
        super().__init__(env, times=times)
        self.times, self.steps = times, np.zeros(self._n_copies)

    def _restart(self, which, seeded=False):
        self.steps[which] = 0

    def _record(self, step):
        self.steps += 1
        return step.rewards * float(self.times)

    def _shown(self, observation, which=slice(None)):
        return {"own": observation, "steps": self.steps[which].copy()}


class Double(Doubling, Face):
    pass


class VecDouble(Doubling, VecFace):
    pass


def both(name, *arguments, **settings):
    """From ``"Vec"`` or ``""`` and an environment of that kind to the environment in that face of a wrapper."""
    return lambda face, env: getattr(wrappers, face + name)(env, *arguments, **settings)


def stacked(*layers):
    return lambda face, env: reduce(lambda inside, wrap: wrap(face, inside), layers, env)


def scalarised(weights):
    return stacked(both("VectorReward", ("R", "SP")), both("Scalarise", weights))


def by_infos(obs, infos):
    return np.array([info["who"] for info in infos])


def by_observations(obs, infos):
    return obs[:, 0].astype(int)


def labelled(groups, flatten):
    return lambda face, env: (
        wrappers.VecGroupLabelObs(VecMonitor(env), groups, flatten=flatten)
        if face
        else wrappers.GroupLabelObs(env, by_info, flatten=flatten)
    )


CART = partial(gym.make, "CartPole-v1")
FORK = partial(SubprocVecEnv, start_method="fork")
TOLD = [partial(Told, levels) for levels in (LEVELS, LEVELS[::-1], [-0.5])]
TWINS = {
    "own": ([CART], lambda face, env: VecDouble(env) if face else Double(env)),
    "numbers": ([CART], both("FairMDP", CARTPOLE)),
    "names": ([partial(gym.make, "FrozenLake-v1")], both("FairMDP", FROZENLAKE)),
    **{emit: (TOLD, both("VectorReward", ("SP", "R"), emit=emit)) for emit in EMITTED},
    "weighted": (TOLD, scalarised((1, 10))),
    "Chebyshev": (TOLD, scalarised(wrappers.Chebyshev((1, 5), ideal=(30, 0)))),
    "function": (TOLD, scalarised(lambda v: v.min(axis=-1))),
    "all of it": ([CART], stacked(both("FairMDP", CARTPOLE), scalarised((1, 0.5)))),
    "memory": ([Town], both("MemoryAugmentation", "full+clock")),
    "memory of a scheme": ([Town], stacked(both("FairnessScheme", Scheme()), both("MemoryAugmentation", "full+clock"))),
    "period": ([Town], both("FairnessScheme", Scheme(when=("period", 3)))),
    "flat memory": ([Town], both("MemoryAugmentation", "full+clock", flatten=True)),
    **{f"scheme {index}": ([Town], both("FairnessScheme", SCHEMES[index])) for index in (0, 2, 3)},
    **{
        f"{groups.__name__}, flat={flat}": ([Queue], labelled(groups, flat))
        for groups in (by_infos, by_observations)
        for flat in (False, True)
    },
    **{kind: ([partial(Chain, kind, noise=0.3)], both("DesiredReturn", [1.0, 2.0], 4)) for kind in SPACES},
}
"""The environments of the copies, and both faces of what is put around them."""
IN_PROCESSES = {
    "memory": SubprocVecEnv,
    "scheme 0": SubprocVecEnv,
    "by_infos, flat=False": FORK,
    "by_observations, flat=True": FORK,
}
OF_SB3 = {"terminal_observation", "TimeLimit.truncated", "episode"}


def agree(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            agree(one[key], other[key])
    elif one is None or isinstance(one, str):
        assert one == other
    else:
        assert other == pytest.approx(one, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("name", "vec_env"), [*((name, DummyVecEnv) for name in TWINS), *IN_PROCESSES.items()])
def test_copies_in_one_face_are_single_environments_in_the_other(name, vec_env):
    makers, wrap = TWINS[name]
    makers = np.resize(makers, 3).tolist()
    envs, venv = [wrap("", make()) for make in makers], wrap("Vec", vec_env(makers))
    assert envs[0].observation_space == venv.observation_space
    venv.seed(5)
    batch, seen = venv.reset(), [env.reset(seed=5 + index)[0] for index, env in enumerate(envs)]
    rng, ended, n_actions = np.random.default_rng(3), 0, venv.action_space.n
    for _ in range(60):
        for index, obs in enumerate(seen):
            agree(obs, rows_of(batch, index))
        rows = rng.dirichlet(np.ones(n_actions), size=3)
        actions = Choices([rng.choice(n_actions, p=row) for row in rows], rows)
        batch, rewards, dones, infos = venv.step(actions)
        for index, env in enumerate(envs):
            seen[index], reward, terminated, truncated, info = env.step(actions[index])
            assert (reward, terminated or truncated) == (pytest.approx(rewards[index], rel=1e-6), dones[index])
            agree(info, {key: value for key, value in infos[index].items() if key not in OF_SB3})
            if dones[index]:
                agree(seen[index], infos[index]["terminal_observation"])
                seen[index], ended = env.reset()[0], ended + 1
    assert ended > 3
    venv.close()


@pytest.mark.parametrize("name", [name for name in TWINS if name != "own"])
def test_a_single_environment_passes_both_checks_and_is_rebuilt_from_its_spec(name):
    makers, wrap = TWINS[name]
    gym.register("Inside-v0", makers[0])
    try:
        env = wrap("", gym.make("Inside-v0"))
        check_env(env, skip_render_check=True)
        sb3.check_env(env)
        again = gym.make(env.spec)
    finally:
        del gym.registry["Inside-v0"]
    assert again.observation_space == env.observation_space
    agree(*(one.reset(seed=1)[0] for one in (env, again)))
    for step in range(3):
        for one, other in zip(env.step(step % 2), again.step(step % 2), strict=True):
            agree(one, other)


@pytest.mark.parametrize("weights", [np.array([1.0, 10.0]), wrappers.Chebyshev(np.ones(2), ideal=np.zeros(2))])
def test_an_id_whose_wrappers_got_arrays_is_rebuilt_from_its_spec(weights):
    gym.register("Wrapped-v0", lambda: scalarised(weights)("", Told()))
    try:
        env = gym.make("Wrapped-v0")
        again = gym.make(env.spec)
    finally:
        del gym.registry["Wrapped-v0"]
    for one in (env, again):
        one.reset(seed=0)
    assert env.step(0)[1] == again.step(0)[1]


@pytest.mark.parametrize("names", FACES, ids=lambda names: names[0])
def test_constructors_of_both_faces_differ_in_their_environment_alone(names):
    ours = [list(signature(getattr(wrappers, name)).parameters) for name in names]
    assert [names[0] for names in ours] == ["env", "venv"] and ours[0][1:] == ours[1][1:]


def test_an_environment_of_the_other_kind_is_refused():
    spec, env = FairnessSpec(group="group"), gym.make("CartPole-v1")
    with pytest.raises(TypeError, match="venv must be of class VecEnv, got <TimeLimit"):
        wrappers.VecFairMDP(env, spec)
    with pytest.raises(TypeError, match="env must be of class Env, got"):
        wrappers.FairMDP(DummyVecEnv([lambda: env]), spec)


class Serving(Town):
    """Tells whether somebody was served, and pays for every step."""

    def step(self, action):
        obs, _, terminated, truncated, info = super().step(int(action))
        return obs, 1.0, terminated, truncated, {**info, "served": int(info["fair_event"].granted)}


class Keeping(Serving):
    """Has one info for all steps, and changes actions that it was given in arrays."""

    def reset(self, **options):
        self.info = {}
        return super().reset(**options)[0], self.info

    def step(self, action):
        *step, info = super().step(action)
        if isinstance(action, np.ndarray):
            action[...] = 0
        self.info.update(info)
        return *step, self.info


class VecKeeping(Foreign):
    """The same for several copies, which have one info together if they like."""

    def __init__(self, venv):
        super().__init__(venv)
        self.kept = [{} for _ in range(venv.num_envs)]

    def step_async(self, actions):
        self.venv.step_async(actions.copy())
        actions[...] = 0

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        for kept, info in zip(self.kept, infos, strict=True):
            kept.update(info)
        return obs, rewards, dones, self.kept


SPEC = FairnessSpec(group=lambda obs, info: info["served"], favourable=(1, 2), notions=("SP",))


def layers(face=""):
    """Faces whose cores read what the environment publishes and what those inside add."""
    made = [getattr(wrappers, face + name) for name in ("FairMDP", "VectorReward", "Scalarise", "FairnessScheme")]
    fair, vector, scalar, scheme = made
    yield lambda env: scalar(vector(fair(env, SPEC), ("R", "SP"), emit="difference"), (0.0, 1.0))
    yield lambda env: scalar(vector(fair(env, SPEC), ("R", "SP"), emit="terminal"), (0.5, 1.0))
    yield lambda env: scheme(fair(env, SPEC), Scheme(welfare="rawls", when=("period", 2)))


def played(env, keeping):
    env.reset(seed=5)
    rng, told = np.random.default_rng(0), []
    for action in rng.integers(3, size=40):
        _, reward, terminated, truncated, info = env.step(np.array(action) if keeping else action)
        told.append((reward, info["fairness"]["SP"], info["individual"]["action"]))
        if terminated or truncated:
            env.reset()
    return told


@pytest.mark.parametrize("index", range(3))
def test_what_an_environment_keeps_is_no_scratch_space(index):
    wrap = list(layers())[index]
    expected = played(wrap(Serving()), False)
    assert len(set(expected)) > 2
    assert played(wrap(Keeping()), True) == expected
    told = {True: [], False: []}
    for keeping, rows in told.items():
        inside = DummyVecEnv([Serving] * 2)
        venv = list(layers("Vec"))[index](VecKeeping(inside) if keeping else inside)
        venv.seed(5)
        venv.reset()
        for actions in np.random.default_rng(0).integers(3, size=(40, 2)):
            *_, rewards, _, infos = venv.step(actions.copy())
            rows += [(*rewards, *[(info["fairness"]["SP"], info["individual"]["action"]) for info in infos])]
    assert told[True] == told[False]


class SameArray(VecEnvWrapper):
    """Hands out one array, which it fills anew in every step."""

    def reset(self):
        self.obs = self.venv.reset()
        return self.obs

    def step_wait(self):
        obs, *others = self.venv.step_wait()
        self.obs[:] = obs
        return self.obs, *others


class Hiding(VecEnvWrapper):
    """Overwrites observations in the arrays that hold them."""

    def reset(self):
        obs = self.venv.reset()
        obs[:] = 0
        return obs

    def step_wait(self):
        obs, *others = self.venv.step_wait()
        obs[:] = 0
        return obs, *others


@pytest.mark.parametrize(("inside", "outside"), [(SameArray, None), (None, Hiding)])
def test_observations_that_others_change_in_place_are_counted_as_they_were(inside, outside):
    told = []
    for layers_ in ((None, None), (inside, outside)):
        inner, outer = (layer or (lambda venv: venv) for layer in layers_)
        venv = outer(wrappers.VecFairMDP(inner(DummyVecEnv([CART] * 2)), CARTPOLE))
        venv.seed(0)
        venv.reset()
        rng = np.random.default_rng(0)
        told.append([info["individual"]["group"] for _ in range(20) for info in venv.step(rng.integers(2, size=2))[3]])
    assert told[0] == told[1] and len(set(told[0])) == 2


class Ones:
    """A policy that does one thing."""

    def predict(self, obs, **others):
        return np.ones(len(obs), dtype=int), None


@pytest.mark.parametrize("scheme", [False, True])
def test_evaluations_read_what_is_paid_though_a_monitor_is_inside(scheme):
    wrap = list(layers())[2 if scheme else 1]
    single = make_vec_env(Serving, 2, seed=1, wrapper_class=wrap)
    batched = list(layers("Vec"))[2 if scheme else 1](VecMonitor(DummyVecEnv([Serving] * 2)))
    for venv in (single, batched):
        returns, lengths = evaluate_policy(Ones(), venv, 6, return_episode_rewards=True)
        for _ in range(3):  # of an episode that is broken off
            venv.step(np.ones(2, dtype=int))
        venv.seed(1)
        venv.reset()
        paid, sums, told = [], np.zeros(2), []
        while len(paid) < 12:
            *_, rewards, dones, infos = venv.step(np.ones(2, dtype=int))
            sums += rewards
            paid += sums[dones].tolist()
            told += [info["episode"]["r"] for info, done in zip(infos, dones, strict=True) if done]
            sums[dones] = 0
        np.testing.assert_allclose(told, paid, atol=1e-6)
        assert set(lengths) == {8} and min(paid) - 1e-6 <= min(returns) <= max(returns) <= max(paid) + 1e-6


def test_an_entry_of_the_same_name_is_no_monitor_s():
    class Numbered(Serving):
        def step(self, action):
            *step, info = super().step(action)
            return *step, {**info, "episode": 7}

    env = list(layers())[1](Numbered())
    env.reset(seed=0)
    assert [env.step(1)[4]["episode"] for _ in range(8)] == [7] * 8


def test_an_environment_that_restarts_by_itself_is_refused():
    with pytest.raises(ValueError, match="env must not restart by itself: put Autoreset around FairMDP"):
        wrappers.FairMDP(Autoreset(Serving()), SPEC)
    assert Autoreset(wrappers.FairMDP(Serving(), SPEC)).reset(seed=0)
