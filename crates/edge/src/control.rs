//! The control thread of the server: puts configurations in force, starts workers, lets them end. Never on the data path.

mod bounds;
pub mod crew;
mod descriptors;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use weir_conf::Tree;
use weir_http::exchange::conf::{Conf, Location};
use weir_http::exchange::trace;
use weir_http::hold::counters::AllCounters;
use weir_net::log::{self, Level};
use weir_net::process::Identity;
use weir_net::worker::Remote;
use weir_net::{Listening, process, tls};
use weir_proxy::family::cache::facts::Use;
use weir_proxy::family::proxy;

use crate::control::crew::{Crew, Hired, Left};
use crate::drive::quic;
use crate::family::ALL;
use crate::family::log::buffer;
use crate::family::{acme, dashboard, purge};
use crate::load::{all_sockets, identity, worker_count};
use crate::log_files;
use crate::resources::{self, Resources};

/// Workers and sockets of a running edge.
pub struct Running {
    conf: Arc<Conf>,
    resources: Resources,
    crew: Crew,
    /// Whether another process accepts the clients of these sockets.
    is_succeeded: bool,
}

/// Where a cache's files are written first: in the directory for temporary files of answers (`proxy_temp_path`) of
/// the first location that uses the cache. nginx reads it from each location; in weir, a cache's thread has one such
/// directory. `None` if no location uses the cache: then nobody asked for the directory.
fn cache_temporary(conf: &Conf, number: usize) -> Option<String> {
    let uses = |location: &&Location| match &weir_proxy::values(location).cache.zone {
        Use::Zone(_, used) => *used == Some(number),
        Use::Named(_) => true,
        Use::Off => false,
    };
    let location = conf.locations.iter().find(uses)?;
    Some(conf.paths.temporary(weir_proxy::values(location).proxy.temp_path.as_deref(), proxy::TEMPORARY))
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
    pub fn start(mut conf: Conf, tree: &Tree, resources: Resources) -> Result<Running, String> {
        let (count, identity) = (worker_count(&conf), identity(&conf)?);
        open_files(&conf)?;
        // The threads of caches may log at once.
        log::install(conf.main.error_log.main.clone());
        open_caches(&conf, identity.as_ref());
        let mut crew = Crew::new();
        fit_tables(&mut conf, count);
        crew.live().enlist(&mut conf);
        let conf = Arc::new(conf);
        let hired = crew.hire(&conf, None)?;
        put_in_force(&conf, None, &resources, identity.as_ref());
        dashboard::open_shelf(&conf, identity.as_ref())?;
        hand_over(&mut crew, &conf, hired, &resources, tree);
        crew.live().observe(identity).map_err(|error| format!("thread could not be started {}", log::Os(&error)))?;
        log::global(
            Level::Notice,
            format_args!("nginx/{} (weir), start {count} workers", weir_http::send::respond::VERSION),
        );
        if conf.listens.iter().any(|listen| listen.ssl || listen.quic) {
            // Beside the workers: else the first client would wait for it.
            tls::begin_random();
        }
        Ok(Running { conf, resources, crew, is_succeeded: false })
    }

    /// Puts a configuration in force in place of the present one. After an error nothing has changed.
    ///
    /// # Errors
    /// The configuration does not fit to the present one, or its workers cannot be started.
    pub fn replace(&mut self, mut conf: Conf, tree: &Tree, resources: Resources) -> Result<(), String> {
        ALL.adopt(&mut conf, &self.conf)?;
        let (count, identity) = (worker_count(&conf), identity(&conf)?);
        open_files(&conf)?;
        open_caches(&conf, identity.as_ref());
        fit_tables(&mut conf, count);
        self.crew.live().enlist(&mut conf);
        let conf = Arc::new(conf);
        let hired = self.crew.hire(&conf, Some(&self.conf))?;
        log::install(conf.main.error_log.main.clone());
        put_in_force(&conf, Some(&self.conf), &resources, identity.as_ref());
        if !hired.is_empty() || count != self.crew.len() {
            log::global(Level::Notice, format_args!("start {} workers, {count} in all", hired.len()));
        }
        if let Err(message) = dashboard::open_shelf(&conf, identity.as_ref()) {
            // weir serves requests without the thread that reads files; the dashboard shows that this thread does not
            // run.
            log::global(Level::Alert, format_args!("{message}"));
        }
        hand_over(&mut self.crew, &conf, hired, &resources, tree);
        purge::close(&self.conf, Some(&conf));
        self.conf = conf;
        self.resources = resources;
        Ok(())
    }

    /// Shows that a reload was refused.
    pub fn refuse(&self, why: Vec<String>) {
        self.crew.live().refuse();
        dashboard::refuse(&self.conf, why);
    }

    /// Writes buffered lines: to the old file, if the log files are opened again now.
    pub fn flush(&self) {
        buffer::flush();
    }

    /// A new binary serves too, or has ended.
    pub fn succeed(&mut self, is_succeeded: bool) {
        self.is_succeeded = is_succeeded;
        quic::process::this().succeed(is_succeeded);
        self.crew.receive_again();
        if is_succeeded && let Some(bus) = crate::declared(&self.conf).purge.bus() {
            bus.expect_namesake();
        }
    }

    /// Lets every worker finish its exchanges and end. The result waits until they have.
    pub fn quit(&mut self) -> Arc<Left> {
        self.resources.close(true);
        acme::close(&self.conf);
        self.crew.dismiss_all(self.is_succeeded);
        self.crew.left()
    }

    /// Ends every worker now.
    pub fn stop(mut self) {
        self.crew.stop_all();
        acme::close(&self.conf);
        trace::close(&self.conf);
        // A successor uses the same name on the bus.
        if !self.is_succeeded {
            purge::close(&self.conf, None);
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

/// Opens the files that a configuration needs. Nothing is in force yet.
fn open_files(conf: &Conf) -> Result<(), String> {
    log_files::open_all(conf)?;
    dashboard::open(conf)
}

fn open_caches(conf: &Conf, identity: Option<&Identity>) {
    weir_proxy::declared(conf).cache.open(|number| cache_temporary(conf, number), identity);
}

/// Puts the parts in force that a process has once, however many configurations its workers know.
fn put_in_force(conf: &Arc<Conf>, old: Option<&Conf>, resources: &Resources, identity: Option<&Identity>) {
    bounds::apply(conf);
    purge::open(conf);
    acme::open(conf, old, resources.dns.as_ref(), identity);
    trace::open(conf, worker_count(conf), identity);
}

/// Gives the workers a configuration and its sockets, and shows it on the dashboard and in the API.
fn hand_over(crew: &mut Crew, conf: &Arc<Conf>, hired: Hired, resources: &Resources, tree: &Tree) {
    crew.take_over(conf, hired, resources);
    crew.live().show(conf, resources.sockets.values().flatten().cloned().collect(), crew.seats());
    dashboard::show(conf, tree);
}
