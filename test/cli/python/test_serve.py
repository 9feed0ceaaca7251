import asyncio
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.client
import io
import json
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, make_server

from pgcue import asgi, wsgi
from support import client, ended, serve, success

SECRET = client.get_webhook_secret()["webhook_secret"]
OLDER = "whsec_b2xkZXI="


class Interruption(BaseException):
    """As a server's end raises it in a handler."""


def sign(body, secret=SECRET, execution_id="e1", timestamp=None):
    timestamp = str(int(time.time()) if timestamp is None else timestamp)
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Service-Signature": f"v1={digest}", "X-Service-Timestamp": timestamp, "X-Service-Execution-Id": execution_id}


def serve_wsgi(test, application):
    class Handler(BaseHTTPRequestHandler):
        """Runs each request in a separate thread, as a WSGI server does."""

        def do_POST(handler):
            length = handler.headers["Content-Length"]
            environ = {
                "REQUEST_METHOD": "POST", "CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(handler.rfile.read(int(length))),
                **{f"HTTP_{key.upper().replace('-', '_')}": value for key, value in handler.headers.items()},
            }

            def start_response(status, headers):
                code, _, reason = status.partition(" ")
                handler.send_response(int(code), reason)
                for key, value in headers:
                    handler.send_header(key, value)
                handler.end_headers()

            with contextlib.suppress(Interruption):
                handler.wfile.write(b"".join(application(environ, start_response)))

        def log_message(self, *_):
            pass

    return serve(test, Handler)


