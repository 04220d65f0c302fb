//! `sticky`: sends an exchange to the peer of the client's earlier exchanges: by weir's cookie, by a route that the
//! request names, or by a session that weir saw the peer start.
//!
//! ```text
//!  before a peer is chosen:   bound()  the name of a peer, from the request
//!  once a peer is chosen:     mark()   the cookie that names it          (sticky cookie)
//!  once it has answered:      learn()  the peer of this session          (sticky learn)
//! ```
//!
//! A peer's name is its `route`, or else the MD5 of its address. A binding is only a preference: weir does not wait
//! for a peer that is down, has failed or is full.
//! <https://nginx.org/en/docs/http/ngx_http_upstream_module.html#sticky>

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use md5::{Digest, Md5};
use weir_conf::{At, Statement};
use weir_http::exchange::Exchange;
use weir_http::hold::zone::{self, Shard, Table};
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Directive, UPSTREAM};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;
use weir_http::text::value;
use weir_net::clock;
use weir_wire::Known;
use weir_wire::date::cookie_date;

weir_http::settings! {
    /// `sticky`.
    sticky: Option<Arc<Sticky>> = None,
}

/// The zones of `sticky learn`, in the order of the file.
#[derive(Default)]
pub struct Declared {
    zones: Vec<Sessions>,
}

/// The family.
pub static FAMILY: Family = Family::new("sticky", &[Directive::new("sticky", UPSTREAM, Arity::AtLeast(2),
    "Sends a client to the same peer each time: cookie NAME [expires= domain= path= samesite= httponly secure], route \
     $VARIABLE..., \
     or learn create=$VARIABLE lookup=$VARIABLE zone=NAME:SIZE [timeout=] [header] [sync]; with sync, the edges of a fleet share the sessions.", sticky)])
.adopt(|new, old| crate::declared_mut(new).sticky.adopt(&crate::declared(old).sticky));

/// One `sticky`.
pub struct Sticky {
    /// Texts that may name a peer or a session; the first that is not empty counts.
    lookups: Vec<Template>,
    how: How,
}

enum How {
    Route,
    Cookie(Cookie),
    Learn(Learn),
}

/// The cookie that names a peer.
#[derive(Default)]
struct Cookie {
    name: String,
    expires: Option<Expires>,
    domain: Option<Template>,
    path: Option<String>,
    samesite: Option<Template>,
    is_httponly: bool,
    is_secure: bool,
}

#[derive(Clone, Copy)]
enum Expires {
    After(u64),
    Never,
}

/// Sessions that peers start.
struct Learn {
    /// Texts that name a new session; the first that is not empty counts.
    creates: Vec<Template>,
    /// The number of the zone.
    zone: usize,
    /// Learns from the head of the answer, not from the whole answer.
    at_head: bool,
}

/// A zone of sessions, and its upstream.
struct Sessions {
    name: String,
    upstream: String,
    size: u64,
    timeout: Duration,
    table: Arc<Table<Session>>,
    /// `sync`: the sessions that the other edges of the fleet do not know yet.
    news: Option<Arc<SessionNews>>,
}

/// A zone with `sync`, for the fleet.
pub struct SharedSessions {
    /// The zone's name.
    pub name: String,
    timeout: Duration,
    table: Arc<Table<Session>>,
    news: Arc<SessionNews>,
}

/// Sessions that began or were used at this edge.
#[derive(Default)]
struct SessionNews {
    /// Where the directive stands.
    at: At,
    waiting: Mutex<Vec<SessionWord>>,
}

/// A session and its peer, as an edge tells it to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionWord {
    /// The MD5 of its id.
    pub key: [u8; 16],
    /// The name of its peer.
    pub peer: Box<str>,
}

/// Sessions that wait to be told, at most; further ones are told at their next use.
const NEWS_MAX: usize = 65_536;

/// The peer of a session.
struct Session {
    peer: Box<str>,
    /// The last use, in milliseconds of the table's time.
    used_ms: i64,
    /// When the other edges were told of it, in milliseconds of the table's time; `None` if they were not.
    told_ms: Option<i64>,
}

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);

const SAME_SITE: [&str; 3] = ["strict", "lax", "none"];

