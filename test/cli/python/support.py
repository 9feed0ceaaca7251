"""What the tests share: the service's address and key are in the environment."""
import threading
import time
import uuid
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from pgcue import Client

client = Client()


def name(word="task"):
    return f"{word}-{uuid.uuid4().hex[:8]}"


def eventually(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("this did not happen in time")
        time.sleep(0.02)


def fire(task, **members):
    """Creates a worker cue with this task, fires it and returns the execution's id."""
    cue = client.create_cue({"name": task, "cron": "0 0 1 1 *", "worker": True, "payload": {"task": task, "n": 1}, **members})
    return client.fire_cue(cue["id"])["id"]


def success(*_):
    return {"success": True}


def ended(execution_id):
    """Waits until an execution has ended, and returns it."""

    def execution():
        detail = client.get_execution(execution_id)
        return detail if detail["status"] in ("success", "failed", "missed", "outcome_timeout") else None

    return eventually(execution)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, request, client_address):
        pass  # connections break on purpose


def serve(test, handler):
    """Starts a server for one test. Returns its address."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_address[1]}"


class Answers:
    """A server that gives prepared answers: `(status, body, headers)`, or None to break the connection."""

    def __init__(self, test, *answers):
        self.requests = []
        self.connections = set()
        remaining = list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(handler):
                handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                self.requests.append((handler.command, handler.path, dict(handler.headers)))
                self.connections.add(handler.client_address)
                answer = remaining.pop(0)
                if answer is None:
                    handler.close_connection = True
                    return
                status, body, *headers = answer
                handler.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **(headers[0] if headers else {})}.items():
                    handler.send_header(key, value)
                handler.end_headers()
                handler.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.url = serve(test, Handler)


class Proxy:
    """Passes requests on to the service. `lose(path, n)` loses the next responses to such requests, `refuse` answers them with 503."""

    def __init__(self, test):
        self._faults = []
        self.met = []
        service = urlsplit(client.base_url)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(handler):
                body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                fault = next((fault for fault in self._faults if fault[1] in handler.path), None)
                if fault:
                    self._faults.remove(fault)
                    self.met.append(fault)
                if fault and fault[0] == "refuse":
                    return handler.send(503, b"")
                connection = HTTPConnection(service.hostname, service.port, timeout=60)
                headers = {key: value for key, value in handler.headers.items() if key.lower() not in ("host", "connection")}
                connection.request(handler.command, handler.path, body, headers)
                response = connection.getresponse()
                data = response.read()
                connection.close()
                if fault:
                    handler.close_connection = True
                else:
                    handler.send(response.status, data)

            def send(handler, status, data):
                handler.send_response(status)
                handler.send_header("Content-Length", str(len(data)))
                handler.end_headers()
                handler.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

            def log_message(self, *_):
                pass

        self.client = Client(serve(test, Handler))

    def lose(self, path, times=1):
        self._faults += [("lose", path)] * times

    def refuse(self, path, times=1):
        self._faults += [("refuse", path)] * times
