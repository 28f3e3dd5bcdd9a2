"""`joulie completion`: shell scripts that complete commands, options, policies and file names."""

from __future__ import annotations

import click

from joulie.cli.lazy import COMPLETION_VARIABLE

_EPILOG = """\b
To enable it in every new shell:
  bash  joulie completion bash > ~/.local/share/bash-completion/completions/joulie
  zsh   joulie completion zsh > "${fpath[1]}/_joulie"
  fish  joulie completion fish > ~/.config/fish/completions/joulie.fish

\b
To try it in the current shell:
  bash  source <(joulie completion bash)
  zsh   source <(joulie completion zsh)
  fish  joulie completion fish | source
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the tab-completion script for bash, zsh or fish.

    Completes commands, options and their values, names of installed policies, and file names.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"there is no completion for {shell}")
    completion = completion_class(ctx.find_root().command, {}, "joulie", COMPLETION_VARIABLE)
    # The base class's `source`, because bash's own runs bash to find out its version.
    click.echo(ShellComplete.source(completion))
