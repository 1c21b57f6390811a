"""The pages of the course and of the race in headless Chromium: what they say, what they ask for, how they answer to keys.

    browser.py PROGRAM FIGURES FOLDER

Writes the course in both languages into FOLDER, and looks at each page at 1280 and at 390 pixels.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTHS = {1280: 800, 390: 844}
MAX_BYTES = 500_000
MAX_SECONDS = 20
TOLERANCE = 1e-5
CALM = [("prefers-reduced-motion", "reduce")]  # nothing scrolls on while it is looked at

# Which page shows which of the documents' figures.
FIGURE_PAGES = {
    "rnn_by_hand": "rnn-step",
    "rnn_bottleneck/mean_cosine_by_length": "rnn-bottleneck",
    "lstm_memory/rnn": "lstm-memory",
    "lstm_memory/lstm_forget_bias_1": "lstm-memory",
    "lstm_memory/lstm_forget_bias_6": "lstm-memory",
    "alignment/weights": "alignment",
    "projection_flips_ranking": "projection",
    "matmul_by_hand": "matmul",
    "qkv_projection/X": "qkv",
    "qkv_projection/Q": "qkv",
    "qkv_projection/K": "qkv",
    "qkv_projection/V": "qkv",
    "word_vectors/X": "word-vectors",
    "word_vectors/scores": "word-vectors",
    "word_vectors/weights": "word-vectors",
    "word_vectors/Z": "word-vectors",
    "word_vectors/Z_plus_X": "word-vectors",
    "word_vectors/causal_weights": "mask",
    "positional_encoding/value": "positions",
}

# Which page speaks of which other lessons; word-vectors does in the answer, too.
REFERENCES = {
    "rnn-step": ["matmul"],
    "lstm-memory": ["rnn-bottleneck"],
    "projection": ["word-vectors", "matmul"],
    "word-vectors": ["heads", "initialisation"] * 2,
    "mask": ["word-vectors"],
    "memory": ["softmax"],
    "positions": ["mask"],
    "parameters": ["serial-steps"],
}

failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(word) for word in what))
        print("FAILED:", failures[-1], flush=True)


# ---- the program -----------------------------------------------------------------------------------------------------


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, "CLATTN_DEVICE": "native"})
    check(done.returncode == 0, *arguments, ":", done.stderr)
    return done.stdout


def lesson_names(program):
    return re.findall(r"^  (\S+) +\d+ min", run(program, "lesson", "--lang", "en"), re.MULTILINE)


# ---- the browser -----------------------------------------------------------------------------------------------------


class Browser:
    def __init__(self):
        options = Options()
        for argument in ["--headless=new", "--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage"]:
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # Chromium's sandbox refuses root
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("chromedriver"), options=options)

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def open(self, path, width, features=()):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=WIDTHS[width], deviceScaleFactor=1, mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", media="", features=[{"name": n, "value": v} for n, v in features])
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(path.as_uri())

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def press(self, key):
        ActionChains(self.driver).send_keys(key).perform()

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self):
        return self.script("return document.querySelector('.count').textContent")

    def picture(self):
        """A number that tells what is seen of the lesson: every element that is shown, with its attributes."""
        return self.script("""const copy = document.querySelector("main").cloneNode(true);
            copy.querySelectorAll("[hidden], details").forEach(node => node.remove());
            let hash = 0;
            for (const letter of copy.innerHTML) hash = Math.imul(hash, 31) + letter.codePointAt(0) | 0;
            return hash""")

    def words(self):
        """The texts of the page, apart from each other."""
        return self.script("return Array.from(document.querySelectorAll('main *')).filter(n => n.childElementCount === 0 || "
                           "n.matches('p')).map(n => n.textContent).join(' \\n ')")


# ---- pages -----------------------------------------------------------------------------------------------------------


def numbers_of(text):
    found = re.findall(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-−+]?\d+)?", text)
    return sorted(float(number.replace("−", "-").replace(",", "")) for number in found)


def leaves(value):
    if isinstance(value, dict):
        value = [item for key, item in value.items()]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def check_figures(figures, name, text):
    numbers = numbers_of(text)
    for path, page in FIGURE_PAGES.items():
        if page != name:
            continue
        value = figures
        for key in path.split("/"):
            value = value[key]
        for figure in leaves(value):
            near = any(abs(number - figure) <= TOLERANCE * max(1, abs(figure)) for number in numbers)
            check(near, name, ":", path, figure, "is not on the page")


def check_parameters(figures, text):
    """The page computes what the documents' formulas say, at the width that its plot ends at."""
    numbers = numbers_of(text)
    sizes = {"input_dim": 1024, "hidden_dim": 1024, "head_dim": 128, "num_heads": 8}
    for formula in figures["parameters"].values():
        value = eval(formula, {"__builtins__": {}}, sizes)  # pylint: disable=eval-used # of our own figures
        check(value in numbers, "parameters :", formula, "=", value, "is not on the page")


