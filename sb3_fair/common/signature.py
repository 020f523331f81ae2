"""Signatures of files: a secret key of this user tells the files that his own runs wrote from those of others."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from filelock import FileLock

from sb3_fair.fairness.warning import warn

SIZE = hashlib.sha256().digest_size
"""Bytes of the key and of a signature."""


def key_file() -> Path:
    """Where the key is: ``sb3-fair/key`` in ``$XDG_CONFIG_HOME``, by default in ``~/.config``."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "sb3-fair" / "key"


def signature(content: bytes) -> str | None:
    """The signature of ``content`` in hexadecimal digits; None where this user can have no key."""
    key = _key(create=True)
    return None if key is None else hmac.new(key, content, "sha256").hexdigest()


def is_signature(text: object, content: bytes | memoryview) -> bool:
    """Whether this user signed ``content`` so."""
    key = _key()
    if key is None or not isinstance(text, str):
        return False
    return hmac.compare_digest(hmac.new(key, content, "sha256").hexdigest().encode(), text.encode())


def sign(path: Path) -> None:
    """Adds a signature to the end of a file, where pickle does not look."""
    with path.open("r+b") as file:
        file.write(bytes.fromhex(signature(file.read()) or ""))
        file.flush()
        os.fsync(file.fileno())


def is_signed(path: Path) -> bool:
    """Whether this user signed the file as it is."""
    content = memoryview(path.read_bytes())  # of which parts are no copies
    return is_signature(content[-SIZE:].hex(), content[:-SIZE])


def _key(create: bool = False) -> bytes | None:
    """The key, which is made when it is first needed; None if there is none, or none can be kept."""
    try:
        path = key_file()
        if create and not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(path.with_suffix(".lock")):
                if not path.is_file():
                    new = path.with_suffix(".new")
                    new.unlink(missing_ok=True)
                    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                        file.write(secrets.token_bytes(SIZE))
                        file.flush()
                        os.fsync(file.fileno())
                    new.replace(path)
        key = path.read_bytes()
    except (OSError, RuntimeError) as error:  # the latter where there is no home
        if create:
            warn(
                f"no key can be kept ({error}), so that runs are not known as yours later: set XDG_CONFIG_HOME to a "
                "folder that can be written",
            )
        return None
    if len(key) != SIZE:
        warn(
            f"{path} is no key of {SIZE} bytes, so that runs are not known as yours: put back a copy of it, or delete "
            "it, and the next training makes a new one"
        )
        return None
    return key
