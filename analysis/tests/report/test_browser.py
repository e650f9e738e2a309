"""The page in a real browser: no error, no request, figures drawn, readable when narrow and on paper."""

from __future__ import annotations

import base64

import browser
import pytest

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium on this machine (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser.browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("width", [1280, 390])
def test_opens_without_errors_or_requests_and_without_sideways_scrolling(tab, report, width):
    tab.messages.clear()
    tab.requests.clear()
    tab.open(report.page, width)
    assert tab.messages == []
    assert [url[:60] for url in tab.requests if not url.startswith("data:")] == [report.page.as_uri()[:60]]
    assert tab.value("document.querySelectorAll('figure.live .main-svg').length") >= 8
    assert tab.value("document.documentElement.scrollWidth") <= width


def test_the_first_screen_and_the_verdicts_of_the_trials_are_in_sight(tab, report):
    tab.open(report.page, 1280, 900)
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    assert tab.value(bottom.format(".next")) <= 900
    assert tab.value(bottom.format(".warn")) <= 900
    assert not tab.value("document.querySelector('#evidence').open")
    heads = "[...document.querySelectorAll('[aria-label=Trials] th')]"
    right = tab.value(f"{heads}.find(h => h.textContent == 'verdict').getBoundingClientRect().right")
    assert 0 < right <= 1280


def test_interactive_figures_replace_the_static_ones_on_screen_only(tab, report):
    tab.open(report.page)
    shown = "getComputedStyle(document.querySelector('figure[data-plot] {}')).display"
    assert tab.value(shown.format("img")) == "none"
    assert tab.value(shown.format(".plot")) == "block"
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value(shown.format("img")) == "block"
    assert tab.value(shown.format(".plot")) == "none"
    pdf = base64.b64decode(tab.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF")
    tab.call("Emulation.setEmulatedMedia", media="")


def test_all_is_there_without_scripts(tab, report):
    """Script execution off: the pictures stay."""
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.navigate(report.page)
        root = tab.call("DOM.getDocument")["root"]["nodeId"]
        live = tab.call("DOM.querySelectorAll", nodeId=root, selector="figure.live")["nodeIds"]
        images = tab.call("DOM.querySelectorAll", nodeId=root, selector="figure img")["nodeIds"]
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert live == []
    assert len(images) >= 9


def test_a_planted_script_does_not_run(tab, report, tmp_path):
    """The policy stops what escaping might miss."""
    planted = tmp_path / "planted.html"
    attack = (
        "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'><img src='https://example.org/x.png'>"
    )
    planted.write_text(report.html.replace("<main>", f"<main>{attack}", 1))
    tab.messages.clear()
    tab.open(planted)
    assert tab.value("window.pwned === undefined")
    assert any("Content Security Policy" in m for m in tab.messages)
