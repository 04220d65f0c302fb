//! Rounds against an authority in memory, whose clock moves when weir waits.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, pending};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use weir_net::log::Level;

use crate::plan::Plan;
use crate::{
    AccountKey, AuthorityAnswer, AuthorityRequest, Begun, CertificateOrder, Identifier, Issued, Issuer, KeyKind,
    Method, Proof, Surroundings, Tended, Tending, answer, chain, tend,
};

const START: i64 = 1_800_000_000;
const DAY: i64 = 24 * 3600;

/// How an authority lies: changes an answer to a path.
type Twist = fn(&str, AuthorityAnswer) -> AuthorityAnswer;

/// An authority, and the disk of weir.
struct Ca {
    now: Cell<i64>,
    /// Requests so far, and the number at which the process ends: before or after the authority has handled it.
    count: Cell<usize>,
    ends_at: Cell<Option<(usize, bool)>>,
    is_down: Cell<bool>,
    twist: Cell<Option<Twist>>,
    nonces: RefCell<HashSet<String>>,
    accounts: RefCell<Vec<Value>>,
    orders: RefCell<Vec<Placed>>,
    /// The suggested window of every certificate after its beginning, if the authority tells one.
    window: Cell<Option<(i64, i64)>>,
    shown: RefCell<HashMap<String, String>>,
    disk: RefCell<Disk>,
    lines: RefCell<Vec<(Level, String)>>,
}

struct Placed {
    status: &'static str,
    hosts: Vec<Value>,
    proved: Vec<bool>,
    replaces: Option<String>,
    certificate: String,
}

#[derive(Clone, Default)]
struct Disk {
    account: Option<String>,
    begun: HashMap<String, Begun>,
    issued: HashMap<String, Issued>,
}

impl Ca {
    fn new() -> Ca {
        Ca {
            now: Cell::new(START),
            count: Cell::new(0),
            ends_at: Cell::new(None),
            is_down: Cell::new(false),
            twist: Cell::new(None),
            nonces: RefCell::default(),
            accounts: RefCell::default(),
            orders: RefCell::default(),
            window: Cell::new(None),
            shown: RefCell::default(),
            disk: RefCell::default(),
            lines: RefCell::default(),
        }
    }

    fn nonce(&self) -> (String, String) {
        let nonce = format!("nonce{}", self.nonces.borrow().len() + 1000 * self.count.get());
        self.nonces.borrow_mut().insert(nonce.clone());
        ("replay-nonce".to_owned(), nonce)
    }

    fn answer(&self, status: u16, body: Value) -> AuthorityAnswer {
        AuthorityAnswer { status, fields: vec![self.nonce()], body: body.to_string().into_bytes() }
    }

    fn problem(&self, name: &str) -> AuthorityAnswer {
        self.answer(400, json!({"type": format!("urn:ietf:params:acme:error:{name}"), "detail": "no"}))
    }

    fn order_json(&self, number: usize) -> Value {
        let orders = self.orders.borrow();
        let placed = &orders[number];
        let authorizations: Vec<String> =
            (0..placed.hosts.len()).map(|host| format!("https://ca.test/authz/{number}/{host}")).collect();
        let mut order = json!({
            "status": placed.status,
            "identifiers": placed.hosts,
            "authorizations": authorizations,
            "finalize": format!("https://ca.test/final/{number}"),
        });
        if placed.status == "valid" {
            order["certificate"] = format!("https://ca.test/cert/{number}").into();
        }
        order
    }

