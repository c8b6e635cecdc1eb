//! What a file is, told by its name alone.

use crate::name::base;

/// What a language is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Programs and scripts.
    Code,
    /// Settings, builds, pipelines.
    Config,
    /// Text for people.
    Prose,
    /// Tables, documents for machines, drawings.
    Data,
    /// Not known by its name.
    Other,
}

/// A language and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// Its usual name.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) is: Use,
}

/// The language of the file at `path`.
pub(crate) fn language(path: &[u8]) -> Language {
    let name = base(path).to_ascii_lowercase();
    let name = String::from_utf8_lossy(&name);
    let by_name = NAMES.iter().find(|(known, ..)| *known == name);
    let by_extension = || {
        let (stem, extension) = name.rsplit_once('.')?;
        // `.gitignore` is a name without an extension.
        (!stem.is_empty()).then(|| {
            EXTENSIONS
                .iter()
                .find(|(known, ..)| known.split(' ').any(|one| one == extension))
        })?
    };
    match by_name.or_else(by_extension) {
        Some((_, name, is)) => Language { name, is: *is },
        None => Language {
            name: "other",
            is: Use::Other,
        },
    }
}

/// Whether the file at `path` holds tests, by the customs of the common languages. Tests inside a source file (Rust)
/// are not seen by it.
pub(crate) fn is_test(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/').rev();
    let file = segments.next().unwrap_or(path);
    let within = |segment: &[u8]| {
        matches!(
            segment.to_ascii_lowercase().as_slice(),
            b"test" | b"tests" | b"__tests__" | b"spec" | b"testdata"
        )
    };
    let stem = file
        .iter()
        .rposition(|byte| *byte == b'.')
        .map_or(file, |dot| &file[..dot]);
    segments.any(within)
        || stem.starts_with(b"test_")
        || [
            &b"_test"[..],
            b"_tests",
            b".test",
            b".spec",
            b"_spec",
            b"Test",
            b"Tests",
        ]
        .iter()
        .any(|end| stem.len() > end.len() && stem.ends_with(end))
        || stem == b"tests"
}

/// Whether `path` lies in a directory of other people's code that was copied in.
pub(crate) fn is_vendored(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/');
    segments.any(|segment| matches!(segment, b"node_modules" | b"vendor" | b"third_party" | b"third-party"))
}

/// Whether `path` is a lock file: written by a tool, changed by every update.
pub(crate) fn is_lock(path: &[u8]) -> bool {
    LOCKS.iter().any(|lock| lock.as_bytes() == base(path))
}

/// The names of lock files.
pub(crate) const LOCKS: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "Pipfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "go.sum",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

type Row = (&'static str, &'static str, Use);

/// Whole names, in lower case.
const NAMES: &[Row] = &[
    ("build", "Bazel", Use::Config),
    ("cargo.lock", "lock file", Use::Data),
    ("cmakelists.txt", "CMake", Use::Config),
    ("dockerfile", "Dockerfile", Use::Config),
    ("gemfile", "Ruby", Use::Code),
    ("gnumakefile", "Make", Use::Config),
    ("go.mod", "Go module", Use::Config),
    ("go.sum", "lock file", Use::Data),
    ("justfile", "Just", Use::Config),
    ("kconfig", "Kconfig", Use::Config),
    ("makefile", "Make", Use::Config),
    ("package-lock.json", "lock file", Use::Data),
    ("pnpm-lock.yaml", "lock file", Use::Data),
    ("poetry.lock", "lock file", Use::Data),
    ("rakefile", "Ruby", Use::Code),
    ("uv.lock", "lock file", Use::Data),
    ("yarn.lock", "lock file", Use::Data),
    (".gitattributes", "Git settings", Use::Config),
    (".gitignore", "Git settings", Use::Config),
    (".gitmodules", "Git settings", Use::Config),
];

