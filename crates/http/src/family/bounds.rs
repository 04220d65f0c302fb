//! weir's own: the most that all clients together may make weir hold.
//!
//! nginx has such limits only for each client. Without these lines, the machine decides ([`crate::hold::bounds`]).

use weir_conf::Statement;

use crate::read::directive::{Directive, MAIN, ONE};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::value;

crate::settings! {
    /// `limit_memory`.
    memory: Most = Most::Default,
    /// `limit_buffers`.
    buffers: Most = Most::Default,
    /// `limit_temp_files`.
    temp_files: Most = Most::Default,
    /// `limit_streams`.
    streams: Most = Most::Default,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The most that may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// The machine decides.
    Default,
    /// Without a limit.
    Off,
    /// So many bytes or streams.
    Of(u64),
}

/// The family.
#[rustfmt::skip]
pub static FAMILY: Family = Family::new("bounds", &[
    Directive::new("limit_memory", MAIN, ONE,
        "weir's own: the most memory that the process may have; off for no limit. Above it, weir closes idle connections, and \
         refuses new connections and new streams.",
        |b, s| { let most = most(s, value::offset_of)?; b.settings().bounds.memory = Some(most); Ok(()) })
        .default("80 % of the memory that the machine or the cgroup has"),
    Directive::new("limit_buffers", MAIN, ONE,
        "weir's own: the most memory that exchanges may take together beyond 64 kilobytes each, for compression, for reading ahead \
         of slow clients, for lists of directories and indexes of movies; off for no limit. Above half of it, weir compresses with \
         small windows; above it, weir does not compress, reads an answer no faster than the client takes it, and answers 503 \
         where it cannot do without the memory.",
        |b, s| { let most = most(s, value::offset_of)?; b.settings().bounds.buffers = Some(most); Ok(()) })
        .default("a quarter of limit_memory"),
    Directive::new("limit_temp_files", MAIN, ONE,
        "weir's own: the most bytes that temporary files may have together; off for no limit. Above it, weir answers 503 to a \
         request whose body needs a file, and reads answers no faster than clients take them.",
        |b, s| { let most = most(s, value::offset_of)?; b.settings().bounds.temp_files = Some(most); Ok(()) })
        .default("half of the free bytes where the temporary files are"),
    Directive::new("limit_streams", MAIN, ONE,
        "weir's own: the most streams of HTTP/2 that all clients together may have open; off for no limit. weir refuses a \
         stream above it with REFUSED_STREAM: the client may repeat the request.",
        |b, s| { let most = most(s, value::number)?; b.settings().bounds.streams = Some(most); Ok(()) })
        .default("one for each 64 kilobytes of half of limit_memory"),
]);

fn most(statement: &Statement, read: fn(&str) -> Option<u64>) -> Result<Most, Refusal> {
    match statement.text(0) {
        "off" => Ok(Most::Off),
        text => match read(text).filter(|most| *most > 0) {
            Some(most) => Ok(Most::Of(most)),
            None => Err(Refusal::directive("invalid value").todo("write off, or a number above 0")),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::of_text;

    #[test]
    fn limits_are_sizes_or_off() {
        let (conf, said) =
            of_text("limit_memory 1g; limit_temp_files off; limit_streams 70; limit_buffers 30m; events {} http { }");
        let conf = conf.ok_or(said).unwrap();
        let bounds = &conf.main.bounds;
        assert_eq!((bounds.memory, bounds.temp_files, bounds.streams), (Most::Of(1 << 30), Most::Off, Most::Of(70)));
        assert_eq!(bounds.buffers, Most::Of(30 << 20));
        for line in ["limit_memory 0;", "limit_streams 1k;", "limit_buffers 0;", "limit_temp_files -1;"] {
            let (conf, said) = of_text(&format!("{line} events {{}} http {{ }}"));
            assert!(conf.is_none() && said[0].contains("invalid value"), "{line}: {said:?}");
        }
    }
}
