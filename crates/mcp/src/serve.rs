//! The loop: reads messages, answers them, and does each call of a tool on a thread of its own.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use weir_net::process::{self, Signal};
use weir_net::{clock, worker};
use weir_words::{Said, say};

use crate::answer::{self, ToolAnswer};
use crate::child::{self, CallControl, ChildEnd, ChildWork};
use crate::input::Arguments;
use crate::message::{self, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, error, response};
use crate::settings::ServerSettings;
use crate::tool::{self, VerbEnd, VerbRun, copies_of, kept, store_of, value_with_originals, with_originals};
use crate::tools::{self, ToolRow};
use crate::{call, era, texts};

/// Most calls under way at once.
pub const CALLS_MAX: usize = 4;
/// The longest time for a child that reads files.
pub const READING_MAX: Duration = Duration::from_secs(60);
/// Most scripts that a server keeps.
pub const SCRIPTS_MAX: u64 = 64;
/// Most bytes of a run that the lab stored.
const RUN_BYTES_MAX: u64 = 64 << 20;
/// How long the server waits for its calls when it ends. A call that is cancelled takes less.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks whether they have ended.
const END_LOOK: Duration = Duration::from_millis(20);

/// Serves one client over standard input and output, until the input closes or a signal ends the server.
///
/// # Errors
/// There can be no directory for temporary files, no thread, or no handler of signals.
pub fn serve(settings: ServerSettings) -> Result<(), Said> {
    let room = Room::new().map_err(|error| say!(texts::NO_ROOM, error.to_string()))?;
    let desk = Arc::new(Desk {
        for_child: settings.for_child(&room.0),
        settings,
        room,
        calls: Mutex::default(),
        numbers: AtomicU64::new(1),
        scripts: AtomicU64::new(0),
        is_measuring: AtomicBool::new(false),
        is_ending: AtomicBool::new(false),
    });
    let failed = |error: io::Error| say!(texts::NO_SIGNALS, error.to_string());
    let mut signals = process::signals().map_err(failed)?;
    let ended = Arc::clone(&desk);
    let wait = move || {
        let is_end = |signal: &Signal| matches!(signal, Signal::Int | Signal::Term | Signal::Quit | Signal::Hup);
        if signals.find(is_end).is_some() {
            ended.end();
            ended.room.remove();
            std::process::exit(0);
        }
    };
    worker::block_aside("signals", wait).map_err(failed)?;
    let mut input = io::stdin().lock();
    while let Ok(Some(incoming)) = message::next(&mut input) {
        Desk::take(&desk, incoming);
    }
    desk.end();
    desk.room.remove();
    Ok(())
}

/// The directory of this server, for scripts and runs. No other user may enter it.
struct Room(PathBuf);

impl Room {
    fn new() -> io::Result<Room> {
        let base = std::env::temp_dir().canonicalize()?;
        let path = base.join(format!("weir-mcp-{}-{}", std::process::id(), clock::unix_ms()));
        // This fails if anything is there, even a link: no other user chooses where the server writes.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Room(path))
    }

    fn remove(&self) {
        // A directory that is left belongs to a process that has ended, as its name shows.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Desk {
    settings: ServerSettings,
    for_child: Value,
    room: Room,
    /// The calls under way, by the JSON of their ids.
    calls: Mutex<HashMap<String, Arc<CallControl>>>,
    numbers: AtomicU64,
    scripts: AtomicU64,
    is_measuring: AtomicBool,
    is_ending: AtomicBool,
}

/// A call of a tool.
struct Call {
    id: Value,
    params: Value,
    row: &'static ToolRow,
    arguments: Arguments,
    control: Arc<CallControl>,
}

impl Desk {
    fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<CallControl>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message. A client that has gone also closes the input, and that ends the server.
    fn send(&self, message: &Value) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    /// Does what a message asks for.
    fn take(desk: &Arc<Desk>, incoming: Incoming) {
        match incoming {
            Incoming::Nothing => {}
            Incoming::Wrong(response) => desk.send(&response),
            Incoming::Notification(method, params) if method == "notifications/cancelled" => {
                if let Some(control) = desk.calls().get(&params["requestId"].to_string()) {
                    control.cancel();
                }
            }
            Incoming::Notification(..) => {}
            Incoming::Request(id, method, params) => {
                if let Some(refusal) = era::refusal(&id, &params) {
                    return desk.send(&refusal);
                }
                match method.as_str() {
                    "initialize" => desk.send(&era::initialized(&id, &params)),
                    "server/discover" => desk.send(&era::discovered(&id, &params)),
                    "ping" => desk.send(&response(&id, &era::complete(json!({}), &params))),
                    "tools/list" => desk.send(&era::listed(&id, &params)),
                    "tools/call" => Desk::begin(desk, id, params),
                    _ => {
                        desk.send(&error(&id, METHOD_NOT_FOUND, "this server has tools and nothing else", Value::Null))
                    }
                }
            }
        }
    }

