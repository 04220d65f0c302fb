//! The sentences about a script from logs and recordings, in English and Korean.

use weir_words::{Language, Said, Text};

/// The sentence with its holes filled.
pub(super) fn fill(sentence: Text, language: Language, values: &[&str]) -> String {
    let values: Vec<Said> = values.iter().map(|value| Said::from(*value)).collect();
    sentence.with(&values).say(language).to_owned()
}

weir_words::texts! {
    LOAD_FROM_NO_FORMAT:
        "{0}: no line has the form combined, main, common, vhost_combined or JSON: name the log_format with --conf FILE --format NAME, or write it with --format '$remote_addr …'",
        "{0}: combined, main, common, vhost_combined, JSON 형식인 줄이 없습니다. --conf FILE --format NAME으로 log_format의 이름을 지정하거나 --format '$remote_addr …'로 직접 쓰세요";
    LOAD_FROM_NO_REQUEST:
        "there is no request that can be sent again",
        "다시 보낼 수 있는 요청이 없습니다";
    LOAD_FROM_NO_HOST:
        "there is no request for the host {0}",
        "호스트 {0}의 요청이 없습니다";
    LOAD_FROM_SOURCE:
        "{0} requests in {1} sessions, from {2} to {3}, become {4} scenarios.",
        "요청 {0}건, 세션 {1}개({2}부터 {3}까지)로 시나리오 {4}개를 만들었습니다.";
    LOAD_FROM_FORMAT:
        "{0} has the format {1}.",
        "{0}의 형식은 {1}입니다.";
    LOAD_FROM_RECORDED:
        "{0} is a recording with all {1} requests of the recorded clients.",
        "{0}은(는) 기록입니다. 기록한 클라이언트의 요청 {1}건이 모두 있습니다.";
    LOAD_FROM_LOST:
        "{0} is a recording with {1} of {2} requests. Lost: {3} because the queue was full, {4} because the file had its largest size, {5} because the file could not be written, {6} because they were too large.",
        "{0}은(는) 기록입니다. 요청 {2}건 가운데 {1}건이 있습니다. 빠진 것: 대기열이 가득 차서 {3}건, 파일이 최대 크기여서 {4}건, 파일에 쓰지 못해서 {5}건, 너무 커서 {6}건.";
    LOAD_FROM_NO_END:
        "{0}: the recorder did not end in order. The requests after its last block are missing, and nobody has counted them.",
        "{0}: 기록이 정상적으로 끝나지 않았습니다. 마지막 블록 뒤의 요청은 없고 그 수도 알 수 없습니다.";
    LOAD_FROM_SHARE:
        "The recording has {0} % of the clients, and the script has their load. --all-clients makes the load of all clients.",
        "기록에는 클라이언트의 {0} %가 있고, 스크립트의 부하는 그만큼입니다. --all-clients를 쓰면 모든 클라이언트만큼의 부하를 만듭니다.";
    LOAD_FROM_ALL_CLIENTS:
        "The recording has {0} % of the clients. The script has {1} times as many arrivals, as all clients had.",
        "기록에는 클라이언트의 {0} %가 있습니다. 스크립트의 도착은 모든 클라이언트에 맞춰 {1}배입니다.";
    LOAD_FROM_BURSTS:
        "In {0} stretches of time the arrivals come in bursts: the phases are short there.",
        "도착이 몰리는 구간이 {0}개 있어 그곳의 phase를 짧게 나눴습니다.";
    LOAD_FROM_VERSIONS:
        "{0} % of the requests use HTTP/2 and {1} % use HTTP/3, as the clients did.",
        "클라이언트와 같이 요청의 {0} %는 HTTP/2, {1} %는 HTTP/3를 씁니다.";
    LOAD_FROM_ONLY_HTTP1:
        "{0} % of the requests came over HTTP/2 and {1} % over HTTP/3. The target does not begin with https://, so the script uses HTTP/1.1 for all of them. With -t https://… it uses the versions of the clients.",
        "요청의 {0} %는 HTTP/2, {1} %는 HTTP/3로 왔습니다. 대상이 https://로 시작하지 않으므로 스크립트는 모두 HTTP/1.1로 보냅니다. -t https://…를 쓰면 클라이언트와 같은 버전을 씁니다.";
    LOAD_FROM_PART:
        "The traffic covers {0} hours. The script has the hour with most requests, at its own rate: {1} requests a second on average. --minutes N makes a script with the shape of all of it; --speed X makes more load.",
        "트래픽은 {0}시간 분량입니다. 스크립트는 요청이 가장 많은 한 시간을 원래 속도 그대로(평균 초당 {1}건) 담습니다. --minutes N은 전체의 모양을 담은 스크립트를 만들고, --speed X는 부하를 늘립니다.";
    LOAD_FROM_SHAPE:
        "The script has the shape of {0} minutes of traffic in {1} minutes. The rates are those of the traffic, so there are {2} times as many requests in all.",
        "스크립트는 트래픽 {0}분의 모양을 {1}분에 담습니다. 속도는 원래와 같으므로 전체 요청 수는 {2}배입니다.";
    LOAD_FROM_SPEED:
        "Arrivals and pauses are {0} times as fast as they were.",
        "도착과 쉬는 시간은 원래보다 {0}배 빠릅니다.";
    LOAD_FROM_HOST:
        "These are the requests for the host {0}.",
        "호스트 {0}의 요청입니다.";
    LOAD_FROM_HOST_SENT:
        "The script sends this name as Host.",
        "스크립트는 이 이름을 Host로 보냅니다.";
    LOAD_FROM_UNREAD:
        "{0} of {1} lines are no request that can be sent again, and are left out. The first, with the reason:",
        "{0}줄(전체 {1}줄)은 다시 보낼 수 있는 요청이 아니어서 뺐습니다. 처음 줄과 이유:";
    LOAD_FROM_WHY_LONG:
        "the line is longer than {0} bytes",
        "줄이 {0}바이트보다 깁니다";
    LOAD_FROM_WHY_TIME:
        "the line has no time",
        "줄에 시각이 없습니다";
    LOAD_FROM_WHY_JSON:
        "the line is no JSON object",
        "줄이 JSON 객체가 아닙니다";
    LOAD_FROM_WHY_TEXT:
        "the line does not have the text \"{0}\" where the format needs it",
        "형식에 필요한 자리에 텍스트 \"{0}\"이(가) 없습니다";
    LOAD_FROM_WHY_VALUE:
        "the value of {0} does not have the form that weir expects",
        "{0} 값의 형식이 weir가 예상한 것과 다릅니다";
    LOAD_FROM_WHY_TARGET:
        "a client cannot send the target \"{0}\"",
        "클라이언트가 보낼 수 없는 대상입니다: \"{0}\"";
    LOAD_FROM_WHY_NO_TARGET:
        "the request has no path",
        "요청에 경로가 없습니다";
    LOAD_FROM_ONE_CLIENT:
        "All requests come from the address {0}, so requests with the same User-Agent are one client. If a proxy stands in front, log $http_x_forwarded_for.",
        "모든 요청이 주소 {0}에서 왔으므로 User-Agent가 같은 요청은 클라이언트 하나로 봅니다. 앞에 프록시가 있으면 $http_x_forwarded_for를 로그에 남기세요.";
    LOAD_FROM_ONE_RECORDED_CLIENT:
        "All requests have the same client, so requests with the same User-Agent are one client. If a proxy stands in front, record with the address that it passes on: `record FILE client=$http_x_forwarded_for`.",
        "모든 요청의 클라이언트가 같으므로 User-Agent가 같은 요청은 클라이언트 하나로 봅니다. 앞에 프록시가 있으면 프록시가 넘겨준 주소로 기록하세요: `record FILE client=$http_x_forwarded_for`.";
    LOAD_FROM_NO_CLIENT:
        "The lines do not have the client's address, so requests with the same User-Agent are one client. Log $remote_addr, or name the format with --format.",
        "로그에 클라이언트 주소가 없으므로 User-Agent가 같은 요청은 클라이언트 하나로 봅니다. $remote_addr를 로그에 남기거나 --format으로 형식을 지정하세요.";
    LOAD_FROM_OTHER_HOSTS:
        "{0} requests for other hosts are left out; --host NAME chooses another host.",
        "다른 호스트로 간 요청 {0}건은 뺐습니다. --host NAME으로 다른 호스트를 고를 수 있습니다.";
    LOAD_FROM_OTHER_METHODS:
        "{0} requests have a method that a script cannot have, and are left out.",
        "스크립트에 쓸 수 없는 메서드의 요청 {0}건은 뺐습니다.";
    LOAD_FROM_ASSETS:
        "{0} requests for static files are left out (--without-assets).",
        "정적 파일 요청 {0}건은 뺐습니다(--without-assets).";
    LOAD_FROM_BEYOND:
        "{0} requests are left out, because there are more requests, URLs or clients than weir keeps.",
        "요청, URL, 클라이언트가 weir의 한도보다 많아 요청 {0}건은 뺐습니다.";
    LOAD_FROM_GATHERED:
        "{0} requests of rare routes are one route with the whole path as its parameter.",
        "드문 경로의 요청 {0}건은 경로 전체를 매개변수로 하는 하나의 경로로 묶었습니다.";
    LOAD_FROM_NOT_IN_LOG:
        "A log does not have bodies, cookies or header fields. It does not have requests that a browser answered from its cache.",
        "로그에는 본문, 쿠키, 헤더 필드가 없습니다. 브라우저가 캐시에서 답한 요청도 없습니다.";
    LOAD_FROM_BODIES:
        "{0} requests with POST, PUT or PATCH have an empty body in the script: write the bodies before you use it.",
        "POST, PUT, PATCH 요청 {0}건은 스크립트에서 본문이 비어 있습니다. 쓰기 전에 본문을 채우세요.";
    LOAD_FROM_HASHES:
        "{0} requests have hashes in the places of secrets: the target does not know these cookies, tokens and passwords. Where a route needs them, add a step that logs in.",
        "요청 {0}건에는 비밀 값 대신 해시가 있어 대상은 그 쿠키, 토큰, 비밀번호를 모릅니다. 필요한 경로에는 로그인하는 스텝을 넣으세요.";
    LOAD_FROM_BODIES_MISSING:
        "{0} requests had a body that the recording does not have: they are empty in the script. Record bodies, or write them.",
        "본문이 있던 요청 {0}건은 기록에 본문이 없어 스크립트에서 비어 있습니다. 본문도 기록하거나 직접 채우세요.";
    LOAD_FROM_BODIES_UNFIT:
        "{0} bodies are no text that a script can have: these requests are empty in the script.",
        "본문 {0}개는 스크립트에 쓸 수 있는 텍스트가 아니어서 해당 요청의 본문은 비어 있습니다.";
    LOAD_FROM_WEBSOCKETS:
        "{0} WebSockets are arrivals and scenarios of their own.",
        "WebSocket {0}개는 별도의 도착과 시나리오입니다.";
    LOAD_FROM_SILENT_WEBSOCKETS:
        "{0} WebSockets are left out, because the recording does not have their messages.",
        "WebSocket {0}개는 기록에 메시지가 없어 뺐습니다.";
    LOAD_FROM_MESSAGES_UNFIT:
        "{0} messages of WebSockets are left out: they are binary, the recording does not have their content, or they are too many.",
        "WebSocket 메시지 {0}개는 뺐습니다. 바이너리이거나, 기록에 내용이 없거나, 한도보다 많습니다.";
    LOAD_FROM_NOT_MODIFIED:
        "{0} answers were 304. The script asks without a condition, so the target sends these bodies in full.",
        "304 응답이 {0}건입니다. 스크립트는 조건 없이 요청하므로 대상은 본문 전체를 보냅니다.";
    LOAD_FROM_REDIRECTS:
        "The script does not follow redirects: the requests that followed them are steps of their own.",
        "스크립트는 리다이렉트를 따라가지 않습니다. 따라간 요청은 이미 별도의 스텝으로 있습니다.";
    LOAD_FROM_WHOLE_SECONDS:
        "The times in the log are whole seconds, so pauses shorter than a second are lost.",
        "로그의 시각은 초 단위이므로 1초보다 짧은 쉬는 시간은 나타나지 않습니다.";
    LOAD_FROM_CUT:
        "{0} sessions are longer than {1} requests; each continues as another session.",
        "세션 {0}개는 요청이 {1}건보다 많아 다른 세션으로 이어집니다.";
    LOAD_FROM_SAMPLES:
        "There are more orders of requests than the script has: {0} scenarios stand for the rare orders. The weights give each route its share, and each length of a session its number.",
        "요청 순서의 종류가 스크립트에 담을 수 있는 것보다 많습니다. 드문 순서는 시나리오 {0}개가 대신합니다. 가중치는 각 경로의 비율과 세션 길이의 분포가 원래와 같도록 정했습니다.";
    LOAD_FROM_TARGET:
        "The load goes to {0}. Check that you may load this target.",
        "부하는 {0}(으)로 갑니다. 이 대상에 부하를 보내도 되는지 확인하세요.";
    LOAD_FROM_ROUTES:
        "Routes: share, requests, statuses:",
        "경로: 비율, 요청 수, 상태 코드:";
    LOAD_FROM_MADE:
        "Made by `weir load from`.",
        "`weir load from`으로 만들었습니다.";
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_texts_are_whole_in_both_languages() {
        assert_eq!(weir_words::check_texts(super::ALL), Vec::<String>::new());
    }
}
