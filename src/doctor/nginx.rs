//! `nginx -t` on a copy of the configuration.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use weir_conf::Tree;
use weir_conf::edit::{self, Edit};
use weir_net::clock;
use weir_words::{Said, said};

/// Longest time for one `nginx -t`. It may look up the names of many servers.
const READ_WAIT: Duration = Duration::from_secs(30);

/// Most bytes of its messages that are read.
const SAID_BYTES_MAX: usize = 64 << 10;

/// The nginx that will read the files.
pub(super) struct Nginx {
    program: PathBuf,
}

impl Nginx {
    pub(super) fn new(program: PathBuf) -> Nginx {
        Nginx { program }
    }

    /// The first message with which nginx refuses a configuration. `None` if it accepts it.
    ///
    /// # Errors
    /// The copy cannot be made, or the program cannot be started or does not end.
    pub(super) fn refusal(&self, tree: &Tree) -> io::Result<Option<Said>> {
        let Some(main) = tree.files.iter().position(|source| !source.is_command_line) else { return Ok(None) };
        let copy = Copy::make(tree, main)?;
        let (is_good, text) = self.read(&copy)?;
        Ok((!is_good).then(|| {
            let line = text.lines().find(|line| line.contains("[emerg]") || line.contains("[crit]"));
            Said::from(copy.named(line.or(text.lines().next()).unwrap_or_default()))
        }))
    }

    /// Whether nginx accepts the copy, and its messages.
    fn read(&self, copy: &Copy) -> io::Result<(bool, String)> {
        let said = copy.folder.join("said");
        let errors = fs::File::create(&said)?;
        let mut child = Command::new(&self.program)
            .arg0("nginx")
            .args(["-t", "-q", "-c"])
            .arg(copy.folder.join("conf").join(&copy.main))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()?;
        let end = clock::precise() + READ_WAIT;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if clock::precise() > end => {
                    child.kill()?;
                    child.wait()?;
                    return Err(io::Error::from(io::ErrorKind::TimedOut));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut text = fs::read(&said)?;
        text.truncate(SAID_BYTES_MAX);
        Ok((status.success(), String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A copy of a configuration in a folder of its own, which is removed when dropped: `files/N` is the file with index N,
/// `conf/` has the main file beside links to everything else that is beside it.
struct Copy {
    folder: PathBuf,
    main: String,
    /// Each file of the copy, and its real name.
    names: Vec<(String, String)>,
}

impl Copy {
    fn make(tree: &Tree, main: usize) -> io::Result<Copy> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-doctor-{}-{number}", std::process::id()));
        // It fails if another user made it first. The copy may have secrets.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let real = tree.files.get(main).map_or("", |source| source.name.as_str());
        let (beside, name) = real.rsplit_once('/').unwrap_or(("", real));
        let mut copy = Copy { folder, main: name.to_owned(), names: Vec::new() };
        fs::create_dir(copy.folder.join("files"))?;
        fs::create_dir(copy.folder.join("conf"))?;
        // Names of certificates and passwords are relative to the folder of the main file.
        for entry in fs::read_dir(format!("{beside}/"))?.flatten().filter(|entry| entry.file_name() != name) {
            symlink(entry.path(), copy.folder.join("conf").join(entry.file_name()))?;
        }
        for (index, source) in tree.files.iter().enumerate().filter(|(_, source)| !source.is_command_line) {
            let path = if index == main { copy.folder.join("conf").join(name) } else { copy.file(index) };
            fs::write(&path, copy.with_includes(tree, index, &source.bytes)?)?;
            copy.names.push((path.display().to_string(), source.name.clone()));
        }
        Ok(copy)
    }

    fn file(&self, index: usize) -> PathBuf {
        self.folder.join(format!("files/{index}"))
    }

    /// The bytes of a file whose `include`s name the files of the copy.
    fn with_includes(&self, tree: &Tree, index: usize, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let own = tree.includes.iter().filter(|include| include.at.file as usize == index);
        let mut edits: Vec<Edit> = Vec::new();
        for include in own {
            let quoted =
                |path: &Path| String::from_utf8_lossy(&weir_conf::quote(path.as_os_str().as_bytes())).into_owned();
            let line = |file: &u32| format!("include {}", quoted(&self.file(*file as usize)));
            let lines: Vec<String> = include.files.iter().map(line).collect();
            let with = match lines.is_empty() {
                true => format!("include {}", quoted(&self.folder.join("none/*"))),
                false => lines.join("; "),
            };
            let edit = Edit { file: include.at.file, span: include.at.span, with: with.into_bytes() };
            // A file that is included twice has each of its own includes twice.
            if !edits.iter().any(|other| other.span == edit.span) {
                edits.push(edit);
            }
        }
        edit::apply(bytes, &edits.iter().collect::<Vec<_>>()).map_err(|error| io::Error::other(error.to_string()))
    }

    /// A message with the real names of the files.
    fn named(&self, message: &str) -> String {
        let message = message.strip_prefix("nginx: ").unwrap_or(message);
        let name =
            |text: String, (copy, real): &(String, String)| text.replace(&format!("{copy}:"), &format!("{real}:"));
        self.names.iter().fold(message.to_owned(), name)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The sentence for a copy that could not be read.
pub(super) fn unread(error: &io::Error) -> Said {
    said!(
        "nginx could not check the changes ({error}): only weir's reader did",
        "nginx로 변경을 확인하지 못했습니다({error}). weir의 해석기로만 확인했습니다"
    )
}
