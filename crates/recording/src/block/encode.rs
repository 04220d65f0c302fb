//! Writes the parts of a block: each string and each list of fields once, and later by its number.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::block::form::{BLOCK_BYTES, FIELD_BYTES, HIDDEN_BYTES, SHARED_BYTES_MAX};
use crate::block::table::{Numbers, is_same};
use crate::cbor;

/// Why a block does not take a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRefusal {
    /// The block is full: hand it on, and push again.
    Full,
    /// The part is larger than a part may be. No block takes it.
    Large,
}

/// The place of a text in an exchange. Equal bytes in other places may have other secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// A field: a name in any case, and its value.
    Field,
    /// A target.
    Target,
    /// Bytes that are written as they are, with their hidden places.
    Ready,
    /// A text in UTF-8, that is written as it is.
    Text,
}

/// A text of a part, as the caller has it.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'p> {
    pub(crate) kind: PieceKind,
    /// The name, if it is a field.
    pub(crate) name: Option<&'p [u8]>,
    pub(crate) value: &'p [u8],
    pub(crate) hidden: &'p [(u32, u32)],
}

/// Bytes for the block, with their hidden places.
pub(crate) type Shown<'p> = (&'p [u8], &'p [(u32, u32)]);

/// Replaces secrets.
pub(crate) trait Hide {
    /// The bytes of a piece for the block.
    fn hide<'p>(&'p mut self, piece: &Piece<'p>) -> Shown<'p>;
}

/// Replaces nothing.
pub(crate) struct Hidden;

impl Hide for Hidden {
    fn hide<'p>(&'p mut self, piece: &Piece<'p>) -> Shown<'p> {
        (piece.value, piece.hidden)
    }
}

/// The fields of a message.
pub(crate) trait Pieces {
    /// Gives each field to `take`: each time the same ones.
    fn each(&self, take: impl FnMut(Piece<'_>));
}

/// A text that the block has.
struct Known {
    id: PieceId,
    /// The name, the value and the hidden places, one behind the other in `keys`.
    key: u32,
    /// Its form from the second time on, in `again`.
    again: Range<u32>,
    /// The memory that a reader needs.
    bytes: u32,
}

/// The key of a text in the table: equal texts have equal keys. It lacks the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PieceId {
    kind: PieceKind,
    has_name: bool,
    name: u32,
    value: u32,
    hidden: u32,
}

impl PieceId {
    #[inline]
    fn of(piece: &Piece<'_>) -> PieceId {
        PieceId {
            kind: piece.kind,
            has_name: piece.name.is_some(),
            name: piece.name.map_or(0, <[u8]>::len) as u32,
            value: piece.value.len() as u32,
            hidden: piece.hidden.len() as u32,
        }
    }
}

/// A list of fields that is looked up: for each field the number of `known`, if there is one, and the hash.
#[derive(Default)]
pub(crate) struct Looked {
    fields: Vec<(Option<u32>, u64)>,
    is_known: bool,
}

/// A block that grows.
pub(crate) struct Encoder {
    pub(crate) out: Vec<u8>,
    parts: u32,
    hash: FixedState,
    known: Vec<Known>,
    known_numbers: Numbers,
    keys: Vec<u8>,
    again: Vec<u8>,
    /// The names of fields: each range of `out`, and the number of the string.
    names: Vec<(Range<u32>, u32)>,
    name_numbers: Numbers,
    /// Strings that have a number.
    string_count: u32,
    /// The fields of a list, as numbers of `known`: a range of `ids`.
    lists: Vec<Range<u32>>,
    list_numbers: Numbers,
    ids: Vec<u32>,
    lower: Vec<u8>,
    shared_bytes: usize,
}

/// The bytes of a block before its first part: the scope of strings, and an array with a count of four bytes.
const HEAD: [u8; 8] = [0xd9, 0x01, 0x00, 0x9a, 0, 0, 0, 0];

impl Encoder {
    /// An empty block. `seed`: for the hashes of the tables; nobody outside should know it.
    pub(crate) fn new(seed: u64) -> Encoder {
        Encoder {
            out: HEAD.to_vec(),
            parts: 0,
            hash: FixedState::with_seed(seed),
            known: Vec::new(),
            known_numbers: Numbers::default(),
            keys: Vec::new(),
            again: Vec::new(),
            names: Vec::new(),
            name_numbers: Numbers::default(),
            string_count: 0,
            lists: Vec::new(),
            list_numbers: Numbers::default(),
            ids: Vec::new(),
            lower: Vec::new(),
            shared_bytes: 0,
        }
    }

