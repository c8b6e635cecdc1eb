//! Formats without a parser here: `go.mod`, `Gemfile`, `pom.xml`. Read by their lines or tags.

use super::{Declared, Scope};

/// `require` lines and blocks, without those marked as indirect.
pub(super) fn go(text: &str) -> Vec<Declared> {
    let mut all = Vec::new();
    let mut block = "";
    for line in text.lines() {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let words: Vec<_> = code.split_whitespace().collect();
        let required = match (block, words.as_slice()) {
            (_, [word, "("]) => {
                block = word;
                continue;
            }
            (_, [")"]) => {
                block = "";
                continue;
            }
            ("", ["require", name, version]) | ("require", [name, version]) => (*name, *version),
            _ => continue,
        };
        if !comment.trim().starts_with("indirect") {
            let (name, version) = required;
            all.push(Declared {
                name: name.into(),
                requirement: Some(version.into()),
                scope: Scope::Normal,
            });
        }
    }
    all
}

/// `gem "name", "requirement"` lines, and the groups they stand in.
pub(super) fn gemfile(text: &str) -> Vec<Declared> {
    let mut all = Vec::new();
    let mut development = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("group ") {
            development = line.contains(":development") || line.contains(":test");
        } else if line == "end" {
            development = false;
        }
        let Some(rest) = line.strip_prefix("gem ").or_else(|| line.strip_prefix("gem(")) else {
            continue;
        };
        let strings: Vec<_> = rest.split(',').map(str::trim).map_while(quoted).collect();
        let Some((name, requirement)) = strings.split_first() else {
            continue;
        };
        let local = rest.contains("path:") || rest.contains(":path");
        let fixed = (!requirement.is_empty()).then(|| requirement.join(", "));
        let pinned = ["tag:", "ref:"]
            .iter()
            .any(|key| rest.contains(key))
            .then(|| "git".to_owned());
        let scope = match (local, development) {
            (true, _) => Scope::Local,
            (false, true) => Scope::Development,
            (false, false) => Scope::Normal,
        };
        all.push(Declared {
            name: (*name).to_owned(),
            requirement: fixed.or(pinned),
            scope,
        });
    }
    all
}

fn quoted(part: &str) -> Option<&str> {
    let quote = part.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    part[1..].split(quote).next()
}

/// `<dependency>` elements. One without a version takes it from a parent or from `dependencyManagement`, which is
/// local; those in `dependencyManagement` declare versions and are no dependencies.
pub(super) fn maven(text: &str) -> Result<Vec<Declared>, String> {
    let text = without(text, "<!--", "-->")?;
    if !text.contains("<project") {
        return Err("it has no `project` element".into());
    }
    let text = without(&text, "<dependencyManagement>", "</dependencyManagement>")?;
    let text = without(&text, "<plugins>", "</plugins>")?;
    let mut all = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("<dependency>") {
        let (body, tail) = after
            .split_once("</dependency>")
            .ok_or("a `dependency` element has no end")?;
        rest = tail;
        let body = without(body, "<exclusions>", "</exclusions>")?;
        let (Some(group), Some(artifact)) = (element(&body, "groupId"), element(&body, "artifactId")) else {
            return Err("a `dependency` element has no `groupId` or no `artifactId`".into());
        };
        let version = element(&body, "version").filter(|version| !version.is_empty());
        let scope = match (version, element(&body, "scope")) {
            (None, _) => Scope::Local,
            (_, Some("test" | "provided")) => Scope::Development,
            _ => Scope::Normal,
        };
        let firm = version.filter(|version| !matches!(*version, "LATEST" | "RELEASE"));
        all.push(Declared {
            name: format!("{group}:{artifact}"),
            requirement: firm.map(str::to_owned),
            scope,
        });
    }
    Ok(all)
}

fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = body.split_once(&format!("<{name}>"))?;
    after.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

/// `text` without what stands between `open` and `close`.
fn without(text: &str, open: &str, close: &str) -> Result<String, String> {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        kept.push_str(before);
        rest = after
            .split_once(close)
            .map(|(_, after)| after)
            .ok_or_else(|| format!("`{open}` has no end"))?;
    }
    kept.push_str(rest);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(all: &[Declared]) -> Vec<(&str, Option<&str>, Scope)> {
        all.iter()
            .map(|one| (one.name.as_str(), one.requirement.as_deref(), one.scope))
            .collect()
    }

    #[test]
    fn go_requirements_are_direct_unless_marked() {
        let text = "module m\ngo 1.22\nrequire a.org/x v1.0.0\nrequire (\n\tb.org/y v2.1.0\n\tc.org/z v0.1.0 // indirect\n)\n\
                    replace (\n\tb.org/y => ../y\n)\n";
        assert_eq!(
            shown(&go(text)),
            [
                ("a.org/x", Some("v1.0.0"), Scope::Normal),
                ("b.org/y", Some("v2.1.0"), Scope::Normal)
            ]
        );
    }

    #[test]
    fn gems_have_requirements_groups_and_paths() {
        let text = "source 'https://example.org'\ngem 'a', '~> 1.0', '>= 1.2'\ngem \"b\"\ngroup :test do\n  gem 'c', '1'\nend\n\
                    gem 'd', path: '../d'\n";
        assert_eq!(
            shown(&gemfile(text)),
            [
                ("a", Some("~> 1.0, >= 1.2"), Scope::Normal),
                ("b", None, Scope::Normal),
                ("c", Some("1"), Scope::Development),
                ("d", None, Scope::Local),
            ]
        );
    }

    #[test]
    fn maven_dependencies_are_read_and_a_broken_file_says_why() {
        let text = "<project><!-- <dependency> --><dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId>\
                    <version>1</version></dependency><dependency><groupId>g</groupId><artifactId>b</artifactId></dependency>\
                    </dependencies></project>";
        assert_eq!(
            shown(&maven(text).unwrap()),
            [("g:a", Some("1"), Scope::Normal), ("g:b", None, Scope::Local)]
        );
        assert!(maven("<project><dependency><groupId>").unwrap_err().contains("no end"));
        assert!(maven("<html>").is_err());
    }
}
