//! The head of a stored answer in its final form, with gaps for the parts that differ each time: composed once, then
//! copied.
//!
//! Pure: bytes in, bytes out. The exchange decides which answers have heads that differ only in the gaps
//! (`family::cache::plain`).

use weir_wire::encode;

/// A head that is ready to be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Ready {
    /// The configuration and the location whose directives made it.
    pub made_in: (u32, u32),
    /// The codings in which clients that accept them get the body, as a set of bits of their numbers.
    pub codings: u8,
    /// The head without the digits of `Age`.
    bytes: Box<[u8]>,
    /// The position of the value of weir's own `Date`, if the head has one.
    date: Option<usize>,
    /// The range of the lines about the connection.
    connection: (usize, usize),
    /// The position for the digits of `Age`.
    age: usize,
}

/// The length of a date (RFC 9110 §5.6.7).
const DATE_BYTES: usize = 29;

const CLOSE: &[u8] = b"Connection: close\r\n";

impl Ready {
    /// Makes a ready head from one that was composed for a client with keep-alive. `None` if a required line is
    /// missing: `Connection: keep-alive`, `Age`, and with `own_date` a `Date`.
    pub fn of(head: &[u8], made_in: (u32, u32), own_date: bool, codings: u8) -> Option<Ready> {
        let date = if own_date { Some(value_of(head, b"Date: ")?) } else { None };
        if let Some((from, to)) = date
            && to - from != DATE_BYTES
        {
            return None;
        }
        let (from, to) =
            value_of(head, b"Connection: ").filter(|(from, to)| head.get(*from..*to) == Some(b"keep-alive"))?;
        // nginx: the Keep-Alive field follows at once.
        let after = head.get(to + 2..)?;
        let told = if after.starts_with(b"Keep-Alive: ") { line_len(after)? } else { 0 };
        let connection = (from - b"Connection: ".len(), to + 2 + told);
        let (age, age_end) = value_of(head, b"Age: ")?;
        if age < connection.1 {
            return None;
        }
        let bytes = [head.get(..age)?, head.get(age_end..)?].concat().into();
        Some(Ready { made_in, codings, bytes, date: date.map(|(from, _)| from), connection, age })
    }

    /// Appends the head.
    pub fn write(&self, keeps_alive: bool, age_s: u32, date: &[u8; DATE_BYTES], out: &mut Vec<u8>) {
        let (from, to) = self.connection;
        let start = out.len();
        out.reserve(self.bytes.len() + 10);
        let (before, after) = self.bytes.split_at_checked(self.age).unwrap_or((&self.bytes, &[]));
        if keeps_alive {
            out.extend_from_slice(before);
        } else {
            out.extend_from_slice(before.get(..from).unwrap_or_default());
            out.extend_from_slice(CLOSE);
            out.extend_from_slice(before.get(to..).unwrap_or_default());
        }
        encode::push_decimal(out, u64::from(age_s));
        out.extend_from_slice(after);
        // The date comes before the connection lines, so its position is always the same.
        if let Some(place) = self.date
            && let Some(value) = out.get_mut(start + place..start + place + DATE_BYTES)
        {
            value.copy_from_slice(date);
        }
    }

    /// Its size in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Ready>() + 2 * size_of::<usize>() + self.bytes.len()) as u64
    }
}

/// The range of the value in the first line with this beginning.
fn value_of(head: &[u8], beginning: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    loop {
        let line = head.get(at..)?;
        let len = line_len(line)?;
        if line.starts_with(beginning) {
            return Some((at + beginning.len(), at + len - 2));
        }
        at += len;
    }
}

/// The length of a line with its end.
fn line_len(text: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, b"\r\n").map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &[u8; 29] = b"Mon, 07 Nov 1994 00:00:00 GMT";

    fn head(date: &str, connection: &str, age: &str) -> Vec<u8> {
        format!(
            "HTTP/1.1 200 OK\r\nServer: s\r\nDate: {date}\r\nContent-Length: 4\r\n{connection}X-Age: 5\r\nAge: {age}\r\n\
             X: Date: Age: 7\r\n\r\n"
        )
        .into_bytes()
    }

    fn shown(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_ready_head_is_the_composed_one_with_other_dates_and_ages() {
        for told in ["", "Keep-Alive: timeout=5\r\n"] {
            let alive = format!("Connection: keep-alive\r\n{told}");
            let ready = Ready::of(&head(shown(DATE), &alive, "12"), (1, 2), true, 0).unwrap();
            for (age, keeps_alive) in [(0, true), (4_000_000_000, true), (7, false)] {
                let mut out = b"before".to_vec();
                ready.write(keeps_alive, age, LATER, &mut out);
                let connection = if keeps_alive { alive.as_str() } else { "Connection: close\r\n" };
                let expected = head(shown(LATER), connection, &age.to_string());
                assert_eq!(shown(&out), format!("before{}", shown(&expected)));
            }
        }
    }

    #[test]
    fn a_stored_date_stays() {
        let text = head("of its own form", "Connection: keep-alive\r\n", "1");
        let ready = Ready::of(&text, (1, 2), false, 0).unwrap();
        let mut out = Vec::new();
        ready.write(true, 1, LATER, &mut out);
        assert_eq!(out, text);
    }

    #[test]
    fn a_head_without_its_lines_is_not_one_to_copy() {
        let alive = "Connection: keep-alive\r\n";
        assert!(Ready::of(&head("short", alive, "1"), (1, 2), true, 0).is_none());
        assert!(Ready::of(&head(shown(DATE), "", "1"), (1, 2), true, 0).is_none());
        assert!(Ready::of(&head(shown(DATE), "Connection: close\r\n", "1"), (1, 2), true, 0).is_none());
        assert!(Ready::of(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", (1, 2), false, 0).is_none());
        assert!(Ready::of(b"HTTP/1.1 200 OK\r\nAge: 1\r\nConnection: keep-alive\r\n\r\n", (1, 2), false, 0).is_none());
        for cut in 0..40 {
            let text = head(shown(DATE), alive, "1");
            Ready::of(&text[..cut], (1, 2), true, 0);
        }
    }
}
