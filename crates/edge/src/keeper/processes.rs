//! The server processes that a keeper starts, as QUIC knows them: each has a number in its connection ids, and all have one
//! secret. A server that takes the place of one that died can so reset the connections that are lost.
//!
//! Each process has an inbox. The keeper keeps the other end, and gives it to the processes that it starts later, and to a new
//! binary.

use weir_net::forward::ForwardEnd;
use weir_net::process;

use crate::drive::quic::process::{HostKey, QuicProcess, QuicWays};

/// The processes of a keeper.
pub struct Processes {
    host_key: HostKey,
    /// The number of the keeper among those that have replaced one another.
    keeper: u8,
    /// The number of the next process among those of the keeper.
    next: u8,
    /// The ways to the processes, also to those of the keepers before.
    ends: Vec<(u16, ForwardEnd)>,
}

impl Processes {
    /// Those of a keeper that has started none; the old binary has left it the secret and its processes.
    pub fn new() -> Processes {
        let left = process::inherited_secret();
        let Some((host_key, keeper, numbers)) = left.as_deref().and_then(read) else {
            return Processes { host_key: HostKey::random(), keeper: 0, next: 0, ends: Vec::new() };
        };
        let ends = numbers.into_iter().zip(process::inherited_forwards()).collect();
        Processes { host_key, keeper, next: 0, ends }
    }

    /// The next process. Its number is free again after 255 others.
    ///
    /// # Errors
    /// The kernel has no more descriptors.
    pub fn begin(&mut self) -> std::io::Result<(QuicProcess, QuicWays)> {
        let number = u16::from_be_bytes([self.keeper, self.next]);
        let (here, there) = ForwardEnd::pair()?;
        self.next = self.next.wrapping_add(1);
        self.ends.retain(|(other, end)| *other != number && !end.has_ended());
        let ways = QuicWays { inbox: Some(there), older: self.ends.clone() };
        self.ends.push((number, here));
        Ok((QuicProcess { host_key: self.host_key.clone(), number }, ways))
    }

    /// For a new binary: a text, which no command may show, and the ways to the processes.
    pub fn left(&mut self) -> (String, Vec<ForwardEnd>) {
        self.ends.retain(|(_, end)| !end.has_ended());
        let numbers: String = self.ends.iter().map(|(number, _)| format!("{number:04x}")).collect();
        let text = format!("{};{:02x};{numbers}", self.host_key.as_text(), self.keeper.wrapping_add(1));
        (text, self.ends.iter().map(|(_, end)| end.clone()).collect())
    }
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::new()
    }
}

/// The secret, the number of the keeper that has it, and those of the processes before.
fn read(text: &str) -> Option<(HostKey, u8, Vec<u16>)> {
    let (key, rest) = text.split_once(';')?;
    let (keeper, numbers) = rest.split_once(';')?;
    let number = |digits: &[u8]| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let numbers: Option<Vec<u16>> = numbers.as_bytes().chunks(4).map(number).collect();
    Some((HostKey::from_text(key)?, u8::from_str_radix(keeper, 16).ok()?, numbers?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn processes_share_a_secret_and_no_number_also_after_an_upgrade() {
        let mut old = Processes::new();
        let (one, ways_of_one) = old.begin().unwrap();
        let (two, ways_of_two) = old.begin().unwrap();
        assert!(ways_of_one.older.is_empty() && ways_of_two.older.len() == 1);
        let (text, ends) = old.left();
        let (host_key, keeper, numbers) = read(&text).unwrap();
        assert_eq!((numbers, ends.len()), (vec![0, 1], 2));
        let mut new = Processes { host_key, keeper, next: 0, ends: Vec::new() };
        let (three, _) = new.begin().unwrap();
        assert!(one.host_key == two.host_key && one.host_key == three.host_key);
        assert_eq!([one.number, two.number, three.number], [0, 1, 0x100]);
        drop(ways_of_one);
        assert_eq!(old.left().1.len(), 1);
        for text in ["", "1", "12;;", &text[2..], &text.replace(";01;", ";x;")] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
