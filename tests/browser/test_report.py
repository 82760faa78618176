"""The report page in a real browser."""

import csv
from pathlib import Path
from statistics import mean
from urllib.parse import quote

import numpy as np
import pytest

from mrn.analysis.statistics import rate_band
from mrn.runs.metrics import COLUMNS
from tests.browser.helpers import CHROMIUM, CURVES, FIVE, LATE, NAMED, wait_until

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="not tested in a browser: install Chromium (Debian: chromium)"
)


def lines(page, task):
    """Count the lines drawn for a task."""
    return page.locator(f'[data-task="{task}"] .scatterlayer .trace .js-line').count()


def test_table_matches_the_csvs(open_page, runs):
    page = open_page()
    for (task, critic), curves in CURVES.items():
        finals = []
        shared = 3 if task == "FetchReach" else 2  # BVN has only two epochs on FetchPush
        for seed in range(1, len(curves) + 1):
            file = runs / "small" / task / f"ddpg-{critic}" / f"seed-{seed}" / "metrics.csv"
            with open(file, encoding="utf-8", newline="") as text:
                finals.append(float(list(csv.DictReader(text))[shared - 1]["success"]))
        cell = page.locator(f'td[data-task="{task}"][data-method="ddpg-{critic}"]')
        assert cell.inner_text().split("\n")[0].removeprefix("★ ") == f"{100 * mean(finals):.1f}%"
    best = page.locator("#overview td.best")
    assert best.count() == 1  # on FetchPush, BVN has one seed
    assert best.get_attribute("data-method") == "ddpg-mrn"
    unfinished = page.locator('td[data-task="FetchPush"][data-method="ddpg-bvn"]')
    # Wilson interval of 10 in 100 episodes
    assert unfinished.inner_text().split("\n") == [
        "10.0%", "5.5 to 17.4 (Wilson, 1 seed)", "after epoch 2 of 3",
    ]  # fmt: skip
    assert "95% Wilson interval, 1 seed" in page.locator("#table-note").inner_text()
    page.select_option("#measure", "half")
    cell = page.locator('td[data-task="FetchReach"][data-method="ddpg-mrn"]')
    assert cell.inner_text().split("\n")[0].endswith("2,000")  # epoch 2 of 1000 episodes
    assert unfinished.inner_text().split("\n")[0] == "not yet"
    # Without the unfinished method, all epochs of the other count.
    page.select_option("#measure", "success")
    page.uncheck("#methods input[value=ddpg-bvn]")
    alone = page.locator('td[data-task="FetchPush"][data-method="ddpg-mrn"]')
    assert alone.inner_text().split("\n") == ["90.5%", "84.1 to 96.9 (2 seeds)"]


def test_trials_of_a_search_are_listed(open_page):
    page = open_page(fragment="experiment=search")
    lines_shown = page.locator("#trials-table tr")
    assert [lines_shown.nth(k).inner_text().split() for k in range(3)] == [
        ["trial", "state", "mean", "success", "evaluations", "tau"],
        ["0", "complete", "20.0%", "2", "<b>0.1</b>"],  # text, never parsed as HTML
        ["1", "pruned", "10.0%", "1", "0.5"],
    ]
    assert page.locator("#methods input").count() == 1  # the pruned trial is not compared
    page.select_option("#experiment", "small")
    assert page.locator("#trials").is_hidden()


def test_tied_methods_have_no_star(open_page):
    page = open_page(fragment="experiment=level&measure=area")
    assert page.locator("#overview td.best").count() == 0


def test_table_shows_the_probability_of_improvement(open_page):
    page = open_page(fragment="experiment=small&measure=better")
    cell = page.locator('td[data-task="FetchReach"][data-method="ddpg-bvn"]')
    assert cell.inner_text().split("\n") == ["100.0%", "33.7 to 100.0 (3 seeds)"]
    for task, critic in (("FetchReach", "mrn"), ("FetchPush", "bvn")):  # itself; one seed
        cell = page.locator(f'td[data-task="{task}"][data-method="ddpg-{critic}"]')
        assert "%" not in cell.inner_text()
    assert page.locator("#overview td.best").count() == 0
    assert "all pairs of seeds" in page.locator("#table-note").inner_text()
    page.select_option("#experiment", "level")
    cell = page.locator('td[data-method="ddpg-bvn"]')
    assert cell.inner_text().startswith("50.0%")  # the same curves, reversed


def test_recipes_are_compared_after_equal_numbers_of_episodes(open_page):
    page = open_page(fragment="experiment=recipes")
    cell = page.locator('td[data-method="ddpg-mrn+fast"]')
    assert cell.inner_text().split("\n")[0] == "70.0%"  # epoch 8 of 250 episodes
    assert cell.get_attribute("class") == ""  # two seeds do not support 70% against 40%
    assert page.evaluate(f"{PLOT}.data.at(-1).x") == [k / 4 for k in range(1, 10)]
    assert page.evaluate(f"{PLOT}.data[1].x") == [1, 2]
    assert "epoch 9 of 9" in page.locator("#runs").inner_text()
    assert page.evaluate(f"{PLOT}.layout.shapes[0].x0") == 2  # not at the end of the shorter run
    page.select_option("#measure", "half")
    assert cell.inner_text().split("\n") == ["1,500", "2 of 2 seeds"]  # by its own evaluations


