"""The application: its tasks go to the outbox. The workers that run them have the same names."""

import os

from django_celery_outbox import OutboxCelery

app = OutboxCelery("shop", broker=os.environ["SHOP_BROKER"], backend=os.environ["SHOP_BACKEND"])
app.conf.update(task_default_queue=os.environ["SHOP_QUEUE"])
if os.environ["SHOP_BROKER"].startswith("amqp"):
    if priority := os.environ.get("SHOP_MAX_PRIORITY", "10"):
        app.conf.task_queue_max_priority = int(priority)
    app.conf.broker_transport_options = {"confirm_publish": os.environ.get("SHOP_CONFIRM", "1") == "1"}


def task(name, **options):
    """Nothing is run here, so all have the same body."""

    @app.task(name=name, **options)
    def body(*args, **kwargs):
        return None

    return body


add = task("shop.add")
join = task("shop.join")
list_ = task("shop.list")
echo = task("shop.echo")
show = task("shop.show")
again = task("shop.again")
fail = task("shop.fail")
on_error = task("shop.on_error")
routed = task("shop.routed")
glob_one = task("shop.glob.one")
quiet = task("shop.quiet", ignore_result=True)
yaml = task("shop.yaml", serializer="yaml")
defaults = task(
    "shop.defaults",
    queue=os.environ["SHOP_QUEUE"] + ".defaults",
    priority=7,
    expires=900,
    time_limit=30,
    soft_time_limit=20,
    compression="gzip",
)
