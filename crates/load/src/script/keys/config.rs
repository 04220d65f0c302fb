//! Keys outside the flows.

use super::object::{Object, no, nothing, partly, yes};

pub(crate) const SCRIPT: Object = Object {
    path: "script",
    about: "The top level of a script. You may use keys that begin with `x-` for anchors.",
    is_open: false,
    keys: &[
        yes("config", "the target of the load, and its options"),
        yes("scenarios", "the steps of a virtual user; required"),
        yes(
            "before",
            "steps that run once before the first virtual user; every virtual user gets the variables that they set",
        ),
        yes("after", "steps that run once after the summary"),
    ],
};

pub(crate) const CONFIG: Object = Object {
    path: "config",
    about: "The target of the load, and its options. An entry of `environments` has the same keys.",
    is_open: false,
    keys: &[
        yes("target", "the base URL; weir puts it before every URL that begins with `/`"),
        yes("phases", "how many virtual users arrive, and when; without it, one virtual user arrives"),
        yes("environments", "named parts of `config`; `-e NAME` merges one over it (lists by index)"),
        yes("variables", "first values of variables; from a list, each virtual user gets one random element"),
        yes("payload", "CSV files whose rows become variables"),
        yes("processor", "a JavaScript file whose functions the steps and hooks name"),
        yes("plugins", "the plugins to run, by name, with their options"),
        yes("engine", "the engine of a scenario that names no engine; the default is `http`"),
        no(
            "engines",
            "weir has the engines `http`, `ws` and `socketio`; Playwright and engines from npm need Artillery",
            "weir의 엔진은 `http`, `ws`, `socketio`입니다. Playwright와 npm의 엔진은 Artillery에서만 쓸 수 있습니다",
        ),
        yes("http", "options of the http engine"),
        yes("ws", "options of the ws engine"),
        yes("socketio", "options of the socketio engine"),
        yes("socketio-v3", "the same, under the name that Artillery's npm package has"),
        yes("tls", "options of TLS connections"),
        yes("timeout", "seconds until weir gives a request up; overrides `http.timeout`"),
        yes("defaults", "the older place of `http.defaults`; `http.defaults` overrides it"),
        yes("mode", "`uniform` or `poisson`: how virtual users arrive in a phase without `mode`"),
        nothing("statsInterval", "a report always covers 10 seconds", "보고서의 구간은 항상 10초입니다"),
        yes("ensure", "options of the plugin `ensure`, which must also be listed under `plugins`"),
        yes("expect", "options of the plugin `expect`, which must also be listed under `plugins`"),
        yes("apdex", "options of the plugin `apdex`, which must also be listed under `plugins`"),
        yes("fake-data", "options of the plugin `fake-data`, which must also be listed under `plugins`"),
        nothing(
            "includeFiles",
            "this key names files for Artillery's cloud workers",
            "Artillery의 클라우드 워커에 보낼 파일을 정하는 키입니다",
        ),
        yes("bundling", "options for bundling a TypeScript processor"),
        no("pluginsScope", "weir loads no plugins from npm", "npm의 플러그인은 쓰지 않습니다"),
    ],
};

pub(crate) const PHASE: Object = Object {
    path: "config.phases[]",
    about: "A phase of the run. A number may be a text, so that it can come from the environment.",
    is_open: false,
    keys: &[
        yes("name", "the name that weir prints when the phase begins and ends"),
        partly(
            "duration",
            "seconds, or a number with a unit; a fraction without a unit is seconds here, an error in Artillery",
        ),
        partly("arrivalRate", "virtual users per second; weir accepts a fraction, Artillery stops with an error"),
        yes("rampTo", "the rate at the end of the phase"),
        yes("arrivalCount", "virtual users in the whole phase"),
        partly("pause", "the time in which no virtual user arrives; a fraction as with `duration`"),
        partly(
            "maxVusers",
            "the limit of concurrent virtual users; weir does not start more, and counts them as skipped; exact here, divided among workers in Artillery",
        ),
        yes("mode", "`uniform` or `poisson`"),
    ],
};

