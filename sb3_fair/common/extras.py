"""Optional packages: one line that says which extra to install where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError):
    """A package is missing that only an extra of sb3-fair installs."""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Around the import of packages that an extra installs.

    :param name: of the extra, as in ``pip install "sb3-fair[name]"``
    :param what: what needs it
    :raises MissingExtra: if a package cannot be imported
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f'{what} needs a package that is not installed: pip install "sb3-fair[{name}]"') from error