    /// Bytes of the block, also of an empty one.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.out.len() >= BLOCK_BYTES || self.shared_bytes > SHARED_BYTES_MAX / 2
    }

    /// The block. The next one begins in `buffer`.
    pub(crate) fn take(&mut self, mut buffer: Vec<u8>) -> Vec<u8> {
        self.out[HEAD.len() - 4..HEAD.len()].copy_from_slice(&self.parts.to_be_bytes());
        buffer.clear();
        buffer.extend_from_slice(&HEAD);
        self.parts = 0;
        self.shared_bytes = 0;
        self.known.clear();
        self.names.clear();
        self.string_count = 0;
        self.lists.clear();
        for numbers in [&mut self.known_numbers, &mut self.name_numbers, &mut self.list_numbers] {
            numbers.clear();
        }
        self.keys.clear();
        self.again.clear();
        self.ids.clear();
        std::mem::replace(&mut self.out, buffer)
    }

    /// Begins a part with so many items.
    pub(crate) fn part(&mut self, kind: u64, count: u64) {
        self.parts += 1;
        self.array(count);
        self.number(kind);
    }

    #[inline]
    pub(crate) fn array(&mut self, count: u64) {
        cbor::put(&mut self.out, cbor::ARRAY, count);
    }

    #[inline]
    pub(crate) fn number(&mut self, number: u64) {
        cbor::put(&mut self.out, cbor::NUMBER, number);
    }

    #[inline]
    pub(crate) fn option(&mut self, number: Option<u64>) {
        cbor::put_option(&mut self.out, number);
    }

    #[inline]
    pub(crate) fn bool(&mut self, is: bool) {
        cbor::put_bool(&mut self.out, is);
    }

    pub(crate) fn null(&mut self) {
        cbor::put_null(&mut self.out);
    }