pub(crate) const PAYLOAD: Object = Object {
    path: "config.payload",
    about: "A CSV file, or a list of CSV files.",
    is_open: false,
    keys: &[
        yes("path", "the file, from the directory of the first script file"),
        yes("fields", "the variables that get the columns"),
        partly(
            "order",
            "`random` or `sequence`; here one sequence serves the whole run, in Artillery each worker has its own",
        ),
        yes("skipHeader", "`true` skips the first line"),
        yes("delimiter", "one ASCII character; the default is `,`"),
        yes("cast", "weir turns columns of numbers into numbers; `false` keeps them as texts"),
        yes("skipEmptyLines", "`false` turns an empty line into a row with one empty field"),
        yes("loadAll", "all rows become one variable, named by `name`"),
        yes("name", "the variable of `loadAll`"),
        partly(
            "options",
            "of csv-parse: `delimiter`, `quote`, `escape`, `comment`, `trim`, `ltrim`, `rtrim`, `from_line`, `to_line`, `cast`, `skip_empty_lines`, `relax`, `relax_column_count`",
        ),
    ],
};

pub(crate) const HTTP: Object = Object {
    path: "config.http",
    about: "Options of the http engine.",
    is_open: false,
    keys: &[
        partly(
            "timeout",
            "seconds; includes connecting, sending and the whole answer, as documented (Artillery 2.0.31 and later measure only until the head)",
        ),
        yes("pool", "the number of connections that all virtual users share; without it, each has its own"),
        partly("maxSockets", "connections of one virtual user; Artillery documents this key, but does not read it"),
        yes(
            "http2",
            "weir's own: `true` speaks HTTP/2 with every server, by ALPN over `https://` and with prior knowledge over `http://`",
        ),
        yes(
            "http3",
            "weir's own: `true` speaks HTTP/3 with every server; it needs `https://`, the engine `http`, and no proxy",
        ),
        yes("extendedMetrics", "also reports the times of dns, tcp, tls and the total"),
        yes("defaults", "defaults of every request"),
        yes("cookieJarOptions", "options of the cookie jar"),
        yes("distributedTracing", "sends a `traceparent` header"),
    ],
};

pub(crate) const COOKIE_JAR: Object = Object {
    path: "config.http.cookieJarOptions",
    about: "Options of npm's tough-cookie.",
    is_open: false,
    keys: &[
        yes("looseMode", "`true` accepts cookies without a name"),
        partly(
            "rejectPublicSuffixes",
            "`false` accepts cookies for a domain of one label; weir does not know other public suffixes",
        ),
        yes(
            "prefixSecurity",
            "`silent`, `strict` or `unsafe-disabled`: the treatment of cookies that break the rules of their prefix `__Secure-` or `__Host-`",
        ),
        nothing(
            "allowSpecialUseDomain",
            "weir treats `localhost`, `test` and similar names like other names",
            "`localhost`, `test` 같은 이름도 다른 이름과 똑같이 다룹니다",
        ),
    ],
};

pub(crate) const DISTRIBUTED_TRACING: Object = Object {
    path: "config.http.distributedTracing",
    about: "`true`, or these.",
    is_open: false,
    keys: &[
        yes("enabled", "`true` unless set"),
        yes("sampled", "the flag of the header; the default is `true`"),
        yes("traceIdPrefix", "up to 8 hexadecimal digits; the default is `a9`"),
    ],
};

pub(crate) const DEFAULTS: Object = Object {
    path: "config.http.defaults",
    about: "Defaults of every request. `config.defaults` has the same keys, and applies where this object does not set a key.",
    is_open: false,
    keys: &[
        yes("headers", "headers of every request; if you set any, weir does not send Artillery's `user-agent`"),
        yes("cookie", "cookies of every request"),
        yes("strictCapture", "with `false`, a capture may find nothing"),
        yes("think", "`jitter` of every `think`"),
    ],
};

