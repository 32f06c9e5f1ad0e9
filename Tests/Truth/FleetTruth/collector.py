"""A collector as an operator runs it: certificates, tokens, starts, kills."""

import os
import random
import resource
import socket
import subprocess
import threading
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificates(folder, name):
    """A private authority and a certificate of it for loopback: the paths of the authority, the certificate and its key."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    path = lambda end: os.path.join(folder, f"{name}-{end}")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("ca.key"), "-out",
            path("ca.pem"), "-days", "30", "-subj", f"/CN={name} authority", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("key.pem"), "-out",
            path("csr.pem"), "-subj", "/CN=localhost")
    with open(path("san"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", path("csr.pem"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial", "-out",
            path("cert.pem"), "-days", "30", "-extfile", path("san"))
    return path("ca.pem"), path("cert.pem"), path("key.pem")


class Collector:
    def __init__(self, program, folder, certificate=None, key=None, options=(), wrap=(), store=None):
        self.program, self.folder, self.port = program, folder, free_port()
        os.makedirs(folder, exist_ok=True)
        self.store, self.tokens = store or os.path.join(folder, "central.sqlite"), os.path.join(folder, "tokens")
        tls = ["--certificate", certificate, "--key", key] if certificate else []
        self.words = [*wrap, program, "serve", "--store", self.store, "--tokens", self.tokens, "--port", str(self.port), *tls, *options]
        self.url = f"{'https' if certificate else 'http'}://localhost:{self.port}"
        self.log = open(os.path.join(folder, "log"), "ab")
        self.process, self.kills = None, 0

    def token(self, right, *apps):
        words = [word for app in apps for word in ("--app", app)]
        made = subprocess.run([self.program, "token", "add", f"--{right}", *words, "--tokens", self.tokens],
                              check=True, capture_output=True, text=True)
        return made.stdout.strip()

    def remove_token(self, text):
        import hashlib
        digits = hashlib.sha256(text.encode()).hexdigest()[:12]
        subprocess.run([self.program, "token", "remove", digits, "--tokens", self.tokens], check=True)

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=self.log, stderr=self.log)

    def wait_until_up(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"the collector ended with {self.process.returncode}: {self.folder}/log") from None
                time.sleep(0.02)
        raise SystemExit("the collector did not come up")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def stop(self):
        """As systemd stops it; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return "did not stop"

    def kill_again_and_again(self, times, seed, done, disk):
        """Kills it -9 and starts it again; now and then its disk is full for a while."""
        draw = random.Random(seed)
        for number in range(times):
            if done.wait(draw.uniform(0.15, 0.9)):
                break
            if number % 25 == min(times // 2, 12):
                self.fill_disk(draw.uniform(0.5, 1.5), done)
                disk.append(1)
            self.kill()
            self.start()
            self.wait_until_up()

    def fill_disk(self, seconds, done):
        """No file of it may grow: writes fail as on a full disk."""
        try:
            hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (8192, hard))
            done.wait(seconds)
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        except OSError:
            pass
