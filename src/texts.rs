//! The texts that the verbs print, in English and in Korean. The lab's, the doctor's and the load generator's own texts
//! are in their crates.

weir_words::texts! {
    // Errors that several verbs share.
    OF_FILE: "{0}: {1}", "{0}: {1}";
    SIGNALS: "weir cannot catch signals: {0}", "시그널을 받을 수 없습니다: {0}";
    NO_PROCESS: "no process {0}", "프로세스 {0}이(가) 없습니다";
    NO_PROCESS_AS: "no process {0}: {1}", "프로세스 {0}의 정보를 읽을 수 없습니다: {1}";
    NO_STDOUT: "weir cannot write to stdout: {0}", "표준 출력에 쓸 수 없습니다: {0}";

    // weir mcp.
    MCP_TERMINAL: "an agent starts this command and writes JSON to its standard input; end it with Ctrl-D", "에이전트가 이 명령을 시작해 표준 입력에 JSON을 씁니다. Ctrl-D로 끝내세요";
    MCP_MANY: "at most {0} directories (--dir) and {1} targets (--target)", "디렉터리(--dir)는 {0}개, 대상(--target)은 {1}개까지입니다";
    MCP_NO_DIR: "{0}: --dir needs a directory", "{0}: --dir에는 디렉터리를 지정하세요";
    MCP_TARGET: "{0}: write --target as HOST:PORT", "{0}: --target은 HOST:PORT로 쓰세요";
    // weir schema.
    NO_SCHEMA: "weir has no schema {0}: {1}", "스키마 {0}이(가) 없습니다. 있는 스키마: {1}";

    // weir status.
    HAS_API: "is this the URL of a dashboard, or of a location with `api`?", "대시보드의 URL이거나 `api`가 있는 location의 URL인지 확인하세요";
    ONE_OF_EDGES: "{0}, one of several edges ({1} more: weir top --list)", "{0} (다른 엣지 {1}개: weir top --list)";
    WITH_REMEDY: "{0}; {1}", "{0}. {1}";
    STATUS_FROM: "{0} from {1}: {2}", "{1}의 응답 상태 코드가 {0}입니다. {2}";
    NOT_TEXT: "the answer of {0} is not text: {1}", "{0}의 응답이 텍스트가 아닙니다. {1}";
    NO_API: "{0} is not an API of weir ({1}): {2}", "weir의 API가 아닙니다: {0} ({1}). {2}";
    STATUS_HEAD: "{0}, pid {1}, configuration {2}, up {3}", "{0}, pid {1}, 설정 로드 {2}회차, 가동 {3}";
    CONNECTIONS: "connections", "연결";
    CONNECTIONS_LINE: "{0} active, {1} idle, {2} accepted, {3} dropped", "활성 {0}, 유휴 {1}, 수락 {2}, 버림 {3}";
    REQUESTS: "requests", "요청";
    REQUESTS_LINE: "{0} under way, {1} in all", "처리 중 {0}, 누적 {1}";
    WORKERS: "workers", "워커";
    WORKERS_LINE: "{0} of a CPU each", "각각 CPU의 {0}";
    LIMITS: "limits, nearest first", "한도 (사용률이 높은 순)";
    USED: "used", "사용";
    LIMIT: "limit", "한도";
    MOST: "most", "최고";
    HITS: "hits", "도달";
    SET_BY: "set by", "기준";
    SERVERS: "servers", "서버";
    PER_SECOND: "req/s", "초당 요청";
    UNDER_WAY: "under way", "처리 중";
    UPSTREAMS: "upstreams", "업스트림";
    STATE: "state", "상태";
    ACTIVE: "active", "활성";
    HEAD_P50: "head p50", "헤더 p50";
    HEAD_P95: "head p95", "헤더 p95";
    HEAD_P99: "head p99", "헤더 p99";
    REUSED: "reused", "재사용";
    FAILS: "fails", "실패";
    CACHE_LINE: "cache {0}: {1} requests = {2} hit + {3} stale + {4} updating + {5} revalidated + {6} miss + {7} expired + {8} bypass + {9} error; {10} % given, {11} fetched", "캐시 {0}: 요청 {1} = hit {2} + stale {3} + updating {4} + revalidated {5} + miss {6} + expired {7} + bypass {8} + 중단 {9}; 캐시로 응답 {10} %, 오리진에서 가져옴 {11}";
    ERRORS: "errors", "오류";
    ERROR_FAILED: "failed", "실패";
    ERROR_REFUSED: "refused as configured", "설정대로 거절";
    ERROR_RECOVERED: "answered nevertheless", "재시도로 응답함";
    ERROR_CLIENT: "client", "클라이언트";
    LAST: "last {0}", "마지막 {0}";
    NO_FLEET: "this edge has no fleet: write fleet redis://HOST:PORT; in http", "이 엣지에는 fleet이 없습니다. http에 fleet redis://HOST:PORT;를 쓰세요";
    FLEET_HEAD: "fleet {0} at {1}: {2} edges", "fleet {0} ({1}): 엣지 {2}개";
    FLEET_ALONE: "fleet {0} at {1}: this edge is alone and goes on with {2} of each rate", "fleet {0} ({1}): 이 엣지는 혼자이며 각 rate의 {2}로 계속합니다";
    FLEET_LOST: "fleet {0} at {1}: Redis does not answer ({2}); this edge goes on with {3} of each rate", "fleet {0} ({1}): Redis가 응답하지 않습니다 ({2}). 이 엣지는 각 rate의 {3}로 계속합니다";
    EDGES: "edges", "엣지";
    ALL_EDGES: "all", "전체";
    EDGE_REFUSED: "refused", "거절";
    EDGE_SILENT: "silent for {0} s", "{0}초 동안 소식 없음";
    EDGE_VERSION: "another version: {0}", "다른 버전: {0}";
    EDGE_SLOWER: "slower than the others", "다른 엣지보다 느림";
    PEER_UP: "up", "정상";
    PEER_DRAINING: "draining", "드레인 중";
    PEER_DOWN: "down", "중단";
    PEER_UNAVAIL: "unavail", "제외됨";
    PEER_CHECKING: "checking", "검사 중";
    PEER_UNHEALTHY: "unhealthy", "비정상";
    PEER_BUSY: "busy", "한도 도달";

    // weir purge.
    NO_PURGE_API: "{0}: this URL is not a purge API: does its location have cache_purge_api?", "{0}: 이 URL은 퍼지 API가 아닙니다. 그 location에 cache_purge_api가 있는지 확인하세요";
    PURGE_REFUSED: "the edge refused the purge with status {0}", "엣지가 퍼지를 거절했습니다 (상태 코드 {0})";
    PURGED: "purged {0}{1}: {2}, {3}{4} ms{5}", "퍼지했습니다: {0}{1}. {2}, {3}{4} ms{5}";
    SOFT_PURGED: "soft-purged {0}{1}: {2}, {3}{4} ms{5}", "soft 퍼지했습니다: {0}{1}. {2}, {3}{4} ms{5}";
    EVERYTHING: "everything", "전부";
    ONE_KEY: "key {0}", "키 {0}";
    ONE_PREFIX: "prefix {0}", "접두사 {0}";
    ONE_TAG: "tag {0}", "태그 {0}";
    KEYS: "keys {0}", "키 {0}";
    PREFIXES: "prefixes {0}", "접두사 {0}";
    TAGS: "tags {0}", "태그 {0}";
    IN_ZONE: " in zone {0}", " ({0} zone에서)";
    HERE_ONLY: "on this edge only", "이 엣지에서만";
    EDGES_OF: "{0} of {1} edges", "엣지 {1}곳 중 {0}곳";
    NOT_YET: "; not yet: {0}", "; 아직 퍼지하지 않은 엣지: {0}";
    ONE_OBJECT: "1 object, ", "객체 1개, ";
    OBJECTS: "{0} objects, ", "객체 {0}개, ";
    ONE_OBJECT_HERE: "1 object on this edge (the number on the other edges is unknown), ", "이 엣지의 객체 1개 (다른 엣지의 객체 수는 알 수 없음), ";
    OBJECTS_HERE: "{0} objects on this edge (the number on the other edges is unknown), ", "이 엣지의 객체 {0}개 (다른 엣지의 객체 수는 알 수 없음), ";
    OBJECTS_UNKNOWN: "number of objects unknown (the zone is still reading its directory), ", "객체 수 알 수 없음 (zone이 아직 디렉터리를 읽는 중), ";
    NO_KEY_MATCHED: "Nothing matched: a key is the whole text of proxy_cache_key; a stored key: {0}", "일치하는 객체가 없습니다. 키는 proxy_cache_key의 전체 값입니다. 저장된 키의 예: {0}";
    NO_PREFIX_MATCHED: "Nothing matched: a prefix is the beginning of a key, and a key is the whole text of proxy_cache_key; a stored key: {0}", "일치하는 객체가 없습니다. 접두사는 키의 앞부분이고, 키는 proxy_cache_key의 전체 값입니다. 저장된 키의 예: {0}";
    NO_KEY_MATCHED_ALONE: "Nothing matched: a key is the whole text of proxy_cache_key; the zone stores nothing else", "일치하는 객체가 없습니다. 키는 proxy_cache_key의 전체 값입니다. zone에는 저장된 객체가 없습니다";
    NO_PREFIX_MATCHED_ALONE: "Nothing matched: a prefix is the beginning of a key, and a key is the whole text of proxy_cache_key; the zone stores nothing else", "일치하는 객체가 없습니다. 접두사는 키의 앞부분이고, 키는 proxy_cache_key의 전체 값입니다. zone에는 저장된 객체가 없습니다";
    ZONES: "zones: {0}", "캐시 zone: {0}";
    NO_LOG: "there is no purge log: purges stay on this edge", "퍼지 로그가 없습니다. 퍼지는 이 엣지에만 적용됩니다";
    LOG_REACHED: "log {0} at {1}: reached, newest entry {2}", "로그 {0} ({1}): 연결됨, 최신 항목 {2}";
    LOG_NOT_REACHED: "log {0} at {1}: NOT reached, newest entry {2}", "로그 {0} ({1}): 연결되지 않음, 최신 항목 {2}";
    EDGE_CURRENT: "edge {0}: up to date, last message {1} ms ago", "엣지 {0}: 최신, 마지막 메시지 {1} ms 전";
    EDGE_BEHIND: "edge {0}: {1} ms behind, last message {2} ms ago", "엣지 {0}: {1} ms 뒤처짐, 마지막 메시지 {2} ms 전";

    // weir record.
    NO_RECORDING: "the configuration of the edge has no such recording: write \"record FILE;\" in it", "엣지의 설정에 그런 기록이 없습니다. 설정에 \"record FILE;\"을 쓰세요";
    RECORD_ON: "on, {0} of clients", "켜짐, 클라이언트의 {0}";
    RECORD_ON_FOR: "on, {0} of clients, for another {1}", "켜짐, 클라이언트의 {0}, 남은 시간 {1}";
    RECORD_OFF: "off", "꺼짐";
    RECORD_NEVER: "off, never begun", "꺼짐, 시작한 적 없음";
    RECORDED_OF: "{0} of {1} recorded", "{1}건 중 {0}건 기록";
    RECORD_LOST: "{0} dropped: {1}", "{0}건 버림: {1}";
    RECORD_MESSAGES: "{0} messages of WebSockets", "WebSocket 메시지 {0}건";
    RECORD_BYTES: "file {0} of {1}", "파일 {0} (최대 {1})";
    LOST_QUEUE: "queue", "대기열";
    LOST_SIZE: "size of the file", "파일 크기";
    LOST_WRITING: "the file could not be written", "파일에 쓸 수 없음";
    LOST_LARGE: "too large for a block", "블록보다 큼";

    SHOW_BEGINNING: "beginning     {0} UTC, {1}, {2} of clients, key {3}", "시작          {0} UTC, {1}, 클라이언트의 {2}, 키 {3}";
    SHOW_CONFIGURATION: "configuration {0}, {1}, {2} locations", "설정          {0}, {1}, location {2}개";
    SHOW_EXCHANGE: "{0} {1}: {2}, {3} in {4}, client {5}", "{0} {1}: {2}, {3}, {4}, 클라이언트 {5}";
    SHOW_NO_ANSWER: "no answer", "응답 없음";
    SHOW_CUT: "{0}, cut off", "{0}, 중간에 끊김";
    SHOW_MESSAGE: "{0} message {1} of {2}: {3}", "{0} 메시지 {1}, {2}: {3}";
    SHOW_OF_CLIENT: "the client", "클라이언트";
    SHOW_OF_ORIGIN: "the origin", "오리진";
    SHOW_BYTES: "{0} bytes", "{0}바이트";
    SHOW_LOST: "lost          {0}", "버림          {0}";
    SHOW_ENDING: "ending        {0} of {1} recorded after {2}", "끝            {1}건 중 {0}건 기록, {2} 동안";

    // weir canary.
    CANARY: "canary", "카나리";
    CANARY_NO_FILE: "name the file of the new configuration, or two upstreams: --split app=app_next", "새 설정 파일이나 업스트림 둘을 지정하세요: --split app=app_next";
    CANARY_NO_EDGE: "the edge has ended", "엣지가 끝났습니다";
    CANARY_NO_ANSWER: "the edge has not answered: is it weir, and of this version?", "엣지가 응답하지 않습니다. 이 버전의 weir인지 확인하세요";
    CANARY_NONE: "this edge has had no canary", "이 엣지에는 카나리가 없었습니다";
    CANARY_MOVE: "{0} still has the old configuration, which the next reload reads: mv {1} {0}", "{0}에는 아직 옛 설정이 있고 다음 reload가 그것을 읽습니다: mv {1} {0}";
    CANARY_EXCHANGE: "{0} still has the old names, which the next reload reads: exchange the names \"{1}\" and \"{2}\" in {3}", "{0}에는 아직 옛 이름이 있고 다음 reload가 그것을 읽습니다. {3}에서 이름 \"{1}\"과 \"{2}\"를 맞바꾸세요";
    CANARY_KEYLESS: "{0} requests have no {1}: they get the old configuration and count for nothing", "요청 {0}건에 {1}가 없습니다. 옛 설정을 받고 세지 않습니다";
    CANARY_LOST: "{0} requests were not counted: the judge was behind", "요청 {0}건을 세지 못했습니다. 판정이 밀렸습니다";

    // weir top.
    NO_DASHBOARD: "no dashboard answers on 127.0.0.1:{0}: is weir edge running? You can name another: weir top http://HOST:PORT/", "127.0.0.1:{0}에서 응답하는 대시보드가 없습니다. weir edge가 실행 중인지 확인하세요. 다른 주소도 지정할 수 있습니다: weir top http://HOST:PORT/";
    EDGE_WITHOUT: "an edge runs here without a dashboard (pid {0}: {1}): write \"dashboard on;\" at the top of its file and reload it", "대시보드가 없는 엣지가 실행 중입니다(pid {0}: {1}). 설정 파일 맨 위에 \"dashboard on;\"을 쓰고 다시 로드하세요";
    TOP_WITHOUT: "no dashboard", "대시보드 없음";
    NOT_DASHBOARD_JSON: "{0} is not a dashboard: its answer is not JSON", "{0}: 응답이 JSON이 아니므로 대시보드가 아닙니다";
    NEEDS_TOKEN: "{0} requires a token: --token FILE", "{0}: 토큰이 필요합니다. --token FILE로 지정하세요";
    NOT_DASHBOARD: "{0} is not a dashboard: does its location have \"dashboard\"?", "{0}: 대시보드가 아닙니다. 그 location에 \"dashboard\"가 있는지 확인하세요";
    ANSWERS_AS: "{0} answers {1}: {2}", "{0}의 응답: {1}, {2}";
    CANNOT_DRAW: "weir cannot draw on the terminal: {0}", "터미널에 그릴 수 없습니다: {0}";
    TOP_REQUESTS: "requests", "요청";
    TOP_FAILED: "failed", "실패";
    TOP_CONNECTIONS: "connections", "연결";
    TOP_WEBSOCKETS: "WebSockets", "WebSocket 연결";
    TOP_MESSAGES: "messages", "메시지";
    TOP_KEYS: "q quit · Tab table · ↑↓ scroll · s sort · r turn round · f only failing", "q 종료 · Tab 표 선택 · ↑↓ 스크롤 · s 정렬 · r 역순 · f 실패만";
    TOP_KEYS_OF_EDGES: "edge {0} {1} · n next edge · {2}", "엣지 {0} {1} · n 다음 엣지 · {2}";
    TOP_EDGE: "dashboard", "대시보드";
    TOP_STATE: "state", "상태";
    TOP_UP: "up for", "가동 시간";
    TOP_FILE: "configuration", "설정 파일";
    TOP_ERROR: "ERROR", "오류";
    TOP_NOW: "now", "현재";
    TOP_COUNT: "count", "누적";
    TOP_LAST: "last, UTC", "UTC 시각";
    TOP_ZONE: "ZONE", "이름";
    TOP_PEER: "PEER", "피어";
    TOP_LIMIT: "LIMIT", "한도";
    TOP_RATE: "req/s", "초당 요청";
    TOP_IN_FLIGHT: "in flight", "처리 중";
    TOP_USE: "use", "사용";
    TOP_LEFT: "time left", "남은 시간";
    TOP_IN: "in {0}", "{0}";
    TOP_NOT_RISING: "not rising", "증가 없음";
    TOP_RISING: "rising", "증가 중";
    HEALTHY: "healthy", "정상";
    NEAR: "near a limit", "한도 근접";
    LIMITED: "limited", "한도 도달";
    FAILING: "failing", "오류 발생";
    NO_FIGURES: "no figures yet", "수치 없음";
    EACH_SECOND: "{0}/s", "{0}/초";
    SECONDS: "{0} s", "{0}초";
    MINUTES: "{0} min {1} s", "{0}분 {1}초";
    HOURS: "{0} h {1} min", "{0}시간 {1}분";
    DAYS: "{0} d {1} h", "{0}일 {1}시간";

    // weir origin and weir demo.
    CANNOT_LISTEN: "the origin cannot listen: {0}", "오리진이 리슨할 수 없습니다: {0}";
    CANNOT_LISTEN_ON: "the origin cannot listen on {0}: {1}", "오리진이 {0}에서 리슨할 수 없습니다: {1}";
    ORIGIN_AT: "origin   {0}", "오리진   {0}";
    ORIGIN_HELP: "         `weir origin --help` lists the parameters of a request; Ctrl-C ends", "         요청의 매개변수는 `weir origin --help`로 볼 수 있습니다. Ctrl-C를 누르면 끝납니다";
    ORIGIN_TOTALS: "origin   {0} requests over {1} connections", "오리진   연결 {1}개로 요청 {0}건을 받았습니다";
    NO_DIRECTORY: "weir cannot create a directory for the demo: {0}", "데모용 디렉터리를 만들 수 없습니다: {0}";
    NO_PORT: "no port is free on 127.0.0.1: {0}", "127.0.0.1에 빈 포트가 없습니다: {0}";
    NO_THREAD: "weir cannot start a thread for the load: {0}", "부하를 보낼 스레드를 시작할 수 없습니다: {0}";
    NOT_COMPLETE: "ended before the load was complete", "부하를 다 보내기 전에 끝났습니다";
    DEMO_REFUSED: "weir refused the demo's configuration", "weir가 데모 설정을 거부했습니다";
    DEMO_BEGINS: "weir demo   {0} s of load over {1} connections: load, edge and origin in this process", "weir demo   연결 {1}개로 {0}초 동안 부하를 보냅니다. 부하 생성기, 엣지, 오리진이 모두 이 프로세스에 있습니다";
    DEMO_RATE: "{0} per second", "초당 {0}건";
    DEMO_ERRORS: "errors", "오류";
    DEMO_LATENCY: "latency", "지연 시간";
    DEMO_EDGE_CPU: "edge CPU", "엣지 CPU";
    DEMO_ORIGIN_CPU: "origin CPU", "오리진 CPU";
    DEMO_LOAD_CPU: "load CPU", "부하 CPU";
    DEMO_FEW: "not measured: too little load", "측정하지 않음: 부하가 너무 적습니다";
    DEMO_SHARE: "{0} per request   {1} % of a CPU", "{0} (요청당)   CPU 하나의 {1} %";
    DEMO_SATURATED: "the load used all of its CPU: the rate and the latencies measure the load, not the edge", "부하 생성기가 CPU를 다 썼습니다. 속도와 지연 시간은 엣지가 아니라 부하 생성기의 값입니다";
    DEMO_WATCH: "dashboard   {0}", "대시보드    {0}";
    DEMO_DASHBOARD: "the dashboard: what limits this edge, and its errors", "대시보드: 이 엣지를 제한하는 자원과 오류";
    DEMO_NEXT: "next", "다음";
    DEMO_DOCTOR: "checks a configuration; starts and changes nothing", "설정을 검사합니다. 아무것도 시작하거나 바꾸지 않습니다";
    DEMO_LOAD: "sends 500 requests a second to this edge", "이 엣지에 초당 요청 500건을 보냅니다";
    DEMO_OPEN: "open", "열기";
    DEMO_PAGE: "a static page", "정적 페이지";
    DEMO_ORIGIN: "the origin through the edge; also status=503, fail=reset", "엣지를 거친 오리진. status=503, fail=reset도 됩니다";
    DEMO_COUNTERS: "the edge's counters", "엣지의 카운터";
    DEMO_ECHO: "WebSocket echo", "WebSocket 에코";
    DEMO_CHANGE: "change", "변경";
    DEMO_RELOAD: "then kill -HUP {0}", "수정한 뒤 kill -HUP {0}";
    DEMO_END: "Ctrl-C ends", "Ctrl-C를 누르면 끝납니다";

    // weir lsp.
    NO_TARGET: "\"{0}\" is neither auto nor weir nor nginx nor nginx VERSION, as in \"nginx 1.18.0\"", "\"{0}\"은(는) auto, weir, nginx, nginx 버전(예: \"nginx 1.18.0\") 중 하나가 아닙니다";

    // weir doctor.
    NO_RULE: "--only {0}: there is no such rule", "--only {0}: 그런 규칙이 없습니다";
    NO_RULE_BUT: "--only {0}: there is no such rule; did you mean {1}?", "--only {0}: 그런 규칙이 없습니다. 비슷한 규칙: {1}";
    NO_SYMPTOM: "{0} is neither a file nor a symptom; symptoms: {1}", "{0}은(는) 파일도 증상도 아닙니다. 증상: {1}";
    NO_SYMPTOM_BUT: "{0} is neither a file nor a symptom; did you mean {1}? symptoms: {2}", "{0}은(는) 파일도 증상도 아닙니다. 비슷한 증상: {1}. 전체: {2}";
    SYMPTOM_WITHOUT: "a symptom ({0}) and {1} do not go together: leave out one of them", "증상({0})과 {1}은(는) 함께 쓸 수 없습니다. 하나를 빼세요";
    ERROR_LOG_NEEDS: "--error-log needs a symptom: {0}", "--error-log에는 증상이 필요합니다: {0}";
    NO_CONF: "you named no file, and there is no /etc/nginx/nginx.conf", "파일을 지정하지 않았고, /etc/nginx/nginx.conf도 없습니다";
    STDIN: "standard input: {0}", "표준 입력: {0}";
    PATH_NOT_UTF8: "{0}: the path is not UTF-8", "{0}: 경로가 UTF-8이 아닙니다";
    NOT_NGINX: "the output of {0} -V is not nginx's", "{0} -V의 출력이 nginx의 것이 아닙니다";
    NOT_NEGATIVE: "{0} needs a number that is not negative", "{0}에는 0 이상의 수를 쓰세요";
    NO_LIMITS_OF: "no process {0}, or its limits are not readable", "프로세스 {0}이(가) 없거나 그 한도를 읽을 수 없습니다";
    FILES_UNKNOWN: "the configuration does not say how many files it needs: add --files N", "설정에서 필요한 파일 수를 알 수 없습니다. --files N을 추가하세요";
    FILES_UNKNOWN_OF: "process {0} reads no nginx.conf, so weir does not know how many files it needs: add --files N", "프로세스 {0}은(는) nginx.conf를 읽지 않아 필요한 파일 수를 알 수 없습니다. --files N을 추가하세요";
    WRITTEN: "{0} written", "{0}에 썼습니다";
    WROTE_NOTHING: "the doctor wrote nothing; --fix --write writes the changes", "아무것도 쓰지 않았습니다. 쓰려면 --fix --write를 지정하세요";
    FIX_NOT_AS_CHECKED: "the files on the disk are not those that the doctor checked: it took its changes back", "디스크의 파일이 검사한 파일과 다릅니다. 변경을 되돌렸습니다";
    UNDO_WITH: "To undo this: weir doctor --undo", "되돌리려면: weir doctor --undo";
    UNDONE: "{0} is as before the change", "{0}: 변경 전으로 되돌렸습니다";
    UNDO_NONE: "there is no change to undo in {0}", "{0}에 되돌릴 변경이 없습니다";
    UNDO_CHANGED: "{0} has changed since the doctor wrote it, so nothing was undone; its content from before the doctor's change is in {1}", "{0}: 그 뒤에 바뀌어 아무것도 되돌리지 않았습니다. 변경 전 내용은 {1}에 있습니다";
    UNDO_RACED: "{0} is not as the doctor read it: run it again; nothing was changed", "{0}: 읽은 내용과 다릅니다. 다시 실행하세요. 아무것도 바꾸지 않았습니다";
    UNDO_FULL: "{0} has {1} changes already: remove the oldest folders; nothing was changed", "{0}에 변경이 이미 {1}건 있습니다. 오래된 폴더를 지우세요. 아무것도 바꾸지 않았습니다";
    UNDO_NOWHERE: "there is no folder for the files as they were: set XDG_STATE_HOME; nothing was changed", "변경 전 파일을 보관할 폴더가 없습니다. XDG_STATE_HOME을 지정하세요. 아무것도 바꾸지 않았습니다";
    UNDO_UNSAFE: "{0} is not a folder that only this user can write to: correct its owner and mode; nothing was changed", "{0}: 이 사용자만 쓸 수 있는 폴더가 아닙니다. 소유자와 권한을 바로잡으세요. 아무것도 바꾸지 않았습니다";
    READS_NO_CONF: "process {0} reads no nginx.conf: name the file that you mean, as in weir doctor /etc/nginx/nginx.conf; for the limits of the process use --fix --host --files N", "프로세스 {0}은(는) nginx.conf를 읽지 않습니다. weir doctor /etc/nginx/nginx.conf처럼 파일을 지정하세요. 프로세스의 한도를 바꾸려면 --fix --host --files N을 쓰세요";
    NO_STUB_STATUS: "{0}: status {1}, and the answer is not a stub_status page", "{0}: 상태 코드 {1}, 응답이 stub_status 페이지가 아닙니다";

    // weir why.
    NOW_LENGTH: "--for: write {0} seconds to {1} minutes", "--for: {0}초부터 {1}분까지 쓰세요";
    NOW_WATCHES: "watching {0} (process {1}, {2}) for {3} s", "{0} (프로세스 {1}, {2})을(를) {3}초 동안 관찰합니다";
    NOW_LABEL_WATCHED: "watched", "관찰 대상";
    NOW_WATCHED: "{0} s of {1} (process {2}), and beside it: {3}", "{1} (프로세스 {2}) {0}초. 함께 본 프로세스: {3}";
    NOW_WATCHED_ALONE: "{0} s of {1} (process {2}); no other process of this machine belongs to it", "{1} (프로세스 {2}) {0}초. 이 머신에 관련된 다른 프로세스가 없습니다";
    NOW_NO_EDGE: "no nginx and no weir runs on this machine, as far as this user can see", "이 사용자가 볼 수 있는 범위에서, 이 머신에 실행 중인 nginx나 weir가 없습니다";
    NOW_EDGES: "several edges run on this machine: {0}; name one with --edge PID", "이 머신에 엣지가 여럿 실행 중입니다: {0}. --edge PID로 하나를 지정하세요";
    NOW_NO_EDGE_PID: "process {0} is neither an nginx nor a weir", "프로세스 {0}은(는) nginx도 weir도 아닙니다";
    NOW_EDGE_FAR: "{0}: its process ({1}) does not run on this machine: run weir why on that machine", "{0}: 그 프로세스({1})가 이 머신에 없습니다. 해당 머신에서 weir why를 실행하세요";
    NOW_CONF: "the configuration {0}: {1}; sudo may read it, or name the file: weir why CONF", "설정 {0}: {1}. sudo로 실행하거나 파일을 지정하세요: weir why CONF";

    // weir adopt.
    OWN_PATH: "weir cannot find the path of its own program: {0}", "weir 자신의 프로그램 경로를 찾을 수 없습니다: {0}";
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_words::check_texts;

    #[test]
    fn every_text_is_there_in_both_languages() {
        assert_eq!(check_texts(ALL), Vec::<String>::new());
    }
}
