//! Compiles a configuration: from statements to servers and locations.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;

use weir_conf::{Problem, Tree};

use crate::exchange::conf::{self, Conf, Location, Rule, Server, Steps};
use crate::exchange::phase::Phase;
use crate::exchange::route::{LocationId, Pattern, Places, ServerId};
use crate::family::Values;
use crate::hold::paths::Paths;
use crate::hold::zone_names::{self, ZoneNames};
use crate::read::build::{Build, COMPARED_MAX, Kind, Resolve, Scope, Unknown};
use crate::read::directive;
use crate::read::families::{BODY_VARIABLES, EachStep, Families, Family, VariablesRead};
use crate::read::found::Found;
use crate::read::listens::{self, Draft, Drafted, Grouped, ListenDraft, Objection};
use crate::receive::body;
use crate::text::refusal::Refusal;

/// Compiles a tree. Returns every problem, and the configuration only if no problem is grave.
pub fn compile(
    tree: &Tree,
    paths: Paths,
    resolve: Resolve<'_>,
    generation: u32,
    families: &'static Families,
) -> (Option<Conf>, Vec<Problem>) {
    made(Build::new(paths, resolve, &families.known, families.declared()), tree, generation, families)
}

/// The problems of a tree that nobody serves: as [`compile`] finds them, but patterns do not become machine code.
pub fn problems(tree: &Tree, paths: Paths, resolve: Resolve<'_>, families: &'static Families) -> Vec<Problem> {
    let mut build = Build::new(paths, resolve, &families.known, families.declared());
    build.jit = false;
    made(build, tree, 1, families).1
}

fn made(build: Build<'_>, tree: &Tree, generation: u32, families: &'static Families) -> (Option<Conf>, Vec<Problem>) {
    let (build, root) = build.read(&tree.root);
    let mut compiler = Compiler { build, families, servers: Vec::new(), locations: Vec::new(), drafts: Vec::new() };
    let mut main = compiler.blocks(root);
    main.process.keeps_raw = compiler.build.keeps_raw;
    compiler.finish(main, generation, tree)
}

struct Compiler<'r> {
    build: Build<'r>,
    families: &'static Families,
    servers: Vec<Server>,
    locations: Vec<Location>,
    drafts: Vec<Drafted>,
}

