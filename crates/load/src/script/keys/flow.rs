//! Keys inside the flows.

use super::object::{Object, no, nothing, partly, yes};

pub(crate) const STEP: Object = Object {
    path: "flow[]",
    about: "A step; its first key names its kind. Any other key with an object that has a `url` is a request with that method.",
    is_open: false,
    keys: &[
        yes("get", "a request"),
        yes("post", "a request"),
        yes("put", "a request"),
        yes("patch", "a request"),
        yes("delete", "a request"),
        yes("head", "a request"),
        yes("options", "a request"),
        partly("think", "waits; a fraction without a unit means seconds here, and almost no time in Artillery"),
        partly("jitter", "beside `think`: milliseconds or a percentage; Artillery's command line refuses it"),
        yes("log", "print a text"),
        yes("function", "calls a function of the processor"),
        yes("loop", "repeats steps; see below"),
        yes("parallel", "sends requests at the same time"),
        partly("limit", "beside `parallel`: the limit of concurrent requests; Artillery's command line refuses it"),
        yes("send", "ws: send a message"),
        yes("wait", "ws: waits for a message"),
        yes("connect", "ws: options of the connection; only as the first step"),
        yes("emit", "socketio: sends an event: `{channel, data}`, or a list of the event and its arguments"),
        yes("response", "socketio, beside `emit`: the event to wait for"),
        yes("acknowledge", "socketio, beside `emit`: waits for the acknowledgement"),
        yes("namespace", "socketio, beside `emit`"),
    ],
};

pub(crate) const LOOP: Object = Object {
    path: "flow[].loop",
    about: "Keys beside `loop`.",
    is_open: false,
    keys: &[
        yes("loop", "the steps"),
        yes(
            "count",
            "the number of rounds; without it (or with `0`) the loop has no end, unless `over` or `whileTrue` ends it; `\"2-5\"` counts 2, 3, 4",
        ),
        yes("over", "a list, or the name of a variable with a list"),
        yes(
            "whileTrue",
            "a function of the processor; weir calls it after each round, and only its answer ends the loop",
        ),
        yes("loopValue", "the variable with the count; the default is `$loopCount`"),
        yes("loopElement", "the variable with the element; the default is `$loopElement`"),
        nothing("from", "write `count: \"FROM-TO\"`", "`count: \"FROM-TO\"`를 쓰세요"),
        nothing("name", "a loop has no name", "loop에는 이름이 없습니다"),
    ],
};

pub(crate) const REQUEST: Object = Object {
    path: "flow[].get",
    about: "A request of the http engine; the same for every method.",
    is_open: false,
    keys: &[
        yes("url", "required; weir puts `config.target` before a URL that begins with `/`"),
        yes("uri", "the older name of `url`"),
        yes("name", "the name in reports by endpoint"),
        yes("headers", "headers; they override those of `config.http.defaults`"),
        yes("json", "a body; weir sends it as JSON"),
        yes("body", "a body as it is"),
        yes("form", "a body, url-encoded"),
        yes("formData", "a body in parts (multipart)"),
        yes("setContentLengthHeader", "with `formData`: the size of the file becomes `content-length`"),
        yes("qs", "the query; it replaces the query in the URL"),
        yes("cookie", "cookies that weir first puts into the jar"),
        yes("auth", "`user` and `pass`, sent as HTTP Basic"),
        yes("gzip", "with `false`, weir does not request compression"),
        yes("http2", "`true` uses HTTP/2 over `https://` if the server supports it; `false` uses HTTP/1.1"),
        yes("followRedirect", "with `false`, weir does not follow a redirect"),
        yes("allowGetBody", "with `true`, a GET may have a body"),
        yes("capture", "stores values of the answer in variables"),
        yes("match", "compares values of the answer; deprecated, write `expect`"),
        yes("expect", "checks of the plugin `expect`"),
        yes("beforeRequest", "functions called before the request"),
        yes("afterResponse", "functions called after the response"),
        yes("ifTrue", "a condition: a function of the processor, or an expression"),
        partly("probability", "0 to 100; with 100 the request always runs here, and in Artillery 99 times of 100"),
        nothing(
            "timeout",
            "weir uses `config.http.timeout`; a `beforeRequest` function can set it",
            "`config.http.timeout`을 씁니다. `beforeRequest` 함수로 바꿀 수 있습니다",
        ),
        no("maxRedirects", "always 10", "항상 10입니다"),
        no("decompress", "write `gzip`", "`gzip`을 쓰세요"),
        no("username", "write `auth`", "`auth`를 쓰세요"),
        no("password", "write `auth`", "`auth`를 쓰세요"),
        no("searchParams", "write `qs`", "`qs`를 쓰세요"),
        no(
            "retry",
            "weir sends a request twice only if a server of HTTP/2 or HTTP/3 reports that it did not begin with it, and counts that in `http.resent`",
            "HTTP/2나 HTTP/3 서버가 처리를 시작하지 않았다고 알린 요청만 다시 보내고, `http.resent`에 셉니다",
        ),
        no("https", "write `config.tls`", "`config.tls`를 쓰세요"),
        no("agent", "weir makes its own connections", "weir는 연결을 직접 만듭니다"),
        no("encoding", "weir reads bodies as UTF-8", "본문은 UTF-8로 읽습니다"),
        no("cookieJar", "every virtual user has its own jar", "가상 사용자마다 쿠키 저장소가 따로 있습니다"),
        no("method", "the step's key is the method", "스텝의 키가 메서드입니다"),
        no("think", "a step of its own", "별도의 스텝으로 쓰세요"),
    ],
};

pub(crate) const AUTH: Object = Object {
    path: "flow[].get.auth",
    about: "HTTP Basic.",
    is_open: false,
    keys: &[yes("user", "the name"), yes("pass", "the password")],
};

