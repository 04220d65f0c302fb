//! Keys outside the flows.

use super::{Object, no, nothing, partly, yes};

pub(crate) const SCRIPT: Object = Object {
    path: "script",
    about: "The top of a script. A key beginning with `x-` is yours, for anchors.",
    is_open: false,
    keys: &[
        yes("config", "where the load goes, and how"),
        yes("scenarios", "what a virtual user does; required"),
        yes("before", "steps run once before the first virtual user; the variables they leave are everybody's"),
        yes("after", "steps run once after the summary"),
    ],
};

pub(crate) const CONFIG: Object = Object {
    path: "config",
    about: "Where the load goes, and how. An entry of `environments` takes the same keys.",
    is_open: false,
    keys: &[
        yes("target", "the base URL, put before every URL that begins with `/`"),
        yes("phases", "what arrives when; one virtual user without it"),
        yes("environments", "parts of `config` by name, merged over it by `-e NAME` (lists by index)"),
        yes("variables", "first values of variables; of a list each virtual user gets one element at random"),
        yes("payload", "CSV files whose rows become variables"),
        yes("processor", "a JavaScript file whose functions the steps and hooks name"),
        yes("plugins", "what else is to run, by name, with its options"),
        yes("engine", "the engine of scenarios that name none; `http` unless set"),
        no(
            "engines",
            "weir has the engines `http`, `ws` and `socketio`; Playwright and engines from npm need Artillery",
        ),
        yes("http", "options of the http engine"),
        yes("ws", "options of the ws engine"),
        yes("socketio", "options of the socketio engine"),
        yes("tls", "options of TLS connections"),
        yes("timeout", "seconds until a request is given up; wins over `http.timeout`"),
        yes("defaults", "the older place of `http.defaults`, which wins"),
        yes("mode", "`uniform` or `poisson`: how virtual users arrive in phases that do not say"),
        nothing("statsInterval", "reports are always 10 seconds wide"),
        yes("ensure", "options of the plugin `ensure`, which must also be listed under `plugins`"),
        yes("expect", "options of the plugin `expect`, which must also be listed under `plugins`"),
        yes("apdex", "options of the plugin `apdex`, which must also be listed under `plugins`"),
        yes("fake-data", "options of the plugin `fake-data`, which must also be listed under `plugins`"),
        nothing("includeFiles", "it names files for Artillery's cloud workers"),
        yes("bundling", "how a TypeScript processor is bundled"),
        no("pluginsScope", "plugins from npm are not loaded"),
    ],
};

pub(crate) const PHASE: Object = Object {
    path: "config.phases[]",
    about: "A stretch of the run. Numbers may be texts, so that they can come from the environment.",
    is_open: false,
    keys: &[
        yes("name", "shown when the phase begins and ends"),
        partly(
            "duration",
            "seconds, or a number with a unit; a fraction without a unit is seconds here, an error in Artillery",
        ),
        partly("arrivalRate", "virtual users a second; a fraction works here, and stops Artillery"),
        yes("rampTo", "the rate at the end of the phase"),
        yes("arrivalCount", "virtual users in the whole phase"),
        partly("pause", "nobody arrives for so long; a fraction as with `duration`"),
        partly(
            "maxVusers",
            "more virtual users at once are not started, but counted as skipped; exact here, shared among workers in Artillery",
        ),
        yes("mode", "`uniform` or `poisson`"),
    ],
};

