//! The directives that several families of upstreams have, each under the family's prefix.
//!
//! A macro makes a table for one family. Its arguments are the prefix of the names and the path of the family's settings
//! below [`Settings`](crate::family::Settings).

/// How weir talks to a peer, and when it asks another: every family has these.
macro_rules! talking {
    ($prefix:literal, $($path:tt)+) => {{
        use weir_http::read::directive::{Arity, Directive, HSL, ONE};
        use weir_http::text::value;
        use $crate::family::proxy::bind;
        &[
            Directive::new(concat!($prefix, "_connect_timeout"), HSL, ONE, "The longest time for opening a connection.",
                |b, s| { crate::settings(b).$($path)+.connect_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_send_timeout"), HSL, ONE, "Longest pause between two writes to the upstream.",
                |b, s| { crate::settings(b).$($path)+.send_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_read_timeout"), HSL, ONE, "Longest pause between two reads from the upstream.",
                |b, s| { crate::settings(b).$($path)+.read_timeout = Some(value::time(s)?); Ok(()) }).default("60s"),
            Directive::new(concat!($prefix, "_next_upstream_tries"), HSL, ONE, "The largest number of tries; 0 for no limit.",
                |b, s| { crate::settings(b).$($path)+.tries = Some(value::at_most(s, u64::from(u32::MAX))? as u32); Ok(()) }).default("0"),
            Directive::new(concat!($prefix, "_next_upstream_timeout"), HSL, ONE, "The longest time in which weir tries further peers; 0 for no limit.",
                |b, s| { crate::settings(b).$($path)+.tries_timeout = Some(value::time(s)?); Ok(()) }).default("0"),
            Directive::new(concat!($prefix, "_bind"), HSL, Arity::Between(1, 2), "The local address of connections to upstreams.", |b, s| bind(b, s, |all| &mut all.$($path)+)).default("off"),
            Directive::new(concat!($prefix, "_socket_keepalive"), HSL, Arity::Flag, "TCP keep-alive towards upstreams.",
                |b, s| { crate::settings(b).$($path)+.socket_keepalive = Some(value::flag(s)?); Ok(()) }).default("off"),
        ]
    }};
}

/// How weir treats the heads of answers, for families whose answers have heads. `$has` says whether the family's
/// `…_next_upstream` has a condition.
macro_rules! heads {
    ($prefix:literal, $has:expr, $($path:tt)+) => {{
        use weir_http::read::directive::{Arity, Directive, HSL, ONE};
        use weir_http::text::value;
        use $crate::family::proxy::{ignore, next_upstream};
        &[
            Directive::new(concat!($prefix, "_hide_header"), HSL, ONE, "Names a field of the answer that weir does not pass on.", |b, s| {
                let name = s.text(0).to_owned();
                crate::settings(b).$($path)+.hide.get_or_insert_default().push(name);
                Ok(())
            }).many(),
            Directive::new(concat!($prefix, "_pass_header"), HSL, ONE, "Names a field of the answer that weir passes on although it hides it by default.", |b, s| {
                let name = s.text(0).to_owned();
                crate::settings(b).$($path)+.show.get_or_insert_default().push(name);
                Ok(())
            }).many(),
            Directive::new(concat!($prefix, "_buffer_size"), HSL, ONE, "The buffer size for the head of an answer.",
                |b, s| { crate::settings(b).$($path)+.buffer_size = Some(value::size(s)?); Ok(()) }).default("16k (nginx: 4k|8k)"),
            Directive::new(concat!($prefix, "_ignore_headers"), HSL, Arity::AtLeast(1), "Names fields of the answer that weir does not obey.", |b, s| ignore(b, s, |all| &mut all.$($path)+)).many(),
            Directive::new(concat!($prefix, "_intercept_errors"), HSL, Arity::Flag, "Lets error_page answer in place of answers of 300 and above.",
                |b, s| { crate::settings(b).$($path)+.intercept_errors = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_next_upstream"), HSL, Arity::AtLeast(1), "The failures after which weir tries another peer.", |b, s| next_upstream(b, s, |all| &mut all.$($path)+, $has)).many().default("error timeout"),
            Directive::new(concat!($prefix, "_socket_rcvbuf"), HSL, ONE, "Receive buffer of upstream sockets.",
                |b, s| { crate::settings(b).$($path)+.receive_buffer = Some(value::size(s)?); Ok(()) }),
            Directive::new(concat!($prefix, "_socket_sndbuf"), HSL, ONE, "Send buffer of upstream sockets.",
                |b, s| { crate::settings(b).$($path)+.send_buffer = Some(value::size(s)?); Ok(()) }),
        ]
    }};
}

/// How weir passes bodies on in both directions, for families that have bodies in both.
macro_rules! passing {
    ($prefix:literal, $($path:tt)+) => {{
        use weir_http::read::directive::{Arity, Directive, HSL, ONE, TWO};
        use weir_http::text::value;
        &[
            Directive::new(concat!($prefix, "_buffering"), HSL, Arity::Flag, "Reads the answer as fast as the upstream sends it.",
                |b, s| { crate::settings(b).$($path)+.buffering = Some(value::flag(s)?); Ok(()) }).default("on"),
            Directive::new(concat!($prefix, "_request_buffering"), HSL, Arity::Flag, "Reads the whole request body before weir asks the upstream.",
                |b, s| { crate::settings(b).$($path)+.request_buffering = Some(value::flag(s)?); Ok(()) }).default("on"),
            Directive::new(concat!($prefix, "_buffers"), HSL, TWO, "Memory for an answer that the client takes slowly.",
                |b, s| { crate::settings(b).$($path)+.buffers = Some(value::buffers(s)?); Ok(()) }).default("8 32k (nginx: 8 4k|8k)"),
            Directive::new(concat!($prefix, "_max_temp_file_size"), HSL, ONE, "The largest part of an answer that weir buffers in a file; 0 for no file.",
                |b, s| { crate::settings(b).$($path)+.max_temp_file = Some(Some(value::size(s)?)); Ok(()) })
                .default("1024m for all answers together (nginx: 1024m for each)"),
            Directive::new(concat!($prefix, "_temp_path"), HSL, Arity::Between(1, 4), "Directory for temporary files with answers.",
                |b, s| { let path = b.path(value::leveled_path(s)?); crate::settings(b).$($path)+.temp_path = Some(Some(path)); Ok(()) })
                .default(concat!($prefix, "_temp")),
            Directive::new(concat!($prefix, "_limit_rate"), HSL, ONE, "The bytes that weir reads from an upstream per second; 0 for no limit.",
                |b, s| { let t = b.template(s.text(0))?; crate::settings(b).$($path)+.limit_rate = Some(Some(t)); Ok(()) }).default("0"),
            Directive::new(concat!($prefix, "_pass_request_headers"), HSL, Arity::Flag, "Passes the client's fields on.",
                |b, s| { crate::settings(b).$($path)+.pass_headers = Some(value::flag(s)?); Ok(()) }).default("on"),
            Directive::new(concat!($prefix, "_pass_request_body"), HSL, Arity::Flag, "Passes the client's body on.",
                |b, s| { crate::settings(b).$($path)+.pass_body = Some(value::flag(s)?); Ok(()) }).default("on"),
            Directive::new(concat!($prefix, "_ignore_client_abort"), HSL, Arity::Flag, "Continues the request to the upstream when the client has closed its connection.",
                |b, s| { crate::settings(b).$($path)+.ignore_client_abort = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::new(concat!($prefix, "_force_ranges"), HSL, Arity::Flag, "Answers range requests even if the upstream does not offer ranges.",
                |b, s| { crate::settings(b).$($path)+.force_ranges = Some(value::flag(s)?); Ok(()) }).default("off"),
            Directive::idle(concat!($prefix, "_busy_buffers_size"), HSL, ONE, "", "weir manages this memory itself",
                |b, s| { crate::settings(b).$($path)+.busy_buffers = Some(value::size(s)?); Ok(()) }),
            Directive::idle(concat!($prefix, "_temp_file_write_size"), HSL, ONE, "", "weir manages this memory itself",
                |b, s| { crate::settings(b).$($path)+.temp_file_write = Some(value::size(s)?); Ok(()) }),
        ]
    }};
}

/// `…_set_header`, for the families of HTTP.
macro_rules! set_header {
    ($prefix:literal, $($path:tt)+) => {
        weir_http::read::directive::Directive::new(
            concat!($prefix, "_set_header"),
            weir_http::read::directive::HSL,
            weir_http::read::directive::TWO,
            "Sets a field of the request; an empty value removes the field.",
            |b, s| {
                let template = b.inherited_template(s.text(1))?;
                let name = s.text(0).to_owned();
                crate::settings(b).$($path)+.set_headers.get_or_insert_default().push((name, template));
                Ok(())
            },
        )
        .many()
        .default("Host $proxy_host")
    };
}

pub(crate) use {heads, passing, set_header, talking};
