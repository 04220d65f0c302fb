//! The texts about the parts of a request's way inside the edge.
//!
//! long: a table, one row a text.

use weir_words::texts;

texts! {
    LABEL_CHECK_TIME: "the check", "확인 요청";
    READING_REQUEST_BODY: "reading the request's body", "요청 본문 읽기";
    CHECK_OF_AUTH_REQUEST: "the check of auth_request", "auth_request 확인";
    WAITING_IN_CACHE: "waiting in the cache", "캐시에서 대기";
    EDGE_NOT_DIVIDED: "in the edge before the answer's head, not divided", "응답 헤더를 보내기 전 엣지 내부 (구분되지 않음)";
    TRIES_THAT_FAILED: "tries at upstreams that failed", "실패한 업스트림 시도";
    HELD_BY_RATE: "bodies that a rate holds back", "속도 제한에 걸린 본문 전송";
    WAITING_FOR_MIRROR: "waiting for the mirror's upstream", "mirror 업스트림 대기";
    STATEMENT_AT: "{0} at {1}", "{1}의 {0}";
    FIELD_LIMIT_RATE: "the field X-Accel-Limit-Rate of the upstream's answers", "업스트림 응답의 X-Accel-Limit-Rate 필드";
    HELD_BACK_ANSWERS: "{0} held back {1} answers", "{0} 때문에 응답 {1}이 느려졌습니다";
    BYTES_SECOND_MEAN: "{0} bytes a second, the mean of these answers", "이 응답들의 평균 초당 {0}바이트";
    CHECK_OF_AUTH_REQUEST_SLOW: "requests wait longer for the check of auth_request than for the application", "요청이 앱보다 auth_request 확인을 더 오래 기다립니다";
    REQUESTS_WAIT_FOR_CHECK: "{0} at {1}: requests wait for the check", "{1}의 {0}: 요청이 확인을 기다립니다";
    CACHE_THE_CHECK: "keep the answers of the check for some seconds (proxy_cache in its location, with the credential in proxy_cache_key), or make the check faster", "확인 응답을 몇 초 동안 캐시하거나(확인 위치에 proxy_cache, 자격 증명을 넣은 proxy_cache_key) 확인을 더 빠르게 하세요";
    CHECK_IS_ASKED_LESS: "requests with a credential that was checked a moment ago do not wait for the check", "방금 확인한 자격 증명의 요청은 확인을 기다리지 않습니다";
    MIRROR_HOLDS_CONNECTIONS: "the next request on a connection waits until the upstream of mirror has answered", "연결의 다음 요청이 mirror 업스트림의 응답을 기다립니다";
    CONNECTIONS_WAIT_FOR_MIRROR: "{0} at {1}: connections wait for the mirror before their next request", "{1}의 {0}: 연결이 다음 요청 전에 mirror를 기다립니다";
    MIRRORS_UPSTREAM_TAKES: "the upstream of the mirror answers {0} ms after the answer to the client: {1} of a request's time", "mirror 업스트림은 클라이언트 응답보다 {0} ms 늦게 응답합니다: 요청 시간의 {1}";
    SHORTER_TIME_FOR_MIRROR: "mirror to a server that answers at once, or set a short proxy_read_timeout in the location of the mirror", "바로 응답하는 서버로 mirror하거나 mirror 위치에 짧은 proxy_read_timeout을 설정하세요";
    NEXT_REQUEST_IS_READ: "the edge reads the next request of a connection as soon as it has sent the answer", "엣지가 응답을 보내자마자 연결의 다음 요청을 읽습니다";
}
