//! Asks nginx, weir, and nginx again, one request after another at a bounded rate.
//!
//! By `load`'s client and not by `fetch`: it also sends HEAD, keeps the bytes of a field as they came, and decodes bodies.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_load::client::{self, KeptConnection, Origin, ReadyRequest, Resolver};
use weir_load::tls::Tls;
use weir_load::url::Url;
use weir_net::{clock, timer, worker};

use crate::compare::{self, Compared, ComparedAnswer, Port};
use crate::doors::Door;
use crate::traffic::plan::{BODY_BYTES_MAX, PlannedRequest};
use crate::traffic::urls::AGENT;

/// The longest time of one exchange.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of a body that are compared; of a longer one also the length.
pub const BODY_KEPT_MAX: usize = BODY_BYTES_MAX as usize;

/// The result of one request.
#[derive(Clone, Debug)]
pub struct RequestOutcome {
    /// The request.
    pub request: PlannedRequest,
    /// The differences.
    pub compared: Compared,
    /// The status of nginx's answer; 0 without an answer.
    pub status: u16,
    /// The answer of weir, if it differs.
    ours: Option<ComparedAnswer>,
}

/// Asks all. Ends early when `stop` becomes true.
///
/// # Errors
/// The thread that asks cannot start.
pub fn all(
    requests: Vec<PlannedRequest>,
    doors: Vec<Door>,
    rate: f64,
    stop: Arc<AtomicBool>,
) -> Result<Vec<RequestOutcome>, String> {
    let asked = worker::block_on(async move {
        let mut sender = Sender::new(rate);
        let mut outcomes = Vec::new();
        for request in requests {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if let Some(outcome) = sender.one(&doors, request).await {
                outcomes.push(outcome);
            }
        }
        outcomes
    });
    asked.map_err(|error| format!("weir could not send requests: {error}"))
}

/// Asks a weir with empty caches once more for the answers that differ, and sets the parts apart that changed.
///
/// # Errors
/// The thread that asks cannot start.
pub fn again(
    outcomes: Vec<RequestOutcome>,
    doors: Vec<Door>,
    rate: f64,
    stop: Arc<AtomicBool>,
) -> Result<Vec<RequestOutcome>, String> {
    let asked = worker::block_on(async move {
        let mut sender = Sender::new(rate);
        let mut all = Vec::new();
        for mut outcome in outcomes {
            let ours = outcome.ours.take().filter(|_| !stop.load(Ordering::Relaxed));
            if let Some((ours, door)) = ours.zip(doors.get(outcome.request.door))
                && let Some(port) = port(door)
            {
                let fresh = sender.ask(door, door.weir, &outcome.request).await;
                outcome.compared = compare::unsteady(outcome.compared, &ours, &fresh, port);
            }
            all.push(outcome);
        }
        all
    });
    asked.map_err(|error| format!("weir could not send requests: {error}"))
}

/// The ports of a door. `None` if nobody reaches nginx there.
fn port(door: &Door) -> Option<Port> {
    let nginx = door.nginx?;
    let default = if door.tls { 443 } else { 80 };
    Some(Port { own: door.weir.port(), of: nginx.port(), is_default: nginx.port() == default })
}

struct Sender {
    tls: Rc<Tls>,
    resolver: Resolver,
    /// Between two requests.
    pause: Duration,
}

impl Sender {
    fn new(rate: f64) -> Sender {
        Sender {
            tls: Tls::default().accepting_anyone(),
            resolver: Resolver::default(),
            pause: Duration::from_secs_f64(1.0 / rate),
        }
    }

    async fn one(&mut self, doors: &[Door], request: PlannedRequest) -> Option<RequestOutcome> {
        let door = doors.get(request.door)?;
        let (nginx, port) = (door.nginx?, port(door)?);
        let first = self.ask(door, nginx, &request).await;
        let ours = self.ask(door, door.weir, &request).await;
        let again = self.ask(door, nginx, &request).await;
        let mut compared = compare::compare(&first, &again, &ours, port);
        if !compared.differences.is_empty() {
            let second = self.ask(door, door.weir, &request).await;
            compared = compare::confirmed(compared, &compare::compare(&first, &again, &second, port));
        }
        let compared = compare::explain(compared, request.method == "HEAD");
        let ours = (!compared.differences.is_empty()).then_some(ours);
        let status = match first {
            ComparedAnswer::Whole { status, .. } => status,
            ComparedAnswer::Failed(_) => 0,
        };
        Some(RequestOutcome { request, compared, status, ours })
    }

    async fn ask(&mut self, door: &Door, at: SocketAddr, request: &PlannedRequest) -> ComparedAnswer {
        let began = clock::precise();
        let answer = self.exchange(door, at, request).await;
        timer::sleep(self.pause.saturating_sub(clock::precise() - began)).await;
        answer.unwrap_or_else(ComparedAnswer::Failed)
    }

    async fn exchange(&self, door: &Door, at: SocketAddr, request: &PlannedRequest) -> Result<ComparedAnswer, String> {
        let url = Url::parse(&format!("{}://{}/", door.scheme(), request.host)).map_err(|why| why.en().to_owned())?;
        let origin = Rc::new(Origin::at(&url, &self.tls, at));
        let head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n",
            request.method, request.target, request.host
        );
        let call = ReadyRequest::alone(&origin, request.method, head.as_bytes(), b"", TIMEOUT);
        let mut kept: Option<KeptConnection> = None;
        let answer =
            client::exchange(&mut kept, &call, &self.resolver).await.map_err(|error| error.name.into_owned())?;
        let coding = answer.field(b"content-encoding");
        let mut body = client::decode(answer.body(), coding).map_err(str::to_owned)?.into_owned();
        if body.len() > BODY_KEPT_MAX {
            let length = body.len();
            body.truncate(BODY_KEPT_MAX);
            body.extend_from_slice(format!("… {length} bytes").as_bytes());
        }
        let fields =
            answer.fields().map(|(name, value)| (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()));
        Ok(ComparedAnswer::Whole { status: answer.status(), fields: fields.collect(), body })
    }
}
