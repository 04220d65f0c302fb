//! The state while weir reads a configuration: a stack of blocks, and the declarations so far.
//!
//! Families write into the innermost block through `Build`. This module makes no system call; a function that the
//! caller passes resolves names. weir collects every problem in the file, not only the first.

mod absent;
mod lost;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_conf::{At, Problem, Span, Statement, Tree};

use self::absent::Absent;
use self::lost::LostNames;
use crate::exchange::{Enter, Get};
use crate::family::{Declared, Settings};
use crate::hold::above;
use crate::hold::paths::Paths;
use crate::hold::reach::{Beginning, Reach};
use crate::read::directive::{self, Contexts, Directive};
use crate::read::known::Known;
use crate::read::nginx_only;
use crate::text::refusal::{Need, Refusal};
use crate::text::regex::Regex;
use crate::text::template::{Mentions, Names, Template};

/// Turns `host` into addresses while a configuration is read (port 0 in the result is filled in by the caller).
pub type Resolve<'r> = &'r dyn Fn(&str) -> Result<Vec<SocketAddr>, String>;

/// The kind of a block, with the data that only this kind has.
pub enum Kind {
    /// The top level, `events` and `http`.
    Plain,
    /// `server { }`.
    Server(crate::read::listens::Draft),
    /// `location { }`, how it is matched.
    Location(crate::exchange::route::Pattern),
    /// `if { }`; its condition is in the rules of the block around it.
    If,
    /// `limit_except { }`: the methods it leaves alone.
    LimitExcept(crate::exchange::route::Methods),
    /// A server of a crate above, with the data that only this crate knows.
    Other(Box<dyn std::any::Any>),
}

/// One block while it is being read.
pub struct Scope {
    /// The kind of the block.
    pub kind: Kind,
    /// The bit for checking where a directive may stand.
    pub context: Contexts,
    /// The settings written in it.
    pub settings: Settings,
    /// The settings written in it, of crates above.
    pub above: above::Settings,
    /// Its rewrite rules, in order.
    pub rules: Vec<crate::exchange::conf::Rule>,
    /// The handler that answers here, if a directive sets one.
    pub handler: Option<Enter>,
    /// The handler asks an origin. A URI that lacks only the slash at the end of the block's name is then redirected
    /// (nginx: `auto_redirect`).
    pub asks_origin: bool,
    /// A `limit_except` in the block has the same handler.
    pub answers_limit_except: bool,
    /// The inner blocks that become places of their own: servers, locations, `if`s, `limit_except`.
    pub children: Vec<Scope>,
    /// The place where the block opens.
    pub at: At,
    written: Rc<Written>,
    seen: Vec<&'static str>,
}

impl Scope {
    /// An empty block.
    pub fn new(kind: Kind, context: Contexts, at: At) -> Scope {
        Scope {
            kind,
            context,
            settings: Settings::default(),
            above: above::Settings::default(),
            rules: Vec::new(),
            handler: None,
            asks_origin: false,
            answers_limit_except: false,
            children: Vec::new(),
            at,
            written: Rc::default(),
            seen: Vec::new(),
        }
    }

    /// Takes over from the block around it the settings that this block does not set.
    pub fn inherit(&mut self, outer: &Scope) {
        self.settings.inherit(&outer.settings);
        self.above.inherit(&outer.above);
        Rc::make_mut(&mut self.written).around = Some(outer.written.clone());
    }

    /// Lets a handler answer here that asks an origin.
    pub fn pass(&mut self, handler: Enter) {
        self.handler = Some(handler);
        (self.asks_origin, self.answers_limit_except) = (true, true);
    }

    /// Notes a statement without a block.
    pub fn note(&mut self, directive: &'static str, at: At) {
        Rc::make_mut(&mut self.written).own.push((directive, at));
    }

