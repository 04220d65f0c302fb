//! The Korean glossary: one word for each thing, in all texts of weir.
//!
//! `docs/korean.md` shows this table; a test compares them. The tests of each crate pass their Korean texts to
//! [`forbidden_in`].

use std::fmt::Write;

/// One row of the glossary.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// English.
    pub en: &'static str,
    /// The Korean word.
    pub ko: &'static str,
    /// Words, or beginnings of words, that no text may use instead.
    pub not: &'static [&'static str],
    /// A sentence that uses the word.
    pub example: &'static str,
}

const fn term(en: &'static str, ko: &'static str, not: &'static [&'static str], example: &'static str) -> Term {
    Term { en, ko, not, example }
}

/// All rows: the parts of a stack first, then measurements, verdicts, and words of the output.
pub const GLOSSARY: &[Term] = &[
    term("edge", "엣지", &["에지가", "에지는", "에지의", "에지에", "에지를"], "엣지가 요청을 받습니다."),
    term("origin", "오리진", &["원본 서버", "원본"], "요청의 92 %는 오리진에 가지 않고 응답했습니다."),
    term(
        "application",
        "앱",
        &["애플리케이션", "어플리케이션", "응용 프로그램"],
        "앱이 127.0.0.1:3000에서 리슨합니다.",
    ),
    term("upstream", "업스트림", &["상류", "업스트림서버"], "이 업스트림 그룹에는 서버가 두 대 있습니다."),
    term("peer", "피어", &["동료"], "피어 하나가 제외되었습니다."),
    term(
        "worker",
        "워커",
        &["작업자", "worker가", "worker는", "worker마다", "worker의", "worker를"],
        "워커마다 이벤트 루프가 하나 있습니다.",
    ),
    term("machine", "머신", &["장비"], "이 머신에는 CPU가 2개 있습니다."),
    term("keeper", "키퍼", &["감시자", "키이퍼"], "키퍼는 서버가 죽으면 다시 시작합니다."),
    term("load generator", "부하 생성기", &["부하 발생기"], "부하 생성기가 한도에 이르렀습니다."),
    term("virtual user", "가상 사용자", &["가상 유저"], "가상 사용자 2,000명이 도착했습니다."),
    term("phase (of a load)", "단계", &["페이즈"], "단계 2개가 차례로 실행됩니다."),
    term("scenario", "시나리오", &["씨나리오"], "시나리오마다 스텝이 있습니다."),
    term("step (of a scenario)", "스텝", &["스탭"], "알 수 없는 스텝은 경고합니다."),
    term("agent", "에이전트", &["에이젼트"], "에이전트 두 대가 부하를 나누어 보냅니다."),
    term("share (of a run)", "몫", &["지분"], "에이전트마다 실행의 몫을 하나 맡습니다."),
    term("endpoint", "엔드포인트", &["종단점", "끝점"], "느린 엔드포인트가 위에 있습니다."),
    term("directive", "지시어", &["지시문", "지시자"], "이 지시어는 http 블록에 씁니다."),
    term("configuration", "설정", &["컨피그", "환경설정"], "설정을 다시 읽으려면 HUP 시그널을 보내세요."),
    term(
        "limit",
        "한도",
        &["한계가", "한계는", "한계를", "한계에", "한계라", "상한선"],
        "파일 디스크립터 한도에 이르렀습니다.",
    ),
    term("use of the limits", "한도별 사용률", &["수위"], "한도별 사용률을 한눈에 볼 수 있습니다."),
    term("quota", "쿼터", &["할당량", "quota"], "엣지가 CPU 쿼터 때문에 기다렸습니다."),
    term("throttled", "스로틀링", &["조절됨", "쓰로틀"], "쿼터에 걸려 스로틀링되었습니다."),
    term("pressure (PSI)", "PSI(자원 압박)", &["압력"], "PSI(자원 압박)는 최근 10초의 값입니다."),
    term("steal", "steal", &["뺏김"], "하이퍼바이저가 CPU의 12 %를 가져갔습니다 (steal)."),
    term("connection", "연결", &["커넥션"], "연결 64개로 부하를 보냅니다."),
    term("connection table", "연결 테이블", &["연결 표"], "연결 테이블이 가득 찼습니다."),
    term("half-open connection", "half-open 연결", &["반쯤 열린"], "half-open 연결이 256개 남아 있습니다."),
    term("to listen", "리슨", &["에서만 들음", "듣지 않"], "리슨하는 프로세스가 없는 주소입니다."),
    term("WebSocket", "WebSocket", &["웹소켓", "웹 소켓"], "WebSocket 연결이 60초 뒤에 닫힙니다."),
    term("TLS handshake", "TLS 핸드셰이크", &["악수"], "다시 온 클라이언트도 TLS 핸드셰이크를 처음부터 합니다."),
    term("accept queue", "accept 큐", &["수락 대기열"], "accept 큐가 넘쳤습니다."),
    term("queue", "대기열", &["대기줄", "대기 줄"], "대기열 초과로 3건이 거절되었습니다."),
    term("thread", "스레드", &["쓰레드"], "스레드마다 연결 32개를 맡습니다."),
    term("cache", "캐시", &["캐쉬"], "캐시가 응답했습니다."),
    term("to purge", "퍼지", &["퍼징", "정화"], "태그 news를 퍼지했습니다."),
    term("body", "본문", &["바디"], "본문 1 KB를 보냅니다."),
    term("latency", "지연 시간", &["레이턴시", "지연시간"], "지연 시간의 p95는 3.1 ms입니다."),
    term("timeout", "제한 시간", &["타임 아웃"], "응답의 제한 시간은 10초입니다."),
    term("metric", "지표", &["메트릭"], "비교할 지표는 p95입니다."),
    term("block", "블록", &["블럭"], "블록 하나는 20초입니다."),
    term("warm-up", "워밍업", &["웜업", "예열"], "워밍업 뒤에 측정을 시작합니다."),
    term("spike", "스파이크", &["봉우리"], "1초마다 CPU 스파이크가 있습니다."),
    term(
        "other processes on the same CPU",
        "같은 CPU의 다른 프로세스",
        &["이웃"],
        "같은 CPU의 다른 프로세스가 오리진을 늦춥니다.",
    ),
    term("suspect", "원인 후보", &["용의자"], "원인 후보가 하나 남았습니다."),
    term("verdict", "판정", &["평결"], "판정: 차이가 없습니다."),
    term("no verdict", "결론을 낼 수 없음", &["아무 말도 하지"], "요청이 12건뿐이어서 결론을 낼 수 없습니다."),
    term("trade-off", "트레이드오프", &["득과 실"], "p99는 줄었지만 처리량도 줄었습니다 (트레이드오프)."),
    term("confidence interval", "신뢰 구간", &["신뢰구간"], "95 % 신뢰 구간은 -3.1 % ~ -1.2 %입니다."),
    term("error, as a count of findings", "오류", &["잘못됨", "틀림 "], "오류 1건, 위험 3건, 참고 2건"),
    term("the counters add up", "합계 일치", &["장부", "맞아떨어"], "합계 검증: 합계 일치"),
    term("generation (of the configuration)", "설정 로드 N회차", &["1세대", "세대의"], "설정 로드 2회차입니다."),
    term("out of rotation (a peer)", "제외됨", &["내려감"], "10번 실패해 제외됨"),
    term(
        "without messages (a WebSocket)",
        "메시지가 없는",
        &["조용한"],
        "메시지가 없는 WebSocket은 60초 뒤에 닫힙니다.",
    ),
    term("open to everybody", "모든 접근이 허용됨", &["모두가 들어"], "deny가 없어 모든 접근이 허용됩니다."),
    term("header field", "헤더", &["머리말"], "응답에 헤더를 추가하세요."),
    term("status (of an answer)", "상태 코드", &["상태코드", "스테이터스"], "응답의 상태 코드는 502입니다."),
    term("regular expression", "정규식", &["정규 표현식", "정규표현식"], "정규식에 맞는 URI를 바꿉니다."),
    term("certificate authority", "인증 기관", &["인증기관", "인증국"], "인증 기관이 80번 포트로 연결합니다."),
    term("cipher suite", "암호 스위트", &["암호 묶음", "사이퍼"], "연결에 쓰인 암호 스위트입니다."),
    term("to resume (a TLS session)", "재개", &["세션 재사용"], "클라이언트가 세션을 재개했습니다."),
    term("idle connection", "유휴 연결", &["쉬는 연결", "노는 연결"], "워커마다 유휴 연결을 32개까지 유지합니다."),
    term("subrequest", "서브요청", &["서브리퀘스트", "하위 요청"], "mirror는 서브요청을 보냅니다."),
    term("trailer", "트레일러", &["꼬리말"], "본문 뒤에 트레일러가 옵니다."),
    term("span (of a trace)", "스팬", &["스판"], "요청마다 스팬을 하나 기록합니다."),
    term(
        "weir's own (directive)",
        "weir만의 지시어",
        &["weir 고유", "weir 전용"],
        "limit_memory는 weir만의 지시어입니다.",
    ),
];

/// The first word of a text that the glossary forbids.
pub fn forbidden_in(korean: &str) -> Option<&'static str> {
    GLOSSARY.iter().flat_map(|term| term.not).find(|word| korean.contains(**word)).copied()
}

/// The glossary as a table for a page.
pub fn table() -> String {
    let mut table = "| English | 한국어 | 쓰지 않는 말 | 예문 |\n|---|---|---|---|\n".to_owned();
    for Term { en, ko, not, example } in GLOSSARY {
        let not: Vec<&str> = not.iter().map(|word| word.trim()).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {en} | {ko} | {} | {example} |", not.join(", "));
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_example_uses_its_word_and_no_forbidden_one() {
        for term in GLOSSARY {
            assert_eq!(forbidden_in(term.example), None, "{}", term.example);
            assert_eq!(forbidden_in(term.ko), None, "{}", term.ko);
        }
        assert_eq!(forbidden_in("worker가 쓰는 파일"), Some("worker가"));
    }

    #[test]
    fn the_page_has_this_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/korean.md");
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains(&table()), "docs/korean.md: the table is not this one:\n{}", table());
    }
}
