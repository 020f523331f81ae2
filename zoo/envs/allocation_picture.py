"""Pictures of the allocation scenarios."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sb3_fair.zoo.envs.doughnut.world import DoughnutWorld
from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld
from sb3_fair.zoo.envs.vaccines.world import VaccineDeliveryWorld
from sb3_fair.zoo.envs.visits import HomeVisitsWorld

PRESENT, ABSENT = "#dd8452", "#d9d9d9"
A, B = "#4c72b0", "#55a868"


def doughnuts(world: DoughnutWorld, index: int) -> NDArray[np.uint8]:
    """How many doughnuts everybody in copy ``index`` has had, those at the counter in colour; (360, 720, 3)."""
    figure = blank()
    _bars(figure, world.counts[index], world.present[index], "person", "doughnuts")
    passed = f"step {world.time[index]} of {world.max_steps}: {world.refused[index]:.0f} wasted"
    figure.axes[0].set_title(f"{passed} (in colour: who is at the counter)")
    return pixels(figure)


def loans(world: LoanAllocationWorld, index: int) -> NDArray[np.uint8]:
    """Scores in the episode of copy ``index`` and loans of the groups; (360, 720, 3)."""
    figure = blank()
    scores, bars = figure.subplots(1, 2, width_ratios=(3, 1))
    past = world.so_far(index)
    for person, (colour, line) in enumerate(zip((A, A, B, B), ("-", "--", "-", "--"), strict=True)):
        applies = ", applies" if world.present[index, person] else ""
        label = f"{'AABB'[person]}{person}{applies}"
        scores.plot(past[:, person], line, color=colour, label=label, marker=".", markevery=[-1])
    scores.set(xlim=(0, world.max_steps), ylim=(0.15, 0.95), xlabel="step", ylabel="score")
    scores.legend(loc="lower left", fontsize="small")
    needed = world.config.margin * world.max_steps
    scores.set_title(f"step {world.time[index]}: net {world.net[index]:.0f} (at the end {needed:g} is needed)")
    bars.bar(["A", "B"], world.counts[index], color=[A, B])
    bars.set(ylim=(0, max(5, 1.1 * world.counts[index].max())), title="loans")
    return pixels(figure)


def visits(world: HomeVisitsWorld, index: int) -> NDArray[np.uint8]:
    """How often every client in copy ``index`` was visited today, those at home in colour; (360, 720, 3)."""
    figure = blank()
    slots, day = world.config.slots, world.time[index] // world.config.slots
    passed = f"day {day + 1} of {world.config.days}, {world.time[index] % slots} of {slots} visits done"
    if world.time[index] == world.max_steps:
        passed = f"{world.config.days} days are over"
    _bars(figure, world.today[index], world.present[index], "client", "visits today")
    figure.axes[0].set_title(f"{passed}, {world.refused[index]:.0f} lost so far (in colour: who is at home)")
    return pixels(figure)


def vaccines(world: VaccineDeliveryWorld, index: int) -> NDArray[np.uint8]:
    """Where copy ``index`` has sent its shipments, lost ones pale, and how many have arrived; (360, 720, 3)."""
    figure = blank()
    strip, totals = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    past = world.so_far(index)
    steps = np.arange(world.time[index] + 1)[-len(past) :]
    arrived = np.diff(past[:, 1:].sum(axis=1)) > 0
    for country in range(world.config.countries):
        colour = f"C{country}"
        for alpha, lost in ((1.0, False), (0.3, True)):
            here = steps[1:][(past[1:, 0] == country) & (arrived != lost)]
            strip.bar(here, 1, width=-1, align="edge", color=colour, alpha=alpha, edgecolor="white")
        totals.step(steps, past[:, 1 + country], where="post", color=colour, marker=".", label=f"country {country}")
    strip.set(yticks=[], ylim=(0, 1))
    figures = {figure: values[index] for figure, values in world.figures().items()}
    passed = f"step {world.time[index]} of {world.max_steps}: {figures['arrived']:.0f} arrived"
    strip.set_title(f"{passed}, gap {figures['gap']:.0f}, {figures['switches']:.0f} switches (pale: shipment lost)")
    totals.set(xlim=(0, world.max_steps), ylim=(0, max(5, 1.1 * past[:, 1:].max())))
    totals.set(xlabel="shipments sent", ylabel="shipments arrived")
    totals.legend(loc="upper left", fontsize="small")
    return pixels(figure)


def _bars(figure: Figure, counts: NDArray[np.float64], there: NDArray[np.bool_], who: str, what: str) -> None:
    axes = figure.subplots()
    colours = np.where(there, PRESENT, ABSENT)
    axes.bar(np.arange(len(counts)), counts, color=colours, edgecolor="#666666")
    axes.set_xticks(np.arange(len(counts)), [f"{who} {person}" for person in range(len(counts))])
    for label, colour in zip(axes.get_xticklabels(), colours, strict=True):
        label.set_color("black" if colour == PRESENT else "#999999")
    axes.set(ylim=(0, max(5, 1.1 * counts.max())), ylabel=what)
