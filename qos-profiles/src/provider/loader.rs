//! Loading files and texts.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Report, Severity};
use crate::provider::links::Links;
use crate::provider::{LoadError, Model, QosProvider, built_in};
use crate::xml::library::{self, Group};
use crate::xml::tree;
use crate::xml::variables::Variables;

/// Collects files and texts with QoS profiles, and loads them as one.
///
/// `$(NAME)` in a file stands for a variable: one that is set here, else one of the process's
/// environment, else the default in the file's `configuration_variables`.
///
/// ```
/// use spindle_dds_qos::QosLoader;
///
/// let provider = QosLoader::new()
///     .text(
///         "qos.xml",
///         r#"<dds><qos_library name="L"><qos_profile name="P"><datareader_qos>
///              <history><depth>$(DEPTH)</depth></history>
///            </datareader_qos></qos_profile></qos_library></dds>"#,
///     )
///     .variable("DEPTH", "8")
///     .load()?;
/// assert_eq!(provider.profile("L::P")?.datareader_qos("T").history.depth, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct QosLoader {
    sources: Vec<Source>,
    variables: Variables,
}

#[derive(Debug, Clone)]
enum Source {
    File(PathBuf),
    Text { name: String, bytes: Vec<u8> },
}

impl QosLoader {
    /// Nothing to load yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. It is opened by [`load`](Self::load).
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.sources.push(Source::File(path.as_ref().to_owned()));
        self
    }

    /// Adds a text, called `name` in diagnostics. Any bytes may be given.
    #[must_use]
    pub fn text(mut self, name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.sources.push(Source::Text {
            name: name.into(),
            bytes: bytes.as_ref().to_owned(),
        });
        self
    }

    /// Sets a variable for `$(NAME)`; it comes before one of the environment.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.given.insert(name.into(), value.into());
        self
    }

    /// Adds the files and texts of another, with its variables.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.sources.extend(other.sources.iter().cloned());
        let variables = other.variables.given.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.clone()));
        self.variables.given.extend(variables);
        self
    }

    /// Whether no file and no text was added.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// A file that cannot be read; all errors and warnings if there is an error.
    pub fn load(&self) -> Result<QosProvider, LoadError> {
        let provider = self.inspect()?;
        let mut remarks = provider.warnings().iter();
        if remarks.any(|remark| remark.severity == Severity::Error) {
            return Err(LoadError::Invalid {
                diagnostics: provider.warnings().to_vec(),
            });
        }
        Ok(provider)
    }

    /// Reads what can be read: values in error are left out, and the errors are among the
    /// [`warnings`](QosProvider::warnings). For tools that show all there is to say about a file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn inspect(&self) -> Result<QosProvider, LoadError> {
        let mut model = Model::default();
        let mut broken = false;
        for source in &self.sources {
            let (groups, remarks, is_broken) = self.read(source)?;
            model.groups.extend(groups);
            model.remarks.extend(remarks);
            broken |= is_broken;
        }
        let built_in = built_in::used_by(&model.groups);
        model.groups.extend(built_in);
        let (links, remarks) = Links::of(&model.groups);
        model.links = links;
        // If a file is truncated, unknown names may be its fault.
        if !broken {
            model.remarks.extend(remarks);
        }
        model.remarks.extend(second_defaults(&model.groups));
        model.remarks.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(QosProvider {
            model: model.into(),
        })
    }

    fn read(&self, source: &Source) -> Result<(Vec<Group>, Vec<Diagnostic>, bool), LoadError> {
        let from_file;
        let (name, bytes) = match source {
            Source::Text { name, bytes } => (name.clone(), bytes),
            Source::File(path) => {
                let unreadable = |source| LoadError::Unreadable {
                    path: path.clone(),
                    source,
                };
                from_file = std::fs::read(path).map_err(unreadable)?;
                (path.display().to_string(), &from_file)
            }
        };
        let mut report = Report::new(name.into());
        let document = tree::read(bytes, &mut report);
        let mut groups = Vec::new();
        if let Some(mut root) = document.root {
            self.variables.expand(&mut root, &mut report);
            groups = library::read(root, &mut report);
        }
        Ok((groups, report.into_diagnostics(), document.broken))
    }
}

/// Warns of profiles that would be the default if a later one were not.
fn second_defaults(groups: &[Group]) -> Vec<Diagnostic> {
    let mut defaults: Vec<&Group> = groups.iter().filter(|group| group.is_default).collect();
    let Some(last) = defaults.pop() else {
        return Vec::new();
    };
    let remarks = defaults.into_iter().map(|group| {
        let mut report = Report::new(group.file.clone());
        let (name, last) = (group.full_name(), last.full_name());
        let message = format!(
            "'{name}' is not the default: '{last}' is, the last one that is_default_qos marks"
        );
        report.warning(group.at, message);
        report.into_diagnostics()
    });
    remarks.flatten().collect()
}
