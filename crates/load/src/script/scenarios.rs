//! `scenarios`, `before` and `after` (artillery.md §1.3).

use weir_words::{Said, say};

use super::build::Builder;
use super::keys;
use super::near;
use super::node::Node;
use super::number;
use super::source::{Problem, StartProblem};
use crate::plan::{Engine, Flow, Hook, Initial, Payload, Scenario, Step};
use crate::random::{self, Builtins};
use crate::template::Template;
use crate::texts::script as texts;
use crate::value::Value;
use crate::vars::{VariableSlot, Vars};

/// Most scenarios of a script.
pub(crate) const SCENARIOS_MAX: usize = 10_000;

/// The exit code of Artillery's worker when a scenario cannot be run.
const EXIT_WORKER: i32 = 11;

/// The scenarios that run, with their indexes: all, or those that `--scenario-name` matches.
pub(crate) fn chosen<'s>(script: &'s Node, name: Option<&str>) -> Result<Vec<(usize, &'s Node)>, StartProblem> {
    let list = script.get("scenarios").and_then(Node::list).unwrap_or_default();
    let all = list.iter().enumerate();
    let Some(name) = name else { return Ok(all.take(SCENARIOS_MAX).collect()) };
    let pattern = regress::Regex::new(name).ok();
    let fits = |node: &Node| {
        node.get("name")
            .and_then(Node::text)
            .is_some_and(|text| text == name || pattern.as_ref().is_some_and(|pattern| pattern.find(text).is_some()))
    };
    let found: Vec<(usize, &Node)> = all.filter(|(_, node)| fits(node)).collect();
    let what = match found.len() {
        1 => return Ok(found),
        0 => say!(texts::NO_SCENARIO, name, known(list, name)),
        _ => say!(texts::SEVERAL_SCENARIOS, name),
    };
    Err(StartProblem { problem: Problem::artillery(None, what), exit: EXIT_WORKER })
}

fn known(list: &[Node], name: &str) -> Said {
    let names: Vec<&str> = list.iter().filter_map(|node| node.get("name").and_then(Node::text)).collect();
    match near::nearest(name, names.iter().copied()) {
        Some(near) => say!(texts::NEAR_SCENARIO, near),
        None => say!(texts::SCENARIOS_ARE, names.join(", ")),
    }
}

/// Checks that weir supports the engine of each scenario and hook; otherwise the run ends here.
pub(crate) fn check_engines(script: &Node, scenarios: &[(usize, &Node)]) -> Result<(), StartProblem> {
    let default = script.dig(&["config", "engine"]);
    let engines = script.dig(&["config", "engines"]);
    for (index, node) in scenarios {
        let name = node.get("name").map_or_else(|| index.to_string(), Node::shown);
        check_engine(node.get("engine").or(default), engines, say!(texts::SCENARIO_NAMED, name), node)?;
    }
    for hook in ["before", "after"] {
        if let Some(node) = script.get(hook) {
            check_engine(node.get("engine"), engines, say!(texts::HOOK_NAMED, hook), node)?;
        }
    }
    Ok(())
}

fn check_engine(engine: Option<&Node>, engines: Option<&Node>, whose: Said, node: &Node) -> Result<(), StartProblem> {
    let Some(engine) = engine.filter(|engine| engine.is_truthy()) else { return Ok(()) };
    let name = engine.shown();
    if read_engine(&name).is_some() {
        return Ok(());
    }
    let is_included = engines.is_some_and(|engines| engines.get(&name).is_some());
    let why = match name.as_str() {
        "playwright" => texts::NO_BROWSER,
        "websocket" => texts::ENGINE_IS_WS,
        // The npm package has one engine for each protocol version; weir's engine supports the current version.
        name if name.to_ascii_lowercase().starts_with("socketio") || name.eq_ignore_ascii_case("socket.io") => {
            texts::ENGINE_IS_SOCKETIO
        }
        _ => texts::ENGINES_ARE,
    };
    let asks = if is_included { Said::default() } else { say!(texts::FORGOT_ENGINE, &name) };
    let what = say!(texts::UNKNOWN_ENGINE, whose, &name, asks, why);
    let at = if engine.at.line > 0 { engine.at } else { node.at };
    Err(StartProblem { problem: Problem::artillery(Some(at), what), exit: EXIT_WORKER })
}

fn read_engine(name: &str) -> Option<Engine> {
    match name {
        "http" => Some(Engine::Http),
        "ws" => Some(Engine::Ws),
        "socketio" | keys::SOCKETIO_V3 => Some(Engine::SocketIo),
        _ => None,
    }
}

fn engine(node: &Node, default: Option<&Node>) -> Engine {
    let named = node.get("engine").or(default).filter(|engine| engine.is_truthy());
    named.and_then(|engine| read_engine(&engine.shown())).unwrap_or(Engine::Http)
}

