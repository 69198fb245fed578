"""How flags are read: as kubectl reads them, so that the same habits work for both. Light: loaded for every help text.

- Flags of the connection may stand before the command: `kruise -n demo rollout status cloneset/web`.
- `--watch=false` and `-o=json` mean what they mean for kubectl; `--dry-run` alone means `--dry-run=client`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

CONNECTION_FLAGS = {
    "-n": "namespace",
    "--namespace": "namespace",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "--as": "as_user",
    "--as-group": "as_group",
    "-s": "server",
    "--server": "server",
    "--token": "token",
    "--request-timeout": "request_timeout",
}
"""All of them take a value."""

_TRUE, _FALSE = ("true", "1", "t"), ("false", "0", "f")
_SHORT_WITH_EQUALS = re.compile(r"-[A-Za-z]=")


class Group(click.Group):
    """A group that hands flags of the connection in front of a sub-command on to that sub-command, and that knows what
    a misspelt one was meant to be."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, flags_behind_command(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            near = difflib.get_close_matches(word, self.list_commands(ctx), n=1)
            hint = f"; did you mean '{near[0]}'?" if near else "."
            ctx.fail(f"No such command '{word}'{hint}")
        return super().resolve_command(ctx, args)


def flags_behind_command(args: Sequence[str]) -> list[str]:
    """Move leading flags of the connection behind the word that follows them."""
    index = 0
    while index < len(args):
        name, equals, _ = args[index].partition("=")
        if name not in CONNECTION_FLAGS and args[index][:2] not in CONNECTION_FLAGS:
            break
        has_value = bool(equals) or (not args[index].startswith("--") and len(args[index]) > 2)
        index += 1 if has_value else 2
    if index == 0 or index >= len(args):
        return list(args)
    return [args[index], *args[:index], *args[index + 1 :]]


class Command(click.Command):
    """A command that takes kubectl's ways to write flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._rewritten(args))

    def _rewritten(self, args: Sequence[str]) -> list[str]:
        switches = {name: option for option in self._switches() for name in option.opts}
        written: list[str] = []
        for index, word in enumerate(args):
            if word == "--":
                return [*written, *args[index:]]
            name, equals, value = word.partition("=")
            if equals and name in switches and value.lower() in (*_TRUE, *_FALSE):
                written += _switched(switches[name], value.lower() in _TRUE)
            elif word == "--dry-run":
                written.append("--dry-run=client")
            elif _SHORT_WITH_EQUALS.match(word):
                written.append(f"{word[:2]}{word[3:]}")
            else:
                written.append(word)
        return written

    def _switches(self) -> list[click.Option]:
        return [one for one in self.params if isinstance(one, click.Option) and one.is_flag]


def _switched(option: click.Option, on: bool) -> list[str]:
    if on:
        return [option.opts[-1]]
    return [option.secondary_opts[0]] if option.secondary_opts else []


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Which cluster, and as whom."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
    as_user: str = ""
    as_group: tuple[str, ...] = ()
    server: str = ""
    token: str = ""
    request_timeout: str = "0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which objects."""

    filenames: tuple[str, ...] = ()
    recursive: bool = False
    kustomize: str = ""
    selector: str = ""
    everything: bool = False
    local: bool = False

    @property
    def has_files(self) -> bool:
        return bool(self.filenames or self.kustomize)

    @property
    def files_text(self) -> str:
        """The files, as a sentence names them."""
        return " and ".join((*self.filenames, *([self.kustomize] if self.kustomize else [])))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How a change is made and told."""

    output: str = ""
    show_managed_fields: bool = False
    dry_run: str = "none"
    field_manager: str = "kruise"
    wait: bool = False
    timeout: str = "0"
    record: bool = False


def carried_out_by(module: str) -> Callable[[F], F]:
    """The function of the same name in a module does the work, and takes what the flags say. It is loaded when the
    command is carried out: help, completion and a misspelt flag need only the declaration."""

    def decorate(declared: F) -> F:
        @functools.wraps(declared)
        def carry_out(*args: Any, **given: Any) -> Any:
            return work_of(module, declared.__name__)(*args, **given)

        carry_out.work = module  # type: ignore[attr-defined]
        return carry_out  # type: ignore[return-value]

    return decorate


def work_of(module: str, name: str) -> Callable[..., Any]:
    work: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return work


def completed_by(names: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """What a shell offers for an argument or a flag: a function of `kruise.cli.work.names`."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        found: list[Any] = work_of("kruise.cli.work.names", names)(ctx, param, incomplete)
        return found

    return complete


