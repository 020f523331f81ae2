"""Does the harvest keep PettingZoo's contract, and is it the one that Stable-Baselines3 sees?"""

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sb3_fair.common.extras import MissingExtra
from sb3_fair.zoo.envs.harvest import parallel
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.slots import HarvestVecEnv

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test

from sb3_fair.zoo.envs.harvest.parallel import parallel_env

LAYOUT = {
    "width": 6,
    "height": 5,
    "agents": [{"x": 2, "y": 2, "preference": "red"}, {"x": 5, "y": 0, "preference": "blue", "sensitive": 1}],
    "bushes": [{"x": 2, "y": 3, "color": "red"}],
}


@pytest.mark.parametrize(
    "config", [{"horizon": 20}, HarvestConfig.published(horizon=20), None], ids=["short", "published", "default"]
)
def test_pettingzoo_is_content(config):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(parallel_env(config), num_cycles=50)
        parallel_seed_test(lambda: parallel_env(config), num_cycles=50)


def test_it_is_the_vecenv_of_one_world():
    env, venv = parallel_env({"horizon": 6}), HarvestVecEnv(1, {"horizon": 6}, seed=3)
    obs, infos = env.reset(seed=3)
    assert_array_equal(np.stack(list(obs.values())), venv.reset())
    rng = np.random.default_rng(0)
    for _ in range(2):
        while env.agents:
            group = venv.slot_group
            actions = rng.integers(8, size=40)
            last, rewards, terminated, truncated, infos = env.step(dict(zip(env.agents, actions, strict=True)))
            obs_, rewards_, dones, infos_ = venv.step(actions)
            assert list(rewards.values()) == rewards_.tolist()
            assert list(truncated.values()) == dones.tolist() and not any(terminated.values())
            assert [info["individual"]["group"] for info in infos.values()] == group.tolist()
            shown = [info["terminal_observation"] for info in infos_] if dones.all() else obs_
            assert_array_equal(np.stack(list(last.values())), shown)
        obs, infos = env.reset()
        assert_array_equal(np.stack(list(obs.values())), obs_)


def test_agents_are_named_by_colour_and_number():
    env = parallel_env({"n_agents": 4, "red_agent_share": 0.25})
    assert env.possible_agents == ["red_0", "blue_1", "blue_2", "blue_3"]
    _, infos = env.reset(seed=0)
    assert [info["individual"]["lf"] for info in infos.values()] == [1, 2, 2, 2]
    assert [info["individual"]["agent"] for info in infos.values()] == [0, 1, 2, 3]
    assert sum(info["individual"]["group"] for info in infos.values()) == 2


def test_masks_and_particulars_are_told():
    env = parallel_env(HarvestConfig(growth_interval=None).fitting(LAYOUT), detail=True)
    _, infos = env.reset(seed=0, options={"layout": LAYOUT})
    assert_array_equal(infos["red_0"]["action_mask"], [1, 1, 0, 1, 1, 1, 1, 0])
    assert_array_equal(infos["blue_1"]["action_mask"], [1, 0, 0, 0, 0, 0, 0, 0])
    _, rewards, *_, infos = env.step({"red_0": 5, "blue_1": 2})
    assert rewards == {"red_0": 3.0, "blue_1": 0.0}
    assert {agent: info["detail"]["executed_action"] for agent, info in infos.items()} == {"red_0": 5, "blue_1": -1}
    assert_array_equal(infos["blue_1"]["action_mask"], [1, 0, 1, 1, 0, 0, 0, 0])
    assert "detail" not in parallel_env().reset(seed=0)[1]["red_0"]


def test_nobody_is_there_after_the_end():
    env = parallel_env({"n_agents": 2, "horizon": 1})
    env.reset(seed=0)
    env.step({"red_0": 0, "blue_1": 0})
    assert env.agents == [] and env.step({}) == ({},) * 5


def test_a_layout_with_other_agents_is_refused():
    agents = [{**agent, "preference": "blue"} for agent in LAYOUT["agents"]]
    env = parallel_env(HarvestConfig().fitting(LAYOUT))
    with pytest.raises(ValueError, match=r"layout must have the agents \['red_0', 'blue_1'\], got \['blue_0'"):
        env.reset(options={"layout": {**LAYOUT, "agents": agents}})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"red_0": 0}, r"missing or unknown \['blue_1'\]"),
        ({"red_0": 0, "blue_1": 0, "blue_2": 0}, r"missing or unknown \['blue_2'\]"),
        ({"red_0": 0, "blue_1": 8}, r"every action must be in Discrete\(8\), got 8"),
    ],
)
def test_wrong_actions_are_named(actions, message):
    env = parallel_env({"n_agents": 2})
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(actions)


def test_pictures_come_with_their_render_mode():
    env = parallel_env(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (240, 400, 3) and env.render().dtype == np.uint8
    assert parallel_env().render() is None
    with pytest.raises(ValueError, match="render_mode must be 'rgb_array' or None"):
        parallel_env(render_mode="human")


def test_without_pettingzoo_it_can_be_imported_and_says_what_is_missing(monkeypatch):
    """Importing * and help() import every name of a package."""
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    copied = importlib.util.spec_from_file_location("copied", parallel.__file__)
    module = importlib.util.module_from_spec(copied)
    copied.loader.exec_module(module)
    with pytest.raises(MissingExtra, match=r'parallel_env needs .* pip install "sb3-fair\[pettingzoo\]"'):
        module.parallel_env()
