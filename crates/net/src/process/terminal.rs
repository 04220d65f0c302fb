//! The terminal of the user.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// Columns and rows of the terminal behind a descriptor; `None` if there is none, or it does not report them
/// (`tty_ioctl(4)`, TIOCGWINSZ). Read each time, because windows change.
pub fn terminal_size(of: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(of).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_terminal() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(terminal_size(file), None);
    }
}
