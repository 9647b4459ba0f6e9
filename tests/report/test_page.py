"""The page in a real browser."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from notifier_kafka.cli import main
from tests.report import output
from tests.report.output import Told

PHONE, DESK = 380, 1280
SUMS = {"read": 57, "decoded": 50, "duplicate": 4, "late": 6, "malformed": {"not JSON": 2, "a tombstone": 1}}
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "=HYPERLINK(1)",
    "\u202etxt.exe",
    "<b>&amp;</b>",
    "%{y}",
    "2026-01-01",
)


class Opened(NamedTuple):
    page: Page
    said: list[str]
    asked: list[str]


def make(directory: Path, told: Sequence[Told], *more: output.Row) -> Path:
    return paged(directory, [*output.counted(told), *more])


def paged(directory: Path, rows: Sequence[output.Row], *arguments: str) -> Path:
    """Make the page of rows."""
    output.write(directory / "rows", rows, **SUMS)
    file = directory / "report.html"
    named = ["--input", str(directory / "rows"), "-o", str(file), *arguments]
    assert main.main(["-q", "report", *named, "--json"]) == 0
    return file


def opened(browser: Browser, file: Path, width: int = DESK) -> Opened:
    """Open a page; what it says to the console and asks of anybody is kept."""
    found = Opened(browser.new_page(viewport={"width": width, "height": 900}), [], [])
    found.page.on("console", lambda message: found.said.append(message.text))
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("dialog", lambda dialog: found.said.append(f"a dialog: {dialog.message}"))
    found.page.on("request", lambda request: found.asked.append(request.url))
    found.page.goto(file.as_uri())
    for plot in found.page.locator(".plot").all():
        expect(plot.locator("svg.main-svg").first).to_be_attached()
    return found


def day(types: int) -> list[Told]:
    rng = random.Random(types)
    return [
        Told(
            rng.randrange(86_400),
            f"service.thing{index % types}.done",
            f"service.host{index % 3}",
            "ERROR" if index % 10 == 9 else "INFO",
        )
        for index in range(50)
    ]


OWN = [
    output.row("volumes.size", "GB", hour * 3600, 3600, {"project": project}, 5.5 * hour)
    for hour in range(24)
    for project in ("red", "blue")
]
DURATIONS = [
    output.row("notifications.duration", "s", 0, 86_400, {"event_type": name, "percentile": p}, float(p))
    for name in ("make.end", "mend.end")
    for p in ("50", "95", "99")
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("page"), day(11), *OWN, *DURATIONS)


@pytest.fixture(scope="module")
def desk(browser: Browser, file: Path) -> Iterator[Opened]:
    found = opened(browser, file)
    yield found
    found.page.close()


def test_it_asks_for_nothing_and_complains_of_nothing(desk: Opened, file: Path) -> None:
    assert desk.asked == [file.as_uri()]
    assert desk.said == []
    assert desk.page.locator(".plot").count() == 6


def test_tiles_are_the_sums(desk: Opened) -> None:
    told = day(11)
    busiest = max(Counter(one.second // 60 for one in told).values())
    errors = sum(one.priority == "ERROR" for one in told)
    wanted = {
        "total": "50",
        "peak-rate": f"{busiest / 60:.2f}/s",
        "error-share": f"{100 * errors / 50:.2f} %",
        "publishers": "3",
        "event-types": "11",
        "late": "6",
        "duplicate": "4",
        "malformed": "3",
    }
    found = {key: desk.page.locator(f"#tile-{key} strong").inner_text() for key in wanted}
    assert found == wanted


def test_tables_add_up_to_the_tiles(desk: Opened) -> None:
    by_type = desk.page.locator("table", has=desk.page.get_by_text("By event type", exact=True))
    rows = [row.locator("td").all_inner_texts() for row in by_type.locator("tbody tr").all()]
    last = by_type.locator("tfoot td").all_inner_texts()
    assert [sum(int(row[place]) for row in rows) for place in (0, 1)] == [50, 5]
    assert last[:2] == ["50", "5"]
    records = desk.page.locator("table", has=desk.page.get_by_text("Records", exact=True).first)
    outcomes = [int(text) for text in records.locator("tbody td").all_inner_texts()]
    assert outcomes == [50, 4, 2, 1]
    assert records.locator("tfoot td").inner_text() == str(sum(outcomes))


@pytest.mark.parametrize(("types", "traces"), [(1, 1), (9, 9), (11, 9)])
def test_each_event_type_is_a_trace_and_beyond_eight_they_are_one(
    browser: Browser, tmp_path: Path, types: int, traces: int
) -> None:
    page = opened(browser, make(tmp_path, day(types))).page
    assert page.locator("#plot-volume .legend .traces").count() == traces
    drawn = page.evaluate("document.getElementById('plot-volume').data.map(each => each.y)")
    assert len(drawn) == traces
    assert sum(map(sum, drawn)) == 50
    page.close()


def test_a_click_in_the_legend_hides_a_trace(desk: Opened) -> None:
    bars = desk.page.locator("#plot-volume .barlayer .trace")
    expect(bars).to_have_count(9)
    desk.page.locator("#plot-volume .legendtoggle").first.click()
    expect(bars).to_have_count(8)
    desk.page.locator("#plot-volume .legendtoggle").first.click()
    expect(bars).to_have_count(9)


def test_charts_can_be_read_as_text(desk: Opened) -> None:
    for section in desk.page.locator("section.chart").all():
        plot = section.locator(".plot")
        assert plot.get_attribute("role") == "img"
        assert plot.get_attribute("aria-label") == section.locator("h2").inner_text()
        assert len(desk.page.locator(f"#{plot.get_attribute('aria-describedby')}").inner_text()) > 20
        section.locator("summary").click()
        expect(section.locator("details tbody tr").first).to_be_visible()


def test_percentiles_and_metrics_of_the_users_are_there(desk: Opened) -> None:
    shown = desk.page.locator("section.chart", has=desk.page.locator("#plot-durations"))
    assert "p50, p95, p99" in shown.inner_text()
    dots = desk.page.locator("#plot-durations .scatterlayer .points path")
    assert dots.count() == 6
    own = desk.page.locator("section.chart", has=desk.page.locator("#plot-own-0"))
    assert own.locator("h2").inner_text() == "volumes.size"
    assert "in GB" in own.inner_text()
    assert own.locator(".legend .traces").count() == 2


def test_it_says_where_it_comes_from(desk: Opened) -> None:
    said = desk.page.locator("dl").inner_text()
    for words in (
        "notifier-kafka report --input",
        "shop.info[0] 100 to 200",
        "sqlite:////var/log.db",
        "1 minute, 1 hour, 1 day",
        "plotly.js",
        "57 records in 1 batch\n",
    ):
        assert words in said


def test_the_command_that_it_names_is_the_whole_one(browser: Browser, tmp_path: Path) -> None:
    job = str(tmp_path / "a job")
    found = opened(browser, paged(tmp_path, output.counted(day(1)), "--checkpoint-dir", job))
    assert f"--checkpoint-dir '{job}' -o {tmp_path}/report.html" in found.page.locator("dl").inner_text()
    found.page.close()


def test_a_chart_that_is_not_there_says_why(browser: Browser, tmp_path: Path) -> None:
    told = [Told(0, "order.paid", "till.1"), Told(90_000, "order.paid", "till.2")]
    more = [output.row(f"own.{place:02}", "", 0, 86_400, {}, 1.0) for place in range(14)]
    found = opened(browser, paged(tmp_path, [*output.counted(told, [86_400]), *more]))
    said = found.page.locator("main").inner_text()
    for words in (
        "No notification has the priority ERROR or CRITICAL.",
        "The windows of 1 day are too wide to show hours.",
        "The output has no rows of the metric notifications.duration.",
        "12 of 14 further metrics have a chart; these have none: own.12, own.13.",
    ):
        assert words in said
    assert found.said == []
    assert found.page.locator(".plot").count() == 2 + 12
    # A metric of one window has an axis of days, not of milliseconds.
    ticks = found.page.locator("#plot-own-0 .xtick text").all_text_contents()
    assert ticks
    assert not [tick for tick in ticks if "." in tick or ":59" in tick]
    found.page.close()


@pytest.mark.parametrize(
    ("publishers", "errors", "expected"),
    [
        (1, 1, "There is one publisher."),
        (2, 2, "All 2 publishers sent errors."),
        (3, 2, "2 of 3 publishers sent errors; the others sent none."),
        (20, 17, "17 of 20 publishers sent errors; those with the 15 largest shares are shown."),
    ],
)
def test_sentences_say_what_is_shown(tmp_path: Path, publishers: int, errors: int, expected: str) -> None:
    told = [Told(0, "order.paid", f"till.{n}", "ERROR" if n < errors else "INFO") for n in range(publishers)]
    page = paged(tmp_path, output.counted(told)).read_text("utf-8")

    noun = "notification" if publishers == 1 else "notifications"
    shown = {1: "1 publisher", 20: "15 of 20 publishers"}.get(publishers, f"all {publishers} publishers")
    for sentence in (
        f"among the notifications of a publisher. {expected}",
        f">{publishers} {noun}; each bar is 1 minute.",
        "Notifications of 1 event type by the hour",
        f"Notifications of {shown}. ",
    ):
        assert sentence in page


def test_a_page_with_every_chart_makes_no_excuses(desk: Opened) -> None:
    assert "have none" not in desk.page.locator("main").inner_text()
    assert desk.page.locator("main > section:not(.chart)").count() == 2


def test_nothing_is_wider_than_a_telephone(browser: Browser, file: Path) -> None:
    page = opened(browser, file, PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    wide = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(each => !each.closest('.scroll')"
        " && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 99))"
    )
    assert wide == []
    page.close()


def test_on_paper_the_charts_have_the_width_of_paper(desk: Opened) -> None:
    def widths() -> set[int]:
        return set(
            desk.page.evaluate("[...document.querySelectorAll('.plot')].map(each => each._fullLayout.width)")
        )

    assert min(widths()) > 1000
    desk.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert widths() == {640}
    desk.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert min(widths()) > 1000
    assert desk.page.pdf(format="A4").startswith(b"%PDF")


def test_names_are_text_whatever_they_look_like(browser: Browser, tmp_path: Path) -> None:
    told = [Told(60 * place, name, f"host {name}") for place, name in enumerate(HOSTILE)]
    own = [output.row("mine", "<i>", 0, 3600, {"project": name}, 1.0) for name in HOSTILE]
    own += [output.row("mine", "<i>", 3600, 3600, {"project": "x"}, float(value)) for value in ("nan", "inf")]
    long = [
        output.row("notifications.duration", "s", 0, 86_400, {"event_type": name, "percentile": "50"}, 1.0)
        for name in HOSTILE
    ]
    found = opened(browser, make(tmp_path, told, *own, *long))
    page = found.page
    shown = sorted(name.replace("\u202e", "\\u202e") for name in HOSTILE)
    assert found.said == []
    assert found.asked == [found.page.url]
    assert page.locator("img, main svg[onload], main script, b, i").count() == 0
    for key, pick in {
        "volume": ".legendtext",
        "heat": ".ytick text",
        "publishers": ".ytick text",
        "durations": ".ytick text",
        "own-0": ".legendtext",
    }.items():
        texts = [
            text.removeprefix("host ") for text in page.locator(f"#plot-{key} {pick}").all_text_contents()
        ]
        assert sorted(texts) == [_cut(name, key) for name in shown], key
    rows = page.locator("table", has=page.get_by_text("By event type", exact=True)).locator("tbody th")
    assert sorted(rows.all_inner_texts()) == shown
    page.close()


def _cut(name: str, key: str) -> str:
    room = 34 - (5 if key == "publishers" else 0)
    return name if len(name) <= room else f"{name[: room - 1]}…"


def test_a_script_that_got_into_the_page_would_not_run(browser: Browser, file: Path) -> None:
    found = opened(browser, file)
    found.page.evaluate(
        "const made = document.createElement('script'); made.text = 'window.ran = 1';"
        "document.body.append(made)"
    )
    assert found.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in words for words in found.said)
    found.page.close()
