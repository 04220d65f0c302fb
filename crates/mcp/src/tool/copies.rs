//! Private copies of the files of an experiment. The lab reads a configuration and a script again, in each block; it reads the
//! copies, so it starts and sends exactly the bytes that weir has checked, and a file that changes in between changes nothing.
//!
//! The copy of a file has the full path of its original below a directory of the room. So relative names of a script keep their
//! meaning, and the original's name comes back where this directory is cut off ([`with_originals`]). An `include` becomes a list of
//! the copies of its files, so nothing in a copy is a pattern or leads out of the room.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_conf::edit::{self, Edit};
use weir_conf::{Files, Include, glob};
use weir_doctor::guard::without_dots;
use weir_lab::beside;
use weir_words::say;

use super::load_check;
use super::shared::{CalledConf, RefusedCall, ToolCall};
use crate::answer::ToolAnswer;
use crate::guard::CONF_BOUNDS;
use crate::texts;

/// Directories of copies of one call: before, after, script.
const PARTS: [&str; 3] = ["before", "after", "script"];

/// The directory of the room with the copies of a call.
pub(crate) fn copies_of(room: &Path, made: u64) -> PathBuf {
    room.join(format!("copies-{made}"))
}

/// A text with the names of the originals in the place of the names of the copies.
pub(crate) fn with_originals(text: &str, copies: &Path) -> String {
    let names = PARTS.map(|part| copies.join(part).display().to_string());
    names.iter().fold(text.to_owned(), |text, name| text.replace(&format!("{name}/"), "/"))
}

