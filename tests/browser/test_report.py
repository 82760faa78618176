"""The report in a real browser."""

import csv
import shutil
from pathlib import Path
from statistics import mean

import pytest
from playwright.sync_api import sync_playwright

from mrn.experiments.report import write_report
from tests.experiments.helpers import write_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAMED = "<script>window.broken = 1<"  # the name of a folder has no slash
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--no-first-run"]

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NOT TESTED in a browser: install Chromium (Debian: chromium)"
)

CURVES = {
    ("FetchReach", "mrn"): [[0.1, 0.9, 1.0], [0.3, 0.7, 0.98], [0.2, 0.8, 0.97]],
    ("FetchReach", "bvn"): [[0.0, 0.2, 0.6], [0.1, 0.3, 0.4], [0.0, 0.1, 0.53]],
    ("FetchPush", "mrn"): [[0.05, 0.5, 0.9], [0.0, 0.4, 0.91]],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for (task, critic), curves in CURVES.items():
        for seed, success in enumerate(curves, start=1):
            write_run(root / "small", success, seed, task, critic=critic)
    write_run(root / "small", [0.0, 0.1], 1, "FetchPush", critic="bvn", epochs=3)  # goes on
    write_run(root / NAMED, [0.25, 0.75], 1)
    folder = root / "small/FetchReach/ddpg-mrn/seed-1"
    (folder / "policy.gif").write_bytes(b"GIF89a")
    return root


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(runs, browser, tmp_path):
    page_file, _ = write_report(runs, tmp_path)
    complaints, requests, contexts = [], [], []

    def opened(width=1600, scheme="light", fragment="experiment=small"):
        size = {"width": width, "height": 1000}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{page_file.as_uri()}#{fragment}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("data:", page_file.as_uri()))] == []


def lines(page, task):
    """Curves drawn for a task, by the colour of their line."""
    return page.locator(f'[data-task="{task}"] .scatterlayer .trace .js-line').count()


def test_the_numbers_in_the_table_are_those_of_the_csvs(open_page, runs):
    page = open_page()
    for (task, critic), curves in CURVES.items():
        finals = []
        for seed in range(1, len(curves) + 1):
            file = runs / "small" / task / f"ddpg-{critic}" / f"seed-{seed}" / "metrics.csv"
            with open(file, newline="") as text:
                finals.append(float(list(csv.DictReader(text))[-1]["success"]))
        cell = page.locator(f'td[data-task="{task}"][data-method="ddpg-{critic}"]')
        assert cell.inner_text().split("\n")[0].removeprefix("★ ") == f"{100 * mean(finals):.1f} %"
    best = page.locator("#overview td.best")
    assert best.count() == 1  # on FetchPush nothing else is finished
    assert best.get_attribute("data-method") == "ddpg-mrn"
    unfinished = page.locator('td[data-task="FetchPush"][data-method="ddpg-bvn"]')
    assert "after epoch 2 of 3" in unfinished.inner_text()
    page.select_option("#measure", "half")
    cell = page.locator('td[data-task="FetchReach"][data-method="ddpg-mrn"]')
    assert cell.inner_text().split("\n")[0] == "2,000"  # epoch 2 of 1000 episodes


def test_curves_are_drawn_and_the_selectors_work(open_page):
    page = open_page()
    assert page.locator("#curves .plot").count() == 2
    assert lines(page, "FetchReach") == 4  # two means, two bands
    page.select_option("#task", "FetchReach")
    assert page.locator("#curves .plot").count() == 1
    heard = "document.querySelector('#curves .plot').data.at(-1)"
    assert page.evaluate(f"{heard}.x") == [1, 2, 3]
    page.select_option("#x", "steps")
    assert page.evaluate(f"{heard}.x") == [50000, 100000, 150000]
    page.select_option("#x", "hours")
    assert page.evaluate(f"{heard}.x") == pytest.approx([3 / 3600, 6 / 3600, 9 / 3600])
    # bvn, which is drawn last, smoothed: 0.5 of the value before and 0.5 of this one.
    page.evaluate("smoothing.value = 0.5; smoothing.dispatchEvent(new Event('change'))")
    first, second = mean([0.0, 0.1, 0.0]), mean([0.2, 0.3, 0.1])
    expected = [first, (first + second) / 2]
    assert page.evaluate(f"{heard}.y")[:2] == pytest.approx(expected)
    page.uncheck("#methods input[value=ddpg-bvn]")
    assert lines(page, "FetchReach") == 2
    assert page.locator("#overview td").count() == 2
    page.reload()  # as --watch does: the choices stay
    assert page.input_value("#task") == "FetchReach"
    assert lines(page, "FetchReach") == 2


def test_a_name_with_markup_is_shown_as_text(open_page):
    page = open_page(fragment="")
    shown = page.locator("#experiment option").all_inner_texts()
    assert shown == [NAMED, "small"]
    page.locator("#runs summary").nth(1).click()
    assert NAMED in page.locator("#runs").inner_text()
    assert "mrn train FetchPush --seed=1 --epochs=2" in page.locator("#runs pre").inner_text()
    assert page.evaluate("window.broken") is None


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_it_fits_a_phone_and_a_wide_screen(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    plot = page.locator("#curves .plot").first.bounding_box()
    assert 320 <= plot["width"] <= width
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 24, 31)" if scheme == "dark" else "rgb(255, 255, 255)")
    boxes = [box.bounding_box() for box in page.locator("#curves .plot").all()]
    aside = boxes[1]["x"] >= boxes[0]["x"] + boxes[0]["width"]
    assert aside == (width == 1600)


def test_it_is_one_file_of_moderate_size_with_its_videos(open_page, tmp_path):
    page = open_page()
    assert page.locator("#video-list img").get_attribute("src") == "data:image/gif;base64,R0lGODlh"
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert Path(tmp_path / "index.html").stat().st_size < 8e6
