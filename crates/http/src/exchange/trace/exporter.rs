//! The thread that gathers spans into batches and sends them to the collector.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use weir_net::identity::assume;
use weir_net::log::{self, Level};
use weir_net::process::Identity;
use weir_net::tls::Client;
use weir_net::worker::{self, Remote, Task};
use weir_net::{Deadline, Instant, clock};
use weir_wire::protobuf::{bytes, message};

use super::carry::{ExportFailed, SpanCarrier};
use super::endpoint::Endpoint;

/// How long after a failure the same batch is tried again, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The shortest time between two log lines about lost batches.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// How long a stop waits for spans that are still to be sent.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The settings of `otel_exporter` and related directives.
#[derive(Clone)]
pub struct Settings {
    /// The collector.
    pub endpoint: Endpoint,
    /// Fields of every export, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The longest time between two exports.
    pub interval: Duration,
    /// Spans of one export.
    pub batch_size: usize,
    /// Exports that may wait, for each worker.
    pub batch_count: usize,
    /// `service.name` and others: they describe the source of the spans.
    pub resource: Vec<(String, String)>,
    /// The trusted certificate authorities, as read; `None` for those of the system.
    pub trusted: Option<Vec<u8>>,
    /// The TLS client, if the collector speaks TLS. It trusts the authorities in `trusted`, else those of the system.
    pub tls: Option<Client>,
}

impl PartialEq for Settings {
    fn eq(&self, other: &Settings) -> bool {
        let plain = |of: &Settings| {
            (of.endpoint.clone(), of.headers.clone(), of.interval, of.batch_size, of.batch_count, of.resource.clone())
        };
        plain(self) == plain(other) && self.trusted == other.trusted
    }
}

/// The number of spans by result, since the process began.
#[derive(Debug, Default)]
pub struct Counts {
    /// The collector has them.
    pub exported: AtomicU64,
    /// The queue was full.
    pub dropped: AtomicU64,
    /// The collector refused them, or there was no time left.
    pub failed: AtomicU64,
}

/// The workers' end of the queue.
pub struct Exporter {
    send: SyncSender<Box<[u8]>>,
    shared: Arc<Shared>,
    batch_size: usize,
    pushed: AtomicUsize,
}

struct Shared {
    counts: Arc<Counts>,
    is_closing: AtomicBool,
    remote: OnceLock<Remote>,
    has_ended: (Mutex<bool>, Condvar),
}

thread_local! {
    /// The task that waits on the exporter's thread, and whether it was woken.
    static WAITING: (Cell<Task>, Cell<bool>) = const { (Cell::new(Task::NONE), Cell::new(false)) };
}

impl Exporter {
    /// Starts the thread, as `identity`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        settings: &Settings,
        counts: Arc<Counts>,
        workers: usize,
        identity: Option<Identity>,
    ) -> io::Result<Arc<Exporter>> {
        let room = settings.batch_size.saturating_mul(settings.batch_count).saturating_mul(workers.max(1));
        let (send, receive) = sync_channel(room);
        let shared = Arc::new(Shared {
            counts,
            is_closing: AtomicBool::new(false),
            remote: OnceLock::new(),
            has_ended: Default::default(),
        });
        let (inside, settings) = (shared.clone(), settings.clone());
        let batch_size = settings.batch_size;
        let remote = worker::start("traces", None, move || {
            if assume(identity.as_ref()) {
                worker::spawn(run(receive, settings, inside));
            }
        })?;
        // Set only once, here.
        let _ = shared.remote.set(remote);
        Ok(Arc::new(Exporter { send, shared, batch_size, pushed: AtomicUsize::new(0) }))
    }

    /// Passes a span on, or drops and counts it.
    pub fn push(&self, span: Box<[u8]>) {
        if self.send.try_send(span).is_err() {
            self.shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The thread is woken for a batch, not for each span.
        if (self.pushed.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.batch_size) {
            self.shared.wake();
        }
    }

    /// Lets the thread send everything that is there, and waits a limited time for that.
    pub fn close(&self) {
        self.shared.close();
        let (ended, told) = &self.shared.has_ended;
        let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = told.wait_timeout_while(ended, CLOSE_PATIENCE, |ended| !*ended);
    }
}

impl Drop for Exporter {
    /// No configuration names the exporter any more.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.wake();
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn wake(&self) {
        if let Some(remote) = self.remote.get() {
            remote.run(|| {
                WAITING.with(|(task, told)| {
                    told.set(true);
                    task.get().wake();
                });
            });
        }
    }

    /// Waits until that time, or until it is woken.
    async fn wait(&self, until: Instant) {
        let deadline = Deadline::new();
        deadline.set_at(until);
        poll_fn(|_| {
            WAITING.with(|(task, told)| {
                if told.replace(false) {
                    return Poll::Ready(());
                }
                task.set(Task::current());
                deadline.poll_expired()
            })
        })
        .await;
    }
}

/// Reports that the thread has ended, for whatever reason.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        let (ended, told) = &self.0.has_ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
    }
}