    fn handle(&self, request: &AuthorityRequest<'_>) -> AuthorityAnswer {
        let path = request.url.path().to_owned();
        if request.method == Method::Get {
            return match path.split('/').nth(1).unwrap_or_default() {
                "dir" => self.answer(
                    200,
                    json!({
                        "newNonce": "https://ca.test/nonce", "newAccount": "https://ca.test/acct",
                        "newOrder": "https://ca.test/order",
                        "renewalInfo": self.window.get().map(|_| "https://ca.test/ari"),
                    }),
                ),
                "ari" => {
                    let id = path.rsplit('/').next();
                    let disk = self.disk.borrow();
                    let own = disk.issued.values().find(|issued| issued.renewal_id.as_deref() == id).unwrap();
                    let (start, end) = self.window.get().unwrap();
                    let (start, end) = (own.begins + start, own.begins + end);
                    let shown = |at| String::from_utf8(weir_wire::date::iso8601(at, 0).to_vec()).unwrap();
                    self.answer(200, json!({"suggestedWindow": {"start": shown(start), "end": shown(end)}}))
                }
                _ => self.answer(200, json!({})),
            };
        }
        let message: Value = serde_json::from_str(request.body).unwrap();
        let part = |name: &str| URL_SAFE_NO_PAD.decode(message[name].as_str().unwrap()).unwrap();
        let header: Value = serde_json::from_slice(&part("protected")).unwrap();
        assert_eq!(header["url"], request.url.as_str());
        if !self.nonces.borrow_mut().remove(header["nonce"].as_str().unwrap()) {
            return self.problem("badNonce");
        }
        let payload: Value = serde_json::from_slice(&part("payload")).unwrap_or_default();
        let words: Vec<&str> = path.split('/').skip(1).collect();
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        if words[0] == "acct" {
            let key = header["jwk"].clone();
            let known = self.accounts.borrow().iter().position(|known| *known == key);
            let status = if known.is_some() { 200 } else { 201 };
            let id = known.unwrap_or_else(|| {
                self.accounts.borrow_mut().push(key);
                self.accounts.borrow().len() - 1
            });
            let mut answer = self.answer(status, json!({"status": "valid"}));
            answer.fields.push(("location".to_owned(), format!("https://ca.test/acct/{id}")));
            return answer;
        }
        let account = header["kid"].as_str().and_then(|kid| kid.rsplit('/').next()?.parse::<usize>().ok());
        if account.is_none_or(|account| account >= self.accounts.borrow().len()) {
            return self.problem("accountDoesNotExist");
        }
        match (words[0], words.len()) {
            ("order", 1) => {
                let hosts = payload["identifiers"].as_array().unwrap().clone();
                let (proved, replaces) = (vec![false; hosts.len()], payload["replaces"].as_str().map(str::to_owned));
                let placed = Placed { status: "pending", hosts, proved, replaces, certificate: String::new() };
                self.orders.borrow_mut().push(placed);
                let number = self.orders.borrow().len() - 1;
                let mut answer = self.answer(201, self.order_json(number));
                answer.fields.push(("location".to_owned(), format!("https://ca.test/order/{number}")));
                answer
            }
            ("order", _) => self.answer(200, self.order_json(number(1))),
            ("authz" | "chall", _) => {
                let (order, host, token) = (number(1), number(2), format!("token-{}-{}", words[1], words[2]));
                let mut orders = self.orders.borrow_mut();
                let placed = &mut orders[order];
                if words[0] == "chall" && self.shown.borrow().contains_key(&token) {
                    placed.proved[host] = true;
                    if placed.status == "pending" && placed.proved.iter().all(|proved| *proved) {
                        placed.status = "ready";
                    }
                }
                let status = if placed.proved[host] { "valid" } else { "pending" };
                let challenge = json!({"type": "http-01", "status": status, "token": token,
                    "url": format!("https://ca.test/chall/{order}/{host}")});
                if words[0] == "chall" {
                    return self.answer(200, challenge);
                }
                self.answer(200, json!({"identifier": placed.hosts[host], "status": status, "challenges": [challenge]}))
            }
            ("final", _) => {
                let number = number(1);
                {
                    let mut orders = self.orders.borrow_mut();
                    let placed = &mut orders[number];
                    assert_eq!(placed.status, "ready");
                    let url = format!("https://ca.test/order/{number}");
                    let disk = self.disk.borrow();
                    let key =
                        disk.begun.values().find(|begun| begun.url == url).map(|begun| begun.key.clone()).unwrap();
                    let hosts: Vec<&str> = placed.hosts.iter().map(|host| host["value"].as_str().unwrap()).collect();
                    placed.certificate = chain::tests::lasting(&key, &hosts, self.now.get(), 90);
                    placed.status = "valid";
                }
                self.answer(200, self.order_json(number))
            }
            _ => {
                let body = self.orders.borrow()[number(1)].certificate.clone().into_bytes();
                AuthorityAnswer { status: 200, fields: vec![self.nonce()], body }
            }
        }
    }