fn sticky(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if crate::settings(b).sticky.sticky.is_some() {
        return Err(Refusal::directive("is duplicate"));
    }
    let words = statement.args.iter().skip(1).map(|word| word.text.as_str());
    let sticky = match statement.text(0) {
        "cookie" => cookie(b, words)?,
        "route" => {
            let lookups = words.map(|word| variable(b, word)).collect::<Result<Vec<_>, _>>()?;
            Sticky { lookups, how: How::Route }
        }
        "learn" => learn(b, words)?,
        other => {
            return Err(Refusal::whole(format!("unknown parameter \"{other}\"")).todo("write cookie, route or learn"));
        }
    };
    crate::settings(b).sticky.sticky = Some(Some(Arc::new(sticky)));
    Ok(())
}

fn variable(b: &mut Build<'_>, word: &str) -> Result<Template, Refusal> {
    match word.strip_prefix('$') {
        Some(name) if !name.is_empty() => Ok(Template::of_variable(name, &mut b.names)),
        _ => Err(Refusal::whole(format!("invalid variable name \"{word}\""))),
    }
}

fn cookie<'w>(b: &mut Build<'_>, mut words: impl Iterator<Item = &'w str>) -> Result<Sticky, Refusal> {
    let name = words.next().filter(|name| !name.is_empty());
    let mut cookie =
        Cookie { name: name.ok_or_else(|| Refusal::directive("empty cookie name"))?.to_owned(), ..Cookie::default() };
    for word in words {
        let (key, text) = word.split_once('=').map_or((word, None), |(key, text)| (key, Some(text)));
        let is_again = match (key, text) {
            ("domain" | "path", Some("")) => return Err(Refusal::directive(format!("no value for \"{key}\""))),
            ("domain", Some(text)) => cookie.domain.replace(b.template(text)?).is_some(),
            ("path", Some(text)) => cookie.path.replace(text.to_owned()).is_some(),
            ("expires", Some(text)) => cookie.expires.replace(expires(text)?).is_some(),
            ("samesite", Some(text)) => {
                let template = b.template(text)?;
                if template.literal().is_some() && !is_same_site(text.as_bytes()) {
                    return Err(
                        Refusal::directive("invalid \"samesite\" parameter value").todo("write strict, lax or none")
                    );
                }
                cookie.samesite.replace(template).is_some()
            }
            ("httponly", None) => std::mem::replace(&mut cookie.is_httponly, true),
            ("secure", None) => std::mem::replace(&mut cookie.is_secure, true),
            _ => return Err(Refusal::whole(format!("unknown parameter \"{word}\""))),
        };
        if is_again {
            return Err(Refusal::directive(format!("parameter \"{key}\" is duplicate")));
        }
    }
    let lookup = Template::of_variable(&format!("cookie_{}", cookie.name), &mut b.names);
    Ok(Sticky { lookups: vec![lookup], how: How::Cookie(cookie) })
}

fn expires(text: &str) -> Result<Expires, Refusal> {
    match text {
        "max" => Ok(Expires::Never),
        text => value::seconds_of(text)
            .map(|seconds| Expires::After(seconds as u64))
            .ok_or_else(|| Refusal::directive("invalid \"expires\" parameter value").todo("write a time, or max")),
    }
}

fn is_same_site(text: &[u8]) -> bool {
    SAME_SITE.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text))
}

