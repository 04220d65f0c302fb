//! Reads the parts of a block.

use std::ops::Range;
use std::sync::Arc;

use crate::block::form::{DECODED_BYTES_MAX, FIELD_BYTES, HIDDEN_BYTES, SHARED_BYTES_MAX, count, kind};
use crate::cbor::{self, Items};
use crate::fault::FaultKind;
use crate::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedConfiguration, RecordedExchange, RecordedField,
    RecordedMessage, RecordedText, RecordedTry, RecordedVersion, RecordingPart,
};

/// The tables of a block, and the place of its next part. The caller has the bytes.
#[derive(Default)]
pub(crate) struct BlockState {
    at: usize,
    left: u64,
    /// The places of the strings that have a number, with their kind.
    strings: Vec<(Range<u32>, u8)>,
    lists: Vec<Arc<[RecordedField]>>,
    shared_bytes: usize,
}

impl BlockState {
    /// Reads the head of a block. `Err`: a fault, with its place in the block.
    pub(crate) fn begin(&mut self, block: &[u8]) -> Result<(), (u32, FaultKind)> {
        *self = BlockState::default();
        let mut items = Items::new(block, 0);
        let head = (items.head(), items.head());
        match head {
            (Some((cbor::TAG, cbor::TAG_STRINGS)), Some((cbor::ARRAY, parts))) => self.left = parts,
            _ => return Err((0, FaultKind::Form)),
        }
        self.at = items.at();
        self.ended(block)
    }

    /// Reads the next part. `None`: there is none.
    pub(crate) fn next(&mut self, block: &[u8]) -> Option<Result<RecordingPart, (u32, FaultKind)>> {
        self.left = self.left.checked_sub(1)?;
        let items = Items::new(block, self.at);
        let mut decoder = Decoder { block, items, state: self, bytes: 0 };
        let part = decoder.part();
        let at = decoder.items.at();
        self.at = at;
        Some(part.map_err(|kind| (at as u32, kind)).and_then(|part| self.ended(block).map(|()| part)))
    }

    /// After the last part, the block ends.
    fn ended(&self, block: &[u8]) -> Result<(), (u32, FaultKind)> {
        if self.left == 0 && self.at != block.len() { Err((self.at as u32, FaultKind::Form)) } else { Ok(()) }
    }
}

type Decoded<Value> = Result<Value, FaultKind>;

struct Decoder<'b, 's> {
    block: &'b [u8],
    items: Items<'b>,
    state: &'s mut BlockState,
    /// The memory of the part so far.
    bytes: usize,
}

