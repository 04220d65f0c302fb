#!/usr/bin/env python3
"""Writes the dashboard for Grafana in both languages, from the table ROWS: weir.json and weir.ko.json.

    dashboard.py            writes both files
    dashboard.py --check    fails if a file is not current

In a query, `@I`, `@Z` and `@U` stand for the label matchers of the dashboard's variables, and `@R` for Grafana's interval for rates.
"""
import json
import pathlib
import sys

LANGUAGES = {"en": "weir.json", "ko": "weir.ko.json"}
HERE = pathlib.Path(__file__).resolve().parent

# The import asks for a data source and puts it in place of this name. A dashboard that Grafana reads from a folder gets no such question:
# there, the variable of the same name holds the data source.
SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
INSTANCE = 'instance=~"$instance"'
MATCHERS = {
    "@I": INSTANCE,
    "@Z": f'{INSTANCE}, zone=~"$zone"',
    "@U": f'{INSTANCE}, upstream=~"$upstream"',
    "@R": "$__rate_interval",
}
# Limits whose end is no trouble: weir then removes the oldest entry.
HARMLESS = 'kind=~"pool|cache_size"'
TROUBLE = 'kind!~"pool|cache_size"'

GRID = 24
DAY = 86400


def said(text, language):
    """A text in a language; a plain string is the same in both."""
    return text if isinstance(text, str) else text[0 if language == "en" else 1]


class Panel:
    """A panel: its kind in Grafana, title and help in both languages, and its queries with their legends."""

    def __init__(self, kind, title, help, *queries, unit="short", wide=8, high=8, steps=(), stack=False, most=None, none=None):
        self.kind, self.title, self.help, self.queries = kind, title, help, queries
        self.unit, self.wide, self.high, self.steps = unit, wide, high, steps
        self.stack, self.most, self.none = stack, most, none


def chart(*args, **more):
    return Panel("timeseries", *args, **more)


def stat(*args, **more):
    return Panel("stat", *args, wide=4, high=4, **more)


# Amber and red, where a value is trouble. Panels without steps have no colour that warns.
NEAR = (("orange", 0.8), ("red", 0.95))
ANY = (("orange", 1),)
BAD = (("red", 1),)

