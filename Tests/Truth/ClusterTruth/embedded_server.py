"""A current ClickHouse behind its HTTP interface: PyPI's chdb-core is the engine without the server, and this is as much of a
server as stallctl needs. One statement at a time, no users, no cluster.

usage: embedded_server.py FOLDER   prints the version and the port, serves until it is ended"""

import http.server
import os
import sys
import tempfile
import threading
import urllib.parse

from chdb import session

# What HTTP itself takes; everything else in an address is a setting, and the engine refuses those that it does not know.
OF_HTTP = {"database", "query", "wait_end_of_query", "buffer_size", "user", "password"}


class Engine:
    def __init__(self, folder):
        self.session = session.Session(folder)
        self.lock = threading.Lock()

    def ask(self, sql):
        return self.session.query(sql, "TabSeparated").bytes()

    def answer(self, parameters, body):
        for name, value in parameters.items():
            if name not in OF_HTTP:
                self.ask(f"set {name} = {int(value)}")
        self.ask(f"use `{parameters.get('database', 'default')}`")
        if "query" not in parameters:
            return self.ask(body.decode())
        # Rows may hold bytes that are no text, which a statement is.
        with tempfile.NamedTemporaryFile() as rows:
            rows.write(body)
            rows.flush()
            table, form = parameters["query"].rsplit(" format ", 1)
            return self.ask(f"{table} from infile '{rows.name}' compression 'none' format {form}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        status = 200
        try:
            with self.server.engine.lock:
                answer = self.server.engine.answer(parameters, body)
        except Exception as error:  # the engine's own is a RuntimeError with its text
            text = str(error)
            status, answer = 500, (text[max(0, text.find("Code: ")):] + "\n").encode()
            if os.environ.get("PRINT_ERRORS"):
                print(f"{text}\n    {(parameters.get('query', '') or body.decode('utf-8', 'replace'))[:2000]}", file=sys.stderr)
        self.send_response(status)
        self.send_header("X-ClickHouse-Server-Display-Name", "embedded")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.engine = Engine(sys.argv[1])
    print(server.engine.ask("select version()").decode().strip(), server.server_port, flush=True)
    server.serve_forever()


main()
