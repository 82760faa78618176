"""Curves of the test page, and helpers to look at it."""

import base64
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAMED = "<script>window.broken = 1<"  # folder names cannot contain a slash
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNiAAAABgADNjd8qAAAAABJRU5ErkJggg=="
)
LATE = "loss, actor"  # a column that one seed lacks in its first epoch
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--no-first-run"]

CURVES = {
    ("FetchReach", "mrn"): [[0.1, 0.9, 1.0], [0.3, 0.7, 0.98], [0.2, 0.8, 0.97]],
    ("FetchReach", "bvn"): [[0.0, 0.2, 0.6], [0.1, 0.3, 0.4], [0.0, 0.1, 0.53]],
    ("FetchPush", "mrn"): [[0.05, 0.5, 0.9], [0.0, 0.4, 0.91]],
}

FIVE = [[0.1, 0.2, 0.3], [0.3, 0.9, 0.1], [0.4, 0.1, 0.3], [0.8, 0.5, 0.9], [0.2, 0.1, 0.2]]


def wait_until(page, condition):
    """Wait for a condition. Playwright's own wait uses eval, which the page does not allow."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(condition)
