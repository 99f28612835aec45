//! Tables on a terminal: one line per row, as wide as the screen.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{Field, Paint, Tone};

/// Between two columns.
const GAP: usize = 2;
/// A column that may be cut keeps at least this width.
const NARROWEST: usize = 8;
/// The width of a screen that does not say.
pub(crate) const USUAL: usize = 80;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// Whether its text may be cut to fit the screen. Ids and numbers are never cut.
    may_be_cut: bool,
    /// Whether it is left out on a screen that is too narrow for all columns; the lowest number first.
    spare: Option<u8>,
}

impl Column {
    /// A column whose text is always whole.
    pub(crate) fn whole(heading: &'static str) -> Self {
        Self {
            heading,
            may_be_cut: false,
            spare: None,
        }
    }

    /// A column whose text is cut if the screen is too narrow.
    pub(crate) fn cut(heading: &'static str) -> Self {
        Self {
            heading,
            may_be_cut: true,
            spare: None,
        }
    }

    /// The same column, which may be left out.
    pub(crate) fn spare(self, rank: u8) -> Self {
        Self {
            spare: Some(rank),
            ..self
        }
    }
}

impl From<&'static str> for Column {
    fn from(heading: &'static str) -> Self {
        Self::cut(heading)
    }
}

/// The table, without columns that are empty in every row.
pub(crate) fn drawn(columns: &[Column], rows: &[Vec<Field>], width: usize, paint: Paint) -> String {
    let text = |row: &[Field], at: usize| row.get(at).map_or_else(String::new, |field| field.text().to_owned());
    let natural = |at: usize| {
        let longest = rows.iter().map(|row| text(row, at).width()).max().unwrap_or(0);
        longest.max(columns[at].heading.width())
    };
    let mut used: Vec<usize> = (0..columns.len())
        .filter(|at| rows.is_empty() || rows.iter().any(|row| !text(row, *at).is_empty()))
        .collect();
    let narrowest = |at: usize| {
        let width = natural(at);
        if columns[at].may_be_cut {
            width.min(NARROWEST)
        } else {
            width
        }
    };
    while used.iter().map(|at| narrowest(*at) + GAP).sum::<usize>() > width + GAP {
        let spare = used.iter().position(|at| {
            let least = used.iter().filter_map(|at| columns[*at].spare).min();
            least.is_some() && columns[*at].spare == least
        });
        match spare {
            Some(spare) => {
                used.remove(spare);
            }
            None => break,
        }
    }
    let mut widths: Vec<usize> = used.iter().map(|at| natural(*at)).collect();
    narrow(&mut widths, &used, columns, width);
    let mut lines = Vec::with_capacity(rows.len() + 1);
    let headings = used
        .iter()
        .zip(&widths)
        .map(|(at, width)| padded(columns[*at].heading, *width));
    lines.push(paint.dim(&joined(headings)));
    for row in rows {
        let fields = used.iter().zip(&widths).map(|(at, width)| {
            let shown = padded(&text(row, *at), *width);
            row.get(*at)
                .map_or(shown.clone(), |field| toned(&shown, field.tone(), paint))
        });
        lines.push(joined(fields));
    }
    lines.join("\n")
}

fn joined(fields: impl Iterator<Item = String>) -> String {
    let line = fields.collect::<Vec<_>>().join(&" ".repeat(GAP));
    line.trim_end().to_owned()
}

/// Takes from the widest column that may be cut until all fit.
fn narrow(widths: &mut [usize], used: &[usize], columns: &[Column], screen: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > screen {
        let may_be_cut = |at: &usize| columns[used[*at]].may_be_cut && widths[*at] > NARROWEST;
        let widest = (0..widths.len()).filter(may_be_cut).max_by_key(|at| widths[*at]);
        match widest {
            Some(at) => widths[at] -= 1,
            None => return,
        }
    }
}

/// The text with exactly this width, cut with `…` if it is longer.
fn padded(text: &str, width: usize) -> String {
    let shown = cut(text, width);
    let missing = width.saturating_sub(shown.width());
    shown + &" ".repeat(missing)
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > room {
            break;
        }
        room -= wide;
        shown.push(c);
    }
    shown + "…"
}

fn toned(text: &str, tone: Tone, paint: Paint) -> String {
    match tone {
        Tone::Plain => text.to_owned(),
        Tone::Good => paint.good(text),
        Tone::Warning => paint.warning(text),
        Tone::Bad => paint.bad(text),
        Tone::Dim => paint.dim(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190b8f2-7c1e-7d3a-9f65-8a1d3c2b4e5f";

    fn columns() -> Vec<Column> {
        vec![
            Column::whole("id"),
            Column::whole("status"),
            Column::cut("topic"),
            Column::cut("key"),
            Column::cut("error"),
        ]
    }

    fn row(key: &str, error: &str) -> Vec<Field> {
        vec![
            ID.into(),
            "dead".into(),
            "order.placed.in.berlin".into(),
            key.into(),
            error.into(),
        ]
    }

    #[test]
    fn a_table_fits_the_screen_and_ids_stay_whole() {
        let rows = [row("customer-with-a-long-name", &"refused ".repeat(40)), row("", "no")];
        let table = drawn(&columns(), &rows, 80, Paint::plain());
        assert_eq!(table.lines().count(), 3, "{table}");
        for line in table.lines() {
            assert!(line.width() <= 80, "{} {line}", line.width());
        }
        assert_eq!(table.matches(ID).count(), 2, "{table}");
        assert!(table.contains('…'), "{table}");
    }

    #[test]
    fn empty_columns_are_left_out_and_wide_characters_count_twice() {
        let table = drawn(
            &columns(),
            &[row("", "日本語日本語日本語日本語日本語日本語")],
            72,
            Paint::plain(),
        );
        assert!(!table.contains("key"), "{table}");
        assert!(table.lines().all(|line| line.width() <= 72), "{table}");
        let none = drawn(&columns(), &[], 80, Paint::plain());
        assert_eq!(none, "id  status  topic  key  error");
    }

    #[test]
    fn columns_that_can_be_spared_are_left_out_on_a_narrow_screen() {
        let columns = [
            Column::whole("id"),
            Column::whole("sink").spare(2),
            Column::whole("attempts").spare(1),
            Column::cut("error"),
        ];
        let row = vec![ID.into(), "rabbitmq-eu".into(), 7.into(), "connection refused".into()];
        let shown = |width| {
            let table = drawn(&columns, std::slice::from_ref(&row), width, Paint::plain());
            assert!(table.lines().all(|line| line.width() <= width), "{table}");
            ["sink", "attempts", "error"].map(|heading| table.contains(heading))
        };
        assert_eq!(shown(90), [true, true, true]);
        assert_eq!(shown(60), [true, false, true]);
        assert_eq!(shown(50), [false, false, true]);
    }

    #[test]
    fn a_drawn_table_has_no_escapes_without_colours() {
        let row = || vec![Field::toned("dead", Tone::Bad), 7.into()];
        let columns = [Column::whole("status"), Column::whole("n")];
        let plain = drawn(&columns, &[row()], 80, Paint::plain());
        assert!(plain.contains("dead") && !plain.contains('\x1b'), "{plain}");
        assert!(drawn(&columns, &[row()], 80, Paint::coloured()).contains('\x1b'));
    }
}
