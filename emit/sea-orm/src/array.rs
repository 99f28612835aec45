//! PostgreSQL's text form of an array.

/// `{"a","b",NULL}`: every element is quoted, so that the text `NULL` and an empty text stay texts.
pub(crate) fn literal<'a>(elements: impl Iterator<Item = Option<&'a str>>) -> String {
    let mut text = String::from("{");
    for element in elements {
        if text.len() > 1 {
            text.push(',');
        }
        match element {
            None => text.push_str("NULL"),
            Some(element) => quote(element, &mut text),
        }
    }
    text.push('}');
    text
}

fn quote(element: &str, text: &mut String) {
    text.push('"');
    for character in element.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_told_from_the_syntax_around_them() {
        let elements = [None, Some(""), Some("NULL"), Some(r#"a,"b"\{}"#)];
        assert_eq!(literal(elements.into_iter()), r#"{NULL,"","NULL","a,\"b\"\\{}"}"#);
        assert_eq!(literal(std::iter::empty()), "{}");
    }
}
