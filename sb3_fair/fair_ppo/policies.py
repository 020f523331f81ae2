"""GroupedActorCriticPolicy: separate networks for several groups inside one Stable-Baselines3 policy."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import DiagGaussianDistribution, Distribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn

from sb3_fair.fairness.validation import integer
from sb3_fair.wrappers.group_label import GROUP
from sb3_fair.wrappers.observations import rows_of

Tensors: TypeAlias = tuple[th.Tensor, ...]


class GroupedActorCriticPolicy(ActorCriticPolicy):
    """One complete actor and critic per group; every observation is answered by the networks of its group.

    ::

        FairPPO("GroupedPolicy", venv, policy_kwargs={"group_index": 2, "net_arch": [256, 128, 64]}, alpha=1.0)

    Networks learn from the data of their own group alone: a minibatch without a group leaves its networks as they are.
    All have the same form and one optimiser. Other algorithms of Stable-Baselines3 that take an ``ActorCriticPolicy``
    take this one too. (La Malfa et al., "Fairness Aware Reinforcement Learning via Proximal Policy Optimization",
    arXiv 2502.03953, train one network per group.)

    :param observation_space: a Dict with the key ``"group"``, or vectors with the group in one column
    :param net_arch: hidden layers of every actor and critic, as in SB3; None: 64, 64
    :param use_sde: must be False
    :param features_extractor_class: of every group's own features extractor; None: the one that fits the observations
    :param group_index: column of the observation that holds the group; None: it is under ``"group"`` in a Dict
    :param n_groups: groups are 0, ..., n_groups - 1; None: as many as a Discrete ``"group"`` has, otherwise 2
    :param shared: whether one actor and critic serves all groups, as in SB3's own policy
    :param network_kwargs: further arguments of SB3's ``ActorCriticPolicy``: ``activation_fn``, ``ortho_init``, ...
    :raises ValueError: if an argument is not allowed or nothing tells the group
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        *,
        use_sde: bool = False,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        group_index: int | None = None,
        n_groups: int | None = None,
        shared: bool = False,
        **network_kwargs: Any,
    ) -> None:
        if use_sde:
            raise ValueError("use_sde must be False, since each group has its own networks, got True")
        if not shared:
            _require_label(observation_space, group_index)
        self.group_index = group_index
        self.n_groups = _groups_in(observation_space) if n_groups is None else integer("n_groups", n_groups, low=1)
        self.shared = shared
        if features_extractor_class is None:
            keyed = isinstance(observation_space, spaces.Dict)
            features_extractor_class = CombinedExtractor if keyed else FlattenExtractor
        self._network_kwargs: dict[str, Any] = {
            **network_kwargs,
            "net_arch": net_arch,
            "features_extractor_class": features_extractor_class,
        }
        super().__init__(observation_space, action_space, lr_schedule, **self._network_kwargs)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """A stand-in: the networks of every group have their own."""
        return FlattenExtractor(spaces.Box(0, 1, (1,)))

    def _build(self, lr_schedule: Schedule) -> None:
        """Creates the networks of all groups and their one optimiser."""
        del self.features_extractor, self.pi_features_extractor, self.vf_features_extractor
        self.networks = nn.ModuleList(
            GroupNetworks(self.observation_space, self.action_space, lr_schedule, **self._network_kwargs)
            for _ in range(1 if self.shared else self.n_groups)
        )
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = ("observation_space", "action_space", "group_index", "n_groups", "shared")
        lr_schedule: Any = self._dummy_schedule
        return {**{name: getattr(self, name) for name in own}, "lr_schedule": lr_schedule, **self._network_kwargs}

    # ---------------------------------------------------------------- groups

    def groups(self, obs: PyTorchObs) -> th.Tensor:
        """The group of every observation, (n,) int64.

        :raises ValueError: if one holds none of the groups
        """
        labels = obs[GROUP].reshape(-1) if isinstance(obs, dict) else obs.flatten(1)[:, self.group_index]
        groups = labels.long()
        unknown = (groups != labels) | (groups < 0) | (groups >= self.n_groups)
        if unknown.any():
            raise ValueError(
                f"every observation must hold a group from 0 to {self.n_groups - 1}, got {labels[unknown][0].item():g} "
                "(VecNormalize must leave it as it is: norm_obs=False, or norm_obs_keys without it)"
            )
        return groups

    def _routed(self, obs: PyTorchObs, answer: Callable[["GroupNetworks", PyTorchObs], Tensors]) -> Tensors:
        """What the networks answer, each to the observations of its group; rows in the order of the observations."""
        if self.shared:
            return answer(self.networks[0], obs)  # type: ignore[arg-type]
        groups = self.groups(obs)
        order = groups.argsort(stable=True)
        parts = th.split(order, th.bincount(groups, minlength=self.n_groups).tolist())
        answers = [
            answer(network, rows_of(obs, rows))  # type: ignore[arg-type]
            for network, rows in zip(self.networks, parts, strict=True)
            if len(rows)  # no gradient of 0 for networks without data: momentum would move them
        ]
        back = order.argsort()
        return tuple(th.cat(pieces)[back] for pieces in zip(*answers, strict=True))

    # ---------------------------------------------------------------- acting and judging

    def forward(self, obs: PyTorchObs, deterministic: bool = False) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Actions, values and log-probabilities of the actions."""
        values, *parameters = self._routed(obs, GroupNetworks.both)
        distribution = self.action_dist.proba_distribution(*parameters)
        actions = distribution.get_actions(deterministic=deterministic)
        log_prob = distribution.log_prob(actions)
        return actions.reshape((-1, *self.action_space.shape)), values, log_prob  # type: ignore[misc]

    def evaluate_actions(self, obs: PyTorchObs, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Values, log-probabilities of these actions, entropies."""
        values, *parameters = self._routed(obs, GroupNetworks.both)
        distribution = self.action_dist.proba_distribution(*parameters)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: PyTorchObs) -> Distribution:
        """The distribution of the actions."""
        return self.action_dist.proba_distribution(*self._routed(obs, GroupNetworks.actor))

    def predict_values(self, obs: PyTorchObs) -> th.Tensor:
        """The values, (n, 1)."""
        return self._routed(obs, lambda network, part: (network.predict_values(part),))[0]


