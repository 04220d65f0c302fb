//! WebSockets as scenarios: each is one that was recorded, with its messages and pauses.

use super::parts::{ScriptParts, quoted, spread, time};
use super::sessions::SessionStep;

/// Most scenarios of one route; each stands for an equal part of its WebSockets.
const VARIANTS_MAX: usize = 10;

impl ScriptParts<'_> {
    /// Writes the scenarios of a route whose requests open WebSockets.
    pub(super) fn websocket(&self, name: &str, weight: u64, opened: &[SessionStep], out: &mut String) {
        let variants = opened.len().min(VARIANTS_MAX).min(weight as usize).max(1);
        let mut random = fastrand::Rng::with_seed(opened.len() as u64);
        for variant in 0..variants {
            let Some(step) = opened.get(spread(variant, variants, opened.len(), &mut random)) else { continue };
            let part = weight * (variant as u64 + 1) / variants as u64 - weight * variant as u64 / variants as u64;
            let name = if variants > 1 { format!("{name}, {} of {variants}", variant + 1) } else { name.to_owned() };
            out.push_str(&format!("  - name: {}\n    engine: ws\n    weight: {part}\n    flow:\n", quoted(&name)));
            self.connect(step, out);
            self.messages(step, out);
        }
    }

    fn connect(&self, step: &SessionStep, out: &mut String) {
        let target = self.log.calls.get(step.call as usize).map_or("/", |call| &call.target);
        let mut options = format!("target: {}", quoted(&format!("{{{{ target }}}}{target}")));
        let mut headers: Vec<String> = ["authorization", "user-agent"]
            .into_iter()
            .filter_map(|name| Some(format!("{name}: {}", quoted(self.text(Some(self.field(step, name)?))))))
            .collect();
        headers.extend(self.host().map(|host| format!("host: {}", quoted(host))));
        let cookies: Vec<String> = self
            .sessions
            .cookies(step)
            .iter()
            .map(|(name, value)| format!("{}={}", self.text(Some(*name)), self.text(Some(*value))))
            .collect();
        if !cookies.is_empty() {
            headers.push(format!("cookie: {}", quoted(&cookies.join("; "))));
        }
        if !headers.is_empty() {
            options.push_str(&format!(", headers: {{ {} }}", headers.join(", ")));
        }
        if let Some(protocols) = self.field(step, "sec-websocket-protocol") {
            let names = self.text(Some(protocols)).split(',').map(|name| quoted(name.trim()));
            options.push_str(&format!(", subprotocols: [{}]", names.collect::<Vec<_>>().join(", ")));
        }
        out.push_str(&format!("      - connect: {{ {options} }}\n"));
    }

    fn messages(&self, step: &SessionStep, out: &mut String) {
        let number = self.log.details.get(step.detail).and_then(|detail| detail.tunnel);
        let Some(tunnel) = number.and_then(|number| self.log.tunnels.get(number as usize)) else { return };
        let think = |ms: u64, out: &mut String| {
            let ms = self.scaled(ms);
            if ms > 0 {
                out.push_str(&format!("      - think: {}\n", quoted(&time(ms))));
            }
        };
        for (pause_ms, text) in &tunnel.messages {
            think(*pause_ms, out);
            out.push_str(&format!("      - send: {}\n", quoted(self.text(Some(*text)))));
        }
        think(tunnel.rest_ms, out);
    }
}
