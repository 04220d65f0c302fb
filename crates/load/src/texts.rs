//! The texts of the load generator in English and in Korean. The names of Artillery's metrics, and Artillery's own
//! messages, stay in English.

use weir_meter::Step;
use weir_words::{Said, Text};

use crate::record::phase;

pub mod agents;
pub mod page;
pub mod script;

weir_words::texts! {
    // One request.
    NO_ANSWER: "{0} did not answer: {1} while {2}", "{0}: 응답하지 않았습니다 ({2} 중 {1})";
    NOT_ASKED: "weir could not send a request to {0}: {1}", "{0}에 요청을 보내지 못했습니다: {1}";
    DOING_RESOLVE: "resolving {0}", "{0} 이름 조회";
    DOING_CONNECT: "connecting to {0}", "{0} 연결";
    DOING_TLS: "SSL handshaking to {0}", "{0} TLS 핸드셰이크";
    DOING_SEND: "sending request to {0}", "{0} 요청 전송";
    DOING_HEAD: "reading response header from {0}", "{0} 응답 헤더 수신";
    DOING_BODY: "reading {0}", "{0} 응답 본문 수신";

    // The self-check of the generator.
    WORKER_FULL: "worker {0} used {1} % of its core: use more cores, or more machines (--agents)", "워커 {0}이(가) 코어의 {1} %를 썼습니다: 코어나 머신을 더 쓰세요 (--agents)";
    THROTTLED: "the CPU quota of its control group stopped the generator in {0} % of the periods: raise the quota, or use more machines (--agents)", "control group의 CPU 쿼터 때문에 주기의 {0} %에서 부하 생성기가 멈췄습니다: 쿼터를 늘리거나 머신을 더 쓰세요 (--agents)";
    LATE_HUNDREDTH: "one arrival in a hundred began {0} ms late or more", "도착 100건 중 1건이 {0} ms 이상 늦게 시작되었습니다";
    LATE_FEW: "there were few arrivals, and the latest began {0} ms late", "도착이 적었고, 가장 늦은 도착은 {0} ms 늦게 시작되었습니다";
    NEVER_BEGAN: "{0} scheduled arrivals never began", "예정된 도착 {0}건이 시작되지 못했습니다";
    PORTS_FULL: "{0} of {1} local ports were in use: raise net.ipv4.ip_local_port_range, or use more addresses", "로컬 포트 {1}개 중 {0}개를 썼습니다: net.ipv4.ip_local_port_range를 늘리거나 주소를 더 쓰세요";
    FILES_FULL: "{0} of {1} file descriptors were in use: raise ulimit -n", "파일 디스크립터 {1}개 중 {0}개를 썼습니다: ulimit -n을 늘리세요";
    OF_AGENT: "agent {0}: {1}", "에이전트 {0}: {1}";
    MACHINE_FULL: "the machine was {0} % busy: its processes, including the generator, had to wait for a CPU", "머신의 CPU 사용률이 {0} %였습니다: 부하 생성기를 포함한 프로세스들이 CPU를 기다려야 했습니다";
    ONE_WORKER: "1 worker {0} % of a core", "워커 1개, 코어의 {0} %";
    BUSIEST_WORKER: "busiest of {0} workers {1} % of a core", "워커 {0}개 중 가장 바쁜 워커가 코어의 {1} %";
    MACHINE_CPU: "machine {0} %", "머신 {0} %";
    LATE_P99: "arrivals late p99 {0} ms", "도착 지연 p99 {0} ms";
    LATEST: "latest arrival {0} ms late", "가장 늦은 도착 {0} ms 지연";
    PORTS_USED: "{0} of {1} ports", "포트 {1}개 중 {0}개";
    FILES_USED: "{0} of {1} descriptors", "디스크립터 {1}개 중 {0}개";
    NOT_LOOKED_AT: "not looked at", "측정하지 않음";
    NAMED: "{0}: {1}", "{0}: {1}";

    // The lines before and after a summary.
    LOAD_GOES: "Load goes to: {0}", "부하 대상: {0}";
    LOAD_WENT: "Load went to: {0}", "부하 대상: {0}";
    NOWHERE: "nowhere", "없음";
    GENERATOR_LIMIT: "The generator was the limit: these figures measure the generator, not the target.", "부하 생성기가 한도에 이르렀습니다. 이 수치는 대상이 아니라 부하 생성기의 값입니다.";
    GENERATOR: "Generator: {0}", "부하 생성기: {0}";
    GENERATOR_WITH: "Generator: {0} ({1})", "부하 생성기: {0} ({1})";
    GENERATOR_WITH_CPU: "Generator: {0} ({1}, {2} µs of CPU a request)", "부하 생성기: {0} ({1}, 요청당 CPU {2} µs)";
    IS_OK: "ok", "정상";
    WAS_LIMIT: "was the limit", "한도에 이름";
    CAUTION: "Caution", "주의";
    INCOMPLETE: "Incomplete", "불완전";
    LATENCY_MS: "Latency, ms", "지연 시간, ms";
    RESPONSE: "response", "응답 (response)";
    SERVICE: "service", "서비스 (service)";
    SCHEDULE_LAG: "schedule lag", "시작 지연";
    LAG: "lag", "시작 지연";
    FROM_INTENDED: "from the intended start", "예정 시각 기준";
    FROM_PREVIOUS: "from the previous answer, or from the start of the connection", "이전 응답 또는 연결 시작 기준";
    FROM_SEND: "from the send", "요청을 보낸 시각 기준";
    HOW_LATE_ARRIVALS: "how late arrivals began", "도착이 늦게 시작된 정도";
    HOW_LATE_REQUESTS: "how late requests began", "요청이 늦게 시작된 정도";
    DROPPED: "dropped arrivals", "시작하지 못한 도착";
    COUNT: "count", "건수";
    ERRORS: "Errors", "오류";
    HOP: "hop", "위치";
    PHASE: "phase", "단계";
    TARGET: "target", "대상";
    OTHER_KINDS: "of {0} other kinds", "그 밖의 오류 {0}종";
    PHASE_QUEUE: "queue", "대기열";
    PHASE_DNS: "dns", "이름 조회";
    PHASE_CONNECT: "connect", "연결";
    PHASE_TLS: "tls", "TLS 핸드셰이크";
    PHASE_SEND: "send", "전송";
    PHASE_WAIT: "wait", "응답 대기";
    PHASE_BODY: "body", "본문 수신";
    PHASE_SOCKET: "socket", "열린 WebSocket";
    PHASE_CHECK: "check", "응답 검사";
    CHECKS: "Checks:", "검사:";
    CHECK_FAILED: "fail", "실패";
    OPTIONAL: " (optional)", " (선택)";
    STOPPED: "a signal stopped the run before its end", "실행이 끝나기 전에 시그널을 받아 중단되었습니다";
    CUT: "virtual users were still running {0} s after the last phase, and weir ended them", "마지막 단계가 끝나고 {0}초 뒤에도 실행 중인 가상 사용자가 있어 weir가 끝냈습니다";
    LINES_LOST: "weir could not print {0} lines of `log` steps, because there were too many at once", "`log` 스텝의 줄이 한꺼번에 너무 많아 {0}줄을 출력하지 못했습니다";
    NEVER_SENT: "{0} requests were due, but weir never sent them: all {1} were waiting for answers (raise {2})", "예정된 요청 {0}건을 보내지 못했습니다: {1}이(가) 모두 응답을 기다리고 있었습니다 ({2} 값을 늘리세요)";
    NEVER_SENT_RAISE: "-m or -c", "-m이나 -c";

    // Artillery's lines on the console.
    TEST_RUN_ID: "Test run id: {0}", "테스트 실행 ID: {0}";
    PHASE_STARTED: "Phase started: {0} (index: {1}, duration: {2}) {3}", "단계 시작: {0} (번호: {1}, 시간: {2}) {3}";
    PHASE_COMPLETED: "Phase completed: {0} (index: {1}, duration: {2}) {3}", "단계 완료: {0} (번호: {1}, 시간: {2}) {3}";
    PERIOD_TO: "Metrics for period to: {0}", "구간별 지표, 끝 시각: {0}";
    PERIOD_WIDTH: "(width: {0}s)", "(구간: {0}초)";
    SUMMARY_AT: "Summary report @ {0}", "요약 보고서 @ {0}";
    FINISHED: "All VUs finished. Total time: {0}", "모든 가상 사용자가 끝났습니다. 총 시간: {0}";
    NO_MEASUREMENTS: "No measurements recorded during this period", "이 구간에는 기록된 측정값이 없습니다";
    LOG_FILE: "Log file: {0}", "로그 파일: {0}";
    REPORT_GENERATED: "Report generated: {0}", "보고서를 만들었습니다: {0}";
    APDEX: "Apdex score: {0} ({1})", "Apdex 점수: {0} ({1})";

    // How virtual users arrive, and how requests follow each other.
    ARRIVALS_PAUSE: "nobody arrives", "아무도 도착하지 않음";
    ARRIVALS_COUNT: "{0} in all, evenly", "모두 {0}명, 균등한 간격";
    ARRIVALS_RATE: "{0} a second", "초당 {0}명";
    ARRIVALS_POISSON: "{0} a second at random", "초당 평균 {0}명, 무작위 간격";
    ARRIVALS_RAMP: "{0} to {1} a second", "초당 {0}명에서 {1}명으로";
    REQUESTS_CLOSED: "as fast as the answers come", "응답을 받는 즉시 다음 요청";
    REQUESTS_EVENLY: "{0} a second, evenly spread", "초당 {0}건, 균등한 간격";
    REQUESTS_AT_RANDOM: "{0} a second, at random", "초당 {0}건, 무작위 간격";

    // One URL.
    CONNECTIONS: "{0} connections", "연결 {0}개";
    CONNECTIONS_OF: "{0} connections of {1} with one stream at once", "{1} 연결 {0}개, 각각 스트림 하나";
    CONNECTIONS_OF_STREAMS: "{0} connections of {1} with {2} streams at once", "{1} 연결 {0}개, 각각 동시에 스트림 {2}개";
    ONE_THREAD: "1 thread", "스레드 1개";
    THREADS: "{0} threads", "스레드 {0}개";
    SECONDS: "{0}s", "{0}초";
    AT_MOST: "at most {0} requests", "최대 요청 {0}건";
    CLOSED: "as fast as the answers come (closed loop)", "응답을 받는 즉시 다음 요청 (closed loop)";
    EVENLY: "{0} a second, evenly spread (open model)", "초당 {0}건, 균등한 간격 (open model)";
    AT_RANDOM: "{0} a second, at random (open model)", "초당 {0}건, 무작위 간격 (open model)";
    NO_REQUEST_ANSWERED: "No request got an answer: there are no latencies to print, and the exit code is 1.", "응답을 받은 요청이 없습니다. 출력할 지연 시간이 없고, 종료 코드는 1입니다.";
    SUMMARY: "{0} requests in {1} s, {2} a second, {3} received, {4} a second", "{1}초 동안 요청 {0}건, 초당 {2}건, 수신 {3}, 초당 {4}";
    STATUSES: "Statuses   {0}", "상태 코드   {0}";
    BEGAN_LATE: "{0} began late", "{0}건이 늦게 시작되었습니다";
    ERROR_COUNT: "{0} errors", "오류 {0}건";
    ERROR_WHILE: "{0}, while {1}", "{0} ({1} 중)";
    NAME_SOURCE: "name a script (weir load test.yml) or a URL (weir load http://127.0.0.1:8080/)", "스크립트(weir load test.yml)나 URL(weir load http://127.0.0.1:8080/)을 지정하세요";
    AGENTS_NEED_SCRIPT: "--agents needs a script; write a script with this URL", "--agents에는 스크립트가 필요합니다. 이 URL을 쓰는 스크립트를 작성하세요";
    NEITHER: "{0} is neither a script nor a URL; did you mean http://{0}?", "{0}은(는) 스크립트도 URL도 아닙니다. http://{0} 형식으로 써 보세요";
    HTTP2_IN_SCRIPT: "--http2 is for a URL; in a script, write http2: true under config.http", "--http2는 URL에만 씁니다. 스크립트에서는 config.http 아래에 http2: true를 쓰세요";
    HTTP3_IN_SCRIPT: "--http3 is for a URL; in a script, write http3: true under config.http", "--http3는 URL에만 씁니다. 스크립트에서는 config.http 아래에 http3: true를 쓰세요";
    HTTP3_NEEDS_HTTPS: "{0}: HTTP/3 has no http://; write https://", "{0}: HTTP/3에는 http://가 없습니다. https://를 쓰세요";
    QUIC: "QUIC       {0} handshakes, {1} of them resumed; {2} of {3} packets sent were lost; {4} sent, {5} received in datagrams", "QUIC       핸드셰이크 {0}회(재개 {1}회), 보낸 패킷 {3}개 중 {2}개 유실, 데이터그램으로 {4} 보내고 {5} 받음";
    EARLY_DATA: "           {0} connections sent early data, and the server accepted that of {1}", "           연결 {0}개가 early data를 보냈고, 서버가 {1}개를 받아들였습니다";
    MIGRATIONS: "           {0} moves to another UDP port", "           UDP 포트를 {0}번 옮겼습니다";
    ONE_URL: "name only one URL; for several targets, write a script", "URL은 하나만 지정하세요. 대상이 여럿이면 스크립트를 작성하세요";
    BAD_CONNECTIONS: "-c {0}: write the number of connections", "-c {0}: 연결 수를 쓰세요";
    BAD_HEADER: "-H {0}: write \"Name: value\"", "-H {0}: \"Name: value\" 형식으로 쓰세요";
    BAD_TIME: "{0} {1}: write seconds (30), or a number with a unit (30s, 5m)", "{0} {1}: 초(30)나 단위가 있는 수(30s, 5m)를 쓰세요";
    BAD_BODY: "--body {0}: {1}", "--body {0}: 읽을 수 없습니다: {1}";
    NO_FOLDER: "Path does not exist: {0}", "경로가 없습니다: {0}";
    OF_FILE: "{0}: {1}", "{0}: {1}";

    URL_TOO_LONG: "a URL is at most {0} bytes", "URL은 {0}바이트까지 쓸 수 있습니다";
    URL_BAD: "weir cannot use the URL \"{0}\": {1}", "쓸 수 없는 URL입니다: \"{0}\". {1}";
    URL_NO_HOST: "it names no host", "호스트가 없습니다";
    URL_PORT: "the port must be between 1 and 65535", "포트는 1부터 65535까지여야 합니다";
    URL_SCHEME: "it must begin with http:// or https://", "http://나 https://로 시작해야 합니다";
    URL_HOST: "the host has a character that no host has", "호스트에 쓸 수 없는 문자가 있습니다";
    URL_ONLY_HTTP: "no {0} here, only http:// and https://", "http://와 https://만 쓸 수 있습니다 ({0} 불가)";
    LOAD_NO_THREAD: "weir could not start a thread for the load: {0}", "부하를 보낼 스레드를 시작하지 못했습니다: {0}";
    NO_H2: "{0} does not support HTTP/2: {1}; without --http2, weir sends HTTP/1.1", "{0}: HTTP/2를 지원하지 않습니다. {1}. --http2를 빼면 HTTP/1.1로 보냅니다";
    H2_NOT_CHOSEN: "weir offered h2 in TLS (ALPN), and the server did not choose it", "TLS(ALPN)에서 h2를 제안했지만 서버가 고르지 않았습니다";
    NO_H3: "{0} does not support HTTP/3: {1}; without --http3, weir sends HTTP/1.1", "{0}: HTTP/3를 지원하지 않습니다. {1}. --http3를 빼면 HTTP/1.1로 보냅니다";
    H3_NOT_CHOSEN: "weir offered h3 in TLS (ALPN), and the server did not choose it", "TLS(ALPN)에서 h3를 제안했지만 서버가 고르지 않았습니다";
    H2_NOT_SPOKEN:
        "the server's answer to the HTTP/2 preface was not HTTP/2 (weir uses h2c with prior knowledge)",
        "HTTP/2의 첫 메시지에 대한 서버의 응답이 HTTP/2가 아니었습니다(h2c를 prior knowledge 방식으로 씁니다)";
    BAD_LOAD_RATE: "a rate must be above 0 and at most {0} requests a second", "속도는 0보다 크고 초당 {0}건 이하여야 합니다";
    BAD_STREAMS:
        "write 1 to {0} streams per connection (-m), and at most {1} over all connections",
        "연결당 스트림(-m)은 1부터 {0}까지, 모든 연결을 합쳐 {1}까지 쓸 수 있습니다";
    NO_METHOD: "\"{0}\" is no method", "\"{0}\": 메서드가 아닙니다";
    NO_HEADER: "\"{0}: {1}\" is not a header line", "\"{0}: {1}\": 헤더 줄이 아닙니다";
    PROXY_NO_TLS: "{0}: weir connects to a proxy without TLS; write http://", "{0}: 프록시에는 TLS 없이 연결합니다. http://로 쓰세요";
    CONNECT: "connect", "연결 (connect)";
    NEW_CONNECTIONS: "{0} new connections", "새 연결 {0}개";
    NO_SUCH_FUNCTION: "the script names the function `{0}`, which {1} does not export", "스크립트에 있는 함수 `{0}`이(가) {1}의 export에 없습니다";
    RESENT: "sent again: {0} (the server had not begun with the request)", "다시 보낸 요청 {0}건 (서버가 처리를 시작하지 않은 요청)";
    FAILED: "{0} failed: {1} errors, {2} answers of 400 or more; {3} answers other than 2xx", "실패 {0}건: 오류 {1}건, 400 이상의 응답 {2}건; 2xx가 아닌 응답 {3}건";
    NO_LATENCIES: "no latencies", "지연 시간 없음";
    SOME_LATENCIES: "response p50 {0} ms, p95 {1} ms, p99 {2} ms", "응답 p50 {0} ms, p95 {1} ms, p99 {2} ms";
    ONE_LINE: "{0} requests in {1} s, {2} a second, {3}, {4}", "{1}초 동안 요청 {0}건, 초당 {2}건, {3}, {4}";
    INSECURE_HINT: "The certificate of the target was not accepted. To load it all the same, add -k (--insecure).", "대상의 인증서를 검증하지 못했습니다. 그래도 부하를 보내려면 -k(--insecure)를 추가하세요.";
    INSECURE_SCRIPT:
        "The certificate of the target was not accepted. To load it all the same, add -k (--insecure), or write config.tls.rejectUnauthorized: false in the script.",
        "대상의 인증서를 검증하지 못했습니다. 그래도 부하를 보내려면 -k(--insecure)를 추가하거나, 스크립트에 config.tls.rejectUnauthorized: false를 쓰세요.";
    COUNTS_FROM_ONE: "quick: write at least 1 for --count and for --num", "quick: --count와 --num에는 1 이상을 쓰세요";

    // A script from access logs.
    CONF_NEEDS_FORMAT: "--conf needs --format NAME: the name of the log_format", "--conf에는 --format NAME이 필요합니다. log_format의 이름을 쓰세요";
    FORMAT_NEEDS: "--format needs $request or $request_uri, and $time_local, $time_iso8601 or $msec", "--format에는 $request나 $request_uri, 그리고 $time_local, $time_iso8601, $msec 중 하나가 필요합니다";
    FORMAT_NEEDS_CONF: "--format {0}: name the nginx.conf with this log_format: --conf FILE", "--format {0}: 이 log_format이 있는 nginx.conf를 --conf FILE로 지정하세요";
    FORMAT_UNREADABLE: "--format {0}: not readable", "--format {0}: 읽을 수 없습니다";
    NO_LOG_FORMAT: "{0} has no log_format {1} with the request{2}", "{0}에 요청이 들어 있는 log_format {1}이(가) 없습니다{2}";
    FORMAT_WITHOUT_TIME: "log_format {0} in {1} has no time: $time_local, $time_iso8601 or $msec", "{1}의 log_format {0}에 시각이 없습니다: $time_local, $time_iso8601, $msec 중 하나가 필요합니다";

    // Commands of Artillery's that weir does in another way.
    NO_CLOUD:
        "weir starts no machines in a cloud. Start `weir agent redis://HOST` on each machine, and run the script from one of them: weir load --agents redis://HOST -n MACHINES test.yml",
        "weir는 클라우드에서 머신을 시작하지 않습니다. 머신마다 `weir agent redis://HOST`를 실행한 뒤 그중 한 대에서 스크립트를 실행하세요: weir load --agents redis://HOST -n MACHINES test.yml";
    NO_RECORD:
        "weir sends no results to Artillery Cloud (--record, --key). Write the report to files: -o run.json --html run.html; to keep the metrics, use --prometheus ADDR or the plugin publish-metrics",
        "weir는 결과를 Artillery Cloud로 보내지 않습니다(--record, --key). 보고서를 파일로 저장하세요: -o run.json --html run.html. 지표를 남기려면 --prometheus ADDR이나 publish-metrics 플러그인을 쓰세요";
    NO_PROTOCOL:
        "weir does not know the protocol of {0}. Supported protocols: HTTP(S) and WS(S)",
        "{0}의 프로토콜을 알 수 없습니다. 지원하는 프로토콜: HTTP(S), WS(S)";
    SEVERAL:
        "a directory has several runs of a side: `weir lab compare {0} {1}` compares them by the runs' own variation, without pairs",
        "디렉터리에는 한쪽의 여러 실행이 있습니다. `weir lab compare {0} {1}`이 실행 사이의 변동을 기준으로 비교합니다";
    NOBODY:
        "the phases of this script have no virtual users: a run would send nothing",
        "이 스크립트의 phases에는 가상 사용자가 없습니다. 실행해도 아무것도 보내지 않습니다";

    // The live view.
    LIVE_NONE: "none", "없음";
    LIVE_USERS: "users", "사용자";
    LIVE_USERS_LINE: "{0} active, {1} created", "활성 {0}, 생성 {1}";
    LIVE_SENT: "sent", "보냄";
    LIVE_SENT_LINE: "{0} by {1} connections", "{0}건, 연결 {1}개";
    LIVE_LOAD: "load", "부하";
    LIVE_RATE: "{0}/s", "초당 {0}건";
    LIVE_RESPONSE: "response", "응답";
    LIVE_SERVICE: "service", "서비스";
    LIVE_ERRORS: "errors", "오류";
}

