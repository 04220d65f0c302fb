//! `health_check` and `match`: reads the checks and finds their groups: the same in `http` and in `stream`, but for
//! [`Asks`].

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use weir_conf::{At, Statement};
use weir_http::exchange::conf::{Conf, Location};
use weir_http::hold::worker::{Generation, Worker};
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::Contexts;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::Address;
use weir_peers::health::CheckRule;

use crate::{Live, Local, Parts};

/// The shortest interval: a task that never sleeps would occupy its worker.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The parameters of a check that only `http` or only `stream` has, and the way it asks a peer.
pub trait Asks: Default + Send + Sync + 'static {
    /// The groups that it checks.
    type Parts: Parts;
    /// The tests of a `match` block.
    type Tests: Send + Sync + 'static;
    /// The place of a check in a configuration.
    type Place: Send + Sync + 'static;
    /// Values that last from one check of a peer to the next.
    type Kept: Default + 'static;
    /// The block of tests.
    const INSIDE: Contexts;
    /// Tests as a remedy shows them.
    const EXAMPLE: &'static str;
    /// The remedies for a group without a `zone`: for an address in `proxy_pass`, and for a block.
    const ZONELESS: [&'static str; 2];

    /// The checks read so far.
    fn declaring<'b>(b: &'b mut Build<'_>) -> &'b mut Declared<Self>;
    /// The checks of a configuration.
    fn declared(conf: &Conf) -> &Declared<Self>;
    /// The numbers of the checks in a block.
    fn numbers(scope: &mut Scope) -> &mut Vec<usize>;
    /// Takes the tests of a block.
    fn tests(scope: &mut Scope) -> Self::Tests;

    /// Reads a parameter; `false` if it is one that both have.
    fn parameter(&mut self, word: Parameter<'_>) -> Result<bool, Refusal>;
    /// Refuses parameters that exclude each other.
    fn fits(&self, _has_match: bool) -> Result<(), Refusal> {
        Ok(())
    }
    /// The part of the parameters that decides about the answer.
    fn asks(&self) -> String;
    /// The place whose error log has the results.
    fn location<'g>(generation: &'g Generation, place: &Self::Place) -> Option<&'g Location>;
    /// Checks one peer.
    fn ask(asked: &Asked<'_, Self>) -> impl Future<Output = Ended>;
}

/// One `health_check`.
pub struct Check<A: Asks> {
    /// The time between the starts of two rounds.
    pub interval: Duration,
    /// The longest random delay of each check in a round.
    pub jitter: Duration,
    /// Failures in a row that make a peer unhealthy.
    fails: u32,
    /// Passes in a row that make a peer healthy.
    passes: u32,
    /// The port, if not the server's port.
    pub port: Option<u16>,
    /// The name of the tests.
    match_name: Option<String>,
    /// A peer is unhealthy until its first check has passed.
    mandatory: bool,
    /// A reload keeps the result for mandatory checks.
    persistent: bool,
    /// The parameters that only `http` or only `stream` has.
    pub own: A,
    at: At,
    /// The place of the check, once all blocks are read.
    pub placed: OnceLock<Placed<A>>,
    /// A worker runs this check; no other worker of the process does.
    pub(crate) is_watched: AtomicBool,
}

/// The place of a check.
pub struct Placed<A: Asks> {
    /// The place in the configuration.
    pub place: A::Place,
    /// The number of the group to check.
    pub group: usize,
    /// The group.
    pub live: Arc<Live<A::Parts>>,
    /// The check's number among the checks of the group.
    pub number: usize,
    /// The tests for an answer.
    pub tests: Option<Arc<A::Tests>>,
}

/// The peer that a check asks, and its surroundings.
pub struct Asked<'a, A: Asks> {
    /// The worker.
    pub worker: &'a Rc<Worker>,
    /// The configuration.
    pub generation: &'a Rc<Generation>,
    /// The check.
    pub check: &'a Check<A>,
    /// Its place.
    pub placed: &'a Placed<A>,
    /// The version of the group.
    pub seen: &'a Rc<Local<A::Parts>>,
    /// The index of the peer.
    pub peer: usize,
    /// Values from the last check of the peer.
    pub kept: &'a A::Kept,
}

