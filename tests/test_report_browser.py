"""The report in a real browser, without a network: light and dark, on a phone and on a desk."""

from __future__ import annotations

import io

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from browser import Browser, executable
from slimsvm import frontier
from slimsvm.report import write_report
from small_models import FEW_ITERATIONS, slim

pytestmark = [
    pytest.mark.filterwarnings(FEW_ITERATIONS),
    pytest.mark.skipif(executable() is None, reason="no chromium or google-chrome on PATH"),
]

PAGES = ["planar", "inputs", "images"]
every_page = pytest.mark.parametrize("name", PAGES)
WIDTHS, SCHEMES = (360, 1400), ("light", "dark")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports with a frontier, with long names, and with images."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = make_moons(200, noise=0.25, random_state=0)
    found = frontier(X[:100], y[:100], sizes=(2, 4, 8), estimator=slim(gamma=2.0, probability=True))
    write_report(folder / "planar.html", found.best(), X[100:], y[100:], frontier=found, made={"command": "x" * 300})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 30))
    labels = np.array(["a class with a name of many words", "<script>", "unbreakable" * 12])
    y = labels[np.digitize(X[:, 0], [-0.5, 0.5])]
    names = [f"input {k} " + "with a long name " * 3 for k in range(30)]
    model = make_pipeline(StandardScaler(), slim(5, gamma=0.05, probability=True)).fit(X[:80], y[:80])
    words = {"title": "W" * 120, "made": {"key" * 30: "value" * 50}, "names": names}
    write_report(folder / "inputs.html", model, X[80:], y[80:], **words)
    X, y = load_digits(return_X_y=True)
    write_report(
        folder / "images.html", slim(12, gamma=0.001).fit(X[:200], y[:200]), X[200:400], y[200:400], shape=(8, 8)
    )
    return {name: folder / f"{name}.html" for name in PAGES}


def pixels(png):
    matplotlib = pytest.importorskip("matplotlib.image")
    return matplotlib.imread(io.BytesIO(png))[..., :3]


@every_page
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_fits_and_is_quiet(browser, pages, name, width, scheme):
    """No scrolling sideways, also with all details open; nothing on the console; nothing asked for but itself."""
    browser.open(pages[name], width, scheme)
    assert browser.value("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    for opened in ("0", "document.querySelectorAll('details').forEach(d => d.open = true)"):
        browser.value(opened)
        assert browser.value("document.documentElement.clientWidth") == width
        assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(BEYOND) == []
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [pages[name].as_uri()]


# Elements that reach beyond the page, but for those in boxes that scroll.
BEYOND = """[...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll, pre, .skip') && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.outerHTML.slice(0, 99))"""


@every_page
@pytest.mark.parametrize("width", WIDTHS)
def test_light_is_light_and_dark_is_dark(browser, pages, name, width):
    """What is seen of the page, its head and its first picture, is not blank, and each in its own light; the ink of
    pictures stands out from the paper in both."""
    for scheme in SCHEMES:
        browser.open(pages[name], width, scheme)
        assert browser.value(CONTRAST) > 7
        for place in ("header", "figure"):
            browser.value(f"document.querySelector('{place}').scrollIntoView({{behavior: 'instant'}})")
            seen = pixels(browser.picture(whole=False))
            assert seen.std() > 0.02
            assert (np.median(seen) > 0.9) if scheme == "light" else (np.median(seen) < 0.2)


# The ratio of luminances of text in a picture and of the page, as the accessibility guidelines have it.
CONTRAST = """(() => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const pair = [getComputedStyle(document.querySelector('figure svg text')).fill,
                getComputedStyle(document.body).backgroundColor].map(light);
  return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
})()"""


@every_page
def test_text_can_be_read_on_a_phone(browser, pages, name):
    """Letters of pictures are not much smaller than print."""
    browser.open(pages[name], 360, "light")
    texts = "[...document.querySelectorAll('figure svg text')]"
    sizes = browser.value(f"{texts}.map(text => text.getBoundingClientRect().height)")
    assert len(sizes) > 5
    assert min(sizes) > 7


def test_classes_are_words_not_elements(browser, pages):
    browser.open(pages["inputs"], 1400, "light")
    assert browser.value("document.scripts.length") == 0
    assert browser.value("[...document.querySelectorAll('th')].some(t => t.textContent == '<script>')")


def test_the_page_can_be_printed(browser, pages):
    browser.open(pages["planar"], 1400, "dark")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
