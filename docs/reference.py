"""Pages of the API reference, written when it is built: one for each module in ``api.md`` and each of its classes.

Those of classes are linked from their module, and are not in the navigation: all pages repeat it, which would take most
of the time of a build.
"""

import re
from importlib import import_module
from inspect import cleandoc, isclass, isroutine
from pathlib import Path

PACKAGES = ("", ".fairness", ".audit", ".wrappers", ".f_ppo", ".fair_ppo", ".fair_qcm", ".report", ".vector", ".zoo")


def exported() -> dict[int, tuple[str, str]]:
    """Where each object is public, by its identity: the module and the name by which users import it."""
    modules = [import_module(f"sb3_fair{package}") for package in reversed(PACKAGES)]
    return {id(getattr(module, name)): (module.__name__, name) for module in modules for name in module.__all__}


def members(path: str, public: dict[int, tuple[str, str]]) -> dict[str, object]:
    """What has its place in the module, by name, and a docstring."""
    module = import_module(path)
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if name[0] != "_" and getattr(value, "__module__", None) == path
    ]
    values = {name: getattr(module, name) for name in names}
    return {
        name: value
        for name, value in values.items()
        if value.__doc__ and public.get(id(value), (path, name)) == (path, name)
    }


def write(app) -> None:
    folder, public = Path(app.srcdir, "api"), exported()
    pages = {}
    for path in re.findall(r"^api/(\S+)$", Path(app.srcdir, "api.md").read_text(), re.MULTILINE):
        found = members(path, public)
        classes = [name for name, value in found.items() if isclass(value)]
        for name in classes:
            title = f"{name}\n{'=' * len(name)}"
            pages[f"{path}.{name}"] = f":orphan:\n\n{title}\n\nIn :mod:`{path}`.\n\n.. autoclass:: {path}.{name}\n"
        lines = [
            path,
            "=" * len(path),
            "",
            f".. py:module:: {path}",
            "",
            cleandoc(import_module(path).__doc__ or ""),
            "",
        ]
        for name in classes:
            summary = " ".join(cleandoc(found[name].__doc__).partition("\n\n")[0].split()).replace("::", ":")
            lines += [f"* :class:`~{path}.{name}`: {summary}"]
        lines += ["", *(f".. autofunction:: {path}.{name}" for name, value in found.items() if isroutine(value))]
        pages[path] = "\n".join(lines) + "\n"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.rst"):
        if file.stem not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / f"{name}.rst"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def setup(app) -> None:
    app.connect("builder-inited", write)
