//! The identity of a stored object: key, variant, the fields it varies by, tags.

use md5::{Digest, Md5};

/// Longest key, in bytes; a request with a longer one is not cached.
pub const KEY_BYTES_MAX: usize = 16 << 10;

/// The most tags of one object. A purge would miss the tags beyond, so the exchange refuses to store a response with
/// more.
pub const TAGS_MAX: usize = 128;

/// The most bytes of field names in `Vary`; a response with more is not stored.
pub const VARY_BYTES_MAX: usize = 4 << 10;

/// A variant of a key: a digest of the selecting fields' normalised values. [`Variant::NONE`] for a response without
/// `Vary`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variant(pub [u8; 16]);

impl Variant {
    /// A response without `Vary`.
    pub const NONE: Variant = Variant([0; 16]);

    /// The variant for the values of the selecting fields, as one text that the rules composed.
    pub fn of(values: &[u8]) -> Variant {
        Variant(Md5::digest(values).into())
    }
}

/// A surrogate key (`Surrogate-Key`, `Cache-Tag`) in stored form: 64 bits of its digest. Two keys with the same bits
/// are purged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u64);

impl Tag {
    /// The tag of a text; case matters.
    pub fn of(text: &[u8]) -> Tag {
        let digest: [u8; 16] = Md5::digest(text).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Tag(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// The identity of a stored object, shared by all parts of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The text of `proxy_cache_key`.
    pub key: Box<[u8]>,
    /// The variant.
    pub variant: Variant,
    /// The normalised names of the selecting fields; empty without `Vary`.
    pub vary: Box<[u8]>,
    /// Tags.
    pub tags: Box<[Tag]>,
}

impl Label {
    /// Its size in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Label>() + 16 + self.key.len() + self.vary.len() + self.tags.len() * size_of::<Tag>()
    }

    /// The digest in its file name: nginx's MD5 of the key; for a variant, of the key and the variant.
    pub fn digest(&self) -> [u8; 16] {
        let key = Md5::new().chain_update(&self.key);
        match self.variant {
            Variant::NONE => key.finalize().into(),
            Variant(bytes) => key.chain_update(bytes).finalize().into(),
        }
    }
}

/// A key and its hash in one zone.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) place: Place,
}

/// A place in the index: the position of the object for a request, even if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) hash: u64,
    pub(super) variant: Variant,
}

impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_nginx_names_them() {
        let mut label = Label { key: b"http://localhost/".as_slice().into(), ..Label::default() };
        // printf 'http://localhost/' | md5sum
        assert_eq!(hex(&label.digest()), "c9db569cb388e160e4b86ca1ddff84d7");
        let plain = label.digest();
        label.variant = Variant::of(b"gzip");
        assert_ne!(label.digest(), plain);
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
