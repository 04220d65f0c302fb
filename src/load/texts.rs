//! Sentences of `weir load` in English and Korean.

weir_conf::texts! {
    NO_CLOUD:
        "weir starts no machines in a cloud. Start `weir agent nats://HOST` on each machine, and run the script from one of them: weir load --agents nats://HOST -n MACHINES test.yml",
        "weir는 클라우드에서 머신을 시작하지 않습니다. 머신마다 `weir agent nats://HOST`를 실행한 뒤 그중 한 대에서 스크립트를 실행하세요: weir load --agents nats://HOST -n MACHINES test.yml";
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
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_texts_are_whole_in_both_languages() {
        assert_eq!(weir_conf::said::check_texts(super::ALL), Vec::<String>::new());
    }
}
