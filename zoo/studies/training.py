"""Training of a study's plans: with checkpoints, and with what is noted on the way."""

from pathlib import Path
from time import process_time
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sb3_fair.fairness.warning import warn
from sb3_fair.zoo.names import InputError
from sb3_fair.zoo.runs.checkpoint import Checkpoints, Frozen, latest
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.train import build_model, learn, training_env

MINUTES = 5.0
"""Between two checkpoints."""


class Watch(BaseCallback):
    """Notes figures of a training: numbers, strings, lists and dicts.

    From one rollout to the next, a watch remembers nothing but ``figures``, which are part of checkpoints.
    """

    def __init__(self) -> None:
        super().__init__()
        self.figures: dict[str, Any] = {}

    def _on_step(self) -> bool:
        return True


class Stopwatch(Watch):
    """How many seconds of processor time the training took, without evaluations after it; other work does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.figures = {"seconds": 0.0}

    def _on_training_start(self) -> None:
        self._since = process_time()

    def _on_rollout_end(self) -> None:
        now = process_time()
        self.figures["seconds"] += now - self._since
        self._since = now

    _on_training_end = _on_rollout_end


def trained(plan: Plan, watch: Watch, checkpoint: Path | None = None) -> Any:
    """The model of a plan after its training.

    :param checkpoint: where an interrupted training of the same plan goes on from; None: it begins anew
    """
    callbacks: list[BaseCallback] = [watch]
    frozen = None if checkpoint is None else _frozen(checkpoint, plan)
    if frozen is not None:
        watch.figures = frozen.beside["figures"]
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        beside = {"plan": plan.config, "figures": watch.figures}
        callbacks.append(Checkpoints(checkpoint, MINUTES, beside, resumed=frozen, at_end=False))
    model = build_model(plan, training_env(plan), "cpu") if frozen is None else frozen.model
    learn(plan, model, callbacks, resumed=frozen is not None)
    return model


def _frozen(checkpoint: Path, plan: Plan) -> Frozen | None:
    try:
        frozen = latest(checkpoint)
    except InputError as error:
        warn(f"{checkpoint} is not gone on with: {error}")
        return None
    return frozen if frozen is not None and frozen.beside["plan"] == plan.config else None