def test_costs_and_stopped_runs_are_not_ranked(open_page):
    page = open_page(fragment="experiment=stopped")
    assert page.locator("#overview td.best").count() == 0
    page.select_option("#measure", "ninety")
    assert page.locator("#overview td.best").count() == 0
    assert "not ranked" in page.locator("#table-note").inner_text()
    cell = page.locator('td[data-method="ddpg-mrn"]')
    assert cell.inner_text().split("\n") == ["2,000", "2 of 2 seeds"]


def test_selectors_change_the_curves(open_page):
    page = open_page()
    assert page.locator("#curves .plot").count() == 2
    assert lines(page, "FetchReach") == 4  # two means, two bands
    page.select_option("#task", "FetchReach")
    assert page.locator("#curves .plot").count() == 1
    hovered = "document.querySelector('#curves .plot').data.at(-1)"
    assert page.evaluate(f"{hovered}.x") == [1, 2, 3]
    page.select_option("#x", "steps")
    assert page.evaluate(f"{hovered}.x") == [50000, 100000, 150000]
    page.select_option("#x", "time")
    assert page.evaluate(f"{hovered}.x") == [3, 6, 9]  # seconds, not hours
    assert page.evaluate("axis({runs: [{seconds: [600]}]})[0]") == "minutes"
    assert page.evaluate("axis({runs: [{seconds: [7200]}]})") == ["hours", 3600]
    assert page.evaluate("runX({seconds: [1800], columns: {epoch: [], env_steps: []}}, 3600)") == [
        0.5
    ]
    # BVN, drawn last, smoothed: half the previous value and half this one.
    page.evaluate("smoothing.value = 0.5; smoothing.dispatchEvent(new Event('change'))")
    first, second = mean([0.0, 0.1, 0.0]), mean([0.2, 0.3, 0.1])
    expected = [first, (first + second) / 2]
    assert page.evaluate(f"{hovered}.y")[:2] == pytest.approx(expected)
    page.uncheck("#methods input[value=ddpg-bvn]")
    assert lines(page, "FetchReach") == 2
    assert page.locator("#overview td").count() == 2
    page.reload()  # as --watch does; selections persist
    assert page.input_value("#task") == "FetchReach"
    assert lines(page, "FetchReach") == 2


def test_every_metric_can_be_drawn(open_page):
    page = open_page(fragment="experiment=small&task=FetchReach")
    names = page.locator("#y option").evaluate_all("options => options.map(o => o.value)")
    counters = ("epoch", "env_steps", "updates")
    others = [n for n in COLUMNS if n != "success" and n not in counters]
    assert names == ["success", *others, "my_loss"]
    page.select_option("#y", "my_loss")
    (drawn,) = page.evaluate(
        f"{PLOT}.data.filter(trace => trace.hovertemplate).map(t => [t.x, t.y])"
    )
    assert drawn == [[2, 3], [2.5, -0.001]]
    page.reload()
    assert page.input_value("#y") == "my_loss"


PLOT = "document.querySelector('#curves .plot')"


def test_bands_are_the_intervals_of_the_tables(open_page):
    page = open_page(fragment="experiment=level")
    band = page.evaluate(f"{PLOT}.data[0].y")
    found = np.array([band[3:][::-1], band[:3]])  # drawn from left to right and back
    np.testing.assert_allclose(found, rate_band(np.array(FIVE), np.full(5, 100)), rtol=1e-5)
    assert found.min() >= 0
    assert found.max() <= 1
    # The last point of the band is the interval in the table.
    cell = page.locator('td[data-method="ddpg-mrn"]').inner_text().split("\n")
    assert cell[1] == f"{100 * found[0, -1]:.1f} to {100 * found[1, -1]:.1f} (5 seeds)"
    page = open_page(fragment="experiment=seven")
    high, low = np.split(np.array(page.evaluate(f"{PLOT}.data[0].y")), 2)
    cell = page.locator('td[data-method="ddpg-mrn"]').inner_text().split("\n")
    assert cell[1] == f"{100 * low[0]:.1f} to {100 * high[-1]:.1f} (7 seeds)"
    # Seeds at 10%, 30% and 20%: 0.2 +- 4.303 * 0.1 / sqrt(3)
    page = open_page(fragment="experiment=small")
    band = page.evaluate(f"{PLOT}.data[0].y")
    assert (band[0], band[-1]) == pytest.approx((0.44842, 0), abs=1e-4)