/// The same for every text of a value.
pub(crate) fn value_with_originals(value: &mut Value, copies: &Path) {
    match value {
        Value::String(text) => *text = with_originals(text, copies),
        Value::Array(list) => list.iter_mut().for_each(|one| value_with_originals(one, copies)),
        Value::Object(members) => members.values_mut().for_each(|one| value_with_originals(one, copies)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Copies a configuration; returns the main file of the copy.
pub(super) fn of_conf(call: &ToolCall<'_>, argument: &str, conf: &CalledConf) -> Result<PathBuf, RefusedCall> {
    let root = root(call, if argument == "after" { "after" } else { "before" });
    let tree = &conf.tree;
    let unwritten = |error: &dyn std::fmt::Display| failed(call, error);
    let main = tree.files.first().ok_or_else(|| unwritten(&io::Error::from(io::ErrorKind::NotFound)))?;
    let conf_prefix = main.name.rfind('/').and_then(|at| main.name.get(..=at)).unwrap_or("/");
    let places: Vec<PathBuf> = tree.files.iter().map(|source| place(&root, Path::new(&source.name))).collect();
    let mut edits = beside::made_absolute(tree, conf_prefix);
    let mut length = 0;
    for include in &tree.includes {
        let edit = included(call, include, &places, &root)?;
        length += edit.with.len() as u64;
        if length > CONF_BOUNDS.all_bytes {
            return Err(call.refused(
                "file_refused",
                say!(texts::INCLUDES_LARGE, CONF_BOUNDS.all_bytes),
                texts::REMEDY_SMALLER,
            ));
        }
        edits.push(edit);
    }
    // A file that is included twice gives the same edits twice.
    edits.sort_by_key(|edit| (edit.file, edit.span.start, edit.span.end));
    edits.dedup();
    for (number, (source, place)) in tree.files.iter().zip(&places).enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
        let bytes = edit::apply(&source.bytes, &own).map_err(|error| unwritten(&error))?;
        write(place, &bytes).map_err(|error| unwritten(&error))?;
    }
    places.into_iter().next().ok_or_else(|| unwritten(&io::Error::from(io::ErrorKind::NotFound)))
}

/// Copies a script and the files that it names; returns the script of the copy. The copy has passed all checks.
pub(super) fn of_script(call: &ToolCall<'_>, script: &Path) -> Result<PathBuf, RefusedCall> {
    let plan = load_check::sendable(call, script)?;
    load_check::reads_inside(call, &plan)?;
    // The server made it, into the room.
    if call.is_private(script) {
        return Ok(script.to_owned());
    }
    let root = root(call, "script");
    for file in [script].into_iter().chain(plan.files.iter().map(PathBuf::as_path)) {
        let name = file.to_str().ok_or_else(|| failed(call, &texts::PATH_NOT_UTF8.en))?;
        let bytes = call.guard.read(name).map_err(|error| {
            call.refused("file_refused", say!(texts::NOT_READ, error.kind().to_string()), texts::REMEDY_DIR)
        })?;
        write(&place(&root, file), &bytes).map_err(|error| failed(call, &error))?;
    }
    let copy = place(&root, script);
    // The file may have changed since the first look, and an absolute path in it leads out of the copy.
    let copied = load_check::sendable(call, &copy)?;
    match copied.files.iter().filter(|file| !call.is_private(file)).count() {
        0 => Ok(copy),
        others => Err(call.refused("file_refused", say!(texts::NOT_COPIED, others), texts::REMEDY_COPIED)),
    }
}

fn root(call: &ToolCall<'_>, part: &'static str) -> PathBuf {
    copies_of(&call.room, call.made).join(part)
}

/// The place of the copy of a file. It is below `root`, whatever the name is.
fn place(root: &Path, name: &Path) -> PathBuf {
    let inside = without_dots(name);
    root.join(inside.strip_prefix("/").unwrap_or(&inside))
}

/// The copies in the place of an `include`.
fn included(call: &ToolCall<'_>, include: &Include, places: &[PathBuf], root: &Path) -> Result<Edit, RefusedCall> {
    let copies = include.files.iter().filter_map(|file| places.get(*file as usize)).map(|place| {
        let name = place.display().to_string();
        match glob::is_pattern(&name) {
            // The program would look for files that match this name.
            true => Err(call.refused("file_refused", say!(texts::NAME_IS_PATTERN), texts::REMEDY_ARGUMENT)),
            false => Ok([b"include ".as_slice(), &weir_conf::quote(name.as_bytes())].concat()),
        }
    });
    let mut copies = copies.collect::<Result<Vec<Vec<u8>>, RefusedCall>>()?;
    if copies.is_empty() {
        // A pattern that matches nothing is no error. There is no such directory.
        let none = weir_conf::quote(format!("{}.none/*", root.display()).as_bytes());
        copies.push([b"include ".as_slice(), &none].concat());
    }
    Ok(Edit { file: include.at.file, span: include.at.span, with: copies.join(b"; ".as_slice()) })
}

/// Writes a file that only its owner may read. Two names may mean one place; then its bytes must be the same.
fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = place.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(place) {
        Ok(mut file) => file.write_all(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match std::fs::read(place)? == bytes {
            true => Ok(()),
            false => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn failed(call: &ToolCall<'_>, why: &dyn std::fmt::Display) -> RefusedCall {
    Box::new(ToolAnswer::failed(call.row.name, call.language(), say!(texts::ROOM_FULL), &why.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use crate::guard::NamedFiles;
    use crate::input::Arguments;
    use crate::settings::ServerSettings;
    use crate::tool::{self, Prepared};
    use crate::tools;

    const CONF: &str = "events { }\nhttp { include more/*.conf; include none/*; server { listen 8080; } }\n";
    const SCRIPT: &str = "config: {target: 'http://127.0.0.1:1', phases: [{duration: 2, arrivalRate: 5}], payload: {path: ../rows.csv, fields: [a]}}\n\
                          scenarios: [{flow: [{get: {url: '/{{ a }}'}}]}]\n";
    /// Each tool that starts a configuration, and the argument that names it.
    const TOOLS: [(&str, &str); 3] = [("why", "conf"), ("ab", "before"), ("capacity", "conf")];

    /// A directory that ends with the test: the user's files in `in`, the server's own in `room`.
    struct TestPlace(PathBuf);

    impl TestPlace {
        fn new(name: &str) -> TestPlace {
            let path = std::env::temp_dir().canonicalize().unwrap();
            let path = path.join(format!("weir-mcp-copies-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("in/more")).unwrap();
            fs::create_dir_all(path.join("room")).unwrap();
            TestPlace(path)
        }

        fn put(&self, name: &str, text: &str) -> String {
            let path = self.0.join("in").join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        }

        /// The words of the experiment, or the answer that refuses it.
        fn prepared(&self, made: u64, tool: &str, arguments: &Value) -> Result<Vec<String>, Value> {
            let row = tools::find(tool).unwrap();
            let dir = self.0.join("in").display().to_string();
            let settings = ServerSettings::of_parent(&json!({"dirs": [dir], "allows_experiments": true}));
            let arguments = Arguments::read(row.parameters, arguments).unwrap();
            let guard = NamedFiles::new(settings.dirs.clone());
            let room = self.0.join("room");
            let call = ToolCall { row, arguments: &arguments, settings: &settings, guard, room, made };
            match tool::prepare(&call) {
                Prepared::Run(run) => Ok(run.words),
                Prepared::Answer(answer) => Err(answer),
            }
        }
    }

    impl Drop for TestPlace {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_lab_gets_the_bytes_that_were_checked() {
        let place = TestPlace::new("bytes");
        for (made, (tool, argument)) in TOOLS.into_iter().enumerate() {
            let main = place.put("nginx.conf", CONF);
            let part = place.put("more/a.conf", "server_tokens off;\n");
            let words = place.prepared(made as u64, tool, &json!({argument: "nginx.conf"})).unwrap();
            // Both files change between the check and the experiment.
            place.put("nginx.conf", "load_module ./evil.so;\n");
            place.put("more/a.conf", "include /etc/passwd;\n");
            place.put("more/b.conf", "include /dev/zero;\n");
            let copies = copies_of(&place.0.join("room"), made as u64);
            let root = copies.join("before").display().to_string();
            assert_eq!(words[2], format!("{root}{main}"), "{tool}");
            let text = fs::read_to_string(&words[2]).unwrap();
            let includes = format!("include {root}{part}; include {root}.none/*;");
            assert_eq!(text, CONF.replace("include more/*.conf; include none/*;", &includes), "{tool}");
            assert_eq!(fs::read_to_string(format!("{root}{part}")).unwrap(), "server_tokens off;\n", "{tool}");
            assert_eq!(with_originals(&format!("{root}{part}:3"), &copies), format!("{part}:3"));
            let refused = place.prepared(9, tool, &json!({argument: "nginx.conf"})).unwrap_err();
            assert_eq!(refused["refusal"]["name"], "starts_programs", "{tool}: {refused}");
            fs::remove_file(place.0.join("in/more/b.conf")).unwrap();
        }
    }

    #[test]
    fn an_include_that_leads_out_starts_nothing() {
        let place = TestPlace::new("includes");
        fs::write(place.0.join("secret.conf"), "secret on;").unwrap();
        symlink(place.0.join("secret.conf"), place.0.join("in/more/link.conf")).unwrap();
        let outside = place.0.join("secret.conf").display().to_string();
        for (tool, argument) in TOOLS {
            for file in ["/dev/zero", &outside, "more/link.conf", "../secret.conf", "more/*.conf"] {
                place.put("nginx.conf", &format!("events {{ }} include {file}; http {{ server {{ listen 80; }} }}"));
                let answer = match place.prepared(1, tool, &json!({argument: "nginx.conf"})) {
                    Err(answer) => answer,
                    // A pattern gives no link that leads out.
                    Ok(words) => {
                        assert_eq!(file, "more/*.conf", "{tool}");
                        let text = fs::read_to_string(&words[2]).unwrap();
                        assert!(text.contains(".none/*;") && !text.contains("link.conf"), "{text}");
                        fs::remove_dir_all(place.0.join("room/copies-1")).unwrap();
                        continue;
                    }
                };
                let name = answer["refusal"]["name"].as_str().unwrap();
                assert!(matches!(name, "file_refused" | "invalid_conf"), "{tool} {file}: {answer}");
                assert!(!answer.to_string().contains("secret on") && !place.0.join("room/copies-1").exists());
            }
        }
    }

    #[test]
    fn a_script_is_copied_with_its_files_and_reads_no_others() {
        let place = TestPlace::new("script");
        place.put("nginx.conf", CONF);
        let rows = place.put("rows.csv", "one\n");
        place.put("more/load.yml", SCRIPT);
        let arguments = json!({"conf": "nginx.conf", "script": "more/load.yml"});
        let words = place.prepared(1, "why", &arguments).unwrap();
        place.put("more/load.yml", "config: [");
        place.put("rows.csv", "two\n");
        let at = words.iter().position(|word| word == "--load").unwrap();
        assert_eq!(fs::read_to_string(&words[at + 1]).unwrap(), SCRIPT);
        let copied = place.0.join(format!("room/copies-1/script{rows}"));
        assert_eq!(fs::read_to_string(copied).unwrap(), "one\n");
        place.put("more/load.yml", &SCRIPT.replace("../rows.csv", &rows));
        let refused = place.prepared(2, "why", &arguments).unwrap_err();
        let why = refused["verdict"]["text"].as_str().unwrap();
        assert!(refused["refusal"]["name"] == "file_refused" && why.contains("absolute path"), "{refused}");
    }

    #[test]
    fn names_of_copies_become_those_of_the_originals() {
        let copies = copies_of(Path::new("/tmp/r"), 3);
        let mut run = json!({"a": ["/tmp/r/copies-3/after/srv/n.conf:2", 1], "b": {"c": "x /tmp/r/copies-31/after/y"}});
        value_with_originals(&mut run, &copies);
        assert_eq!(run, json!({"a": ["/srv/n.conf:2", 1], "b": {"c": "x /tmp/r/copies-31/after/y"}}));
        let root = Path::new("/r/before");
        for (name, expect) in [("/e/n", "/r/before/e/n"), ("/e/../../../n", "/r/before/n"), ("../../n", "/r/before/n")]
        {
            assert_eq!(place(root, Path::new(name)), Path::new(expect));
        }
    }
}
