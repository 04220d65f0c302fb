//! Whether the sizes of `…_buffers` and its kin fit together, by nginx's rules.
//!
//! weir has no buffers of these sizes, but a file with sizes that do not fit is a file that nginx refuses.
//! <https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_busy_buffers_size>

use weir_http::read::build::{Build, Scope};
use weir_http::text::refusal::Refusal;

use super::Settings;

/// nginx's default of `…_buffer_size`, and of one of the eight `…_buffers`: a page of memory.
const PAGE_BYTES: u64 = 4096;

/// Refuses sizes that do not fit together. A size that the file does not set is nginx's default where it is compared with one
/// that the file sets; sizes that follow from others alone are not compared, because weir's defaults are larger.
pub fn check(b: &mut Build<'_>, scope: &Scope, settings: &Settings, prefix: &str) {
    let (count, each) = settings.buffers.unwrap_or((8, PAGE_BYTES));
    let largest = settings.buffer_size.unwrap_or(PAGE_BYTES).max(each);
    let all_but_one = u64::from(count - 1).saturating_mul(each);
    let than_one =
        || format!("the maximum of the value of \"{prefix}_buffer_size\" and one of the \"{prefix}_buffers\"");
    let mut refuse = |name: &str, must: String| {
        let (name, at) = (format!("{prefix}_{name}"), scope.place(&format!("{prefix}_{name}"), 0));
        b.refuse_once(&name, Refusal::whole(must.replace("NAME", &format!("\"{name}\""))), at);
    };
    if count < 2 {
        refuse("buffers", "there must be at least 2 NAME".to_owned());
    }
    match settings.busy_buffers {
        Some(busy) if busy < largest => {
            refuse("busy_buffers_size", format!("NAME must be equal to or greater than {}", than_one()));
        }
        Some(busy) if busy > all_but_one => {
            let all = format!("NAME must be less than the size of all \"{prefix}_buffers\" minus one buffer");
            refuse("busy_buffers_size", all);
        }
        Some(_) | None => {}
    }
    if settings.temp_file_write.is_some_and(|size| size < largest) {
        refuse("temp_file_write_size", format!("NAME must be equal to or greater than {}", than_one()));
    }
    if settings.max_temp_file.flatten().is_some_and(|size| size != 0 && size < largest) {
        let zero = "NAME must be equal to zero to disable temporary files usage or must be equal to or greater than";
        refuse("max_temp_file_size", format!("{zero} {}", than_one()));
    }
}
