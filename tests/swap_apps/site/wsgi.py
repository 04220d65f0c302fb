"""Django's admin and a few pages of its own, on SQLite: `python wsgi.py` makes the database, gunicorn serves `application`."""
import os
import sys

import django
from django.conf import settings

HERE = os.environ["SITE"]
settings.configure(
    SECRET_KEY="only for this run", ROOT_URLCONF="pages", ALLOWED_HOSTS=["*"], STATIC_URL="/static/", USE_TZ=True, USE_X_FORWARDED_HOST=True,
    SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"), SESSION_SAVE_EVERY_REQUEST=False,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE + "/site.db", "OPTIONS": {"timeout": 20}}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib." + name for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")],
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.contrib.sessions.middleware.SessionMiddleware",
                "django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware", "django.contrib.messages.middleware.MessageMiddleware",
                "django.middleware.clickjacking.XFrameOptionsMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {"context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages"]}}])
django.setup()

if __name__ == "__main__":
    from django.contrib.auth.models import User
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    User.objects.create_superuser("kim", "kim@site.example", "secret")
    sys.exit(0)

from django.core.wsgi import get_wsgi_application  # noqa: E402

application = get_wsgi_application()