/// Extensions, in lower case, of one language in one row.
const EXTENSIONS: &[Row] = &[
    ("rs", "Rust", Use::Code),
    ("c h", "C", Use::Code),
    ("cc cpp cxx hh hpp hxx inl", "C++", Use::Code),
    ("m mm", "Objective-C", Use::Code),
    ("go", "Go", Use::Code),
    ("py pyi", "Python", Use::Code),
    ("js mjs cjs jsx", "JavaScript", Use::Code),
    ("ts tsx mts cts", "TypeScript", Use::Code),
    ("java", "Java", Use::Code),
    ("kt kts", "Kotlin", Use::Code),
    ("scala sc", "Scala", Use::Code),
    ("cs", "C#", Use::Code),
    ("fs fsx", "F#", Use::Code),
    ("swift", "Swift", Use::Code),
    ("rb", "Ruby", Use::Code),
    ("php", "PHP", Use::Code),
    ("pl pm", "Perl", Use::Code),
    ("lua", "Lua", Use::Code),
    ("r", "R", Use::Code),
    ("jl", "Julia", Use::Code),
    ("hs", "Haskell", Use::Code),
    ("ml mli", "OCaml", Use::Code),
    ("ex exs", "Elixir", Use::Code),
    ("erl hrl", "Erlang", Use::Code),
    ("clj cljs cljc", "Clojure", Use::Code),
    ("zig", "Zig", Use::Code),
    ("dart", "Dart", Use::Code),
    ("asm s", "Assembly", Use::Code),
    ("sh bash zsh fish", "Shell", Use::Code),
    ("ps1", "PowerShell", Use::Code),
    ("sql", "SQL", Use::Code),
    ("vue", "Vue", Use::Code),
    ("svelte", "Svelte", Use::Code),
    ("css scss sass less", "CSS", Use::Code),
    ("html htm", "HTML", Use::Code),
    ("proto", "Protocol Buffers", Use::Code),
    ("wgsl glsl hlsl", "Shader", Use::Code),
    ("tf", "Terraform", Use::Config),
    ("nix", "Nix", Use::Config),
    ("cmake", "CMake", Use::Config),
    ("mk", "Make", Use::Config),
    ("bzl bazel", "Bazel", Use::Config),
    ("gradle", "Gradle", Use::Config),
    ("toml", "TOML", Use::Config),
    ("yml yaml", "YAML", Use::Config),
    ("ini cfg conf", "INI", Use::Config),
    ("md markdown", "Markdown", Use::Prose),
    ("rst", "reStructuredText", Use::Prose),
    ("adoc", "AsciiDoc", Use::Prose),
    ("tex", "TeX", Use::Prose),
    ("txt", "text", Use::Prose),
    ("json jsonl", "JSON", Use::Data),
    ("xml", "XML", Use::Data),
    ("csv tsv", "CSV", Use::Data),
    ("svg", "SVG", Use::Data),
    ("png jpg jpeg gif webp ico bmp", "image", Use::Data),
    ("ttf otf woff woff2", "font", Use::Data),
    ("zip gz xz bz2 zst tar jar whl", "archive", Use::Data),
    ("pdf", "PDF", Use::Data),
    ("lock", "lock file", Use::Data),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_by_the_whole_name_first_and_then_by_the_extension() {
        assert_eq!(language(b"a/CMakeLists.txt").name, "CMake");
        assert_eq!(language(b"a/notes.txt").name, "text");
        assert_eq!(language(b"a/B.RS").name, "Rust");
        assert_eq!(language(b"a/x.h").name, "C");
        assert_eq!(language(b".rs").name, "other");
        assert_eq!(language(b"caf\xe9.py").name, "Python");
    }

    #[test]
    fn tests_are_told_by_directory_and_by_name() {
        for path in [
            "tests/a.rs",
            "src/__tests__/x.js",
            "a/test_x.py",
            "x_test.go",
            "a.spec.ts",
            "FooTest.java",
        ] {
            assert!(is_test(path.as_bytes()), "{path}");
        }
        for path in ["src/contest.rs", "latest.py", "src/attest/a.rs", "test.rs/../a"] {
            assert!(!is_test(path.as_bytes()), "{path}");
        }
    }
}
