"""Where the tables and the broker are, a test says in the environment."""

import json
import os

DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    import pymysql

    # Django checks the version of the driver that this one replaces.
    pymysql.version_info = (2, 2, 7, "final", 0)
    pymysql.install_as_MySQLdb()

SECRET_KEY = "only for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django_celery_outbox"]
CELERY_OUTBOX_APP = "shopsite.app.app"
MONITORING_METRICS_ENABLED = False
# The package's own relay rejects SQLite; these tests use another relay.
SILENCED_SYSTEM_CHECKS = ["celery_outbox.E001"]
