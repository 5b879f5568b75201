//! The layer above the engine: hands deliveries to readers. Never waits for one.

use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{OutReason, View};
use spindle_dds_core::{Delivery, Event, Handle, Kind, Run, SubgroupId};
use spindle_dds_transport::Fabric;

use super::bell::Bells;
use super::desk::{Desk, News};
use super::fate::Fate;
use super::stopwatch::Stopwatch;
use crate::discovery::{Matcher, Route, Routes};
use crate::wire::Wire;

/// What the engine tells.
pub(crate) struct Sink {
    matcher: Matcher,
    routes: Routes,
    fate: Arc<Fate>,
    bells: Arc<Bells>,
    desk: Arc<Desk>,
    view: Option<Arc<View>>,
    stopwatch: Stopwatch,
    /// Routes by which something arrived in this batch.
    touched: Vec<usize>,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("matcher", &self.matcher)
            .finish_non_exhaustive()
    }
}

impl Sink {
    pub(crate) fn new(
        matcher: Matcher,
        fate: Arc<Fate>,
        bells: Arc<Bells>,
        desk: Arc<Desk>,
    ) -> Self {
        Self {
            matcher,
            routes: Routes::default(),
            fate,
            bells,
            desk,
            view: None,
            touched: Vec::new(),
            stopwatch: Stopwatch::default(),
        }
    }

    /// Before the first view.
    pub(super) fn set_handle(&mut self, handle: Handle<Wire>) {
        self.matcher.set_handle(handle);
    }

    /// Nothing is going on. Returns whether there is more to do.
    pub(super) fn relieve(&self) -> bool {
        self.routes.all().any(|route| route.inlet.relieve())
    }

    /// Whether some ring is nearly full of samples that its readers want to
    /// stay there, and how often those have asked for samples.
    pub(super) fn tight(&self) -> Option<u64> {
        let routes = self.routes.all();
        let tight = routes.filter_map(|route| route.inlet.selects_if_tight(&route.link));
        tight.reduce(u64::wrapping_add)
    }

    /// The same as before: nobody takes them.
    pub(super) fn neglect(&self, before: u64) {
        if self.tight() == Some(before) {
            let routes = self.routes.all();
            let tight = routes.filter(|it| it.inlet.selects_if_tight(&it.link).is_some());
            tight.for_each(|route| route.inlet.neglect());
        }
    }

    /// What was timed so far. For a while from now on deliveries are timed.
    pub(super) fn time_deliveries(&mut self) -> &Stopwatch {
        self.stopwatch.run();
        &self.stopwatch
    }

    fn begin(&mut self, view: Arc<View>) {
        self.routes = self.matcher.view_begun(&view);
        let readers = self.routes.all().count();
        self.touched.reserve(readers);
        self.desk.begun(view.clone());
        self.view = Some(view);
    }

    /// Messages of a topic that has one reader here go straight to it, if nothing is in the
    /// way; those of a topic that has none, as a participant's own mostly are, to nobody.
    /// Whether any did.
    #[inline]
    fn hand_over(&mut self, topic: (SubgroupId, u64), run: &mut Run<'_, Wire>) -> bool {
        let readers = self.routes.of(topic.0, topic.1);
        if readers.len() > 1 || self.stopwatch.is_running() {
            return false;
        }
        if readers.is_empty() {
            return run.skip(|header| header.topic == topic.1).messages > 0;
        }
        let at = readers.start;
        let Route {
            inlet, link, batch, ..
        } = self.routes.route(at);
        let any = inlet.accept_run(link, topic.1, run, batch);
        if any && batch.is_touched_first() {
            self.touched.push(at);
        }
        any
    }

    fn stopped(&mut self, reason: OutReason) {
        let failed = reason != OutReason::Left;
        if failed {
            let text = format!("the group has stopped: {reason}");
            self.fate.fail(text);
        } else {
            self.fate.close();
        }
        self.routes.all().for_each(|route| route.inlet.failed());
        self.bells.listeners.ring();
        self.desk.put(News::Stopped);
    }
}

impl spindle_dds_core::Sink<Wire> for Sink {
    fn deliver(&mut self, delivery: &Delivery<'_, Wire>) {
        let subgroup = delivery.lane.subgroup();
        if self.stopwatch.is_running() && delivery.header.kind == Kind::Data {
            let is_own = delivery.sender == delivery.lane.fabric().me();
            self.stopwatch.record(is_own, delivery.header.timestamp);
        }
        for at in self.routes.of(subgroup, delivery.header.topic) {
            let Route {
                inlet, link, batch, ..
            } = self.routes.route(at);
            inlet.accept(link, delivery, batch);
            if batch.is_touched_first() {
                self.touched.push(at);
            }
        }
    }

    fn deliver_run(&mut self, run: &mut Run<'_, Wire>) {
        let subgroup = run.lane().subgroup();
        while let Some(header) = run.peek() {
            let topic = header.topic;
            if !self.hand_over((subgroup, topic), run)
                && let Some(delivery) = run.next()
            {
                self.deliver(&delivery);
            }
        }
    }

    fn batch_end(&mut self) {
        for at in self.touched.drain(..) {
            self.routes.settle(at);
        }
    }

    fn event(&mut self, event: Event) {
        // What has come by the routes of now goes by them, whatever the event makes of them.
        self.batch_end();
        match event {
            Event::LaneEnded { subgroup, end, .. } => self.matcher.lane_ended(subgroup, end),
            Event::Decide(decision) => self.desk.put(News::Decide(decision)),
            Event::Refused { request, why } => self.desk.put(News::Refused { request, why }),
            Event::ViewEnded(finish) => {
                let old = self.view.as_ref().map_or(&[][..], |view| &view.members);
                let expelled = self.matcher.view_ended(&finish, old);
                self.desk.put(News::Ended {
                    digest: finish.proposal.digest(&finish.next),
                    next: finish.next,
                    expelled,
                });
            }
            Event::ViewBegun(view) => self.begin(view),
            Event::Stopped(reason) => self.stopped(reason),
        }
    }

    fn is_reading(&self, subgroup: SubgroupId) -> bool {
        self.routes.has(subgroup)
    }

    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let mut routes = self.routes.at(subgroup).iter();
        routes.all(|route| route.inlet.is_ready(&route.link))
    }
}
