//! Asks the arms for one request after another, at a bounded rate.
//!
//! By `load`'s client and not by `fetch`: it also sends HEAD, keeps the bytes of a field as they came, and decodes bodies.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use weir_load::client::{self, KeptConnection, Origin, ReadyRequest, Resolver};
use weir_load::tls::Tls;
use weir_load::url::Url;
use weir_net::{clock, timer};

use crate::difference::Port;
use crate::doors::Door;
use crate::request::{ARMS, Arm, Observed, SwapAnswer, SwapRequest, WholeAnswer};
use crate::traffic::plan::BODY_BYTES_MAX;
use crate::values::Values;
use crate::watch::ServerWatch;

/// The longest time of one exchange, unless the user names another one.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a body that are compared; of a longer one also the length.
pub const BODY_KEPT_MAX: usize = BODY_BYTES_MAX as usize;
/// Most origins that are remembered; more are made again each time.
const ORIGINS_MAX: usize = 10_000;

/// Asks the arms.
pub struct Asker {
    doors: Vec<Door>,
    tls: Rc<Tls>,
    resolver: Resolver,
    origins: HashMap<(usize, Arm, String), Rc<Origin>>,
    /// Between two requests.
    pause: Duration,
    /// The longest time of one exchange.
    timeout: Duration,
    random: fastrand::Rng,
    values: Values,
    watches: [Option<ServerWatch>; ARMS],
}

impl Asker {
    /// Asks at these doors, with so many requests a second to all arms together. The seed decides which of the two A is
    /// asked first.
    pub fn new(doors: Vec<Door>, rate: f64, seed: u64) -> Asker {
        Asker {
            doors,
            tls: Tls::default().accepting_anyone(),
            resolver: Resolver::default(),
            origins: HashMap::new(),
            pause: Duration::from_secs_f64(1.0 / rate),
            timeout: TIMEOUT,
            random: fastrand::Rng::with_seed(seed),
            values: Values::default(),
            watches: [None, None, None],
        }
    }

    /// Waits so long for an answer.
    #[must_use]
    pub fn waiting(self, timeout: Duration) -> Asker {
        Asker { timeout, ..self }
    }

    /// Also sees what the arms do beside answering. Nobody else may ask them.
    #[must_use]
    pub fn watching(self, watches: [Option<ServerWatch>; ARMS]) -> Asker {
        Asker { watches, ..self }
    }

    /// Asks all arms: one A, then B, then the other A. `None`: an arm cannot be reached there.
    pub async fn round(&mut self, request: &SwapRequest) -> Option<[Observed; ARMS]> {
        let (early, late) = match self.random.bool() {
            true => (Arm::First, Arm::Again),
            false => (Arm::Again, Arm::First),
        };
        let early = self.one(request, early).await?;
        let b = self.one(request, Arm::B).await?;
        let late_answer = self.one(request, late).await?;
        Some(match late {
            Arm::Again => [early, late_answer, b],
            Arm::First | Arm::B => [late_answer, early, b],
        })
    }

    /// Asks one arm, with the values that it has given to this client before.
    pub async fn one(&mut self, request: &SwapRequest, arm: Arm) -> Option<Observed> {
        let door = self.doors.get(request.door)?;
        let at = door.of(arm)?;
        let began = clock::precise();
        let own = self.values.of_arm(request, arm);
        let answer = self.exchange(at, &own, arm).await;
        timer::sleep(self.pause.saturating_sub(clock::precise() - began)).await;
        let mut seen = Observed::of(answer.map_or_else(SwapAnswer::Failed, SwapAnswer::Whole));
        seen.is_personal = own.is_personal();
        if let Some(watch) = self.watches.get_mut(arm as usize).and_then(Option::as_mut) {
            watch.complete(&mut seen).await;
        }
        if let SwapAnswer::Whole(answer) = &seen.answer {
            self.values.learn(request, arm, answer);
        }
        Some(seen)
    }

    /// Forgets all that the arms have given.
    pub fn forget(&mut self) {
        self.values = Values::default();
    }