pub(crate) const DEFAULTS_THINK: Object = Object {
    path: "config.http.defaults.think",
    about: "How `think` varies.",
    is_open: false,
    keys: &[yes("jitter", "milliseconds, or a percentage, more or less")],
};

pub(crate) const WS: Object = Object {
    path: "config.ws",
    about: "Options of the ws engine, and of the npm module `ws`.",
    is_open: false,
    keys: &[
        yes("headers", "fields of the opening request"),
        yes("subprotocols", "subprotocols that weir offers to the server"),
        yes("timeout", "the seconds that a capture waits"),
        yes("proxy", "`url` of an HTTP proxy to connect through"),
        yes("rejectUnauthorized", "`false` accepts any certificate"),
        yes("handshakeTimeout", "the milliseconds that the opening may take"),
        yes("perMessageDeflate", "`false` does not offer compression"),
        yes("origin", "the `Origin` header"),
        partly("maxPayload", "the largest message that weir accepts, in bytes"),
        partly("followRedirects", "a redirect of the opening request fails"),
        partly("maxRedirects", "a redirect of the opening request fails"),
        yes("ca", "as in `config.tls`"),
        yes("cert", "as in `config.tls`"),
        yes("key", "as in `config.tls`"),
        yes("servername", "as in `config.tls`"),
        no(
            "pfx",
            "weir does not read PKCS #12 bundles: write `cert` and `key`",
            "PKCS #12 파일은 읽지 않습니다. `cert`와 `key`를 쓰세요",
        ),
        no(
            "passphrase",
            "weir does not read encrypted keys: export the key without a passphrase",
            "암호화된 키는 읽지 않습니다. 암호 없이 키를 내보내세요",
        ),
        yes("localAddress", "the local address of the connection"),
        yes("auth", "`user:password` of the opening request"),
        nothing(
            "skipUTF8Validation",
            "a text that is not UTF-8 ends the connection",
            "UTF-8이 아닌 텍스트를 받으면 연결이 끝납니다",
        ),
        no(
            "agent",
            "an object of Node; weir makes its own connections",
            "Node의 객체입니다. weir는 연결을 직접 만듭니다",
        ),
        no("protocolVersion", "always 13", "항상 13입니다"),
    ],
};

pub(crate) const SOCKETIO: Object = Object {
    path: "config.socketio",
    about: "Options of socket.io-client; weir merges a scenario's own `socketio` over them.",
    is_open: false,
    keys: &[
        yes("query", "parameters of the connection's URL"),
        yes("path", "the default is `/socket.io/`"),
        yes("extraHeaders", "headers of the connection's requests"),
        yes("transports", "`polling`, `websocket` or both, in order"),
        yes("auth", "data that weir sends when it joins a namespace"),
        yes("upgrade", "`false` keeps polling"),
        yes("rejectUnauthorized", "`false` accepts any certificate"),
        yes("timeout", "the milliseconds that a connection may take"),
        yes("withCredentials", "weir always keeps the cookies of polling"),
        partly("forceNew", "every virtual user has its own connection"),
        partly("multiplex", "namespaces share the virtual user's connection"),
        no(
            "parser",
            "another parser needs code that weir does not load",
            "다른 파서에는 weir가 읽지 않는 코드가 필요합니다",
        ),
        yes("force new connection", "the older name of `forceNew`"),
        yes("addTrailingSlash", "`false` sends `path` without the slash at its end"),
        yes("tryAllTransports", "`true` tries the next transport when one fails"),
        yes("timestampRequests", "`false` sends polls without the parameter that prevents caching"),
        yes("timestampParam", "the name of that parameter; the default is `t`"),
        yes("ca", "as in `config.tls`"),
        yes("cert", "as in `config.tls`"),
        yes("key", "as in `config.tls`"),
        yes("servername", "as in `config.tls`"),
        nothing("perMessageDeflate", "weir sends messages unchanged", "메시지를 그대로 보냅니다"),
        yes("reconnection", "with `false`, weir does not reconnect"),
        yes("reconnectionAttempts", "the default is no limit"),
        yes("reconnectionDelay", "milliseconds; each attempt doubles them; the default is 1000"),
        yes("reconnectionDelayMax", "milliseconds; the default is 5000"),
        yes("randomizationFactor", "the random part of the delays, 0 to 1; the default is 0.5"),
    ],
};

