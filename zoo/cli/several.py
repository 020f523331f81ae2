"""Options with several values, as in ``--features age degree``."""

from typing import Any

from typer.core import TyperArgument, TyperCommand


class Several(TyperCommand):
    """A command whose repeatable options take several values at once: ``--group a b`` is ``--group a --group b``.

    If the command has arguments, they come first: after such an option they would be values of it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        before = sum(isinstance(parameter, TyperArgument) for parameter in self.params)
        if not any(arg.startswith("-") for arg in args[:before]):
            args = self._repeated(args)
        return super().parse_args(ctx, args)

    def _repeated(self, args: list[str]) -> list[str]:
        repeatable = {
            name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts
        }
        found: list[str] = []
        option, values = "", 0
        for arg in args:
            if arg.startswith("-"):
                option, values = arg, 0
            else:
                found += [option] if option in repeatable and values else []
                values += 1
            found.append(arg)
        return found
