"""Extended: learners that take the arguments of an algorithm of SB3 and describe them in their docstrings."""

from collections.abc import Mapping
from inspect import cleandoc, signature
from typing import Any, ClassVar

from sb3_fair.common.named_policies import NamedPolicies


class Extended(NamedPolicies):
    """A learner built on an algorithm of SB3; its docstring has :attr:`described` in place of a line such as
    "(The arguments of PPO.)".

    :param given: the arguments of the learner's constructor, of which the algorithm's are passed on
    :param instead: arguments of the algorithm that differ from the given ones
    :raises ValueError: if ``env`` is None and the networks are to be built now
    """

    built_on: ClassVar[type]
    described: ClassVar[str]
    """``{buffer}`` is the class of its buffer of arrays."""
    buffer_classes: ClassVar[tuple[type[Any], type[Any]]]
    """The buffer of arrays, which is the base class of all that are allowed, and that of dicts."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        place = f"(The arguments of {cls.built_on.__name__}.)"
        if place in (cls.__doc__ or ""):
            described = cls.described.format(buffer=cls.buffer_classes[0].__name__)
            # without indentation, as docstrings come from Python 3.13 on
            cls.__doc__ = cleandoc(cls.__doc__ or "").replace(place, described)

    def __init__(self, given: Mapping[str, Any], **instead: Any) -> None:
        if given["env"] is None and given["_init_setup_model"]:
            raise ValueError("env must be given unless the model is loaded")
        arguments = {name: given[name] for name in given.keys() & signature(self.built_on).parameters.keys()}
        super().__init__(**{**arguments, **instead, "_init_setup_model": False})
