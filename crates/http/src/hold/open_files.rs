//! The files that one worker keeps open for one configuration (`open_file_cache`).

use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::rc::Rc;

use weir_net::Instant;
use weir_net::open_files::{Limits, OpenFiles};
use weir_net::opening::Guard;

/// An open file or directory.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// The file.
    pub file: Rc<File>,
    /// Its kind, size and times when it was opened, or when its name was last looked up.
    pub facts: Metadata,
}

/// The result of opening a file, which may stay known.
#[derive(Clone, Debug)]
pub enum OpenOutcome {
    /// It is open.
    Open(OpenFile),
    /// The call in nginx's words, and the number of its error.
    Failed(&'static str, i32),
}

/// The caches of a configuration, in the order of their lines.
#[derive(Default)]
pub struct FileCaches(RefCell<Vec<OpenFiles<OpenOutcome>>>);

impl FileCaches {
    /// As [`OpenFiles::get`], in the cache of this number. `open` must not ask for files.
    pub fn get<E>(
        &self,
        number: usize,
        (name, guard): (&[u8], Guard),
        limits: &Limits,
        now: Instant,
        open: impl FnOnce(Option<&OpenOutcome>) -> Result<OpenOutcome, E>,
    ) -> Result<OpenOutcome, E> {
        let mut caches = self.0.borrow_mut();
        if caches.len() <= number {
            caches.resize_with(number + 1, OpenFiles::default);
        }
        match caches.get_mut(number) {
            Some(cache) => cache.get(name, guard, limits, now, open),
            None => open(None),
        }
    }

    /// Closes all files that no exchange uses; `false` if none was open.
    pub fn clear(&self) -> bool {
        self.0.borrow_mut().iter_mut().fold(false, |had_some, cache| cache.clear() | had_some)
    }
}
