//! `weir canary`: a second configuration beside that of a running edge, for a share of its clients.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use weir_edge::canary::say;
use weir_edge::canary::terms::{CanaryOrder, TIME_MAX, Terms, check_share};
use weir_edge::canary::upstreams::UpstreamPair;
use weir_edge::keeper::canary::{self, CanaryAsk, CanaryAsked, CanaryShown};
use weir_edge::load::{ConfOrigin, read_tree};
use weir_http::hold::split::SplitKey;
use weir_http::text::value;
use weir_meter::live::{Canary, CanaryPhase};
use weir_net::process::{self, Signal};
use weir_net::{Instant, clock};
use weir_words::{Language, Said, said, say};

use crate::files::Disk;
use crate::{edge, flags, texts};

const AFTER_HELP: &str = "\
The edge reads FILE as the file that it runs: relative names mean the same. A client belongs to one configuration by a keyed hash
of its key. First the edge looks at the traffic, says how many clients an answer needs, and refuses traffic that gives none. Then the
judge looks after every client: harm rolls back at once, and a proof that harm is below the margins promotes. A promotion
is a reload with FILE; the next reload reads the edge's own file, so move FILE there: weir canary FILE --wait && mv FILE nginx.conf.

With --split, the second configuration is the one in force with the names of two upstreams exchanged: a share of the clients gets the
servers of NEXT wherever the configuration names OF. After a promotion, exchange the names in the edge's own file too.

A reload, an upgrade of the binary and the end of the server end a canary: all clients get the old configuration.

  weir canary new.conf --share 10% --wait            until a decision
  weir canary new.conf --share 1%,10%,50% --pause 10m --for 6h --wait
  weir canary --split app=app_next --share 10% --wait
  weir canary status; weir canary share 25%; weir canary promote; weir canary rollback

Exit codes: 0 promoted, with --wait, else begun or done; 1 rolled back, or the file is refused; 2 undecided, the traffic is refused, or the command line is invalid.";

/// `weir canary`.
#[derive(Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct CanaryArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    begin: Begin,
}

/// The beginning of a canary.
#[derive(Args)]
struct Begin {
    /// The new configuration
    #[arg(value_name = "FILE", conflicts_with = "split")]
    file: Option<PathBuf>,
    /// The configuration in force, with the servers of the upstream NEXT wherever it names the upstream OF
    #[arg(long, value_name = "OF=NEXT", value_parser = pair)]
    split: Option<String>,
    /// The share of the clients that get it; with commas, one after another
    #[arg(long, value_name = "PERCENT%", default_value = "10%", value_delimiter = ',', value_parser = share)]
    share: Vec<f64>,
    /// The time of each share but the last one: 30s, 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pause: Duration,
    /// The key of a client: address, cookie:NAME, $http_NAME or $arg_NAME
    #[arg(long, value_name = "KEY", default_value = "address", value_parser = key)]
    key: String,
    /// First look at the traffic for this time: the edge says how many clients an answer needs, and refuses traffic without an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    look: Duration,
    /// Begin although the traffic cannot answer the question
    #[arg(long)]
    anyway: bool,
    /// First judge the old configuration as if a share of the clients had another one: harm that is found there is none
    #[arg(long = "aa", value_name = "TIME", value_parser = time)]
    rehearsal: Option<Duration>,
    /// Roll back after this time if there is no decision
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasts: Option<Duration>,
    /// In place of --for: judge only at five planned looks within this time, which needs fewer clients
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "lasts")]
    fixed: Option<Duration>,
    /// Do not promote when harm is excluded
    #[arg(long)]
    no_promote: bool,
    /// Wait for the decision
    #[arg(long)]
    wait: bool,
    /// The edge sends each decision as JSON to this URL, by one POST
    #[arg(long, value_name = "URL")]
    notify: Option<String>,
    #[command(flatten)]
    edge: EdgePlace,
}

#[derive(Subcommand)]
enum What {
    /// Show the canary, or the last one
    Status {
        #[command(flatten)]
        edge: EdgePlace,
    },
    /// Change the share
    Share {
        /// The share of the clients that get the new configuration
        #[arg(value_name = "PERCENT%", value_parser = share)]
        share: f64,
        #[command(flatten)]
        edge: EdgePlace,
    },
    /// Give all clients the new configuration
    Promote {
        #[command(flatten)]
        edge: EdgePlace,
    },
    /// Give all clients the old configuration
    Rollback {
        #[command(flatten)]
        edge: EdgePlace,
    },
}

