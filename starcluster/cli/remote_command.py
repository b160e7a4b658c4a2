"""A command whose last argument is a command line of a node, with options of its own."""

from __future__ import annotations

from collections.abc import Sequence

import click
import cloup


class RemoteCommand(cloup.Command):
    """Reads options up to the first word of the remote command; the other words belong to it.

    ``sshmaster -u ann TAG qstat -u '*'`` and ``sshmaster TAG -u ann qstat -u '*'`` are the same.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        if not ctx.resilient_parsing:
            args = self._separated(ctx, args)
        return super().parse_args(ctx, args)

    def _separated(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return ``args`` with ``--`` before the first argument, and all options before it."""
        options: list[str] = []
        words: list[str] = []
        rest = list(args)
        for _ in (param for param in self.params if isinstance(param, click.Argument)):
            ours, rest = self._split(ctx, rest)
            options += ours
            words, rest = [*words, *rest[:1]], rest[1:]
        return [*options, "--", *words, *rest]

    def _split(self, ctx: click.Context, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the leading options with their values, and the remaining words."""
        only_options = click.Command(
            self.name, params=[param for param in self.params if isinstance(param, click.Option)]
        )
        inner = click.Context(
            only_options,
            allow_interspersed_args=False,
            help_option_names=list(ctx.help_option_names),
        )
        _, rest, _ = only_options.make_parser(inner).parse_args(list(args))
        ours = list(args[: len(args) - len(rest)])
        return [word for word in ours if word != "--"], list(rest)
