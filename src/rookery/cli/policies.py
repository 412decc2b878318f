"""`rookery policy`: show and check."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import PolicyFile, options_of
from rookery.cli.render import show

app = typer.Typer(no_args_is_help=True, help="Show the policies of tables, and check policy files.")


@app.command("show")
def show_(
    context: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table by its name.")],
    policy: PolicyFile = None,
) -> None:
    """Show the policy of a table: each setting, its value, and where it is set.

    Precedence: table properties, then rules for the table, a pattern, a namespace and the catalog, then the
    file's defaults and Rookery's own.
    """
    from rookery.api.policies import show_policy  # brings PyIceberg

    options = options_of(context)
    show(show_policy(table, options.lake(), policy=policy), options)


@app.command("check")
def check(
    context: typer.Context,
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="The policy file; by default $ROOKERY_POLICY, or ./rookery.yaml."
        ),
    ] = None,
) -> None:
    """Check a policy file, and show how many rules it has, or the first error with its line."""
    from rookery.api.policies import check_policies  # brings PyIceberg

    show(check_policies(policy), options_of(context))
