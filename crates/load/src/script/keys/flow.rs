//! Keys inside the flows.

use super::{Object, no, nothing, partly, yes};

pub(crate) const STEP: Object = Object {
    path: "flow[]",
    about: "A step: its first key says what it is. Any other name with an object that has a `url` is a request with that \
            method.",
    is_open: false,
    keys: &[
        yes("get", "a request"),
        yes("post", "a request"),
        yes("put", "a request"),
        yes("patch", "a request"),
        yes("delete", "a request"),
        yes("head", "a request"),
        yes("options", "a request"),
        partly("think", "wait; a fraction without a unit is seconds here, and next to nothing in Artillery"),
        partly("jitter", "beside `think`: milliseconds or a percentage; refused by Artillery's command line"),
        yes("log", "print a text"),
        yes("function", "call a function of the processor"),
        yes("loop", "steps again and again; see below"),
        yes("parallel", "requests at the same time"),
        partly("limit", "beside `parallel`: at most so many at once; refused by Artillery's command line"),
        yes("send", "ws: send a message"),
        yes("wait", "ws: wait for a message"),
        yes("connect", "ws: how to connect; only as the first step"),
        yes("emit", "socketio: send an event: `{channel, data}`, or a list of the event and its arguments"),
        yes("response", "socketio, beside `emit`: an event to wait for"),
        yes("acknowledge", "socketio, beside `emit`: wait for the acknowledgement"),
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
            "how often; for ever without it (or `0`), unless `over` or `whileTrue` says; `\"2-5\"` counts 2, 3, 4",
        ),
        yes("over", "a list, or the name of a variable that holds one"),
        yes("whileTrue", "a function of the processor, asked after each round"),
        yes("loopValue", "the variable that counts; `$loopCount` unless set"),
        yes("loopElement", "the variable of the element; `$loopElement` unless set"),
        nothing("from", "write `count: \"FROM-TO\"`"),
        nothing("name", "a loop has no name"),
    ],
};

pub(crate) const REQUEST: Object = Object {
    path: "flow[].get",
    about: "A request of the http engine; the same for every method.",
    is_open: false,
    keys: &[
        yes("url", "required; `config.target` is put before what begins with `/`"),
        yes("uri", "the older name of `url`"),
        yes("name", "for reports by endpoint"),
        yes("headers", "over those of `config.http.defaults`"),
        yes("json", "a body, written as JSON"),
        yes("body", "a body as it is"),
        yes("form", "a body, url-encoded"),
        yes("formData", "a body in parts (multipart)"),
        yes("setContentLengthHeader", "with `formData`: the size of the file becomes `content-length`"),
        yes("qs", "the query; replaces one in the URL"),
        yes("cookie", "cookies put into the jar first"),
        yes("auth", "`user` and `pass`, sent as HTTP Basic"),
        yes("gzip", "`false` asks for no compression"),
        yes("http2", "`true` speaks HTTP/2 over `https://` where the server agrees; `false` never"),
        yes("followRedirect", "`false` takes a redirect as the answer"),
        yes("allowGetBody", "`true` lets a GET have a body"),
        yes("capture", "takes values from the answer into variables"),
        yes("match", "compares values of the answer; deprecated, write `expect`"),
        yes("expect", "checks of the plugin `expect`"),
        yes("beforeRequest", "functions called before the request"),
        yes("afterResponse", "functions called after the response"),
        yes("ifTrue", "a condition: a function of the processor, or an expression"),
        partly("probability", "0 to 100; 100 always runs here, and in Artillery 99 times of 100"),
        nothing("timeout", "`config.http.timeout` is taken; a `beforeRequest` function can set it"),
        no("maxRedirects", "always 10"),
        no("decompress", "write `gzip`"),
        no("username", "write `auth`"),
        no("password", "write `auth`"),
        no("searchParams", "write `qs`"),
        no("retry", "a request is never sent a second time"),
        no("https", "write `config.tls`"),
        no("agent", "connections are weir's own"),
        no("encoding", "bodies are read as UTF-8"),
        no("cookieJar", "every virtual user has its own"),
        no("method", "the step's key is the method"),
        no("think", "a step of its own"),
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
        yes("fromFile", "a file, from the directory of the script, read before the run"),
        yes("contentType", "of the part"),
    ],
};