pub(crate) const PAYLOAD: Object = Object {
    path: "config.payload",
    about: "A CSV file, or a list of some.",
    is_open: false,
    keys: &[
        yes("path", "the file, from the directory of the first script file"),
        yes("fields", "the variables the columns go to"),
        partly(
            "order",
            "`random`, or `sequence`, which is one sequence for the whole run here, and one per worker in Artillery",
        ),
        yes("skipHeader", "`true` passes over the first line"),
        yes("delimiter", "`,` unless set; one ASCII character"),
        yes("cast", "columns that are numbers become numbers, unless `false`"),
        yes("skipEmptyLines", "`false` makes a row of one empty field of an empty line"),
        yes("loadAll", "all rows become one variable, named by `name`"),
        yes("name", "the variable of `loadAll`"),
        partly(
            "options",
            "of csv-parse: `delimiter`, `quote`, `escape`, `comment`, `trim`, `from_line`, `to_line`, `cast`, `relax_column_count`",
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
            "seconds; covers connecting, sending and the whole answer, as documented (Artillery 2.0.31 and later stop at the head)",
        ),
        yes("pool", "connections shared by all virtual users, instead of one for each"),
        partly("maxSockets", "connections of one virtual user; Artillery documents it and does not read it"),
        yes(
            "http2",
            "weir's own: `true` speaks HTTP/2 with every server, by ALPN over `https://` and with prior knowledge over `http://`",
        ),
        yes("extendedMetrics", "also report dns, tcp, tls and total times"),
        yes("defaults", "what every request begins with"),
        yes("cookieJarOptions", "options of the cookie jar"),
        yes("distributedTracing", "send a `traceparent` header"),
    ],
};

pub(crate) const COOKIE_JAR: Object = Object {
    path: "config.http.cookieJarOptions",
    about: "Options of npm's tough-cookie.",
    is_open: false,
    keys: &[
        yes("looseMode", "`true` takes cookies without a name"),
        partly(
            "rejectPublicSuffixes",
            "`false` takes cookies for a domain of one label; other public suffixes are not known",
        ),
        yes(
            "prefixSecurity",
            "`silent`, `strict` or `unsafe-disabled`: cookies named `__Secure-` or `__Host-` that are not so",
        ),
        nothing("allowSpecialUseDomain", "`localhost`, `test` and such are names as others are"),
    ],
};

pub(crate) const DISTRIBUTED_TRACING: Object = Object {
    path: "config.http.distributedTracing",
    about: "`true`, or these.",
    is_open: false,
    keys: &[
        yes("enabled", "`true` unless set"),
        yes("sampled", "the flag of the header; `true` unless set"),
        yes("traceIdPrefix", "up to 8 hexadecimal digits; `a9` unless set"),
    ],
};

pub(crate) const DEFAULTS: Object = Object {
    path: "config.http.defaults",
    about: "What every request begins with. `config.defaults` takes the same keys and counts where this says nothing.",
    is_open: false,
    keys: &[
        yes("headers", "of every request; setting any drops Artillery's own `user-agent`"),
        yes("cookie", "cookies of every request"),
        yes("strictCapture", "`false` lets captures find nothing"),
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
        yes("headers", "of the opening request"),
        yes("subprotocols", "offered to the server"),
        yes("timeout", "seconds a capture waits"),
        yes("proxy", "`url` of an HTTP proxy to connect through"),
        yes("rejectUnauthorized", "`false` takes any certificate"),
        yes("handshakeTimeout", "milliseconds the opening may take"),
        yes("perMessageDeflate", "`false` does not offer compression"),
        yes("origin", "the `Origin` header"),
        partly("maxPayload", "the largest message that is received, in bytes"),
        partly("followRedirects", "an opening that is redirected fails"),
        partly("maxRedirects", "an opening that is redirected fails"),
        yes("ca", "as in `config.tls`"),
        yes("cert", "as in `config.tls`"),
        yes("key", "as in `config.tls`"),
        yes("servername", "as in `config.tls`"),
        no("pfx", "PKCS #12 bundles are not read: write `cert` and `key`"),
        no("passphrase", "encrypted keys are not read: write them out without a passphrase"),
        yes("localAddress", "the address to connect from"),
        yes("auth", "`user:password` of the opening request"),
        nothing("skipUTF8Validation", "texts that are no UTF-8 end the connection"),
        no("agent", "a processor's object; connections are weir's own"),
        no("protocolVersion", "always 13"),
    ],
};

