"""Enqueues tasks in a transaction, and prints their ids as JSON. Its argument names a set of them."""

import json
import os
import sys
from datetime import datetime, timedelta, timezone

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shopsite.settings")

import django

django.setup()

from celery import chain, chord, group
from django.db import transaction
from shopsite.app import add, app, echo, fail, on_error, total


def early():
    """What lies in the broker before there is a worker."""
    ids = {f"priority {p}": add.apply_async((p, 1000), priority=p).id for p in (3, 9, 0, 6)}
    ids["expired"] = add.apply_async((1, 1), expires=1).id
    ids["expires later"] = add.apply_async((6, 6), expires=600).id
    return ids


def every():
    now = datetime.now(timezone.utc)
    stamped = add.s(7, 8)
    stamped.stamp(monitoring_id="m-1", stamped_headers=["monitoring_id"])
    ids = {
        "plain": add.delay(2, 3).id,
        "no arguments": echo.delay().id,
        "arguments": echo.apply_async(
            args=[1, "\u00e9", None, True, 1.5, [1, 2], {"b": 1, "a": {"n": None}}],
            kwargs={"zeta": 1, "jp": "\u65e5\u672c", "q": "it's \"q\""},
        ).id,
        "keys that are numbers": echo.delay({1: "a", None: "b"}).id,
        "by name": app.send_task("shop.echo", args=("x",), kwargs={"k": 1}).id,
        "own id": add.apply_async((1, 9), task_id="nightly-" + now.isoformat()).id,
        "countdown": add.apply_async((4, 4), countdown=2).id,
        "eta": add.apply_async((5, 5), eta=now + timedelta(seconds=2)).id,
        "expires at": add.apply_async((6, 7), expires=now + timedelta(hours=1)).id,
        "queue": add.apply_async((3, 3), queue=os.environ["SHOP_QUEUE"]).id,
        "time limits": echo.apply_async(time_limit=60, soft_time_limit=50).id,
        "how to retry": add.apply_async((8, 8), retry=True, retry_policy={"max_retries": 7}).id,
        "not retried": add.apply_async((8, 9), retry=False).id,
        "ignored": add.apply_async((9, 9), ignore_result=True).id,
        "shadow": add.apply_async((9, 10), shadow="pretty.name").id,
        "hidden": add.apply_async((10, 10), argsrepr="(hidden)", kwargsrepr="{hidden}").id,
        "stamped": stamped.apply_async().id,
        "link": add.apply_async((50, 1), link=add.s(500)).id,
        "link_error": fail.apply_async(link_error=on_error.s()).id,
    }
    chain(add.s(20, 1), add.s(100), add.s(300)).apply_async()
    group(add.s(30 + i, 0) for i in range(3)).apply_async()
    chord([add.s(40, 1), add.s(40, 2)])(total.s())
    (add.s(60, 1) | group(add.s(1), add.s(2)) | total.s()).apply_async()
    return ids


with transaction.atomic():
    ids = {"early": early, "every": every}[sys.argv[1]]()
print(json.dumps(ids))
