//! Routes that relays publish with their lease, for relays with another configuration.

use crate::Pattern;

/// Maps topics to sinks; the first matching route applies.
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
    /// Creates routes, in the order in which they are tried.
    pub fn new(routes: Vec<(Pattern, Vec<String>)>) -> Self {
        Self(routes)
    }

    /// The sinks of a topic; empty without a route.
    pub fn sinks_of(&self, topic: &str) -> &[String] {
        let route = self.0.iter().find(|(pattern, _)| pattern.matches(topic));
        route.map_or(&[], |(_, sinks)| sinks)
    }

    /// Every sink that a route leads to; a sink may occur several times.
    pub fn sinks(self) -> impl Iterator<Item = String> {
        self.0.into_iter().flat_map(|(_, sinks)| sinks)
    }

    /// Whether a route leads to this sink.
    pub fn lead_to(&self, sink: &str) -> bool {
        self.0.iter().any(|(_, sinks)| sinks.iter().any(|other| other == sink))
    }

    /// Whether there is a route here that `others` does not have.
    pub fn has_more_than(&self, others: &Self) -> bool {
        let is_there = |(topic, to): &(Pattern, Vec<String>)| {
            let mut others = others.0.iter();
            others.any(|(other, other_to)| other.as_str() == topic.as_str() && other_to == to)
        };
        !self.0.iter().all(is_there)
    }

    /// The routes as JSON: a list of `[pattern, [sink, …]]`.
    pub fn to_text(&self) -> String {
        let routes: Vec<(&str, &[String])> = self.0.iter().map(|(topic, to)| (topic.as_str(), &to[..])).collect();
        serde_json::to_string(&routes).unwrap_or_default()
    }

    /// Parses the text of [`to_text`](Self::to_text). Text in the format of another version gives no routes, and a
    /// pattern that this version cannot parse is left out.
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
    fn routes_to_other_sinks_are_more() {
        let routes = |to: &[&str]| {
            let to = to.iter().map(ToString::to_string).collect();
            Routes::new(vec![("order.*".parse().expect("a pattern"), to)])
        };
        let none = Routes::default();
        assert!(routes(&["a"]).has_more_than(&none) && !none.has_more_than(&routes(&["a"])));
        assert!(!routes(&["a"]).has_more_than(&routes(&["a"])));
        assert!(routes(&["a", "b"]).has_more_than(&routes(&["a"])));
    }

    #[test]
    fn text_of_another_version_has_no_routes() {
        for text in ["", "{}", "[1]", r#"[["a", "b"]]"#] {
            assert!(Routes::from_text(text).0.is_empty(), "{text}");
        }
    }
}