impl Compiler<'_> {
    /// Main level, then `http`, then its servers.
    fn blocks(&mut self, mut root: Scope) -> Values {
        let children = std::mem::take(&mut root.children);
        let mut main = root.settings.clone();
        for mut child in children {
            child.inherit(&root);
            if child.context == directive::HTTP {
                self.finish_scope(&mut child);
                for server in std::mem::take(&mut child.children) {
                    self.server(server, &child);
                }
            }
            if child.context == directive::STREAM {
                self.stream(child);
                continue;
            }
            // Process settings in `events` and `http` apply to the whole process.
            main.inherit(&child.settings);
        }
        main.values()
    }

    fn finish_scope(&mut self, scope: &mut Scope) {
        self.build.stand(scope.at);
        for family in &self.families.all {
            if let Some(finish) = family.finish {
                finish(&mut self.build, scope);
            }
        }
    }

    fn server(&mut self, mut scope: Scope, outer: &Scope) {
        let Kind::Server(draft) = std::mem::replace(&mut scope.kind, Kind::Plain) else { return };
        let Draft { listens, names, answers_connect } = draft;
        scope.inherit(outer);
        self.build.names.inherit(|at| scope.inherits(at));
        self.finish_scope(&mut scope);
        let id = ServerId(self.servers.len() as u32);
        let name = names.first().map(|name| name.shown.clone()).unwrap_or_default();
        let (first, automatic) =
            (self.locations.len(), zone_names::automatic(&name, listens.first().map(ListenDraft::shown)));
        self.servers.push(Server {
            id,
            name,
            names: names.clone(),
            answers_connect,
            rules: Vec::new(),
            root: LocationId(0),
            places: Places::default(),
            named: HashMap::new(),
        });
        let mut named = HashMap::new();
        let (root, places, rules) = self.place(scope, String::new(), None, &mut named);
        if let Some(server) = self.servers.get_mut(id.0 as usize) {
            server.root = root;
            server.places = places;
            server.rules = rules;
            server.named = named;
        }
        for location in self.locations.iter_mut().skip(first) {
            location.zone = zone_names::of(
                location.values.status_zone.server.as_deref(),
                location.values.status_zone.location.as_deref(),
                &automatic,
                location.zone.location.take(),
            );
        }
        self.drafts.push((id, listens, names));
    }

    /// The servers of `stream`: their settings inherit as those of `http` do, and a family takes them.
    fn stream(&mut self, mut scope: Scope) {
        self.finish_scope(&mut scope);
        let mut servers = Vec::new();
        for mut server in std::mem::take(&mut scope.children) {
            let Kind::Other(own) = std::mem::replace(&mut server.kind, Kind::Plain) else { continue };
            server.inherit(&scope);
            self.finish_scope(&mut server);
            servers.push((self.settings(&server), own));
        }
        if let Some(take) = self.families.all.iter().find_map(|family| family.servers) {
            take(&mut self.build, servers);
        }
    }

    /// A place with the settings of a block that has inherited and is finished.
    fn settings(&self, scope: &Scope) -> Location {
        let mut location = Location {
            id: LocationId(0),
            name: String::new(),
            pattern: None,
            values: scope.settings.clone().values(),
            above: scope.above.clone().values(),
            rules: Vec::new(),
            handler: None,
            walk: Vec::new(),
            reads_body: false,
            content: Vec::new(),
            filters: Vec::new(),
            inner_filters: Vec::new(),
            steps: Steps::default(),
            has_ready_heads: false,
            places: Places::default(),
            limit_except: None,
            zone: ZoneNames { server: String::new(), location: None },
            cell: 0,
        };
        self.families.all.iter().filter_map(|family| family.settle).for_each(|settle| settle(&mut location));
        location
    }

    /// Compiles one place and everything inside it. `scope.settings` has inherited and is finished. Returns the
    /// number of the place; at server level also the places inside and the rules.
    fn place(
        &mut self,
        mut scope: Scope,
        name: String,
        pattern: Option<Pattern>,
        named: &mut HashMap<String, LocationId>,
    ) -> (LocationId, Places, Vec<Rule>) {
        let is_server = scope.context == directive::SERVER;
        let id = LocationId(self.locations.len() as u32);
        let label = pattern.as_ref().map(Pattern::label);
        let mut location = self.settings(&scope);
        location.id = id;
        location.name.clone_from(&name);
        location.pattern = pattern;
        location.handler = scope.handler;
        location.zone.location.clone_from(&label);
        self.locations.push(location);

        let mut places = Places::default();
        let mut limit_except = None;
        let mut inner_ids = Vec::new();
        for mut child in std::mem::take(&mut scope.children) {
            child.inherit(&scope);
            match std::mem::replace(&mut child.kind, Kind::Plain) {
                Kind::Location(pattern) => {
                    self.finish_scope(&mut child);
                    let (at, adds_slash) = (child.at, child.asks_origin);
                    let (inner, inside, rules) = self.place(child, pattern.text(), Some(pattern.clone()), named);
                    self.settle(inner, inside, rules);
                    inner_ids.push(inner);
                    self.enlist((&mut places, named), pattern, inner, adds_slash, at);
                }
                Kind::If | Kind::Plain | Kind::Server(_) | Kind::Other(_) => {
                    child.handler = child.handler.or(scope.handler);
                    self.finish_scope(&mut child);
                    let (inner, inside, rules) = self.place(child, name.clone(), None, named);
                    self.settle(inner, inside, rules);
                    self.share_label(inner, label.as_ref());
                    inner_ids.push(inner);
                }
                Kind::LimitExcept(methods) => {
                    // nginx: only a handler that asks an origin answers other methods too, and not memcached's. Files answer them in
                    // place of all others.
                    child.handler = child.handler.or(scope.handler.filter(|_| scope.answers_limit_except));
                    self.finish_scope(&mut child);
                    let (inner, inside, rules) = self.place(child, name.clone(), None, named);
                    self.settle(inner, inside, rules);
                    self.share_label(inner, label.as_ref());
                    inner_ids.push(inner);
                    limit_except = Some((methods, inner));
                }
            }
        }
        let mut rules = std::mem::take(&mut scope.rules);
        // As in nginx, an `if` of a server has no settings of its own, so the request keeps those of the server.
        if !is_server {
            bind_children(&mut rules, &inner_ids);
        }
        places.compile();
        if let Some(location) = self.locations.get_mut(id.0 as usize) {
            location.limit_except = limit_except;
            activate(location, self.families);
        }
        if is_server {
            (id, places, rules)
        } else {
            self.settle(id, places, rules);
            (id, Places::default(), Vec::new())
        }
    }

    /// The requests of a block inside a location count under the location's name.
    fn share_label(&mut self, id: LocationId, label: Option<&String>) {
        if let Some(location) = self.locations.get_mut(id.0 as usize) {
            location.zone.location = label.cloned();
        }
    }

    fn settle(&mut self, id: LocationId, places: Places, rules: Vec<Rule>) {
        if let Some(location) = self.locations.get_mut(id.0 as usize) {
            if !rules.is_empty() {
                location.rules = rules;
            }
            if !places.is_empty() {
                location.places = places;
            }
        }
    }

    fn enlist(
        &mut self,
        (places, named): (&mut Places, &mut HashMap<String, LocationId>),
        pattern: Pattern,
        id: LocationId,
        adds_slash: bool,
        at: weir_conf::At,
    ) {
        let duplicate = match pattern {
            Pattern::Named(name) => named.insert(name.clone(), id).map(|_| format!("@{name}")),
            Pattern::Exact(path) => places.add_exact(&path, id).then_some(path),
            Pattern::Prefix { path, stops_regex } => {
                places.add_prefix(&path, id, stops_regex, adds_slash && path.ends_with('/')).then_some(path)
            }
            Pattern::Regex(regex) => {
                places.add_regex(regex, id);
                None
            }
        };
        if let Some(name) = duplicate {
            self.build.refuse_at("location", Refusal::whole(format!("duplicate location \"{name}\"")), at);
        }
    }

    fn finish(mut self, main: Values, generation: u32, tree: &Tree) -> (Option<Conf>, Vec<Problem>) {
        let drafts = std::mem::take(&mut self.drafts);
        let Grouped { sockets, quic, listens } = listens::listens(&drafts, &mut |objection| match objection {
            Objection::Refused(refusal, at) => self.build.refuse_at("listen", refusal, at),
            Objection::Ignored(text) => self.build.warn(text, None),
        });
        let places_fixed = sockets.len() + quic.len() + 1;
        if let Some(connections) = main.process.connections.filter(|connections| *connections < places_fixed) {
            let few =
                format!("{connections} worker_connections are not enough for {} listening sockets", places_fixed - 1);
            self.build.refuse_at("worker_connections", Refusal::whole(few), main.process.connections_at);
        }
        let found = Found { servers: &self.servers, locations: &self.locations, listens: &listens, drafts: &drafts };
        for check in self.families.all.iter().filter_map(|family| family.check) {
            check(&mut self.build, &found);
        }
        for location in &self.locations {
            let written = location.values.core.body_temp_path.as_deref();
            self.build.reach.make(self.build.paths.temporary(written, body::DIRECTORY));
        }
        // Another directory for temporary files at a reload is mostly below this one.
        self.build.paths.temporary.iter().for_each(|directory| self.build.reach.write(directory));
        let (definitions, unknown) = self.build.names.bind(|name| self.families.known.built_in(name));
        let compared = |(number, (name, at)): (usize, (String, _))| match number < COMPARED_MAX {
            true => self.build.unknown(name, at),
            false => Unknown { name, at, meant: None },
        };
        let unknown = unknown.into_iter().enumerate().map(compared).collect();
        let problems = self.build.settle(unknown, tree);
        let Build { names, declared, above, paths, reach, .. } = self.build;
        let families = self.families;
        let reads_body = names.made_of(&BODY_VARIABLES);
        let reading = VariablesRead { names: &names, reads_body: &reads_body, families };
        families.all.iter().filter_map(|family| family.judge).for_each(|judge| judge(&mut self.locations, &reading));
        if !reads_body.is_empty() {
            conf::read_bodies_first(&mut self.servers, &mut self.locations, &|text| reading.reads_body(text));
        }
        let fails = problems.iter().any(|problem| matches!(problem.level, weir_conf::Level::Emerg));
        let mut conf = Conf {
            generation,
            holders: AtomicUsize::new(0),
            main,
            sockets,
            quic,
            listens,
            servers: self.servers,
            locations: self.locations,
            definitions,
            reads_body,
            names,
            built_in: Box::new(|name| families.known.built_in(name)),
            declared,
            above,
            paths,
            reach,
            places_fixed,
            dashboard: None,
            exchanged: None,
            places_by_files: usize::MAX,
            context: families.all.iter().filter_map(|family| family.context).collect(),
        };
        let steps: Vec<Steps> = conf.locations.iter().map(|location| steps(families, &conf, location)).collect();
        conf.locations.iter_mut().zip(steps).for_each(|(location, steps)| location.steps = steps);
        ((!fails).then_some(conf), problems)
    }
}