impl<'b> Decoder<'b, '_> {
    fn part(&mut self) -> Decoded<RecordingPart> {
        let length = self.array()?;
        let (kind, expected) = (self.number()?, length);
        let form = |count: u64| if expected == count { Ok(()) } else { Err(FaultKind::Form) };
        match kind {
            kind::BEGINNING => {
                form(count::BEGINNING)?;
                Ok(RecordingPart::Beginning(Beginning {
                    unix_us: self.number()?,
                    program: self.text()?,
                    share_ppm: self.small()?,
                    key_id: self.number()?,
                    has_bodies: self.bool()?,
                }))
            }
            kind::CONFIGURATION => {
                form(count::CONFIGURATION)?;
                let (generation, path) = (self.number()?, self.text()?);
                let locations = self.list(Decoder::text, 24)?;
                Ok(RecordingPart::Configuration(RecordedConfiguration { generation, path, locations }))
            }
            kind::EXCHANGE => {
                form(count::EXCHANGE)?;
                Ok(RecordingPart::Exchange(Box::new(self.exchange()?)))
            }
            kind::MESSAGE => {
                form(count::MESSAGE)?;
                Ok(RecordingPart::Message(RecordedMessage {
                    at_us: self.number()?,
                    tunnel: self.number()?,
                    is_of_client: self.bool()?,
                    is_binary: self.bool()?,
                    content: self.body()?,
                }))
            }
            kind::LOST => {
                form(count::LOST)?;
                Ok(RecordingPart::Lost(self.losses()?))
            }
            kind::ENDING => {
                form(count::ENDING)?;
                Ok(RecordingPart::Ending(Ending {
                    at_us: self.number()?,
                    exchanges: self.number()?,
                    recorded: self.number()?,
                    lost: self.losses()?,
                }))
            }
            _ => Err(FaultKind::Form),
        }
    }

    fn exchange(&mut self) -> Decoded<RecordedExchange> {
        Ok(RecordedExchange {
            at_us: self.number()?,
            client: self.number()?,
            connection: self.number()?,
            version: self.version()?,
            is_tls: self.bool()?,
            port: self.small()?,
            method: self.bytes()?.to_vec(),
            target: self.recorded_text()?,
            fields: self.fields()?,
            body: self.body()?,
            answer: self.option(Decoder::answer)?,
            is_cut: self.bool()?,
            took_us: self.number()?,
            tries: self.list(Decoder::try_, 48)?,
            cache: self.option(Decoder::text)?,
            generation: self.number()?,
            location: self.small()?,
            tunnel: self.number()?,
        })
    }

    fn answer(&mut self) -> Decoded<RecordedAnswer> {
        self.array_of(count::ANSWER)?;
        Ok(RecordedAnswer { status: self.small()?, fields: self.fields()?, body: self.body()? })
    }

    fn try_(&mut self) -> Decoded<RecordedTry> {
        self.array_of(count::TRY)?;
        Ok(RecordedTry { peer: self.text()?, status: self.small()?, took_us: self.option(Decoder::number)? })
    }

    fn body(&mut self) -> Decoded<RecordedBody> {
        self.array_of(count::BODY)?;
        Ok(RecordedBody {
            length: self.number()?,
            hash: self.option(Decoder::number)?,
            kept: self.option(Decoder::recorded_text)?,
        })
    }

    fn losses(&mut self) -> Decoded<Losses> {
        Ok(Losses { queue: self.number()?, size: self.number()?, writing: self.number()?, large: self.number()? })
    }

    fn version(&mut self) -> Decoded<RecordedVersion> {
        Ok(match self.number()? {
            10 => RecordedVersion::Http10,
            11 => RecordedVersion::Http11,
            20 => RecordedVersion::Http2,
            30 => RecordedVersion::Http3,
            _ => return Err(FaultKind::Form),
        })
    }

    /// A list of fields: shared here, shared before, or for this part alone.
    fn fields(&mut self) -> Decoded<Arc<[RecordedField]>> {
        match self.items.peek() {
            Some((cbor::TAG, cbor::TAG_SHARED_REF)) => {
                self.items.head();
                let number = self.number()?;
                let list = usize::try_from(number).ok().and_then(|number| self.state.lists.get(number));
                list.cloned().ok_or(FaultKind::Reference)
            }
            Some((cbor::TAG, cbor::TAG_SHARED)) => {
                self.items.head();
                let before = self.bytes;
                let list = self.list_of_fields()?;
                // The list stays for the whole block, so the block pays for it.
                self.state.shared_bytes += self.bytes - before;
                self.bytes = before;
                if self.state.shared_bytes > SHARED_BYTES_MAX {
                    return Err(FaultKind::Large);
                }
                self.state.lists.push(list.clone());
                Ok(list)
            }
            _ => self.list_of_fields(),
        }
    }

    fn list_of_fields(&mut self) -> Decoded<Arc<[RecordedField]>> {
        let length = self.array()?;
        if length % 2 == 1 {
            return Err(FaultKind::Form);
        }
        let mut fields = Vec::new();
        for _ in 0..length / 2 {
            self.charge(FIELD_BYTES)?;
            fields.push(RecordedField { name: self.bytes()?.to_vec(), value: self.recorded_text()? });
        }
        Ok(fields.into())
    }

    /// Bytes, or bytes with hidden places.
    fn recorded_text(&mut self) -> Decoded<RecordedText> {
        if self.items.peek().is_none_or(|(major, _)| major != cbor::ARRAY) {
            return Ok(RecordedText::plain(self.bytes()?));
        }
        self.array_of(2)?;
        let bytes = self.bytes()?.to_vec();
        let length = self.array()?;
        if length == 0 || length % 2 == 1 {
            return Err(FaultKind::Form);
        }
        let mut hidden = Vec::new();
        let mut last = 0;
        for _ in 0..length / 2 {
            self.charge(HIDDEN_BYTES)?;
            let (begin, end): (u32, u32) = (self.small()?, self.small()?);
            if begin < last || begin >= end || end as usize > bytes.len() {
                return Err(FaultKind::Form);
            }
            last = end;
            hidden.push((begin, end));
        }
        Ok(RecordedText { bytes, hidden })
    }

    fn list<Item>(&mut self, item: impl Fn(&mut Self) -> Decoded<Item>, bytes: usize) -> Decoded<Vec<Item>> {
        let mut list = Vec::new();
        for _ in 0..self.array()? {
            self.charge(bytes)?;
            list.push(item(self)?);
        }
        Ok(list)
    }

    fn option<Item>(&mut self, item: impl Fn(&mut Self) -> Decoded<Item>) -> Decoded<Option<Item>> {
        if self.items.peek() == Some((cbor::SIMPLE, cbor::NULL)) {
            self.items.head();
            return Ok(None);
        }
        item(self).map(Some)
    }

    fn bytes(&mut self) -> Decoded<&'b [u8]> {
        self.string(cbor::BYTES)
    }

    fn text(&mut self) -> Decoded<String> {
        let bytes = self.string(cbor::TEXT)?;
        str::from_utf8(bytes).map(str::to_owned).map_err(|_| FaultKind::Form)
    }

    /// A string of this kind, here or before.
    fn string(&mut self, major: u8) -> Decoded<&'b [u8]> {
        let range = match self.head()? {
            (found, length) if found == major => {
                let range = self.items.take(length).ok_or(FaultKind::Form)?;
                let range = range.start as u32..range.end as u32;
                if range.len() >= cbor::length_of_numbered(self.state.strings.len()) {
                    self.state.strings.push((range.clone(), major));
                }
                range
            }
            (cbor::TAG, cbor::TAG_STRING_REF) => {
                let number = usize::try_from(self.number()?).map_err(|_| FaultKind::Reference)?;
                let (range, found) = self.state.strings.get(number).ok_or(FaultKind::Reference)?;
                if *found != major {
                    return Err(FaultKind::Form);
                }
                range.clone()
            }
            _ => return Err(FaultKind::Form),
        };
        self.charge(range.len())?;
        self.block.get(range.start as usize..range.end as usize).ok_or(FaultKind::Form)
    }

    fn small<Number: TryFrom<u64>>(&mut self) -> Decoded<Number> {
        Number::try_from(self.number()?).map_err(|_| FaultKind::Form)
    }

    fn number(&mut self) -> Decoded<u64> {
        self.head_of(cbor::NUMBER)
    }

    fn bool(&mut self) -> Decoded<bool> {
        match self.head_of(cbor::SIMPLE)? {
            cbor::FALSE => Ok(false),
            cbor::TRUE => Ok(true),
            _ => Err(FaultKind::Form),
        }
    }

    fn array_of(&mut self, count: u64) -> Decoded<()> {
        if self.array()? == count { Ok(()) } else { Err(FaultKind::Form) }
    }

    fn array(&mut self) -> Decoded<u64> {
        self.head_of(cbor::ARRAY)
    }

    fn head_of(&mut self, major: u8) -> Decoded<u64> {
        match self.head()? {
            (found, value) if found == major => Ok(value),
            _ => Err(FaultKind::Form),
        }
    }

    fn head(&mut self) -> Decoded<(u8, u64)> {
        self.items.head().ok_or(FaultKind::Form)
    }

    fn charge(&mut self, bytes: usize) -> Decoded<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > DECODED_BYTES_MAX { Err(FaultKind::Large) } else { Ok(()) }
    }
}
