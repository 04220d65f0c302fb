//! The common part of the tools: a call, its configuration, and the two parts of a tool's result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_conf::{Problem, Tree};
use weir_doctor::guard::without_dots;
use weir_doctor::view::View;
use weir_doctor::{NEWEST, Target, Version};
use weir_words::{Language, Said, say};

use crate::answer::ToolAnswer;
use crate::guard::NamedFiles;
use crate::input::Arguments;
use crate::settings::ServerSettings;
use crate::texts;
use crate::tools::ToolRow;

/// A call, as its tool sees it.
pub struct ToolCall<'c> {
    /// The tool.
    pub row: &'static ToolRow,
    /// The checked arguments.
    pub arguments: &'c Arguments,
    /// The choices of the person.
    pub settings: &'c ServerSettings,
    /// The files that may be read.
    pub guard: NamedFiles,
    /// The directory of this server, for scripts that it made.
    pub room: PathBuf,
    /// The number of the next script.
    pub made: u64,
}

/// The result of the first part.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// The answer, as JSON.
    Answer(Value),
    /// A verb to run.
    Run(VerbRun),
}

/// A verb to run for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbRun {
    /// Its words, without the name of the program.
    pub words: Vec<String>,
    /// Whether it starts a stack and measures it. Only one such run is under way.
    pub is_experiment: bool,
    /// The longest time.
    pub limit: Duration,
}

impl VerbRun {
    /// As JSON, from the child to the server.
    pub fn json(&self) -> Value {
        json!({"words": self.words, "is_experiment": self.is_experiment, "limit_s": self.limit.as_secs()})
    }

    /// The run of [`VerbRun::json`]. `None` for other JSON.
    pub fn of_json(json: &Value) -> Option<VerbRun> {
        let words: Option<Vec<String>> =
            json["words"].as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        let limit = Duration::from_secs(json["limit_s"].as_u64()?);
        Some(VerbRun { words: words?, is_experiment: json["is_experiment"] == true, limit })
    }
}

/// The end of a verb.
#[derive(Clone, Debug, Default)]
pub struct VerbEnd {
    /// Its output as JSON, or the run that the lab stored. `Null`: there is none.
    pub json: Value,
    /// The end of its standard error.
    pub said: String,
}

/// A refusal or a failure.
pub type RefusedCall = Box<ToolAnswer>;

/// The input of the second part of a tool.
pub(super) struct Concluded<'c> {
    pub(super) row: &'static ToolRow,
    pub(super) arguments: &'c Arguments,
    pub(super) settings: &'c ServerSettings,
    pub(super) language: Language,
    /// The verb's JSON.
    pub(super) json: &'c Value,
}

/// A configuration that a call names.
pub(super) struct CalledConf {
    pub(super) tree: Tree,
    /// Problems of its syntax and of its includes, without those of files outside of the directories.
    pub(super) problems: Vec<Problem>,
    /// Number of files outside of the directories that it names.
    pub(super) outside: usize,
}

