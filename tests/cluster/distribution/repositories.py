"""A Maven repository on loopback, with small jars that tests may damage."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lockstep.cluster.distribution import Jar, Lock


class Repository:
    """What it serves, by path, and every path it was asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.failures_left = 0
        """How many requests are yet to be answered with 503."""


def small_lock(count: int = 12) -> tuple[Lock, dict[str, bytes]]:
    """A lock of made-up jars, and what a repository must serve for it."""
    contents = {f"org.example:part-{number}:1.{number}": f"jar {number} ".encode() * 500 for number in range(count)}
    jars = tuple(
        Jar(coordinate=coordinate, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        for coordinate, content in contents.items()
    )
    lock = Lock(kafka="0.0.1", roots=("org.example:part-0:1.0",), jars=jars)
    return lock, {jar.repository_path: contents[jar.coordinate] for jar in jars}


@contextmanager
def serving() -> Iterator[Repository]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            with lock:
                repository.asked.append(path)
                failing = repository.failures_left > 0
                repository.failures_left -= failing
            content = repository.files.get(path)
            status = 503 if failing else 404 if content is None else 200
            body = content if status == 200 and content is not None else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Quiet."""

    lock = threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        repository = Repository(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield repository
        finally:
            server.shutdown()
            thread.join()
