//! stub until the demo lands
use std::process::ExitCode;
#[derive(clap::Args)]
pub struct OriginArgs {}
#[derive(clap::Args, Default)]
pub struct DemoArgs {}
pub fn origin(_: &OriginArgs) -> ExitCode { ExitCode::FAILURE }
pub fn demo(_: &DemoArgs) -> ExitCode { ExitCode::FAILURE }
