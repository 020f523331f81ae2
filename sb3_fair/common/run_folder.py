"""The folder of a run: its files, their checksums and signature."""

import csv
import hashlib
import io
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import yaml

from sb3_fair.common.front import EvaluatedPolicy, Front
from sb3_fair.common.plain import plain
from sb3_fair.common.signature import is_signature, signature
from sb3_fair.common.whole_file import whole, write_whole
from sb3_fair.fairness.descriptions import check_words

Content = TypeVar("Content")
NORMALISER = "vecnormalize.pkl"
MANIFEST = "manifest.json"
LISTED = (
    "config.yml",
    "args.yml",
    "command.txt",
    "versions.yml",
    "words.yml",
    "progress.csv",
    "model.zip",
    NORMALISER,
    "policy.npz",
    "front.json",
    "baselines.json",
)
"""The files that the manifest has checksums of."""
PACKAGES = ("stable-baselines3", "sb3-contrib", "gymnasium", "torch", "numpy")


class DamagedError(OSError):
    """A file of a run cannot be what the run wrote, in one line: which file, what is wrong, what can be done."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path} is damaged: {what}; take the file from a copy of the folder, or train again with the command in "
            "command.txt"
        )
        self._arguments = path, what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments  # an OSError is made anew from its message


def _front(content: bytes) -> Front:
    return Front.from_list(json.loads(content))


class _NoAliases(yaml.SafeLoader):
    """Runs write no aliases, with which a short text can make a list that fills the memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it must hold no aliases")
        return super().compose_node(parent, index)


def _mapping(content: bytes) -> dict[str, Any]:
    found = yaml.load(content.decode("utf-8"), _NoAliases)
    if not isinstance(found, dict):
        raise ValueError(f"it must hold settings by name, got {type(found).__name__}")
    return found


def _config(content: bytes) -> dict[str, Any]:
    found = _mapping(content)
    for name in ("env_kwargs", "hyperparams"):
        if not isinstance(found.get(name, {}), dict):
            raise ValueError(f"{name} must be settings by name, got {found[name]!r}")
    return found


def _columns(content: bytes) -> dict[str, list[float | None]]:
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
    return {key: [float(row[key]) if row[key] else None for row in rows] for key in (rows[0] if rows else ())}


def _file(name: str, how: Callable[[bytes], Content], blank: Callable[[], Content]) -> Content:
    """A property: what ``how`` makes of a file of the run; ``blank()`` if that was never written."""
    found: Any = property(lambda run: run.parse(name, how) or blank())
    return found