ROWS = [
    (("Is it healthy?", "정상인가?"), [
        stat(("Edges that answer", "응답하는 엣지"),
             ("Edges whose metrics Prometheus can read.", "Prometheus가 지표를 읽을 수 있는 엣지의 수입니다."),
             ('count(weir_up{@I}) or vector(0)', ""), steps=(("red", None), ("green", 1))),
        stat(("Edges that do not answer", "응답하지 않는 엣지"),
             ("Targets of the scrape job \"weir\" that do not answer.", "수집 작업 \"weir\"의 대상 가운데 응답하지 않는 엣지의 수입니다."),
             ('count(up{job="weir", @I} == 0) or vector(0)', ""), steps=BAD),
        stat(("Alerts that fire", "울리는 경보"),
             ("Alerts of weir.rules.yml that fire now. The table below names them.", "지금 울리는 weir.rules.yml의 경보 수입니다. 아래 표에 이름이 있습니다."),
             ('count(ALERTS{alertname=~"Weir.+", alertstate="firing", @I}) or vector(0)', ""), steps=ANY),
        stat(("Requests that fail", "실패하는 요청"),
             ("Requests that were answered 5xx, cut short, or not answered because the origin failed; over five minutes. Requests that a limit refused do not count.",
              "5xx로 응답했거나, 응답이 도중에 끊겼거나, 오리진 실패로 응답하지 못한 요청의 비율입니다(최근 5분). limit_req나 limit_conn이 거절한 요청은 세지 않습니다."),
             ('sum(rate(weir_server_failed_total{@Z}[5m])) / sum(rate(weir_server_requests_total{@Z}[5m]))', ""),
             unit="percentunit", steps=(("orange", 0.01), ("red", 0.05))),
        stat(("Fullest limit", "가장 많이 찬 한도"),
             ("The share in use of the limit that is nearest to its end. A full cache and a full pool of kept connections do not count, because they are no trouble.",
              "끝에 가장 가까운 한도의 사용률입니다. 캐시와 keepalive 연결 풀은 가득 차도 문제가 아니므로 세지 않습니다."),
             ('max(weir_limit_used{@I, ' + TROUBLE + '} / weir_limit{@I, ' + TROUBLE + '})', ""), unit="percentunit", steps=NEAR),
        stat(("Servers that are down", "사용할 수 없는 업스트림 서버"),
             ("Servers of upstream groups to which weir sends no requests now: after failures, after failed health checks, or taken out by hand.",
              "지금 weir가 요청을 보내지 않는 업스트림 서버의 수입니다. 실패나 상태 검사 실패로 제외했거나, 사람이 내린 서버입니다."),
             ('count(weir_upstream_up{@U} == 0) or vector(0)', ""), steps=ANY),
        stat(("Requests per second", "초당 요청"), ("Requests that clients began.", "클라이언트가 시작한 요청입니다."),
             ('sum(rate(weir_server_requests_total{@Z}[@R]))', ""), unit="reqps"),
        stat(("Slowest 1 % take", "가장 느린 1 %"),
             ("The 99th percentile of the request time, of the slowest server; over the last 10 to 15 seconds.",
              "가장 느린 서버의 요청 처리 시간 99번째 백분위수입니다(최근 10~15초)."),
             ('max(weir_server_request_seconds{@Z, quantile="0.99"})', ""), unit="s"),
        stat(("Client connections", "클라이언트 연결"), ("Connections that clients hold open.", "클라이언트가 열어 둔 연결입니다."),
             ('sum(weir_connections{@I})', "")),
        stat(("Open WebSockets", "열린 WebSocket"), ("Upgraded connections.", "업그레이드된 연결입니다."), ('sum(weir_websockets{@I})', "")),
        stat(("Next certificate ends in", "다음 인증서 만료까지"),
             ("Time until the first certificate ends. Certificates that weir renews itself count too.",
              "가장 먼저 끝나는 인증서의 남은 시간입니다. weir가 직접 갱신하는 인증서도 셉니다."),
             ('min(weir_certificate_expiry_seconds{@I})', ""), unit="s",
             steps=(("red", None), ("orange", DAY), ("green", 7 * DAY)), none=("no certificate", "인증서 없음")),
        stat(("Answered by the cache", "캐시 응답 비율"),
             ("The share of the requests to caches that needed no new answer of an origin.", "캐시를 거친 요청 가운데 오리진의 새 응답 없이 처리한 비율입니다."),
             ('sum(rate(weir_cache_requests_total{@I, status=~"hit|stale|updating|revalidated"}[@R])) / sum(rate(weir_cache_requests_total{@I}[@R]))', ""),
             unit="percentunit", none=("no request", "요청 없음")),
        Panel("table", ("Alerts", "경보"),
              ("Alerts that fire, or that will fire if their cause stays (pending). The annotation of an alert names the remedy.",
               "울리는 경보와, 원인이 계속되면 울릴 경보(pending)입니다. 각 경보의 주석에 해결 방법이 있습니다."),
              ('ALERTS{alertname=~"Weir.+", @I}', ""), wide=24, high=6, none=("no alert", "경보 없음")),
    ]),
    (("Traffic", "트래픽"), [
        chart(("Requests by server", "서버별 요청"), ("Requests that clients began, by server zone.", "클라이언트가 시작한 요청, 서버 존별."),
              ('sum by (zone) (rate(weir_server_requests_total{@Z}[@R]))', "{{zone}}"), unit="reqps"),
        chart(("Answers by status", "상태 코드별 응답"), ("Answers that weir sent, by exact status.", "weir가 보낸 응답, 정확한 상태 코드별."),
              ('sum by (code) (rate(weir_server_responses_total{@Z}[@R]))', "{{code}}"), unit="reqps", stack=True),
        chart(("Bytes", "바이트"), ("Bytes from clients and to clients.", "클라이언트에서 받은 바이트와 클라이언트로 보낸 바이트입니다."),
              ('sum(rate(weir_server_received_bytes_total{@Z}[@R]))', ("from clients", "받음")),
              ('sum(rate(weir_server_sent_bytes_total{@Z}[@R]))', ("to clients", "보냄")), unit="binBps"),
        chart(("Busiest locations", "요청이 많은 location"), ("The ten locations with the most requests.", "요청이 가장 많은 location 열 개입니다."),
              ('topk(10, sum by (zone) (rate(weir_location_requests_total{@I}[@R])))', "{{zone}}"), unit="reqps"),
        chart(("Client connections", "클라이언트 연결"), ("Connections with a request, and connections that wait for the next request.", "요청을 처리하는 연결과 다음 요청을 기다리는 연결입니다."),
              ('sum by (state) (weir_connections{@I})', "{{state}}"), stack=True),
        chart(("Requests under way", "처리 중인 요청"), ("Requests that have begun and not ended, by server zone.", "시작하고 아직 끝나지 않은 요청, 서버 존별."),
              ('sum by (zone) (weir_server_processing{@Z})', "{{zone}}")),
    ]),
    (("Latency", "지연 시간"), [
        chart(("Request time by quantile", "분위별 요청 처리 시간"),
              ("From the first byte of a request to the last byte of its answer, over the last 10 to 15 seconds. Quantiles cannot be added up: each line is the slowest server.",
               "요청의 첫 바이트부터 응답의 마지막 바이트까지의 시간입니다(최근 10~15초). 분위수는 합칠 수 없으므로 가장 느린 서버의 값입니다."),
              ('max by (quantile) (weir_server_request_seconds{@Z})', "{{quantile}}"), unit="s"),
        chart(("Slowest 1 % by server", "서버별 가장 느린 1 %"), ("The 99th percentile of the request time, by server zone.", "요청 처리 시간의 99번째 백분위수, 서버 존별."),
              ('max by (zone) (weir_server_request_seconds{@Z, quantile="0.99"})', "{{zone}}"), unit="s"),
        chart(("Average request time by server", "서버별 평균 요청 처리 시간"), ("Averages over the interval of the chart, of all edges together.", "차트 간격 동안 모든 엣지를 합친 평균입니다."),
              ('sum by (zone) (rate(weir_server_request_seconds_sum{@Z}[@R])) / sum by (zone) (rate(weir_server_request_seconds_count{@Z}[@R]))', "{{zone}}"), unit="s"),
        chart(("Slowest locations", "느린 location"), ("The ten locations whose slowest 1 % take the longest.", "99번째 백분위수가 가장 큰 location 열 개입니다."),
              ('topk(10, max by (zone) (weir_location_request_seconds{@I, quantile="0.99"}))', "{{zone}}"), unit="s"),
        chart(("Time by step", "단계별 시간"),
              ("The seconds that each second's requests spend in each step together. The thickest step takes the time: wait is the origin, queue and pool are limits, write is the client.",
               "매초의 요청이 각 단계에서 보낸 시간의 합입니다. 가장 두꺼운 단계가 시간을 씁니다. wait는 오리진, queue와 pool은 한도, write는 클라이언트입니다."),
              ('sum by (step) (rate(weir_step_seconds_sum{@I}[@R]))', "{{step}}"), unit="s", stack=True),
        chart(("Slowest 1 % by step", "단계별 가장 느린 1 %"), ("The 99th percentile of each step, of the slowest edge; over the last 10 to 15 seconds.", "가장 느린 엣지의 단계별 99번째 백분위수입니다(최근 10~15초)."),
              ('max by (step) (weir_step_seconds{@I, quantile="0.99"})', "{{step}}"), unit="s"),
    ]),
    (("Errors by reason", "이유별 오류"), [
        chart(("Errors by reason", "이유별 오류"),
              ("Errors by status and reason. \"502 connection refused\": the client got 502. \"try …\": a try failed and another server or the cache answered. 413, 499 and similar: the request or the client.",
               "상태 코드와 이유별 오류입니다. \"502 connection refused\"는 클라이언트가 502를 받은 경우, \"try …\"는 한 서버가 실패하고 다른 서버나 캐시가 응답한 경우, 413이나 499 등은 요청이나 클라이언트가 원인인 경우입니다."),
              ('sum by (class) (rate(weir_errors_total{@I}[@R]))', "{{class}}"), unit="reqps"),
        chart(("Failed requests by server", "서버별 실패한 요청"), ("The share of the requests of each server zone that failed.", "서버 존별로 실패한 요청의 비율입니다."),
              ('sum by (zone) (rate(weir_server_failed_total{@Z}[@R])) / sum by (zone) (rate(weir_server_requests_total{@Z}[@R]))', "{{zone}}"), unit="percentunit"),
        chart(("Answers 4xx and 5xx", "4xx와 5xx 응답"), ("Answers that say that something is wrong, by server zone and status.", "서버 존과 상태 코드별 4xx와 5xx 응답입니다."),
              ('sum by (zone, code) (rate(weir_server_responses_total{@Z, code=~"[45].."}[@R]))', "{{zone}} {{code}}"), unit="reqps"),
        chart(("Refused by limit_req", "limit_req가 거절한 요청"), ("Requests that limit_req refused or delayed, as configured.", "limit_req가 설정대로 거절하거나 늦춘 요청입니다."),
              ('sum by (zone, verdict) (rate(weir_limit_req_total{@I, verdict!="passed"}[@R]))', "{{zone}} {{verdict}}"), unit="reqps"),
        chart(("Refused by limit_conn", "limit_conn이 거절한 요청"), ("Requests that limit_conn refused, as configured.", "limit_conn이 설정대로 거절한 요청입니다."),
              ('sum by (zone, verdict) (rate(weir_limit_conn_total{@I, verdict!="passed"}[@R]))', "{{zone}} {{verdict}}"), unit="reqps"),
        chart(("Ended without an answer", "응답 없이 끝난 요청"), ("Requests that got no byte of an answer: mostly the client left.", "응답을 한 바이트도 받지 못한 요청입니다. 대부분 클라이언트가 먼저 떠난 경우입니다."),
              ('sum by (zone) (rate(weir_server_discarded_total{@Z}[@R]))', "{{zone}}"), unit="reqps"),
    ]),
    (("Upstream servers", "업스트림 서버"), [
        Panel("state-timeline", ("Up and down", "사용 가능 여부"),
              ("Whether weir may send requests to a server. A server that failed is excluded for fail_timeout, and then counts as up until it fails again.",
               "weir가 서버에 요청을 보낼 수 있는지 보여 줍니다. 실패한 서버는 fail_timeout 동안 제외되고, 그 뒤 다시 실패할 때까지는 사용 가능으로 봅니다."),
              ('min by (upstream, peer) (weir_upstream_up{@U})', "{{upstream}} {{peer}}"), wide=24, high=6),
        chart(("Tries by server", "서버별 시도"), ("Requests that weir sent to each server, retries included.", "weir가 각 서버에 보낸 요청입니다. 재시도도 셉니다."),
              ('sum by (upstream, peer) (rate(weir_upstream_requests_total{@U}[@R]))', "{{upstream}} {{peer}}"), unit="reqps"),
        chart(("Failed tries by reason", "이유별 실패한 시도"), ("Tries that failed, by server and reason.", "서버와 이유별로 실패한 시도입니다."),
              ('sum by (peer, reason) (rate(weir_upstream_fails_total{@U}[@R]))', "{{peer}} {{reason}}"), unit="reqps"),
        chart(("Retries", "재시도"), ("Tries at a server after another server had failed.", "다른 서버가 실패한 뒤에 이 서버로 보낸 시도입니다."),
              ('sum by (upstream, peer) (rate(weir_upstream_retries_total{@U}[@R]))', "{{upstream}} {{peer}}"), unit="reqps"),
        chart(("Slowest 1 % of answers", "가장 느린 1 %의 응답"), ("Time to the head of a server's answer, 99th percentile.", "서버의 응답 헤더가 올 때까지의 시간, 99번째 백분위수입니다."),
              ('max by (upstream, peer) (weir_upstream_header_seconds{@U, quantile="0.99"})', "{{upstream}} {{peer}}"), unit="s"),
        chart(("Average answer", "평균 응답"), ("Average time to the head of a server's answer.", "서버의 응답 헤더가 올 때까지의 평균 시간입니다."),
              ('sum by (upstream, peer) (rate(weir_upstream_header_seconds_sum{@U}[@R])) / sum by (upstream, peer) (rate(weir_upstream_header_seconds_count{@U}[@R]))', "{{upstream}} {{peer}}"), unit="s"),
        chart(("Answers 5xx by server", "서버별 5xx 응답"), ("Answers 5xx that the servers gave themselves.", "서버가 스스로 보낸 5xx 응답입니다."),
              ('sum by (upstream, peer, code) (rate(weir_upstream_responses_total{@U, code=~"5.."}[@R]))', "{{upstream}} {{peer}} {{code}}"), unit="reqps"),
        chart(("Requests under way", "처리 중인 요청"), ("Requests that a server is answering, and requests that wait in the queue of a group.", "서버가 처리 중인 요청과 그룹의 대기열에서 기다리는 요청입니다."),
              ('sum by (upstream, peer) (weir_upstream_active{@U})', "{{upstream}} {{peer}}"),
              ('sum by (upstream) (weir_upstream_queue{@U})', ("{{upstream}} queue", "{{upstream}} 대기열"))),
        chart(("Kept connections used", "keepalive 연결 사용률"),
              ("The share of tries over a connection that was open already. A low share costs a local port for each try.",
               "이미 열려 있던 연결을 쓴 시도의 비율입니다. 낮으면 시도마다 로컬 포트를 하나씩 씁니다."),
              ('sum by (upstream) (rate(weir_upstream_connections_total{@U, how="reused"}[@R])) / sum by (upstream) (rate(weir_upstream_connections_total{@U}[@R]))', "{{upstream}}"), unit="percentunit", most=1),
        chart(("Idle connections", "유휴 연결"), ("Idle connections that weir keeps to each server.", "weir가 각 서버에 열어 둔 유휴 연결입니다."),
              ('sum by (upstream, peer) (weir_upstream_idle{@U})', "{{upstream}} {{peer}}")),
        chart(("Queue", "대기열"), ("Requests that found no free server: those that waited, waited in vain, or found the queue full.", "빈 서버를 찾지 못한 요청입니다. 기다렸거나, 기다리다 시간이 지났거나, 대기열이 가득 찬 경우입니다."),
              ('sum by (upstream, outcome) (rate(weir_upstream_queue_requests_total{@U}[@R]))', "{{upstream}} {{outcome}}"), unit="reqps"),
        chart(("Health checks", "상태 검사"), ("Health checks of each server, passed and failed.", "서버별 상태 검사의 성공과 실패입니다."),
              ('sum by (peer, result) (rate(weir_upstream_health_checks_total{@U}[@R]))', "{{peer}} {{result}}"), unit="ops"),
    ]),
    (("Caches", "캐시"), [
        chart(("Answered by the cache", "캐시 응답 비율"), ("The share of requests that needed no new answer of an origin.", "오리진의 새 응답 없이 처리한 요청의 비율입니다."),
              ('sum by (cache) (rate(weir_cache_requests_total{@I, status=~"hit|stale|updating|revalidated"}[@R])) / sum by (cache) (rate(weir_cache_requests_total{@I}[@R]))', "{{cache}}"), unit="percentunit", most=1),
        chart(("Requests by cache status", "캐시 상태별 요청"), ("The sum is all requests to the cache.", "합은 캐시를 거친 모든 요청입니다."),
              ('sum by (cache, status) (rate(weir_cache_requests_total{@I}[@R]))', "{{cache}} {{status}}"), unit="reqps", stack=True),
        chart(("Fetches", "오리진에서 가져옴"), ("Answers that weir fetched from origins for the cache.", "캐시를 위해 오리진에서 가져온 응답입니다."),
              ('sum by (cache) (rate(weir_cache_fetches_total{@I}[@R]))', "{{cache}}"), unit="reqps"),
        chart(("Decisions by reason", "이유별 결정"), ("Why the cache served, stored or did not store; the words of $weir_cache_reason.", "캐시가 응답하거나 저장하거나 저장하지 않은 이유입니다. $weir_cache_reason의 단어입니다."),
              ('sum by (cache, reason) (rate(weir_cache_reasons_total{@I}[@R]))', "{{cache}} {{reason}}"), unit="reqps"),
        chart(("Size", "크기"),
              ("Bytes stored, bytes in memory, and max_size. At max_size, weir removes the object that was not used for the longest time: this is no trouble while the share of hits stays.",
               "저장한 바이트, 메모리의 바이트, max_size입니다. max_size에 이르면 weir가 가장 오래 쓰이지 않은 객체를 지웁니다. 캐시 응답 비율이 유지되면 문제가 아닙니다."),
              ('sum by (cache, where) (weir_cache_bytes{@I})', "{{cache}} {{where}}"),
              ('sum by (of) (weir_limit{@I, kind="cache_size"})', "{{of}} max_size"), unit="bytes"),
        chart(("Objects", "객체"), ("Objects stored.", "저장한 객체의 수입니다."), ('sum by (cache) (weir_cache_objects{@I})', "{{cache}}")),
    ]),
    (("Limits beside their use", "한도와 사용량"), [
        Panel("bargauge", ("Limits that hurt when they are full", "가득 차면 문제가 되는 한도"),
              ("The share of each limit that is in use. From 80 % on a limit is near, from 95 % on it is nearly reached.",
               "각 한도의 사용률입니다. 80 %부터는 한도에 가깝고, 95 %부터는 거의 도달했습니다."),
              ('sort_desc(max by (kind, of) (weir_limit_used{@I, ' + TROUBLE + '} / weir_limit{@I, ' + TROUBLE + '}))', "{{kind}} {{of}}"),
              unit="percentunit", most=1, steps=NEAR, wide=12, high=12),
        Panel("bargauge", ("Limits that may be full", "가득 차도 되는 한도"),
              ("A full cache removes its oldest object. A full pool closes further connections after use. Both are no trouble.",
               "가득 찬 캐시는 가장 오래된 객체를 지우고, 가득 찬 풀은 넘치는 연결을 쓴 뒤에 닫습니다. 둘 다 문제가 아닙니다."),
              ('sort_desc(max by (kind, of) (weir_limit_used{@I, ' + HARMLESS + '} / weir_limit{@I, ' + HARMLESS + '}))', "{{kind}} {{of}}"),
              unit="percentunit", most=1, wide=12, high=12),
        Panel("table", ("All limits", "모든 한도"),
              ("Each limit: in use, the most since the start, the limit, and how often it was reached.", "각 한도의 현재 사용량, 시작 이후의 최대 사용량, 한도, 한도에 도달한 횟수입니다."),
              ('weir_limit_used{@I}', ("in use", "사용량")), ('weir_limit_most{@I}', ("most", "최대")),
              ('weir_limit{@I}', ("limit", "한도")), ('weir_limit_hits_total{@I}', ("reached", "도달 횟수")), wide=24, high=9),
        chart(("Use over time", "사용률 추이"), ("The share in use of the limits that hurt.", "가득 차면 문제가 되는 한도의 사용률입니다."),
              ('max by (kind, of) (weir_limit_used{@I, ' + TROUBLE + '} / weir_limit{@I, ' + TROUBLE + '})', "{{kind}} {{of}}"), unit="percentunit", wide=12),
        chart(("Time until a limit is reached", "한도 도달까지 남은 시간"),
              ("For limits whose use rises: the time that is left if the trend of the last 15 minutes goes on. Empty if no use rises, or if the end is more than a day away.",
               "사용량이 늘고 있는 한도만 보여 줍니다. 최근 15분의 추세가 이어질 때 남은 시간입니다. 늘지 않거나 하루보다 많이 남았으면 비어 있습니다."),
              (f'min by (kind, of) ((weir_limit{{@I, kind=~"connections|fds|ports|memory"}} - weir_limit_used) / (deriv(weir_limit_used{{@I, kind=~"connections|fds|ports|memory"}}[15m]) > 0) < {DAY})', "{{kind}} {{of}}"), unit="s", wide=6, none=("no limit is near in time", "곧 도달할 한도 없음")),
        chart(("Limits reached", "한도 도달"), ("How often a limit was reached: then weir or the kernel refused, dropped or delayed something.", "한도에 도달한 횟수입니다. 이때 weir나 커널이 무언가를 거절하거나 버리거나 늦췄습니다."),
              ('sum by (kind, of) (rate(weir_limit_hits_total{@I}[@R]))', "{{kind}} {{of}}"), unit="ops", wide=6),
    ]),
    (("WebSockets", "WebSocket"), [
        chart(("Open", "열린 연결"), ("WebSockets and other upgraded connections that are open, by edge.", "열려 있는 WebSocket과 그 밖의 업그레이드된 연결, 엣지별."),
              ('sum by (instance) (weir_websockets{@I})', "{{instance}}")),
        chart(("Share of the connections", "연결에서 차지하는 비율"),
              ("A WebSocket takes two places in the table of connections. weir cannot close it to make room.", "WebSocket 하나는 연결 테이블에서 두 자리를 씁니다. weir는 자리를 만들려고 WebSocket을 닫을 수 없습니다."),
              ('2 * sum by (instance) (weir_websockets{@I}) / sum by (instance) (weir_limit{@I, kind=~"connections|fds", of=~"worker .+"})', "{{instance}}"), unit="percentunit"),
        chart(("Opened and closed", "열림과 닫힘"), ("Connections upgraded, and ended by side.", "업그레이드된 연결과, 끝낸 쪽별로 끝난 연결입니다."),
              ('sum(rate(weir_websockets_opened_total{@I}[@R]))', ("opened", "열림")),
              ('sum by (by) (rate(weir_websockets_closed_total{@I}[@R]))', ("closed by {{by}}", "닫힘: {{by}}")), unit="ops"),
        chart(("Messages", "메시지"), ("Messages by sender.", "보낸 쪽별 메시지입니다."), ('sum by (from) (rate(weir_websocket_messages_total{@I}[@R]))', "{{from}}"), unit="ops"),
        chart(("Close codes", "닫기 코드"), ("The code of the first Close, and its sender. 1005: a Close without a code. 1006: no Close at all.", "첫 Close의 코드와 보낸 쪽입니다. 1005는 코드 없는 Close, 1006은 Close 없이 끝난 경우입니다."),
              ('sum by (code, by) (rate(weir_websocket_close_codes_total{@I}[@R]))', "{{code}} {{by}}"), unit="ops"),
        chart(("Round trip of pings", "핑 왕복 시간"), ("Time from a passing ping to its pong, 99th percentile.", "지나가는 핑에서 퐁까지의 시간, 99번째 백분위수입니다."),
              ('max by (to) (weir_websocket_round_trip_seconds{@I, quantile="0.99"})', "{{to}}"), unit="s", wide=4),
        chart(("Age at the end", "끝날 때의 나이"), ("How long upgraded connections were open.", "업그레이드된 연결이 열려 있던 시간입니다."),
              ('max by (quantile) (weir_websocket_age_seconds{@I})', "{{quantile}}"), unit="s", wide=4),
    ]),
    (("TLS and certificates", "TLS와 인증서"), [
        Panel("table", ("Certificates", "인증서"),
              ("Certificates that servers show to clients, with the time that is left, and the failures in a row of those that weir renews itself.",
               "서버가 클라이언트에게 보이는 인증서와 남은 시간, 그리고 weir가 직접 갱신하는 인증서의 연속 실패 횟수입니다."),
              ('weir_certificate_expiry_seconds{@I}', ("seconds left", "남은 초")), ('weir_certificate_failures{@I}', ("failures", "연속 실패")), wide=24, high=7, none=("no certificate", "인증서 없음")),
        chart(("Handshakes", "핸드셰이크"), ("TLS handshakes with clients: done, resumed (of those done), failed.", "클라이언트와의 TLS 핸드셰이크입니다. done은 완료, resumed는 그중 재개, failed는 실패입니다."),
              ('sum by (zone, result) (rate(weir_tls_handshakes_total{@Z}[@R]))', "{{zone}} {{result}}"), unit="ops", wide=12),
        chart(("Sessions resumed", "재개한 세션"), ("The share of handshakes that resumed an earlier session. A resumed handshake costs much less CPU.", "이전 세션을 재개한 핸드셰이크의 비율입니다. 재개한 핸드셰이크는 CPU를 훨씬 덜 씁니다."),
              ('sum by (zone) (rate(weir_tls_handshakes_total{@Z, result="resumed"}[@R])) / sum by (zone) (rate(weir_tls_handshakes_total{@Z, result="done"}[@R]))', "{{zone}}"), unit="percentunit", most=1, wide=12),
    ]),
    (("TCP and UDP (stream)", "TCP와 UDP (stream)"), [
        chart(("Sessions by status", "상태별 세션"), ("Sessions of stream that ended, by the class of their status.", "끝난 stream 세션, 상태 코드의 종류별."),
              ('sum by (zone, code) (rate(weir_stream_sessions_total{@I}[@R]))', "{{zone}} {{code}}"), unit="ops", wide=6),
        chart(("Current sessions", "현재 세션"), ("Sessions that are open.", "열려 있는 세션입니다."), ('sum by (zone) (weir_stream_processing{@I})', "{{zone}}"), wide=6),
        chart(("Bytes", "바이트"), ("Bytes from clients and to clients.", "클라이언트에서 받은 바이트와 클라이언트로 보낸 바이트입니다."),
              ('sum by (zone) (rate(weir_stream_received_bytes_total{@I}[@R]))', ("{{zone}} from clients", "{{zone}} 받음")),
              ('sum by (zone) (rate(weir_stream_sent_bytes_total{@I}[@R]))', ("{{zone}} to clients", "{{zone}} 보냄")), unit="binBps", wide=6),
        chart(("Servers", "서버"), ("Sessions that weir passed to each server, and attempts that failed.", "각 서버에 넘긴 세션과 실패한 시도입니다."),
              ('sum by (upstream, peer) (rate(weir_stream_upstream_sessions_total{@I}[@R]))', "{{upstream}} {{peer}}"),
              ('sum by (upstream, peer) (rate(weir_stream_upstream_fails_total{@I}[@R]))', ("{{upstream}} {{peer}} failed", "{{upstream}} {{peer}} 실패")), unit="ops", wide=6),
    ]),
    (("Host and process", "호스트와 프로세스"), [
        chart(("CPU of the workers", "워커의 CPU"), ("The share of one CPU that each worker uses. At 100 %, requests wait for their turn.", "각 워커가 쓰는 CPU 하나의 비율입니다. 100 %가 되면 요청이 차례를 기다립니다."),
              ('max by (instance, worker) (weir_worker_cpu{@I})', "{{instance}} {{worker}}"), unit="percentunit", most=1),
        chart(("CPU of the machine", "머신의 CPU"), ("The share of all CPUs' time by kind; steal is time that the hypervisor gave to others.", "모든 CPU 시간의 종류별 비율입니다. steal은 하이퍼바이저가 다른 머신에 준 시간입니다."),
              ('avg by (kind) (weir_host_cpu{@I, kind!="idle"})', "{{kind}}"), unit="percentunit", stack=True, most=1),
        chart(("Memory", "메모리"), ("Memory of weir, and memory in use and in all on the machine.", "weir의 메모리, 머신에서 사용 중인 메모리와 전체 메모리입니다."),
              ('sum by (instance) (weir_process_resident_bytes{@I})', "weir {{instance}}"),
              ('max by (instance) (weir_limit_used{@I, kind="memory"})', ("in use {{instance}}", "사용 중 {{instance}}")),
              ('max by (instance) (weir_limit{@I, kind="memory"})', ("all {{instance}}", "전체 {{instance}}")), unit="bytes"),
        chart(("Configurations loaded", "설정 로드 횟수"), ("How often weir loaded its configuration since the start. A reload that weir refused does not count: the error log has its reason.", "시작 이후 설정을 로드한 횟수입니다. weir가 거절한 리로드는 세지 않습니다. 이유는 오류 로그에 있습니다."),
              ('max by (instance) (weir_config_generation{@I})', "{{instance}}")),
        chart(("Time since the start", "시작 이후 시간"), ("A fall to zero is a start of weir.", "0으로 떨어진 때가 weir를 시작한 때입니다."), ('max by (instance) (weir_uptime_seconds{@I})', "{{instance}}"), unit="s"),
        chart(("Spans for OpenTelemetry", "OpenTelemetry 스팬"), ("Spans exported, dropped because the queue was full, and failed at the collector.", "내보낸 스팬, 대기열이 가득 차서 버린 스팬, 수집기에서 실패한 스팬입니다."),
              ('sum by (outcome) (rate(weir_trace_spans_total{@I}[@R]))', "{{outcome}}"), unit="ops"),
    ]),
]
COLLAPSED = "TCP and UDP (stream)"

