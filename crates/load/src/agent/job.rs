//! A run, packed for the agents: the files of the script, and the options of the command line.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use weir_words::{Said, say};

use super::letter::Letter;
use crate::random;
use crate::script::ScriptOptions;
use crate::texts::{OF_FILE, agents as texts};

/// Most bytes of all files of a job together.
pub const BYTES_MAX: usize = 256 << 20;
/// Most files of a job.
pub const FILES_MAX: usize = 1000;
/// Endings that a script may leave out of the name of a module.
const ENDINGS: &[&str] = &["", ".js", ".mjs", ".cjs", ".json", ".ts", ".mts", ".cts", "/index.js", "/index.ts"];

/// The parts of a job.
pub struct JobParts<'p> {
    /// The options of the command line; the paths are of this machine.
    pub options: &'p ScriptOptions,
    /// The other files that the plan was read from.
    pub files: &'p [PathBuf],
    /// Environment variables to send to the agents.
    pub env: Vec<(String, String)>,
    /// Number of threads of each agent; `None`: each agent decides.
    pub workers: Option<usize>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// A job after an agent unpacked it.
#[derive(Debug)]
pub struct Job {
    /// The options; the paths are in the agent's directory.
    pub options: ScriptOptions,
    /// Number of threads.
    pub workers: Option<usize>,
    /// Seed of all random choices.
    pub seed: u64,
    /// The directory of the files; removed together with the job.
    pub dir: Dir,
}

/// Packs the job; the error is for the user.
pub fn pack(parts: &JobParts<'_>) -> Result<Vec<u8>, Said> {
    let options = parts.options;
    let named = options.files.iter().chain(&options.config).chain(&options.payload);
    let paths = with_modules(named.chain(parts.files).map(|path| plain(path)).collect())?;
    let base = common(&paths);
    let relative = |path: &PathBuf| plain(path).strip_prefix(&base).map(text).unwrap_or_default();
    let (mut listed, mut body) = (Vec::new(), Vec::new());
    for path in &paths {
        let bytes =
            std::fs::read(path).map_err(|error| say!(OF_FILE, path.display().to_string(), error.to_string()))?;
        if body.len() + bytes.len() > BYTES_MAX {
            return Err(say!(texts::FILES_TOO_LARGE, BYTES_MAX));
        }
        listed.push(json!([relative(path), bytes.len()]));
        body.extend_from_slice(&bytes);
    }
    let letter = Letter::new("job", "")
        .with("files", listed)
        .with("scripts", options.files.iter().map(relative).collect::<Vec<_>>())
        .with("config", options.config.as_ref().map(relative))
        .with("payload", options.payload.as_ref().map(relative))
        .with("environment", options.environment.clone())
        .with("target", options.target.clone())
        .with("insecure", options.insecure)
        .with("overrides", options.overrides.clone())
        .with("variables", options.variables.clone())
        .with("solo", options.solo)
        .with("scenario_name", options.scenario_name.clone())
        .with("test_id", options.test_id.clone())
        .with("env", parts.env.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>())
        .with("workers", parts.workers)
        .with("seed", parts.seed);
    Ok(letter.body(body).encode())
}

/// Unpacks the job into a directory of its own; the error is for the user.
pub fn unpack(bytes: &[u8]) -> Result<Job, Said> {
    let bad = || say!(texts::NO_JOB);
    let letter = Letter::decode(bytes).ok_or_else(bad)?;
    let dir = Dir::new()?;
    let mut rest = letter.body.as_slice();
    for file in letter.value("files").as_array().ok_or_else(bad)?.iter().take(FILES_MAX) {
        let path = file.get(0).and_then(Value::as_str).ok_or_else(bad)?;
        let length = file.get(1).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
        let (content, after) = length.and_then(|length| rest.split_at_checked(length)).ok_or_else(bad)?;
        rest = after;
        let path = dir.inside(path).ok_or_else(bad)?;
        let failed = |error: std::io::Error| say!(OF_FILE, path.display().to_string(), error.to_string());
        std::fs::create_dir_all(path.parent().unwrap_or(&dir.0)).map_err(failed)?;
        std::fs::write(&path, content).map_err(failed)?;
    }
    let words = |key: &str| letter.value(key).as_str().map(str::to_owned);
    let path = |key: &str| words(key).map(|path| dir.inside(&path).ok_or_else(bad)).transpose();
    let list = |key: &str| letter.value(key).as_array().into_iter().flatten();
    let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
    let options = ScriptOptions {
        files: list("scripts")
            .map(|path| dir.inside(path.as_str().unwrap_or_default()).ok_or_else(bad))
            .collect::<Result<_, _>>()?,
        config: path("config")?,
        payload: path("payload")?,
        environment: words("environment"),
        target: words("target"),
        insecure: letter.is("insecure"),
        overrides: words("overrides"),
        variables: words("variables"),
        dotenv: None,
        solo: letter.is("solo"),
        check: false,
        scenario_name: words("scenario_name"),
        test_id: letter.text("test_id").to_owned(),
        env: list("env").filter_map(pair).collect(),
    };
    let workers = letter.number("workers").and_then(|workers| usize::try_from(workers).ok());
    Ok(Job { options, workers, seed: letter.number("seed").ok_or_else(bad)?, dir })
}

