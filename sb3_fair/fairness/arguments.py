"""Arguments of constructors and functions, checked by the type hints of their signature and a range per name."""

import math
import numbers
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache, partial, wraps
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from sb3_fair.fairness.validation import as_array, did_you_mean, out_of_array

T = TypeVar("T")
RESHAPED = ("policy", "train_freq")
"""Arguments whose attributes are of another kind."""
LONGEST = 300
"""Letters of a value in a message."""


class Range:
    """Which numbers are allowed, in interval notation: ``"[0, 1)"``; ``"(0, inf]"`` has infinity in it.

    ``"(-inf, inf) nan"`` allows NaN too. In arrays and sequences it is about every entry.
    """

    def __init__(self, interval: str) -> None:
        self.interval, self.nan = interval.removesuffix(" nan"), interval.endswith(" nan")
        low, high = self.interval[1:-1].split(",")
        self.low, self.high = float(low), float(high)
        self.above, self.below = self.interval[0] == "(", self.interval[-1] == ")"

    def holds(self, values: Any) -> Any:
        """Whether a number is allowed, or which ones of an array are."""
        low = values > self.low if self.above else values >= self.low
        high = values < self.high if self.below else values <= self.high
        return (low & high) | (self.nan & (values != values))

    def described(self, noun: str, value: Any) -> str:
        """In words, for a ``noun`` such as "integer" or "number" and the ``value`` that came."""
        if self.nan:
            return f"a {noun} or NaN"
        if noun == "number" and self.high < math.inf:
            return f"in {self.interval}"
        if noun == "number" and self.low not in (-math.inf, 0):
            return f"a number of at least {self.low:g}"
        if self.low not in (-math.inf, 0, 1):
            return f"{'an' if noun == 'integer' else 'a'} {noun} in {self.interval}"
        if self.low == -math.inf:
            kind = "an" if noun == "integer" else "a finite" if self.below else "a"
        else:
            kind = "a positive" if self.low == 1 or self.above else "a non-negative"
        limit = f" up to {self.high:.0f}" if isinstance(value, (int, float)) and self.high < value < math.inf else ""
        return f"{kind} {noun}{limit}"


FINITE = Range("(-inf, inf)")
Numbers: TypeAlias = Annotated[ArrayLike, FINITE]
"""An array of finite numbers."""
MaybeNumbers: TypeAlias = Annotated[ArrayLike, Range("(-inf, inf) nan")]
"""An array of finite numbers and NaN."""
Undefined: TypeAlias = Annotated[float, Range("[-inf, inf] nan")]
"""Any number, NaN included."""
Positive: TypeAlias = Annotated[float, Range("(0, inf)")]
"""A finite number above 0."""
Count: TypeAlias = Annotated[int, Range("[1, 10_000_000]")]
"""A positive integer."""
Share: TypeAlias = Annotated[float, Range("(0, 1]")]
"""A number above 0 and up to 1."""
Proportion: TypeAlias = Annotated[float, Range("[0, 1]")]
"""A number from 0 to 1, such as a probability."""
NotNegative: TypeAlias = Annotated[float, Range("[0, inf)")]
"""A finite number of at least 0."""

# Names that mean the same everywhere; a signature that means something else has a Range of its own.
RANGES: dict[str, Range] = {
    name: Range(interval)
    for interval, names in {
        "[0, 1]": "gamma gae_lambda tau held reg_gamma penalty_gamma massage_threshold massage_start "
        "exploration_fraction exploration_initial_eps exploration_final_eps "
        "initial_epsilon final_epsilon epsilon_decay",
        "(0, 1]": "exploration_decay",
        "(0, 1)": "confidence line_search_shrinking_factor",
        "[0, inf)": "learning_rate vf_coef cg_damping reg_lambda delta beta1 beta2 omega alpha beta lam threshold "
        "tolerance eta target lam_eta lam_target lam_max multiplier_lr multiplier_damping max_multiplier noise "
        "crowding_threshold updates_per_step eval_freq learning_starts",
        "(0, inf)": "clip_range clip_range_vf target_kl reward_scale scaling_floor clip_obs clip_reward "
        "epsilon rms_prop_eps",
        "(0, inf]": "max_grad_norm",
        "(-inf, inf]": "max_return",
        "[1, 10_000_000]": "n_steps batch_size n_epochs buffer_size train_freq target_update_interval "
        "stats_window_size n_fill_episodes n_episodes n_command_candidates n_eval_episodes n_eval_commands "
        "schedule_steps window reservoir late delay min_window max_size n_permutations n_resamples k sequence_length "
        "max_steps high maximum cg_max_steps line_search_max_iter n_critic_updates sub_sampling_factor "
        "episode_length history_length horizon bush_life growth_interval auto_ripen n_hours max_transactions days "
        "slots",
        "[1, 1_000_000]": "n n_actions n_copies n_groups n_envs n_worlds num_envs hidden hidden_size n_agents n_units "
        "n_locations n_people num_customers num_fraudsters team_size countries width height",
        "[0, 10_000_000]": "n_updates burn_in n_counterfactual",
        "[-1, 10_000_000]": "gradient_steps sde_sample_freq",
        "[0, 2]": "verbose",
        "[0, 4294967295]": "seed",
        "[0, 1_000_000]": "n_bushes initial_infected nominal sensitive features columns",
        "[-1, 1_000_000]": "stakeholders",
    }.items()
    for name in names.split()
}


