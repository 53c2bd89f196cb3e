//! The meta-schemas of all drafts, which references may lead to without
//! being supplied.
//!
//! Each is read where it is asked for.

use bumpalo::Bump;

use super::json::Json;

/// How deep the meta-schemas nest, at most.
const MAX_DEPTH: usize = 32;

/// A meta-schema: its address without scheme and fragment, and its text.
type Bundled = (&'static str, &'static str);

/// A row of the table, with the file below `meta/`.
macro_rules! bundled {
    ($path:literal) => {
        (
            concat!("json-schema.org/", $path),
            include_str!(concat!("../../meta/", $path, ".json")),
        )
    };
}

static BUNDLED: [Bundled; 19] = [
    bundled!("draft-04/schema"),
    bundled!("draft-06/schema"),
    bundled!("draft-07/schema"),
    bundled!("draft/2019-09/schema"),
    bundled!("draft/2019-09/meta/core"),
    bundled!("draft/2019-09/meta/applicator"),
    bundled!("draft/2019-09/meta/validation"),
    bundled!("draft/2019-09/meta/meta-data"),
    bundled!("draft/2019-09/meta/format"),
    bundled!("draft/2019-09/meta/content"),
    bundled!("draft/2020-12/schema"),
    bundled!("draft/2020-12/meta/core"),
    bundled!("draft/2020-12/meta/applicator"),
    bundled!("draft/2020-12/meta/unevaluated"),
    bundled!("draft/2020-12/meta/validation"),
    bundled!("draft/2020-12/meta/meta-data"),
    bundled!("draft/2020-12/meta/format-annotation"),
    bundled!("draft/2020-12/meta/format-assertion"),
    bundled!("draft/2020-12/meta/content"),
];

/// The meta-schema at an address without a fragment. `http` and `https` are
/// the same here.
pub(crate) fn meta_schema<'a>(
    address: &str,
    bump: &'a Bump,
) -> Option<&'a Json<'a>> {
    let bare = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"))?;
    let (_, text) = BUNDLED.iter().find(|&&(known, _)| known == bare)?;
    let value = Json::read(text, MAX_DEPTH, bump);
    Some(value.expect("a meta-schema, which a test reads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meta_schema_is_where_it_says() {
        for (address, _) in BUNDLED {
            let bump = Bump::new();
            let value = meta_schema(&format!("https://{address}"), &bump);
            let value = value.and_then(Json::as_object).expect("an object");
            let id = value.get("$id").or_else(|| value.get("id"));
            let id = id.and_then(Json::as_str).expect("an address");
            let id = id.strip_suffix('#').unwrap_or(id);
            assert_eq!(id.split_once("://").expect("a scheme").1, address);
        }
        let bump = Bump::new();
        assert!(meta_schema("https://example.com/schema", &bump).is_none());
    }
}
