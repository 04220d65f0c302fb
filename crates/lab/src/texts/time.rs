//! The texts of rules about time within a block: work that comes and goes, and what grows.
//!
//! long: a table, one row a text.

use weir_words::texts;

texts! {
    LABEL_SESSIONS: "sessions", "세션";
    SESSIONS_ENDED_AT: "at least {0} of the users' sessions took about {1} ms", "사용자 세션의 {0} 이상이 약 {1} ms 걸렸습니다";
    TUNNELS_LIVED: "{0} of {1} tunnels lived for about {2} ms", "터널 {1}개의 {0}가 약 {2} ms 동안 열려 있었습니다";
    ONLY_MESSAGES: "messages: {0} of {1} good (sent, and answered where the script waits for it), {2} received", "메시지 {1}건 중 정상 {0}건(보냈고, 스크립트가 기다린 응답이 온 것), 받은 메시지 {2}건";
    SCRIPT_HELD_BACK: "{0}; the script offers {1}: {2}", "{0}; 스크립트가 보내려는 것은 {1}건입니다: {2}";
    HELD_SKIPPED: "{0} users did not begin, because maxVusers of them were there", "maxVusers만큼의 사용자가 있어 사용자 {0}명이 시작하지 못했습니다";
    HELD_FAILED: "{0} users failed and sent no more", "사용자 {0}명이 실패해 더 보내지 않았습니다";
    HELD_WAITING: "{0} users still waited for an answer or for their time at the end", "끝날 때 사용자 {0}명이 아직 응답이나 정해진 시간을 기다렸습니다";
    GOOD_MESSAGES: "{0}; messages: {1} of {2} good (sent, and answered where the script waits for it), {3} received", "{0}; 메시지 {2}건 중 정상 {1}건(보냈고, 스크립트가 기다린 응답이 온 것), 받은 메시지 {3}건";
    LABEL_WHEN: "when", "시점";
    LABEL_GROWTH: "growth", "증가";
    BURSTS_SLOW_REQUESTS: "work that comes and goes makes requests slow or lets them fail while it runs", "있다가 없다가 하는 작업이 실행되는 동안 요청이 느려지거나 실패합니다";
    SUBJECT_NEIGHBOUR_BURSTS: "{0}: bursts of CPU time on the CPUs of {1}", "{0}: {1}의 CPU를 때때로 차지하는 작업";
    SUBJECT_OWN_BURSTS: "{0}: bursts of CPU time of its own", "{0}: 때때로 자기 CPU를 모두 쓰는 작업";
    SUBJECT_DISK_BURSTS: "{0}: waits for a disk that come and go", "{0}: 때때로 생기는 디스크 대기";
    SUBJECT_QUOTA_BURSTS: "{0}: its CPU quota, used up from time to time", "{0}: 때때로 모두 쓰는 CPU 쿼터";
    SUBJECT_STEAL_BURSTS: "this machine: CPU time that the hypervisor takes from time to time", "이 머신: 하이퍼바이저가 때때로 가져가는 CPU 시간";
    SUBJECT_LINK_BURSTS: "the link of {0}: full from time to time", "{0}의 링크: 때때로 가득 참";
    SUBJECT_STANDS_STILL: "{0}: it stands still from time to time", "{0}: 때때로 멈춤";
    EVERY: "every {0} s, for {1} s: {2} times from {3} s on", "{0}초마다 {1}초 동안: {3}초부터 {2}번";
    AT_NO_EVEN_DISTANCE: "{0} times in {1} s, for {2} s each, at no even distance", "{1}초 동안 {0}번, 한 번에 {2}초, 간격은 일정하지 않음";
    ONCE: "once, from {0} s to {1} s", "한 번, {0}초부터 {1}초까지";
    TWICE: "twice, from {0} s to {1} s and from {2} s to {3} s", "두 번, {0}초부터 {1}초까지와 {2}초부터 {3}초까지";
    CPU_ROSE: "CPU of {0} rose from {1} to {2}", "{0}의 CPU가 {1}에서 {2}(으)로 늘었습니다";
    WAIT_FOR_CPU_ROSE: "{0} waited for a CPU for {1} of the time, and for {2} else", "{0}이(가) 이 시간의 {1} 동안 CPU를 기다렸고, 그 밖에는 {2}였습니다";
    DISK_WAIT_ROSE: "a thread of {0} waited for a disk at {1} of the readings, and at {2} else", "{0}의 스레드가 조회의 {1}에서 디스크를 기다렸고, 그 밖에는 {2}였습니다";
    THROTTLED_ROSE: "{0} of the periods had to wait for the next one, and {1} else", "주기의 {0}에서 다음 주기를 기다렸고, 그 밖에는 {1}였습니다";
    STEAL_ROSE: "{0} of the CPU time was taken, and {1} else", "CPU 시간의 {0}를 가져갔고, 그 밖에는 {1}였습니다";
    LINK_ROSE: "{0} of its capacity was used, and {1} else", "용량의 {0}를 썼고, 그 밖에는 {1}였습니다";
    NO_ANSWERS_CAME: "{0} answers came in a window of {1} s, and {2} else, while requests waited for it; it used {3} of its CPUs", "요청이 기다리는 동안 {1}초 구간에 응답 {0}건이 왔고, 그 밖에는 {2}건이었습니다. CPU는 {3}만 썼습니다";
    SLOW_WHILE: "{0} was {1} ms in these windows, and {2} ms else", "이 구간에서 {0}이(가) {1} ms였고, 그 밖에는 {2} ms였습니다";
    FAILED_WHILE: "{0} of {1} requests in these windows, and {2} of {3} else", "이 구간에서 요청 {1}건 중 {0}건, 그 밖에는 {3}건 중 {2}건";
    COINCIDES: "{0} of {1} times slow or failed requests came with it; {2} of the {3} slow windows are in this time", "{1}번 중 {0}번 느리거나 실패한 요청이 함께 왔고, 느린 구간 {3}개 중 {2}개가 이 시간에 있습니다";
    MOVE_THE_WORK: "give {0} CPUs of its own, a lower priority (nice, cpu.weight), or a time without load", "{0}에 따로 쓸 CPU를 주거나, 우선순위를 낮추거나(nice, cpu.weight), 부하가 없는 시간에 실행하세요";
    SPREAD_THE_WORK: "find the work of {0} that comes at these times (a collection, a timer, a batch), and spread it, or do it in another process", "{0}이(가) 이때 하는 일(GC, 타이머, 배치)을 찾아 나누어 하거나 다른 프로세스에서 하세요";
    SPREAD_THE_WRITES: "spread the writes of {0}, write less at once, or use another disk for them", "{0}의 쓰기를 나누거나, 한 번에 쓰는 양을 줄이거나, 다른 디스크를 쓰세요";
    LARGER_QUOTA_FOR_BURSTS: "a larger quota for {0} (cpu.max), or a burst of it (cpu.max.burst), or less work at once", "{0}의 쿼터를 늘리거나(cpu.max), 버스트를 허용하거나(cpu.max.burst), 한 번에 하는 일을 줄이세요";
    MACHINE_WITHOUT_STEAL: "a machine whose CPUs are its own", "CPU를 혼자 쓰는 머신을 쓰세요";
    FIND_WHAT_IS_SENT: "find what is sent at these times, and send it at a limited rate", "이때 무엇을 보내는지 찾아 속도를 제한하세요";
    FIND_THE_STANDSTILL: "find what stops all of {0} at these times: a collection, a lock that all take, a call that blocks its loop (--inside)", "이때 {0} 전체를 멈추는 것을 찾으세요: GC, 모두가 잡는 잠금, 루프를 막는 호출(--inside)";
    GROWS_UNTIL_LIMIT: "something of a process grows all the time, and has met its limit", "프로세스의 무언가가 계속 늘어 한도에 이르렀습니다";
    GROWS_TOWARDS_LIMIT: "something of a process grows all the time, and meets its limit soon", "프로세스의 무언가가 계속 늘어 곧 한도에 이릅니다";
    SUBJECT_GREW_UNTIL: "{0}: {1} grew until the limit", "{0}: {1}, 늘어서 한도에 이름";
    SUBJECT_GROWS: "{0}: {1} grow towards the limit", "{0}: {1}, 한도를 향해 늘어남";
    OPEN_FILES: "open files", "열린 파일";
    RESIDENT_MEMORY: "memory", "메모리";
    CPU_TIME_OF_A_REQUEST: "CPU time of a request", "요청 하나의 CPU 시간";
    GREW_FROM_TO: "{0} of {1}: from {2} to {3}, +{4} a minute", "{1}의 {0}: {2}에서 {3}(으)로, 1분에 +{4}";
    LIMIT_MET_AFTER: "limit {0}, met after {1} s", "한도 {0}, {1}초 뒤에 이름";
    LIMIT_MET_IN: "limit {0}: met in about {1} s at this rate", "한도 {0}: 이 속도면 약 {1}초 뒤에 이름";
    GREW_IN_EACH_PART: "in each of {0} parts of the block it was higher than in the part before, and it did not slow down", "블록을 {0}개로 나눈 모든 부분에서 앞부분보다 높았고, 증가가 느려지지 않았습니다";
    STAYS_AT: "{0} of {1} stay at about {2}", "{1}의 {0}이(가) 약 {2}에 머뭅니다";
    FIND_OPEN_FILES: "find what {0} opens for each request and does not close (ls -l /proc/PID/fd); a larger limit only delays the end", "{0}이(가) 요청마다 열고 닫지 않는 것을 찾으세요(ls -l /proc/PID/fd). 한도를 늘리면 늦춰질 뿐입니다";
    FIND_KEPT_MEMORY: "find what {0} keeps of each request (a heap dump); a larger limit only delays the end", "{0}이(가) 요청마다 남겨 두는 것을 찾으세요(힙 덤프). 한도를 늘리면 늦춰질 뿐입니다";
    FIND_LONGER_WORK: "find the list or table of {0} that each request makes longer and each request walks through (a profiler)", "요청마다 길어지고 요청마다 훑는 {0}의 목록이나 테이블을 찾으세요(프로파일러)";
    LONG_BLOCK: "One block of {0} at the load as asked: it shows what recurs every {1} s to {2} s, and what happens once, to {3} s; half of the load follows only if this load fails", "요청한 부하로 {0} 길이의 블록을 하나 실행합니다: {1}초에서 {2}초마다 되풀이되는 것과 한 번 일어나는 것을 {3}초 단위로 봅니다. 이 부하에 실패할 때만 절반의 부하를 실행합니다";
    AS_FAST_AS_ELSE: "all windows are as fast as the others: {0} about {1} ms", "모든 구간이 나머지만큼 빨라집니다: {0} 약 {1} ms";
}