def checked(target: T) -> T:
    """A class or function that checks what it is called with: each argument is of the kind that its type hint says and
    in its :class:`Range`. Numbers of NumPy are passed on as Python's, which do not overflow.
    """
    if isinstance(target, type):
        target.__init__ = checked(target.__init__)  # type: ignore[misc]
        return target
    function: Any = target
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, parameter in signature(function).parameters.items() if parameter.kind in by_place]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = hints(function)
        args = tuple(map(_plain, args))
        kwargs = {name: _plain(value) for name, value in kwargs.items()}
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in kinds:
                check(name, value, kinds[name])
        return function(*args, **kwargs)

    call.is_checked = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value


def recheck(made: object) -> None:
    """Checks the arguments of all :func:`checked` constructors again, where an attribute has the name of the argument:
    users may change these, and so does ``load``."""
    for init in (vars(cls).get("__init__") for cls in type(made).__mro__):
        if hasattr(init, "is_checked"):
            for name, hint in hints(init).items():
                if name in vars(made) and name not in RESHAPED:
                    check(name, vars(made)[name], hint)


@cache
def hints(function: Callable[..., Any], **names: Any) -> dict[str, Any]:
    """The type hints of the arguments, with their ranges; ``names`` are those that the function's module lacks."""
    found = get_type_hints(function, localns=names, include_extras=True)
    found.pop("return", None)
    return found


def check(name: str, value: Any, hint: Any) -> None:
    """Refuses a value that a type hint and the range of its name do not allow."""
    if fits(name, value, hint):
        return
    choices = [str(each) for kind in _kinds(hint) if get_origin(kind) is Literal for each in get_args(kind)]
    meant = did_you_mean(value, choices) if isinstance(value, str) else ""
    error = TypeError if any(_is_class(kind) for kind in _kinds(hint)) else ValueError
    raise error(f"{name} must be {described(name, value, hint)}, got {_shown(value, hint)}{meant}")


