//! An nginx in a container: `weir adopt` starts itself again inside of it.
//!
//! The container need not have weir, nor the libraries of this weir. They come in a directory that only this process and its
//! children see, so nothing in the container changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_net::process;
use weir_words::{Said, said};

/// Directories of which a container has at least one. weir's own directory is mounted over it.
const PLACES: &[&str] = &["/mnt", "/media", "/srv", "/opt", "/tmp"];
/// The environment variable with that directory, for the weir inside.
const ENV: &str = "WEIR_ADOPT_INSIDE";
/// The name of the program there.
const PROGRAM: &str = "weir";

/// The command that starts this weir: its path, and inside of a container also its loader.
///
/// # Errors
/// The path of the program cannot be found.
pub fn own_command() -> io::Result<Vec<OsString>> {
    match inside() {
        Some(place) => command(&place),
        None => Ok(vec![std::env::current_exe()?.into()]),
    }
}

/// The directory of this weir, if `weir adopt` has started it inside of a container.
pub fn inside() -> Option<PathBuf> {
    std::env::var_os(ENV).map(PathBuf::from)
}

/// The loader that is there starts the program with the libraries that are there.
fn command(place: &Path) -> io::Result<Vec<OsString>> {
    let loader = fs::read_dir(place)?.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with("ld-"));
    let loader = loader.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the loader of weir is not there"))?;
    Ok(vec![loader.path().into(), "--library-path".into(), place.into(), place.join(PROGRAM).into()])
}

/// Runs `weir adopt` with these words where process `pid` is; returns its exit code.
///
/// # Errors
/// A sentence for the user: the container cannot be entered.
pub fn look(pid: u32, words: &[OsString]) -> Result<u8, Said> {
    let cannot = |what: &str, error: &io::Error| {
        said!(
            "process {pid} runs in a container, and weir cannot look into it: {what}: {error}. Run weir adopt as root of the machine",
            "프로세스 {pid}은(는) 컨테이너에서 실행 중인데 weir가 그 안을 볼 수 없습니다. {what}: {error}. 머신의 root로 weir adopt를 실행하세요"
        )
    };
    let number =
        weir_host::number_inside(pid).ok_or_else(|| cannot("/proc/PID/status", &io::ErrorKind::NotFound.into()))?;
    let own = own_files().map_err(|error| cannot("/proc/self/maps", &error))?;
    process::enter(pid).map_err(|error| cannot("setns", &error))?;
    let place = PLACES.iter().map(Path::new).find(|place| place.is_dir());
    let place = place.ok_or_else(|| cannot(&PLACES.join(", "), &io::ErrorKind::NotFound.into()))?;
    process::mount_empty(place).and_then(|()| bring(own, place)).map_err(|error| cannot("mount", &error))?;
    let begin = command(place).map_err(|error| cannot("open", &error))?;
    let mut again = Command::new(begin.first().map_or(place.as_os_str(), |word| word.as_os_str()));
    again.args(begin.iter().skip(1)).arg("adopt").args(words).arg("--pid").arg(number.to_string()).env(ENV, place);
    // What weir writes beside nginx is in that directory, too.
    let ended = again.env("TMPDIR", place).current_dir("/").status().map_err(|error| cannot("exec", &error))?;
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// This program, its libraries and its loader, by their names; open, because their paths mean other files in a container.
fn own_files() -> io::Result<BTreeMap<String, File>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mut files = BTreeMap::from([(PROGRAM.to_owned(), File::open("/proc/self/exe")?)]);
    for path in maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..))) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.contains(".so") && !files.contains_key(name) {
            files.insert(name.to_owned(), File::open(path)?);
        }
    }
    Ok(files)
}

fn bring(files: BTreeMap<String, File>, place: &Path) -> io::Result<()> {
    for (name, mut from) in files {
        let mut to = File::create(place.join(name))?;
        io::copy(&mut from, &mut to)?;
        to.set_permissions(Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_loader_comes_with_the_libraries() {
        let files = own_files().unwrap();
        assert!(
            files.contains_key(PROGRAM) && files.keys().any(|name| name.starts_with("libc.so")),
            "{:?}",
            files.keys()
        );
        let place = std::env::temp_dir().join(format!("weir-adopt-elsewhere-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        assert_eq!(command(&place).unwrap_err().kind(), io::ErrorKind::NotFound);
        bring(files, &place).unwrap();
        let words = command(&place).unwrap();
        let said = Command::new(&words[0]).args(&words[1..]).arg("--list").output().unwrap();
        assert!(String::from_utf8_lossy(&said.stdout).contains("the_loader_comes_with_the_libraries"));
        fs::remove_dir_all(place).unwrap();
    }
}
