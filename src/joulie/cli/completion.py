"""`joulie completion`: a script that teaches a shell to complete commands, options, policies and file names."""

from __future__ import annotations

import click

from joulie.cli.commands import COMPLETION_VARIABLE, root

_EPILOG = """\b
To have it in every new shell:
  bash  joulie completion bash > ~/.local/share/bash-completion/completions/joulie
  zsh   joulie completion zsh > "${fpath[1]}/_joulie"
  fish  joulie completion fish > ~/.config/fish/completions/joulie.fish

\b
To try it in this shell only:
  bash  source <(joulie completion bash)
  zsh   source <(joulie completion zsh)
  fish  joulie completion fish | source
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script for tab completion in bash, zsh or fish.

    It completes commands, options and their values, names of installed policies, and file names.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"there is no completion for {shell}")
    completion = completion_class(root, {}, "joulie", COMPLETION_VARIABLE)
    # Not its own `source`, which runs bash to learn its version.
    click.echo(ShellComplete.source(completion))