/// The edge, as nginx's flags name it.
#[derive(Args)]
struct EdgePlace {
    /// The file that the edge runs [default: /etc/nginx/nginx.conf]
    #[arg(short, value_name = "FILE")]
    conf: Option<OsString>,
    /// The prefix of the edge
    #[arg(short, value_name = "PATH")]
    prefix: Option<OsString>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A percentage as a part of 1.
fn share(text: &str) -> Result<f64, Said> {
    let part = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok()).map(|percent| percent / 100.0);
    part.filter(|part| check_share(*part).is_ok())
        .ok_or_else(|| said!("write a percentage from 0.1% to 99%", "0.1%부터 99%까지의 비율을 쓰세요"))
}

fn pair(text: &str) -> Result<String, Said> {
    UpstreamPair::read(text).map(|_| text.to_owned()).map_err(|_| {
        said!(
            "write the names of two different upstreams, as in app=app_next",
            "app=app_next처럼 서로 다른 업스트림 둘의 이름을 쓰세요"
        )
    })
}

fn time(text: &str) -> Result<Duration, Said> {
    let time = value::whole_seconds_of(text).filter(|time| !time.is_zero() && *time <= TIME_MAX);
    time.ok_or_else(|| {
        said!("write a time up to 31d, such as 30s, 10m or 2h", "30s, 10m, 2h처럼 31d까지의 시간을 쓰세요")
    })
}

fn key(text: &str) -> Result<String, Said> {
    SplitKey::read(text).map(|key| key.text()).map_err(|_| {
        said!(
            "write address, cookie:NAME, $http_NAME or $arg_NAME",
            "address, cookie:NAME, $http_NAME, $arg_NAME 중 하나를 쓰세요"
        )
    })
}

/// How often the state is looked at, and how long the keeper may take for an order.
const LOOK: Duration = Duration::from_millis(100);
const ANSWER_PATIENCE: Duration = Duration::from_secs(70);

/// Rolled back, or refused.
const ROLLED_BACK: u8 = 1;
/// Undecided.
const UNDECIDED: u8 = 2;

/// Runs the verb.
pub fn main(args: CanaryArgs, language: Language) -> ExitCode {
    match run(args, language) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("weir canary: {}", message.say(language));
            ExitCode::from(ROLLED_BACK)
        }
    }
}

fn run(args: CanaryArgs, language: Language) -> Result<u8, Said> {
    let order = |edge: EdgePlace, order| {
        let place = edge.find()?;
        place.give(CanaryAsk::Order(order))?;
        // The server tells its state a moment later.
        std::thread::sleep(LOOK * 5);
        place.print(language)
    };
    match args.what {
        Some(What::Status { edge }) => edge.find()?.print(language),
        Some(What::Share { share, edge }) => order(edge, CanaryOrder::Share(share)),
        Some(What::Promote { edge }) => order(edge, CanaryOrder::Promote),
        Some(What::Rollback { edge }) => order(edge, CanaryOrder::RollBack),
        None => begin(args.begin, language),
    }
}

fn begin(begin: Begin, language: Language) -> Result<u8, Said> {
    let file = match (begin.file, begin.split) {
        (_, Some(pair)) => pair,
        (None, None) => return Err(say!(texts::CANARY_NO_FILE)),
        (Some(file), None) => {
            let of_file = |error: std::io::Error| say!(texts::OF_FILE, file.display().to_string(), error.to_string());
            // The keeper reads it: another working directory must not change which file that is.
            std::fs::canonicalize(&file).map_err(of_file)?.to_string_lossy().into_owned()
        }
    };
    let terms = Terms {
        file,
        key: begin.key,
        shares: begin.share,
        pause: begin.pause,
        look: begin.look,
        anyway: begin.anyway,
        rehearsal: begin.rehearsal,
        lasts: begin.lasts,
        fixed: begin.fixed,
        promotes: !begin.no_promote,
        notify: begin.notify,
    };
    terms.check().map_err(Said::from)?;
    let place = begin.edge.find()?;
    place.give(CanaryAsk::Start(terms))?;
    let mut is_announced = false;
    loop {
        match canary::read(&place.pid_file).and_then(|shown| shown.canary) {
            // A rehearsal may be long: then only --wait waits for its end.
            Some(canary) if !begin.wait && canary.phase != CanaryPhase::Looking => return place.print(language),
            Some(canary) if canary.phase.is_on() => {
                if let Some(said) =
                    say::announcement(&canary).filter(|_| !std::mem::replace(&mut is_announced, canary.look.is_some()))
                {
                    eprintln!("{}", said.say(language));
                }
            }
            Some(_) => return place.print(language),
            None if !Path::new(&format!("/proc/{}", place.pid)).exists() => return Err(say!(texts::CANARY_NO_EDGE)),
            None => {}
        }
        std::thread::sleep(LOOK);
    }
}

/// A running edge.
struct Place {
    pid_file: PathBuf,
    pid: u32,
    /// The file that it runs, and where its relative names point to.
    origin: ConfOrigin,
    json: bool,
}

