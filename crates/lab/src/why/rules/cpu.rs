//! CPU that is used up by one thread, by a quota, by neighbours or by handshakes.

use super::upstream;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Squeeze, Tier, percent};
use crate::why::signals::{ProcessSignals, Role, Signals};

/// A thread that wants a CPU for this share of its time never rests.
const THREAD_FULL: f64 = 0.92;
/// A full thread has to have run for at least this share. Otherwise it waits for other processes, which is another
/// rule's case.
const THREAD_RAN: f64 = 0.6;
/// The same share, if much other work runs on this machine.
const THREAD_RAN_BESIDE: f64 = 0.3;
/// CPUs with this usage are full.
const CPUS_FULL: f64 = 0.88;
/// Share of a quota's periods in which a cgroup was throttled.
const THROTTLED: f64 = 0.05;
/// If what has ended used at least this part of an application's CPU time, it is told.
const ENDED_PART: f64 = 0.2;
/// An event loop with a p99 delay of this many ms stands still.
const LOOP_DELAY_MS: f64 = 50.0;
/// A thread that waits for this share of the time that it wants has neighbours on its CPU.
const CROWDED: f64 = 0.35;
/// With more work of processes outside the stack than this, no rule blames neighbours in the stack.
const FOREIGN_MAX: f64 = 0.25;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B12",
        says: texts::ONE_WORKER_EDGE_FULL,
        tier: Tier::Full,
        check: one_worker,
        fires: |s| {
            s.conf.worker_processes = Some("1".into());
            s.processes[0].cpus = 2.0;
            s.processes[0].cpu = 0.99;
            s.processes[0].threads = vec![(0.98, 0.01), (0.01, 0.0)];
        },
        silent: |s| {
            s.conf.worker_processes = Some("2".into());
            s.processes[0].cpus = 2.0;
            s.processes[0].cpu = 1.9;
            s.processes[0].threads = vec![(0.96, 0.01), (0.94, 0.0)];
        },
    },
    Rule {
        id: "B13",
        says: texts::ONE_WORKER_EDGE_MOST,
        tier: Tier::Full,
        check: imbalance,
        fires: |s| {
            s.conf.worker_processes = Some("2".into());
            s.processes[0].cpus = 2.0;
            s.processes[0].cpu = 1.2;
            // With nginx's accept_mutex, the first worker may accept every connection. Then the other one never runs.
            s.processes[0].threads = vec![(0.97, 0.02), (0.0005, 0.0)];
        },
        // The worker is as full, but there is one connection, which always stays with one worker.
        silent: |s| {
            s.conf.worker_processes = Some("2".into());
            s.processes[0].cpus = 2.0;
            s.processes[0].cpu = 0.97;
            s.processes[0].threads = vec![(0.97, 0.02), (0.0005, 0.0)];
            (s.load.connections, s.edge.active_max) = (1, 2);
        },
    },
    Rule {
        id: "B14",
        says: texts::EDGE_MORE_WORKERS_THAN,
        tier: Tier::Waste,
        check: crowded,
        fires: |s| {
            s.conf.worker_processes = Some("8".into());
            s.processes[0].cpu = 0.97;
            s.processes[0].preempted = 900.0;
            s.processes.iter_mut().skip(1).for_each(|other| other.pinned = vec![1]);
            s.processes[0].threads = vec![(0.13, 0.5); 8];
        },
        // As many workers, but on as many CPUs.
        silent: |s| {
            s.conf.worker_processes = Some("8".into());
            s.processes[0].cpus = 8.0;
            s.processes[0].cpu = 0.97;
            s.processes[0].threads = vec![(0.13, 0.5); 8];
        },
    },
    Rule {
        id: "B15",
        says: texts::CPU_QUOTA_USED_UP,
        tier: Tier::Limit,
        check: quota,
        fires: |s| {
            s.processes[0].quota = Some(0.2);
            s.processes[0].cpus = 0.2;
            s.processes[0].throttled = 0.9;
            s.processes[0].throttled_strip = vec![0.9, 0.9, 0.9, 0.9];
        },
        silent: |s| {
            s.processes[0].quota = Some(0.5);
            s.processes[0].cpus = 0.5;
            s.processes[0].throttled = 0.02;
        },
    },
    Rule {
        id: "B16",
        says: texts::CPU_BECAME_SLOWER_MIDDLE,
        tier: Tier::Limit,
        check: credits,
        fires: |s| {
            s.processes[1].quota = Some(1.0);
            s.processes[1].throttled = 0.5;
            s.processes[1].throttled_strip = vec![0.0, 0.0, 0.95, 0.98];
            s.load.strip = (0..20).map(|at| if at < 10 { 200.0 } else { 30.0 }).collect();
        },
        silent: |s| {
            s.processes[1].quota = Some(1.0);
            s.processes[1].throttled = 0.9;
            s.processes[1].throttled_strip = vec![0.9, 0.9, 0.95, 0.9];
        },
    },
    Rule {
        id: "B17",
        says: texts::EDGE_SPENDS_CPU_TLS,
        tier: Tier::Waste,
        check: handshakes,
        fires: |s| {
            s.edge.handshakes = 1900;
            s.processes[0].cpu = 0.97;
            s.processes[0].threads = vec![(0.97, 0.01)];
        },
        silent: |s| {
            s.edge.handshakes = 20;
            s.processes[0].cpu = 0.97;
            s.processes[0].threads = vec![(0.97, 0.01)];
        },
    },
    Rule {
        id: "B18",
        says: texts::NEIGHBOURS_SAME_CPUS_MAKE,
        tier: Tier::Full,
        check: neighbours,
        fires: |s| {
            s.processes[0].cpu = 0.45;
            s.processes[0].threads = vec![(0.45, 0.5)];
            s.processes[1].cpu = 0.5;
            s.processes[1].threads = vec![(0.5, 0.48)];
        },
        // It waits as long, but no process shares its CPUs.
        silent: |s| {
            s.processes[0].cpu = 0.45;
            s.processes[0].threads = vec![(0.45, 0.5)];
            s.processes[1].cpu = 0.9;
            s.processes[1].pinned = vec![1];
        },
    },
    Rule {
        id: "B19",
        says: texts::EDGES_CPU_FULL,
        tier: Tier::Full,
        check: edge_full,
        fires: |s| {
            s.processes[0].cpu = 0.98;
            s.processes[0].threads = vec![(0.98, 0.01)];
        },
        silent: |s| s.processes[0].threads = vec![(0.7, 0.01)],
    },
    Rule {
        id: "B20",
        says: texts::APPLICATIONS_CPU_FULL,
        tier: Tier::Full,
        check: app_full,
        fires: |s| {
            s.processes[1].cpus = 2.0;
            s.processes[1].cpu = 1.93;
            s.processes[1].threads = vec![(0.6, 0.02), (0.5, 0.02), (0.43, 0.0), (0.4, 0.0)];
        },
        silent: |s| {
            s.processes[1].cpus = 2.0;
            s.processes[1].cpu = 1.2;
        },
    },
    Rule {
        id: "B21",
        says: texts::ONE_THREAD_APPLICATION_FULL,
        tier: Tier::Full,
        check: one_thread,
        fires: |s| {
            s.processes[1].is_node = true;
            s.processes[1].is_main_busiest = true;
            s.processes[1].cpu = 1.02;
            s.processes[1].threads = vec![(0.97, 0.02), (0.02, 0.0), (0.02, 0.0)];
        },
        silent: |s| {
            s.processes[1].is_node = true;
            s.processes[1].cpu = 0.5;
            s.processes[1].threads = vec![(0.5, 0.02)];
        },
    },
];

