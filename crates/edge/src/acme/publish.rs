//! The ways in which a record of a challenge gets into DNS: weir's own responder, an update of a zone, a program.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use weir_acme::{Record, SharedKey};
use weir_net::log::Os;
use weir_net::process::{self, Identity};
use weir_net::{Datagram, Deadline, aside, clock, random};
use weir_wire::dns::{Code, Name, update};

use crate::errands;
use crate::keeper::order::{Done, Errand};

/// How long one update waits for its response, and how often it is sent.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(5);
const UPDATE_TRIES: usize = 3;

/// How long a program may run, and how often weir looks whether it has ended.
const HOOK_TIMEOUT: Duration = Duration::from_secs(120);
const HOOK_LOOK: Duration = Duration::from_millis(50);

/// The longest argument of a program: a name of DNS has 253 characters.
const HOOK_WORD_MAX: usize = 255;
/// The length of a SHA-256 digest in base64url.
const DIGEST_LENGTH: usize = 43;

/// Room for the response to an update.
const RESPONSE_BYTES: usize = 1232;

/// The way into DNS.
#[derive(Clone, Debug)]
pub enum Publisher {
    /// The user writes the record.
    Nobody,
    /// weir answers the question itself (`acme_dns_port`).
    Responder,
    /// A server takes changes of the zone (`dns_update`).
    Update(Arc<Update>),
    /// A program does it (`dns_hook`).
    Hook(PathBuf),
}

/// `dns_update`.
#[derive(Debug)]
pub struct Update {
    /// The server.
    pub server: SocketAddr,
    /// `zone=`.
    pub zone: Name,
    /// The key, if there is one.
    pub key: Option<(SharedKey, Name, Name)>,
    /// `ttl=`.
    pub ttl_s: u32,
}

impl Update {
    /// Adds or removes a record. The error is for the log.
    pub async fn send(&self, record: &Record, adds: bool) -> Result<(), String> {
        let failed = |why: String| format!("DNS update of {} at {} failed {why}", record.name, self.server);
        let name = Name::of_text(&record.name).map_err(|_| failed("(not a domain name)".to_owned()))?;
        let ttl_s = adds.then_some(self.ttl_s);
        let change = update::Change { zone: &self.zone, name: &name, text: &record.text, ttl_s };
        for _ in 0..UPDATE_TRIES {
            let asked = self.ask(change).await.map_err(|error| failed(Os(&error).to_string()))?;
            match asked {
                Some(Code::NO_ERROR) => return Ok(()),
                Some(code) => return Err(failed(format!("({}: {})", code.0, words(code)))),
                None => {}
            }
        }
        Err(failed("(110: Connection timed out)".to_owned()))
    }

    async fn ask(&self, change: update::Change<'_>) -> std::io::Result<Option<Code>> {
        let id = random::word()?;
        let socket = Datagram::connect(self.server)?;
        let message = match &self.key {
            None => update::message(id, change, None, 0),
            Some((key, name, algorithm)) => {
                let sign = |bytes: &[u8]| key.sign(bytes);
                let key = update::TsigKey { name, algorithm, sign: &sign };
                update::message(id, change, Some(&key), clock::unix_seconds())
            }
        };
        socket.try_send(&message)?;
        let deadline = Deadline::new();
        deadline.set(UPDATE_TIMEOUT);
        let mut buf = [0; RESPONSE_BYTES];
        loop {
            match socket.try_receive(&mut buf) {
                Ok(length) => {
                    if let Some(code) = update::verdict(buf.get(..length).unwrap_or_default(), id) {
                        return Ok(Some(code));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let readable = std::future::poll_fn(|_| match socket.poll_readable() {
                        std::task::Poll::Ready(()) => std::task::Poll::Ready(true),
                        std::task::Poll::Pending => deadline.poll_expired().map(|()| false),
                    });
                    if !readable.await {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// RFC 2136 §2.2 and RFC 8945 §3, beyond the codes of questions.
fn words(code: Code) -> &'static str {
    match code.0 {
        9 => "not authoritative for the zone, or the key is not accepted",
        10 => "the name is not in the zone",
        _ => code.words(),
    }
}

/// A run of a program: `PROGRAM present|cleanup NAME. TEXT`, as lego's "exec" does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The program, a full path.
    pub program: PathBuf,
    /// The verb, the name and the text.
    pub words: [String; 3],
}

impl Hook {
    /// Whether it has the form of a record of a challenge: a name of DNS, and a digest in base64url (RFC 8555 §8.4).
    pub fn is_plain(&self) -> bool {
        let is_word = |text: &str, more: &[u8]| {
            let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
            !text.is_empty() && text.len() <= HOOK_WORD_MAX && text.bytes().all(is_fit)
        };
        let [verb, name, text] = &self.words;
        ["present", "cleanup"].contains(&verb.as_str())
            && is_word(name, b"._-")
            && !name.starts_with('-')
            && is_word(text, b"_-")
            && text.len() == DIGEST_LENGTH
    }

    fn start(&self, user: Option<&Identity>) -> io::Result<Child> {
        if let Some(user) = user {
            let program = self.program.to_str().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
            let words: Vec<String> = std::iter::once(program).chain(self.words.iter().cloned()).collect();
            return process::start_as(user, &words);
        }
        let mut command = Command::new(&self.program);
        command.args(&self.words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        process::detach(&mut command);
        process::spawn_on(&[], &mut command)
    }

    /// Runs it, as another user if a process that is root runs it, and waits until it has ended. The error is for the log.
    pub fn run(&self, user: Option<&Identity>) -> Result<(), String> {
        let mut child = self.start(user).map_err(|error| Os(&error).to_string())?;
        let mut waited = Duration::ZERO;
        while waited < HOOK_TIMEOUT {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("({status})")),
                Ok(None) => {}
                Err(error) => return Err(Os(&error).to_string()),
            }
            std::thread::sleep(HOOK_LOOK);
            waited += HOOK_LOOK;
        }
        // It may have ended just now.
        let _ = process::kill_group(child.id());
        let _ = child.wait();
        Err(format!("(it ran for more than {} seconds)", HOOK_TIMEOUT.as_secs()))
    }
}

/// Lets a program add or remove a record. The error is for the log.
pub async fn run_hook(program: PathBuf, record: &Record, adds: bool) -> Result<(), String> {
    let verb = if adds { "present" } else { "cleanup" };
    let words = [verb.to_owned(), format!("{}.", record.name), record.text.clone()];
    let hook = Hook { program, words };
    let shown = hook.program.display().to_string();
    let errand = Errand::Hook(hook.program.clone(), hook.words.clone());
    let ran = aside::run("acme hook", move || match errands::run(errand, || Some(Done::Hook(hook.run(None)))) {
        Some(Done::Hook(result)) => result,
        Some(_) | None => Err("(the keeper refuses to run it)".to_owned()),
    });
    let ran = ran.await.unwrap_or_else(|error| Err(error.to_string()));
    ran.map_err(|why| format!("dns_hook \"{shown}\" {verb} failed {why}"))
}
