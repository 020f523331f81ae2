"""Search spaces."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from sb3_fair.zoo import names
from sb3_fair.zoo.names import InputError, yaml_number
from sb3_fair.zoo.packaged import packaged
from sb3_fair.zoo.runs.plan import Plan, of_its_kind

if TYPE_CHECKING:
    from optuna import Trial

WEIGHTS = "weights"
FORMS = ("log", "range", "choice")
ON_POLICY = {"n_steps", "batch_size", "gae_lambda"}
"""Arguments of the algorithms that learn from minibatches of what they have just collected."""
DIGITS = 3
"""Of a number that is tried: what a YAML file says is what was trained."""


@dataclass(frozen=True)
class Values:
    """The values that a setting may take: an interval, of integers if both ends are, or choices by name."""

    low: float = 0
    high: float = 0
    log: bool = False
    choices: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @classmethod
    def parse(cls, setting: str, form: Any) -> "Values":
        """From the way in which YAML has it: ``{log: [0.0001, 0.01]}``, ``{range: [1, 9]}``, ``{choice: [8, 16]}``."""
        if not isinstance(form, Mapping) or len(form) != 1 or next(iter(form)) not in FORMS:
            raise InputError(
                f"space of {setting!r} must be {{log: [low, high]}}, {{range: [low, high]}} or {{choice: [...]}}, "
                f"got {form!r}"
            )
        ((kind, given),) = form.items()
        if kind == "choice":
            return cls(choices=_choices(setting, given))
        numbers = [yaml_number(number) for number in given] if isinstance(given, Sequence) else []
        growing = len(numbers) == 2 and all(map(_is_number, numbers)) and numbers[0] < numbers[1]
        if not growing or (kind == "log" and numbers[0] <= 0):
            above = " above 0" if kind == "log" else ""
            raise InputError(f"space of {setting!r} must have two growing numbers{above}, got {given!r}")
        return cls(numbers[0], numbers[1], kind == "log")

    def around(self, setting: str, value: Any) -> "Values":
        """These values and ``value``."""
        if self.choices:
            known = value in self.choices.values()
            name = _name(value)
            name = f"{name} (zoo)" if name in self.choices else name
            return self if known else replace(self, choices={name: value, **self.choices})
        if not _is_number(value) or (self.log and value <= 0):
            raise InputError(f"space of {setting!r} must be a choice, as its value here is {value!r}, got an interval")
        whole = self.whole and isinstance(value, int)
        ends = (min(self.low, value), max(self.high, value))
        return replace(self, low=ends[0] if whole else float(ends[0]), high=ends[1] if whole else float(ends[1]))

    def taken_by(self, algorithm: type, setting: str) -> "Values":
        """These values as an algorithm takes them.

        :raises InputError: if it refuses one
        """

        def taken(value: Any) -> Any:
            return of_its_kind(algorithm, setting, value, "a value to try of")

        if self.choices:
            return replace(self, choices={name: taken(value) for name, value in self.choices.items()})
        return replace(self, low=taken(self.low), high=taken(self.high))

    def parameter(self, value: Any) -> Any:
        """What Optuna calls ``value``."""
        return next(name for name, choice in self.choices.items() if choice == value) if self.choices else value

    def suggest(self, trial: "Trial", setting: str) -> Any:
        """The value that a trial is to try."""
        if self.choices:
            return self.choices[trial.suggest_categorical(setting, list(self.choices))]
        if self.whole:
            return trial.suggest_int(setting, int(self.low), int(self.high), log=self.log)
        value = float(f"{trial.suggest_float(setting, self.low, self.high, log=self.log):.{DIGITS}g}")
        return min(max(value, self.low), self.high)


Space = dict[str, Values]


def space_of(
    plan: Plan, judged: Sequence[str], fixed: Sequence[str], own: Mapping[str, Any], only: Sequence[str] | None
) -> Space:
    """What a study tries: the algorithm's entry in ``search_spaces.yml``, with the values of the plan among them.

    :param judged: by what a study judges
    :param fixed: settings that are not to be tried
    :param own: spaces in place of those of the file, in the form of the file
    :param only: settings to try; None: all
    """
    forms: dict[str, Any] = {**packaged("tuning", "search_spaces")[plan.algo], **own}
    for setting in own:
        names.choose("setting", setting.partition(".")[0], [*plan.algorithm.settings, WEIGHTS])
    chosen = forms if only is None else [names.choose("setting to try", setting, forms) for setting in only]
    tried = {setting: form for setting, form in forms.items() if setting in chosen}
    space: Space = {}
    for setting, form in tried.items():
        values = Values.parse(setting, form)
        if setting in plan.algorithm.settings:
            values = values.taken_by(plan.algorithm.cls, setting)
        if setting.partition(".")[0] in fixed:
            continue
        for name in _weighted(plan, judged) if setting == WEIGHTS else [setting]:
            value = current(plan, name)
            if value is not None or (values.choices and "." in name):
                space[name] = values.around(name, value)
            elif setting in own:
                raise InputError(f"{setting!r} must have a value to be tried, and has none here: set it in --conf-file")
    if not space:
        raise InputError("there must be a setting to try: all are fixed")
    for setting in own.keys() & tried.keys():
        if not any(name == setting or name.startswith(f"{setting}.") for name in space):
            raise InputError(f"{setting!r} has values to try, but is fixed, or of nothing that is judged")
    return space


def _weighted(plan: Plan, judged: Sequence[str]) -> list[str]:
    """The weights of the objectives that are judged, but performance."""
    if plan.weights is None:
        return []
    return [f"{WEIGHTS}.{name}" for name in plan.objectives if name != "R" and name in judged]


def current(plan: Plan, setting: str) -> Any:
    """What a plan has under the name of a setting, None if nothing; of a falling learning rate, what it falls from."""
    top, _, inner = setting.partition(".")
    if top == WEIGHTS:
        if plan.weights is None:
            raise InputError(f"weights must be left out: {plan.algo} has none to try, got {setting!r}")
        return plan.weights[plan.objectives.index(names.choose("objective", inner, plan.objectives))]
    value = plan.hyperparams.get(top, plan.algorithm.settings[top])
    if inner:
        return (value or {}).get(inner)
    return float(value.split("_")[1]) if _falls(value) else value


def parameters(plan: Plan, space: Space) -> dict[str, Any]:
    """The plan's own values as a trial of Optuna's."""
    return {setting: values.parameter(current(plan, setting)) for setting, values in space.items()}


def planned(plan: Plan, values: Mapping[str, Any]) -> Plan:
    """The plan with the values of a trial in it; a learning rate that falls in the plan still does."""
    hyperparams: dict[str, Any] = deepcopy(plan.hyperparams)
    weights = list(plan.weights or ())
    for setting, value in values.items():
        top, _, inner = setting.partition(".")
        if top == WEIGHTS:
            weights[plan.objectives.index(inner)] = float(value)
        elif inner:
            nested = {**(hyperparams.get(top) or {}), inner: value}
            hyperparams[top] = {key: entry for key, entry in nested.items() if entry is not None} or None
        else:
            falling: Any = hyperparams.get(top)
            hyperparams[top] = "_".join(["lin", f"{value:g}", *falling.split("_")[2:]]) if _falls(falling) else value
    tuned = replace(plan, hyperparams=hyperparams, weights=None if plan.weights is None else tuple(weights))
    if plan.algorithm.settings.keys() >= ON_POLICY:  # a minibatch is not to be larger than what it is taken from
        before, after = (int(current(each, "n_steps")) * plan.n_envs for each in (plan, tuned))
        if current(plan, "batch_size") <= before and current(tuned, "batch_size") > after:
            hyperparams["batch_size"] = after
    return tuned


def _falls(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("lin_")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choices(setting: str, given: Any) -> dict[Any, Any]:
    """Name -> value, of which those in a list are their own names."""
    plain = isinstance(given, list) and all(isinstance(value, bool | int | float | str) for value in given)
    if not given or not (plain or isinstance(given, Mapping)):
        raise InputError(f"choices for {setting!r} must be numbers, words or named values, got {given!r}")
    named = {yaml_number(value): value for value in given} if plain else given
    return {name: yaml_number(value) for name, value in named.items()}


def _name(value: Any) -> Any:
    """Of a choice that the file does not have: Optuna wants numbers and words."""
    if value is None:
        return "default"
    return (
        value if isinstance(value, bool | int | float | str) else yaml.safe_dump(value, default_flow_style=True).strip()
    )
