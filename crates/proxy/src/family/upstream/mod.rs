//! `upstream` and its `server`s: groups of peers, the choice of a peer, and kept connections.
//!
//! `weir_peers` makes the decisions. `pool` keeps idle connections, `line` those that carry many exchanges at once.
//! `attempt` makes one try (`sending` sends its request, `reading` reads the head of its answer), `walk` goes from try
//! to try, `blame` says why one failed. `answered` interprets a head, `source` reads the answer's body.
//! <https://nginx.org/en/docs/http/ngx_http_upstream_module.html>

pub mod answer;
mod answered;
pub mod attempt;
pub mod blame;
mod choose;
pub mod failure;
pub mod forward;
pub mod groups;
mod heads;
mod lend;
pub mod line;
pub mod pool;
pub mod queue;
mod reading;
mod records;
pub mod sending;
pub mod source;
mod sweep;
mod walk;
mod wrapped;

pub use weir_groups::edit;

use std::sync::Arc;
use std::time::Duration;

use queue::Queue;
use weir_conf::Statement;
use weir_groups::{Measure, Parts, Written, block, resolver};
use weir_http::exchange::conf::Conf;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Arity, Contexts, Directive, HTTP, NONE, ONE, UPSTREAM, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_peers::balance::Policy;
use weir_peers::budget::Budget;
use weir_peers::pool_policy::PoolPolicy;

use crate::family::proxy_ssl::sessions::AllSessions;
use crate::family::sticky::Sticky;

weir_http::settings! {
    /// The statements that `stream` has too.
    group: Written = Written::default(),
    /// `queue`: the most exchanges that wait, and how long.
    queue: Option<(usize, Duration)> = None,
    /// `keepalive`.
    keepalive: usize = IDLE_MAX_DEFAULT,
    /// `keepalive_requests`.
    keepalive_requests: u64 = 1000,
    /// `keepalive_time`.
    keepalive_time: Duration = Duration::from_secs(3600),
    /// `keepalive_timeout`.
    keepalive_timeout: Duration = Duration::from_secs(60),
}

/// The most idle connections that a worker keeps to a group without `keepalive` (nginx: 32).
pub const IDLE_MAX_DEFAULT: usize = 1024;

/// All groups.
pub type Declared = weir_groups::Declared<HttpParts>;

/// A group of peers.
pub type Upstream = weir_groups::Upstream<HttpParts>;

/// A group of HTTP whose peers change.
pub type LiveGroup = weir_groups::Live<HttpParts>;

/// A worker's record of a group.
pub type Local = weir_groups::Local<HttpParts>;

/// The version of a group that a worker used last.
pub type LastUsed = weir_groups::LastUsed<HttpParts>;

/// The parts of a group that only `http` has.
#[derive(Clone)]
pub struct HttpParts {
    /// The limits for keeping connections.
    pub pooling: PoolPolicy,
    /// `sticky` of the group.
    pub sticky: Option<Arc<Sticky>>,
    /// The budget for retries.
    pub budget: Arc<Budget>,
    /// The exchanges that wait for a peer.
    pub queue: Option<Arc<Queue>>,
    /// The TLS sessions with its peers, if it has a `zone`: all workers share them.
    pub sessions: Option<Arc<AllSessions>>,
}

impl Default for HttpParts {
    fn default() -> HttpParts {
        let pooling = PoolPolicy { max_idle: IDLE_MAX_DEFAULT, ..PoolPolicy::default() };
        HttpParts { pooling, sticky: None, budget: Arc::default(), queue: None, sessions: None }
    }
}

