//! A processor in a Node child, for features that QuickJS lacks: npm packages, most of Node's modules, TypeScript.
//!
//! Each worker has one child. It serves calls of many virtual users at the same time, which have different ids. When
//! the child dies, every current call and every later call fails: no call waits for it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_net::worker::spawn;
use weir_net::{Deadline, Stream};

use super::context::Context;
use super::host::{ProcessorFile, ProcessorHost};
use super::state::{CallResult, FunctionKind, Lent, ProcessorState};
use super::wire::{self, FRAME_MAX, begin_frame, end_frame, items, member, members};
use super::wires::{ReceivedEvent, Wires};
use crate::engine::http::session::HttpSession;
use crate::value::{Value, write_json_text};

/// Time for Node to start and load a processor.
pub const LOAD_MAX: Duration = Duration::from_secs(60);
/// A call that takes longer fails; Artillery waits for ever.
pub const CALL_MAX: Duration = Duration::from_secs(600);
/// Longest time of a function in a template; all virtual users of the thread wait for it.
pub const TEMPLATE_MAX: Duration = Duration::from_secs(10);
/// Most bytes that wait to be sent to the child; a further call fails.
pub const UNSENT_MAX: usize = 256 << 20;
/// Most bytes of one read from the child.
const READ_BYTES: usize = 64 << 10;

const SOURCE: &str =
    concat!("'use strict';", include_str!("js/shared.js"), include_str!("js/wires.js"), include_str!("js/host.js"));

/// See the module.
pub struct NodeProcess {
    names: HashSet<String>,
    pub state: Rc<ProcessorState>,
    link: Rc<Link>,
    _child: Reaped,
    /// The socket, until the first call registers it with the worker.
    socket: RefCell<Option<UnixStream>>,
    /// The socket for functions in templates; closed after one did not answer.
    asks: RefCell<Option<UnixStream>>,
    call_max: Cell<Duration>,
    /// Virtual users that the child knows.
    users: RefCell<HashSet<Box<str>>>,
}

/// The connection to the child; shared with the task that reads.
struct Link {
    stream: RefCell<Option<Rc<Stream>>>,
    unsent: RefCell<Vec<u8>>,
    waker: RefCell<Option<Waker>>,
    /// Why calls are no longer possible.
    broken: RefCell<Option<String>>,
    /// Number of shared values that the child knows.
    known: Cell<usize>,
}

/// A child, and the sockets to it.
struct Started {
    child: Reaped,
    socket: UnixStream,
    asks: UnixStream,
}

/// A child process that is killed when its owner is dropped.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of `node`, if it is on `PATH`.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("node")).find(|file| file.is_file())
}

fn start(node: &Path) -> io::Result<Started> {
    let (own, theirs) = UnixStream::pair()?;
    let (asks, answers) = UnixStream::pair()?;
    let child = Command::new(node)
        .args(["--no-warnings", "-e", SOURCE])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(answers)))
        .spawn()?;
    own.set_read_timeout(Some(LOAD_MAX))?;
    asks.set_read_timeout(Some(TEMPLATE_MAX))?;
    asks.set_write_timeout(Some(TEMPLATE_MAX))?;
    Ok(Started { child: Reaped(child), socket: own, asks })
}

/// Makes the child load the file, and waits for its answer; prints the lines that the child prints meanwhile.
fn load(started: &mut Started, facts: &ProcessorFile, host: &ProcessorHost, is_script: bool) -> Result<Value, String> {
    let mut frame = begin_frame();
    frame.extend_from_slice(b"{\"op\":\"load\",\"file\":");
    write_json_text(&facts.file, &mut frame);
    frame.extend_from_slice(b",\"facts\":{\"testRunId\":");
    write_json_text(&host.test_run_id, &mut frame);
    frame.extend_from_slice(b",\"version\":");
    write_json_text(host.version, &mut frame);
    frame.extend_from_slice(format!("}},\"isScript\":{is_script}}}").as_bytes());
    end_frame(&mut frame);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => format!("Node did not load it within {} s", LOAD_MAX.as_secs()),
        _ => "Node ended while loading it".to_owned(),
    };
    started.socket.write_all(&frame).map_err(failed)?;
    loop {
        let message = receive(&mut started.socket).map_err(failed)?;
        match member(&message, "op").and_then(Value::as_str) {
            Some("say") => (host.say)(member(&message, "text").map(Value::to_string).unwrap_or_default()),
            Some("refused") => return Err(member(&message, "message").map(Value::to_string).unwrap_or_default()),
            Some("ready" | "script") => return Ok(message),
            _ => {}
        }
    }
}

