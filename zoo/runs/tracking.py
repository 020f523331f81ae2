"""TrackingCallback: Weights & Biases."""

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import KVWriter

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.plain import plain
from sb3_fair.common.run_folder import versions
from sb3_fair.fairness.validation import one_of
from sb3_fair.report.measures import Measure, measures
from sb3_fair.wrappers.layer import attribute
from sb3_fair.zoo.runs.episode_log import EpisodeCallback

PROJECT = "sb3-fair"


class TrackingCallback(EpisodeCallback):
    """Follows a training in Weights & Biases: settings, versions and every number that the model logs, with the vector
    returns and fairness figures of :class:`EpisodeCallback` among them.

    ::

        tracking = TrackingCallback("my-project")
        model = PCN("MlpPolicy", env).learn(100_000, callback=tracking)
        front = model.coverage_set()
        tracking.log_front(front)                                # a table
        tracking.log_report(write_report("report", front))       # an artifact
        tracking.finish()

    Without an account the run is written to ``wandb/offline-run-*``, which ``wandb sync`` uploads later. W&B's own
    variables (``WANDB_MODE``, ``WANDB_PROJECT``, ``WANDB_ENTITY``, ...) hold. A run that ``wandb.init`` began before
    is used and left open, one that another callback left open is finished. wandb is imported when the training begins.

    Trainings with the same callback share a run until :meth:`finish`. The steps of a later training are counted on from
    the last one in W&B, which ignores steps that go back.

    :param project: project in W&B; None: ``WANDB_PROJECT``, else ``"sb3-fair"``
    :param config: what to show besides the arguments of the algorithm
    :param mode: ``"online"`` or ``"offline"``; None: ``WANDB_MODE``, else online if there is an account
    :param window: number of most recent episodes that count
    :param verbose: 0 nothing, 1 information
    :param settings: further arguments of ``wandb.init``, e.g. ``name``, ``tags``, ``dir``
    :raises ValueError: if ``mode`` or ``window`` is not allowed
    """

    _latest: ClassVar[Any] = None
    """The run that a callback began last."""

    def __init__(
        self,
        project: str | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        mode: Literal["online", "offline"] | None = None,
        window: int = 100,
        verbose: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(window, verbose)
        if mode is not None:
            one_of("mode", mode, ("online", "offline"), "None")
        self.project = project
        self.config = dict(config or {})
        self.mode = mode
        self.settings = settings
        self._output: WandbOutput | None = None
        self._ours = False

    @property
    def run(self) -> Any:
        """The W&B run, a ``wandb.Run``.

        :raises ValueError: if no training has begun
        """
        if self._output is None:
            raise ValueError("there is no W&B run yet: pass the callback to model.learn first")
        return self._output.run

    def _on_training_start(self) -> None:
        import wandb  # slow to import

        super()._on_training_start()
        if self._output is None or self._output.run is not wandb.run:
            self._output = WandbOutput(self._begun())
            known = {**settings_of(self.model), "versions": versions(), **self.config}
            self.run.config.update(plain(known), allow_val_change=True)
        self._output.anew, self._output.over = self.locals.get("reset_num_timesteps", True), False
        others = [output for output in self.logger.output_formats if not isinstance(output, WandbOutput)]
        self.logger.output_formats[:] = [*others, self._output]

    def _begun(self) -> Any:
        import wandb

        if wandb.run is not None and wandb.run is TrackingCallback._latest:
            wandb.run.finish()
        self._ours = wandb.run is None
        if not self._ours:
            return wandb.run
        project = self.project or os.environ.get("WANDB_PROJECT", PROJECT)
        TrackingCallback._latest = wandb.init(project=project, mode=self._mode(), **self.settings)
        return TrackingCallback._latest

    def _mode(self) -> Literal["online", "offline"] | None:
        if self.mode is not None or "WANDB_MODE" in os.environ:
            return self.mode
        return "online" if _has_account() else "offline"

    def log_front(self, front: Front, baselines: Sequence[EvaluatedPolicy] = ()) -> None:
        """Logs evaluated policies as a table: per objective and notion the mean and its 95 % confidence interval.

        :param baselines: rules to list below them
        """
        import wandb

        shown = measures(front)
        columns: list[str | int] = ["policy", "kind", "actions", "steps"]
        for measure in shown:
            columns += [measure.label, f"{measure.label} low", f"{measure.label} high"]
        table = wandb.Table(columns=columns)
        for kind, policies in (("learned", front), ("rule", baselines)):
            for policy in policies:
                actions = "most probable" if policy.deterministic else "sampled"
                table.add_data(policy.name, kind, actions, policy.length, *_cells(shown, policy))
        self.run.log({"front": table})

    def log_report(self, path: str | Path) -> None:
        """Uploads a report, or any file, as an artifact of type ``report``."""
        import wandb

        artifact = wandb.Artifact(f"report-{self.run.id}", type="report")
        artifact.add_file(str(path))
        self.run.log_artifact(artifact)

    def finish(self, exit_code: int = 0) -> None:
        """Ends the W&B run, if it was begun here; else it is left to who began it.

        :param exit_code: any other than 0 marks the run as failed
        """
        if self._output is not None:
            self._output.over = True
            if self._ours:
                self.run.finish(exit_code)


class WandbOutput(KVWriter):
    """An output of SB3's logger that hands every number to a W&B run, with the number of steps as its step.

    :param run: a ``wandb.Run``
    """

    anew = False
    """Whether the model has begun to count its steps from 0."""
    over = False
    """Whether tracking has ended: nothing is handed to the run any more."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self._before = 0
        self._written = False

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        if self.over:
            return
        numbers = {
            key: float(value)
            for key, value in key_values.items()
            if isinstance(value, Real | np.number) and "wandb" not in (key_excluded.get(key) or ())
        }
        if self.anew:
            last, self.anew = self.run.step, False
            self._before = last if step <= last or self._written else 0
        self._written = True
        self.run.log(numbers, step=self._before + step)

    def close(self) -> None:
        """The run outlives the logger: see :meth:`TrackingCallback.finish`."""


def settings_of(model: BaseAlgorithm) -> dict[str, Any]:
    """Algorithm, policy, environment, and the arguments of the algorithm that the model keeps under their names."""
    policy = getattr(model, "policy", None)
    venv = model.get_env()
    env_id = None if venv is None else attribute(venv, "env_id") or getattr(attribute(venv, "spec"), "id", None)
    about = {"algo": type(model).__name__, "env": env_id, "n_envs": model.n_envs}
    apart = {"self", "env", "eval_env", "policy", "verbose", "tensorboard_log", "_init_setup_model"}
    names = [name for name in signature(type(model).__init__).parameters if name not in apart]
    kept = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return about | {"policy": type(policy).__name__} | kept


def _cells(shown: Sequence[Measure], policy: EvaluatedPolicy) -> list[float | None]:
    figures = [(measure.mean(policy), measure.half_width(policy)) for measure in shown]
    return list(plain([end for mean, half in figures for end in (mean, mean - half, mean + half)], finite=True))


def _has_account() -> bool:
    """Whether wandb knows an account on this machine; it asks nobody."""
    import wandb

    try:
        return bool(wandb.login(prompt=False, verify=False))
    except TypeError:  # an older wandb, whose login may ask
        return bool(wandb.api.api_key)
