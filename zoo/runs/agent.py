"""Agents: trained policies that decide about people from outside, where there is no environment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from numbers import Number
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array
from numpy.typing import NDArray

from sb3_fair.audit.chunks import frame_columns
from sb3_fair.audit.read import OtherPolicy
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.fairness.histories.history import SlidingWindow
from sb3_fair.fairness.notions.table import find_notion
from sb3_fair.fairness.tracking.requests import attribute_name
from sb3_fair.fairness.validation import did_you_mean
from sb3_fair.pcn import PCN
from sb3_fair.wrappers.choices import chances_of
from sb3_fair.wrappers.desired_return import HORIZON, OBSERVATION, RETURN
from sb3_fair.wrappers.layer import attribute
from sb3_fair.wrappers.starts import between, ends
from sb3_fair.zoo.evaluation.evaluate import chosen, evaluation_env, front_of, words_in
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.registry.layers import check_transparent
from sb3_fair.zoo.runs.monitor import Monitor, Turns
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.policy_file import load_policy

Array = NDArray[Any]


class Decision(NamedTuple):
    """What an agent decided, about one person or about n.

    :param action: a number or an array of the action space, or (n, ...) of them
    :param probabilities: with which each action was to be taken, (n_actions,) or (n, n_actions), 0 and 1 if the most
        probable one was; None: actions are not Discrete
    :param names: of the actions
    """

    action: Any
    probabilities: Array | None
    names: tuple[str, ...]


def load_agent(run: str | Path, policy: int | str | None = None, *, device: str = "auto") -> "Agent":
    """The agent of a run of ``sb3-fair train``, to decide outside of any environment.

    :param run: the folder of the run
    :param policy: number or name of the policy in the run's report; None: the only one
    :raises InputError: if there is no such policy, it acts by more than the present observation, or wrappers changed
        its observations or actions
    :raises FileNotFoundError: if there is no run
    :raises TypeError: if ``run`` is something else, such as a model
    """
    if not isinstance(run, str | PathLike):
        made = "of sb3-fair train or train(make_plan(...)), which knows the environment too"
        raise TypeError(f"run must be the folder of a run {made}, got {run!r}")
    folder = RunFolder.open(Path(run))
    plan, front = Plan.of_run(folder), front_of(folder)
    if policy is None and len(front) > 1:
        raise InputError(
            f"policy must be given, a number from 0 to {len(front) - 1}: see {folder.report} for what each does"
        )
    learned = chosen(front, 0 if policy is None else policy)
    check_transparent(plan)
    with closing(evaluation_env(replace(plan, env_wrapper=None, vec_env_wrapper=None, audit=()), 1)) as venv:
        return Agent(load_policy(plan, folder, device), learned, venv)


class Agent:
    """A trained policy. ``columns``: what it wants to know of a person, empty if the environment does not tell names:
    its ``observation_names``, or of a table of people those of its features.

    Threads may share it. Observations are scaled as in training. The command of a policy of PCN is held: it is what the
    policy was asked for at the beginning of an episode, and is not reduced by what was earned since.

    :param model: of SB3 or this package
    :param policy: one of the run's evaluated policies
    :param venv: the environment in which it was evaluated
    :raises InputError: if it acts by more than the present observation
    """

    def __init__(self, model: Any, policy: Any, venv: Any) -> None:
        self.model: Any = model
        self.policy = policy
        self.space: Any = venv.observation_space
        self._entries: tuple[str, ...] = tuple(attribute(venv, "observation_names", ()))
        self.columns: tuple[str, ...] = tuple(attribute(venv, "person_columns", self._entries))
        self._nominal: tuple[str, ...] = tuple(attribute(venv, "named_columns", ()))
        self.spec = attribute(venv, "fairness_spec")
        self._encode = attribute(venv, "encode") if self.columns else None
        self._normaliser = model.get_vec_normalize_env()
        self._words = words_in(venv)
        self._turns = Turns()
        self._check()

    @property
    def names(self) -> tuple[str, ...]:
        """What the actions are called, their numbers if the environment has no word for favourable ones; empty unless
        they are Discrete."""
        actions, word = self._actions, self._words.get("favourable", "")
        favourable = self._favourable if word else []
        if len(actions) == 2 and len(favourable) == 1:
            return tuple(word if action in favourable else f"not {word}" for action in actions)
        return tuple(f"{action} ({word})" if action in favourable else str(action) for action in actions)

    def act(self, person: Any, deterministic: bool | None = None) -> Decision:
        """Decides.

        :param person: one person, as a dict of columns, a row of pandas, or an array of observations; or n, as a
            DataFrame, a dict of columns of n values, a list of dicts, or an array (n, ...)
        :param deterministic: whether the most probable action is taken; None: as the policy was evaluated
        :raises ValueError: if nobody is given, or a column is missing, unknown or outside of what the policy was
            trained on
        """
        rows, single = self._rows(person)
        mode = bool(self.policy.deterministic) if deterministic is None else deterministic
        seen = self._seen(rows)
        with self._turns:  # SB3's policies share one distribution between calls
            actions, _ = self.model.predict(seen, deterministic=mode)
            probabilities = self._probabilities(actions, seen, mode)
        actions = np.asarray(actions)
        if single:
            actions = actions[0].item() if actions.ndim == 1 else actions[0]
            probabilities = None if probabilities is None else probabilities[0]
        return Decision(actions, probabilities, self.names)

    def other_policy(self, name: str) -> OtherPolicy:
        """The agent as the policy that an audit compares logged decisions with: ``audit(table, target=...)``.

        :param name: what to call it
        :raises ValueError: if its columns have no names, or no action is called favourable
        """
        if not self.columns:
            raise ValueError("model must be of an environment that names its columns (observation_names)")
        favourable = np.isin(self._actions, self._favourable)
        if not favourable.any():
            raise ValueError("model must be of an environment with favourable actions")

        def chances(people: Mapping[str, Array]) -> Array:
            found: Array = self.act(people).probabilities[:, favourable].sum(axis=1)  # type: ignore[index]
            return found

        return OtherPolicy(name, self.columns, chances, self._nominal)

    def monitor(
        self,
        limits: Mapping[str, float] | None = None,
        window: int = 500,
        notions: Iterable[str] | None = None,
        told: Callable[[str, float, float], Any] | None = None,
    ) -> Monitor:
        """Watches over the notions of decisions as they are made, as the environment compares them: its favourable
        actions (where actions have parts, record 1 for a favourable one), groups, attributes and distances.

        :param limits: notion -> the lowest value that is allowed, such as ``{"SP": -0.1}``
        :param window: number of latest decisions that count; limits apply once there are so many
        :param notions: None: those with a limit, else those of the environment
        :param told: f(notion, value, limit), called when a notion leaves its limit
        :raises ValueError: if the environment has no fairness spec, or compares more than a monitor records
        """
        spec = self.spec
        if spec is None:
            raise ValueError("the policy's environment must have a fairness spec to be monitored, got none")
        measured = tuple(() if notions is None else notions) or tuple(limits or spec.notions)
        for name in measured if spec.treatment else ():
            if find_notion(name).needs_probabilities:
                raise ValueError(f"notions must not compare what FairnessSpec.treatment says of actions, got {name!r}")
        favourable = self._favourable
        return Monitor(
            limits or {},
            measured,
            told,
            spec.select,
            self._actions if favourable else (0, 1),
            favourable=favourable or [1],
            history=SlidingWindow(window),
            nominal=spec.selected_nominal,
            **self._compared,
            **{name: getattr(spec, name) for name in ("distance", "k", "feedback_missing")},
        )

    @property
    def _compared(self) -> dict[str, Any]:
        """The attributes, and the groups that are compared, also by name where labels are their numbers. One attribute
        is not named in what is recorded."""
        spec = self.spec

        def labels_of(attribute: str) -> list[Any] | None:
            labels = spec.compared(attribute)
            if labels is None:
                return None
            names = (spec.group_name(attribute, label) for label in labels if not isinstance(label, tuple))
            return list(dict.fromkeys([*labels, *names]))

        groups = {name: labels_of(name) for name in map(attribute_name, spec.attributes or ("",))}
        alone = len(spec.attributes) == 1 and isinstance(spec.attributes[0], str)
        return {
            "attributes": () if alone else spec.attributes,
            "groups": groups if len(groups) > 1 else next(iter(groups.values())),
        }

    def _check(self) -> None:
        model, algorithm = self.model, type(self.model).__name__
        if getattr(model, "massage_on_predict", False):
            raise InputError(
                "run must be of a policy without a filter, which needs to know the groups' rates before each decision: "
                f"train {algorithm} with massage_on_predict:False"
            )
        seen: Any = model.observation_space
        if isinstance(model, PCN):
            parts = {name: part for name, part in seen.spaces.items() if name not in (RETURN, HORIZON)}
            seen = parts.get(OBSERVATION) or spaces.Dict(parts)
        if type(seen) is not type(self.space) or seen.shape != self.space.shape:
            raise InputError(f"run must be of a policy that acts by the present alone, but {algorithm} remembers more")
        if self.model.predict(self._seen(create_empty_array(self.space)))[1] is not None:
            raise InputError(f"run must be of a policy that acts by the present alone, but {algorithm} has a state")

    @property
    def _actions(self) -> range:
        """All of them, as their probabilities are ordered; empty unless they are Discrete."""
        space = self.model.action_space
        return range(space.start, space.start + space.n) if isinstance(space, spaces.Discrete) else range(0)

    @property
    def _favourable(self) -> list[int]:
        spec, actions = self.spec, np.array(self._actions)
        if spec is not None and not callable(spec.favourable):
            return list(spec.favourable)
        if spec is None or not actions.size:
            return []
        decided = spec.decided(actions)
        return actions[decided == 1].tolist() if decided.ndim == 1 else []  # else each is about several people

    def _seen(self, rows: Any) -> Any:
        """As the policy saw observations in training."""
        if self._normaliser is not None:
            rows = self._normaliser.normalize_obs(rows)
        if not isinstance(self.model, PCN):
            return rows
        keys = dict(rows) if isinstance(rows, dict) else {OBSERVATION: rows}
        n = len(next(iter(keys.values())))
        command = self.policy.command
        keys[RETURN] = np.tile(np.asarray(command.desired_return, np.float32), (n, 1))
        keys[HORIZON] = np.full((n, 1), command.desired_horizon, np.float32)
        return keys

    def _rows(self, person: Any) -> tuple[Any, bool]:
        """Observations (n, ...), and whether it was one person."""
        names = tuple(self.space) if isinstance(self.space, spaces.Dict) else self.columns
        if names:
            person = _named(person)
        people = [_named(each) for each in person] if isinstance(person, list | tuple) and names else []
        if people and all(isinstance(each, Mapping) for each in people):
            for each in people:
                _require_names(each, names)
            person = {name: [each[name] for each in people] for name in names}
        if isinstance(self.space, spaces.Dict):
            if not isinstance(person, Mapping):
                raise ValueError(f"person must be a dict of {', '.join(names)}, or a list of them, got {type(person)}")
            _require_names(person, names)
            parts = {key: self._fitting(person[key], space, f"person[{key!r}]") for key, space in self.space.items()}
            if len({(len(rows), single) for rows, single in parts.values()}) > 1:
                raise ValueError("person must have as many values in all parts")
            return {key: rows for key, (rows, _) in parts.items()}, next(iter(parts.values()))[1]
        if not isinstance(person, Mapping):
            return self._fitting(person, self.space)
        columns = {name: np.atleast_1d(np.asarray(value)) for name, value in person.items()}
        self._require_columns(columns)
        rows = (self._encode or self._ordered)(columns)
        return self._fitting(rows, self.space)[0], all(np.ndim(value) == 0 for value in person.values())

    def _fitting(self, given: Any, space: Any, part: str = "person") -> tuple[Array, bool]:
        """Observations (n, ...) of a space, and whether one was given; ``part`` is what errors call them."""
        try:
            rows = np.asarray(given)
        except ValueError as error:
            raise ValueError(f"{part} must be an array of shape {space.shape} or (n, ...) of them: {error}") from None
        single = rows.ndim == len(space.shape)
        rows = rows[None] if single else rows
        self._require(rows, space, part)
        return rows.astype(space.dtype), single

    def _require_columns(self, columns: Mapping[str, Array]) -> None:
        if not self.columns:
            raise ValueError(f"person must be an array of shape {self.space.shape}: the environment names no columns")
        _require_names(columns, self.columns)
        shapes = {values.shape for values in columns.values()}
        if len(shapes) > 1 or len(shapes.pop()) > 1:
            raise ValueError("person must have one value, or as many values, in all columns")

    def _ordered(self, columns: Mapping[str, Array]) -> Array:
        for name, values in columns.items():
            if values.dtype.kind not in "biuf":
                raise ValueError(f"column {name!r} must have numbers, got {values.tolist()[0]!r}")
        return np.column_stack([columns[name] for name in self.columns])

    def _require(self, rows: Array, space: Any, part: str) -> None:
        if rows.shape[1:] != space.shape:
            raise ValueError(f"{part} must be an array of shape {space.shape} or (n, ...) of them, got {rows.shape}")
        if not len(rows):
            raise ValueError(f"{part} must be at least one, got none")
        if rows.dtype.kind not in "biuf":
            raise ValueError(f"{part} must be numbers, got {rows.ravel()[0]!r}")
        low, high = ends(space)
        whole = np.issubdtype(space.dtype, np.integer)
        wrong = ~between(low, high, rows) | (whole & (rows != np.floor(rows)))  # also NaN
        if wrong.any():
            row, *place = np.argwhere(wrong)[0].tolist()
            named = self._entries and len(place) == 1 and space is self.space
            name = f"column {self._entries[place[0]]!r}" if named else f"{part}{place or ''}"
            least, most = low[tuple(place)], high[tuple(place)]
            kind, value = "a whole number between" if whole else "between", rows[(row, *place)]
            raise ValueError(f"{name} must be {kind} {least:g} and {most:g}, got {value:g} in row {row}")

    def _probabilities(self, actions: Any, seen: Any, deterministic: bool) -> Array | None:
        """With which the actions were drawn: all in one where none were."""
        if not self._actions:
            return None
        every, first = np.eye(len(self._actions)), self._actions.start
        if deterministic:
            return every[np.asarray(actions) - first]
        told = getattr(actions, "probabilities", None)
        if told is not None:
            return np.asarray(told)
        drawn = getattr(getattr(self.model.policy, "action_dist", None), "distribution", None)
        if drawn is not None:
            return chances_of(drawn)
        greedy, rate = self.model.predict(seen, deterministic=True)[0], getattr(self.model, "exploration_rate", 0.0)
        return every[greedy - first] * (1 - rate) + rate / len(every)


def _named(person: Any) -> Any:
    """A mapping of columns if they have names, as in a dict, a DataFrame, a row of pandas or a named tuple; else as it
    is."""
    if hasattr(person, "_asdict"):
        return person._asdict()
    if isinstance(person, Mapping | np.ndarray | Number | list | tuple):
        return person
    if hasattr(person, "keys") and not hasattr(person, "columns"):
        return dict(person)
    try:
        names, column = frame_columns(person)
    except TypeError:
        return person
    return {name: column(name) for name in names}


def _require_names(person: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in person:
        if name not in known:
            near = did_you_mean(name, known)
            raise ValueError(f"person must have the columns that the policy knows, got {name!r}{near}")
    for name in known:
        if name not in person:
            raise ValueError(f"person must have the column {name!r} too")
