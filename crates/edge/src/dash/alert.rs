//! Alerts: the dashboard's verdict, sent to receivers on the network when it changes.
//!
//! ```text
//!  observer ── the verdict of each second ──► `Alerts` ── a short queue ──► one thread a receiver ──► POST
//! ```
//! The observer never waits: an alert that finds the queue full is dropped and told in the error log. A URL may be a
//! secret, so the log names its host alone.

pub mod body;
pub mod receiver;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as List, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use url::Url;
use weir_dash::alarm::{Alarm, Alert};
use weir_dash::verdict::Verdict;
use weir_fetch::{Call, DISTRUST, compose, literal};
use weir_http::hold::board::lock;
use weir_http::text::base64;
use weir_net::identity::assume;
use weir_net::log::{self, Level};
use weir_net::process::{self, Identity};
use weir_net::{Deadline, aside, timer, tls, worker};

use receiver::{Form, Patience, Receiver};

/// Most receivers of one configuration.
pub const RECEIVERS_MAX: usize = 4;
/// Alerts that wait for one receiver, at most.
const QUEUE_MAX: usize = 8;
/// Alerts to one receiver in an hour, at most. Later ones wait until the hour is over.
const AN_HOUR_MAX: usize = 120;
const HOUR_MS: u64 = 3_600_000;
/// The largest answer of a receiver that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The receivers in force. They outlive reloads that do not change them.
#[derive(Default)]
pub struct Alerts(Mutex<Vec<Line>>);

/// The way to one receiver.
struct Line {
    receiver: Arc<Receiver>,
    alarm: Alarm,
    /// The times of the alerts of the last hour, Unix milliseconds.
    sent: VecDeque<u64>,
    queue: SyncSender<Alert>,
    /// The thread ends when this is gone.
    _wanted: Arc<()>,
}

impl Alerts {
    /// Puts these receivers in force, each with a thread that runs as `identity`. What an unchanged receiver was told
    /// stays.
    ///
    /// # Errors
    /// A thread cannot be started; the other receivers are in force.
    pub fn set(&self, receivers: &[Arc<Receiver>], identity: Option<&Identity>) -> io::Result<()> {
        let mut lines = lock(&self.0);
        let mut old = std::mem::take(&mut *lines);
        let mut outcome = Ok(());
        for receiver in receivers.iter().take(RECEIVERS_MAX) {
            match old.iter().position(|line| line.receiver.is_as(receiver)) {
                Some(at) => lines.push(old.swap_remove(at)),
                None => match Line::start(receiver.clone(), identity.cloned()) {
                    Ok(line) => lines.push(line),
                    Err(error) => outcome = Err(error),
                },
            }
        }
        outcome
    }

    /// Takes the verdict of a second. Never waits for the network.
    pub fn observe(&self, verdict: &Verdict, at_ms: u64) {
        for line in lock(&self.0).iter_mut() {
            line.observe(verdict, at_ms);
        }
    }
}

impl Line {
    fn start(receiver: Arc<Receiver>, identity: Option<Identity>) -> io::Result<Line> {
        let (queue, list) = sync_channel(QUEUE_MAX);
        let wanted = Arc::new(());
        let (until, own) = (Arc::downgrade(&wanted), receiver.clone());
        worker::block_aside("alert", move || {
            if assume(identity.as_ref()) {
                run(&own, &list, &until);
            }
        })?;
        Ok(Line { alarm: receiver.alarm(), receiver, sent: VecDeque::new(), queue, _wanted: wanted })
    }