/// The busiest thread never rests, and it does not wait for other work on this machine.
fn is_thread_full(s: &Signals, process: &ProcessSignals) -> bool {
    let least = if s.machine.foreign > FOREIGN_MAX { THREAD_RAN_BESIDE } else { THREAD_RAN };
    process.wanted() >= THREAD_FULL && process.threads.first().is_some_and(|(ran, _)| *ran >= least)
}

/// Whether a quota throttles the process. Then the quota limits it, not its CPU.
fn is_held_back(process: &ProcessSignals) -> bool {
    process.throttled > THROTTLED
}

fn busy_threads(process: &ProcessSignals) -> usize {
    process.threads.iter().filter(|(ran, waited)| ran + waited >= 0.6).count()
}

fn describe(process: &ProcessSignals) -> Said {
    let (ran, waited) = process.threads.first().copied().unwrap_or_default();
    say!(BUSIEST_THREAD_RAN_TIME, percent(ran), percent(waited))
}

fn squeeze(process: &ProcessSignals) -> Squeeze {
    Squeeze::Cpu(process.name.clone())
}

fn one_worker(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process()?;
    let idle = edge.cpus - edge.cpu;
    let is_one = match s.conf.worker_processes.as_deref() {
        Some("auto") => false,
        Some(count) => count.parse::<f64>().is_ok_and(|count| count + 0.5 < edge.cpus),
        None => !s.conf.is_weir,
    };
    if !is_thread_full(s, edge) || is_held_back(edge) || !is_one || edge.cpus < 1.5 || idle < 0.3 * edge.cpus {
        return None;
    }
    let count = s.conf.worker_processes.as_ref().map_or_else(|| say!(ONE_NGINXS_DEFAULT), Said::from);
    let found = FiredRule::new(say!(EDGE_ONE_WORKERS_CORE), edge.wanted())
        .with(texts::LABEL_EDGE, describe(edge))
        .with(texts::LABEL_WORKERS, say!(CPUS_USED_MAY_RUN, count, digits(edge.cpu), digits(edge.cpus)))
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge, Segment::Body])
        .squeezed(squeeze(edge));
    Some(
        found
            // "auto" counts the machine's CPUs. The edge may have fewer.
            .knob(say!(WORKER_PROCESSES, edge.cpus.round()), say!(UP_TIMES_MUCH_UNTIL, digits(edge.cpus))),
    )
}