fn learn<'w>(b: &mut Build<'_>, words: impl Iterator<Item = &'w str>) -> Result<Sticky, Refusal> {
    let (mut lookups, mut creates, mut place, mut timeout, mut at_head) = (Vec::new(), Vec::new(), None, None, false);
    let mut news = None;
    for word in words {
        match word.split_once('=') {
            Some(("zone", _)) if place.is_some() => return Err(Refusal::directive("duplicate zone")),
            Some(("zone", _)) => place = zone::parameter(word).transpose()?,
            Some(("timeout", _)) if timeout.is_some() => return Err(Refusal::directive("duplicate timeout")),
            Some(("timeout", text)) => {
                let time = value::long_time_of(text).filter(|time| !time.is_zero());
                timeout = Some(time.ok_or_else(|| Refusal::directive("invalid timeout"))?);
            }
            Some((key @ ("create" | "lookup"), text)) => {
                let missing = |_| Refusal::directive(format!("missing variable in the \"{key}\" parameter"));
                let template = variable(b, text).map_err(missing)?;
                if key == "create" { &mut creates } else { &mut lookups }.push(template);
            }
            None if word == "header" => at_head = true,
            None if word == "sync" => news = Some(Arc::new(SessionNews { at: b.at(), waiting: Mutex::default() })),
            _ => return Err(Refusal::whole(format!("unknown parameter \"{word}\""))),
        }
    }
    for (is_missing, key) in [(lookups.is_empty(), "lookup"), (creates.is_empty(), "create"), (place.is_none(), "zone")]
    {
        if is_missing {
            return Err(Refusal::directive(format!("\"{key}\" parameter is not specified")));
        }
    }
    let (name, size) = place.unwrap_or_default();
    if name.is_empty() {
        return Err(Refusal::directive("zone name is not specified"));
    }
    let zones = &mut crate::declaring(b).sticky.zones;
    if let Some(known) = zones.iter().find(|zone| zone.name == name) {
        let upstream = &known.upstream;
        return Err(Refusal::whole(format!("sticky zone \"{name}\" is already used in upstream \"{upstream}\"")));
    }
    let table = Arc::new(Table::new(size));
    let timeout = timeout.unwrap_or(TIMEOUT_DEFAULT);
    // The group sets the upstream later.
    zones.push(Sessions { name, upstream: String::new(), size, timeout, table, news });
    let zone = zones.len() - 1;
    Ok(Sticky { lookups, how: How::Learn(Learn { creates, zone, at_head }) })
}

impl Declared {
    /// Sets the upstream of these sessions.
    pub fn belongs(&mut self, sticky: &Sticky, upstream: &str) {
        if let How::Learn(learn) = &sticky.how
            && let Some(zone) = self.zones.get_mut(learn.zone)
        {
            upstream.clone_into(&mut zone.upstream);
        }
    }

    /// The zones with `sync`, for the fleet.
    pub fn shared(&self) -> Vec<Arc<SharedSessions>> {
        let shared = |zone: &Sessions| {
            let (name, timeout, table) = (zone.name.clone(), zone.timeout, zone.table.clone());
            Some(Arc::new(SharedSessions { name, timeout, table, news: zone.news.clone()? }))
        };
        self.zones.iter().filter_map(shared).collect()
    }

    /// Where `sync` stands first.
    pub fn shared_at(&self) -> Option<At> {
        self.zones.iter().find_map(|zone| zone.news.as_ref()).map(|news| news.at)
    }

    /// Takes over sessions at a reload, if their zone is the same.
    fn adopt(&mut self, old: &Declared) -> Result<(), String> {
        for new in &mut self.zones {
            let Some(old) = old.zones.iter().find(|old| old.name == new.name && old.size == new.size) else { continue };
            if new.upstream != old.upstream {
                return Err(format!(
                    "sticky zone \"{}\" is used in upstream \"{}\" while previously it was used in upstream \"{}\"",
                    new.name, new.upstream, old.upstream
                ));
            }
            new.table = old.table.clone();
            if let (Some(new), Some(old)) = (&mut new.news, &old.news) {
                new.clone_from(old);
            }
        }
        Ok(())
    }
}

impl SharedSessions {
    /// The sessions that the others do not know yet; they count as told.
    pub fn news(&self) -> Vec<SessionWord> {
        std::mem::take(&mut *self.news.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts sessions back that could not be told.
    pub fn put_back(&self, words: Vec<SessionWord>) {
        let mut waiting = self.news.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let room = NEWS_MAX.saturating_sub(waiting.len());
        waiting.extend(words.into_iter().take(room));
    }

    /// Takes a session over from another edge, which used it this long ago.
    pub fn take(&self, word: &SessionWord, ago: Duration) {
        if ago >= self.timeout {
            return;
        }
        let used_ms = self.table.age_ms() - i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        let mut sessions = self.table.shard(&word.key);
        match sessions.get(&word.key) {
            Some(session) => {
                session.used_ms = session.used_ms.max(used_ms);
                session.peer.clone_from(&word.peer);
                session.told_ms = Some(used_ms);
            }
            None => sessions.insert(&word.key, Session { peer: word.peer.clone(), used_ms, told_ms: Some(used_ms) }),
        }
    }

    /// How long a session lives after its last use.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl Session {
    /// Whether the other edges must hear of its use now: in time, so that it does not end there.
    fn is_news(&self, timeout: Duration) -> bool {
        let again_ms = i64::try_from(timeout.as_millis() / 4).unwrap_or(i64::MAX);
        self.told_ms.is_none_or(|told_ms| self.used_ms - told_ms >= again_ms)
    }
}

impl Sessions {
    /// Tells the other edges of a session, if they must hear of it.
    fn tell(&self, key: &[u8], session: &mut Session) {
        let Some(news) = self.news.as_ref().filter(|_| session.is_news(self.timeout)) else { return };
        let Ok(key) = key.try_into() else { return };
        let mut waiting = news.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < NEWS_MAX {
            waiting.push(SessionWord { key, peer: session.peer.clone() });
            session.told_ms = Some(session.used_ms);
        }
    }

    /// A session that has not expired.
    fn known<'s>(&self, sessions: &'s mut Shard<Session>, key: &[u8]) -> Option<&'s mut Session> {
        let ended_ms = self.table.age_ms() - self.timeout.as_millis() as i64;
        if sessions.get(key)?.used_ms <= ended_ms {
            sessions.remove(key);
        }
        sessions.get(key)
    }
}

