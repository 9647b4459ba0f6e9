"""``notifier-kafka complete``: print a script with which a shell completes commands and options.

Each script finds the command among the words before the cursor, and offers what may follow it.
It needs no package besides the shell. If nothing matches, the shell completes file names.
"""

import argparse
import functools
from collections.abc import Callable

from cliff.command import Command as Base

from notifier_kafka.cli.command import Command

NextWords = dict[str, list[str]]
"""What may follow the words of a command, each with a space before it; "" is the program itself."""

_BASH = """\
_{function}() {{
    local word at="" offered="" IFS=$' \\t\\n'
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in
            {nodes}) at="$at $word" ;;
        esac
    done
    case "$at" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$offered" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _{function} {program}
"""

_ZSH = """\
#compdef {program}
_{function}() {{
    local word at="" offered=""
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$at $word" in
            {nodes}) at="$at $word" ;;
        esac
    done
    case "$at" in
{cases}
    esac
    compadd -- ${{=offered}} || _files
}}
# The completion system loads this file as a function's body; a .zshrc sources it.
if [[ $funcstack[1] == _{function} ]]; then
    _{function} "$@"
else
    compdef _{function} {program}
fi
"""

_FISH = """\
function __{function}_at
    set -l at ""
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case {nodes}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
"""


class Complete(Command):
    """Print a script with which a shell completes commands and options."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--shell", choices=sorted(SCRIPTS), default="bash", help="The shell. Default: %(default)s."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.app.stdout.write(SCRIPTS[parsed_args.shell](self.program.NAME, self._words()))

    def _words(self) -> NextWords:
        next_words: NextWords = {"": _option_names(self.program.parser)}
        for name, entry in sorted(self.program.command_manager):
            at = ""
            for word in name.split():
                if word not in (following := next_words.setdefault(at, [])):
                    following.append(word)
                at += f" {word}"
            made: Base = entry.load()(self.program, self.app_args, cmd_name=name)
            next_words[at] = _option_names(made.get_parser(name))
        return next_words


def _option_names(parser: argparse.ArgumentParser) -> list[str]:
    actions = parser._actions  # noqa: SLF001 - argparse has no public list of them
    return sorted({text for action in actions for text in action.option_strings if text[:2] == "--"})


def _case_lines(next_words: NextWords) -> str:
    return "\n".join(f'        "{at}") offered="{" ".join(words)}" ;;' for at, words in next_words.items())


def _fill(template: str, program: str, next_words: NextWords) -> str:
    nodes = "|".join(f'"{at}"' for at in next_words if at)
    function = program.replace("-", "_")
    return template.format(function=function, program=program, nodes=nodes, cases=_case_lines(next_words))


def _fish(program: str, next_words: NextWords) -> str:
    function = program.replace("-", "_")
    nodes = " ".join(f'"{at}"' for at in next_words if at)
    lines = [_FISH.format(function=function, nodes=nodes)]
    for at, words in next_words.items():
        asked = f"complete -c {program} -n '__{function}_at \"{at}\"'"
        options = [word for word in words if word.startswith("--")]
        commands = [word for word in words if word not in options]
        lines += [f"{asked} -l {option[2:]}\n" for option in options]
        lines += [f"{asked} -f -a '{' '.join(commands)}'\n"] if commands else []
    return "".join(lines)


SCRIPTS: dict[str, Callable[[str, NextWords], str]] = {
    "bash": functools.partial(_fill, _BASH),
    "fish": _fish,
    "zsh": functools.partial(_fill, _ZSH),
}
