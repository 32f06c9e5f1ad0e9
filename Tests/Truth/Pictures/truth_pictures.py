#!/usr/bin/env python3
"""Opens pages that `stallctl report` wrote in headless Chromium, and holds what is drawn against the store.

usage: truth_pictures.py FOLDER [--screens FOLDER]      $STALLCTL names the program

PARTS names some of its parts (widths,interactions,compare,hostile,scripts,media,size,perfetto,viewers), STORES how many stores widths are
read of. CHROMIUM and CHROMEDRIVER name the browser and its driver where they are not Debian's.
SABOTAGE=1 changes one drawn width: then it must say failed. The last line is the result:
truth pictures checks=N failed=N"""

import base64
import collections
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import lines
import perfetto
import viewers

STALLCTL = os.environ["STALLCTL"]
SABOTAGE = os.environ.get("SABOTAGE") == "1"
STEERING = {*range(0x20), 0x7f, *range(0x80, 0xa0), 0x61c, *range(0x200e, 0x2010), *range(0x2028, 0x202f), *range(0x2066, 0x206a), 0xfeff, *range(0xd800, 0xe000),
            *range(0xe0000, 0xe0080)} - {0x0a}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def open_browser(scheme="light", width=1400, scripts=True):
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
                 f"--window-size={width},1000"):
        options.add_argument(flag)
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=webdriver.ChromeService(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver")), options=options)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    set_width(browser, width)
    browser.has_scripts = scripts
    return browser


def set_width(browser, width, height=1000):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})


def address(path, anchor=""):
    return "file://" + os.path.abspath(path) + anchor


def open_page(browser, path, anchor=""):
    browser.get("about:blank")
    browser.get(address(path, anchor))
    end = time.time() + 60  # without scripts nothing is ever drawn
    while time.time() < end and getattr(browser, "has_scripts", True):
        if browser.execute_script("return document.documentElement.dataset.ok !== undefined"):
            break
        time.sleep(0.02)


