//! The head of an answer whose body a filter changes: which fields no longer describe the body.

use weir_wire::Known;

use crate::exchange::Response;

/// The length of the body is not known any more.
pub fn forget_length(response: &mut Response) {
    response.content_length = None;
    response.fields.remove(Known::ContentLength);
}

/// The client may not ask for ranges of the body.
pub fn forget_ranges(response: &mut Response) {
    response.allows_ranges = false;
    response.fields.remove(Known::AcceptRanges);
}

/// The validators belong to another body.
pub fn forget_validators(response: &mut Response) {
    response.last_modified = None;
    response.fields.remove(Known::LastModified);
    response.fields.remove(Known::Etag);
}

/// The body is equivalent to the original, not the same (RFC 9110 §8.8.1). Removes an entity tag that has no quotes.
pub fn weaken_etag(response: &mut Response) {
    let fields = &mut response.fields;
    let Some(place) = fields.first(Known::Etag) else { return };
    match fields.get(Known::Etag) {
        Some(etag) if etag.starts_with(b"\"") => {
            // The field keeps its place, as in nginx.
            let weak = [b"W/".as_slice(), etag].concat();
            fields.set(place, &weak);
        }
        Some(etag) if !etag.starts_with(b"W/") => fields.remove(Known::Etag),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_strong_tag_becomes_a_weak_one() {
        for (tag, expected) in
            [(Some("\"a\""), Some("W/\"a\"")), (Some("W/\"a\""), Some("W/\"a\"")), (Some("a"), None), (None, None)]
        {
            let mut response = Response::default();
            if let Some(tag) = tag {
                response.fields.push_known(b"ETag", tag.as_bytes(), Some(Known::Etag));
            }
            weaken_etag(&mut response);
            assert_eq!(response.fields.get(Known::Etag), expected.map(str::as_bytes), "{tag:?}");
        }
    }
}
