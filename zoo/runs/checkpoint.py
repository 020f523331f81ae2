"""Checkpoints from which a training goes on bit by bit.

At the beginning of a rollout the local variables of SB3's loops, and of ours, hold nothing that matters: all of a
training is in the model, with its environments, buffers and optimiser, and in the random states of the process. One
pickle of all that, taken there, is a checkpoint. It is read back before it replaces the one before, in a single step of
the file system, and the one before is kept.
"""

import inspect
import pickle
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

from sb3_fair.common.rollout import random_states, set_random_states
from sb3_fair.common.run_folder import differing, versions
from sb3_fair.common.signature import is_signed, sign
from sb3_fair.common.whole_file import whole
from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.names import InputError, why
from sb3_fair.zoo.runs.stopping import Interrupted, received
from sb3_fair.zoo.runs.weights import check_weights

PENDING = ("name_to_value", "name_to_count", "name_to_excluded")
"""What SB3's logger holds between two rows of the log."""


@dataclass(frozen=True)
class Frozen:
    """A training at the beginning of a rollout.

    :param model: with its environments, buffers and optimiser, without its logger
    :param beside: what else the training remembers
    :param chances: the random states of the process
    :param pending: what was logged since the last row
    :param rows: text of ``progress.csv`` so far
    """

    model: Any
    beside: Any
    chances: dict[str, Any]
    pending: dict[str, Any]
    rows: str


class Checkpoints(BaseCallback):
    """Freezes the training into a file from time to time, at its end, and before a signal stops it.

    Put it last: at the beginning of the training it puts the random states back that ``resumed`` holds.

    :param path: of the file; the checkpoint before the last one is kept beside it, see :func:`before`
    :param minutes: between two checkpoints; 0: one at the beginning of every rollout; inf: none, even at the end
    :param beside: an object that the training also needs, frozen together with the model
    :param resumed: the checkpoint that the training goes on from
    """

    def __init__(
        self,
        path: str | Path,
        minutes: float = 5.0,
        beside: Any = None,
        resumed: Frozen | None = None,
        *,
        at_end: bool = True,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.minutes = minutes
        self.at_end = at_end and minutes < np.inf
        self.beside = beside
        self.resumed = resumed
        self.count = 0

    def _on_training_start(self) -> None:
        self._written = time.monotonic()
        self._frozen = self.model.num_timesteps
        if self.resumed is not None:
            for name, values in self.resumed.pending.items():
                getattr(self.logger, name).update(values)
            set_random_states(self.resumed.chances)
            self.resumed = None

    def _on_rollout_start(self) -> None:
        stop = received()
        if stop or (self.model.num_timesteps and time.monotonic() - self._written >= 60 * self.minutes):
            self._save()
        if stop:
            raise Interrupted(stop)

    def _on_training_end(self) -> None:
        if self.at_end:
            self._save()

    def _save(self) -> None:
        """Writes a checkpoint, if there is anything new. Where that fails, the training goes on, and the last good
        checkpoint stays.
        """
        if self.model.num_timesteps == self._frozen:
            return
        check_weights(self.model)
        try:
            freeze(self.path, self.model, self.beside)
            self.count += 1
            self._frozen = self.model.num_timesteps
        except Exception as error:  # as of a disk that is full
            warn(f"no checkpoint could be written: {why(error)}")
        self._written = time.monotonic()

    def _on_step(self) -> bool:
        return True


def freeze(path: Path, model: BaseAlgorithm, beside: Any = None) -> None:
    """Writes the training into ``path``, which is there whole or not at all, whenever the process is killed; what was
    there moves to :func:`before`. If it cannot be written and read back, nothing changes.
    """
    logger = model.logger
    csv = Path(logger.dir or "") / "progress.csv"
    frozen = Frozen(
        model=model,
        beside=beside,
        chances=random_states(),
        pending={name: dict(getattr(logger, name)) for name in PENDING},
        rows=csv.read_text(encoding="utf-8") if logger.dir and csv.is_file() else "",
    )
    model._logger = None  # type: ignore[assignment]  # holds open files
    try:
        with whole(path) as unfinished:
            with unfinished.open("wb") as file:
                pickle.dump(versions(), file)
                _Pickler(file).dump(frozen)
            thaw(unfinished)
            sign(unfinished)
            if path.is_file():
                path.replace(before(path))
    finally:
        model._logger = logger


def before(path: Path) -> Path:
    """Where the checkpoint is that was in ``path`` before the last one."""
    return path.with_stem(f"{path.stem}-before")


def forget(path: Path) -> None:
    """Deletes both checkpoints, and what a kill left of one."""
    for file in (*path.parent.glob(f"{path.name}.*.part"), before(path), path):
        file.unlink(missing_ok=True)


def latest(path: Path, trust: bool = False) -> Frozen | None:
    """The training in ``path``, or with a warning the one before it where that cannot be read; None if there is none.
    Unless they are trusted, files that this user's key did not sign count as broken.
    """
    files = [file for file in (path, before(path)) if file.is_file()]
    broken = ""
    for file in files:
        if not (trust or is_signed(file)):
            broken = broken or f"{file} is damaged, or not from a training of yours (--trust takes it as it is)"
            continue
        try:
            frozen = thaw(file)
        except InputError:
            raise
        except Exception as error:  # a damaged pickle may raise anything
            broken = broken or f"{file} cannot be read ({why(error)})"
            continue
        if broken:
            warn(f"{broken}: the checkpoint before it is taken")
        return frozen
    if broken:
        raise InputError(f"{broken}, nor can one before it: delete it to begin the training anew")
    return None


def thaw(path: str | Path) -> Frozen:
    """The training in a file; run only files you trust: a pickle is a program. One of other versions of the packages is
    refused, with which a pickle may mean something else.
    """
    with Path(path).open("rb") as file:
        if changed := differing(pickle.load(file), versions()):
            raise InputError(f"run must be resumed with the packages that it was begun with, {changed}")
        frozen: Frozen = pickle.load(file)
    policy = getattr(frozen.model, "policy", None)
    if isinstance(policy, th.nn.Module):
        policy._forward_hooks.clear()  # those of a rollout, which puts them on again
    return frozen


class _Pickler(cloudpickle.Pickler):
    """Pickles wrappers of VecEnvs, too, which carry the members of their class about, and views of arrays as views:
    environments write through them."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, VecEnvWrapper):
            state = {name: value for name, value in vars(obj).items() if name != "class_attributes"}
            return object.__new__, (type(obj),), state, None, None, _dress
        if type(obj) is np.ndarray and obj.nbytes:  # an empty one shares nothing, and may have any strides
            owner = _owner(obj)
            if owner is not obj and owner.flags.forc and not owner.dtype.hasobject:
                offset = obj.ctypes.data - owner.ctypes.data
                return _view, (owner, obj.shape, obj.dtype, offset, obj.strides, obj.flags.writeable)
        return super().reducer_override(obj)


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array behind a view, which must not be writeable if that is not."""
    owner = array
    while type(owner.base) is np.ndarray and owner.base.flags.writeable >= array.flags.writeable:
        owner = owner.base
    return owner


def _view(
    owner: NDArray[Any], shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...], writeable: bool
) -> NDArray[Any]:
    memory = owner.ravel(order="K").view(np.uint8)
    view: NDArray[Any] = np.ndarray(shape, dtype, memory, offset, strides)
    if not writeable:
        view.flags.writeable = False
    return view


def _dress(wrapper: VecEnvWrapper, state: dict[str, Any]) -> None:
    vars(wrapper).update(state, class_attributes=dict(inspect.getmembers(type(wrapper))))