fn imbalance(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process()?;
    let (first, second) = (edge.threads.first()?, edge.threads.get(1)?);
    let has_several =
        s.conf.worker_processes.as_deref().map_or(s.conf.is_weir, |count| count != "1") && edge.cpus >= 1.5;
    // With fewer connections than twice the CPUs, most of them may be with one worker by chance. A single connection
    // has to be with one worker.
    let clients = s.load.connections.max(s.edge.active_max);
    if !has_several || !is_thread_full(s, edge) || second.0 + second.1 > 0.5 || (clients as f64) < 2.0 * edge.cpus {
        return None;
    }
    let found = FiredRule::new(say!(EDGE_ONE_WORKERS), edge.wanted())
        .with(texts::LABEL_WORKERS, say!(ONE_WORKER_RAN_TIME, percent(first.0), percent(second.0)))
        .with(texts::LABEL_CONNECTIONS, say!(CLIENTS_ONCE, clients))
        // A response that has arrived also waits for its worker.
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge, Segment::Wait])
        .squeezed(squeeze(edge));
    Some(found.knob(say!(LISTEN_REUSEPORT), say!(KERNEL_SPREADS_CONNECTIONS_OVER)).for_the_tail())
}

fn crowded(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process()?;
    let busy: Vec<&(f64, f64)> = edge.threads.iter().filter(|(ran, waited)| *ran >= 0.03 || *waited >= 0.05).collect();
    let (ran, waited) = busy.iter().fold((0.0, 0.0), |sum, (ran, waited)| (sum.0 + ran, sum.1 + waited));
    let cpus = edge.cpus.ceil();
    let is_crowded = busy.len() as f64 > cpus + 0.5 && waited / (ran + waited).max(1e-9) >= 0.4 && waited >= 0.5;
    // Waiting for another process is another rule's case, and so is a quota.
    let beside: f64 =
        s.processes.iter().filter(|one| one.role != Role::Edge && one.is_beside(edge)).map(|one| one.cpu).sum();
    if !is_crowded || is_held_back(edge) || beside >= 0.3 || s.machine.foreign > FOREIGN_MAX {
        return None;
    }
    let count = s.conf.worker_processes.clone().unwrap_or_else(|| busy.len().to_string());
    let found = FiredRule::new(say!(EDGE_MORE_WORKERS_THAN_CPUS), 0.6)
        .with(texts::LABEL_WORKERS, say!(WORKER_PROCESSES_WHICH_WORKED, count, busy.len(), digits(cpus)))
        .with(texts::LABEL_WAITED, say!(TOGETHER_THEY_RAN_CPUS, digits(ran), digits(waited)))
        .with(texts::LABEL_TAKEN_OFF, say!(TIMES_SECOND_KERNEL_SWITCHED, digits(edge.preempted)))
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge]);
    Some(found.knob(say!(WORKER_PROCESSES, cpus), say!(SLOWEST_ANSWERS_BECOME_FASTER)).for_the_tail())
}

