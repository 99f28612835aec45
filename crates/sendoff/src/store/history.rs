//! Which history a database has.

/// What tells one history of a database from another: a failover, a restored backup or another server behind the same
/// name begins a new one. Numbers repeat in it, and what a relay knows of the database may not be true any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The server, and everything that tells one life of it from the next: its identity, its timeline, its start.
    pub server: String,
    /// The last number that was handed out to a message.
    pub head: i64,
}

impl History {
    /// Why this one does not go on from an `earlier` one; `None` if it does.
    pub fn breaks_with(&self, earlier: &Self) -> Option<&'static str> {
        if self.server != earlier.server {
            Some("another server, or another start of it, answers")
        } else if self.head < earlier.head {
            Some("numbers were set back")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_goes_on_until_its_server_or_its_numbers_change() {
        let history = |server: &str, head| History {
            server: server.to_owned(),
            head,
        };
        let earlier = history("a", 10);
        assert_eq!(history("a", 10).breaks_with(&earlier), None);
        assert_eq!(history("a", 11).breaks_with(&earlier), None);
        assert!(history("a", 9).breaks_with(&earlier).is_some());
        assert!(history("b", 11).breaks_with(&earlier).is_some());
    }
}
