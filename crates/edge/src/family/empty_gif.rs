//! `empty_gif`: answers with a transparent picture of one pixel, from memory.
//!
//! <https://nginx.org/en/docs/http/ngx_http_empty_gif_module.html>

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Next;
use weir_http::exchange::response_body::Body;
use weir_http::exchange::special;
use weir_http::read::directive::{Directive, LOCATION, NONE};
use weir_http::read::families::Family;

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "empty_gif",
    &[Directive::new("empty_gif", LOCATION, NONE, "Answers with a transparent GIF of one pixel.", |b, _| {
        b.scope().handler = Some(answer);
        Ok(())
    })
    .many()],
);

/// The smallest GIF of one transparent pixel: 43 bytes.
const PICTURE: &[u8] = b"GIF89a\
    \x01\0\x01\0\x80\x01\0\
    \0\0\0\xff\xff\xff\
    \x21\xf9\x04\x01\0\0\x01\0\
    \x2c\0\0\0\0\x01\0\x01\0\0\
    \x02\x02\x4c\x01\0\
    \x3b";

/// `Last-Modified` of the picture, the same as nginx's, so that caches keep it when weir replaces nginx.
const MODIFIED: i64 = 23_349_600;

fn answer(exchange: &mut Exchange<'_>) -> Next {
    if !matches!(exchange.request.method(), b"GET" | b"HEAD") {
        return special::not_allowed(exchange, special::READS);
    }
    let response = &mut exchange.response;
    response.status.answer(200);
    response.status_line.clear();
    response.content_type.clear();
    response.content_type.extend_from_slice(b"image/gif");
    response.content_length = Some(PICTURE.len() as u64);
    response.last_modified = Some(MODIFIED);
    response.body = Body::Bytes(PICTURE.to_vec());
    Next::Respond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_one_pixel_wide_and_high() {
        assert_eq!(PICTURE.len(), 43);
        assert_eq!((PICTURE.get(6..10), PICTURE.last()), (Some(&[1, 0, 1, 0][..]), Some(&b';')));
    }
}
