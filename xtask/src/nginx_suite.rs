//! Runs nginx's own test suite against a binary. The suite and its tools are outside this checkout and are never
//! copied into it. Its client of HTTP/2 ignores SETTINGS_MAX_FRAME_SIZE: nginx takes frames of any size. In the copy that
//! runs, it keeps to the size that RFC 9113 gives to everybody, so that every test sees an answer.

use crate::run::{cargo, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "\
usage: cargo xtask nginx-suite --tools DIR --tests DIR [--binary FILE] [--out FILE.csv] [FILE.t …]

  --tools   the folder with run-suite.py, compare.py and anchor-safe.csv   (or NGINX_SUITE_TOOLS)
  --tests   a checkout of nginx/nginx-tests, readable by user ngxtest      (or TESTS_DIR)
  --binary  what to test; default: weir, built for release
  --out     where the result goes; default: target/nginx-suite.csv

Once per machine, as root: setup.sh of the tools. The command passes JOBS, TIMEOUT and TEST_NGINX_* on. Files that do not set
worker_processes get nginx's default, one worker.";

pub fn nginx_suite(root: &Path, arguments: &[String]) -> Result<(), String> {
    let asked = Asked::parse(arguments)?;
    let binary = match asked.binary {
        Some(binary) => binary,
        None => {
            run(&mut cargo("build --release"))?;
            root.join("target/release/weir")
        }
    };
    // The suite runs as another user, who may not read this checkout, and calls the binary by the name nginx.
    let room = std::env::temp_dir().join("weir-nginx-suite");
    std::fs::create_dir_all(&room).map_err(|e| format!("{}: {e}", room.display()))?;
    let called = room.join("nginx");
    std::fs::remove_file(&called).ok();
    std::fs::copy(&binary, &called).map_err(|e| format!("{}: {e}", binary.display()))?;

    let tests = room.join("tests");
    copy_tests(&asked.tests, &tests)?;
    let client = tests.join("lib/Test/Nginx/HTTP2.pm");
    let text = std::fs::read_to_string(&client).map_err(|e| format!("{}: {e}", client.display()))?;
    std::fs::write(&client, with_small_frames(&text)?).map_err(|e| format!("{}: {e}", client.display()))?;

    let out = asked.out.unwrap_or_else(|| root.join("target/nginx-suite.csv"));
    // Where a file says nothing, nginx has one worker, and weir one for each CPU. The suite relies on one.
    let files = if asked.files.is_empty() { all_files(&tests)? } else { asked.files };
    let (with_own, without): (Vec<_>, Vec<_>) = files.iter().partition(|file| sets_workers(&tests, file));
    for (number, (files, globals)) in [(without, ONE_WORKER), (with_own, "")].into_iter().enumerate() {
        if files.is_empty() {
            continue;
        }
        run(Command::new("python3")
            .arg(asked.tools.join("run-suite.py"))
            .arg(&called)
            .arg(&out)
            .args(files)
            .env("TESTS_DIR", &tests)
            .env("TEST_NGINX_GLOBALS", globals)
            .env("APPEND", number.to_string())
            .env("TMPDIR_TESTS", room.join("tmp")))?;
    }
    run(Command::new("python3").arg(asked.tools.join("compare.py")).arg(asked.tools.join("anchor-safe.csv")).arg(&out))
}

const ONE_WORKER: &str = "worker_processes 1;";

/// The suite's files, in a place of their own.
fn copy_tests(from: &Path, to: &Path) -> Result<(), String> {
    if to.exists() {
        std::fs::remove_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    run(Command::new("cp").arg("-R").arg(from).arg(to))
}

/// The text of the suite's client, which sends larger heads as CONTINUATION frames then, and larger bodies as several DATA frames.
fn with_small_frames(client: &str) -> Result<String, String> {
    let mut changed = client.to_owned();
    for (line, more) in [(HEADERS, HEADERS_SPLIT), (DATA, DATA_SPLIT)] {
        if changed.matches(line).count() != 1 {
            return Err(format!("lib/Test/Nginx/HTTP2.pm of the suite has no line of its own \"{}\"", line.trim()));
        }
        changed = changed.replace(line, more);
    }
    Ok(changed)
}

/// Where the client has the pieces of a field section.
const HEADERS: &str = "\tpush @input, $input;\n";
/// Cuts it into pieces of less than 16,384 bytes. The flags of the first are the fifth byte of its frame; END_HEADERS is on the last.
const HEADERS_SPLIT: &str = "\
\tpush @input, substr($input, 0, 16000, '') while length($input) > 16000;
\tpush @input, $input;
\tsubstr($buf, 4, 1) = chr(ord(substr($buf, 4, 1)) & ~0x4) if @input > 1;
";
/// Where the client begins a DATA frame.
const DATA: &str = "\tmy ($ctx, $body, $flags, $extra) = @_;\n";
/// Cuts the body; END_STREAM is on the last piece.
const DATA_SPLIT: &str = "\
\tmy ($ctx, $body, $flags, $extra) = @_;
\tif (length($body) > 16000) {
\t\tmy $first = pack_body($ctx, substr($body, 0, 16000, ''), 0x0, $extra);
\t\treturn $first . pack_body($ctx, $body, $flags, $extra);
\t}
";

fn all_files(tests: &Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(tests).map_err(|e| format!("{}: {e}", tests.display()))?;
    let mut files: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.retain(|file| file.ends_with(".t"));
    files.sort();
    Ok(files)
}

/// Whether a file of the suite sets the number of workers itself.
fn sets_workers(tests: &Path, file: &str) -> bool {
    std::fs::read(tests.join(file)).is_ok_and(|text| String::from_utf8_lossy(&text).contains("worker_processes"))
}

struct Asked {
    tools: PathBuf,
    tests: PathBuf,
    binary: Option<PathBuf>,
    out: Option<PathBuf>,
    files: Vec<String>,
}

impl Asked {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut tools = std::env::var_os("NGINX_SUITE_TOOLS").map(PathBuf::from);
        let mut tests = std::env::var_os("TESTS_DIR").map(PathBuf::from);
        let (mut binary, mut out, mut files) = (None, None, Vec::new());
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let slot = match word.as_str() {
                "--tools" => &mut tools,
                "--tests" => &mut tests,
                "--binary" => &mut binary,
                "--out" => &mut out,
                file if file.ends_with(".t") => {
                    files.push(file.to_owned());
                    continue;
                }
                _ => return Err(USAGE.to_owned()),
            };
            *slot = Some(PathBuf::from(words.next().ok_or(USAGE)?));
        }
        let (Some(tools), Some(tests)) = (tools, tests) else {
            return Err(USAGE.to_owned());
        };
        Ok(Self { tools, tests, binary, out, files })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_client_s_frames_get_smaller_or_the_suite_is_refused() {
        let client = format!("sub new_stream {{\n{HEADERS}}}\nsub pack_body {{\n{DATA}}}\n");
        let changed = with_small_frames(&client).unwrap();
        assert_eq!(changed.matches("16000").count(), 4, "{changed}");
        let unknown = with_small_frames(&client.replace("$extra", "$more")).unwrap_err();
        assert!(unknown.contains("my ($ctx, $body, $flags, $extra)"), "{unknown}");
    }

    #[test]
    fn flags_take_a_value_and_files_are_kept() {
        let words = ["--tools", "t", "--tests", "s", "--out", "o.csv", "proxy.t"].map(str::to_owned);
        let asked = Asked::parse(&words).unwrap();
        assert_eq!(asked.tools, Path::new("t"));
        assert_eq!(asked.out.as_deref(), Some(Path::new("o.csv")));
        assert_eq!(asked.files, ["proxy.t"]);
        assert!(Asked::parse(&["--tools".to_owned()]).is_err());
        assert!(Asked::parse(&["--nonsense".to_owned()]).is_err());
    }
}
