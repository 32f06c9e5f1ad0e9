"""Two central stores, row for row, by what rows mean: numbers of rows differ between stores, and are replaced by what they name."""

import json
import sqlite3
import subprocess

LOOP = "hex(process_run.uuid), loop.name, loop.threshold_ns"
JOIN_LOOP = "join loop on loop.id = t.loop join process_run on process_run.id = loop.run"
COHORT = ("cohort.app, cohort.version, hex(cohort.build_id), cohort.loop, cohort.verdict, cohort.cause, cohort.is_watched")
QUERIES = {
    "report": f"""
        select hex(source.store), seq, t.revision, hex(t.id), {LOOP}, mode.value, activity.value, phase, state, ending, verdict,
            start_us, duration_ns, cpu_ns, detection_delay_ns, agent_ns, skipped_threads, cause, cause_confidence,
            cause_permille, hex(evidence_numbers), signature.hash, signature.title
        from report t join source on source.id = t.source {JOIN_LOOP} join label mode on mode.id = t.mode
            left join label activity on activity.id = t.activity left join signature on signature.id = t.signature""",
    "exposure": f"""
        select hex(source.store), t.revision, {LOOP}, start_us, watched_ns, busy_ns, ready_delay_ns, micro_stall_count,
            micro_stall_ns, iteration_count, hex(lengths)
        from exposure t join source on source.id = t.source {JOIN_LOOP}""",
    "exposure_day": f"""
        select day, hex(source.store), {LOOP}, crosses_midnight, stretch_count, start_us, end_us, watched_ns, busy_ns,
            ready_delay_ns, micro_stall_count, micro_stall_ns, hex(lengths)
        from exposure_day t join source on source.id = t.source {JOIN_LOOP}""",
    "suppression": f"""
        select hex(source.store), t.revision, {LOOP}, place, reason, stall_count, total_ns
        from suppression t join source on source.id = t.source {JOIN_LOOP}""",
    "loss": """
        select hex(source.store), hex(process_run.uuid), reason, report_count, t.revision
        from loss t join source on source.id = t.source join process_run on process_run.id = t.run""",
    "watched_loop": f"select hex(source.store), {LOOP} from watched_loop t join source on source.id = t.source {JOIN_LOOP}",
    "process_run": """
        select hex(uuid), app, version, hex(build_id), host, pid, boot_id, start_ticks, started_us, os, device
        from process_run""",
    "source": "select hex(store), hex(origin), revision, partial_seq, partial_revision from source",
    "image_load": """
        select hex(process_run.uuid), image.hash, load_address, end_address
        from image_load t join image on image.id = t.image join process_run on process_run.id = t.run""",
    "location": """
        select location.hash, image.hash, offset, kind, detail from location join image on image.id = location.image""",
    "location_frame": """
        select location.hash, position, function.hash, function.name, function.file, line, is_inlined
        from location_frame t join location on location.id = t.location left join function on function.id = t.function""",
    "stack": "select hash, is_truncated from stack",
    "rollup": f"""
        select day_count, first_day, {COHORT}, signature.hash, signature.title, report_count, total_ns, cpu_ns, min_ns, max_ns,
            first_us, last_us, hex(histogram)
        from rollup t join cohort on cohort.id = t.cohort join signature on signature.id = t.signature""",
    "host_rollup": f"""
        select day_count, first_day, {COHORT}, host.name, report_count, total_ns, cpu_ns, min_ns, max_ns, first_us, last_us,
            hex(histogram)
        from host_rollup t join cohort on cohort.id = t.cohort join host on host.id = t.host""",
}


def rows(path, table):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        found = {}
        for row in database.execute(QUERIES[table]):
            found[row] = found.get(row, 0) + 1
        return found


def exported(stallctl, path):
    """Reports with their stacks and functions, as lines of JSON by id."""
    output = subprocess.run(
        [stallctl, "export", "--store", path, "--format", "jsonl"], capture_output=True, check=True).stdout
    lines = {}
    for line in output.splitlines():
        row = json.loads(line)
        lines[row["store"], row["seq"]] = json.dumps(row, sort_keys=True)
    return lines


class Comparison:
    def __init__(self, stallctl, collected, local):
        self.differing = 0
        self.shown = 0
        reports, right = rows(collected, "report"), rows(local, "report")
        keys, right_keys = [row[:2] for row in reports], {row[:2] for row in right}
        ids, right_ids = [row[3] for row in reports], {row[3] for row in right}
        self.reports = len(right)
        self.lost = len(right_keys - set(keys))
        self.double = len(set(keys) - right_keys) + len(ids) - len(set(ids)) - (len(right) - len(right_ids))
        for table in QUERIES:
            self.compare(table, rows(collected, table), rows(local, table))
        lines, right_lines = exported(stallctl, collected), exported(stallctl, local)
        self.compare("exported", {line: 1 for line in lines.values()}, {line: 1 for line in right_lines.values()})
        watched, right_watched = (
            {row[:6]: row[6] for row in rows(path, "exposure")} for path in (collected, local))
        self.exposure_ns = sum(
            abs(watched.get(key, 0) - right_watched.get(key, 0)) for key in {*watched, *right_watched})
        self.hours = sum(right_watched.values()) / 3.6e12

    def compare(self, table, said, right):
        for row in {*said, *right}:
            if said.get(row, 0) != right.get(row, 0):
                self.differing += 1
                if self.shown < 12:
                    self.shown += 1
                    print(f"differs: {table}: collector {said.get(row, 0)}, local {right.get(row, 0)}: {str(row)[:300]}")
