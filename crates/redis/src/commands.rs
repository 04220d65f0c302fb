//! Commands in the form in which a server reads them.

/// Commands that are sent together; each has one reply.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    bytes: Vec<u8>,
    count: usize,
}

impl Commands {
    /// One command, with its name and its arguments.
    pub fn one<T: AsRef<[u8]>>(words: &[T]) -> Commands {
        let mut commands = Commands::default();
        commands.add(words);
        commands
    }

    /// Adds a command behind the others.
    pub fn add<T: AsRef<[u8]>>(&mut self, words: &[T]) {
        self.bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words.iter().map(AsRef::as_ref) {
            self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of commands, and of replies.
    pub fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lists_of_counted_words() {
        let mut commands = Commands::one(&["GET", "a\r\n"]);
        commands.add(&[b"\xff".as_slice()]);
        assert_eq!(commands.bytes(), b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n*1\r\n$1\r\n\xff\r\n");
        assert_eq!(commands.count(), 2);
    }
}
