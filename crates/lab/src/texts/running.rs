//! The texts of `weir why`, which watches a system that runs.

use weir_words::texts;

texts! {
    // Labels of lines.
    LABEL_SINCE: "since", "시작";
    LABEL_SLOW: "slow", "느림";
    LABEL_BEFORE: "before", "이전";
    LABEL_PROVE: "prove", "증명";
    LABEL_ADD: "add", "추가할 줄";
    LABEL_CAUTION: "caution", "주의";

    // Verdicts.
    NOW_ANSWERED: "{0} of {1} requests were answered well, {2}/s, p95 {3} ms", "요청 {1}건 중 {0}건이 정상 응답을 받았습니다. 초당 {2}건, p95 {3} ms";
    NOW_ANSWERED_UNTIMED: "{0} of {1} requests were answered well, {2}/s; the edge does not say how long they took", "요청 {1}건 중 {0}건이 정상 응답을 받았습니다. 초당 {2}건. 걸린 시간은 엣지의 기록에 없습니다";
    NOW_SLOW: "{0} is {1} ms; weir calls more than {2} ms slow (--slo)", "{0}: {1} ms. {2} ms를 넘으면 느린 것으로 봅니다 (--slo)";
    NOW_THAN: "p95 was {1} ms in the minute from {0}, and is {2} ms now", "p95가 {0}부터 1분 동안 {1} ms였고, 지금은 {2} ms입니다";
    NOW_SINCE: "{0}, for {1} min: the minute before was better", "{0}부터 {1}분 동안: 그 전 1분은 더 나았습니다";
    NOW_SINCE_OR_LONGER: "{0} or earlier, for at least {1} min: the history begins there", "{0} 또는 그 이전부터, 적어도 {1}분 동안: 기록이 여기서 시작합니다";
    NOW_TIME_WENT_MORE: "{0} ms more than before in the segment \"{1}\", {2} of requests failed", "\"{1}\" 구간이 이전보다 {0} ms 더 걸렸습니다, 요청의 {2} 실패";
    NOW_DOES_NOT_SEE: "weir does not see the application's work in that time: use --inside, the application's metrics, or a profiler", "이 시간에 앱이 한 일은 밖에서 볼 수 없습니다: --inside, 앱의 지표 또는 프로파일러를 쓰세요";
    NOW_POLICY_TRY: "raise or remove it, if these requests shall be answered; if not, it does what it says", "이 요청들에 응답해야 하면 값을 올리거나 지우세요. 아니라면 설정대로 동작하는 것입니다";
    NOW_POLICY_EXPECT: "these requests get good answers; weir cannot see the next limit until then", "이 요청들이 정상 응답을 받습니다. 다음 병목은 그때 알 수 있습니다";
    NOW_UPGRADES_REFUSED: "{0} upgrades were refused, and none was answered with 101", "업그레이드 {0}건이 거절되었고, 101 응답은 없었습니다";
    NOW_SESSIONS_UNKNOWN: "{0} requests named a session that the process did not know", "요청 {0}건이 그 프로세스가 모르는 세션을 가리켰습니다";
    NOW_PROVE_DUMMY: "the lab starts a dummy application; give yours with --origin", "랩은 더미 앱을 실행합니다. 실제 앱을 쓰려면 --origin으로 지정하세요";
    NOW_PROVE_DUMMY_FOR: "the lab starts a dummy application in place of {0}; give yours with --origin", "랩은 {0} 대신 더미 앱을 실행합니다. 실제 앱을 쓰려면 --origin으로 지정하세요";

    // No verdict.
    NOW_EDGE_GONE: "the edge (process {0}) does not run any more", "엣지(프로세스 {0})가 더 이상 실행 중이 아닙니다";
    NOW_EDGE_ENDED: "the edge (process {0}) ended {1} s after the watch began", "관찰을 시작하고 {1}초 뒤에 엣지(프로세스 {0})가 끝났습니다";
    NOW_NO_REQUESTS: "no request came in this time: watch longer (--for), or at a time with visitors", "이 시간에 요청이 없었습니다. 더 오래 관찰하거나(--for) 방문자가 있을 때 관찰하세요";
    NOW_NO_LINES_BUFFERED: "no line came to the access log in this time: either no request came, or nginx keeps the lines in its buffer (access_log … flush=1s writes them each second)", "이 시간에 액세스 로그에 새 줄이 없었습니다. 요청이 없었거나 nginx가 줄을 버퍼에 두고 있습니다 (access_log … flush=1s를 쓰면 1초마다 기록합니다)";
    NOW_NOTHING_TOLD: "nothing tells of the requests: no access log with $status can be read, and no stub_status answers", "요청을 알 수 없습니다: $status가 있는 액세스 로그를 읽을 수 없고, 응답하는 stub_status도 없습니다";
    NOW_NOTHING_TOLD_WEIR: "nothing tells of the requests: no dashboard or API of this weir answers, and no access log with $status can be read", "요청을 알 수 없습니다: 이 weir의 대시보드나 API가 응답하지 않고, $status가 있는 액세스 로그도 읽을 수 없습니다";

    // Not read, and cautions.
    NOW_RELOADED: "the edge was reloaded meanwhile: some figures are of the configuration before, some of the one after", "관찰하는 동안 엣지가 다시 로드되었습니다. 이전 설정의 값과 새 설정의 값이 섞여 있습니다";
    NOW_NO_API: "weir's own account: no dashboard and no API answers (--edge URL names one, --token its token)", "weir의 집계: 대시보드도 API도 응답하지 않습니다 (--edge URL로 지정하고, 토큰은 --token으로 지정하세요)";
    NOW_FORMAT_WITHOUT: "the access log {0}: its log_format {1} lacks $status or the request", "액세스 로그 {0}: log_format {1}에 $status나 요청이 없습니다";
    NOW_LINES_UNFIT: "the access log {0}: {1} of {2} lines have another form than its log_format", "액세스 로그 {0}: {2}줄 중 {1}줄이 log_format과 다른 형식입니다";
    NOW_LOG_CUT: "the access log {0}: more than 64 MB were written; the rest was not read", "액세스 로그 {0}: 64 MB 넘게 기록되어 나머지는 읽지 않았습니다";
    NOW_LOG_ROTATED: "the log {0} was rotated meanwhile; weir reads on in the new file", "로그 {0}이(가) 관찰 중에 교체되었습니다. 새 파일을 이어서 읽습니다";
    NOW_LOG_PARTIAL: "the access log {0}: it has a part of the requests only (if=)", "액세스 로그 {0}: 일부 요청만 기록합니다 (if=)";
    NOW_LOG_LACKS: "the access log {0} lacks {1}, which would tell where the time goes", "액세스 로그 {0}에 {1}이(가) 없어 시간이 어디에서 걸렸는지 알 수 없습니다";
    NOW_LOG_NO_FILE: "the log {0}: it is not a file", "로그 {0}: 파일이 아닙니다";
    NOW_HIDDEN: "{0} processes of other users: their open files, sockets and waits (sudo weir why reads them)", "다른 사용자의 프로세스 {0}개: 연 파일, 소켓, 대기 (sudo weir why로 실행하면 읽을 수 있습니다)";
    NOW_ELSEWHERE: "the servers at {0}: no process of this machine listens there", "{0}의 서버: 이 머신에서 여기를 리슨하는 프로세스가 없습니다";
    NOW_ELSEWHERE_OR_HIDDEN: "the servers at {0}: no process that weir can see listens there", "{0}의 서버: 볼 수 있는 프로세스 중에 여기를 리슨하는 것이 없습니다";
}