impl Sticky {
    /// The name of the peer to which an exchange is bound, if known.
    pub fn bound(&self, exchange: &mut Exchange<'_>) -> Option<Vec<u8>> {
        let id = first(&self.lookups, exchange)?;
        let How::Learn(learn) = &self.how else { return Some(id) };
        let zone = crate::declared(exchange.conf).sticky.zones.get(learn.zone)?;
        let key = Md5::digest(&id);
        let mut sessions = zone.table.shard(&key);
        zone.known(&mut sessions, &key).map(|session| session.peer.as_bytes().to_vec())
    }

    /// Sends the client a cookie with its peer, once the last peer of an exchange is chosen.
    pub fn mark(&self, exchange: &mut Exchange<'_>, peer: &str) {
        let How::Cookie(cookie) = &self.how else { return };
        let text = cookie.text(exchange, peer);
        exchange.response.fields.push_known(b"Set-Cookie", &text, Some(Known::SetCookie));
    }

    /// Whether sessions are learned from heads, not from whole answers.
    pub fn learns_at_head(&self) -> bool {
        matches!(&self.how, How::Learn(learn) if learn.at_head)
    }

    /// Records the session of this exchange, once its peer has answered.
    pub fn learn(&self, exchange: &mut Exchange<'_>, peer: &str) {
        let How::Learn(learn) = &self.how else { return };
        let begun = first(&learn.creates, exchange);
        let is_new = begun.is_some();
        let Some(id) = begun.or_else(|| first(&self.lookups, exchange)) else { return };
        let Some(zone) = crate::declared(exchange.conf).sticky.zones.get(learn.zone) else { return };
        let key = Md5::digest(&id);
        let used_ms = zone.table.age_ms();
        let mut sessions = zone.table.shard(&key);
        match zone.known(&mut sessions, &key) {
            Some(session) => {
                session.used_ms = used_ms;
                if &*session.peer != peer {
                    (session.peer, session.told_ms) = (peer.into(), None);
                }
                zone.tell(&key, session);
            }
            None if is_new => {
                let mut session = Session { peer: peer.into(), used_ms, told_ms: None };
                zone.tell(&key, &mut session);
                sessions.insert(&key, session);
            }
            None => {}
        }
    }
}

fn first(templates: &[Template], exchange: &mut Exchange<'_>) -> Option<Vec<u8>> {
    templates.iter().map(|template| template.text(exchange)).find(|text| !text.is_empty())
}