class GroupNetworks(ActorCriticPolicy):
    """Actor and critic of one group; :class:`GroupedActorCriticPolicy` steps their optimiser."""

    def both(self, obs: PyTorchObs) -> Tensors:
        """The critic's values and the actor's parameters of the distribution."""
        features = self.extract_features(obs)
        if isinstance(features, tuple):
            latent_pi = self.mlp_extractor.forward_actor(features[0])
            latent_vf = self.mlp_extractor.forward_critic(features[1])
        else:
            latent_pi, latent_vf = self.mlp_extractor(features)
        return self.value_net(latent_vf), *self._to_distribution(latent_pi)

    def actor(self, obs: PyTorchObs) -> Tensors:
        """The parameters of the distribution: logits, or means and logarithms of standard deviations."""
        features = super(ActorCriticPolicy, self).extract_features(obs, self.pi_features_extractor)
        return self._to_distribution(self.mlp_extractor.forward_actor(features))

    def _to_distribution(self, latent: th.Tensor) -> Tensors:
        actions = self.action_net(latent)
        if isinstance(self.action_dist, DiagGaussianDistribution):
            return actions, self.log_std.expand_as(actions)
        return (actions,)


def _groups_in(space: spaces.Space) -> int:
    label = space.spaces.get(GROUP) if isinstance(space, spaces.Dict) else None
    return int(label.n) if isinstance(label, spaces.Discrete) else 2


def _require_label(space: spaces.Space, group_index: int | None) -> None:
    """Raises a ValueError unless observations have a group at the place named."""
    if isinstance(space, spaces.Dict):
        if GROUP not in space.spaces or group_index is not None:
            raise ValueError(
                f"observations that are Dicts must have the key {GROUP!r} and group_index be None, "
                f"got {sorted(space.spaces)} and {group_index!r}; GroupLabelObs adds the key"
            )
        return
    columns = spaces.utils.flatdim(space) if isinstance(space, spaces.Box) else 0
    if group_index is None or isinstance(group_index, bool) or not -columns <= group_index < columns:
        raise ValueError(
            f"group_index must be the column of the observation that holds the group, got {group_index!r} for {space}; "
            "GroupLabelObs adds one, and shared=True needs none"
        )