async fn run(receive: Receiver<Box<[u8]>>, settings: Settings, shared: Arc<Shared>) {
    let _ends = Ends(shared.clone());
    let Settings { endpoint, headers, tls, trusted, .. } = &settings;
    let carrier = SpanCarrier::new(endpoint.clone(), headers.clone(), tls.clone(), trusted.is_some());
    let mut delivery = Delivery { carrier, settings: &settings, shared: &shared, says: Says::default() };
    let mut batch: Vec<Box<[u8]>> = Vec::new();
    let mut next = clock::precise() + settings.interval;
    loop {
        let is_closing = shared.is_closing();
        while batch.len() < settings.batch_size
            && let Ok(span) = receive.try_recv()
        {
            batch.push(span);
        }
        let is_due = clock::precise() >= next;
        let is_full = batch.len() >= settings.batch_size;
        if is_full || (!batch.is_empty() && (is_due || is_closing)) {
            delivery.deliver(&batch).await;
            batch.clear();
            if !is_full {
                next = clock::precise() + settings.interval;
            }
            continue;
        }
        if is_closing {
            break;
        }
        if is_due {
            next = clock::precise() + settings.interval;
            delivery.tell_dropped();
        }
        shared.wait(next).await;
    }
    if let Some(remote) = shared.remote.get() {
        remote.stop();
    }
}

struct Delivery<'s> {
    carrier: SpanCarrier,
    settings: &'s Settings,
    shared: &'s Arc<Shared>,
    says: Says,
}

/// The failures that were already logged.
#[derive(Default)]
struct Says {
    is_failing: bool,
    dropped: u64,
    /// When a lost batch was last logged.
    lost: Option<Instant>,
}

impl Says {
    /// Whether to log a failure: a lasting failure once, and lost batches not too often.
    fn may_tell(&mut self, is_over: bool, now: Instant) -> bool {
        if !is_over {
            return !std::mem::replace(&mut self.is_failing, true);
        }
        let is_due = self.lost.is_none_or(|last| now.saturating_duration_since(last) >= TELL_EVERY);
        if is_due {
            self.lost = Some(now);
        }
        is_due
    }
}

impl Delivery<'_> {
    /// Sends a batch, again and again if another try may help. Meanwhile the queue fills, and spans that find it full
    /// are dropped.
    async fn deliver(&mut self, batch: &[Box<[u8]>]) {
        let body = export(&self.settings.resource, batch);
        let (counts, count) = (&self.shared.counts, batch.len() as u64);
        let mut pause = PAUSE_MIN;
        loop {
            let failed = match self.carrier.send(&body).await {
                Ok(()) => {
                    counts.exported.fetch_add(count, Ordering::Relaxed);
                    if std::mem::take(&mut self.says.is_failing) {
                        log::global(
                            Level::Notice,
                            format_args!("OTel export to {} works again", self.settings.endpoint),
                        );
                    }
                    return;
                }
                Err(failed) => failed,
            };
            let is_over = matches!(failed, ExportFailed::Refused(_)) || self.shared.is_closing();
            if self.says.may_tell(is_over, clock::precise()) {
                let then = if is_over { format!("{count} spans are lost") } else { "weir will try again".to_owned() };
                log::global(
                    Level::Error,
                    format_args!("OTel export failure: {failed}; {then}, endpoint: {}", self.settings.endpoint),
                );
            }
            if is_over {
                counts.failed.fetch_add(count, Ordering::Relaxed);
                return;
            }
            self.tell_dropped();
            self.pause(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Waits; a full batch does not shorten the wait, a stop does.
    async fn pause(&self, time: Duration) {
        let until = clock::precise() + time;
        while clock::precise() < until && !self.shared.is_closing() {
            self.shared.wait(until).await;
        }
    }

    fn tell_dropped(&mut self) {
        let dropped = self.shared.counts.dropped.load(Ordering::Relaxed);
        if dropped > self.says.dropped {
            self.says.dropped = dropped;
            log::global(Level::Notice, format_args!("OTel dropped records: {dropped}"));
        }
    }
}

/// `ExportTraceServiceRequest` (opentelemetry-proto 1): one resource, one scope, and the spans, each already encoded
/// as a field.
fn export(resource: &[(String, String)], batch: &[Box<[u8]>]) -> Vec<u8> {
    let length: usize = batch.iter().map(|span| span.len()).sum();
    let mut out = Vec::with_capacity(length + 1024);
    message(1, &mut out, |out| {
        message(1, out, |out| {
            for (name, value) in resource {
                message(1, out, |out| {
                    bytes(1, name.as_bytes(), out);
                    message(2, out, |out| bytes(1, value.as_bytes(), out));
                });
            }
        });
        message(2, out, |out| {
            message(1, out, |out| {
                bytes(1, b"weir", out);
                bytes(2, env!("CARGO_PKG_VERSION").as_bytes(), out);
            });
            batch.iter().for_each(|span| out.extend_from_slice(span));
        });
    });
    out
}
