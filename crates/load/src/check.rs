//! `weir load --check`: loads the processor as a run would, and looks for the functions that the script names.

use std::path::Path;

use weir_words::{Said, say};

use crate::plan::{Connect, Flow, Plan, Step};
use crate::processor::{Choice, Processor, ProcessorHost};
use crate::template::Template;
use crate::texts;

/// Functions that the script names and the processor does not export, each once; the error says why the processor does not
/// load.
pub fn processor(plan: &Plan) -> Result<Vec<Said>, String> {
    let Some(path) = plan.processor.as_deref() else { return Ok(Vec::new()) };
    crate::npm::prepare();
    let processor = Processor::load_with(path, ProcessorHost::default(), Choice::from_environment())?;
    let file = path.file_name().map(Path::new).unwrap_or(path).display().to_string();
    let missing = named(plan).into_iter().filter(|name| !processor.has(name));
    Ok(missing.map(|name| say!(texts::NO_SUCH_FUNCTION, name, file.as_str())).collect())
}

/// Every function that the script names literally, in the order of the script.
fn named(plan: &Plan) -> Vec<&str> {
    let mut names = Vec::new();
    for scenario in &plan.scenarios {
        let hooks = [&scenario.before_request, &scenario.after_response, &scenario.on_error];
        hooks.into_iter().for_each(|hooks| add(&mut names, hooks));
        flow(&mut names, &scenario.flow);
    }
    plan.before.iter().chain(&plan.after).for_each(|hook| flow(&mut names, &hook.flow));
    names
}

fn flow<'p>(names: &mut Vec<&'p str>, steps: &'p Flow) {
    for step in steps {
        match step {
            Step::Function(name) => add(names, std::slice::from_ref(name)),
            Step::Request(request) => {
                add(names, &request.before_request);
                add(names, &request.after_response);
            }
            Step::Loop(inner) => {
                flow(names, &inner.flow);
                inner.while_true.iter().for_each(|name| once(names, name));
            }
            Step::Parallel { steps, .. } => flow(names, steps),
            Step::Connect(connect) => {
                if let Connect::Function(name) = &**connect {
                    once(names, name);
                }
            }
            _ => {}
        }
    }
}

fn add<'p>(names: &mut Vec<&'p str>, templates: &'p [Template]) {
    templates.iter().filter_map(Template::literal).for_each(|name| once(names, name));
}

fn once<'p>(names: &mut Vec<&'p str>, name: &'p str) {
    if !names.contains(&name) {
        names.push(name);
    }
}
