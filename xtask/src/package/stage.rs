//! A folder that becomes an archive: every file has a mode of its own, whatever the umask here is.

use crate::files::{names_in, told, tracked};
use crate::run::output;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The mode of a file that everybody reads.
pub const FILE: u32 = 0o644;
/// The mode of a program, and of a folder.
pub const PROGRAM: u32 = 0o755;

/// A folder that is filled from nothing.
pub struct Stage {
    pub top: PathBuf,
}

impl Stage {
    /// An empty folder; what stood there is removed.
    pub fn new(top: PathBuf) -> Result<Self, String> {
        if top.exists() {
            fs::remove_dir_all(&top).map_err(|error| told(&top, &error))?;
        }
        let stage = Self { top };
        stage.folder("", PROGRAM)?;
        Ok(stage)
    }

    /// Makes a folder, with those above it.
    pub fn folder(&self, path: &str, mode: u32) -> Result<(), String> {
        let mut here = self.top.clone();
        let mut made = vec![here.clone()];
        for part in Path::new(path) {
            here.push(part);
            made.push(here.clone());
        }
        for folder in made.iter().filter(|folder| !folder.is_dir()) {
            fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
            set_mode(folder, PROGRAM)?;
        }
        set_mode(&here, mode)
    }

    /// Writes a file.
    pub fn write(&self, path: &str, mode: u32, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        let to = self.place(path)?;
        fs::write(&to, bytes).map_err(|error| told(&to, &error))?;
        set_mode(&to, mode)
    }

    /// Copies a file.
    pub fn copy(&self, from: &Path, path: &str, mode: u32) -> Result<(), String> {
        let to = self.place(path)?;
        fs::copy(from, &to).map_err(|error| told(from, &error))?;
        set_mode(&to, mode)
    }

    /// Copies the files of git below a folder of the checkout, without git's own. Programs stay programs.
    pub fn copy_tracked(&self, root: &Path, from: &str, path: &str) -> Result<(), String> {
        for file in tracked(root, from)?.iter().filter(|file| !file.ends_with(".gitignore")) {
            let source = root.join(file);
            let below = file.strip_prefix(from).unwrap_or(file).trim_start_matches('/');
            self.copy(&source, &format!("{path}/{below}"), mode_of(&source)?)?;
        }
        Ok(())
    }

    /// Makes a symbolic link.
    pub fn link(&self, path: &str, to: &str) -> Result<(), String> {
        let place = self.place(path)?;
        symlink(to, &place).map_err(|error| told(&place, &error))
    }

    /// Writes the files of this folder into an archive, all of one owner. The order, the times and the modes do not
    /// depend on this machine.
    pub fn tar(&self, to: &Path, owner: u32, epoch: &str) -> Result<(), String> {
        let owner_is = |kind: &str| format!("--{kind}={owner}");
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--format=gnu", "--numeric-owner"]).arg(owner_is("owner")).arg(owner_is("group"));
        tar.arg(format!("--mtime=@{epoch}")).arg("--exclude=./DEBIAN").arg("-C").arg(&self.top).arg("-cf").arg(to);
        // The names have no `./` before them, and the archive does not set the mode of the folder that it is unpacked in.
        let mut names = names_in(&self.top)?;
        names.sort();
        output(tar.args(names)).map(drop)
    }

    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/')
            && !self.top.join(folder).is_dir()
        {
            self.folder(folder, PROGRAM)?;
        }
        Ok(self.top.join(path))
    }
}

fn mode_of(file: &Path) -> Result<u32, String> {
    let mode = fs::metadata(file).map_err(|error| told(file, &error))?.permissions().mode();
    Ok(if mode & 0o100 == 0 { FILE } else { PROGRAM })
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| told(path, &error))
}

/// Compresses bytes; the header has no name and no time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    use std::io::Write;
    let said = |error: std::io::Error| format!("gzip: {error}");
    let mut gzip =
        Command::new("gzip").arg("-9nc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(said)?;
    let mut input = gzip.stdin.take().ok_or("gzip: no input")?;
    let done = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes));
        gzip.wait_with_output().map_err(said)
    })?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("gzip: {}", done.status)) }
}

/// The SHA-256 of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String, String> {
    let said = output(Command::new("sha256sum").arg("--").arg(path))?;
    said.get(..64).map(str::to_owned).ok_or_else(|| format!("sha256sum: {said}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn two_stages_with_the_same_files_are_the_same_archive() {
        let top = std::env::temp_dir().join(format!("weir-stage-{}", std::process::id()));
        let archive = |name: &str, order: [&str; 2]| {
            let stage = Stage::new(top.join(name)).unwrap();
            order.iter().for_each(|path| stage.write(path, FILE, "text").unwrap());
            stage.link("usr/link", "bin/b").unwrap();
            let to = top.join(format!("{name}.tar"));
            stage.tar(&to, 101, "1000").unwrap();
            fs::read(to).unwrap()
        };
        let first = archive("one", ["etc/a", "usr/bin/b"]);
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert!(first == archive("two", ["usr/bin/b", "etc/a"]), "order and time must not matter");
        assert_eq!(crate::files::files(&top.join("one")).unwrap(), ["etc/a", "usr/bin/b", "usr/link"]);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn gzip_writes_no_time() {
        let bytes = gzip(b"text").unwrap();
        assert_eq!(bytes[4..8], [0; 4]);
    }
}
