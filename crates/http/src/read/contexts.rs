//! The blocks that allow a directive, and the number of its arguments.

use std::fmt;

/// The kinds of block a directive may stand in, as a bit set (nginx: `NGX_HTTP_LOC_CONF` and friends).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Contexts(pub u16);

/// Top level of the file.
pub const MAIN: Contexts = Contexts(1);
/// `events { }`.
pub const EVENTS: Contexts = Contexts(1 << 1);
/// `http { }`.
pub const HTTP: Contexts = Contexts(1 << 2);
/// `server { }` inside `http`.
pub const SERVER: Contexts = Contexts(1 << 3);
/// `location { }`.
pub const LOCATION: Contexts = Contexts(1 << 4);
/// `upstream { }`.
pub const UPSTREAM: Contexts = Contexts(1 << 5);
/// `if { }` at server level.
pub const SERVER_IF: Contexts = Contexts(1 << 6);
/// `if { }` inside a location.
pub const LOCATION_IF: Contexts = Contexts(1 << 7);
/// `limit_except { }`.
pub const LIMIT_EXCEPT: Contexts = Contexts(1 << 8);
/// `match { }`.
pub const MATCH: Contexts = Contexts(1 << 9);
/// `stream { }`.
pub const STREAM: Contexts = Contexts(1 << 10);
/// `server { }` inside `stream`.
pub const STREAM_SERVER: Contexts = Contexts(1 << 11);
/// `upstream { }` inside `stream`.
pub const STREAM_UPSTREAM: Contexts = Contexts(1 << 12);
/// `match` inside `stream`.
pub const STREAM_MATCH: Contexts = Contexts(1 << 13);
/// The two levels of `stream` that most of its settings are inherited through.
pub const SS: Contexts = STREAM.or(STREAM_SERVER);
/// All blocks of `stream`.
pub const ALL_OF_STREAM: Contexts = SS.or(STREAM_UPSTREAM);
/// The three levels most settings are inherited through.
pub const HSL: Contexts = HTTP.or(SERVER).or(LOCATION);

impl Contexts {
    /// Both sets together.
    pub const fn or(self, other: Contexts) -> Contexts {
        Contexts(self.0 | other.0)
    }

    /// Whether the two sets share a block kind.
    pub const fn meets(self, other: Contexts) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for Contexts {
    /// The block kinds in nginx's documentation's words: `http, server, location`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Contexts, &str); 14] = [
            (MAIN, "main"),
            (EVENTS, "events"),
            (HTTP, "http"),
            (SERVER, "server"),
            (LOCATION, "location"),
            (UPSTREAM, "upstream"),
            (SERVER_IF, "if in server"),
            (LOCATION_IF, "if in location"),
            (LIMIT_EXCEPT, "limit_except"),
            (MATCH, "match"),
            (STREAM, "stream"),
            (STREAM_SERVER, "stream server"),
            (STREAM_UPSTREAM, "stream upstream"),
            (STREAM_MATCH, "stream match"),
        ];
        let mut first = true;
        for (context, name) in NAMES {
            if self.meets(context) {
                f.write_str(if first { "" } else { ", " })?;
                f.write_str(name)?;
                first = false;
            }
        }
        Ok(())
    }
}

/// How many arguments a directive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one, `on` or `off`.
    Flag,
    /// From the first to the second number, both included.
    Between(u8, u8),
    /// That many or more.
    AtLeast(u8),
}

impl Arity {
    /// Exactly `n`.
    pub const fn exactly(n: u8) -> Arity {
        Arity::Between(n, n)
    }

    /// Whether a statement may have that many arguments.
    pub fn admits(self, count: usize) -> bool {
        match self {
            Arity::Flag => count == 1,
            Arity::Between(low, high) => (usize::from(low)..=usize::from(high)).contains(&count),
            Arity::AtLeast(low) => count >= usize::from(low),
        }
    }
}

/// No argument.
pub const NONE: Arity = Arity::exactly(0);
/// One argument.
pub const ONE: Arity = Arity::exactly(1);
/// Two arguments.
pub const TWO: Arity = Arity::exactly(2);