pub(crate) const PART: Object = Object {
    path: "flow[].post.formData.NAME",
    about: "A part: a value, or these.",
    is_open: false,
    keys: &[
        yes("value", "the content"),
        yes("fromFile", "a file, from the directory of the script; weir reads it before the run"),
        yes("contentType", "of the part"),
    ],
};

pub(crate) const CAPTURE: Object = Object {
    path: "flow[].get.capture",
    about: "One, or a list.",
    is_open: false,
    keys: &[
        yes("as", "the variable; required"),
        yes("json", "a JSONPath; weir takes one of several matches at random"),
        yes("multiple", "`false` takes all matches"),
        yes("regexp", "a regular expression of JavaScript"),
        yes("group", "its group, by number or name"),
        yes("flags", "its flags"),
        yes("header", "a header's name, in lower case"),
        yes("selector", "a CSS selector"),
        yes("attr", "the attribute to take"),
        yes("index", "which element: a number, `last` or `random`"),
        yes("xpath", "an XPath; Artillery needs the npm module artillery-xml-capture for it"),
        yes("strict", "with `false`, it may find nothing"),
        yes("value", "turns the capture into a `match`"),
        nothing("transform", "Artillery 2 removed it; write a function", "Artillery 2에서 없어졌습니다. 함수를 쓰세요"),
    ],
};

pub(crate) const MATCH: Object = Object {
    path: "flow[].get.match",
    about: "One check, or a list. Deprecated: write `expect`.",
    is_open: false,
    keys: &[
        yes("value", "the required value; the type must match too"),
        yes("json", "as in `capture`"),
        yes("multiple", "as in `capture`"),
        yes("regexp", "as in `capture`"),
        yes("group", "as in `capture`"),
        yes("flags", "as in `capture`"),
        yes("header", "as in `capture`"),
        yes("selector", "as in `capture`"),
        yes("attr", "as in `capture`"),
        yes("index", "as in `capture`"),
        yes("xpath", "as in `capture`"),
        yes("strict", "with `false`, the value may differ"),
    ],
};

pub(crate) const EXPECT: Object = Object {
    path: "flow[].get.expect",
    about: "Checks, as an object or a list of objects. They run if `config.plugins` lists `expect`.",
    is_open: false,
    keys: &[
        yes("statusCode", "a status, or a list of allowed statuses"),
        yes("notStatusCode", "the contrary"),
        yes("contentType", "`json`, or the whole value of the header"),
        yes("hasProperty", "a path in the JSON body"),
        yes("notHasProperty", "the contrary"),
        yes("hasHeader", "a header's name"),
        yes("headerEquals", "a list of the name and the value"),
        yes("equals", "a list whose values must be the same"),
        yes("matchesRegexp", "a regular expression for the body"),
        yes("jmespath", "a JMESPath that must be true"),
        yes("jpath", "the same"),
        yes("cdnHit", "whether a CDN had the answer in its cache"),
    ],
};

pub(crate) const SEND: Object = Object {
    path: "flow[].send",
    about: "ws: the message: a text, a number or any object; with `capture` or `match`, an object with these keys.",
    is_open: true,
    keys: &[
        yes("payload", "what is sent"),
        yes("capture", "from the next message"),
        yes("match", "with the next message"),
    ],
};

pub(crate) const WAIT: Object = Object {
    path: "flow[].wait",
    about: "ws: for the next message.",
    is_open: false,
    keys: &[
        yes("capture", "from the next message"),
        yes("match", "with the next message"),
        yes("payload", "what is sent first"),
    ],
};

pub(crate) const CONNECT: Object = Object {
    path: "flow[].connect",
    about: "ws: a URL, or these. Options of `config.ws` may stand here too.",
    is_open: false,
    keys: &[
        yes("target", "the URL"),
        yes("headers", "fields of the opening request"),
        yes("subprotocols", "subprotocols that weir offers to the server"),
        yes("proxy", "`url` of an HTTP proxy"),
        yes("function", "a function of the processor that sets them"),
    ],
};

pub(crate) const EMIT: Object = Object {
    path: "flow[].emit",
    about: "socketio: an event.",
    is_open: false,
    keys: &[
        yes("channel", "the event's name"),
        yes("data", "its argument"),
        nothing("response", "since Artillery 2, write it beside `emit`", "Artillery 2부터 `emit` 옆에 씁니다"),
        nothing("acknowledge", "since Artillery 2, write it beside `emit`", "Artillery 2부터 `emit` 옆에 씁니다"),
        nothing("namespace", "since Artillery 2, write it beside `emit`", "Artillery 2부터 `emit` 옆에 씁니다"),
        nothing("concat", "write it in `response`", "`response` 안에 쓰세요"),
    ],
};

pub(crate) const RESPONSE: Object = Object {
    path: "flow[].response",
    about: "socketio, beside `emit`: the event to wait for.",
    is_open: false,
    keys: &[
        yes("channel", "the event's name"),
        yes("on", "the same"),
        partly(
            "data",
            "the required data; without it, weir takes the first event, and Artillery waits until its timeout",
        ),
        partly("args", "the same"),
        yes("concat", "`true` compares all texts put together"),
        yes("capture", "from the list of arguments"),
        yes("match", "with the list of arguments"),
    ],
};

pub(crate) const ACKNOWLEDGE: Object = Object {
    path: "flow[].acknowledge",
    about: "socketio, beside `emit`: the required content of the acknowledgement.",
    is_open: false,
    keys: &[
        yes("data", "what must come"),
        yes("args", "the same"),
        yes("capture", "from the list of arguments; without `json`, from the first argument"),
        yes("match", "with the list of arguments; without `json`, with the first argument"),
    ],
};
