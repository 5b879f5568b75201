//! `spindle qos`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use spindle_dds_qos::{
    DeclaredParticipant, Location, QosLoader, QosProfile, QosProvider, QosValue, Severity,
};

/// The commands for files of QoS profiles.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Read files together, as a participant does, and list errors and unsupported settings as
    /// `file:line:column: message`.
    Check {
        /// The files; without any, the default files of a participant: those in
        /// SPINDLE_QOS_PROFILES or NDDS_QOS_PROFILES, and USER_QOS_PROFILES.xml here.
        files: Vec<PathBuf>,
        /// End with an error, too, if a policy is not supported yet, so that creating an entity
        /// would be refused.
        #[arg(long)]
        strict: bool,
    },
    /// Show all values of a profile, each with the line that has set it.
    Explain {
        /// The file.
        file: PathBuf,
        /// The profile, as `Library::Profile`, which may be a built-in one; or QoS of entities
        /// that has a name; or a participant that the file describes, as
        /// `Library::Participant`.
        profile: String,
        /// The topic of the writers and readers, for QoS with a `topic_filter`.
        #[arg(long, default_value = "")]
        topic: String,
    },
}

/// Prints findings to the standard error, as compilers do, and values to the standard output.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::Check { files, strict } => check(files, *strict),
        Command::Explain {
            file,
            profile,
            topic,
        } => explain(file, profile, topic),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn check(files: &[PathBuf], strict: bool) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let loader = match files {
        [] => QosLoader::default_files(),
        files => files.iter().fold(QosLoader::new(), QosLoader::file),
    };
    if loader.is_empty() {
        return Err("no file is named, and there are no default files".into());
    }
    let remarks = spindle_dds::check_qos_profiles(&loader)?;
    for remark in &remarks {
        eprintln!("{remark}");
    }
    let errors = remarks.iter().filter(|it| it.severity == Severity::Error);
    let unsupported = remarks.iter().filter(|it| it.unsupported.is_some());
    let (errors, unsupported) = (errors.count(), unsupported.count());
    if strict && unsupported > 0 {
        eprintln!("--strict: {unsupported} not supported yet");
    }
    Ok(match errors == 0 && (unsupported == 0 || !strict) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The kinds of entities: element, and its values by the name of a profile or entity.
type Kind = (
    &'static str,
    fn(&QosProvider, &str, &str) -> Option<Vec<QosValue>>,
);

const KINDS: [Kind; 6] = [
    ("domain_participant_qos", |provider, name, _| {
        Some(provider.participant_qos(name).ok()?.values())
    }),
    ("topic_qos", |provider, name, topic| {
        Some(provider.topic_qos(name, topic).ok()?.values())
    }),
    ("publisher_qos", |provider, name, _| {
        Some(provider.publisher_qos(name).ok()?.values())
    }),
    ("subscriber_qos", |provider, name, _| {
        Some(provider.subscriber_qos(name).ok()?.values())
    }),
    ("datawriter_qos", |provider, name, topic| {
        Some(provider.datawriter_qos(name, topic).ok()?.values())
    }),
    ("datareader_qos", |provider, name, topic| {
        Some(provider.datareader_qos(name, topic).ok()?.values())
    }),
];

fn explain(
    file: &PathBuf,
    name: &str,
    topic: &str,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let provider = QosLoader::new().file(file).load()?;
    let mut text = String::new();
    for (element, values) in KINDS {
        let Some(values) = values(&provider, name, topic) else {
            continue;
        };
        writeln!(text, "{element}")?;
        for value in values {
            let place = match value.location {
                Some(location) => location.to_string(),
                None => "default".to_owned(),
            };
            let member = format!("{}.{}", value.element, value.member);
            let value = match value.value.as_str() {
                "" => "(empty)",
                value => value,
            };
            writeln!(text, "  {member:<56} {value:<43} {place}")?;
        }
    }
    let profile = provider.profile(name);
    if text.is_empty() {
        if let Ok(participant) = provider.participant(name) {
            print!("{}", described(&participant)?);
            return Ok(ExitCode::SUCCESS);
        }
        profile?;
        return Ok(ExitCode::FAILURE);
    }
    print!("{text}");
    let filters = profile.as_ref().map(QosProfile::topic_filters);
    let filters = filters.unwrap_or_default();
    if topic.is_empty() && !filters.is_empty() {
        let filters = filters.join(", ");
        println!("of topics that no filter names; for others say --topic: {filters}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A participant of a file with its entities, each with its line.
fn described(participant: &DeclaredParticipant) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let mut line = |depth: usize, what: String, of: &str, location: &Location| {
        let what = format!("{}{what}", "  ".repeat(depth));
        writeln!(text, "{what:<44} {of:<57} {location}")
    };
    let domain = format!("domain {}", participant.domain_id);
    let name = format!("participant {}", participant.name);
    line(0, name, &domain, &participant.location)?;
    for topic in &participant.topics {
        let of = match topic.ty {
            Some(_) => format!("{}: {}", topic.topic_name, topic.type_name),
            None => format!("{}: {}, of the program", topic.topic_name, topic.type_name),
        };
        line(1, format!("topic {}", topic.name), &of, &topic.location)?;
    }
    for publisher in &participant.publishers {
        let name = format!("publisher {}", publisher.name);
        line(1, name, "", &publisher.location)?;
        for writer in &publisher.writers {
            let name = format!("writer {}", writer.name);
            line(2, name, &writer.topic, &writer.location)?;
        }
    }
    for subscriber in &participant.subscribers {
        let name = format!("subscriber {}", subscriber.name);
        line(1, name, "", &subscriber.location)?;
        for reader in &subscriber.readers {
            let name = format!("reader {}", reader.name);
            line(2, name, &reader.topic, &reader.location)?;
        }
    }
    Ok(text)
}
