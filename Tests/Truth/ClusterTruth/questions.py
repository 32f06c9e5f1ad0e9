"""What is asked of both stores. Each is a list of stallctl's words behind --store."""

import json
import sqlite3


def questions(world):
    """The questions, of ids and groups that are there."""
    listed = world.run(world.central, "list", "--json", "--limit", "40")
    reports = [json.loads(line) for line in listed.stdout.decode().splitlines()]
    ids = [report["id"] for report in reports]
    top = world.run(world.central, "top", "--json", "--limit", "3")
    groups = [json.loads(line) for line in top.stdout.decode().splitlines()]
    apps = sorted({report["app"] for report in reports})
    database = sqlite3.connect(f"file:{world.central}?immutable=1", uri=True)
    versions = [version for version, in database.execute("select distinct version from process_run order by 1")]
    hosts = sorted({report["host"] for report in reports})
    app, host = apps[0], hosts[0]
    first, second = versions[0], versions[-1]
    trend = world.run(world.central, "trend", "--json")
    days = [json.loads(line)["begin"][:10] for line in trend.stdout.decode().splitlines()]
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
    asked += [["show", identifier] for identifier in ids[::10]]
    # Hours and stacks are added up from reports that are fetched: docs/scale.md, "Limits".
    asked += [["why", ids[0]], ["tree"] if world.count("report") < 2_000_000 else ["tree", "--host", host, "--app", app]]
    return [[*words, "--json"] for words in asked]
