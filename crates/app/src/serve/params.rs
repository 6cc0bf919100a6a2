//! The parameters of a request's query string, strictly: what is no UTF-8 or not known is refused.

use super::reply::Refused;

/// Images that one answer may have.
pub(super) const MAX_K: usize = 200;
/// Images of an answer that asks for no number.
const DEFAULT_K: usize = 24;
/// Characters of a query: far more than a model reads.
pub(super) const MAX_QUERY_CHARS: usize = 1_000;

/// Decoded parameters.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Params {
    pub(super) q: Option<String>,
    pub(super) k: Option<String>,
}

impl Params {
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refused> {
        let mut params = Self::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match name {
                "q" => &mut params.q,
                "k" => &mut params.k,
                _ => return Err(Refused::bad("the only parameters are q and k")),
            };
            let value = decode(value)
                .ok_or_else(|| Refused::bad(format!("{name} is not percent-encoded UTF-8")))?;
            if place.replace(value).is_some() {
                return Err(Refused::bad(format!("{name} is given twice")));
            }
        }
        Ok(params)
    }

    /// The query, with what surrounds it cut off.
    pub(super) fn text(&self) -> Result<String, Refused> {
        let text = self.q.as_deref().unwrap_or_default().trim();
        match text.chars().count() {
            0 => Err(Refused::bad("describe a person: q is empty")),
            count if count > MAX_QUERY_CHARS => {
                Err(Refused::bad(format!("q has {count} characters, more than {MAX_QUERY_CHARS}")))
            }
            _ => Ok(text.to_owned()),
        }
    }

    /// How many images are asked for.
    pub(super) fn k(&self) -> Result<usize, Refused> {
        match self.k.as_deref().map_or(Ok(DEFAULT_K), str::parse) {
            Ok(k) if (1..=MAX_K).contains(&k) => Ok(k),
            _ => Err(Refused::bad(format!("k is a whole number from 1 to {MAX_K}"))),
        }
    }
}

/// Percent-decoded, `+` as a space; nothing when it is malformed or no UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_parameters() {
        let params = Params::read(Some("q=a+man%20in%20%ED%95%9C+%2B&k=5")).unwrap();
        assert_eq!((params.text().unwrap(), params.k().unwrap()), ("a man in 한 +".to_owned(), 5));
        assert_eq!(Params::read(None).unwrap().k().unwrap(), DEFAULT_K);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for query in ["q=%ff", "q=%f", "q=%zz", "q=%c3%28", "path=/etc/passwd", "q=a&q=b", "q=%+1"]
        {
            let refused = Params::read(Some(query)).unwrap_err();
            assert_eq!(refused.status, 400, "{query}");
        }
        for query in ["k=0", "k=201", "k=-1", "k=1e3", "k=", "k=99999999999999999999"] {
            assert_eq!(Params::read(Some(query)).unwrap().k().unwrap_err().status, 400, "{query}");
        }
        let long = format!("q={}", "a".repeat(MAX_QUERY_CHARS + 1));
        for query in ["q=", "q=++", "", &long] {
            assert_eq!(Params::read(Some(query)).unwrap().text().unwrap_err().status, 400);
        }
    }
}
