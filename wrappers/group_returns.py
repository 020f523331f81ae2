"""VecGroupReturns: disparities of returns where the agents of a VecEnv share worlds."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_fair.fairness.disparity.returns import return_figures
from sb3_fair.wrappers.infos import figures_in
from sb3_fair.wrappers.labels import Numbers, numbered, slots
from sb3_fair.wrappers.layer import VecLayer

SIGNLESS = ("gini", "jain", "nash")


def games_of(venv: VecEnv) -> NDArray[np.int64] | None:
    """The game of each slot (slots,), numbered from 0; a world and its twin are one game. None: agents share no worlds.

    :param venv: its layers are looked through for ``slot_world`` and, for twins, ``slot_pair``, arrays (slots,)
    :raises ValueError: if games have different numbers of agents
    """
    worlds = slots(venv, "slot_world")
    if worlds is None:
        return None
    worlds, pair = np.asarray(worlds), slots(venv, "slot_pair")
    first = worlds if pair is None else np.minimum(worlds, np.where(pair < 0, worlds, worlds[pair]))
    _, games, agents = np.unique(first, return_inverse=True, return_counts=True)
    if len(set(agents.tolist())) > 1:
        raise ValueError(f"slot_world must give all games the same number of agents, got {agents.tolist()}")
    return games.astype(np.int64)


class VecGroupReturns(VecLayer):
    """Adds disparities of returns to ``info["fairness"]`` of every agent when a game ends.

    Gaps are sizes: 0 is fair. Of more than two groups, each gap is that of the two which are furthest apart by it.
    Their names: :func:`~sb3_fair.fairness.disparity.returns.return_figures`.

    :param venv: a VecEnv whose agents have a slot each, with arrays ``slot_group`` and ``slot_world``, and ``slot_lf``
        and ``slot_pair`` if there are legitimate factors and twins; all agents of a game end their episodes together
    :raises ValueError: if agents share no worlds; later, if those of a game do not end their episodes together
    """

    published: ClassVar[tuple[str, ...]] = ("return_names",)

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        games = games_of(venv)
        if games is None:
            raise ValueError(f"venv must have slots of agents that share worlds, got {venv}")
        self.games = games
        self._returns = np.zeros(self.num_envs)
        self._numbers: Numbers = {}
        self._order = np.lexsort((slots(venv, "slot_world"), games)).reshape(games.max() + 1, -1)
        pair = slots(venv, "slot_pair")
        self._twins = pair is not None and bool((pair >= 0).all())
        if self._twins:  # the second half of each game are the twins of the first
            half = self._order.shape[1] // 2
            self._order[:, half:] = pair[self._order[:, :half]]
        blank = np.zeros(self._order.shape, dtype=np.int64)
        self.return_names = list(self._figures(blank * 0.0, np.arange(blank.shape[1]) % 2 + blank, self._factors))

    @property
    def _factors(self) -> NDArray[Any] | None:
        factors = slots(self.venv, "slot_lf")
        return None if factors is None else factors[self._order]

    def _labels(self) -> NDArray[Any]:
        """Numbers of the groups, (games, agents)."""
        return numbered("group", slots(self.venv, "slot_group"), self.num_envs, self._numbers)[self._order]

    def _figures(self, returns: NDArray[Any], groups: NDArray[Any], factors: Any) -> dict[str, NDArray[Any]]:
        found = return_figures(returns, groups, factors, twins=self._twins)
        return {name: values if name.startswith(SIGNLESS) else np.abs(values) for name, values in found.items()}

    def reset(self) -> VecEnvObs:
        self._returns[:] = 0
        obs = self.venv.reset()
        self._groups, self._lf = self._labels(), self._factors
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._returns += rewards
        ended = dones[self._order]
        over = np.flatnonzero(ended.any(axis=1))
        if len(over):
            if not ended[over].all():
                raise ValueError(
                    "venv must end the episodes of all agents of a game in the same step, got a game of which "
                    f"{ended[over].sum(axis=1).min()} of {ended.shape[1]} agents end"
                )
            found = self._figures(np.where(dones, self._returns, 0.0)[self._order], self._groups, self._lf)
            for game in over:
                figures = {name: float(values[game]) for name, values in found.items()}
                for slot in self._order[game]:
                    infos[slot]["fairness"] = {**figures_in(infos[slot]), **figures}
            self._returns[dones] = 0
            self._groups, self._lf = self._labels(), self._factors
        return obs, rewards, dones, infos