def check_stepping(browser, where):
    last = int(browser.count().split("/")[1])
    check(last > 0, where, ": has no steps")
    browser.press(Keys.HOME)
    seen = [browser.picture()]
    for step in range(1, last + 1):
        browser.press(Keys.ARROW_RIGHT)
        seen.append(browser.picture())
        check(browser.count() == f"{step} / {last}", where, ": → leads to", browser.count())
        check(seen[step] != seen[step - 1], where, ": step", step, "changes nothing")
    browser.press(Keys.ARROW_LEFT)
    check(browser.count() == f"{last - 1} / {last}", where, ": ← leads to", browser.count())
    browser.press(Keys.END)
    check(browser.count() == f"{last} / {last}", where, ": End leads to", browser.count())


def check_question(browser, where):
    answer, button = browser.find(".card .answer"), browser.find(".reveal")
    check(not answer.is_displayed(), where, ": the answer is there before it is asked for")
    browser.script("arguments[0].click()", button)
    check(answer.is_displayed() and answer.text, where, ": the answer does not come")
    check(browser.find(".misconception .fact").get_attribute("textContent"), where, ": no misconception is answered")


def check_pointing(browser, where):
    cells = browser.driver.find_elements(By.CSS_SELECTOR, "svg.map .cell")
    if not cells:
        return
    before = browser.find(".explanation").text
    x, y = browser.script("""arguments[0].scrollIntoView({ block: "center", behavior: "instant" });
        const box = arguments[0].getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]""", cells[-1])
    browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    after = browser.find(".explanation").text
    check(after != before and any(sign in after for sign in "=≈"), where, ": pointing at a cell says", after)


def check_figures_described(browser, where):
    bare = browser.script("""return Array.from(document.querySelectorAll("figure"))
        .filter(f => !f.querySelector("table") || !f.querySelector(".summary, .unseen") || !f.querySelector("figcaption").textContent)
        .map(f => f.id)""")
    check(not bare, where, ": figures without a title, a summary or a table:", bare)
    bare = browser.script("return Array.from(document.querySelectorAll('svg.map:not(.ledger)')).filter(s => !s.querySelector('.scale text')).length")
    check(bare == 0, where, ": maps without a scale")


CONTRAST = """
    const linear = part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
    const parts = colour => (colour.match(/[\\d.]+/g) ?? []).map(Number);
    const luminance = colour => parts(colour).slice(0, 3).reduce((sum, part, n) => sum + [.2126, .7152, .0722][n] * linear(part / 255), 0);
    const solid = colour => /^rgb/.test(colour) && (parts(colour)[3] ?? 1) > 0;
    const style = node => getComputedStyle(node);
    function behind(node) { // a cell or a node of a picture has a shape of its own behind it
        const shape = node.closest("g.cell, g.node.done")?.querySelector("rect, circle");
        if (shape && node.matches(".cell text, text.step") && solid(style(shape).fill)) return style(shape).fill;
        for (let at = node; at; at = at.parentElement) if (solid(style(at).backgroundColor)) return style(at).backgroundColor;
        return "rgb(255, 255, 255)";
    }
    const bad = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const node = text.parentElement;
        if (!text.data.trim() || node.matches("script") || !node.checkVisibility() || node.closest(".unseen")) continue;
        const shape = node.closest("svg text"), front = shape ? style(node).fill : style(node).color;
        const [low, high] = [luminance(front), luminance(behind(shape ?? node))].sort((a, b) => a - b);
        if ((high + .05) / (low + .05) < 4.5) bad.push(`${text.data.trim().slice(0, 30)}: ${((high + .05) / (low + .05)).toFixed(2)}`);
    }
    return bad"""