    fn said(&self, text: &str) -> bool {
        self.lines.borrow().iter().any(|(_, line)| line.contains(text))
    }
}

impl Surroundings for Ca {
    async fn exchange(&self, request: AuthorityRequest<'_>) -> Result<AuthorityAnswer, String> {
        let number = self.count.get() + 1;
        self.count.set(number);
        if self.is_down.get() {
            return Err("connect() failed (111: Connection refused)".to_owned());
        }
        if self.ends_at.get() == Some((number, false)) {
            pending::<()>().await;
        }
        let mut answer = self.handle(&request);
        if let Some(twist) = self.twist.get() {
            answer = twist(request.url.path(), answer);
        }
        if self.ends_at.get() == Some((number, true)) {
            pending::<()>().await;
        }
        Ok(answer)
    }

    async fn pause(&self, time: Duration) {
        self.now.set(self.now.get() + time.as_secs() as i64);
    }

    fn now(&self) -> i64 {
        self.now.get()
    }

    fn chance(&self) -> u64 {
        0
    }

    async fn make_key(&self, kind: KeyKind) -> Result<String, String> {
        kind.generate()
    }

    async fn show(&self, proof: &Proof) -> Result<(), String> {
        self.shown.borrow_mut().insert(proof.token.clone(), proof.authorization.clone());
        Ok(())
    }

    async fn hide(&self, proof: &Proof) {
        self.shown.borrow_mut().remove(&proof.token);
    }

    fn keep_account(&self, account: Option<&str>) {
        self.disk.borrow_mut().account = account.map(str::to_owned);
    }

    fn keep_order(&self, order: &CertificateOrder, begun: Option<&Begun>) {
        let mut disk = self.disk.borrow_mut();
        match begun {
            Some(begun) => drop(disk.begun.insert(order.id(), begun.clone())),
            None => drop(disk.begun.remove(&order.id())),
        }
    }

    fn issued(&self, order: &CertificateOrder, issued: &Issued) -> Result<(), String> {
        let mut disk = self.disk.borrow_mut();
        disk.begun.remove(&order.id());
        disk.issued.insert(order.id(), issued.clone());
        Ok(())
    }

    fn say(&self, level: Level, line: fmt::Arguments<'_>) {
        self.lines.borrow_mut().push((level, line.to_string()));
    }
}

/// The result of a future that waits for nothing but a pending request; `None` if the process ended in it.
fn run<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn issuer() -> Issuer {
    Issuer { name: "one".to_owned(), uri: "https://ca.test/dir".to_owned(), ..Issuer::default() }
}

fn order(hosts: &[&str]) -> CertificateOrder {
    let identifiers = hosts.iter().flat_map(|host| Identifier::read(host).unwrap()).collect();
    CertificateOrder { identifiers, key: KeyKind::default() }
}

/// A process that starts with what is on the disk.
fn start(ca: &Ca, orders: &[CertificateOrder]) -> Tending {
    ca.shown.borrow_mut().clear();
    let disk = ca.disk.borrow().clone();
    let all = orders.iter().map(|order| {
        let issued = disk.issued.get(&order.id());
        Tended {
            order: order.clone(),
            plan: issued
                .map_or(Plan::empty(), |issued| Plan::kept(answer::Window { start: issued.begins, end: issued.ends })),
            renewal_id: issued.and_then(|issued| issued.renewal_id.clone()),
            begun: disk.begun.get(&order.id()).cloned(),
            error: None,
        }
    });
    Tending::new(all.collect(), disk.account.clone())
}

