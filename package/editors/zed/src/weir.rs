//! Starts `weir lsp` in Zed. The program is the one of the settings (`lsp.weir.binary`), else the one in the PATH.

use zed_extension_api::serde_json::Value;
use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, Command, LanguageServerId, Result, Worktree};

struct Weir;

impl zed::Extension for Weir {
    fn new() -> Self {
        Weir
    }

    fn language_server_command(&mut self, id: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let settings = LspSettings::for_worktree(id.as_ref(), worktree).unwrap_or_default();
        let named = settings.binary.as_ref().and_then(|binary| binary.path.clone());
        let command =
            named.or_else(|| worktree.which("weir")).ok_or("install weir, or name it in lsp.weir.binary.path")?;
        let args = settings.binary.and_then(|binary| binary.arguments).unwrap_or_else(|| vec!["lsp".to_owned()]);
        Ok(Command { command, args, env: worktree.shell_env() })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        Ok(LspSettings::for_worktree(id.as_ref(), worktree)?.initialization_options)
    }
}

zed::register_extension!(Weir);
