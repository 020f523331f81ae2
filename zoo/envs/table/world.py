"""People of a table, one after the other: accept or refuse each."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.audit.values import text
from sb3_fair.fairness import FairnessSpec, SlidingWindow
from sb3_fair.wrappers.infos import Record
from sb3_fair.zoo.envs.groups import Group, Groups, attributes_of
from sb3_fair.zoo.envs.table.people import Columns, People, people_of
from sb3_fair.zoo.envs.table.settings import TableConfig
from sb3_fair.zoo.envs.tapes import Tapes
from sb3_fair.zoo.envs.world import Array, Rule, Step, World, of_two
from sb3_fair.zoo.names import InputError, input_errors

MOST_BYTES = 8 * 2**30
"""Memory for features that move."""


class _Draw(NamedTuple):
    """Who comes, (n,) places among the people of the part."""

    person: NDArray[np.intp]


def _draws(uniforms: NDArray[np.float64], size: int) -> _Draw:
    return _Draw((uniforms[..., 0] * size).astype(np.intp))


class TableWorld(World):
    """Each step a person is drawn from the rows of a table, with replacement; action 1 accepts, action 0 refuses.

    Observation: the features, numbers scaled to [0, 1] by their range in the table, names one-hot; with a capacity the
    shares of it and of its period that are left. Once the capacity is used up, everybody is refused until the next
    period: ``info["individual"]["action"]`` says what was carried out. See :doc:`/table`.

    :param group: columns whose groups are compared: a name, a tuple of names for their product partition, or a list of
        several
    :param detail: whether records have ``detail``: ``row`` of the table, and ``good``, whether the outcome is good
    :param config: fields of :class:`~sb3_fair.zoo.envs.table.settings.TableConfig`
    :raises InputError: if the table does not fit the settings
    :raises OSError: if there is no such file
    """

    picture = "sb3_fair.zoo.envs.table.picture:picture"
    unseen: ClassVar[Mapping[str, Any]] = {"split": "test"}

    def __init__(self, n_worlds: int, *, group: Group | None = None, detail: bool = False, **config: Any) -> None:
        with input_errors():
            self.config = settings = self.configured(n_worlds, detail, TableConfig, config)
            if not group:
                raise ValueError("group must name at least one column, got none")
            attributes = attributes_of(group)
            columns = Columns(
                groups=attributes,
                outcome=str(settings.outcome),
                good=None if settings.good is None else text(settings.good),
                features=settings.seen,
                nominal=tuple(settings.nominal),
                person=settings.person,
                score=settings.score,
                missing=settings.missing,
            )
            if settings.outcome in attributes:
                raise ValueError(f"group must not be the column of the outcome, got {settings.outcome!r}")
            if {*columns.features} <= {*attributes}:
                raise ValueError(f"features must tell more of people than their groups, got {columns.features!r}")
            self.people: People = people_of(settings.table, columns, settings.sha256)
            """Everybody in the table."""
            self.groups = Groups(group, self.people.labels)
        self.part = self.people.part(settings.split, settings.test_share, settings.split_seed)
        """Rows (m,) of those who are drawn."""
        table = settings.table
        self.source = f"people of {Path(table).name if isinstance(table, str | Path) else 'a table'}"  # type: ignore[misc]
        sentence = (
            f"{settings.gain:+g} for every accepted person whose outcome ({settings.outcome}) is good, "
            f"{settings.loss:+g} for every other accepted person. People are drawn from {len(self.part):,} of the "
            f"table again and again: intervals do not say how much other people would differ. {self.people.left_out}"
        )
        self.words = {  # type: ignore[misc]
            "R": {"title": "earnings", "sentence": sentence.strip()},
            "people": "people",
            "favourable": "accepted",
            "deserving": f"{settings.outcome}: {self.people.good_outcome}",
        }
        self.rules = RULES | (_score_rules(self) if settings.score else {})  # type: ignore[misc]
        self.max_steps = settings.episode_length
        self.max_return = settings.gain * min(settings.episode_length, self._most_accepted())
        self.action_space = spaces.Discrete(2)
        self.fairness_spec = FairnessSpec(
            notions=("SP", "EO") if settings.feedback == "all" else ("SP", "PP"),
            history=SlidingWindow(min(settings.episode_length, 500)),
            group=self.groups.source,
            group_names=self.groups.names,
            feedback_missing=settings.feedback_missing,
            feature_names=columns.features,
            nominal=[columns.features.index(name) for name in columns.nominal],
            sensitive=[columns.features.index(name) for name in attributes if name in columns.features],
        )
        self.features, self.good = self.people.features[self.part], self.people.good[self.part]
        self._codes = self.groups.codes(**{name: codes[self.part] for name, codes in self.people.groups.items()})
        self._shown, self.observation_names = self._encoded()
        """Observations (m, d) of the part, without moves and capacity; and the names of all columns."""
        width = len(self.observation_names)
        self.observation_space = spaces.Box(0.0, 1.0, (width,), np.float32)
        self._pay = np.array([0.0, settings.loss, 0.0, settings.gain])  # by 2 * good + accepted
        self._period = settings.period or settings.episode_length
        self._left = np.zeros(n_worlds, dtype=np.int64)  # of the capacity
        self._time = np.zeros(n_worlds, dtype=np.int64)
        self._rows = np.arange(n_worlds)
        self._set_up_moves(n_worlds)
        super().__init__(n_worlds, Tapes(n_worlds, 1, partial(_draws, size=len(self.part))))

    @property
    def person(self) -> NDArray[np.intp]:
        """Who is decided on in the coming step: (n,) places in :attr:`part`."""
        return self.tapes.now.person

    @property
    def left(self) -> NDArray[np.int64] | None:
        """How many more may be accepted in this period (n,); None: any number."""
        return None if self.config.capacity is None else self._left

    def massage(self) -> Record:
        return self.groups.massage(self._codes[self.person])

    def restart(self, which: Array) -> Array:
        self._time[which] = 0
        self._left[which] = self.config.capacity or 0
        if self._moved is not None:
            self._moved[which] = self.features[:, self._movable]
        self.tapes.redraw(which, self.restart_streams(which))
        return self.observed(which)

    def step(self, actions: Array) -> Step:
        person = self.person
        accept = np.asarray(actions) == 1
        if self.config.capacity is not None:
            accept &= self._left > 0
        action = accept.astype(np.int64)
        good = self.good[person]
        feedback = good.astype(np.float64)
        if self.config.feedback == "accepted":
            feedback[~accept] = np.nan
        individual = {
            "group": self.groups.record(self._codes[person]),
            "features": self._features(person),
            "action": action,
            "feedback": feedback,
        }
        record: Record = {"individual": individual}
        if self.detail:
            record["detail"] = {"row": self.part[person], "good": good}
        self._move(person, accept, good)
        self._time += 1
        if self.config.capacity is not None:
            self._left = np.where(self._time % self._period == 0, self.config.capacity, self._left - accept)
        self.tapes.advance()
        nobody = np.zeros(self.n_worlds, dtype=bool)
        return self.observed(self._rows), self._pay[2 * good + action], nobody, self._time >= self.max_steps, record

    @property
    def person_columns(self) -> tuple[str, ...]:
        """What :meth:`encode` wants to know: the features; with a capacity also the shares of it that are left."""
        width = len(self.observation_names) - 2 * (self.config.capacity is not None)
        return self.people.columns.features + self.observation_names[width:]

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Those of :attr:`person_columns` whose values are names."""
        return self.people.columns.nominal

    def encode(self, columns: Mapping[str, Array]) -> NDArray[np.float32]:
        """Observations (n, d) of people from outside the table.

        :param columns: each of :attr:`person_columns` -> (n,) values as in the table, or shares
        :raises ValueError: if a value is outside of what the table has
        """
        people, shown = self.people, []
        limits = dict(zip(people.columns.features, np.column_stack((people.low, people.high)).tolist(), strict=True))
        for name in self.person_columns:
            labels, values = people.names.get(name), columns[name].tolist()
            if labels is not None:
                for value in values:
                    if text(value) not in labels:
                        raise ValueError(f"column {name!r} must be one of {', '.join(labels[:5])}, got {value!r}")
                shown.append(np.eye(len(labels))[[labels.index(text(value)) for value in values]])
                continue
            low, high = limits.get(name, (0.0, 1.0))
            for value in values:
                if not isinstance(value, int | float):
                    raise ValueError(f"column {name!r} must have numbers, got {value!r}")
                if not low <= value <= high:
                    raise ValueError(f"column {name!r} must be between {low:g} and {high:g}, got {value}")
            shown.append((np.array(values)[:, None] - low) / (high - low if high > low else 1.0))
        return np.concatenate(shown, axis=1, dtype=np.float32)

    def _most_accepted(self) -> float:
        capacity, length = self.config.capacity, self.config.episode_length
        return np.inf if capacity is None else capacity * -(-length // (self.config.period or length))

    def _encoded(self) -> tuple[NDArray[np.float32], tuple[str, ...]]:
        columns, names = [], []
        for index, feature in enumerate(self.people.columns.features):
            values, labels = self.features[:, index], self.people.names.get(feature)
            if labels is None:
                columns.append(values[:, None])
                names.append(feature)
            else:
                columns.append(np.eye(len(labels))[values.astype(np.intp)])
                names += [f"{feature}={label}" for label in labels]
        capacity = () if self.config.capacity is None else ("capacity left", "period left")
        return np.concatenate(columns, axis=1, dtype=np.float32), (*names, *capacity)

    def _set_up_moves(self, n_worlds: int) -> None:
        people, changes = self.people, self.config.changes
        names = people.columns.features
        self._movable = [names.index(name) for name in changes]
        self._seen_at = [self.observation_names.index(name) for name in changes]
        spans = (people.high - people.low)[self._movable]
        if not spans.all():
            raise InputError(f"moves must be of features that differ, got {[*changes][spans.argmin()]!r}")
        self._change = np.array([*changes.values()]).T.reshape(2, -1)[::-1] / spans  # rows: bad, good
        self._moved: NDArray[np.float32] | None = None
        """(n, m, moving features), scaled; None: none move."""
        if changes:
            shape = (n_worlds, len(self.part), len(changes))
            if 4 * np.prod(shape, dtype=float) > MOST_BYTES:
                raise InputError(f"moves must be of fewer people, features or copies: {shape} numbers do not fit")
            self._moved = np.zeros(shape, dtype=np.float32)

    def _move(self, person: NDArray[np.intp], accept: NDArray[np.bool_], good: NDArray[np.bool_]) -> None:
        if self._moved is not None:
            changed = self._moved[self._rows, person] + self._change[good.astype(np.intp)] * accept[:, None]
            self._moved[self._rows, person] = np.clip(changed, 0.0, 1.0)

    def _features(self, person: NDArray[np.intp]) -> Array:
        """Of the present people (n,): (n, features)."""
        features: Array = self.features.take(person, axis=0)
        if self._moved is not None:
            features[:, self._movable] = self._moved[self._rows, person]
        return features

    def observed(self, which: Array) -> Array:
        """Observations of the copies ``which`` (k,) before the coming step: (k, d)."""
        person = self.person[which]
        obs = self._shown.take(person, axis=0)
        if self._moved is not None:
            obs[:, self._seen_at] = self._moved[which, person]
        if self.config.capacity is None:
            return obs
        left = self._left[which] / self.config.capacity
        now = 1 - self._time[which] % self._period / self._period
        return np.column_stack((obs, left, now)).astype(np.float32)


def _score_rules(world: TableWorld) -> dict[str, Rule]:
    """Rules that accept a score from somewhere on, chosen by the people for training."""
    people, config = world.people, world.config
    assert people.score is not None
    known = people.part("all" if config.split == "all" else "train", config.test_share, config.split_seed)
    scores, good = people.score[known], people.good[known]
    places = np.unique(scores)
    paid = np.bincount(np.searchsorted(places, scores), np.where(good, config.gain, config.loss))
    from_here = np.append(paid[::-1].cumsum()[::-1], 0.0)  # what accepting everybody from this score on brings
    best = np.append(places, np.inf)[from_here.argmax()]
    accepts = partial(_from_score, scores=people.score[world.part])
    rules: dict[str, Rule] = {"score-best": partial(accepts, cut=float(best))}
    for name, share, cut in (
        ("score-top-half", 0.5, np.median(scores)),
        ("score-top-quarter", 0.25, np.quantile(scores, 0.75)),
    ):
        tied, left = np.count_nonzero(scores == cut), np.ceil(share * len(scores)) - np.count_nonzero(scores > cut)
        rules[name] = partial(accepts, cut=float(cut), tied=float(left / tied) if tied else 1.0)
    return rules


def _from_score(world: TableWorld, scores: NDArray[np.float64], cut: float, tied: float = 1.0) -> Array:
    """Everybody above the cut, and whoever is at it with the probability ``tied``."""
    own = scores[world.person]
    return of_two(world, np.where(own == cut, tied, own > cut))


def _oracle(world: TableWorld) -> Array:
    return of_two(world, world.good[world.person])


RULES: dict[str, Rule] = {
    "accept-all": partial(of_two, probability=1),
    "reject-all": partial(of_two, probability=0),
    "random": partial(of_two, probability=0.5),
    "oracle": _oracle,
}
