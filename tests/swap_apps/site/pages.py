"""The pages beside Django's admin."""
import datetime
import random
import time
import uuid

from django.contrib import admin
from django.http import Http404, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.urls import path
from django.views.decorators.cache import cache_control
from django.views.decorators.http import last_modified

MADE = datetime.datetime(2001, 9, 9, 1, 46, 40, tzinfo=datetime.timezone.utc)


def home(request):
    request.session["visits"] = visits = request.session.get("visits", 0) + 1
    lines = "".join(f'<li><a href="/articles/{number}/">article {number}</a></li>\n' for number in range(1, 25))
    return HttpResponse(f'<!doctype html><html><head><title>Site</title><link rel="stylesheet" href="/static/admin/css/base.css"></head><body>\n'
                        f'<p>Visit {visits} at {time.time():.6f}</p>\n<ul>\n{lines}</ul>\n<a href="/admin/">admin</a> <a href="/media/">media</a>\n'
                        f'<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}"></form></body></html>')


@cache_control(public=True, max_age=120)
@last_modified(lambda request, number: MADE)
def article(request, number):
    if number > 24:
        raise Http404("no such article")
    return HttpResponse(f'<!doctype html><html><body><h1>Article {number}</h1>\n{"<p>Some words of an article, which go on and on.</p>" * 30}\n</body></html>')


def search(request):
    found = [{"id": number, "title": f"article {number}"} for number in range(1, 25) if request.GET.get("q", "") in f"article {number}"]
    random.shuffle(found)
    return JsonResponse({"found": found, "took": random.random(), "id": str(uuid.uuid4())})


def moved(request):
    return HttpResponseRedirect(request.build_absolute_uri("/articles/1/"))


def languages(request, code):
    answer = HttpResponseRedirect("/")
    answer.set_cookie("language", code, max_age=3600, samesite="Lax")
    return answer


urlpatterns = [path("", home), path("articles/<int:number>/", article), path("search/", search), path("moved/", moved), path("language/<str:code>/", languages),
               path("admin/", admin.site.urls)]
