//! Routes as relays publish them with their lease, for relays with another configuration.

use crate::Pattern;

/// Which topics go to which sinks; the first route that matches counts.
///
/// ```
/// use sendoff::store::Routes;
///
/// let routes = Routes::new(vec![("order.*".parse()?, vec!["broker".to_owned()])]);
/// let read = Routes::from_text(&routes.to_text());
/// assert_eq!(read.sinks_of("order.placed"), ["broker"]);
/// assert!(read.sinks_of("invoice.paid").is_empty());
/// # Ok::<(), sendoff::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Routes(Vec<(Pattern, Vec<String>)>);

impl Routes {
    /// Routes, in this order.
    pub fn new(routes: Vec<(Pattern, Vec<String>)>) -> Self {
        Self(routes)
    }

    /// The sinks that a topic goes to; none without a route.
    pub fn sinks_of(&self, topic: &str) -> &[String] {
        let route = self.0.iter().find(|(pattern, _)| pattern.matches(topic));
        route.map_or(&[], |(_, sinks)| sinks)
    }

    /// Whether a route leads to this sink.
    pub fn lead_to(&self, sink: &str) -> bool {
        self.0.iter().any(|(_, sinks)| sinks.iter().any(|other| other == sink))
    }

    /// As JSON: a list of `[pattern, [sink, …]]`.
    pub fn to_text(&self) -> String {
        let routes: Vec<(&str, &[String])> = self.0.iter().map(|(topic, to)| (topic.as_str(), &to[..])).collect();
        serde_json::to_string(&routes).unwrap_or_default()
    }

    /// What [`to_text`](Self::to_text) wrote. Text that another version wrote in another way has no routes, and a pattern
    /// that this version cannot read is left out.
    pub fn from_text(text: &str) -> Self {
        let routes: Vec<(String, Vec<String>)> = serde_json::from_str(text).unwrap_or_default();
        let read = routes
            .into_iter()
            .filter_map(|(topic, to)| Some((topic.parse().ok()?, to)));
        Self(read.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_version_has_no_routes() {
        for text in ["", "{}", "[1]", r#"[["a", "b"]]"#] {
            assert!(Routes::from_text(text).0.is_empty(), "{text}");
        }
    }
}
