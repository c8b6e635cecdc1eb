//! Doc comments as one text: it becomes the description of a tool.

use syn::{Attribute, Expr, ExprLit, Lit, Meta, parse_quote};

/// The doc comment of a function or a parameter.
pub(crate) enum Doc {
    /// Known now.
    Text(String),
    /// Some part is a macro, such as `include_str!`, that only the compiler can read.
    Parts(Vec<Expr>),
}

impl Doc {
    /// The text of all `doc` attributes in `attrs`.
    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        let values: Vec<_> = attrs.iter().filter_map(value).collect();
        let texts: Option<Vec<_>> = values.iter().map(text).collect();
        match texts {
            Some(texts) => Self::Text(clean(&texts)),
            None => Self::Parts(values.into_iter().map(cleaned).collect()),
        }
    }
}

fn value(attr: &Attribute) -> Option<Expr> {
    match &attr.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(meta.value.clone()),
        _ => None,
    }
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value()),
        _ => None,
    }
}

fn cleaned(value: Expr) -> Expr {
    match text(&value) {
        Some(text) => {
            let text = clean(&[text]);
            parse_quote!(#text)
        }
        None => value,
    }
}

/// Takes away what only lays a comment out: one space, the stars of a block, empty lines around it.
fn clean(texts: &[String]) -> String {
    let mut lines = Vec::new();
    for text in texts {
        for (number, line) in text.split('\n').enumerate() {
            let line = match number {
                0 => line,
                _ => line.trim_start().strip_prefix('*').unwrap_or(line),
            };
            lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end());
        }
    }
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    fn doc(attrs: &[Attribute]) -> String {
        match Doc::of(attrs) {
            Doc::Text(text) => text,
            Doc::Parts(parts) => format!("{} parts", parts.len()),
        }
    }

    #[test]
    fn lines_are_joined_and_their_indentation_is_kept() {
        let attrs: Vec<Attribute> = vec![
            parse_quote!(#[doc = " Fetches."]),
            parse_quote!(#[doc = ""]),
            parse_quote!(#[inline]),
            parse_quote!(#[doc = "   * once  "]),
        ];
        assert_eq!(doc(&attrs), "Fetches.\n\n  * once");
    }

    #[test]
    fn the_stars_of_a_block_comment_are_no_part_of_the_text() {
        assert_eq!(
            doc(&[parse_quote!(#[doc = "\n * Fetches.\n * Then parses.\n "])]),
            "Fetches.\nThen parses."
        );
    }

    #[test]
    fn a_comment_read_from_a_file_is_left_to_the_compiler() {
        let attrs = [
            parse_quote!(#[doc = " See:"]),
            parse_quote!(#[doc = include_str!("fetch.md")]),
        ];
        assert_eq!(doc(&attrs), "2 parts");
    }

    #[test]
    fn no_comment_is_an_empty_text() {
        assert_eq!(doc(&[parse_quote!(#[doc(hidden)])]), "");
    }
}