TITLE = "weir"
DESCRIPTION = (
    "weir in front of your services: health, traffic, latency, errors by reason, upstream servers, caches, and each limit beside its use.",
    "서비스 앞에 선 weir입니다. 상태, 트래픽, 지연 시간, 이유별 오류, 업스트림 서버, 캐시, 그리고 한도와 사용량을 보여 줍니다.",
)
VARIABLES = [
    ("instance", ("Edge", "엣지"), "label_values(weir_up, instance)"),
    ("zone", ("Server", "서버"), f"label_values(weir_server_requests_total{{{INSTANCE}}}, zone)"),
    ("upstream", ("Upstream", "업스트림"), f"label_values(weir_upstream_requests_total{{{INSTANCE}}}, upstream)"),
]


def query(text):
    for mark, matcher in MATCHERS.items():
        text = text.replace(mark, matcher)
    return text


def targets(panel, language):
    is_instant = panel.kind in ("table", "bargauge")
    made = []
    for index, (text, legend) in enumerate(panel.queries):
        target = {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "expr": query(text),
            "legendFormat": said(legend, language) or "__auto",
            "instant": is_instant,
            "range": not is_instant,
            "format": "table" if panel.kind == "table" else "time_series",
        }
        made.append(target)
    return made


def defaults(panel, language):
    steps = list(panel.steps)
    if not steps or steps[0][1] is not None:
        steps.insert(0, ("green" if steps else "text", None))
    field = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps]},
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
    }
    if panel.kind == "table":
        field = {"custom": {"align": "auto", "filterable": True}}
    if panel.most is not None:
        field["max"] = panel.most
    if panel.none:
        field["noValue"] = said(panel.none, language)
    if panel.kind == "timeseries":
        field["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stack else 0,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stack else "none", "group": "A"},
        }
    if panel.kind == "state-timeline":
        states = (("0", "red", ("down", "내려감")), ("1", "green", ("up", "사용 가능")))
        options = {value: {"color": color, "text": said(text, language)} for value, color, text in states}
        field["mappings"] = [{"type": "value", "options": options}]
        field["custom"] = {"lineWidth": 0, "fillOpacity": 70}
    return field


REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}
LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
OPTIONS = {
    "timeseries": {"legend": LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "state-timeline": {
        "mergeValues": True, "showValue": "never", "rowHeight": 0.9, "alignValue": "left",
        "legend": LEGEND, "tooltip": {"mode": "single", "sort": "none"},
    },
    "stat": {
        "reduceOptions": REDUCED, "orientation": "auto", "textMode": "value", "colorMode": "value", "graphMode": "area", "justifyMode": "auto",
    },
    "bargauge": {
        "reduceOptions": REDUCED, "orientation": "horizontal", "displayMode": "basic", "valueMode": "color", "showUnfilled": True,
        "minVizWidth": 8, "minVizHeight": 16,
    },
    "table": {"frameIndex": 0, "showHeader": True, "cellHeight": "sm"},
}


def columns(panel, language):
    """Transformations of a table: one row for each set of labels, without the columns that nobody reads."""
    hidden = {name: True for name in ("Time", "__name__", "job")}
    names = {f"Value #{chr(ord('A') + index)}": said(legend, language) for index, (_, legend) in enumerate(panel.queries) if legend}
    if not names:
        hidden["Value"] = True
    merge = [{"id": "merge", "options": {}}] if len(panel.queries) > 1 else []
    return merge + [{"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": names}}]