def requests(browser):
    """The addresses that were asked for since the last look, without the page itself."""
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:///", "data:", "about:")) or message["params"].get("type") not in ("Document", None):
                found.append(url)
    return found


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def report(store, path, *more):
    done = subprocess.run([STALLCTL, "report", "--store", store, "-o", path, *more], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def rows_of(browser, index=0):
    """The drawn widths of each row of a flame graph, in parts of the graph's own width."""
    return browser.execute_script("""
        const svg = document.querySelectorAll(document.documentElement.classList.contains('one')
          ? '.group.at svg.flame:not(.timeline)' : '#overview svg.flame')[arguments[0]];
        const whole = Number(svg.getAttribute('viewBox').split(' ')[2]);
        const rows = {};
        for (const rect of svg.querySelectorAll('rect')) {
          const row = Number(rect.getAttribute('y')) / 20;
          rows[row] = (rows[row] || 0) + Number(rect.getAttribute('width')) / whole;
        }
        return rows;""", index)


class Truth:
    """What each row of a group's flame graph must add up to, from the reports themselves."""

    def __init__(self, store):
        out = subprocess.run([STALLCTL, "export", "--store", store, "--format", "jsonl"], capture_output=True, check=True).stdout
        self.rows = collections.defaultdict(lambda: collections.Counter())
        self.total = collections.Counter()
        for line in out.decode().splitlines():
            stall = json.loads(line)
            if stall["verdict"] != "stalled":
                continue
            seen = [s for s in stall["samples"] if not s["late"] and s["stack"]]
            weights = [max(round(s["weight_ms"] * 1e6), 1) for s in seen]
            for group in (stall["signature"], "all"):
                self.total[group] += stall["duration_ms"]
                if not seen:
                    self.rows[group][0] += stall["duration_ms"]
                for sample, weight in zip(seen, weights):
                    path, last = 0, None
                    for frame in reversed(sample["stack"]):
                        name = (frame["function"], frame["image"])
                        if name != last:  # a function that calls itself is one step
                            self.rows[group][path] += stall["duration_ms"] * weight / sum(weights)
                            path, last = path + 1, name


def is_equal(drawn, truth, total):
    return set(map(int, drawn)) == set(truth) and all(abs(share * total - truth[int(row)]) <= total * 0.002 + 0.01 for row, share in drawn.items())


def check_widths(checks, folder, count=20):
    """Every row of every group of random stores."""
    browser = open_browser()
    try:
        for seed in range(count):
            store = lines.random_store(STALLCTL, folder, seed, 60)
            page = report(store, os.path.join(folder, f"random-{seed}.html"))
            truth = Truth(store)
            open_page(browser, page)
            ids = browser.execute_script("return [...document.querySelectorAll('tr[data-g]')].map(row => row.dataset.g)")
            wrong = []
            for group in ["all"] + ids:
                browser.execute_script("location.hash = arguments[0]", "#" if group == "all" else "#g=" + group)
                wait(browser, "return document.querySelector(arguments[0]) !== null", "#overview svg.flame" if group == "all" else ".group.at svg.flame")
                time.sleep(0.02)
                if SABOTAGE and seed == 0 and group == "all":
                    browser.execute_script("const r = document.querySelector('#overview svg.flame rect'); r.setAttribute('width', r.getAttribute('width') * 0.97)")
                if not is_equal(rows_of(browser), truth.rows[group], truth.total[group]):
                    wrong.append(group)
            checks.expect(not wrong and len(ids) == len(truth.total) - 1, f"widths of store {seed}: {wrong}, {len(ids)} groups of {len(truth.total) - 1}")
            checks.expect(not complaints(browser) and not requests(browser), f"store {seed}: the console or the network is not quiet")
    finally:
        browser.quit()


def wait(browser, script, *arguments, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        if browser.execute_script(script, *arguments):
            return True
        time.sleep(0.02)
    return False


def check_interactions(checks, page, scheme):
    def expect(condition, text):
        checks.expect(condition, f"{scheme}: {text}")
    browser = open_browser(scheme)
    try:
        open_page(browser, page)
        js = browser.execute_script
        expect(js("return document.documentElement.dataset.ok") is not None, "the script ran to its end")
        expect(js("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark"), "the colour scheme is the one asked for")
        ink = js("const s = getComputedStyle(document.documentElement); return [s.color, s.backgroundColor].map(c => c.match(/[0-9]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))")
        expect((ink[0] < ink[1]) == (scheme == "light"), f"light ink on a dark page or the other way round: {ink}")
        body = browser.find_element(By.TAG_NAME, "body")
        # 1: a row opens its group, and the address says so.
        row = browser.find_elements(By.CSS_SELECTOR, "tr[data-g]")[1]
        group = row.get_attribute("data-g")
        row.find_element(By.CSS_SELECTOR, "td.lost").click()
        expect(js("return location.hash") == "#g=" + group and js("return getComputedStyle(document.getElementById('g=' + arguments[0])).display", group) == "block",
               "a click on a row opens its group")
        # 2: back.
        browser.back()
        expect(wait(browser, "return !document.documentElement.classList.contains('one')"), "back leads to all groups")
        # 3: keys choose and open.
        body.send_keys("j")
        expect(js("return document.querySelectorAll('tr.at').length") == 1, "j marks a row")
        body.send_keys("j")
        body.send_keys("k")
        chosen = js("return document.querySelector('tr.at').dataset.g")
        body.send_keys(Keys.ENTER)
        expect(wait(browser, "return location.hash === '#g=' + arguments[0]", chosen), "Enter opens the marked group")
        body.send_keys("k")
        expect(wait(browser, "return location.hash !== '#g=' + arguments[0] && location.hash.startsWith('#g=')", chosen), "k leads to another group")
        body.send_keys("j")
        expect(wait(browser, "return location.hash === '#g=' + arguments[0]", chosen), "j leads to the next group")
        first = js("return document.querySelector('tr[data-g]').dataset.g")
        # 4: a click zooms, and the clicked call then has the whole width.
        js("location.hash = '#g=' + arguments[0]", first)
        wait(browser, "return document.querySelector('.group.at svg.flame g[data-n]') !== null")
        svg = browser.find_element(By.CSS_SELECTOR, ".group.at svg.flame:not(.timeline)")
        calls = svg.find_elements(By.CSS_SELECTOR, "g[data-n]")
        narrow = min((g for g in calls if float(g.find_element(By.TAG_NAME, "rect").get_attribute("width")) > 30),
                     key=lambda g: float(g.find_element(By.TAG_NAME, "rect").get_attribute("width")))
        name = narrow.get_attribute("aria-label")
        level = narrow.get_attribute("aria-level")
        before = float(narrow.find_element(By.TAG_NAME, "rect").get_attribute("width"))
        js("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", narrow)
        widths = js("return [...arguments[0].querySelectorAll(`g[aria-level='${arguments[1]}']`)].map(g => [g.getAttribute('aria-label'), Number(g.querySelector('rect').getAttribute('width'))])", svg, level)
        whole = float(svg.get_dom_attribute("viewBox").split()[2])
        expect(any(label == name and abs(width - whole) < 0.5 for label, width in widths) and before < whole, "a click zooms a call to the whole width")
        reset = browser.find_element(By.XPATH, "//section[contains(@class,'at')]//button[text()='Zoom out']")
        expect(reset.is_enabled(), "Zoom out can be pressed then")
        # 5: Esc zooms out.
        body.send_keys(Keys.ESCAPE)
        expect(not reset.is_enabled() and js("return location.hash") == "#g=" + first, "Esc zooms out and stays in the group")
        # 6: search with its matched share.
        body.send_keys("/")
        search = browser.switch_to.active_element
        expect(search.tag_name == "input", "/ leads to the search")
        search.send_keys("main")
        found = js("return document.querySelector('.group.at .found').textContent")
        share = js("""const svg = document.querySelector('.group.at svg.flame'); const whole = Number(svg.getAttribute('viewBox').split(' ')[2]);
            const hits = [...svg.querySelectorAll('g.match rect')].map(r => [Number(r.getAttribute('x')), Number(r.getAttribute('width'))]).sort((a, b) => a[0] - b[0]);
            let end = 0, sum = 0; for (const [x, w] of hits) { sum += Math.max(0, x + w - Math.max(end, x)); end = Math.max(end, x + w); } return sum / whole;""")
        said = re.search(r"([\d.]+) %", found)
        expect(bool(said) and abs(float(said[1]) - share * 100) < 0.6, f"the search says {found!r}, {share:.3f} is marked")
        search.send_keys(Keys.CONTROL, "a")
        search.send_keys("no such function")
        expect(js("return document.querySelector('.group.at .found').textContent") == "no match", "a search without a match says so")
        search.send_keys(Keys.ESCAPE)
        expect(js("return document.querySelectorAll('.group.at g.match').length") == 0, "Esc clears the search")
        # 7: inverted.
        rows = rows_of(browser)
        body.send_keys("i")
        turned = rows_of(browser)
        expect(abs(turned["0"] - rows["0"]) < 0.002 and js("return document.querySelector('.group.at button[aria-pressed]').getAttribute('aria-pressed')") == "true",
               "inverted, the first row is as wide")
        body.send_keys("i")
        expect(rows_of(browser) == rows, "inverted twice is as before")
        # 8: arrows move between calls.
        js("document.querySelector('.group.at svg.flame g[data-n]').focus()")
        browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        expect(browser.switch_to.active_element.get_attribute("aria-level") == "2", "an arrow moves to what is called")
        caption = js("return document.querySelector('.group.at figure.flamegraph figcaption').textContent")
        expect(re.search(r"\d ?(ms|s|m), [\d.]+ %", caption) is not None, f"a call that has the focus is told of: {caption!r}")
        browser.switch_to.active_element.send_keys(Keys.ARROW_UP)
        expect(browser.switch_to.active_element.get_attribute("aria-level") == "1", "and back")
        # 9: the timeline, the trend, the durations.
        expect(js("return document.querySelectorAll('.group.at svg.timeline rect').length") > 0, "the example's samples are drawn in time")
        expect(js("return document.querySelectorAll('.group.at svg.bars rect').length") > 2, "trend and durations are drawn")
        expect(js("return document.querySelectorAll('.group.at svg.bars line.mark').length") >= 3, "versions are marked in the trend")
        held = js("""const data = JSON.parse(document.getElementById('data').textContent); const g = data.groups.find(g => g.locks.length && g.example && g.example.holder);
            if (!g) return null; location.hash = '#g=' + g.id; return g.locks.length;""")
        if held:
            expect(wait(browser, "return document.querySelectorAll('.group.at svg.locks path').length === arguments[0]", held), "who waited for whom is drawn")
            expect(js("return document.querySelectorAll('.group.at svg.timeline .holder rect').length") > 0, "the holder is drawn beneath the waiter")
        # 10: a command is copied or selected.
        button = browser.find_element(By.CSS_SELECTOR, ".group.at button[data-copy]")
        button.click()
        expect(wait(browser, "return ['Copied', 'Selected'].includes(arguments[0].textContent)", button), "the command is copied, or selected")
        # 11: Esc leads back.
        body.send_keys(Keys.ESCAPE)
        expect(wait(browser, "return !document.documentElement.classList.contains('one')"), "Esc leads back to all groups")
        # 12: a deep link opens its group, also by a part of its name.
        open_page(browser, page, "#g=" + group[:6])
        expect(wait(browser, "const s = document.querySelector('.group.at'); return s !== null && s.id === 'g=' + arguments[0]", group), "a deep link opens its group")
        for width in (400, 800, 1400):
            set_width(browser, width)
            time.sleep(0.3)
            for anchor in ("#", "#g=" + first):
                js("location.hash = arguments[0]", anchor)
                time.sleep(0.2)
                wide = js("return document.scrollingElement.scrollWidth")
                expect(wide <= width, f"at {width} px nothing is wider than the window at {anchor}: {wide}")
        expect(complaints(browser) == [], "the console is quiet")
        expect(requests(browser) == [], "nothing is asked for")
    finally:
        browser.quit()


def check_compare(checks, page, scheme):
    browser = open_browser(scheme)
    try:
        open_page(browser, page)
        js = browser.execute_script
        checks.expect(js("return document.querySelectorAll('#overview svg.flame').length") == 3, f"{scheme}: two sides and their difference")
        first = js("return document.querySelector('tr[data-g]').dataset.g")
        js("location.hash = '#g=' + arguments[0]", first)
        wait(browser, "return document.querySelector('.group.at svg.flame') !== null")
        labels = js("return [...document.querySelectorAll('.group.at svg.flame:not(.timeline)')][2].querySelectorAll('g[data-n]').length")
        told = js("return [...[...document.querySelectorAll('.group.at svg.flame:not(.timeline)')][2].querySelectorAll('g[data-n]')].every(g => /[+−]\\d/.test(g.getAttribute('aria-label')))")
        checks.expect(labels > 0 and told, f"{scheme}: each difference has a sign and a number")
        kinds = js("return [...document.querySelectorAll('#overview svg.flame')][2].querySelectorAll('.more, .less').length")
        checks.expect(kinds > 0, f"{scheme}: more and less are told apart")
        signs = js("return [...document.querySelectorAll('td.change')].every(c => /^[+−·] (new|worse|better|gone|unclear)$/.test(c.textContent))")
        checks.expect(signs, f"{scheme}: the table says the change in words and a sign")
        checks.expect(complaints(browser) == [] and requests(browser) == [], f"{scheme}: quiet")
    finally:
        browser.quit()


def check_hostile(checks, folder):
    store = lines.hostile_store(STALLCTL, folder)
    page = report(store, os.path.join(folder, "hostile.html"))
    text = open(page, encoding="utf-8").read()
    checks.expect(len(re.findall(r"<script", text)) == 2 and len(re.findall(r"</script", text)) == 2, "hostile: the file has its two scripts and no more")
    checks.expect(not re.search(r"<(img|iframe|link|base|object|embed)\b", text), "hostile: no element that loads anything")
    checks.expect(not any(ord(c) in STEERING for c in text), "hostile: nothing that steers text is in the file")
    browser = open_browser()
    try:
        open_page(browser, page)
        js = browser.execute_script
        title = js("return document.title")
        checks.expect(title.startswith("Stalls of") and js("return document.documentElement.dataset.ok") is not None, f"hostile: the title is {title!r}")
        ids = js("return [...document.querySelectorAll('tr[data-g]')].map(row => row.dataset.g)")
        elements = js("return [...new Set([...document.querySelectorAll('*')].map(e => e.localName))]")
        alien = set(elements) & {"img", "iframe", "object", "embed", "link", "base"}
        checks.expect(not alien, f"hostile: elements of names: {alien}")
        told = 0
        for group in ids:
            js("location.hash = '#g=' + arguments[0]", group)
            wait(browser, "return document.querySelector('.group.at svg.flame') !== null")
            ok = js("""const s = document.querySelector('.group.at'); const n = s.querySelectorAll('svg.flame g[data-n]').length;
                const c = [...s.querySelectorAll('script, img, iframe, style')].length; s.querySelector('svg.flame g[data-n]').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
                return n > 0 && c === 0 && document.title === arguments[0] && document.scrollingElement.scrollWidth <= innerWidth;""", title)
            told += 1
            checks.expect(ok, f"hostile: group {group} of {told}")
            # A search for a name and an inverted picture handle it as well.
            js("""const s = document.querySelector('.group.at'), i = s.querySelector('input'); i.value = '__proto__'; i.dispatchEvent(new Event('input'));
                s.querySelector('button[aria-pressed]').click();""")
        checks.expect(len(ids) >= 60, f"hostile: {len(ids)} groups")
        checks.expect(js("return document.title") == title and js("return ({}).owned === undefined && Object.keys(Object.prototype).length === 0"),
                      "hostile: no name became a property")
        checks.expect(complaints(browser) == [] and requests(browser) == [], "hostile: quiet")
        # What the policy must refuse, if a name ever got through.
        js("const s = document.createElement('script'); s.textContent = 'document.title = \"owned\"'; document.body.append(s);"
           "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
           "document.body.setAttribute('onclick', 'document.title = \"owned\"'); document.body.click();")
        time.sleep(0.3)
        said = complaints(browser)
        checks.expect(js("return document.title") == title, "policy: an inline script and a handler do nothing")
        checks.expect(sum("Content Security Policy" in line for line in said) >= 3, f"policy: the browser says that it refused them: {len(said)}")
        checks.expect(not [u for u in requests(browser) if "127.0.0.1:9" in u] or any("img-src" in line or "default-src" in line for line in said), "policy: an image is not fetched")
    finally:
        browser.quit()


def check_without_scripts(checks, page):
    browser = open_browser(scripts=False)
    try:
        open_page(browser, page)
        text = browser.find_element(By.TAG_NAME, "body").text
        rows = browser.find_elements(By.CSS_SELECTOR, "tr[data-g]")
        sections = browser.find_elements(By.CSS_SELECTOR, "section.group")
        checks.expect(len(rows) > 3 and all(row.is_displayed() for row in rows), "without scripts: the table is there")
        checks.expect(len(sections) == len(rows) and all(section.is_displayed() for section in sections), "without scripts: every group is there")
        checks.expect("Example: the longest" in text and "Evidence:" in text and "confidence" in text, "without scripts: example, cause and evidence")
        checks.expect("stallctl show" in text and "lost in" in text, "without scripts: the command and the sentence")
        checks.expect("Zoom out" not in text and "All groups" not in text, "without scripts: nothing that needs them")
        link = rows[2].find_element(By.TAG_NAME, "a")
        checks.expect(link.get_attribute("href").split("#")[1] == sections[2].get_attribute("id"), "without scripts: links lead to the groups")
        checks.expect(browser.find_elements(By.CSS_SELECTOR, "svg.flame") == [], "without scripts: no empty pictures")
    finally:
        browser.quit()


def check_size(checks, folder):
    fleet = lines.Fleet(77, functions=[f"Module{i % 37}.Type{i % 211}.method{i}(with:andThen:)" for i in range(4000)], groups=520, hours=24 * 30)
    reports = []
    for index in range(10_000):
        reports.append(fleet.report())
    store = lines.write_store(STALLCTL, os.path.join(folder, "large.sqlite"), reports)
    page = report(store, os.path.join(folder, "large.html"))
    size = os.path.getsize(page)
    groups = open(page, encoding="utf-8").read().count("<tr data-g=")
    checks.expect(size <= 2_000_000 and groups >= 450, f"size: {size} bytes, {groups} groups")
    browser = open_browser()
    try:
        # What else the machine does only adds: a round that was too slow is played again, five times at most.
        rounds = []
        while len(rounds) < 5 and (not rounds or rounds[-1][2] > 1000):
            times = []
            for _ in range(5):
                open_page(browser, page)
                wait(browser, "return performance.timing.loadEventEnd > 0")
                times.append(browser.execute_script("const n = performance.getEntriesByType('navigation')[0]; return Math.round(n.loadEventEnd)"))
            rounds.append(sorted(times))
        checks.expect(rounds[-1][2] <= 1000, f"load: {rounds}")
        print(f"large page: {size} bytes, {groups} groups, loadEventEnd median {rounds[-1][2]} ms of {rounds}")
        checks.expect(wait(browser, "return document.querySelectorAll('tr[data-g]').length === arguments[0]"
                           " && [...document.querySelectorAll('tr[data-g]')].every(row => row.getClientRects().length)", groups),
                      "size: every row is there when the page has loaded")
    finally:
        browser.quit()


def check_media(checks, page, folder):
    """Paper, and people who do not want things to move: as the browser emulates them."""
    browser = open_browser("dark")
    try:
        js = browser.execute_script
        for scheme in ("light", "dark"):
            for anchor in ("", "#g=" + re.search(r'data-g="([0-9a-f]+)"', open(page, encoding="utf-8").read())[1]):
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]})
                set_width(browser, 1400)
                open_page(browser, page, anchor)
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": scheme}]})
                set_width(browser, 718)  # A4 less a centimetre on each side
                time.sleep(0.3)
                where = f"print, {scheme}, {anchor or 'all'}"
                ink = js("const s = getComputedStyle(document.documentElement); return [s.color, s.backgroundColor]")
                checks.expect(ink == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"], f"{where}: black on white: {ink}")
                dark = js("""return [...document.querySelectorAll('svg text, td, p, h2')].filter(e => e.getClientRects().length).filter(e => {
                    const s = getComputedStyle(e), c = (e.namespaceURI.endsWith('svg') ? s.fill : s.color).match(/[0-9.]+/g).slice(0, 3).map(Number);
                    return c.reduce((a, b) => a + b, 0) > 3 * 140; }).length""")
                checks.expect(dark == 0, f"{where}: no light text: {dark}")
                shown = js("return [...document.querySelectorAll('button, input, nav')].filter(e => e.getClientRects().length).length")
                checks.expect(shown == 0, f"{where}: no buttons: {shown}")
                drawn = js("return [...document.querySelectorAll('svg.flame rect')].filter(e => e.getClientRects().length).length")
                wide = js("return Math.max(...[...document.querySelectorAll('table, svg, p, h2, ol')].map(e => e.getBoundingClientRect().right))")
                checks.expect(drawn > 3 and wide <= 719, f"{where}: {drawn} calls are drawn, nothing is cut off: {wide}")
                pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False, "paperWidth": 8.27, "paperHeight": 11.69})["data"])
                path = os.path.join(folder, f"print-{scheme}-{'group' if anchor else 'all'}.pdf")
                open(path, "wb").write(pdf)
                pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
                checks.expect(pdf.startswith(b"%PDF-") and 1 <= pages <= 12, f"{where}: {pages} pages")
        set_width(browser, 1400, 500)
        for value, transition, behavior in (("reduce", "0s", "auto"), ("no-preference", "0.12s", "smooth")):
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [{"name": "prefers-reduced-motion", "value": value}]})
            open_page(browser, page)
            said = js("return getComputedStyle(document.querySelector('svg.flame g')).transitionDuration")
            checks.expect(said == transition, f"motion, {value}: a transition of {said}")
            js("window.asked = []; Element.prototype.scrollIntoView = function (how) { asked.push(how.behavior); }")
            browser.find_element(By.TAG_NAME, "body").send_keys("j")
            checks.expect(js("return asked") == [behavior], f"motion, {value}: the page scrolls {js('return asked')}")
        checks.expect(js("return document.getAnimations().length") == 0 and complaints(browser) == [], "motion: nothing moves by itself")
    finally:
        browser.quit()


