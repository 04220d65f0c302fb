//! The control thread of the server: puts configurations in force, starts workers, lets them end. Never on the data path.
//!
//! `lane` has what a configuration owns. Everything here belongs to the process, which has it once: sockets, workers and
//! their tables, the main log, the bounds, the log of purges, the agent of ACME, the dashboard. The process takes the settings
//! for these from its one configuration in force.

mod bounds;
pub mod crew;
mod descriptors;
mod lane;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Tree;
use weir_http::exchange::conf::Conf;
use weir_http::exchange::trace;
use weir_http::hold::counters::AllCounters;
use weir_http::hold::split::SplitKey;
use weir_meter::live::{CanaryPhase, CanaryReason};
use weir_net::log::{self, Level};
use weir_net::process::Identity;
use weir_net::worker::Remote;
use weir_net::{Listening, process, tls};

use crate::canary::run::{CanaryRun, Hands, Tell};
use crate::canary::terms::{CanaryOrder, Terms};
use crate::canary::{self, beside};
use crate::control::crew::{Crew, Hired, Left};
use crate::drive::quic;
use crate::family::log::buffer;
use crate::family::{acme, dashboard, fleet, keyval, purge};
use crate::fleet::SharedThings;
use crate::live::{Live, servers};
use crate::load::{all_sockets, identity, worker_count};
use crate::log_files;
use crate::recorder;
use crate::resources::{self, Resources};

/// Workers and sockets of a running edge.
pub struct Running {
    /// The configuration in force.
    lane: Arc<Conf>,
    resources: Resources,
    crew: Crew,
    /// Whether another process accepts the clients of these sockets.
    is_succeeded: bool,
}

/// Fits the workers' tables of connections to the limit on open files in force.
fn fit_tables(conf: &mut Conf, workers: usize) {
    conf.places_by_files = descriptors::places(process::nofile(), workers, all_sockets(conf));
}

