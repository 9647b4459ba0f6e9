"""Pieces of HTML. What comes over a bus goes through ``name`` and is text, whatever it looks like."""

import datetime
import html
from collections.abc import Iterable, Sequence

from notifier_kafka.cli.output import text

NUMBER = "number"


def words(found: str) -> str:
    """Spell text; what would turn it around or hide it becomes visible."""
    return html.escape(text.visible(found))


def name(found: str) -> str:
    """Spell a name of somebody else's, whose direction is its own affair."""
    return f"<bdi>{words(found)}</bdi>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], foot: Sequence[str] = ()) -> str:
    """Make a table of markup; the first column names the row, the others are numbers."""
    head = "".join(f'<th scope="col"{_class(place)}>{words(each)}</th>' for place, each in enumerate(heads))
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    last = f"<tfoot><tr>{_cells(foot)}</tr></tfoot>" if foot else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{words(caption)}"><table>'
        f"<caption>{words(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{last}"
        "</table></div>"
    )


def _class(place: int) -> str:
    return f' class="{NUMBER}"' if place else ""


def _cells(row: Sequence[str]) -> str:
    first, *others = row
    return f'<th scope="row">{first}</th>' + "".join(f'<td class="{NUMBER}">{each}</td>' for each in others)


def tile(key: str, title: str, value: str, below: str = "") -> str:
    """Make a tile: one figure with what it is."""
    small = f"<small>{below}</small>" if below else ""
    return f'<li id="tile-{key}"><span>{words(title)}</span><strong>{words(value)}</strong>{small}</li>'


def chart(key: str, title: str, said: str, alternative: str) -> str:
    """Make the place of a chart, with a sentence and a table that say the same."""
    return (
        f'<section class="chart"><h2>{words(title)}</h2><figure><p id="said-{key}">{said}</p>'
        f'<div class="plot" id="plot-{key}" role="img" aria-label="{words(title)}" '
        f'aria-describedby="said-{key}"></div>'
        f"<details><summary>The same as a table</summary>{alternative}</details></figure></section>"
    )


def remark(title: str, said: str) -> str:
    """Make the place of a chart that is not there, with a sentence that says so."""
    return f"<section><h2>{words(title)}</h2><p>{said}</p></section>"


def moment(seconds: float) -> str:
    """Spell a time of the epoch, in UTC; whole minutes without seconds."""
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def width(seconds: int) -> str:
    """Spell how long a window is."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}{'s' * (seconds != size)}"
    return f"{seconds} seconds"


def whole(found: float | None) -> str:
    """Spell a number that nobody may have noted."""
    return "not known" if found is None else f"{found:,.0f}"


def part(share: float) -> str:
    """Spell a part of the whole."""
    return f"{100 * share:.2f} %"
