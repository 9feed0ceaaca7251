"""Webhook receivers: ASGI and WSGI applications that run handlers and return their outcomes."""
from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Any, Awaitable, Callable, Dict, Iterable, Iterator, List, Mapping, MutableMapping, Optional, Tuple

from .handlers import Execution, Handler, Handlers, failure, handler_of, run, run_async
from .webhook import InvalidSignature, Secrets, Webhook, verify_webhook

MOST_BYTES = 2 * 1024 * 1024
"""Maximum size of a body; a payload has at most 1 MiB."""
MOST_OUTCOME_BYTES = 64_000
"""The service reads 64 KB of a response."""
KEPT_OUTCOMES = 10_000
"""Outcomes kept for repeated deliveries."""

Message = MutableMapping[str, Any]


def wsgi(handlers: Handlers, secrets: Secrets) -> Callable[[Dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """Returns a WSGI application, such as for Flask and Django. See `asgi`."""
    receiver = _Receiver(handlers, secrets)

    def application(environ: Dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        body = environ["wsgi.input"].read(size) if 0 < size <= MOST_BYTES else b""
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        try:
            execution, handler = receiver.open(body, headers, size)
            outcome, is_first = receiver.outcome_of(execution)
            if is_first:
                with receiver.settle(execution, outcome):
                    outcome.set_result(_readable(run(handler, execution)))
            status, answer = 200, outcome.result()
        except _Refusal as refusal:
            status, answer = refusal.status, refusal.body
        data = json.dumps(answer).encode()
        start_response(f"{status} {_REASONS[status]}", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
        return [data]

    return application


def asgi(handlers: Handlers, secrets: Secrets) -> Callable[..., Awaitable[None]]:
    """Returns an ASGI application, such as for FastAPI and Starlette.

    It verifies the raw body and calls the handler of the payload's `task`; `*` handles any other task. The response is 200 with the
    outcome, so that a cue with `delivery.await_outcome` needs no other report: `{"success": false, "error": …}` if the handler fails.
    An invalid signature gets 401, an unknown task 404. An execution that is delivered again while this process remembers it isn't run
    again, but gets the same outcome.
    """
    receiver = _Receiver(handlers, secrets)

    async def application(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"pgcue.asgi does not handle {scope['type']}")
        body, has_more, size = bytearray(), True, 0
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            if size <= MOST_BYTES:
                body += message.get("body", b"")
            has_more = message.get("more_body", False)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            execution, handler = receiver.open(bytes(body), headers, size)
            outcome, is_first = receiver.outcome_of(execution)
            if is_first:
                with receiver.settle(execution, outcome):
                    outcome.set_result(_readable(await run_async(handler, execution)))
            # A repeated delivery that is cut off must not cancel the outcome of the first one.
            status, answer = 200, await asyncio.shield(asyncio.wrap_future(outcome))
        except _Refusal as refusal:
            status, answer = refusal.status, refusal.body
        data = json.dumps(answer).encode()
        length = str(len(data)).encode()
        start = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": status, "headers": start})
        await send({"type": "http.response.body", "body": data})

    return application


_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large"}


def _readable(outcome: Dict[str, Any]) -> Dict[str, Any]:
    is_long = len(json.dumps(outcome)) > MOST_OUTCOME_BYTES
    return failure(f"the outcome has more than {MOST_OUTCOME_BYTES} bytes") if is_long else outcome


def _subject(webhook: Webhook, task: Optional[str]) -> str:
    """What has no handler, and what to do."""
    if not webhook.execution_id:
        return "webhooks that are not executions: send them to another address."
    if task is None:
        return 'a payload without "task": set it in the cue, or add the handler "*".'
    return f'the task {json.dumps(task)}: add it, or the handler "*" for all others.'


class _Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message}}


class _Receiver:
    def __init__(self, handlers: Handlers, secrets: Secrets) -> None:
        self._handlers = handlers
        self._secrets: List[str] = [secrets] if isinstance(secrets, str) else list(secrets)
        if not self._secrets or not all(self._secrets):
            raise ValueError("a receiver needs the signing secret")
        self._lock = threading.Lock()
        self._outcomes: "OrderedDict[str, Future[Dict[str, Any]]]" = OrderedDict()

    def open(self, body: bytes, headers: Mapping[str, str], size: int) -> Tuple[Execution, Handler]:
        """Verifies a request and finds its handler."""
        if size > MOST_BYTES:
            raise _Refusal(413, "payload_too_large", f"The body has more than {MOST_BYTES} bytes.")
        try:
            webhook = verify_webhook(body, headers, self._secrets)
        except InvalidSignature as error:
            raise _Refusal(400 if error.code == "not_json" else 401, error.code, str(error)) from None
        values = {name.lower(): value for name, value in headers.items()}
        task = webhook.payload.get("task") if isinstance(webhook.payload, Mapping) else None
        task = task if isinstance(task, str) else None
        handler = handler_of(self._handlers, task) if webhook.execution_id else None
        if handler is None:
            raise _Refusal(404, "unknown_task", f"Nothing here handles {_subject(webhook, task)}")
        token = values.get("x-service-execution-token") or values.get("authorization", "")
        execution = Execution(
            execution_id=webhook.execution_id, cue_id=webhook.cue_id, task=task, payload=webhook.payload, attempt=webhook.attempt,
            scheduled_for=webhook.scheduled_for, token=token[7:] if token.startswith("Bearer ") else token,
        )
        return execution, handler

    def outcome_of(self, execution: Execution) -> "Tuple[Future[Dict[str, Any]], bool]":
        """Returns the outcome to come, and whether the caller has to produce it."""
        with self._lock:
            outcome = self._outcomes.get(execution.execution_id)
            if outcome is not None:
                return outcome, False
            outcome = self._outcomes[execution.execution_id] = Future()
            if len(self._outcomes) > KEPT_OUTCOMES:
                for execution_id in [key for key, value in self._outcomes.items() if value.done()][: KEPT_OUTCOMES // 10]:
                    del self._outcomes[execution_id]
            return outcome, True

    @contextlib.contextmanager
    def settle(self, execution: Execution, outcome: "Future[Dict[str, Any]]") -> Iterator[None]:
        """Forgets an execution whose handler is interrupted, such as by the end of the server: the next delivery runs it again."""
        try:
            yield
        except BaseException:
            with self._lock:
                del self._outcomes[execution.execution_id]
            outcome.set_exception(RuntimeError("the handler was interrupted"))
            raise