    /// Whether this block takes over the statement at `at` of the block around it.
    pub fn inherits(&self, at: At) -> bool {
        let around = self.written.around.iter().flat_map(|around| &around.own);
        let directive = around.filter(|(_, place)| *place == at).map(|(name, _)| *name).next();
        directive.is_some_and(|directive| self.written.own.iter().all(|(name, _)| *name != directive))
    }

    /// The place of the statement of this directive with this number, counted from 0; the block's own place if there
    /// is none. A block that has no such statement inherits those of the blocks around it.
    pub fn place(&self, directive: &str, number: usize) -> At {
        let mut written = Some(&self.written);
        while let Some(here) = written {
            let mut places = here.own.iter().filter(|(name, _)| *name == directive).peekable();
            if places.peek().is_some() {
                return places.nth(number).map_or(self.at, |(_, at)| *at);
            }
            written = here.around.as_ref();
        }
        self.at
    }
}

/// The statements of a block, in order, and those of the blocks around it. The blocks inside share it: a file may have
/// thousands of them.
#[derive(Clone, Default)]
struct Written {
    own: Vec<(&'static str, At)>,
    around: Option<Rc<Written>>,
}

/// The configuration being read.
pub struct Build<'r> {
    /// Where relative names point to.
    pub paths: Paths,
    /// Declarations for the whole of `http`.
    pub declared: Declared,
    /// Declarations of crates above.
    pub above: above::Declared,
    /// The directives and variables that weir has.
    pub known: &'static Known,
    /// The variables that the file mentions.
    pub names: Names<Get>,
    /// The variables that `stream` mentions; `None` if the file has no such block, or before it.
    pub session_names: Option<Box<dyn Mentions>>,
    /// Variables that nothing defines, besides those of `names`.
    pub unknown: Vec<Unknown>,
    /// The problems found in the file.
    pub problems: Vec<Problem>,
    /// Host names to addresses.
    pub resolve: Resolve<'r>,
    /// The files and directories that the server uses while it serves. Files that are read with the configuration are not
    /// among them.
    pub reach: Reach,
    scopes: Vec<Scope>,
    at: At,
    /// The directives without effect found so far.
    idle: Vec<&'static str>,
    /// The directives that weir does not have.
    absent: Absent,
    /// The names that refused statements would have declared.
    lost: LostNames,
    /// The statements whose blocks are being read, without the statements inside.
    open: Vec<Statement>,
    /// `pcre_jit`: patterns become machine code. False for a configuration that is only checked.
    pub jit: bool,
    /// A directive needs `CAP_NET_RAW` in the workers.
    pub keeps_raw: bool,
    /// How many more unknown names are compared with all known ones.
    compared_left: usize,
}

/// Most unknown names for which weir searches a similar one: the search takes long, and a file with more of them is another kind
/// of file.
pub const COMPARED_MAX: usize = 200;

/// Blocks inside blocks may not go deeper than this (nginx recurses without a limit).
pub const DEPTH_MAX: usize = 64;

