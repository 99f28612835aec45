//! Celery's short `repr` of arguments for logs.
//!
//! It differs from Python's `repr` in some details, which are kept, because people compare logs: quotes are always
//! single, only a single quote is escaped, and text that is too long is cut at a space if there is one. The allowed
//! length shrinks with everything printed; open brackets are still closed when it is used up.

use super::float;
use super::typed::Typed;
use super::{Text, Value};

/// The length that Celery allows, in code points.
const LONGEST: usize = 1024;

/// The text for the header `kwargsrepr`. Values nested deeper than `levels` are left out.
pub fn saferepr_of_kwargs(kwargs: &[(Text, Value)], levels: usize) -> Text {
    let mut tokens = Tokens::new(levels);
    tokens.map(kwargs);
    print(&tokens.list)
}

/// The text for the header `argsrepr`, which prints a tuple; see [`saferepr_of_kwargs`].
pub fn saferepr_of_args(args: &[Value], levels: usize) -> Text {
    let mut tokens = Tokens::new(levels);
    let end = if args.len() == 1 { ",)" } else { ")" };
    tokens.sequence("(", end, args);
    print(&tokens.list)
}

enum Token<'a> {
    Open(&'static str),
    Close(&'static str),
    /// Replaces a container that is nested too deeply.
    Closed(&'static str, &'static str),
    Between(&'static str),
    Key(&'a Text),
    Text(&'a Text),
    Bytes(Vec<u8>),
    Plain(String),
}

struct Tokens<'a> {
    list: Vec<Token<'a>>,
    level: usize,
    levels: usize,
}

impl<'a> Tokens<'a> {
    fn new(levels: usize) -> Self {
        Self {
            list: Vec::new(),
            level: 0,
            levels,
        }
    }

    fn add(&mut self, value: &'a Value) {
        let token = match value {
            Value::Null => Token::Plain("None".to_owned()),
            Value::Bool(true) => Token::Plain("True".to_owned()),
            Value::Bool(false) => Token::Plain("False".to_owned()),
            Value::Int(digits) if digits == "-0" => Token::Plain("0".to_owned()),
            Value::Int(digits) => Token::Plain(digits.clone()),
            Value::Float(literal) => Token::Plain(float::repr(float::parse(literal))),
            Value::Text(text) => Token::Text(text),
            Value::List(items) => return self.sequence("[", "]", items),
            Value::Map(entries) => match Typed::of(value) {
                Some(Typed::Bytes(bytes)) => Token::Bytes(bytes),
                Some(typed) => Token::Plain(typed.repr()),
                None => return self.map(entries),
            },
        };
        self.list.push(token);
    }

    fn sequence(&mut self, open: &'static str, close: &'static str, items: &'a [Value]) {
        self.container(open, close, |tokens| {
            for (at, item) in items.iter().enumerate() {
                tokens.separate(at);
                tokens.add(item);
            }
        });
    }

    fn map(&mut self, entries: &'a [(Text, Value)]) {
        self.container("{", "}", |tokens| {
            for (at, (name, value)) in entries.iter().enumerate() {
                tokens.separate(at);
                tokens.list.push(Token::Key(name));
                tokens.list.push(Token::Between(": "));
                tokens.add(value);
            }
        });
    }

    fn container(&mut self, open: &'static str, close: &'static str, fill: impl FnOnce(&mut Self)) {
        if self.levels > 0 && self.level >= self.levels {
            self.list.push(Token::Closed(open, close));
            return;
        }
        self.list.push(Token::Open(open));
        self.level += 1;
        fill(self);
        self.level -= 1;
        self.list.push(Token::Close(close));
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.list.push(Token::Between(", "));
        }
    }
}

fn print(tokens: &[Token<'_>]) -> Text {
    let mut printed = Text::default();
    let mut left = LONGEST;
    for (at, token) in tokens.iter().enumerate() {
        if left == 0 {
            if let Token::Close(bracket) = token {
                printed.push_str(bracket);
                continue;
            }
            printed.push_str(", ...");
            close_all(&mut printed, &tokens[at..]);
            return printed;
        }
        let text = match token {
            Token::Open(text) | Token::Close(text) | Token::Between(text) => Text::from(*text),
            Token::Closed(open, close) => Text::from(format!("{open}...{close}")),
            Token::Key(text) | Token::Text(text) => quoted(text, left),
            Token::Bytes(bytes) => bytes_literal(bytes, left),
            Token::Plain(text) => cut(&Text::from(text.as_str()), left),
        };
        left = left.saturating_sub(text.len());
        printed.push_text(&text);
    }
    printed
}

/// Closes the brackets that were open before `rest`; those that open in it were never printed.
fn close_all(printed: &mut Text, rest: &[Token<'_>]) {
    let mut unprinted = 0_usize;
    for token in rest {
        match token {
            Token::Open(_) => unprinted += 1,
            Token::Close(_) if unprinted > 0 => unprinted -= 1,
            Token::Close(bracket) => printed.push_str(bracket),
            _ => {}
        }
    }
}

fn cut(text: &Text, longest: usize) -> Text {
    if text.len() < longest {
        return text.clone();
    }
    let mut short = text.start(longest).before_last(b' ');
    short.push_str("...");
    short
}

fn quoted(text: &Text, longest: usize) -> Text {
    let mut quoted = Text::from("'");
    for code in cut(text, longest).codes() {
        if code == u32::from('\'') {
            quoted.push_str("\\");
        }
        quoted.push(code);
    }
    quoted.push_str("'");
    quoted
}

/// Shows bytes as text if they are UTF-8, otherwise as hexadecimal digits.
fn bytes_literal(bytes: &[u8], longest: usize) -> Text {
    let shown = &bytes[..bytes.len().min(longest)];
    let dots = if shown.len() < bytes.len() { "..." } else { "" };
    let text = match std::str::from_utf8(shown) {
        Ok(text) => text.to_owned(),
        Err(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    Text::from(format!("b'{text}{dots}'"))
}
