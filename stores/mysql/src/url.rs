//! Splits the database's URL into what the driver parses and what this store parses.

use percent_encoding::percent_decode_str;
use sendoff::Result;
use sendoff_tls::TlsParams;

use crate::error::bad_url;

/// The values of `sslmode` that this store supports. The driver cannot check a certificate without the host name.
const MODES: &str = "disable, prefer, require or verify-full";

/// Takes `sslmode`, `sslrootcert`, `sslcert` and `sslkey` out of a URL, because the driver knows other words. Returns the
/// rest, with the scheme that the driver knows.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`], without the text, which may hold a password.
pub(crate) fn split(what: &str, url: &str) -> Result<(String, TlsParams)> {
    let url = match url.strip_prefix("mariadb://") {
        Some(rest) => format!("mysql://{rest}"),
        None => url.to_owned(),
    };
    let mut tls = TlsParams::default();
    let Some((rest, query)) = url.split_once('?') else {
        return Ok((url, tls));
    };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8().map_err(|_| bad_url(what))?;
        match name {
            // The driver's own TLS settings express less than sslmode, and could contradict it.
            "require_ssl" | "verify_ca" | "verify_identity" | "built_in_roots" => return Err(drivers_own(what)),
            _ if tls.take(name, &value, MODES)? => {}
            _ => kept.push(pair),
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{rest}{mark}{}", kept.join("&")), tls))
}

/// One URL for each host of a URL that names several (`mysql://user@one:3306,two:3306/shop`), in their order.
pub(crate) fn one_by_one(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return vec![url.to_owned()];
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (user, hosts) = authority
        .rsplit_once('@')
        .map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if authority.contains('@') { "@" } else { "" };
    let hosts = hosts.split(',');
    hosts
        .map(|host| format!("{scheme}://{user}{at}{host}{behind}"))
        .collect()
}

fn drivers_own(what: &str) -> sendoff::Error {
    sendoff::Error::new(sendoff::ErrorKind::Invalid, what)
        .because("the URL has a TLS setting of the driver: require_ssl, verify_ca, verify_identity or built_in_roots")
        .next_step(format!("use sslmode instead: {MODES}"))
}

#[cfg(test)]
mod tests {
    use sendoff::ErrorKind;
    use sendoff_tls::Mode;

    use super::*;

    #[test]
    fn what_is_ours_is_taken_and_the_rest_stays() {
        let url =
            "mariadb://u:p%40w@h:5/d?sslmode=verify-full&tcp_nodelay=true&sslrootcert=/a%20b/ca.pem&sslcert=c&sslkey=k";
        let expected = TlsParams {
            mode: Some(Mode::VerifyFull),
            root_cert: Some("/a b/ca.pem".into()),
            cert: Some("c".into()),
            key: Some("k".into()),
        };
        let (rest, tls) = split("x", url).unwrap();
        assert_eq!(
            (rest.as_str(), &tls),
            ("mysql://u:p%40w@h:5/d?tcp_nodelay=true", &expected)
        );
        for url in ["mysql://u@h/d", "mysql://u@h/d?tcp_nodelay=true"] {
            assert_eq!(split("x", url).unwrap(), (url.to_owned(), TlsParams::default()));
        }
        assert_eq!(split("x", "mysql://u@h/d?sslmode=disable").unwrap().0, "mysql://u@h/d");
    }

    #[test]
    fn each_host_has_a_url_of_its_own() {
        assert_eq!(
            one_by_one("mysql://u:p%40w@a:1,b:2/shop?tcp_nodelay=true"),
            [
                "mysql://u:p%40w@a:1/shop?tcp_nodelay=true",
                "mysql://u:p%40w@b:2/shop?tcp_nodelay=true"
            ]
        );
        for single in ["mysql://u@h/d", "mysql://h", "mysql://h/d?x=a,b", "nothing"] {
            assert_eq!(one_by_one(single), [single]);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_being_quoted() {
        for query in ["sslmode=hunter2", "sslrootcert=hunter2%ff", "require_ssl=hunter2"] {
            let error = split("x", &format!("mysql://a:hunter2@h/d?{query}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
