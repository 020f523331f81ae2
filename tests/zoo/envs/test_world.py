"""Do all faces of a world take the same path, and do they keep their libraries' contracts?"""

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from numpy.testing import assert_array_equal, assert_equal

import sb3_fair
from sb3_fair.fairness import FairnessSpec
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.gymnasium_vector import GymnasiumVector
from sb3_fair.wrappers.infos import stack
from sb3_fair.zoo.envs.doughnut.world import DoughnutWorld
from sb3_fair.zoo.envs.hiring.world import HiringWorld
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import World, WorldEnv, WorldVecEnv
from tests.zoo.forms import begun

SMALL = {"team_size": 4, "episode_length": 11, "steps_per_year": 30, "feedback": "hired", "detail": True}


class WalkWorld(World):
    """Walkers on a line: the move and a gust are added; terminated beyond 3, truncated after 6 steps.

    Every step decides on two people, of whom the second is present only right of 0.
    """

    rules: ClassVar = {"stay": lambda world, rng: np.zeros(world.n_worlds)}

    def __init__(self, n_worlds, *, bounds=2.0, agents=None):
        self.n_agents, self.max_steps, self.max_return = agents, 6, 12.0
        self.action_space = spaces.Box(-bounds, bounds, (1,), np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.fairness_spec = FairnessSpec(notions=())
        self.shape = (n_worlds,) if agents is None else (n_worlds, agents)
        self.position, self.time = np.zeros(self.shape), np.zeros(n_worlds, dtype=int)
        super().__init__(n_worlds, Tapes(n_worlds, 1))

    def restart(self, which):
        self.time[which] = 0
        for index in which:
            self.position[index] = self.reset_streams[index].random(self.shape[1:])
        return self.observation()[which]

    def observation(self):
        time = self.time if self.n_agents is None else self.time[:, None]
        return np.stack(np.broadcast_arrays(self.position, time), axis=-1).astype(np.float32)

    def step(self, actions):
        self.tapes.advance()
        gust = self.tapes.now.values
        self.position = self.position + actions[..., 0] + (gust[:, 0] if self.n_agents is None else gust)
        self.time += 1
        people = np.stack([self.position, -self.position], axis=-1)
        record = {
            "individual": {"features": people, "present": np.stack([people[..., 0] < np.inf, self.position > 0], -1)}
        }
        far = np.abs(self.position) > 3
        terminated = far if self.n_agents is None else far.any(axis=1)
        reward = self.position.copy()
        return self.observation(), reward, terminated, (self.time >= 6) & ~terminated, record

    def massage(self):
        return {"time": self.time.copy() if self.n_agents is None else np.repeat(self.time[:, None], self.n_agents, 1)}

    def action_masks(self):
        return self.position[..., None] > np.zeros(3)

    def render(self, index):
        return np.full((2, 3, 3), index, dtype=np.uint8)


def actions_of(world_cls, steps, n, seed=0):
    rng = np.random.default_rng(seed)
    if world_cls is WalkWorld:
        return rng.uniform(-1, 2, (steps, n, 1)).astype(np.float32)
    return (rng.random((steps, n)) < 0.6).astype(np.int64)


WORLDS = [(HiringWorld, SMALL), (HiringWorld, SMALL | {"group": ["gender", "nationality"]}), (WalkWorld, {})]


@pytest.mark.parametrize("world_cls, config", WORLDS)
def test_vector_env_equals_gymnasiums_sync_vector_env(world_cls, config):
    config = config | ({"feedback": "all"} if world_cls is HiringWorld else {})
    ours = GymnasiumVector(WorldVecEnv(world_cls, 3, **config))
    theirs = SyncVectorEnv([lambda: WorldEnv(world_cls, **config)] * 3, autoreset_mode="SameStep")
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    start, theirs_start = ours.reset(seed=5), theirs.reset(seed=5)
    assert_array_equal(start[0], theirs_start[0])
    assert_same_infos(start[1], theirs_start[1])
    for actions in actions_of(world_cls, 40, 3):
        *step, infos = ours.step(actions)
        *step_, infos_ = theirs.step(actions)
        for array, array_ in zip(step, step_, strict=True):
            assert_array_equal(array, array_)
            assert array.dtype == array_.dtype
        if world_cls is WalkWorld:  # people who are not present change the shape of Gymnasium's arrays
            infos, infos_ = ({key: info[key] for key in ("massage", "_massage")} for info in (infos, infos_))
        assert_same_infos(infos, infos_)


@pytest.mark.parametrize("env_id", ["JobHiring-Small-v0", "FraudDetection-v0", "Lending-v0"])
def test_infos_of_a_vector_env_are_the_caller_s(env_id):
    def clear(infos):
        for value in infos.values():
            if isinstance(value, dict):
                clear(value)
            elif value.dtype != object:
                value[...] = 0

    told = []
    for cleared in (False, True):
        env = gym.make_vec(f"sb3_fair/{env_id}", num_envs=2, objectives=("R", "SP"))
        infos, seen = env.reset(seed=0)[1], []
        for _ in range(30):
            if cleared:
                clear(infos)
            obs, rewards, *_, infos = env.step(np.ones(2, dtype=int))
            seen.append((obs.tolist(), rewards.tolist(), str(infos)))
        told.append(seen)
    assert told[0] == told[1]


def assert_same_infos(infos, theirs):
    """Entries are compared where Gymnasium's mask says that they are there."""
    assert {key for key in infos if not key.startswith("_") and infos[f"_{key}"].any()} == {
        key for key in theirs if not key.startswith("_")
    }
    for key in theirs:
        if key.startswith("_"):
            assert_array_equal(infos[key], theirs[key])
        elif isinstance(theirs[key], dict):
            assert_same_infos(infos[key], theirs[key])
        else:
            mask = theirs[f"_{key}"]
            assert_equal(list(infos[key][mask]), list(theirs[key][mask]))


def test_a_list_of_seeds_seeds_copy_by_copy():
    env = GymnasiumVector(WorldVecEnv(HiringWorld, 3, **SMALL))
    first, _ = env.reset(seed=[4, 5, 6])
    again, _ = env.reset(seed=[None, 5, None])
    assert_array_equal(first[1], again[1])
    assert not (first[[0, 2]] == again[[0, 2]]).all(axis=1).any()
    assert_array_equal(env.reset(seed=np.array([4, 5, 6]))[0], first)
    assert_array_equal(env.reset(seed=np.int64(4))[0], first)


def test_a_step_of_a_single_environment_has_plain_python_numbers():
    env = WorldEnv(HiringWorld, **SMALL)
    env.reset(seed=0)
    for action in (0, np.int64(1), np.array(1)):
        obs, reward, terminated, truncated, info = env.step(action)
        assert isinstance(obs, np.ndarray) and obs.dtype == np.float32
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        assert type(info["individual"]["group"]) is int and type(info["individual"]["action"]) is int
    assert env.step(0)[4]["individual"]["feedback"] is None


def test_resets_without_a_seed_go_on_and_with_the_seed_begin_again():
    env = WorldEnv(HiringWorld)
    first, _ = env.reset(seed=1)
    second, _ = env.reset()
    assert (first != second).any()
    env.step(1)
    assert_array_equal(env.reset(seed=1)[0], first)
    assert_array_equal(env.reset()[0], second)
    assert (WorldEnv(HiringWorld).reset()[0] != WorldEnv(HiringWorld).reset()[0]).any()


def test_reseeding_one_copy_leaves_the_others_on_their_path():
    def play(reseeded):
        world, seen = begun(HiringWorld, 3, **SMALL), []
        for step, actions in enumerate(actions_of(HiringWorld, 30, 3)):
            obs, *_ = world.step(actions)
            if step % 10 == 9:
                rng = [np.random.default_rng(99)] if reseeded and step == 9 else None
                obs[[1]] = world.reset(np.array([1]), rng)
            seen.append(obs)
        return np.array(seen)

    plain, reseeded = play(False), play(True)
    assert_array_equal(plain[:, [0, 2]], reseeded[:, [0, 2]])
    assert (plain[9, 1] != reseeded[9, 1]).any()
    fresh = HiringWorld(1, **SMALL)
    assert_array_equal(fresh.reset(np.arange(1), [np.random.default_rng(99)])[0], reseeded[9, 1])
    for actions, obs in zip(actions_of(HiringWorld, 30, 3)[10:19], reseeded[10:19], strict=True):
        assert_array_equal(fresh.step(actions[[1]])[0][0], obs[1])


@pytest.mark.parametrize("action", [-1, 2, 7])
def test_an_action_outside_the_space_is_an_error_that_names_it_and_the_space(action):
    message = rf"every action must be in Discrete\(2\), got {action}"
    env = WorldEnv(HiringWorld)
    env.reset(seed=0)
    vec = WorldVecEnv(HiringWorld, 2)
    vec.reset()
    for step, actions in ((env.step, action), (vec.step, [0, action])):
        with pytest.raises(ValueError, match=message):
            step(actions)


@pytest.mark.parametrize("action", [0.7, "hire", None, [1]])
def test_an_action_of_another_kind_is_an_error_that_shows_it(action):
    env = WorldEnv(HiringWorld)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="actions must be an array of shape"):
        env.step(action)


