//! What is said, in Korean: sentences are found again by their English, so that rules say each once, and a run that was kept can be
//! printed in either language. What is not in the table stays as it is: names, numbers, directives, what other programs said.
//!
//! long: a table, one row a sentence.

/// Longer texts are not looked up.
const TEXT_MAX: usize = 4096;

/// In Korean, if the table has it. Holes, which are `{}` in English, are `{1}`, `{2}` … in Korean, in the order of the English; what
/// stands in them is looked up as well. Of several that fit, the one that says most by itself.
pub fn say(text: &str) -> Option<String> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let fits = PHRASES.iter().filter_map(|(en, ko)| Some((en.len(), ko, holes(en, text)?)));
    let (_, ko, holes) = fits.max_by_key(|(length, _, holes)| length - 2 * holes.len())?;
    let mut said = (*ko).to_owned();
    for (number, hole) in holes.iter().enumerate() {
        // A hole is shorter than what it is in: this ends.
        let inner = say(hole).unwrap_or_else(|| (*hole).to_owned());
        said = said.replace(&format!("{{{}}}", number + 1), &inner);
    }
    Some(said)
}

/// As [`say`]; what the table lacks stays as it is.
pub fn or_as_it_is(text: &str) -> String {
    say(text).unwrap_or_else(|| text.to_owned())
}

/// The label of a line.
pub fn label(label: &str) -> &str {
    LABELS.iter().find(|(en, _)| *en == label).map_or(label, |(_, ko)| ko)
}

/// A label with spaces up to a number of columns: a syllable takes two.
pub fn padded(label: &str, columns: usize) -> String {
    let width: usize = label.chars().map(|c| if ('가'..='힣').contains(&c) { 2 } else { 1 }).sum();
    format!("{label}{}", " ".repeat(columns.saturating_sub(width)))
}

/// What stands in the holes of a phrase, if a text is of its form.
fn holes<'a>(phrase: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let Some((first, rest)) = phrase.split_once("{}") else { return (phrase == text).then(Vec::new) };
    let mut found = Vec::new();
    let mut left = text.strip_prefix(first)?;
    let mut parts = rest.split("{}").peekable();
    while let Some(part) = parts.next() {
        let at = match (parts.peek(), part) {
            (None, "") => left.len(),
            (None, part) => left.strip_suffix(part)?.len(),
            (Some(_), part) => left.find(part)?,
        };
        let (hole, after) = left.split_at(at);
        if hole.is_empty() {
            return None;
        }
        found.push(hole);
        left = after.strip_prefix(part)?;
    }
    left.is_empty().then_some(found)
}

/// Labels of lines.
const LABELS: &[(&str, &str)] = &[
    ("accepted", "수락"),
    ("also", "그 밖에"),
    ("answers", "응답"),
    ("application", "앱"),
    ("cache", "캐시"),
    ("clients", "클라이언트"),
    ("collections", "가비지 수집"),
    ("commands", "명령"),
    ("configuration", "설정"),
    ("connections", "연결"),
    ("cost", "비용"),
    ("cpu", "CPU"),
    ("database", "데이터베이스"),
    ("edge", "엣지"),
    ("expect", "기대 효과"),
    ("expired", "만료"),
    ("failed", "실패"),
    ("fetches", "가져오기"),
    ("files", "파일"),
    ("given more", "늘려 보면"),
    ("grew", "늘어난 곳"),
    ("handshakes", "핸드셰이크"),
    ("heap", "힙"),
    ("kept", "유지"),
    ("killed", "강제 종료"),
    ("knee", "한계점"),
    ("latency", "지연"),
    ("limit", "한도"),
    ("link", "링크"),
    ("locks", "잠금"),
    ("log", "로그"),
    ("loop", "루프"),
    ("near", "근처"),
    ("neighbours", "이웃"),
    ("not proved", "증명 안 됨"),
    ("not read", "읽지 못함"),
    ("overflows", "넘침"),
    ("pool", "풀"),
    ("ports", "포트"),
    ("predicted", "예측"),
    ("pressure", "압박"),
    ("queries", "쿼리"),
    ("queue", "대기열"),
    ("recycled", "재활용"),
    ("refused", "거절"),
    ("requests", "요청"),
    ("ruled out", "제외됨"),
    ("sent", "보냄"),
    ("server", "서버"),
    ("spike", "봉우리"),
    ("statuses", "상태 코드"),
    ("stood still", "멈춤"),
    ("table", "연결 표"),
    ("taken off", "선점"),
    ("threads", "스레드"),
    ("throttled", "제한"),
    ("tries", "시도"),
    ("try", "해 볼 것"),
    ("tunnels", "터널"),
    ("undo", "되돌리기"),
    ("verify", "확인"),
    ("wait", "대기"),
    ("waited", "기다림"),
    ("waits", "기다림"),
    ("why", "이유"),
    ("workers", "워커"),
];

