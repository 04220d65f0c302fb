//! Inside an application and behind it, from the figures of probed programs: a full pool, a database with lock waits,
//! a Redis that gets too many commands. Without such figures: servers that share a limit.

use super::programs;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Squeeze, Tier, percent};
use crate::why::signals::{ProcessSignals, ProgramFigures, Role, Signals};

/// A pool with this share in use is full.
const POOL_FULL: f64 = 0.95;
/// An application that uses more of its CPUs than this does not just wait.
const WAITS: f64 = 0.7;
/// Least part of a request's time that is spent waiting for the application.
const WAIT_SHARE: f64 = 0.6;
/// Least mean number of database threads that waited for locks.
const LOCKED: f64 = 0.5;
/// More Redis commands than this for each request are too many.
const CHATTY: f64 = 20.0;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B23",
        says: texts::APPLICATIONS_POOL_CONNECTIONS_FULL,
        tier: Tier::Limit,
        check: connections,
        fires: |s| s.told.push(told("spring", "app", &[("active", 5.0), ("pool", 5.0), ("pending", 11.0)])),
        // The pool is as full, but the database behind it is saturated.
        silent: |s| {
            s.told.push(told("spring", "app", &[("active", 5.0), ("pool", 5.0), ("pending", 11.0)]));
            s.told.push(ProgramFigures {
                grew: [("lock_ms".to_owned(), 40_000.0), ("lock_waits".to_owned(), 2000.0)].into(),
                ..told("mysql", "db", &[("running", 5.0)])
            });
        },
    },
    Rule {
        id: "B24",
        says: texts::DATABASE_LIMIT_THREADS_WAIT,
        tier: Tier::Limit,
        check: database,
        fires: |s| {
            s.told.push(ProgramFigures {
                grew: [("lock_ms".to_owned(), 40_000.0), ("lock_waits".to_owned(), 2000.0)].into(),
                ..told("mysql", "db", &[("running", 6.0)])
            });
        },
        // As many threads run, but they wait for no lock.
        silent: |s| s.told.push(told("mysql", "db", &[("running", 6.0)])),
    },
    Rule {
        id: "B25",
        says: texts::REDIS_FULL_REQUEST_SENDS,
        tier: Tier::Limit,
        check: store,
        fires: |s| {
            redis(s, 0.97);
            s.told.push(ProgramFigures {
                grew: [("commands".to_owned(), 900_000.0)].into(),
                ..told("redis", "cache", &[])
            });
        },
        silent: |s| {
            redis(s, 0.2);
            s.told.push(ProgramFigures {
                grew: [("commands".to_owned(), 4_000.0)].into(),
                ..told("redis", "cache", &[])
            });
        },
    },
    Rule {
        id: "B26",
        says: texts::SEVERAL_SERVERS_WAIT_RESOURCE,
        tier: Tier::Rest,
        check: shared,
        fires: |s| {
            s.conf.servers = vec!["one:1".into(), "two:1".into()];
            s.load.ms[0] = 40.0;
            s.edge.steps.insert("wait".into(), (2000, 76_000_000));
            asked(s);
        },
        // One of the servers is full.
        silent: |s| {
            s.conf.servers = vec!["one:1".into(), "two:1".into()];
            s.load.ms[0] = 40.0;
            asked(s);
            s.edge.steps.insert("wait".into(), (2000, 76_000_000));
            s.processes[1].cpu = 0.9;
            s.processes[1].threads = vec![(0.9, 0.05)];
        },
    },
];

fn told(kind: &str, process: &str, levels: &[(&str, f64)]) -> ProgramFigures {
    ProgramFigures {
        kind: kind.to_owned(),
        process: process.to_owned(),
        at: "127.0.0.1:1".to_owned(),
        seconds: 10.0,
        level: levels.iter().map(|(name, value)| ((*name).to_owned(), (*value, *value))).collect(),
        ..ProgramFigures::default()
    }
}

fn redis(s: &mut Signals, cpu: f64) {
    s.processes.push(ProcessSignals {
        name: "cache".into(),
        role: Role::Beside,
        cpu,
        cpus: 1.0,
        pinned: vec![1],
        threads: vec![(cpu, 0.01)],
        ..ProcessSignals::default()
    });
}

/// Adds a server that the applications use.
fn asked(s: &mut Signals) {
    redis(s, 0.1);
    s.processes.iter_mut().filter(|one| one.role == Role::Beside).for_each(|one| {
        one.listens = ["10.0.0.9:7000".to_owned()].into();
    });
    s.hosts.iter_mut().for_each(|host| {
        host.held.insert("10.0.0.9:7000".into(), (2, 0));
    });
}