fn key() -> AccountKey {
    AccountKey::read(KeyKind::default().generate().unwrap().as_bytes()).unwrap()
}

#[test]
fn one_round_gets_all_certificates_of_an_authority() {
    let (ca, key) = (Ca::new(), key());
    let orders = [order(&["a.test", "b.test"]), order(&["c.test"])];
    let mut tending = start(&ca, &orders);
    let next = run(tend(&issuer(), &key, &mut tending, &ca)).unwrap().unwrap();
    assert_eq!(ca.disk.borrow().issued.len(), 2);
    assert_eq!((ca.orders.borrow().len(), ca.accounts.borrow().len()), (2, 1));
    assert!(next > START && next <= ca.now.get() + DAY && ca.shown.borrow().is_empty());
    let count = ca.count.get();
    run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
    assert_eq!(ca.count.get(), count, "nothing is due, so nothing is asked");
}

#[test]
fn a_year_of_renewals_by_the_authority_s_windows() {
    let (ca, key) = (Ca::new(), key());
    ca.window.set(Some((20 * DAY, 21 * DAY)));
    let mut tending = start(&ca, &[order(&["a.test"])]);
    while ca.now.get() < START + 365 * DAY {
        let next = run(tend(&issuer(), &key, &mut tending, &ca)).unwrap().unwrap();
        assert!(tending.all[0].error.is_none(), "{:?}", tending.all[0].error);
        assert!(tending.all[0].plan.valid.end > ca.now.get(), "the certificate never runs out");
        ca.now.set(next.max(ca.now.get() + 1));
    }
    let orders = ca.orders.borrow();
    assert!((17..=19).contains(&orders.len()), "{}", orders.len());
    assert!(orders[0].replaces.is_none() && orders.iter().skip(1).all(|placed| placed.replaces.is_some()));
}

#[test]
fn a_window_that_has_passed_renews_at_once_after_a_restart() {
    let (ca, key) = (Ca::new(), key());
    ca.window.set(Some((50 * DAY, 51 * DAY)));
    run(tend(&issuer(), &key, &mut start(&ca, &[order(&["a.test"])]), &ca)).unwrap();
    ca.now.set(START + DAY);
    ca.window.set(Some((0, 1)));
    run(tend(&issuer(), &key, &mut start(&ca, &[order(&["a.test"])]), &ca)).unwrap();
    assert_eq!(ca.orders.borrow().len(), 2);
    assert_eq!(ca.accounts.borrow().len(), 1);
}

#[test]
fn a_process_that_ends_at_any_request_continues_the_same_order() {
    let plain = Ca::new();
    run(tend(&issuer(), &key(), &mut start(&plain, &[order(&["a.test", "b.test"])]), &plain)).unwrap();
    let requests = plain.count.get();
    assert!(requests > 10);
    for number in 1..=requests {
        for is_handled in [false, true] {
            let (ca, key, orders) = (Ca::new(), key(), [order(&["a.test", "b.test"])]);
            ca.ends_at.set(Some((number, is_handled)));
            assert!(run(tend(&issuer(), &key, &mut start(&ca, &orders), &ca)).is_none());
            ca.ends_at.set(None);
            let is_kept = !ca.disk.borrow().begun.is_empty();
            let placed = ca.orders.borrow().len();
            run(tend(&issuer(), &key, &mut start(&ca, &orders), &ca)).unwrap();
            assert_eq!(ca.disk.borrow().issued.len(), 1, "{number} {is_handled}: {:?}", ca.lines.borrow());
            assert!(ca.disk.borrow().begun.is_empty());
            assert_eq!(ca.accounts.borrow().len(), 1);
            // Only an order of which weir never read the URL is placed again.
            let again = usize::from(!is_kept);
            assert_eq!(ca.orders.borrow().len(), placed + again, "{number} {is_handled}");
            assert!(ca.orders.borrow().len() <= 2);
        }
    }
}