/// `if` rules hold the index of their block among the children; this replaces the index with the number of the
/// block's location.
fn bind_children(rules: &mut [Rule], children: &[LocationId]) {
    for rule in rules {
        if let Rule::If { inner, child, place, .. } = rule {
            *place = children.get(*child).copied();
            bind_children(inner, children);
        }
    }
}

/// The families' steps that have something to do in this location.
fn steps(families: &Families, conf: &Conf, location: &Location) -> Steps {
    let needed = |kind: fn(&Family) -> Option<EachStep>| {
        let all = families.all.iter().filter_map(|family| kind(family));
        all.filter(|step| (step.active)(conf, location)).map(|step| step.run).collect()
    };
    Steps {
        enter: needed(|family| family.enter),
        enter_location: needed(|family| family.enter_location),
        log: needed(|family| family.log),
    }
}

/// Chooses the handlers and filters that have something to do in this location.
fn activate(location: &mut Location, families: &Families) {
    let mut walk = Vec::new();
    let mut content = Vec::new();
    for family in &families.all {
        if let Some(handler) = &family.phase
            && (handler.active)(location)
        {
            if handler.phase == Phase::Content {
                content.push(handler.enter);
            } else {
                walk.push((handler.phase, handler.enter));
            }
        }
    }
    walk.sort_by_key(|(phase, _)| *phase);
    let filters: Vec<_> = families.filters.iter().filter(|filter| (filter.active)(location)).collect();
    location.inner_filters = filters.iter().filter(|filter| filter.is_inner).map(|filter| filter.answer).collect();
    location.filters = filters.iter().map(|filter| filter.answer).collect();
    location.walk = walk;
    location.content = content;
}

/// Compiles a file of this text under the prefix `/p/`, for tests: returns the configuration and nginx's wording of its
/// problems. The name `twice.test` has one address, which its resolver tells twice; other names have none.
pub fn of_text(text: &str, families: &'static Families) -> (Option<Conf>, Vec<String>) {
    let files = weir_conf::MemoryFiles::new().with("/p/nginx.conf", text);
    let (tree, unread) = weir_conf::load(&files, "/p/nginx.conf", "/p/", &|_| false);
    let paths = Paths { prefix: "/p/".to_owned(), conf_prefix: "/p/".to_owned(), ..Paths::default() };
    let address = SocketAddr::from(([192, 0, 2, 1], 0));
    let found = |name: &str| if name == "twice.test" { vec![address; 2] } else { Vec::new() };
    let (conf, problems) = compile(&tree, paths, &|name| Ok(found(name)), 1, families);
    (conf, unread.into_iter().chain(problems).map(|problem| problem.what).collect())
}
