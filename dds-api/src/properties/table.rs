//! All properties: one table, from which docs/configuration.md is written, and by which unknown
//! properties are refused.

/// The entity that a property stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Participant,
    /// A participant, for all its writers; or one writer, which takes precedence.
    Writer,
    /// A participant, for all its readers; or one reader, which takes precedence.
    Reader,
}

/// One property.
#[derive(Debug)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "a test writes the documentation from the texts")
)]
pub(crate) struct PropertyRow {
    /// Its name; `<...>` stands for any text.
    pub(crate) name: &'static str,
    pub(crate) on: On,
    pub(crate) values: &'static str,
    pub(crate) default: &'static str,
    pub(crate) meaning: &'static str,
}

use On::{Participant, Reader, Writer};

/// Sorted by theme: group, rings, waiting, memory, network, RDMA, readers, logs, measurements.
pub(crate) const PROPERTIES: &[PropertyRow] = &[
    PropertyRow {
        name: "spindle.subgroups",
        on: Participant,
        values: "2 to 4096",
        default: "1024",
        meaning: "Number of subgroups of the domain. Must be equal on all participants. Topics of \
                  one subgroup share its rings and its order; a subgroup without topics costs \
                  nothing.",
    },
    PropertyRow {
        name: "spindle.topic.<name>.subgroup",
        on: Participant,
        values: "1 to `spindle.subgroups` - 1",
        default: "by hash of the topic name",
        meaning: "Puts a topic into this subgroup. Must be equal on all participants. `enable` logs \
                  a warning if the participant has no such topic.",
    },
    PropertyRow {
        name: "spindle.join.timeout_ms",
        on: Participant,
        values: "milliseconds",
        default: "30000",
        meaning: "How long `enable` waits until a member lets the participant join. It begins anew \
                  whenever fewer other newcomers are to be let in first.",
    },
    PropertyRow {
        name: "spindle.failure.limit_ms",
        on: Participant,
        values: "milliseconds, at least 30",
        default: "3000",
        meaning: "Heartbeat timeout: a member that is silent for longer is suspected; later where the \
                  group is late as a whole. Must be equal on all participants.",
    },
    PropertyRow {
        name: "spindle.failure.report",
        on: Participant,
        values: "`stderr`, `off`",
        default: "`stderr`",
        meaning: "Where a line with the reason goes when the participant has lost its group for good, \
                  besides `on_failed`, the errors of all operations, and an event of `tracing`.",
    },
    PropertyRow {
        name: "spindle.prefer_availability",
        on: Participant,
        values: "`true`, `false`",
        default: "`false`",
        meaning: "`true`: members that are cut off from the majority go on, and the first contact \
                  founds the domain without a majority after `spindle.failure.limit_ms`. The domain \
                  may then fall apart into groups that never become one again. Must be equal on all \
                  participants.",
    },
    PropertyRow {
        name: "spindle.rejoin",
        on: Participant,
        values: "`auto`, `off`",
        default: "`auto`",
        meaning: "What happens when the participant has lost its group: it was expelled, as it did \
                  not answer in time, or is cut off from the majority. `auto`: it enters the group \
                  again by itself as a new member, with all its entities. Its RELIABLE writers send \
                  what the group has not delivered and their HISTORY keeps; what its readers missed \
                  is SAMPLE_LOST. What is written meanwhile waits in the writers' histories. \
                  `membership_status` and `on_membership_changed` tell of it. `off`: that is the \
                  end; `on_failed` is called, and all operations return the reason.",
    },
    PropertyRow {
        name: "spindle.ring.messages",
        on: Writer,
        values: "2 to 32768, rounded up to a power of two",
        default: "4096",
        meaning: "Messages in flight of one sender in a subgroup.",
    },
    PropertyRow {
        name: "spindle.ring.bytes",
        on: Writer,
        values: "128 to 2^34",
        default: "5 MiB, in a ring of 8 MiB",
        meaning: "Bytes in flight of one sender in a subgroup. The ring has memory for the next \
                  power of two. A sample takes at most half of that memory; samples of more than an \
                  eighth of the bytes in flight may together take all of it. If the memory exceeds \
                  the bytes in flight by about 3 MiB, the writer does not write to what the caches \
                  of its readers still hold.",
    },
    PropertyRow {
        name: "spindle.writer.history_bytes",
        on: Writer,
        values: "0 to 2^34",
        default: "4 MiB",
        meaning: "Most bytes of samples that wait in a RELIABLE writer to be sent, as the group is \
                  changing, or a reader is slow. One sample may wait in any case. Where more would \
                  wait, KEEP_LAST replaces, and what cannot be replaced waits for at most \
                  max_blocking_time, then TIMEOUT: see [slow readers](guide/slow-readers.md).",
    },
    PropertyRow {
        name: "spindle.wait",
        on: Participant,
        values: "`balanced`, `spin`, `block`",
        default: "`balanced`",
        meaning: "How long a thread looks again before it sleeps: 32 times, yielding in between; for \
                  some milliseconds; not at all. Where there are more members than processors for \
                  the process, `balanced` and `block` are the same: it looks twice. Applies to the \
                  polling thread, the threads that call listeners and wake streams, and threads that \
                  wait in a WaitSet or for ring space. The polling thread sleeps while an application \
                  thread polls with `take` or `read`.",
    },
    PropertyRow {
        name: "spindle.threads.<thread>.policy",
        on: Participant,
        values: "`other`, `fifo`, `rr`",
        default: "that of the thread that enables the participant",
        meaning: "The scheduling policy of a thread: SCHED_OTHER, SCHED_FIFO or SCHED_RR. The threads \
                  are `poll` (heartbeats, and samples that no thread waits for), `io` (connections \
                  to other participants, and the streams or queue pairs to other hosts), `dispatch` \
                  (calls listeners), `wake` (wakes streams), `control` (views) and `history` (keeps and \
                  transfers what DURABILITY asks for; it begins with the first endpoint whose \
                  DURABILITY is not VOLATILE). `fifo` and `rr` need `.priority`, and the capability \
                  CAP_SYS_NICE or a limit RLIMIT_RTPRIO (`ulimit -r`). What is refused fails `enable`; \
                  for `history`, the creation of that endpoint.",
    },
    PropertyRow {
        name: "spindle.threads.<thread>.priority",
        on: Participant,
        values: "1 to 99; with `other` a nice value, -20 to 19",
        default: "that of the thread that enables the participant",
        meaning: "The priority of that thread. Nice values below that of the process need \
                  CAP_SYS_NICE or RLIMIT_NICE (`ulimit -e`).",
    },
    PropertyRow {
        name: "spindle.threads.<thread>.cpus",
        on: Participant,
        values: "processors, such as `0,2-3`",
        default: "those of the thread that enables the participant",
        meaning: "The processors that the thread may use. A processor that does not exist, or that \
                  the process may not use, fails `enable`.",
    },
    PropertyRow {
        name: "spindle.doorbell",
        on: Participant,
        values: "`auto`, `futex`, `event`",
        default: "`auto`",
        meaning: "What threads of the participant sleep on.",
    },
    PropertyRow {
        name: "spindle.prefault",
        on: Participant,
        values: "`true`, `false`",
        default: "`false`",
        meaning: "`true`: memory shared with participants of the same host, all rings included, and \
                  that in which each participant keeps account of their messages (up to 116 bytes \
                  for each message that a ring holds) is allocated when it is mapped, so that no \
                  sample waits for a page fault; rings with Linux 6.1 or newer in huge pages, if \
                  the kernel makes them within 50 ms. It takes that memory, and time at each join \
                  and leave: 1 ms for each 4 MiB, and up to 50 ms for \
                  each participant that writes, or more if the kernel has no free huge pages. What \
                  is not there within `spindle.failure.limit_ms` is allocated while samples flow. \
                  Needs Linux 5.14. `false`: each page is allocated at its first use.",
    },
    PropertyRow {
        name: "spindle.directory",
        on: Participant,
        values: "path",
        default: "`$SPINDLE_DDS_DIR`; else `/dev/shm/spindle-dds-UID` for root and the system's \
                  users (UID up to 999), `/tmp/spindle-dds-UID` for all others",
        meaning: "Where the processes of a host meet. All participants of a user need the same \
                  one, services and containers included: see [the domain's \
                  directory](guide/directory.md).",
    },
    PropertyRow {
        name: "spindle.listen",
        on: Participant,
        values: "`address[:port]`",
        default: "none: no network is used",
        meaning: "The domain spans several hosts, and other hosts reach this participant at this \
                  address. All participants of such a domain need it. Port 0, the default, is any \
                  free port. If the port is taken, any free one is used, and the port is tried again \
                  each second and then served as well.",
    },
    PropertyRow {
        name: "spindle.contacts",
        on: Participant,
        values: "`host:port`, separated by commas",
        default: "none: a participant that is alone on its host founds the domain",
        meaning: "The addresses that a joining participant asks. Must be equal, in the same order, on \
                  all participants. The first contact founds the domain once a strict majority of \
                  the contacts runs. `enable` resolves the names. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.secret_file",
        on: Participant,
        values: "path",
        default: "none: every participant is admitted",
        meaning: "A file with the domain's secret, readable by its owner alone. A participant that \
                  cannot prove to have the secret is refused, and what goes between hosts is \
                  encrypted: see [security](guide/security.md). Spaces and line ends at the end of \
                  the file do not count. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.accepted_secret_file",
        on: Participant,
        values: "path",
        default: "none: callers need the secret of `spindle.secret_file`",
        meaning: "A file with another secret, which callers may have instead while the domain \
                  changes from one secret to another: see [security](guide/security.md). Needs \
                  `spindle.secret_file`.",
    },
    PropertyRow {
        name: "spindle.encryption",
        on: Participant,
        values: "`auto`, `off`, `required`",
        default: "`auto`",
        meaning: "Whether what goes to other hosts is encrypted and authenticated. `auto`: if there \
                  is a secret, and the other side has not turned it off. `off`: participants prove \
                  that they have the secret, and no more. `required`: `enable` fails without a \
                  secret, peers of other hosts that have turned it off are refused, and RDMA is not \
                  used, as what goes by RDMA cannot be encrypted. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.rdma",
        on: Participant,
        values: "`auto`, `off`, `required`",
        default: "`auto`",
        meaning: "Whether samples go to other hosts by RDMA. `auto`: between participants that both \
                  have a working device, else by TCP. `required`: `enable` fails without a device, \
                  and peers of other hosts that cannot be reached by RDMA are refused. Needs the \
                  cargo feature `verbs`, and `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.rdma.device",
        on: Participant,
        values: "name, such as `mlx5_0`",
        default: "the first with an active port",
        meaning: "The RDMA device. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.rdma.port",
        on: Participant,
        values: "1 to 255",
        default: "the first active port",
        meaning: "The port of the RDMA device. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.rdma.gid_index",
        on: Participant,
        values: "0 to 255",
        default: "RoCE v2 with the address of `spindle.listen`, else with any IPv4 address, else \
                  any; 0 on InfiniBand",
        meaning: "The index of the GID. Needs `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.rdma.mtu",
        on: Participant,
        values: "`256`, `512`, `1024`, `2048`, `4096`",
        default: "the active MTU of the port",
        meaning: "The path MTU; between two participants the smaller one holds. Needs \
                  `spindle.listen`.",
    },
    PropertyRow {
        name: "spindle.reader.storage",
        on: Reader,
        values: "`copy`, `ring`",
        default: "`copy`",
        meaning: "`copy`: samples that are taken are copies. `ring`: they stay where the writer built \
                  them until they are given back, and hold back the writer meanwhile.",
    },
    PropertyRow {
        name: "spindle.reader.untrusted_peers",
        on: Reader,
        values: "`true`, `false`",
        default: "`false`",
        meaning: "`true`: samples are copied before they are decoded, for peers that may alter what \
                  they have sent.",
    },
    PropertyRow {
        name: "spindle.history.aside_bytes",
        on: Reader,
        values: "65536 to 2^34",
        default: "16 MiB",
        meaning: "Most bytes of samples that are copied aside while a reader with DURABILITY \
                  TRANSIENT_LOCAL or TRANSIENT awaits the history of its writers. Samples beyond \
                  them stay in the rings of their writers, which may hold the writers back: see \
                  [late joiners and storage](guide/late-joiners-and-storage.md).",
    },
    PropertyRow {
        name: "spindle.log.directory",
        on: Participant,
        values: "path",
        default: "none: the participant logs nothing",
        meaning: "The participant logs the topics of which it has a writer or reader with DURABILITY \
                  PERSISTENT, in `domain-<id>/<topic>` below this directory, which has to be on a \
                  disk. It is made if it is not there. Two participants cannot have the same one: see \
                  [logged storage](guide/logged-storage.md).",
    },
    PropertyRow {
        name: "spindle.log.sync",
        on: Participant,
        values: "`each`, `batch`, `interval:<ms>` with 1 to 60000 milliseconds",
        default: "`batch`",
        meaning: "When samples are brought to the disk (fdatasync). `each`: one by one. `batch`: those \
                  together that have come while the disk was at work. `interval`: that long after the \
                  first one that is not on the disk yet, for disks that wear out; a sample is \
                  acknowledged later by as much. Needs `spindle.log.directory`.",
    },
    PropertyRow {
        name: "spindle.log.ack",
        on: Participant,
        values: "`local`, `quorum`, `all`",
        default: "`quorum`",
        meaning: "The logs that have a sample of a PERSISTENT writer of this participant on disk when \
                  `wait_for_acknowledgments` returns. `local`: that of this participant; any one if \
                  it does not log. `quorum`: a strict majority of the logs of the topic, so that no \
                  restart of all loses the sample. `all`: all of them.",
    },
    PropertyRow {
        name: "spindle.log.deliver",
        on: Participant,
        values: "`before`, `after_local`, `after_all`",
        default: "`before`",
        meaning: "When the PERSISTENT readers of this participant show a sample of a PERSISTENT writer. \
                  `before`: when it is delivered, also if no log has it yet. `after_local`: once the \
                  log of this participant has it on disk; any one if it does not log. `after_all`: once \
                  all logs of the topic have. Samples that wait are copied aside, up to \
                  `spindle.history.aside_bytes`, then they stay in the rings of their writers.",
    },
    PropertyRow {
        name: "spindle.engine.<switch>",
        on: Participant,
        values: "`true`, `false`",
        default: "`true`",
        meaning: "For measurements alone: `false` turns off one optimisation of the engine. Without \
                  `null_sends`, a silent writer stops the other writers of its subgroup.",
    },
];

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    const BEGIN: &str =
        "<!-- properties: written by a test from dds-api/src/properties/table.rs -->\n";
    const END: &str = "<!-- properties: end -->\n";

    fn markdown() -> String {
        let mut text = String::from(
            "\n| property | on | values | default | meaning |\n|---|---|---|---|---|\n",
        );
        for row in PROPERTIES {
            let on = match row.on {
                Participant => "participant",
                Writer => "participant, writer",
                Reader => "participant, reader",
            };
            let mut meaning = row.meaning.to_owned();
            if row.name.contains("<switch>") {
                let names: Vec<_> = super::super::engine_switches()
                    .map(|name| format!("`{name}`"))
                    .collect();
                let _ = write!(meaning, " The switches are {}.", names.join(", "));
            }
            let (name, values, default) = (row.name, row.values, row.default);
            let _ = writeln!(
                text,
                "| `{name}` | {on} | {values} | {default} | {meaning} |"
            );
        }
        text.push('\n');
        text
    }

    /// `SPINDLE_WRITE_DOCS=1 cargo test -p spindle-dds --lib properties` writes the table.
    #[test]
    fn the_documentation_has_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (table, after) = rest.split_once(END).unwrap();
        let expected = markdown();
        if std::env::var_os("SPINDLE_WRITE_DOCS").is_some() {
            std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
            return;
        }
        assert_eq!(table, expected, "write it: see the comment of this test");
    }
}
