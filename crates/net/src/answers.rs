//! The machine's answers to the questions of a configuration: bytes of files, names in directories, addresses of hosts.
//!
//! The keeper reads a configuration as root and records each answer. The server reads the same configuration without
//! root: it gets the same answers from the record. A thread without a record asks the machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QuestionKind {
    /// The bytes of a file.
    File = 1,
    /// The files that match a pattern, a line each.
    Pattern = 2,
    /// The identity of a file and its last change.
    Stamp = 3,
    /// Whether every user may read a file.
    Public = 4,
    /// The addresses of a host, a line each.
    Host = 5,
}

impl QuestionKind {
    const ALL: [QuestionKind; 5] =
        [QuestionKind::File, QuestionKind::Pattern, QuestionKind::Stamp, QuestionKind::Public, QuestionKind::Host];
}

/// An answer: bytes, or an error as its number (0 if it has none) and its text.
type Answer = Result<Vec<u8>, (i32, String)>;

/// All answers that one configuration got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers(HashMap<(QuestionKind, String), Answer>);

/// The record of a thread.
enum Record {
    None,
    Writing(Answers),
    Reading(Answers),
    /// No question goes to the machine.
    Closed,
}

thread_local! {
    static RECORD: RefCell<Record> = const { RefCell::new(Record::None) };
}

/// The answer to a question: from this thread's record, else from the machine, which `machine` asks.
///
/// # Errors
/// The machine's error; from a record with the same number and text.
pub fn ask(kind: QuestionKind, name: &str, machine: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let known = RECORD.with_borrow(|record| match record {
        Record::Reading(answers) => answers.0.get(&(kind, name.to_owned())).cloned(),
        Record::Closed => Some(Err((0, "the machine is not asked".to_owned()))),
        Record::None | Record::Writing(_) => None,
    });
    if let Some(answer) = known {
        return answer.map_err(|(number, text)| match number {
            0 => io::Error::other(text),
            number => io::Error::from_raw_os_error(number),
        });
    }
    let answer = machine();
    RECORD.with_borrow_mut(|record| {
        if let Record::Writing(answers) = record {
            let kept = answer.as_ref().map(Clone::clone);
            let kept = kept.map_err(|error| (error.raw_os_error().unwrap_or(0), error.to_string()));
            answers.0.insert((kind, name.to_owned()), kept);
        }
    });
    answer
}

/// Runs `read`, and records the answers that this thread gets meanwhile.
pub fn recorded<T>(read: impl FnOnce() -> T) -> (T, Answers) {
    RECORD.set(Record::Writing(Answers::default()));
    let result = read();
    match RECORD.replace(Record::None) {
        Record::Writing(answers) => (result, answers),
        Record::None | Record::Reading(_) | Record::Closed => (result, Answers::default()),
    }
}

/// Runs `read` with the answers of a record. A question that the record does not have goes to the machine.
pub fn replayed<T>(answers: Answers, read: impl FnOnce() -> T) -> T {
    RECORD.set(Record::Reading(answers));
    let result = read();
    RECORD.set(Record::None);
    result
}

/// Runs `read` without a machine: each question gets an error, and no file is read and no name is looked up.
pub fn unasked<T>(read: impl FnOnce() -> T) -> T {
    RECORD.set(Record::Closed);
    let result = read();
    RECORD.set(Record::None);
    result
}

impl Answers {
    /// Adds the answers of another record.
    pub fn extend(&mut self, more: Answers) {
        self.0.extend(more.0);
    }

    /// Sets the bytes of a file.
    pub fn set_file(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.insert((QuestionKind::File, name.to_owned()), Ok(bytes));
    }