def serve_asgi(test, application):
    """All requests run in one event loop, as in an ASGI server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    for end in (loop.close, thread.join, lambda: loop.call_soon_threadsafe(loop.stop)):
        test.addCleanup(end)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(handler):
            body = handler.rfile.read(int(handler.headers["Content-Length"]))
            messages = [{"type": "http.request", "body": part, "more_body": True} for part in (body[:9], body[9:])]
            messages.append({"type": "http.request"})
            headers = [(key.lower().encode(), value.encode("latin-1")) for key, value in handler.headers.items()]

            async def receive():
                return messages.pop(0)

            async def send(message):
                if message["type"] == "http.response.start":
                    handler.send_response(message["status"])
                    for key, value in message["headers"]:
                        handler.send_header(key.decode(), value.decode())
                    handler.end_headers()
                else:
                    handler.wfile.write(message["body"])

            scope = {"type": "http", "method": "POST", "headers": headers}
            with contextlib.suppress(Interruption):
                asyncio.run_coroutine_threadsafe(application(scope, receive, send), loop).result(30)

        def log_message(self, *_):
            pass

    return serve(test, Handler)


class ServeCases:
    """The same for both kinds of application."""

    def post(self, url, body, headers):
        address = urlsplit(url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def deliver(self, url, task, **delivery):
        cue = client.create_cue({
            "name": task, "cron": "0 0 1 1 *", "callback_url": url, "payload": {"task": task, "n": 1},
            "delivery": {"await_outcome": True, **delivery},
        })
        return ended(client.fire_cue(cue["id"])["id"])

    def test_the_response_is_the_outcome(self):
        runs = []

        def report(execution):
            runs.append(execution)
            # The token is a key for this execution.
            status = client.using(api_key=execution.token).get_execution(execution.execution_id)["status"]
            return {"success": True, "external_id": "42", "summary": status}

        def broken(execution):
            raise KeyError("rows")

        def exits(execution):
            raise SystemExit("no rows")

        async def slow(execution):
            await asyncio.sleep(0)
            return execution.payload["n"] == 2

        def long(execution):
            return {"success": True, "result": "x" * 70_000}

        url = self.serve({"report": report, "broken": broken, "exits": exits, "long": long, "*": slow}, [OLDER, SECRET])
        success = self.deliver(url, "report")
        self.assertEqual((success["status"], success["outcome"]["external_id"]), ("success", "42"))
        self.assertEqual(success["outcome"]["summary"], "delivering")
        [execution] = runs
        self.assertEqual((execution.execution_id, execution.cue_id), (success["id"], success["cue_id"]))
        self.assertEqual((execution.task, execution.payload["n"], execution.attempt), ("report", 1, 1))
        for task, reason in [
            ("broken", "KeyError: 'rows'"), ("exits", "SystemExit: no rows"),
            ("long", "the outcome has more than 64000 bytes"),
            ("other", 'the handler returned False instead of an outcome, such as {"success": True}'),
        ]:
            failed = self.deliver(url, task)
            self.assertEqual((failed["outcome_state"], failed["outcome"]["error"]), ("reported_failure", reason))

    def test_refuses_what_is_not_for_a_handler(self):
        url = self.serve({"report": lambda execution: self.fail("this must not run")}, SECRET)
        body = b'{"task": "report"}'
        for status, code, sent, headers in [
            (401, "no_signature", body, {}),
            (401, "wrong_signature", body, sign(b"")),
            (401, "wrong_signature", body, sign(body, OLDER)),
            (401, "stale_timestamp", body, sign(body, timestamp=1)),
            (400, "not_json", b"{", sign(b"{")),
            (404, "unknown_task", b'{"task": "other"}', sign(b'{"task": "other"}')),
            (404, "unknown_task", b'{"task": ["report"]}', sign(b'{"task": ["report"]}')),
            (404, "unknown_task", b"[1]", sign(b"[1]")),
            (404, "unknown_task", b"", sign(b"")),
            (404, "unknown_task", body, {**sign(body, execution_id=""), "X-Service-Event": "cue.failed"}),
            (413, "payload_too_large", b" " * (2 * 1024 * 1024 + 1), {}),
        ]:
            answer = self.post(url, sent, headers)
            self.assertEqual((answer[0], answer[1]["error"]["code"]), (status, code))
        for none in ("", []):
            self.assertRaises(ValueError, self.serve, {"report": print}, none)

    def test_an_execution_runs_once_however_often_it_is_delivered(self):
        runs, release = [], threading.Event()

        def report(execution):
            runs.append(execution.execution_id)
            release.wait(20)
            return {"success": True, "external_id": str(len(runs))}

        url = self.serve({"report": report}, SECRET)
        body = b'{"task": "report"}'
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(self.post, url, body, sign(body, execution_id="a")) for _ in range(4)]
            time.sleep(0.2)  # the others arrive while the first one runs
            release.set()
            self.assertEqual([answer.result() for answer in answers], [(200, {"success": True, "external_id": "1"})] * 4)
        self.assertEqual(self.post(url, body, sign(body, execution_id="a")), (200, {"success": True, "external_id": "1"}))
        self.assertEqual(self.post(url, body, sign(body, execution_id="b")), (200, {"success": True, "external_id": "2"}))
        self.assertEqual(runs, ["a", "b"])

    def test_an_interrupted_handler_runs_again(self):
        runs = []

        def report(execution):
            runs.append(execution.execution_id)
            if len(runs) == 1:
                raise Interruption
            return {"success": True}

        url = self.serve({"report": report}, SECRET)
        body = b'{"task": "report"}'
        with self.assertRaises(Exception):
            self.post(url, body, sign(body))
        self.assertEqual(self.post(url, body, sign(body)), (200, {"success": True}))


class WsgiTest(ServeCases, unittest.TestCase):
    def serve(self, handlers, secrets):
        return serve_wsgi(self, wsgi(handlers, secrets))

    def test_runs_in_a_wsgi_server(self):
        server = make_server("127.0.0.1", 0, wsgi({"report": success}, SECRET), handler_class=_Quiet)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.handle_request, daemon=True).start()
        body = b'{"task": "report"}'
        self.assertEqual(self.post(f"http://127.0.0.1:{server.server_port}", body, sign(body)), (200, {"success": True}))


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class AsgiTest(ServeCases, unittest.TestCase):
    def serve(self, handlers, secrets):
        return serve_asgi(self, asgi(handlers, secrets))

    def test_handles_nothing_but_http(self):
        with self.assertRaises(NotImplementedError):
            asyncio.run(asgi({"report": print}, SECRET)({"type": "lifespan"}, None, None))

    def test_a_plain_function_does_not_block_the_event_loop(self):
        release = threading.Event()
        url = self.serve({"wait": lambda execution: success(release.wait(20)), "go": lambda execution: success(release.set())}, SECRET)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(self.post, url, b'{"task": "wait"}', sign(b'{"task": "wait"}', execution_id="a"))
            self.assertEqual(self.post(url, b'{"task": "go"}', sign(b'{"task": "go"}', execution_id="b"))[0], 200)
            self.assertEqual(waiting.result(), (200, {"success": True}))