def drawn(panel, number, place, language):
    made = {
        "id": number,
        "type": panel.kind,
        "title": said(panel.title, language),
        "description": said(panel.help, language),
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets(panel, language),
        "fieldConfig": {"defaults": defaults(panel, language), "overrides": []},
        "options": OPTIONS[panel.kind],
    }
    if panel.kind == "table":
        made["transformations"] = columns(panel, language)
    return made


def panels(language):
    """All panels, each row's from left to right and from top to bottom."""
    made, number, top = [], 0, 0
    for title, row in ROWS:
        number += 1
        is_collapsed = title[0] == COLLAPSED
        head = {
            "id": number, "type": "row", "title": said(title, language), "collapsed": is_collapsed, "panels": [],
            "gridPos": {"h": 1, "w": GRID, "x": 0, "y": top},
        }
        made.append(head)
        top, left, high = top + 1, 0, 0
        for panel in row:
            if left + panel.wide > GRID:
                top, left, high = top + high, 0, 0
            number += 1
            place = {"h": panel.high, "w": panel.wide, "x": left, "y": top}
            (head["panels"] if is_collapsed else made).append(drawn(panel, number, place, language))
            left, high = left + panel.wide, max(high, panel.high)
        top += 0 if is_collapsed else high
    return made


def variable(name, label, text, language):
    return {
        "name": name, "label": said(label, language), "type": "query", "datasource": SOURCE, "query": {"query": text, "refId": name},
        "definition": text, "refresh": 2, "sort": 1, "regex": "", "multi": True, "includeAll": True, "allValue": ".*", "hide": 0,
        "options": [], "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "skipUrlSync": False,
    }


