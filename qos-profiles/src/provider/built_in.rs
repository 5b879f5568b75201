//! Profiles of RTI Connext that its users' files inherit from by name, and that stand in no file.
//!
//! Each is given here by the policies of the standard that it sets for writers and readers.
//! What else it sets tunes that product (protocol, transports, batching, discovery) and has no
//! effect here; where that is a function of its own, as security, a reference to the profile is
//! a warning.
//!
//! Sources, all public:
//! - the API reference of Connext, module "Builtin Qos Profiles" (5.1 to 7.4), which has a
//!   sentence or a paragraph for each name below: what it enables, and what it inherits from;
//! - the list of names in `examples/connext_dds/builtin_qos_profiles/README.md` of
//!   rticommunity/rticonnextdds-examples;
//! - for the members of `BuiltinQosSnippetLib`, the same module from version 6.1 on.
//!
//! The text of a name's paragraph is noted beside its row in a few words.

use std::sync::Arc;

use crate::diagnostic::At;
use crate::xml::entity::EntityKind;
use crate::xml::library::{Entity, Group, GroupKind, Reference};
use crate::xml::tree::Element;

/// Policy, member, value; for writers and readers.
type Setting = (&'static str, &'static str, &'static str);

/// One built-in profile.
struct Row {
    name: &'static str,
    /// Another row of the same library, or of the snippets.
    base: Option<&'static str>,
    settings: &'static [Setting],
    left_out: Option<&'static str>,
}

/// The libraries; the second is where most of the profiles were until version 5.3, and its name
/// stays valid.
const LIBRARIES: [(&str, &[Row]); 3] = [
    ("BuiltinQosLib", PROFILES),
    ("BuiltinQosLibExp", PROFILES),
    ("BuiltinQosSnippetLib", SNIPPETS),
];

/// Whether the name is one of a built-in library.
pub(super) fn is_built_in(name: &str) -> bool {
    let library = name.split_once("::").map(|(library, _)| library);
    LIBRARIES.iter().any(|(known, _)| Some(*known) == library)
}

/// All built-in profiles, if one of these groups refers to one.
pub(super) fn used_by(groups: &[Group]) -> Vec<Group> {
    let is_used = groups.iter().any(|group| {
        let of_entities = group.entities.iter();
        let of_entities = of_entities.flat_map(|entity| entity.base.iter().chain(&entity.snippets));
        let mut references = group.base.iter().chain(&group.snippets).chain(of_entities);
        references.any(|reference| is_built_in(&reference.name))
    });
    match is_used {
        true => all(),
        false => Vec::new(),
    }
}

/// All built-in profiles.
pub(super) fn all() -> Vec<Group> {
    let rows = LIBRARIES
        .iter()
        .flat_map(|(library, rows)| rows.iter().map(|row| row.group(library)));
    rows.collect()
}

impl Row {
    fn group(&self, library: &str) -> Group {
        let entities = [EntityKind::Writer, EntityKind::Reader].map(|kind| Entity {
            kind,
            name: None,
            base: None,
            topic_filter: None,
            topic: None,
            snippets: Vec::new(),
            element: self.element(kind),
        });
        let entities = match self.settings {
            [] => Vec::new(),
            _ => entities.into(),
        };
        Group {
            kind: GroupKind::Profile,
            library: library.to_owned(),
            name: self.name.to_owned(),
            base: self.base.map(|name| Reference {
                name: name.to_owned(),
                at: NOWHERE,
                is_listed: false,
            }),
            snippets: Vec::new(),
            entities,
            file: Arc::from(format!("built-in profile {library}::{}", self.name)),
            at: NOWHERE,
            is_default: false,
            is_built_in: true,
            left_out: self.left_out,
        }
    }

    fn element(&self, kind: EntityKind) -> Element {
        let name = match kind {
            EntityKind::Writer => "datawriter_qos",
            _ => "datareader_qos",
        };
        let mut policies: Vec<Element> = Vec::new();
        for (policy, member, value) in self.settings {
            let member = element(member, value, Vec::new());
            match policies.last_mut() {
                Some(last) if last.name == *policy => last.children.push(member),
                _ => policies.push(element(policy, "", vec![member])),
            }
        }
        element(name, "", policies)
    }
}

fn element(name: &str, text: &str, children: Vec<Element>) -> Element {
    Element {
        name: name.to_owned(),
        attributes: Vec::new(),
        children,
        text: text.to_owned(),
        text_at: NOWHERE,
        at: NOWHERE,
        dialect: None,
        unset: Vec::new(),
    }
}

/// Line 0: not a line of a file.
const NOWHERE: At = At { line: 0, column: 0 };

const RELIABLE: Setting = ("reliability", "kind", "RELIABLE_RELIABILITY_QOS");
const BEST_EFFORT: Setting = ("reliability", "kind", "BEST_EFFORT_RELIABILITY_QOS");
const KEEP_ALL: Setting = ("history", "kind", "KEEP_ALL_HISTORY_QOS");
const KEEP_LAST: Setting = ("history", "kind", "KEEP_LAST_HISTORY_QOS");
const DEPTH_1: Setting = ("history", "depth", "1");
const TRANSIENT_LOCAL: Setting = ("durability", "kind", "TRANSIENT_LOCAL_DURABILITY_QOS");
const TRANSIENT: Setting = ("durability", "kind", "TRANSIENT_DURABILITY_QOS");
const PERSISTENT: Setting = ("durability", "kind", "PERSISTENT_DURABILITY_QOS");

const MONITORING: Option<&str> =
    Some("the monitoring library of RTI Connext that it enables does not run here");
const SECURITY: Option<&str> = Some(
    "the security plugins of RTI Connext that it enables do not run here: nothing is protected by it",
);
const TRANSPORT: Option<&str> =
    Some("the transport of RTI Connext that it sets up is not used here");
const DEADLINE: Option<&str> = Some(
    "the DEADLINE that RTI Connext sets in it is not taken over; set the period that you need",
);
const TOPIC_QUERY: Option<&str> = Some("topic queries of RTI Connext do not exist here");

const fn row(name: &'static str, base: &'static str, settings: &'static [Setting]) -> Row {
    Row {
        name,
        base: Some(base),
        settings,
        left_out: None,
    }
}

const fn root(name: &'static str, settings: &'static [Setting]) -> Row {
    Row {
        name,
        base: None,
        settings,
        left_out: None,
    }
}

const fn without(row: Row, left_out: Option<&'static str>) -> Row {
    Row { left_out, ..row }
}

const COMMON: &str = "Generic.Common";
const STRICT: &str = "Generic.StrictReliable";
const KEEP_LAST_RELIABLE: &str = "Generic.KeepLastReliable";
const STRICT_LARGE: &str = "Generic.StrictReliable.LargeData";
const KEEP_LAST_LARGE: &str = "Generic.KeepLastReliable.LargeData";

const PROFILES: &[Row] = &[
    // The defaults of a version: of the standard's policies, those of the standard.
    root("Baseline", &[]),
    root("Baseline.Root", &[]),
    root("Baseline.5.0.0", &[]),
    root("Baseline.5.1.0", &[]),
    root("Baseline.5.2.0", &[]),
    root("Baseline.5.3.0", &[]),
    root("Baseline.6.0.0", &[]),
    root("Baseline.6.1.0", &[]),
    root("Baseline.7.0.0", &[]),
    root("Baseline.7.1.0", &[]),
    // "A common Participant base profile."
    root(COMMON, &[]),
    // "Enables RTI Monitoring Library." and its successor.
    without(row("Generic.Monitoring.Common", COMMON, &[]), MONITORING),
    without(row("Generic.Monitoring2", COMMON, &[]), MONITORING),
    // "Sets the values necessary to communicate with RTI Connext Micro", or with others: RTPS.
    row("Generic.ConnextMicroCompatibility", COMMON, &[]),
    row("Generic.ConnextMicroCompatibility.2.4.3", COMMON, &[]),
    row("Generic.ConnextMicroCompatibility.2.4.9", COMMON, &[]),
    row("Generic.OtherDDSVendorCompatibility", COMMON, &[]),
    row("Generic.510TransportCompatibility", COMMON, &[]),
    // "Loads the DDS Secure builtin plugins."
    without(row("Generic.Security", COMMON, &[]), SECURITY),
    // "Enables strict reliability", "keep-last reliability", "best-effort reliability".
    row(STRICT, COMMON, &[RELIABLE, KEEP_ALL]),
    row(KEEP_LAST_RELIABLE, COMMON, &[RELIABLE, KEEP_LAST, DEPTH_1]),
    row("Generic.BestEffort", COMMON, &[BEST_EFFORT]),
    // "A profile that can be used to achieve high throughput", "low latency".
    row("Generic.StrictReliable.HighThroughput", STRICT, &[]),
    row("Generic.StrictReliable.LowLatency", STRICT, &[]),
    // "... to facilitate sending large data": buffers, asynchronous publication, flow control.
    row("Generic.Participant.LargeData", COMMON, &[]),
    without(
        row("Generic.Participant.LargeData.Monitoring", COMMON, &[]),
        MONITORING,
    ),
    row(STRICT_LARGE, STRICT, &[]),
    row(KEEP_LAST_LARGE, KEEP_LAST_RELIABLE, &[]),
    row(
        "Generic.StrictReliable.LargeData.FastFlow",
        STRICT_LARGE,
        &[],
    ),
    row(
        "Generic.StrictReliable.LargeData.MediumFlow",
        STRICT_LARGE,
        &[],
    ),
    row(
        "Generic.StrictReliable.LargeData.SlowFlow",
        STRICT_LARGE,
        &[],
    ),
    row(
        "Generic.KeepLastReliable.LargeData.FastFlow",
        KEEP_LAST_LARGE,
        &[],
    ),
    row(
        "Generic.KeepLastReliable.LargeData.MediumFlow",
        KEEP_LAST_LARGE,
        &[],
    ),
    row(
        "Generic.KeepLastReliable.LargeData.SlowFlow",
        KEEP_LAST_LARGE,
        &[],
    ),
    // "Persists the samples of a DataWriter as long as the entity exists", "... in memory by a
    // service", "... on disk by a service": keep-last reliable with a DURABILITY.
    row(
        "Generic.KeepLastReliable.TransientLocal",
        KEEP_LAST_RELIABLE,
        &[TRANSIENT_LOCAL],
    ),
    row(
        "Generic.KeepLastReliable.Transient",
        KEEP_LAST_RELIABLE,
        &[TRANSIENT],
    ),
    row(
        "Generic.KeepLastReliable.Persistent",
        KEEP_LAST_RELIABLE,
        &[PERSISTENT],
    ),
    // Batching that adapts itself; memory as it is needed.
    row("Generic.AutoTuning", COMMON, &[]),
    row("Generic.MinimalMemoryFootprint", COMMON, &[]),
    // "Applications that expect periodic data": best effort, with a deadline.
    without(
        row("Pattern.PeriodicData", "Generic.BestEffort", &[]),
        DEADLINE,
    ),
    // "Applications that stream data": best effort; or reliable, where the history is keep-last.
    row("Pattern.Streaming", "Generic.BestEffort", &[]),
    row("Pattern.ReliableStreaming", KEEP_LAST_RELIABLE, &[]),
    // "Events such as button pushes or alerts": strictly reliable. An alarm is an event.
    row("Pattern.Event", STRICT, &[]),
    row("Pattern.AlarmEvent", "Pattern.Event", &[]),
    // "State variables whose values remain valid as long as they don't explicitly change":
    // keep-last reliable and transient local. An alarm's state is one, and so is a last value.
    row(
        "Pattern.Status",
        "Generic.KeepLastReliable.TransientLocal",
        &[],
    ),
    row("Pattern.AlarmStatus", "Pattern.Status", &[]),
    row("Pattern.LastValueCache", "Pattern.Status", &[]),
    // Requests and replies: strictly reliable.
    row("Pattern.RPC", STRICT, &[]),
];

const SNIPPETS: &[Row] = &[
    // Timing and windows of the reliable protocol; memory; discovery.
    root("Optimization.ReliabilityProtocol.Common", &[]),
    root("Optimization.ReliabilityProtocol.KeepAll", &[]),
    root("Optimization.ReliabilityProtocol.KeepLast", &[]),
    root("Optimization.ReliabilityProtocol.HighRate", &[]),
    root("Optimization.ReliabilityProtocol.LowLatency", &[]),
    root("Optimization.ReliabilityProtocol.LargeData", &[]),
    root("Optimization.DataCache.LargeData.DynamicMemAlloc", &[]),
    root("Optimization.Discovery.Common", &[]),
    root("Optimization.Discovery.Participant.Compact", &[]),
    root("Optimization.Discovery.Endpoint.Fast", &[]),
    root("Optimization.Transport.LargeBuffers", &[]),
    // One policy each, by its name.
    root("QosPolicy.Reliability.Reliable", &[RELIABLE]),
    root("QosPolicy.Reliability.BestEffort", &[BEST_EFFORT]),
    root("QosPolicy.History.KeepLast_1", &[KEEP_LAST, DEPTH_1]),
    root("QosPolicy.History.KeepAll", &[KEEP_ALL]),
    root("QosPolicy.Durability.TransientLocal", &[TRANSIENT_LOCAL]),
    root("QosPolicy.Durability.Transient", &[TRANSIENT]),
    root("QosPolicy.Durability.Persistent", &[PERSISTENT]),
    // Policies of that product: how and when samples are sent.
    root("QosPolicy.PublishMode.Asynchronous", &[]),
    root("QosPolicy.Batching.Enable", &[]),
    root("Feature.FlowController.838Mbps", &[]),
    root("Feature.FlowController.209Mbps", &[]),
    root("Feature.FlowController.52Mbps", &[]),
    root("Feature.AutoTuning.Enable", &[]),
    without(root("Feature.Monitoring.Enable", &[]), MONITORING),
    without(root("Feature.Monitoring2.Enable", &[]), MONITORING),
    without(root("Feature.Security.Enable", &[]), SECURITY),
    without(root("Feature.LightweightSecurity.Enable", &[]), SECURITY),
    without(root("Feature.TopicQuery.Enable", &[]), TOPIC_QUERY),
    without(root("Transport.TCP.LAN.Client", &[]), TRANSPORT),
    without(root("Transport.TCP.WAN.Symmetric.Client", &[]), TRANSPORT),
    without(root("Transport.TCP.WAN.Asymmetric.Server", &[]), TRANSPORT),
    without(root("Transport.TCP.WAN.Asymmetric.Client", &[]), TRANSPORT),
    root("Transport.UDP.AvoidIPFragmentation", &[]),
    without(root("Transport.UDP.WAN", &[]), TRANSPORT),
    root("Compatibility.ConnextMicro.Version243", &[]),
    root("Compatibility.ConnextMicro.Version249", &[]),
    root("Compatibility.OtherDDSVendors.Enable", &[]),
    root("Compatibility.510Transport.Enable", &[]),
];