impl<A: Asks> Asked<'_, A> {
    /// The address to ask: the peer's, with the port of the check. An address without ports does not change.
    pub fn address(&self) -> Option<Address> {
        let mut address = self.seen.addresses.get(self.peer)?.clone();
        if let (Address::Tcp(address), Some(port)) = (&mut address, self.check.port) {
            address.set_port(port);
        }
        Some(address)
    }
}

/// The result of a check.
pub enum Ended {
    /// The peer is healthy.
    Passed,
    /// The check failed: the reason, and the step.
    Failed {
        /// The reason.
        why: String,
        /// The step, as in lines of the error log.
        doing: &'static str,
    },
    /// The check could not be made; this is not the peer's fault.
    NotMade(String),
}

/// Whether weir itself cannot connect: this is not the peer's fault.
pub fn is_ours(error: &io::Error) -> bool {
    weir_net::is_out_of_files(error) || error.kind() == io::ErrorKind::AddrNotAvailable
}

/// The checks and the tests of a configuration.
#[derive(Default)]
pub struct Declared<A: Asks> {
    /// By number.
    pub checks: Vec<Arc<Check<A>>>,
    matches: Vec<(String, Arc<A::Tests>)>,
}

impl<A: Asks> Declared<A> {
    /// The tests of that name.
    pub fn found(&self, name: &str) -> Option<Arc<A::Tests>> {
        self.matches.iter().find(|(known, _)| known == name).map(|(_, tests)| tests.clone())
    }
}

/// `match`.
pub fn tests<A: Asks>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if A::declaring(b).found(&name).is_some() {
        return Err(Refusal::whole(format!("duplicate match \"{name}\"")));
    }
    let mut scope = b.block(Scope::new(Kind::Plain, A::INSIDE, b.at()), statement)?;
    A::declaring(b).matches.push((name, Arc::new(A::tests(&mut scope))));
    Ok(())
}

/// `health_check`.
pub fn health_check<A: Asks>(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut check = Check {
        interval: Duration::from_secs(5),
        jitter: Duration::ZERO,
        fails: 1,
        passes: 1,
        port: None,
        match_name: None,
        mandatory: false,
        persistent: false,
        own: A::default(),
        at: b.at(),
        placed: OnceLock::new(),
        is_watched: AtomicBool::new(false),
    };
    for word in &statement.args {
        check.parameter(Parameter::of(&word.text))?;
    }
    check.own.fits(check.match_name.is_some())?;
    if check.persistent && !check.mandatory {
        return Err(Refusal::whole("\"persistent\" requires \"mandatory\"").todo("write: mandatory persistent"));
    }
    let checks = &mut A::declaring(b).checks;
    let number = checks.len();
    checks.push(Arc::new(check));
    A::numbers(b.scope()).push(number);
    Ok(())
}

/// A parameter: `NAME`, or `NAME=VALUE`.
#[derive(Clone, Copy)]
pub struct Parameter<'w> {
    text: &'w str,
    /// Its name.
    pub name: &'w str,
    /// Its value; empty without `=`.
    pub value: &'w str,
}

impl<'w> Parameter<'w> {
    fn of(text: &'w str) -> Parameter<'w> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        Parameter { text, name, value }
    }

    /// Whether it has no `=`.
    pub fn is_bare(self) -> bool {
        self.name == self.text
    }

    /// The refusal of the parameter.
    pub fn invalid(self) -> Refusal {
        Refusal::whole(format!("invalid parameter \"{}\"", self.text))
    }

    /// Its value as a time.
    pub fn time(self) -> Result<Duration, Refusal> {
        value::long_time_of(self.value).ok_or_else(|| self.invalid())
    }

