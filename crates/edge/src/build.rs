//! The configuration while it is being read: a stack of blocks, and what the file declared so far.
//!
//! Families write into the innermost block through `Build`. Nothing here touches the OS; names are
//! resolved by a function passed in. Every problem of the file is kept, not only the first.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use weir_conf::{At, Level, Problem, Statement};

use crate::directive::{self, Contexts, Directive, Refusal};
use crate::family::{Declared, FAMILIES, Settings};
use crate::nginx_only;
use crate::phase::Enter;
use crate::regex::Regex;
use crate::variable::{Definition, Names, Template, Variable};

/// Where relative names in a file point to.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// `-p`, with a final slash: logs, pid, roots.
    pub prefix: String,
    /// The directory of the main file, with a final slash: includes, certificates, password files.
    pub conf_prefix: String,
    /// The access log of a server that names none; `None` is `logs/access.log` under the prefix.
    pub access_log: Option<String>,
    /// Where directories of temporary files are that no directive names, with a final slash; `None` is the prefix.
    pub temporary: Option<String>,
}

impl Paths {
    /// A directory for temporary files: as written, or `default` where such directories are.
    pub fn temporary(&self, written: Option<&str>, default: &str) -> String {
        match written {
            Some(written) => written.to_owned(),
            None => format!("{}{default}", self.temporary.as_ref().unwrap_or(&self.prefix)),
        }
    }
}

/// Turns `host` into addresses while a configuration is read (port 0 in the result is filled in by the caller).
pub type Resolve<'r> = &'r dyn Fn(&str) -> Result<Vec<SocketAddr>, String>;

/// What kind of block a scope is, and what only that kind has.
pub enum Kind {
    /// The top level, `events` and `http`.
    Plain,
    /// `server { }`.
    Server(crate::family::server::Draft),
    /// `location { }`, how it is matched.
    Location(crate::family::location::Pattern),
    /// `if { }`; its condition stands in the rules of the block around it.
    If,
    /// `limit_except { }`: the methods it leaves alone.
    LimitExcept(crate::family::location::Methods),
}

/// One block while it is being read.
pub struct Scope {
    /// What kind of block.
    pub kind: Kind,
    /// The bit directives are checked against.
    pub context: Contexts,
    /// What was set in it.
    pub settings: Settings,
    /// Its rewrite rules, in order.
    pub rules: Vec<crate::family::rewrite::Rule>,
    /// What answers here, if a directive named it.
    pub handler: Option<Enter>,
    /// The blocks in it that make a place of their own: servers, locations, `if`s, `limit_except`.
    pub children: Vec<Scope>,
    /// Where it opens.
    pub at: At,
    seen: Vec<&'static str>,
}

impl Scope {
    /// An empty block.
    pub fn new(kind: Kind, context: Contexts, at: At) -> Scope {
        Scope {
            kind,
            context,
            settings: Settings::default(),
            rules: Vec::new(),
            handler: None,
            children: Vec::new(),
            at,
            seen: Vec::new(),
        }
    }
}

/// The configuration being read.
pub struct Build<'r> {
    /// Where relative names point to.
    pub paths: Paths,
    /// What the file declared for the whole of `http`.
    pub declared: Declared,
    /// The variables it mentions.
    pub names: Names,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// Host names to addresses.
    pub resolve: Resolve<'r>,
    scopes: Vec<Scope>,
    at: At,
    /// The directives without effect met so far.
    idle: Vec<&'static str>,
    /// `pcre_jit`: patterns become machine code.
    pub jit: bool,
}

/// Blocks inside blocks may not go deeper than this (nginx recurses without a limit).
pub const DEPTH_MAX: usize = 64;

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Directive>>> = LazyLock::new(|| {
    let mut map: HashMap<&'static str, Vec<&'static Directive>> = HashMap::new();
    for directive in FAMILIES.iter().flat_map(|family| family.directives) {
        map.entry(directive.name).or_default().push(directive);
    }
    map
});

