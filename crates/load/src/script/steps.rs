//! The steps of a flow (artillery.md §2).

use weir_words::{Said, say};

use super::build::Builder;
use super::keys;
use super::near;
use super::node::{Node, NodeValue};
use super::take::MessageKind;
use crate::plan::{Connect, Emit, Engine, Expected, Flow, Jitter, Loop, LoopTimes, Response, Step, Think};
use crate::template::Template;
use crate::texts::script as texts;
use crate::value::{Value, text_to_number};

/// Default of `parallel`'s `limit`.
const PARALLEL_DEFAULT: usize = 100;

/// Largest `limit` of `parallel`.
const PARALLEL_MAX: usize = 10_000;

impl Builder<'_> {
    /// The steps of a list; nested lists are flattened.
    pub fn flow(&mut self, steps: &[Node], engine: Engine) -> Flow {
        let mut flow = Flow::new();
        for node in steps {
            match node.list() {
                Some(inner) => flow.extend(self.flow(inner, engine)),
                None => flow.push(self.step(node, engine, flow.is_empty())),
            }
        }
        flow
    }

    fn step(&mut self, node: &Node, engine: Engine, is_first: bool) -> Step {
        let has = |key: &str| node.get(key).filter(|node| node.is_truthy());
        if let Some(steps) = has("loop") {
            return Step::Loop(Box::new(self.looped(node, steps, engine)));
        }
        self.check_keys(node, engine);
        if let Some(think) = node.get("think") {
            return Step::Think(self.think(think, node.get("jitter"), engine));
        }
        match engine {
            Engine::Ws => {
                if let Some(step) = self.ws_step(node, is_first) {
                    return step;
                }
            }
            Engine::SocketIo => {
                if let Some(emit) = has("emit") {
                    return Step::Emit(Box::new(self.emit(node, emit)));
                }
            }
            Engine::Http => {}
        }
        if let Some(steps) = has("parallel").filter(|_| engine != Engine::Ws) {
            return self.parallel(node, steps, engine);
        }
        if let Some(log) = node.get("log") {
            return Step::Log(self.template(log));
        }
        if let Some(function) = has("function") {
            return Step::Function(self.function_name(function));
        }
        if engine == Engine::Ws {
            self.notes.warn(node.at, texts::NO_WS_STEP);
            return Step::Send { payload: self.tree(&Node::new(node.at, NodeValue::Undefined)), then: None };
        }
        self.verb(node)
    }

    /// Any other step is a request: its first key is the method.
    fn verb(&mut self, node: &Node) -> Step {
        let first = node.map().and_then(|members| members.first());
        let Some((verb, member)) = first else {
            self.notes.refuse(node.at, texts::EMPTY_STEP);
            return Step::Log(self.text(""));
        };
        if keys::STEP.key(verb).is_none() {
            let hint = near_step(verb);
            if member.value.map().is_none() || !is_word(verb) {
                self.notes.refuse(member.at, say!(texts::UNKNOWN_STEP, verb.as_ref(), hint));
            } else if !METHODS.contains(&verb.to_ascii_uppercase().as_str()) {
                self.notes.warn(member.at, say!(texts::OWN_METHOD, verb.as_ref(), verb.to_uppercase(), hint));
            }
        }
        Step::Request(Box::new(self.request(verb, &member.value)))
    }

    /// Checks the keys besides the first one.
    fn check_keys(&mut self, node: &Node, engine: Engine) {
        let is_request = |name: &str| METHODS.contains(&name.to_ascii_uppercase().as_str());
        for (index, (name, member)) in node.map().into_iter().flatten().enumerate() {
            let fits = match &**name {
                "jitter" => node.get("think").is_some(),
                "limit" => node.get("parallel").is_some(),
                "response" | "acknowledge" | "namespace" => engine == Engine::SocketIo && node.get("emit").is_some(),
                name => index == 0 || (engine == Engine::SocketIo && name == "emit"),
            };
            let is_verb = index == 0 && is_request(name);
            if !fits && !is_verb {
                self.notes.warn(member.at, say!(texts::NOT_IN_THIS_STEP, name.as_ref(), near_step(name)));
            }
        }
    }

    /// `think`; its own `jitter` wins over the default of the engine.
    pub fn think(&mut self, think: &Node, jitter: Option<&Node>, engine: Engine) -> Think {
        let own = jitter.and_then(|jitter| self.jitter(jitter));
        let jitter = own.or(if engine == Engine::Http { self.jitter_http } else { self.jitter_others });
        if think.text().is_some_and(|text| text.contains("{{")) {
            return Think { time: Err(self.template(think)), jitter };
        }
        match crate::duration::think(&think.value()) {
            Some(time) => {
                if time.is_bare_fraction {
                    self.notes.fraction(think.at);
                }
                Think { time: Ok(time.time), jitter }
            }
            None => {
                let text = think.shown();
                self.notes.warn(think.at, say!(texts::BAD_THINK, &text));
                Think { time: Err(self.text(&text)), jitter }
            }
        }
    }

    /// `jitter`: milliseconds, or a percentage.
    pub fn jitter(&mut self, node: &Node) -> Option<Jitter> {
        let text = node.shown();
        let read = match text.trim().strip_suffix('%') {
            Some(part) => {
                Some(text_to_number(part) / 100.0).filter(|part| *part >= 0.0).map(|part| Jitter::Part(part.min(1.0)))
            }
            None => {
                let ms = Some(node.number()).filter(|ms| *ms >= 0.0).map(|ms| Value::Number(ms / 1000.0));
                crate::duration::think(&ms.unwrap_or_else(|| node.value())).map(|time| Jitter::Time(time.time))
            }
        };
        if read.is_none() {
            self.notes.warn(node.at, texts::BAD_JITTER);
        }
        read
    }

    fn looped(&mut self, node: &Node, steps: &Node, engine: Engine) -> Loop {
        keys::LOOP.check(node, self.notes);
        let Some(list) = steps.list() else {
            self.notes.refuse(steps.at, texts::LOOP_NO_LIST);
            return self.loop_of(node, Flow::new(), LoopTimes::Range(0, 0));
        };
        let while_true = node.get("whileTrue");
        if let Some(function) = while_true.filter(|_| !self.has_processor) {
            self.notes.warn(function.at, texts::WHILE_NO_PROCESSOR);
        }
        let times = match (node.get("over"), node.get("count").filter(|count| count.is_truthy())) {
            (Some(over), _) => self.over(over),
            (None, None) => LoopTimes::Forever,
            (None, Some(count)) => match count.text() {
                Some(text) if text.contains("{{") => LoopTimes::Rendered(self.template(count)),
                _ => times(&count.value()),
            },
        };
        if matches!(times, LoopTimes::Forever) && (while_true.is_none() || !self.has_processor) {
            self.notes.warn(node.at, texts::ENDLESS_LOOP);
        }
        let flow = self.flow(list, engine);
        self.loop_of(node, flow, times)
    }

    fn loop_of(&mut self, node: &Node, flow: Flow, times: LoopTimes) -> Loop {
        let name = |key: &str, default: &str| {
            node.get(key).filter(|name| name.is_truthy()).map_or_else(|| default.to_owned(), Node::shown)
        };
        let from = if let LoopTimes::Range(from, _) = times { from } else { 0 };
        Loop {
            flow,
            times,
            while_true: node.get("whileTrue").filter(|_| self.has_processor).map(Node::shown),
            count: self.names.slot(&name("loopValue", "$loopCount")),
            element: self.names.slot(&name("loopElement", "$loopElement")),
            from,
        }
    }

    fn over(&mut self, over: &Node) -> LoopTimes {
        match &over.kind {
            NodeValue::List(list) => LoopTimes::Over(list.iter().map(Node::value).collect()),
            NodeValue::Text(name) if name.contains(['.', '[']) => {
                LoopTimes::OverPath(self.text(&format!("{{{{ {name} }}}}")))
            }
            NodeValue::Text(name) if !name.is_empty() => LoopTimes::OverVariable(self.names.slot(name)),
            _ => {
                self.notes.refuse(over.at, texts::BAD_OVER);
                LoopTimes::Range(0, 0)
            }
        }
    }

    fn parallel(&mut self, node: &Node, steps: &Node, engine: Engine) -> Step {
        let limit = node.get("limit").map(Node::number).filter(|limit| *limit >= 1.0);
        let limit = limit.map_or(PARALLEL_DEFAULT, |limit| (limit as usize).min(PARALLEL_MAX));
        let Some(list) = steps.list() else {
            self.notes.refuse(steps.at, texts::PARALLEL_NO_LIST);
            return Step::Parallel { steps: Flow::new(), limit };
        };
        // These steps are HTTP requests, also in a Socket.IO flow.
        let engine = if engine == Engine::SocketIo { Engine::Http } else { engine };
        Step::Parallel { steps: self.flow(list, engine), limit }
    }

    fn ws_step(&mut self, node: &Node, is_first: bool) -> Option<Step> {
        if let Some(connect) = node.get("connect").filter(|connect| connect.is_truthy()) {
            if !is_first {
                self.notes.warn(connect.at, texts::CONNECT_FIRST);
            }
            return Some(Step::Connect(Box::new(self.connect(connect))));
        }
        if let Some(wait) = node.get("wait").filter(|wait| wait.is_truthy()) {
            keys::WAIT.check(wait, self.notes);
            let take = self.take(wait, MessageKind::Message);
            return Some(match wait.get("payload") {
                Some(payload) => Step::Send { payload: self.tree(payload), then: Some(Box::new(take)) },
                None => Step::Wait(Box::new(take)),
            });
        }
        let send = node.get("send")?;
        let is_checked = send.get("capture").is_some() || send.get("match").is_some();
        if !is_checked {
            if let Some(payload) = send.get("payload") {
                self.notes.warn(payload.at, texts::WHOLE_OBJECT);
            }
            return Some(Step::Send { payload: self.tree(send), then: None });
        }
        let take = Box::new(self.take(send, MessageKind::Message));
        Some(match send.get("payload") {
            Some(payload) => Step::Send { payload: self.tree(payload), then: Some(take) },
            None => Step::Wait(take),
        })
    }

    fn connect(&mut self, node: &Node) -> Connect {
        if let Some(function) = node.get("function") {
            return Connect::Function(function.shown());
        }
        match node.map() {
            Some(_) => {
                keys::CONNECT.check_or(&keys::WS, node, self.notes);
                Connect::Options(self.tree(node))
            }
            None => Connect::Url(self.template(node)),
        }
    }

    fn emit(&mut self, node: &Node, emit: &Node) -> Emit {
        let message = match emit.list() {
            Some([channel, arguments @ ..]) => {
                Some((self.template(channel), arguments.iter().map(|argument| self.tree(argument)).collect()))
            }
            Some([]) => None,
            None => {
                keys::EMIT.check(emit, self.notes);
                let undefined = Node::new(emit.at, NodeValue::Undefined);
                let data = self.tree(emit.get("data").unwrap_or(&undefined));
                emit.get("channel").map(|channel| (self.template(channel), vec![data]))
            }
        };
        if message.is_none() {
            self.notes.refuse(emit.at, texts::BAD_EMIT);
        }
        Emit {
            message,
            namespace: node.get("namespace").filter(|name| name.is_truthy()).map(|name| self.template(name)),
            response: node.get("response").and_then(|response| self.response(response)),
            acknowledge: node.get("acknowledge").filter(|node| node.is_truthy()).map(|acknowledge| {
                keys::ACKNOWLEDGE.check(acknowledge, self.notes);
                self.expected(acknowledge, MessageKind::Acknowledgement)
            }),
        }
    }

    fn response(&mut self, node: &Node) -> Option<Response> {
        keys::RESPONSE.check(node, self.notes);
        let channel = ["channel", "on"].into_iter().find_map(|key| node.get(key).filter(|name| name.is_truthy()));
        let Some(channel) = channel else {
            self.notes.warn(node.at, texts::NO_CHANNEL);
            return None;
        };
        Some(Response {
            channel: self.template(channel),
            concat: node.get("concat").is_some_and(Node::is_truthy),
            expected: self.expected(node, MessageKind::Event),
        })
    }

    fn expected(&mut self, node: &Node, of: MessageKind) -> Expected {
        let data = ["data", "args"].into_iter().find_map(|key| node.get(key).filter(|data| data.is_truthy()));
        Expected { data: data.map(|data| self.tree(data)), take: self.take(node, of) }
    }

    /// A function's name; it needs a processor.
    pub fn function_name(&mut self, node: &Node) -> Template {
        if !self.has_processor {
            self.notes.warn(node.at, texts::NO_FUNCTION);
        }
        self.template(node)
    }
}

