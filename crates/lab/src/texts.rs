//! Every text of the lab's reports, in English and in Korean. The words of the vocabulary stay in English, with the
//! Korean beside them.
//!
//! Never change the meaning of a name: stored runs use the names. A text with another meaning gets another name.
//!
//! long: a table, one row a text.

use weir_words::{Text, texts};

mod errors;
mod held;
mod inside;
mod rules;
mod running;
mod time;
mod why;

pub use errors::*;
pub use held::*;
pub use inside::*;
pub use rules::*;
pub use running::*;
pub use time::*;
pub use why::*;

/// All tables of texts.
pub const TABLES: &[&[Text]] =
    &[ALL, why::ALL, rules::ALL, running::ALL, time::ALL, errors::ALL, held::ALL, inside::ALL];

texts! {
    // Verdicts on a change.
    NO_VERDICT: "no verdict: {0}", "no verdict (판정 없음): {0}";
    ANSWER_UNREADABLE: "the lab cannot read the result of its measuring process: {0}", "측정 프로세스가 보낸 결과를 읽을 수 없습니다: {0}";
    NOT_COMPARABLE: "not comparable: {0}", "not comparable (비교할 수 없음): {0}";
    NO_ERRORS: "no errors in either: {0} before, {1} after", "no errors (오류 없음): 변경 전 {0}, 변경 후 {1}";
    ERRORS_BOUND: "0 of {0} (95 %: at most {1} %)", "{0}건 중 0건 (95 %: 최대 {1} %)";
    TRADE_OFF: "trade-off: {0} {1} but {2}: not an improvement", "trade-off (트레이드오프): {0} {1}, 그러나 {2}: 개선이 아닙니다";
    RECLASSIFIED: "errors only changed their kind: fewer {0}, but {1} in all", "reclassified (오류 종류만 바뀜): 줄어든 종류 {0}, 전체 오류 {1}";
    NEGLIGIBLE: "real but negligible: {0}", "negligible (차이는 있으나 무시할 수준): {0}";
    CLAIM: "{0} by {1} ({2} % CI), {3}, {4}", "{0}: {1} ({2} % 신뢰 구간), {3}, {4}";
    AS_EXPECTED: "as expected: the change has no effective difference ({0})", "as expected (예상대로): 이 변경으로 실제로 달라지는 것이 없습니다 ({0})";
    NO_DIFFERENCE: "no difference larger than {0} ({1})", "no difference (차이 없음): {0}보다 큰 차이가 없습니다 ({1})";
    INTERACTION: "interaction {0} ({1})", "interaction (상호작용): {0} ({1})";
    NO_INTERACTION: "no interaction larger than {0} ({1})", "no interaction (상호작용 없음): {0}보다 큰 상호작용이 없습니다 ({1})";
    INCONCLUSIVE: "inconclusive: {0}; smallest detectable now {1}{2}", "inconclusive (결론 없음): {0}; 지금 탐지할 수 있는 가장 작은 차이는 {1}입니다{2}";
    MORE_TO_DETECT: "; run {0}{1} to detect {2}", "; {2}를 탐지하려면 {0} 더 실행하세요{1}";
    ABOUT_MINUTES: " (≈ {0} min)", " (약 {0}분)";
    FASTER: "faster", "faster (빨라짐)";
    SLOWER: "slower", "slower (느려짐)";
    FEWER_ERRORS: "fewer errors", "fewer errors (오류 감소)";
    MORE_ERRORS: "more errors", "more errors (오류 증가)";
    CHEAPER: "cheaper", "cheaper (비용 감소)";
    DEARER: "dearer", "dearer (비용 증가)";

    // The basis of a verdict.
    PAIRS: "{0} pairs", "{0}쌍";
    DUETS: "{0} duets", "duet {0}회";
    ROUNDS: "{0} rounds", "{0}라운드";
    RUNS: "{0} and {1} runs", "실행 {0}회와 {1}회";
    MORE_PAIRS: "{0} more pairs", "{0}쌍";
    MORE_DUETS: "{0} more duets", "duet {0}회";
    MORE_ROUNDS: "{0} more rounds", "{0}라운드";
    MORE_RUNS: "{0} more runs of each", "각각 {0}회";
    TOO_FEW_RUNS: "there are {0} and {1} runs, and an interval needs {2} of each", "실행이 {0}회와 {1}회입니다. 구간을 구하려면 각각 {2}회가 필요합니다";
    ONE_RUN: "one run per arm", "설정마다 실행이 한 번뿐입니다";
    BEFORE_FIRST_LOOK: "{0}, and the first look is at {1}", "현재 {0}입니다. 첫 판정에는 {2} 이상이 필요합니다";

    // The condition of each verdict.
    WHEN_NO_VERDICT: "the lab cannot use the blocks, because of the load generator, the host or the stack", "부하 생성기, 호스트 또는 스택 때문에 블록을 쓸 수 없을 때";
    WHEN_NOT_COMPARABLE: "there are fewer pairs than an interval needs", "구간을 구하기에 쌍이 부족할 때";
    WHEN_NO_ERRORS: "the metric is errors, and neither configuration had an error", "오류를 비교하는데 양쪽 모두 오류가 없을 때";
    WHEN_TRADE_OFF: "the metric got better, and a guarded metric got worse", "지표는 좋아졌지만 함께 감시하는 지표가 나빠졌을 때";
    WHEN_RECLASSIFIED: "one kind of error became rarer, but the total of errors did not", "어떤 종류의 오류는 줄었지만 전체 오류는 줄지 않았을 때";
    WHEN_NEGLIGIBLE: "the interval excludes zero, and lies within the threshold", "구간에 0이 없지만 모두 기준값 안에 있을 때";
    WHEN_BETTER: "the interval excludes zero, in the better direction", "구간에 0이 없고 좋아지는 쪽일 때";
    WHEN_WORSE: "the interval excludes zero, in the worse direction", "구간에 0이 없고 나빠지는 쪽일 때";
    WHEN_AS_EXPECTED: "weir doctor says that the change has no effect, and the lab sees none", "weir doctor가 효과 없는 변경이라고 했고, 측정에서도 차이가 보이지 않을 때";
    WHEN_NO_DIFFERENCE: "the 90 % interval lies within the threshold: two one-sided tests at 5 %", "90 % 구간이 기준값 안에 있을 때 (5 % 수준의 단측 검정 두 번)";
    WHEN_INCONCLUSIVE: "otherwise", "그 밖의 경우";
    WHEN_POLICY: "the configuration refuses or delays so many requests on purpose that the lab cannot see another limit; the verdict names the statement, its line and its number", "설정이 의도적으로 거절하거나 지연시킨 요청이 너무 많아 다른 병목을 볼 수 없을 때. 판정은 해당 지시어와 줄, 횟수를 알려 줍니다";
    WHEN_PROVED: "good answers fall when the lab takes a part of the suspect away (elasticity surely above 0.3), rise when the lab adds to it (surely by 3 %, or by half of the few that failed), and do not fall when the lab takes from another resource (surely below 0.2)", "원인 후보의 자원을 줄이면 응답이 줄고(탄력도가 확실히 0.3 초과), 늘리면 응답이 늘며(확실히 3 % 이상, 실패가 적었다면 그 절반 이상), 다른 자원을 줄여도 응답이 줄지 않을 때(확실히 0.2 미만)";
    WHEN_SHARED: "good answers fall when the lab takes from any of two or more suspects (elasticity of each surely above 0.3), and rise when it adds to each", "원인 후보 둘 이상이 각각, 자원을 줄이면 응답이 줄고(탄력도가 확실히 0.3 초과) 늘리면 응답이 늘 때";
    WHEN_SUSPECTED: "a count, or the use of the suspect, points to it, but the lab has no proof: it did not squeeze the suspect, squeezing gave no clear result, or adding to the suspect changed nothing or was impossible", "횟수나 사용률이 이 원인 후보를 가리키지만 증명하지 못했을 때: 자원을 줄여 보지 않았거나, 줄여도 결과가 분명하지 않았거나, 늘려도 달라지지 않았거나, 늘릴 수 없었던 경우입니다";
    WHEN_UNATTRIBUTED: "a resource is at its limit and no rule names it, or squeezing excluded every suspect; the verdict says where the time went", "어떤 자원이 한도에 이르렀지만 해당하는 규칙이 없거나, 자원을 줄여 본 결과 모든 원인 후보가 제외되었을 때. 판정은 시간이 걸린 구간을 알려 줍니다";
    WHEN_NOT_SATURATED: "the stack answered the whole load in time: this figure is the load, not the capacity", "스택이 모든 부하에 제때 응답했을 때. 이 값은 부하이며 용량이 아닙니다";
    WHEN_WHY_NO_VERDICT: "the lab cannot use the blocks, because of the load generator, the host or the stack", "부하 생성기, 호스트 또는 스택 때문에 블록을 쓸 수 없을 때";
    VERDICT_HEADING: "verdict", "판정";
    WHEN_HEADING: "condition", "조건";

    // About blocks.
    TOO_FEW_REQUESTS: "{0} needs {1} requests in a block, and one block had {2}: use longer blocks (--block), more load, or another --metric", "{0}에는 블록마다 요청 {1}건이 필요한데 {2}건뿐인 블록이 있습니다: 블록을 늘리거나(--block), 부하를 늘리거나, 다른 --metric을 쓰세요";
    TOO_FEW_AT_RATE: "{0} needs {1} requests in a block, and --rate {2} for {3} s gives {4}: use --block {5}s, --rate {6}, or another --metric", "{0}에는 블록마다 요청 {1}건이 필요한데 --rate {2}(으)로 {3}초 동안 보내면 {4}건입니다: --block {5}s, --rate {6} 또는 다른 --metric을 쓰세요";
    TOO_FEW_FOR_OBJECTIVE: "{0} needs {1} requests in a block, and --rate {2} for {3} s gives {4}: use --block {5}s, --rate {6}, or a lower quantile in --slo", "{0}에는 블록마다 요청 {1}건이 필요한데 --rate {2}(으)로 {3}초 동안 보내면 {4}건입니다: --block {5}s, --rate {6} 또는 --slo에 더 낮은 분위수를 쓰세요";
    TOO_FEW_IN_SCRIPT: "{0} needs {1} requests in a block, and one run of the script gives {2}: use longer phases, or another --metric", "{0}에는 블록마다 요청 {1}건이 필요한데 스크립트를 한 번 실행하면 {2}건입니다: phase를 늘리거나 다른 --metric을 쓰세요";
    TOO_FEW_NEXT: "{0}\n  {1}", "{0}\n  {1}";
    SMALL_LOAD: "A small load: a block has about {0} requests, and {1} needs {2}; the lab compares {3}, whose interval is exact for few requests", "작은 부하: 블록의 요청이 약 {0}건인데 {1}에는 {2}건이 필요합니다. 요청이 적어도 구간이 정확한 {3}을(를) 비교합니다";
    WARM_UP_RAISED: "The warm-up sends {0} requests a second instead of {1}, so that the application has compiled its code before the lab measures it", "워밍업에서는 초당 {1}건이 아니라 {0}건을 보냅니다. 측정하기 전에 앱이 코드를 컴파일하게 하려는 것입니다";
    LEFT_OUT_METRICS: "Left out: {0}: a block needs {1} requests, and had at most {2}", "제외한 지표: {0}: 블록마다 요청 {1}건이 필요한데 최대 {2}건이었습니다";
    EXACT_SHARE: "Errors {0}: {1} of {2}; exact 95 % interval {3} to {4} % (Clopper and Pearson)", "오류({0}): {2}건 중 {1}건; 정확한 95 % 구간 {3} ~ {4} % (Clopper-Pearson)";
    EXACT_DIFFERENCE: "Errors, before against after, all requests: p = {0} (Fisher, mid-P)", "변경 전과 후의 오류, 전체 요청: p = {0} (Fisher, mid-P)";
    NEXT: "Next: {0}", "다음: {0}";
    NEXT_PAGE: "{0}   (this run as a page)", "{0}   (이 실행을 HTML 페이지로 저장)";
    NEXT_MORE_PAIRS: "{0}   (enough pairs for a conclusion)", "{0}   (결론을 낼 수 있을 만큼 쌍을 늘림)";
    NEXT_LONGER: "{0}   (longer blocks vary less)", "{0}   (블록을 늘리면 편차가 줄어듭니다)";
    NEXT_SMALL_LOAD: "{0}   (the mean needs fewer requests)", "{0}   (평균은 필요한 요청이 더 적습니다)";
    NEXT_WHEN_QUIET: "{0}   (again, when no other program uses these CPUs)", "{0}   (다른 프로그램이 이 CPU를 쓰지 않을 때 다시 실행)";
    NEXT_COMPARE: "{0}   (your change, in after.conf)", "{0}   (변경한 설정은 after.conf에)";
    NEXT_VERIFY: "{0}   (compares the file with the recommended line)", "{0}   (제안한 줄을 넣은 파일과 비교)";
    NEXT_CAPACITY: "{0}   (finds the largest rate)", "{0}   (최대 속도를 찾음)";
    NEXT_INSIDE: "{0}   (shows where the application's threads wait)", "{0}   (앱의 스레드가 기다리는 곳을 보여 줌)";
    NEXT_PROVE: "{0}   (squeezes the suspect)", "{0}   (원인 후보의 자원을 줄여 증명)";
    NEXT_CHANGED: "{0}   (again, after the change under \"try\")", "{0}   (\"제안\"의 변경을 적용한 뒤 다시 실행)";
    NEXT_WHY: "{0}   (the bottleneck just above this rate)", "{0}   (이 속도 바로 위의 병목을 찾음)";
    NEXT_CONNECTIONS: "{0}   (more connections)", "{0}   (연결을 늘림)";
    NEXT_USERS: "{0}   (more users)", "{0}   (사용자를 늘림)";
    NEXT_APPLY: "{0}   (writes the kept changes)", "{0}   (채택한 변경을 파일에 씀)";
    TOO_FEW_TO_PROVE: "--prove: a block of {0} s at --rate {1} has {2} requests, so one request is more than 1 %: use --block {3}s", "--prove: --rate {1}(으)로 {0}초 동안 보내면 블록의 요청이 {2}건이어서 1건이 1 %를 넘습니다: --block {3}s로 늘리세요";
    HALF_HAS_FEW: "Half of the load is {0} requests in a block, so one request is more than 1 %: --block {1}s is more exact", "절반의 부하에서는 블록의 요청이 {0}건이어서 1건이 1 %를 넘습니다: --block {1}s로 늘리면 더 정확합니다";
    FIRST_BLOCK_TELLS: "The first block shows the number of requests in a block: the load has no fixed rate", "부하의 속도가 정해져 있지 않아, 블록의 요청 수는 첫 블록을 실행한 뒤에 알 수 있습니다";
    SATURATED: "load generator saturated (core {0} %)", "부하 생성기가 포화되었습니다 (코어 {0} %)";
    LOAD_LIMIT: "load generator: {0}", "부하 생성기가 한도에 이르렀습니다 (가장 바쁜 코어 {1} %, 100건 중 1건은 {2} ms 이상 늦게 시작)";
    RAN_OUT: "the load generator ran out of a resource: {0}", "부하 생성기의 자원이 부족합니다: {0}";
    CORE_BUSY: "the load generator's CPU was {0} % busy: other work on this CPU, perhaps the origin, made requests wait", "부하 생성기가 쓰는 CPU의 사용률이 {0} %였습니다: 같은 CPU의 다른 작업(예: 오리진) 때문에 요청이 대기했습니다";
    LATE: "the load generator was late: one request in a hundred began {0} ms late or more", "부하 생성기가 늦었습니다: 요청 100건 중 1건이 {0} ms 이상 늦게 시작되었습니다";
    FOREIGN: "other work used {0} % of the CPUs (at most {1} %)", "다른 작업이 CPU의 {0} %를 썼습니다 (허용 {1} %)";
    CLIENT_LINK: "The client's link: {0}", "클라이언트의 링크: {0}";
    LINK_DROPPED: "the link of host {0} dropped {1} packets because its queue was full", "호스트 {0}의 링크가 큐가 가득 차 패킷 {1}개를 버렸습니다";
    STEAL: "the hypervisor took {0} % of the CPUs (steal, at most {1} %)", "하이퍼바이저가 CPU의 {0} %를 가져갔습니다 (steal, 허용 {1} %)";
    NOT_WARM: "not warmed up after {0} rounds: use a longer --warmup", "워밍업 {0}회 뒤에도 안정되지 않았습니다: --warmup을 늘리세요";
    INCOMPLETE: "{0}", "보내야 할 요청을 다 보내지 못했습니다: 모든 연결이 응답을 기다리고 있었거나(-c로 늘릴 수 있습니다) 부하가 중단되었습니다";
    TOO_FEW_TO_SAY: "{0} requests are too few for a result", "요청이 {0}건뿐이어서 결론을 낼 수 없습니다";
    DRIFTED: "{0} drifted by {1} %", "블록이 진행되는 동안 {0}이(가) {1} % 변했습니다";
    STEPPED: "{0} stepped by {1} % after {2} % of the block", "블록의 {2} % 지점에서 {0}이(가) {1} % 급변했습니다";
    THROUGHPUT: "throughput", "처리량";
    MEDIAN_LATENCY: "the median latency", "지연 중앙값";
    DUET_FULL: "duet: an edge used {0} % of its share of CPU (at most {1} %): use a lower --rate", "duet: 엣지가 자기 CPU 몫의 {0} %를 썼습니다 (허용 {1} %): --rate를 낮추세요";
    QUARTET_AGAIN: "the lab repeated the four blocks of its quartet", "이 블록이 속한 네 블록 묶음을 다시 실행했습니다";
    TIMES_IN_A_ROW: "{0} ({1} times in a row)", "{0} ({1}회 연속)";
    STOPPED: "stopped before its end", "끝나기 전에 중단되었습니다";
    NAMED: "{0}: {1}", "{0}: {1}";

    // Progress.
    LOAD_GOES: "Load goes to: only the processes that this lab starts (seed {0})", "부하 대상: 이 랩이 시작한 프로세스뿐입니다 (시드 {0})";
    TAKES: "Takes about {0}: {1} blocks of {2} s and {3} s of warm-up", "예상 소요 시간: 약 {0} (블록 {1}개, 각각 {2}초와 워밍업 {3}초)";
    TAKES_FROM_TO: "Takes about {0} to {1}: {2} to {3} blocks of {4} s and {5} s of warm-up", "예상 소요 시간: 약 {0}~{1} (블록 {2}~{3}개, 각각 {4}초와 워밍업 {5}초)";
    SECONDS: "{0} s", "{0}초";
    MINUTES: "{0} min", "{0}분";
    RUN_AGAIN: "The lab repeats an unusable block up to {0} times. {1}", "쓸 수 없는 블록은 {0}번까지 다시 실행합니다. {1}";
    TRIES_REMEDY: "If the remedy is a line of the file, the lab tries it in {0} pairs of blocks: about {1} s more", "제안하는 변경이 파일의 줄이면 블록 쌍 {0}개로 시험합니다: 약 {1}초 더 걸립니다";
    TRIES_NOTHING: "The lab does not try the remedy (--try)", "제안하는 변경을 시험하지 않습니다 (--try)";
    TRIES_NOTHING_AS: "The lab does not try the remedy: {0}", "제안하는 변경을 시험하지 않습니다: {0}";
    NO_ROOT: "without root: the lab cannot see the edge's own account and log, and cannot squeeze anything", "root 권한 없음: 엣지의 집계와 로그를 읽을 수 없고, 자원을 줄여 볼 수 없습니다";
    EXPECTED_NONE: "Expected: no difference: {0}", "예상: 차이 없음: {0}";
    PAIR: "pair {0} {1}", "{0}번째 쌍 {1}";
    ROUND: "round {0} of {1}, {2}", "{1}라운드 중 {0}번째, {2}";
    LOOK: "look at {0} pairs: {1}", "{0}쌍을 측정한 시점의 판정: {1}";
    TURN_NOT_USED: "{0}: not used: {1}", "{0}: 이 블록을 쓰지 않습니다: {1}";
    AGAIN_NOT_USED: "{0}, again: not used: {1}", "{0}, 재시도: 이 블록을 쓰지 않습니다: {1}";
    BLOCKS_DONE: "{0} of at most {1} blocks, {2}", "블록 최대 {1}개 중 {0}개 완료, {2}";
    BAR: "{bar:24} {pos}/{len} blocks  {msg}  {elapsed}, at most {eta} left", "{bar:24} 블록 {pos}/{len}  {msg}  {elapsed} 경과, 최대 {eta} 남음";
    NOBODY_WATCHES: "the lab cannot record its progress: {0}", "진행 상황을 기록할 수 없습니다: {0}";
    KEPT_AT: "Kept: {0}", "저장: {0}";
    SWEEP_UNKNOWN: "the lab cannot read the records of killed labs: {0}", "강제 종료된 랩의 기록을 읽을 수 없습니다: {0}";
    SWEPT: "removed {0}: a lab that has ended left it", "{0}을(를) 삭제했습니다: 종료된 랩이 남긴 디렉터리입니다";
    SWEPT_GROUP: "ended process group {0}: a lab that has ended left it", "프로세스 그룹 {0}을(를) 종료했습니다: 종료된 랩이 남긴 프로세스입니다";

    // The settings.
    LOAD_AT_RATE: "{0} at {1} a second over {2} connections", "{0}, 초당 {1}건, 연결 {2}개";
    LOAD_CLOSED: "{0} over {1} connections, as fast as the answers come", "{0}, 연결 {1}개, 응답을 받는 즉시 다음 요청";
    CHANGE: "{0} (in {1}): {2} → {3}", "{0} ({1} 안): {2} → {3}";
    CHANGE_AT_TOP: "{0}: {1} → {2}", "{0}: {1} → {2}";
    NONE: "none", "없음";

    // The report of a comparison.
    RUN: "Run {0} of {1}", "실행 {0}: {1}";
    RUN_OF_CONF: "Run {0} of {1} ({2})", "실행 {0}: {1} ({2})";
    RUN_OF_CONF_LOAD: "Run {0} of {1} ({2}), {3}", "실행 {0}: {1} ({2}), {3}";
    A_TWICE: "A, twice   {0}", "A, 두 번    {0}";
    A_BEFORE: "A, before  {0}", "A, 변경 전  {0}";
    B_AFTER: "B, after   {0}", "B, 변경 후  {0}";
    UNPAIRED: "Unpaired: the figures include other differences between the runs (Mann and Whitney, Hodges and Lehmann)", "쌍으로 묶지 않은 비교: 실행 사이의 다른 차이도 수치에 포함됩니다 (Mann-Whitney, Hodges-Lehmann)";
    OWN_NAMESPACES: "namespaces of its own", "전용 네임스페이스";
    PLAIN_PROCESSES: "plain processes", "일반 프로세스";
    EACH_BLOCK: "each", "블록마다";
    EACH_DUET: "duet: A and B at once, each with its share of the edge's CPUs;", "duet: A와 B를 동시에, 엣지 CPU를 같은 몫으로 나누어";
    EACH_QUARTET: "kept warm: each quartet, by reloads,", "엣지 유지: 네 블록 묶음마다, reload로 전환하며";
    BLOCKS_OF: "Blocks of {0} s, order by seed {1}; {2} in {3}; CPUs: edge {4}, client {5}, origin {6}", "블록 {0}초, 순서 시드 {1}; {2} {3}; CPU: 엣지 {4}, 클라이언트 {5}, 오리진 {6}";
    ORDER: "Order   {0}", "순서   {0}";
    FIGURES_OF: "{0} of {1}, {2}   {3}", "{1}의 {0}, {2}   {3}";
    BEFORE: "before", "변경 전";
    AFTER: "after", "변경 후";
    CHANGED: "change", "변화";
    INTERVAL: "interval", "구간";
    DETECTABLE: "detectable", "탐지 가능";
    SPREAD: "spread", "편차";
    FROM_TO: "{0} to {1}", "{0} ~ {1}";
    NO_ERRORS_OF: "Errors {0}: 0 of {1}; 95 % upper bound {2} %", "오류({0}): {1}건 중 0건; 95 % 상한 {2} %";
    DISPERSED: "Errors vary from block to block {0} times as much as by chance (φ)", "블록 사이의 오류 차이가 우연으로 설명되는 정도의 {0}배입니다 (φ)";
    NOT_USED: "Not used: {0} of pair {1}: {2}", "쓰지 않은 블록: {1}번째 쌍의 {0}: {2}";
    CAUTION_NOISY: "Caution: --noisy kept {0} of {1} blocks, although {2}", "주의: --noisy 때문에 블록 {1}개 중 {0}개를 제외하지 않고 썼습니다. 이유: {2}";
    CAUTION: "Caution: {0}", "주의: {0}";
    STOPPED_EARLY: "Stopped before its end", "끝나기 전에 중단되었습니다";
    THROTTLED: "The edge waited for its CPU quota in {0} of {1} periods", "엣지가 CPU 쿼터 때문에 주기 {1}개 중 {0}개에서 기다렸습니다";
    VERDICT: "Verdict: {0}", "판정: {0}";
    CALIBRATED: "Calibration: no false alarm", "보정: 거짓 경보가 없습니다";
    FALSE_ALARM: "Calibration: false alarm of {0}: this machine shows differences where there are none", "보정: {0}에서 거짓 경보가 났습니다: 이 머신에서는 차이가 없어도 차이가 나타납니다";

    // Reports of runs that another tool made.
    ELSEWHERE: "runs that were made elsewhere", "다른 곳에서 실행한 결과";
    ONE_RUN_BY: "1 run of {0}", "{0} 실행 1회";
    RUNS_BY: "{0} runs of {1}", "{1} 실행 {0}회";
    AND: "{0} and {1}", "{0} 및 {1}";
    ALONE: "{0} alone: {1}/s, 95 % {2} to {3}/s ({4})", "{0} 단독: 초당 {1}건, 95 % 구간 {2} ~ {3}건 ({4})";
    WITHIN: "within-run only; between-run variance unknown", "한 실행 안의 변동만 반영합니다. 실행 사이의 변동은 알 수 없습니다";

    // Capacity.
    OBJECTIVE: "{0} ≤ {1} ms and errors ≤ {2} %", "{0} ≤ {1} ms, 오류 ≤ {2} %";
    FEW_ANSWERED: "{1}/s sent, {0}/s answered", "초당 {1}건을 보냈지만 {0}건만 응답을 받았습니다";
    SHARE_FAILED: "{0} % failed", "{0} %가 실패했습니다";
    FEW_ANSWERS_FOR: "too few answers for {0}", "{0}에 필요한 응답이 부족합니다";
    RATE: "{0}/s", "초당 {0}건";
    RATE_TO_CONFIRM: "{0}/s, to confirm", "초당 {0}건, 재확인";
    USERS: "{0} users", "사용자 {0}명";
    TO_CONFIRM: "{0}, to confirm", "{0}, 재확인";
    AT_LEVEL: "{0} (at {1})", "{0} ({1}에서)";
    HELD_AT: "; {0} held", "; {0}은(는) 만족했습니다";
    NO_LEVEL: "nothing holds: not even {0} has {1}", "만족하는 값이 없습니다: {0}에서도 {1} 조건을 만족하지 못합니다";
    NO_LEVEL_DOWN_TO: "not even {0} has {1}: {2}; look at the stack at that rate (weir lab why), or measure on a machine without other work. Below it, {3}", "{0}에서도 {1} 조건을 만족하지 못합니다: {2}. 그 속도에서 스택을 살펴보거나(weir lab why) 다른 작업이 없는 머신에서 재세요. 그보다 낮으면 {3}";
    NO_LIMIT_AT: "no limit found: {0} still has {1}", "한도를 찾지 못했습니다: {0}에서도 {1} 조건을 만족합니다";
    CAPACITY_USERS: "capacity {0} users: the largest number with {1}, in {2} of {3} confirmations; they make {4} requests a second, each thinking {5} s", "capacity (용량) 사용자 {0}명: {1} 조건을 만족하는 최대 인원, 재확인 {3}회 중 {2}회 만족; 생각하는 시간 {5}초일 때 초당 요청 {4}건";
    THINKING: "Users      each asks, waits for the answer and thinks for {0} s", "사용자  각자 요청하고 응답을 받은 뒤 {0}초 동안 생각합니다";
    STEP_HOLDS: "{0}: holds", "{0}: 만족";
    STEP_FAILS: "{0}: fails: {1}", "{0}: 실패: {1}";
    HOLDS: "holds", "만족";
    FAILS: "fails: {0}", "실패: {0}";
    AT_RATE: "{0} (at {1}/s)", "{0} (초당 {1}건에서)";
    LONGEST_TOO_FEW: "{0} s have too few answers for {1}: longer blocks (--block)", "{0}초 동안의 응답으로는 {1}에 부족합니다: 블록을 늘리세요 (--block)";
    SCRIPT_TOO_FEW: "{0} s of the script have too few answers for {1}: a longer script", "스크립트의 {0}초 동안의 응답으로는 {1}에 부족합니다: 더 긴 스크립트를 쓰세요";
    HELD: "; {0}/s held", "; 초당 {0}건은 만족했습니다";
    NO_VERDICT_BUT: "no verdict: {0}{1}", "no verdict (판정 없음): {0}{1}";
    CAPACITY: "capacity {0}/s: the largest rate with {1}, in {2} of {3} confirmations{4}", "capacity (용량) 초당 {0}건: {1} 조건을 만족하는 최대 속도, 재확인 {3}회 중 {2}회 만족{4}";
    HALF: "; half of all tries pass at {0}/s (95 % CI {1}–{2}/s)", "; 시도의 절반이 통과하는 속도는 초당 {0}건입니다 (95 % 신뢰 구간 {1}–{2}건)";
    NO_RATE: "no rate holds: not even 1/s has {0}", "만족하는 속도가 없습니다: 초당 1건에서도 {0} 조건을 만족하지 못합니다";
    NO_LIMIT: "no limit found: {0}/s still has {1}", "한도를 찾지 못했습니다: 초당 {0}건에서도 {1} 조건을 만족합니다";
    MIXED: "no verdict: after {0} tries, some rates that fail lie below rates that hold{1}: longer blocks (--block)", "no verdict (판정 없음): {0}번 시도했지만, 실패한 속도 중에 만족한 속도보다 낮은 속도가 있습니다{1}: 블록을 늘리세요 (--block)";
    OBJECTIVE_LINE: "Objective  {0}", "목표  {0}";
    CONFIRMATION: " (confirmation)", " (재확인)";
    LAW: "Scalability law: σ {0}, κ {1}; {2}", "확장성 법칙(USL): σ {0}, κ {1}; {2}";
    PEAK: "peak at {0} in flight{1}", "동시 요청 {0}개에서 최대{1}";
    PEAK_ENDS: " (95 %: {0} to {1})", " (95 %: {0} ~ {1})";
    BEYOND: "beyond 1.5 times what was measured", "측정 범위의 1.5배 밖";
    NO_PEAK: "no peak in what was measured; extrapolation beyond 1.5 times its range is suppressed", "측정 범위 안에 최댓값이 없습니다. 범위의 1.5배를 넘는 외삽은 하지 않습니다";

    // The rate that a machine bears.
    PACE_OF: "how fast {0} can answer", "{0}의 최대 응답 속도";
    PACE_BROKEN: "{0} cannot be measured: {1}", "{0}을(를) 측정할 수 없습니다: {1}";
    PACE_NONE: "{0} answers hardly any request well: {2} of {1} failed ({3})", "{0}이(가) 제대로 응답하는 요청이 거의 없습니다: {1}건 중 {2}건 실패 ({3})";

    // Trying one setting after another.
    KNOB: "Knob {0}", "시험할 설정: {0}";
    EVERYTHING_KEPT: "everything kept", "채택한 설정 전부";
    CUT_BY_TRIES: "{0} knobs were tried: --tries asks for more", "설정 {0}개를 시험했습니다: 더 시험하려면 --tries를 늘리세요";
    POINTLESS: "nothing to expect: {0}", "기대할 효과 없음: {0}";
    TUNED: "{0} of {1} knobs kept ({2}); {3}", "설정 {1}개 중 {0}개를 채택했습니다 ({2}); {3}";
    TOGETHER: "together: {0}", "함께 적용한 결과: {0}";
    TOGETHER_UNMEASURED: "together: not measured", "함께 적용한 결과는 측정하지 않았습니다";
    NOTHING_KEPT: "nothing kept: {0}", "채택한 설정이 없습니다: {0}";
    NOTHING_TO_TRY: "no rule recommends anything that could be tried here", "여기서 시험할 만한 것을 권하는 규칙이 없습니다";
    NONE_HELPS: "{0} of {1} knobs kept: none is shown to help", "설정 {1}개 중 {0}개 채택: 효과가 입증된 설정이 없습니다";
    ASKED_FOR: "asked for", "사용자가 지정함";
    KEPT: "kept", "채택";
    DROPPED: "dropped", "제외";
    TRY_RUN: "  (run {0})", "  (실행 {0})";
    WRITE_IT: "To write it: weir lab apply {0}    to undo: weir lab undo {0}", "파일에 쓰려면: weir lab apply {0}    되돌리려면: weir lab undo {0}";
    WRITTEN: "Written. To undo: weir lab {0} {1}. To apply: nginx -t && nginx -s reload", "파일에 썼습니다. 되돌리려면: weir lab {0} {1}. 적용하려면: nginx -t && nginx -s reload";

    // Several changes at once.
    NOTHING: "nothing", "변경 없음";
    WITH: "{0} with {1}", "{0} + {1}";
    NO_ROUND: "no round is whole", "온전히 끝난 라운드가 없습니다";
    FROM: "From       {0} ({1})", "기준       {0} ({1})";
    FACTOR: "Factor     {0}", "요인       {0}";
    COMBINATIONS: "{0} combinations, {1} rounds in an order by seed {2}; blocks of {3} s", "조합 {0}개, {1}라운드, 순서 시드 {2}; 블록 {3}초";
    FIGURE_WITH: "{0} with {1}", "{0}, {1}";
    INTERACTION_OF: "interaction of {0}", "상호작용 {0}";
    EACH_INTERVAL: "Each interval is a {0} % one, so that all of them together are 95 %", "각 구간의 신뢰 수준은 {0} %이며, 모두 함께 95 %입니다";

    // Experiments as data.
    LAB: "Lab {0}: {1}", "실험 {0}: {1}";
    EXPECTED: "  expected: {0}", "  예상: {0}";
    MEASURED: "    measured: {0}", "    측정: {0}";
    JUDGED: "    {0}: {1}: {2} (wanted: {3})", "    {0}: {1}: {2} (기준: {3})";
    LAB_HOLDS: "holds", "holds (일치)";
    LAB_FAILS: "FAILS", "FAILS (불일치)";
    LAB_EXCUSED: "not judged, because of --noisy", "--noisy 때문에 판정하지 않음";
    FAILS_IN: "          FAILS {0}{1}: {2} (wanted: {3})", "          FAILS (불일치) {0}{1}: {2} (기준: {3})";
    ALL_HOLD: "all {0} expectations hold", "예상 {0}건이 모두 맞았습니다";
    HOLD_OR_EXCUSED: "{0} expectations hold, and {1} were not judged because of --noisy", "예상 {0}건이 맞았고, {1}건은 --noisy 때문에 판정하지 않았습니다";
    SOME_FAIL: "{0} of {1} expectations do not hold", "예상 {1}건 중 {0}건이 맞지 않았습니다";
    COUNT_HOLDS: "{0} of {1} holds", "{1}건 중 {0}건 일치";
    NOT_MEASURED: "not measured: {0}", "측정되지 않음: {0}";
    VARIANT_NOT_RUN: "variant {0} was not run", "변형 {0}: 실행되지 않았습니다";
    NOT_COMPARED: "not compared", "비교하지 않음";
    OR: "{0} or {1}", "{0} 또는 {1}";
    VARIANT_PAIR: "{0}, pair {1}", "{0}, {1}번째 쌍";
    LEFT_OUT: "Lab {0}: left out, {1}", "실험 {0}: 건너뜀, {1}";
    NOT_INSTALLED: "not installed here: {0}", "설치되어 있지 않음: {0}";
    WITHIN_OVER: "the time of --within ({0}) is over", "--within으로 정한 시간({0})이 지났습니다";
    LAB_OF: "{0} of {1}: {2}: {3}", "실험 {1}개 중 {0}번째: {2}: {3}";
    LABS_DONE: "{0} of {1} experiments, {2} min {3} s", "실험 {1}개 중 {0}개 완료, {2}분 {3}초";
    ANSWERS: "answers", "응답";
    WORST: "worst", "최대";
    FAILED: "failed", "실패";
    EDGE_CPU_EACH: "edge CPU each", "요청당 엣지 CPU";

    // Pages.
    PAGE_LIMITS: "Limits, and the most that a block used of them", "한도와 블록에서 가장 많이 쓴 값";
    PAGE_USED: "used", "사용";
    PAGE_LIMIT: "limit", "한도";
    PAGE_OF_THEM: "of them", "비율";
    EDGE_CPUS: "the edge's CPUs", "엣지의 CPU";
    GENERATOR_CPU: "the load generator's CPU, used by any process", "부하 생성기의 CPU (모든 프로세스의 사용량)";
    OTHER_WORK: "the share of these CPUs that other work may use", "다른 작업에 허용되는 CPU";
    HOST_MAY_TAKE: "the share of the CPUs that the hypervisor may take (steal)", "하이퍼바이저에 허용되는 CPU (steal)";
    PAGE_ALONE: "A configuration beside itself", "같은 설정끼리 비교 (A/A)";
    PAGE_CAPACITY: "Capacity", "용량";
    PAGE_WHY: "What limits", "병목";
    PAGE_TUNE: "One knob after another", "설정을 하나씩 시험";
    PAGE_FACTORIAL: "Several changes, with separate effects", "여러 변경을 구분해서 비교";
    PAGE_ELSEWHERE: "Reports of runs that another tool made", "다른 곳에서 실행한 결과 비교";
    PAGE_AB: "Before and after", "변경 전과 후";
    PAGE_FOREST: "Change from A to B, with its interval", "A에서 B로의 변화와 그 구간";
    PAGE_BLOCKS: "{0} of each block ({1}, at most {2}); beneath, answers a second within it", "블록별 {0} ({1}, 최대 {2}); 아래는 블록 안의 초당 응답";
    PAGE_BLOCK: "{0}, pair {1}: {2} {3}", "{0}, {1}번째 쌍: {2} {3}";
    PAGE_LOAD: "load: {0} · seed {1}", "부하: {0} · 시드 {1}";
    PAGE_DETECTABLE: "smallest detectable", "탐지 가능한 최소 변화";
    PAGE_EVIDENCE: "Evidence", "근거";
    PAGE_REMEDY: "Remedy", "해결 방법";
    PAGE_KNOB: "knob", "설정";
    PAGE_RUN: "run", "실행";
    PAGE_CHANGE: "{0}: {1} % ({2} to {3} %)", "{0}: {1} % ({2} ~ {3} %)";
    PAGE_FAILS: "{0}, fails", "{0}, 불일치";
    PAGE_NOT_ASKED: "not asked", "확인하지 않음";
    PAGE_FIGURES: "Figures", "수치";
    PAGE_EXPECTED: "Expected and measured", "예상과 측정";
    PAGE_VARIANT: "variant", "변형";
    PAGE_EXPECTATION: "expected", "예상";
    PAGE_WANTED: "wanted", "기준";
    PAGE_EDGE: "edge", "엣지";
    PAGE_ANSWERS: "Answers a second", "초당 응답";
    PAGE_ANSWERS_LOG: "Answers a second; a bar is as long as the logarithm, from {0}", "초당 응답; 막대의 길이는 {0}부터의 로그입니다";
    PAGE_STRIP_TO: "{0}, to {1}/s", "{0}, 최대 초당 {1}건";
    PAGE_STRIPS: "Answers a second, from the beginning of a block to its end", "블록의 처음부터 끝까지의 초당 응답";
    PAGE_LAB_LIMITS: "Limits, and the most that was used of them", "한도와 가장 많이 쓴 값";
    PAGE_FULLEST: "{0} at {1} %", "{0} {1} %";
    PAGE_SIDES: "{0}: A is {1}, B is {2}", "{0}: A는 {1}, B는 {2}";
    PAGE_FOOT: "weir {0} · {1} CPUs · Linux {2} · seed {3} · run {4}", "weir {0} · CPU {1}개 · Linux {2} · 시드 {3} · 실행 {4}";
    PAGE_TERMINAL: "As a terminal shows it", "터미널에 표시되는 내용";
    PAGE_MADE_BY: "made by weir lab", "weir lab에서 만듦";
    METRIC_THROUGHPUT: "answers a second", "초당 응답";
    METRIC_MEAN: "the mean answer within", "응답 시간 평균";
    METRIC_P50: "half of the answers within", "p50: 응답의 절반이 이 안에 끝남";
    METRIC_P95: "95 % of the answers within", "p95: 응답의 95 %가 이 안에 끝남";
    METRIC_P99: "99 % of the answers within", "p99: 응답의 99 %가 이 안에 끝남";
    METRIC_ERRORS: "failed requests", "실패한 요청";
    METRIC_CPU: "CPU of the edge for a request", "요청당 엣지 CPU";
    METRIC_APP_CPU: "CPU of the application for a request", "요청당 앱 CPU";
}