fn quota(s: &Signals) -> Option<FiredRule> {
    // A process that serves no request, such as a batch job, may be throttled.
    let is_server =
        |process: &ProcessSignals| process.role == Role::Edge || s.servers().any(|server| server.name == process.name);
    let held = s.processes.iter().filter(|process| is_server(process) && is_held_back(process));
    let process = held.max_by(|one, other| one.throttled.total_cmp(&other.throttled))?;
    if stepped(process) {
        return None;
    }
    let quota = process.quota.unwrap_or(process.cpus);
    let found = FiredRule::new(say!(CPU_QUOTA, subject(process)), process.throttled.max(process.usage()))
        .with(texts::LABEL_THROTTLED, say!(PERIODS_HAD_WAIT_NEXT, percent(process.throttled)))
        .with(texts::LABEL_CPU, say!(CPUS_USED_GROUP_MAY, digits(process.cpu), digits(quota)))
        .slows(segments(process))
        .squeezed(squeeze(process));
    Some(found.knob(say!(LARGER_QUOTA_CPU_MAX, subject(process)), say!(ANSWERS_SECOND_GROW_QUOTA)))
}

/// Throttling that began in the middle of the block.
fn stepped(process: &ProcessSignals) -> bool {
    let strip = &process.throttled_strip;
    strip.first().is_some_and(|first| *first < 0.1) && strip.last().is_some_and(|last| *last > 0.5)
}

fn credits(s: &Signals) -> Option<FiredRule> {
    let is_server = |process: &ProcessSignals| matches!(process.role, Role::Edge | Role::App);
    let process = s.processes.iter().find(|process| is_server(process) && stepped(process))?;
    let half = s.load.strip.len() / 2;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (before, after) = s.load.strip.split_at(half);
    let from = process.throttled_strip.iter().position(|share| *share >= 0.5)?;
    let since = from as f64 / process.throttled_strip.len() as f64 * s.seconds;
    // Clients that are not the lab's may send less in the second half.
    let halves = match s.load.is_outside {
        true => Said::default(),
        false => say!(FIRST_HALF_SECOND_SAME, digits(mean(before)), digits(mean(after))),
    };
    let found = FiredRule::new(say!(CPU_CREDITS, subject(process)), 0.98)
        .with(
            texts::LABEL_THROTTLED,
            say!(
                ABOUT_STOPPED_PERIODS_BEFORE,
                digits(since),
                percent(process.throttled_strip.last().copied().unwrap_or(0.0))
            ),
        )
        .with(texts::LABEL_ANSWERS, halves)
        .slows(segments(process));
    Some(found.knob(say!(USE_MACHINE_SUFFICIENT_BASELINE), say!(STACK_SERVES_SAME_LOAD)))
}

/// A connection that ends after so few requests has a handshake for each 20 % of them or more, which is when the rule speaks.
const FEW_REQUESTS: u64 = 5;

fn handshakes(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process()?;
    let share = s.edge.handshakes as f64 / s.edge.requests.max(1) as f64;
    if share < 0.2 || edge.wanted() < 0.7 {
        return None;
    }
    let resumed = s.edge.resumed as f64 / s.edge.handshakes.max(1) as f64;
    let found = FiredRule::new(say!(EDGE_TLS_HANDSHAKES), edge.wanted())
        .with(
            texts::LABEL_HANDSHAKES,
            say!(REQUESTS_THEM_RESUMED, &s.edge.handshakes, &s.edge.requests, percent(resumed)),
        )
        .with(texts::LABEL_EDGE, describe(edge))
        .slows(&[Segment::Outside])
        .squeezed(squeeze(edge));
    let knob = match s.conf.client_requests.filter(|most| *most <= FEW_REQUESTS) {
        Some(most) => say!(KEEPALIVE_REQUESTS_CLIENTS, most),
        None => say!(KEEPALIVE_TIMEOUT_65S_SSL),
    };
    Some(found.knob(knob, say!(EDGES_CPU_REQUEST_FALLS)))
}

