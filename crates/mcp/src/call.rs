//! The child that reads files for a call: it gives up the rest of the file system, does the first part of the tool, and prints one
//! line of JSON. It ends with the server.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_net::process::{self, Signal};
use weir_net::worker;

use crate::guard::NamedFiles;
use crate::input::Arguments;
use crate::settings::ServerSettings;
use crate::tool::{self, Prepared, ToolCall};
use crate::tools;

/// Most bytes of the line from the server.
const LINE_BYTES_MAX: u64 = 2 << 20;
/// The time between the two orders to end. A verb ends by itself after the first one; the second one ends it at once.
const BETWEEN: Duration = Duration::from_millis(400);

/// The line for a child: a call with the choices of the person.
pub fn line(tool: &str, arguments: &Arguments, settings: &Value, made: u64) -> String {
    json!({"tool": tool, "arguments": arguments.json(), "settings": settings, "made": made}).to_string()
}

/// Reads one line of standard input, byte by byte, so that the rest stays for [`end_with_parent`].
fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line)?;
    Ok(line)
}

/// Ends this process when its standard input closes: the server has ended, or orders the end.
///
/// # Errors
/// There can be no thread.
pub fn end_with_parent() -> io::Result<()> {
    worker::block_aside("lifeline", || {
        let mut rest = [0; 256];
        while let Ok(1..) = io::stdin().lock().read(&mut rest) {}
        loop {
            if process::send_signal(std::process::id(), Signal::Term).is_err() {
                std::process::exit(1);
            }
            std::thread::sleep(BETWEEN);
        }
    })
}

/// Does the work of the child; returns the exit code.
pub fn serve() -> u8 {
    match first_line().map_err(|error| error.to_string()).and_then(|line| answer(&line)) {
        Ok(answer) => {
            let mut out = io::stdout().lock();
            // A server that has gone needs no answer.
            let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
            0
        }
        Err(why) => {
            let _ =
                writeln!(io::stderr(), "weir mcp starts this command and writes one line to its standard input: {why}");
            2
        }
    }
}

fn answer(line: &str) -> Result<Value, String> {
    let asked: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let row = asked["tool"].as_str().and_then(tools::find).ok_or("no tool")?;
    let settings = ServerSettings::of_parent(&asked["settings"]);
    let room = PathBuf::from(asked["settings"]["room"].as_str().ok_or("no room")?);
    let arguments = Arguments::read(row.parameters, &asked["arguments"]).map_err(|why| why.en().to_owned())?;
    confine(&settings, &room);
    end_with_parent().map_err(|error| error.to_string())?;
    let call = ToolCall {
        row,
        arguments: &arguments,
        settings: &settings,
        guard: NamedFiles::new(settings.dirs.clone()),
        room,
        made: asked["made"].as_u64().unwrap_or(0),
    };
    Ok(match tool::prepare(&call) {
        Prepared::Answer(answer) => json!({"answer": answer}),
        Prepared::Run(run) => json!({"run": run.json()}),
    })
}

/// Gives up the file system but for the directories and the room of the server. On a kernel without Landlock, the guard alone
/// bounds what is read.
fn confine(settings: &ServerSettings, room: &Path) {
    let reads = settings.dirs.iter().map(PathBuf::as_path);
    let _ = process::forbid_more_rights().and_then(|()| process::restrict_files(reads, [room]));
}