    /// Its value as a number of a type; 0 is refused.
    pub fn count<N: TryFrom<u64>>(self) -> Result<N, Refusal> {
        let number = value::number(self.value).filter(|number| *number > 0);
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| self.invalid())
    }
}

impl<A: Asks> Check<A> {
    fn parameter(&mut self, word: Parameter<'_>) -> Result<(), Refusal> {
        if self.own.parameter(word)? {
            return Ok(());
        }
        match word.name {
            "mandatory" if word.is_bare() => self.mandatory = true,
            "persistent" if word.is_bare() => self.persistent = true,
            "interval" => {
                self.interval = word.time()?;
                if self.interval < INTERVAL_MIN {
                    return Err(word.invalid().todo("write an interval of at least 1ms"));
                }
            }
            "jitter" => self.jitter = word.time()?,
            "fails" => self.fails = word.count()?,
            "passes" => self.passes = word.count()?,
            "port" => self.port = Some(word.count()?),
            "match" if !word.value.is_empty() => self.match_name = Some(word.value.to_owned()),
            _ => return Err(word.invalid()),
        }
        Ok(())
    }

    /// The check's name in the log.
    pub fn name(&self) -> &str {
        self.match_name.as_deref().unwrap_or_default()
    }

    /// The check's rule, which is the same after a reload if the check asks the same.
    pub fn rule(&self) -> CheckRule {
        CheckRule {
            asks: format!("{:?} {:?} {}", self.port, self.match_name, self.own.asks()),
            fails: self.fails,
            passes: self.passes,
            mandatory: self.mandatory,
            persistent: self.persistent,
        }
    }

    /// The check in its place; `None` if `proxy_pass` names no group, because it has an error.
    fn place(&self, b: &mut Build<'_>, group: usize, place: A::Place) -> Result<Option<Placed<A>>, Refusal> {
        let Some(upstream) = A::Parts::declaring(b).groups.get(group) else { return Ok(None) };
        let Some(live) = upstream.live.clone() else {
            let what = format!("requires upstream \"{}\" to be in shared memory", upstream.name);
            let [of_address, of_block] = A::ZONELESS;
            return Err(Refusal::directive(what)
                .todo(if upstream.is_implicit { of_address } else { of_block })
                .needs("upstream", &upstream.name));
        };
        let missing = |name: &String| {
            let (around, example) = (A::Parts::AROUND, A::EXAMPLE);
            Refusal::whole(format!("match \"{name}\" is not found"))
                .todo(format!("add in {around}: match {name} {{ {example} }}"))
                .needs("match", name)
        };
        let named = self.match_name.as_ref();
        let tests = named.map(|name| A::declaring(b).found(name).ok_or_else(|| missing(name))).transpose()?;
        Ok(Some(Placed { place, group, live, number: 0, tests }))
    }
}