fn receive(socket: &mut UnixStream) -> io::Result<Value> {
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let length = wire::frame_length(&head).filter(|length| *length <= FRAME_MAX);
    let mut frame = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    socket.read_exact(&mut frame)?;
    wire::read(&frame).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Evaluates a script written in JavaScript or TypeScript.
pub fn script(node: &Path, facts: &ProcessorFile, host: &ProcessorHost) -> Result<Value, String> {
    let mut started = start(node).map_err(|error| format!("cannot start {}: {error}", node.display()))?;
    let message = load(&mut started, facts, host, true)?;
    Ok(member(&message, "value").cloned().unwrap_or_default())
}

impl NodeProcess {
    /// Starts Node and loads a processor there.
    pub fn load(node: &Path, facts: &ProcessorFile, host: ProcessorHost) -> Result<NodeProcess, String> {
        let mut started = start(node).map_err(|error| format!("cannot start {}: {error}", node.display()))?;
        let message = load(&mut started, facts, &host, false)?;
        let names = items(&message, "names").iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let link = Rc::new(Link {
            stream: RefCell::default(),
            unsent: RefCell::default(),
            waker: RefCell::default(),
            broken: RefCell::default(),
            known: Cell::new(0),
        });
        let state = ProcessorState::new(host);
        let child = link.clone();
        state.hear.replace(Some(Rc::new(move |number, heard| hear(&child, number, heard))));
        Ok(NodeProcess {
            names,
            state,
            link,
            _child: started.child,
            socket: RefCell::new(Some(started.socket)),
            asks: RefCell::new(Some(started.asks)),
            call_max: Cell::new(CALL_MAX),
            users: RefCell::default(),
        })
    }

    /// True if the file exports a function with this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Calls a function.
    pub async fn call(&self, name: &str, kind: FunctionKind, args: [&Value; 2], context: Context<'_>) -> CallResult {
        self.connect()?;
        let Context { vars, scenario, uid, session, wires, recorder } = context;
        let id = self.state.begin(vars.take(), Value::Undefined, session, kind, wires);
        let lent = Lent { state: &self.state, id, vars };
        if !self.users.borrow().contains(uid) {
            self.users.borrow_mut().insert(uid.into());
        }
        let frame = self.frame(id, name, kind, uid, scenario, args);
        self.link.send(frame)?;
        let deadline = Deadline::new();
        deadline.set(self.call_max.get());
        let outcome = poll_fn(|task| {
            if let Some(outcome) = self.state.outcome(id) {
                return Poll::Ready(outcome);
            }
            if let Some(call) = self.state.calls.borrow_mut().get_mut(&id) {
                call.waker = Some(task.waker().clone());
            }
            let time = self.call_max.get();
            deadline.poll_expired().map(|()| Err(format!("function {name} did not end in {time:?}")))
        })
        .await;
        self.state.record(recorder);
        drop(lent);
        outcome
    }

    /// On the first call: registers the socket with the worker, and starts the task that reads it.
    fn connect(&self) -> Result<(), String> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        let stream = Stream::from_fd(OwnedFd::from(socket)).map_err(|error| format!("processor: {error}"))?;
        let stream = Rc::new(stream);
        self.link.stream.replace(Some(stream.clone()));
        spawn(pump(self.link.clone(), stream, self.state.clone()));
        Ok(())
    }

    fn frame(
        &self,
        id: u64,
        name: &str,
        kind: FunctionKind,
        uid: &str,
        scenario: &Value,
        args: [&Value; 2],
    ) -> Vec<u8> {
        let mut frame = begin_frame();
        let scenario = self.reference(scenario, true);
        frame.extend_from_slice(format!("{{\"op\":\"call\",\"id\":{id},\"kind\":{},\"name\":", kind as u8).as_bytes());
        write_json_text(name, &mut frame);
        frame.extend_from_slice(b",\"uid\":");
        write_json_text(uid, &mut frame);
        if let Some(index) = scenario {
            frame.extend_from_slice(format!(",\"scenario\":{index}").as_bytes());
        }
        for (name, value) in ["first", "second"].into_iter().zip(args) {
            if *value != Value::Undefined {
                frame.extend_from_slice(format!(",\"{name}\":").as_bytes());
                wire::write(value, &mut frame);
            }
        }
        let calls = self.state.calls.borrow();
        let cookies = calls.get(&id).map(|call| call.session.listed_cookies()).unwrap_or_default();
        if cookies != Value::Undefined {
            frame.extend_from_slice(b",\"cookies\":");
            wire::write(&cookies, &mut frame);
        }
        if let Some(wires) = calls.get(&id).and_then(|call| call.wires.as_ref()) {
            self.write_wires(wires, &mut frame);
        }
        frame.extend_from_slice(b",\"vars\":{");
        let set = calls.get(&id).into_iter().flat_map(|call| call.vars.iter());
        for (index, (name, value)) in set.filter(|(_, value)| **value != Value::Undefined).enumerate() {
            if index > 0 {
                frame.push(b',');
            }
            write_json_text(name, &mut frame);
            frame.push(b':');
            // The environment is the same for all virtual users.
            match self.reference(value, name.starts_with('$')) {
                Some(index) => wire::write_reference(index, &mut frame),
                None => wire::write(value, &mut frame),
            }
        }
        frame.extend_from_slice(b"}}");
        frame
    }

    /// Writes the state of the connections that a function may ask for while it runs.
    fn write_wires(&self, wires: &Rc<Wires>, frame: &mut Vec<u8>) {
        let (number, line) = (wires.number(&self.state), wires.line());
        frame.extend_from_slice(format!(",\"wires\":{{\"number\":{number},\"kind\":{}", line.kind() as u8).as_bytes());
        for (name, is_open) in [("open", true), ("shut", false)] {
            let places = line.places().into_iter().filter(|place| line.is_open(place) == is_open);
            frame.extend_from_slice(format!(",\"{name}\":").as_bytes());
            wire::write(&Value::from(places.map(|place| Value::from(&*place)).collect::<Vec<_>>()), frame);
        }
        frame.push(b'}');
    }

    /// The number of a large shared value; sends the value to the child the first time.
    fn reference(&self, value: &Value, is_always: bool) -> Option<usize> {
        let index = self.state.share(value, is_always)?;
        while self.link.known.get() <= index {
            let next = self.link.known.get();
            let mut frame = begin_frame();
            frame.extend_from_slice(format!("{{\"op\":\"reference\",\"index\":{next},\"value\":").as_bytes());
            wire::write(self.state.shared.borrow().get(next)?, &mut frame);
            frame.push(b'}');
            self.link.known.set(next + 1);
            self.link.send(frame).ok()?;
        }
        Some(index)
    }

    /// Calls a function for a template, if the processor added one with this name. The thread waits for it.
    pub fn template(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        if !self.state.functions.borrow().contains(name) {
            return None;
        }
        let mut frame = begin_frame();
        frame.extend_from_slice(b"{\"name\":");
        write_json_text(name, &mut frame);
        frame.extend_from_slice(b",\"arguments\":");
        wire::write(&Value::from(arguments.to_vec()), &mut frame);
        frame.push(b'}');
        if !end_frame(&mut frame) {
            return None;
        }
        let mut asks = self.asks.borrow_mut();
        let socket = asks.as_mut()?;
        match socket.write_all(&frame).and_then(|()| receive(socket)) {
            Ok(answer) if member(&answer, "failed").is_some() => None,
            Ok(answer) => Some(member(&answer, "value").cloned().unwrap_or_default()),
            Err(_) => {
                *asks = None;
                let seconds = TEMPLATE_MAX.as_secs();
                let why = format!("Error: {name}() did not answer within {seconds} s; templates no longer call Node");
                (self.state.host.say)(why);
                None
            }
        }
    }

    /// Forgets what the child keeps for a virtual user.
    pub fn forget(&self, uid: &str) {
        if self.users.borrow_mut().remove(uid) {
            let mut frame = begin_frame();
            frame.extend_from_slice(b"{\"op\":\"forget\",\"uid\":");
            write_json_text(uid, &mut frame);
            frame.push(b'}');
            let _ = self.link.send(frame);
        }
    }

    #[cfg(test)]
    pub fn set_bounds(&self, call: Duration) {
        self.call_max.set(call);
    }

    #[cfg(test)]
    pub fn child_id(&self) -> u32 {
        self._child.0.id()
    }
}

