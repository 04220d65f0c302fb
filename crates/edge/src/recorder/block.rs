//! A block: the exchanges of one worker that go to the file together.

use std::collections::BTreeSet;

use weir_recording::model::{RecordedExchange, RecordedMessage, RecordingPart};

/// Bytes of a block, about.
const BLOCK_BYTES: usize = 256 << 10;

/// A block.
#[derive(Default)]
pub struct Block {
    /// Its parts, in order.
    pub parts: Vec<RecordingPart>,
    bytes: usize,
    exchanges: u64,
    messages: u64,
    generations: BTreeSet<u64>,
}

impl Block {
    /// Adds an exchange.
    pub fn put(&mut self, exchange: RecordedExchange) {
        let answer = exchange.answer.iter().flat_map(|answer| answer.fields.iter());
        let fields = exchange.fields.iter().chain(answer);
        let fields: usize = fields.map(|field| field.name.len() + field.value.bytes.len()).sum();
        self.bytes += 256 + exchange.target.bytes.len() + fields;
        self.exchanges += 1;
        self.generations.insert(exchange.generation);
        self.parts.push(RecordingPart::Exchange(Box::new(exchange)));
    }

    /// Adds a message.
    pub fn put_message(&mut self, message: RecordedMessage) {
        self.bytes += 64 + message.content.kept.as_ref().map_or(0, |kept| kept.bytes.len());
        self.messages += 1;
        self.parts.push(RecordingPart::Message(message));
    }

    /// Whether the next exchange belongs into another block.
    pub fn is_full(&self) -> bool {
        self.bytes >= BLOCK_BYTES
    }

    /// Exchanges in it.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Messages in it.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Exchanges and messages in it.
    pub fn count(&self) -> u64 {
        self.exchanges + self.messages
    }

    /// The generations of configurations that its exchanges name.
    pub fn generations(&self) -> impl Iterator<Item = u64> {
        self.generations.iter().copied()
    }
}
