"""The application: its tasks go to the outbox. The workers that run them have the same names."""

import os

from django_celery_outbox import OutboxCelery

app = OutboxCelery("shop", broker=os.environ["SHOP_BROKER"], backend=os.environ["SHOP_BACKEND"])
app.conf.update(task_default_queue=os.environ["SHOP_QUEUE"])
if os.environ["SHOP_BROKER"].startswith("amqp"):
    if priority := os.environ.get("SHOP_MAX_PRIORITY", "10"):
        app.conf.task_queue_max_priority = int(priority)
    app.conf.broker_transport_options = {"confirm_publish": os.environ.get("SHOP_CONFIRM", "1") == "1"}


@app.task(name="shop.add")
def add(x, y):
    return x + y


@app.task(name="shop.echo")
def echo(*args, **kwargs):
    return [args, kwargs]


@app.task(name="shop.total")
def total(numbers):
    return sum(numbers)


@app.task(name="shop.fail")
def fail():
    raise ValueError("as it should")


@app.task(name="shop.on_error")
def on_error(request, exc, traceback):
    return None
