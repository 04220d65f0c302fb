//! A family of directives: its table, its variables, its handlers for an exchange; and the list of all families.
//!
//! The engine names no family. `edge` hands it the families of all crates as one list; a family is one file, and one word
//! in its crate's `declare!`.

use std::any::Any;
use std::pin::Pin;
use std::rc::Rc;

use crate::exchange::conf::{Conf, Location};
use crate::exchange::phase::{Outcome, Phase};
use crate::exchange::variable::Variable;
use crate::exchange::{Enter, Exchange, Get};
use crate::family;
use crate::hold::above;
use crate::hold::conn::{Conn, Gone};
use crate::hold::worker::{Generation, Worker};
use crate::read::build::{Build, Scope};
use crate::read::directive::Directive;
use crate::read::found::Found;
use crate::read::known::Known;
use crate::text::slots::VariableId;
use crate::text::template::{Names, Template};

/// A family's handler for a phase.
pub struct PhaseHandler {
    /// The phase.
    pub phase: Phase,
    /// Whether the location needs the handler; called once, when the configuration is compiled.
    pub active: fn(&Location) -> bool,
    /// The handler.
    pub enter: Enter,
}

/// A family's step for each request in a location.
#[derive(Clone, Copy)]
pub struct EachStep {
    /// Whether the location of a configuration needs the step; called once, when the configuration is compiled.
    pub active: fn(&Conf, &Location) -> bool,
    /// The step.
    pub run: fn(&mut Exchange<'_>),
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
    pub is_fixed: fn(&Location, &VariablesRead<'_>) -> bool,
    /// It changes the answers of subrequests too (nginx: a filter that does not ask for the main request).
    pub is_inner: bool,
}

/// How a family answers a request itself. It may read the request's body from the connection; the outcome is sent.
#[derive(Clone, Copy)]
pub struct Answering {
    /// Answers.
    pub answer: for<'a> fn(&'a mut Exchange<'_>, &'a mut Conn) -> Answered<'a>,
    /// It answers subrequests, too.
    pub is_inner: bool,
}

/// An answer of a family that is being made.
pub type Answered<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Gone>> + 'a>>;

/// Starts a family's work for a configuration that a worker has put in force.
pub type StartWork = fn(&Rc<Worker>, &Rc<Generation>);

/// Moves state from the declarations of the older configuration (second) to those of the new one.
pub type Adopt = fn(&mut Conf, &Conf) -> Result<(), String>;

/// Checks declarations against all servers and locations; reports problems to the build.
pub type Check = fn(&mut Build<'_>, &Found<'_>);

/// Takes the servers of a `stream` block: the settings in force in each, and its own data.
pub type TakeServers = fn(&mut Build<'_>, Vec<(Location, Box<dyn Any>)>);

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
    /// Its response filter; the list of families gives the order.
    pub filter: Option<Filter>,
    /// How it answers a request whose handler returns `Next::Answer` with the family's name.
    pub answer: Option<Answering>,
    /// Its handler in the log phase, after the response was sent.
    pub log: Option<EachStep>,
    /// Takes over state from the previous configuration that must survive a reload; an error refuses the new one.
    pub adopt: Option<Adopt>,
    /// Compiles the inherited settings of a block: called once per block, from the outermost inwards.
    pub finish: Option<fn(&mut Build<'_>, &mut Scope)>,
    /// Changes the settings in force in one place, after all families have filled theirs in.
    pub settle: Option<fn(&mut Location)>,
    /// Checks its declarations against the places, once all places are known.
    pub check: Option<Check>,
    /// Takes the servers of `stream`, each with its settings in force.
    pub servers: Option<TakeServers>,
    /// Judges the places once the variables that the configuration reads are known.
    pub judge: Option<fn(&mut [Location], &VariablesRead<'_>)>,
    /// Called for a request whose server is known, before the server's rules.
    pub enter: Option<EachStep>,
    /// Called when an exchange has found its location, before the location's rules.
    pub enter_location: Option<EachStep>,
    /// Appends facts about the exchange to a line of the error log.
    pub context: Option<fn(&Exchange<'_>, &mut Vec<u8>)>,
    /// Starts its work on a worker, before the worker accepts.
    pub start: Option<fn(&Rc<Worker>)>,
    /// Starts the work that a configuration asks for, on each worker that puts it in force. Workers agree on one of
    /// them if the work is needed once. The work belongs to the configuration: it ends when [`Worker::goes_on`] says so.
    pub watch: Option<StartWork>,
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
            answer: None,
            log: None,
            adopt: None,
            finish: None,
            settle: None,
            check: None,
            servers: None,
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
        self.filter = Some(Filter { active, answer, is_fixed: |_, _| false, is_inner: false });
        self
    }

    /// Marks the filter as fixed: see `Filter::is_fixed`.
    pub const fn fixed(mut self, is_fixed: fn(&Location, &VariablesRead<'_>) -> bool) -> Family {
        if let Some(filter) = self.filter {
            self.filter = Some(Filter { is_fixed, ..filter });
        }
        self
    }

    /// Lets the filter change the answers of subrequests too.
    pub const fn inner(mut self) -> Family {
        if let Some(filter) = self.filter {
            self.filter = Some(Filter { is_inner: true, ..filter });
        }
        self
    }

    /// Makes the family answer requests itself.
    pub const fn answer(mut self, answer: Answering) -> Family {
        self.answer = Some(answer);
        self
    }

    /// Adds a handler in the log phase.
    pub const fn log(mut self, active: fn(&Conf, &Location) -> bool, run: fn(&mut Exchange<'_>)) -> Family {
        self.log = Some(EachStep { active, run });
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
    pub const fn settle(mut self, settle: fn(&mut Location)) -> Family {
        self.settle = Some(settle);
        self
    }

    /// Adds a check of its declarations against the places.
    pub const fn check(mut self, check: Check) -> Family {
        self.check = Some(check);
        self
    }

    /// Makes the family take the servers of `stream`.
    pub const fn servers(mut self, servers: TakeServers) -> Family {
        self.servers = Some(servers);
        self
    }

    /// Adds a judgement of the places.
    pub const fn judge(mut self, judge: fn(&mut [Location], &VariablesRead<'_>)) -> Family {
        self.judge = Some(judge);
        self
    }

    /// Adds a step before the rules of a server.
    pub const fn enter(mut self, active: fn(&Conf, &Location) -> bool, run: fn(&mut Exchange<'_>)) -> Family {
        self.enter = Some(EachStep { active, run });
        self
    }

    /// Adds a step before the rules of a location.
    pub const fn enter_location(mut self, active: fn(&Conf, &Location) -> bool, run: fn(&mut Exchange<'_>)) -> Family {
        self.enter_location = Some(EachStep { active, run });
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
    pub const fn watch(mut self, watch: StartWork) -> Family {
        self.watch = Some(watch);
        self
    }
}

/// The families of one crate.
pub struct Level {
    /// The families, in the order in which their handlers of one phase run.
    pub families: &'static [&'static Family],
    /// The names of the variables that the crate gives to sessions of `stream`.
    pub session_variables: fn() -> Vec<&'static str>,
    /// Makes the crate's empty declarations for a configuration that is about to be read; `None` for the crate of the
    /// engine, whose declarations are fields of the configuration.
    pub declare: Option<fn(&mut above::Declared)>,
}

/// The engine's own families.
pub static ENGINE: Level = Level { families: family::FAMILIES, session_variables: Vec::new, declare: None };

/// All families.
pub struct Families {
    /// In the order in which their handlers of one phase run.
    pub all: Vec<&'static Family>,
    /// The directives and variables of all of them, by name.
    pub known: Known,
    /// The response filters, in the order in which they change a head.
    pub filters: Vec<&'static Filter>,
    declare: Vec<fn(&mut above::Declared)>,
}

impl Families {
    /// The families of these crates, lowest crate first. `filters` names the families with a response filter, in the
    /// order in which the filters run; a filter that it does not name never runs.
    pub fn new(levels: &[&Level], filters: &[&str]) -> Families {
        let all: Vec<&'static Family> = levels.iter().flat_map(|level| level.families.iter().copied()).collect();
        let filter = |name: &&str| all.iter().find(|family| family.name == *name)?.filter.as_ref();
        Families {
            known: Known::new(
                all.iter().flat_map(|family| family.directives),
                all.iter().flat_map(|family| family.variables),
                levels.iter().flat_map(|level| (level.session_variables)()),
            ),
            filters: filters.iter().filter_map(filter).collect(),
            declare: levels.iter().filter_map(|level| level.declare).collect(),
            all,
        }
    }

    /// How the family of this name answers.
    pub fn answering(&self, family: &str) -> Option<Answering> {
        self.all.iter().find(|known| known.name == family)?.answer
    }

    /// Empty declarations of the crates above the engine.
    pub fn declared(&self) -> above::Declared {
        let mut declared = above::Declared::default();
        self.declare.iter().for_each(|declare| declare(&mut declared));
        declared
    }

    /// Takes over the data that outlives a reload (the counts of limits) from the previous configuration.
    pub fn adopt(&self, new: &mut Conf, old: &Conf) -> Result<(), String> {
        self.all.iter().filter_map(|family| family.adopt).try_for_each(|adopt| adopt(new, old))
    }

    /// Starts the families' work on a worker, and that for the configurations in force there.
    pub fn start(&self, worker: &Rc<Worker>) {
        self.all.iter().filter_map(|family| family.start).for_each(|start| start(worker));
        worker.in_force().for_each(|generation| self.watch(worker, &generation));
    }

    /// Starts the families' work for a configuration that a worker has just put in force.
    pub fn watch(&self, worker: &Rc<Worker>, generation: &Rc<Generation>) {
        self.all.iter().filter_map(|family| family.watch).for_each(|watch| watch(worker, generation));
    }
}

/// The variables that are made of the request's body.
pub const BODY_VARIABLES: [&str; 2] = ["request_body", "request_body_file"];

/// The variables that a configuration reads, for judgements about heads that may be kept.
pub struct VariablesRead<'r> {
    /// The names that the configuration mentions.
    pub names: &'r Names<Get>,
    /// For each name, whether its value is made of the request's body; empty if none is.
    pub reads_body: &'r [bool],
    /// All families.
    pub families: &'r Families,
}

impl VariablesRead<'_> {
    /// Whether a text has the same value for all fresh hits on one stored answer.
    pub fn is_same_for_hits(&self, template: &Template) -> bool {
        let is_same =
            |id| self.families.known.variable(self.names.name(id)).is_some_and(|known| known.is_same_for_hits);
        template.variables().all(|variable| variable.is_some_and(is_same))
    }

    /// Whether the value of a text is made of the request's body, perhaps through other variables.
    pub fn reads_body(&self, template: &Template) -> bool {
        let reads = |id: VariableId| self.reads_body.get(id.0 as usize).copied().unwrap_or_default();
        !self.reads_body.is_empty() && template.variables().flatten().any(reads)
    }

    /// Marks the places where one of these texts of a family's handler is made of the request's body: weir reads the body before
    /// the handler runs.
    pub fn read_first(&self, locations: &mut [Location], texts: impl Fn(&Location, &mut dyn FnMut(&Template))) {
        for location in locations {
            let mut reads = false;
            texts(location, &mut |text| reads |= self.reads_body(text));
            location.reads_body |= reads;
        }
    }

    /// Whether the configuration mentions a variable that reads the fields of an answer. All answers then have their
    /// fields, and no head may be kept ready.
    pub fn has_answer(&self) -> bool {
        self.names.any(|name| self.families.known.variable(name).is_some_and(|known| known.reads_answer))
    }
}

/// Runs the families' log handlers, after the response was sent or has failed.
#[inline]
pub fn log_phase(exchange: &mut Exchange<'_>) {
    for log in &exchange.location.steps.log {
        log(exchange);
    }
}
