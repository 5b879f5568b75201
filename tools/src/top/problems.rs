//! What is wrong in a scene, as text: participants that are blocked, late, or do not answer, and
//! endpoints that do not match.

use super::blocked::{Blocked, What};
use super::late::Late;
use super::mismatches::Mismatch;
use super::scene::Scene;

/// Problems of one kind.
#[derive(Debug)]
pub(super) struct Problems {
    pub(super) title: &'static str,
    pub(super) texts: Vec<String>,
    /// How many there are: some stand for many.
    pub(super) count: u64,
}

/// All kinds, in their order.
pub(super) fn problems(scene: &Scene) -> [Problems; 4] {
    let unlisted = scene.unlisted_mismatches;
    let mut mismatches: Vec<String> = scene.mismatches.iter().map(mismatch).collect();
    if unlisted > 0 {
        mismatches.push(format!(
            "and {unlisted} pairs more, that the participants do not list"
        ));
    }
    let listed = scene.mismatches.len() as u64;
    let unanswered = scene.participants.iter().filter_map(|one| {
        let problem = one.problem.as_ref()?;
        Some(format!("{}: {problem}", one.name))
    });
    [
        Problems::new("Blocked", scene.blocked.iter().map(blocked).collect()),
        Problems::new("Late", scene.late.iter().map(late).collect()),
        Problems::new("No answer", unanswered.collect()),
        Problems {
            count: listed.saturating_add(unlisted),
            ..Problems::new("Do not match", mismatches)
        },
    ]
}

impl Problems {
    fn new(title: &'static str, texts: Vec<String>) -> Self {
        let count = texts.len() as u64;
        Self {
            title,
            texts,
            count,
        }
    }
}

/// Names of a list; of a long one the first.
fn list(names: &[String]) -> String {
    const SHOWN_MAX: usize = 4;
    match names.len() {
        0..=SHOWN_MAX => names.join(", "),
        all => {
            let shown = &names[..SHOWN_MAX - 1];
            format!("{} and {} more", shown.join(", "), all - shown.len())
        }
    }
}

fn mismatch(one: &Mismatch) -> String {
    let Mismatch {
        topic,
        writer,
        reader,
        pairs,
        ..
    } = one;
    let policies = one.policies.iter().map(ToString::to_string);
    let types = one.types.iter().map(|types| format!("types: {types}"));
    let why = policies.chain(types).collect::<Vec<_>>().join("; ");
    let pairs = match pairs {
        1 => String::new(),
        pairs => format!(", {pairs} pairs"),
    };
    format!("{topic}, written by {writer}, read by {reader}{pairs}: {why}")
}

fn blocked(one: &Blocked) -> String {
    let (participant, by, why) = (&one.participant, list(&one.by), &one.why);
    let topics = match one.topics.is_empty() {
        true => format!("subgroup {}", one.subgroup),
        false => list(&one.topics),
    };
    let what = match one.what {
        What::Room => "waits for room".to_owned(),
        What::History { samples } => format!("has {samples} samples that wait to be sent"),
        What::Delivery => "waits to deliver".to_owned(),
    };
    format!("{participant} {what} ({topics}): {by} {why}")
}

fn late(one: &Late) -> String {
    let (member, why, seen_by) = (&one.member, &one.why, list(&one.seen_by));
    match one.topics.is_empty() {
        true => format!("{member}: {why}; seen by {seen_by}"),
        false => format!("{member}: {why} ({}); seen by {seen_by}", list(&one.topics)),
    }
}
