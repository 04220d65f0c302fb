//! The server processes that a keeper starts, as QUIC knows them: each has a number in its connection ids, and all have one
//! secret. A server that takes the place of one that died can so reset the connections that are lost.

use weir_net::process;

use crate::drive::quic::process::{HostKey, QuicProcess};

/// The processes of a keeper.
pub struct Processes {
    host_key: HostKey,
    /// The number of the keeper among those that have replaced one another.
    keeper: u8,
    /// The number of the next process among those of the keeper.
    next: u8,
}

impl Processes {
    /// Those of a keeper that has started none; the old binary has left it the secret.
    pub fn new() -> Processes {
        let left = process::inherited_secret();
        let (host_key, keeper) = left.as_deref().and_then(read).unwrap_or_else(|| (HostKey::random(), 0));
        Processes { host_key, keeper, next: 0 }
    }

    /// The next process. Its number is free again after 255 others.
    pub fn next(&mut self) -> QuicProcess {
        let number = u16::from_be_bytes([self.keeper, self.next]);
        self.next = self.next.wrapping_add(1);
        QuicProcess { host_key: self.host_key.clone(), number }
    }

    /// The text for a new binary, which no command may show.
    pub fn secret(&self) -> String {
        format!("{}{:02x}", self.host_key.as_text(), self.keeper.wrapping_add(1))
    }
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::new()
    }
}

/// The secret, and the number of the keeper that has it.
fn read(text: &str) -> Option<(HostKey, u8)> {
    let (key, keeper) = text.split_at_checked(text.len().checked_sub(2)?)?;
    Some((HostKey::from_text(key)?, u8::from_str_radix(keeper, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_a_secret_and_no_number_also_after_an_upgrade() {
        let mut old = Processes::new();
        let (one, two) = (old.next(), old.next());
        let (host_key, keeper) = read(&old.secret()).unwrap();
        let three = Processes { host_key, keeper, next: 0 }.next();
        assert!(one.host_key == two.host_key && one.host_key == three.host_key);
        assert_eq!([one.number, two.number, three.number], [0, 1, 0x100]);
        for text in ["", "1", "12", &old.secret()[2..], &format!("é{}", &old.secret()[2..])] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
