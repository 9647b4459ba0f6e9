"""Pieces of HTML. Texts from notifications go through ``name``, which escapes them."""

import datetime
import html
from collections.abc import Iterable, Sequence

from notifier_kafka.cli.output import text

NUMBER = "number"


def words(found: str) -> str:
    """Escape text, and make invisible characters visible."""
    return html.escape(text.visible(found))


def name(found: str) -> str:
    """Escape a name from a notification, and isolate its writing direction."""
    return f"<bdi>{words(found)}</bdi>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], foot: Sequence[str] = ()) -> str:
    """Make a table. The first column has the row's name, the others have numbers."""
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
    """Make a tile: one figure and its title."""
    small = f"<small>{below}</small>" if below else ""
    return f'<li id="tile-{key}"><span>{words(title)}</span><strong>{words(value)}</strong>{small}</li>'


def chart(key: str, title: str, said: str, alternative: str) -> str:
    """Make the section of a chart, with a sentence and a table of the same figures."""
    return (
        f'<section class="chart"><h2>{words(title)}</h2><figure><p id="said-{key}">{said}</p>'
        f'<div class="plot" id="plot-{key}" role="img" aria-label="{words(title)}" '
        f'aria-describedby="said-{key}"></div>'
        f"<details><summary>The same as a table</summary>{alternative}</details></figure></section>"
    )


def remark(title: str, said: str) -> str:
    """Make the section of a chart that cannot be drawn, with the reason."""
    return f"<section><h2>{words(title)}</h2><p>{said}</p></section>"


def moment(seconds: float) -> str:
    """Format seconds since the epoch in UTC; whole minutes without seconds."""
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def width(seconds: int) -> str:
    """Format the width of a window."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}{'s' * (seconds != size)}"
    return counted(seconds, "second")


def counted(number: int, noun: str) -> str:
    """Format a number with a noun: ``1 notification``, ``2 notifications``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def whole(found: float | None) -> str:
    """Format a number that may be unknown."""
    return "not known" if found is None else f"{found:,.0f}"


def part(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.2f} %"
