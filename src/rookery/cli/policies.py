"""`rookery policy`: show and check."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.help import group
from rookery.cli.options import PolicyFile, options_of
from rookery.cli.render import show

app = group(help="Show the policies of tables, and check policy files.")


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
    """Check a policy file, and show how many rules it has, or all of its errors with their lines.

    Rules are compared with the tables of the catalog: those that match no table, and columns that a table
    does not have, are warnings, which do not change the exit code.
    """
    from rookery.api.policies import check_policies  # brings PyIceberg

    options = options_of(context)
    show(check_policies(policy, options.lake()), options)