def check_contrast(browser, where, path):
    """Every text stands out from what is behind it by 4.5 to 1, in both themes."""
    for theme in ("light", "dark"):
        browser.open(path, 1280, [*CALM, ("prefers-color-scheme", theme)])
        browser.press(Keys.END)
        bad = browser.script(CONTRAST)
        check(not bad, where, ":", theme, ": too little contrast:", sorted(set(bad)))


def check_page(browser, path, width, figures):
    where = f"{path.parent.name}/{path.name} at {width}"
    browser.open(path, width, CALM)
    check(path.stat().st_size <= MAX_BYTES, where, ": has", path.stat().st_size, "bytes")
    if path.stem != "index":
        check(browser.count().startswith("0 /"), where, ": begins at", browser.count())
        if width == 1280 and path.parent.name == "zh":  # steps are the same in both languages
            check_stepping(browser, where)
        if width == 1280:
            check_figures(figures, path.stem, browser.words())
        browser.press(Keys.END)
        check_figures_described(browser, where)
        if width == 1280:
            check_pointing(browser, where)
            check_question(browser, where)
    if path.stem == "parameters":
        check_parameters(figures, browser.words())
    policy = browser.script("return document.querySelector('meta[http-equiv=Content-Security-Policy]')?.content ?? ''")
    check(policy.startswith("default-src 'none'") and "unsafe" not in policy, where, ": its policy is", policy)
    wide = browser.script("return document.documentElement.scrollWidth")
    check(wide <= width, where, ": is", wide, "pixels wide")
    if width == 1280 and path.parent.name == "en":  # the colours are the same in both languages
        check_contrast(browser, where, path)
    for complaint in browser.complaints():
        check(False, where, ":", complaint)
    asked = [url for url in browser.requests() if url != path.as_uri()]
    check(not asked, where, ": asks for", asked)


# ---- the course ------------------------------------------------------------------------------------------------------


def check_course(browser, folder, names):
    browser.open(folder / "index.html", 1280)
    links = browser.script("return Array.from(document.querySelectorAll('.course a')).map(a => a.getAttribute('href'))")
    check(links == [f"{name}.html" for name in names], folder.name, ": the course lists", links)
    minutes = browser.script("return Array.from(document.querySelectorAll('.course .minutes')).map(m => parseInt(m.textContent))")
    check(len(minutes) == len(names) and all(m > 0 for m in minutes), folder.name, ": minutes", minutes)
    rows = browser.script("return Array.from(document.querySelectorAll('#symbols + .scroll tbody tr'), r => r.querySelector('a')?.getAttribute('href'))")
    check(len(rows) > 30 and set(rows) <= set(links), folder.name, ": the symbols lead to", rows)
    for n, name in enumerate(names):
        browser.open(folder / f"{name}.html", 1280)
        links = browser.script("return Array.from(document.querySelectorAll('nav.foot a')).map(a => a.getAttribute('href'))")
        expected = [f"{names[n - 1]}.html"] * (n > 0) + ["index.html", "index.html#symbols"] + [f"{other}.html" for other in names[n + 1:n + 2]]
        check(links == expected, folder.name, name, ": leads to", links)
        links = browser.script("return Array.from(document.querySelectorAll('main a')).map(a => a.getAttribute('href'))")
        expected = [f"{other}.html" for other in REFERENCES.get(name, [])]
        check(links == expected, folder.name, name, ": refers to", links)


# ---- behaviour -------------------------------------------------------------------------------------------------------