    /// Begins a call, or says why not.
    fn begin(desk: &Arc<Desk>, id: Value, params: Value) {
        let Some(row) = params["name"].as_str().and_then(tools::find) else {
            let names: Vec<&str> = tools::TOOLS.iter().map(|row| row.name).collect();
            let why = format!("no such tool; the tools are {}", names.join(", "));
            return desk.send(&error(&id, INVALID_PARAMS, &why, Value::Null));
        };
        let language = desk.settings.language;
        let arguments = match Arguments::read(row.parameters, &params["arguments"]) {
            Ok(arguments) => arguments,
            Err(why) => {
                let refused = ToolAnswer::refused(row.name, language, "bad_argument", why, texts::REMEDY_ARGUMENT);
                return desk.answer(&id, &params, &refused.json());
            }
        };
        let key = id.to_string();
        let control = Arc::new(CallControl::default());
        {
            let mut calls = desk.calls();
            if calls.contains_key(&key) {
                drop(calls);
                return desk.send(&error(&id, INVALID_REQUEST, "a request with this id is under way", Value::Null));
            }
            if calls.len() >= CALLS_MAX {
                drop(calls);
                let why = say!(texts::MANY_CALLS, CALLS_MAX);
                let refused = ToolAnswer::refused(row.name, language, "busy", why, texts::BUSY_REMEDY);
                return desk.answer(&id, &params, &refused.json());
            }
            calls.insert(key.clone(), Arc::clone(&control));
        }
        let (its, asked) = (Arc::clone(desk), (id.clone(), params.clone()));
        let call = Call { id, params, row, arguments, control };
        let begun = worker::block_aside("call", move || {
            let answer = its.perform(&call);
            its.calls().remove(&call.id.to_string());
            // A cancelled call has no answer.
            if let Some(answer) = answer.filter(|_| !call.control.is_cancelled()) {
                its.answer(&call.id, &call.params, &answer);
            }
        });
        if let Err(error) = begun {
            desk.calls().remove(&key);
            let failed = ToolAnswer::failed(row.name, language, say!(texts::CHILD_FAILED), &error.to_string());
            desk.answer(&asked.0, &asked.1, &failed.json());
        }
    }

    /// Sends the result of a call.
    fn answer(&self, id: &Value, params: &Value, answer: &Value) {
        let blocks = answer::text(answer, self.settings.language);
        let content: Vec<Value> = blocks.iter().map(|text| json!({"type": "text", "text": text})).collect();
        let result = json!({"content": content, "structuredContent": answer, "isError": answer::is_error(answer)});
        self.send(&response(id, &era::complete(result, params)));
    }

    /// Does a call, and removes the copies of its files. `None`: it was cancelled.
    fn perform(&self, call: &Call) -> Option<Value> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let answer = self.answer_of(call, number);
        // Most calls have no copies, and the room is removed at the end in any case.
        let _ = fs::remove_dir_all(copies_of(&self.room.0, number));
        answer
    }

    fn answer_of(&self, call: &Call, number: u64) -> Option<Value> {
        if call.row.name == "logs_to_script" && self.scripts.fetch_add(1, Ordering::Relaxed) >= SCRIPTS_MAX {
            let why = say!(texts::MANY_SCRIPTS, SCRIPTS_MAX);
            return Some(self.refused(call, "too_many_scripts", why, texts::REMEDY_SCRIPTS));
        }
        let began = clock::precise();
        let mut tell = |_: f64, lines: u64| self.progress(call, (clock::precise() - began).as_secs_f64(), lines);
        let line = call::line(call.row.name, &call.arguments, &self.for_child, number);
        let words = ["mcp".to_owned(), "call".to_owned()];
        let work = ChildWork { program: &self.settings.program, words: &words, line: &line, limit: READING_MAX };
        let mut found = match self.output(call, child::run(&work, &call.control, &mut tell), READING_MAX)? {
            Ok((output, said)) => match serde_json::from_slice::<Value>(&output) {
                Ok(found) => found,
                Err(_) => return Some(self.failed(call, &said)),
            },
            Err(answer) => return Some(answer),
        };
        if let Some(answer) = found.get_mut("answer").filter(|answer| answer.is_object()) {
            value_with_originals(answer, &copies_of(&self.room.0, number));
            return Some(answer.take());
        }
        let Some(run) = VerbRun::of_json(&found["run"]) else { return Some(self.failed(call, "")) };
        if !run.is_experiment {
            return self.verb(call, &run, number, &mut tell);
        }
        if self.is_measuring.swap(true, Ordering::AcqRel) {
            return Some(self.refused(call, "busy", say!(texts::BUSY), texts::BUSY_REMEDY));
        }
        let answer = self.verb(call, &run, number, &mut tell);
        self.is_measuring.store(false, Ordering::Release);
        answer
    }