def check_perfetto(checks, folder):
    browser = open_browser()
    try:
        for seed in (5, 1234):
            store = lines.random_store(STALLCTL, folder, seed)
            perfetto.check(checks, browser, store, viewers.Truth(store), folder)
    finally:
        browser.quit()


def take_screens(page, compare, folder, group=None):
    os.makedirs(folder, exist_ok=True)
    for scheme in ("light", "dark"):
        browser = open_browser(scheme)
        try:
            for width in (400, 800, 1400):
                for name, path, anchor in (("all", page, ""), ("group", page, "#g=" + (group or "")), ("compare", compare, ""), ("compare-group", compare, "first")):
                    set_width(browser, width)
                    open_page(browser, path, anchor if anchor != "first" else "")
                    if anchor == "#g=" or anchor == "first":
                        browser.execute_script("""const d = JSON.parse(document.getElementById('data').textContent);
                            const g = d.groups.find(g => g.locks.length && g.example && g.example.holder) || d.groups[0]; location.hash = '#g=' + g.id""")
                    time.sleep(0.4)
                    height = min(browser.execute_script("return document.scrollingElement.scrollHeight"), 2600)
                    set_width(browser, width, height)
                    time.sleep(0.3)
                    browser.save_screenshot(os.path.join(folder, f"{name}-{width}-{scheme}.png"))
        finally:
            browser.quit()


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    checks = viewers.Checks()
    store = lines.random_store(STALLCTL, folder, 1234, 600)
    page = report(store, os.path.join(folder, "page.html"))
    compare = report(store, os.path.join(folder, "compare.html"), "--compare", "1.0", "2.0")
    if "--screens" in sys.argv:
        take_screens(page, compare, sys.argv[sys.argv.index("--screens") + 1])
        return
    parts = {
        "widths": lambda: check_widths(checks, folder, int(os.environ.get("STORES", "20"))),
        "interactions": lambda: [check_interactions(checks, page, scheme) for scheme in ("light", "dark")],
        "compare": lambda: [check_compare(checks, compare, scheme) for scheme in ("light", "dark")],
        "hostile": lambda: check_hostile(checks, folder),
        "scripts": lambda: check_without_scripts(checks, page),
        "media": lambda: check_media(checks, page, folder),
        "size": lambda: check_size(checks, folder),
        "perfetto": lambda: check_perfetto(checks, folder),
        "viewers": lambda: viewers.check_all(checks, [store], folder),
    }
    for name in os.environ.get("PARTS", ",".join(parts)).split(","):
        parts[name]()
    print(f"truth pictures checks={checks.count} failed={checks.failed}")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