def connection(function: F) -> F:
    """The flags of the connection, as one argument `connection`."""
    return _gathered(
        function,
        "connection",
        Connection,
        click.option(
            "-n",
            "--namespace",
            default="",
            help="Namespace; that of the context if not given.",
            shell_complete=completed_by("namespaces"),
        ),
        click.option("--context", default="", help="Context of the kubeconfig."),
        click.option("--kubeconfig", default="", help="Path of a kubeconfig."),
        click.option("--as", "as_user", default="", help="User to act as."),
        click.option("--as-group", multiple=True, help="Group to act as; may be repeated."),
        click.option("-s", "--server", default="", help="Address of the API server."),
        click.option("--token", default="", help="Bearer token to log in with."),
        click.option("--request-timeout", default="0", help="Time for one request, such as 30s; 0: the default."),
    )


def where(*, several: bool = True, local: bool = False, kustomize: bool = False) -> Callable[[F], F]:
    """The flags that choose objects beside their names, as one argument `where`."""
    options = [
        click.option(
            "-f", "--filename", "filenames", multiple=True, help="File, directory or - that names the objects."
        ),
        click.option("-R", "--recursive", is_flag=True, help="With -f: directories below, too."),
    ]
    if several:
        options += [
            click.option("-l", "--selector", default="", help="Objects with these labels."),
            click.option("--all", "everything", is_flag=True, help="All objects of the kind in the namespace."),
        ]
    if kustomize:
        options.append(
            click.option("-k", "--kustomize", default="", metavar="DIR", help="What `kubectl kustomize DIR` prints.")
        )
    if local:
        options.append(click.option("--local", is_flag=True, help="Change what -f holds and print it; ask no server."))

    def decorate(function: F) -> F:
        return _gathered(function, "where", Where, *options)

    return decorate


def writing(*, dry_run: bool = True, wait: bool = False, record: bool = False) -> Callable[[F], F]:
    """The flags of a change, as one argument `writing`."""
    options = [
        click.option(
            "-o", "--output", type=click.Choice(["json", "yaml", "name"]), default=None, help="Print the object."
        ),
        click.option("--show-managed-fields", is_flag=True, help="With -o json or yaml: managedFields, too."),
        click.option("--field-manager", default="kruise", show_default=True, help="Owner of the fields that change."),
    ]
    if dry_run:
        options.append(
            click.option(
                "--dry-run",
                type=click.Choice(["none", "client", "server"]),
                default="none",
                help="Change nothing: client prints what would be sent, server asks whether it would be accepted.",
            )
        )
    if wait:
        options += [
            click.option("--wait", is_flag=True, help="Follow the rollout to its end."),
            click.option("--timeout", default="0", help="With --wait: give up after this, such as 5m; exit code 3."),
        ]
    if record:
        options.append(click.option("--record", is_flag=True, help="Note the command as the change-cause."))

    def decorate(function: F) -> F:
        return _gathered(function, "writing", Writing, *options)

    return decorate


def _gathered(function: F, name: str, kind: Any, *options: Callable[[Any], Any]) -> F:
    """A function whose flags come in as one value."""
    fields = _names(options)

    @functools.wraps(function)
    def wrapper(*args: Any, **given: Any) -> Any:
        values = {field: given.pop(field) for field in fields}
        known = {field: value for field, value in values.items() if value is not None}
        return function(*args, **{name: kind(**known)}, **given)

    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]


def _names(options: Sequence[Callable[[Any], Any]]) -> list[str]:
    """What click will call the values of options: only those may be taken, since a command may have a flag of its own
    that is called like another field."""

    def bare() -> None: ...

    for option in options:
        option(bare)
    params: list[click.Parameter] = bare.__click_params__  # type: ignore[attr-defined]
    return [str(param.name) for param in params]


words = click.argument("words", nargs=-1, metavar="KIND/NAME", shell_complete=completed_by("targets"))
