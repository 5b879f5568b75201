//! The files that are read where a program names none.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::provider::QosLoader;

/// The environment variables with a list of files; the first that is set counts. The second is
/// that of RTI Connext.
const VARIABLES: [&str; 2] = ["SPINDLE_QOS_PROFILES", "NDDS_QOS_PROFILES"];

/// In the working directory.
const FILE: &str = "USER_QOS_PROFILES.xml";

impl QosLoader {
    /// The files that are read where a program names none: those in the environment variable
    /// `SPINDLE_QOS_PROFILES`, or `NDDS_QOS_PROFILES` if that is not set; then
    /// `USER_QOS_PROFILES.xml` in the working directory, if it exists.
    ///
    /// The variable is a list with `;` between its items. An item is a file, which may begin with
    /// `file://`; or a text, as `str://"<dds>...</dds>"`; or several of them in `[` and `]` with
    /// `|` between, of which the first that exists is read.
    pub fn default_files() -> Self {
        Self::default_files_in(|name| std::env::var(name).ok(), Path::new(""))
    }

    fn default_files_in(
        variable: impl Fn(&str) -> Option<String>,
        working_directory: &Path,
    ) -> Self {
        let mut loader = Self::new();
        let mut known = HashSet::new();
        let set = VARIABLES
            .into_iter()
            .find_map(|name| Some((name, variable(name)?)));
        if let Some((name, list)) = set {
            for (place, item) in items(&list).into_iter().enumerate() {
                match chosen(item, working_directory) {
                    Item::Text(text) => {
                        loader = loader.text(format!("{name}, item {}", place + 1), text);
                    }
                    // What is listed has to be there, and a file is read once.
                    Item::File(path) => {
                        if known.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                            loader = loader.file(path);
                        }
                    }
                }
            }
        }
        let file = working_directory.join(FILE);
        let is_new = file.canonicalize().is_ok_and(|path| known.insert(path));
        match is_new {
            true => loader.file(file),
            false => loader,
        }
    }
}

enum Item<'a> {
    File(PathBuf),
    Text(&'a str),
}

/// The items of a list: `;` separates them, except in quotes.
fn items(list: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let split = list.split(|c| {
        is_quoted ^= c == '"';
        c == ';' && !is_quoted
    });
    let items = split.map(str::trim);
    items.filter(|item| !item.is_empty()).collect()
}

/// The first alternative that exists; the last if none does.
fn chosen<'a>(item: &'a str, working_directory: &Path) -> Item<'a> {
    let alternatives = item
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let mut alternatives: Vec<&str> = alternatives.unwrap_or(item).split('|').collect();
    if item.starts_with("str://") {
        alternatives = vec![item];
    }
    let mut last = Item::File(PathBuf::new());
    for alternative in alternatives {
        let alternative = alternative.trim();
        last = match alternative.strip_prefix("str://") {
            Some(text) => return Item::Text(text.trim_matches('"')),
            None => {
                let path = alternative.strip_prefix("file://").unwrap_or(alternative);
                Item::File(working_directory.join(path))
            }
        };
        if matches!(&last, Item::File(path) if path.exists()) {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(profile: &str) -> String {
        format!("<dds><qos_library name='L'><qos_profile name='{profile}'/></qos_library></dds>")
    }

    /// The profiles that are read with these variables, in a directory with `a.xml`, `b.xml` and
    /// maybe the file with the known name; or what is wrong.
    fn check(variables: &[(&str, &str)], has_file: bool, expected: Result<&[&str], &str>) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(format!("{name}.xml")), text(name)).unwrap();
        }
        if has_file {
            std::fs::write(folder.path().join(FILE), text("user")).unwrap();
        }
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let loaded = QosLoader::default_files_in(variable, folder.path()).load();
        match (loaded, expected) {
            (Ok(provider), Ok(expected)) => assert_eq!(provider.profile_names(), expected),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            (loaded, _) => panic!("{loaded:?}"),
        }
    }

    #[test]
    fn default_files() {
        let ours = VARIABLES[0];
        let theirs = VARIABLES[1];
        check(&[], false, Ok(&[]));
        check(&[], true, Ok(&["L::user"]));
        check(&[(ours, "a.xml")], true, Ok(&["L::a", "L::user"]));
        check(
            &[(theirs, "file://b.xml; a.xml")],
            false,
            Ok(&["L::b", "L::a"]),
        );
        // Ours counts, also if it is empty.
        check(&[(theirs, "b.xml"), (ours, "a.xml")], false, Ok(&["L::a"]));
        check(&[(theirs, "b.xml"), (ours, "")], true, Ok(&["L::user"]));
        check(&[(ours, "[none.xml | b.xml|a.xml]")], false, Ok(&["L::b"]));
        check(
            &[(ours, "a.xml;./a.xml;USER_QOS_PROFILES.xml")],
            true,
            Ok(&["L::a", "L::user"]),
        );
        let item = format!("a.xml;str://\"{};\"", text("s"));
        check(
            &[(
                ours,
                &item
                    .replace("/></qos_lib", "/><!-- ; | --></qos_lib")
                    .replace(";\"", "\""),
            )],
            false,
            Ok(&["L::a", "L::s"]),
        );
        check(&[(ours, "none.xml")], true, Err("none.xml: No such file"));
        check(
            &[(ours, "str://\"<dds>\"")],
            false,
            Err("SPINDLE_QOS_PROFILES, item 1:1:1: error: element 'dds' is not closed"),
        );
    }
}
