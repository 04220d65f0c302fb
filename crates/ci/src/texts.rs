//! The texts of `weir ci`, in English and in Korean.

weir_words::texts! {
    // Revisions.
    ERR_GIT_START: "weir cannot start git: {0}", "git을 실행할 수 없습니다: {0}";
    ERR_NO_REPOSITORY: "{0} is in no git repository", "{0}은(는) git 저장소 안에 있지 않습니다";
    ERR_NO_REVISION: "git knows no revision {0}: does the checkout have its history (fetch-depth: 0, GIT_DEPTH: 0)?", "git에 리비전 {0}이(가) 없습니다. 체크아웃에 이력이 있는지 확인하세요 (fetch-depth: 0, GIT_DEPTH: 0)";
    ERR_UNPACK: "git cannot unpack {0}: {1}", "git이 {0}을(를) 풀 수 없습니다: {1}";
    ERR_PLACE: "weir cannot make a directory for the revisions in {0}: {1}", "{0}에 리비전의 디렉터리를 만들 수 없습니다: {1}";
    ERR_NO_CONF: "revision {0} has no file {1}", "리비전 {0}에 {1} 파일이 없습니다";
    ERR_OUTSIDE: "{0} is outside of the repository {1}", "{0}은(는) 저장소 {1} 밖에 있습니다";
    ERR_OF_FILE: "{0}: {1}", "{0}: {1}";
    LEFT_BEHIND: "weir removed {0}, which an earlier weir ci left", "이전 weir ci가 남긴 {0}을(를) 지웠습니다";
    SUBMODULES: "revision {0} has submodules: git archive leaves them out", "리비전 {0}에 서브모듈이 있습니다. git archive는 서브모듈을 포함하지 않습니다";

    // Progress.
    UNPACKS: "{0}: {1} {2}", "{0}: {1} {2}";
    BUILDS: "{0}: {1}", "{0}: {1}";
    BUILT: "{0}: built in {1} s", "{0}: {1}초 동안 빌드했습니다";
    PACED: "As fast as they can, before answers {0}/s and after {1}/s. Both get {2}/s, {3} % of the smaller figure, so that CPU time stays free", "최대 속도로 변경 전은 초당 {0}건, 변경 후는 초당 {1}건을 응답합니다. CPU 시간이 남도록 둘 다 작은 쪽의 {3} %인 초당 {2}건을 받습니다";
    PLANNED: "{0} pairs of blocks of {1} s; the budget of {2} ends in {3}", "{1}초 블록 {0}쌍; 시간 예산 {2} 중 {3} 남음";

    // Why something was not done.
    ERR_BUILD: "{0}: the build command failed ({1}){2}", "{0}: 빌드 명령이 실패했습니다 ({1}){2}";
    ERR_BUDGET_BUILD: "{0}: the budget ended before the build did", "{0}: 빌드가 끝나기 전에 시간 예산이 끝났습니다";
    BUDGET_SHORT: "the budget of {0} leaves time for {1} pairs of blocks, and a verdict needs {2}: use --budget {3}", "시간 예산 {0}으로는 블록 {1}쌍을 측정할 수 있고, 판정에는 {2}쌍이 필요합니다. --budget {3}을 쓰세요";
    BUDGET_ENDED_PACE: "the budget ended before both revisions had answered once: use a larger --budget", "두 리비전이 한 번씩 응답하기 전에 시간 예산이 끝났습니다. 더 큰 --budget을 쓰세요";
    BUDGET_ENDED: "the budget ended after {0} of {1} pairs", "{1}쌍 중 {0}쌍 뒤에 시간 예산이 끝났습니다";
    NOTHING_CHANGED: "the configuration is the same in both revisions, and --origin names no application", "두 리비전의 설정이 같고 --origin으로 지정한 앱이 없습니다";
    STOPPED: "stopped by a signal", "시그널로 중단되었습니다";

    // Outcomes.
    OUTCOME_BETTER: "better", "better (좋아짐)";
    OUTCOME_WORSE: "worse", "worse (나빠짐)";
    OUTCOME_NONE: "no difference", "no difference (차이 없음)";
    OUTCOME_UNDECIDED: "undecided", "undecided (결정할 수 없음)";
    OUTCOME: "{0}: {1}", "{0}: {1}";
    OF_FIGURE: "{0} {1}", "{0} {1}";
    SEEN_ABOVE: "the run would have seen a change of {0} from {1} on (probability 80 %)", "{0}은(는) {1} 이상의 변화가 있었다면 탐지했을 것입니다 (확률 80 %)";
    NOT_SEEN: "no figure says how large a change the run would have seen", "어느 크기의 변화를 탐지할 수 있었는지 알 수 없습니다";

    // The report.
    FROM_TO: "Before: {0} {1}; after: {2} {3}", "변경 전: {0} {1}, 변경 후: {2} {3}";
    CONF_CHANGES: "Changes of the configuration", "설정 변경";
    CONF_SAME: "The configuration is the same in both.", "두 리비전의 설정이 같습니다.";
    HEAD_FIGURE: "figure", "지표";
    HEAD_BEFORE: "before", "변경 전";
    HEAD_AFTER: "after", "변경 후";
    HEAD_CHANGE: "change", "변화";
    HEAD_INTERVAL: "{0} % interval", "{0} % 구간";
    HEAD_DETECTABLE: "detectable", "탐지 가능";
    HEAD_VERDICT: "verdict", "판정";
    INTERVAL: "{0} to {1}", "{0} ~ {1}";
    PRIMARY: "{0} *", "{0} *";
    ABOUT_TABLE: "Each of the figures {0} decides at {1} %, after {2} pairs and at the end: at most one comparison in {3} of two equal revisions says better or worse. *Detectable* is the smallest change that this run finds with a probability of 80 %.", "{0} 지표는 각각 {2}쌍 뒤와 끝에서 {1} % 수준으로 판정합니다. 같은 두 리비전을 비교할 때 better나 worse라고 하는 경우는 많아야 {3}번에 한 번입니다. *탐지 가능*은 이번 측정이 80 %의 확률로 찾는 가장 작은 변화입니다.";
    HEAD_NOISE: "The machine", "머신";
    NOISE_BLOCKS: "{0} blocks; {1} not used; {2} used with a caution", "블록 {0}개, 사용하지 않음 {1}개, 주의와 함께 사용 {2}개";
    NOISE_SHARES: "{0}: {1} % in the middle block, {2} % at most", "{0}: 가운데 블록에서 {1} %, 최대 {2} %";
    NOISE_STEAL: "CPU time that the hypervisor took (steal)", "하이퍼바이저가 가져간 CPU 시간 (steal)";
    NOISE_FOREIGN: "CPU time of other work", "다른 작업의 CPU 시간";
    NOISE_LAG: "requests sent late: {0} ms in the middle block, {1} ms at most (99th percentile of a block)", "늦게 보낸 요청: 가운데 블록에서 {0} ms, 최대 {1} ms (블록의 99번째 백분위수)";
    NOISE_OF: "{0} blocks: {1}", "블록 {0}개: {1}";
    NOISE_NONE: "No block was disturbed.", "방해받은 블록이 없습니다.";
    HEAD_NOT_DONE: "Not done", "하지 못한 일";
    HEAD_REPEAT: "To repeat it", "다시 실행하기";
    WHERE_NAMESPACES: "in network namespaces of its own", "자체 네트워크 네임스페이스에서";
    WHERE_LOOPBACK: "on loopback, without namespaces", "네임스페이스 없이 루프백에서";
    ABOUT_RUN: "{0}, {1}; {2} of the budget of {3} used; seed {4}", "{0}, {1}; 시간 예산 {3} 중 {2} 사용; 시드 {4}";
    SECONDS: "{0} s", "{0}초";
    MINUTES: "{0} min {1} s", "{0}분 {1}초";
    CUT: "weir left out the rest: the comment would be too long.", "설명이 너무 길어 나머지를 생략했습니다.";

    // Checks of files.
    CHECK_CLEAN: "no finding", "결과 없음";
    CHECK_COUNT: "{0} wrong, {1} at risk, {2} notes", "오류 {0}건, 위험 {1}건, 참고 {2}건";
    CHECK_COUNT_NEW: "{0} wrong, {1} at risk, {2} notes that {3} did not have; {4} known findings are left out", "{3}에 없던 오류 {0}건, 위험 {1}건, 참고 {2}건; 이미 있던 결과 {4}건은 생략했습니다";
    CHECK_GONE: "{0} findings of {1} are gone", "{1}의 결과 {0}건이 사라졌습니다";
    HEAD_PLACE: "place", "위치";
    HEAD_LEVEL: "level", "등급";
    HEAD_RULE: "rule", "규칙";
    HEAD_FINDING: "finding", "결과";
    LEVEL_WRONG: "wrong", "오류";
    LEVEL_RISK: "risk", "위험";
    LEVEL_NOTE: "note", "참고";
    EDGE_REFUSES: "weir edge -t refuses the line", "weir edge -t가 거부하는 줄입니다";
    EDGE_WARNS: "weir edge -t takes the line, but not all of its effect", "weir edge -t가 받아들이지만 효과가 모두 나지는 않습니다";
    EDGE_ALONE: "weir does not take the line; nginx may", "weir는 이 줄을 받지 않습니다. nginx는 받을 수 있습니다";
    EDGE_ABSENT: "the line names a file that is not on this machine", "이 머신에 없는 파일을 가리키는 줄입니다";
    FIX: "as weir doctor --fix would write it", "weir doctor --fix가 쓰는 대로";
    LEFT_OUT: "{0} further findings are left out", "나머지 결과 {0}건은 생략했습니다";
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_text_is_there_in_both_languages() {
        let wrong = weir_words::check_texts(super::ALL);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
