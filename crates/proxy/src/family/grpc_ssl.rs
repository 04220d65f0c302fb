//! `grpc_ssl_*`: TLS to gRPC upstreams, for `grpc_pass grpcs://…`. All of it is `proxy_ssl`'s under another name.

use weir_http::read::directive::HSL;
use weir_http::read::families::Family;

use crate::family::proxy_ssl::towards_origins;

pub use crate::family::proxy_ssl::{Settings, Values};

/// The compiled form is shared with `proxy_ssl`.
pub type Declared = ();

/// The family; `grpc` compiles it together with its own.
pub static FAMILY: Family = Family::new("grpc_ssl", towards_origins!("grpc_ssl", HSL, [grpc_ssl]));
