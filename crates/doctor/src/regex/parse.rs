//! Parses PCRE's syntax to a tree, as far as questions about possible matches need it.
//!
//! PCRE2 is the reference. The parser either reads a pattern that PCRE2 accepts, or reports that it cannot. It works
//! on bytes, as nginx does unless a pattern begins with `(*UTF8)`.

use super::set::ByteSet;

/// Most bytes of a pattern that is parsed.
pub const PATTERN_BYTES_MAX: usize = 8192;

/// Deepest nesting of groups.
const DEPTH_MAX: usize = 64;

/// A pattern as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Matches the empty text.
    Empty,
    /// One byte of a set.
    Set(ByteSet),
    /// All of them, one after the other.
    Seq(Vec<Node>),
    /// One of them.
    Alt(Vec<Node>),
    /// A repetition.
    Repeat {
        /// The repeated part.
        node: Box<Node>,
        /// Least number of repetitions.
        min: u32,
        /// Most repetitions; `None` without a limit.
        max: Option<u32>,
        /// Whether it is possessive (`a++`).
        keeps: bool,
    },
    /// `( )`.
    Group {
        /// Its number, if it captures.
        number: Option<usize>,
        /// Its name, if it has one.
        name: Option<String>,
        /// Whether it is atomic (`(?> )`).
        atomic: bool,
        /// Its content.
        node: Box<Node>,
    },
    /// `(?= )` and other look-arounds; consumes no text.
    Look(Box<Node>),
    /// `^`, `\A`: the beginning.
    Start,
    /// `$`, `\z`, `\Z`: the end.
    End,
    /// `\b` and others that consume no text.
    Boundary,
    /// `\1`: a back-reference to a group's match.
    Back,
}

/// Parses a pattern. `None` if it is too long, too deep, or has unknown syntax.
pub fn parse(pattern: &str, caseless: bool) -> Option<Node> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let mut reader = Reader { bytes: pattern.as_bytes(), at: 0, groups: 0, depth: 0 };
    let flags = Flags { caseless, dot_all: false, extended: false };
    let node = reader.alternatives(&mut flags.clone())?;
    (reader.at == reader.bytes.len()).then_some(node)
}

