//! The texts of a report's page.

weir_words::texts! {
    // The head of the page.
    PAGE_TITLE: "Load report", "부하 보고서";
    PAGE_LOAD_WENT: "Load went to {0}", "부하 대상: {0}";
    PAGE_FOOT: "Written by weir load. {0}", "weir load에서 만들었습니다. {0}";
    PAGE_FOOT_LATENCIES:
        "weir measures latency twice: <i>response</i> from the intended start of a request, <i>service</i> from the send. Where the two differ, requests waited to be sent.",
        "weir는 지연 시간을 두 가지로 측정합니다. <i>응답</i>은 요청의 예정 시각부터, <i>서비스</i>는 요청을 보낸 시각부터 잽니다. 두 값이 다르면 그 차이만큼 요청이 전송을 기다렸습니다.";

    // The most important figures.
    PAGE_REQUESTS_MEAN: "requests a second, mean", "초당 요청, 평균";
    PAGE_MESSAGES_MEAN: "messages sent a second, mean", "초당 보낸 메시지, 평균";
    PAGE_RESPONSE: "response", "응답";
    PAGE_SERVICE: "service", "서비스";
    PAGE_QUANTILE: "{0} {1}", "{0} {1}";
    PAGE_MAX: "max", "최대";
    PAGE_MEAN: "mean", "평균";
    PAGE_MIN: "min", "최소";
    PAGE_MEDIAN: "median", "중앙값";
    PAGE_COUNT: "count", "건수";

    // Verdicts.
    PAGE_VERDICTS: "Verdicts", "판정";
    PAGE_ASKED: "Asked", "계획";
    PAGE_ARRIVED: "Arrived", "결과";
    PAGE_GENERATOR: "Generator", "부하 생성기";
    PAGE_RUN: "Run", "실행";
    PAGE_CHECKS: "Checks", "검사";
    PAGE_USER: "{0} virtual user", "가상 사용자 {0}명";
    PAGE_USERS: "{0} virtual users", "가상 사용자 {0}명";
    PAGE_REQUEST: "{0} request", "요청 {0}건";
    PAGE_REQUESTS: "{0} requests", "요청 {0}건";
    PAGE_MESSAGE: "{0} message", "메시지 {0}건";
    PAGE_MESSAGES: "{0} messages", "메시지 {0}건";
    PAGE_CHECK: "{0} check", "검사 {0}건";
    PAGE_CHECKS_OF: "{0} checks", "검사 {0}건";
    PAGE_MORE_PHASE: "and {0} more phase", "그 밖의 단계 {0}개";
    PAGE_MORE_PHASES: "and {0} more phases", "그 밖의 단계 {0}개";
    PAGE_PHASE: "{0} for {1}", "{0}, {1} 동안";
    PAGE_BEGUN: "{0} begun", "{0} 시작됨";
    PAGE_LATE: "99 % at most {0} ms late", "99 %가 {0} ms 이내로 늦게 시작됨";
    PAGE_NEVER_BEGAN: "{0} never began", "{0}건은 시작되지 못함";
    PAGE_ALL_BEGAN: "all began, 99 % at most {0} ms late", "모두 시작됨, 99 %가 {0} ms 이내로 늦음";
    PAGE_NOTHING: "nothing", "없음";
    PAGE_COMPLETED: "{0} of {1} completed", "{1} 중 {0}명 완료";
    PAGE_SENT: "{0} sent", "{0} 보냄";
    PAGE_ONLY_ANSWERED: "the only request answered", "요청 1건 응답 받음";
    PAGE_ALL_ANSWERED: "all {0} answered", "{0} 모두 응답 받음";
    PAGE_ANSWERED: "{0} of {1} answered", "{1} 중 {0}건 응답 받음";
    PAGE_CUT_SHORT: "; {0} cut short", "; {0}건은 중간에 끊김";
    PAGE_NO_ERRORS: "no errors", "오류 없음";
    PAGE_UNMET: "{0} expectation not met", "기대 조건 {0}건 불일치";
    PAGE_UNMET_MANY: "{0} expectations not met", "기대 조건 {0}건 불일치";
    PAGE_USERS_FAILED: "{0} of {1} failed", "{1} 중 {0}명 실패";
    PAGE_WAS_LIMIT: "The generator was the limit.", "부하 생성기가 한도에 이르렀습니다.";
    PAGE_WAS_LIMIT_MEANS: "These figures measure the generator, not the target.", "이 수치는 대상이 아니라 부하 생성기의 값입니다.";
    PAGE_NO_GENERATOR: "The report has no data about the generator.", "보고서에 부하 생성기의 측정값이 없습니다.";
    PAGE_NO_GENERATOR_MEANS: "The report does not say whether the generator was the limit.", "부하 생성기가 한도에 이르렀는지 알 수 없습니다.";
    PAGE_KEPT_UP: "The generator kept up.", "부하 생성기에 여유가 있었습니다.";
    PAGE_KEPT_UP_BUT: "The generator kept up, with a caution.", "부하 생성기에 여유가 있었지만 주의할 점이 있습니다.";
    PAGE_INCOMPLETE: "Incomplete.", "불완전한 실행입니다.";
    PAGE_OPTIONAL: " (optional)", " (선택)";
    PAGE_ONLY_MET: "the only check met", "검사 1건 통과";
    PAGE_ALL_MET: "all {0} met", "{0} 모두 통과";
    PAGE_NOT_MET: "{0} of {1} not met", "{1} 중 {0}건 실패";
    PAGE_BUSIEST: "busiest worker {0} % of a core", "가장 바쁜 워커가 코어의 {0} %";
    PAGE_UNDER_ONE: "under 1", "1 미만의";
    PAGE_MACHINE: "machine {0} % busy", "머신 CPU 사용률 {0} %";
    PAGE_LAG: "99 % of arrivals at most {0} ms late", "도착의 99 %가 {0} ms 이내로 늦음";
    PAGE_PORTS: "{0} of {1} ports", "포트 {1}개 중 {0}개";
    PAGE_DESCRIPTORS: "{0} of {1} descriptors", "디스크립터 {1}개 중 {0}개";
    PAGE_WORST_OF: "The worst of {0} agents: {1}", "에이전트 {0}개의 값 중 가장 나쁜 값: {1}";

    // Charts.
    PAGE_IN_FIGURES: "{0} in figures", "{0}: 수치 보기";
    PAGE_TIME: "time", "시간";
    PAGE_LATENCY_COLUMN: "latency", "지연 시간";
    PAGE_OVER_TIME: "Over time", "시간에 따른 변화";
    PAGE_NO_SCRIPT: "A script draws the charts of this page, and no script runs here. The tables have all figures of the charts.", "이 페이지의 차트는 스크립트가 그리지만 여기서는 스크립트가 실행되지 않습니다. 표에 차트의 모든 수치가 있습니다.";
    PAGE_NO_SECONDS: "The report has no figures for each second, so there is no chart over time.", "보고서에 초별 수치가 없어 시간에 따른 차트가 없습니다.";
    PAGE_EACH_SECOND: "/s", "/초";
    PAGE_SECONDS: "{0}s", "{0}초";
    PAGE_POINT: "per second; one point for each {0}", "초당; 점 하나가 {0}의 값";
    PAGE_RESPONSE_TIME: "Response time", "응답 시간";
    PAGE_AS_ARTILLERY: "ms, as Artillery measures it", "ms, Artillery의 방식으로 측정한 값";
    PAGE_LOAD: "Load", "부하";
    PAGE_CODES: "Status codes", "상태 코드";
    PAGE_ANSWERS_A_SECOND: "answers a second", "초당 응답";
    PAGE_ERRORS: "Errors", "오류";
    PAGE_A_SECOND: "a second", "초당";
    PAGE_VIRTUAL_USERS: "Virtual users", "가상 사용자";
    PAGE_AT_ONCE: "at once", "동시에 활성인 수";
    PAGE_ARRIVALS: "Arrivals", "도착";
    PAGE_USERS_A_SECOND: "virtual users per second", "초당 가상 사용자";
    PAGE_LATENCY: "Latency", "지연 시간";
    PAGE_LATENCY_NOTE: "ms; response from the intended start, service from the send: where they differ, requests waited to be sent", "ms. 응답은 예정 시각부터, 서비스는 보낸 시각부터 잽니다. 두 값이 다르면 요청이 전송을 기다렸습니다";
    PAGE_LINE_REQUESTS: "requests", "요청";
    PAGE_LINE_SENT: "messages sent", "보낸 메시지";
    PAGE_LINE_RECEIVED: "messages received", "받은 메시지";
    PAGE_LINE_EMITS: "emits", "보낸 이벤트";
    PAGE_LINE_ACTIVE: "active", "활성";
    PAGE_LINE_CREATED: "created", "생성";
    PAGE_LINE_SKIPPED: "skipped", "건너뜀";
    PAGE_HISTOGRAM: "How often each latency occurred", "지연 시간의 분포";
    PAGE_HISTOGRAM_NOTE: "per cent of all requests, by latency in ms on a logarithmic axis", "전체 요청 중 비율(%), 가로축은 지연 시간(ms)의 로그";
    PAGE_FROM_TO: "{0} to {1}", "{0} ~ {1}";

    // Tables.
    PAGE_ROW_RESPONSE: "Response", "응답 (response)";
    PAGE_ROW_SERVICE: "Service", "서비스 (service)";
    PAGE_ROW_LAG: "Schedule lag", "시작 지연";
    PAGE_ERROR: "error", "오류";
    PAGE_HOP: "hop", "위치";
    PAGE_HOP_TARGET: "target", "대상";
    PAGE_STEP: "phase", "단계";
    PAGE_ENDPOINTS: "Endpoints", "엔드포인트";
    PAGE_ENDPOINTS_NOTE: "ms, as Artillery measures them{0}", "ms, Artillery의 방식으로 측정한 값{0}";
    PAGE_ROWS_OF: ", {0} of {1}", ", {1}개 중 {0}개";
    PAGE_ENDPOINT: "endpoint", "엔드포인트";
    PAGE_ANSWERS: "answers", "응답";
    PAGE_STATUSES: "codes", "상태 코드";
    PAGE_ERRORS_OF: "errors", "오류";
    PAGE_EVERYTHING: "Everything", "전체 데이터";
    PAGE_AGENTS: "Agents", "에이전트";
    PAGE_PHASES: "Phases", "단계";
    PAGE_COUNTERS: "Counters", "카운터";
    PAGE_RATES: "Rates, a second", "초당 값";
    PAGE_HISTOGRAMS: "Histograms", "히스토그램";
    PAGE_ENVIRONMENT: "Environment", "환경";
    PAGE_OK: "ok", "통과";
    PAGE_FAIL: "fail", "실패";
}