impl Builder<'_> {
    /// The scenarios that run.
    pub fn scenarios(
        &mut self,
        list: &[(usize, &Node)],
        config: &Node,
        payloads: &[Payload],
        variables: &[(VariableSlot, Initial)],
        globals: &[(String, Value)],
    ) -> Vec<Scenario> {
        let mut weights = Vec::new();
        let mut scenarios = Vec::new();
        for (index, node) in list {
            keys::SCENARIO.check(node, self.notes);
            weights.push(self.template(node.get("weight").unwrap_or(&Node::text_at(node.at, "1"))));
            scenarios.push(self.scenario(*index, node, config));
        }
        self.weigh(&mut scenarios, &weights, payloads, variables, globals);
        if scenarios.iter().all(|scenario| scenario.weight == 0)
            && let Some((_, node)) = list.first()
        {
            self.notes.refuse(node.at, texts::ALL_WEIGHTS_ZERO);
        }
        scenarios
    }

    fn scenario(&mut self, index: usize, node: &Node, config: &Node) -> Scenario {
        let engine = engine(node, config.get("engine"));
        let named = node.get("engine").or(config.get("engine"));
        if let Some(named) = named.filter(|named| named.shown() == keys::SOCKETIO_V3) {
            self.notes.warn(named.at, texts::ENGINE_IS_V3);
        }
        let name = node.get("name").map_or_else(|| index.to_string(), Node::shown);
        let socketio = node.get("socketio");
        if let Some(options) = socketio {
            keys::SOCKETIO.check(options, self.notes);
        }
        if engine != Engine::Http {
            self.warn_of_functions(node);
            self.check_http3_engine(named.unwrap_or(node));
        }
        Scenario {
            name: name.into(),
            weight: 1,
            engine,
            flow: self.whole_flow(node, engine),
            before_request: self.functions(node, "beforeRequest"),
            after_response: self.functions(node, "afterResponse"),
            on_error: self.functions(node, "onError"),
            socketio: socketio.map(|options| self.tree(options)),
            spec: node.value(),
        }
    }

    fn warn_of_functions(&mut self, node: &Node) {
        for key in ["beforeScenario", "afterScenario", "beforeRequest", "afterResponse", "onError"] {
            if let Some(node) = node.get(key) {
                self.notes.warn(node.at, say!(texts::HTTP_ONLY, key));
            }
        }
    }

    /// The flow with `beforeScenario` before and `afterScenario` after it.
    fn whole_flow(&mut self, node: &Node, engine: Engine) -> Flow {
        let mut flow = Flow::new();
        let is_http = engine == Engine::Http;
        if is_http {
            flow.extend(self.functions(node, "beforeScenario").into_iter().map(Step::Function));
        }
        if let Some(list) = node.get("flow").and_then(Node::list) {
            flow.extend(self.flow(list, engine));
        }
        if is_http {
            flow.extend(self.functions(node, "afterScenario").into_iter().map(Step::Function));
        }
        flow
    }

    /// `before` or `after`. Its `beforeRequest` and `afterResponse` functions are added to its requests.
    pub fn hook(&mut self, node: &Node, name: &str) -> Hook {
        keys::HOOK.check(node, self.notes);
        let engine = engine(node, None);
        if engine != Engine::Http {
            self.notes.warn(node.at, say!(texts::HOOK_ENGINE, name));
            self.check_http3_engine(node.get("engine").unwrap_or(node));
        }
        self.hook_before = self.functions(node, "beforeRequest");
        self.hook_after = self.functions(node, "afterResponse");
        let flow = self.whole_flow(node, engine);
        self.hook_before.clear();
        self.hook_after.clear();
        Hook { engine, flow }
    }

    /// Renders the weights once, each with a random row of every payload and a random one of several values.
    fn weigh(
        &mut self,
        scenarios: &mut [Scenario],
        weights: &[Template],
        payloads: &[Payload],
        variables: &[(VariableSlot, Initial)],
        globals: &[(String, Value)],
    ) {
        if weights.iter().all(|weight| weight.literal().is_some()) {
            for (scenario, weight) in scenarios.iter_mut().zip(weights) {
                scenario.weight = read_weight(weight.literal().unwrap_or_default());
            }
            return;
        }
        // The variables need the names, and the plan needs them afterwards.
        let names = std::sync::Arc::new(std::mem::take(&mut self.names));
        let mut vars = Vars::new(names.clone());
        for (name, value) in globals {
            vars.set_by_name(name, value.clone());
        }
        for (scenario, weight) in scenarios.iter_mut().zip(weights) {
            for payload in payloads {
                let row = if payload.is_sequence { payload.rows.first() } else { random::one_of(&payload.rows) };
                let row = row.into_iter().flatten();
                payload.fields.iter().zip(row).for_each(|(slot, value)| vars.set(*slot, value.clone()));
            }
            for (slot, initial) in variables {
                let value = match initial {
                    Initial::Fixed(value) => Some(value),
                    Initial::OneOf(values) => random::one_of(values),
                };
                vars.set(*slot, value.cloned().unwrap_or_default());
            }
            let value = Node::of(&weight.value(&vars, &Builtins), super::source::SourcePlace::default());
            scenario.weight = read_weight(&value.shown());
        }
        drop(vars);
        self.names = std::sync::Arc::into_inner(names).unwrap_or_default();
    }
}

/// `parseInt`; 0 if the text is not a number.
fn read_weight(text: &str) -> u32 {
    number::read_int(text).unwrap_or(0.0).clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_parse_int_does() {
        for (text, weight) in [("3", 3), ("2.9", 2), ("x", 0), ("-4", 0), ("", 0), ("undefined", 0), ("7 of 9", 7)] {
            assert_eq!(read_weight(text), weight, "{text}");
        }
    }
}