/// Runs after all blocks are read: each check finds its group, and each group its checks. `places` has the numbers of
/// checks in each place, outer places first. `group` finds the number of the group for a check in its place, and
/// that place; it returns `None` if there is an error elsewhere.
pub fn settle<'p, A: Asks, T>(
    b: &mut Build<'_>,
    places: impl Iterator<Item = (&'p Vec<usize>, T)>,
    group: impl Fn(&A, &T) -> Result<Option<(usize, A::Place)>, Refusal>,
) {
    let checks = A::declaring(b).checks.clone();
    let mut rules: BTreeMap<usize, Vec<CheckRule>> = BTreeMap::new();
    let mut seen = vec![false; checks.len()];
    for (numbers, at) in places {
        for number in numbers {
            let (Some(check), Some(is_seen)) = (checks.get(*number), seen.get_mut(*number)) else { continue };
            // A place inside another one inherits its checks.
            if std::mem::replace(is_seen, true) {
                continue;
            }
            let found = group(&check.own, &at);
            match found.and_then(|found| found.map_or(Ok(None), |(group, place)| check.place(b, group, place))) {
                Ok(Some(mut placed)) => {
                    let rules = rules.entry(placed.group).or_default();
                    placed.number = rules.len();
                    rules.push(check.rule());
                    let _ = check.placed.set(placed);
                }
                Ok(None) => {}
                Err(refusal) => b.refuse_at("health_check", refusal, check.at),
            }
        }
    }
    for (group, rules) in rules {
        if let Some(live) = A::Parts::declaring(b).groups.get(group).and_then(|upstream| upstream.live.as_ref()) {
            live.guard(rules.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{PlainCheck, of_text};

    /// A location with these statements, and another one inside it.
    fn read(location: &str) -> (Option<Conf>, Vec<String>) {
        of_text(&format!(
            "upstream u {{ zone z; server 127.0.0.1:1; }} upstream plain {{ server 127.0.0.1:1; }} match m {{ }} match n {{ }}
             server {{ listen 80; location / {{ {location} location /in {{ }} }} }}"
        ))
    }

    #[test]
    fn parameters_of_a_check_are_read_or_refused() {
        for words in [
            "interval=x",
            "interval=0",
            "jitter=1x",
            "fails=0",
            "passes=-1",
            "port=0",
            "port=65536",
            "match=",
            "mandatory=1",
            "persistent=x",
            "nothing",
            "group=0",
        ] {
            let told = read(&format!("health_check {words};")).1;
            assert_eq!(told, [format!("invalid parameter \"{words}\"")], "{words}");
        }
        assert_eq!(read("health_check persistent;").1, ["\"persistent\" requires \"mandatory\""]);
        let (conf, told) =
            read("health_check interval=7s jitter=20ms fails=3 passes=4 port=81 match=m mandatory persistent;");
        assert_eq!(told, [""; 0]);
        let check = PlainCheck::declared(&conf.unwrap()).checks[0].clone();
        assert_eq!((check.interval.as_millis(), check.jitter.as_millis(), check.port), (7000, 20, Some(81)));
        let rule = check.rule();
        assert_eq!((rule.fails, rule.passes, rule.mandatory, rule.persistent), (3, 4, true, true));
        assert_eq!(check.name(), "m");
    }

    #[test]
    fn a_check_is_the_same_after_a_reload_if_it_asks_the_same() {
        let asks = |words: &str| {
            let conf = read(&format!("health_check {words};")).0.unwrap();
            PlainCheck::declared(&conf).checks[0].rule().asks
        };
        let same = asks("match=m");
        for (words, is_same) in [
            ("match=m fails=9 passes=9 interval=1s jitter=1s mandatory persistent", true),
            ("match=n", false),
            ("", false),
            ("match=m port=1", false),
        ] {
            assert_eq!(asks(words) == same, is_same, "{words}");
        }
    }

    #[test]
    fn checks_of_a_group_are_numbered_once_and_guard_its_peers() {
        let (conf, told) = read("health_check group=1; health_check group=1 match=m mandatory; health_check;");
        assert_eq!(told, [""; 0]);
        let conf = conf.unwrap();
        let placed = PlainCheck::declared(&conf).checks.iter().map(|check| check.placed.get());
        let shown: Vec<_> = placed.map(|placed| placed.map(|placed| (placed.number, placed.tests.is_some()))).collect();
        assert_eq!(shown, [Some((0, false)), Some((1, true)), None]);
        let peers = crate::tests::Plain::declared(&conf).groups[0].now().group.view(0);
        assert!(peers.iter().all(|view| view.health.is_some()));
    }

    #[test]
    fn a_check_without_a_group_that_changes_or_without_its_tests_is_refused() {
        for (words, told) in [
            ("group=2", "\"health_check\" directive requires upstream \"plain\" to be in shared memory"),
            ("group=1 match=x", "match \"x\" is not found"),
        ] {
            assert_eq!(read(&format!("health_check {words};")).1, [told], "{words}");
        }
        assert_eq!(of_text("match m { } match m { }").1, ["duplicate match \"m\""]);
    }
}
