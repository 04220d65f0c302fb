//! The command that compares the configuration with the copy that has the remedy, on the stack that was asked for.

use serde_json::Value;

use super::asked::Why;
use super::rule::Tier;
use super::rules::Finding;
use super::tried::Copied;
use crate::ask::{Cpus, EdgeProgram, Load};
use crate::command::CommandLine;

/// The command for a shell. `chosen` are CPUs that the lab assigned itself. `None`: `weir lab ab` cannot build this stack,
/// which is that of an experiment or has additions of a test.
pub(super) fn command(finding: &Finding, it: &Why, chosen: Option<&Cpus>, copied: &Copied) -> Option<String> {
    if it.lab.is_some() || it.inject != Value::Null {
        return None;
    }
    let file = it.side.file.display().to_string();
    // If paths begin in the file's directory, the copy has to stand there too.
    let copy = copied.file.display().to_string();
    let beside = it.side.file.with_file_name("after.conf").display().to_string();
    let first = CommandLine::new(["cp".to_owned(), copy.clone(), beside.clone()]);
    let mut words = Words(["weir", "lab", "ab"].map(str::to_owned).to_vec());
    if it.side.edge != EdgeProgram::Weir {
        words.flag("--edge", it.side.edge.name());
    }
    words.0.extend([file, if copied.is_beside { beside } else { copy }]);
    words.load(&it.ask.load);
    if copied.names.len() > 1 {
        words.flag("--together", copied.names.join(","));
    }
    words.stack(it, chosen);
    if finding.rule.tier == Tier::Limit && finding.found.explains.is_empty() {
        words.flag("--metric", "errors");
    }
    let compares = CommandLine::new(words.0);
    Some(if copied.is_beside { format!("{first} && {compares}") } else { compares.to_string() })
}

/// The words of a command line.
struct Words(Vec<String>);

impl Words {
    fn flag(&mut self, name: &str, value: impl Into<String>) {
        self.0.extend([name.to_owned(), value.into()]);
    }

    fn load(&mut self, load: &Load) {
        match load {
            Load::Path { path, connections, rate } => {
                if let Some(rate) = rate {
                    self.flag("--rate", rate.to_string());
                }
                self.flag("-c", connections.to_string());
                self.0.push(path.clone());
            }
            Load::Script { file, .. } => self.flag("--load", file.display().to_string()),
        }
    }

    /// The flags that make the same stack.
    fn stack(&mut self, it: &Why, chosen: Option<&Cpus>) {
        if let Some(origin) = &it.ask.origin {
            // `weir lab ab` has no --pool: the application's shell sets the variables.
            let set: String = it.pools.iter().map(|pool| format!("export {}={}; ", pool.variable, pool.size)).collect();
            self.flag("--origin", set + origin);
        }
        if let Some(quota) = it.ask.quota {
            self.flag("--edge-quota", quota.to_string());
        }
        if let Some(port) = it.ask.port {
            self.flag("--port", port.to_string());
        }
        for field in &it.ask.headers {
            self.flag("-H", field);
        }
        if let Some(cpus) = chosen.or(it.has_own_cpus.then_some(&it.ask.cpus)) {
            let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            self.flag("--edge-cpus", list(&cpus.edge));
            self.flag("--client-cpus", list(&cpus.client));
            self.flag("--origin-cpus", list(&cpus.origin));
        }
        let without_value = [("--plain", !it.ask.is_isolated), ("--noisy", it.ask.is_noisy)];
        self.0.extend(without_value.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ask::Ask;
    use crate::why::rules;
    use crate::why::signals::{Pool, Signals};

    fn it(ask: Ask) -> Why {
        Why { ask, ..Why::of_tests() }
    }

    fn of(id: &str, it: &Why, chosen: Option<&Cpus>, copied: &Copied) -> Option<String> {
        let rule = rules::all().find(|rule| rule.id == id).unwrap();
        let mut s = Signals::quiet();
        (rule.fires)(&mut s);
        let finding = rules::find(&s, None).into_iter().find(|finding| finding.rule.id == id).unwrap();
        command(&finding, it, chosen, copied)
    }

    fn copied() -> Copied {
        Copied { file: "/r/1.after.conf".into(), names: vec!["a".into(), "b".into()], is_beside: false }
    }

    #[test]
    fn it_has_the_load_and_the_copy() {
        let ask = Ask { is_isolated: true, is_noisy: false, ..crate::ask::tests::ask() };
        let said = |copied: &Copied| of("B05", &it(ask.clone()), None, copied).unwrap();
        assert_eq!(said(&copied()), "weir lab ab /n.conf /r/1.after.conf -c 1 / --together a,b --metric errors");
        let beside = said(&Copied { is_beside: true, ..copied() });
        assert!(beside.starts_with("cp /r/1.after.conf /after.conf && weir lab ab /n.conf /after.conf"), "{beside}");
        let one = Copied { names: Vec::new(), ..copied() };
        assert_eq!(of("B20", &it(ask), None, &one).unwrap(), "weir lab ab /n.conf /r/1.after.conf -c 1 /");
    }

    #[test]
    fn it_builds_the_stack_that_was_asked_for() {
        let ask = Ask {
            load: Load::Path { path: "/a b".into(), connections: 8, rate: Some(50.0) },
            origin: Some("node app.js".into()),
            quota: Some(0.5),
            port: Some(8443),
            headers: vec!["A: b".into()],
            is_noisy: true,
            is_isolated: false,
            ..crate::ask::tests::ask()
        };
        let pool = Pool { process: "origin0".into(), variable: "POOL".into(), size: 5 };
        let it = Why { pools: vec![pool], has_own_cpus: true, ..it(ask) };
        let chosen = Cpus { edge: vec![0], client: vec![1, 2], origin: vec![3] };
        let said = of("B20", &it, Some(&chosen), &Copied::default()).unwrap();
        for part in [
            "--rate 50 -c 8 '/a b' --origin 'export POOL=5; node app.js' --edge-quota 0.5 --port 8443 -H 'A: b'",
            "--edge-cpus 0 --client-cpus 1,2 --origin-cpus 3 --plain --noisy",
        ] {
            assert!(said.contains(part), "{said}");
        }
        // The user's own CPUs, if the lab chose no others.
        assert!(of("B20", &it, None, &Copied::default()).unwrap().contains("--edge-cpus"));
        // `weir lab ab` cannot add what a test adds.
        let other = Why { inject: serde_json::json!({"hosts": []}), ..it };
        assert_eq!(of("B20", &other, None, &Copied::default()), None);
    }
}
