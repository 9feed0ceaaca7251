"""pgcue for Python: a typed client, a worker, and receivers of webhooks. Needs nothing but the standard library."""
from .api import Client
from .handlers import Execution
from .serve import asgi, wsgi
from .transport import ApiError, Listing
from .webhook import InvalidSignature, Webhook, verify_webhook
from .worker import Worker

__all__ = ["ApiError", "Client", "Execution", "InvalidSignature", "Listing", "Webhook", "Worker", "asgi", "verify_webhook", "wsgi"]
