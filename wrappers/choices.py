"""VecChoices: hands the policy's action probabilities to the fairness tracker.

They travel with the action. :class:`Choices` is an integer array that carries the rows of probabilities it was drawn
from; indexing it gives :class:`Choice`, an ``int`` that carries its row through Monitor, wrappers and pipes.
:class:`VecChoices` makes them for the algorithms of SB3 and sb3-contrib; ours return them themselves.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs
from torch.distributions import Bernoulli

from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.notions.table import find_notion
from sb3_fair.wrappers.layer import VecLayer, attribute
from sb3_fair.wrappers.starts import check_discrete, check_starts, existing


def compares_chances(venv: VecEnv) -> bool:
    """Does a notion that the environment measures compare the probabilities of actions?"""
    names = attribute(venv, "fairness_names", ())
    return any(find_notion(name).needs_probabilities for name in names)


class Choice(int):
    """A discrete action and the probabilities (n_actions,) it was drawn from."""

    probabilities: NDArray[np.float64]

    def __new__(cls, action: int, probabilities: NDArray[np.float64]) -> "Choice":
        self = super().__new__(cls, action)
        self.probabilities = probabilities
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Choice, (int(self), self.probabilities)


class Choices(np.ndarray):
    """Discrete actions (n,) int and the ``probabilities`` (n, n_actions) they were drawn from; or one, () and
    (n_actions,)."""

    probabilities: NDArray[np.float64] | None

    def __new__(cls, actions: Any, probabilities: Any) -> "Choices":
        self = np.array(actions).view(cls)
        self.probabilities = np.asarray(probabilities, dtype=np.float64)
        if self.probabilities.shape[:-1] != self.shape:
            shape = self.probabilities.shape
            raise ValueError(f"probabilities must have one row per action {self.shape}, got shape {shape}")
        return self

    def __array_finalize__(self, array: Any) -> None:
        self.probabilities = None

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.probabilities is None else (Choices, (np.asarray(self), self.probabilities))

    def __getitem__(self, index: Any) -> Any:
        actions = np.asarray(self)[index]
        if self.probabilities is None:
            return actions
        if np.ndim(actions) == 0:
            return Choice(actions, self.probabilities[index])
        return Choices(actions, self.probabilities[index])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def squeeze(self, axis: Any = None) -> Any:
        if self.probabilities is None or self.shape[:1] != (1,) or (self.shape != (1,) and axis != 0):
            return super().squeeze(axis)
        return Choices(np.asarray(self)[0], self.probabilities[0])


def drawn(rows: NDArray[Any], luck: NDArray[Any]) -> Choices:
    """An action for each row of probabilities (n, n_actions), by a number of [0, 1) each, (n, 1)."""
    return Choices((rows.cumsum(axis=1)[:, :-1] <= luck).sum(axis=1), rows)


def random_actions(venv: VecEnv) -> Any:
    """An action for each copy, drawn evenly, with its probabilities unless it is of a Box: to see what a step
    publishes."""
    space: Any = venv.action_space
    actions = np.array([space.sample() for _ in range(venv.num_envs)])
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return actions
    _, exist = existing(space)
    probabilities = exist / exist.sum(axis=-1, keepdims=True)
    return Choices(actions, np.broadcast_to(probabilities, (venv.num_envs, *exist.shape)))


@checked
class VecChoices(VecLayer):
    """Hands the action probabilities of an SB3 or sb3-contrib model to the environments with its actions.

    ::

        venv = VecChoices(make_vec_env(...))
        model = PPO("MlpPolicy", venv)
        venv.follow(model)                                  # again after load
        evaluate_policy(model, VecChoices(eval_venv).follow(model))

    Actor-critics (PPO, A2C, TRPO, MaskablePPO, RecurrentPPO): the distribution of their last forward pass.
    Q-learners (DQN, QR-DQN): epsilon-greedy in training, greedy in evaluation. Steps that the model did not choose,
    and every step before :meth:`follow`, report the action that was executed.

    Of MultiBinary and MultiDiscrete actions the rows are (n, parts, values of the largest part).

    :raises ValueError: if the actions are of another kind, or do not start at 0
    """

    def __init__(self, venv: VecEnv) -> None:
        space = venv.action_space
        if not isinstance(space, spaces.MultiBinary | spaces.MultiDiscrete):
            check_discrete(space, "VecChoices")
        check_starts(space)
        super().__init__(venv)
        self._n_values = existing(space)[1].shape[-1]  # of the largest part
        self.model: BaseAlgorithm | None = None
        self._used: Any = None
        self._seen: Any = None

    def follow(self, model: BaseAlgorithm) -> "VecChoices":
        """Report the probabilities of ``model`` from now on; returns the environment."""
        self.model = model
        return self

    def reset(self) -> VecEnvObs:
        self._seen = getattr(self.model, "_last_obs", None)
        return self.venv.reset()

    def step_async(self, actions: NDArray[Any]) -> None:
        if self.model is not None and getattr(actions, "probabilities", None) is None:
            actions = Choices(actions, self._probabilities(self.model, np.asarray(actions)))
        self.venv.step_async(actions)

    def _probabilities(self, model: BaseAlgorithm, actions: NDArray[Any]) -> NDArray[Any]:
        executed = np.eye(self._n_values)[actions.astype(np.int64)]
        policy: Any = getattr(model, "policy", None)  # a table has none
        if hasattr(policy, "action_dist"):
            drawn = policy.action_dist.distribution
            probs = chances_of(drawn)
            stale = drawn is self._used or len(probs) != len(actions)
            self._used = drawn
            return executed if stale else probs
        learner: Any = model
        if learner._last_obs is self._seen or not self._trains(model):  # nothing new: an evaluation in this very stack
            return executed
        self._seen = learner._last_obs
        epsilon = 1.0 if learner.num_timesteps < learner.learning_starts else learner.exploration_rate
        greedy, _ = policy.predict(learner._last_obs, deterministic=True)
        return np.eye(self._n_values)[greedy] * (1 - epsilon) + epsilon / self._n_values

    def _trains(self, model: BaseAlgorithm) -> bool:
        env = model.get_env()
        while isinstance(env, VecEnvWrapper) and env is not self:
            env = env.venv
        return env is self


def chances_of(drawn: Any) -> NDArray[Any]:
    """Probabilities of all actions, (n, n_actions), or of the values of their parts, (n, parts, values of the largest),
    from a policy's ``action_dist.distribution``."""
    parts = drawn if isinstance(drawn, list) else [drawn]
    probs = [part.probs.detach().cpu().numpy() for part in parts]
    if isinstance(drawn, Bernoulli):
        return np.stack((1 - probs[0], probs[0]), axis=-1)
    if not isinstance(drawn, list):
        return np.asarray(probs[0])
    width = max(part.shape[1] for part in probs)
    return np.stack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in probs], axis=1)
