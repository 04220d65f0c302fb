//! The loop: a reader thread puts messages into the queue, and the worker answers them in their order.

use std::io::{self, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use weir_net::{clock, worker};
use weir_words::{Language, say};

use crate::frame::{self, Framed, MESSAGE_BYTES_MAX};
use crate::inbox::{Inbox, MESSAGES_MAX, Taken};
use crate::rpc::{self, ClientMessage, RpcError};
use crate::session::{LspSession, Outside, SessionPhase};
use crate::settings::LspWish;
use crate::texts;

/// The stack of the messages to the client.
struct Outbox {
    output: Mutex<Box<dyn Write + Send>>,
    /// The client reads no more.
    is_closed: AtomicBool,
}

impl Outbox {
    fn send(&self, message: &Value) {
        let body = message.to_string();
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if frame::write(&mut *output, body.as_bytes()).is_err() {
            self.is_closed.store(true, Ordering::Relaxed);
        }
    }
}

/// Both sides of the connection, as the reader and the worker share them.
struct Link {
    inbox: Inbox,
    outbox: Outbox,
    language: Language,
}

impl Outside for Link {
    fn send(&self, message: &Value) {
        self.outbox.send(message);
    }

    fn changes(&self) -> u64 {
        self.inbox.changes()
    }
}

/// Serves one client until it ends; returns the exit code: 1 if the client ends without `shutdown`.
///
/// # Errors
/// The reader's thread cannot be started.
pub fn serve(input: impl Read + Send + 'static, output: impl Write + Send + 'static, wish: LspWish) -> io::Result<u8> {
    let outbox = Outbox { output: Mutex::new(Box::new(output)), is_closed: AtomicBool::new(false) };
    let link = Arc::new(Link { inbox: Inbox::default(), outbox, language: wish.language });
    let other = link.clone();
    worker::block_aside("lsp reader", move || {
        // An input that cannot be read has ended.
        let _ = read_all(BufReader::new(input), &other);
        other.inbox.end();
    })?;
    let mut session = LspSession::new(wish);
    let code = work(&mut session, &link);
    link.inbox.desert();
    Ok(code)
}

/// Reads messages until the end of the input. Answers what is no message, and requests that are cancelled or too many.
fn read_all(mut input: BufReader<impl Read>, link: &Link) -> io::Result<()> {
    let refuse = |id: &Value, error: RpcError| link.outbox.send(&rpc::answer(id, Err(error)));
    loop {
        let bytes = match frame::read(&mut input)? {
            Framed::Message(bytes) => bytes,
            Framed::TooLarge(length) => {
                let text = say!(texts::MESSAGE_TOO_LARGE, length, MESSAGE_BYTES_MAX);
                refuse(&Value::Null, RpcError::new(RpcError::INVALID_REQUEST, text.say(link.language)));
                continue;
            }
            Framed::NoLength => {
                let text = say!(texts::NO_LENGTH);
                refuse(&Value::Null, RpcError::new(RpcError::PARSE, text.say(link.language)));
                continue;
            }
            Framed::End => return Ok(()),
        };
        match rpc::parse(&bytes) {
            Ok(ClientMessage::Notification { method, params }) if method == "$/cancelRequest" => {
                let id = &params["id"];
                if link.inbox.settle(id) {
                    let text = say!(texts::CANCELLED);
                    refuse(id, RpcError::new(RpcError::CANCELLED, text.say(link.language)));
                }
            }
            Ok(message) => {
                let is_exit = matches!(&message, ClientMessage::Notification { method, .. } if method == "exit");
                if let Err(id) = link.inbox.put(message, bytes.len()) {
                    let text = say!(texts::QUEUE_FULL, MESSAGES_MAX);
                    refuse(&id, RpcError::new(RpcError::SERVER_CANCELLED, text.say(link.language)));
                }
                if is_exit {
                    return Ok(());
                }
            }
            Err((id, error)) => refuse(&id, error),
        }
    }
}

/// Answers messages until the client ends.
fn work(session: &mut LspSession, link: &Link) -> u8 {
    while !link.outbox.is_closed.load(Ordering::Relaxed) {
        match link.inbox.take(session.due, clock::now) {
            Taken::Message(ClientMessage::Request { id, method, params }) => {
                let is_stopped = || !link.inbox.is_open(&id);
                // Cancelled while it waited.
                if is_stopped() {
                    continue;
                }
                let answer = guarded(session, |session| session.request(&method, &params, link, &is_stopped));
                // A cancelled request has its answer.
                if link.inbox.settle(&id) {
                    link.outbox.send(&rpc::answer(&id, answer));
                }
            }
            Taken::Message(ClientMessage::Notification { method, .. }) if method == "exit" => {
                return u8::from(session.phase != SessionPhase::Closing);
            }
            Taken::Message(ClientMessage::Notification { method, params }) => {
                if session.phase == SessionPhase::Open
                    && let Err(error) = guarded(session, |session| session.notify(&method, &params, link))
                {
                    log(link, &format!("{method}: {}", error.message));
                }
            }
            // The session asks nothing whose answer matters.
            Taken::Message(ClientMessage::Answer { .. }) => {}
            Taken::TimeOut => {
                let made = guarded(session, |session| {
                    session.diagnose(link);
                    Ok(())
                });
                if let Err(error) = made {
                    log(link, &error.message);
                }
            }
            Taken::End => return 0,
        }
    }
    0
}

/// Runs a step. A panic is a mistake of weir: it becomes an error, and the server goes on.
fn guarded<T>(
    session: &mut LspSession,
    step: impl FnOnce(&mut LspSession) -> Result<T, RpcError>,
) -> Result<T, RpcError> {
    let language = session.settings.wish.language;
    catch_unwind(AssertUnwindSafe(|| step(session))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
        Err(RpcError::new(RpcError::INTERNAL, say!(texts::OWN_MISTAKE, text).say(language)))
    })
}

/// Writes a line into the client's log.
fn log(link: &Link, text: &str) {
    let params = serde_json::json!({ "type": 1, "message": text });
    link.outbox.send(&rpc::notification("window/logMessage", params));
}
