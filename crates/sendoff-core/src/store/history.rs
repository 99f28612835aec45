//! The history of a database.

/// Identifies the history of a database. A failover, a restored backup or another server behind the same name starts a
/// new history. In a new history, numbers may repeat, and what a relay knows about the database may be outdated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The server's identity, its timeline and the time of its start.
    pub server: String,
    /// The last number that the database gave to a message.
    pub head: i64,
}

impl History {
    /// Why this history does not continue the `earlier` one; `None` if it does.
    pub fn breaks_with(&self, earlier: &Self) -> Option<&'static str> {
        if self.server != earlier.server {
            Some("another server answered, or the server restarted")
        } else if self.head < earlier.head {
            Some("the newest message number is lower than before")
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
