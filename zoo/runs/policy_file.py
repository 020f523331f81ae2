"""Files of trained policies that cannot run code: arrays by name (npz) beside a ``config.yml``.

SB3's zip holds pickles, and a pickle is a program. Here, the settings of the run build the model anew, by names from
the tables of algorithms, policies and environments. The file brings what was learned: weights, statistics of
observations, numbers and flags of the model, and the state of its random generator.
"""

import io
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize, unwrap_vec_normalize

from sb3_fair.common.run_folder import DamagedError, RunFolder
from sb3_fair.common.whole_file import whole
from sb3_fair.zoo.names import InputError, why
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.weights import check_weights

Arrays = dict[str, NDArray[Any]]
PLAIN = (bool, int, float, str, type(None))
WEIGHTS, TABLE, SCALE, STATE = "weights/", "table/", "scale/", "state"
MOMENTS = ("mean", "var", "count")
LARGEST, DENSEST = 2**30, 20
"""A file may unpack to so many bytes, or to so many times its own size: a small one could fill the memory."""


def save_policy(model: Any, path: Path) -> None:
    """Writes what a model needs to act, and nothing that can run code."""
    state = {name: value for name, value in vars(model).items() if name[0] != "_" and isinstance(value, PLAIN)}
    if isinstance(getattr(model, "rng", None), np.random.Generator):
        state["rng"] = model.rng.bit_generator.state
    arrays: Arrays = {STATE: np.array(json.dumps(state))}
    if getattr(model, "policy", None) is not None:
        arrays |= {WEIGHTS + name: tensor.cpu().numpy() for name, tensor in model.policy.state_dict().items()}
    if hasattr(model, "table_arrays"):
        arrays |= {TABLE + name: array for name, array in model.table_arrays().items()}
    normaliser = unwrap_vec_normalize(model.get_env())
    if normaliser is not None:
        arrays |= {SCALE + name: getattr(found, part) for name, found, part in _moments(normaliser)}
    with whole(path) as file, file.open("wb") as written:
        np.savez_compressed(written, allow_pickle=False, **arrays)


def load_policy(plan: Plan, run: RunFolder, device: str = "auto") -> Any:
    """The model that :func:`save_policy` wrote into the folder of a run, to predict.

    :raises DamagedError: if it is missing, or not what the run wrote
    :raises InputError: if the model cannot be built with the settings of the run
    """
    from sb3_fair.zoo.runs.train import built

    arrays = run.parse(run.policy.name, _read)
    if arrays is None:
        raise DamagedError(run.policy, "it is missing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about training
            with built(plan, device) as model:
                model.env = None  # as in a model that SB3 has loaded
                if plan.algorithm.vector:
                    model.eval_env = None
    except InputError:
        raise
    except Exception as error:  # settings of a stranger may raise anything
        raise InputError(f"{run.path / 'config.yml'} must have settings that can be built: {error}") from error
    try:
        _restore(model, arrays)
    except Exception as error:
        raise DamagedError(run.policy, f"it does not fit config.yml ({why(error)[:200]})") from error
    check_weights(model)
    return model


def _read(content: bytes) -> Arrays:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        size = sum(member.file_size for member in file.zip.infolist())  # zipfile reads no more of a member
        if size > max(LARGEST, DENSEST * len(content)):
            raise ValueError(f"it unpacks to {size} bytes, too many for its {len(content)}")
        return {name: file[name] for name in file.files}


def _restore(model: Any, arrays: Arrays) -> None:
    _set_state(model, json.loads(str(arrays[STATE])))
    if getattr(model, "policy", None) is not None:
        weights = {name: th.as_tensor(array) for name, array in _part(arrays, WEIGHTS).items()}
        model.policy.load_state_dict(weights, strict=True)
        model.policy.set_training_mode(False)
    if hasattr(model, "set_table_arrays"):
        model.set_table_arrays(_part(arrays, TABLE))
    normaliser = model.get_vec_normalize_env()
    if normaliser is not None:
        _set_scale(normaliser, _part(arrays, SCALE))


def _set_state(model: Any, state: Mapping[str, Any]) -> None:
    """Plain attributes that the model has; others stay as they were built."""
    for name, value in state.items():
        if name == "rng":
            if hasattr(model, "rng"):  # a learner may once have had one
                model.rng.bit_generator.state = value
        elif name[0] != "_" and isinstance(vars(model).get(name, model), PLAIN) and isinstance(value, PLAIN):
            setattr(model, name, value)


def _set_scale(normaliser: VecNormalize, arrays: Arrays) -> None:
    for name, found, part in _moments(normaliser):
        if arrays[name].shape != np.shape(getattr(found, part)):
            raise ValueError(f"{SCALE}{name} must have the shape {np.shape(getattr(found, part))}")
        setattr(found, part, arrays[name] if arrays[name].ndim else float(arrays[name]))


def _moments(normaliser: VecNormalize) -> list[tuple[str, RunningMeanStd, str]]:
    """Name, statistic and attribute of all that a scale has learned."""
    scales: dict[str, RunningMeanStd] = {"returns": normaliser.ret_rms}
    if normaliser.norm_obs:
        seen = normaliser.obs_rms
        scales |= {
            f"observations/{key}": scale for key, scale in (seen if isinstance(seen, dict) else {"": seen}).items()
        }
    return [(f"{name}/{part}", scale, part) for name, scale in scales.items() for part in MOMENTS]


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
