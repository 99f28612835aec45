//! Signatures of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::Secret;

const PREFIX: &str = "whsec_";
/// The allowed length of a secret, in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// The secrets, ready to sign with.
pub(crate) struct Signer {
    keys: Vec<hmac::Key>,
}

impl Signer {
    /// Reads the secrets.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the number of the secret and the cause, never the secret.
    pub(crate) fn new(secrets: &[Secret]) -> Result<Self> {
        let keys = secrets.iter().enumerate().map(|(at, secret)| key(at, secret));
        Ok(Self {
            keys: keys.collect::<Result<_>>()?,
        })
    }

    /// The value of `webhook-signature`: one signature per secret; `None` without secrets.
    pub(crate) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> Option<String> {
        let signature = |key: &hmac::Key| {
            let mut context = hmac::Context::with_key(key);
            for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
                context.update(part);
            }
            format!("v1,{}", STANDARD.encode(context.sign()))
        };
        let signatures: Vec<String> = self.keys.iter().map(signature).collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

fn key(at: usize, secret: &Secret) -> Result<hmac::Key> {
    let invalid = |why: String| {
        Error::new(
            ErrorKind::Invalid,
            format!("secret no. {} of the HTTP sink is invalid", at + 1),
        )
        .because(why)
        .next_step("use whsec_ and 24 to 64 random bytes in base64: echo whsec_$(openssl rand -base64 32)")
    };
    let text = secret.reveal()?;
    let text = text.trim();
    if text.starts_with("whsk_") {
        return Err(invalid(
            "it is an ed25519 key, and requests are signed with HMAC-SHA256".to_owned(),
        ));
    }
    // The decoder's own error would quote a character of the secret.
    let bytes = STANDARD
        .decode(text.strip_prefix(PREFIX).unwrap_or(text))
        .map_err(|_| invalid("it is not base64".to_owned()))?;
    if !LENGTH.contains(&bytes.len()) {
        return Err(invalid(format!("it has {} bytes", bytes.len())));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signer = Signer::new(&[secret.into()]).unwrap();
        let signature = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_secret_signs() {
        let secrets = [
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
            STANDARD.encode([7; 24]).into(),
        ];
        let signed = Signer::new(&secrets).unwrap().sign("a", "1", b"x").unwrap();
        let [one, two] = signed.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{signed}");
        };
        assert!(
            one.starts_with("v1,") && two.starts_with("v1,") && one != two,
            "{signed}"
        );
        assert_eq!(Signer::new(&[]).unwrap().sign("a", "1", b"x"), None);
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_refused_without_being_shown() {
        for (secret, word) in [
            ("hunter2!", "base64"),
            ("whsec_aHVudGVyMg==", "7 bytes"),
            ("whsk_aHVudGVyMg==", "ed25519"),
        ] {
            let error = Signer::new(&[secret.into()]).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = error.to_string();
            assert!(
                text.contains(word) && !text.contains("hunter") && !text.contains("aHVud"),
                "{text}"
            );
        }
    }
}