impl<'r> Build<'r> {
    /// An empty configuration.
    pub fn new(paths: Paths, resolve: Resolve<'r>, known: &'static Known, above: above::Declared) -> Build<'r> {
        Build {
            paths,
            declared: Declared::default(),
            above,
            known,
            names: Names::default(),
            session_names: None,
            unknown: Vec::new(),
            problems: Vec::new(),
            resolve,
            reach: Reach::default(),
            scopes: vec![Scope::new(Kind::Plain, directive::MAIN, At::default())],
            at: At::default(),
            idle: Vec::new(),
            absent: Absent::default(),
            lost: LostNames::new(|name| known.has(name)),
            open: Vec::new(),
            jit: true,
            keeps_raw: false,
            compared_left: COMPARED_MAX,
        }
    }

    /// Reads the statements of a whole file; returns the outermost block.
    pub fn read(mut self, statements: &[Statement]) -> (Self, Scope) {
        // nginx: `pcre_jit` holds for the whole file, wherever it stands.
        self.jit &=
            !statements.iter().any(|s| s.name.text == "pcre_jit" && s.args.iter().any(|word| word.text == "off"));
        self.apply_all(statements);
        let root = self.scopes.pop().unwrap_or_else(|| Scope::new(Kind::Plain, directive::MAIN, At::default()));
        (self, root)
    }

    /// Reads a block's statements into `scope` and returns it.
    pub fn block(&mut self, scope: Scope, statement: &Statement) -> Result<Scope, Refusal> {
        if self.scopes.len() >= DEPTH_MAX {
            return Err(Refusal::whole(format!("more than {DEPTH_MAX} nested blocks")).weirs_own());
        }
        let opened = self.at;
        self.scopes.push(scope);
        self.open.push(head_of(statement));
        self.apply_all(statement.block.as_deref().unwrap_or_default());
        self.open.pop();
        self.stand(opened);
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

    /// Lets the server around the innermost block take requests with the method CONNECT.
    pub fn answer_connect(&mut self) {
        for scope in &mut self.scopes {
            if let Kind::Server(draft) = &mut scope.kind {
                draft.answers_connect = true;
            }
        }
    }

    /// The settings of the innermost block.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.scope().settings
    }

    /// The place of the statement being read.
    pub fn at(&self) -> At {
        self.at
    }

    /// Sets the place of the problems that follow.
    pub fn stand(&mut self, at: At) {
        self.at = at;
        self.names.here = at;
        if let Some(names) = &mut self.session_names {
            names.stand(at);
        }
    }

    /// Whether this is the first such statement of the whole file, for a warning that would repeat.
    pub fn first_in_file(&mut self, name: &'static str) -> bool {
        let is_first = !self.idle.contains(&name);
        if is_first {
            self.idle.push(name);
        }
        is_first
    }

    /// Notes that this block contains `name`; `false` if `name` was noted before.
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
        let jit = self.jit;
        let names = self.mentions();
        Regex::new(pattern, caseless, jit, |group| names.define_slot(group))
    }

    /// Whether a block of `stream` is being read: its variables are those of sessions.
    pub fn is_in_stream(&self) -> bool {
        self.context().meets(directive::ALL_OF_STREAM)
    }

    /// The variables of the block being read: those of exchanges, or in `stream` those of sessions.
    pub fn mentions(&mut self) -> &mut dyn Mentions {
        match (self.is_in_stream(), &mut self.session_names) {
            (true, Some(names)) => names.as_mut(),
            _ => &mut self.names,
        }
    }

    /// Compiles a text with variables.
    pub fn template(&mut self, text: &str) -> Result<Template, Refusal> {
        Template::compile(text, self.mentions())
    }

    /// Compiles a text of a directive that nginx compiles in each server that inherits it. In `http`, an unknown variable counts only
    /// if a server does so.
    pub fn inherited_template(&mut self, text: &str) -> Result<Template, Refusal> {
        self.names.is_inherited = self.context() == directive::HTTP;
        let template = self.template(text);
        self.names.is_inherited = false;
        template
    }

    /// A name relative to the prefix, as logs and roots are.
    pub fn path(&self, name: &str) -> String {
        if name.starts_with('/') { name.to_owned() } else { format!("{}{name}", self.paths.prefix) }
    }

    /// Keeps a refusal as a problem of the statement being read.
    pub fn refuse(&mut self, name: &str, refusal: Refusal) {
        let at = self.at;
        self.refuse_at(name, refusal, at);
    }

    /// Keeps a refusal as a problem of a block after it was read: its place is the statement that the refusal names,
    /// or the start of the block.
    pub fn refuse_in(&mut self, scope: &Scope, name: &str, refusal: Refusal) {
        let at = refusal.place.map_or(scope.at, |(directive, number)| scope.place(directive, number));
        self.refuse_at(name, refusal, at);
    }

    /// Keeps a refusal as a problem at some place.
    pub fn refuse_at(&mut self, name: &str, refusal: Refusal, at: At) {
        let what =
            if refusal.about_directive { format!("\"{name}\" directive {}", refusal.what) } else { refusal.what };
        let problem = Problem { todo: refusal.todo, is_weirs_own: refusal.is_weirs_own, ..Problem::emerg(what, at) };
        match refusal.need {
            Some(need) => self.lost.wait(*need, problem),
            None => self.problems.push(problem),
        }
    }

    /// Refuses the values of a block at a place, unless weir has refused it there: a block around this one may have the same values.
    pub fn refuse_once(&mut self, name: &str, refusal: Refusal, at: At) {
        let is_same = |problem: &Problem| problem.at == Some(at) && matches!(problem.level, weir_conf::Level::Emerg);
        if !self.problems.iter().any(is_same) {
            self.refuse_at(name, refusal, at);
        }
    }

    /// Whether a refused statement would have declared this name; see [`Refusal::needs`].
    pub fn has_lost(&self, directive: &str, name: &str) -> bool {
        self.lost.gives(&Need::new(directive, name))
    }

    /// Notes that the declaration of this block is incomplete, though the block was read.
    pub fn lose(&mut self, statement: &Statement) {
        self.lost.note_head(statement);
    }

    /// All problems, once the whole file is read. Leaves out a problem that only follows from another one, and a
    /// duplicate at the same statement. `unknown` are the variables that nothing defines.
    pub fn settle(&mut self, unknown: Vec<Unknown>, tree: &Tree) -> Vec<Problem> {
        if tree.is_partial {
            self.lost.lose_all();
        }
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(std::mem::take(&mut self.absent).told(tree));
        problems.extend(self.lost.settled());
        let all = unknown.into_iter().chain(std::mem::take(&mut self.unknown));
        let own = all.filter(|unknown| !self.lost.gives_variable(&unknown.name));
        problems.extend(own.map(|unknown| unknown.problem(tree)));
        // An inner block inherits the problems of the block around it.
        let mut told = HashSet::new();
        problems.retain(|problem| told.insert((problem.what.clone(), problem.at)));
        problems
    }

    /// Keeps a warning at the statement being read.
    pub fn warn(&mut self, what: impl Into<String>, todo: Option<String>) {
        self.problems.push(Problem { todo, ..Problem::warn(what.into(), self.at) });
    }

    /// Warns that the statement being read lets the server process open every file for `what` ("reading" or "writing"): its name
    /// begins with a variable, or it is the root of the file system.
    pub fn opens_all(&mut self, what: &str) {
        self.warn(
            format!("this name may be any file: the server process may open the whole file system for {what}"),
            Some("begin the name with a directory".to_owned()),
        );
    }

    /// Notes, once the file is read, that the server writes below a directory with such a name, which the statement at `at` sets.
    pub fn writes_under(&mut self, directory: Beginning<'_>, at: At) {
        if self.reach.write_under(directory, &self.paths.prefix) {
            self.stand(at);
            self.opens_all("writing");
        }
    }

    /// Warns, once per configuration, that a directive has no effect.
    pub fn warn_idle(&mut self, directive: &'static Directive) {
        if !self.idle.contains(&directive.name) {
            self.idle.push(directive.name);
            self.warn(format!("the \"{}\" directive has no effect", directive.name), Some(directive.doc.to_owned()));
        }
    }

    fn apply_all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.stand(statement.at);
            if let Err(refusal) = self.apply(statement) {
                self.stand(statement.at);
                self.note_refused(statement);
                self.refuse(&statement.name.text, refusal);
            }
        }
    }

    fn apply(&mut self, statement: &Statement) -> Result<(), Refusal> {
        let (name, context) = (statement.name.text.as_str(), self.context());
        if let Some(directive) = self.known.directive(name, context)
            && !self.is_only_in_http(directive)
        {
            return directive::apply(self, directive, statement);
        }
        match nginx_only::lookup(name) {
            Some(entry) => self.absent.note(entry, statement),
            None => {
                let left = self.compared_left.checked_sub(1);
                let meant = left.map_or(String::new(), |_| self.known.meant(name, context));
                self.compared_left = left.unwrap_or(0);
                self.absent.note_unknown(statement, &meant);
            }
        }
        self.note_refused(statement);
        Ok(())
    }

    /// Whether nginx has this directive also in the block of `stream` that is being read, and weir does not.
    fn is_only_in_http(&self, directive: &Directive) -> bool {
        let context = self.context();
        let here = || nginx_only::lookup(directive.name).is_some_and(|entry| entry.is_allowed_in(&context.to_string()));
        self.is_in_stream() && !directive.contexts.meets(context) && here()
    }

    /// Notes the names that a refused statement would have declared, and that the blocks around it are incomplete.
    fn note_refused(&mut self, statement: &Statement) {
        self.lost.note(statement);
        for open in &self.open {
            self.lost.note_head(open);
        }
    }
}

