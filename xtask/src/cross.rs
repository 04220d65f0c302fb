//! `cargo xtask cross`: weir for Linux on arm64, built on another machine, and its verbs for clients tried under qemu.
//!
//! qemu runs one program. A verb that starts weir again needs a kernel that knows qemu (`binfmt_misc`), so a child of a verb is not
//! tried here.

use crate::run::{cargo, run};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const USAGE: &str = "\
usage: cargo xtask cross [dist | release | ci]

  builds weir for Linux on arm64 with this profile (without one: dist) in target/cross, and tries doctor, lsp, mcp, load and load compare under qemu

  needs: rustup target add aarch64-unknown-linux-gnu
         apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static";
const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64-static";
/// The libraries of the target, where Debian's cross compiler has them.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const CONF: &str = "events { }\nhttp { server { listen 80; location /a { alias /b/; } } }\n";

/// Runs the command.
pub fn cross(root: &Path, words: &[String]) -> Result<(), String> {
    let profile = match words {
        [] => "dist",
        [one] if ["dist", "release", "ci"].contains(&one.as_str()) => one,
        _ => return Err(USAGE.to_owned()),
    };
    let folder = root.join("target/cross");
    let mut build = cargo(&format!("build --locked --profile {profile} --package weir --target {TARGET}"));
    build.current_dir(root).env("CARGO_TARGET_DIR", &folder).env("PCRE2_SYS_STATIC", "1");
    build.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    run(&mut build).map_err(|error| format!("{error}\n\n{USAGE}"))?;
    let binary = folder.join(TARGET).join(profile).join("weir");
    if Command::new(QEMU).arg("--version").output().is_err() {
        println!("{}: built; not tried, because there is no {QEMU}", binary.display());
        return Ok(());
    }
    let room = folder.join("tried");
    // Nothing is there at the first run.
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    Emulated { binary, room, root: root.to_owned() }.try_all()
}

/// A binary of another processor.
struct Emulated {
    binary: PathBuf,
    /// The directory of the files that it reads and writes.
    room: PathBuf,
    root: PathBuf,
}

impl Emulated {
    fn try_all(&self) -> Result<(), String> {
        type Trial = fn(&Emulated) -> Result<(), String>;
        let trials: [(&str, Trial); 5] = [
            ("version", Emulated::version),
            ("doctor", Emulated::doctor),
            ("lsp", Emulated::lsp),
            ("mcp", Emulated::mcp),
            ("load, load compare", Emulated::load),
        ];
        for (name, trial) in trials {
            trial(self).map_err(|why| format!("{name} on arm64: {why}"))?;
            println!("{name}: answers under {QEMU}");
        }
        Ok(())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(QEMU);
        command.args(["-L", LIBRARIES]).arg(&self.binary).args(words).current_dir(&self.room);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The output of a verb that reads `input`, if its exit code is one of `codes`.
    fn said(&self, words: &[&str], input: &str, codes: &[i32]) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("{words:?}: {error}");
        let mut child = self.command(words).spawn().map_err(failed)?;
        // A program that has ended reads nothing; its exit code says more.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        let Output { status, stdout, stderr } = child.wait_with_output().map_err(failed)?;
        let said = String::from_utf8_lossy(&stdout).into_owned();
        match status.code().is_some_and(|code| codes.contains(&code)) {
            true => Ok(said),
            false => Err(format!("{words:?}: {status}\n{said}{}", String::from_utf8_lossy(&stderr))),
        }
    }

    fn version(&self) -> Result<(), String> {
        has(&self.said(&["version"], "", &[0])?, "weir")
    }

    fn doctor(&self) -> Result<(), String> {
        write(&self.room.join("nginx.conf"), CONF)?;
        has(&self.said(&["doctor", "nginx.conf", "--json"], "", &[0, 1])?, "alias_traversal")
    }

    /// An editor that opens a file, asks for its symbols and ends.
    fn lsp(&self) -> Result<(), String> {
        let uri = format!("file://{}/nginx.conf", self.room.display());
        let text = CONF.replace('\n', "\\n");
        let messages = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{{"textDocument":{{"uri":"{uri}","languageId":"nginx","version":1,"text":"{text}"}}}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"textDocument/documentSymbol","params":{{"textDocument":{{"uri":"{uri}"}}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":3,"method":"shutdown"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"exit"}"#.to_owned(),
        ];
        let input: String =
            messages.iter().map(|message| format!("Content-Length: {}\r\n\r\n{message}", message.len())).collect();
        let said = self.said(&["lsp"], &input, &[0])?;
        ["hoverProvider", "\"events\"", "\"id\":3"].iter().try_for_each(|part| has(&said, part))
    }

    /// The tools with their schemas, as the file of the checkout has them, and an answer of the server itself.
    fn mcp(&self) -> Result<(), String> {
        let file = self.root.join("docs/reference/mcp.json");
        let kept = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        if self.said(&["mcp", "--schemas"], "", &[0])? != kept {
            return Err(format!("mcp --schemas differs from {}", file.display()));
        }
        let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
        has(&self.said(&["mcp"], list, &[0])?, "logs_to_script")
    }

    /// Two loads of a dummy application, both of this processor, and their comparison.
    fn load(&self) -> Result<(), String> {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = taken.map_err(|error| error.to_string())?.to_string();
        let origin = self.command(&["origin", "--listen", &address]).spawn();
        let _origin = KilledAtEnd(origin.map_err(|error| format!("origin: {error}"))?);
        wait_for(&address)?;
        let url = format!("http://{address}/");
        for report in ["before.json", "after.json"] {
            self.said(&["load", &url, "-c", "2", "-d", "2s", "-q", "-o", report], "", &[0])?;
        }
        has(&self.said(&["load", "compare", "before.json", "after.json"], "", &[0, 1])?, "http.response_time")
    }
}

/// A program that ends with the test.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Most looks whether the application listens.
const LOOKS_MAX: u32 = 200;

fn wait_for(address: &str) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if std::net::TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Err(format!("nothing listens on {address}"))
}

fn has(said: &str, part: &str) -> Result<(), String> {
    if said.contains(part) { Ok(()) } else { Err(format!("no {part:?} in: {said}")) }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
