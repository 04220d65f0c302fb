//! Sentences of a comparison, in English and Korean.

weir_words::texts! {
    NO_REPORT: "{0}: this is not a report: it has no \"aggregate\"", "{0}: 보고서가 아닙니다. \"aggregate\"가 없습니다";
    DIFFER: "The runs also differ in:", "두 실행에서 다음도 다릅니다:";
    NOT_WRITTEN:
        "weir did not write {0}: the report does not describe its script, target or generator",
        "{0}: weir가 쓴 보고서가 아니므로 스크립트, 대상, 부하 생성기를 알 수 없습니다";
    WAS_LIMIT:
        "in {0} the generator was the limit: the figures measure the generator, not the target",
        "{0}: 부하 생성기가 한도에 이르렀습니다. 이 수치는 대상이 아니라 부하 생성기의 값입니다";
    INCOMPLETE: "{0} is incomplete: {1}", "{0}: 불완전한 실행입니다: {1}";
    SCRIPTS: "script: {0} and {1}", "스크립트: {0}, {1}";
    TARGETS: "target: {0} and {1}", "대상: {0}, {1}";
    PHASES: "phases", "단계";
    ENVIRONMENT: "{0}: {1} and {2}", "{0}: {1}, {2}";
    UNKNOWN: "unknown", "알 수 없음";
    WITHIN: "95 %, within these runs", "95 %, 두 실행 안에서";
    REQUESTS: "requests/s", "초당 요청";
    RESPONSE_P50: "response p50, ms", "응답 p50, ms";
    RESPONSE_P95: "response p95, ms", "응답 p95, ms";
    RESPONSE_P99: "response p99, ms", "응답 p99, ms";
    SERVICE_P50: "service p50, ms", "서비스 p50, ms";
    SERVICE_P95: "service p95, ms", "서비스 p95, ms";
    SERVICE_P99: "service p99, ms", "서비스 p99, ms";
    ERRORS: "errors/s", "초당 오류";
    FROM_TO: "{0} to {1}", "{0} ~ {1}";
    NEEDS: "needs {0} values", "값이 {0}개 필요";
    FAILED_OF: "{0} of {1}, {2} % ({3} to {4} %)", "{1}건 중 {0}건, {2} % ({3} ~ {4} %)";
    FAILED_BY: "{0} percentage points ({1} to {2})", "{0} %포인트 ({1} ~ {2})";
    PERIODS: "({0} of A, {1} of B)", "(A {0}개, B {1}개)";
    OF_SECONDS:
        "Means over the seconds of each run where both reports have a value for each second; other rows over whole 10 s periods {0}.",
        "두 보고서에 초마다 값이 있으면 각 실행의 초를 평균한 값이고, 나머지 행은 온전한 10초 구간의 평균입니다 {0}.";
    OF_PERIODS: "Means over whole 10 s periods {0}.", "온전한 10초 구간의 평균입니다 {0}.";
    OF_WHOLE:
        "These are figures of the whole runs, because they have too few whole 10 s periods {0}.",
        "온전한 10초 구간이 너무 적어서 실행 전체의 값입니다 {0}.";
    FAILED:
        "Failed requests (errors, and answers of 400 or more), with exact 95 % intervals:",
        "실패한 요청(오류와 400 이상의 응답)과 정확한 95 % 구간:";
    EXACT:
        "These intervals are exact for requests that fail independently of each other. Failures that come together (a restart, a full pool) make the true intervals wider.",
        "이 구간은 요청이 서로 독립적으로 실패할 때 정확합니다. 재시작이나 풀 고갈처럼 실패가 몰려서 일어나면 실제 구간은 더 넓습니다.";
    VERDICT:
        "These are two single runs. An interval above says how far apart the means of these two runs are, within the variation inside each run. It allows for requests that depend on each other: each run is cut into five stretches, and their spread counts. An interval without 0 is a difference between these two runs. It is no proof that one configuration is faster, because the variation from run to run is not in it. For that proof, run both at least 6 times in turns: `weir lab compare DIR_A DIR_B` reads the reports of all runs, also Artillery's, and `weir lab ab` makes the runs itself.",
        "한 번씩 실행한 두 결과입니다. 위 구간은 각 실행 안의 변동을 기준으로 두 실행의 평균이 얼마나 다른지 보여 줍니다. 서로 영향을 주는 요청도 고려합니다. 각 실행을 다섯 토막으로 나누고 토막 사이의 차이를 씁니다. 구간에 0이 없으면 이 두 실행은 서로 다릅니다. 실행마다 달라지는 변동은 들어 있지 않으므로 한 설정이 더 빠르다는 증거는 아닙니다. 증거가 필요하면 두 설정을 번갈아 6번 이상 실행하세요. `weir lab compare DIR_A DIR_B`는 Artillery 보고서를 포함한 모든 실행의 보고서를 읽고, `weir lab ab`는 실행까지 직접 합니다.";
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_texts_are_whole_in_both_languages() {
        assert_eq!(weir_words::check_texts(super::ALL), Vec::<String>::new());
    }
}