impl Build<'_> {
    /// A variable that the statement at `at` reads and that nothing defines, with the nearest known name.
    pub fn unknown(&self, name: String, at: At) -> Unknown {
        let built_in = self.known.variables().map(|variable| variable.name);
        let known = built_in.filter(|name| !name.ends_with('_')).chain(self.names.defined());
        let meant = weir_conf::did_you_mean(&name, known).map(str::to_owned);
        Unknown { name, at, meant }
    }
}

/// A statement without its block.
fn head_of(statement: &Statement) -> Statement {
    Statement {
        name: statement.name.clone(),
        args: statement.args.clone(),
        block: None,
        at: statement.at,
        end: statement.end,
    }
}

/// A variable that a statement reads and that nothing defines.
pub struct Unknown {
    /// Its name, lower case.
    pub name: String,
    /// The statement that reads it first.
    pub at: At,
    /// A similar known name.
    pub meant: Option<String>,
}

impl Unknown {
    fn problem(self, tree: &Tree) -> Problem {
        let Unknown { name, at, meant } = self;
        let problem = Problem::emerg(format!("unknown \"{name}\" variable"), narrowed(at, &name, tree));
        match (nginx_only::variable_module(&name), meant) {
            (Some(module), _) => problem
                .weirs_own()
                .todo(&format!("this variable belongs to nginx's {module}, which weir does not have")),
            (None, Some(meant)) => problem.todo(&format!("did you mean \"{meant}\"?")),
            (None, None) => problem,
        }
    }
}

