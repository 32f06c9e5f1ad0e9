"""What `top` costs beside the start of the program, and what a report takes on disks."""

import os
import statistics
import subprocess
import time


def milliseconds(words, environment, times):
    """The median of several runs."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        took.append((time.monotonic() - began) * 1000)
    return statistics.median(took)


def print_costs(world, times=7):
    cluster, environment = world.cluster, world.cluster.environment
    start = milliseconds([world.stallctl, "--version"], environment, times)
    top = {name: milliseconds([world.stallctl, "top", "--store", store], environment, times)
           for name, store in (("cluster", cluster.url), ("file", world.central))}
    beyond = top["cluster"] - start
    print(f"top: median of {times}: {top['cluster']:.0f} ms in the cluster, {top['file']:.0f} ms in SQLite, the start of stallctl alone "
          f"{start:.0f} ms: {beyond:.0f} ms beyond the start, bar 100 {'met' if beyond <= 100 else 'missed'}; load "
          f"{os.getloadavg()[0]:.1f}", flush=True)
    bytes_of = "select toInt64(sum(bytes_on_disk)) from system.parts where active and database = '%s'" % cluster.database
    reports = world.count("report")
    there = sum(cluster.number(bytes_of, shard) for shard in (1, 2))
    there_reports = sum(cluster.number(bytes_of + " and table = 'report_local'", shard) for shard in (1, 2))
    here = os.path.getsize(world.central)
    print(f"bytes a report: {there / reports:.0f} in the cluster, {there_reports / reports:.0f} of them in report, "
          f"{here / reports:.0f} in SQLite", flush=True)