pub(crate) const SOCKETIO: Object = Object {
    path: "config.socketio",
    about: "Options of socket.io-client; a scenario's own `socketio` is merged over them.",
    is_open: false,
    keys: &[
        yes("query", "parameters of the connection's URL"),
        yes("path", "`/socket.io/` unless set"),
        yes("extraHeaders", "headers of the connection's requests"),
        yes("transports", "`polling`, `websocket` or both, in order"),
        yes("auth", "sent when a namespace is joined"),
        yes("upgrade", "`false` stays with polling"),
        yes("rejectUnauthorized", "`false` takes any certificate"),
        yes("timeout", "milliseconds a connection may take"),
        yes("withCredentials", "cookies of polling are kept anyway"),
        partly("forceNew", "every virtual user has its own connection"),
        partly("multiplex", "namespaces share the virtual user's connection"),
        no("parser", "another parser needs its code"),
        yes("force new connection", "the older name of `forceNew`"),
        yes("addTrailingSlash", "`false` leaves `path` without the slash at its end"),
        yes("tryAllTransports", "`true` tries the next transport when one fails"),
        yes("timestampRequests", "`false` sends polls without the parameter that keeps caches away"),
        yes("timestampParam", "its name; `t` unless set"),
        yes("ca", "as in `config.tls`"),
        yes("cert", "as in `config.tls`"),
        yes("key", "as in `config.tls`"),
        yes("servername", "as in `config.tls`"),
        nothing("perMessageDeflate", "messages are sent as they are"),
        yes("reconnection", "`false` leaves a lost connection lost"),
        yes("reconnectionAttempts", "without end unless set"),
        yes("reconnectionDelay", "milliseconds, doubled with each attempt; 1000 unless set"),
        yes("reconnectionDelayMax", "milliseconds; 5000 unless set"),
        yes("randomizationFactor", "chance in the delays, 0 to 1; 0.5 unless set"),
    ],
};

pub(crate) const TLS: Object = Object {
    path: "config.tls",
    about: "Options of TLS connections. The http engine takes got's names, the others Node's; weir takes both everywhere. \
            Values are PEM texts.",
    is_open: false,
    keys: &[
        yes("rejectUnauthorized", "`false` takes any certificate; so does `-k`"),
        yes("ca", "certificates of authorities to trust"),
        yes("certificateAuthority", "the same, got's name"),
        yes("cert", "the client's certificate"),
        yes("certificate", "the same, got's name"),
        yes("key", "the client's key"),
        no("pfx", "PKCS #12 bundles are not read: write `cert` and `key`"),
        no("passphrase", "encrypted keys are not read: write them out without a passphrase"),
        yes("servername", "the name sent to the server and expected in its certificate"),
        no("ciphers", "the suites are weir's own"),
        no("minVersion", "1.2 is the lowest"),
        no("maxVersion", "1.3 is the highest"),
    ],
};

pub(crate) const BUNDLING: Object = Object {
    path: "config.bundling",
    about: "How a TypeScript processor is bundled.",
    is_open: false,
    keys: &[yes("external", "npm modules that are not bundled")],
};

pub(crate) const SCENARIO: Object = Object {
    path: "scenarios[]",
    about: "One kind of virtual user.",
    is_open: false,
    keys: &[
        yes("name", "in `vusers.created_by_name.NAME`; its index unless set"),
        yes("weight", "how often it is picked, against the others; 0 is never"),
        yes("engine", "`http`, `ws` or `socketio`"),
        yes("flow", "the steps"),
        yes("beforeScenario", "functions called before the first step (http)"),
        yes("afterScenario", "functions called after the last step, if all succeeded (http)"),
        yes("beforeRequest", "functions called before every request"),
        yes("afterResponse", "functions called after every response"),
        yes("onError", "functions called with the error of a request (http)"),
        partly(
            "socketio",
            "merged over `config.socketio` for this scenario only; in Artillery it leaks into later ones",
        ),
        nothing("expect", "expectations stand in requests"),
        nothing("tcp", "there is no such engine"),
        no("testFunction", "Playwright needs Artillery"),
        no("flowFunction", "Playwright needs Artillery"),
    ],
};

pub(crate) const HOOK: Object = Object {
    path: "before, after",
    about: "Steps run once. Their requests are not counted.",
    is_open: false,
    keys: &[
        yes("engine", "`http` unless set"),
        yes("flow", "the steps"),
        yes("name", "for the reader"),
        yes("beforeScenario", "functions called before the first step"),
        yes("afterScenario", "functions called after the last step"),
        yes("beforeRequest", "functions called before every request"),
        yes("afterResponse", "functions called after every response"),
        no("onError", "an error ends the run, and says where"),
    ],
};