#[test]
fn an_authority_that_is_down_is_asked_less_and_less_often() {
    let (ca, key) = (Ca::new(), key());
    let mut tending = start(&ca, &[order(&["a.test"])]);
    run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
    ca.now.set(START + 70 * DAY);
    ca.is_down.set(true);
    let (mut pauses, before) = (Vec::new(), ca.count.get());
    for _ in 0..6 {
        let next = run(tend(&issuer(), &key, &mut tending, &ca)).unwrap().unwrap();
        pauses.push(next - ca.now.get());
        ca.now.set(next);
    }
    assert_eq!(pauses, [59, 588, 5_880, 84_672, 84_672, 84_672]);
    assert!(ca.count.get() - before <= 6, "one request for each try");
    assert!(ca.said("directory update failed (connect() failed (111: Connection refused)) while creating account"));
    ca.is_down.set(false);
    run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
    assert_eq!(ca.orders.borrow().len(), 2);
}

#[test]
fn every_lie_has_a_name_and_the_old_certificate_stays() {
    fn with(answer: AuthorityAnswer, body: &str) -> AuthorityAnswer {
        AuthorityAnswer { body: body.as_bytes().to_vec(), ..answer }
    }
    fn foreign(hosts: &[&str], days: i64) -> String {
        let key = KeyKind::default().generate().unwrap();
        chain::tests::lasting(&key, hosts, START + 70 * DAY, days)
    }
    let lies: [(Twist, &str); 12] = [
        (|path, answer| if path == "/dir" { with(answer, "<html>") } else { answer }, "cannot deserialize response"),
        (|path, answer| if path == "/dir" { with(answer, "{}") } else { answer }, "missing field `newNonce`"),
        (
            |path, answer| {
                if path == "/nonce" {
                    AuthorityAnswer { fields: vec![("replay-nonce".into(), "a b".into())], ..answer }
                } else {
                    answer
                }
            },
            "cannot obtain replay nonce",
        ),
        (
            |path, answer| {
                if path == "/nonce" {
                    AuthorityAnswer { status: 302, fields: vec![("location".into(), "/nonce".into())], ..answer }
                } else {
                    answer
                }
            },
            "redirect failed: too many redirects",
        ),
        (
            |path, answer| {
                if path == "/dir" {
                    AuthorityAnswer {
                        status: 301,
                        fields: vec![("location".into(), "http://ca.test/dir".into())],
                        ..answer
                    }
                } else {
                    answer
                }
            },
            "redirect failed: redirect from https to http",
        ),
        (
            |path, answer| {
                if path == "/dir" { AuthorityAnswer { status: 301, fields: Vec::new(), ..answer } } else { answer }
            },
            "redirect failed: missing redirect URI",
        ),
        (|path, answer| if path == "/order" { with(answer, "[1]") } else { answer }, "cannot deserialize response"),
        (
            |path, answer| if path == "/order" { AuthorityAnswer { fields: Vec::new(), ..answer } } else { answer },
            "invalid or missing order URL",
        ),
        (
            |path, answer| {
                if path.starts_with("/authz") {
                    with(answer, r#"{"status":"revoked","identifier":{"type":"dns","value":"a.test"}}"#)
                } else {
                    answer
                }
            },
            "unexpected authorization status revoked",
        ),
        (
            |path, answer| if path.starts_with("/cert") { with(answer, &foreign(&["a.test"], 90)) } else { answer },
            "the certificate is for another key",
        ),
        (
            |path, answer| if path.starts_with("/cert") { with(answer, "garbage") } else { answer },
            "no certificate in the completed order",
        ),
        (
            |path, answer| {
                if path == "/dir" { AuthorityAnswer { status: 503, ..with(answer, "down") } } else { answer }
            },
            "unexpected status code 503 in response",
        ),
    ];
    for (twist, wanted) in lies {
        let (ca, key) = (Ca::new(), key());
        let mut tending = start(&ca, &[order(&["a.test"])]);
        run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
        let before = ca.disk.borrow().issued.clone();
        ca.now.set(START + 70 * DAY);
        ca.twist.set(Some(twist));
        // Nonces of the first conversation are gone.
        let next = run(tend(&issuer(), &key, &mut tending, &ca)).unwrap().unwrap();
        assert!(ca.said(wanted), "{wanted}: {:?}", ca.lines.borrow());
        assert!(ca.disk.borrow().issued == before, "{wanted}");
        assert!(next > ca.now.get() && tending.all[0].error.is_some(), "{wanted}");
        ca.twist.set(None);
        ca.now.set(next);
        run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
        assert!(ca.disk.borrow().issued != before, "{wanted}: {:?}", ca.lines.borrow());
    }
}

#[test]
fn certificates_for_other_hosts_or_times_are_refused_by_name() {
    let chains: [(Twist, &str); 2] = [
        (
            |path, answer| {
                if path.starts_with("/cert") {
                    OTHER_HOST.with(|text| AuthorityAnswer { body: text.borrow().clone(), ..answer })
                } else {
                    answer
                }
            },
            "the certificate is not for \"a.test\"",
        ),
        (
            |path, answer| {
                if path.starts_with("/cert") {
                    EXPIRED.with(|text| AuthorityAnswer { body: text.borrow().clone(), ..answer })
                } else {
                    answer
                }
            },
            "the certificate has expired",
        ),
    ];
    thread_local! {
        static OTHER_HOST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        static EXPIRED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    for (twist, wanted) in chains {
        let (ca, key, orders) = (Ca::new(), key(), [order(&["a.test"])]);
        // The process ends before it reads the certificate, so that the key of the order is known here.
        let plain = Ca::new();
        run(tend(&issuer(), &key, &mut start(&plain, &orders), &plain)).unwrap();
        ca.ends_at.set(Some((plain.count.get(), false)));
        assert!(run(tend(&issuer(), &key, &mut start(&ca, &orders), &ca)).is_none());
        ca.ends_at.set(None);
        let own = ca.disk.borrow().begun.values().next().unwrap().key.clone();
        OTHER_HOST.with(|text| text.replace(chain::tests::lasting(&own, &["b.test"], START, 90).into_bytes()));
        EXPIRED.with(|text| text.replace(chain::tests::lasting(&own, &["a.test"], START - 100 * DAY, 90).into_bytes()));
        ca.twist.set(Some(twist));
        let mut tending = start(&ca, &orders);
        run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
        assert!(ca.said(wanted), "{wanted}: {:?}", ca.lines.borrow());
        assert!(ca.disk.borrow().issued.is_empty() && ca.disk.borrow().begun.is_empty());
        assert!(!tending.all[0].plan.wants_certificate(ca.now.get()));
    }
}

#[test]
fn an_account_that_the_authority_forgot_is_made_again() {
    let (ca, key) = (Ca::new(), key());
    ca.disk.borrow_mut().account = Some("https://ca.test/acct/7".to_owned());
    run(tend(&issuer(), &key, &mut start(&ca, &[order(&["a.test"])]), &ca)).unwrap();
    assert_eq!(ca.disk.borrow().issued.len(), 1, "{:?}", ca.lines.borrow());
    assert_eq!(ca.disk.borrow().account.as_deref(), Some("https://ca.test/acct/0"));
}

#[test]
fn a_refusal_for_good_is_not_asked_again() {
    let (ca, key) = (Ca::new(), key());
    ca.twist.set(Some(|path, answer| match path {
        "/order" => {
            let body = br#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"no"}"#;
            AuthorityAnswer { status: 400, body: body.to_vec(), ..answer }
        }
        _ => answer,
    }));
    let mut tending = start(&ca, &[order(&["a.test"])]);
    assert_eq!(run(tend(&issuer(), &key, &mut tending, &ca)).unwrap(), None);
    assert!(ca.said("rejectedIdentifier: no while updating certificate, acme issuer: \"one\", order: \"a.test-"));
    let count = ca.count.get();
    run(tend(&issuer(), &key, &mut tending, &ca)).unwrap();
    assert_eq!(ca.count.get(), count);
}
