"""HTML elements whose texts are always escaped."""

import html
from typing import Any


class Markup(str):
    """Text that is HTML already; only :func:`tag` and :func:`join` make it."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element. Children and attributes that are not :class:`Markup` are escaped; None is left out.

    >>> tag("td", "<script>", class_="x")
    '<td class="x">&lt;script&gt;</td>'

    :param attributes: ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Children one after the other, escaped where they are not :class:`Markup`."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(str(child)) for child in children if child is not None
        )
    )
