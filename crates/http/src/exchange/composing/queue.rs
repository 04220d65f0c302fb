//! The parts of a composed body that wait for the client, in order: texts, and the answers of subrequests.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::exchange::Exchange;
use crate::exchange::pipe::{Pipe, Progress};
use crate::exchange::subrequest::{Planned, Stub};
use crate::hold::conn::{Conn, Gone};

/// Bytes of text in the queue: beyond this many, the reader waits.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Parts in the queue: beyond this many, the reader waits.
const PARTS_MAX: usize = 256;

/// Answers of one body that are under way at a time, at most.
const RUNNING_MAX: usize = 16;

/// A subrequest for a part of a body.
pub struct Order {
    /// The path.
    pub uri: Vec<u8>,
    /// The query string.
    pub args: Vec<u8>,
    /// The use of the answer.
    pub manner: Manner,
    /// The text instead of an empty answer or of an error.
    pub stub: Option<Stub>,
}

impl Order {
    /// The answer of this path becomes a part of the body.
    pub fn of(uri: Vec<u8>) -> Order {
        Order { uri, args: Vec::new(), manner: Manner::Part, stub: None }
    }
}

/// The use of an answer.
pub enum Manner {
    /// It is the next part of the body.
    Part,
    /// The same, and the reader waits until it is complete.
    WaitedPart,
    /// This function gets its status and its body, and the reader waits for it.
    Kept(Keep),
}

/// Takes the status and the body of an answer that was kept in memory.
pub type Keep = Box<dyn FnOnce(&mut Exchange<'_>, u16, Vec<u8>)>;

enum Part {
    Text(Vec<u8>),
    /// Boxed: it has a request's head.
    Planned(Box<Planned>),
    Running(Reading),
}

/// The reading end of a pipe.
struct Reading(Rc<Pipe>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The answer that the reader waits for.
enum Wait {
    Part(Rc<Pipe>),
    Kept(Reading, Keep),
}

/// The parts.
#[derive(Default)]
pub struct Store {
    parts: VecDeque<Part>,
    text_bytes: usize,
    running: usize,
    wait: Option<Wait>,
}

/// The parts, for a reader that adds some.
pub struct Queue<'q> {
    store: &'q mut Store,
    conn: &'q Conn,
}

/// The result of asking for the next part.
pub enum NextPart {
    /// These bytes are next.
    Bytes(Vec<u8>),
    /// The queue changed.
    Moved,
    /// The next part has not come yet.
    Later,
    /// There is no part.
    Empty,
}

impl Queue<'_> {
    /// Adds text.
    pub fn text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.store.text_bytes += text.len();
        match self.store.parts.back_mut() {
            Some(Part::Text(last)) => last.extend_from_slice(text),
            Some(_) | None => self.store.parts.push_back(Part::Text(text.to_vec())),
        }
    }

    /// Adds the answer of a subrequest; `false`, and a line in the log, if there may be no more subrequests.
    pub fn insert(&mut self, exchange: &mut Exchange<'_>, order: Order) -> bool {
        let Order { uri, args, manner, stub } = order;
        let is_whole = matches!(manner, Manner::Kept(_));
        let Some(planned) = Planned::of(exchange, uri, args, stub, is_whole) else { return false };
        let store = &mut *self.store;
        let must_start = !matches!(manner, Manner::Part);
        if !must_start && (store.running >= RUNNING_MAX || !planned.may_run_ahead()) {
            store.parts.push_back(Part::Planned(Box::new(planned)));
            return true;
        }
        let Some(pipe) = planned.start(exchange, self.conn) else { return false };
        match manner {
            Manner::Kept(keep) => {
                store.wait = Some(Wait::Kept(Reading(pipe), keep));
                return true;
            }
            Manner::WaitedPart => store.wait = Some(Wait::Part(pipe.clone())),
            Manner::Part => {}
        }
        store.running += 1;
        store.parts.push_back(Part::Running(Reading(pipe)));
        true
    }

    /// Whether the reader has to stop for now.
    pub fn must_stop(&self) -> bool {
        self.store.waits() || self.store.is_full()
    }
}

impl Store {
    /// The queue for a reader, with the connection that the parts are for.
    pub fn with<'q>(&'q mut self, conn: &'q Conn) -> Queue<'q> {
        Queue { store: self, conn }
    }

    /// Whether the reader has to wait until parts are sent.
    pub fn is_full(&self) -> bool {
        self.text_bytes >= TEXT_BYTES_MAX || self.parts.len() >= PARTS_MAX
    }

    /// Whether the reader waits for an answer.
    pub fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Ends the wait for an answer, if the answer is complete; `true` if it is.
    pub fn end_wait(&mut self, exchange: &mut Exchange<'_>) -> Result<bool, Gone> {
        let progress = match &self.wait {
            Some(Wait::Part(pipe) | Wait::Kept(Reading(pipe), _)) => pipe.watch(),
            None => return Ok(false),
        };
        match (progress, self.wait.take()) {
            (Progress::Open, wait) => {
                self.wait = wait;
                return Ok(false);
            }
            (_, None) => {}
            (_, Some(Wait::Part(pipe))) => adopt(exchange, &pipe),
            (Progress::Broken, Some(Wait::Kept(..))) => return Err(Gone::Cut),
            (Progress::Whole, Some(Wait::Kept(reading, keep))) => {
                adopt(exchange, &reading.0);
                keep(exchange, reading.0.status(), reading.0.take());
            }
        }
        Ok(true)
    }

    /// The next bytes for the client.
    pub fn next(&mut self, exchange: &mut Exchange<'_>, conn: &Conn) -> Result<NextPart, Gone> {
        match self.parts.pop_front() {
            None => Ok(NextPart::Empty),
            Some(Part::Text(text)) => {
                self.text_bytes -= text.len();
                Ok(NextPart::Bytes(text))
            }
            Some(Part::Planned(planned)) => {
                let pipe = planned.start(exchange, conn).ok_or(Gone::Cut)?;
                self.running += 1;
                self.parts.push_front(Part::Running(Reading(pipe)));
                Ok(NextPart::Moved)
            }
            Some(Part::Running(reading)) => {
                let progress = reading.0.watch();
                let bytes = reading.0.take();
                if !bytes.is_empty() {
                    self.parts.push_front(Part::Running(reading));
                    return Ok(NextPart::Bytes(bytes));
                }
                match progress {
                    Progress::Open => {
                        self.parts.push_front(Part::Running(reading));
                        Ok(NextPart::Later)
                    }
                    Progress::Broken => Err(Gone::Cut),
                    Progress::Whole => {
                        self.running = self.running.saturating_sub(1);
                        adopt(exchange, &reading.0);
                        Ok(NextPart::Moved)
                    }
                }
            }
        }
    }
}

/// Takes over the variables that a subrequest changed: nginx keeps them once for a request and its subrequests.
fn adopt(exchange: &mut Exchange<'_>, pipe: &Pipe) {
    for (id, value) in pipe.take_changes() {
        exchange.slots.set(id, &value);
    }
}
