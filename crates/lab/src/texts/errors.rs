//! Why a lab does not begin: the command line, the configurations, the files of experiments and stored runs.

use weir_words::texts;

texts! {
    ERR_FILE: "{0}: {1}", "{0}: {1}";
    ERR_OWN_PATH: "weir cannot find the path of its own program: {0}", "weir 자신의 프로그램 경로를 찾을 수 없습니다: {0}";

    // The command line.
    ERR_PATH: "{0}: the path of the load must begin with /", "{0}: 부하의 경로는 /로 시작해야 합니다";
    ERR_AA_ONE: "--aa needs exactly one configuration; the path of the load must begin with /", "--aa에는 설정을 하나만 지정하세요. 부하의 경로는 /로 시작해야 합니다";
    ERR_NAME_TWO:
        "name two configurations, BEFORE and AFTER; or one with --aa; the path of the load must begin with /",
        "설정을 BEFORE, AFTER 순서로 둘 지정하거나 --aa와 함께 하나를 지정하세요. 부하의 경로는 /로 시작해야 합니다";
    ERR_BEFORE_AFTER: "name two configurations, BEFORE and AFTER", "설정을 BEFORE, AFTER 순서로 둘 지정하세요";
    ERR_NAME_CONF: "name a configuration and the path of the load; or --stack labs/NAME", "설정과 부하의 경로를 지정하거나 --stack labs/NAME을 쓰세요";
    ERR_STACK_PATH: "with --stack, the experiment has the configuration: name only a path, or nothing", "--stack에서는 설정이 실험에 있습니다. 경로만 쓰거나 아무것도 쓰지 마세요";
    ERR_LOAD_PATH: "--load has its own paths: remove the path", "--load에는 자체 경로가 있습니다. 경로를 지우세요";
    ERR_NO_EDGE: "--edge {0}: there is no such program; write weir, or the path of a program", "--edge {0}: 그런 프로그램이 없습니다. weir나 프로그램의 경로를 쓰세요";
    ERR_CONNECTIONS: "--connections {0}: write 1 to {1}", "--connections {0}: 1부터 {1}까지의 수를 쓰세요";
    ERR_RATE: "--rate: write more than 0 and at most {0} requests a second", "--rate: 초당 요청을 0보다 크고 {0} 이하로 쓰세요";
    ERR_BLOCK: "--block: write 500ms to 30m; --warmup: write at most 30m", "--block에는 500ms부터 30m까지, --warmup에는 30m까지 쓸 수 있습니다";
    ERR_FROM: "--from {0}: write {1} to {2} requests a second", "--from {0}: 초당 요청을 {1}부터 {2}까지 쓰세요";
    ERR_ERRORS: "--errors {0}: write 0 to 100 per cent", "--errors {0}: 0부터 100까지의 백분율을 쓰세요";
    ERR_THINK: "--think: write 10ms to 10m", "--think에는 10ms부터 10m까지 쓸 수 있습니다";
    ERR_METRIC: "--metric {0}: write one of {1}", "--metric {0}: 다음 중 하나를 쓰세요: {1}";
    ERR_METRIC_OF_REPORT:
        "--metric {0}: write throughput, p50, p95, p99 or errors; a report does not contain the edge's CPU",
        "--metric {0}: throughput, p50, p95, p99, errors 중 하나를 쓰세요. 보고서에는 엣지의 CPU가 없습니다";
    ERR_THRESHOLD: "--threshold {0}: write more than 0 and less than 100", "--threshold {0}: 0보다 크고 100보다 작은 수를 쓰세요";
    ERR_PROTOCOL_SCRIPT:
        "--protocol is for a load on a path: a script says it itself, as config.http.http3: true",
        "--protocol은 경로에 보내는 부하에 씁니다. 스크립트에는 config.http.http3: true처럼 직접 쓰세요";
    ERR_HTTP3_PLAIN:
        "{0}: HTTP/3 needs TLS: write listen … ssl and listen … quic at this port, or choose another one with --port",
        "{0}: HTTP/3에는 TLS가 필요합니다. 이 포트에 listen … ssl과 listen … quic을 쓰거나 --port로 다른 포트를 고르세요";
    ERR_LINK_NEAR:
        "{0}: --delay, --jitter, --loss or --reorder needs a client on a host of its own: run the lab as root, and listen beyond loopback (listen 443)",
        "{0}: --delay, --jitter, --loss, --reorder에는 다른 호스트의 클라이언트가 필요합니다. root 권한으로 실행하고, 루프백이 아닌 주소에서 리슨하세요(listen 443)";
    ERR_SHARE_FLAG: "write a share of at most {0} %, as 1% or 0.5%", "1%, 0.5%처럼 {0} %까지의 비율을 쓰세요";
    ERR_DELAY_FLAG: "write a time of at most {0} s, as 20ms", "20ms처럼 {0}초까지의 시간을 쓰세요";
    ERR_HEADER: "-H {0}: write \"Name: value\"", "-H {0}: \"Name: value\" 형식으로 쓰세요";
    ERR_DUET_METRIC:
        "--duet --metric {0}: the two edges run at once and wait for each other, so --duet compares only cpu, the CPU time of a request",
        "--duet --metric {0}: 두 엣지가 동시에 실행되며 서로를 기다리므로 --duet은 요청당 CPU 시간인 cpu만 비교합니다";
    ERR_DUET_RATE:
        "--duet needs a --rate: both edges get the same requests, and neither may reach its limit",
        "--duet에는 --rate가 필요합니다. 두 엣지가 같은 요청을 받고, 어느 쪽도 한도에 이르지 않아야 합니다";
    ERR_DUET_WARMUP:
        "--duet warms both edges up with their own load: remove --warmup 0 and --warmup-load",
        "--duet은 두 엣지를 각자의 부하로 워밍업합니다. --warmup 0과 --warmup-load를 지우세요";
    ERR_DUET_ROOT:
        "--duet needs root, because each edge gets a network namespace and a control group: a plain comparison needs neither",
        "--duet에는 root 권한이 필요합니다. 엣지마다 네트워크 네임스페이스와 control group을 만들기 때문입니다. 일반 비교에는 필요 없습니다";
    ERR_DUET_ADDRESSES:
        "--duet: every address must be a loopback or wildcard address, because each edge runs on its own host",
        "--duet: 엣지마다 자기 호스트에서 실행되므로 모든 주소가 루프백이나 와일드카드 주소여야 합니다";
    ERR_KEEP_WARM:
        "--keep-warm: the two configurations have different listen addresses, origins or files, and a reload cannot change these: remove --keep-warm",
        "--keep-warm: 두 설정의 리슨 주소, 오리진, 파일이 서로 다르고 reload로는 바꿀 수 없습니다. --keep-warm을 지우세요";
    ERR_TWO_FACTORS:
        "two factors change, and one run cannot separate their effects: the edge, and {0}\n  compare the edges with one configuration, or the configurations with one edge",
        "요인 두 개가 바뀌어 한 번의 실행으로는 효과를 구분할 수 없습니다: 엣지, 그리고 {0}\n  같은 설정으로 엣지를 비교하거나, 같은 엣지로 설정을 비교하세요";
    ERR_TWO_FACTORS_PROTOCOL:
        "two factors change, and one run cannot separate their effects: the protocol, and {0}\n  compare the protocols with one configuration and one edge",
        "요인 두 개가 바뀌어 한 번의 실행으로는 효과를 구분할 수 없습니다: 프로토콜, 그리고 {0}\n  같은 설정과 같은 엣지로 프로토콜을 비교하세요";
    ERR_CAPACITY_SCRIPT: "{0}: its plan does not show the number of its requests: use arrivalCount or arrivalRate without mode: poisson, and loops with a count", "{0}: 요청 수를 미리 알 수 없습니다. mode: poisson이 없는 arrivalCount나 arrivalRate와 횟수가 정해진 loop를 쓰세요";
    ERR_PHASES_LONG: "{0}: its phases take {1} s; a block may take at most {2}", "{0}: 단계를 모두 합치면 {1}초입니다. 블록은 {2}초까지 쓸 수 있습니다";
    ERR_NO_RULE: "--only {0}: there is no such rule{1}", "--only {0}: 그런 규칙이 없습니다{1}";
    ERR_NEAR: "; did you mean {0}?", ". 비슷한 규칙: {0}";
    ERR_KNOB_FORM: "--knob {0}: write ADDRESS=VALUE, as http/upstream[app]/keepalive=64", "--knob {0}: http/upstream[app]/keepalive=64처럼 ADDRESS=VALUE 형식으로 쓰세요";
    ERR_KNOB: "--knob {0}: {1}", "--knob {0}: 설정에 쓸 수 없습니다: {1}";
    ERR_POOL: "--pool: there is no process {0}", "--pool: 프로세스 {0}이(가) 없습니다";
    ERR_PROBE_KIND: "--probe {0}: write KIND=WHERE, with a KIND of {1}", "--probe {0}: KIND=WHERE 형식으로 쓰세요. KIND는 다음 중 하나입니다: {1}";
    ERR_PROBE_PLACE:
        "--probe {0}: write node without a place, and every other kind with its place, as redis=127.0.0.1:6379",
        "--probe {0}: node에는 위치를 쓰지 말고, 다른 종류에는 redis=127.0.0.1:6379처럼 위치를 쓰세요";
    ERR_GOOD: "{0}: write a class (2xx) or a status (404), as 2xx,3xx,404", "{0}: 2xx,3xx,404처럼 종류(2xx)나 상태 코드(404)를 쓰세요";
    ERR_GOOD_MANY: "write at most {0} classes and statuses", "종류와 상태 코드는 {0}개까지 쓸 수 있습니다";
    ERR_FLAG_NUMBER:
        "{0}: the value in the experiment's flags is not a number: name --rate or -c",
        "{0}: 실험의 flags에 있는 값이 수가 아닙니다. --rate나 -c를 지정하세요";

    // Configurations.
    ERR_EQUAL:
        "the two configurations are equal: there is nothing to compare (--aa measures the noise of one configuration)",
        "두 설정이 같아 비교할 것이 없습니다(--aa는 설정 하나의 노이즈를 측정합니다)";
    ERR_SEVERAL_FACTORS:
        "{0} factors change, and one run cannot separate their effects: {1}\n{2}\n  change one at a time; or, if they belong together, write --together {3}; or separate their effects with --factorial",
        "요인 {0}개가 바뀌어 한 번의 실행으로는 효과를 구분할 수 없습니다: {1}\n{2}\n  하나씩 바꾸거나, 함께 바꿔야 하면 --together {3}을(를) 쓰거나, --factorial로 효과를 구분하세요";
    ERR_AND_MORE: "  and {0} more", "  그 밖에 {0}건";
    ERR_NO_EFFECTS: "the two configurations are equal: there are no effects to separate", "두 설정이 같아 구분할 효과가 없습니다";
    ERR_ONE_FACTOR: "only one factor changes, {0}: remove --factorial", "바뀌는 요인이 {0} 하나뿐입니다. --factorial을 지우세요";
    ERR_FACTORS_MANY:
        "{0} factors give {1} combinations; the lab can separate at most {2} factors: {3}\n  join some of them with --together NAME,NAME, or change fewer",
        "요인 {0}개의 조합은 {1}개입니다. 구분할 수 있는 요인은 {2}개까지입니다: {3}\n  --together NAME,NAME으로 일부를 묶거나 더 적게 바꾸세요";
    ERR_ORDERED:
        "{0}: the order of the \"{1}\" lines matters, and a mixture of two files has no defined order: change these lines alone",
        "{0}: \"{1}\" 줄은 순서가 중요하지만 두 파일을 섞으면 순서가 정해지지 않습니다. 이 줄만 따로 바꾸세요";
    ERR_WHOLE_BLOCK:
        "\"{0}\" is a whole block that the two configurations do not share in the same order: --factorial mixes directives; put the block into both, or compare without --factorial",
        "\"{0}\" 블록이 두 설정에 같은 순서로 있지 않습니다. --factorial은 지시어를 섞습니다. 블록을 양쪽에 넣거나 --factorial 없이 비교하세요";
    ERR_DAEMON: "\"daemon on\": the lab starts and ends the edge itself; remove the directive", "\"daemon on\": 엣지는 랩이 직접 시작하고 끝냅니다. 이 지시어를 지우세요";
    ERR_PID:
        "\"pid {0}\": the lab would overwrite that file; remove the directive, or run as root with a pid file in /run",
        "\"pid {0}\": 랩이 이 파일을 덮어쓰게 됩니다. 지시어를 지우거나, pid 파일을 /run에 두고 root 권한으로 실행하세요";
    ERR_NO_HTTP: "the configuration has no http block: the lab has nothing to watch", "설정에 http 블록이 없어 관찰할 것이 없습니다";
    ERR_EMPTY: "the configuration is empty", "설정이 비어 있습니다";
    ERR_NOTHING_TO_CHANGE: "{0}: nothing to change", "{0}: 바꿀 것이 없습니다";
    ERR_SHEET:
        "{0}: {1}; the lab writes drafts beside the configuration, so that its relative paths stay valid",
        "{0}: {1}. 상대 경로가 유효하도록 설정 옆에 초안을 씁니다";

    // Experiments.
    ERR_NOT_INSTALLED: "lab {0}: these programs are not installed: {1}", "실험 {0}: 다음 프로그램이 설치되어 있지 않습니다: {1}";
    ERR_NAMESPACES:
        "lab {0}: its hosts are network namespaces: run it as root on Linux, with unshare and ip installed",
        "실험 {0}: 호스트를 네트워크 네임스페이스로 만듭니다. unshare와 ip가 설치된 Linux에서 root 권한으로 실행하세요";
    ERR_NO_VARIANT: "lab {0}: there is no variant {1}; there are {2}", "실험 {0}: 변형 {1}이(가) 없습니다. 변형 목록: {2}";
    ERR_VARIANTS: "--variant: lab {0} has {1}", "--variant: 실험 {0}의 변형 목록: {1}";
    ERR_OWN_COMMAND:
        "lab {0}: its load is a separate command: name a path with --rate or -c, or --load",
        "실험 {0}: 부하가 별도의 명령입니다. 경로를 --rate나 -c와 함께 지정하거나 --load를 쓰세요";
    ERR_NOT_MADE: "lab {0}: {1} did not make {2}: {3}", "실험 {0}: {1} 명령이 {2}을(를) 만들지 못했습니다: {3}";
    ERR_BLOCK_OF: "lab {0}, {1} {2}: {3}", "실험 {0}, {1} {2}: 블록을 실행하지 못했습니다: {3}";
    ERR_BLOCK_START: "the lab cannot start a block: {0}", "블록을 시작할 수 없습니다: {0}";
    ERR_BLOCK_OUTPUT: "the lab cannot read the output of a block: {0}", "블록의 출력을 읽을 수 없습니다: {0}";
    ERR_BLOCK_LONG: "a block took more than {0} s", "블록이 {0}초를 넘겼습니다";
    ERR_BLOCK_NO_RESULT: "a block ended without a result{0}", "블록이 결과 없이 끝났습니다{0}";
    ERR_TWO_VARIANTS:
        "lab {0}: compare takes two variants, before and after: name them, as variants: [BEFORE, AFTER]",
        "실험 {0}: compare에는 변경 전과 후의 변형 두 개가 필요합니다. variants: [BEFORE, AFTER]처럼 지정하세요";
    ERR_SIDES: "write the names of two variants here, before and after; there are {0}", "여기에는 변경 전과 후의 변형 이름 두 개를 쓰세요. 변형 목록: {0}";
    ERR_NO_CONF: "{0}: there is no such file", "{0}: 그런 파일이 없습니다";
    ERR_NO_PORT: "{0}: it does not listen on that port", "{0}: 그 포트에서 리슨하지 않습니다";
    ERR_NO_LOAD: "lab {0}: \"load\" is missing", "실험 {0}: \"load\"가 없습니다";
    ERR_NO_EXPERIMENT: "{0}: there is no such file (weir lab list names the experiments of --labs)", "{0}: 그런 파일이 없습니다 (weir lab list로 --labs의 실험을 볼 수 있습니다)";
    ERR_NO_LABS:
        "no folder here has experiments (NAME/{0}): {1}; --labs DIR names another folder",
        "다음 폴더에는 실험(NAME/{0})이 없습니다: {1}. 다른 폴더는 --labs DIR로 지정하세요";

    // Stored runs and reports.
    ERR_NO_RUN_FILE: "{0}: no run of a lab", "{0}: 랩의 실행이 아닙니다";
    ERR_SEVERAL_RUNS: "{0} runs begin with {1}: write a longer name", "{1}(으)로 시작하는 실행이 {0}개입니다. 더 긴 이름을 쓰세요";
    ERR_NO_RUN: "there is no run {0} in {1} (weir lab runs lists the runs)", "{1}에 실행 {0}이(가) 없습니다 (weir lab runs로 목록을 볼 수 있습니다)";
    ERR_NO_REPORT:
        "{0}: this is not a report of weir load or Artillery: it has neither \"weir\" nor an \"aggregate\" with counters or codes",
        "{0}: weir load나 Artillery의 보고서가 아닙니다. \"weir\"도 없고 counters나 codes가 있는 \"aggregate\"도 없습니다";
    ERR_NO_REPORTS:
        "{0}: there is no report; name files that end in .json, as `weir load -o` writes them",
        "{0}: 보고서가 없습니다. `weir load -o`로 저장한 .json 파일을 지정하세요";
    ERR_MANY_REPORTS: "{0}: there are more than {1} reports: weir compares at most that many", "{0}: 보고서가 {1}개를 넘습니다. 비교할 수 있는 보고서는 {1}개까지입니다";
    ERR_NOT_TUNE: "{0}: apply and undo need a run of weir lab tune, and this run is of another kind", "{0}: apply와 undo에는 weir lab tune의 실행이 필요하지만 다른 종류의 실행입니다";
    ERR_NO_KNOB: "{0}: the run kept no knob, so there is nothing to write", "{0}: 채택한 설정이 없어 쓸 것이 없습니다";
    ERR_CHANGED: "{0}: the file has changed since the lab read it: the lab wrote nothing", "{0}: 랩이 읽은 뒤에 파일이 바뀌어 아무것도 쓰지 않았습니다";
    ERR_NO_CONFIGURATION: "{0}: a file of {1} bytes is not a configuration", "{0}: 크기가 {1}바이트인 파일은 설정이 아닙니다";

    // Values in the file of an experiment.
    ERR_TIME: "write a time here, as 500ms or 20s", "여기에는 500ms, 20s처럼 시간을 쓰세요";
    ERR_ONE_OF: "one of {0}", "다음 중 하나를 쓰세요: {0}";
    ERR_EXPECT: "write \"that\" with is, least or most here, or \"verdict\"", "여기에는 \"that\"과 is, least, most 중 하나를 쓰거나 \"verdict\"를 쓰세요";
    ERR_VARIANTS_MANY: "more than {0} variants", "변형이 {0}개를 넘습니다";
    ERR_ADDRESS: "{0} is not an address", "{0}: 주소가 아닙니다";
    ERR_FREE: "write true or start (until the measured load begins) here", "여기에는 true나 start(측정할 부하가 시작될 때까지)를 쓰세요";
    ERR_READY: "write a port, HOST:PORT, or {prints: TEXT} here", "여기에는 포트, HOST:PORT, {prints: TEXT} 중 하나를 쓰세요";
    ERR_SENT: "write one of script, path and run here", "여기에는 script, path, run 중 하나를 쓰세요";
    ERR_DEED: "write one of stop, continue, kill, restart, reload and run here", "여기에는 stop, continue, kill, restart, reload, run 중 하나를 쓰세요";
    ERR_PLACE: "write a port, or HOST:PORT with the name of a host, here", "여기에는 포트나 호스트의 이름이 있는 HOST:PORT를 쓰세요";
    ERR_NO_HOST: "there is no host {0}: name it under hosts", "호스트 {0}이(가) 없습니다. hosts 아래에 쓰세요";
    ERR_LIMITS: "write one number, or [soft, hard], here", "여기에는 수 하나나 [soft, hard]를 쓰세요";
    ERR_DELAY: "write one time, or [to the host, from the host], here", "여기에는 시간 하나나 [호스트로 가는 시간, 호스트에서 오는 시간]을 쓰세요";
    ERR_SHARE:
        "write a share as 1% or 0.5%, in steps of 0.1%, or [to the host, from the host], here",
        "여기에는 1%, 0.5%처럼 0.1% 단위의 비율이나 [호스트로 가는 비율, 호스트에서 오는 비율]을 쓰세요";
    ERR_INSTANCE: "write t2.micro, t2.small, t2.medium, t2.large or t2.xlarge", "t2.micro, t2.small, t2.medium, t2.large, t2.xlarge 중 하나를 쓰세요";
    ERR_TOO_MANY: "more than {0} hosts or {1} processes", "호스트가 {0}개를 넘거나 프로세스가 {1}개를 넘습니다";
    ERR_TURNS: "more than {0} measurements of one stack", "스택 하나의 측정이 {0}번을 넘습니다";
    ERR_HOST_OF: "{0}: there is no host {1}", "{0}: 호스트 {1}이(가) 없습니다";
    ERR_NOTHING_TO_RUN: "{0}: nothing to run", "{0}: 실행할 명령이 없습니다";
    ERR_NO_PROCESS: "there is no process {0}", "프로세스 {0}이(가) 없습니다";
    ERR_HOST_NAME: "host {0}: a name is up to 12 letters, digits and -", "호스트 {0}: 이름은 영문자, 숫자, -로 12자까지 쓸 수 있습니다";
    ERR_OF_MACHINE:
        "host {0}: {1} applies to the whole machine; a host may set only parameters that begin with net.",
        "호스트 {0}: {1}은(는) 머신 전체에 적용됩니다. 호스트에는 net.으로 시작하는 매개변수만 쓸 수 있습니다";
    ERR_HUB_RATE: "host {0}: it has links to all other hosts; write the rate at the other hosts", "호스트 {0}: 다른 모든 호스트와 연결되어 있습니다. rate는 다른 호스트에 쓰세요";
    ERR_HUB_LINK:
        "host {0}: it has links to all other hosts; write the delay, the jitter, the loss and the reorder at the other hosts",
        "호스트 {0}: 다른 모든 호스트와 연결되어 있습니다. delay, jitter, loss, reorder는 다른 호스트에 쓰세요";
    ERR_DELAY_MAX: "host {0}: a delay or a jitter may be at most {1} s", "호스트 {0}: delay와 jitter는 {1}초까지 쓸 수 있습니다";
    ERR_SHARE_MAX: "host {0}: a loss or a reorder may be at most {1} %", "호스트 {0}: loss와 reorder는 {1} %까지 쓸 수 있습니다";
    ERR_LINK_SEED:
        "host {0}: the seed is for jitter, loss and reorder: write one of them, or remove the seed",
        "호스트 {0}: seed는 jitter, loss, reorder에 쓰입니다. 그중 하나를 쓰거나 seed를 지우세요";
    ERR_CPUS_CREDITS: "host {0}: write either cpus or credits, not both", "호스트 {0}: cpus와 credits 중 하나만 쓰세요";
}
