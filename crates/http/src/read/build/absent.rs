//! Directives that weir does not have: collected while a file is read, and reported in one message per module.

use std::collections::{HashMap, HashSet};

use weir_conf::{At, Problem, Statement, Tree};

use crate::read::nginx_only::{DirectiveOrigin, NginxDirective};

/// Modules whose directives have little to do with one another.
const MIXED: [&str; 4] = ["nginx", "ngx_http_core_module", "ngx_stream_core_module", "ngx_mail_core_module"];

/// Remedies named in one message; a module seldom has more than two.
const REMEDIES_MAX: usize = 6;

/// The directives that one message covers.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Subject {
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
}

impl Absent {
    /// Notes a directive of nginx or of a module for nginx.
    pub(super) fn note(&mut self, entry: &'static NginxDirective, statement: &Statement) {
        let name = entry.name;
        let module = entry.modules.split(", ").next().unwrap_or_default();
        let subject = match entry.origin() {
            DirectiveOrigin::Commercial => Subject::Plus(entry.remedy()),
            DirectiveOrigin::Nginx | DirectiveOrigin::SeparateModule if !MIXED.contains(&module) => {
                Subject::Module(module)
            }
            DirectiveOrigin::Nginx | DirectiveOrigin::SeparateModule | DirectiveOrigin::Removed => {
                Subject::Name(name.to_owned())
            }
        };
        let problem = match entry.origin() {
            // Today's nginx does not know it either, and says so in these words.
            DirectiveOrigin::Removed => Problem::emerg(format!("unknown directive \"{name}\""), statement.at),
            _ => Problem::emerg(format!("\"{name}\" is an nginx directive that weir does not have"), statement.at)
                .weirs_own(),
        };
        self.add(subject, problem, statement, entry.remedy());
    }

    /// Notes a directive that neither weir nor nginx has; `todo` suggests a similar name, if there is one.
    pub(super) fn note_unknown(&mut self, statement: &Statement, todo: &str) {
        let name = &statement.name.text;
        // A module of that nginx may have it.
        let problem = Problem::emerg(format!("unknown directive \"{name}\""), statement.at).weirs_own();
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