    /// The record as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for ((kind, name), answer) in &self.0 {
            bytes.push(*kind as u8);
            put(&mut bytes, name.as_bytes());
            match answer {
                Ok(answer) => {
                    bytes.extend(0i32.to_le_bytes());
                    put(&mut bytes, answer);
                }
                Err((number, text)) => {
                    // A number that is no error's marks an error without one.
                    bytes.extend(if *number == 0 { -1 } else { *number }.to_le_bytes());
                    put(&mut bytes, text.as_bytes());
                }
            }
        }
        bytes
    }

    /// The record of [`Answers::to_bytes`]; `None` for other bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Answers> {
        let mut answers = HashMap::new();
        while let Some((kind, rest)) = bytes.split_first() {
            bytes = rest;
            let kind = QuestionKind::ALL.into_iter().find(|known| *known as u8 == *kind)?;
            let name = text(take(&mut bytes)?)?;
            let (number, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            let answer = take(&mut bytes)?;
            let answer = match i32::from_le_bytes(*number) {
                0 => Ok(answer.to_vec()),
                -1 => Err((0, text(answer)?)),
                number => Err((number, text(answer)?)),
            };
            answers.insert((kind, name), answer);
        }
        Some(Answers(answers))
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

fn take<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(part)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn questions() -> Vec<io::Result<Vec<u8>>> {
        vec![
            ask(QuestionKind::File, "/there", || Ok(b"text".to_vec())),
            ask(QuestionKind::Stamp, "/there", || Ok(Vec::new())),
            ask(QuestionKind::File, "/missing", || Err(io::Error::from_raw_os_error(libc::ENOENT))),
            ask(QuestionKind::Host, "host", || Err(io::Error::other("no such host"))),
        ]
    }

    fn shown(answers: &[io::Result<Vec<u8>>]) -> Vec<String> {
        answers.iter().map(|answer| format!("{:?}", answer.as_ref().map_err(ToString::to_string))).collect()
    }

    #[test]
    fn a_record_gives_the_same_answers_and_errors_without_the_machine() {
        let (asked, answers) = recorded(questions);
        let sent = Answers::from_bytes(&answers.to_bytes()).unwrap();
        assert_eq!(sent, answers);
        let machine = || -> io::Result<Vec<u8>> { unreachable!("the record has the answer") };
        let replayed = replayed(sent, || {
            vec![
                ask(QuestionKind::File, "/there", machine),
                ask(QuestionKind::Stamp, "/there", machine),
                ask(QuestionKind::File, "/missing", machine),
                ask(QuestionKind::Host, "host", machine),
            ]
        });
        assert_eq!(shown(&asked), shown(&replayed));
        assert_eq!(replayed[2].as_ref().unwrap_err().kind(), io::ErrorKind::NotFound);
        // Afterwards, and for an unknown name, the machine answers.
        assert_eq!(ask(QuestionKind::File, "/there", || Ok(b"new".to_vec())).unwrap(), b"new");
        let mut changed = answers.clone();
        changed.set_file("/missing", b"there".to_vec());
        assert_eq!(super::replayed(changed, || ask(QuestionKind::File, "/missing", machine)).unwrap(), b"there");
        assert_eq!(super::replayed(answers, || ask(QuestionKind::File, "/else", || Ok(b"x".to_vec()))).unwrap(), b"x");
        assert_eq!(
            unasked(|| ask(QuestionKind::File, "/there", machine)).unwrap_err().to_string(),
            "the machine is not asked"
        );
        assert!(ask(QuestionKind::File, "/there", || Ok(Vec::new())).is_ok());
    }

    mod mutate {
        use super::*;

        /// A record that is read is written and read again as the same record, and is no longer than its bytes.
        #[test]
        fn records() {
            let (_, answers) = recorded(questions);
            let words: [&[u8]; 6] = [&[1], &[2; 8], &[0; 8], &[4, 0, 0, 0, 0, 0, 0, 0], &[255; 8], b"text"];
            weir_mutate::mutate(&[answers.to_bytes()], &words, |bytes| {
                if let Some(read) = Answers::from_bytes(bytes) {
                    let again = read.to_bytes();
                    assert!(again.len() <= bytes.len());
                    assert_eq!(Answers::from_bytes(&again), Some(read));
                }
            });
        }
    }

    #[test]
    fn damaged_records_are_none() {
        let (_, answers) = recorded(questions);
        let bytes = answers.to_bytes();
        let whole = (0..bytes.len()).filter(|cut| Answers::from_bytes(&bytes[..*cut]).is_some()).count();
        // Only the ends of the four answers are ends of a record.
        assert_eq!(whole, 4);
        assert_eq!(Answers::from_bytes(&[9]), None);
    }
}