class RunFolder:
    """The folder of one training run, laid out as rl-zoo lays it out: ``<log-dir>/<algo>/<env>_<n>/``.

    ==================== =====================================================================
    ``config.yml``       what was trained: algorithm, environment and its arguments, settings
    ``args.yml``         the options of the command line
    ``command.txt``      the command line itself
    ``versions.yml``     Python and packages, date and time of the start
    ``words.yml``        what the environment calls its measures, groups and decisions
    ``progress.csv``     numbers logged during training (SB3's CSV logger)
    ``events.out.*``     the same for TensorBoard, if asked for; W&B's copy is in ``wandb/``
    ``checkpoint.pkl``   the training as it was at its last checkpoint, until it is finished, and in
                         ``checkpoint-before.pkl`` at the one before
    ``training.lock``    held by the process that trains
    ``policy.npz``       what the trained policy needs to act, as arrays: this is what is read
    ``model.zip``        the trained model for SB3's ``load``; it can run code when it is loaded
    ``vecnormalize.pkl`` the scale of its observations for SB3, if they were normalised; it can run code
    ``front.json``       evaluated policies, one episode after another
    ``baselines.json``   rules evaluated on the same episodes
    ``report.html``      all of it to look at, with pictures in ``figures/``
    ``manifest.json``    checksums of these files, signed with the user's own key
    ==================== =====================================================================

    What is read is compared with the manifest first.

    :param path: of the folder
    :param trust: whether its files may run code, also where nothing says that this user's runs wrote them
    """

    def __init__(self, path: str | Path, *, trust: bool = False) -> None:
        self.path = Path(path)
        self.trust = trust
        self.model = self.path / "model.zip"
        self.policy = self.path / "policy.npz"
        self.normaliser = self.path / NORMALISER
        self.checkpoint = self.path / "checkpoint.pkl"
        self.report = self.path / "report.html"

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
    def open(cls, path: str | Path, *, trust: bool = False) -> "RunFolder":
        """The folder of a run.

        :raises FileNotFoundError: if it holds no run
        """
        run = cls(path, trust=trust)
        if not run.is_run:
            raise FileNotFoundError(f"run must be the folder of a run, with a config.yml in it, got {str(path)!r}")
        return run

    @property
    def is_run(self) -> bool:
        return (self.path / "config.yml").is_file()

    @property
    def finished(self) -> bool:
        """Whether it was trained to its end and evaluated."""
        return (self.path / "front.json").is_file() and not any(self.path.glob("checkpoint*.pkl"))

    config: dict[str, Any] = _file("config.yml", _config, dict)
    args: dict[str, Any] = _file("args.yml", _mapping, dict)
    command: str = _file("command.txt", lambda content: content.decode().strip(), str)
    versions: dict[str, Any] = _file("versions.yml", _mapping, dict)
    words: dict[str, Any] = _file("words.yml", lambda content: check_words(_mapping(content)), dict)
    """What the environment calls its measures, groups and decisions: texts by name; empty: it says nothing."""
    front: Front = _file("front.json", _front, lambda: Front(()))
    baselines: tuple[EvaluatedPolicy, ...] = _file("baselines.json", lambda content: _front(content).policies, tuple)
    curves: dict[str, list[float | None]] = _file("progress.csv", _columns, dict)
    """Columns of ``progress.csv``: name -> numbers, None where a row has none."""

    # ---------------------------------------------------------------- whole, and whose

    def parse(self, name: str, how: Callable[[bytes], Content]) -> Content | None:
        """What ``how`` makes of the bytes of a file; None if there never was one.

        :raises DamagedError: if the file is not what the run wrote, or ``how`` cannot read it
        """
        content = self.read(name)
        if content is None:
            return None
        try:
            return how(content)
        except Exception as error:  # damaged bytes may raise anything
            why = " ".join(str(error).split())
            raise DamagedError(self.path / name, f"it cannot be read ({type(error).__name__}: {why[:200]})") from error

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if there never was one.

        :raises DamagedError: if the file is not what the run wrote, or lies outside the folder
        """
        path, known = self.path / name, self._checksums.get(name)
        if not path.exists():
            if known is not None:
                raise DamagedError(path, "it is missing")
            return None
        if not self.inside(name).is_file():
            raise DamagedError(path, "it is no file")
        content = path.read_bytes()
        if known is not None and hashlib.sha256(content).hexdigest() != known:
            raise DamagedError(path, f"its checksum is not the one in {MANIFEST}")
        return content

    def inside(self, name: str) -> Path:
        """The path of a file or folder.

        :raises DamagedError: if it is a link to a place outside the folder
        """
        path = self.path / name
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise DamagedError(path, "it is a link to a place outside the folder")
        return path

    def read_program(self, name: str) -> bytes | None:
        """The bytes of a file that can run code when it is loaded.

        :raises PermissionError: if neither ``trust`` is set nor a run of this user wrote it
        """
        content = self.read(name)
        if content is not None and not (self.trust or (self.is_ours and name in self._checksums)):
            raise PermissionError(distrusted(self.path / name))
        return content

    def check(self) -> None:
        """:raises DamagedError: if a file is not what the run wrote"""
        for name in LISTED:
            self.read(name)

    @property
    def is_ours(self) -> bool:
        """Whether this user's key signed the manifest."""
        return is_signature(self._manifest.get("signature"), _canonical(self._checksums))

    @property
    def _manifest(self) -> dict[str, Any]:
        path = self.path / MANIFEST
        if not path.exists():
            return {}
        try:
            content = json.loads(path.read_bytes())
            if all(isinstance(known, str) for known in content["files"].values()):
                return dict(content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise DamagedError(path, "it holds no checksums")

    @property
    def _checksums(self) -> dict[str, str]:
        return self._manifest.get("files", {})

    def seal(self, unfinished: Mapping[str, Path] | None = None) -> None:
        """Writes the manifest of all that is there.

        :param unfinished: files that will take their places in a moment, by name
        """
        files = {name: self.path / name for name in LISTED} | dict(unfinished or {})
        found = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}
        content = {"files": found, "signature": signature(_canonical(found))}
        write_whole(self.path / MANIFEST, json.dumps(content, indent=1))

    def start(
        self,
        *,
        config: Mapping[str, Any],
        args: Mapping[str, Any],
        command: str,
        words: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes down what is about to be run, before it runs; the folder is that of a run then."""
        dated = {"date": datetime.now().isoformat(" ", "seconds"), **versions()}
        for name, content in (("args", args), ("versions", dated), ("words", words or {})):
            write_whole(self.path / f"{name}.yml", _yaml(content))
        (self.path / "command.txt").write_text(command + "\n", "utf-8", errors="backslashreplace")
        with whole(self.path / "config.yml") as file:
            file.write_text(_yaml(config), encoding="utf-8")
            self.seal({"config.yml": file})

    def save_results(self, front: Front, baselines: Sequence[EvaluatedPolicy] = ()) -> None:
        """Writes the evaluated policies and the rules beside them; the run is finished then."""
        with whole(self.path / "baselines.json") as file:
            Front(tuple(baselines)).save(file)
        with whole(self.path / "front.json") as file:
            front.save(file)
            self.seal({"front.json": file})


def distrusted(path: Path) -> str:
    """What is wrong with a file that can run code."""
    return (
        f"{path} can run code when it is loaded, and no {MANIFEST} of yours says that a run of yours wrote it so: pass "
        "--trust (trust=True) if you trust where it comes from"
    )


def versions() -> dict[str, str]:
    """Python and the packages that decide a result, name -> version."""
    import sb3_fair  # the facade, which a bare checkout has as well

    ours = {"python": sys.version.split()[0], "sb3-fair": sb3_fair.__version__}
    return ours | {package: version(package) for package in PACKAGES}


def differing(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """The packages whose :func:`versions` differ, with those ``there``; empty if all are the same."""
    return ", ".join(f"{name} {there.get(name)}" for name in {**here, **there} if there.get(name) != here.get(name))


def _yaml(content: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(plain(content), sort_keys=False, allow_unicode=True)
    return text


def _canonical(checksums: Mapping[str, str]) -> bytes:
    return json.dumps(checksums, sort_keys=True).encode()
