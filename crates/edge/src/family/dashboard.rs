//! `dashboard`, `dashboard_token`, `dashboard_history`: the page that says what limits the edge. weir's own.
//!
//! The work is in `crate::dash`; `docs/guide/dashboard.md` has the words for users.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_conf::Statement;
use weir_dash::May;

use crate::build::{Build, Kind};
use crate::conf::Conf;
use crate::dash::hall::Hall;
use crate::dash::place;
use crate::dash::token::{Source, Token};
use crate::directive::{Arity, Directive, HTTP, LOCATION, MAIN, ONE, Refusal, SERVER};
use crate::family::Family;
use crate::family::location::Pattern;
use crate::log;
use crate::phase::Next;

crate::settings! {
    /// `dashboard_token`: where it is.
    token: Option<Source> = None,
    /// Whether `dashboard` is written here.
    is_on: bool = false,
}

/// What all dashboards of a configuration share.
#[derive(Default)]
pub struct Declared {
    /// `dashboard_history`.
    pub history: Option<PathBuf>,
    hall: OnceLock<Arc<Hall>>,
    tokens: OnceLock<HashMap<String, Token>>,
}

/// The family.
pub static FAMILY: Family = Family::new("dashboard", &[
    Directive::new("dashboard", MAIN.or(LOCATION), Arity::Between(0, 1),
        "weir's own: in a location, answers with the dashboard. At the top of the file, on|off|ADDR:PORT: whether and \
         where the dashboard has a server of its own; weir edge has one on 127.0.0.1:9144 or the next free port.",
        dashboard).default("on for weir edge, off when called as nginx"),
    Directive::new("dashboard_token", MAIN.or(HTTP).or(SERVER).or(LOCATION), ONE,
        "weir's own: what opens the dashboard, the first line of a FILE or env:VARIABLE. Without it, only loopback may look.",
        token),
    Directive::new("dashboard_history", MAIN.or(HTTP), ONE,
        "weir's own: keeps 24 hours of history, ten seconds a point, in a FILE of half a megabyte.",
        |b, s| { let path = b.path(s.text(0)); b.declared.dashboard.history = Some(PathBuf::from(path)); Ok(()) }),
])
.adopt(|new, old| { new.dashboard.adopt(&old.dashboard); Ok(()) });

impl Declared {
    /// Where viewers wait.
    pub fn hall(&self) -> &Arc<Hall> {
        self.hall.get_or_init(|| Arc::new(Hall::new(May::default())))
    }

    /// The token of that source, once the configuration is in force.
    pub fn token(&self, source: &Source) -> Option<&Token> {
        self.tokens.get()?.get(&key(source))
    }

    /// The hall, if anything shows a dashboard: for the observer.
    pub fn watched(&self) -> Option<&Arc<Hall>> {
        self.tokens.get().and(self.hall.get())
    }

    fn adopt(&mut self, old: &Declared) {
        if let Some(hall) = old.hall.get() {
            self.hall = OnceLock::from(hall.clone());
        }
    }
}

fn key(source: &Source) -> String {
    match source {
        Source::File(path) => path.clone(),
        Source::Variable(name) => format!("env:{name}"),
    }
}

/// Reads the tokens and opens the history: the configuration is about to be in force. Without a dashboard, nothing.
///
/// # Errors
/// A token cannot be read, or is none; the history cannot be opened.
pub fn open(conf: &Conf) -> Result<(), String> {
    let declared = &conf.declared.dashboard;
    let all = || conf.locations.iter().map(|location| &location.values);
    let mut tokens = HashMap::new();
    for values in all().filter(|values| values.dashboard.is_on || values.live.may_write) {
        if let Some(source) = &values.dashboard.token {
            tokens.insert(key(source), Token::read(source)?);
        }
    }
    if !all().any(|values| values.dashboard.is_on) {
        // Nobody is shown anything any more, and nothing is kept of it.
        if let Some(hall) = declared.hall.get() {
            drop(hall.keep_day(None));
        }
        // Nobody else opens this configuration; testing one opens it and ends.
        drop(declared.tokens.set(tokens));
        return Ok(());
    }
    let may = May { purge: !tokens.is_empty(), servers: !tokens.is_empty() };
    let hall = declared.hall.get_or_init(|| Arc::new(Hall::new(may)));
    hall.allow(may);
    let path = declared.history.as_deref();
    hall.keep_day(path).map_err(|error| {
        format!("open() \"{}\" failed {}", path.unwrap_or(Path::new("")).display(), log::Os(&error))
    })?;
    drop(declared.tokens.set(tokens));
    Ok(())
}