@pytest.mark.parametrize("action", [[2.5], [np.nan], [-3.0]])
def test_a_box_action_outside_its_bounds_is_an_error(action):
    env = WorldEnv(WalkWorld)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="every action must be in Box"):
        env.step(np.array(action))


@pytest.mark.parametrize("before", [0, 5])
def test_a_copy_that_is_seeded_alone_takes_a_path_of_its_own_and_the_others_go_on(before):
    world, untouched = begun(DoughnutWorld, 3), begun(DoughnutWorld, 3)
    path = np.random.default_rng(0).integers(5, size=(before + 20, 3))
    for actions in path[:before]:
        world.step(actions)
        untouched.step(actions)
    world.reset(np.array([1]), [np.random.default_rng(9)])
    alone = begun(DoughnutWorld, seed=9)
    for actions in path[before:]:
        obs = world.step(actions)[0]
        assert_array_equal(obs[1:2], alone.step(actions[1:2])[0])
        assert_array_equal(obs[::2], untouched.step(actions)[0][::2])


def test_discrete_actions_may_start_elsewhere_and_be_several():
    class Lines(WalkWorld):
        def __init__(self, n_worlds, space):
            super().__init__(n_worlds)
            self.action_space = space

        def step(self, actions):
            return super().step(actions.reshape(len(actions), -1)[:, :1].astype(float))

    for space, good, bad in (
        (spaces.Discrete(3, start=-1), -1, 2),
        (spaces.MultiDiscrete([2, 5]), [1, 4], [2, 0]),
        (spaces.MultiBinary(2), [1.0, 0.0], [0.5, 0.0]),
        (spaces.Box(0.1, 0.7, (2,)), [0.1, 0.7], [0.1, 1e300]),  # float32, in which 0.7 is a little less
    ):
        env = WorldEnv(Lines, space=space)
        env.reset(seed=0)
        env.step(np.array(good))
        with pytest.raises(ValueError, match="every action must be in"):
            env.step(np.array(bad))
    with pytest.raises(TypeError, match="action_space of a World must be"):
        WorldEnv(Lines, space=spaces.Text(2))


