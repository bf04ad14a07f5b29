"""`server` and `mcp`: the collections served to agents, in the foreground or as a daemon."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from commonplace.cli.loading import nothing_collected
from commonplace.errors import Busy
from commonplace.qmd.cli.advice import command
from commonplace.settings import Settings

LOOPBACK = "127.0.0.1"
SERVER_PORT, MCP_PORT = 18765, 8181

Command = TypeVar("Command", bound=Callable[..., Any])

_WATCH = click.option("--watch", is_flag=True, help="Keep collections up to date while their files change.")
_HOST = click.option("--host", default=LOOPBACK, show_default=True, help="The address to listen on.")


def _port(default: int) -> Callable[[Command], Command]:
    return click.option("--port", type=click.IntRange(0, 65_535), default=default, show_default=True)


@click.command()
@click.option(
    "--transport", type=click.Choice(["mcp", "http", "both"]), default="http", show_default=True,
    help="Standard input and output, HTTP, or both on one engine.",
)  # fmt: skip
@_HOST
@_port(SERVER_PORT)
@_WATCH
@click.pass_context
def server(context: click.Context, transport: str, host: str, port: int, watch: bool) -> None:
    """Serve MCP at /mcp and the qmd endpoints on HTTP, MCP on standard input and output, or both."""
    _serve(context, host, port, stdio=transport != "http", http=transport != "mcp", watch=watch)


@click.group(invoke_without_command=True)
@click.option("--http", is_flag=True, help="Serve HTTP instead of standard input and output.")
@_HOST
@_port(MCP_PORT)
@click.option("--daemon", is_flag=True, help="Serve HTTP, and go on when this command has ended.")
@_WATCH
@click.option("--held", is_flag=True, hidden=True)
@click.pass_context
def mcp(context: click.Context, http: bool, host: str, port: int, daemon: bool, watch: bool, held: bool) -> None:
    """Serve MCP on standard input and output, or on HTTP; `stop` and `status` of the daemon."""
    if context.invoked_subcommand is not None:
        return
    if daemon:
        _start_daemon(context, host, port, watch)
    else:
        _serve(context, host, port, stdio=not (http or held), http=http or held, watch=watch, as_daemon=held)


def _start_daemon(context: click.Context, host: str, port: int, watch: bool) -> None:
    from commonplace.qmd.cli import daemon

    folder = _folder(context)
    if found := daemon.running(folder):
        raise Busy(f"Already running at {found.address} (PID {found.pid}). Run '{command('mcp stop')}' first.")
    arguments = ["--index", context.obj["space"], "mcp", "--held", "--host", host, "--port", str(port)]
    started = daemon.start(folder, [*arguments, *(["--watch"] if watch else [])], _settings(context).home.absolute())
    click.echo(f"Started at {started.address} (PID {started.pid})")
    click.echo(f"Logs: {folder / daemon.LOG_FILE}", err=True)


@mcp.command()
@click.pass_context
def stop(context: click.Context) -> None:
    """End the daemon."""
    from commonplace.qmd.cli import daemon

    found = daemon.stop(_folder(context))
    click.echo(f"Stopped QMD MCP server (PID {found.pid})." if found else "Not running.")


@mcp.command()
@click.pass_context
def status(context: click.Context) -> None:
    """Say whether the daemon runs, and where."""
    from commonplace.qmd.cli import daemon

    found = daemon.running(_folder(context))
    click.echo(f"Running at {found.address} (PID {found.pid})" if found else "Not running.")


def _serve(
    context: click.Context,
    host: str,
    port: int,
    *,
    stdio: bool,
    http: bool,
    watch: bool,
    as_daemon: bool = False,
) -> None:
    settings = _settings(context)
    with nothing_collected():
        from commonplace.qmd.cli import daemon
        from commonplace.qmd.http_server import Plan, serve
        from commonplace.server.auth import check_binding, make_gate
        from commonplace.server.http import PortTaken, listen
        from commonplace.server.logs import log_to
        from commonplace.server.principal import OWNER
        from commonplace.server.service import Service
        from commonplace.server.stdio import note_end_signals

    log_to(level=settings.log_level)
    principal = replace(OWNER, space=context.obj["space"])
    with note_end_signals() as signals, ExitStack() as stack:
        plan = Plan(
            principal, make_gate(settings, owner=principal), stdio=stdio, watch=watch, say=_say, signals=signals
        )
        stack.callback(plan.gate.close)
        if http:
            check_binding(settings, host)
            try:
                listener = stack.enter_context(listen(host, port))
            except PortTaken as taken:
                if not stdio:
                    raise
                _say(f"{taken} Only standard input and output are served.")
            else:
                plan = replace(plan, listener=listener)
                address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/mcp"
                if as_daemon:
                    stack.enter_context(daemon.held(_folder(context), address))
                _say(f"QMD is at {address}")
        serve(Service(replace(settings, watch=False)), plan)  # the plan says whether


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)


def _settings(context: click.Context) -> Settings:
    home = context.obj["home"]
    return Settings.load(home=Path(home) if home else None)


def _folder(context: click.Context) -> Path:
    from commonplace.space import space_folder

    return space_folder(_settings(context).home, context.obj["space"])


COMMANDS: dict[str, Any] = {"server": server, "mcp": mcp}