def test_column_that_starts_empty_is_drawn_at_its_epochs(open_page):
    page = open_page(fragment=f"experiment=late&y={quote(LATE)}")
    assert page.input_value("#y") == LATE
    dotted, solid = page.evaluate(
        f"{PLOT}.data.filter(t => t.line && t.line.width === 2).map(t => [t.line.dash, t.x, t.y])"
    )
    assert dotted == ["dot", [1, 2, 3], [4, 3, 5]]
    assert solid == [None, [1, 2, 3], [None, 3, 5]]
    page.check("#seeds")
    seeds = page.evaluate(f"{PLOT}.data.filter(t => t.line && t.line.width === 1).map(t => t.y)")
    assert seeds == [[None, 2, 4], [4, 4, 6]]


def test_nested_settings_are_shown_as_json(open_page):
    page = open_page(fragment="experiment=late&task=FetchPush")
    page.locator("#runs details summary", has_text="ddpg-mrn/1").last.click()
    settings = page.locator("#runs details details[open] .facts").first.inner_text()
    assert '{"reward_type":"sparse"}' in settings
    assert "[object Object]" not in settings


def test_hover_lists_all_curves_and_highlights_the_nearest(open_page):
    page = open_page(fragment="experiment=small&task=FetchReach")
    area = page.locator("#curves .nsewdrag").bounding_box()
    middle = area["x"] + area["width"] / 2
    for share, method in ((0.22, "ddpg-mrn"), (0.78, "ddpg-bvn")):  # 80% and 20% in epoch 2
        page.mouse.move(middle, area["y"] + share * area["height"])
        wait_until(page, f"{PLOT}.highlighted === '{method}'")
        faded = page.evaluate(f"{PLOT}.data.filter(t => t.opacity < 1).map(t => t.meta)")
        assert set(faded) == {"ddpg-mrn", "ddpg-bvn"} - {method}
    text = page.locator("#curves .hoverlayer").text_content()
    for line in (
        "epoch 2",
        "MRN 80.0% [55.2 to 100.0], 3 seeds",
        "BVN 20.0% [0.0 to 44.8], 3 seeds",
    ):
        assert line in text
    page.mouse.move(5, 5)
    wait_until(page, f"{PLOT}.highlighted === null")


def test_copy_command_and_download_csv(open_page, runs):
    page = open_page(fragment="experiment=small&task=FetchReach")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#runs details summary", has_text="ddpg-mrn/1").last.click()
    box = page.locator("#runs details details[open]")
    box.get_by_text("copy command").click()
    box.get_by_text("copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "mrn train FetchReach --recipe=paper --seed=1 --epochs=3"
    with page.expect_download() as waiting:
        box.get_by_text("download CSV").click()
    original = runs / "small/FetchReach/ddpg-mrn/seed-1/metrics.csv"
    assert Path(waiting.value.path()).read_bytes() == original.read_bytes()
    assert waiting.value.suggested_filename == "small_FetchReach_ddpg-mrn_1.csv"
    assert "Z80 at 4 MHz" in box.inner_text()


def test_markup_in_names_is_shown_as_text(open_page):
    page = open_page(fragment="")
    shown = page.locator("#experiment option").all_inner_texts()
    assert shown == [
        NAMED, "late", "level", "recipes", "search", "seven", "small", "stopped",
    ]  # fmt: skip
    page.locator("#runs summary").nth(1).click()
    assert NAMED in page.locator("#runs").inner_text()
    command = page.locator("#runs pre").inner_text()
    assert "mrn train FetchPush --recipe=paper --seed=1 --epochs=2" in command
    assert page.evaluate("window.broken") is None


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_page_fits_a_phone_and_a_wide_screen(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    plot = page.locator("#curves .plot").first.bounding_box()
    assert 320 <= plot["width"] <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 31)" if scheme == "dark" else "rgb(255, 255, 255)")
    boxes = [box.bounding_box() for box in page.locator("#curves .plot").all()]
    scroll = page.locator(".scroll").first
    wider = scroll.evaluate("box => box.scrollWidth > box.clientWidth")
    shade = scroll.evaluate("box => getComputedStyle(box).backgroundAttachment")
    assert shade == "local, scroll"  # the cover scrolls with the table, the shadow stays
    assert wider == (width == 400)
    side_by_side = boxes[1]["x"] >= boxes[0]["x"] + boxes[0]["width"]
    assert side_by_side == (width == 1600)


def test_page_is_one_file_that_includes_videos(open_page, page_file):
    page = open_page()
    pictures = page.locator("#picture-list img")
    sources = [picture.get_attribute("src") for picture in pictures.all()]
    assert sources[1] == "data:image/gif;base64,R0lGODlh"
    assert sources[0].startswith("data:image/png;base64,iVBOR")
    video = "document.querySelector('#picture-list video')"
    wait_until(page, f"{video}.readyState > 0")
    assert page.evaluate(f"[{video}.duration, {video}.videoWidth]") == [pytest.approx(1.5), 48]
    assert page.title() == page.locator("h1").inner_text()
    assert page.title().startswith("mrn report: runs")
    assert [path.name for path in page_file.parent.iterdir()] == ["index.html"]
    assert page_file.stat().st_size < 8e6