fn dashboard(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    if b.scope().context == MAIN {
        return match statement.text(0) {
            "off" => Ok(()),
            // Whether there is a token for one beyond loopback is asked with each request.
            text if place::parse(text).is_some() => Ok(()),
            text => Err(Refusal::whole(format!("invalid value \"{text}\" in \"dashboard\" directive"))
                .todo("on, off or ADDR:PORT")),
        };
    }
    if !statement.args.is_empty() {
        return Err(Refusal::directive("takes no argument in a location"));
    }
    match &b.scope().kind {
        Kind::Location(Pattern::Prefix { path, .. }) if path.ends_with('/') => {}
        _ => {
            return Err(Refusal::directive("needs a location that is a prefix and ends in \"/\"")
                .todo("location /weir/ { dashboard; }"));
        }
    }
    b.settings().dashboard.is_on = Some(true);
    b.scope().handler = Some(|_| Next::Dashboard);
    Ok(())
}

fn token(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let source = match statement.text(0) {
        "" | "env:" => return Err(Refusal::directive("is empty").todo("a file, or env:VARIABLE")),
        text => match text.strip_prefix("env:") {
            Some(name) => Source::Variable(name.to_owned()),
            None => Source::File(b.path(text)),
        },
    };
    b.settings().dashboard.token = Some(Some(source));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::conf::of_text;

    #[test]
    fn a_dashboard_is_a_prefix_with_a_slash() {
        for (text, said_of) in [
            ("events {} http { server { listen 1; location /weir/ { dashboard; } } }", ""),
            ("events {} http { server { listen 1; location / { dashboard; } } }", ""),
            ("dashboard on; events {}", ""),
            ("dashboard 10.0.0.1:1; events {}", ""),
            ("dashboard off; events {}", ""),
            ("dashboard; events {}", "invalid value \"\""),
            ("dashboard 9144; events {}", "invalid value \"9144\""),
            ("events {} http { server { listen 1; location /weir { dashboard; } } }", "ends in \"/\""),
            ("events {} http { server { listen 1; location ~ /weir/ { dashboard; } } }", "ends in \"/\""),
            ("events {} http { server { listen 1; location /weir/ { dashboard on; } } }", "takes no argument"),
            ("events {} http { server { listen 1; dashboard; } }", "not allowed here"),
            ("dashboard_token \"\"; events {}", "is empty"),
        ] {
            let (_, said) = of_text(text);
            let said = said.join("\n");
            assert!(said.contains(said_of) && said.is_empty() == said_of.is_empty(), "{text}: {said}");
        }
    }

    #[test]
    fn tokens_are_read_when_it_is_put_in_force() {
        let (conf, _) = of_text("events {} http { dashboard_token env:WEIR_NO_SUCH; server { listen 1; location /w/ { dashboard; } } }");
        let conf = conf.unwrap();
        assert!(open(&conf).unwrap_err().contains("WEIR_NO_SUCH"));
        assert!(conf.declared.dashboard.watched().is_none());
        let (conf, _) = of_text("events {} http { dashboard_token env:WEIR_NO_SUCH; server { listen 1; } }");
        let conf = conf.unwrap();
        assert!(open(&conf).is_ok() && conf.declared.dashboard.watched().is_none());
        let (conf, _) = of_text("events {} http { server { listen 1; location /w/ { dashboard; } } }");
        let conf = conf.unwrap();
        assert!(open(&conf).is_ok() && conf.declared.dashboard.watched().is_some());
    }

    #[test]
    fn a_history_is_closed_with_the_last_dashboard() {
        let directory = std::env::temp_dir().join(format!("weir-dashboard-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("day").display().to_string();
        let with = format!("events {{}} http {{ dashboard_history {path}; server {{ listen 1; location /w/ {{ dashboard; }} }} }}");
        let (before, _) = of_text(&with);
        let before = before.unwrap();
        assert!(open(&before).is_ok() && before.declared.dashboard.hall().keeps_day());
        let (after, _) = of_text("events {} http { server { listen 1; } }");
        let mut after = after.unwrap();
        after.declared.dashboard.adopt(&before.declared.dashboard);
        assert!(open(&after).is_ok() && !after.declared.dashboard.hall().keeps_day());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