impl Running {
    /// Opens what a configuration needs and starts the workers, in a process without a keeper.
    ///
    /// `claimed` is bound already, and served if the configuration names its address.
    ///
    /// # Errors
    /// In nginx's words.
    pub fn alone(conf: Conf, tree: &Tree, claimed: Option<Listening>) -> Result<Running, String> {
        resources::limits(&conf);
        let mut known = Resources::default();
        known.add(claimed);
        let opened = Resources::open(&conf, &known, identity(&conf)?.as_ref())?;
        Running::start(conf, tree, opened)
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// In nginx's words.
    pub fn start(conf: Conf, tree: &Tree, resources: Resources) -> Result<Running, String> {
        let (count, identity) = (worker_count(&conf), identity(&conf)?);
        log_files::open_all(&conf)?;
        // The threads of caches may log at once.
        log::install(conf.main.error_log.main.clone());
        let mut crew = Crew::new();
        let lane = prepare(conf, None, crew.live(), identity.as_ref())?;
        let hired = crew.hire(&lane, None)?;
        put_in_force(&lane, None, &resources, identity.as_ref());
        dashboard::open_shelf(&lane, identity.as_ref())?;
        recorder::put_in_force(&lane, tree, None, identity.as_ref());
        hand_over(&mut crew, &lane, hired, &resources, tree);
        crew.live().observe(identity).map_err(|error| format!("thread could not be started {}", log::Os(&error)))?;
        log::global(
            Level::Notice,
            format_args!("nginx/{} (weir), start {count} workers", weir_http::send::respond::VERSION),
        );
        if lane.listens.iter().any(|listen| listen.ssl || listen.quic) {
            // Beside the workers: else the first client would wait for it.
            tls::begin_random();
        }
        Ok(Running { lane, resources, crew, is_succeeded: false })
    }

    /// Puts a configuration in force in place of the present one, and of the one beside it. `promotes` if it is the same as the
    /// one beside. After an error nothing has changed.
    ///
    /// # Errors
    /// The configuration does not fit to the present one, or its workers cannot be started.
    pub fn replace(&mut self, mut conf: Conf, tree: &Tree, resources: Resources, promotes: bool) -> Result<(), String> {
        let (count, identity) = (worker_count(&conf), identity(&conf)?);
        let promoted = canary::run::present().filter(|_| promotes);
        conf.exchanged = promoted.and_then(|run| run.terms.pair()).map(|pair| pair.names());
        let next = prepare(conf, Some(&self.lane), self.crew.live(), identity.as_ref())?;
        let hired = self.crew.hire(&next, Some(&self.lane))?;
        if let Some(run) = canary::run::present() {
            match promotes {
                true => run.end(CanaryPhase::Promoted, CanaryReason::Asked),
                false => run.end(CanaryPhase::RolledBack, CanaryReason::Reload),
            }
        }
        log::install(next.main.error_log.main.clone());
        put_in_force(&next, Some(&self.lane), &resources, identity.as_ref());
        if !hired.is_empty() || count != self.crew.len() {
            log::global(Level::Notice, format_args!("start {} workers, {count} in all", hired.len()));
        }
        if let Err(message) = dashboard::open_shelf(&next, identity.as_ref()) {
            // weir serves requests without the thread that reads files; the dashboard shows that this thread does not
            // run.
            log::global(Level::Alert, format_args!("{message}"));
        }
        recorder::put_in_force(&next, tree, Some(&self.lane), identity.as_ref());
        hand_over(&mut self.crew, &next, hired, &resources, tree);
        purge::close(&self.lane, Some(&next));
        fleet::close(&self.lane, Some(&next));
        self.lane = next;
        self.resources = resources;
        Ok(())
    }

    /// Puts a configuration beside the present one, for a share of the clients. After an error nothing has changed.
    ///
    /// # Errors
    /// The configuration does not fit to the present one, or another canary runs.
    pub fn split(&mut self, mut conf: Conf, terms: Terms, tell: Tell) -> Result<(), String> {
        beside::check(&conf, &self.lane, &SplitKey::read(&terms.key)?)?;
        let identity = identity(&conf)?;
        conf.exchanged = terms.pair().map(|pair| pair.names());
        let (run, waiting) = CanaryRun::new(terms, conf.generation)?;
        let next = lane::open(conf, Some(&self.lane), self.crew.live(), identity.as_ref())?;
        // Caches that both have keep the times and sizes of the one in force.
        weir_proxy::declared(&self.lane).cache.retune();
        let split = {
            let (colleagues, run) = (self.crew.colleagues(), run.clone());
            move || crew::split(&colleagues, &next, &run)
        };
        let colleagues = self.crew.colleagues();
        let leave = Box::new(move |number| crew::leave(&colleagues, number));
        crew::rehearse(&self.crew.colleagues(), &run);
        let begun = run.begin(waiting, Hands { split: Box::new(split), leave, tell });
        begun.map_err(|error| {
            crew::leave(&self.crew.colleagues(), run.generation);
            format!("thread could not be started {}", log::Os(&error))
        })
    }

    /// Carries an order about the canary out.
    pub fn steer(&self, order: CanaryOrder) {
        let run = canary::run::present().ok_or_else(|| "no canary runs".to_owned());
        if let Err(why) = run.and_then(|run| run.obey(order)) {
            log::global(Level::Warn, format_args!("canary: {why}"));
        }
    }

    /// Shows that a reload was refused.
    pub fn refuse(&self, why: Vec<String>) {
        self.crew.live().refuse();
        dashboard::refuse(&self.lane, why);
    }

    /// Writes buffered lines: to the old file, if the log files are opened again now.
    pub fn flush(&self) {
        buffer::flush();
    }

    /// A new binary serves too, or has ended.
    pub fn succeed(&mut self, is_succeeded: bool) {
        self.is_succeeded = is_succeeded;
        if is_succeeded && canary::run::present().is_some_and(|run| run.is_on()) {
            self.steer(CanaryOrder::MakeRoom);
        }
        recorder::succeed(&self.lane, is_succeeded);
        quic::process::this().succeed(is_succeeded);
        self.crew.receive_again();
        if is_succeeded && let Some(bus) = crate::declared(&self.lane).purge.bus() {
            bus.expect_namesake();
        }
    }

    /// Lets every worker finish its exchanges and end. The result waits until they have.
    pub fn quit(&mut self) -> Arc<Left> {
        canary::run::present().iter().for_each(|run| run.end(CanaryPhase::RolledBack, CanaryReason::Died));
        self.resources.close(true);
        acme::close(&self.lane);
        self.crew.dismiss_all(self.is_succeeded);
        self.crew.left()
    }

    /// Ends every worker now.
    pub fn stop(mut self) {
        self.crew.stop_all();
        recorder::close();
        acme::close(&self.lane);
        trace::close(&self.lane);
        // A successor uses the same name on the bus.
        if !self.is_succeeded {
            purge::close(&self.lane, None);
            fleet::close(&self.lane, None);
        }
        buffer::flush();
        self.resources.close(true);
    }

    /// Starts a thread that asks every worker again and again, and tells which have not answered in `wait`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(&self, wait: Duration, tell: impl FnMut(Vec<usize>) + Send + 'static) -> std::io::Result<()> {
        watchdog::start(self.crew.colleagues(), wait, tell)
    }

    /// The workers, for callers that need data that only the workers have.
    pub fn workers(&self) -> impl Iterator<Item = &Remote> {
        self.crew.serving()
    }

    /// All workers' counters.
    pub fn counters(&self) -> AllCounters {
        self.crew.counters().clone()
    }
}

/// Opens a configuration, and what the process needs for it. Nothing is in force yet.
fn prepare(
    mut conf: Conf,
    before: Option<&Conf>,
    live: &Live,
    identity: Option<&Identity>,
) -> Result<Arc<Conf>, String> {
    let workers = worker_count(&conf);
    fit_tables(&mut conf, workers);
    let conf = lane::open(conf, before, live, identity)?;
    dashboard::keep(&conf)?;
    Ok(conf)
}

/// Puts the settings of a configuration in force for the parts that the process has once.
fn put_in_force(conf: &Conf, old: Option<&Conf>, resources: &Resources, identity: Option<&Identity>) {
    bounds::apply(conf);
    purge::open(conf);
    let spaces = keyval::shared(conf).into_iter().chain(servers::shared(conf)).collect();
    fleet::open(conf, SharedThings { spaces, sessions: weir_proxy::declared(conf).sticky.shared() });
    acme::open(conf, old, resources.dns.as_ref(), identity);
}

/// Gives the workers a configuration and its sockets, and shows it on the dashboard and in the API.
fn hand_over(crew: &mut Crew, conf: &Arc<Conf>, hired: Hired, resources: &Resources, tree: &Tree) {
    crew.take_over(conf, hired, resources);
    crew.live().show(conf, resources.sockets.values().flatten().cloned().collect(), crew.seats());
    dashboard::show(conf, tree);
}
