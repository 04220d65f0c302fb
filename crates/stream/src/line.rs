//! Lines of the error log about a session, in nginx's form.
//!
//! ```text
//!  2026/11/21 12:00:00 [error] PID#TID: *CONN MESSAGE while STEP, client: …, server: …, upstream: "…", bytes …
//! ```

use std::fmt;

use weir_http::text::texts::push_address;
use weir_net::log::{self, Level};

use crate::session::Session;

impl Session<'_> {
    /// Whether a line of this level would be written.
    pub fn logs(&self, level: Level) -> bool {
        self.server.place.values.error_log.sinks.takes(level) || self.conf.main.debug_connection.has(self.peer())
    }

    /// Writes a line to the error log with the facts about the session.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        write(self, level, message, true);
    }

    /// Writes a line to the error log with the number of the session alone.
    pub fn tell(&self, level: Level, message: fmt::Arguments<'_>) {
        write(self, level, message, false);
    }
}

/// A line about a session. `has_facts` adds the step, the client and the peer.
fn write(session: &Session<'_>, level: Level, message: fmt::Arguments<'_>, has_facts: bool) {
    let sinks = &session.server.place.values.error_log.sinks;
    let is_debugged = session.conf.main.debug_connection.has(session.peer());
    if !sinks.takes(level) && !is_debugged {
        return;
    }
    log::compose(level, |line| {
        log::push(line, format_args!("*{} {message}", session.number));
        if has_facts {
            facts(session, line);
        }
        if is_debugged {
            sinks.write_to_all(level, line);
        } else {
            sinks.write(level, line);
        }
    });
}

fn facts(session: &Session<'_>, line: &mut Vec<u8>) {
    if let Some(step) = session.step {
        log::push(line, format_args!(" while {}", step.doing()));
    }
    line.extend_from_slice(if session.is_datagram { b", udp client: " } else { b", client: " });
    push_address(session.remote(), line);
    log::push(line, format_args!(", server: {}", session.listen.address));
    let Some(upstream) = &session.upstream else { return };
    let (sent, received) = session.tries.last().map_or((0, 0), |attempt| (attempt.sent, attempt.received));
    log::push(line, format_args!(", upstream: \"{upstream}\""));
    log::push(line, format_args!(", bytes from/to client:{}/{}", session.received, session.sent));
    log::push(line, format_args!(", bytes from/to upstream:{received}/{sent}"));
}
