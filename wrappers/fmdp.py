"""FairMDP: makes an environment a fairness MDP."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_fair.fairness import FairnessSpec, Tracker, find_notion
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.notions.probabilities import half_roots, rows_of_distributions
from sb3_fair.fairness.spec import individual_in, is_labelled, read_feedback
from sb3_fair.fairness.validation import integer, is_missing, number, out_of_array
from sb3_fair.fairness.warning import warn
from sb3_fair.wrappers.faces import Core, Face, Step, VecFace, Wrapped
from sb3_fair.wrappers.ids import Id, Ids
from sb3_fair.wrappers.infos import (
    missing_labels,
    publish,
    publish_figures,
    record_of,
    stack_people,
    stacked_people,
    tells,
)
from sb3_fair.wrappers.layer import Observations, attribute
from sb3_fair.wrappers.starts import ends

Probabilities = Literal["policy", "executed"]
People = dict[str, Any]
Mask = NDArray[np.bool_]
LATE = "late_feedback"
TOLERANCE = 1e-6
"""Of rounding, in parts of the distance between two bounds."""
TOLD = ("group", "features", "feedback")
"""What the tracker is told of people, besides actions."""


class Decisions:
    """What the actions of a space mean for the people decided on.

    Actions of a MultiBinary or MultiDiscrete space with a set of favourable actions are decisions on several people,
    one per entry; any other ones need a predicate ``favourable``, unless the space is Discrete.
    """

    def __init__(self, spec: FairnessSpec, space: spaces.Space) -> None:
        self.spec, self.space = spec, space
        self.predicate = callable(spec.favourable)
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box):
            raise ValueError(
                f"notions {spec.notions} compare actions and need a Discrete, MultiDiscrete, MultiBinary or Box action "
                f"space, got {space}"
            )
        self.has_chances = not isinstance(space, spaces.Box)
        self.low, self.high = -np.inf, np.inf  # of a decision on one person
        if self.has_chances:
            low, high = ends(space)
            self.low, self.high = int(low.min()), int(high.max())
        if not self.predicate and not self.has_chances:
            raise ValueError(f"favourable must be a predicate of the action, f(actions) -> bool, for {space}")
        if not self.predicate:
            missing = [action for action in spec.favourable if not self.low <= action <= self.high]
            if missing:
                raise ValueError(f"favourable must have actions of {space}, got {missing[0]}")
        self._one_hot = half_roots(np.eye(int(self.high - self.low) + 1)) if self.has_chances else None
        whole = self.predicate and not isinstance(space, spaces.Discrete)  # an action has parts
        self.n_actions = None if self._one_hot is None or whole or spec.treatment else len(self._one_hot)
        self._untried = self.predicate

    def require(self, name: str, values: Any, present: Any = True) -> None:
        """:raises ValueError: if one of the ``values`` is neither unknown (NaN) nor a decision"""
        low, high = (0, 1) if self.predicate else (self.low, self.high)
        if low == -np.inf or (self.predicate and name == "action"):  # what was carried out, which the predicate judges
            return
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iuf":
            numbers = numbers.astype(np.float64)
        wrong = (numbers < low) | (numbers > high)
        if np.count_nonzero(wrong) and (wrong := wrong & _fitted(present, wrong.ndim)).any():
            what = (
                "0 or 1, whether a favourable action was right"
                if high == 1 and self.predicate
                else f"an action of {self.space}"
            )
            raise ValueError(f"{name} must be {what}, got {numbers[wrong][0]:g}")

    def decided(self, actions: NDArray[Any]) -> NDArray[Any]:
        """What :meth:`FairnessSpec.decided` makes of actions (n, ...).

        A predicate is tried first on another number of actions than an action has entries: with as many,
        ``lambda action: action[0] > 0`` would look right.
        """
        if self._untried:
            rows = next(n for n in range(2, actions.ndim + 2) if n not in actions.shape[1:])
            self.spec.decided(np.resize(actions, (rows, *actions.shape[1:])))
            self._untried = False
        return self.spec.decided(actions)

    def roots(self, actions: NDArray[Any], place: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Executed actions (m, ...) as coordinates (m, e); their Euclidean distances are those of treatment.

        :param place: (m,) which of several people each is about, if an action may have an entry per person
        :raises ValueError: if they are no actions
        """
        low, high = self._bounds(actions, place)
        if not (np.isfinite(low) & np.isfinite(high)).all():
            raise ValueError(f"treatment must be given for actions without bounds, {self.space}")
        scaled = (np.asarray(actions, dtype=np.float64) - low) / np.maximum(high - low, TOLERANCE)
        wrong = (scaled < -TOLERANCE) | (scaled > 1 + TOLERANCE)
        if np.count_nonzero(wrong):
            raise ValueError(
                f"treatment must be given where what is carried out is no action of {self.space}, got "
                f"{np.asarray(actions)[wrong][0]:g}"
            )
        if self._one_hot is not None:
            scaled = self._one_hot.take(actions - int(self.low), axis=0)
            if actions.ndim == 1:
                return scaled
        return scaled.reshape(len(scaled), -1) / actions[0].size ** 0.5

    def roots_of_parts(self, probabilities: Any) -> NDArray[np.float64]:
        """Probabilities (m, parts, values) of the parts of actions as coordinates (m, e), see :meth:`roots`.

        :raises ValueError: if they are no distributions over the values of the largest part
        """
        rows = np.asarray(probabilities, dtype=np.float64)
        n_values = None if self._one_hot is None else len(self._one_hot)
        parts = half_roots(rows_of_distributions(rows.reshape(-1, rows.shape[-1]), n_values))
        return parts.reshape(len(rows), -1) / (len(parts) / len(rows)) ** 0.5

    def _bounds(self, actions: NDArray[Any], place: NDArray[np.intp] | None) -> tuple[Any, Any]:
        """The lowest and the highest value of each entry of what was carried out."""
        space: Any = self.space
        low, high = ends(space)
        if actions.shape[1:] == space.shape:
            return low, high
        if place is not None and actions.shape[1:] == space.shape[1:] and place.max() < len(low):
            return low[place], high[place]
        if self.has_chances:
            return self.low, self.high
        raise ValueError(f"treatment must be given where what is carried out is no action of {space}")

    def treatment(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """What the spec's ``treatment`` says of actions (m, ...): coordinates (m, e)."""
        assert self.spec.treatment is not None
        found = np.asarray(self.spec.treatment(actions), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(actions) or not np.isfinite(found).all():
            raise ValueError(f"treatment must return finite coordinates ({len(actions)}, e), got shape {found.shape}")
        return found


@checked
class Measuring(Core):
    """Measures how fairly the individuals in an environment are treated."""

    published: ClassVar[tuple[str, ...]] = (
        "fairness_spec",
        "fairness_names",
        "probabilities_used",
        "reset_on_episode",
        "compared_groups",
        "decisions_kept",
    )
    _looks_back = _takes_probabilities = True
    fairness_names: tuple[str, ...] = ()
    """Names of the notions in ``info["fairness"]``."""
    _tracker: Tracker
    """There is none where the spec has no notions."""

    def __init__(
        self,
        env: Wrapped,
        spec: FairnessSpec,
        *,
        probabilities: Probabilities = "policy",
        reset_on_episode: bool = True,
    ) -> None:
        arguments: dict[str, Any] = {"spec": spec, "probabilities": probabilities, "reset_on_episode": reset_on_episode}
        super().__init__(env, _disable_deepcopy=True, **arguments)
        if attribute(env, "fairness_names") is not None:
            raise ValueError(
                "env already is a fairness MDP: there is a FairMDP inside (in every sb3_fair ID; pass objectives=, "
                "audit= or spec= to gym.make to change what it measures)"
            )
        self.fairness_spec, self.compared_groups = spec, spec.compared_groups
        self.reset_on_episode = reset_on_episode
        self._executed = probabilities == "executed"
        self._kinds: set[str] = set()  # of probabilities that the notions have seen
        self._in_info = spec.features is None and not callable(spec.feedback) and not spec.calls_for_group
        self._life = 0  # how many seeded resets there have been
        self._begun = {0: np.zeros(self._n_copies, dtype=np.int64)}  # life -> the tracker's id of its first, (n,)
        self._clock = 0
        self._due: dict[int, list[tuple[int, Id, float]]] = {}  # step -> (copy, id, feedback), with feedback_delay
        if spec.notions:
            self._decisions = Decisions(spec, env.action_space)
            self._tracker = spec.tracker(self._n_copies, self._decisions.n_actions)
            self.fairness_names = self._tracker.names

    @property
    def probabilities_used(self) -> str | None:
        """Which probabilities the notions have seen so far: ``"policy"``, ``"executed"``, ``"mixed"``, None: none."""
        return next(iter(self._kinds), None) if len(self._kinds) < 2 else "mixed"

    @property
    def decisions_kept(self) -> NDArray[np.int64]:
        """How many of its latest decisions the history of each copy keeps, (n,)."""
        return self._tracker.kept if self.fairness_names else np.zeros(self._n_copies, dtype=np.int64)

    def _restart(self, which: NDArray[np.intp], seeded: bool = False) -> None:
        if self.fairness_names and self.reset_on_episode:
            if seeded:
                self._forget(which)
            else:
                self._tracker.reset(which)
        if self.fairness_names and seeded:
            self._life += 1
            self._begun[self._life] = seen = self._tracker.seen
            life, oldest = min(self._begun), seen - self._tracker.kept
            while life < self._life and (self._begun[life + 1] <= oldest).all():
                del self._begun[life]  # nobody whom it decided on is in the history any more
                life += 1

    def _forget(self, which: NDArray[np.intp]) -> None:
        """Forgets the histories of the copies ``which`` (k,); their ids run on."""
        if self.fairness_names and len(which) < self._n_copies:
            self._tracker.reset(which)
        elif self.fairness_names:
            self._begun = {self._life: self._begun[self._life] - self._tracker.seen}
            self._due.clear()
            self._tracker = self.fairness_spec.tracker(self._n_copies, self._decisions.n_actions)

    def feedback_counts(self, copy: int = 0) -> dict[str, dict[Any, dict[str, float]]]:
        """How many outcomes are known in a copy, by attribute, group and kind of decision, as :class:`Tracker` tells
        them."""
        return self._tracker.feedback_counts(copy) if self.fairness_names else {}

    def _update_feedback(self, copy: int, id: int, value: float) -> bool:
        if not self.fairness_names:
            return False
        self._decisions.require("value", number("value", value))
        since = integer("id", id, low=0)
        begun = self._begun.get(id.life if isinstance(id, Id) else self._life)
        return begun is not None and self._tracker.update_feedback(copy, since + int(begun[copy]), value)

    def _record(self, step: Step) -> None:
        """Counts the decisions of one step and adds ``individual`` (with ids) and ``fairness`` to the infos."""
        infos, obs, delay = step.infos, step.obs, self.fairness_spec.feedback_delay
        if self.fairness_names:
            published, people, here = self._individuals(infos, obs, step.actions)
            withheld = people.get("feedback") if delay is not None else None
            if withheld is not None:
                unknown = np.full(np.shape(withheld), np.nan)
                published, people = {**published, "feedback": unknown}, {**people, "feedback": unknown}
            ids = self._count(people, step.actions, step.probabilities, here)
            publish(infos, "individual", {**published, "id": Ids.of(ids, self._life)})
            if here is not None:
                for copy in np.flatnonzero(~here).tolist():
                    infos[copy]["individual"] = None
            self._take_late(infos)
            if delay is not None:
                self._deliver(infos, obs, ids, withheld)
        elif self.fairness_spec.tells_group(infos[0]):
            for one, info in zip(obs, infos, strict=True):  # others than notions compare groups too
                if "individual" not in info:
                    info["individual"] = {"group": self.fairness_spec.group_of(one, info)}
        publish_figures(infos, self._tracker.values() if self.fairness_names else {})

    def _take_late(self, infos: Sequence[dict[str, Any]]) -> None:
        """Feedback that the environment has heard of since: ``info["late_feedback"]``, pairs of id and value."""
        if not tells(infos, LATE):
            return
        for copy, info in enumerate(infos):
            for id, value in late_in(info):
                self._update_feedback(copy, id, value)

    def _deliver(self, infos: Sequence[dict[str, Any]], obs: Sequence[Any], ids: NDArray[Any], withheld: Any) -> None:
        """Puts off the feedback of this step, and tells what has become known by now."""
        if withheld is not None:
            feedback = np.broadcast_to(np.asarray(withheld, dtype=np.float64), ids.shape)
            known = np.argwhere((feedback == feedback) & (np.asarray(ids) >= 0))
            for copy in dict.fromkeys(known[:, 0].tolist()):
                steps = self.fairness_spec.delay(obs[copy], infos[copy])
                if steps is not None:
                    late = self._due.setdefault(self._clock + steps, [])
                    places = map(tuple, known[known[:, 0] == copy])
                    late += [(copy, Id(ids[at], self._life), float(feedback[at])) for at in places]
        for copy, id, value in self._due.pop(self._clock, ()):
            self._update_feedback(copy, id, value)
            if id.life == self._life:  # an earlier one would be taken for somebody after the seeded reset
                infos[copy][LATE] = [*late_in(infos[copy]), (id, value)]
        self._clock += 1

    def _individuals(
        self, infos: Sequence[dict[str, Any]], obs: Sequence[Any], actions: NDArray[Any]
    ) -> tuple[People, People, Mask | None]:
        """Who was decided on: what the infos say of them, what the tracker is to know, features selected, and in which
        copies there was somebody (None: in all)."""
        key = self.fairness_spec.feedback
        if isinstance(key, str):
            record = record_of(infos, "individual", key)
            known = record is not None and key in record
        else:
            record, known = record_of(infos, "individual"), True
        if self._in_info and known and "individual" in infos[0] and (record is not None or _alike(infos)):
            published: People = stack_people(infos)
            if record is not None and isinstance(key, str):
                published = {**published, "feedback": np.asarray(record[key], dtype=np.float64)}
            if self.fairness_spec.group is None:
                people = published
                if self._tracker.needs_features and "features" in published:
                    people = {**published, "features": self.fairness_spec.select(published["features"])}
                return published, people, self._here(people)
            if self.fairness_spec.finds_group_in(published):
                they = self.fairness_spec.individual(None, None, {**(record or {}), "individual": published})
                people = {**published, **they._asdict()}
                return {**published, "group": they.group}, people, self._here(people)
        told_of: list[People] = []
        for one, action, info in zip(obs, actions, infos, strict=True):
            person = self.fairness_spec.individual(one, action, info)._asdict()
            told_of.append({key: value for key, value in person.items() if key != "features" or value is not None})
        here = np.array([self._is(info, person) for info, person in zip(infos, told_of, strict=True)])
        if not here.any():
            return {}, {}, here
        rows = np.where(here, np.arange(self._n_copies), here.argmax()).tolist()  # somebody stands in for nobody
        described = [
            {
                "action": actions[row] if actions.ndim > 1 else actions[row].item(),
                **told_of[row],
                **individual_in(infos[row]),
                "group": told_of[row]["group"],
                "feedback": told_of[row]["feedback"],
            }
            for row in rows
        ]
        published = people = stacked_people(described)
        if any("features" in told_of[row] for row in rows):  # selected ones
            people = stacked_people([{**each, **told_of[row]} for each, row in zip(described, rows, strict=True)])
        return published, people, None if here.all() else here

    def _is(self, info: dict[str, Any], person: People) -> bool:
        """Does a step decide on anybody? Not if it tells nothing of them, or no group where one is asked for."""
        told = individual_in(info)
        if self._tracker.needs_groups or self.fairness_spec.group is not None or "group" in told:
            return is_labelled(person)
        return self.fairness_spec.features is not None or bool(told)

    def _here(self, people: People) -> Mask | None:
        """In which copies there is somebody, (n,): those with a label, if labels are told; None: in all."""
        group = people.get("group")
        labels = [np.asarray(each) for each in (group.values() if isinstance(group, Mapping) else [group])]
        if not labels or any(each.ndim != 1 or each.dtype.kind not in "Of" for each in labels):
            return None
        here = ~np.all([missing_labels(each) for each in labels], axis=0)
        return None if here.all() else here

    def _count(self, people: People, actions: NDArray[Any], probabilities: Any, here: Mask | None) -> NDArray[np.int64]:
        """One decision per copy, or several: (n,) or (n, m) arrays of people, the latter with a mask ``present``.

        :param people: arrays by name, with the executed ``action`` if it is told
        :param here: (n,) in which copies there is somebody, None: in all
        :return: ids, -1 where nobody is present
        """
        own = np.asarray(people.get("action", actions))
        if here is not None and not here.any():
            return np.full(self._n_copies, -1)
        present = people.get("present", True)
        if here is not None:
            present = present & _fitted(here, max(np.ndim(present), 1))
        self._decisions.require("action", own, present)
        if self._decisions.has_chances and own.dtype.kind == "f" and (own == np.rint(own)).all():
            own = own.astype(np.int64)  # as SB3 gives those of MultiBinary spaces
        decided = self._decisions.decided(own)
        if decided.ndim > 1:
            for key in TOLD:
                _check_places(key, people.get(key), decided.shape[1])
        if people.get("feedback") is not None:
            self._decisions.require("feedback", people["feedback"], present)
        chances = people.get("probabilities")
        if chances is None and np.ndim(probabilities) == decided.ndim + 1:
            chances = probabilities
        if decided.ndim < 2:
            if chances is None and np.ndim(probabilities) == own.ndim + 1:
                chances = probabilities  # of the parts of one action
            if here is None:
                return self._add(people, own, decided, chances)
            which = np.flatnonzero(here)
            ids = np.full(self._n_copies, -1)
            ids[which] = self._add(people, own[which], decided[which], _at(chances, which), which)
            return ids
        present = np.broadcast_to(_fitted(present, decided.ndim), decided.shape)
        ids = np.full(decided.shape, -1)
        place, which = np.nonzero(present.T)
        if len(which):
            chance = None if chances is None else np.asarray(chances)[which, place]
            whole = own[which, place] if own.ndim > 1 and own.shape[1] == decided.shape[1] else own[which]
            ids[which, place] = self._add(people, whole, decided[which, place], chance, which, place)
        return ids

    def _add(
        self,
        people: People,
        own: NDArray[Any],
        decided: NDArray[Any],
        chances: Any,
        which: NDArray[np.intp] | None = None,
        place: NDArray[np.intp] | None = None,
    ) -> NDArray[np.int64]:
        """Ids of one individual per copy of ``which`` (None: all), or of those in the places ``place``, with their
        actions and decisions."""
        group, features, feedback = (_at(people.get(key), which, place) for key in TOLD)
        # without features the tracker is to say so, whatever is wrong with the actions
        chosen = {} if features is None else self._distributions(own, chances, place)
        told = {"group": group, "action": decided, "features": features, "feedback": feedback, **chosen}
        if which is None or place is None:
            ids = self._tracker.add(which=which, **told)
        else:
            ids = self._tracker.add_several(which, **told)
        return ids - self._begun[self._life][slice(None) if which is None else which]

    def _distributions(
        self, actions: NDArray[Any], probabilities: Any, place: NDArray[np.intp] | None
    ) -> dict[str, Any]:
        """For the tracker: the policy's rows (m, n_actions), else what stands for the executed actions.

        :param place: (m,) which of several people each is about; one row about several cannot be divided among them
        """
        if not self._tracker.needs_probabilities:
            return {}
        if self.fairness_spec.treatment is not None:
            return {"roots": self._decisions.treatment(actions)}
        if probabilities is None or self._executed:
            divisible = place is None or not isinstance(self._decisions.space, spaces.Discrete)
            lacks = self._decisions.has_chances and divisible
            if lacks and not self._executed and "executed" not in self._kinds:
                compared = [name for name in self.fairness_names if find_notion(name).needs_probabilities]
                warn(
                    f"{', '.join(compared)}: no action probabilities came with the actions, so the executed "
                    "actions stand for them; VecChoices(venv).follow(model) hands over those of a model, and "
                    "probabilities='executed' says that this is meant"
                )
            self._kinds.add("executed")
            return {"roots": self._decisions.roots(actions, place)}
        self._kinds.add("policy")
        if np.ndim(probabilities) > 2:
            return {"roots": self._decisions.roots_of_parts(probabilities)}
        return {"probabilities": probabilities}


def late_in(info: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The ids and values of ``info["late_feedback"]``, without values that are unknown; none where it is missing or
    None."""
    told = info.get(LATE)
    try:
        pairs = [(id, value) for id, value in (() if told is None else told)]
    except (TypeError, ValueError):
        raise ValueError(f"info[{LATE!r}] must hold pairs of id and value, got {told!r}") from None
    return [(out_of_array(id), read_feedback(value)) for id, value in pairs if not is_missing(value)]


def _alike(infos: Sequence[dict[str, Any]]) -> bool:
    """Does every copy tell whom it decided on, and the same of them?"""
    told = [individual_in(info) for info in infos]
    if not told[0] or any(each.keys() != told[0].keys() for each in told):
        return False
    return "group" not in told[0] or all(map(is_labelled, told))


def _fitted(mask: Any, ndim: int) -> Mask:
    """A mask (n,) or (n, m) in a shape that broadcasts against arrays (n, m, ...) with ``ndim`` axes."""
    mask = np.asarray(mask)
    if mask.ndim > ndim:
        return np.asarray(mask.any(axis=tuple(range(ndim, mask.ndim))))
    return mask.reshape(mask.shape + (1,) * (ndim - mask.ndim)) if mask.ndim else mask


def _check_places(name: str, value: Any, people: int) -> None:
    """Is there one entry for each of the ``people`` of a copy, or one for all?"""
    for entry in value.values() if isinstance(value, Mapping) else [value]:
        if np.ndim(entry) > 1 and np.shape(entry)[1] != people:
            told = f"{np.shape(entry)[1]} for {people} people"
            raise ValueError(f"{name} must have one entry per person, or one for all, got {told}")


def _at(value: Any, which: Any, place: NDArray[np.intp] | None = None) -> Any:
    """The entries of the copies ``which`` (None: all), in these places if several people are decided on."""
    if value is None or which is None:
        return value
    if isinstance(value, Mapping):
        return {key: _at(entry, which, place) for key, entry in value.items()}
    if place is None:
        return np.asarray(value)[which]
    return value[which] if np.ndim(value) == 1 else value[which, place]  # of the whole copy, or of everyone in it


class FairMDP(Measuring, Face):
    """Measures how fairly the individuals in an environment are treated.

    After every step ``info["fairness"]`` holds the notions of ``spec`` (0 is fair, negative is unfair, None is
    undefined) and ``info["individual"]`` whom the step's action was for, with an ``id`` for late feedback.
    Observations and rewards are unchanged. Batched twin: :class:`VecFairMDP`.

    Feedback may come late: ``info["late_feedback"]`` of a later step holds pairs of an id and the right action, where
    ids count the individuals since the last seeded reset. A step without an individual (its group is None, or the
    ``individual`` that everything is read from is missing) is not counted.

    :param env: any Gymnasium environment with Discrete, MultiDiscrete, MultiBinary or Box actions (any if
        ``spec.notions`` is empty)
    :param spec: who is an individual, which group, what would have been right, and which notions over which history
    :param probabilities: ``"policy"``: notions that compare distributions see the probabilities that travel with the
        action (:mod:`sb3_fair.wrappers.choices`); ``"executed"``: they see the executed action as a one-hot row
    :param reset_on_episode: whether each episode begins with an empty history. False carries the history over; the
        figures then depend on earlier episodes, so that a reward made of them is not Markov, until
        :meth:`forget_history`
    :raises ValueError: if ``env`` already is a fairness MDP, or ``spec`` asks for notions the env cannot have

    Example:
        >>> import gymnasium as gym
        >>> from sb3_fair.fairness import FairnessSpec, SlidingWindow
        >>> spec = FairnessSpec(group=lambda obs, info: int(obs[0] > 0), notions=("SP",), history=SlidingWindow(100))
        >>> env = FairMDP(gym.make("CartPole-v1"), spec)
        >>> _ = env.reset(seed=0)
        >>> env.step(1)[4]["individual"]["id"]
        0
    """

    def update_feedback(self, id: int, value: float) -> bool:
        """Feedback that came late: the action that would have been right for an individual.

        :param id: as ``info["individual"]["id"]`` said. It knows its reset: one from before a reset is refused, also
            where ids have begun at 0 again after a seeded reset, unless the history is carried over. A plain number is
            one since the last seeded reset
        :param value: an action
        :return: whether the individual was still in the history; if not, nothing has changed
        :raises ValueError: if ``value`` is not in the action space, or ``id`` no id
        """
        return self._update_feedback(0, id, value)

    def coming_observation(self) -> Any:
        """The observation on which the next action is chosen, before wrappers outside change it."""
        return self._seen


class VecFairMDP(Measuring, VecFace):
    """:class:`FairMDP` for a VecEnv: ``stack(infos, "fairness")`` is a dict name -> (n,)."""

    methods = (*VecFace.methods, "update_feedback", "feedback_counts", "coming_observation")

    def update_feedback(self, copy: int, id: int, value: float) -> bool:
        """Feedback that came late for individual ``id`` of a copy; see :meth:`FairMDP.update_feedback`.

        ``venv.env_method("update_feedback", id, value, indices=copy)`` does the same, on every kind of VecEnv.
        """
        if not 0 <= integer("copy", copy, low=0) < self.num_envs:
            raise ValueError(f"copy must be below the number of copies, {self.num_envs}, got {copy}")
        return self._update_feedback(copy, id, value)

    def coming_observation(self, copy: int) -> Any:
        """The observation on which the next action in a copy is chosen, before wrappers outside change it."""
        return Observations(self._seen, self.num_envs)[copy]