impl Parts for HttpParts {
    const AROUND: Contexts = HTTP;
    const INSIDE: Contexts = UPSTREAM;
    const PORT_DEFAULT: Option<u16> = Some(80);
    const MEASURES: &'static [(&'static str, Measure)] =
        &[("header", Measure::FirstByte), ("last_byte", Measure::LastByte)];
    const MEASURE_DEFAULT: Option<Measure> = Some(Measure::LastByte);
    const IS_STICKY: bool = true;

    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut Declared {
        &mut crate::declaring(b).upstream
    }

    fn declared(conf: &Conf) -> &Declared {
        &crate::declared(conf).upstream
    }

    fn declared_mut(conf: &mut Conf) -> &mut Declared {
        &mut crate::declared_mut(conf).upstream
    }

    fn written(scope: &mut Scope) -> &mut Written {
        crate::written_mut(scope).upstream.group.get_or_insert_default()
    }

    fn resolver(scope: &mut Scope) -> &mut resolver::Settings {
        &mut crate::written_mut(scope).resolver
    }

    fn resolvers<'b>(b: &'b mut Build<'_>) -> &'b mut resolver::Declared {
        &mut crate::declaring(b).resolver
    }

    fn read(b: &mut Build<'_>, scope: &mut Scope, name: &str, is_shared: bool) -> HttpParts {
        let written = crate::written_mut(scope);
        let sticky = written.sticky.sticky.take().flatten();
        let written = std::mem::take(&mut written.upstream);
        let is_keepalive_written = written.keepalive.is_some();
        let values = written.values();
        let pooling = PoolPolicy {
            max_idle: values.keepalive,
            max_requests: values.keepalive_requests,
            max_age_ms: values.keepalive_time.as_millis() as u64,
            idle_timeout_ms: values.keepalive_timeout.as_millis() as u64,
            is_written: is_keepalive_written,
        };
        let queue = values.queue.map(|(most, timeout)| Arc::new(Queue::new(most, timeout)));
        if let Some(sticky) = &sticky {
            crate::declaring(b).sticky.belongs(sticky, name);
        }
        HttpParts { pooling, sticky, budget: Arc::default(), queue, sessions: is_shared.then(Arc::default) }
    }

    fn adopt(&self, old: &HttpParts) {
        if let (Some(queue), Some(before)) = (&self.queue, &old.queue) {
            queue.adopt(before);
        }
    }

    fn renewed(&self) {
        if let Some(queue) = &self.queue {
            queue.offer();
        }
    }
}

/// The directives that `stream` has too.
const SHARED: [Directive; 7] = block::directives::<HttpParts>(
    "Defines an address of the group: weight= max_conns= max_fails= fail_timeout= slow_start= backup down drain route= resolve service=.",
    "Prefers the peer with the fewest active connections.",
    "Prefers the peer with the shortest answers, until their header or their last_byte, and the fewest active connections; inflight also counts answers that have not come.",
    "Chooses at random; two chooses the better of two random peers, by least_conn or least_time.",
);

const OWN: &[Directive] = &[
    Directive::new(
        "state",
        UPSTREAM,
        ONE,
        "The file that stores the group's servers and the API's changes; it replaces the server directives.",
        block::state::<HttpParts>,
    ),
    Directive::new(
        "ip_hash",
        UPSTREAM,
        NONE,
        "Chooses by the client's address: three octets of IPv4, all of IPv6.",
        |b, _| block::method::<HttpParts>(b, Policy::IpHash),
    )
    .many(),
    Directive::new(
        "queue",
        UPSTREAM,
        Arity::Between(1, 2),
        "The number of requests that wait until a server is free, and timeout=; a request above it gets 502.",
        queue::read,
    ),
    Directive::new(
        "keepalive",
        UPSTREAM,
        Arity::Between(1, 2),
        "The idle connections that each worker keeps to the group; 0 keeps none.",
        keepalive,
    )
    .default("1024 (nginx: 32)"),
    Directive::new(
        "keepalive_requests",
        UPSTREAM,
        ONE,
        "The largest number of requests on one connection to a peer.",
        |b, s| {
            crate::settings(b).upstream.keepalive_requests = Some(value::first_number(s)?);
            Ok(())
        },
    )
    .default("1000"),
    Directive::new("keepalive_time", UPSTREAM, ONE, "How long weir may use one connection to a peer.", |b, s| {
        crate::settings(b).upstream.keepalive_time = Some(value::time(s)?);
        Ok(())
    })
    .default("1h"),
    Directive::new("keepalive_timeout", UPSTREAM, ONE, "How long weir keeps an idle connection to a peer.", |b, s| {
        crate::settings(b).upstream.keepalive_timeout = Some(value::time(s)?);
        Ok(())
    })
    .default("60s"),
];

static ALL: [Directive; SHARED.len() + OWN.len()] = join(&[&SHARED, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("upstream", &ALL)
    .adopt(weir_groups::adopt::<HttpParts>)
    .finish(weir_groups::finish::<HttpParts>)
    .start(sweep::start)
    .watch(sweep::watch);

fn keepalive(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    value::has_word(statement, 1, "local")?;
    let count = value::number(statement.text(0))
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| Refusal::whole(format!("invalid value \"{}\" in \"keepalive\" directive", statement.text(0))))?;
    crate::settings(b).upstream.keepalive = Some(count);
    Ok(())
}