fn neighbours(s: &Signals) -> Option<FiredRule> {
    let waits = |process: &&ProcessSignals| {
        let (ran, waited) = process.threads.first().copied().unwrap_or_default();
        matches!(process.role, Role::Edge | Role::App)
            && !is_held_back(process)
            && process.wanted() >= 0.85
            && waited / (ran + waited).max(1e-9) >= CROWDED
    };
    let crowd = |process: &ProcessSignals| -> Vec<&ProcessSignals> {
        let all = s.processes.iter().filter(|other| other.name != process.name && other.role != Role::Client);
        let mut all: Vec<&ProcessSignals> = all.filter(|other| other.is_beside(process) && other.cpu >= 0.05).collect();
        all.sort_by(|one, other| other.cpu.total_cmp(&one.cpu));
        all
    };
    // Other work on this machine is reported by the gate, not by this rule. If there is much of it, a neighbour has to use
    // more of these CPUs than all that is neither of the process nor of its neighbours.
    let is_cause = |process: &ProcessSignals, crowd: &[&ProcessSignals]| {
        let used: f64 = crowd.iter().map(|other| other.cpu).sum();
        used >= 0.3 && (s.machine.foreign <= FOREIGN_MAX || used > process.cpus - process.cpu - used)
    };
    let found = s.processes.iter().filter(waits).map(|process| (process, crowd(process)));
    let (process, crowd) = found.filter(|(process, crowd)| is_cause(process, crowd)).max_by(|one, other| {
        let wait = |process: &ProcessSignals| process.threads.first().map_or(0.0, |(_, waited)| *waited);
        wait(one.0).total_cmp(&wait(other.0))
    })?;
    let (ran, waited) = process.threads.first().copied().unwrap_or_default();
    let names: Vec<String> =
        crowd.iter().take(3).map(|other| format!("{} {}", other.name, digits(other.cpu))).collect();
    let found = FiredRule::new(say!(NEIGHBOURS_CPUS, subject(process)), process.wanted())
        .with(texts::LABEL_WAITS, say!(BUSIEST_THREAD_RAN_TIME, percent(ran), percent(waited)))
        .with(texts::LABEL_NEIGHBOURS, say!(CPUS_USED_OTHERS_MAY, names.join(", ")))
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge, Segment::Wait]);
    let found = match crowd.first() {
        Some(first) => found.squeezed(Squeeze::Neighbour(process.name.clone(), first.name.clone())),
        None => found,
    };
    Some(found.knob(say!(GIVE_OWN_MACHINE_OWN), say!(GETS_CPU_WHENEVER_WORK)))
}

fn edge_full(s: &Signals) -> Option<FiredRule> {
    let edge = s.edge_process()?;
    let is_full = edge.usage() >= CPUS_FULL || (edge.cpus < 1.5 && is_thread_full(s, edge));
    if !is_full || is_held_back(edge) || one_worker(s).is_some() {
        return None;
    }
    let churn = s.opened_share().unwrap_or(0.0);
    let accepted = s.edge.accepted as f64 / s.edge.requests.max(1) as f64;
    let found = FiredRule::new(say!(EDGE_ITS_CPUS), edge.usage().max(edge.wanted()))
        .with(texts::LABEL_EDGE, say!(CPUS_USED_OF, digits(edge.cpu), digits(edge.cpus), describe(edge)))
        .with(
            texts::LABEL_COST,
            say!(
                MS_CPU_ALL_ANSWERED,
                digits(edge.cpu * s.seconds * 1000.0 / s.load.answered.max(1) as f64),
                &s.load.answered
            ),
        )
        .with(texts::LABEL_CONNECTIONS, say!(NEW_CLIENTS_REQUEST_UPSTREAMS, digits(accepted), digits(churn)))
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge, Segment::Body])
        .squeezed(squeeze(edge));
    let knob = match () {
        () if churn > 0.5 && s.conf.keepalive.is_none() => upstream::pool(s, 64),
        // The default level is already the lowest. A load that does not accept compressed answers gets none.
        () if s.conf.gzip_level > 1 && s.load.accepts_gzip == Some(true) => {
            say!(GZIP_COMP_LEVEL_1)
        }
        () => say!(MORE_CPUS_EDGE),
    };
    Some(found.knob(knob, say!(ANSWERS_SECOND_GROW_CPU)))
}

