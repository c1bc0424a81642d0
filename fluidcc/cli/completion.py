"""Scripts by which shells complete the words of ``fluidcc``, made from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

Commands = Mapping[str, argparse.ArgumentParser]

BASH = """_fluidcc() {{
    local words="" cur="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}} $before" in
{values}
            *) case "${{COMP_WORDS[1]}}" in
{words}
            esac ;;
        esac
    fi
    COMPREPLY=( $(compgen -W "$words" -- "$cur") )
}}
complete -o bashdefault -o default -F _fluidcc fluidcc"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def script(shell: str, commands: Commands) -> str:
    """Return the script for ``"bash"``, ``"zsh"`` or ``"fish"``.

    Where no word of the command fits, the shells complete names of files.
    """
    if shell == "fish":
        return "\n".join(_fish(commands))
    return (ZSH if shell == "zsh" else "") + _bash(commands)


def _words(action: argparse.Action) -> list[str]:
    """Return the values that an argument can have, where they are few."""
    from fluidcc.network.scenarios import scenarios
    from fluidcc.papers import papers

    known = {"scenario": list(scenarios), "paper": list(papers())}
    return [*(action.choices or ()), *known.get(action.dest, ())]


def _bash(commands: Commands) -> str:
    words, values = [], []
    for name, command in commands.items():
        own: list[str] = []
        for action in command._actions:
            own += action.option_strings or _words(action)
            if action.option_strings and action.nargs != 0:
                given = "|".join(f'"{name} {option}"' for option in action.option_strings)
                values.append(f'            {given}) words="{" ".join(_words(action))}" ;;')
        words.append(f'                {name}) words="{" ".join(own)}" ;;')
    return BASH.format(
        commands=" ".join(commands), values="\n".join(values), words="\n".join(words)
    )


def _fish(commands: Commands) -> Iterator[str]:
    for name, command in commands.items():
        about = str(command.description).replace("'", "\\'")
        yield f"complete -c fluidcc -n __fish_use_subcommand -f -a {name} -d '{about}'"
        start = f"complete -c fluidcc -n '__fish_seen_subcommand_from {name}'"
        for action in command._actions:
            words = " ".join(_words(action))
            names = [f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}"
                     for o in action.option_strings]  # fmt: skip
            takes = ["-r"] if names and action.nargs != 0 else []
            # beside names of scenarios, names of files are completed too
            only = [] if getattr(action, "values", "") == "scenarios" else ["-f"]
            given = [*only, f"-a '{words}'"] if words else []
            told = str(action.help or "").replace("'", "\\'")
            if names or given:
                yield " ".join([start, *names, *takes, *given, f"-d '{told}'"])