    /// The ports of a door's arms.
    pub fn ports(&self, door: usize) -> Option<[Port; ARMS]> {
        let door = self.doors.get(door)?;
        let port = |arm: Arm| Some(Port { own: door.of(arm)?.port(), of: door.port(), is_default: door.is_default() });
        let [first, again, b] = Arm::ALL.map(port);
        Some([first?, again?, b?])
    }

    fn origin(&mut self, at: SocketAddr, request: &SwapRequest, arm: Arm) -> Result<Rc<Origin>, String> {
        let key = (request.door, arm, request.host.clone());
        if let Some(known) = self.origins.get(&key) {
            return Ok(known.clone());
        }
        let scheme = self.doors.get(request.door).map_or("http", Door::scheme);
        // A host that is no name of a URL: only the field has it.
        let url = Url::parse(&format!("{scheme}://{}/", request.host));
        let url = url.or_else(|_| Url::parse(&format!("{scheme}://{at}/"))).map_err(|why| why.en().to_owned())?;
        let balanced = self.doors.get(request.door).filter(|door| door.proxy_protocol);
        let preface = balanced.map_or_else(Vec::new, |door| proxy_header(door.port()));
        let origin = Rc::new(Origin::at(&url, &self.tls, at).beginning_with(preface));
        if self.origins.len() < ORIGINS_MAX {
            self.origins.insert(key, origin.clone());
        }
        Ok(origin)
    }

    async fn exchange(&mut self, at: SocketAddr, request: &SwapRequest, arm: Arm) -> Result<WholeAnswer, String> {
        let origin = self.origin(at, request, arm)?;
        let head = head(request);
        let call = ReadyRequest::alone(&origin, &request.method, &head, &request.body, self.timeout);
        let mut kept: Option<KeptConnection> = None;
        let answer =
            client::exchange(&mut kept, &call, &self.resolver).await.map_err(|error| error.name.into_owned())?;
        let coding = answer.field(b"content-encoding");
        let body_bytes = answer.body().len() as u64;
        // A range of a coded body cannot be decoded, nor can a body that is not what its field says.
        let mut body = match client::decode(answer.body(), coding) {
            Ok(body) => body.into_owned(),
            Err(_) => answer.body().to_vec(),
        };
        if body.len() > BODY_KEPT_MAX {
            let length = body.len();
            body.truncate(BODY_KEPT_MAX);
            body.extend_from_slice(format!("… {length} bytes").as_bytes());
        }
        let fields = answer.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        Ok(WholeAnswer { status: answer.status(), fields, body, body_bytes })
    }
}

/// The header of a load balancer in front, in version 1 of the PROXY protocol. All clients have one address of RFC 5737.
fn proxy_header(port: u16) -> Vec<u8> {
    format!("PROXY TCP4 192.0.2.1 192.0.2.2 40000 {port}\r\n").into_bytes()
}

/// The bytes of a request's head.
fn head(request: &SwapRequest) -> Vec<u8> {
    let version = if request.is_http10 { "1.0" } else { "1.1" };
    let mut head = format!("{} ", request.method).into_bytes();
    head.extend_from_slice(&request.target);
    head.extend_from_slice(format!(" HTTP/{version}\r\n").as_bytes());
    if !request.host.is_empty() {
        head.extend_from_slice(format!("Host: {}\r\n", request.host).as_bytes());
    }
    for (name, value) in &request.fields {
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    if !request.body.is_empty() || ["POST", "PUT", "PATCH"].contains(&request.method.as_str()) {
        head.extend_from_slice(format!("Content-Length: {}\r\n", request.body.len()).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_fields_in_their_order() {
        let mut request = SwapRequest {
            method: "GET".to_owned(),
            host: "h".to_owned(),
            target: b"/a?b".to_vec(),
            ..SwapRequest::default()
        };
        request.set("B", b"1");
        request.set("A", b"2");
        request.set("b", b"3");
        assert_eq!(head(&request), b"GET /a?b HTTP/1.1\r\nHost: h\r\nB: 3\r\nA: 2\r\n\r\n");
        let post = SwapRequest { method: "POST".to_owned(), is_http10: true, target: b"/".to_vec(), ..request };
        assert_eq!(head(&post), b"POST / HTTP/1.0\r\nHost: h\r\nB: 3\r\nA: 2\r\nContent-Length: 0\r\n\r\n");
    }
}
