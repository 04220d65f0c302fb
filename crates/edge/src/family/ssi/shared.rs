//! The variables, the blocks and the captures that SSI commands of a request and its subrequests share.

use std::cell::RefCell;
use std::rc::Rc;

use weir_http::exchange::Exchange;
use weir_http::hold::own::Owned;
use weir_http::text::slots::Captures;

/// Bytes of all variables and blocks of one request of a client, at most.
pub const BYTES_MAX: usize = 1 << 20;

/// Variables and blocks of one request of a client, at most.
pub const ENTRIES_MAX: usize = 1000;

/// The refusal of a variable or a block, for the log.
pub const TOO_MUCH: &str = "the SSI variables and blocks of one request need more than 1 MiB or 1000 entries";

/// The values.
#[derive(Default)]
pub struct SsiShared {
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    /// The captures of the last regular expression that matched.
    pub captures: Captures,
}

/// More than [`BYTES_MAX`] or [`ENTRIES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch;

/// The handle of an exchange.
#[derive(Clone)]
pub struct Handle(Rc<RefCell<SsiShared>>);

impl Owned for Handle {
    fn copy(&self) -> Option<Box<dyn Owned>> {
        Some(Box::new(self.clone()))
    }
}

impl Handle {
    /// The values of an exchange, which its subrequests share.
    pub fn of(exchange: &mut Exchange<'_>) -> Handle {
        if let Some(known) = exchange.own.get::<Handle>() {
            return known.clone();
        }
        let new = Handle(Rc::default());
        exchange.own.add(new.clone());
        new
    }

    /// Does something with the values.
    pub fn with<R>(&self, work: impl FnOnce(&mut SsiShared) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

impl SsiShared {
    /// Appends the value of a variable, or of the capture that a digit names; `false` if there is none.
    pub fn read(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        if let [digit @ b'0'..=b'9'] = name
            && let Some(text) = self.captures.get(usize::from(digit - b'0'))
        {
            out.extend_from_slice(text);
            return true;
        }
        match self.variables.iter().find(|(known, _)| known == name) {
            Some((_, value)) => {
                out.extend_from_slice(value);
                true
            }
            None => false,
        }
    }

    /// Sets a variable; its name is in lower case.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), TooMuch> {
        let Some((_, place)) = self.variables.iter_mut().find(|(known, _)| known == name) else {
            self.take_room(name.len() + value.len(), true)?;
            self.variables.push((name.to_vec(), value.to_vec()));
            return Ok(());
        };
        let old = std::mem::take(place);
        self.bytes -= old.len();
        self.take_room(value.len(), false)?;
        if let Some((_, place)) = self.variables.iter_mut().find(|(known, _)| known == name) {
            *place = value.to_vec();
        }
        Ok(())
    }

    /// Begins a block.
    pub fn begin_block(&mut self, name: &[u8]) -> Result<(), TooMuch> {
        self.take_room(name.len(), true)?;
        self.blocks.push((name.to_vec(), Vec::new()));
        Ok(())
    }

    /// Appends to the block that began last.
    pub fn push_to_block(&mut self, text: &[u8]) -> Result<(), TooMuch> {
        self.take_room(text.len(), false)?;
        if let Some((_, block)) = self.blocks.last_mut() {
            block.extend_from_slice(text);
        }
        Ok(())
    }

    /// The text of the first block of this name.
    pub fn block(&self, name: &[u8]) -> Option<&[u8]> {
        self.blocks.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_slice())
    }

    fn take_room(&mut self, bytes: usize, is_new: bool) -> Result<(), TooMuch> {
        let is_full = is_new && self.variables.len() + self.blocks.len() >= ENTRIES_MAX;
        if is_full || self.bytes + bytes > BYTES_MAX {
            return Err(TooMuch);
        }
        self.bytes += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_entries_are_bounded() {
        let mut shared = SsiShared::default();
        let half = vec![b'x'; BYTES_MAX / 2];
        assert_eq!(shared.set(b"a", &half), Ok(()));
        assert_eq!(shared.set(b"a", &half), Ok(()), "a new value takes the place of the old one");
        assert_eq!(shared.set(b"b", &half), Err(TooMuch), "the names count too");
        assert_eq!(shared.begin_block(b"b"), Ok(()));
        assert_eq!(shared.push_to_block(&half), Err(TooMuch));
        for number in 2..ENTRIES_MAX {
            assert_eq!(shared.set(format!("{number}").as_bytes(), b""), Ok(()));
        }
        assert_eq!(shared.set(b"last", b""), Err(TooMuch));
        assert_eq!(shared.begin_block(b"last"), Err(TooMuch));
    }
}
