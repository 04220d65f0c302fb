//! The state of the application: two commands of the user keep it and bring it back.

use std::process::{Command, Stdio};

use weir_words::{Said, said};

/// The commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationState {
    /// Keeps the state, before the first arm.
    pub snapshot: String,
    /// Brings the state back, after each arm.
    pub restore: String,
}

impl ApplicationState {
    pub(crate) fn keep(&self) -> Result<(), Said> {
        ran(&self.snapshot)
    }

    pub(crate) fn restore(&self) -> Result<(), Said> {
        ran(&self.restore)
    }
}

fn ran(command: &str) -> Result<(), Said> {
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).output();
    let failed = |why: &str| said!("the command failed: {command}: {why}", "명령이 실패했습니다: {command}: {why}");
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(failed(&format!("{}: {said}", output.status)))
        }
        Err(error) => Err(failed(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_command_that_fails_is_named() {
        let state = ApplicationState { snapshot: "true".to_owned(), restore: "echo no >&2; false".to_owned() };
        assert_eq!(state.keep(), Ok(()));
        let said = state.restore().unwrap_err();
        assert!(said.contains("echo no") && said.contains(": no"), "{said:?}");
    }
}