def check_playing(browser, path):
    browser.open(path, 1280)
    before = browser.count(), browser.picture()
    time.sleep(.6)
    check((browser.count(), browser.picture()) == before, "playing: something moves by itself")
    browser.press(Keys.SPACE)
    moved = browser.count()
    check(moved != before[0], "playing: SPACE does not play")
    deadline = time.monotonic() + 10
    while browser.count() == moved and time.monotonic() < deadline:
        time.sleep(.1)
    check(browser.count() != moved, "playing: it stops by itself")
    browser.press(Keys.SPACE)
    stopped = browser.count()
    time.sleep(4)
    check(browser.count() == stopped, "playing: SPACE does not pause")
    browser.script("const s = document.querySelector('.controls input'); s.value = 1; s.dispatchEvent(new Event('input'))")
    check(browser.count().startswith("1 /"), "playing: the slider leads to", browser.count())


def check_full_screen(browser, path):
    browser.open(path, 1280)
    for full in (True, False):
        browser.press("f")
        deadline = time.monotonic() + 5
        while browser.script("return Boolean(document.fullscreenElement)") != full and time.monotonic() < deadline:
            time.sleep(.1)
        check(browser.script("return Boolean(document.fullscreenElement)") == full, "full screen: F leads to", not full)


def check_calm(browser, path):
    """The question comes first; one button shows all, and nothing moves on the way."""
    browser.open(path, 1280, CALM)
    now, last = browser.count().split(" / ")
    check(now == "0", "reduced motion: the page begins at", now)
    later = browser.script("return Array.from(document.querySelectorAll('main figure, .misconception')).some(n => n.checkVisibility())")
    check(not later and not browser.find(".answer").is_displayed(), "reduced motion: there are results before the question is answered")
    browser.script("document.querySelector('.finish').click()")
    check(browser.count() == f"{last} / {last}", "reduced motion: all results lead to", browser.count())
    check(not browser.find(".answer").is_displayed(), "reduced motion: the answer comes with them")
    moving = browser.script("return document.getAnimations().length")
    check(moving == 0, "reduced motion:", moving, "things move")
    browser.press(Keys.ARROW_LEFT)
    check(browser.count() == f"{int(last) - 1} / {last}", "reduced motion: ← leads to", browser.count())


def check_secret(browser, path):
    """Nothing on a page says what the first product is before it is computed, neither to eyes nor to ears."""
    browser.open(path, 1280, CALM)
    seen = browser.script("""const shown = Array.from(document.querySelectorAll('main p, main figcaption, main svg text'))
        .filter(node => node.checkVisibility({ visibilityProperty: true })).map(node => node.textContent);
        return [...shown, ...Array.from(document.querySelectorAll('main svg')).map(svg => svg.getAttribute('aria-label') ?? '')]""")
    check(len(seen) > 10 and not any(re.search(r"\b19\b", text) for text in seen), "secret: 19 stands in", [text for text in seen if "19" in text])
    browser.press(Keys.END)
    label = browser.script("return document.querySelector('.map[aria-label*=\"19\"]')?.getAttribute('aria-label') ?? ''")
    check("19" in label, "secret: the product is told to nobody at the end")


def check_focus(browser, path):
    """A map that is reached by keys is read by keys, and gives them back."""
    browser.open(path, 1280)
    browser.press(Keys.END)
    at = browser.count()
    said = []
    browser.script("document.querySelector('#block-weights svg').focus()")
    for key in ["", Keys.ARROW_RIGHT, Keys.ARROW_DOWN]:
        if key:
            browser.press(key)
        said.append(browser.find(".explanation").text)
    check(len(set(said)) == len(said) and all("≈" in text for text in said), "focus: the map says", said)
    check(browser.count() == at, "focus: reading a map steps, too")
    browser.press(Keys.ESCAPE)
    browser.press(Keys.ARROW_LEFT)
    check(browser.count() != at, "focus: ← does not step after Escape")


def check_turning(browser, path):
    browser.open(path, 1280)
    browser.press(Keys.END)
    before, at = browser.script("const s = document.querySelector('svg.space'); s.focus(); return s.innerHTML"), browser.count()
    browser.press(Keys.ARROW_RIGHT)
    check(browser.script("return document.querySelector('svg.space').innerHTML") != before, "space: keys do not turn it")
    check(browser.count() == at, "space: turning steps, too")


