"""Evaluation environments of callbacks get as many layers above VecNormalize as the training environment has."""

from collections.abc import Iterator
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback, EventCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.vec_env import VecNormalize, unwrap_vec_normalize

from sb3_fair.wrappers.layer import VecLayer


class SameLayers(BaseAlgorithm):
    """An algorithm that puts layers around its environment, with which SB3's ``EvalCallback`` works all the same.

    The callback copies statistics from one ``VecNormalize`` to the other, and asks for both at the same depth.
    """

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        prepared = super()._init_callback(callback, progress_bar)
        for evaluation in _evaluations(prepared):
            if self.env is not None and None not in map(unwrap_vec_normalize, (self.env, evaluation.eval_env)):
                depth = max(_depth(self.env), _depth(evaluation.eval_env))
                self.env = _deepened(self.env, depth)
                evaluation.eval_env = _deepened(evaluation.eval_env, depth)
        return prepared


def _evaluations(callback: Any) -> Iterator[EvalCallback]:
    """All EvalCallbacks in a callback."""
    if isinstance(callback, EvalCallback):
        yield callback
    for inner in callback.callbacks if isinstance(callback, CallbackList) else ():
        yield from _evaluations(inner)
    if isinstance(callback, EventCallback) and callback.callback is not None:
        yield from _evaluations(callback.callback)


def _depth(venv: Any) -> int:
    """Number of layers above VecNormalize."""
    return 0 if isinstance(venv, VecNormalize) else 1 + _depth(venv.venv)


def _deepened(venv: Any, depth: int) -> Any:
    """``venv`` with layers added directly above VecNormalize, so that there are ``depth``."""
    if not isinstance(venv, VecNormalize):
        venv.venv = _deepened(venv.venv, depth - 1)
        return venv
    for _ in range(depth):
        venv = VecLayer(venv)
    return venv