/// The part of a request's time that is spent waiting for the application.
pub(super) fn wait_share(s: &Signals) -> f64 {
    (s.step_ms("wait") + s.step_ms("connect")) / s.load.ms[0].max(1e-9)
}

/// Adds a squeeze of the application's pool, if the user gave its size to the lab.
pub(super) fn squeezed(s: &Signals, found: FiredRule, process: &str) -> FiredRule {
    match s.pools.iter().find(|pool| pool.process == process) {
        Some(pool) => found.squeezed(Squeeze::Pool(pool.process.clone(), pool.variable.clone())),
        None => found,
    }
}

fn waits(s: &Signals, process: &str) -> bool {
    s.processes.iter().filter(|known| known.name == process).all(|app| app.usage() < WAITS && app.throttled < 0.05)
}

fn connections(s: &Signals) -> Option<FiredRule> {
    if database(s).is_some() {
        return None;
    }
    told_full(s).or_else(|| little(s))
}

/// Hikari reports that its pool is full and that threads wait for it.
fn told_full(s: &Signals) -> Option<FiredRule> {
    let full = |told: &&ProgramFigures| {
        let (active, most) = (told.mean("active").unwrap_or(0.0), told.most("pool").unwrap_or(0.0));
        most > 0.0 && active >= POOL_FULL * most && told.mean("pending").is_some_and(|pending| pending >= 0.5)
    };
    let told = s.told_by("spring").find(full).filter(|told| waits(s, &told.process))?;
    let number = |name: &str| digits(told.mean(name).unwrap_or(0.0));
    let found = FiredRule::new(say!(APPLICATION_POOL_CONNECTIONS_DATABASE, &told.process), 0.97)
        .with(
            texts::LABEL_POOL,
            say!(CONNECTIONS_USE_THREADS_WAITED, number("active"), number("pool"), number("pending")),
        )
        .with(texts::LABEL_CPU, cpu_of(s, &told.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    let found = match s.told_by("mysql").next() {
        Some(db) => found.with(texts::LABEL_DATABASE, say!(THREADS_RAN, digits(db.mean("running").unwrap_or(0.0)))),
        None => found,
    };
    let knob = wanted(told.mean("pool").unwrap_or(0.0) + told.mean("pending").unwrap_or(0.0));
    Some(
        squeezed(s, found, &told.process)
            .knob(say!(SPRING_DATASOURCE_HIKARI_MAXIMUM, knob), say!(ANSWERS_SECOND_GROW_POOL)),
    )
}

/// By Little's law, an application has more requests inside than the known pool has places.
fn little(s: &Signals) -> Option<FiredRule> {
    let pool = s.pools.iter().find(|pool| waits(s, &pool.process))?;
    let apps = s.apps().count().max(1);
    let (count, micros) = s.edge.steps.get("wait").copied().unwrap_or_default();
    let inside = micros as f64 / 1e6 / s.seconds.max(1e-9) / apps as f64;
    if count < 20 || inside < 1.2 * pool.size as f64 || wait_share(s) < WAIT_SHARE {
        return None;
    }
    let found = FiredRule::new(say!(APPLICATION_POOL, &pool.process, &pool.variable), 0.9)
        .with(texts::LABEL_POOL, say!(SIZE_REQUESTS_APPLICATION_AVERAGE, &pool.size, digits(inside)))
        .with(texts::LABEL_CPU, cpu_of(s, &pool.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    Some(
        squeezed(s, found, &pool.process)
            .knob(format!("{}={}", pool.variable, wanted(inside)), say!(ANSWERS_SECOND_GROW_POOL_UNTIL)),
    )
}

/// The size of a pool for this many requests at once, plus a fifth.
pub(super) fn wanted(inside: f64) -> u64 {
    (inside * 1.2).ceil().max(1.0) as u64
}

pub(super) fn cpu_of(s: &Signals, process: &str) -> Said {
    let used = s.processes.iter().find(|known| known.name == process).map_or(0.0, |app| app.usage());
    say!(CPUS_USED_WAITS_INSTEAD, percent(used))
}

pub(super) fn wait(s: &Signals) -> Said {
    say!(MS_REQUESTS_MS_SPENT, digits(s.step_ms("wait")), digits(s.load.ms[0]))
}

fn database(s: &Signals) -> Option<FiredRule> {
    let (told, process, locked) = s.told_by("mysql").find_map(|told| {
        let process = s.processes.iter().find(|process| process.name == told.process);
        // Thread-seconds a second.
        let locked = told.rate("lock_ms") / 1000.0;
        let running = told.mean("running").unwrap_or(0.0);
        let full = process.is_some_and(|db| db.usage() >= WAITS && running > db.cpus);
        let refused = told.grew.get("refused").copied().unwrap_or(0.0) > 0.0;
        (locked >= LOCKED || full || refused).then_some((told, process, locked))
    })?;
    let name = if told.process.is_empty() { &told.at } else { &told.process };
    let number = |name: &str| told.grew.get(name).copied().unwrap_or(0.0);
    let busy = process.map_or(0.0, ProcessSignals::usage);
    let found = FiredRule::new(say!(DATABASE, name), 0.97)
        .with(
            texts::LABEL_THREADS,
            say!(
                RAN_AVERAGE_MOST_CPUS,
                digits(told.mean("running").unwrap_or(0.0)),
                digits(told.most("running").unwrap_or(0.0)),
                percent(busy)
            ),
        )
        .with(texts::LABEL_LOCKS, say!(WAITS_ROW_LOCKS_WAITING, digits(number("lock_waits")), digits(locked)))
        .with(
            texts::LABEL_QUERIES,
            say!(
                GOOD_ANSWER_SLOW_CONNECTIONS,
                digits(told.rate("questions")),
                digits(told.rate("questions") / s.goodput().max(1e-9)),
                digits(number("slow")),
                digits(number("refused"))
            ),
        )
        .slows(&[Segment::Wait]);
    let slowest = programs::query(told);
    let found = found
        .with(texts::LABEL_QUERY, slowest.as_ref().map_or_else(Said::default, |(line, _)| line.clone()))
        .with(texts::LABEL_HELD, programs::lock(told).filter(|_| locked >= LOCKED).unwrap_or_default());
    let found = match process {
        Some(db) if busy >= WAITS => found.squeezed(Squeeze::Cpu(db.name.clone())),
        _ => found,
    };
    if locked >= LOCKED {
        return Some(found.knob(say!(USE_SHORTER_TRANSACTIONS_FEWER), say!(QUERIES_FASTER_UNDER_LOAD)));
    }
    // Idle connections have the places that the refused ones wanted. A faster query frees none of them.
    let is_slow = busy >= WAITS || number("slow") > 0.0;
    if number("refused") > 0.0 && !is_slow {
        let (held, most) = (told.most("connected").unwrap_or(0.0), told.most("connected_max").unwrap_or(0.0));
        let found = found.with(texts::LABEL_CONNECTIONS, say!(CONNECTED_MOST_OF, digits(held), digits(most)));
        return Some(found.knob(say!(RAISE_MAX_CONNECTIONS), say!(NO_CONNECTION_REFUSED)));
    }
    let knob = slowest.and_then(|(_, remedy)| remedy).unwrap_or_else(|| say!(INDEX_SLOWEST_QUERY_SLOW));
    Some(found.knob(knob, say!(QUERIES_FASTER_UNDER_LOAD)))
}

fn store(s: &Signals) -> Option<FiredRule> {
    let told = s.told_by("redis").next()?;
    let process = s.processes.iter().find(|process| process.name == told.process);
    let calls = told.rate("commands") / s.goodput().max(1e-9);
    let full = process.filter(|redis| redis.wanted() >= 0.9 && redis.cpu >= 0.6 && redis.throttled < 0.05);
    let is_chatty = calls >= CHATTY && wait_share(s) >= WAIT_SHARE && s.apps().all(|app| app.usage() < WAITS);
    let is_held = programs::is_held(told);
    if full.is_none() && !is_chatty && !is_held {
        return None;
    }
    let name = if told.process.is_empty() { &told.at } else { &told.process };
    let slowest = programs::command(told);
    let is_one = full.is_some() || is_held;
    let subject = if is_one { say!(REDIS_ONE_THREAD, name) } else { say!(REDIS_GETS_COMMANDS_ONE, name) };
    let found = FiredRule::new(subject, if is_one { 1.0 } else { 0.5 })
        .with(texts::LABEL_COMMANDS, say!(GOOD_ANSWER, digits(told.rate("commands")), digits(calls)))
        .with(
            texts::LABEL_CPU,
            say!(
                USED_COMMANDS_TOOK_TIME,
                percent(process.map_or(0.0, ProcessSignals::usage)),
                percent(told.rate("command_us") / 1e6)
            ),
        )
        .with(texts::LABEL_COMMAND, slowest.as_ref().map_or_else(Said::default, |slowest| slowest.line.clone()))
        .slows(&[Segment::Wait]);
    let found = match full {
        Some(redis) => found.squeezed(Squeeze::Cpu(redis.name.clone())),
        None => found,
    };
    match slowest.and_then(|slowest| slowest.remedy(told)) {
        Some(knob) => Some(found.knob(knob, say!(NO_COMMAND_WAITS_FOR_IT))),
        None => Some(found.knob(say!(JOIN_SEVERAL_COMMANDS_MGET), say!(WAIT_APPLICATION_FALLS_NUMBER))),
    }
}

/// Whether the servers of the upstream use another server. If they use none, each of them waits for something of its
/// own, or for something that the lab cannot see.
fn have_something_in_common(s: &Signals) -> bool {
    s.servers().any(|one| one.role == Role::Beside)
}

fn shared(s: &Signals) -> Option<FiredRule> {
    let servers = s.conf.servers.len();
    let is_idle =
        |process: &ProcessSignals| process.usage() < WAITS && process.wanted() < WAITS && process.throttled < 0.05;
    if servers < 2 || wait_share(s) < WAIT_SHARE || !s.servers().all(is_idle) || !have_something_in_common(s) {
        return None;
    }
    let busiest = s.servers().map(ProcessSignals::usage).fold(0.0, f64::max);
    let edge = s.edge_process().map_or(0.0, ProcessSignals::usage);
    let found = FiredRule::new(say!(RESOURCE_SERVERS_UPSTREAM_SHARE, servers), 0.5)
        .with(texts::LABEL_WAIT, wait(s))
        .with(texts::LABEL_CPU, say!(SERVERS_SERVERS_BEHIND_THEM, servers, percent(busiest), percent(edge)))
        .slows(&[Segment::Wait])
        .squeezed(Squeeze::Servers(s.conf.servers.last().cloned().unwrap_or_default()));
    Some(found.knob(say!(MEASURE_SHARED_RESOURCE_DATABASE), say!(CHECK_PROVE_IF_SHARED)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::why::rules;
    use crate::why::signals::ProgramText;

    #[test]
    fn refused_connections_need_no_index() {
        let refused = ("refused".to_owned(), 40.0);
        let of = |grew: &[(String, f64)]| {
            let mut s = Signals::quiet();
            let levels = [("running", 1.0), ("connected", 20.0), ("connected_max", 20.0)];
            s.told.push(ProgramFigures { grew: grew.iter().cloned().collect(), ..told("mysql", "db", &levels) });
            database(&s).unwrap()
        };
        let found = of(std::slice::from_ref(&refused));
        assert!(found.knob.contains("max_connections") && !found.knob.contains("index"), "{}", found.knob);
        assert!(found.evidence.iter().any(|(_, text)| text.contains("20.0 connected at most of 20.0")), "{found:?}");
        // Slow queries hold their connections.
        assert!(of(&[refused, ("slow".to_owned(), 9.0)]).knob.contains("index"));
    }

    /// Redis holds back all commands while it runs one, also where its process is on another machine.
    #[test]
    fn a_command_that_takes_redis_time_is_named_with_its_remedy() {
        let mut s = Signals::quiet();
        let command = ProgramText { text: "keys".into(), numbers: vec![8_700_000.0, 900.0], most: Some(14_000.0) };
        s.told.push(ProgramFigures {
            totals: [("command".to_owned(), vec![command])].into(),
            ..told("redis", "", &[("keys", 100_000.0)])
        });
        let found = store(&s).unwrap();
        assert!(
            found
                .evidence
                .iter()
                .any(|(_, text)| text == "KEYS took 87 % of Redis's time: 900 calls, 9.67 ms each, 14.0 ms at most"),
            "{found:?}"
        );
        assert!(found.knob.contains("SCAN") && found.knob.contains("100000 keys"), "{}", found.knob);
    }

    /// Servers that use no other server share nothing that the lab can see.
    #[test]
    fn servers_that_have_nothing_in_common_share_nothing() {
        let rule = rules::all().find(|rule| rule.id == "B26").unwrap();
        let mut s = Signals::quiet();
        (rule.fires)(&mut s);
        assert!((rule.check)(&s).is_some());
        s.processes.retain(|process| process.role != Role::Beside);
        assert_eq!((rule.check)(&s), None);
    }
}