def dashboard(language):
    """The dashboard as Grafana imports it."""
    source = {
        "name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1, "regex": "", "multi": False,
        "includeAll": False, "hide": 0, "options": [], "current": {}, "skipUrlSync": False,
    }
    reloads = {
        "name": said(("Configuration loaded", "설정 로드"), language), "datasource": SOURCE, "enable": True, "iconColor": "blue",
        "expr": query("changes(weir_config_generation{@I}[1m]) > 0"), "titleFormat": "{{instance}}",
    }
    return {
        "__inputs": [{
            "name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus", "pluginName": "Prometheus",
            "description": said(("The Prometheus that reads weir's metrics.", "weir의 지표를 읽는 Prometheus입니다."), language),
        }],
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
        ],
        "uid": "weir" if language == "en" else f"weir-{language}",
        "title": TITLE if language == "en" else f"{TITLE} (한국어)",
        "description": said(DESCRIPTION, language),
        "tags": ["weir"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "timezone": "browser",
        "templating": {"list": [source] + [variable(*one, language) for one in VARIABLES]},
        "annotations": {"list": [reloads]},
        "links": [],
        "panels": panels(language),
    }


def written(board):
    """The file's text: a line for each panel, so that a change of one panel is a change of one line."""
    panels = ",\n".join("  " + json.dumps(panel, ensure_ascii=False) for panel in board.pop("panels"))
    head = json.dumps(board, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{head},\n "panels": [\n{panels}\n ]\n}}\n'


def main():
    stale = []
    for language, name in LANGUAGES.items():
        text = written(dashboard(language))
        file = HERE / name
        if sys.argv[1:] != ["--check"]:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"{', '.join(stale)}: not current. Run {pathlib.Path(sys.argv[0]).name} without --check")


if __name__ == "__main__":
    main()
