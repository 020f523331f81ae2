"""Trains a plan: model, checkpoints, evaluation, report."""

import csv
import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import (
    CSVOutputFormat,
    KVWriter,
    Logger,
    TensorBoardOutputFormat,
    filter_excluded_keys,
)
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize
from torch import get_num_threads, nn

from sb3_fair.common.extras import extra
from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder, distrusted
from sb3_fair.common.shell import shell_line
from sb3_fair.common.threads import threads
from sb3_fair.report import from_run
from sb3_fair.wrappers.choices import VecChoices
from sb3_fair.zoo.evaluation.evaluate import check_rules, evaluate_rules, held_out, policies_of, words_of
from sb3_fair.zoo.names import InputError, input_errors
from sb3_fair.zoo.registry.layers import copies, normalising, with_chances
from sb3_fair.zoo.registry.reference import shipped_reference
from sb3_fair.zoo.runs.checkpoint import Checkpoints, Frozen, forget, latest
from sb3_fair.zoo.runs.episode_log import EpisodeCallback
from sb3_fair.zoo.runs.plan import Plan
from sb3_fair.zoo.runs.policy_file import save_policy
from sb3_fair.zoo.runs.stopping import Interrupted, patience, received, stoppable
from sb3_fair.zoo.runs.weights import FiniteWeights, check_weights

EVALUATION_COPIES = 100
INTERRUPTED = "a run must have been interrupted to go on"


def train(
    plan: Plan,
    *,
    log_dir: str | Path = "logs",
    command: str = "",
    device: str = "auto",
    progress: bool = False,
    track: bool = False,
    tensorboard: bool = False,
    checkpoint_minutes: float = 5.0,
) -> RunFolder:
    """Trains, evaluates on fresh episodes beside the rules of the environment, and writes everything into a new folder.

    :param plan: what to train
    :param log_dir: where the folder of the run is made: ``<log_dir>/<algo>/<env>_<n>``
    :param command: the command line, for the record
    :param progress: whether to show a progress bar
    :param track: whether Weights & Biases follows: see :class:`~sb3_fair.zoo.runs.tracking.TrackingCallback`
    :param tensorboard: whether TensorBoard follows
    :param checkpoint_minutes: between two checkpoints, from which :func:`resume` goes on; 0: at every rollout
    :raises InputError: if the environment or the algorithm refuses its settings, or a rule of the environment fails
    :raises MissingExtra: if TensorBoard is to follow and is not installed
    :raises WorkError: if weights become NaN or infinite; the last good checkpoint stays
    :raises Interrupted: after Ctrl-C or SIGTERM, when a checkpoint is written
    """
    if not checkpoint_minutes >= 0:
        raise InputError(f"checkpoint-minutes must not be negative, got {checkpoint_minutes}")
    if tensorboard:
        with extra("tensorboard", "--tensorboard"):
            import_module("tensorboard")
    with input_errors():
        model = build_model(plan, training_env(plan), device)
        judged = held_out(plan)
        words = words_of(judged)
        check_rules(judged)
    run = RunFolder.create(log_dir, plan.algo, plan.env)
    options = {
        "device": device,
        "num_threads": get_num_threads(),
        "track": secrets.token_hex(4) if track else None,  # ID of the run in W&B
        "tensorboard": tensorboard,
        "checkpoint_minutes": checkpoint_minutes,
    }
    with _claimed(run), _saying_how_to_go_on(run):
        run.start(config=plan.config, args=options, command=command, words=words)
        return _finish(run, plan, model, progress)


def resume(folder: str | Path, *, progress: bool = False, trust: bool = False) -> RunFolder:
    """Goes on with a training that was interrupted, from its last checkpoint, or from the beginning if it has none.

    Everything else is as it was asked for then; the result is that of an uninterrupted training.

    :param folder: of the run
    :param trust: whether its checkpoint may run code although this user's key did not sign it
    :raises InputError: if there is no such run, it is finished, or the versions of packages have changed
    :raises PermissionError: if the run is not this user's, unless it is trusted
    :raises DamagedError: if something in the folder is a link to a place outside it
    """
    run = RunFolder(folder, trust=trust)
    if not run.is_run:
        raise InputError(f"resume must be the folder of a run, with a config.yml in it, got {str(folder)!r}")
    for entry in run.path.iterdir():
        run.inside(entry.name)
    with _claimed(run), _saying_how_to_go_on(run):
        if run.finished:
            if run.report.is_file():
                raise InputError(f"{INTERRUPTED}, but {str(folder)!r} is finished")
            from_run(run.path)
            return run
        if not (trust or run.is_ours):
            raise PermissionError(distrusted(run.checkpoint))
        plan = Plan.of_run(run)
        with threads(run.args.get("num_threads", get_num_threads())):  # sums depend on it, in the last digit
            with input_errors():
                check_rules(held_out(plan))  # what would fail in the end fails now
            frozen = latest(run.checkpoint, trust)
            if frozen is not None:
                if frozen.beside["plan"] != run.config:
                    raise InputError(f"{run.checkpoint} must be of this run, but is of one with other settings")
                return _finish(run, plan, frozen.model, progress, frozen)
            return _finish(run, plan, build_model(plan, training_env(plan), run.args.get("device", "auto")), progress)