def test_actions_may_carry_their_probabilities():
    env = WorldVecEnv(HiringWorld, 3)
    env.seed(0)
    env.reset()
    actions = Choices(np.array([0, 1, 0]), np.full((3, 2), 0.5))
    assert_array_equal(stack(env.step(actions)[3], "individual")["action"], [0, 1, 0])
    single = WorldEnv(HiringWorld)
    single.reset(seed=0)
    assert single.step(actions[1])[4]["individual"]["action"] == 1


def test_people_who_are_not_present_are_left_out_of_single_infos():
    env = WorldEnv(WalkWorld)
    env.reset(seed=0)
    for move, people in ((-2.0, 1), (2.0, 2)):
        info = env.step(np.array([move], dtype=np.float32))[4]
        assert info["individual"]["features"].shape == (people,)


def test_a_vecenv_gives_each_agent_of_each_world_a_slot():
    env = WorldVecEnv(WalkWorld, 2, agents=3)
    assert env.num_envs == 6
    env.seed(4)
    obs = env.reset()
    world = WalkWorld(2, agents=3)
    start = world.reset(np.arange(2), [np.random.default_rng(4), np.random.default_rng(5)])
    assert_array_equal(obs, start.reshape(6, 2))
    for actions in actions_of(WalkWorld, 30, 6):
        obs, rewards, dones, infos = env.step(actions)
        last, reward, terminated, truncated, record = world.step(actions.reshape(2, 3, 1))
        done = terminated | truncated
        assert_array_equal(rewards, reward.ravel())
        assert_array_equal(dones, np.repeat(done, 3))
        for slot in range(6):
            assert infos[slot]["TimeLimit.truncated"] == truncated[slot // 3]
            assert_array_equal(
                infos[slot]["individual"]["features"][0], record["individual"]["features"][slot // 3, slot % 3, 0]
            )
            if dones[slot]:
                assert_array_equal(infos[slot]["terminal_observation"], last[slot // 3, slot % 3])
                assert env.reset_infos[slot]["massage"]["time"] == 0
        if done.any():
            last[done] = world.reset(np.flatnonzero(done))
        assert_array_equal(obs, last.reshape(6, 2))
    assert_array_equal(env.env_method("action_masks", indices=[4])[0], world.action_masks()[1, 1])


def test_a_world_of_several_agents_has_no_single_face():
    with pytest.raises(ValueError, match="a world of several agents has only a VecEnv face, got WalkWorld"):
        WorldEnv(WalkWorld, agents=2)


def test_a_vecenv_answers_for_its_world():
    env = WorldVecEnv(HiringWorld, 3)
    env.reset()
    assert env.get_attr("max_steps") == [1000] * 3
    assert env.get_attr("fairness_spec", indices=[0])[0].notions == ("SP", "EO")
    assert len(env.env_method("goodness")) == 3 and type(env.env_method("goodness")[0]) is float
    assert WorldVecEnv(DoughnutWorld, 3).env_method("massage") == [None] * 3
    assert not env.has_attr("objective_names")
    assert env.env_is_wrapped(object) == [False] * 3
    env.set_attr("label", "x")
    assert env.get_attr("label") == ["x"] * 3
    with pytest.raises(ValueError, match="all copies share one World, got 1"):
        env.set_attr("label", "y", indices=1)


def test_the_single_face_shows_what_wrappers_ask_for():
    env = WorldEnv(HiringWorld, episode_length=77).unwrapped
    assert (env.max_steps, env.max_return, env.world.n_worlds) == (77, 77.0, 1)
    assert env.fairness_spec is env.world.fairness_spec


def test_what_is_set_through_wrappers_of_the_single_face_reaches_its_world():
    env = gym.make("sb3_fair/JobHiring-Small-v0")
    world = env.unwrapped.world
    assert env.set_wrapper_attr("max_steps", 7) and env.set_wrapper_attr("label", "x", force=True)
    assert (world.max_steps, env.get_wrapper_attr("max_steps"), env.get_wrapper_attr("label")) == (7, 7, "x")
    assert not env.unwrapped.set_wrapper_attr("seed", 1, force=False)
    env.reset(seed=0)
    assert sum(1 for _ in iter(lambda: env.step(0)[3], True)) == 6


def test_pictures_come_only_with_their_render_mode():
    assert WorldEnv(WalkWorld).render() is None
    assert WorldVecEnv(WalkWorld, 2).get_images() == [None, None]
    assert_array_equal(WorldEnv(WalkWorld, render_mode="rgb_array").render(), np.zeros((2, 3, 3)))
    assert [picture.max() for picture in WorldVecEnv(WalkWorld, 2, render_mode="rgb_array").get_images()] == [0, 1]
    assert WorldVecEnv(WalkWorld, 2, render_mode="rgb_array").render().shape == (4, 3, 3)
    for face in (WorldEnv, WorldVecEnv):
        with pytest.raises(ValueError, match=r"render_mode must be 'rgb_array' or None, got 'human'"):
            face(WalkWorld, render_mode="human")


@pytest.mark.parametrize("n", [0, -1, 2.0, True])
def test_the_number_of_copies_must_be_positive(n):
    with pytest.raises(ValueError, match=f"n_envs must be a positive integer, got {n}"):
        WorldVecEnv(HiringWorld, n)


def test_the_single_face_does_not_show_what_moves_a_world():
    env = WorldEnv(HiringWorld)
    for name in ("seed", "restart", "forgotten"):
        assert not hasattr(env, name)


@pytest.mark.parametrize("env_id", ["Lending-v0", "AttentionAllocation-Discrete-v0", "EpidemicControl-v0"])
def test_detail_shows_the_outlook_before_and_after_a_step(env_id):
    venv = sb3_fair.make_vec(f"sb3_fair/{env_id}", 3, seed=0, detail=True, episode_length=4, monitor=False)
    venv.action_space.seed(0)
    venv.reset()
    after = None
    for step in range(9):
        _, _, _, infos = venv.step(np.array([venv.action_space.sample() for _ in range(3)]))
        detail = stack(infos, "detail")
        if step % 4:  # the first step of an episode begins anew
            assert_array_equal(detail["outlook_before"], after)
        after = detail["outlook"]
