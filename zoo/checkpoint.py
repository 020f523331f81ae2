"""How is a training frozen so that it goes on as if nothing had happened, even after a kill?

At the beginning of a rollout the local variables of SB3's loops, and of ours, hold nothing that matters: all of a
training is in the model, with its environments, buffers and optimiser, and in the random states of the process. One
pickle of all that, taken there, is a checkpoint. It replaces the one before in a single step of the file system.
"""

import inspect
import os
import pickle
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper

from sb3_fair.common.run_folder import versions
from sb3_fair.zoo.names import InputError

PENDING = ("name_to_value", "name_to_count", "name_to_excluded")
"""What SB3's logger holds between two rows of the log."""


@dataclass(frozen=True)
class Frozen:
    """A training at the beginning of a rollout.

    :param model: with its environments, buffers and optimiser, without its logger
    :param beside: what else the training remembers
    :param chances: see :func:`random_states`
    :param pending: what was logged since the last row
    :param rows: text of ``progress.csv`` so far
    """

    model: Any
    beside: Any
    chances: dict[str, Any]
    pending: dict[str, Any]
    rows: str


class Checkpoints(BaseCallback):
    """Freezes the training into a file from time to time; :func:`thaw` reads it.

    Put it last: at the beginning of the training it puts the random states back that ``resumed`` holds.

    :param path: of the file; only the last checkpoint is kept
    :param minutes: between two checkpoints; 0: one at the beginning of every rollout
    :param beside: an object that the training also needs, frozen together with the model
    :param resumed: the checkpoint that the training goes on from
    """

    def __init__(
        self, path: str | Path, minutes: float = 5.0, beside: Any = None, resumed: Frozen | None = None
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.minutes = minutes
        self.beside = beside
        self.resumed = resumed
        self.count = 0

    def _on_training_start(self) -> None:
        self._written = time.monotonic()
        if self.resumed is not None:
            for name, values in self.resumed.pending.items():
                getattr(self.logger, name).update(values)
            set_random_states(self.resumed.chances)
            self.resumed = None

    def _on_rollout_start(self) -> None:
        if self.model.num_timesteps and time.monotonic() - self._written >= 60 * self.minutes:
            freeze(self.path, self.model, self.beside)
            self.count += 1
            self._written = time.monotonic()

    def _on_step(self) -> bool:
        return True


def freeze(path: Path, model: BaseAlgorithm, beside: Any = None) -> None:
    """Writes the training into ``path``, which is there whole or not at all, whenever the process is killed."""
    logger = model.logger
    csv = Path(logger.dir or "") / "progress.csv"
    frozen = Frozen(
        model=model,
        beside=beside,
        chances=random_states(),
        pending={name: dict(getattr(logger, name)) for name in PENDING},
        rows=csv.read_text() if logger.dir and csv.is_file() else "",
    )
    unfinished = _unfinished(path)
    with unfinished.open("wb") as file:
        pickle.dump(versions(), file)
        model._logger = None  # type: ignore[assignment]  # holds open files
        try:
            _Pickler(file).dump(frozen)
        finally:
            model._logger = logger
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def forget(path: Path) -> None:
    """Deletes the checkpoint, and what a kill left of one."""
    for file in (path, _unfinished(path)):
        file.unlink(missing_ok=True)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def thaw(path: str | Path) -> Frozen:
    """The training in a file; run only files you trust: a pickle is a program.

    :raises InputError: if it was written with other versions of the packages, with which a pickle may mean something
        else
    """
    with Path(path).open("rb") as file:
        then, now = pickle.load(file), versions()
        if then != now:
            changed = ", ".join(f"{name} {then.get(name)}" for name in now if then.get(name) != now[name])
            raise InputError(f"run must be resumed with the packages that it was begun with, {changed}")
        frozen: Frozen = pickle.load(file)
    policy = getattr(frozen.model, "policy", None)
    if isinstance(policy, th.nn.Module):
        policy._forward_hooks.clear()  # those of a rollout, which puts them on again
    return frozen


def random_states() -> dict[str, Any]:
    """The states of the random generators of Python, numpy and torch that the whole process shares."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "torch": th.get_rng_state(),
        "cuda": th.cuda.get_rng_state_all() if th.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """Puts back what :func:`random_states` told."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    th.set_rng_state(states["torch"])
    if states["cuda"]:
        th.cuda.set_rng_state_all(states["cuda"])


class _Pickler(cloudpickle.Pickler):
    """Pickles wrappers of VecEnvs, too, which carry the members of their class about, and views of arrays as views:
    environments write through them."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, VecEnvWrapper):
            state = {name: value for name, value in vars(obj).items() if name != "class_attributes"}
            return object.__new__, (type(obj),), state, None, None, _dress
        if type(obj) is np.ndarray and type(obj.base) is np.ndarray and not obj.dtype.hasobject:
            offset = obj.ctypes.data - obj.base.ctypes.data
            return _view, (obj.base, obj.shape, obj.dtype, offset, obj.strides, obj.flags.writeable)
        return super().reducer_override(obj)


def _view(
    base: NDArray[Any], shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...], writeable: bool
) -> NDArray[Any]:
    view: NDArray[Any] = np.ndarray(shape, dtype, base.ravel(order="K"), offset, strides)
    view.flags.writeable = writeable
    return view


def _dress(wrapper: VecEnvWrapper, state: dict[str, Any]) -> None:
    vars(wrapper).update(state, class_attributes=dict(inspect.getmembers(type(wrapper))))
