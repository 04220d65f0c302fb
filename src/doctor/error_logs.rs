//! The ends of the error logs that a configuration names.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use weir_conf::Tree;
use weir_doctor::Build;
use weir_doctor::error_log::{CountedLogs, LOGS_MAX, LogReader, TAIL_BYTES_MAX};
use weir_doctor::view::View;
use weir_words::{Said, said};

/// The counted messages, and each log with the amount that was read, or the reason why it was not read.
pub fn read(logs: &[PathBuf], tree: &Tree) -> (CountedLogs, Vec<(String, Said)>) {
    let view = View::new(tree);
    let mut reader = LogReader::new(&view);
    let mut told = Vec::new();
    for path in logs.iter().take(LOGS_MAX) {
        let how = match tail(path) {
            Ok((bytes, length)) => {
                let is_cut = length > bytes.len() as u64;
                reader.read(&bytes, is_cut);
                amount(bytes.len(), is_cut.then_some(length))
            }
            Err(why) => why,
        };
        told.push((path.display().to_string(), how));
    }
    (reader.finish(), told)
}

fn amount(read: usize, whole: Option<u64>) -> Said {
    let kib = |bytes: u64| bytes.div_ceil(1024);
    match whole {
        Some(whole) => {
            said!("the last {} of {} KiB", "마지막 {} KiB (전체 {} KiB)", kib(read as u64), kib(whole))
        }
        None if read == 0 => said!("empty", "비어 있습니다"),
        None => said!("whole, {} KiB", "전체, {} KiB", kib(read as u64)),
    }
}

/// The end of a log, and the length of the whole.
fn tail(path: &Path) -> Result<(Vec<u8>, u64), Said> {
    let failed = |error: io::Error| {
        let why = error.to_string();
        said!("weir cannot read it: {why}", "읽을 수 없습니다: {why}")
    };
    if path == Path::new("-") {
        return tail_of_stdin().map_err(failed);
    }
    // Opening a pipe or a terminal would wait: /var/log/nginx/error.log of a container is /dev/stderr.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(said!(
            "not a file (in a container: docker logs NAME 2>&1 | weir doctor … --error-log -)",
            "파일이 아닙니다 (컨테이너라면: docker logs NAME 2>&1 | weir doctor … --error-log -)"
        ));
    }
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX as u64))).map_err(failed)?;
    let mut bytes = Vec::new();
    // A log that grows meanwhile must not be read for ever.
    file.take(TAIL_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, length))
}

fn tail_of_stdin() -> io::Result<(Vec<u8>, u64)> {
    let (mut kept, mut length) = (Vec::new(), 0_u64);
    let mut chunk = vec![0; 64 << 10];
    let mut input = io::stdin().lock();
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        length += count as u64;
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(TAIL_BYTES_MAX);
        kept.drain(..excess);
    }
    Ok((kept, length))
}

/// The logs of a configuration, the first written first. Without `error_log` at the top of the file, the program's
/// default is first. A relative name is below the first of these prefixes that has the file. The second list has those
/// that are no files: syslog, standard error and memory.
pub fn of(tree: &Tree, build: Option<&Build>, prefixes: &[PathBuf]) -> (Vec<PathBuf>, Vec<(String, Said)>) {
    let view = View::new(tree);
    let is_at_top = view.root().get("error_log").is_some();
    let default = build.and_then(Build::error_log_path).filter(|_| !is_at_top);
    let mut names: Vec<&str> = default.into_iter().collect();
    names.extend(view.named("error_log").map(|spot| spot.arg(0)));
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for name in names {
        let is_file = name != "stderr" && !name.starts_with("syslog:") && !name.starts_with("memory:");
        let mut places = prefixes.iter().map(|prefix| prefix.join(name));
        let found = places.clone().find(|path| path.exists()).or_else(|| places.next());
        let path = found.unwrap_or_else(|| PathBuf::from(name));
        if is_file && !files.contains(&path) {
            files.push(path);
        } else if !is_file && !others.iter().any(|(known, _): &(String, Said)| known == name) {
            let how = match name {
                "stderr" => said!(
                    "not a file (journalctl -u nginx -n 2000 | weir doctor … --error-log -)",
                    "파일이 아닙니다 (journalctl -u nginx -n 2000 | weir doctor … --error-log -)"
                ),
                _ => said!(
                    "not a file; give its lines with --error-log",
                    "파일이 아닙니다. 내용을 --error-log로 지정하세요"
                ),
            };
            others.push((name.to_owned(), how));
        }
    }
    (files, others)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn logs(conf: &str, build: Option<&str>) -> (Vec<PathBuf>, Vec<String>) {
        let (tree, _) = weir_doctor::load(&weir_conf::MemoryFiles::new().with("/e/n", conf), "/e/n", "/e/");
        let build = build.map(|text| Build::read(text).unwrap());
        let (files, others) = of(&tree, build.as_ref(), &[PathBuf::from("/p"), PathBuf::from("/q")]);
        (files, others.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn the_logs_are_those_of_the_configuration_or_of_the_program() {
        let debian = "nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/usr/share/nginx --error-log-path=/var/log/nginx/error.log\n";
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (files, others) = logs("events { }", Some(debian));
        assert_eq!((files, others.len()), (paths(&["/var/log/nginx/error.log"]), 0));
        let conf = "error_log logs/e.log warn; http { error_log stderr; server { error_log /a/b.log; } server { error_log /a/b.log; error_log syslog:server=10.0.0.1; } }";
        let (files, others) = logs(conf, Some(debian));
        assert_eq!(files, paths(&["/p/logs/e.log", "/a/b.log"]));
        assert_eq!(others, ["stderr", "syslog:server=10.0.0.1"]);
        assert_eq!(logs("events { }", None).0, paths(&[]));
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        assert!(tail(Path::new("/dev/null")).unwrap_err().contains("not a file"));
        assert!(tail(Path::new("/nowhere/error.log")).unwrap_err().contains("cannot read it"));
    }
}