def fits(name: str, value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint and the range of its name allow."""
    return _fits(value, hint, RANGES.get(name))


def described(name: str, value: Any, hint: Any, words: Mapping[Any, str] | None = None) -> str:
    """What a type hint and the range of a name allow, for messages about a ``value``; ``words`` are for kinds."""
    return _alternatives(hint, RANGES.get(name), value, {**_WORDS, **(words or {})})


_ARRAY_PARTS = set(get_args(ArrayLike))
"""Empty from NumPy 2.5 on, where its types are aliases of the ``type`` statement."""


def _kinds(hint: Any) -> list[Any]:
    """What a hint, or what it is an alias of, is the union of; :data:`ArrayLike`, itself a union, is one of them."""
    if hint == ArrayLike:
        return [hint]
    alias = get_origin(hint) or hint
    if hasattr(alias, "__value__"):
        return _kinds(alias.__value__)
    if alias not in (Union, UnionType):
        return [hint]
    parts = [part for each in get_args(hint) for part in ([each] if each in _ARRAY_PARTS else _kinds(each))]
    if _ARRAY_PARTS and set(parts) >= _ARRAY_PARTS:
        return [ArrayLike, *(part for part in parts if part not in _ARRAY_PARTS)]
    return parts


def _stripped(hint: Any, allowed: Range | None) -> tuple[Any, Range | None]:
    """A hint without its range, and the range; of ``Annotated[Any, X]``, which type checkers take for Any, X."""
    if get_origin(hint) is not Annotated:
        return hint, allowed
    inner, *extras = get_args(hint)
    for extra in extras:
        inner, allowed = (inner, extra) if isinstance(extra, Range) else (extra, allowed)
    return inner, allowed


def _fits(value: Any, hint: Any, allowed: Range | None) -> bool:
    inner, ranged = _stripped(hint, allowed)
    if inner is Any:
        return True
    if inner == ArrayLike:
        return _is_array(value, ranged if inner is not hint else None)
    hint, allowed = inner, ranged
    kinds = _kinds(hint)
    if kinds != [hint]:
        return any(_fits(value, kind, allowed) for kind in kinds)
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (None, NoneType):
        return value is None
    if origin is bool:
        return isinstance(value, (bool, np.bool_))
    if origin in (int, float):
        kind = numbers.Integral if origin is int else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind) or _beyond(value):
            return False
        return bool((allowed or FINITE).holds(value))
    if origin is Literal:
        plain = value.item() if isinstance(value, np.generic) else value
        return any(type(plain) is type(each) and plain == each for each in parts)
    if origin is Callable:
        return callable(value)
    if origin is type:
        return isinstance(value, type) and (not parts or not isinstance(parts[0], type) or issubclass(value, parts[0]))
    if origin is np.ndarray:
        if not isinstance(value, np.ndarray):
            return False
        return not (value.dtype.kind in "fO" or np.ma.is_masked(value)) or _is_array(value, allowed or FINITE)
    if not isinstance(origin, type) or (hasattr(origin, "_is_protocol") and not _has_instances(origin)):
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and (
            len(parts) < 2 or all(_fits(key, parts[0], None) and _fits(value[key], parts[1], allowed) for key in value)
        )
    if issubclass(origin, Iterable) and origin is not str and origin.__module__ in ("builtins", "collections.abc"):
        return _is_sequence(value, origin, parts, allowed)
    return isinstance(value, origin)


def _has_instances(protocol: Any) -> bool:
    return not protocol._is_protocol or getattr(protocol, "_is_runtime_protocol", False)


def _beyond(value: Any) -> bool:
    """Is it an integer that no float holds?"""
    return isinstance(value, int) and abs(value) > sys.float_info.max


def _is_sequence(value: Any, origin: type, parts: tuple[Any, ...], allowed: Range | None) -> bool:
    """A list, tuple or array of what is wanted; where an iterable is enough, also a set or a generator."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return False
    if not isinstance(value, Collection):
        return origin is Iterable
    if isinstance(value, (set, frozenset)) and origin is not Iterable:
        return False
    if isinstance(value, np.ndarray) and not value.ndim:
        return False
    entries = value.tolist() if isinstance(value, np.ndarray) else list(value)
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return len(entries) == len(parts) and all(map(partial(_fits, allowed=allowed), entries, parts))
    if parts and parts[0] is Hashable:  # which a type says for all its entries
        entries = [out_of_array(each) for each in {type(each): each for each in entries}.values()]
    return not parts or all(_fits(each, parts[0], allowed) for each in entries)


def _is_array(value: Any, allowed: Range | None) -> bool:
    """Can it be made an array with an axis or more, of numbers in the range if there is one?"""
    try:
        array = as_array(value)
    except Exception:  # whatever an object's own conversion raises
        return False
    if not array.ndim:
        return False
    if allowed is None or not array.size:
        return not np.ma.is_masked(value)
    if array.dtype.kind == "O":  # None is NaN
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
    return array.dtype.kind in "biuf" and bool(np.all(allowed.holds(array)))


def _is_class(kind: Any) -> bool:
    """Is it a class of which an object is wanted, rather than a number, a text, or some of these?"""
    return isinstance(kind, type) and kind.__module__ not in ("builtins", "types", "collections.abc", "numpy")


def _alternatives(hint: Any, allowed: Range | None, value: Any, words: Mapping[Any, str]) -> str:
    return " or ".join(dict.fromkeys(_described(kind, allowed, value, words) for kind in _kinds(hint)))


def _described(kind: Any, allowed: Range | None, value: Any, words: Mapping[Any, str]) -> str:
    if get_origin(kind) is Annotated:
        kind, allowed = _stripped(kind, allowed)
        if kind == ArrayLike:
            return f"an array (each entry {(allowed or FINITE).described('number', None)})"
        return _alternatives(kind, allowed, value, words)
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if kind == ArrayLike:
        return "an array"
    if origin in words:
        return words[origin]
    if origin in (int, float):
        return (allowed or FINITE).described("integer" if origin is int else "number", value)
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}" if len(parts) > 1 else repr(parts[0])
    if origin is type:
        return f"a subclass of {getattr(parts[0], '__name__', parts[0])}" if parts else "a class"
    if not isinstance(origin, type):
        return str(origin)
    if hasattr(origin, "_is_protocol") and origin._is_protocol:
        return f"an object with all that {origin.__name__} has"
    if not parts or origin.__module__ not in ("builtins", "collections.abc"):
        return f"of class {origin.__name__}"
    if issubclass(origin, Mapping):
        keys = f"each key {_alternatives(parts[0], None, None, words)}, " if get_origin(parts[0]) is Literal else ""
        values = "" if parts[1] is Any else f"each value {_alternatives(parts[1], allowed, None, words)}"
        return f"a dict ({keys}{values})" if keys or values else "a dict"
    if origin is tuple and parts[-1] is not Ellipsis:
        each = [_alternatives(part, allowed, None, words) for part in parts]
        return f"a sequence of {len(parts)} (each {each[0]})" if len({*each}) == 1 else f"({', '.join(each)})"
    return f"a sequence (each entry {_alternatives(parts[0], allowed, None, words)})"


_WORDS: dict[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    str: "a string",
    Callable: "a callable",
    np.ndarray: "an array",
    slice: "a slice",
    Any: "anything",
}


def _shown(value: Any, hint: Any) -> str:
    """What came, of an array with a wrong entry that entry."""
    arrays = [kind for kind in _kinds(hint) if kind != ArrayLike and _stripped(kind, None)[0] == ArrayLike]
    ranges = [each for kind in arrays for each in get_args(kind)[1:]]
    if ranges and _is_array(value, Range("[-inf, inf] nan")):
        array = as_array(value, dtype=np.float64)
        for place in np.argwhere(~ranges[0].holds(array))[:1].tolist():
            if place:
                return f"{array[tuple(place)]} at {place}"
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
