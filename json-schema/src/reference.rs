//! Addresses: resolving a reference against a base (RFC 3986, section 5).
//!
//! Only what `$id` and `$ref` need: no percent normalisation and no network.

use std::borrow::Cow;

/// An address split into its five parts; absent parts are `None`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let Some(colon) = text.find(':') else {
        return (None, text);
    };
    let scheme = &text[..colon];
    let first_is_letter =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let rest_is_fine = scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if first_is_letter && rest_is_fine {
        (Some(scheme), &text[colon + 1..])
    } else {
        (None, text)
    }
}

impl<'a> Parts<'a> {
    /// Splits an address that has no fragment.
    fn of(text: &'a str) -> Parts<'a> {
        let (scheme, rest) = split_scheme(text);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                Parts { scheme, authority: Some(authority), path, query }
            }
            None => Parts { scheme, authority: None, path: rest, query },
        }
    }

    fn print(&self, path: &str) -> String {
        let mut out = String::new();
        if let Some(scheme) = self.scheme {
            out.push_str(scheme);
            out.push(':');
        }
        if let Some(authority) = self.authority {
            out.push_str("//");
            out.push_str(authority);
        }
        out.push_str(path);
        if let Some(query) = self.query {
            out.push('?');
            out.push_str(query);
        }
        out
    }
}

/// Splits off the fragment; an absent one is empty.
pub(crate) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Resolves a reference without a fragment against a base.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let target = Parts::of(reference);
    if target.scheme.is_some() {
        return target.print(&remove_dots(target.path));
    }
    let base = Parts::of(base);
    if target.authority.is_some() {
        let whole = Parts { scheme: base.scheme, ..target };
        return whole.print(&remove_dots(target.path));
    }
    let whole = Parts { query: target.query, ..base };
    if target.path.is_empty() {
        let query = target.query.or(base.query);
        return Parts { query, ..base }.print(base.path);
    }
    if target.path.starts_with('/') {
        return whole.print(&remove_dots(target.path));
    }
    let merged = match base.path.rfind('/') {
        Some(slash) => format!("{}{}", &base.path[..=slash], target.path),
        None if base.authority.is_some() => format!("/{}", target.path),
        None => target.path.to_owned(),
    };
    whole.print(&remove_dots(&merged))
}

/// Removes `.` and `..` segments.
fn remove_dots(path: &str) -> Cow<'_, str> {
    if !path.split('/').any(|segment| segment == "." || segment == "..") {
        return Cow::Borrowed(path);
    }
    let absolute = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
        ends_open = false;
        match segment {
            "." => ends_open = true,
            ".." => {
                segments.pop();
                ends_open = true;
            }
            segment => segments.push(segment),
        }
    }
    if ends_open {
        segments.push("");
    }
    let joined = segments.join("/");
    Cow::Owned(if absolute { format!("/{joined}") } else { joined })
}

/// Decodes `%XX` where it gives valid UTF-8; leaves the rest as it is.
pub(crate) fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = code {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    match String::from_utf8(out) {
        Ok(decoded) => Cow::Owned(decoded),
        Err(_) => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, 5.4.
    #[test]
    fn rfc_examples_resolve() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
        ];
        for (reference, want) in cases {
            assert_eq!(resolve(base, reference), want, "{reference}");
        }
    }

    #[test]
    fn bases_without_authority_work() {
        assert_eq!(resolve("", "node"), "node");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
        assert_eq!(resolve("tree.json", "node.json"), "node.json");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
        assert_eq!(split_fragment("a#b"), ("a", "b"));
        assert_eq!(percent_decode("a%25b%zz"), "a%b%zz");
    }
}
