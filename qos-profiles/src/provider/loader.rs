//! Loading files and texts.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{At, Diagnostic, Report, Severity, quote};
use crate::provider::links::Links;
use crate::provider::{LoadError, Model, QosProvider, built_in};
use crate::xml::library::{self, Blocks, Group, GroupKind};
use crate::xml::tree;
use crate::xml::types::{TypeLibrary, TypesSource};
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
        let mut types = Vec::new();
        let mut broken = false;
        let mut includes = Includes::default();
        let files = self.sources.iter().filter_map(Source::path);
        includes
            .known
            .extend(files.filter_map(|path| path.canonicalize().ok()));
        for source in &self.sources {
            let read = self.read(source)?;
            includes.find(&read, source.directory());
            broken |= read.is_broken;
            model.add(read, &mut types);
        }
        while let Some(include) = includes.waiting.pop_front() {
            let source = Source::File(include.path.clone());
            match self.read(&source) {
                Ok(read) => {
                    includes.find(&read, source.directory());
                    broken |= read.is_broken;
                    model.add(read, &mut types);
                }
                Err(error) => {
                    let mut report = Report::new(include.file);
                    report.error(include.at, format!("cannot be included: {error}"));
                    model.remarks.extend(report.into_diagnostics());
                }
            }
        }
        let built_in = built_in::used_by(&model.groups);
        model.groups.extend(built_in);
        let (links, remarks) = Links::of(&model.groups);
        model.links = links;
        let (types, of_types) = TypeLibrary::of(&types);
        model.system.types = types;
        model.remarks.extend(includes.remarks);
        // If a file is truncated, unknown names may be its fault.
        if !broken {
            model.remarks.extend(remarks);
            model.remarks.extend(of_types);
            model.remarks.extend(model.check_system());
        }
        model.remarks.extend(second_defaults(&model.groups));
        model.remarks.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(QosProvider {
            model: model.into(),
        })
    }

    fn read(&self, source: &Source) -> Result<ReadSource, LoadError> {
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
        let file: Arc<str> = name.into();
        let mut report = Report::new(file.clone());
        let document = tree::read(bytes, &mut report);
        let mut blocks = Blocks::default();
        if let Some(mut root) = document.root {
            self.variables.expand(&mut root, &mut report);
            blocks = library::read(root, &mut report);
        }
        Ok(ReadSource {
            file,
            blocks,
            remarks: report.into_diagnostics(),
            is_broken: document.broken,
        })
    }
}

/// What a file or text has, before names are linked.
struct ReadSource {
    file: Arc<str>,
    blocks: Blocks,
    remarks: Vec<Diagnostic>,
    /// Whether it is truncated.
    is_broken: bool,
}

impl Source {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Text { .. } => None,
        }
    }

    /// Where the files are that it includes.
    fn directory(&self) -> &Path {
        let parent = self.path().and_then(Path::parent);
        parent.unwrap_or_else(|| Path::new(""))
    }
}

/// The files that `include` elements name, each once.
#[derive(Default)]
struct Includes {
    waiting: VecDeque<Include>,
    known: HashSet<PathBuf>,
    remarks: Vec<Diagnostic>,
}

struct Include {
    path: PathBuf,
    /// Where the element stands.
    file: Arc<str>,
    at: At,
}

impl Includes {
    fn find(&mut self, read: &ReadSource, directory: &Path) {
        let children = read.blocks.types.iter().flat_map(|types| &types.children);
        for include in children.filter(|child| child.name == "include") {
            let Some(name) = include.attribute("file") else {
                let message = "'include' has no attribute 'file'";
                self.say(read, include.at, message);
                continue;
            };
            let path = directory.join(name);
            if !self
                .known
                .insert(path.canonicalize().unwrap_or_else(|_| path.clone()))
            {
                continue;
            }
            if self.known.len() > INCLUDES_MAX {
                let message = format!(
                    "more than {INCLUDES_MAX} files are included: {}",
                    quote(name)
                );
                self.say(read, include.at, &message);
                return;
            }
            self.waiting.push_back(Include {
                path,
                file: read.file.clone(),
                at: include.at,
            });
        }
    }

    fn say(&mut self, read: &ReadSource, at: At, message: &str) {
        let mut report = Report::new(read.file.clone());
        report.error(at, message);
        self.remarks.extend(report.into_diagnostics());
    }
}

impl Model {
    /// Takes in what a file has.
    fn add(&mut self, read: ReadSource, types: &mut Vec<TypesSource>) {
        let ReadSource { file, blocks, .. } = read;
        let source = self.system.inline_groups.len();
        self.groups.extend(blocks.groups);
        self.system.inline_groups.push(self.groups.len());
        self.groups.push(Group {
            kind: GroupKind::Inline,
            library: String::new(),
            name: String::new(),
            base: None,
            snippets: Vec::new(),
            entities: blocks.inline,
            file: file.clone(),
            at: tree::START,
            is_default: false,
            is_built_in: false,
            left_out: None,
        });
        types.extend(blocks.types.into_iter().map(|element| TypesSource {
            file: file.clone(),
            element,
        }));
        let domains = blocks.domains.into_iter().map(|mut domain| {
            domain.topics.source = source;
            domain
        });
        self.system.domains.extend(domains);
        let participants = blocks.participants.into_iter().map(|mut participant| {
            participant.topics.source = source;
            participant
        });
        self.system.participants.extend(participants);
        self.remarks.extend(read.remarks);
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

const INCLUDES_MAX: usize = 256;
