"""Pictures of epidemic control."""

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from scipy import sparse

from sb3_fair.zoo.envs.drawing import blank, pixels
from sb3_fair.zoo.envs.epidemic.world import EpidemicWorld

STATES = {"susceptible": "#d9d9d9", "infected": "#c44e52", "recovered": "#55a868"}
SHAPES = "os^Dvp"
"""Of the communities; from the seventh on they come again."""
FORCES = 500
"""With more nodes a layout by attraction and repulsion takes seconds: places are drawn at random then."""


def layout(adjacency: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Where the nodes are (nodes, 2), always the same, and which of them each line connects (edges, 2)."""
    import networkx  # slow to import

    graph = networkx.from_scipy_sparse_array(sparse.csr_array(adjacency))
    draw = networkx.spring_layout if len(graph) <= FORCES else networkx.random_layout
    places = draw(graph, seed=0)
    return np.array([places[node] for node in range(len(graph))]), np.array(graph.edges, dtype=np.int64).reshape(-1, 2)


def picture(world: EpidemicWorld, index: int) -> NDArray[np.uint8]:
    """The network of copy ``index`` and how its communities are; (400, 800, 3)."""
    figure = blank(8, 4)
    graph, shares = figure.subplots(1, 2, width_ratios=(2, 1))
    names = world.fairness_spec.group_names
    states = np.where(world.susceptible[index], 0, np.where(world.infected[index], 1, 2))
    places, edges = world.layout
    colours = np.array(list(STATES.values()))[states]
    rims = np.where(world.vaccinated[index], "black", "white")
    size = 4000 / max(world.nodes, 40)
    graph.add_collection(LineCollection(list(places[edges]), colors="#00000030", linewidths=0.6, zorder=0))
    for code, name in enumerate(names):
        members = np.flatnonzero(world.communities == code)
        look = {"marker": SHAPES[code % len(SHAPES)], "edgecolors": rims[members], "label": name}
        graph.scatter(*places[members].T, size, colours[members], **look)
    graph.set_axis_off()
    graph.set_title(f"step {world.time[index]} of {world.max_steps} (shape: community, black rim: vaccinated)")
    bottom = np.zeros(len(names))
    for state, (label, colour) in enumerate(STATES.items()):
        share = np.array([(states[world.communities == code] == state).mean() for code in range(len(names))])
        shares.bar(names, share, bottom=bottom, color=colour, label=label)
        bottom += share
    shares.set(ylim=(0, 1), title=f"disparity: short {world.d_s[index]:.2f}, long {world.d_l[index]:.2f}")
    figure.legend(handles=shares.containers, loc="outside lower center", ncols=len(STATES))
    for axes in (graph, shares):
        axes.title.set_fontsize("medium")
    return pixels(figure)
