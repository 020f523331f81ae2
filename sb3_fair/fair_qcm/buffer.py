"""Counterfactual replay buffer: adds each step with other memories of the past.

A real transition (s, m, a, event, s', m') gives one for any other memory c: (s, c, a, s', mu(c, a, event)), with the
reward that follows from the event (Alamdari et al., "Remembering to Be Fair", Section 5.2).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from sb3_fair.fair_qcm.environment import check_raw, events_of_all, relabelled
from sb3_fair.fair_qcm.extractor import require_memory
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.schemes.scheme import Scheme
from sb3_fair.wrappers.events import FairEvent
from sb3_fair.wrappers.memories import Memory, has_window, make_memory, parts_of, require_rows
from sb3_fair.wrappers.memory import MEMORY
from sb3_fair.wrappers.observations import each
from sb3_fair.wrappers.recompute import Recompute

Array: TypeAlias = NDArray[Any]
Storage: TypeAlias = Literal["virtual", "rows"]


@checked
class CounterfactualBoxReplayBuffer(ReplayBuffer):
    """:class:`CounterfactualReplayBuffer` for vectors whose last numbers are the memory (``flatten=True``)."""

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: th.device | str = "auto",
        n_envs: int = 1,
        *,
        memory: Memory | None = None,
        scheme: Scheme | None = None,
        n_counterfactual: int = 4,
        storage: Storage = "virtual",
        shaping: Literal["potential"] | None = None,
        gamma: float | None = None,
        reward_scale: float = 1.0,
        window: int | None = None,
        seed: int | Sequence[int] | None = None,
        **others: Any,
    ) -> None:
        if "gae_lambda" in others:
            raise ValueError(
                "rollout_buffer_class must be a rollout buffer: algorithms that learn on-policy have no use for "
                "counterfactual memories, whose steps their policy did not take. Use FairQCM, DQN or QRDQN"
            )
        if others.pop("n_steps", 1) != 1:
            raise ValueError("n_steps must be 1, since another memory would have led to other actions")
        if others.get("optimize_memory_usage"):
            raise ValueError("optimize_memory_usage must be False, since next observations have a memory of their own")
        wanted = spaces.Dict if isinstance(self, DictReplayBuffer) else spaces.Box
        if not isinstance(observation_space, wanted):
            raise ValueError(
                f"observation_space must be a {wanted.__name__} for a {type(self).__name__} (there is one for Dict, "
                f"one for Box), got {observation_space}"
            )
        if shaping and (gamma is None or not 0 <= gamma < 1):
            raise ValueError(f"gamma must be the algorithm's, in [0, 1), for shaping='potential', got {gamma!r}")
        self.n_counterfactual, self.reward_scale = n_counterfactual, reward_scale
        self.shaping, self.gamma = shaping, gamma
        self.relabels = n_counterfactual > 0 or shaping is not None
        self.stores_rows = n_counterfactual > 0 and storage == "rows"
        self.cf_share = 0.0
        """Share of relabelled rows in the last batch."""
        n_stored = 1 if self.stores_rows else n_envs
        super().__init__(buffer_size, observation_space, action_space, device, n_stored, **others)
        if not self.relabels:
            return
        if memory is None or scheme is None:
            raise ValueError(
                "memory and scheme must be given, as replay_buffer_kwargs={'memory': env.get_attr('memory')[0], "
                f"'scheme': env.get_attr('scheme')[0]}}, got {memory!r} and {scheme!r}"
            )
        if not isinstance(action_space, spaces.Discrete):
            raise ValueError(f"action_space must be Discrete, got {action_space}")
        require_memory(observation_space, memory)
        self.memory = memory
        if window is not None:
            parts = parts_of(memory)
            if not any(map(has_window, parts)):
                raise ValueError(
                    f"window must be None for the memory {memory.name!r}, which is no dataclass with a window, "
                    f"got {window}"
                )
            self.memory = make_memory(parts, (), None, window=window)
        self.recompute = Recompute(self.memory, scheme)
        self.rng = np.random.default_rng(np.random.randint(2**31) if seed is None else seed)  # noqa: NPY002 (SB3's seed)
        if self.stores_rows:
            require_rows(memory, "storage='rows'")
            self.counterfactual = np.zeros(self.buffer_size, dtype=bool)
        else:
            shape = (self.buffer_size, self.n_envs)
            self.granted, self.mask = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
            self.base = np.zeros(shape, dtype=np.float32)

    def pass_on(self, loaded: Any) -> None:
        """Lets a loaded buffer of the same class go on with the settings of this one.

        :raises ValueError: if what it stores was made for other settings
        """
        stored = ("shaping", "gamma", "reward_scale") if loaded.stores_rows else ("n_envs",)
        wrong = [name for name in ("stores_rows", *stored) if getattr(loaded, name) != getattr(self, name)]
        if wrong or (self.relabels and not loaded.relabels):
            raise ValueError(
                "path must hold a buffer that was filled with the same storage (with 'rows' also shaping, gamma and "
                "reward_scale, else n_envs), and with events if they are needed, got another "
                f"{', '.join(wrong) or 'one'}"
            )
        for name in ("n_counterfactual", "relabels", "shaping", "gamma", "reward_scale"):
            setattr(loaded, name, getattr(self, name))
        if self.relabels:
            loaded.memory, loaded.recompute = self.memory, self.recompute

    def _memory_of(self, observations: Any) -> Array:
        """The memories (..., dim) in observations, to read or write."""
        found: Array = observations[MEMORY] if isinstance(observations, dict) else observations[..., -self.memory.dim :]
        return found

    # ---------------------------------------------------------------- storing

    def add(
        self, obs: Any, next_obs: Any, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        """Stores a step of every environment; ``infos`` tell the ``fair_event``.

        :raises ValueError: if they do not
        """
        if self.stores_rows:
            self._add_rows(obs, next_obs, np.asarray(action), reward, done, infos)
            return
        if self.relabels:
            self.granted[self.pos], self.base[self.pos], self.mask[self.pos] = events_of_all(infos)
        super().add(obs, next_obs, action, reward, done, infos)

    def _add_rows(
        self, obs: Any, next_obs: Any, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        events, memory = events_of_all(infos).array, self._memory_of(obs)
        candidates, valid = self.memory.rows(memory)  # type: ignore[attr-defined]
        kept = np.pad(valid, ((0, 0), (1, 0)), constant_values=True)  # the real row first
        copy, place = np.nonzero(kept)
        memories = np.concatenate((memory[:, None], candidates), axis=1)[kept]
        done = np.asarray(done, dtype=bool)
        timeouts = np.array([info.get("TimeLimit.truncated", False) for info in infos], dtype=bool)
        timeouts &= self.handle_timeout_termination
        ended = (done & ~timeouts)[copy]
        taken, real, next_memory = action.reshape(-1)[copy], place == 0, self._memory_of(next_obs)
        following, rewards = relabelled(self.recompute, memories, taken, events[copy], real, next_memory, reward)
        rewards = self._shaped(rewards, memories, following, ended)

        slots = (self.pos + np.arange(len(copy))) % self.buffer_size

        def put(stored: Array, seen: Any) -> None:
            stored[slots, 0] = np.asarray(seen).reshape(-1, *stored.shape[2:])[copy]

        each(put, self.observations, obs)
        each(put, self.next_observations, next_obs)
        self._memory_of(self.observations)[slots, 0] = memories
        self._memory_of(self.next_observations)[slots, 0] = following
        self.actions[slots, 0] = action.reshape(-1, self.action_dim)[copy]
        self.rewards[slots, 0] = rewards
        self.dones[slots, 0] = done[copy]
        self.timeouts[slots, 0] = timeouts[copy]
        self.counterfactual[slots] = ~real
        self.full = self.full or self.pos + len(copy) >= self.buffer_size
        self.pos = (self.pos + len(copy)) % self.buffer_size

    # ---------------------------------------------------------------- sampling

    def _get_samples(self, batch_inds: Array, env: VecNormalize | None = None) -> Any:
        if not self.relabels:
            samples = super()._get_samples(batch_inds, env)
            return samples if self.reward_scale == 1 else samples._replace(rewards=samples.rewards * self.reward_scale)
        check_raw(env)
        if self.stores_rows:
            self.cf_share = float(self.counterfactual[batch_inds].mean())
            return super()._get_samples(batch_inds, env)

        # the first rows of the batch are relabelled: all rows are drawn alike, so no further draw need choose them
        n_rows = len(batch_inds)
        n_virtual = n_rows * self.n_counterfactual // (self.n_counterfactual + 1)
        self.cf_share = n_virtual / n_rows
        rows = batch_inds * self.n_envs + np.random.randint(0, high=self.n_envs, size=n_rows)  # noqa: NPY002 (as SB3)

        def drawn(stored: Array) -> Array:
            return stored.reshape(-1, *stored.shape[2:]).take(rows, axis=0)

        observations, next_observations = each(drawn, self.observations), each(drawn, self.next_observations)
        actions, paid = drawn(self.actions), drawn(self.rewards)
        ended = drawn(self.dones) * (1 - drawn(self.timeouts))
        event = FairEvent(drawn(self.granted), drawn(self.base), drawn(self.mask)).array

        memory, next_memory = self._memory_of(observations), self._memory_of(next_observations)
        if n_virtual:
            memory[:n_virtual] = self.memory.sample_counterfactuals(memory[:n_virtual], self.rng)
        real = slice(n_virtual, None)
        following, rewards = relabelled(
            self.recompute, memory, actions[:, 0], event, real, next_memory[real], paid[real]
        )
        next_memory[...] = following
        rewards = self._shaped(rewards, memory, following, ended).astype(np.float32)
        kind: Any = DictReplayBufferSamples if isinstance(observations, dict) else ReplayBufferSamples
        tensor = partial(self.to_torch, copy=False)  # batches are new arrays already
        return kind(
            observations=each(tensor, self._normalize_obs(observations, env)),
            actions=tensor(actions),
            next_observations=each(tensor, self._normalize_obs(next_observations, env)),
            dones=tensor(ended[:, None]),
            rewards=tensor(self._normalize_reward(rewards[:, None], env)),
        )

    # ---------------------------------------------------------------- arithmetic

    def _shaped(self, rewards: Array, memory: Array, following: Array, ended: Array) -> Array:
        """Rewards (m,) for training: with the potential W(U)/(1 - gamma), 0 after an end, and scaled."""
        if self.shaping and self.gamma is not None:
            after = np.where(ended, 0.0, self.recompute.welfare(following))
            rewards = rewards + (self.gamma * after - self.recompute.welfare(memory)) / (1 - self.gamma)
        return rewards * self.reward_scale


class CounterfactualReplayBuffer(CounterfactualBoxReplayBuffer, DictReplayBuffer):
    """A replay buffer that relabels steps with other memories; for Dict observations.

    FairQCM fills in its arguments. It also works with DQN and QR-DQN, which need :class:`MemoryExtractor` as their
    features extractor. With ``n_counterfactual=0`` and no shaping its numbers are exactly those of SB3's buffer. SB3's
    arguments have SB3's meaning.

    :param buffer_size: number of real transitions; with ``storage="rows"`` of all rows, real or not
    :param observation_space: a Dict with the key ``"memory"``, the raw numbers of the memory
    :param memory: the environment's memory (its attribute ``memory``)
    :param scheme: the fairness scheme behind its reward (its attribute ``scheme``)
    :param n_counterfactual: k; a share k/(k + 1) of every batch, rounded down, has a counterfactual memory. 0: none.
        With ``storage="rows"`` any positive number means all rows of the memory
    :param storage: ``"virtual"``: real transitions are stored, with 6 bytes about their event, and batches relabelled
        with memories drawn anew; ``"rows"``: every step stores its counterfactual rows beside it (the paper)
    :param shaping: see :class:`FairQCM`
    :param gamma: the algorithm's discount factor; shaping needs it
    :param reward_scale: factor on the rewards of batches
    :param window: how far counterfactual memories are from the real one; None: as the memory says
    :param seed: of the counterfactual memories; None: drawn from numpy's global generator, which SB3 seeds
    :raises ValueError: if an argument is not allowed, or the reward is no function of the memory; later, if steps
        bring no ``fair_event``, or rewards and memories that are not what memory and scheme say
    """