    fn observe(&mut self, verdict: &Verdict, at_ms: u64) {
        // A clock that was set back must not silence the alerts.
        self.sent.retain(|sent| at_ms.abs_diff(*sent) < HOUR_MS);
        let may_tell = self.sent.len() < AN_HOUR_MAX;
        let Some(alert) = self.alarm.observe(verdict, at_ms, may_tell) else { return };
        self.sent.push_back(at_ms);
        if self.sent.len() == AN_HOUR_MAX {
            say(
                Level::Warn,
                &self.receiver,
                format_args!("{AN_HOUR_MAX} alerts in an hour: weir sends no more for now"),
            );
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(alert) {
            say(Level::Error, &self.receiver, format_args!("dropped, because {QUEUE_MAX} alerts wait already"));
        }
    }
}

/// The whole request.
fn request(receiver: &Receiver, alert: &Alert) -> Vec<u8> {
    let body = body::of(receiver, alert);
    let mut url = receiver.url.clone();
    if receiver.form == Form::Alertmanager && url.path() == "/" {
        url.set_path(body::ALERTMANAGER_PATH);
        url.set_query(None);
    }
    request_to(&url, &body)
}

/// A POST of JSON, with the name and the password of the URL.
pub fn request_to(url: &Url, body: &str) -> Vec<u8> {
    let pair = format!("{}:{}", url.username(), url.password().unwrap_or_default());
    let login = format!("Basic {}", base64::encode(pair.as_bytes()));
    let login = (pair != ":").then_some(("Authorization", login.as_str()));
    let fields: Vec<_> = login.into_iter().chain([("Content-Type", "application/json")]).collect();
    compose("POST", url, &fields, body)
}

fn say(level: Level, receiver: &Receiver, what: std::fmt::Arguments<'_>) {
    log::global(level, format_args!("alert to {}: {what}", receiver.host()));
}

/// Delivers alerts, one after the other, for as long as the receiver is wanted.
fn run(receiver: &Arc<Receiver>, list: &List<Alert>, wanted: &Weak<()>) {
    while let Ok(alert) = list.recv() {
        if wanted.strong_count() == 0 {
            return;
        }
        let (told, request) = (receiver.clone(), request(receiver, &alert));
        let still = wanted.clone();
        let outcome = worker::block_on(async move { deliver(&told, &request, &still).await });
        match outcome.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => say(Level::Notice, receiver, format_args!("delivered ({})", body::word(&alert))),
            Err(why) => say(Level::Error, receiver, format_args!("not delivered ({}): {why}", body::word(&alert))),
        }
    }
}

/// Why a try failed.
pub struct NotDelivered {
    /// For the log: it names the host alone.
    pub why: String,
    /// Whether another try can succeed.
    is_worth_a_retry: bool,
}

/// Tries until the receiver takes the request; the error is for the log.
async fn deliver(receiver: &Receiver, request: &[u8], wanted: &Weak<()>) -> Result<(), String> {
    let Patience { timeout, pauses } = receiver.patience;
    let mut tries = 0;
    loop {
        let tls = receiver.tls.as_ref().map_err(Clone::clone);
        let failed = match post(&receiver.url, tls, request, timeout).await {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        tries += 1;
        let pause = pauses.get(tries - 1).filter(|_| failed.is_worth_a_retry && wanted.strong_count() > 0);
        let Some(pause) = pause else {
            return Err(format!("{} after {tries} {}", failed.why, if tries == 1 { "try" } else { "tries" }));
        };
        timer::sleep(*pause).await;
    }
}

/// Sends a request once, and wants a status from 200 to 299.
///
/// # Errors
/// There is no such answer in time.
pub async fn post(
    url: &Url,
    tls: Result<&tls::Client, String>,
    request: &[u8],
    timeout: Duration,
) -> Result<(), NotDelivered> {
    // A certificate is as bad the next time.
    let again = |why: String| NotDelivered { is_worth_a_retry: !why.starts_with(DISTRUST), why };
    let addresses = addresses(url).await.map_err(again)?;
    let deadline = Deadline::new();
    deadline.set(timeout);
    let call = Call { url, addresses: &addresses, tls, verifies: true };
    let answer = call.exchange(request, ANSWER_BYTES_MAX, &deadline).await.map_err(again)?;
    match answer.status {
        200..300 => Ok(()),
        status => Err(NotDelivered {
            why: format!("it answered with status {status}"),
            // Another status is about this request, and says so again.
            is_worth_a_retry: matches!(status, 408 | 429 | 500..),
        }),
    }
}

/// The addresses of a URL's host, by the system's resolver.
async fn addresses(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let port = url.port_or_known_default().ok_or("the URL has no port")?;
    let host = url.host_str().unwrap_or_default().to_owned();
    if let Some(address) = literal(&host) {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.clone();
    let found = aside::run("alert name", move || process::resolve(&name)).await.and_then(|found| found);
    let found = found.map_err(|error| format!("{host} could not be resolved ({error})"))?;
    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

#[cfg(test)]
mod tests;
