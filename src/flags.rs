//! nginx's own command line, exactly: bundled letters, values with or without a space before them, nginx's messages.
//!
//! This file does not use clap, because weir promises nginx's grammar (`-tqc FILE`, `-pDIR`, `-?`).
//! <https://nginx.org/en/docs/switches.html>

use std::ffi::OsString;

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-?`, `-h`.
    pub help: bool,
    /// `-v`.
    pub version: bool,
    /// `-V`.
    pub version_long: bool,
    /// `-t`.
    pub test: bool,
    /// `-T`.
    pub dump: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-s`.
    pub signal: Option<SignalOrder>,
    /// `-p`.
    pub prefix: Option<String>,
    /// `-c`.
    pub file: Option<String>,
    /// `-e`.
    pub error_log: Option<String>,
    /// `-g`.
    pub globals: Option<String>,
    /// `--crossplane`: the parsed configuration as JSON (weir's own).
    pub crossplane: bool,
    /// `--reference`: every directive, as a page (weir's own).
    pub reference: bool,
    /// `--reference-metrics`: every metric, as a page (weir's own).
    pub reference_metrics: bool,
    /// `--explain`: where weir's defaults differ from nginx's (weir's own).
    pub explain: bool,
}

/// The signals that `-s` can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SignalOrder {
    Stop,
    Quit,
    Reopen,
    Reload,
}

/// Parses the arguments; errors have nginx's wording.
pub fn parse(args: &[OsString]) -> Result<Flags, String> {
    let mut flags = Flags::default();
    let mut words = args.iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--crossplane" => flags.crossplane = true,
            "--explain" => flags.explain = true,
            "--reference" => flags.reference = true,
            "--reference-metrics" => flags.reference_metrics = true,
            "--help" => flags.help = true,
            _ => {
                let Some(letters) = word.strip_prefix('-') else { return Err(format!("invalid option: \"{word}\"")) };
                bundle(&mut flags, letters, &mut words)?;
            }
        }
    }
    Ok(flags)
}

fn bundle(flags: &mut Flags, letters: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let mut value = |what: &str| {
            let rest = &letters[at + letter.len_utf8()..];
            if rest.is_empty() {
                words.next().ok_or_else(|| format!("option \"-{letter}\" requires {what}"))
            } else {
                Ok(rest.to_owned())
            }
        };
        match letter {
            '?' | 'h' => flags.help = true,
            'v' => flags.version = true,
            'V' => flags.version_long = true,
            't' => flags.test = true,
            'T' => (flags.test, flags.dump) = (true, true),
            'q' => flags.quiet = true,
            'p' => return value("directory name").map(|value| flags.prefix = Some(value)),
            'c' => return value("file name").map(|value| flags.file = Some(value)),
            'e' => return value("file name").map(|value| flags.error_log = Some(value)),
            'g' => return value("parameter").map(|value| flags.globals = Some(value)),
            's' => {
                let order = value("parameter")?;
                flags.signal = Some(match order.as_str() {
                    "stop" => SignalOrder::Stop,
                    "quit" => SignalOrder::Quit,
                    "reopen" => SignalOrder::Reopen,
                    "reload" => SignalOrder::Reload,
                    _ => return Err(format!("invalid option: \"-s {order}\"")),
                });
                return Ok(());
            }
            _ => return Err(format!("invalid option: \"{letter}\"")),
        }
    }
    Ok(())
}

/// The text that `-?` prints.
pub const HELP: &str = "\
Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]
             [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path
  -e filename   : set error log file
  -c filename   : set configuration file
  -g directives : set global directives out of configuration file

weir's own:
  --crossplane  : with -t, print the parsed configuration as JSON
  --explain     : with -T, say where defaults differ from nginx's
  --reference   : print every directive, where it stands and its default
  --reference-metrics : print every metric of the metrics directive
";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(args: &[&str], expect: Result<Flags, &str>) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        assert_eq!(parse(&args), expect.map_err(str::to_owned), "{args:?}");
    }

    #[test]
    fn the_command_line_is_nginx_s() {
        check(&["-tq"], Ok(Flags { test: true, quiet: true, ..Flags::default() }));
        check(
            &["-pDIR/", "-c", "f"],
            Ok(Flags { prefix: Some("DIR/".into()), file: Some("f".into()), ..Flags::default() }),
        );
        check(&["-tc", "f"], Ok(Flags { test: true, file: Some("f".into()), ..Flags::default() }));
        check(&["-s", "reload"], Ok(Flags { signal: Some(SignalOrder::Reload), ..Flags::default() }));
        check(&["-s", "again"], Err("invalid option: \"-s again\""));
        check(&["-c"], Err("option \"-c\" requires file name"));
        check(&["-z"], Err("invalid option: \"z\""));
        check(&["file"], Err("invalid option: \"file\""));
    }
}