impl<'r> Build<'r> {
    /// An empty configuration.
    pub fn new(paths: Paths, resolve: Resolve<'r>) -> Build<'r> {
        Build {
            paths,
            declared: Declared::default(),
            names: Names::default(),
            problems: Vec::new(),
            resolve,
            scopes: vec![Scope::new(Kind::Plain, directive::MAIN, At::default())],
            at: At::default(),
            idle: Vec::new(),
            jit: true,
        }
    }

    /// Reads the statements of a whole file; the outermost block comes back.
    pub fn read(mut self, statements: &[Statement]) -> (Self, Scope) {
        // nginx: `pcre_jit` holds for the whole file, wherever it stands.
        self.jit =
            !statements.iter().any(|s| s.name.text == "pcre_jit" && s.args.iter().any(|word| word.text == "off"));
        self.apply_all(statements);
        let root = self.scopes.pop().unwrap_or_else(|| Scope::new(Kind::Plain, directive::MAIN, At::default()));
        (self, root)
    }

    /// Reads a block's statements into `scope` and gives it back.
    pub fn block(&mut self, scope: Scope, statement: &Statement) -> Result<Scope, Refusal> {
        if self.scopes.len() >= DEPTH_MAX {
            return Err(Refusal::whole(format!("more than {DEPTH_MAX} nested blocks")));
        }
        let opened = self.at;
        self.scopes.push(scope);
        self.apply_all(statement.block.as_deref().unwrap_or_default());
        self.at = opened;
        match self.scopes.pop() {
            Some(scope) => Ok(scope),
            None => Err(Refusal::whole("unbalanced blocks")),
        }
    }

    /// The kind of the innermost block.
    pub fn context(&self) -> Contexts {
        self.scopes.last().map_or(directive::MAIN, |scope| scope.context)
    }

    /// The innermost block.
    pub fn scope(&mut self) -> &mut Scope {
        let at = self.at;
        if self.scopes.is_empty() {
            self.scopes.push(Scope::new(Kind::Plain, directive::MAIN, at));
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The blocks around the innermost one, outermost first, itself included.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The settings of the innermost block.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.scope().settings
    }

    /// Where the statement being read stands.
    pub fn at(&self) -> At {
        self.at
    }

    /// Notes that `name` was written in this block; `false` when it was before.
    pub fn first_time(&mut self, name: &'static str) -> bool {
        let seen = &mut self.scope().seen;
        if seen.contains(&name) {
            return false;
        }
        seen.push(name);
        true
    }

    /// Compiles a pattern whose named groups become variables.
    pub fn regex(&mut self, pattern: &str, caseless: bool) -> Result<Regex, String> {
        let names = &mut self.names;
        Regex::new(pattern, caseless, self.jit, |group| names.define_slot(group))
    }

    /// Compiles a text with variables.
    pub fn template(&mut self, text: &str) -> Result<Template, Refusal> {
        Template::compile(text, &mut self.names)
    }

    /// A name relative to the prefix, as logs and roots are.
    pub fn path(&self, name: &str) -> String {
        if name.starts_with('/') { name.to_owned() } else { format!("{}{name}", self.paths.prefix) }
    }

    /// Keeps a refusal as a problem at the statement being read.
    pub fn refuse(&mut self, name: &str, refusal: Refusal) {
        let at = self.at;
        self.refuse_at(name, refusal, Some(at));
    }

    /// Keeps a refusal as a problem at some place, or at none.
    pub fn refuse_at(&mut self, name: &str, refusal: Refusal, at: Option<At>) {
        let what =
            if refusal.about_directive { format!("\"{name}\" directive {}", refusal.what) } else { refusal.what };
        self.problems.push(Problem { level: Level::Emerg, what, at, todo: refusal.todo });
    }

    /// Keeps a warning at the statement being read.
    pub fn warn(&mut self, what: impl Into<String>, todo: Option<String>) {
        self.problems.push(Problem { level: Level::Warn, what: what.into(), at: Some(self.at), todo });
    }

    /// Says, once in a configuration, that a directive has no effect.
    pub(crate) fn warn_idle(&mut self, directive: &'static Directive) {
        if !self.idle.contains(&directive.name) {
            self.idle.push(directive.name);
            self.warn(format!("the \"{}\" directive has no effect", directive.name), Some(directive.doc.to_owned()));
        }
    }

    fn apply_all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.at = statement.at;
            if let Err(refusal) = self.apply(statement) {
                self.at = statement.at;
                self.refuse(&statement.name.text, refusal);
            }
        }
    }

    fn apply(&mut self, statement: &Statement) -> Result<(), Refusal> {
        let name = statement.name.text.as_str();
        match directive(name, self.context()) {
            Some(directive) => directive::apply(self, directive, statement),
            None => Err(unknown(name, self.context())),
        }
    }
}

/// The directive of this name: the one that may stand in such a block, or else the first of those that may not.
pub(crate) fn directive(name: &str, context: Contexts) -> Option<&'static Directive> {
    let candidates = BY_NAME.get(name)?;
    let fitting = candidates.iter().find(|directive| directive.contexts.meets(context));
    fitting.or(candidates.first()).copied()
}

/// The two kinds of "no such directive": nginx has it and weir does not, or nobody has it.
fn unknown(name: &str, context: Contexts) -> Refusal {
    if let Some(entry) = nginx_only::lookup(name) {
        return Refusal::whole(format!("\"{name}\" is an nginx directive that weir does not have"))
            .todo(entry.remedy());
    }
    let here = BY_NAME
        .iter()
        .filter(|(_, directives)| directives.iter().any(|directive| directive.contexts.meets(context)))
        .map(|(name, _)| *name);
    let refusal = Refusal::whole(format!("unknown directive \"{name}\""));
    match weir_conf::did_you_mean(name, here) {
        Some(close) => refusal.todo(format!("did you mean \"{close}\"?")),
        None => refusal,
    }
}

/// The row that a family has for a built-in variable, prefixes included.
pub fn variable(name: &str) -> Option<&'static Variable> {
    let all = || FAMILIES.iter().flat_map(|family| family.variables);
    let exact = all().find(|variable| variable.name == name);
    exact.or_else(|| all().find(|v| v.name.ends_with('_') && name.len() > v.name.len() && name.starts_with(v.name)))
}

/// How the families define a built-in variable.
pub fn built_in(name: &str) -> Option<Definition> {
    variable(name).map(|variable| {
        let rest = if variable.name.ends_with('_') { &name[variable.name.len()..] } else { name };
        Definition::Computed(variable.get, crate::variable::Argument { name: rest.to_owned(), index: 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcre_jit_holds_for_the_whole_file() {
        for (text, jit) in [("", true), ("pcre_jit on;", true), ("events { } pcre_jit off;", false)] {
            let files = weir_conf::MemoryFiles::new().with("/nginx.conf", text);
            let (tree, problems) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
            assert_eq!(problems, []);
            let (build, _) = Build::new(Paths::default(), &|_| Ok(Vec::new())).read(&tree.root);
            assert_eq!(build.jit, jit, "{text}");
        }
    }
}