fn app_full(s: &Signals) -> Option<FiredRule> {
    // With much other work on this machine, an application counts as full if it wants all of its CPUs and gets most
    // of the rest.
    let crowded = |app: &ProcessSignals| {
        let wanted: f64 = app.threads.iter().map(|(ran, waited)| (ran + waited).min(1.0)).sum();
        s.machine.foreign > FOREIGN_MAX && wanted >= 0.95 * app.cpus && app.usage() >= 0.4
    };
    let full =
        |app: &&ProcessSignals| (app.usage() >= CPUS_FULL || crowded(app)) && !is_held_back(app) && !is_single(s, app);
    let app = s.servers().filter(full).max_by(|one, other| one.cpu.total_cmp(&other.cpu))?;
    let found = FiredRule::new(say!(SUBJECT_ITS_CPUS, subject(app)), app.usage())
        .with(texts::LABEL_APPLICATION, cpus_used(app))
        .with(texts::LABEL_EDGE, say!(ITS_CPUS_USED, digits(s.edge_process().map_or(0.0, |edge| edge.cpu))))
        .with(texts::LABEL_WAIT, say!(MS_REQUESTS_MS_SPENT, digits(s.step_ms("wait")), digits(s.load.ms[0])))
        .slows(&[Segment::Wait, Segment::Connect])
        .squeezed(squeeze(app));
    Some(found.knob(say!(PROXY_CACHE_FASTCGI_CACHE), say!(EDGE_ANSWERS_CACHE_WITHOUT)))
}

fn cpus_used(app: &ProcessSignals) -> Said {
    let (cpu, cpus, threads) = (digits(app.cpu), digits(app.cpus), app.threads.len());
    if app.ended >= ENDED_PART * app.cpu {
        return say!(CPUS_USED_ENDED, cpu, cpus, threads, digits(app.ended));
    }
    say!(CPUS_USED_THREADS, cpu, cpus, threads)
}

/// One full thread does all the work.
fn is_single(s: &Signals, app: &ProcessSignals) -> bool {
    is_thread_full(s, app)
        && busy_threads(app) == 1
        && app.threads.first().is_some_and(|(ran, _)| *ran >= 0.8 * app.cpu)
}

/// An event loop stands still although its thread does not compute: something in it blocks, and every request waits.
fn blocked(s: &Signals) -> Option<FiredRule> {
    let stands =
        |told: &&crate::why::signals::ProgramFigures| told.mean("p99_ms").is_some_and(|ms| ms >= LOOP_DELAY_MS);
    let told = s.told_by("node").find(stands)?;
    let app = s.servers().find(|app| app.name == told.process && app.usage() < 0.7 && !is_held_back(app))?;
    let number = |name: &str| digits(told.mean(name).unwrap_or(0.0));
    let found = FiredRule::new(say!(EVENT_LOOP_BLOCKED, subject(app)), 0.9)
        .with(texts::LABEL_LOOP, say!(LATE_MS_AVERAGE_P99, number("mean_ms"), number("p99_ms")))
        .with(texts::LABEL_CPU, say!(CPUS_USED_CALL_WAITS, percent(app.usage())))
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(REPLACE_CALLS_END_SYNC), say!(LOOPS_DELAY_FALLS_ONE)))
}

fn one_thread(s: &Signals) -> Option<FiredRule> {
    full_thread(s).or_else(|| blocked(s))
}

fn full_thread(s: &Signals) -> Option<FiredRule> {
    // For Redis, another rule has more detail.
    let is_known = |app: &ProcessSignals| s.told_by("redis").any(|told| told.process == app.name);
    let app = s.servers().find(|app| is_single(s, app) && !is_held_back(app) && !is_known(app))?;
    let found = FiredRule::new(say!(ONE_THREAD, subject(app)), app.wanted())
        .with(texts::LABEL_APPLICATION, describe(app))
        .with(texts::LABEL_THREADS, say!(CPUS_USED_WHOLE_PROCESS, digits(app.cpu), digits(app.cpus)))
        .with(
            texts::LABEL_LOOP,
            match s.told_by("node").find(|told| told.process == app.name) {
                Some(told) => say!(
                    EVENT_LOOP_LATE_MS,
                    digits(told.mean("mean_ms").unwrap_or(0.0)),
                    digits(told.mean("p99_ms").unwrap_or(0.0))
                ),
                None => Said::default(),
            },
        )
        .with(texts::LABEL_WAIT, say!(MS_REQUESTS_MS_SPENT, digits(s.step_ms("wait")), digits(s.load.ms[0])))
        .slows(&[Segment::Wait, Segment::Connect])
        .squeezed(squeeze(app));
    // More processes than CPUs would only wait for each other.
    if app.cpus < 1.5 {
        return Some(found.knob(say!(ADD_CPU_THEN_PROCESS), say!(N_CPUS_UP_N)));
    }
    let knob = if app.is_node { say!(MANY_PROCESSES_CPUS_CLUSTER) } else { say!(RUN_MANY_PROCESSES_THREADS) };
    Some(found.knob(knob, say!(N_IDLE_CPUS_UP)))
}