/// Adds the files that JavaScript files name by relative paths, and the files that those name in turn.
fn with_modules(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Said> {
    let mut known: Vec<PathBuf> = Vec::new();
    let mut waiting = paths;
    waiting.reverse();
    while let Some(path) = waiting.pop() {
        if known.contains(&path) {
            continue;
        }
        if known.len() >= FILES_MAX {
            return Err(say!(texts::FILES_TOO_MANY, FILES_MAX));
        }
        let is_code = path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ["js", "mjs", "cjs", "ts", "mts", "cts"].contains(&ending));
        if is_code {
            let code = std::fs::read_to_string(&path).unwrap_or_default();
            let dir = path.parent().unwrap_or(Path::new("/"));
            for name in relative_names(&code) {
                let candidates = ENDINGS.iter().map(|ending| plain(&dir.join(format!("{name}{ending}"))));
                waiting.extend(candidates.into_iter().find(|path| path.is_file()));
            }
        }
        known.push(path);
    }
    Ok(known)
}

/// Quoted texts that begin with `./` or `../`.
fn relative_names(code: &str) -> Vec<&str> {
    let text = |(at, quote): (usize, &str)| {
        let rest = code.get(at + 1..)?;
        let end = rest.find(quote)?;
        rest.get(..end).filter(|name| ["./", "../"].iter().any(|start| name.starts_with(start)) && !name.contains('\n'))
    };
    code.match_indices(['\'', '"', '`']).filter_map(text).collect()
}

/// The path made absolute, without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The deepest directory that contains all paths.
fn common(paths: &[PathBuf]) -> PathBuf {
    let mut dirs = paths.iter().filter_map(|path| path.parent());
    let mut base = dirs.next().unwrap_or(Path::new("/")).to_owned();
    for dir in dirs {
        while !dir.starts_with(&base) {
            base.pop();
        }
    }
    base
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The variables with these names; an error if one of them does not exist.
pub fn chosen_env(names: &[String], all: &[(String, String)]) -> Result<Vec<(String, String)>, Said> {
    let found: BTreeMap<&str, &str> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let one = |name: &String| match found.get(name.as_str()) {
        Some(value) => Ok((name.clone(), (*value).to_owned())),
        None => Err(say!(texts::NO_SUCH_VARIABLE, name)),
    };
    names.iter().map(one).collect()
}

/// A directory that only this user can read; removed when dropped.
#[derive(Debug)]
pub struct Dir(PathBuf);

impl Dir {
    fn new() -> Result<Dir, Said> {
        let path = std::env::temp_dir().join(format!("weir-agent-{}-{}", std::process::id(), random::string(8)));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| say!(OF_FILE, path.display().to_string(), error.to_string()))?;
        Ok(Dir(path))
    }

    /// A path inside the directory; `None` if the path would lead outside.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        (is_inside && path.components().next().is_some()).then(|| self.0.join(path))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // If this fails, the system clears its temporary directory later.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Dir, path: &str, text: &str) -> PathBuf {
        let path = dir.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn parts<'p>(options: &'p ScriptOptions, files: &'p [PathBuf]) -> JobParts<'p> {
        JobParts { options, files, env: vec![("TOKEN".into(), "x".into())], workers: Some(2), seed: u64::MAX }
    }

    #[test]
    fn files_arrive_as_they_lay_to_each_other() {
        let dir = Dir::new().unwrap();
        let script = write(&dir, "tests/a.yml", "config: {}");
        let config = write(&dir, "config/c.yml", "x");
        let code = write(&dir, "lib/p.js", "require('./q'); import x from \"../data/d.json\"; // './nowhere' './");
        write(&dir, "lib/q.js", "const q = `./p.js`");
        write(&dir, "data/d.json", "{}");
        write(&dir, "secret", "not named");
        let options = ScriptOptions {
            files: vec![script, dir.0.join("tests/../tests/a.yml")],
            config: Some(config),
            target: Some("http://t".into()),
            insecure: true,
            test_id: "id".into(),
            env: vec![("SECRET".into(), "s".into())],
            dotenv: Some(dir.0.join("secret")),
            ..ScriptOptions::default()
        };
        let job = unpack(&pack(&parts(&options, &[code])).unwrap()).unwrap();
        let there = |path: &str| job.dir.0.join(path);
        assert_eq!(job.options.files, [there("tests/a.yml"), there("tests/a.yml")]);
        assert_eq!(job.options.config, Some(there("config/c.yml")));
        assert_eq!(std::fs::read_to_string(there("lib/q.js")).unwrap(), "const q = `./p.js`");
        assert!(there("lib/p.js").is_file() && there("data/d.json").is_file() && !there("secret").exists());
        assert_eq!((job.options.target.as_deref(), job.options.insecure), (Some("http://t"), true));
        assert_eq!((job.options.dotenv, job.options.test_id.as_str()), (None, "id"));
        assert_eq!(job.options.env, [("TOKEN".to_owned(), "x".to_owned())]);
        assert_eq!((job.workers, job.seed), (Some(2), u64::MAX));
        let path = job.dir.0.clone();
        drop(job.dir);
        assert!(!path.exists());
    }

    #[test]
    fn nothing_is_written_outside() {
        for path in ["../x", "/etc/x", "a/../../x", "", ".", "a/./../b"] {
            let letter = Letter::new("job", "").with("files", json!([[path, 1]])).with("seed", 1).body(b"x".to_vec());
            assert_eq!(unpack(&letter.encode()).unwrap_err(), "this is not a job", "{path}");
        }
        let short = Letter::new("job", "").with("files", json!([["a", 2]])).with("seed", 1).body(b"x".to_vec());
        assert_eq!(unpack(&short.encode()).unwrap_err(), "this is not a job");
    }

    #[test]
    fn only_named_variables_travel() {
        let all = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())];
        assert_eq!(chosen_env(&["B".to_owned()], &all).unwrap(), [("B".to_owned(), "2".to_owned())]);
        assert!(chosen_env(&["C".to_owned()], &all).unwrap_err().contains("--env-pass C"));
    }
}