    /// Runs a verb, and makes the answer of its JSON; for an experiment, of the run that the lab stored.
    fn verb(&self, call: &Call, run: &VerbRun, number: u64, tell: &mut dyn FnMut(f64, u64)) -> Option<Value> {
        let beginning = ["--lang", "en", "mcp", "run", "--"].map(str::to_owned);
        let words: Vec<String> = beginning.into_iter().chain(run.words.iter().cloned()).collect();
        let work = ChildWork { program: &self.settings.program, words: &words, line: "", limit: run.limit };
        let ended = child::run(&work, &call.control, tell);
        let store = run.is_experiment.then(|| store_of(&self.room.0, number));
        let copies = copies_of(&self.room.0, number);
        let kept = store.as_deref().and_then(|store| kept(store, RUN_BYTES_MAX)).map(|(path, mut run)| {
            value_with_originals(&mut run, &copies);
            (path, run)
        });
        let answer = match self.output(call, ended, run.limit) {
            None => None,
            Some(Err(answer)) => Some(answer),
            Some(Ok((output, said))) => {
                let json = match (&store, &kept) {
                    (None, _) => serde_json::from_slice(&output).unwrap_or(Value::Null),
                    (Some(_), Some((_, run))) => run.clone(),
                    (Some(_), None) => Value::Null,
                };
                let end = VerbEnd { json, said: with_originals(&said, &copies) };
                Some(tool::conclude(call.row, &call.arguments, &self.settings, &end))
            }
        };
        self.keep(kept, store.as_deref());
        answer
    }

    /// Writes a run to the place that the person named, and removes it from the room.
    fn keep(&self, kept: Option<(PathBuf, Value)>, store: Option<&Path>) {
        if let (Some((path, run)), Some(to)) = (&kept, &self.settings.store)
            && let Some(name) = path.file_name()
            && let Err(error) = fs::create_dir_all(to).and_then(|()| fs::write(to.join(name), format!("{run:#}\n")))
        {
            let _ = writeln!(io::stderr(), "weir mcp: {}: {error}", to.display());
        }
        // The room is removed at the end in any case.
        let _ = store.map(fs::remove_dir_all);
    }

    /// The output and the last words of a child; or the answer that says why there are none. `None`: cancelled.
    fn output(&self, call: &Call, ended: ChildEnd, limit: Duration) -> Option<Result<(Vec<u8>, String), Value>> {
        Some(match ended {
            ChildEnd::Cancelled => return None,
            ChildEnd::Done { output, said } => Ok((output, said)),
            ChildEnd::TooLong => {
                let why = say!(texts::TOO_LONG, limit.as_secs());
                Err(self.refused(call, "too_long", why, texts::REMEDY_TIME))
            }
            ChildEnd::TooMuch => {
                let why = say!(texts::TOO_MUCH, child::OUTPUT_BYTES_MAX);
                Err(self.refused(call, "too_much_output", why, texts::REMEDY_SMALLER))
            }
            ChildEnd::NotStarted(why) => Err(self.failed(call, &why)),
        })
    }

    fn refused(&self, call: &Call, name: &'static str, why: Said, remedy: weir_words::Text) -> Value {
        ToolAnswer::refused(call.row.name, self.settings.language, name, why, remedy).json()
    }

    fn failed(&self, call: &Call, said: &str) -> Value {
        ToolAnswer::failed(call.row.name, self.settings.language, say!(texts::CHILD_FAILED), said).json()
    }

    /// Tells the client how far a call is, if it gave a token.
    fn progress(&self, call: &Call, seconds: f64, lines: u64) {
        let token = &call.params["_meta"]["progressToken"];
        if call.control.is_cancelled() || !(token.is_string() || token.is_i64() || token.is_u64()) {
            return;
        }
        let seconds = (seconds * 10.0).round() / 10.0;
        let said = say!(texts::PROGRESS, format!("{seconds:.0}"), lines);
        self.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": token, "progress": seconds, "message": said.say(self.settings.language)},
        }));
    }

    /// Ends all calls, and waits until their children have ended.
    fn end(&self) {
        if self.is_ending.swap(true, Ordering::AcqRel) {
            return;
        }
        self.calls().values().for_each(|control| control.cancel());
        let ordered = clock::precise();
        while !self.calls().is_empty() && clock::precise() - ordered < END_PATIENCE {
            std::thread::sleep(END_LOOK);
        }
    }
}
