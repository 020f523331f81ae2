"""Rule agents of lending, attention and epidemics, the baselines of F-PPO, with SB3's ``predict``.

Their rules are those of the scenarios (``World.rules``), read from the environments that an agent is bound to.
"""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.f_ppo.equal_opportunity import equal_opportunity
from sb3_fair.fairness.validation import one_of
from sb3_fair.wrappers.choices import Choices, drawn
from sb3_fair.wrappers.layer import attribute, different

Array = NDArray[np.float64]


class Agent:
    """A rule with SB3's ``predict``: the scenario's own of that name, in the environments that it is bound to.

    :param seed: of its random choices
    """

    rule: str = ""
    """A name in ``World.rules``."""
    scenario: ClassVar[str] = ""
    """Where it acts, in words."""
    vec_env: VecEnv | None = None

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def bind(self, vec_env: VecEnv) -> "Agent":
        """Act in these environments from now on; returns the agent.

        :raises ValueError: if they are not of the scenario
        """
        if self.rule not in _rules(vec_env):
            raise ValueError(f"vec_env must hold environments of {self.scenario}, got {vec_env!r}")
        self.vec_env = vec_env
        return self

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Actions (n, ...) for observations of n environments, or one for one array of a Box; ``deterministic`` has no
        effect.

        :raises ValueError: if the agent is not bound
        """
        if self.vec_env is None:
            raise ValueError(f"{type(self).__name__} must be bound to the environments it acts in: agent.bind(vec_env)")
        space = self.vec_env.observation_space
        single = isinstance(space, spaces.Box) and np.ndim(observation) == len(space.shape)
        if not isinstance(observation, dict):
            observation = np.asarray(observation)
        actions = self._act(observation[None] if single else observation)
        return (actions[0] if single else actions), state

    def _act(self, observations: Any) -> NDArray[Any]:
        return self._drawn(self._of_rule())

    def _of_rule(self) -> Array:
        """Probabilities of the actions (n, n_actions) by the scenario's rule."""
        assert self.vec_env is not None
        return np.concatenate([world.rules[self.rule](world) for world in different(self.vec_env, "world")])

    def _drawn(self, probabilities: Array) -> Choices:
        """An action for each row of probabilities (n, n_actions)."""
        return drawn(probabilities, self.rng.random((len(probabilities), 1)))


def _rules(vec_env: VecEnv) -> Any:
    return getattr(attribute(vec_env, "world"), "rules", ())


class MaxProfitAgent(Agent):
    """Grants a loan where its expected profit is positive."""

    rule, scenario = "max-profit", "lending"


class EqualOpportunityAgent(Agent):
    """Grants loans with the largest expected profit of the next decision at equal true positive rates of the groups.

    :param source: of the distributions of scores: ``"exact"``, the simulator's; ``"histogram"``, the share of the
        scores among the applicants of the window, from the observation (all alike in a group of which nobody came)
    :param seed: of its random choices at the cut scores
    :raises ValueError: if the source is unknown
    """

    rule, scenario = "max-profit", "lending"  # not followed, but there in lending alone

    def __init__(self, source: str = "exact", *, seed: int | None = None) -> None:
        super().__init__(seed)
        one_of("source", source, ("exact", "histogram"))
        self.source = source

    def bind(self, vec_env: VecEnv) -> "EqualOpportunityAgent":
        super().bind(vec_env)
        self.config: Any = attribute(vec_env, "config")
        self.groups = np.asarray(self.config.group_probability, dtype=np.float64)
        rows = np.asarray(self.config.repay_probability, dtype=np.float64)
        self.repays = np.broadcast_to(rows, (len(self.groups), rows.shape[-1]))
        return self

    def _act(self, observations: Any) -> NDArray[Any]:
        groups, scores = self.repays.shape
        group, score = observations[:, scores : scores + groups].argmax(axis=1), observations[:, :scores].argmax(axis=1)
        accept = self.acceptance(observations)[np.arange(len(observations)), group, score]
        return self._drawn(np.stack([1 - accept, accept], axis=1))

    def acceptance(self, observations: NDArray[Any]) -> Array:
        """Probability of a loan by group and score, (n, G, M), where these are the observations (n, d)."""
        return equal_opportunity(
            self.distributions(observations),
            self.repays,
            self.groups,
            self.config.loan_amount,
            self.config.interest_rate,
        ).accept

    def distributions(self, observations: NDArray[Any]) -> Array:
        """Probabilities of the scores within each group, (n, G, M), from the agent's source.

        :raises ValueError: if the source has none
        """
        if self.source == "histogram":
            return _histograms(observations, *self.repays.shape)
        assert self.vec_env is not None
        distributions: Array = np.concatenate(different(self.vec_env, "distributions"))
        if len(distributions) != len(observations):
            raise ValueError(
                f"observation must have one row per environment the agent is bound to ({len(distributions)}), "
                f"got {len(observations)}"
            )
        return distributions


