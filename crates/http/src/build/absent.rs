//! Directives that weir does not have: collected while a file is read, and reported in one message per module.
//!
//! A protocol to the origin counts as a module here. If no location uses that protocol, its directives change
//! nothing, and weir accepts them.

use std::collections::{HashMap, HashSet};

use weir_conf::{At, Problem, Statement, Tree};

use crate::contexts::Contexts;
use crate::nginx_only::{Entry, Origin};
use crate::refusal::Refusal;

/// A protocol to the origin, as the names of its directives show it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Protocol {
    /// The beginning of the name of each of its directives.
    prefix: &'static str,
    /// The directive that makes a location use the protocol.
    pass: &'static str,
    /// Its name in messages.
    shown: &'static str,
}

/// The protocols in which nginx passes requests to an origin.
static PROTOCOLS: [Protocol; 7] = [
    Protocol { prefix: "fastcgi_", pass: "fastcgi_pass", shown: "FastCGI" },
    Protocol { prefix: "uwsgi_", pass: "uwsgi_pass", shown: "uwsgi" },
    Protocol { prefix: "scgi_", pass: "scgi_pass", shown: "SCGI" },
    Protocol { prefix: "memcached_", pass: "memcached_pass", shown: "memcached" },
    Protocol { prefix: "grpc_", pass: "grpc_pass", shown: "gRPC" },
    Protocol { prefix: "proxy_", pass: "proxy_pass", shown: "proxy" },
    Protocol { prefix: "tunnel_", pass: "tunnel_pass", shown: "tunnel" },
];

/// Modules whose directives have little to do with one another.
const MIXED: [&str; 4] = ["nginx", "ngx_http_core_module", "ngx_stream_core_module", "ngx_mail_core_module"];

/// Remedies named in one message; a module seldom has more than two.
const REMEDIES_MAX: usize = 6;

