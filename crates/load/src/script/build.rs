//! Turns a settled script into a [`Plan`].

use std::path::PathBuf;
use std::sync::Arc;

use weir_words::say;

use super::keys;
use super::node::Node;
use super::notes::Notes;
use super::pipeline::Settled;
use super::{payload, phases};
use crate::plan::{Initial, Jitter, Plan, Requests};
use crate::template::{Template, Tree};
use crate::texts::script as texts;
use crate::value::Value;
use crate::vars::VariableNames;

/// The state for making the parts of a plan.
pub(crate) struct Builder<'n> {
    /// The names of all variables.
    pub names: VariableNames,
    /// The numbers of all requests.
    pub requests: Requests,
    /// Warnings and problems.
    pub notes: &'n mut Notes,
    /// The directory from which relative paths start.
    pub dir: PathBuf,
    /// True if the script has a processor, where functions can be found.
    pub has_processor: bool,
    /// True if `expect` is checked, or if its absence was reported.
    pub has_expect: bool,
    /// True if `config.http.http3` is set.
    pub speaks_http3: bool,
    /// `jitter` of every think in http flows.
    pub jitter_http: Option<Jitter>,
    /// `jitter` of every think in other flows.
    pub jitter_others: Option<Jitter>,
    /// `beforeRequest` of the current hook.
    pub hook_before: Vec<Template>,
    /// `afterResponse` of the current hook.
    pub hook_after: Vec<Template>,
}

/// Makes the plan; problems are in the notes.
pub(crate) fn plan(settled: Settled, scenarios: &[(usize, &Node)], notes: &mut Notes) -> Plan {
    let Settled { script, file, globals } = &settled;
    let nothing = Node::empty(script.at);
    let config = script.get("config").unwrap_or(&nothing);
    keys::CONFIG.check(config, notes);
    let dir = file.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let mut builder = Builder {
        names: VariableNames::default(),
        requests: Requests::default(),
        notes,
        dir: dir.clone(),
        has_processor: config.get("processor").is_some(),
        has_expect: config.dig(&["plugins", "expect"]).is_some(),
        speaks_http3: config.dig(&["http", "http3"]).is_some_and(Node::is_yes),
        jitter_http: None,
        jitter_others: None,
        hook_before: Vec::new(),
        hook_after: Vec::new(),
    };
    builder.check_top(script);
    builder.read_jitter(config);
    let target: Arc<str> = config.get("target").map(Node::shown).unwrap_or_default().into();
    let mut first = vec![(builder.names.slot("target"), Value::Text(target.clone()))];
    first.extend(globals.iter().map(|(name, value)| (builder.names.slot(name), value.clone())));
    builder.names.slot("$uuid");
    let phases = phases::read(config, builder.notes);
    let payloads = payload::read(config, &mut builder.names, builder.notes);
    let variables = builder.variables(config.get("variables"));
    let processor = builder.processor(config);
    let plan_scenarios = builder.scenarios(scenarios, config, &payloads, &variables, globals);
    let before = script.get("before").map(|hook| builder.hook(hook, "before"));
    let after = script.get("after").map(|hook| builder.hook(hook, "after"));
    let http = builder.http(config);
    let ws = builder.ws(config);
    let socketio = config.get("socketio").or(config.get(keys::SOCKETIO_V3)).unwrap_or(&nothing);
    keys::SOCKETIO.check(socketio, builder.notes);
    let socketio = builder.tree(socketio);
    let tls = builder.tls(config);
    let timeout = builder.seconds(config.get("timeout"));
    let proxies = builder.proxies(config.at, globals);
    builder.check_http3(config, &proxies);
    let plugins = builder.plugins(config);
    let names = Arc::new(std::mem::take(&mut builder.names));
    let requests = builder.requests;
    Plan {
        file: file.clone(),
        dir,
        target,
        phases,
        scenarios: plan_scenarios,
        before,
        after,
        requests,
        names,
        globals: first,
        payloads,
        variables,
        http,
        ws,
        socketio,
        tls,
        proxies,
        timeout,
        processor,
        plugins,
        files: Vec::new(),
        warnings: Vec::new(),
    }
}

impl Builder<'_> {
    /// A node as a template: a number or another scalar becomes text.
    pub fn template(&mut self, node: &Node) -> Template {
        if node.map().is_some() || node.list().is_some() {
            self.notes.refuse(node.at, texts::TEXT_HERE);
        }
        self.text(&node.shown())
    }

    /// A text as a template.
    pub fn text(&mut self, text: &str) -> Template {
        Template::parse(text, &mut self.names)
    }

    /// A node as a tree of templates.
    pub fn tree(&mut self, node: &Node) -> Tree {
        Tree::parse(&node.value(), &mut self.names)
    }

    /// A function's name, or a list of names.
    pub fn functions(&mut self, node: &Node, key: &str) -> Vec<Template> {
        let list = node.get(key).map_or(&[][..], Node::one_or_more);
        list.iter().map(|node| self.function_name(node)).collect()
    }

    fn check_top(&mut self, script: &Node) {
        keys::SCRIPT.check_own(script, self.notes);
    }

    fn variables(&mut self, node: Option<&Node>) -> Vec<(crate::vars::VariableSlot, Initial)> {
        if let Some(node) = node.filter(|node| node.map().is_none() && node.is_truthy()) {
            self.notes.refuse(node.at, texts::NO_VARIABLES);
        }
        let members = node.and_then(Node::map).into_iter().flatten();
        let initial = |value: Value| match value {
            Value::List(list) if !list.is_empty() => Initial::OneOf(list.to_vec()),
            Value::List(_) => Initial::Fixed(Value::Undefined),
            value => Initial::Fixed(value),
        };
        members.map(|(name, member)| (self.names.slot(name), initial(member.value.value()))).collect()
    }

    fn processor(&mut self, config: &Node) -> Option<PathBuf> {
        let node = config.get("processor").filter(|node| node.is_truthy())?;
        let path = self.dir.join(node.shown());
        if !path.is_file() {
            self.notes.refuse(node.at, say!(texts::NO_PROCESSOR, path.display().to_string()));
        }
        self.notes.files.push(path.clone());
        Some(path)
    }
}
