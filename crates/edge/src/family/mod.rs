//! The families: one file each, and the two lists whose order matters.
//!
//! A family is a table of directives, its settings, its variables and its handlers for an exchange. A new family needs
//! its file and one word in `families!`.

use std::rc::Rc;
use std::sync::LazyLock;

use crate::build::{Build, Scope};
use crate::conf::Location;
use crate::directive::Directive;
use crate::exchange::{Enter, Exchange};
use crate::found::Found;
use crate::phase::Phase;
use crate::variable::{Names, Variable};
use crate::worker::Worker;

/// A family's handler for a phase.
pub struct PhaseHandler {
    /// The phase.
    pub phase: Phase,
    /// Whether the location needs the handler; called once, when the configuration is compiled.
    pub active: fn(&Location) -> bool,
    /// The handler.
    pub enter: Enter,
}

/// A change to the response's head before it is sent (nginx's header filters).
#[derive(Clone, Copy)]
pub struct Filter {
    /// Whether the location needs the filter; called once, when the configuration is compiled.
    pub active: fn(&Location) -> bool,
    /// The change.
    pub answer: fn(&mut Exchange<'_>),
    /// Whether the filter changes all fresh hits on one stored answer in this location in the same way, apart from
    /// ranges, conditions and clients that accept gzip. Called once, when the configuration is compiled.
    pub is_fixed: fn(&Location, &Names) -> bool,
}

/// Moves state from the older configuration's declarations to the new one's.
pub type Adopt = fn(&mut Declared, &Declared) -> Result<(), String>;

/// Checks declarations against all servers and locations; reports problems to the build.
pub type Check = fn(&mut Build<'_>, &Found<'_>);

/// The parts of a family.
pub struct Family {
    /// The name of its file.
    pub name: &'static str,
    /// Its directives.
    pub directives: &'static [Directive],
    /// Its variables.
    pub variables: &'static [Variable],
    /// Its phase handler.
    pub phase: Option<PhaseHandler>,
    /// Its response filter; `RESPONSE_ORDER` gives the order.
    pub filter: Option<Filter>,
    /// Its handler in the log phase, after the response was sent.
    pub log: Option<fn(&mut Exchange<'_>)>,
    /// Takes over state from the previous configuration that must survive a reload; an error refuses the new one.
    pub adopt: Option<Adopt>,
    /// Compiles the inherited settings of a block: called once per block, from the outermost inwards.
    pub finish: Option<fn(&mut Build<'_>, &mut Scope)>,
    /// Changes the settings in force in one place, after all families have filled theirs in.
    pub settle: Option<fn(&mut Values)>,
    /// Checks its declarations against the places, once all places are known.
    pub check: Option<Check>,
    /// Judges the places once the variables that the configuration reads are known.
    pub judge: Option<fn(&mut [Location], &Names)>,
    /// Called for a request whose server is known, before the server's rules.
    pub enter: Option<fn(&mut Exchange<'_>)>,
    /// Called when an exchange has found its location, before the location's rules.
    pub enter_location: Option<fn(&mut Exchange<'_>)>,
    /// Appends facts about the exchange to a line of the error log.
    pub context: Option<fn(&Exchange<'_>, &mut Vec<u8>)>,
    /// Starts its work on a worker, before the worker accepts.
    pub start: Option<fn(&Rc<Worker>)>,
    /// Starts the work that a configuration asks for, on each worker that puts it in force. Workers agree on one of
    /// them if the work is needed once.
    pub watch: Option<fn(&Rc<Worker>)>,
}

impl Family {
    /// A family with only directives.
    pub const fn new(name: &'static str, directives: &'static [Directive]) -> Family {
        Family {
            name,
            directives,
            variables: &[],
            phase: None,
            filter: None,
            log: None,
            adopt: None,
            finish: None,
            settle: None,
            check: None,
            judge: None,
            enter: None,
            enter_location: None,
            context: None,
            start: None,
            watch: None,
        }
    }

    /// Adds variables.
    pub const fn variables(mut self, variables: &'static [Variable]) -> Family {
        self.variables = variables;
        self
    }

    /// Adds a phase handler.
    pub const fn phase(mut self, phase: Phase, active: fn(&Location) -> bool, enter: Enter) -> Family {
        self.phase = Some(PhaseHandler { phase, active, enter });
        self
    }

    /// Adds a response filter.
    pub const fn filter(mut self, active: fn(&Location) -> bool, answer: fn(&mut Exchange<'_>)) -> Family {
        self.filter = Some(Filter { active, answer, is_fixed: |_, _| false });
        self
    }

    /// Marks the filter as fixed: see `Filter::is_fixed`.
    pub const fn fixed(mut self, is_fixed: fn(&Location, &Names) -> bool) -> Family {
        if let Some(filter) = self.filter {
            self.filter = Some(Filter { is_fixed, ..filter });
        }
        self
    }

    /// Adds a handler in the log phase.
    pub const fn log(mut self, log: fn(&mut Exchange<'_>)) -> Family {
        self.log = Some(log);
        self
    }

    /// Adds state that survives a reload.
    pub const fn adopt(mut self, adopt: Adopt) -> Family {
        self.adopt = Some(adopt);
        self
    }

    /// Adds a step that compiles a block once its inherited settings are known.
    pub const fn finish(mut self, finish: fn(&mut Build<'_>, &mut Scope)) -> Family {
        self.finish = Some(finish);
        self
    }

    /// Adds a change to the settings in force.
    pub const fn settle(mut self, settle: fn(&mut Values)) -> Family {
        self.settle = Some(settle);
        self
    }

    /// Adds a check of its declarations against the places.
    pub const fn check(mut self, check: Check) -> Family {
        self.check = Some(check);
        self
    }

    /// Adds a judgement of the places.
    pub const fn judge(mut self, judge: fn(&mut [Location], &Names)) -> Family {
        self.judge = Some(judge);
        self
    }

    /// Adds a step before the rules of a server.
    pub const fn enter(mut self, enter: fn(&mut Exchange<'_>)) -> Family {
        self.enter = Some(enter);
        self
    }

    /// Adds a step before the rules of a location.
    pub const fn enter_location(mut self, enter: fn(&mut Exchange<'_>)) -> Family {
        self.enter_location = Some(enter);
        self
    }

    /// Adds facts to lines of the error log.
    pub const fn context(mut self, context: fn(&Exchange<'_>, &mut Vec<u8>)) -> Family {
        self.context = Some(context);
        self
    }

    /// Adds work on each worker.
    pub const fn start(mut self, start: fn(&Rc<Worker>)) -> Family {
        self.start = Some(start);
        self
    }

    /// Adds work that a configuration asks for.
    pub const fn watch(mut self, watch: fn(&Rc<Worker>)) -> Family {
        self.watch = Some(watch);
        self
    }
}

macro_rules! families {
    ($($name:ident)*) => {
        $( pub mod $name; )*

        /// Every family's settings of one block, as written.
        #[derive(Clone, Default)]
        #[allow(missing_docs)]
        pub struct Settings { $( pub $name: $name::Settings, )* }

        /// Every family's settings in force in one place.
        #[derive(Clone)]
        #[allow(missing_docs)]
        pub struct Values { $( pub $name: $name::Values, )* }

        /// The declarations for all of `http`: maps, log formats, upstreams.
        #[derive(Default)]
        #[allow(missing_docs)]
        pub struct Declared { $( pub $name: $name::Declared, )* }

        impl Settings {
            /// Takes over settings that this block does not set from the enclosing block.
            pub fn inherit(&mut self, outer: &Settings) { $( self.$name.inherit(&outer.$name); )* }

            /// The values in force, defaults filled in.
            pub fn values(self) -> Values { Values { $( $name: self.$name.values(), )* } }
        }

        /// All families, in the order in which their handlers of one phase run.
        pub static FAMILIES: &[&Family] = &[ $( &$name::FAMILY, )* ];
    };
}

// The order is the order of handlers within one phase (nginx: auto/modules, "the module order is important").
families! {
    process
    error_log
    log
    variables
    upstream_variables
    core
    files
    certificates
    status_zone
    server
    location
    rewrite
    realip
    map
    geo
    keyval
    split_clients
    referer
    stub_status
    limit_req
    limit_conn
    access
    auth_basic
    try_files
    mirror
    index
    autoindex
    disable_symlinks
    gzip_static
    static_files
    error_page
    not_modified
    headers
    charset
    gzip
    range
    cache
    purge
    store
    slice
    proxy
    proxy_ssl
    grpc
    grpc_ssl
    upstream
    sticky
    health
    resolver
    early_hints
    http2
    ssl
    live
    dashboard
    otel
}

/// The order in which filters change a response's head, first to last.
pub const RESPONSE_ORDER: &[&str] = &["not_modified", "headers", "charset", "gzip", "range"];

/// Runs the families' log handlers, after the response was sent or has failed.
pub fn log_phase(exchange: &mut Exchange<'_>) {
    static HOOKS: LazyLock<Vec<fn(&mut Exchange<'_>)>> =
        LazyLock::new(|| FAMILIES.iter().filter_map(|family| family.log).collect());
    for hook in HOOKS.iter() {
        hook(exchange);
    }
}

/// Starts the families' work on a worker that has a configuration in force.
pub fn start(worker: &Rc<Worker>) {
    FAMILIES.iter().filter_map(|family| family.start).for_each(|start| start(worker));
    watch(worker);
}

/// Starts the families' work for a configuration that a worker has just put in force.
pub fn watch(worker: &Rc<Worker>) {
    FAMILIES.iter().filter_map(|family| family.watch).for_each(|watch| watch(worker));
}
