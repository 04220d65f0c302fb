//! The texts about mistakes in a script, and about its plan. The English words that begin Artillery's own messages are
//! Artillery's.

weir_words::texts! {
    // Parts that several messages share.
    ERROR: "Error: {0}", "오류: {0}";
    AT: "  at {0}", "  위치: {0}";
    NEAR: "; did you mean `{0}`?", ". 비슷한 이름: `{0}`";
    NEAR_PLAIN: "did you mean {0}?", "비슷한 이름: {0}";
    MORE_WARNINGS: "and {0} more warnings", "그 밖의 경고 {0}건";
    BARE_FRACTION:
        "weir reads a fraction without a unit as seconds; Artillery 2 reads it as milliseconds or refuses it: write a unit (\"0.5s\"), so that both read the same",
        "단위가 없는 소수를 weir는 초로 읽습니다. Artillery 2는 밀리초로 읽거나 거절합니다. 둘이 같게 읽도록 단위를 쓰세요(\"0.5s\")";

    // Files.
    UNKNOWN_TYPE:
        "Unknown file type {0}\nOnly JSON (.json), YAML (.yml/.yaml) and TypeScript (.ts) files are supported\nError: Unknown file type",
        "알 수 없는 파일 형식입니다: {0}\nJSON(.json), YAML(.yml/.yaml), TypeScript(.ts) 파일만 쓸 수 있습니다";
    NOT_UTF8: "{0}: this file is not UTF-8 text", "{0}: 이 파일은 UTF-8 텍스트가 아닙니다";
    TOO_LARGE: "{0} is larger than the {1} bytes that weir reads", "{0}: 읽을 수 있는 크기({1}바이트)를 넘습니다";
    NO_SUCH_FILE: "ENOENT: no such file or directory, open '{0}'", "ENOENT: 파일이 없습니다: '{0}'";
    NOT_PERMITTED: "EACCES: permission denied, open '{0}'", "EACCES: 파일을 읽을 권한이 없습니다: '{0}'";
    IS_DIRECTORY: "EISDIR: illegal operation on a directory, read", "EISDIR: 파일이 아니라 디렉터리입니다";
    NOT_OPENED: "{0}, open '{1}'", "'{1}' 파일을 열 수 없습니다: {0}";

    // YAML.
    NOT_YAML: "this is not YAML: {0}", "YAML이 아닙니다: {0}";
    TAB: "this is not YAML: a tab indents this line; indent with spaces", "YAML이 아닙니다: 이 줄을 탭으로 들여 썼습니다. 공백으로 들여 쓰세요";
    SECOND_DOCUMENT: "a second document begins here; a script is one document: write two files", "여기서 두 번째 문서가 시작됩니다. 스크립트는 문서 하나여야 하므로 파일을 둘로 나누세요";
    TOO_MANY_VALUES: "with its aliases expanded, the script has more than {0} values; weir cannot use it", "별칭을 펼치면 스크립트의 값이 {0}개를 넘어 쓸 수 없습니다";
    TOO_DEEP: "lists and objects are nested more than {0} deep", "목록과 객체가 {0}단계보다 깊게 중첩되어 있습니다";
    NEEDS_VALUE: "this place needs a value", "여기에 값이 필요합니다";
    ALIAS_INSIDE: "this alias stands inside the value that it names", "이 별칭은 자신이 가리키는 값 안에 있습니다";
    NO_ANCHOR: "no anchor has this name", "이런 이름의 앵커가 없습니다";
    TWICE: "the key `{0}` stands here twice; keep one", "키 `{0}`이(가) 두 번 있습니다. 하나만 남기세요";
    IS_NO: "`{0}` is no {1}", "`{0}`: {1} 형식의 값이 아닙니다";
    UNKNOWN_TAG: "unknown tag !<{0}{1}>; leave it out", "알 수 없는 태그입니다: !<{0}{1}>. 태그를 빼세요";
    MERGE_SOURCE:
        "cannot merge mappings; the provided source object is unacceptable: `<<` needs an object, or a list of objects",
        "합칠 수 없는 값입니다. `<<`에는 객체나 객체의 목록이 필요합니다";

    // The shape of a script.
    NO_OBJECT: "a script must be an object with `config` and `scenarios`; this file is not", "스크립트는 `config`와 `scenarios`가 있는 객체여야 하지만 이 파일은 아닙니다";
    INVALID: "Scenario validation error: \"{0}\" {1}", "스크립트 검증 오류: \"{0}\" {1}";
    IS_REQUIRED: "is required", "항목이 필요합니다";
    MUST_BE_OBJECT: "must be of type object", "값은 객체여야 합니다";
    MUST_BE_LIST: "must be an array", "값은 목록이어야 합니다";
    NOT_EMPTY: "is not allowed to be empty", "값은 비워 둘 수 없습니다";
    MUST_BE_TEXT: "must be a string", "값은 문자열이어야 합니다";
    MUST_BE_FLAG: "must be a boolean", "값은 true나 false여야 합니다";
    MUST_BE_NUMBER: "must be a number", "값은 수여야 합니다";
    ONE_OF: "must be one of {0}", "값은 다음 중 하나여야 합니다: {0}";
    ONE_KEY: "must have 1 key", "스텝에는 키를 하나만 쓰세요";
    FOUR_KEYS: "must have less than or equal to 4 keys", "스텝에는 키를 4개까지 쓸 수 있습니다";

    // Keys.
    UNSUPPORTED: "weir does not support `{0}`: {1}", "지원하지 않는 키입니다: `{0}`. {1}";
    NO_EFFECT: "`{0}` has no effect: {1}", "`{0}` 키는 효과가 없습니다. {1}";
    UNKNOWN_KEY: "`{0}` is not a key of `{1}`, so it has no effect{2}", "`{0}`: `{1}`에 없는 키이므로 효과가 없습니다{2}";
    NO_STEP: "`{0}` is not a step{1}", "`{0}`: 그런 스텝이 없습니다{1}";
    UNKNOWN_STEP: "weir knows no step `{0}`{1}", "`{0}`: 그런 스텝이 없습니다{1}";
    OWN_METHOD: "`{0}` is not a step, so this is a request with the method {1}{2}", "`{0}`: 그런 스텝이 없으므로 메서드가 {1}인 요청으로 보냅니다{2}";
    NOT_IN_THIS_STEP: "`{0}` has no effect in this step{1}", "`{0}`: 이 스텝에서는 효과가 없습니다{1}";
    EMPTY_STEP: "this step is empty", "빈 스텝입니다";

    // The processing of `config`.
    NO_TARGET: "Error: No target specified and no environment chosen", "오류: target을 지정하지 않았고 environment도 선택하지 않았습니다";
    NO_ENVIRONMENT: "WARNING: environment {0} is set but is not defined in the script", "경고: 스크립트에 environment {0}이(가) 정의되어 있지 않습니다";
    SHORT_LIST:
        "`{0}` of this environment has {1} of {2} entries: weir merges lists entry by entry (as in Artillery), so the later entries of `config.{0}` stay",
        "이 environment의 `{0}`에는 항목 {2}개 중 {1}개만 있습니다. 목록은 (Artillery처럼) 항목별로 합치므로 `config.{0}`의 나머지 항목은 그대로 남습니다";
    TLS_OVERRIDDEN:
        "WARNING: TLS certificate validation enabled in the test script, but explicitly disabled with -k/--insecure.",
        "경고: 스크립트는 TLS 인증서를 검증하게 되어 있지만 -k/--insecure로 검증을 껐습니다.";
    PAYLOAD_TWICE:
        "WARNING - both -p and config.payload.path are set, config.payload.path will be ignored.",
        "경고: -p와 config.payload.path가 모두 있어 config.payload.path는 무시합니다.";
    NO_PAYLOAD:
        "WARNING: config.payload.path not set and payload file not specified with -p",
        "경고: config.payload.path가 없고 -p로 지정한 payload 파일도 없습니다";
    PAYLOAD_IGNORED: "Ignoring config.payload, not an object or an array.", "config.payload가 객체도 목록도 아니므로 무시합니다.";
    PROCESSOR_PLACE:
        "WARNING - config.processor is now resolved relative to the config file",
        "경고: config.processor의 경로는 설정 파일을 기준으로 찾습니다";
    PROCESSOR_EXPECTED: "Expected to find file at: {0}", "파일이 있어야 하는 위치: {0}";
    FLAG_NOT_JSON: "Error: {0}: {1}", "오류: {0}: {1}";
    FLAG_NO_OBJECT: "Error: {0} takes a JSON object", "오류: {0}에는 JSON 객체를 쓰세요";
    NO_DOTENV: "WARNING: could not read dotenv file: {0}", "경고: dotenv 파일을 읽을 수 없습니다: {0}";
    NO_VALUE_YET:
        "`{0}` has no value yet when weir reads `config`, so it becomes undefined here (as in Artillery): write it in the scenario, or set it with -v",
        "`config`를 읽을 때는 `{0}`의 값이 아직 없으므로 여기서는 undefined가 됩니다(Artillery와 같음). 시나리오에 쓰거나 -v로 값을 지정하세요";
    NO_VARIABLES: "`variables` must be an object of names and values", "`variables`는 이름과 값의 객체여야 합니다";
    NO_PROCESSOR:
        "the processor {0} does not exist: weir looks for it beside the script, or beside the config file if -c names one",
        "processor 파일이 없습니다: {0}. 스크립트와 같은 위치, 또는 -c로 지정한 설정 파일과 같은 위치에서 찾습니다";
    TEXT_HERE: "write a text here, not a list or an object", "여기에는 목록이나 객체가 아니라 텍스트를 쓰세요";
    NOT_SECONDS: "`{0}` is not a number of seconds", "`{0}`: 초를 나타내는 수가 아닙니다";
    NOT_CONNECTIONS: "`{0}` is not a number of connections", "`{0}`: 연결 수가 아닙니다";
    PREFIX_SECURITY:
        "`prefixSecurity` must be `silent`, `strict` or `unsafe-disabled`; weir uses `silent`",
        "`prefixSecurity`는 `silent`, `strict`, `unsafe-disabled` 중 하나여야 합니다. `silent`로 실행합니다";
    THROUGH_PROXY:
        "weir sends requests through the proxy of the environment (HTTP_PROXY, HTTPS_PROXY): {0}",
        "환경 변수(HTTP_PROXY, HTTPS_PROXY)의 프록시를 거쳐 요청을 보냅니다: {0}";
    PLUGIN_NOT_LISTED:
        "`config.{0}` does nothing (as in Artillery 2) unless `config.plugins` lists `{0}: {}`",
        "`config.plugins`에 `{0}: {}`가 없으면 `config.{0}`은(는) 효과가 없습니다(Artillery 2와 같음)";
    NO_PLUGIN:
        "WARNING: Could not load plugin: {0} (weir loads no plugins from npm; the run goes on without it)",
        "경고: 플러그인을 읽지 못했습니다: {0} (npm의 플러그인은 쓰지 않습니다. 플러그인 없이 실행을 계속합니다)";
    TOO_MANY_REPORTERS: "the script names {0} reporters; weir sends to the first {1} only", "스크립트에 reporter가 {0}개 있지만 처음 {1}개에만 보냅니다";

    // Payloads.
    TOO_MANY_PAYLOADS: "more than {0} payloads", "payload가 {0}개를 넘습니다";
    NO_PATH: "this payload has no `path`: write the name of a CSV file, or give it with -p", "이 payload에 `path`가 없습니다. CSV 파일의 이름을 쓰거나 -p로 지정하세요";
    PAYLOAD_UNREADABLE: "weir cannot read this payload: {0}", "이 payload를 읽을 수 없습니다: {0}";
    NO_ROWS: "this payload has no rows, so its fields are undefined", "이 payload에 행이 없어 필드의 값이 undefined입니다";
    NO_NAME: "WARNING: loadAll is set to true but no name is provided for the CSV data", "경고: loadAll이 true이지만 CSV 데이터의 name이 없습니다";
    LOAD_ALL_ORDER:
        "with `order`, `loadAll` gives one row at a time (as in Artillery); remove `order` to get all rows",
        "`order`가 있으면 `loadAll`은 한 번에 한 행만 줍니다(Artillery와 같음). 모든 행을 얻으려면 `order`를 지우세요";
    CSV_OPTION: "weir does not support `{0}` of csv-parse; it supports: {1}", "지원하지 않는 csv-parse 옵션입니다: `{0}`. 지원하는 옵션: {1}";
    RECORD_LENGTH: "Invalid Record Length: expect {0}, got {1} on line {2}", "{2}행의 필드 수가 맞지 않습니다: {0}개여야 하지만 {1}개입니다";
    OPENING_QUOTE: "Invalid Opening Quote: a quote is found inside a field at line {0}", "{0}행의 필드 안에 따옴표가 있습니다";
    CLOSING_QUOTE:
        "Invalid Closing Quote: got \"{0}\" at line {1} instead of delimiter, record delimiter, trimable character (if activated) or comment",
        "{1}행의 닫는 따옴표 뒤에 구분자나 줄 끝이 아니라 \"{0}\" 문자가 있습니다";
    AFTER_QUOTE: "Invalid Closing Quote: found non trimable byte after quote at line {0}", "{0}행의 닫는 따옴표 뒤에 공백이 아닌 문자가 있습니다";
    OPEN_QUOTE: "Quote Not Closed: the parsing is finished with an opening quote at line {0}", "{0}행에서 파일이 끝났지만 따옴표가 닫히지 않았습니다";
    ONE_CHARACTER: "this must be one ASCII character", "ASCII 문자 하나를 쓰세요";

    // Phases.
    TOO_MANY_PHASES: "more than {0} phases", "단계가 {0}개를 넘습니다";
    NOBODY_ARRIVES: "no virtual user arrives in any phase", "어느 단계에도 도착하는 가상 사용자가 없습니다";
    PHASE_NO_OBJECT: "a phase must be an object, for example `duration: 60` and `arrivalRate: 5`", "단계는 객체여야 합니다. 예: `duration: 60`, `arrivalRate: 5`";
    UNKNOWN_PHASE:
        "Unknown phase spec definition, skipping: write `arrivalRate`, `arrivalCount` or `pause`",
        "알 수 없는 단계이므로 건너뜁니다. `arrivalRate`, `arrivalCount`, `pause` 중 하나를 쓰세요";
    NO_DURATION: "this phase has no `duration`: write the number of seconds", "이 단계에 `duration`이 없습니다. 초를 쓰세요";
    BAD_LENGTH:
        "Invalid {0} for phase: {1}: write seconds (60), or a number with a unit (\"5m\", \"90s\", \"500ms\")",
        "단계의 {0} 값이 잘못되었습니다: {1}. 초(60)나 단위가 있는 수(\"5m\", \"90s\", \"500ms\")를 쓰세요";
    BAD_RATE: "`{0}: {1}` is not a number between 0 and {2}", "`{0}: {1}`: 0부터 {2}까지의 수를 쓰세요";
    BAD_MODE: "`mode: {0}` is neither `uniform` nor `poisson`", "`mode: {0}`: `uniform`이나 `poisson`을 쓰세요";

    // Scenarios.
    NO_SCENARIO:
        "Error: Scenario {0} not found in script. Make sure your chosen scenario matches the one in your script exactly.{1}",
        "오류: 스크립트에 시나리오 {0}이(가) 없습니다. 이름이 스크립트의 이름과 정확히 같은지 확인하세요.{1}";
    SEVERAL_SCENARIOS:
        "Error: Multiple scenarios for {0} found in script. Make sure you give unique names to your scenarios in your script.",
        "오류: 스크립트에 {0}에 맞는 시나리오가 여러 개 있습니다. 시나리오마다 다른 이름을 쓰세요.";
    NEAR_SCENARIO: "\nDid you mean `{0}`?", "\n비슷한 이름: `{0}`";
    SCENARIOS_ARE: "\nThere are: {0}", "\n시나리오 목록: {0}";
    UNKNOWN_ENGINE: "Error: Failed to run {0}: unknown engine \"{1}\".{2}\n{3}", "오류: {0}을(를) 실행할 수 없습니다. 알 수 없는 엔진입니다: \"{1}\".{2}\n{3}";
    SCENARIO_NAMED: "scenario \"{0}\"", "\"{0}\" 시나리오";
    HOOK_NAMED: "{0} hook", "{0} 훅";
    FORGOT_ENGINE: " Did you forget to include it in \"config.engines.{0}\"?", " \"config.engines.{0}\"에 넣었는지 확인하세요.";
    NO_BROWSER: "weir has no browser: run this scenario with Artillery", "weir에는 브라우저가 없습니다. 이 시나리오는 Artillery로 실행하세요";
    ENGINE_IS_WS: "the engine's name is `ws`", "이 엔진의 이름은 `ws`입니다";
    ENGINE_IS_SOCKETIO:
        "write `engine: socketio`: weir's engine supports the protocol of Socket.IO 3 and 4 and needs no `config.engines`",
        "`engine: socketio`를 쓰세요. weir의 엔진은 Socket.IO 3과 4의 프로토콜을 지원하며 `config.engines`가 필요 없습니다";
    ENGINE_IS_V3: "weir runs `socketio-v3` with its engine `socketio`, which speaks the protocol of Socket.IO 3 and 4", "`socketio-v3`는 weir의 엔진 `socketio`로 실행합니다. 이 엔진은 Socket.IO 3과 4의 프로토콜을 지원합니다";
    ENGINES_ARE: "weir has the engines `http`, `ws` and `socketio`; engines from npm need Artillery", "weir의 엔진은 `http`, `ws`, `socketio`입니다. npm의 엔진은 Artillery에서만 쓸 수 있습니다";
    ALL_WEIGHTS_ZERO: "weir can pick no scenario: all have the weight 0", "모든 시나리오의 weight가 0이어서 고를 수 있는 시나리오가 없습니다";
    HTTP_ONLY: "weir calls `{0}` only in scenarios of the http engine (as in Artillery)", "`{0}`은(는) http 엔진의 시나리오에서만 호출합니다(Artillery와 같음)";
    HTTP3_URL: "HTTP/3 has no http://; write https://, or http2: false for a step over HTTP/1.1", "HTTP/3에는 http://가 없습니다. https://로 쓰거나, HTTP/1.1로 보낼 스텝에는 http2: false를 쓰세요";
    HTTP3_ENGINE: "the engine {0} has no HTTP/3; move this scenario to a script without config.http.http3", "엔진 {0}은(는) HTTP/3를 지원하지 않습니다. 이 시나리오를 config.http.http3가 없는 스크립트로 옮기세요";
    HTTP3_PROXY: "HTTP/3 does not go through a proxy ({0}); name the target's host in NO_PROXY", "HTTP/3는 프록시({0})를 거치지 않습니다. 대상 호스트를 NO_PROXY에 쓰세요";
    HTTP3_OR_HTTP2: "a script speaks HTTP/2 or HTTP/3; remove http2 or http3", "스크립트는 HTTP/2와 HTTP/3 중 하나만 씁니다. http2나 http3를 지우세요";
    HOOK_ENGINE: "Artillery's own tests do not cover `{0}` with an engine other than http", "http가 아닌 엔진의 `{0}`은(는) Artillery의 테스트에도 없는 사용법입니다";

    // Steps.
    NO_WS_STEP:
        "the ws engine has no such step, so its virtual users fail here with `invalid_step` (as in Artillery)",
        "ws 엔진에 없는 스텝이므로 가상 사용자가 여기서 `invalid_step`으로 실패합니다(Artillery와 같음)";
    BAD_THINK: "virtual users fail here with `Invalid think time: {0}`: write seconds, or \"500ms\"", "가상 사용자가 여기서 `Invalid think time: {0}` 오류로 실패합니다. 초나 \"500ms\" 같은 값을 쓰세요";
    BAD_JITTER:
        "`jitter` must be milliseconds (500) or a percentage (\"20%\"); this value is neither, and has no effect",
        "`jitter`는 밀리초(500)나 백분율(\"20%\")이어야 합니다. 이 값은 둘 다 아니므로 효과가 없습니다";
    LOOP_NO_LIST: "`loop` must be a list of steps", "`loop`는 스텝의 목록이어야 합니다";
    WHILE_NO_PROCESSOR:
        "`whileTrue` names a function, but there is no `config.processor`: weir ignores `whileTrue` (as in Artillery)",
        "`whileTrue`에 함수의 이름이 있지만 `config.processor`가 없어 `whileTrue`를 무시합니다(Artillery와 같음)";
    ENDLESS_LOOP:
        "no `count`, `over` or `whileTrue` ends this loop, so its virtual users never end: stop the run with Ctrl-C",
        "이 loop를 끝내는 `count`, `over`, `whileTrue`가 없어 가상 사용자가 끝나지 않습니다. Ctrl-C로 실행을 멈추세요";
    BAD_OVER: "`over` is a list, or the name of a variable with a list", "`over`에는 목록이나 목록이 든 변수의 이름을 쓰세요";
    PARALLEL_NO_LIST: "`parallel` must be a list of steps", "`parallel`은 스텝의 목록이어야 합니다";
    CONNECT_FIRST:
        "`connect` works as the first step only; here it does nothing (as in Artillery)",
        "`connect`는 첫 스텝일 때만 동작합니다. 여기서는 효과가 없습니다(Artillery와 같음)";
    WHOLE_OBJECT:
        "without `capture` or `match`, weir sends this whole object, including `payload` (as in Artillery)",
        "`capture`나 `match`가 없으면 `payload`를 포함한 객체 전체를 보냅니다(Artillery와 같음)";
    BAD_EMIT: "`emit` must be `{channel, data}`, or a list of an event and its arguments", "`emit`에는 `{channel, data}`나 이벤트와 인자의 목록을 쓰세요";
    NO_CHANNEL: "without `channel`, weir does not wait for this `response`", "`channel`이 없으면 이 `response`를 기다리지 않습니다";
    NO_FUNCTION: "weir does not find this function: there is no `config.processor`", "`config.processor`가 없어 이 함수를 찾을 수 없습니다";

    // Requests.
    NO_URL:
        "this {0} has no `url`: its virtual users fail with `an URL must be specified`",
        "이 {0}에 `url`이 없습니다. 가상 사용자가 URL이 없다는 오류로 실패합니다";
    BODY_OBJECT:
        "`body` must be a text; weir sends an object as JSON, and Artillery refuses it: write `json`",
        "`body`는 텍스트여야 합니다. 객체는 JSON으로 보내지만 Artillery는 거절합니다. `json`을 쓰세요";
    NO_CONDITION: "this is no condition ({0}), so the request always runs (as in Artillery)", "조건이 아니므로({0}) 요청을 항상 보냅니다(Artillery와 같음)";
    NOT_CONDITION: "this is not a condition ({0}), so the request always runs (as in Artillery)", "조건이 아니므로({0}) 요청을 항상 보냅니다(Artillery와 같음)";
    BAD_PROBABILITY: "`probability` must be a number from 0 to 100", "`probability`는 0부터 100까지의 수여야 합니다";
    TAKE_NO_OBJECT: "this must be an object, for example `json: $.id` and `as: id`", "객체여야 합니다. 예: `json: $.id`, `as: id`";
    TAKES_NOTHING: "without `as` (to capture) or `value` (to match) this does nothing", "`as`(캡처할 때)나 `value`(비교할 때)가 없으면 효과가 없습니다";
    HEADER_CASE:
        "header names are in lower case here (as in Artillery), so this capture finds nothing",
        "헤더 이름은 여기서 소문자이므로(Artillery와 같음) 이 캡처는 아무것도 찾지 못합니다";
    BAD_INDEX:
        "`index` must be a number from 0, `last` or `random`; weir takes the first element",
        "`index`는 0 이상의 수, `last`, `random` 중 하나여야 합니다. 첫 요소를 씁니다";
    EXPECT_NOT_LISTED:
        "weir checks `expect` only if `config.plugins` lists `expect: {}`, and this script does not list it",
        "`expect`는 `config.plugins`에 `expect: {}`가 있을 때만 검사하지만 이 스크립트에는 없습니다";
    CHECK_NO_OBJECT: "a check must be an object, for example `statusCode: 200`", "검사는 객체여야 합니다. 예: `statusCode: 200`";

    // Captures and conditions without effect.
    UNUSED_CAPTURE: "no other part of the script uses the captured `{0}`", "캡처한 `{0}`을(를) 스크립트의 다른 곳에서 쓰지 않습니다";
    NEVER_TRUE:
        "nothing sets `{0}`: the condition `{1}` is never true, unless -v sets it",
        "`{0}`에 값을 넣는 곳이 없습니다. -v로 값을 지정하지 않으면 조건 `{1}`은(는) 참이 되지 않습니다";

    // Reporters of `publish-metrics`.
    UNSENT: "weir sends nothing to `{0}`{1}; {2}", "`{0}`에는 지표를 보내지 않습니다{1}. {2}";
    WITH_API_KEY: " with an `apiKey`", " (`apiKey`가 있는 경우)";
    NO_API_KEY: "remove `apiKey`: weir then sends metrics to Datadog's agent", "`apiKey`를 지우면 Datadog의 에이전트로 지표를 보냅니다";
    USE_OTLP:
        "this service accepts OpenTelemetry: use `type: open-telemetry` with its endpoint",
        "이 서비스는 OpenTelemetry를 받습니다. `type: open-telemetry`와 그 endpoint를 쓰세요";
    USE_STATSD: "its agent accepts StatsD: use `type: statsd`", "이 서비스의 에이전트는 StatsD를 받습니다. `type: statsd`를 쓰세요";
    KEEP_REPORT: "keep the JSON report (-o)", "JSON 보고서(-o)를 저장하세요";
    USE_ONE_OF: "use one of prometheus, open-telemetry, statsd, influxdb-statsd, datadog", "다음 중 하나를 쓰세요: prometheus, open-telemetry, statsd, influxdb-statsd, datadog";
    NO_GATEWAY: "Prometheus reporter: pushgateway must be provided", "Prometheus reporter: pushgateway를 지정하세요";
    BAD_GATEWAY: "Prometheus reporter: pushgateway {0}", "Prometheus reporter: pushgateway를 쓸 수 없습니다: {0}";
    BAD_PORT: "`port` of `{0}` must be between 1 and 65535", "`{0}`의 `port`는 1부터 65535까지여야 합니다";
    NO_METRICS: "`open-telemetry` has no `metrics`; weir does not send traces", "`open-telemetry`에 `metrics`가 없습니다. 트레이스는 보내지 않습니다";
    NO_GRPC:
        "weir does not send by `otlp-grpc`; collectors accept `otlp-proto` at port 4318",
        "`otlp-grpc`로는 보내지 않습니다. 수집기는 포트 4318에서 `otlp-proto`를 받습니다";
    BAD_OTLP: "Open-telemetry reporter: {0}", "Open-telemetry reporter의 설정이 잘못되었습니다: {0}";
    UNKNOWN_EXPORTER: "Metric exporter {0} is not supported. Currently supported are {1}", "지원하지 않는 exporter입니다: {0}. 지원하는 exporter: {1}";

    // Values of any document: the files of `weir lab` are read by the same code.
    DOCUMENT_TOO_LARGE: "{0}: more than {1} bytes", "{0}: {1}바이트를 넘습니다";
    NAMES_AND_VALUES: "write names and values here", "여기에는 이름과 값을 쓰세요";
    KNOWN_ARE: "known are {0}", "쓸 수 있는 이름: {0}";
    UNKNOWN_NAME: "\"{0}\" is unknown here; {1}", "\"{0}\": 여기에 쓸 수 없는 이름입니다. {1}";
    MISSING: "\"{0}\" is missing here", "여기에 \"{0}\"이(가) 없습니다";
    WRITE_TEXT: "write a text here", "여기에는 텍스트를 쓰세요";
    WRITE_NUMBER: "write a number from {0} to {1} here", "여기에는 {0}부터 {1}까지의 수를 쓰세요";
    WRITE_WHOLE: "write a whole number here", "여기에는 정수를 쓰세요";
    WRITE_FLAG: "write true or false here", "여기에는 true나 false를 쓰세요";

    // The plan of --check.
    PLAN_TARGET: "target {0}", "대상 {0}";
    PLAN_METRICS: "metrics go to {0}", "지표를 보내는 곳: {0}";
    PLAN_REPORTER: "{0} at {1}", "{0} ({1})";
    PLAN_PHASE: "{0} phase, {1} s", "단계 {0}개, {1}초";
    PLAN_PHASES: "{0} phases, {1} s", "단계 {0}개, {1}초";
    PLAN_PHASE_LINE: "{0}: {1} s, {2}", "{0}: {1}초, {2}";
    PLAN_USER: "{0} virtual user", "가상 사용자 {0}명";
    PLAN_USERS: "{0} virtual users", "가상 사용자 {0}명";
    PLAN_AT_MOST: "at most {0} at once", "동시에 최대 {0}명";
    PLAN_MORE: "and {0} more", "그 밖에 {0}개";
    PLAN_SCENARIO: "{0} scenario", "시나리오 {0}개";
    PLAN_SCENARIOS: "{0} scenarios", "시나리오 {0}개";
    PLAN_STEP: "{0}: {1}, {2} %, {3} step", "{0}: {1}, {2} %, 스텝 {3}개";
    PLAN_STEPS: "{0}: {1}, {2} %, {3} steps", "{0}: {1}, {2} %, 스텝 {3}개";
    PLAN_IN_ALL: "{0} in all", "모두 {0}";
    PLAN_ABOUT: "about {0} in all", "모두 약 {0}";
}
