"""Servers that are no ClickHouse, or a real one behind a proxy that spoils its answers, over TCP and over TLS.

Each listens on the addresses of both shards, at one port, as the servers of a cluster do."""

import http.client
import socket
import ssl
import struct
import threading
import time

HOSTS = ("127.0.0.1", "127.0.0.2")
NAME = b"X-ClickHouse-Server-Display-Name: played\r\n"
OLD = b"Code: 241, e.displayText() = DB::Exception: Memory limit (total) exceeded, e.what() = DB::Exception\n"
NEW = (b"\r\n__exception__\r\nabcdefghijklmnop\r\nCode: 241. DB::Exception: Memory limit (total) exceeded: while reading. "
       b"(MEMORY_LIMIT_EXCEEDED) (version 26.9.2.1)\n131 abcdefghijklmnop\r\n__exception__\r\n")


class Played:
    """Calls `talk(connection, host)` for each connection."""

    def __init__(self, talk, certificate=None):
        self.talk, self.context = talk, None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        first = socket.create_server((HOSTS[0], 0), backlog=64)
        self.port = first.getsockname()[1]
        self.sockets = [first, socket.create_server((HOSTS[1], self.port), backlog=64)]
        for host, listener in zip(HOSTS, self.sockets):
            threading.Thread(target=self.accept, args=(listener, host), daemon=True).start()

    def accept(self, listener, host):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection, host), daemon=True).start()

    def serve(self, connection, host):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            self.talk(connection, host)
        except OSError:
            pass  # who was answered went away
        finally:
            connection.close()

    def close(self):
        for listener in self.sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def read_request(connection):
    """Its path, its heads and its body."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = connection.recv(65536)
        if not part:
            raise OSError("no request")
        text += part
    head, body = text.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    while len(body) < int(fields.get("Content-Length", 0)):
        part = connection.recv(1 << 20)
        if not part:
            raise OSError("no whole request")
        body += part
    return lines[0].split()[1], fields, body


def saying(text):
    """Answers these bytes, whatever is asked."""
    def talk(connection, _):
        read_request(connection)
        connection.sendall(text)
    return talk


def answer(status, body, fields=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, fields, len(body), body)


def silent(connection, _):
    read_request(connection)
    time.sleep(60)


def trickling(connection, _):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + NAME + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"1")
        time.sleep(0.1)


def flooding(size, has_length):
    """Answers so many bytes."""
    def talk(connection, _):
        read_request(connection)
        length = b"Content-Length: %d\r\n" % size if has_length else b"Transfer-Encoding: chunked\r\n"
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + NAME + length + b"\r\n")
        piece = b"1\t2\t3\n" * (1 << 18)
        for _ in range(size // len(piece)):
            connection.sendall(piece if has_length else b"%x\r\n%s\r\n" % (len(piece), piece))
    return talk


def resetting(connection, _):
    read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def ask(host, port, request):
    path, fields, body = request
    real = http.client.HTTPConnection(host, port, timeout=60)
    real.request("POST", path, body, {name: fields[name] for name in ("Authorization", "Content-Type") if name in fields})
    reply = real.getresponse()
    return reply.status, reply.read()


def spoiling(port, spoil, every=1):
    """A real server's answers, every so many of them spoiled: `spoil(connection, body)` sends an answer of status 200."""
    lock, count = threading.Lock(), [0]

    def talk(connection, host):
        request = read_request(connection)
        status, body = ask(host, port, request)
        with lock:
            count[0] += 1
            is_spoiled = count[0] % every == 0
        if is_spoiled and status == 200:
            spoil(connection, body)
        else:
            connection.sendall(answer(b"%d Answer" % status, body, NAME))
    return talk


def half(body):
    """The first half of the rows: what is left looks whole."""
    lines = body.splitlines(keepends=True)
    return b"".join(lines[:len(lines) // 2])


def cut_by_length(connection, body):
    connection.sendall(answer(b"200 OK", body + b"\n", NAME)[:-1 - len(body) + len(half(body))])


def cut_in_chunks(connection, body):
    part = half(body) or b"0"
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + NAME + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(part), part))


def cut_without_length(connection, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + NAME + b"Connection: close\r\n\r\n" + half(body))


def failing_at_the_end(text):
    def spoil(connection, body):
        connection.sendall(answer(b"200 OK", half(body) + text, NAME))
    return spoil


def without_answer(connection, _):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def forwarding(port):
    """The bytes as they are, for TLS."""
    def talk(connection, host):
        request = read_request(connection)
        status, body = ask(host, port, request)
        connection.sendall(answer(b"%d Answer" % status, body, NAME))
    return talk