/// Sends the child an event for listeners of its functions; `None`: their connections are gone.
fn hear(link: &Link, number: u64, heard: Option<&ReceivedEvent>) {
    let mut frame = begin_frame();
    frame.extend_from_slice(format!("{{\"op\":\"heard\",\"number\":{number}").as_bytes());
    if let Some(ReceivedEvent { kind, place, text, number: answer }) = heard {
        let kind = *kind as u8;
        frame.extend_from_slice(format!(",\"kind\":{kind},\"answer\":{answer},\"place\":").as_bytes());
        write_json_text(place, &mut frame);
        frame.extend_from_slice(b",\"text\":");
        write_json_text(text, &mut frame);
    }
    frame.push(b'}');
    // If the child is gone, each call fails anyway.
    let _ = link.send(frame);
}

/// Carries out a function's action on its connections.
fn wire_op(op: &str, message: &Value, state: &Rc<ProcessorState>) {
    let number = |name: &str| member(message, name).map(|number| number.to_number() as u64);
    let text = |name: &str| member(message, name).map(Value::to_string).unwrap_or_default();
    let Some(wires) = number("number").and_then(|number| state.wires(number)) else { return };
    match op {
        "listen" => wires.listen(state),
        "emit" => {
            let answer = number("answer");
            let id = wires.line().emit(&text("place"), &text("text"), answer.is_some());
            if let (Some(id), Some(answer)) = (id, answer) {
                wires.answers_as(text("place"), id, answer);
            }
        }
        "close" => wires.line().close(&text("place")),
        _ => {
            for (name, value) in members(message, "vars").into_iter().flatten() {
                state.set_left(&wires, name, value.clone());
            }
            for name in items(message, "gone") {
                state.set_left(&wires, &name.to_text(), Value::Undefined);
            }
        }
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.link.end("the processor is closed".to_owned(), &self.state);
    }
}

