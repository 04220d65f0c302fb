//! `import`: how QuickJS finds and reads ES modules.

use std::path::Path;

use rquickjs as js;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Function, Module, Symbol};

use super::files;

/// Prefix of built-in modules, which are not read from a file.
const GIVEN: &str = "weir:";

/// Finds and loads files and built-in modules.
pub struct Files;

impl Resolver for Files {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> js::Result<String> {
        let is_path = ["/", "./", "../"].iter().any(|begin| name.starts_with(begin));
        if is_path {
            let from = if base.starts_with('/') { base } else { "/" };
            let found = files::resolve(Path::new(from), name);
            return found.ok_or_else(|| Error::new_resolving_message(base, name, "there is no such file"));
        }
        if let Some(path) = name.strip_prefix("file://") {
            return Ok(path.to_owned());
        }
        Ok(format!("{GIVEN}{}", name.strip_prefix("node:").unwrap_or(name)))
    }
}

impl Loader for Files {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> js::Result<Module<'js, Declared>> {
        if name.starts_with(GIVEN) || !files::is_module(Path::new(name)) {
            let source: String = helper(ctx, "wrapped")?.call((name,))?;
            return Module::declare(ctx.clone(), name, source);
        }
        let source = files::text(Path::new(name)).map_err(|error| Error::new_loading_message(name, error))?;
        helper(ctx, "check")?.call::<_, ()>((&*source, name))?;
        let module = Module::declare(ctx.clone(), name, source)?;
        let meta = module.meta()?;
        meta.set("url", format!("file://{name}"))?;
        meta.set("filename", name)?;
        meta.set("dirname", Path::new(name).parent().and_then(Path::to_str).unwrap_or("/"))?;
        Ok(module)
    }
}

/// A function of modules.js; modules.js stores it globally for the modules.
fn helper<'js>(ctx: &Ctx<'js>, name: &str) -> js::Result<Function<'js>> {
    let symbol: Function = ctx.globals().get::<_, js::Object>("Symbol")?.get("for")?;
    let key: Symbol = symbol.call(("weir",))?;
    ctx.globals().get::<_, js::Object>(key)?.get(name)
}
