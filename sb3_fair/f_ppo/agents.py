"""How do the simple baselines of the scenarios of lending, attention and epidemics decide?

All have SB3's ``predict``, vectorised over observations. What they must know of a simulator they read from the
environments that they are bound to.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_fair.f_ppo.equal_opportunity import equal_opportunity
from sb3_fair.fairness.validation import one_of
from sb3_fair.wrappers.choices import Choices
from sb3_fair.wrappers.layer import attribute, different

Array = NDArray[np.float64]


class Agent:
    """A rule with SB3's ``predict``.

    :param seed: of its random choices
    """

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def bind(self, vec_env: VecEnv) -> "Agent":
        """Act in these environments from now on; returns the agent."""
        raise NotImplementedError

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Actions (n, ...) for observations (n, d), or one for one; ``deterministic`` does not matter: a rule is what
        it is."""
        observation = np.asarray(observation)
        actions = self._act(np.atleast_2d(observation))
        return (actions[0] if observation.ndim == 1 else actions), state

    def _act(self, observations: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def _drawn(self, probabilities: Array) -> Choices:
        """An action for each row of probabilities (n, n_actions)."""
        luck = self.rng.random((len(probabilities), 1))
        return Choices((probabilities.cumsum(axis=1)[:, :-1] <= luck).sum(axis=1), probabilities)


class _Bank(Agent):
    """Knows the chances of repayment; finds the applicant in the observation: one-hot score (M), one-hot group (G)."""

    def __init__(
        self,
        repay_probability: ArrayLike | None,
        group_probability: ArrayLike,
        loan_amount: float,
        interest_rate: float,
        seed: int | None,
    ) -> None:
        super().__init__(seed)
        self.repay_probability = repay_probability
        self.group_probability = np.asarray(group_probability, dtype=np.float64)
        self.loan_amount = loan_amount
        self.interest_rate = interest_rate

    def bind(self, vec_env: VecEnv) -> "_Bank":
        config = attribute(vec_env, "config")
        if not hasattr(config, "repay_probability"):
            raise ValueError(f"vec_env must hold environments of lending, got {vec_env!r}")
        self.repay_probability = config.repay_probability
        self.group_probability = np.asarray(config.group_probability, dtype=np.float64)
        self.loan_amount, self.interest_rate = config.loan_amount, config.interest_rate
        return self

    @property
    def repays(self) -> Array:
        """Probability of repayment by group and score, (G, M)."""
        if self.repay_probability is None:
            raise ValueError(f"{type(self).__name__} must be given repay_probability, or be bound: agent.bind(vec_env)")
        rows = np.asarray(self.repay_probability, dtype=np.float64)
        return np.broadcast_to(rows, (len(self.group_probability), rows.shape[-1]))

    def _applicants(self, observations: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        groups, scores = self.repays.shape
        return observations[:, scores : scores + groups].argmax(axis=1), observations[:, :scores].argmax(axis=1)


class EqualOpportunityAgent(_Bank):
    """Grants loans so that the next decision brings most, subject to equal true positive rates of the groups.

    :param source: of the distributions of scores: ``"exact"``, the simulator's; ``"histogram"``, the share of the
        scores among the applicants of the window, from the observation (all alike in a group of which nobody came);
        None: exact if bound, else the histogram
    :param repay_probability: (M,) of each score, or (G, M); unless bound
    :param group_probability: (G,) of an applicant's group; unless bound
    :param loan_amount: what a default costs; unless bound
    :param interest_rate: what a repaid loan brings, per ``loan_amount``; unless bound
    :param seed: of its random choices at the cut scores
    :raises ValueError: if the source is unknown
    """

    def __init__(
        self,
        source: str | None = None,
        *,
        repay_probability: ArrayLike | None = None,
        group_probability: ArrayLike = (0.5, 0.5),
        loan_amount: float = 1.0,
        interest_rate: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(repay_probability, group_probability, loan_amount, interest_rate, seed)
        if source is not None:
            one_of("source", source, ("exact", "histogram"))
        self.source = source
        self.vec_env: VecEnv | None = None
        self._forget()

    def bind(self, vec_env: VecEnv) -> "EqualOpportunityAgent":
        super().bind(vec_env)
        self.vec_env = vec_env
        self._forget()
        return self

    def _forget(self) -> None:
        self._distributions = self._accept = np.empty((0, 0, 0))

    def _act(self, observations: NDArray[Any]) -> NDArray[Any]:
        groups, scores = self._applicants(observations)
        accept = self.acceptance(observations)[np.arange(len(observations)), groups, scores]
        return self._drawn(np.stack([1 - accept, accept], axis=1))

    def acceptance(self, observations: NDArray[Any]) -> Array:
        """Probability of a loan by group and score, (n, G, M), where these are the observations (n, d)."""
        distributions = self.distributions(observations)
        if distributions.shape != self._distributions.shape:
            self._accept = np.empty_like(distributions)
            changed = np.ones(len(distributions), dtype=bool)
        else:
            changed = (distributions != self._distributions).any(axis=(1, 2))
        if changed.any():
            self._distributions = distributions
            self._accept[changed] = equal_opportunity(
                distributions[changed], self.repays, self.group_probability, self.loan_amount, self.interest_rate
            ).accept
        return self._accept.copy()

    def distributions(self, observations: NDArray[Any]) -> Array:
        """Probabilities of the scores within each group, (n, G, M), from the agent's source.

        :raises ValueError: if the source has none
        """
        if self.source == "histogram" or (self.source is None and self.vec_env is None):
            return _histograms(observations, *self.repays.shape)
        if self.vec_env is None:
            raise ValueError("source 'exact' must be bound to the environments: agent.bind(vec_env)")
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


class MaxProfitAgent(_Bank):
    """Grants a loan where its expected profit is positive.

    :param repay_probability: (M,) of each score, or (G, M); unless bound
    :param group_probability: (G,) of an applicant's group; unless bound
    :param interest_rate: what a repaid loan brings, per unit of loan; unless bound
    """

    def __init__(
        self,
        *,
        repay_probability: ArrayLike | None = None,
        group_probability: ArrayLike = (0.5, 0.5),
        interest_rate: float = 1.0,
    ) -> None:
        super().__init__(repay_probability, group_probability, 1.0, interest_rate, None)

    def _act(self, observations: NDArray[Any]) -> NDArray[Any]:
        repays = self.repays[self._applicants(observations)]
        return (repays * self.interest_rate > 1 - repays).astype(np.int64)


class MaxAgent(Agent):
    """Vaccinates the susceptible member of the network who seems the most important, of several the first.

    :param rule: ``"infected_neighbours"`` or ``"degree"``: whoever has the most infected, or most, neighbours
    :param when_exhausted: who gets the vaccine if nobody is susceptible: ``"nobody"``, or the ``"hub"`` with the most
        neighbours, for whom it is wasted
    :raises ValueError: if one of them is unknown
    """

    def __init__(self, rule: str = "infected_neighbours", when_exhausted: str = "nobody") -> None:
        super().__init__()
        one_of("rule", rule, ("infected_neighbours", "degree"))
        one_of("when_exhausted", when_exhausted, ("nobody", "hub"))
        self.rule = rule
        self.when_exhausted = when_exhausted
        self.adjacency: Any = None

    def bind(self, vec_env: VecEnv) -> "MaxAgent":
        self.adjacency = attribute(vec_env, "adjacency")
        if self.adjacency is None:
            raise ValueError(f"vec_env must hold environments of epidemic control, got {vec_env!r}")
        self.degrees = np.asarray(attribute(vec_env, "degrees"), dtype=np.float64)
        return self

    def _act(self, observations: NDArray[Any]) -> NDArray[Any]:
        if self.adjacency is None:
            raise ValueError("MaxAgent must know the network: agent.bind(vec_env)")
        nodes = len(self.degrees)
        states = observations.reshape(len(observations), nodes, -1)
        susceptible, infected = states[..., 0] > 0.5, states[..., 1].astype(np.float64)
        rank = self.degrees if self.rule == "degree" else infected @ self.adjacency
        chosen = np.where(susceptible, rank, -1.0).argmax(axis=1)
        exhausted = nodes if self.when_exhausted == "nobody" else int(self.degrees.argmax())
        return np.where(susceptible.any(axis=1), chosen, exhausted)


class RandomAgent(Agent):
    """Acts at random: as the scenario's rule ``"random"`` says if it has one, else uniformly.

    In attention every unit goes to any location, in epidemics anybody susceptible is vaccinated.

    :param seed: of its choices
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed)
        self.vec_env: VecEnv | None = None

    def bind(self, vec_env: VecEnv) -> "RandomAgent":
        """Act in these environments from now on; returns the agent.

        :raises TypeError: if their actions are not Discrete, MultiDiscrete or Box
        """
        space = vec_env.action_space
        if not isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.Box)):
            raise TypeError(f"action_space must be Discrete, MultiDiscrete or Box, got {space!r}")
        self.vec_env = vec_env
        self._ruled = "random" in getattr(attribute(vec_env, "world"), "rules", ())
        self._units = getattr(attribute(vec_env, "config"), "n_units", None)
        return self

    def _act(self, observations: NDArray[Any]) -> NDArray[Any]:
        if self.vec_env is None:
            raise ValueError("RandomAgent must know the actions: agent.bind(vec_env)")
        space, n = self.vec_env.action_space, len(observations)
        if self._ruled:
            return self._drawn(
                np.concatenate([world.rules["random"](world) for world in different(self.vec_env, "world")])
            )
        if isinstance(space, spaces.Discrete):
            return space.start + self.rng.integers(space.n, size=n)
        if isinstance(space, spaces.MultiDiscrete):
            return self.rng.integers(space.start, space.start + space.nvec, (n, *space.shape))
        assert isinstance(space, spaces.Box)
        if self._units is None:
            return self.rng.uniform(space.low, space.high, (n, *space.shape)).astype(space.dtype)
        locations = space.shape[0]
        units = self.rng.multinomial(self._units, np.full(locations, 1 / locations), size=n)
        # The softmax is then units / n_units, so that every unit goes where it belongs, as far as the bounds allow.
        logits = np.where(units > 0, np.log(np.maximum(units, 1)), space.low)
        excess = np.maximum((logits - space.high).max(axis=1, keepdims=True), 0)
        return np.maximum(logits - excess, space.low).astype(space.dtype)
