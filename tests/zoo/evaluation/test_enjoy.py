"""Does a film show the episodes whose figures are told?"""

import sys
from dataclasses import replace
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo.envs.fraud.world import FraudWorld
from sb3_fair.zoo.evaluation.enjoy import LONGEST, Camera, enjoy, episode_table
from sb3_fair.zoo.evaluation.evaluate import policies_of
from sb3_fair.zoo.evaluation.film import save_film
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.algorithms import ALGORITHMS
from sb3_fair.zoo.runs.policy_file import save_policy
from sb3_fair.zoo.runs.train import build_model, training_env

ENDLESS = {"objectives": ("R", "SP"), "n_hours": 72, "max_transactions": None}


@pytest.fixture
def finished(quick_plan, tmp_path):
    """Makes a run that learned a little."""

    def make(algo, **where):
        plan = replace(quick_plan(algo, n_timesteps=128), **where)
        run = RunFolder.create(tmp_path, plan.algo, plan.env)
        run.start(config=plan.config, args={}, command="")
        model = build_model(plan, training_env(plan), "cpu").learn(plan.n_timesteps)
        save_policy(model, run.policy)
        run.save_results(Front(tuple(policies_of(plan, model))))
        return run

    return make


@pytest.mark.parametrize("algo", ["pcn", "ppo"])
def test_a_film_shows_beginning_and_end_of_every_episode_and_every_so_manieth_step(algo, finished, monkeypatch):
    filmed = []
    monkeypatch.setattr("sb3_fair.zoo.evaluation.enjoy.save_film", lambda pictures, *_: filmed.extend(pictures))
    played = enjoy(finished(algo), "film.gif", n_episodes=2, seed=5, every=5, device="cpu")
    assert len(filmed) == sum(1 + np.ceil(length / 5) for length in played.lengths)
    assert all(not np.array_equal(*pair) for pair in pairwise(filmed))


def test_a_film_of_episodes_without_a_limit_is_thinned_out_as_it_grows(finished, monkeypatch):
    filmed = []
    monkeypatch.setattr("sb3_fair.zoo.evaluation.enjoy.save_film", lambda pictures, *_: filmed.extend(pictures))
    monkeypatch.setattr(FraudWorld, "render", lambda *_: np.zeros((2, 2, 3), np.uint8))
    run = finished("ppo", env="sb3_fair:sb3_fair/FraudDetection-v0", env_kwargs=ENDLESS)
    played = enjoy(run, "film.gif", device="cpu")
    assert played.lengths[0] > LONGEST >= len(filmed) > LONGEST / 2


def test_a_thinned_out_film_has_even_gaps():
    """Each picture is the number of the step."""
    pictures = []
    env = Camera(Counter(), pictures, most=10)
    env.reset()
    for _ in range(33):
        env.step(0)
    assert pictures == list(range(0, 33, 4))


class Counter(gym.Env):
    """Counts steps."""

    def reset(self, **_):
        self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        return 0, 0.0, False, False, {}

    def render(self):
        return self.steps


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_is_filmed(algo, finished, tmp_path):
    enjoy(finished(algo), tmp_path / "film.gif", every=10, device="cpu")
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames > 1


def test_the_same_seed_gives_the_same_episodes_and_the_same_film(finished, tmp_path):
    run = finished("ppo")
    played = [enjoy(run, tmp_path / f"{turn}.gif", seed=5, every=10, device="cpu") for turn in range(2)]
    np.testing.assert_array_equal(played[0].returns, played[1].returns)
    usual, told = (enjoy(run, tmp_path / "2.gif", every=50, device="cpu", **seed) for seed in ({}, {"seed": 330_000}))
    np.testing.assert_array_equal(usual.returns, told.returns)
    assert (tmp_path / "0.gif").read_bytes() == (tmp_path / "1.gif").read_bytes()


def test_the_table_tells_returns_and_final_notions_of_every_episode(finished, tmp_path):
    played = enjoy(finished("ppo"), tmp_path / "film.gif", n_episodes=3, every=50, device="cpu")
    table = episode_table(played)
    cells = {column.header: list(column.cells) for column in table.columns}
    assert list(cells)[:4] == ["episode", "steps", "R", "SP"] and "final SP" in cells
    assert cells["R"] == [f"{value:.3f}" for value in played.returns[:, 0]]
    assert cells["final SP"] == [f"{value:.3f}" for value in played.final["SP"]]
    assert cells["steps"] == [f"{length:.0f}" for length in played.lengths]


def test_the_command_line_films_into_the_folder_of_the_run(finished, command):
    run = finished("ppo")
    code, out, err = command("enjoy", "--run", run.path, "--every", 20)
    assert code == 0, err
    assert out.strip().splitlines()[-1] == str(run.path / "policy_0.gif") and (run.path / "policy_0.gif").is_file()
    assert "final SP" in out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": 7}, "policy must be a number from 0 to 0 or one of PPO, got 7"),
        ({"every": 0}, "every must be a positive integer, got 0"),
        ({"fps": 90}, "fps must be positive and at most 50, got 90"),
        ({"film": "film.avi"}, "film must end in .gif or .mp4, got 'film.avi'"),
        ({"film": "missing/film.gif"}, "film must be in a folder that exists, got 'missing/film.gif'"),
    ],
)
def test_what_cannot_be_filmed_is_an_error_before_anything_is_played(
    settings, message, tmp_path, quick_plan, monkeypatch
):
    run = RunFolder.create(tmp_path, "ppo", "A-v0")
    plan = quick_plan("ppo")
    run.start(config=plan.config, args={}, command="")
    with pytest.raises(InputError, match=r"run must be finished, with policies in front\.json"):
        enjoy(run, "film.gif")
    model = build_model(plan, training_env(plan), "cpu")
    run.save_results(Front(tuple(policies_of(plan, model))))
    monkeypatch.setattr("sb3_fair.zoo.evaluation.enjoy.load_policy", lambda *_: pytest.fail("something is played"))
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        enjoy(run, **{"film": "film.gif", **settings})


def test_an_mp4_without_its_package_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"a film that ends in \.mp4 needs a package .*sb3-fair\[mp4\]"):
        save_film([np.zeros((2, 2, 3), np.uint8)], "film.mp4")


def test_an_mp4_has_every_picture_whatever_its_size(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pictures = [np.full((65, 81, 3), 25 * index, np.uint8) for index in range(10)]
    film = ffmpeg.read_frames(str(save_film(pictures, tmp_path / "film.mp4", fps=5)))
    assert next(film)["size"] == (82, 66)
    shown = [np.frombuffer(frame, np.uint8).mean() for frame in film]
    np.testing.assert_allclose(shown, np.arange(10) * 25, atol=4)