/// Sentences: the English, and the Korean.
const PHRASES: &[(&str, &str)] = &[
    // Words of verdicts stay; what they mean is beside them.
    ("no verdict: {}", "no verdict (판정 없음): {1}"),
    ("PROVED  {}", "PROVED (증명됨)  {1}"),
    ("SHARED  {}", "SHARED (함께 제한함)  {1}"),
    ("SUSPECTED  {}", "SUSPECTED (의심됨)  {1}"),
    ("UNATTRIBUTED  {}", "UNATTRIBUTED (원인 불명)  {1}"),
    ("NOT SATURATED  {}", "NOT SATURATED (포화되지 않음)  {1}"),
    ("{}   (rule {})", "{1}   (규칙 {2})"),
    ("{}   (rule {}), elasticity {}", "{1}   (규칙 {2}), 탄력도 {3}"),
    ("{}   (rule {}), elasticity {} [{}, {}] and {}", "{1}   (규칙 {2}), 탄력도 {3} [{4}, {5}], 그리고 {6}"),
    ("{}: capacity unknown (weir lab capacity finds it)", "{1}: 용량은 알 수 없음 (weir lab capacity로 찾음)"),
    (
        "{}: capacity unknown (weir lab capacity finds it); noticed: {}",
        "{1}: 용량은 알 수 없음 (weir lab capacity로 찾음); 눈에 띈 것: {2}",
    ),
    ("{}/s offered and {}/s answered", "초당 {1}건을 보내 {2}건이 응답됨"),
    ("{} connections gave {}/s, and more of them give more", "연결 {1}개로 초당 {2}건이며, 더 늘리면 더 나옴"),
    ("the script was answered: {}/s", "스크립트에 모두 응답함: 초당 {1}건"),
    ("no suspect matters when it is squeezed; {}", "줄여 보아도 영향을 주는 용의자가 없음; {1}"),
    (
        "{} ms more than at half the load in the segment \"{}\", {} of requests failed",
        "부하가 절반일 때보다 \"{2}\" 구간에서 {1} ms 더 걸림, 요청 중 {3} 실패",
    ),
    (
        "{} ms more than at half the load in the segment \"{}\", {} of requests failed; what the application does meanwhile is not seen from here: its own metrics, or a profiler",
        "부하가 절반일 때보다 \"{2}\" 구간에서 {1} ms 더 걸림, 요청 중 {3} 실패; 그동안 앱이 무엇을 하는지는 여기서 보이지 않음: 앱의 지표나 프로파일러",
    ),
    ("{} ms in the segment \"{}\", {} of requests failed", "\"{2}\" 구간에서 {1} ms, 요청 중 {3} 실패"),
    (
        "{} ms in the segment \"{}\", {} of requests failed; what the application does meanwhile is not seen from here: its own metrics, or a profiler",
        "\"{2}\" 구간에서 {1} ms, 요청 중 {3} 실패; 그동안 앱이 무엇을 하는지는 여기서 보이지 않음: 앱의 지표나 프로파일러",
    ),
    ("before and in the edge's own work", "엣지 앞과 엣지 자체의 작업"),
    ("held by the edge", "엣지가 붙잡은 시간"),
    ("connecting to the upstream", "업스트림에 연결"),
    ("waiting for the upstream's answer", "업스트림의 응답을 기다림"),
    ("bodies", "본문"),
    // What was ruled out, and what squeezing said.
    ("accept queues {} of {}", "수락 대기열 {2} 중 {1}"),
    ("ports {} of {}", "포트 {2} 중 {1}"),
    ("edge files {} of {}", "엣지 파일 {2} 중 {1}"),
    ("connection table {} of {}", "연결 표 {2} 중 {1}"),
    ("link of {} {}", "{1}의 링크 {2}"),
    ("{} from {} to {}: elasticity {}", "{1} {2}에서 {3}(으)로: 탄력도 {4}"),
    ("{} from {} to {}: answers {} more [{}, {}]", "{1} {2}에서 {3}(으)로: 응답 {4} 증가 [{5}, {6}]"),
    ("CPU of {}", "{1}의 CPU"),
    ("CPU of {} that {} leaves", "{2}이(가) 남긴 {1}의 CPU"),
    ("local ports of {}", "{1}의 로컬 포트"),
    ("descriptors of {}", "{1}의 디스크립터"),
    ("link of {}", "{1}의 링크"),
    ("pool of {} ({})", "{1}의 풀 ({2})"),
    ("servers of the upstream", "업스트림의 서버"),
    ("next limit: CPU of {} at about {}/s", "다음 한계: 초당 약 {2}건에서 {1}의 CPU"),
    ("nothing was changed: your files are as they were", "아무것도 바꾸지 않음: 파일은 그대로임"),
    ("{}   with that one change in after.conf", "{1}   after.conf에는 그 변경 하나만"),
    ("none of the suspects can be squeezed by a lab", "랩이 줄여 볼 수 있는 용의자가 없음"),
    (
        "blocks of the proof were spoiled: the load generator, or other work",
        "증명 블록을 쓸 수 없음: 부하 발생기나 다른 작업 때문",
    ),
    (
        "there was nothing else to squeeze, and so nothing it could be told from",
        "달리 줄여 볼 것이 없어 구별할 수 없음",
    ),
    ("{} may matter too: elasticity up to {}", "{1}도 영향을 줄 수 있음: 탄력도 최대 {2}"),
    (
        "no elasticity is surely above 0.3: more rounds (--rounds), or longer blocks (--block)",
        "0.3을 확실히 넘는 탄력도가 없음: 라운드를 늘리거나(--rounds) 블록을 길게(--block)",
    ),
    (
        "it shrinks with {}, of which nothing else says that it is full",
        "{1}에 따라 줄지만, 그것이 가득 찼다는 다른 증거가 없음",
    ),
    ("stopped before its end", "끝나기 전에 멈춤"),
    (
        "load generator held back by its CPU quota in {} of its periods",
        "부하 발생기가 CPU 할당량 때문에 주기의 {1}에서 멈춤",
    ),
    ("not one request was sent", "요청을 하나도 보내지 못함"),
    ("load generator saturated (core {})", "부하 발생기가 포화됨 (코어 {1})"),
    ("load generator: {}", "부하 발생기: {1}"),
    ("load generator ran out: {}", "부하 발생기의 자원이 바닥남: {1}"),
    // Parts that many share.
    ("{} of {} ({})", "{2} 중 {1} ({3})"),
    (
        "its busiest thread ran {} of the time and waited {} for a CPU",
        "가장 바쁜 스레드가 시간의 {1} 동안 실행되고 {2} 동안 CPU를 기다림",
    ),
    ("its CPUs were {} used: they wait, they do not work", "CPU 사용률 {1}: 일하지 않고 기다림"),
    ("its CPUs were {} used: it waits, it does not work", "CPU 사용률 {1}: 일하지 않고 기다림"),
    ("{} ms of a request's {} ms are spent waiting for it", "요청 하나의 {2} ms 중 {1} ms를 기다리는 데 씀"),
    ("application {}", "앱 {1}"),
    ("load generator", "부하 발생기"),
    ("its CPUs were {} used", "CPU 사용률 {1}"),
    ("{} CPUs used", "CPU {1}개 사용"),
    // B01
    ("the edge ran out of local ports towards an upstream", "엣지에서 업스트림으로 나갈 로컬 포트가 바닥남"),
    ("edge → {}: local ports", "엣지 → {1}: 로컬 포트"),
    ("{} connects had no port (errno 99), {} requests failed", "연결 {1}건에 포트가 없었고(errno 99), 요청은 {2} 실패"),
    (
        "{} of {} held towards {}, {} of them in TIME_WAIT: {}",
        "{3} 방향 {2}개 중 {1}개 사용 중, 그중 {4}개가 TIME_WAIT: {5}",
    ),
    ("the edge closes first", "엣지가 먼저 닫음"),
    ("connections are open", "연결이 열려 있음"),
    (
        "{} / 60 s = {} new connections a second for ever; answered {}/s now",
        "{1} / 60초 = 계속 낼 수 있는 새 연결은 초당 {2}개; 지금 응답은 초당 {3}건",
    ),
    (
        "upstream … { keepalive 64; }   (HTTP/1.1 and Connection \"\" are there already)",
        "upstream … { keepalive 64; }   (HTTP/1.1과 Connection \"\"는 이미 있음)",
    ),
    (
        "proxy_http_version 1.1; proxy_set_header Connection \"\";   (keepalive does nothing without)",
        "proxy_http_version 1.1; proxy_set_header Connection \"\";   (없으면 keepalive는 아무 일도 하지 않음)",
    ),
    (
        "upstream … { keepalive 64; } with proxy_http_version 1.1 and proxy_set_header Connection \"\"",
        "upstream … { keepalive 64; }와 proxy_http_version 1.1, proxy_set_header Connection \"\"",
    ),
    (
        "a larger keepalive, or more addresses of the upstream; a wider net.ipv4.ip_local_port_range only delays",
        "더 큰 keepalive나 업스트림 주소 추가; net.ipv4.ip_local_port_range를 넓히는 것은 늦출 뿐",
    ),
    (
        "new connections a request → below 0.02, and no errors of this kind",
        "요청당 새 연결 → 0.02 미만, 이런 오류는 사라짐",
    ),
    // B05 to B11
    ("the edge's connection table was full", "엣지의 연결 표가 가득 참"),
    ("edge: worker_connections", "엣지: worker_connections"),
    (
        "{} connections found no slot (\"worker_connections are not enough\")",
        "연결 {1}개가 자리를 얻지 못함 (\"worker_connections are not enough\")",
    ),
    (
        "{} of clients open at most, {} slots a worker; a proxied request holds two",
        "클라이언트 연결 최대 {1}개, 워커당 자리 {2}; 프록시 요청 하나가 둘을 차지함",
    ),
    ("512 (nginx's default)", "512 (nginx 기본값)"),
    (
        "worker_connections {};   (descriptors: worker_rlimit_nofile at least that)",
        "worker_connections {1};   (디스크립터: worker_rlimit_nofile도 그 이상)",
    ),
    (
        "every connection finds a slot; then the upstream sees all of them at once",
        "모든 연결이 자리를 얻음; 그때는 업스트림이 한꺼번에 다 받음",
    ),
    (
        "idle clients' connections were closed to make room for others",
        "다른 연결에 자리를 내주려고 유휴 클라이언트 연결을 닫음",
    ),
    ("edge: worker_connections, taken by idle clients", "엣지: 유휴 클라이언트가 차지한 worker_connections"),
    (
        "{} times idle connections were closed for new ones (\"reusing connections\")",
        "새 연결 때문에 유휴 연결을 닫은 일이 {1}번 (\"reusing connections\")",
    ),
    ("{} connections for {} requests: {} a request", "요청 {2}건에 연결 {1}개: 요청당 {3}"),
    ("{} slots a worker, {} idle at most", "워커당 자리 {1}개, 유휴 최대 {2}개"),
    ("worker_connections {};", "worker_connections {1}; 으로 늘리기"),
    (
        "connections a request → those clients open by themselves; with TLS, as many handshakes fewer",
        "요청당 연결 → 클라이언트가 스스로 여는 만큼; TLS라면 핸드셰이크도 그만큼 줄어듦",
    ),
    ("the edge ran out of file descriptors", "엣지의 파일 디스크립터가 바닥남"),
    ("edge: open files", "엣지: 열린 파일"),
    ("{} times there was no descriptor (errno 24)", "디스크립터가 없던 일이 {1}번 (errno 24)"),
    ("{} open at most of {} that the process may have", "프로세스가 가질 수 있는 {2}개 중 최대 {1}개 열림"),
    ("{} failed; p50 {} ms", "{1} 실패; p50 {2} ms"),
    (
        "worker_rlimit_nofile {};   (or LimitNOFILE= of its systemd unit)",
        "worker_rlimit_nofile {1};   (또는 systemd 유닛의 LimitNOFILE=)",
    ),
    ("no EMFILE, no accept that waits half a second", "EMFILE도, 0.5초를 기다리는 accept도 없음"),
    (
        "connections waited for the edge to accept them until the queue was full",
        "엣지가 수락하기를 기다리던 연결로 대기열이 가득 참",
    ),
    ("edge: the queue of connections to accept at {}", "엣지: {1}의 수락 대기열"),
    ("{} waited at most, of {} that may", "기다릴 수 있는 {2}개 중 최대 {1}개가 기다림"),
    ("{} times the kernel found it full (ListenOverflows)", "커널이 가득 찬 것을 본 일이 {1}번 (ListenOverflows)"),
    (
        "{} of answers took about 1, 3 or 7 s: a SYN sent again; max {} ms",
        "응답의 {1}가 1, 3, 7초쯤 걸림: SYN 재전송; 최대 {2} ms",
    ),
    (
        "find what keeps the edge from accepting first; then listen … backlog=4096 and net.core.somaxconn to match",
        "먼저 무엇이 엣지의 수락을 막는지 찾기; 그다음 listen … backlog=4096과 그에 맞는 net.core.somaxconn",
    ),
    ("no connection waits for a SYN to be sent again", "SYN 재전송을 기다리는 연결이 없음"),
    (
        "connections came faster than the queue of half-open ones takes",
        "반쯤 열린 연결의 대기열이 받는 것보다 빨리 연결이 들어옴",
    ),
    ("edge: half-open connections", "엣지: 반쯤 열린 연결"),
    ("{} SYNs were answered with cookies, {} not at all", "SYN {1}개는 쿠키로 응답, {2}개는 응답 없음"),
    (
        "listen … backlog=4096; net.ipv4.tcp_max_syn_backlog to match; a load that begins more slowly",
        "listen … backlog=4096; 그에 맞는 net.ipv4.tcp_max_syn_backlog; 더 천천히 시작하는 부하",
    ),
    ("connecting takes one round trip", "연결이 왕복 한 번에 됨"),
    // B22
    (
        "an application lets connections wait while its CPU does not: a pool of its own is full",
        "앱이 CPU는 놀리면서 연결을 기다리게 함: 앱 자신의 풀이 가득 참",
    ),
    ("application {}: its workers", "앱 {1}: 워커"),
    ("{} of {} busy", "{2}개 중 {1}개가 바쁨"),
    ("{} times it said that its limit of workers was reached", "워커 한도에 닿았다고 로그에 남긴 일이 {1}번"),
    (
        "application at {}: a pool of its own (threads, processes, connections)",
        "{1}의 앱: 자신의 풀 (스레드, 프로세스, 연결)",
    ),
    (
        "{} connections of {} waited for the application to accept them",
        "앱이 수락하기를 {2}개 자리 중 연결 {1}개가 기다림",
    ),
    (
        "find what its workers wait for; only if that has room, more of them",
        "워커가 무엇을 기다리는지 찾기; 그쪽에 여유가 있을 때만 워커 늘리기",
    ),
    (
        "find what its workers wait for; only if that has room, more of them ({})",
        "워커가 무엇을 기다리는지 찾기; 그쪽에 여유가 있을 때만 워커 늘리기 ({1})",
    ),
    (
        "if the pool is the limit, answers a second grow with it; if not, it was what they wait for",
        "풀이 한계라면 초당 응답이 풀과 함께 늚; 아니라면 워커가 기다리는 것이 한계였음",
    ),
    // CPU
    (
        "one worker of the edge is full, and its other CPUs are idle",
        "엣지의 워커 하나가 가득 찼고 다른 CPU는 놀고 있음",
    ),
    ("edge: one worker's core", "엣지: 워커 하나의 코어"),
    ("{}; {} CPUs used of {} it may run on", "{1}; 쓸 수 있는 CPU {3}개 중 {2}개 사용"),
    ("1, nginx's default", "1, nginx 기본값"),
    ("worker_processes auto;", "worker_processes auto; 로 바꾸기"),
    ("up to {} times as much, until the next limit", "다음 한계까지 최대 {1}배"),
    ("one worker of the edge has most connections", "엣지의 워커 하나가 연결을 거의 다 가짐"),
    ("edge: one of its workers", "엣지: 워커 중 하나"),
    ("one ran {} of the time, the next {}", "하나는 시간의 {1}, 다음 것은 {2} 동안 실행됨"),
    ("{} of clients at once", "클라이언트 연결 동시에 {1}개"),
    ("listen … reuseport;", "listen … reuseport; 넣기"),
    ("connections are spread by the kernel; the tail shortens", "커널이 연결을 나눔; 꼬리 지연이 짧아짐"),
    ("the edge has more workers than CPUs, and they wait for each other", "엣지의 워커가 CPU보다 많아 서로 기다림"),
    ("edge: more workers than CPUs", "엣지: CPU보다 많은 워커"),
    ("worker_processes {}, of which {} worked, on {} CPUs", "worker_processes {1}, 그중 {2}개가 CPU {3}개에서 일함"),
    ("together they ran {} CPUs and waited for {} more", "모두 합쳐 CPU {1}개를 쓰고 {2}개를 더 기다림"),
    ("{} times a second one was taken off its CPU for another", "초당 {1}번 다른 워커에 CPU를 빼앗김"),
    ("worker_processes {};", "worker_processes {1}; 으로 바꾸기"),
    (
        "the tail shortens: nobody waits for a worker that waits",
        "꼬리 지연이 짧아짐: 기다리는 워커를 기다리는 일이 없음",
    ),
    ("a CPU quota is used up", "CPU 할당량을 다 씀"),
    ("{}: its CPU quota", "{1}: CPU 할당량"),
    ("in {} of its periods it had to wait for the next one", "주기의 {1}에서 다음 주기를 기다려야 했음"),
    ("{} CPUs used of the {} that its group may use", "그룹이 쓸 수 있는 CPU {2}개 중 {1}개 사용"),
    (
        "a larger quota for {} (cpu.max, CPUQuota=, docker --cpus)",
        "{1}에 더 큰 할당량 (cpu.max, CPUQuota=, docker --cpus)",
    ),
    ("answers a second grow with the quota, until the next limit", "다음 한계까지 초당 응답이 할당량과 함께 늚"),
    (
        "CPU was taken away in the middle: credits ran out, or the host took it",
        "도중에 CPU를 빼앗김: 크레딧이 바닥났거나 호스트가 가져감",
    ),
    ("{}: CPU credits", "{1}: CPU 크레딧"),
    (
        "from about {} s on, in {} of its periods; before, not at all",
        "약 {1}초부터 주기의 {2}에서; 그 전에는 전혀 없음",
    ),
    ("{}/s in the first half, {}/s in the second, of the same load", "같은 부하에서 전반 초당 {1}건, 후반 초당 {2}건"),
    (
        "a machine whose baseline is enough (or unlimited credits); tests shorter than the credits last, in random order",
        "기준 성능이 충분한 머신 (또는 무제한 크레딧); 크레딧보다 짧은 시험을 무작위 순서로",
    ),
    ("the same load is served at the end as at the beginning", "처음과 끝에서 같은 부하를 처리함"),
    ("TLS handshakes are what the edge computes", "엣지가 계산하는 것은 TLS 핸드셰이크"),
    ("edge: TLS handshakes", "엣지: TLS 핸드셰이크"),
    ("{} for {} requests, {} of them resumed", "요청 {2}건에 {1}번, 그중 {3}가 재개됨"),
    (
        "keepalive_timeout 65s for clients, ssl_session_cache shared:SSL:10m, an ECDSA certificate",
        "클라이언트에 keepalive_timeout 65s, ssl_session_cache shared:SSL:10m, ECDSA 인증서",
    ),
    ("the edge's CPU for a request falls by half or more", "요청당 엣지 CPU가 절반 이하로 줄어듦"),
    ("neighbours on the same CPUs make the edge or an application wait", "같은 CPU의 이웃 때문에 엣지나 앱이 기다림"),
    ("{}: neighbours on its CPUs", "{1}: CPU를 함께 쓰는 이웃"),
    ("CPUs used by others that may run on the same ones: {}", "같은 CPU에서 다른 프로세스가 쓴 CPU: {1}"),
    (
        "a machine, or CPUs, of its own; else more weight (cpu.weight, CPUWeight=)",
        "따로 쓰는 머신이나 CPU; 아니면 더 큰 가중치 (cpu.weight, CPUWeight=)",
    ),
    ("it runs when it has work", "일이 있으면 바로 실행됨"),
    ("the edge's CPU is full", "엣지의 CPU가 가득 참"),
    ("edge: its CPUs", "엣지: CPU"),
    ("{} CPUs used of {}; {}", "CPU {2}개 중 {1}개 사용; {3}"),
    ("{} ms of CPU a request", "요청당 CPU {1} ms"),
    ("{} new from clients and {} to upstreams a request", "요청당 새 연결: 클라이언트에서 {1}, 업스트림으로 {2}"),
    ("upstream … { keepalive 64; }, with HTTP/1.1", "HTTP/1.1과 함께 upstream … { keepalive 64; }"),
    (
        "gzip_comp_level 1, or compressed once (gzip_static, a cache)",
        "gzip_comp_level 1, 또는 한 번만 압축 (gzip_static, 캐시)",
    ),
    ("more CPUs for the edge", "엣지에 더 많은 CPU"),
    ("answers a second grow as its CPU for a request falls", "요청당 CPU가 줄어드는 만큼 초당 응답이 늚"),
    ("the application's CPU is full", "앱의 CPU가 가득 참"),
    ("{}: its CPUs", "{1}: CPU"),
    ("{} CPUs used of {}, by {} threads", "스레드 {3}개가 CPU {2}개 중 {1}개 사용"),
    (
        "proxy_cache with proxy_cache_valid 200 1s;   (or another application server)",
        "proxy_cache와 proxy_cache_valid 200 1s;   (또는 앱 서버 추가)",
    ),
    ("what is cached does not ask it", "캐시된 것은 앱에 묻지 않음"),
    ("one thread of the application is full", "앱의 스레드 하나가 가득 참"),
    ("{}: one thread", "{1}: 스레드 하나"),
    ("{} CPUs used by the whole process of {}", "프로세스 전체가 CPU {2}개 중 {1}개 사용"),
    ("its event loop was late by {} ms on the average, p99 {} ms", "이벤트 루프가 평균 {1} ms, p99 {2} ms 늦음"),
    ("it was late by {} ms on the average, p99 {} ms", "평균 {1} ms, p99 {2} ms 늦음"),
    (
        "as many processes as CPUs (cluster, pm2 -i max; sticky for Socket.IO)",
        "CPU 수만큼의 프로세스 (cluster, pm2 -i max; Socket.IO라면 sticky)",
    ),
    ("more processes or threads of it", "프로세스나 스레드를 더 많이"),
    ("up to as many times as there are idle CPUs", "노는 CPU 수만큼까지 배로"),
    ("{}: its event loop stands still", "{1}: 이벤트 루프가 멈춰 있음"),
    (
        "its CPUs were {} used: something in it waits without letting others go on",
        "CPU 사용률 {1}: 안에서 무언가가 다른 일을 막은 채 기다림",
    ),
    (
        "the calls ending in Sync (fs, child_process, crypto) by those that do not",
        "Sync로 끝나는 호출(fs, child_process, crypto)을 그렇지 않은 것으로",
    ),
    (
        "the loop's delay falls to a millisecond or two, and with it the wait of everybody",
        "루프의 지연이 1~2 ms로 줄고, 모두의 대기도 줄어듦",
    ),
    // Inside
    (
        "the application's pool of connections is full, and what it connects to is not",
        "앱의 연결 풀이 가득 찼고, 연결 상대는 여유가 있음",
    ),
    ("application {}: its pool of connections to the database", "앱 {1}: 데이터베이스 연결 풀"),
    ("{} of {} connections in use, {} threads waited for one", "연결 {2}개 중 {1}개 사용 중, 스레드 {3}개가 기다림"),
    ("{} threads ran in it", "안에서 스레드 {1}개가 실행됨"),
    (
        "spring.datasource.hikari.maximum-pool-size={}   (and the database's max_connections to match)",
        "spring.datasource.hikari.maximum-pool-size={1}   (데이터베이스의 max_connections도 맞추기)",
    ),
    (
        "answers a second grow with the pool, until the database is at its end",
        "데이터베이스가 한계에 닿을 때까지 초당 응답이 풀과 함께 늚",
    ),
    ("application {}: its pool ({})", "앱 {1}: 풀 ({2})"),
    ("{} places, and {} requests in the application on the average", "자리 {1}개, 앱 안의 요청은 평균 {2}건"),
    (
        "answers a second grow with the pool, until what is behind it is at its end",
        "뒤에 있는 것이 한계에 닿을 때까지 초당 응답이 풀과 함께 늚",
    ),
    (
        "the database is at its end: its threads wait for locks or for a CPU",
        "데이터베이스가 한계임: 스레드가 잠금이나 CPU를 기다림",
    ),
    ("database {}", "데이터베이스 {1}"),
    ("{} ran on the average, {} at most; its CPUs were {} used", "평균 {1}개, 최대 {2}개 실행; CPU 사용률 {3}"),
    ("{} waits for rows, {} threads in them on the average", "행 잠금 대기 {1}번, 그 안에 평균 스레드 {2}개"),
    (
        "{}/s, {} for a request; {} slow, {} connections refused",
        "초당 {1}건, 요청당 {2}건; 느린 것 {3}건, 거절된 연결 {4}개",
    ),
    (
        "shorter transactions, or fewer that change the same row; then an index that locks fewer",
        "더 짧은 트랜잭션, 또는 같은 행을 덜 바꾸기; 그다음 덜 잠그는 인덱스",
    ),
    (
        "an index for its slowest query (slow_query_log), a cache before it; else more CPUs",
        "가장 느린 쿼리에 인덱스 (slow_query_log), 앞에 캐시; 아니면 더 많은 CPU",
    ),
    (
        "its queries are faster under load; a larger pool in the application is not what helps",
        "부하 중 쿼리가 빨라짐; 앱의 풀을 늘리는 것은 도움이 되지 않음",
    ),
    (
        "Redis is full, or asked so often for each request that the way there and back is what is waited for",
        "Redis가 가득 찼거나, 요청마다 너무 자주 물어 오가는 시간을 기다림",
    ),
    ("Redis {}: its one thread", "Redis {1}: 하나뿐인 스레드"),
    ("Redis {}: asked one by one", "Redis {1}: 하나씩 물음"),
    ("{}/s, {} for a request", "초당 {1}건, 요청당 {2}건"),
    ("{} used; its commands took {} of the time", "{1} 사용; 명령이 시간의 {2}를 차지함"),
    (
        "several commands in one (MGET, a pipeline, a script), or fewer: what is read for each request kept in the application",
        "여러 명령을 하나로 (MGET, 파이프라인, 스크립트), 또는 더 적게: 요청마다 읽는 것을 앱에 두기",
    ),
    (
        "the wait for the application falls by the calls times the way there and back",
        "호출 수 × 왕복 시간만큼 앱을 기다리는 시간이 줄어듦",
    ),
    ("several servers wait for something that they share", "여러 서버가 함께 쓰는 무언가를 기다림"),
    ("behind the {} servers of the upstream: something that they share", "업스트림의 서버 {1}대 뒤: 함께 쓰는 무언가"),
    ("of {} servers and what they ask {} at most; edge {}", "서버 {1}대와 그 뒤에서 최대 {2}; 엣지 {3}"),
    (
        "measure what they share (database, Redis, a lock, a network) before a server more: --probe, --pool, --prove",
        "서버를 더하기 전에 함께 쓰는 것(데이터베이스, Redis, 잠금, 네트워크)을 재기: --probe, --pool, --prove",
    ),
    (
        "with --prove: a server less costs nothing where they share what limits",
        "--prove로 확인: 함께 쓰는 것이 한계라면 서버를 하나 줄여도 그대로임",
    ),
    // Upstream
    ("keepalive to the upstream is set and does nothing", "업스트림 keepalive가 있지만 아무 일도 하지 않음"),
    ("edge → upstream: connections are not kept", "엣지 → 업스트림: 연결이 유지되지 않음"),
    ("{} opened for {} requests to the upstream: {} each", "업스트림 요청 {2}건에 연결 {1}개를 엶: 하나당 {3}"),
    (
        "keepalive {} is there; HTTP/1.0 and Connection: close, nginx's default, end each connection",
        "keepalive {1}이(가) 있지만 nginx 기본값인 HTTP/1.0과 Connection: close가 연결마다 끝냄",
    ),
    (
        "proxy_http_version 1.1; proxy_set_header Connection \"\";",
        "proxy_http_version 1.1; proxy_set_header Connection \"\"; 넣기",
    ),
    (
        "new connections a request → below 0.05; the edge's CPU in the kernel falls by a fifth or more",
        "요청당 새 연결 → 0.05 미만; 커널에서 쓰는 엣지 CPU가 5분의 1 이상 줄어듦",
    ),
    (
        "the pool of kept connections is smaller than what is in use at once",
        "유지하는 연결의 풀이 동시에 쓰는 수보다 작음",
    ),
    ("edge → upstream: the pool of kept connections", "엣지 → 업스트림: 유지하는 연결의 풀"),
    ("keepalive {} a worker; about {} requests in flight", "워커당 keepalive {1}; 진행 중인 요청 약 {2}건"),
    ("keepalive {};   (what is in flight at once, and a fifth)", "keepalive {1};   (동시에 진행 중인 수의 1.2배)"),
    ("new connections a request → below 0.05", "요청당 새 연결 → 0.05 미만"),
    ("the upstream closes kept connections before the edge does", "업스트림이 유지된 연결을 엣지보다 먼저 닫음"),
    ("upstream: it closes connections that were kept", "업스트림: 유지된 연결을 닫음"),
    ("{} with 502; {} connections ended before their answer began", "{1} 502; 응답이 시작되기 전에 끝난 연결 {2}개"),
    ("{} connections opened for {} requests", "요청 {2}건에 연결 {1}개를 엶"),
    (
        "the upstream's keep-alive timeout above the edge's: keepalive_timeout 4s; in upstream … (Node.js closes after 5 s)",
        "업스트림의 keep-alive 시간을 엣지보다 길게: upstream에 keepalive_timeout 4s; (Node.js는 5초 뒤에 닫음)",
    ),
    (
        "no 502 of this kind; else the application itself hangs up, and its log knows why",
        "이런 502가 사라짐; 아니라면 앱이 스스로 끊는 것이고 이유는 앱의 로그에 있음",
    ),
    ("one server of the upstream fails or is slow, and the others do not", "업스트림의 서버 하나만 실패하거나 느림"),
    ("upstream: its server {}", "업스트림: 서버 {1}"),
    ("{} of its tries failed; {} of all the others'", "이 서버로의 시도 {1} 실패; 나머지 전부는 {2}건"),
    ("{} of their requests failed; {} times no server was left", "요청 {1} 실패; 남은 서버가 없던 일 {2}번"),
    (
        "mend or take out {}; until then max_fails=1 fail_timeout=30s, and proxy_next_upstream_tries 2",
        "{1}을(를) 고치거나 빼기; 그때까지 max_fails=1 fail_timeout=30s와 proxy_next_upstream_tries 2",
    ),
    ("no request is sent where it fails", "실패하는 곳으로 보내는 요청이 없음"),
    ("{} ms to its answer; the slowest of the others {} ms", "응답까지 {1} ms; 나머지 중 가장 느린 것은 {2} ms"),
    (
        "least_conn; in the upstream, until that server is as fast as the others",
        "그 서버가 다른 서버만큼 빨라질 때까지 upstream에 least_conn;",
    ),
    ("the tail is the others'", "꼬리 지연이 다른 서버와 같아짐"),
    ("a request that fails is sent again, and again", "실패한 요청을 다시, 또다시 보냄"),
    ("upstream: requests that are tried again", "업스트림: 다시 시도되는 요청"),
    ("{} tries for {} requests: {} each", "요청 {2}건에 시도 {1}번: 하나당 {3}"),
    ("{} of the tries failed, and {} requests", "시도 {1} 실패, 요청 {2} 실패"),
    (
        "proxy_next_upstream_tries 2; and no http_503 in proxy_next_upstream",
        "proxy_next_upstream_tries 2; 그리고 proxy_next_upstream에서 http_503 빼기",
    ),
    ("at most as many tries as requests and a tenth, when it fails", "실패할 때에도 시도는 요청 수의 1.1배 이하"),
    ("answers or sessions end at a configured time", "응답이나 세션이 설정된 시간에 끝남"),
    ("proxy_connect_timeout {} ms", "proxy_connect_timeout {1} ms의 시간 제한"),
    ("proxy_read_timeout {} ms", "proxy_read_timeout {1} ms의 시간 제한"),
    ("proxy_send_timeout {} ms", "proxy_send_timeout {1} ms의 시간 제한"),
    (
        "{} of answers took {} ms, within a few hundredths; {} took a little less",
        "응답의 {1}가 {2} ms 걸림(몇 % 이내); 조금 덜 걸린 것은 {3}",
    ),
    ("{} upgraded connections ended by it", "그 때문에 끝난 업그레이드 연결 {1}개"),
    ("messages or pings more often than {} ms; or a longer {}", "{1} ms보다 자주 메시지나 핑; 또는 더 긴 {2}"),
    ("the spike moves with the timeout", "봉우리가 시간 제한을 따라 움직임"),
    (
        "the edge gave up on an upstream: its time to connect or to answer ran out",
        "엣지가 업스트림을 포기함: 연결이나 응답 시간이 다 됨",
    ),
    ("upstream: {} {} ms", "업스트림: {1} {2} ms"),
    ("{} with 504: it did not take the connection", "{1} 504: 연결을 받지 않음"),
    ("{} with 504: it took the request and did not answer", "{1} 504: 요청을 받고 응답하지 않음"),
    (
        "{} timed out while connecting, {} while waiting for an answer",
        "연결 중 시간 초과 {1}건, 응답을 기다리다 시간 초과 {2}건",
    ),
    ("{} of answers took {} ms", "응답의 {1}가 {2} ms 걸림"),
    (
        "find out why nobody answers at that address (firewall, host down, its queue full)",
        "그 주소가 왜 응답하지 않는지 찾기 (방화벽, 꺼진 호스트, 가득 찬 대기열)",
    ),
    (
        "find what the application waits for; {} only decides when one gives up",
        "앱이 무엇을 기다리는지 찾기; {1}은(는) 언제 포기할지만 정함",
    ),
    ("504 → 0", "504가 0으로"),
    ("half of the connections go to an address where nobody listens", "연결의 절반이 아무도 듣지 않는 주소로 감"),
    ("upstream: localhost is 127.0.0.1 and ::1", "업스트림: localhost는 127.0.0.1이자 ::1"),
    (
        "{} of the tries at [::1] failed: the application listens on 127.0.0.1 alone",
        "[::1]로의 시도 {1} 실패: 앱은 127.0.0.1에서만 들음",
    ),
    ("{} of their requests failed", "요청 {1} 실패"),
    ("server 127.0.0.1:…; instead of localhost", "localhost 대신 server 127.0.0.1:…;"),
    ("no try is refused", "거절되는 시도가 없음"),
    // Cache
    ("when an object expires, many fetch it at once", "객체가 만료되면 여럿이 한꺼번에 가져옴"),
    ("cache: an object that expires is fetched by everybody at once", "캐시: 만료된 객체를 모두가 한꺼번에 가져옴"),
    (
        "{} answers came from the origin in {} s, where about {} were needed",
        "{2}초 동안 오리진에서 온 응답 {1}건, 필요한 것은 약 {3}건",
    ),
    ("{} hits, {} misses, {} expired", "히트 {1}, 미스 {2}, 만료 {3}"),
    (
        "p50 {} ms, p99 {} ms: the origin's time is everybody's who comes then",
        "p50 {1} ms, p99 {2} ms: 그때 온 모두가 오리진의 시간을 기다림",
    ),
    (
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (the lock is for what is not there yet)",
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (잠금은 아직 없는 것에만 쓰임)",
    ),
    (
        "proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on;",
        "proxy_cache_lock on; proxy_cache_use_stale updating; proxy_cache_background_update on; 넣기",
    ),
    ("one fetch each time it expires, and nobody waits for it", "만료될 때마다 한 번만 가져오고 아무도 기다리지 않음"),
    (
        "those who wait for another's fetch are looked at every 500 ms",
        "다른 요청이 가져오기를 기다리는 쪽을 500 ms마다 봄",
    ),
    ("cache: waiting for the lock, in steps of 500 ms", "캐시: 500 ms 단위로 잠금을 기다림"),
    ("{} answers without a fetch took about a multiple of 500 ms", "가져오지 않은 응답 {1}건이 500 ms의 배수쯤 걸림"),
    ("{} of answers took 480 to 560 ms; p50 {} ms", "응답의 {1}가 480~560 ms 걸림; p50 {2} ms"),
    (
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (weir wakes who waits)",
        "proxy_cache_use_stale updating; proxy_cache_background_update on;   (weir는 기다리는 쪽을 깨움)",
    ),
    ("nobody waits longer than the origin takes", "오리진이 걸리는 시간보다 오래 기다리지 않음"),
    ("the cache is on and keeps nothing", "캐시가 켜져 있지만 아무것도 저장하지 않음"),
    ("cache: it keeps nothing", "캐시: 아무것도 저장하지 않음"),
    ("{} answers were hits; {} misses, {} bypassed", "응답 {1} 히트; 미스 {2}, 우회 {3}"),
    ("{} times: {}", "{1}번: {2}"),
    (
        "nginx does not say why: Set-Cookie, Cache-Control, Vary: * or a missing proxy_cache_valid",
        "nginx는 이유를 말하지 않음: Set-Cookie, Cache-Control, Vary: *, 또는 없는 proxy_cache_valid",
    ),
    (
        "the origin's header that forbids it (or, if it is the same for everybody, proxy_ignore_headers for it alone)",
        "저장을 막는 오리진의 헤더 고치기 (모두에게 같은 것이라면 그 헤더에만 proxy_ignore_headers)",
    ),
    (
        "the share of hits rises; the origin is asked once a lifetime",
        "히트 비율이 오름; 오리진에는 수명마다 한 번만 물음",
    ),
    ("each time an object expires, somebody waits for the origin", "객체가 만료될 때마다 누군가 오리진을 기다림"),
    ("cache: refreshed while somebody waits", "캐시: 누군가 기다리는 동안 새로 고침"),
    (
        "{} requests waited for the origin, one each time the object expired",
        "객체가 만료될 때마다 하나씩, 요청 {1}건이 오리진을 기다림",
    ),
    ("p50 {} ms, max {} ms: the origin's time", "p50 {1} ms, 최대 {2} ms: 오리진의 시간"),
    ("proxy_cache_background_update on;", "proxy_cache_background_update on; 넣기"),
    ("the longest answer takes as long as a hit", "가장 긴 응답도 히트만큼만 걸림"),
    // Network, memory, disks
    ("a link carries no more", "링크가 더 나르지 못함"),
    ("the link of {}", "{1}의 링크"),
    ("{} of {} Mbit/s, {} of it", "{2} Mbit/s 중 {1}, 그 {3}"),
    ("{} kB each, headers among them", "하나당 {1} kB, 헤더 포함"),
    ("smaller answers, or a faster link", "더 작은 응답이나 더 빠른 링크"),
    ("gzip on; with gzip_types of what is text", "gzip on; 텍스트 형식을 gzip_types에"),
    (
        "answers a second grow as their bytes shrink: 3 to 5 times for HTML",
        "바이트가 줄어드는 만큼 초당 응답이 늚: HTML이면 3~5배",
    ),
    ("memory is short", "메모리가 부족함"),
    ("{}: its memory", "{1}: 메모리"),
    ("this machine", "이 머신"),
    (
        "{} times the kernel killed a process of its group, for want of memory (oom_kill)",
        "커널이 메모리 부족으로 그룹의 프로세스를 {1}번 강제 종료함 (oom_kill)",
    ),
    (
        "{} times its group's memory was full; {} MB swapped out",
        "그룹의 메모리가 가득 찬 일 {1}번; 스왑으로 나간 것 {2} MB",
    ),
    ("some task waited for memory {} of the time", "시간의 {1} 동안 어떤 태스크가 메모리를 기다림"),
    (
        "a larger limit, or a smaller heap or fewer processes within it",
        "더 큰 한도, 또는 그 안에서 더 작은 힙이나 더 적은 프로세스",
    ),
    ("no pauses of that kind; p99 falls", "그런 멈춤이 사라짐; p99가 내려감"),
    ("application {}: its heap", "앱 {1}: 힙"),
    ("{} of the time went into them", "시간의 {1}가 여기에 쓰임"),
    ("{} MB used at most, of {} MB that it may have", "가질 수 있는 {2} MB 중 최대 {1} MB 사용"),
    ("a larger heap (-Xmx), or less that is allocated for each request", "더 큰 힙 (-Xmx), 또는 요청마다 덜 할당하기"),
    ("collections below 5 % of the time; p99 falls", "가비지 수집이 시간의 5 % 미만; p99가 내려감"),
    ("a disk is waited for", "디스크를 기다림"),
    ("{}: its disk", "{1}: 디스크"),
    (
        "at {} of the looks one of its threads waited for a disk (state D)",
        "살펴본 때의 {1}에서 스레드 하나가 디스크를 기다림 (상태 D)",
    ),
    (
        "some task of this machine waited for a disk {} of the time",
        "이 머신의 어떤 태스크가 시간의 {1} 동안 디스크를 기다림",
    ),
    ("{} bodies were written to temporary files", "본문 {1}개를 임시 파일에 씀"),
    ("proxy_buffers 16 32k; so that bodies stay in memory", "본문이 메모리에 남도록 proxy_buffers 16 32k;"),
    (
        "access_log … buffer=64k flush=1s; proxy_buffers 16 32k;",
        "access_log … buffer=64k flush=1s; proxy_buffers 16 32k; 넣기",
    ),
    ("nothing waits for a disk", "디스크를 기다리는 것이 없음"),
    ("WebSocket upgrades are not forwarded", "WebSocket 업그레이드가 전달되지 않음"),
    ("edge: WebSocket upgrades are not forwarded", "엣지: WebSocket 업그레이드가 전달되지 않음"),
    (
        "{} upgrades were refused, of {} virtual users; none was answered with 101",
        "가상 사용자 {2}명 중 업그레이드 {1}건이 거절됨; 101로 응답한 것은 없음",
    ),
    (
        "no proxy_set_header Upgrade, and HTTP/1.1 only where proxy_http_version says so",
        "proxy_set_header Upgrade가 없고, HTTP/1.1은 proxy_http_version이 있는 곳에서만",
    ),
    (
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";",
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\"; 넣기",
    ),
    ("every upgrade is answered with 101", "모든 업그레이드가 101로 응답됨"),
    (
        "requests of one Socket.IO session reach processes that do not know it",
        "Socket.IO 세션의 요청이 그 세션을 모르는 프로세스에 닿음",
    ),
    ("application: Socket.IO sessions without stickiness", "앱: 고정되지 않은 Socket.IO 세션"),
    (
        "{} of the virtual users: a request came where its session was not known",
        "가상 사용자 {1}: 세션을 모르는 곳에 요청이 닿음",
    ),
    ("{} answers with 400", "400 응답 {1}건"),
    (
        "hash $remote_addr consistent; (or ip_hash; or a cookie) in the upstream; or transports: [\"websocket\"]",
        "upstream에 hash $remote_addr consistent; (또는 ip_hash나 쿠키); 또는 transports: [\"websocket\"]",
    ),
    ("no session is unknown", "모르는 세션이 없음"),
    // B38
    (
        "a closed loop sent nothing while all stood still: its percentiles leave out who would have waited",
        "닫힌 루프는 모두 멈춘 동안 아무것도 보내지 않음: 기다렸을 사람이 백분위수에서 빠짐",
    ),
    ("load: a closed loop does not see what stands still", "부하: 닫힌 루프는 멈춤을 보지 못함"),
    ("{} of the block, {} ms at most", "블록의 {1}, 최대 {2} ms"),
    (
        "p99 {} ms as measured; about {} ms for who comes at an even pace",
        "측정된 p99 {1} ms; 고른 간격으로 오는 사람에게는 약 {2} ms",
    ),
    ("{} connections that wait for their answers before they ask again", "응답을 기다렸다가 다시 묻는 연결 {1}개"),
    (
        "--rate {}   (an open load: its latencies count from when a request was due)",
        "--rate {1}   (열린 부하: 지연을 보낼 예정이던 때부터 셈)",
    ),
    ("the pause is in p99, where users meet it", "멈춤이 사용자가 겪는 대로 p99에 들어감"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::rule::Segment;
    use crate::why::rules;
    use crate::why::say::WORDS;
    use crate::why::signals::Signals;

    fn is_korean(text: &str) -> bool {
        text.chars().any(|c| ('가'..='힣').contains(&c))
    }

    #[test]
    fn every_rule_speaks_korean() {
        let mut lacking = Vec::new();
        for rule in rules::all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let found = (rule.check)(&signals).unwrap_or_default();
            let mut texts = vec![rule.says.to_owned(), found.subject, found.knob, found.expect];
            for (name, text) in found.evidence {
                texts.push(text);
                if name != "cpu" && !is_korean(label(name)) {
                    lacking.push(format!("{}: label {name}", rule.id));
                }
            }
            let is_lacking = |text: &String| !say(text).is_some_and(|ko| is_korean(&ko) && !ko.contains("{1}"));
            lacking.extend(texts.into_iter().filter(is_lacking).map(|text| format!("{}: {text}", rule.id)));
        }
        for segment in Segment::ALL {
            lacking.extend(say(segment.name()).is_none().then(|| segment.name().to_owned()));
        }
        assert!(lacking.is_empty(), "no Korean for:\n{}", lacking.join("\n"));
    }

    #[test]
    fn each_phrase_is_there_once_and_fills_its_holes() {
        for (number, (en, ko)) in PHRASES.iter().enumerate() {
            assert!(PHRASES.iter().skip(number + 1).all(|(other, _)| other != en), "twice: {en}");
            let count = en.matches("{}").count();
            assert!((1..=count).all(|hole| ko.contains(&format!("{{{hole}}}"))), "{ko}");
            assert!(!ko.contains(&format!("{{{}}}", count + 1)), "{ko}");
        }
    }

    #[test]
    fn the_words_stay_and_what_is_unknown_does() {
        for (word, _) in WORDS {
            let sentence = if *word == "no verdict" { format!("{word}: x") } else { format!("{word}  x") };
            assert!(say(&sentence).is_some_and(|ko| ko.starts_with(word) && is_korean(&ko)), "{word}");
        }
        let text = "PROVED  edge → 10.0.0.2:3000: local ports   (rule B01), elasticity 0.97 [0.91, 1.03]";
        let ko = "PROVED (증명됨)  엣지 → 10.0.0.2:3000: 로컬 포트   (규칙 B01), 탄력도 0.97 [0.91, 1.03]";
        assert_eq!(say(text).as_deref(), Some(ko));
        assert_eq!(or_as_it_is("mysql: no client"), "mysql: no client");
        assert_eq!((padded("풀", 4), padded("pool", 5)), ("풀  ".to_owned(), "pool ".to_owned()));
    }
}
