"""PCN's network: actions from observation, desired return and horizon."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import get_obs_shape, maybe_transpose, preprocess_obs
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
    create_mlp,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.common.utils import is_vectorized_observation
from torch import nn

from sb3_fair.fairness.arguments import Range, checked
from sb3_fair.pcn.actions import head_for
from sb3_fair.wrappers.desired_return import HORIZON, OBSERVATION, RETURN


@checked
class PCNPolicy(BasePolicy):
    """Embeds the observation and the command, multiplies the two embeddings, and tells the action.

    Reymond et al. (2022), Appendix C: both embeddings are linear layers with a sigmoid, the head has ReLU layers.

    :param observation_space: a Dict: what the environment shows, ``desired_return`` (k,) and ``desired_horizon`` (1,)
    :param action_space: Discrete, MultiDiscrete, MultiBinary (a distribution over the values of each part), or Box
        (the action itself, as in MORL-Baselines' continuous PCN)
    :param lr_schedule: learning rate as a function of the remaining progress
    :param net_arch: widths of ``"embedding"`` (of observation and command, which end equally wide) and ``"head"``
    :param hidden_fn: activation between the layers of the observation's embedding where it has several
    :param features_extractor_class: SB3 features extractor for the environment's part of the observation; None:
        CombinedExtractor for Dict observations, else FlattenExtractor
    :param action_noise: standard deviation of the exploration noise on Box actions, scaled to [-1, 1]
    :param optimizer_class: ``th.optim.Adam`` by default, in its fused form (a quarter quicker at this size)
    """

    feature_mean: th.Tensor
    feature_scale: th.Tensor
    command_scale: th.Tensor

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        net_arch: dict[Literal["embedding", "head"], list[int]] | None = None,
        hidden_fn: type[nn.Module] = nn.Sigmoid,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        action_noise: Annotated[float, Range("[0, inf)")] = 0.1,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        widths = {"embedding": [64], "head": [64], **(net_arch or {})}
        if not widths["embedding"]:
            raise ValueError(f"net_arch must have at least one layer in 'embedding', got {net_arch!r}")
        shown = {key: space for key, space in observation_space.spaces.items() if key not in (RETURN, HORIZON)}
        plain = set(shown) == {OBSERVATION}
        if optimizer_kwargs is None and optimizer_class is th.optim.Adam:
            optimizer_kwargs = {"fused": True}
        if features_extractor_class is None:
            features_extractor_class = FlattenExtractor if plain else CombinedExtractor
        super().__init__(
            observation_space,
            action_space,
            features_extractor_class=features_extractor_class,
            features_extractor_kwargs=features_extractor_kwargs,
            normalize_images=normalize_images,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
        )
        self.shown_space = shown[OBSERVATION] if plain else spaces.Dict(shown)
        get_obs_shape(self.shown_space)  # refuses spaces that preprocess_obs does not know
        self.net_arch = net_arch
        self.action_noise = action_noise
        self.actions = head_for(action_space, action_noise)
        self.hidden_fn = hidden_fn
        self.features_extractor = features_extractor_class(self.shown_space, **self.features_extractor_kwargs)
        n_features = self.features_extractor.features_dim
        n_command = observation_space[RETURN].shape[0] + 1  # type: ignore[index]
        self.register_buffer("feature_mean", th.zeros(n_features))
        self.register_buffer("feature_scale", th.ones(n_features))
        self.register_buffer("command_scale", th.ones(n_command))
        embedding, head = widths["embedding"], widths["head"]
        self.embed_observation = nn.Sequential(*create_mlp(n_features, -1, embedding, hidden_fn)[:-1], nn.Sigmoid())
        self.embed_command = nn.Sequential(*create_mlp(n_command, -1, embedding[-1:], nn.Sigmoid))
        self.head = nn.Sequential(*create_mlp(embedding[-1], self.actions.n_outputs, head))
        self.optimizer = optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def features(self, shown: PyTorchObs) -> th.Tensor:
        """What the environment shows, as a matrix (n, features)."""
        preprocessed = preprocess_obs(shown, self.shown_space, normalize_images=self.normalize_images)
        features: th.Tensor = self.features_extractor(preprocessed)
        return features

    def forward(self, shown: PyTorchObs, desired_return: th.Tensor, desired_horizon: th.Tensor) -> th.Tensor:
        """Log-probabilities of actions, (n, n_actions) or (n, parts, values); of a Box the actions, scaled to [-1, 1].

        :param shown: the environment's part of the observations
        :param desired_return: (n, k)
        :param desired_horizon: (n, 1)
        """
        observation = (self.features(shown) - self.feature_mean) * self.feature_scale
        command = th.cat([desired_return, desired_horizon], dim=1) * self.command_scale
        return self.actions.outputs(self.head(self.embed_observation(observation) * self.embed_command(command)))

    def shown(self, observations: dict[str, Any]) -> Any:
        """The environment's part of the observations, as tensors."""
        if isinstance(self.shown_space, spaces.Dict):
            return {key: self.tensor(observations[key]) for key in self.shown_space.spaces}
        return self.tensor(observations[OBSERVATION])

    def tensor(self, array: NDArray[Any]) -> th.Tensor:
        """``array`` on the policy's device (which SB3's ``device`` searches for among all parameters every time)."""
        return th.as_tensor(array, device=self.feature_mean.device)

    def act(self, observations: dict[str, NDArray[Any]], random: Callable[[Any], NDArray[Any]] | None) -> NDArray[Any]:
        """Actions (n, ...) for batched observations that carry the command, discrete ones with their probabilities.

        :param random: from a shape to uniform random numbers; None: the most likely actions
        """
        with th.inference_mode():
            command = (self.tensor(observations[key]).float() for key in (RETURN, HORIZON))
            outputs = self(self.shown(observations), *command)
            rows = self.actions.rows(outputs)
        return self.actions.draw(rows, None if random is None else random((len(rows), *self.actions.shape)))

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        arrays = {key: tensor.cpu().numpy() for key, tensor in observation.items()}  # type: ignore[union-attr]
        return th.as_tensor(np.asarray(self.act(arrays, None if deterministic else _uniforms)))

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions, discrete ones with the probabilities they were chosen by, also when the most probable one is taken.

        :return: ``Choices`` (n, ...), or one for a single observation; of a Box an array
        :raises ValueError: if the observation carries no command or has another shape
        """
        if not isinstance(observation, dict) or RETURN not in observation or HORIZON not in observation:
            raise ValueError(
                f"observation must carry a command under {RETURN!r} and {HORIZON!r}: step an environment made by "
                "model.follow(env). In training, PCN evaluates itself (eval_freq); without an environment, "
                "load_agent(run) decides"
            )
        if self.training:
            self.set_training_mode(False)
        known = self.observation_space.spaces  # type: ignore[attr-defined]
        observation = {key: maybe_transpose(np.asarray(seen), known.get(key)) for key, seen in observation.items()}
        if single := not is_vectorized_observation(observation, self.observation_space):  # type: ignore[arg-type]
            observation = {key: seen[None] for key, seen in observation.items()}
        actions = self.act(observation, None if deterministic else _uniforms)
        return actions.squeeze(0) if single else actions, state

    def _get_constructor_parameters(self) -> dict[str, Any]:
        settings = ("net_arch", "hidden_fn", "action_noise")
        parts = (f"{part}_{what}" for part in ("features_extractor", "optimizer") for what in ("class", "kwargs"))
        kept = {name: getattr(self, name) for name in (*settings, *parts)}
        return {**super()._get_constructor_parameters(), "lr_schedule": self._dummy_schedule, **kept}


def _uniforms(shape: Any) -> NDArray[Any]:
    return th.rand(shape).numpy()
