//! Splits the database's URL into what the driver parses and what this store parses.

use percent_encoding::percent_decode_str;
use sendoff::{Error, ErrorKind, Result};
use sendoff_tls::TlsParams;

/// The values of `sslmode` that this store supports.
const MODES: &str = "disable, prefer, require, verify-ca or verify-full";

/// Takes `sslmode`, `sslrootcert`, `sslcert` and `sslkey` out of a URL or a `key=value` list, because the driver knows
/// only some modes and none of the files. Returns the rest.
///
/// # Errors
/// [`ErrorKind::Invalid`], without the text, which may hold a password.
pub(crate) fn split(url: &str) -> Result<(String, TlsParams)> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        of_url(url)
    } else {
        of_list(url)
    }
}

fn of_url(url: &str) -> Result<(String, TlsParams)> {
    let mut tls = TlsParams::default();
    let Some((rest, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls));
    };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().map_err(|_| unreadable())?;
        if !tls.take(name, &value, MODES)? {
            kept.push(pair);
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{rest}{mark}{}", kept.join("&")), tls))
}

fn of_list(list: &str) -> Result<(String, TlsParams)> {
    let mut tls = TlsParams::default();
    let mut kept = String::new();
    let mut rest = list.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').ok_or_else(unreadable)?;
        let (value, behind) = value(behind.trim_start())?;
        if !tls.take(name.trim_end(), &value, MODES)? {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            kept += &format!("{}='{value}' ", name.trim_end());
        }
        rest = behind.trim_start();
    }
    Ok((kept, tls))
}

/// The first value of a list, without its quotes, and what is behind it.
fn value(text: &str) -> Result<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next().ok_or_else(unreadable)?.1),
            '\'' if is_quoted => return Ok((value, &text[at + 1..])),
            c if c.is_whitespace() && !is_quoted => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if is_quoted { Err(unreadable()) } else { Ok((value, "")) }
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Invalid, "the database's URL is invalid")
        .next_step("write the URL like postgres://user:password@host:5432/database?sslmode=verify-full")
}

#[cfg(test)]
mod tests {
    use sendoff_tls::Mode;

    use super::*;

    #[test]
    fn what_is_ours_is_taken_and_the_rest_stays() {
        let expected = TlsParams {
            mode: Some(Mode::VerifyFull),
            root_cert: Some("/a b/ca.pem".into()),
            cert: Some("c".into()),
            key: Some("k".into()),
        };
        let url = "postgres://u:p%40w@h:5/d?sslmode=verify-full&connect_timeout=3&sslrootcert=/a%20b/ca.pem&sslcert=c&sslkey=k";
        let (rest, tls) = split(url).unwrap();
        assert_eq!(
            (rest.as_str(), &tls),
            ("postgres://u:p%40w@h:5/d?connect_timeout=3", &expected)
        );
        let list = r"host=h sslmode = verify-full sslrootcert='/a b/ca.pem' sslcert=c sslkey=k password='it\'s \\ x'";
        let (rest, tls) = split(list).unwrap();
        assert_eq!((rest.as_str(), &tls), (r"host='h' password='it\'s \\ x' ", &expected));
        let driver: tokio_postgres::Config = rest.parse().unwrap();
        assert_eq!(driver.get_password(), Some(&br"it's \ x"[..]));
    }

    #[test]
    fn what_says_nothing_about_tls_is_left_as_it_is() {
        for url in ["postgres://u@h/d", "postgres://u@h/d?application_name=x"] {
            assert_eq!(split(url).unwrap(), (url.to_owned(), TlsParams::default()));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_being_quoted() {
        for url in [
            "postgres://h/d?sslmode=hunter2",
            "host=h password='hunter2",
            "hunter2",
            "host=h hunter2",
        ] {
            let error = split(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