impl ToolCall<'_> {
    pub(super) fn language(&self) -> Language {
        self.settings.language
    }

    /// An answer of this tool.
    pub(super) fn answer(&self, verdict: &'static str, text: impl Into<Said>) -> ToolAnswer {
        ToolAnswer::new(self.row.name, self.language(), verdict, text.into())
    }

    /// A refusal of this tool.
    pub(super) fn refused(&self, name: &'static str, why: Said, remedy: impl Into<Said>) -> RefusedCall {
        Box::new(ToolAnswer::refused(self.row.name, self.language(), name, why, remedy))
    }

    /// Whether a path lies in the directory of this server. Nothing there is a link.
    pub(super) fn is_private(&self, path: &Path) -> bool {
        without_dots(path).starts_with(&self.room)
    }

    /// The path of a file that an argument names.
    pub(super) fn file(&self, named: &str) -> Result<PathBuf, RefusedCall> {
        self.guard.file(named).map_err(|why| self.refused("file_refused", why, texts::REMEDY_DIR))
    }

    /// The configuration that an argument names.
    pub(super) fn conf(&self, argument: &str) -> Result<CalledConf, RefusedCall> {
        let named = self.arguments.text(argument).unwrap_or_default();
        let path = self.file(named)?;
        let (tree, problems) = self.load(&path)?;
        let all = problems.len();
        let problems: Vec<Problem> =
            problems.into_iter().filter(|problem| !is_about_outside(problem, &self.guard)).collect();
        let outside = all - problems.len();
        Ok(CalledConf { tree, problems, outside })
    }

    fn load(&self, path: &Path) -> Result<(Tree, Vec<Problem>), RefusedCall> {
        let unreadable = |why: Said| self.refused("file_refused", why, texts::REMEDY_DIR);
        let main = path.to_str().ok_or_else(|| unreadable(say!(texts::PATH_NOT_UTF8)))?;
        let bytes = weir_conf::Files::read(&self.guard, main)
            .map_err(|error| unreadable(say!(texts::NOT_READ, error.kind().to_string())))?;
        let of = |main: &str| format!("{}/", main.rsplit_once('/').map_or("", |(directory, _)| directory));
        // The output of `nginx -T` has all files in one.
        if let Some((files, main)) = weir_doctor::dump::read(&String::from_utf8_lossy(&bytes)) {
            return Ok(weir_doctor::load(&files, &main, &of(&main)));
        }
        Ok(weir_doctor::load(&self.guard, main, &of(main)))
    }

    /// The program that will read the configuration, and whether its version is known.
    pub(super) fn target(&self, tree: &Tree) -> Result<(Target, bool), RefusedCall> {
        let version = match self.arguments.text("nginx_version") {
            None => None,
            Some(text) => Some(
                Version::read(text)
                    .ok_or_else(|| self.refused("bad_argument", say!(texts::VERSION_FORM), texts::REMEDY_ARGUMENT))?,
            ),
        };
        let target = match (self.arguments.text("reader"), version) {
            (Some("weir"), _) => Target::Weir,
            (_, Some(version)) => Target::Nginx(version),
            (Some(_), None) => Target::Nginx(NEWEST),
            (None, None) if Target::is_weirs_alone(&View::new(tree)) => Target::Weir,
            (None, None) => Target::Nginx(NEWEST),
        };
        Ok((target, version.is_some() || target == Target::Weir))
    }
}

/// Says in an answer that files outside of the directories were not read.
pub(super) fn tell_outside(answer: &mut ToolAnswer, outside: usize) {
    if outside > 0 {
        answer.not_measured(say!(texts::NOT_READ_OUTSIDE, outside));
    }
}

/// The beginnings of messages about a file that could not be read.
const ABOUT_FILES: [&str; 3] = ["open() \"", "glob() \"", "cannot load "];

/// Whether a problem is only that a file lies outside of the directories: its message has the path in quotation marks.
pub(super) fn is_about_outside(problem: &Problem, guard: &NamedFiles) -> bool {
    let is_about_file = ABOUT_FILES.iter().any(|beginning| problem.what.starts_with(beginning));
    is_about_file
        && problem.what.split('"').skip(1).step_by(2).any(|quoted| quoted.starts_with('/') && guard.is_outside(quoted))
}

/// `FILE:LINE` of a problem, as two members.
pub(super) fn place_of(tree: &Tree, at: Option<weir_conf::At>) -> Value {
    let found = at.and_then(|at| Some((at, tree.source(&at)?)));
    found.map_or_else(|| json!({}), |(at, source)| json!({"file": source.name, "line": source.line_of(at.span.start)}))
}

/// Two objects as one.
pub(super) fn joined(mut one: Value, other: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (one.as_object_mut(), other) {
        members.extend(more);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reaches_the_server_as_it_is() {
        let run =
            VerbRun { words: vec!["lab".into(), "why".into()], is_experiment: true, limit: Duration::from_secs(9) };
        assert_eq!(VerbRun::of_json(&run.json()), Some(run));
        assert_eq!(VerbRun::of_json(&json!({"words": [1], "limit_s": 1})), None);
    }

    #[test]
    fn a_problem_about_a_file_outside_is_told_from_others() {
        let guard = NamedFiles::new(vec![PathBuf::from("/srv/conf")]);
        let of = |what: &str| is_about_outside(&Problem::nowhere(weir_conf::Level::Emerg, what), &guard);
        assert!(of("open() \"/etc/nginx/mime.types\" failed (13: Permission denied)"));
        assert!(!of("open() \"/srv/conf/none.conf\" failed (2: No such file or directory)"));
        assert!(!of("unknown directive \"/etc\""));
    }
}