def reported(run: RunFolder) -> RunFolder:
    """A finished run; its report is written if a stop came before it, unless another process is about to."""
    if not run.report.is_file():
        with suppress(InputError):
            resume(run.path)
    return run


@contextmanager
def _claimed(run: RunFolder) -> Iterator[None]:
    """No other process trains into the folder meanwhile; one that dies gives it up."""
    lock = FileLock(run.path / "training.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"{INTERRUPTED}, but {str(run.path)!r} is in training") from error
    try:
        yield
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


@contextmanager
def _saying_how_to_go_on(run: RunFolder) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the training with a line on where it is saved and how to go on with it."""
    try:
        with stoppable():
            yield
    except Interrupted as stop:
        saved = f"saved in {run.checkpoint}" if run.checkpoint.is_file() else "before anything could be saved"
        command = shell_line(["sb3-fair", "train", "--resume", str(run.path)])
        how = f"; go on with: {command}" if run.is_run else ""
        raise Interrupted(stop.number, f"stopped, {saved}{how}") from None


def _finish(run: RunFolder, plan: Plan, model: Any, progress: bool, frozen: Frozen | None = None) -> RunFolder:
    """Trains what is left to train, evaluates and reports."""
    options = run.args
    rows, done = ("", 0) if frozen is None else (frozen.rows, model.num_timesteps)
    logger = run_logger(run, options.get("tensorboard", False), rows, done)
    model.set_logger(logger)
    episodes, tracking = EpisodeCallback(), None
    if options.get("track"):
        from sb3_fair.zoo.runs.tracking import TrackingCallback

        episodes = tracking = TrackingCallback(
            config={**plan.config, "command": run.command},
            dir=str(run.path),
            id=options["track"],
            name=f"{plan.algo} {run.path.name}",
            resume="allow",
            settings={"console": "off"},
        )
    if frozen is not None:
        episodes.memory = frozen.beside["episodes"]
    beside = {"plan": run.config, "episodes": episodes.memory}
    checkpoints = Checkpoints(run.checkpoint, options.get("checkpoint_minutes", 5.0), beside, frozen)
    try:
        with closing(logger):
            learn(plan, model, [episodes, checkpoints], resumed=frozen is not None, progress=progress)
        model.save(run.model)
        save_policy(model, run.policy)
        normaliser = unwrap_vec_normalize(model.get_env())
        if normaliser is not None:
            normaliser.save(str(run.normaliser))
        judged = held_out(plan)
        front, rules = Front(tuple(policies_of(judged, model))), evaluate_rules(judged)
        run.save_results(front, rules)
        from_run(run.path)
        if tracking is not None:
            tracking.log_front(front, rules)
            tracking.log_report(run.report)
            tracking.finish()
    except BaseException as stop:
        if tracking is not None:
            tracking.finish(getattr(stop, "exit_code", 1))  # whose last lines come before ours
        raise
    forget(run.checkpoint)
    model.get_env().close()
    if plan.algorithm.vector:
        model.eval_env.close()
    return run


class ContinuedCSV(CSVOutputFormat):
    """SB3's CSV log in UTF-8, with names that may have commas, in a file that begins with rows already known."""

    def __init__(self, filename: str, rows: str = "") -> None:
        super().__init__(filename)
        self.file.reconfigure(encoding="utf-8", newline="")  # not the system's
        self.file.write(rows)
        self.file.flush()  # the next checkpoint reads it
        self.keys = next(csv.reader(io.StringIO(rows, newline="")), [])

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        if new := sorted(filter_excluded_keys(key_values, key_excluded, "csv").keys() - set(self.keys)):
            self.file.seek(0)
            rows = list(csv.reader(self.file))[1:]
            self.keys += new
            self.file.seek(0)
            table = csv.writer(self.file, lineterminator="\n")
            table.writerow(self.keys)
            table.writerows(row + [""] * len(new) for row in rows)
            self.file.truncate()  # SB3 quotes every text, this only where it must
        super().write(key_values, key_excluded, step)


def run_logger(run: RunFolder, tensorboard: bool = False, rows: str = "", done: int = 0) -> Logger:
    """SB3's logger for a run: ``progress.csv``, and event files of TensorBoard in the same folder.

    :param rows: text of ``progress.csv`` up to the checkpoint that the run goes on from
    :param done: steps at that checkpoint; TensorBoard forgets what earlier processes logged after it
    """
    outputs: list[KVWriter] = [ContinuedCSV(str(run.path / "progress.csv"), rows)]
    if tensorboard:
        outputs.append(_tensorboard(run.path, done))
    return Logger(str(run.path), outputs)


def _tensorboard(folder: Path, done: int) -> TensorBoardOutputFormat:
    resumed = any(folder.glob("events.out.*"))
    output = TensorBoardOutputFormat(str(folder))
    if resumed:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        output.writer.close()
        output.writer = SummaryWriter(str(folder), purge_step=done + 1)
    return output


def learn(
    plan: Plan, model: Any, callbacks: Sequence[BaseCallback] = (), *, resumed: bool = False, progress: bool = False
) -> None:
    """Trains what is left of a plan.

    :param resumed: whether the model comes from a checkpoint
    :raises WorkError: if weights become NaN or infinite
    """
    with patience():
        try:
            model.learn(
                plan.n_timesteps - (model.num_timesteps if resumed else 0),
                callback=[FiniteWeights(), *callbacks],
                reset_num_timesteps=not resumed,
                progress_bar=progress,
            )
        except ValueError:  # as torch raises for actions whose probabilities are NaN
            check_weights(model)
            raise
    if stop := received():
        raise Interrupted(stop)


def training_env(plan: Plan) -> VecEnv:
    """The environments a plan trains in, with the scalar reward for algorithms that need one."""
    scalarise: dict[str, Any] = {} if plan.weights is None else {"scalarise": plan.weights}
    return normalising(plan, with_chances(plan, copies(plan, plan.n_envs, seed=plan.seed, **scalarise)))


def arguments(hyperparams: Mapping[str, Any]) -> dict[str, Any]:
    """What an algorithm is given for the settings of a YAML file.

    ``"lin_0.001"`` falls linearly from 0.001 to 0 over the training, as in rl-zoo, ``"lin_0.3_0.02"`` to 0.02;
    ``activation_fn`` in ``policy_kwargs`` is the name of a class in ``torch.nn``; anything else is what it is.
    """
    given = {key: _scheduled(value) for key, value in deepcopy(dict(hyperparams)).items()}  # SB3 changes policy_kwargs
    if isinstance(given.get("train_freq"), list):
        given["train_freq"] = tuple(given["train_freq"])
    networks = given.get("policy_kwargs") or {}
    if not isinstance(networks, Mapping):
        raise InputError(f"policy_kwargs must be arguments of the policy by name, got {networks!r}")
    name = networks.get("activation_fn")
    if isinstance(name, str):
        if not (isinstance(getattr(nn, name, None), type) and issubclass(getattr(nn, name), nn.Module)):
            raise InputError(f"activation_fn must be the name of a class in torch.nn, as ReLU, got {name!r}")
        given["policy_kwargs"] = {**networks, "activation_fn": getattr(nn, name)}
    return given


def _scheduled(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("lin_"):
        start, _, end = value.removeprefix("lin_").partition("_")
        return LinearSchedule(float(start), float(end or 0), 1)
    return value


@contextmanager
def built(plan: Plan, device: str) -> Iterator[Any]:
    """The model of a plan, whose environments are closed in the end."""
    with ExitStack() as stack:
        model = build_model(plan, stack.enter_context(closing(training_env(plan))), device)
        if plan.algorithm.vector:
            stack.enter_context(closing(model.eval_env))
        yield model


def build_model(plan: Plan, venv: VecEnv, device: str) -> Any:
    """The algorithm with its hyperparameters; with a VecChoices it reports its action probabilities."""
    hyperparams = arguments(plan.hyperparams)
    frequency = hyperparams.get("train_freq")
    if isinstance(frequency, tuple) and "episode" in frequency and venv.num_envs > 1:  # as SB3 finds out in training
        raise InputError(f"train_freq must count steps with {venv.num_envs} environments, got {list(frequency)}")
    if plan.algorithm.vector:
        hyperparams.setdefault("ref_point", shipped_reference(plan.env, plan.env_kwargs))
        hyperparams["eval_env"] = copies(plan, EVALUATION_COPIES)
    if plan.policy is not None:
        is_dict = isinstance(venv.observation_space, spaces.Dict)
        policy = plan.policy.replace("Mlp", "MultiInput") if is_dict else plan.policy
        hyperparams |= {"policy": policy, "device": device}
    try:
        model = plan.algorithm.cls(env=venv, seed=plan.seed, verbose=0, **hyperparams)
    except NotImplementedError as error:  # of SB3's preprocessing
        raise InputError(f"observations must be of a space that {plan.algo} can learn from: {error}") from error
    except RuntimeError as error:  # of torch
        given = hyperparams.get("policy_kwargs")
        raise InputError(f"policy_kwargs must describe networks that can be built, got {given}: {error}") from error
    choices = venv.venv if isinstance(venv, VecNormalize) else venv
    if isinstance(choices, VecChoices):
        choices.follow(model)
    return model
