"""The two shards of scripts/clickhouse-cluster, and what is asked of them past stallctl."""

import os
import subprocess
import urllib.parse
import urllib.request


class Cluster:
    def __init__(self, root, folder, database, is_new=True):
        self.script, self.folder = os.path.join(root, "scripts", "clickhouse-cluster"), folder
        if is_new:
            self.tell("wipe")
        self.database = database
        self.url = self.tell("up").replace("/stalls?", f"/{database}?")
        self.password = open(os.path.join(folder, "password"), encoding="utf-8").read().strip()
        self.environment = {**os.environ, "TZ": "UTC", "STALLCTL_CLICKHOUSE_PASSWORD": self.password}

    def tell(self, *words):
        words = [self.script, words[0], self.folder, *words[1:]]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def kill(self, shard):
        self.tell("kill", str(shard))

    def start(self, shard):
        self.tell("start", str(shard))

    def ask(self, sql, shard=1):
        """The rows of an answer, as lists of texts."""
        place = urllib.parse.urlparse(self.url)
        request = urllib.request.Request(
            f"http://127.0.0.{shard}:{place.port}/?database={self.database}", sql.encode(),
            {"X-ClickHouse-User": "stall", "X-ClickHouse-Key": self.password})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return [line.split("\t") for line in answer.read().decode("utf-8", "replace").splitlines()]

    def number(self, sql, shard=1):
        return int(self.ask(sql, shard)[0][0])
