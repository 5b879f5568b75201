//! What a member with logs announces, and what waits until its topics take samples.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{Endpoint, Notes, Request, Update};
use spindle_dds_core::{Committed, DeliveryClass, SubgroupId};

use super::Member;
use crate::life::facts::Fact;

impl Member {
    /// The endpoint of a log changes, or goes.
    pub(crate) fn put_log(&mut self, number: u64, endpoint: Option<Endpoint>) {
        self.updates += 1;
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        match endpoint {
            Some(endpoint) => {
                self.endpoints.insert(number, endpoint.clone());
                put.push((number, endpoint));
            }
            None => {
                self.endpoints.remove(&number);
                remove.push(number);
            }
        }
        self.engine.request(Request::Update(Update {
            member: self.id,
            number: self.updates,
            put,
            remove,
            notes: Notes::default(),
        }));
    }

    /// In a life with logs: the topics that take samples now.
    pub(crate) fn set_open_topics(&mut self, open: BTreeSet<SubgroupId>) {
        self.open_topics = Some(open);
    }

    /// Whether a writer has to wait for the logs of its topic.
    pub(super) fn awaits_logs(&self, subgroup: SubgroupId, class: DeliveryClass) -> bool {
        let open = self.open_topics.as_ref();
        class == DeliveryClass::Ordered && open.is_some_and(|it| !it.contains(&subgroup))
    }

    /// Writers do not wait for logs any longer: what was not sent yet is refused.
    pub(crate) fn give_up_on_logs(&mut self) {
        let by = self.id;
        let stranded = std::mem::take(&mut self.stranded);
        for it in stranded {
            match self.awaits_logs(it.0, it.1) {
                true => self.facts.push(Fact::NotSent { by, token: it.2 }),
                false => self.stranded.push_back(it),
            }
        }
    }

    /// Ordered messages that were committed since the last time, with their tokens.
    pub(crate) fn take_committed(&mut self) -> Vec<(Committed, u64)> {
        std::mem::take(&mut self.committed)
    }

    /// Whether the readers of a message have it.
    pub(crate) fn has_receipt(&self, committed: &Committed) -> bool {
        let subgroup = self.engine.handle().subgroup(committed.subgroup);
        subgroup.is_some_and(|it| it.is_acknowledged(committed))
    }
}
