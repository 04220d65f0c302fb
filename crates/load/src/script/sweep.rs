//! Finds unknown keys in an invalid script, so that the user learns of a mistyped key even if the script has another
//! error.
//!
//! For a valid script, the warnings about unknown keys come from the code that reads the keys.

use weir_words::{Said, say};

use super::keys;
use super::near;
use super::node::Node;
use super::notes::Notes;
use crate::texts::script as texts;

/// Warns about every unknown key in the outer objects of a script, its scenarios and their steps.
pub(crate) fn unknown_keys(script: &Node, notes: &mut Notes) {
    keys::SCRIPT.check_own(script, notes);
    if let Some(config) = meant(script, "config", &keys::SCRIPT) {
        keys::CONFIG.check(config, notes);
        let phases = meant(config, "phases", &keys::CONFIG).and_then(Node::list).unwrap_or_default();
        phases.iter().for_each(|phase| keys::PHASE.check(phase, notes));
        for (name, object) in [
            ("http", &keys::HTTP),
            ("ws", &keys::WS),
            ("socketio", &keys::SOCKETIO),
            (keys::SOCKETIO_V3, &keys::SOCKETIO),
            ("tls", &keys::TLS),
        ] {
            config.get(name).into_iter().for_each(|node| object.check(node, notes));
        }
    }
    for scenario in meant(script, "scenarios", &keys::SCRIPT).and_then(Node::list).unwrap_or_default() {
        keys::SCENARIO.check(scenario, notes);
        steps(meant(scenario, "flow", &keys::SCENARIO), notes);
    }
    for hook in ["before", "after"].iter().filter_map(|name| script.get(name)) {
        keys::HOOK.check(hook, notes);
        steps(meant(hook, "flow", &keys::HOOK), notes);
    }
}

/// The value of a key, or of an unknown key that looks like it: a mistyped key hides no further ones.
fn meant<'n>(node: &'n Node, wanted: &str, object: &keys::Object) -> Option<&'n Node> {
    let is_meant = |name: &str| {
        object.key(name).is_none() && near::nearest(name, object.keys.iter().map(|key| key.name)) == Some(wanted)
    };
    let mistyped = || node.map()?.iter().find(|(name, _)| is_meant(name)).map(|(_, member)| &member.value);
    node.get(wanted).or_else(mistyped)
}

/// The parser limits the nesting of lists.
fn steps(list: Option<&Node>, notes: &mut Notes) {
    for node in list.and_then(Node::list).unwrap_or_default() {
        step(node, notes);
    }
}

fn step(node: &Node, notes: &mut Notes) {
    if node.list().is_some() {
        return steps(Some(node), notes);
    }
    for (name, member) in node.map().into_iter().flatten() {
        let is_loop = node.get("loop").is_some() && keys::LOOP.key(name).is_some();
        let is_request = member.value.get("url").is_some();
        let is_known = keys::STEP.key(name).is_some() || is_loop;
        if is_known && matches!(&**name, "loop" | "parallel") {
            steps(Some(&member.value), notes);
        } else if is_known && is_request {
            keys::REQUEST.check(&member.value, notes);
        } else if !is_known {
            if keys::LOOP.key(name).is_some() {
                continue;
            }
            // Only these two keys contain steps.
            let holds_steps = member.value.list().is_some_and(|list| list.iter().any(|node| node.map().is_some()));
            steps(Some(&member.value).filter(|_| holds_steps), notes);
            let known = keys::STEP.keys.iter().chain(keys::LOOP.keys).map(|key| key.name);
            let known = known.filter(|name| !holds_steps || matches!(*name, "loop" | "parallel"));
            // A step with the user's own method is a request, unless the method looks like a known key.
            let Some(near) = near::nearest(name, known) else {
                if !is_request {
                    notes.warn(member.at, say!(texts::NO_STEP, name.as_ref(), Said::default()));
                }
                continue;
            };
            notes.warn(member.at, say!(texts::NO_STEP, name.as_ref(), say!(texts::NEAR, near)));
        }
    }
}