impl EdgePlace {
    /// The edge with this pid file.
    fn find(&self) -> Result<Place, Said> {
        let named = [("-c", &self.conf), ("-p", &self.prefix)].into_iter();
        let words: Vec<OsString> =
            named.filter_map(|(flag, value)| Some([flag.into(), value.clone()?])).flatten().collect();
        let origin = edge::origin(&flags::parse(&words).map_err(Said::from)?);
        let (pid_file, pid) = edge::running(&origin).map_err(Said::from)?;
        Ok(Place { pid_file, pid, origin, json: self.json })
    }
}

impl Place {
    /// Gives the keeper an order, and waits for its answer.
    fn give(&self, what: CanaryAsk) -> Result<(), Said> {
        let number = clock::unix_ms().wrapping_mul(1 << 16) ^ u64::from(std::process::id());
        let asked = CanaryAsked { number, at_ms: clock::unix_ms(), what };
        let shown = self.pid_file.display().to_string();
        canary::give(&self.pid_file, &asked).map_err(|error| say!(texts::OF_FILE, &shown, error.to_string()))?;
        process::send_signal(self.pid, Signal::Hup).map_err(|error| say!(texts::OF_FILE, &shown, error.to_string()))?;
        let until = clock::precise() + ANSWER_PATIENCE;
        loop {
            match canary::read(&self.pid_file) {
                Some(CanaryShown { answered: Some(answered), refused, .. }) if answered == number => {
                    return refused.map_or(Ok(()), |why| Err(Said::from(why)));
                }
                _ if is_late(until) => return Err(say!(texts::CANARY_NO_ANSWER)),
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Prints the state; the result is its exit code.
    fn print(&self, language: Language) -> Result<u8, Said> {
        let shown = canary::read(&self.pid_file).unwrap_or_default();
        let Some(state) = shown.canary else { return Err(say!(texts::CANARY_NONE)) };
        if self.json {
            println!("{}", crate::schema::versioned(serde_json::to_value(&state).unwrap_or_default()));
        } else {
            let announced = say::announcement(&state).filter(|_| state.phase == CanaryPhase::Running);
            for line in [say::sentence(&state)].into_iter().chain(announced).chain(warnings(&state)) {
                println!("{}", line.say(language));
            }
        }
        Ok(match state.phase {
            CanaryPhase::Promoted => {
                if let Some(left) = self.left_to_do(&state).filter(|_| !self.json) {
                    println!("{}", left.say(language));
                }
                0
            }
            CanaryPhase::RolledBack => ROLLED_BACK,
            CanaryPhase::Undecided => UNDECIDED,
            _ => 0,
        })
    }
}

impl Place {
    /// The change of the edge's own file that a promotion leaves to the user.
    fn left_to_do(&self, promoted: &Canary) -> Option<Said> {
        let own = &self.origin.file;
        if promoted.file.starts_with('/') {
            let differs = Path::new(&promoted.file) != Path::new(own);
            return differs.then(|| say!(texts::CANARY_MOVE, own, &promoted.file));
        }
        let pair = UpstreamPair::read(&promoted.file).ok()?;
        let places = pair.places(&read_tree(&self.origin, &Disk).0).unwrap_or_default();
        Some(say!(texts::CANARY_EXCHANGE, own, &pair.of, &pair.next, places.join(", ")))
    }
}

fn is_late(until: Instant) -> bool {
    clock::precise() >= until
}

/// The reasons why the judgement is weak.
fn warnings(of: &Canary) -> Vec<Said> {
    let mut all: Vec<Said> = say::weakness(of).into_iter().collect();
    if of.requests_without_key > 0 {
        all.push(say!(texts::CANARY_KEYLESS, of.requests_without_key, &of.key));
    }
    if of.requests_lost > 0 {
        all.push(say!(texts::CANARY_LOST, of.requests_lost));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_meter::live::CanaryLook;

    #[test]
    fn shares_and_keys_are_read_or_refused() {
        assert_eq!((share("10%").ok(), share("0.5%").ok()), (Some(0.1), Some(0.005)));
        for text in ["", "10", "0%", "100%", "x%", "-1%", "NaN%"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert_eq!(key("$cookie_sid").ok().as_deref(), Some("cookie:sid"));
        assert!(key("$status").is_err());
    }

    #[test]
    fn weak_judgements_are_named() {
        let of = Canary {
            largest_client: 0.2,
            look: Some(CanaryLook::default()),
            requests_without_key: 3,
            requests_lost: 4,
            ..Canary::default()
        };
        assert_eq!(warnings(&of).len(), 3);
        assert!(warnings(&Canary::default()).is_empty());
    }
}