# How many points of arrows lie in the middle of a name.
COVERED = """
const names = Array.from(document.querySelectorAll('#block-arrows text.word'), name => name.getBBox());
const points = Array.from(document.querySelectorAll('#block-arrows line.arrow'), line => Array.from({ length: 21 }, (_, n) => n / 20)
    .map(t => ['x', 'y'].map(d => (1 - t) * line.getAttribute(d + 1) + t * line.getAttribute(d + 2)))).flat();
const lies = ([x, y], { x: left, y: top, width, height }) =>
    x > left + 2 && x < left + width - 2 && y > top + height * .15 && y < top + height * .85;
return [names.length, points.length, points.filter(point => names.some(name => lies(point, name))).length];
"""


def check_names(browser, path):
    for width in WIDTHS:
        browser.open(path, width, CALM)
        browser.press(Keys.END)
        names, points, covered = browser.script(COVERED)
        check(names == 5 and points == 5 * 21 and covered == 0, path, width, ": names and arrows:", names, points, covered)


def check_sliders(browser, path):
    browser.open(path, 1280)
    browser.press(Keys.END)
    last = "return Array.from(document.querySelectorAll('#block-projected .cell text')).map(t => t.textContent).join(' ')"
    before = browser.script(last)
    move = "const s = document.querySelector('#block-w_q .sliders input'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    browser.script(move, 0)
    check(browser.script(last) != before, "sliders: the scores stay")
    browser.script("document.querySelector('#block-w_q .sliders button').click()")
    check(browser.script(last) == before, "sliders: Reset leaves", browser.script(last), "instead of", before)


def check_any_count(browser, path):
    """Parameters for any sizes: 3 · 768 · 64 · 12, GPT-2's."""
    browser.open(path, 1280)
    browser.press(Keys.END)
    for name, value in {"d_in": 768, "d_k": 64, "heads": 12}.items():
        browser.script("const s = document.querySelector(`#block-${arguments[0]} .sliders input`); s.value = arguments[1]; "
                       "s.dispatchEvent(new Event('input'))", name, value)
    count = browser.script("return document.querySelector('#block-count .cell text').textContent")
    check(count == "1,769,472", "any count: it is", count)


def check_lanes(browser, path):
    """Attention's words arrive together, the recurrence's one after another; both counters end full."""
    browser.open(path, 1280, CALM)
    counters = "return Array.from(document.querySelectorAll('.lane .tally')).map(t => parseInt(t.textContent))"
    browser.press(Keys.HOME)
    seen = [browser.script(counters)]
    for _ in range(60):
        browser.press(Keys.ARROW_RIGHT)
        seen.append(browser.script(counters))
    recurrence, attention = zip(*seen)
    check(seen[0] == [0, 0] and seen[-1] == [64, 64], "lanes: they begin at", seen[0], "and end at", seen[-1])
    check(set(attention) == {0, 64}, "lanes: attention's words are", attention)
    check(list(recurrence) == sorted(recurrence) and len(set(recurrence)) > 2, "lanes: the recurrence's words are", recurrence)


def check_waiting(browser, path):
    """Attention's results stand in one column, each with an arrow from every word; the recurrence's each in its own."""
    browser.open(path, 1280, CALM)
    browser.press(Keys.END)
    nodes = browser.script("""return Array.from(document.querySelectorAll('svg.graph g.node:not(.input)')).map(n => {
        const box = n.querySelector('circle').getBoundingClientRect(); return [Math.round(box.x), Math.round(box.y)] })""")
    words = len(nodes) // 2
    check(len({x for x, _ in nodes[:words]}) == words, "waiting: the recurrence's results stand at", nodes[:words])
    check(len({x for x, _ in nodes[words:]}) == 1 and len({y for _, y in nodes[words:]}) == words, "waiting: attention's stand at", nodes[words:])
    rows = browser.script("return Array.from(document.querySelectorAll('#block-waiting tbody tr')).map(r => r.lastChild.textContent.split(', ').length)")
    check(rows == [1] + [2] * (words - 1) + [words] * words, "waiting: results wait for so many:", rows)
    edges = browser.script("return document.querySelectorAll('svg.graph path.edge.done').length")
    check(edges == sum(rows), "waiting:", edges, "arrows for", sum(rows))