/// The place of `$name` or `${name}` in a statement, if its text has it.
fn narrowed(at: At, name: &str, tree: &Tree) -> At {
    let text = tree.bytes(&at).to_ascii_lowercase();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    for (start, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'$') {
        let rest = text.get(start + 1..).unwrap_or_default();
        let (braces, bare) = rest.strip_prefix(b"{").map_or((0, rest), |bare| (2, bare));
        let length = bare.iter().take_while(|byte| is_name(byte)).count();
        if bare.get(..length) == Some(name.as_bytes()) {
            let start = at.span.start + start as u32;
            let span = Span { start, end: start + (1 + braces + length) as u32 };
            return At { span, ..at };
        }
    }
    at
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
            let (paths, families) = (Paths::default(), crate::families());
            let build = Build::new(paths, &|_| Ok(Vec::new()), &families.known, families.declared());
            let (build, _) = build.read(&tree.root);
            assert_eq!(build.jit, jit, "{text}");
        }
    }

    #[test]
    fn a_variable_is_pointed_at_by_its_whole_name() {
        for (text, shown) in [
            ("return 200 \"$hostname ${host}x\";", "${host}"),
            ("return 200 $hosts$HOST;", "$HOST"),
            ("return 200 $;", "return 200 $"),
        ] {
            let files = weir_conf::MemoryFiles::new().with("/nginx.conf", text);
            let (tree, _) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
            let at = narrowed(tree.root[0].at, "host", &tree);
            assert_eq!(tree.bytes(&at), shown.as_bytes(), "{text}");
        }
    }
}
