//! The status of an answer.

/// The status of an answer: the client gets it, `$status` has it, and the log will have it.
///
/// An error fixes it. The location that makes the error's page then answers with a status of its own, which has no effect
/// (nginx: `err_status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCode {
    code: u16,
    is_fixed: bool,
}

impl StatusCode {
    /// The number; 0 until there is one.
    #[inline]
    pub fn get(self) -> u16 {
        self.code
    }

    /// Whether an error fixed it.
    #[inline]
    pub fn is_fixed(self) -> bool {
        self.is_fixed
    }

    /// A handler or an origin answers with this status. A fixed status stays.
    #[inline]
    pub fn answer(&mut self, code: u16) {
        if !self.is_fixed {
            self.code = code;
        }
    }

    /// An error has this status.
    pub fn fix(&mut self, code: u16) {
        *self = StatusCode { code, is_fixed: true };
    }

    /// The location that makes the error's page also decides about the status (`error_page 404 = /page`).
    pub fn free(&mut self) {
        *self = StatusCode::default();
    }

    /// A filter makes another answer of this one, for example 304 of 200.
    #[inline]
    pub fn turn(&mut self, code: u16) {
        self.code = code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_s_status_outlasts_its_page() {
        let mut status = StatusCode::default();
        status.answer(200);
        assert_eq!((status.get(), status.is_fixed()), (200, false));
        status.fix(404);
        status.answer(200);
        assert_eq!((status.get(), status.is_fixed()), (404, true), "the page is found");
        status.fix(502);
        assert_eq!(status.get(), 502, "the page fails");
        status.free();
        assert_eq!((status.get(), status.is_fixed()), (0, false));
        status.answer(200);
        status.turn(304);
        assert_eq!(status.get(), 304);
    }
}