    /// Writes bytes that are no secret, and probably occur again.
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.piece(&Piece { kind: PieceKind::Ready, name: None, value, hidden: &[] }, &mut Hidden);
    }

    /// Writes a text that is no secret, and probably occurs again.
    pub(crate) fn text(&mut self, value: &str) {
        self.piece(&Piece { kind: PieceKind::Text, name: None, value: value.as_bytes(), hidden: &[] }, &mut Hidden);
    }

    /// Writes a text that is not kept for a second time as a whole, such as a body.
    pub(crate) fn once(&mut self, (bytes, hidden): Shown<'_>) {
        let mut again = std::mem::take(&mut self.again);
        let before = again.len();
        self.shown(cbor::BYTES, (bytes, hidden), &mut again);
        again.truncate(before);
        self.again = again;
    }

    /// Writes a text in its place.
    pub(crate) fn piece(&mut self, piece: &Piece<'_>, hide: &mut impl Hide) {
        let hash = self.hash_of(piece);
        match self.find(hash, piece) {
            Some(number) => self.repeat(number),
            None => {
                self.first(hash, piece, hide);
            }
        }
    }

    /// Looks up a list of fields, before it is written. The bytes of the list, with those that each field needs.
    #[inline]
    pub(crate) fn look(&self, fields: &impl Pieces, looked: &mut Looked) -> usize {
        looked.fields.clear();
        looked.is_known = true;
        let mut bytes = 0;
        fields.each(|piece| {
            bytes += piece.name.map_or(0, <[u8]>::len) + piece.value.len() + FIELD_BYTES;
            let hash = self.hash_of(&piece);
            let number = self.find(hash, &piece);
            looked.is_known &= number.is_some();
            looked.fields.push((number, hash));
        });
        bytes
    }

    /// Writes a list of fields that is looked up.
    pub(crate) fn fields(&mut self, fields: &impl Pieces, looked: &mut Looked, hide: &mut impl Hide) {
        if looked.fields.is_empty() {
            self.array(0);
        } else if let Some(number) = self.known_list(looked) {
            cbor::put(&mut self.out, cbor::TAG, cbor::TAG_SHARED_REF);
            self.number(u64::from(number));
        } else {
            self.first_list(&mut looked.fields, fields, hide);
        }
    }

    /// The number of a list that the block has.
    fn known_list(&self, looked: &Looked) -> Option<u32> {
        let list = &looked.fields;
        let hash = if looked.is_known { self.hash_of_list(list) } else { return None };
        self.list_numbers.find(hash, |number| {
            let range = self.lists.get(number as usize).cloned().unwrap_or_default();
            let ids = self.ids.get(range.start as usize..range.end as usize).unwrap_or_default();
            ids.len() == list.len() && ids.iter().zip(list).all(|(id, (number, _))| Some(*id) == *number)
        })
    }

    fn first_list(&mut self, list: &mut [(Option<u32>, u64)], fields: &impl Pieces, hide: &mut impl Hide) {
        cbor::put(&mut self.out, cbor::TAG, cbor::TAG_SHARED);
        self.array(list.len() as u64 * 2);
        let mut entries = list.iter_mut();
        fields.each(|piece| {
            let Some((number, hash)) = entries.next() else { return };
            // A field may be new to the block and twice in the exchange.
            match number.or_else(|| self.find(*hash, &piece)) {
                Some(known) => {
                    self.repeat(known);
                    *number = Some(known);
                }
                None => *number = Some(self.first(*hash, &piece, hide)),
            }
        });
        let begin = self.ids.len() as u32;
        self.ids.extend(list.iter().filter_map(|(number, _)| *number));
        for (number, _) in list.iter() {
            let known = number.and_then(|number| self.known.get(number as usize));
            self.shared_bytes += FIELD_BYTES + known.map_or(0, |known| known.bytes as usize);
        }
        self.lists.push(begin..self.ids.len() as u32);
        self.list_numbers.add(self.hash_of_list(list));
    }

    fn hash_of_list(&self, list: &[(Option<u32>, u64)]) -> u64 {
        let mut hasher = self.hash.build_hasher();
        list.iter().for_each(|(number, _)| hasher.write_u32(number.unwrap_or_default()));
        hasher.finish()
    }

    #[inline]
    fn hash_of(&self, piece: &Piece<'_>) -> u64 {
        let mut hasher = self.hash.build_hasher();
        let name = piece.name.unwrap_or_default();
        hasher.write_u64((piece.kind as u64) << 32 | name.len() as u64);
        hasher.write(name);
        hasher.write(piece.value);
        hasher.finish()
    }

    /// The number of a piece that the block has.
    #[inline]
    fn find(&self, hash: u64, piece: &Piece<'_>) -> Option<u32> {
        let id = PieceId::of(piece);
        let name = piece.name.unwrap_or_default();
        self.known_numbers.find(hash, |number| {
            let Some(known) = self.known.get(number as usize).filter(|known| known.id == id) else { return false };
            let Some(key) = self.keys.get(known.key as usize..) else { return false };
            let Some((key_name, key)) = key.split_at_checked(name.len()) else { return false };
            let Some((value, hidden)) = key.split_at_checked(piece.value.len()) else { return false };
            let is_hidden = |(key, hidden): (&[u8], &(u32, u32))| *key == bytes(hidden);
            is_same(key_name, name)
                && is_same(value, piece.value)
                && (id.hidden == 0 || hidden.chunks_exact(8).zip(piece.hidden).all(is_hidden))
        })
    }

    #[inline]
    fn repeat(&mut self, number: u32) {
        if let Some(known) = self.known.get(number as usize) {
            self.out.extend_from_slice(&self.again[known.again.start as usize..known.again.end as usize]);
        }
    }

    /// Writes a piece for the first time.
    fn first(&mut self, hash: u64, piece: &Piece<'_>, hide: &mut impl Hide) -> u32 {
        let key = self.keys.len() as u32;
        let name = piece.name.unwrap_or_default();
        self.keys.extend_from_slice(name);
        self.keys.extend_from_slice(piece.value);
        piece.hidden.iter().for_each(|hidden| self.keys.extend_from_slice(&bytes(hidden)));
        let mut again = std::mem::take(&mut self.again);
        let begin = again.len() as u32;
        if piece.name.is_some() {
            let mut lower = std::mem::take(&mut self.lower);
            lower.clear();
            lower.extend(name.iter().map(u8::to_ascii_lowercase));
            self.name(&lower, &mut again);
            self.lower = lower;
        }
        let shown = hide.hide(piece);
        let bytes = name.len() + shown.0.len() + shown.1.len() * HIDDEN_BYTES;
        self.shown(if piece.kind == PieceKind::Text { cbor::TEXT } else { cbor::BYTES }, shown, &mut again);
        let again_at = begin..again.len() as u32;
        self.known.push(Known { id: PieceId::of(piece), key, again: again_at, bytes: bytes as u32 });
        self.again = again;
        self.known_numbers.add(hash)
    }

    /// Writes bytes with their hidden places, and appends their next form to `again`.
    fn shown(&mut self, major: u8, (bytes, hidden): Shown<'_>, again: &mut Vec<u8>) {
        if hidden.is_empty() {
            return self.string(major, bytes, again);
        }
        cbor::put(again, cbor::ARRAY, 2);
        self.array(2);
        self.string(major, bytes, again);
        let places = self.out.len();
        self.array(hidden.len() as u64 * 2);
        for (begin, end) in hidden {
            self.number(u64::from(*begin));
            self.number(u64::from(*end));
        }
        again.extend_from_slice(&self.out[places..]);
    }

    /// Writes the name of a field, or its number, and appends its next form to `again`.
    fn name(&mut self, name: &[u8], again: &mut Vec<u8>) {
        let hash = self.hash.hash_one(name);
        let is_it = |(range, _): &(Range<u32>, u32)| self.out[range.start as usize..range.end as usize] == *name;
        let found = self.name_numbers.find(hash, |place| self.names.get(place as usize).is_some_and(is_it));
        if let Some((_, number)) = found.and_then(|place| self.names.get(place as usize)) {
            let begin = self.out.len();
            put_reference(&mut self.out, *number);
            again.extend_from_slice(&self.out[begin..]);
            return;
        }
        let number = self.string_count;
        self.string(cbor::BYTES, name, again);
        if self.string_count > number {
            let end = self.out.len() as u32;
            self.names.push((end - name.len() as u32..end, number));
            self.name_numbers.add(hash);
        }
    }

    /// Writes a string that is not looked up, and appends its next form to `again`: the value that a field has had before is found with
    /// its name, and other strings seldom occur twice.
    fn string(&mut self, major: u8, string: &[u8], again: &mut Vec<u8>) {
        cbor::put(&mut self.out, major, string.len() as u64);
        self.out.extend_from_slice(string);
        if string.len() >= cbor::length_of_numbered(self.string_count as usize) {
            put_reference(again, self.string_count);
            self.string_count += 1;
        } else {
            cbor::put(again, major, string.len() as u64);
            again.extend_from_slice(string);
        }
    }
}

fn put_reference(out: &mut Vec<u8>, number: u32) {
    cbor::put(out, cbor::TAG, cbor::TAG_STRING_REF);
    cbor::put(out, cbor::NUMBER, u64::from(number));
}

/// A hidden place as a part of a key.
fn bytes(hidden: &(u32, u32)) -> [u8; 8] {
    (u64::from(hidden.0) << 32 | u64::from(hidden.1)).to_le_bytes()
}