pub(crate) const TLS: Object = Object {
    path: "config.tls",
    about: "Options of TLS connections. In Artillery, the http engine uses got's names and the others use Node's; weir accepts both everywhere. Values are PEM texts.",
    is_open: false,
    keys: &[
        yes("rejectUnauthorized", "`false` accepts any certificate; `-k` does the same"),
        yes("ca", "certificates of authorities to trust"),
        yes("certificateAuthority", "the same, got's name"),
        yes("cert", "the client's certificate"),
        yes("certificate", "the same, got's name"),
        yes("key", "the client's key"),
        no(
            "pfx",
            "weir does not read PKCS #12 bundles: write `cert` and `key`",
            "PKCS #12 파일은 읽지 않습니다. `cert`와 `key`를 쓰세요",
        ),
        no(
            "passphrase",
            "weir does not read encrypted keys: export the key without a passphrase",
            "암호화된 키는 읽지 않습니다. 암호 없이 키를 내보내세요",
        ),
        yes("servername", "the name that weir sends to the server and expects in its certificate"),
        no("ciphers", "weir chooses the cipher suites", "암호 모음은 weir가 고릅니다"),
        no("minVersion", "1.2 is the lowest", "가장 낮은 버전은 1.2입니다"),
        no("maxVersion", "1.3 is the highest", "가장 높은 버전은 1.3입니다"),
    ],
};

pub(crate) const BUNDLING: Object = Object {
    path: "config.bundling",
    about: "Options for bundling a TypeScript processor.",
    is_open: false,
    keys: &[yes("external", "npm modules that are not bundled")],
};

pub(crate) const SCENARIO: Object = Object {
    path: "scenarios[]",
    about: "One kind of virtual user.",
    is_open: false,
    keys: &[
        yes("name", "the NAME in `vusers.created_by_name.NAME`; the default is the index"),
        yes("weight", "the weight of this scenario against the others; 0 means never"),
        yes("engine", "`http`, `ws` or `socketio`"),
        yes("flow", "the steps"),
        yes("beforeScenario", "functions called before the first step (http)"),
        yes("afterScenario", "functions called after the last step, if all succeeded (http)"),
        yes("beforeRequest", "functions called before every request"),
        yes("afterResponse", "functions called after every response"),
        yes("onError", "functions called with the error of a request (http)"),
        partly(
            "socketio",
            "weir merges it over `config.socketio` for this scenario only; in Artillery it also affects later scenarios",
        ),
        nothing("expect", "write expectations in requests", "기대 조건은 요청에 쓰세요"),
        nothing("tcp", "weir has no such engine", "그런 엔진이 없습니다"),
        no("testFunction", "Playwright needs Artillery", "Playwright는 Artillery에서만 쓸 수 있습니다"),
        no("flowFunction", "Playwright needs Artillery", "Playwright는 Artillery에서만 쓸 수 있습니다"),
    ],
};

pub(crate) const HOOK: Object = Object {
    path: "before, after",
    about: "Steps that run once. weir does not count their requests.",
    is_open: false,
    keys: &[
        yes("engine", "`http` unless set"),
        yes("flow", "the steps"),
        yes("name", "for the reader"),
        yes("beforeScenario", "functions called before the first step"),
        yes("afterScenario", "functions called after the last step"),
        yes("beforeRequest", "functions called before every request"),
        yes("afterResponse", "functions called after every response"),
        no("onError", "an error ends the run; weir prints the step", "오류가 나면 실행을 끝내고 그 스텝을 출력합니다"),
    ],
};
