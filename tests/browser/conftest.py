import csv
import json

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from mrn.analysis.report import write_report
from mrn.integrations.frames import encode_mp4
from mrn.runs.layout import VIDEO
from tests.browser.helpers import CHROMIUM, CURVES, FIVE, LATE, NAMED, PNG, QUIET
from tests.sweeps.helpers import write_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for (task, critic), curves in CURVES.items():
        for seed, success in enumerate(curves, start=1):
            write_run(root / "small", success, seed, task, critic=critic)
    write_run(root / "small", [0.0, 0.1], 1, "FetchPush", critic="bvn", epochs=3)  # unfinished
    for seed, success in enumerate(FIVE, start=1):
        write_run(root / "level", success, seed)
        write_run(root / "level", success[::-1], seed, critic="bvn")
    write_run(root / "search", [0.1, 0.3], 1, variant="trial-000")
    write_run(root / "search", [0.1], 1, epochs=2, variant="trial-001")
    (root / "search/trials.csv").write_text(
        "trial,state,success,evaluations,method,problem,tau\n"
        "0,complete,0.2,2,ddpg-mrn+trial-000,,<b>0.1</b>\n1,pruned,0.1,1,ddpg-mrn+trial-001,,0.5\n"
    )
    for seed in range(7):
        write_run(root / "seven", [seed * seed / 36], seed)
    write_run(root / NAMED, [0.25, 0.75], 1)
    for seed in (1, 2):
        write_run(root / "recipes", [0.2, 0.4], seed)
        write_run(root / "recipes", [k / 10 for k in range(9)], seed, recipe="fast")
        write_run(root / "stopped", [0.1, 0.9], seed, epochs=9, stop_at=0.9)
        write_run(root / "stopped", [0.1, 0.2, 0.95], seed, epochs=9, stop_at=0.9, critic="bvn")
    for seed, losses in ((1, ("", 2, 4)), (2, (4, 4, 6))):
        late = write_run(root / "late", [0.1, 0.2, 0.3], seed, env_kwargs={"reward_type": "sparse"})
        with open(late / "metrics.csv", encoding="utf-8", newline="") as text:
            head, *rows = csv.reader(text)
        rows = [[*row, loss] for row, loss in zip(rows, losses, strict=True)]
        with open(late / "metrics.csv", "w", encoding="utf-8", newline="") as text:
            csv.writer(text, lineterminator="\n").writerows([[*head, LATE], *rows])
    folder = root / "small/FetchReach/ddpg-mrn/seed-1"
    (folder / "policy.gif").write_bytes(b"GIF89a")
    (folder / "inspect.png").write_bytes(PNG)
    (folder / VIDEO).write_bytes(
        encode_mp4([np.full((32, 48, 3), 40 * k, np.uint8) for k in range(6)], 4)
    )
    about = json.loads((folder / "config.json").read_text())
    about["machine"] = {"cpu": "Z80 at 4 MHz", "cores": 1}
    (folder / "config.json").write_text(json.dumps(about))
    # A column of the algorithm, measured in two of three epochs.
    file = folder / "metrics.csv"
    head, *rows = file.read_text().splitlines()
    own = [f"{row},{value}" for row, value in zip(rows, ("", "2.5", "-1e-3"), strict=True)]
    file.write_text("\n".join([f"{head},my_loss", *own]) + "\n")
    return root


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def page_file(runs, tmp_path_factory):
    file, _ = write_report(runs, tmp_path_factory.mktemp("report"))
    return file


@pytest.fixture
def open_page(page_file, browser):
    messages, requests, contexts = [], [], []

    def opened(width=1600, scheme="light", fragment="experiment=small"):
        size = {"width": width, "height": 1000}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{page_file.as_uri()}#{fragment}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(("data:", page_file.as_uri()))] == []
