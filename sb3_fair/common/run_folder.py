"""What does a run leave behind, and in which files?"""

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.whole_file import whole

NORMALISER = "vecnormalize.pkl"
PACKAGES = ("stable-baselines3", "sb3-contrib", "gymnasium", "torch", "numpy")


class RunFolder:
    """The folder of one training run, laid out as rl-zoo lays it out: ``<log-dir>/<algo>/<env>_<n>/``.

    ==================== =====================================================================
    ``config.yml``       what was trained: algorithm, environment and its arguments, settings
    ``args.yml``         the options of the command line
    ``command.txt``      the command line itself
    ``versions.yml``     Python and packages, date and time of the start
    ``progress.csv``     numbers logged during training (SB3's CSV logger)
    ``events.out.*``     the same for TensorBoard, if asked for; W&B's copy is in ``wandb/``
    ``checkpoint.pkl``   the training as it was at its last checkpoint, until it is finished, and in
                         ``checkpoint-before.pkl`` at the one before
    ``training.lock``    held by the process that trains
    ``model.zip``        the trained model
    ``vecnormalize.pkl`` the scale of its observations, if they were normalised; load only what you trust
    ``front.json``       evaluated policies, one episode after another
    ``baselines.json``   rules evaluated on the same episodes
    ``report.html``      all of it to look at, with pictures in ``figures/``
    ==================== =====================================================================
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, log_dir: str | Path, algo: str, env_id: str) -> "RunFolder":
        """A new, empty folder with the next free number; two processes never get the same one."""
        name = env_id.rpartition(":")[2].replace("/", "-")
        parent = Path(log_dir) / algo
        parent.mkdir(parents=True, exist_ok=True)
        taken = [re.fullmatch(rf"{re.escape(name)}_(\d+)", entry.name) for entry in parent.iterdir()]
        number = max((int(match[1]) for match in taken if match), default=0)
        while True:
            number += 1
            try:
                (parent / f"{name}_{number}").mkdir()
            except FileExistsError:
                continue
            return cls(parent / f"{name}_{number}")

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """The folder of a run.

        :raises FileNotFoundError: if it holds no run
        """
        run = cls(path)
        if not run.is_run:
            raise FileNotFoundError(f"run must be the folder of a run, with a config.yml in it, got {str(path)!r}")
        return run

    @property
    def is_run(self) -> bool:
        return (self.path / "config.yml").is_file()

    @property
    def model(self) -> Path:
        return self.path / "model.zip"

    @property
    def normaliser(self) -> Path:
        return self.path / NORMALISER

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pkl"

    @property
    def finished(self) -> bool:
        """Whether it was trained to its end and evaluated."""
        return (self.path / "front.json").is_file() and not any(self.path.glob("checkpoint*.pkl"))

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def config(self) -> dict[str, Any]:
        return _read_yaml(self.path / "config.yml")

    @property
    def args(self) -> dict[str, Any]:
        return _read_yaml(self.path / "args.yml")

    @property
    def command(self) -> str:
        file = self.path / "command.txt"
        return file.read_text().strip() if file.is_file() else ""

    @property
    def versions(self) -> dict[str, Any]:
        return _read_yaml(self.path / "versions.yml")

    @property
    def front(self) -> Front:
        file = self.path / "front.json"
        return Front.load(file) if file.is_file() else Front(())

    @property
    def baselines(self) -> tuple[EvaluatedPolicy, ...]:
        file = self.path / "baselines.json"
        return Front.load(file).policies if file.is_file() else ()

    @property
    def curves(self) -> dict[str, list[float | None]]:
        """Columns of ``progress.csv``; None where a row has no number."""
        file = self.path / "progress.csv"
        if not file.is_file():
            return {}
        with file.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        return {key: [_number(row[key]) for row in rows] for key in (rows[0] if rows else ())}

    def start(self, *, config: Mapping[str, Any], args: Mapping[str, Any], command: str) -> None:
        """Writes down what is about to be run, before it runs."""
        _write_yaml(self.path / "config.yml", config)
        _write_yaml(self.path / "args.yml", args)
        _write_yaml(self.path / "versions.yml", {"date": datetime.now().isoformat(" ", "seconds"), **versions()})
        (self.path / "command.txt").write_text(command + "\n")

    def save_results(self, front: Front, baselines: Sequence[EvaluatedPolicy] = ()) -> None:
        """Writes the evaluated policies and the rules beside them."""
        Front(tuple(baselines)).save(self.path / "baselines.json")
        with whole(self.path / "front.json") as file:
            front.save(file)


def versions() -> dict[str, str]:
    """Python and the packages that decide a result, name -> version."""
    import sb3_fair  # the facade, which a bare checkout has as well

    ours = {"python": sys.version.split()[0], "sb3-fair": sb3_fair.__version__}
    return ours | {package: version(package) for package in PACKAGES}


def plain(value: Any) -> Any:
    """The value as the numbers, strings, lists and dicts that YAML and JSON know."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry) for entry in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    with whole(path) as file:
        file.write_text(yaml.safe_dump(plain(content), sort_keys=False, allow_unicode=True))


def _read_yaml(path: Path) -> dict[str, Any]:
    return (yaml.safe_load(path.read_text()) or {}) if path.is_file() else {}


def _number(text: str) -> float | None:
    return float(text) if text else None
