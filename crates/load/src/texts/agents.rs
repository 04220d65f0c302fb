//! The texts about agents, and about runs that do not begin or do not end.

weir_words::texts! {
    // The lines of an agent.
    AGENT_WAITS: "agent {0}: waiting for a run at the Redis server {1}", "에이전트 {0}: Redis 서버 {1}에서 실행을 기다립니다";
    AGENT_GONE: "agent {0}: the connection to the Redis server is lost ({1}); the agent tries again", "에이전트 {0}: Redis 서버와의 연결이 끊겼습니다({1}). 다시 연결합니다";
    AGENT_AGAIN: "agent {0}: connected again to the Redis server {1}", "에이전트 {0}: Redis 서버 {1}에 다시 연결했습니다";
    AGENT_RUNS: "agent {0}: running share {1} of {2} of run {3}", "에이전트 {0}: 실행 {3}의 몫 {2}개 중 {1}번째를 맡았습니다";
    AGENT_OVER: "agent {0}: run {1} is over", "에이전트 {0}: 실행 {1}이(가) 끝났습니다";
    AGENT_SILENT: "agent {0}: the controller of run {1} is silent: the agent ends the run", "에이전트 {0}: 실행 {1}의 컨트롤러가 응답하지 않아 실행을 끝냅니다";

    // Why an agent cannot run its share.
    THREAD_PANICKED: "the thread of the run panicked", "실행 스레드가 패닉으로 끝났습니다";
    JOB_TOO_LARGE: "the job exceeds the size limit", "작업의 크기가 한도를 넘습니다";
    JOB_DAMAGED: "the job is damaged", "작업이 손상되었습니다";
    NO_JOB: "this is not a job", "작업이 아닙니다";
    NO_THREAD: "no thread: {0}", "스레드를 시작할 수 없습니다: {0}";
    BEFORE_DAMAGED: "the variables of `before` are damaged", "`before`의 변수가 손상되었습니다";

    // The controller.
    AGENT_SHARE:
        "agent {0} runs share {1} of {2}: {3} of {4} CPUs, clock {5} ms off (± {6})",
        "에이전트 {0}이(가) 몫 {2}개 중 {1}번째를 실행합니다: CPU {4}개 중 {3}개, 시계 차이 {5} ms (± {6})";
    AGENTS_COUNT: "-n is the number of agents, from 1 to {0}", "-n에는 에이전트 수를 1부터 {0}까지 쓰세요";
    DOTENV_HERE:
        "weir reads --dotenv only on this machine: agents get the variables that --env-pass names",
        "--dotenv는 이 머신에서만 읽습니다. 에이전트는 --env-pass로 지정한 변수를 받습니다";
    NO_SUCH_VARIABLE: "--env-pass {0}: the environment has no such variable", "--env-pass {0}: 그런 환경 변수가 없습니다";
    STOPPED_BEFORE: "the run was stopped before it began; no load was sent", "시작하기 전에 실행을 멈췄습니다. 부하를 보내지 않았습니다";
    CONTROLLER_ENDED: "the controller's thread ended unexpectedly", "컨트롤러의 스레드가 예기치 않게 끝났습니다";
    CONTROLLER_PANICKED: "the controller's thread panicked", "컨트롤러의 스레드가 패닉으로 끝났습니다";
    BEFORE_TOO_LARGE:
        "the variables that `before` set exceed the {0} bytes that an agent accepts",
        "`before`가 정한 변수가 에이전트가 받을 수 있는 {0}바이트를 넘습니다";
    CANNOT_RUN: "agent {0} cannot run it: {1}", "에이전트 {0}이(가) 실행할 수 없습니다: {1}";
    NOT_READY: "not ready within {0} s: {1}", "{0}초 안에 준비하지 못한 에이전트: {1}";
    ONLY_SOME:
        "only {0} of {1} agents connected within {2} s{3}: start the others with `weir agent URL`, or use fewer agents with -n",
        "{2}초 안에 에이전트 {1}개 중 {0}개만 연결했습니다{3}. `weir agent URL`로 나머지를 시작하거나 -n으로 에이전트 수를 줄이세요";
    CAME_AND_WENT: "; came and went: {0}", "; 왔다가 사라진 에이전트: {0}";
    FILES_TOO_LARGE: "the files of the script exceed the {0} bytes that an agent accepts", "스크립트의 파일이 에이전트가 받을 수 있는 {0}바이트를 넘습니다";
    FILES_TOO_MANY: "the script has more files than the {0} that an agent accepts", "스크립트의 파일이 에이전트가 받을 수 있는 {0}개를 넘습니다";

    // The missing parts of a run.
    AGENT_LOST: "agent {0} (share {1} of {2}) was lost {3}", "에이전트 {0}(몫 {2}개 중 {1}번째)과 연결이 끊겼습니다: {3}";
    AGENT_NOT_ENDED: "agent {0} (share {1} of {2}) did not end after the order to stop {3}", "에이전트 {0}(몫 {2}개 중 {1}번째)이 중단 명령을 받고도 끝나지 않았습니다: {3}";
    AGENT_FAILED: "agent {0} (share {1} of {2}) failed: {3} {4}", "에이전트 {0}(몫 {2}개 중 {1}번째)이 실패했습니다: {3}. {4}";
    BEFORE_START: "before the start: the report lacks its virtual users", "시작 전이므로 보고서에 그 가상 사용자가 없습니다";
    AFTER_START:
        "{0} s after the start: the report lacks its virtual users' later figures",
        "시작 후 {0}초이므로 보고서에 그 가상 사용자의 이후 수치가 없습니다";
    CAME_BACK:
        "agent {0} came back after {1} s of silence; weir counts its later figures",
        "에이전트 {0}이(가) {1}초 동안 응답하지 않다가 돌아왔습니다. 이후의 수치는 셉니다";
    SECOND_UNREADABLE: "a second of agent {0} could not be read", "에이전트 {0}의 1초 분량을 읽지 못했습니다";

    // The Redis server.
    REDIS_FORM: "write the server as redis://[USER:PASSWORD@]HOST[:PORT], or rediss:// for TLS", "서버를 redis://[USER:PASSWORD@]HOST[:PORT] 형식으로 쓰세요. TLS라면 rediss://로 쓰세요";
    NOT_NATS: "agents use Redis in place of NATS: write redis://HOST", "에이전트는 NATS 대신 Redis를 씁니다. redis://HOST 형식으로 쓰세요";
    REDIS_NONE: "no connection to the Redis server {0}: {1}", "Redis 서버 {0}에 연결할 수 없습니다: {1}";
    REDIS_REFUSES: "the Redis server {0} refuses: {1}", "Redis 서버 {0}이(가) 거절했습니다: {1}";
    REDIS_LATE: "it did not answer in time", "제시간에 응답하지 않았습니다";

    // A run.
    BEFORE_FAILED: "`before` failed: {0}; no load was sent", "`before`가 실패했습니다: {0}. 부하를 보내지 않았습니다";
    AFTER_FAILED: "`after` failed: {0}", "`after`가 실패했습니다: {0}";
    WORKER_NOT_STARTED: "worker {0} cannot start: {1}", "워커 {0}을(를) 시작할 수 없습니다: {1}";
    WORKERS_ENDED: "the workers ended unexpectedly", "워커가 예기치 않게 끝났습니다";
    PUBLISH_NO_THREAD: "publish-metrics: weir cannot start a thread: {0}", "publish-metrics: 스레드를 시작할 수 없습니다: {0}";
    PUBLISH_LATE: "publish-metrics: weir could not send all metrics within {0} s after the end; it drops the rest", "publish-metrics: 실행이 끝나고 {0}초 안에 지표를 다 보내지 못해 나머지를 버립니다";
    PUBLISH_DROPPED: "publish-metrics: weir dropped {0} periods, because {1} were already waiting", "publish-metrics: 구간 {1}개가 이미 기다리고 있어 구간 {0}개를 버렸습니다";
    PUBLISH_FAILED: "publish-metrics: {0} of {1} periods did not reach {2}: {3}", "publish-metrics: 구간 {1}개 중 {0}개를 {2}에 보내지 못했습니다: {3}";
    PUBLISH_ONCE: "publish-metrics: {0}: {1} (weir prints this once; the run continues)", "publish-metrics: {0}: {1} (한 번만 출력합니다. 실행은 계속됩니다)";
    LATE_METRICS: "Warning: multiple batches of metrics for period {0}", "경고: 구간 {0}의 지표가 여러 번 도착했습니다";
    NOT_LISTENING: "--prometheus {0}: {1}", "--prometheus {0}: 리슨할 수 없습니다: {1}";
}