def _histograms(observations: NDArray[Any], groups: int, scores: int) -> Array:
    first = scores + 2 * groups
    if observations.shape[1] != first + groups * scores:
        raise ValueError(
            f"source 'histogram' needs observations of {first + groups * scores} numbers, with the counts of the "
            f"window, got {observations.shape[1]}"
        )
    counts = observations[:, first:].reshape(-1, groups, scores).astype(np.float64)
    totals = counts.sum(axis=2, keepdims=True)
    return np.divide(counts, totals, out=np.full_like(counts, 1 / scores), where=totals > 0)


class MaxAgent(Agent):
    """Vaccinates the most important susceptible node of the network; of several, the first.

    :param rule: ``"infected_neighbours"`` or ``"degree"``: the node with most infected, or most, neighbours
    :param when_exhausted: who gets the vaccine if nobody is susceptible: ``"nobody"``, or the ``"hub"`` with the most
        neighbours, for whom it is wasted
    :raises ValueError: if one of them is unknown
    """

    scenario = "epidemic control"

    def __init__(self, rule: str = "infected_neighbours", when_exhausted: str = "nobody") -> None:
        super().__init__()
        names = {"infected_neighbours": "infected-neighbours", "degree": "highest-degree"}
        one_of("rule", rule, tuple(names))
        one_of("when_exhausted", when_exhausted, ("nobody", "hub"))
        self.rule = names[rule]
        self.when_exhausted = when_exhausted

    def _act(self, observations: Any) -> NDArray[Any]:
        assert self.vec_env is not None
        chosen = self._of_rule().argmax(axis=1)
        if self.when_exhausted == "hub":
            degrees = attribute(self.vec_env, "degrees")
            chosen[chosen == len(degrees)] = np.argmax(degrees)
        return chosen


class RandomAgent(Agent):
    """Acts at random: as the scenario's rule ``"random"`` says if it has one, else uniformly.

    In attention every unit goes to any location, in epidemics anybody susceptible is vaccinated.

    :param seed: of its choices
    """

    rule = "random"

    def bind(self, vec_env: VecEnv) -> "Agent":
        """Act in these environments from now on, whichever they are; returns the agent."""
        self.vec_env = vec_env
        return self

    def _act(self, observations: Any) -> NDArray[Any]:
        assert self.vec_env is not None
        if self.rule in _rules(self.vec_env):
            return super()._act(observations)
        space = self.vec_env.action_space
        n = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        n_units = getattr(attribute(self.vec_env, "config"), "n_units", None)
        if n_units is None or not isinstance(space, spaces.Box):
            every = batch_space(space, n)
            every.seed(int(self.rng.integers(2**31)))
            return np.asarray(every.sample())
        locations = space.shape[0]
        units = self.rng.multinomial(n_units, np.full(locations, 1 / locations), size=n)
        # The softmax is then units / n_units, so that every unit goes where it belongs, as far as the bounds allow.
        logits = np.where(units > 0, np.log(np.maximum(units, 1)), space.low)
        excess = np.maximum((logits - space.high).max(axis=1, keepdims=True), 0)
        return np.maximum(logits - excess, space.low).astype(space.dtype)