/// Every table of this crate; stored reports name their texts.
pub const TABLES: &[&[Text]] = &[ALL, page::ALL, script::ALL, agents::ALL];

/// A step of a request to a target. In English, these are nginx's words, with the target in place of the upstream.
pub fn doing(step: Step, target: &str) -> Said {
    let text = match step {
        Step::Resolve => DOING_RESOLVE,
        Step::Connect => DOING_CONNECT,
        Step::TlsOrigin => DOING_TLS,
        Step::SendRequest => DOING_SEND,
        Step::AwaitHead => DOING_HEAD,
        Step::ReadResponse => DOING_BODY,
        other => return other.doing_to(target).into(),
    };
    text.with(&[target.into()])
}

/// The part of a request in which it failed, by the name that reports have for it.
pub fn phase_said(step: Step) -> Said {
    let name = phase(step);
    phase_named(name).map_or_else(|| name.into(), Said::from)
}

/// The text of a phase, by the name that reports have for it.
pub fn phase_named(name: &str) -> Option<Text> {
    let known = [
        ("queue", PHASE_QUEUE),
        ("dns", PHASE_DNS),
        ("connect", PHASE_CONNECT),
        ("tls", PHASE_TLS),
        ("send", PHASE_SEND),
        ("wait", PHASE_WAIT),
        ("body", PHASE_BODY),
        ("socket", PHASE_SOCKET),
        ("check", PHASE_CHECK),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_words::check_texts;

    #[test]
    fn every_text_is_there_in_both_languages() {
        let all = TABLES.concat();
        assert_eq!(check_texts(&all), Vec::<String>::new());
    }

    #[test]
    fn the_english_of_a_step_is_nginx_s() {
        for step in Step::ALL {
            assert_eq!(doing(step, "a:80").en(), step.doing_to("a:80"));
            assert_eq!(phase_said(step).en(), phase(step));
        }
    }
}