impl Cookie {
    /// The cookie in nginx's form.
    fn text(&self, exchange: &mut Exchange<'_>, peer: &str) -> Vec<u8> {
        let mut text = format!("{}={peer}", self.name).into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            text.extend_from_slice(b"; ");
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(value);
        };
        match self.expires {
            None => {}
            Some(Expires::Never) => add("expires=", b"Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"),
            Some(Expires::After(seconds)) => {
                let date = cookie_date(clock::unix_seconds().saturating_add(seconds) as i64);
                add("expires=", &date);
                add("max-age=", seconds.to_string().as_bytes());
            }
        }
        let domain = self.domain.as_ref().map(|domain| domain.text(exchange)).unwrap_or_default();
        if !domain.is_empty() {
            add("domain=", &domain);
        }
        if self.is_httponly {
            add("httponly", b"");
        }
        if self.is_secure {
            add("secure", b"");
        }
        let same_site = self.samesite.as_ref().map(|same_site| same_site.text(exchange)).unwrap_or_default();
        if is_same_site(&same_site) {
            add("samesite=", &same_site);
        } else if !same_site.is_empty() {
            // nginx: an invalid value of a variable counts as the strictest.
            add("samesite=", b"strict");
        }
        if let Some(path) = &self.path {
            add("path=", path.as_bytes());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::of_text;

    #[test]
    fn the_other_edges_hear_of_sessions_in_time() {
        let text = "events {} http { upstream u { server 127.0.0.1:1; sticky learn create=$arg_a lookup=$arg_a zone=z:1m timeout=1h sync; } }";
        let conf = of_text(text).0.unwrap();
        let declared = &crate::declared(&conf).sticky;
        let (zone, shared) = (declared.zones.first().unwrap(), declared.shared());
        let shared = shared.first().unwrap();
        let mut session = Session { peer: "p".into(), used_ms: 0, told_ms: None };
        zone.tell(&[1; 16], &mut session);
        session.used_ms = 15 * 60_000 - 1;
        zone.tell(&[1; 16], &mut session);
        assert_eq!(shared.news(), [SessionWord { key: [1; 16], peer: "p".into() }]);
        session.used_ms += 1;
        zone.tell(&[1; 16], &mut session);
        assert_eq!(shared.news().len(), 1, "a quarter of its time has passed");
        shared.put_back(vec![SessionWord { key: [2; 16], peer: "q".into() }]);
        assert_eq!(shared.news().len(), 1);
        // From another edge.
        shared.take(&SessionWord { key: [3; 16], peer: "r".into() }, Duration::from_secs(3599));
        shared.take(&SessionWord { key: [4; 16], peer: "r".into() }, Duration::from_secs(3600));
        let known = |key: u8| zone.table.shard(&[key; 16]).get(&[key; 16]).map(|session| session.peer.clone());
        assert_eq!((known(3).as_deref(), known(4)), (Some("r"), None));
        assert_eq!(shared.news(), []);
    }

    #[test]
    fn it_is_refused_in_nginx_words() {
        for (sticky, words) in [
            ("cookie a", ""),
            ("cookie a expires=1h domain=.example.com path=/ samesite=Lax httponly secure", ""),
            ("cookie a expires=max samesite=$arg_s domain=$host", ""),
            ("cookie \"\"", "\"sticky\" directive empty cookie name"),
            ("cookie a expires=soon", "\"sticky\" directive invalid \"expires\" parameter value"),
            ("cookie a samesite=no", "\"sticky\" directive invalid \"samesite\" parameter value"),
            ("cookie a secure secure", "\"sticky\" directive parameter \"secure\" is duplicate"),
            ("cookie a domain=", "\"sticky\" directive no value for \"domain\""),
            ("cookie a other", "unknown parameter \"other\""),
            ("route $arg_a $cookie_a", ""),
            ("route a", "invalid variable name \"a\""),
            ("route $arg_a; sticky cookie a", "\"sticky\" directive is duplicate"),
            ("learn create=$arg_a lookup=$arg_a zone=z:1m timeout=1h header", ""),
            ("learn create=$arg_a zone=z:1m", "\"sticky\" directive \"lookup\" parameter is not specified"),
            ("learn create=a zone=z:1m", "\"sticky\" directive missing variable in the \"create\" parameter"),
            ("learn create=$arg_a lookup=$arg_a zone=z:1k", "zone \"zone=z:1k\" is too small"),
            // The edge has the directive `fleet`, without which `sync` is refused.
            ("learn create=$arg_a lookup=$arg_a zone=z:1m sync", ""),
            ("other a", "unknown parameter \"other\""),
        ] {
            let text = format!("events {{}} http {{ upstream u {{ server 127.0.0.1:1; sticky {sticky}; }} }}");
            let problems = of_text(&text).1;
            assert_eq!(problems.join("; ").is_empty(), words.is_empty(), "{sticky}: {problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(words)), "{sticky}: {problems:?}");
        }
        let two = "sticky learn create=$arg_a lookup=$arg_a zone=z:1m; server 127.0.0.1:1;";
        let problems = of_text(&format!("events {{}} http {{ upstream u {{ {two} }} upstream v {{ {two} }} }}")).1;
        assert!(problems.join("").contains("sticky zone \"z\" is already used in upstream \"u\""), "{problems:?}");
    }
}
