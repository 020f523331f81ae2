"""Pictures of job hiring."""

import numpy as np
from numpy.typing import NDArray

from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.hiring.applicants import FEATURES, YEARS
from sb3_fair.zoo.envs.hiring.population import LANGUAGES
from sb3_fair.zoo.envs.hiring.world import HiringWorld

SKILLS = ("potential", "degrees", "extra degrees", "experience")
COMPANY = (*SKILLS, *map(str.capitalize, LANGUAGES), "men", "women", "Belgian", "foreign")
COLOURS = np.repeat(["#4c72b0", "#dd8452", "#55a868", "#8172b3"], [4, 4, 2, 2])


def picture(world: HiringWorld, index: int) -> NDArray[np.uint8]:
    """The company of copy ``index`` as bars, its applicant in words; (360, 720, 3)."""
    figure = blank()
    bars, words = figure.subplots(1, 2, width_ratios=(3, 2))
    bars.barh(COMPANY[::-1], world.company[index, ::-1], color=COLOURS[::-1])
    bars.set(xlim=(0, 1), title=f"company: {world.team_sizes[index]} of {world.config.team_size} employees")
    words.set_axis_off()
    words.set_title("applicant")
    words.text(0, 0.95, _in_words(world.applicants.features[index]), va="top", linespacing=1.6)
    return pixels(figure)


def _in_words(features: NDArray[np.float64]) -> str:
    person = dict(zip(FEATURES, features.tolist(), strict=True))
    education = ("no degree", "a degree", "two degrees")[int(person["degree"] + person["extra_degree"])]
    return "\n".join(
        [
            f"{'woman' if person['gender'] else 'man'}, {round(18 + YEARS * person['age'])} years old",
            "foreign" if person["nationality"] else "Belgian",
            "married" if person["married"] else "not married",
            education,
            f"{round(YEARS * person['experience'])} years of experience",
            "speaks " + ", ".join(language.capitalize() for language in LANGUAGES if person[language]),
        ]
    )
