//! `publish-metrics`: sends every period of the report to metrics stores (artillery.md §5.6).
//!
//! ```text
//!   the thread that watches ─ period ─► queue ─► thread "publish" ─► Pushgateway | StatsD | OpenTelemetry
//! ```
//!
//! A run never waits for a receiver: a period that finds the queue full is dropped and counted, and a failing
//! receiver is reported once. Names and numbers are those of Artillery's plugin. Not here: traces, vendors' own
//! interfaces.

mod export;
mod options;
mod otlp;
mod post;
mod prometheus;
mod protobuf;
mod statsd;

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;

use weir_net::worker;
use weir_words::{Said, say};

use crate::record::Period;
use crate::texts::agents as texts;
use otlp::Otlp;
use prometheus::Pushgateway;
use statsd::StatsD;

pub use options::{Reporter, ReporterKind, ReporterRefused};

/// Most periods that wait to be sent; further ones are dropped. A period lasts 10 s, so this is ten minutes.
pub const PERIODS_MAX: usize = 60;
/// Longest wait at the end of a run for periods that are not sent yet.
pub const FINISH_MAX: Duration = Duration::from_secs(20);
/// Most messages for the user that wait; each reporter causes at most one.
const SENTENCES_MAX: usize = 64;

/// Sends periods to the reporters of a script, on a thread of its own.
pub struct Publisher {
    queue: SyncSender<Message>,
    sentences: Receiver<Said>,
    tallies: Receiver<Vec<Tally>>,
    dropped: u64,
}

enum Message {
    /// The first phase has begun.
    Started,
    Period(Box<Period>),
}

/// The results of one reporter.
struct Tally {
    name: Said,
    failed: u64,
    periods: u64,
    last: String,
}

impl Publisher {
    /// Starts the thread; `None` if there is no reporter. `target` is the target of the load, for events.
    ///
    /// The error is for the user.
    pub fn start(reporters: &[Reporter], target: &str) -> Result<Option<Publisher>, Said> {
        if reporters.is_empty() {
            return Ok(None);
        }
        let (queue, messages) = mpsc::sync_channel(PERIODS_MAX);
        let (say, sentences) = mpsc::sync_channel(SENTENCES_MAX);
        let (tell, tallies) = mpsc::sync_channel(1);
        let reporters = reporters.iter().map(|reporter| Sender::new(reporter, target)).collect();
        worker::block_aside("publish", move || {
            // It does not matter if the receiver is gone.
            let _ = tell.send(serve(reporters, &messages, &say));
        })
        .map_err(|error| say!(texts::PUBLISH_NO_THREAD, error.to_string()))?;
        Ok(Some(Publisher { queue, sentences, tallies, dropped: 0 }))
    }

    /// Call when the first phase begins: sends the start event if the script wants one.
    pub fn started(&mut self) {
        self.put(Message::Started);
    }

    /// Queues a completed period; never waits.
    pub fn period(&mut self, period: &Period) {
        self.put(Message::Period(Box::new(period.clone())));
    }

    fn put(&mut self, message: Message) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(message) {
            self.dropped += 1;
        }
    }

    /// New messages for the user: one for each failing receiver.
    pub fn sentences(&self) -> Vec<Said> {
        self.sentences.try_iter().collect()
    }

    /// Waits until everything is sent, for at most [`FINISH_MAX`]; returns messages about periods that were not sent.
    pub fn finish(self) -> Vec<Said> {
        let Publisher { queue, sentences, tallies, dropped } = self;
        drop(queue);
        let told = tallies.recv_timeout(FINISH_MAX);
        let mut said: Vec<Said> = sentences.try_iter().collect();
        match told {
            Ok(tallies) => said.extend(tallies.iter().filter(|tally| tally.failed > 0).map(Tally::sentence)),
            Err(_) => said.push(say!(texts::PUBLISH_LATE, FINISH_MAX.as_secs())),
        }
        if dropped > 0 {
            said.push(say!(texts::PUBLISH_DROPPED, dropped, PERIODS_MAX));
        }
        said
    }
}

impl Tally {
    fn sentence(&self) -> Said {
        let Tally { name, failed, periods, last } = self;
        say!(texts::PUBLISH_FAILED, failed, periods, name, last)
    }
}

/// A running reporter.
struct Sender {
    tally: Tally,
    to: To,
}

enum To {
    Pushgateway(Box<Pushgateway>),
    StatsD(Box<StatsD>),
    Otlp(Box<Otlp>),
}

impl Sender {
    fn new(reporter: &Reporter, target: &str) -> Sender {
        let to = match &reporter.kind {
            ReporterKind::Prometheus(options) => To::Pushgateway(Box::new(Pushgateway::new(options.clone()))),
            ReporterKind::StatsD(options) => To::StatsD(Box::new(StatsD::new(options.clone(), target))),
            ReporterKind::OpenTelemetry(options) => To::Otlp(Box::new(Otlp::new(options.clone()))),
        };
        Sender { tally: Tally { name: reporter.said(), failed: 0, periods: 0, last: String::new() }, to }
    }

    fn period(&mut self, period: &Period) -> Result<(), String> {
        match &mut self.to {
            To::Pushgateway(gateway) => gateway.push(period),
            To::StatsD(statsd) => statsd.send(period),
            To::Otlp(otlp) => otlp.export(period),
        }
    }

    /// Sends an event: the run has begun or ended.
    fn event(&mut self, what: &str) {
        if let To::StatsD(statsd) = &mut self.to {
            statsd.event(what);
        }
    }
}

/// Sends until the queue is closed.
fn serve(mut senders: Vec<Sender>, messages: &Receiver<Message>, say: &SyncSender<Said>) -> Vec<Tally> {
    let mut has_started = false;
    for message in messages {
        for sender in &mut senders {
            let period = match &message {
                Message::Started => {
                    sender.event("Started");
                    continue;
                }
                Message::Period(period) => period,
            };
            sender.tally.periods += 1;
            let Err(why) = sender.period(period) else { continue };
            sender.tally.failed += 1;
            if sender.tally.failed == 1 {
                let name = &sender.tally.name;
                // If the queue of messages is full, the user has enough of them.
                let _ = say.try_send(say!(texts::PUBLISH_ONCE, name, &why));
            }
            sender.tally.last = why;
        }
        has_started |= matches!(message, Message::Started);
    }
    if has_started {
        senders.iter_mut().for_each(|sender| sender.event("Finished"));
    }
    senders.into_iter().map(|sender| sender.tally).collect()
}

#[cfg(test)]
mod tests;
