"""Where the tables and the broker are, a test says in the environment."""

import json
import os

DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    import pymysql

    # Django asks for the version of another driver that this one stands in for.
    pymysql.version_info = (2, 2, 7, "final", 0)
    pymysql.install_as_MySQLdb()

SECRET_KEY = "only for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_celery_outbox"]
CELERY_OUTBOX_APP = "shopsite.app.app"
MONITORING_METRICS_ENABLED = False
# The package's own relay refuses SQLite; this is about another one.
SILENCED_SYSTEM_CHECKS = ["celery_outbox.E001"]
