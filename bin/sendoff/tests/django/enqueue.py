"""Makes the tables, then enqueues what it is told: a line of JSON with calls in, a line with what came of each out."""

import json
import os
import sys
from datetime import datetime

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shopsite.settings")

import django

django.setup()

import decimal
import uuid

import sentry_sdk
import structlog
from celery import chain, chord, group
from celery.result import GroupResult
from django.core.management import call_command
from django.db import transaction
from shopsite import app as shop

sentry_sdk.init(traces_sample_rate=1.0)


def traced(call):
    with sentry_sdk.start_transaction(op="http.server", name="request"):
        return call()


def in_context(call):
    with structlog.contextvars.bound_contextvars(request_id="abc", user_id=42):
        return call()


def stamped(signature, **stamps):
    signature.stamp(**stamps, stamped_headers=list(stamps))
    return signature


names = {**vars(shop), **globals()}


def ids(result):
    """Of the tasks that come first."""
    while result.parent is not None:
        result = result.parent
    return [each.id for each in result.results] if isinstance(result, GroupResult) else [result.id]


def enqueue(call):
    """What the application could not enqueue does not take the rest of its transaction with it here."""
    moments = {name: datetime.fromisoformat(call[name]) for name in ("eta", "later")}
    given = {**names, **moments, "tag": call["tag"], "queue": os.environ["SHOP_QUEUE"]}
    try:
        with transaction.atomic():
            return {"ids": ids(eval(call["call"], given))}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}


call_command("migrate", verbosity=0)
print("ready", flush=True)
for line in sys.stdin:
    with transaction.atomic():
        answer = [enqueue(call) for call in json.loads(line)]
    print(json.dumps(answer), flush=True)
