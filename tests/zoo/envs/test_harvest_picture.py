"""Does a picture show what is in every cell, and a film every picture?"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from sb3_fair.zoo.envs.harvest.picture import COLOURS, FRAME, GROUND, MARK, picture
from sb3_fair.zoo.envs.harvest.settings import HarvestConfig
from sb3_fair.zoo.envs.harvest.world import HarvestWorld
from sb3_fair.zoo.evaluation.film import save_gif

GREY, RED, BLUE = COLOURS
LAYOUT = {
    "width": 5,
    "height": 3,
    "agents": [
        {"x": 0, "y": 0, "preference": "red"},
        {"x": 1, "y": 0, "preference": "blue"},
        {"x": 4, "y": 2, "preference": "blue", "sensitive": 1},
    ],
    "bushes": [
        {"x": 3, "y": 0, "color": "red", "ripe": 1},
        {"x": 3, "y": 1, "color": "blue"},
        {"x": 0, "y": 2, "color": None, "ripe": 1},
    ],
}


@pytest.fixture
def world():
    world = HarvestWorld(1, HarvestConfig(growth_interval=None, order="fixed").fitting(LAYOUT))
    world.install(LAYOUT)
    return world


def test_centres_and_rims_of_cells_have_the_colours_of_what_is_there(world):
    shown = picture(world, 0)
    assert shown.shape == (48, 80, 3) and shown.dtype == np.uint8
    cells = shown.reshape(3, 16, 5, 16, 3).swapaxes(1, 2)
    centres, left = cells[:, :, 8, 8], cells[:, :, 8, 3]
    expected = np.full((3, 5, 3), GROUND)
    expected[0, 0], expected[0, 1], expected[2, 4] = RED, BLUE, MARK
    expected[0, 3], expected[2, 0] = RED, GREY
    assert_array_equal(centres, expected)  # the unripe bush is hollow
    expected[1, 3], expected[2, 4] = BLUE, BLUE
    assert_array_equal(left, expected)
    assert_array_equal(cells[:, :, 0, 0].reshape(-1, 3), np.full((15, 3), GROUND))
    assert not (shown == FRAME).all(axis=-1).any()


def test_who_is_obstructed_has_a_dark_frame(world):
    free = picture(world, 0)
    world.step(np.array([[7, 0, 0]]))
    if not world.obstructed[0, 1]:  # the victim's turn of this step is lost already
        world.step(np.array([[0, 7, 0]]))
    victim = int(np.flatnonzero(world.obstructed[0])[0])
    changed = (picture(world, 0) != free).any(axis=-1)
    rows, columns = np.nonzero(changed)
    assert (rows < 16).all() and set((columns // 16).tolist()) == {victim}
    assert (picture(world, 0)[changed] == FRAME).all()


def test_pictures_are_the_same_every_time_and_of_any_size(world):
    assert_array_equal(world.render(0), picture(world, 0, 16))
    assert picture(world, 0, 5).shape == (15, 25, 3)
    with pytest.raises(ValueError, match="size must be a positive integer, got 0"):
        picture(world, 0, 0)


def test_a_film_has_every_picture(tmp_path):
    world = HarvestWorld(1)
    world.reset(np.arange(1), [np.random.default_rng(0)])
    frames = []
    for actions in np.random.default_rng(0).integers(8, size=(5, 1, 40)):
        world.step(actions)
        frames.append(world.render(0))
    path = save_gif(iter(frames), tmp_path / "harvest.gif", fps=5)
    with Image.open(path) as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (5, (400, 240), 200)
        for index, frame in enumerate(frames):
            film.seek(index)
            assert_array_equal(np.asarray(film.convert("RGB")), frame)


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 4, "frames must hold at least one picture, got none"),
        ([np.zeros((2, 2, 3))], 4, "frames must be uint8 pictures"),
        ([np.zeros((2, 2, 3), np.uint8), np.zeros((2, 3, 3), np.uint8)], 4, "of one size"),
        ([np.zeros((2, 2, 3), np.uint8)], 0, "fps must be positive and at most 50, got 0"),
    ],
)
def test_what_is_no_film_is_refused(frames, fps, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_gif(frames, tmp_path / "no.gif", fps)
