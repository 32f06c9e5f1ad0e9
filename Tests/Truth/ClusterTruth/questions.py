"""What is asked of both stores. Each is a list of stallctl's words behind --store."""

import datetime
import json
import sqlite3


def questions(world):
    """The questions, of ids and groups that are there."""
    def asked_of_file(*words):
        return [json.loads(line) for line in world.run(world.central, *words, "--json").stdout.decode().splitlines()]
    # The newest ones, and some of the app that has most.
    app = asked_of_file("top", "--group", "app", "--limit", "1")[0]["title"]
    reports = asked_of_file("list", "--limit", "40")[::10] + asked_of_file("list", "--app", app, "--limit", "3")
    ids = [report["id"] for report in reports]
    groups = asked_of_file("top", "--limit", "3")
    database = sqlite3.connect(f"file:{world.central}?immutable=1", uri=True)
    versions = [version for version, in database.execute("select distinct version from process_run order by 1")]
    host = asked_of_file("top", "--group", "host", "--limit", "1")[0]["title"]
    first, second = versions[0], versions[-1]
    days = [day["begin"][:10] for day in asked_of_file("trend") if day["count"] > 0]
    since, until = days[len(days) // 3], days[2 * len(days) // 3]
    asked = [
        ["top"], ["top", "--limit", "3"], ["top", "--by", "p95"], ["top", "--by", "count"], ["top", "--app", app],
        ["top", "--host", host], ["top", "--group", "app"], ["top", "--group", "version"], ["top", "--group", "host"],
        ["top", "--group", "cause"], ["top", "--group", "loop"], ["top", "--group", "family"],
        ["top", "--version", second], ["top", "--since", since, "--until", until],
        ["diff", first, second], ["diff", first, second, "--app", app], ["diff", first, second, "--group", "family"],
        ["trend"], ["trend", "--by", "hour", "--since", days[-2], "--until", days[-1]], ["trend", "--app", app],
        ["trend", groups[0]["signature"]],
        ["list"], ["list", "--limit", "100"], ["list", "--app", app], ["list", "--host", host],
        ["list", "--sort", "lasted", "--app", app], ["list", groups[0]["signature"]],
        ["status"],
    ]
    # Roll-ups tell the days between, and reports the parts of days.
    ends = ["--since", f"{since}T05:00:00Z", "--until", f"{until}T17:00:00Z"]
    asked += [["top", *ends], ["top", "--group", "version", "--app", app, *ends], ["top", "--group", "cause", *ends],
              ["trend", "--by", "day", "--app", app, *ends], ["diff", first, second, *ends]]
    asked += [["show", identifier] for identifier in ids]
    # What is read in parts, or by part of the time. There are no more than 10,000 hours.
    last = datetime.date.fromisoformat(days[-1])
    recent = next(day for day in days if (last - datetime.date.fromisoformat(day)).days < 300)
    asked += [
        ["why", ids[0]], ["tree", "--min-share", "0"], ["tree", "--host", host, "--app", app], ["trend", "--by", "hour", "--since", recent],
        ["top", "--group", "inclusive", "--app", app], ["list", "--sort", "lasted", "--limit", "50", "--host", host],
    ]
    exports = [
        ["--format", "csv", "--host", host], ["--format", "jsonl", "--limit", "500"], ["--format", "json", "--limit", "50"],
        ["--format", "folded", "--app", app], ["--format", "csv", "--since", until, "--app", app],
    ]
    loop = asked_of_file("top", "--group", "loop", "--limit", "1")[0]["title"]
    # With the lines under the table, which tell the watched time and the stalls without a report.
    texts = [["top"], ["top", "--app", app, "--version", second], ["top", "--host", host, "--loop", loop], ["top", "--by", "rate"]]
    return [[*words, "--json"] for words in asked] + [["export", *words] for words in exports] + texts