fn subject(process: &ProcessSignals) -> Said {
    match process.role {
        Role::Edge => say!(EDGE),
        Role::Client => say!(LOAD_GENERATOR),
        Role::App => say!(APPLICATION_NAMED, &process.name),
        Role::Beside => Said::from(&process.name),
    }
}

fn segments(process: &ProcessSignals) -> &'static [Segment] {
    match process.role {
        Role::App | Role::Beside => &[Segment::Wait, Segment::Connect],
        Role::Edge | Role::Client => {
            &[Segment::Outside, Segment::Read, Segment::Edge, Segment::Cache, Segment::Undivided, Segment::Body]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds of others use most of the machine, and the neighbour most of the CPU on which the application waits.
    #[test]
    fn a_neighbour_is_named_beside_other_work_if_it_uses_more() {
        let mut s = Signals::quiet();
        (s.processes[0].cpu, s.processes[0].threads) = (0.2, vec![(0.2, 0.79)]);
        (s.processes[1].cpu, s.processes[1].threads) = (0.6, vec![(0.6, 0.4)]);
        s.machine.foreign = 0.5;
        assert!(neighbours(&s).is_some());
        s.processes[1].cpu = 0.35;
        assert_eq!(neighbours(&s), None);
        s.machine.foreign = 0.1;
        assert!(neighbours(&s).is_some());
    }

    /// A session cache does not bring back connections that end after each request.
    #[test]
    fn handshakes_of_connections_that_end_at_once_have_another_remedy() {
        let mut s = Signals::quiet();
        s.edge.handshakes = 1900;
        (s.processes[0].cpu, s.processes[0].threads) = (0.97, vec![(0.97, 0.01)]);
        let knob = |s: &Signals| handshakes(s).unwrap().knob;
        assert!(knob(&s).starts_with("keepalive_timeout 65s;"), "{:?}", knob(&s));
        s.conf.client_requests = Some(1000);
        assert!(knob(&s).starts_with("keepalive_timeout 65s;"), "{:?}", knob(&s));
        s.conf.client_requests = Some(1);
        assert!(knob(&s).starts_with("keepalive_requests 1000;"), "{:?}", knob(&s));
    }

    #[test]
    fn a_lower_level_is_for_what_is_compressed() {
        let mut s = Signals::quiet();
        s.processes[0].cpu = 0.98;
        s.processes[0].threads = vec![(0.98, 0.01)];
        s.conf.has_gzip = true;
        let knob = |s: &Signals| edge_full(s).unwrap_or_default().knob;
        assert_eq!(knob(&s), "more CPUs for the edge", "level 1 is what it has");
        s.conf.gzip_level = 6;
        s.load.accepts_gzip = Some(false);
        assert_eq!(knob(&s), "more CPUs for the edge", "nothing was compressed");
        s.load.accepts_gzip = Some(true);
        assert!(knob(&s).starts_with("gzip_comp_level 1;"));
    }

    #[test]
    fn there_are_never_more_processes_than_cpus() {
        let mut s = Signals::quiet();
        s.processes[1].threads = vec![(0.97, 0.02), (0.02, 0.0)];
        s.processes[1].cpu = 0.98;
        let knob = |s: &Signals| full_thread(s).unwrap_or_default().knob;
        assert!(knob(&s).starts_with("add a CPU for it"), "{}", knob(&s));
        s.processes[1].cpus = 2.0;
        assert!(knob(&s).contains("as many"), "{}", knob(&s));
        // The edge may use two of the machine's many CPUs.
        s.machine.cpus = 64.0;
        (s.processes[0].cpus, s.processes[0].cpu, s.processes[0].threads) = (2.0, 0.98, vec![(0.98, 0.01)]);
        assert_eq!(one_worker(&s).unwrap_or_default().knob, "worker_processes 2;");
    }
}