impl Link {
    /// Sends a frame; the task that reads sends the part that does not fit.
    fn send(&self, mut frame: Vec<u8>) -> Result<(), String> {
        if let Some(broken) = &*self.broken.borrow() {
            return Err(broken.clone());
        }
        if !end_frame(&mut frame) {
            return Err(format!("processor: more than {FRAME_MAX} bytes of variables for Node"));
        }
        let mut unsent = self.unsent.borrow_mut();
        if unsent.len() + frame.len() > UNSENT_MAX {
            return Err("processor: Node is too slow for the calls".to_owned());
        }
        unsent.extend_from_slice(&frame);
        drop(unsent);
        self.write();
        if !self.unsent.borrow().is_empty()
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
        Ok(())
    }

    /// Writes as much as the socket accepts; the reading side reports errors.
    fn write(&self) -> bool {
        let stream = self.stream.borrow();
        let Some(stream) = &*stream else { return false };
        let mut unsent = self.unsent.borrow_mut();
        match stream.try_write(&unsent) {
            Ok(sent) => {
                unsent.drain(..sent);
                true
            }
            Err(_) => false,
        }
    }

    /// Ends the connection: current calls fail, and no more calls are possible.
    fn end(&self, why: String, state: &ProcessorState) {
        self.broken.borrow_mut().get_or_insert(why.clone());
        self.stream.take();
        let ids: Vec<u64> = state.calls.borrow().keys().copied().collect();
        for id in ids {
            state.finish(id, Err(why.clone()));
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Reads the child's messages, and writes the waiting bytes, until either end closes.
async fn pump(link: Rc<Link>, stream: Rc<Stream>, state: Rc<ProcessorState>) {
    let mut held = Vec::new();
    poll_fn(|task| {
        loop {
            if link.broken.borrow().is_some() {
                return Poll::Ready(());
            }
            if stream.poll_readable().is_ready() {
                match stream.try_read_vec(&mut held, READ_BYTES) {
                    Ok(0) => break,
                    Ok(_) if take_frames(&mut held, &state) => continue,
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(_) => break,
                }
            }
            if !link.unsent.borrow().is_empty() && stream.poll_writable().is_ready() {
                link.write();
                continue;
            }
            link.waker.replace(Some(task.waker().clone()));
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
    if link.broken.borrow().is_none() {
        (state.host.say)("Error: the Node process of the processor ended; every later function call fails".to_owned());
        link.end("processor: Node ended".to_owned(), &state);
    }
}

/// Takes the complete frames from the bytes read; false if the child breaks the protocol.
fn take_frames(held: &mut Vec<u8>, state: &Rc<ProcessorState>) -> bool {
    let mut at = 0;
    while let Some(length) = wire::frame_length(held.get(at..).unwrap_or_default()) {
        if length > FRAME_MAX {
            return false;
        }
        let Some(frame) = held.get(at + 4..at + 4 + length) else { break };
        let Some(message) = wire::read(frame) else { return false };
        take(&message, state);
        at += 4 + length;
    }
    held.drain(..at);
    held.reserve(READ_BYTES);
    true
}

fn take(message: &Value, state: &Rc<ProcessorState>) {
    match member(message, "op").and_then(Value::as_str) {
        Some(op @ ("listen" | "emit" | "close" | "left")) if member(message, "number").is_some() => {
            wire_op(op, message, state);
        }
        Some("end") => end_call(message, state),
        Some("say") => (state.host.say)(member(message, "text").map(Value::to_string).unwrap_or_default()),
        Some("emit") => {
            for event in items(message, "list") {
                let Value::List(event) = event else { continue };
                if let [kind, name, value] = event.as_slice() {
                    state.emit(kind.to_number() as u8, name.to_string(), value.to_number());
                }
            }
        }
        Some("function") => {
            state.functions.borrow_mut().insert(member(message, "name").map(Value::to_string).unwrap_or_default());
        }
        Some("exit") => state.exit_code.set(member(message, "code").map(|code| code.to_number() as i32)),
        _ => {}
    }
}

fn end_call(message: &Value, state: &ProcessorState) {
    let Some(id) = member(message, "id").map(|id| id.to_number() as u64) else { return };
    if let Some(call) = state.calls.borrow_mut().get_mut(&id) {
        for (name, value) in members(message, "vars").into_iter().flatten() {
            call.vars.set_by_name(name, value.clone());
        }
        for name in items(message, "gone") {
            call.vars.set_by_name(&name.to_text(), Value::Undefined);
        }
        for cookie in items(message, "cookies") {
            match cookie {
                Value::List(pair) => put_cookie(&call.session, pair),
                _ => call.session.clear_cookies(),
            }
        }
    }
    let outcome = match member(message, "error") {
        Some(error) => Err(error.to_string()),
        None => Ok(member(message, "value").cloned().unwrap_or_default()),
    };
    state.finish(id, outcome);
}

/// Stores a cookie that a function set: its text and its URL.
fn put_cookie(session: &HttpSession, pair: &[Value]) {
    if let [text, url] = pair {
        session.put_cookie(&text.to_text(), &url.to_text());
    }
}
