//! stub
use weir_conf::Statement;
use crate::build::Build;
use crate::directive::Refusal;
use crate::exchange::Exchange;
/// r
#[derive(Clone)]
pub enum Redirects { /// o
 Off, /// d
 Default, /// l
 List(Vec<Change>) }
/// c
#[derive(Clone)]
pub struct Change;
/// f
#[derive(Clone)]
pub struct CookieFlags;
/// s
pub fn redirect(_b: &mut Build<'_>, _s: &Statement) -> Result<(), Refusal> { Ok(()) }
/// s
pub fn cookie_domain(_b: &mut Build<'_>, _s: &Statement) -> Result<(), Refusal> { Ok(()) }
/// s
pub fn cookie_path(_b: &mut Build<'_>, _s: &Statement) -> Result<(), Refusal> { Ok(()) }
/// s
pub fn cookie_flags(_b: &mut Build<'_>, _s: &Statement) -> Result<(), Refusal> { Ok(()) }
/// l
pub fn location(_ex: &mut Exchange<'_>, _k: Option<weir_wire::Known>, _v: &[u8]) -> Option<Vec<u8>> { None }
/// c
pub fn cookie(_ex: &mut Exchange<'_>, _v: &[u8]) -> Option<Vec<u8>> { None }