pub(crate) const CAPTURE: Object = Object {
    path: "flow[].get.capture",
    about: "One, or a list.",
    is_open: false,
    keys: &[
        yes("as", "the variable; required"),
        yes("json", "a JSONPath; of several matches one at random"),
        yes("multiple", "`false` takes all matches"),
        yes("regexp", "a regular expression of JavaScript"),
        yes("group", "its group, by number or name"),
        yes("flags", "its flags"),
        yes("header", "a header's name, in lower case"),
        yes("selector", "a CSS selector"),
        yes("attr", "the attribute to take"),
        yes("index", "which element: a number, `last` or `random`"),
        yes("xpath", "an XPath; Artillery needs the npm module artillery-xml-capture for it"),
        yes("strict", "`false` lets it find nothing"),
        yes("value", "makes a `match` of it"),
        nothing("transform", "it went with Artillery 1; write a function"),
    ],
};

pub(crate) const MATCH: Object = Object {
    path: "flow[].get.match",
    about: "One, or a list. Deprecated: write `expect`.",
    is_open: false,
    keys: &[
        yes("value", "what it must be, type and all"),
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
        yes("strict", "`false` lets it differ"),
    ],
};

pub(crate) const EXPECT: Object = Object {
    path: "flow[].get.expect",
    about: "Checks, as an object or a list of some. They run if `config.plugins` lists `expect`.",
    is_open: false,
    keys: &[
        yes("statusCode", "a status, or a list of which one must fit"),
        yes("notStatusCode", "the contrary"),
        yes("contentType", "`json`, or the whole value of the header"),
        yes("hasProperty", "a path in the JSON body"),
        yes("notHasProperty", "the contrary"),
        yes("hasHeader", "a header's name"),
        yes("headerEquals", "a list of name and value"),
        yes("equals", "a list whose values must be the same"),
        yes("matchesRegexp", "a regular expression for the body"),
        yes("jmespath", "a JMESPath that must be true"),
        yes("jpath", "the same"),
        yes("cdnHit", "whether a CDN had it"),
    ],
};

pub(crate) const SEND: Object = Object {
    path: "flow[].send",
    about: "ws: what is sent: a text, a number, any object; or these, if `capture` or `match` is there.",
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
        yes("headers", "of the opening request"),
        yes("subprotocols", "offered to the server"),
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
        nothing("response", "it stands beside `emit` since Artillery 2"),
        nothing("acknowledge", "it stands beside `emit` since Artillery 2"),
        nothing("namespace", "it stands beside `emit` since Artillery 2"),
        nothing("concat", "it stands in `response`"),
    ],
};

pub(crate) const RESPONSE: Object = Object {
    path: "flow[].response",
    about: "socketio, beside `emit`: an event to wait for.",
    is_open: false,
    keys: &[
        yes("channel", "the event's name"),
        yes("on", "the same"),
        partly("data", "what must come; without it the first event is taken here, and Artillery waits out its timeout"),
        partly("args", "the same"),
        yes("concat", "`true` compares all texts put together"),
        yes("capture", "from the list of arguments"),
        yes("match", "with the list of arguments"),
    ],
};

pub(crate) const ACKNOWLEDGE: Object = Object {
    path: "flow[].acknowledge",
    about: "socketio, beside `emit`: what the acknowledgement must hold.",
    is_open: false,
    keys: &[
        yes("data", "what must come"),
        yes("args", "the same"),
        yes("capture", "from the list of arguments; of the first one unless `json` says"),
        yes("match", "with the list of arguments; with the first one unless `json` says"),
    ],
};