#[derive(Clone)]
struct Flags {
    caseless: bool,
    dot_all: bool,
    extended: bool,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    groups: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, text: &[u8]) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if found {
            self.at += text.len();
        }
        found
    }

    /// The bytes before `end`. Skips `end` too.
    fn until(&mut self, end: u8) -> Option<&[u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == end)?;
        self.at += length + 1;
        rest.get(..length)
    }

    fn alternatives(&mut self, flags: &mut Flags) -> Option<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut branches = vec![self.sequence(flags)?];
        while self.take(b"|") {
            branches.push(self.sequence(flags)?);
        }
        self.depth -= 1;
        if branches.len() == 1 { branches.pop() } else { Some(Node::Alt(branches)) }
    }

    fn sequence(&mut self, flags: &mut Flags) -> Option<Node> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None | Some(b'|' | b')') => break,
                Some(b' ' | b'\t' | b'\n' | b'\r') if flags.extended => self.at += 1,
                Some(b'#') if flags.extended => {
                    self.until(b'\n')?;
                }
                Some(_) => {
                    if let Some(item) = self.item(flags)? {
                        items.push(self.repeated(item)?);
                    }
                }
            }
        }
        Some(match items.len() {
            0 => Node::Empty,
            1 => items.pop()?,
            _ => Node::Seq(items),
        })
    }

    /// One part that can be repeated. `Some(None)` for flags and comments.
    fn item(&mut self, flags: &mut Flags) -> Option<Option<Node>> {
        let node = match self.next()? {
            b'(' => return self.group(flags),
            b'[' => Node::Set(self.class(flags)?),
            b'.' if flags.dot_all => Node::Set(ByteSet::ALL),
            b'.' => Node::Set(ByteSet::one(b'\n').others()),
            b'^' => Node::Start,
            b'$' => Node::End,
            b'\\' => return self.escaped(flags),
            byte => Node::Set(letter(byte, flags)),
        };
        Some(Some(node))
    }

    fn repeated(&mut self, mut node: Node) -> Option<Node> {
        loop {
            let (min, max) = match self.peek() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') => match self.counts() {
                    Some((counts, length)) => {
                        self.at += length - 1;
                        counts
                    }
                    None => return Some(node),
                },
                Some(_) | None => return Some(node),
            };
            self.at += 1;
            let keeps = self.take(b"+");
            if !keeps {
                self.take(b"?");
            }
            node = Node::Repeat { node: Box::new(node), min, max, keeps };
        }
    }

    /// Reads `{2}`, `{2,}`, `{2,5}` or `{,5}` ahead, with its length. Any other text in braces is literal.
    fn counts(&self) -> Option<((u32, Option<u32>), usize)> {
        let rest = self.bytes.get(self.at + 1..)?;
        let length = rest.iter().position(|byte| *byte == b'}')?;
        let inner = std::str::from_utf8(rest.get(..length)?).ok()?;
        let counts = match inner.split_once(',') {
            None => (inner.parse().ok()?, Some(inner.parse().ok()?)),
            Some((low, "")) => (low.parse().ok()?, None),
            Some(("", high)) => (0, Some(high.parse().ok()?)),
            Some((low, high)) => (low.parse().ok()?, Some(high.parse().ok()?)),
        };
        Some((counts, length + 2))
    }

    fn group(&mut self, flags: &mut Flags) -> Option<Option<Node>> {
        if self.take(b"*") {
            // Verbs such as (*UTF8); they consume no text.
            self.until(b')')?;
            return Some(None);
        }
        let (mut number, mut name, mut atomic, mut looks) = (None, None, false, false);
        let mut inner = flags.clone();
        if self.take(b"?") {
            if self.take(b"#") {
                self.until(b')')?;
                return Some(None);
            }
            if self.take(b"<=") || self.take(b"<!") || self.take(b"=") || self.take(b"!") {
                looks = true;
            } else if self.take(b">") {
                atomic = true;
            } else if self.take(b"|") {
                // Branches that share group numbers are read as a plain group.
            } else if self.take(b"P<") || self.take(b"<") {
                name = Some(String::from_utf8_lossy(self.until(b'>')?).into_owned());
            } else if self.take(b"'") {
                name = Some(String::from_utf8_lossy(self.until(b'\'')?).into_owned());
            } else if !self.flags(&mut inner)? {
                *flags = inner;
                return Some(None);
            }
        } else {
            self.groups += 1;
            number = Some(self.groups);
        }
        if name.is_some() {
            self.groups += 1;
            number = Some(self.groups);
        }
        let node = Box::new(self.alternatives(&mut inner)?);
        self.take(b")").then_some(())?;
        Some(Some(if looks { Node::Look(node) } else { Node::Group { number, name, atomic, node } }))
    }

    /// Flags such as `i`, `s`, `-x`, up to `:` (true: a group follows) or `)` (false: they hold from here on).
    fn flags(&mut self, flags: &mut Flags) -> Option<bool> {
        let mut on = true;
        loop {
            match self.next()? {
                b'i' => flags.caseless = on,
                b's' => flags.dot_all = on,
                b'x' => flags.extended = on,
                b'm' | b'U' | b'J' | b'n' | b'^' => {}
                b'-' => on = false,
                b':' => return Some(true),
                b')' => return Some(false),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self, flags: &Flags) -> Option<Option<Node>> {
        let byte = self.next()?;
        Some(Some(match byte {
            b'A' | b'G' => Node::Start,
            b'z' | b'Z' => Node::End,
            b'b' | b'B' | b'K' => Node::Boundary,
            b'1'..=b'9' => {
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
                Node::Back
            }
            b'k' | b'g' => {
                match self.next()? {
                    b'{' => drop(self.until(b'}')?),
                    b'<' => drop(self.until(b'>')?),
                    b'\'' => drop(self.until(b'\'')?),
                    b'0'..=b'9' => {}
                    _ => return None,
                }
                Node::Back
            }
            b'Q' => {
                let rest = self.bytes.get(self.at..)?;
                let end = rest.windows(2).position(|two| two == b"\\E");
                let text = rest.get(..end.unwrap_or(rest.len()))?;
                self.at += end.map_or(rest.len(), |end| end + 2);
                Node::Seq(text.iter().map(|byte| Node::Set(letter(*byte, flags))).collect())
            }
            b'E' => return Some(None),
            b'R' => Node::Set(ByteSet::of(b"\r\n\x0b\x0c")),
            b'X' | b'C' => Node::Set(ByteSet::ALL),
            other => Node::Set(self.escape(other, flags)?),
        }))
    }

    /// The bytes of an escape, inside and outside of `[ ]`.
    fn escape(&mut self, byte: u8, flags: &Flags) -> Option<ByteSet> {
        Some(match byte {
            b'd' => class_named(b"digit")?,
            b'D' => class_named(b"digit")?.others(),
            b'w' => class_named(b"word")?,
            b'W' => class_named(b"word")?.others(),
            b's' => class_named(b"space")?,
            b'S' => class_named(b"space")?.others(),
            b'h' => ByteSet::of(b" \t"),
            b'H' => ByteSet::of(b" \t").others(),
            b'v' => ByteSet::of(b"\n\x0b\x0c\r"),
            b'V' => ByteSet::of(b"\n\x0b\x0c\r").others(),
            b'N' => ByteSet::one(b'\n').others(),
            b'n' => ByteSet::one(b'\n'),
            b'r' => ByteSet::one(b'\r'),
            b't' => ByteSet::one(b'\t'),
            b'f' => ByteSet::one(0x0c),
            b'e' => ByteSet::one(0x1b),
            b'a' => ByteSet::one(7),
            b'0' => ByteSet::one(0),
            b'x' => letter(self.hexadecimal()?, flags),
            b'p' | b'P' => {
                // A Unicode property may contain any byte.
                if self.take(b"{") {
                    self.until(b'}')?;
                } else {
                    self.next()?;
                }
                ByteSet::ALL
            }
            byte if byte.is_ascii_alphanumeric() => return None,
            byte => ByteSet::one(byte),
        })
    }

    fn hexadecimal(&mut self) -> Option<u8> {
        if self.take(b"{") {
            let digits = self.until(b'}')?;
            return u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        }
        let mut value: u8 = 0;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else { break };
            self.at += 1;
            value = value.wrapping_mul(16).wrapping_add(u8::try_from(digit).ok()?);
        }
        Some(value)
    }

    fn class(&mut self, flags: &Flags) -> Option<ByteSet> {
        let negated = self.take(b"^");
        let mut set = ByteSet::NONE;
        let mut first = true;
        loop {
            let byte = self.next()?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            if byte == b'[' && self.take(b":") {
                let negated = self.take(b"^");
                let name = self.until(b':')?.to_vec();
                self.take(b"]").then_some(())?;
                let named = class_named(&name)?;
                set = set.or(if negated { named.others() } else { named });
                continue;
            }
            let low = if byte == b'\\' { self.class_escape(flags)? } else { ByteSet::one(byte) };
            let is_range = self.peek() == Some(b'-') && !matches!(self.bytes.get(self.at + 1), None | Some(b']'));
            match (is_range && low.len() == 1, low.bytes().next()) {
                (true, Some(from)) => {
                    self.at += 1;
                    let byte = self.next()?;
                    let high = if byte == b'\\' { self.class_escape(flags)? } else { ByteSet::one(byte) };
                    match (high.len(), high.bytes().next()) {
                        (1, Some(to)) => set = set.or(ByteSet::range(from, to)),
                        _ => set = set.or(low).or(ByteSet::one(b'-')).or(high),
                    }
                }
                _ => set = set.or(low),
            }
        }
        let set = if flags.caseless { set.caseless() } else { set };
        Some(if negated { set.others() } else { set })
    }

    fn class_escape(&mut self, flags: &Flags) -> Option<ByteSet> {
        match self.next()? {
            b'b' => Some(ByteSet::one(8)),
            b'E' | b'Q' => Some(ByteSet::NONE),
            byte => self.escape(byte, flags),
        }
    }
}

fn letter(byte: u8, flags: &Flags) -> ByteSet {
    if flags.caseless { ByteSet::one(byte).caseless() } else { ByteSet::one(byte) }
}

/// The classes `[:alpha:]` and the other names of POSIX and PCRE.
fn class_named(name: &[u8]) -> Option<ByteSet> {
    let test: fn(&u8) -> bool = match name {
        b"alpha" => u8::is_ascii_alphabetic,
        b"digit" => u8::is_ascii_digit,
        b"alnum" => u8::is_ascii_alphanumeric,
        b"upper" => u8::is_ascii_uppercase,
        b"lower" => u8::is_ascii_lowercase,
        b"punct" => u8::is_ascii_punctuation,
        b"xdigit" => u8::is_ascii_hexdigit,
        b"cntrl" => u8::is_ascii_control,
        b"graph" => u8::is_ascii_graphic,
        b"print" => |byte| byte.is_ascii_graphic() || *byte == b' ',
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"word" => |byte| byte.is_ascii_alphanumeric() || *byte == b'_',
        b"ascii" => u8::is_ascii,
        _ => return None,
    };
    Some(ByteSet::of(&(0..=u8::MAX).filter(test).collect::<Vec<_>>()))
}
