//! Text with numbers in it, each of which knows which figure of report.json it shows. So a page can
//! say of every number where it comes from, and a test can hold it against its source.

use serde::{Serialize, Serializer};

use super::figure::{Figure, Known};

/// A piece of text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Plain(String),
    /// The characters of a figure's `shown`.
    Number(Box<Shown>),
    /// The characters of a figure's `shown_range`.
    Range(Box<Shown>),
}

/// A number as it stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// The figure's id in report.json.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) value: f64,
    /// Where it comes from, in a line.
    pub(crate) source: String,
}

/// Parts one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text(pub(crate) Vec<Part>);

/// As its characters.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.plain())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(vec![Part::Plain(text.to_owned())])
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(vec![Part::Plain(text)])
    }
}

impl From<&Known> for Text {
    fn from(known: &Known) -> Text {
        Text(vec![Part::Number(Box::new(Shown::of(known, &known.shown)))])
    }
}

impl Shown {
    fn of(known: &Known, text: &str) -> Shown {
        Shown {
            id: known.id.clone(),
            text: text.to_owned(),
            value: known.value,
            source: known.source.describe(),
        }
    }
}

impl Text {
    /// A figure's range, if it has one to show.
    pub(crate) fn range(known: &Known) -> Option<Text> {
        let text = known.shown_range.as_ref()?;
        Some(Text(vec![Part::Range(Box::new(Shown::of(known, text)))]))
    }

    /// A figure's number; none where there is no number.
    pub(crate) fn number(figure: &Figure) -> Option<Text> {
        figure.known().map(Text::from)
    }

    pub(crate) fn then(mut self, more: impl Into<Text>) -> Text {
        self.0.extend(more.into().0);
        self
    }

    /// The characters alone.
    pub(crate) fn plain(&self) -> String {
        self.0.iter().map(Part::text).collect()
    }

    /// Texts with `separator` between them.
    pub(crate) fn join(texts: impl IntoIterator<Item = Text>, separator: &str) -> Text {
        let mut joined = Text::default();
        for (i, text) in texts.into_iter().enumerate() {
            joined = if i == 0 { text } else { joined.then(separator).then(text) };
        }
        joined
    }
}

impl Part {
    pub(crate) fn text(&self) -> &str {
        match self {
            Part::Plain(text) => text,
            Part::Number(shown) | Part::Range(shown) => &shown.text,
        }
    }
}

/// `template` with each `{name}` replaced by its text.
pub(crate) fn fill(template: &str, values: &[(&str, Text)]) -> Text {
    let mut text = Text::default();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let value = values.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
        text = text.then(before).then(value.unwrap_or_else(|| format!("{{{name}}}").into()));
        rest = after;
    }
    text.then(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_replaces_by_name_and_does_not_fill_what_it_filled_in() {
        let values = [("a", Text::from("1")), ("b", Text::from("{a}"))];
        assert_eq!(fill("{a} of {b}, {a}", &values).plain(), "1 of {a}, 1");
        assert_eq!(fill("{c} {", &values).plain(), "{c} {");
    }

    #[test]
    fn join_separates() {
        let texts = ["a", "b", "c"].map(Text::from);
        assert_eq!(Text::join(texts, ", ").plain(), "a, b, c");
        assert_eq!(Text::join([], ", ").plain(), "");
    }
}