/// The directives that one message covers.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Subject {
    /// All directives of a protocol that a location uses.
    Spoken(&'static Protocol),
    /// All directives of a protocol that no location uses: they have no effect.
    Unspoken(&'static Protocol),
    /// All directives of a module.
    Module(&'static str),
    /// The NGINX Plus directives that share a remedy.
    Plus(&'static str),
    /// One directive by name: of a mixed module, or of no known module.
    Name(String),
}

/// Directives reported together.
struct Group {
    subject: Subject,
    /// The first problem: nginx's words, its place, and the remedy.
    first: Problem,
    /// All places, the first included, in reading order.
    places: Vec<At>,
    /// The remedies, each with the first directive it applies to.
    remedies: Vec<(String, String)>,
}

/// The directives that weir does not have, found so far in the file.
#[derive(Default)]
pub(super) struct Absent {
    groups: Vec<Group>,
    numbers: HashMap<Subject, usize>,
    /// The protocols that some location of the file uses.
    spoken: HashSet<&'static str>,
}

impl Absent {
    /// No directive found yet; `statements` are those of the whole file.
    pub(super) fn of(statements: &[Statement]) -> Absent {
        let mut absent = Absent::default();
        absent.look_for_passes(statements);
        absent
    }

    /// Notes which protocols the file uses. The recursion is bounded: the reader of files limits the nesting of blocks.
    fn look_for_passes(&mut self, statements: &[Statement]) {
        for statement in statements {
            let name = statement.name.text.as_str();
            if let Some(protocol) = PROTOCOLS.iter().find(|protocol| protocol.pass == name) {
                self.spoken.insert(protocol.pass);
            }
            // `stream` and `mail` have their own proxies.
            if name != "stream" && name != "mail" {
                self.look_for_passes(statement.children());
            }
        }
    }

    /// Notes a directive of nginx or of a module for nginx. `Ok(false)`: weir refuses it. `Ok(true)`: weir accepts it
    /// without effect. An error: nginx would refuse it too.
    pub(super) fn note(
        &mut self,
        entry: &'static Entry,
        statement: &Statement,
        context: Contexts,
    ) -> Result<bool, Refusal> {
        let name = entry.name;
        let protocol = PROTOCOLS.iter().find(|protocol| name.starts_with(protocol.prefix));
        let unspoken = protocol.filter(|protocol| !self.spoken.contains(protocol.pass));
        if let Some(protocol) = unspoken.filter(|_| entry.origin() != Origin::SeparateModule) {
            check(entry, statement, context)?;
            let what = format!(
                "the \"{}*\" directives have no effect: no location has \"{}\"",
                protocol.prefix, protocol.pass
            );
            self.add(
                Subject::Unspoken(protocol),
                Problem::warn(what, statement.at),
                statement,
                "you may keep the lines",
            );
            return Ok(true);
        }
        let module = entry.modules.split(", ").next().unwrap_or_default();
        let subject = match (protocol, entry.origin()) {
            (Some(protocol), _) => Subject::Spoken(protocol),
            (None, Origin::Commercial) => Subject::Plus(entry.remedy()),
            (None, Origin::Nginx | Origin::SeparateModule) if !MIXED.contains(&module) => Subject::Module(module),
            (None, Origin::Nginx | Origin::SeparateModule | Origin::Removed) => Subject::Name(name.to_owned()),
        };
        let what = format!("\"{name}\" is an nginx directive that weir does not have");
        self.add(subject, Problem::emerg(what, statement.at), statement, entry.remedy());
        Ok(false)
    }

    /// Notes a directive that neither weir nor nginx has; `todo` suggests a similar name, if there is one.
    pub(super) fn note_unknown(&mut self, statement: &Statement, todo: &str) {
        let name = &statement.name.text;
        let problem = Problem::emerg(format!("unknown directive \"{name}\""), statement.at);
        self.add(Subject::Name(name.clone()), problem, statement, todo);
    }

    fn add(&mut self, subject: Subject, problem: Problem, statement: &Statement, remedy: &str) {
        let number = *self.numbers.entry(subject.clone()).or_insert(self.groups.len());
        if number == self.groups.len() {
            self.groups.push(Group { subject, first: problem, places: Vec::new(), remedies: Vec::new() });
        }
        let Some(group) = self.groups.get_mut(number) else { return };
        group.places.push(statement.at);
        if !remedy.is_empty() && !group.remedies.iter().any(|(_, known)| known == remedy) {
            group.remedies.push((statement.name.text.clone(), remedy.to_owned()));
        }
    }

    /// One problem for each subject.
    pub(super) fn told(self, tree: &Tree) -> impl Iterator<Item = Problem> {
        self.groups.into_iter().map(|group| group.told(tree))
    }
}

/// nginx's errors for a directive that weir accepts without effect.
fn check(entry: &Entry, statement: &Statement, context: Contexts) -> Result<(), Refusal> {
    let name = entry.name;
    if !entry.is_allowed_in(&context.to_string()) {
        return Err(Refusal::whole(format!("\"{name}\" directive is not allowed here"))
            .todo(format!("the directive belongs in: {}", entry.contexts)));
    }
    if statement.is_block() {
        return Err(Refusal::whole(format!("directive \"{name}\" is not terminated by \";\"")));
    }
    if statement.args.is_empty() {
        return Err(Refusal::whole(format!("invalid number of arguments in \"{name}\" directive")));
    }
    Ok(())
}

impl Group {
    fn told(self, tree: &Tree) -> Problem {
        // A file that is included twice gives each place twice.
        let mut known = HashSet::new();
        let places: Vec<At> = self.places.into_iter().filter(|at| known.insert(*at)).collect();
        let (count, also) = (places.len(), places.get(1..).unwrap_or_default().to_vec());
        let mut problem = self.first;
        if !also.is_empty() {
            let files: HashSet<u32> = places.iter().map(|at| at.file).collect();
            let files = match files.len() {
                1 => String::new(),
                files => format!(" in {files} files"),
            };
            let label = self.subject.label();
            problem = problem
                .todo(&format!("{label}: {count} directives{files}, also in {}", weir_conf::places(&also, tree)));
        }
        match self.remedies.as_slice() {
            [(_, only)] => problem = problem.todo(only),
            several => {
                for (name, remedy) in several.iter().take(REMEDIES_MAX) {
                    problem = problem.todo(&format!("{name}: {remedy}"));
                }
            }
        }
        Problem { also, ..problem }
    }
}

impl Subject {
    /// Its name in messages.
    fn label(&self) -> String {
        match self {
            Subject::Spoken(protocol) | Subject::Unspoken(protocol) => protocol.shown.to_owned(),
            Subject::Module(module) => {
                let short = module.strip_prefix("separate module ").unwrap_or(module);
                let short = short.strip_prefix("ngx_http_").or(short.strip_prefix("ngx_")).unwrap_or(short);
                let short = short.strip_suffix("_module").unwrap_or(short);
                short.strip_suffix("_filter").unwrap_or(short).to_owned()
            }
            Subject::Plus(_) => "NGINX Plus".to_owned(),
            Subject::Name(name) => name.clone(),
        }
    }
}
