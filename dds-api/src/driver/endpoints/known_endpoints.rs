//! The announced endpoints of a group, shared from view to view where they do not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::MemberId;

use super::announced_matches::EndpointName;
use crate::discovery::Entry;
use crate::handle::Guid;

/// The endpoints of all members. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownEndpoints(Arc<BTreeMap<MemberId, Arc<MemberEndpoints>>>);

impl KnownEndpoints {
    pub(super) fn put(&mut self, member: MemberId, endpoints: Arc<MemberEndpoints>) {
        Arc::make_mut(&mut self.0).insert(member, endpoints);
    }

    pub(super) fn remove(&mut self, member: MemberId) -> Option<Arc<MemberEndpoints>> {
        Arc::make_mut(&mut self.0).remove(&member)
    }

    pub(super) fn member(&self, member: MemberId) -> Option<&MemberEndpoints> {
        self.0.get(&member).map(|it| &**it)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (MemberId, &MemberEndpoints)> {
        self.0.iter().map(|(id, endpoints)| (*id, &**endpoints))
    }

    pub(super) fn get(&self, (member, number): EndpointName) -> Option<&Arc<Entry>> {
        self.member(member)?.get(number)
    }

    /// The endpoint with this identity.
    pub(super) fn find(&self, guid: Guid) -> Option<&Arc<Entry>> {
        self.0.values().find_map(|member| {
            let number = member.by_guid.get(&guid)?;
            member.get(*number)
        })
    }

    /// The subgroup in which a topic is announced, and a process that announces it.
    pub(super) fn subgroup_of(&self, topic: &str) -> Option<(u32, u32)> {
        self.0.values().find_map(|member| {
            let subgroup = member.subgroups.get(topic)?;
            Some((*subgroup, member.pid))
        })
    }
}

/// The endpoints of a member.
#[derive(Debug)]
pub(crate) struct MemberEndpoints {
    /// Its process id; 0 if it does not say.
    pid: u32,
    /// The participant's name.
    name: String,
    by_number: BTreeMap<u64, Arc<Entry>>,
    by_guid: BTreeMap<Guid, u64>,
    /// By topic.
    subgroups: BTreeMap<String, u32>,
}

impl MemberEndpoints {
    pub(super) fn new(pid: u32, name: String, by_number: BTreeMap<u64, Arc<Entry>>) -> Self {
        let guid = |(number, entry): (&u64, &Arc<Entry>)| (entry.endpoint().guid, *number);
        let subgroup = |entry: &Arc<Entry>| {
            let endpoint = entry.endpoint();
            (endpoint.topic.clone(), endpoint.subgroup)
        };
        Self {
            pid,
            name,
            by_guid: by_number.iter().map(guid).collect(),
            subgroups: by_number.values().map(subgroup).collect(),
            by_number,
        }
    }

    /// The participant's name, or else its process.
    pub(super) fn name(&self) -> String {
        match &*self.name {
            "" => format!("process {}", self.pid),
            name => name.to_owned(),
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Entry>> {
        self.by_number.get(&number)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&u64, &Arc<Entry>)> {
        self.by_number.iter()
    }
}
