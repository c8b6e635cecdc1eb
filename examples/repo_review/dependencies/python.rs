//! `pyproject.toml`, `Pipfile`, `requirements*.txt`.

use toml::{Table, Value};

use super::{Declared, Scope};

pub(super) fn pyproject(text: &str) -> Result<Vec<Declared>, String> {
    let root = table(text)?;
    let mut all = Vec::new();
    if let Some(project) = root.get("project").and_then(Value::as_table) {
        list(project.get("dependencies"), Scope::Normal, &mut all);
        groups(project.get("optional-dependencies"), Scope::Normal, &mut all);
    }
    groups(root.get("dependency-groups"), Scope::Development, &mut all);
    if let Some(poetry) = root
        .get("tool")
        .and_then(|tool| tool.get("poetry"))
        .and_then(Value::as_table)
    {
        versions(poetry.get("dependencies"), Scope::Normal, &mut all);
        versions(poetry.get("dev-dependencies"), Scope::Development, &mut all);
        for group in poetry
            .get("group")
            .and_then(Value::as_table)
            .into_iter()
            .flat_map(Table::values)
        {
            versions(group.get("dependencies"), Scope::Development, &mut all);
        }
    }
    Ok(all)
}

pub(super) fn pipfile(text: &str) -> Result<Vec<Declared>, String> {
    let root = table(text)?;
    let mut all = Vec::new();
    versions(root.get("packages"), Scope::Normal, &mut all);
    versions(root.get("dev-packages"), Scope::Development, &mut all);
    Ok(all)
}

pub(super) fn requirements(text: &str) -> Vec<Declared> {
    let joined = text.replace("\\\n", " ");
    let lines = joined
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(line).trim());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    // `-r other.txt` is another manifest; `-e .` is this very project.
    let lines = lines.filter(|line| !line.starts_with('-') && !line.starts_with('.'));
    lines.filter_map(|line| requirement(line, Scope::Normal)).collect()
}

/// One requirement by PEP 508: a name, extras, a version or an address, a marker.
fn requirement(line: &str, scope: Scope) -> Option<Declared> {
    let line = line
        .split(';')
        .next()
        .unwrap_or(line)
        .split(" --")
        .next()
        .unwrap_or(line)
        .trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let end = line.find(|c: char| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || rest.starts_with(':') {
        return None; // an address without a name
    }
    let rest = rest.trim_start();
    let rest = rest
        .strip_prefix('[')
        .and_then(|extras| extras.split_once(']'))
        .map_or(rest, |(_, rest)| rest)
        .trim();
    // Names are compared without case, and `-`, `_` and `.` are one.
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    let firm = match rest.strip_prefix('@') {
        // An address of a moving branch has no second `@`, that of a file needs none.
        Some(address) => !address.trim().starts_with("git+") || address.matches('@').count() > 0,
        None => !rest.is_empty() && rest != "==*",
    };
    Some(Declared {
        name,
        requirement: firm.then(|| rest.to_owned()),
        scope,
    })
}

fn table(text: &str) -> Result<Table, String> {
    text.parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())
}

fn list(value: Option<&Value>, scope: Scope, all: &mut Vec<Declared>) {
    let lines = value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    all.extend(lines.filter_map(|line| requirement(line, scope)));
}

fn groups(value: Option<&Value>, scope: Scope, all: &mut Vec<Declared>) {
    for group in value.and_then(Value::as_table).into_iter().flat_map(Table::values) {
        list(Some(group), scope, all);
    }
}

fn versions(value: Option<&Value>, scope: Scope, all: &mut Vec<Declared>) {
    for (name, value) in value.and_then(Value::as_table).into_iter().flatten() {
        if name == "python" {
            continue; // the language itself
        }
        let field = |key: &str| value.get(key).and_then(Value::as_str);
        let local = value.get("path").is_some();
        let version = value
            .as_str()
            .or_else(|| field("version"))
            .or_else(|| field("rev"))
            .or_else(|| field("tag"));
        let firm = version
            .filter(|version| !matches!(version.trim(), "*" | ""))
            .map(str::to_owned);
        let scope = if local { Scope::Local } else { scope };
        all.push(Declared {
            name: name.to_ascii_lowercase().replace(['_', '.'], "-"),
            requirement: firm,
            scope,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(all: &[Declared]) -> Vec<(&str, Option<&str>)> {
        all.iter()
            .map(|one| (one.name.as_str(), one.requirement.as_deref()))
            .collect()
    }

    #[test]
    fn requirements_are_read_with_extras_markers_and_comments() {
        let text =
            "# c\nA_b[x]==1.0 ; python_version > '3' # why\nc\n-r more.txt\nd @ git+https://e.org/d\ne>=1,\\\n<2\n";
        assert_eq!(
            shown(&requirements(text)),
            [("a-b", Some("==1.0")), ("c", None), ("d", None), ("e", Some(">=1, <2"))]
        );
    }

    #[test]
    fn both_shapes_of_a_pyproject_are_read() {
        let text = "[project]\ndependencies = ['a>=1', 'b']\n[dependency-groups]\ndev = ['c==2']\n\
                    [tool.poetry.dependencies]\npython = '^3'\nd = '*'\ne = { version = '^1' }\n";
        let all = pyproject(text).unwrap();
        assert_eq!(
            shown(&all),
            [
                ("a", Some(">=1")),
                ("b", None),
                ("c", Some("==2")),
                ("d", None),
                ("e", Some("^1"))
            ]
        );
        assert!(pyproject("[project").is_err());
    }
}