/// The step that a mistyped one most likely means, as the end of a sentence.
fn near_step(name: &str) -> Said {
    let near = near::nearest(name, keys::STEP.keys.iter().map(|key| key.name));
    near.filter(|near| *near != name).map_or_else(Said::default, |near| say!(texts::NEAR, near))
}

/// Whether a step whose word is this is a request with that method.
pub fn is_method(word: &str) -> bool {
    is_word(word) && (METHODS.contains(&word.to_ascii_uppercase().as_str()) || keys::STEP.key(word).is_none())
}

/// True for one letter or more, as in a method's name.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Methods that need no warning.
const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "QUERY"];

/// The number of rounds for a `count`: a number, or a text like `3` or `2-5`; any other value means none.
pub fn times(count: &Value) -> LoopTimes {
    let whole = |number: f64| if number == -1.0 { LoopTimes::Forever } else { LoopTimes::Range(0, round_up(number)) };
    match count {
        Value::Number(number) => whole(*number),
        Value::Text(text) => {
            let number = text_to_number(text);
            if !number.is_nan() {
                return whole(number);
            }
            let mut parts = text.split('-').map(text_to_number);
            let is_range = text
                .as_bytes()
                .windows(3)
                .any(|window| matches!(window, [low, b'-', high] if low.is_ascii_digit() && high.is_ascii_digit()));
            match (is_range, parts.next(), parts.next()) {
                (true, Some(from), Some(to)) if !from.is_nan() && !to.is_nan() => {
                    LoopTimes::Range(round_up(from), round_up(to))
                }
                _ => LoopTimes::Range(0, 0),
            }
        }
        _ => LoopTimes::Range(0, 0),
    }
}

/// Rounds up: `i < 2.5` is true for 0, 1 and 2.
fn round_up(number: f64) -> i64 {
    number.ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let range = |count: Value| match times(&count) {
            LoopTimes::Range(from, to) => Some((from, to)),
            _ => None,
        };
        assert_eq!(range(3.0.into()), Some((0, 3)));
        assert_eq!(range(2.5.into()), Some((0, 3)));
        assert_eq!(range((-1.0).into()), None);
        assert_eq!(range("-1".into()), None);
        for (text, expected) in [
            ("3", (0, 3)),
            ("2-5", (2, 5)),
            ("x", (0, 0)),
            ("", (0, 0)),
            ("0", (0, 0)),
            ("-1-5", (0, 1)),
            ("1 - 5", (0, 0)),
        ] {
            assert_eq!(range(text.into()), Some(expected), "{text}");
        }
        assert_eq!(range(Value::Undefined), Some((0, 0)));
    }
}
