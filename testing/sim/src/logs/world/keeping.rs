//! Keepers act: they write to their disks, announce, and send packets to each other.

use super::super::show;
use super::{World, takes};

impl World {
    /// Takes what the keeper says: its word, its packets.
    pub(super) fn take_from(&mut self, at: usize) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(log) = &mut node.log else {
            return;
        };
        let (member, group) = (node.member, node.group);
        let packets = log.keeper.take_packets().into_iter();
        self.packets
            .extend(packets.map(|(to, packet)| (to, member, packet)));
        if log.is_dead() {
            let why = format!("{:?}", log.keeper.status());
            node.log = None;
            self.groups[group].ends.remove(&member);
            self.say(|| format!("host {at}'s log is dead: {why}"));
            return;
        }
        let Some(view) = &log.view else {
            return;
        };
        let (view, word) = (view.view, log.word());
        let known = self.groups[group].words.entry((member, view)).or_default();
        let is_first = *known == 0 && word > 0;
        *known = (*known).max(word);
        if is_first {
            self.say(|| format!("host {at} is ready in view {view}: {word}"));
        }
    }

    pub(super) fn keep(&mut self, at: usize) {
        let what = self.rng.below(3);
        let now = self.now_ns;
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(log) = &mut node.log else {
            return;
        };
        match what {
            0 => log.keeper.flush(now),
            1 => {
                if let Some(view) = &log.view
                    && takes(&self.groups[node.group], view)
                {
                    log.keeper.loggers_ready(view.view, now);
                }
            }
            _ => {
                if let Some(end) = log.keeper.announcement() {
                    let (group, member) = (node.group, node.member);
                    self.say(|| format!("host {at} announces {}", show::end(&end)));
                    self.groups[group].ends.insert(member, end);
                }
            }
        }
        self.take_from(at);
    }

    pub(super) fn deliver_packets(&mut self, at: usize) {
        let Some(member) = self.hosts[at].node.as_ref().map(|it| it.member) else {
            return;
        };
        let now = self.now_ns;
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.packets)
            .into_iter()
            .partition(|it| it.0 == member);
        self.packets = others;
        for (to, from, packet) in own {
            match self.rng.below(10) {
                0 => {}
                1 => self.packets.push((to, from, packet)),
                _ => {
                    let node = self.hosts[at].node.as_mut();
                    if let Some(log) = node.and_then(|it| it.log.as_mut()) {
                        log.keeper.handle(from, packet, now);
                    }
                }
            }
        }
        self.take_from(at);
    }
}