def check_printing(browser, path):
    browser.open(path, 1280)
    browser.command("Emulation.setEmulatedMedia", media="print")
    browser.script("dispatchEvent(new Event('beforeprint'))")
    check(not browser.find(".player").is_displayed(), "print: the player is there")
    check(not browser.find(".answer").is_displayed(), "print: the answer stands beside the question")
    check(browser.find(".answers p").is_displayed() and browser.find(".answers p").text, "print: the answer is not there")
    hidden = browser.script("return Array.from(document.querySelectorAll('main figure')).filter(f => f.hidden).length")
    check(hidden == 0, "print:", hidden, "figures are not there")
    browser.script("dispatchEvent(new Event('afterprint'))")
    browser.command("Emulation.setEmulatedMedia", media="")
    check(browser.count().startswith("0 /"), "print: the page comes back at", browser.count())


def check_own_words(browser, program, folder):
    """What a student writes is text, whatever it says."""
    path = folder / "words.html"
    plain = folder / "zh" / "word-vectors.html"
    browser.open(plain, 1280)
    scripts = browser.script("return document.scripts.length")
    attack = """</script><script>document.title="gone"</script> <!-- <b>&amp; "x" 'y' \\u003c]]> <img/src=x:/ onerror=alert(1)>"""
    run(program, "lesson", "word-vectors", "--lang", "en", "--text", attack, "--html", str(path))
    browser.open(path, 1280)
    browser.press(Keys.END)
    check(browser.script("return document.scripts.length") == scripts, "own words: there are more scripts")
    check(browser.driver.title != "gone", "own words: they ran")
    check(browser.script("return document.images.length + document.querySelectorAll('main p b b').length") == 0, "own words: they became elements")
    words = browser.words()
    for word in attack.split():
        check(word in words, "own words:", word, "is not on the page")
    for complaint in browser.complaints():
        check(False, "own words:", complaint)

    run(program, "lesson", "word-vectors", "--lang", "en", "--text", " ".join(f"w{n}" for n in range(200)), "--html", str(path))
    check(path.stat().st_size <= MAX_BYTES, "200 words:", path.stat().st_size, "bytes")
    for width in WIDTHS:
        browser.open(path, width)
        browser.press(Keys.END)
        check("the mean of 4 × 4" in browser.words(), "200 words: nothing says that the map is averaged")
        check(browser.script("return document.documentElement.scrollWidth") <= width, "200 words: too wide at", width)


def main(program, figures, folder):
    figures = json.loads(pathlib.Path(figures).read_text(encoding="utf-8"))
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = lesson_names(program)
    for language in ("zh", "en"):
        begun = time.monotonic()
        run(program, "lesson", "all", "--lang", language, "--html", str(folder / language))
        check(time.monotonic() - begun <= MAX_SECONDS, "the course took", time.monotonic() - begun, "s")
        run(program, "race", "--len", "64", "--seconds", "2", "--lang", language, "--html", str(folder / language / "race.html"))
    browser = Browser()
    try:
        for language in ("zh", "en"):
            for name in ["index", *names, "race"]:
                for width in WIDTHS:
                    check_page(browser, folder / language / f"{name}.html", width, figures)
        check_course(browser, folder / "en", names)
        check_playing(browser, folder / "zh" / "alignment.html")
        check_full_screen(browser, folder / "zh" / "alignment.html")
        check_calm(browser, folder / "zh" / "alignment.html")
        check_secret(browser, folder / "en" / "matmul.html")
        check_focus(browser, folder / "zh" / "word-vectors.html")
        check_turning(browser, folder / "zh" / "word-vectors.html")
        check_names(browser, folder / "zh" / "word-vectors.html")
        check_sliders(browser, folder / "zh" / "projection.html")
        check_any_count(browser, folder / "en" / "qkv.html")
        check_waiting(browser, folder / "en" / "serial-steps.html")
        check_lanes(browser, folder / "en" / "race.html")
        check_printing(browser, folder / "en" / "projection.html")
        check_own_words(browser, program, folder)
    finally:
        browser.driver.quit()
    print(f"{2 * (len(names) + 2)} pages at {len(WIDTHS)} widths: {len(failures)} failures")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
