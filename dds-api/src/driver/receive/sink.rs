//! The layer above the engine: routes deliveries to reader ports, and events to the control
//! thread. Called under the engine's lock by any thread that steps; it never waits.

use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{OutReason, View};
use spindle_dds_core::{Delivery, EngineEvent, EngineHandle, MessageKind, MessageRun, SubgroupId};
use spindle_dds_transport::Fabric;

use super::routes::{Path, Route, Routes};
use crate::driver::endpoints::announced_matches::AnnouncedMatches;
use crate::driver::endpoints::view_matcher::{BegunView, ViewMatcher};
use crate::driver::group_status::GroupStatus;
use crate::driver::receive::delivery_timer::DeliveryTimer;
use crate::driver::threads::control_queue::{ControlEvent, ControlQueue};
use crate::driver::waiting::notifier::Notifier;
use crate::history::{FeedItem, HistoryService, LogItem, LogService, LogView, ViewMarker};
use crate::wire::Wire;

/// What the engine delivers to.
pub(crate) struct Sink {
    matcher: ViewMatcher,
    routes: Routes,
    group_status: Arc<GroupStatus>,
    notifier: Arc<Notifier>,
    control_queue: Arc<ControlQueue>,
    history: Arc<HistoryService>,
    logs: Arc<LogService>,
    view: Option<Arc<View>>,
    timer: DeliveryTimer,
    /// Whether deliveries are timed, or messages of any topic are kept.
    is_observed: bool,
    /// Messages were kept in this batch.
    has_kept: bool,
    /// Indexes of the routes by which something has arrived in this batch; [`Routes::KEPT`] if messages
    /// were kept.
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
        matcher: ViewMatcher,
        group_status: Arc<GroupStatus>,
        notifier: Arc<Notifier>,
        control_queue: Arc<ControlQueue>,
        (history, logs): (Arc<HistoryService>, Arc<LogService>),
    ) -> Self {
        Self {
            matcher,
            routes: Routes::default(),
            group_status,
            notifier,
            control_queue,
            history,
            logs,
            view: None,
            touched: Vec::new(),
            timer: DeliveryTimer::default(),
            is_observed: false,
            has_kept: false,
        }
    }

    /// Called once, before the first view.
    pub(crate) fn set_handle(&mut self, handle: EngineHandle<Wire>) {
        self.matcher.set_handle(handle);
    }

    /// What the view that begins next means to the local endpoints.
    pub(crate) fn prepare(&mut self, announced: AnnouncedMatches) {
        self.matcher.prepare(announced);
    }

    /// Called before a thread sleeps; see [`ReaderPort::relieve`](super::reader_port::ReaderPort).
    /// Returns whether there is more to do.
    pub(crate) fn relieve(&self) -> bool {
        self.routes.all().any(|route| route.port.relieve())
    }

    /// How often readers have asked for samples whose samples stay in a ring that is nearly full;
    /// `None` if there is no such ring.
    pub(crate) fn selects_if_nearly_full(&self) -> Option<u64> {
        let routes = self.routes.all();
        let selects = routes.filter_map(|route| route.port.selects_if_nearly_full(&route.epoch));
        selects.reduce(u64::wrapping_add)
    }

    /// Copies samples out of rings that are nearly full if their readers have not asked for any
    /// since `selects_if_nearly_full` returned `before`.
    pub(crate) fn copy_out_neglected(&self, before: u64) {
        if self.selects_if_nearly_full() == Some(before) {
            let routes = self.routes.all();
            let full = routes.filter(|it| it.port.selects_if_nearly_full(&it.epoch).is_some());
            full.for_each(|route| route.port.copy_out_neglected());
        }
    }

    /// The latencies measured so far. Deliveries are timed for a while from now on.
    pub(crate) fn time_deliveries(&mut self) -> &DeliveryTimer {
        self.timer.run();
        self.is_observed = true;
        &self.timer
    }

    fn begin(&mut self, view: Arc<View>) {
        let BegunView {
            routes,
            history,
            logs,
        } = self.matcher.view_begun(&view);
        self.routes = routes;
        self.is_observed = self.timer.is_running() || self.routes.keeps_any();
        let readers = self.routes.all().count();
        self.touched.reserve(readers + 1);
        let me = self.matcher.me();
        self.logs
            .troubles()
            .keep(|member| view.rank(member).is_some());
        if self.logs.is_started() {
            let members = view.members.iter().map(|member| member.id);
            self.logs.push(LogItem::View(LogView {
                me,
                others: members.filter(|member| *member != me).collect(),
                control_queue: self.control_queue.clone(),
                places: logs,
            }));
            self.logs.wake();
        }
        if self.history.is_started() {
            self.history.push(FeedItem::View(ViewMarker {
                view: view.id,
                me: self.matcher.me(),
                members: view.members.iter().map(|member| member.id).collect(),
                control_queue: self.control_queue.clone(),
                bases: history.bases,
                gone: history.gone,
                writers: history.writers,
                topics: history.topics,
                pins: history.pins,
                transfers: history.transfers,
            }));
            self.history.wake();
        }
        self.control_queue.begun(view.clone());
        self.view = Some(view);
    }

    /// Times a delivery, and keeps a message, if that is to be done.
    #[cold]
    fn observe(&mut self, delivery: &Delivery<'_, Wire>) {
        if self.timer.is_running() && delivery.header.kind == MessageKind::Data {
            let is_own = delivery.sender == delivery.subgroup.fabric().me();
            self.timer.record(is_own, delivery.header.timestamp);
        }
        if let Some(item) = self.routes.keep(delivery) {
            self.history.push(item);
            if let Some(item) = self.routes.log(delivery) {
                self.logs.push(item);
            }
            if !std::mem::replace(&mut self.has_kept, true) {
                self.touched.push(Routes::KEPT);
            }
        }
        self.is_observed = self.timer.is_running() || self.routes.keeps_any();
    }

    /// Hands on the next messages of a topic with one reader here, directly to that reader's cache
    /// if possible. Messages of a topic without a reader, as those of the own writers often are,
    /// are skipped. Returns whether any message was consumed.
    #[inline]
    fn deliver_directly(
        &mut self,
        topic: (SubgroupId, u64),
        run: &mut MessageRun<'_, Wire>,
    ) -> bool {
        let found = self.routes.of(topic.0, topic.1);
        if found.path == Path::Each || self.timer.is_running() {
            return false;
        }
        if found.path == Path::Unread {
            return run.skip(|header| header.topic == topic.1).messages > 0;
        }
        let index = found.readers().start;
        let Route {
            port, epoch, batch, ..
        } = self.routes.route(index);
        let any = port.append_run(epoch, topic.1, run, batch);
        if any && batch.touch() {
            self.touched.push(index);
        }
        any
    }

    fn stopped(&mut self, reason: OutReason) {
        if reason == OutReason::Left {
            self.group_status.close();
            let routes = self.routes.all();
            routes.for_each(|route| route.port.group_failed());
        } else {
            // First: threads that are woken by what follows look for the reason.
            let text = format!("the group has stopped: {reason}");
            self.group_status.stopped(text);
            self.matcher
                .group_lost(self.group_status.failure().is_some());
        }
        if self.logs.is_started() {
            self.logs.push(LogItem::GroupLost);
            self.logs.wake();
        }
        if self.history.is_started() {
            self.history.push(FeedItem::GroupLost);
            self.history.wake();
        }
        self.notifier.dispatching.notify();
        self.control_queue.put(ControlEvent::Stopped);
    }
}

impl spindle_dds_core::Sink<Wire> for Sink {
    fn deliver(&mut self, delivery: &Delivery<'_, Wire>) {
        let subgroup = delivery.subgroup.id();
        if self.is_observed {
            self.observe(delivery);
        }
        for index in self.routes.of(subgroup, delivery.header.topic).readers() {
            let Route {
                port, epoch, batch, ..
            } = self.routes.route(index);
            port.receive(epoch, delivery, batch);
            if batch.touch() {
                self.touched.push(index);
            }
        }
    }

    fn deliver_run(&mut self, run: &mut MessageRun<'_, Wire>) {
        let subgroup = run.subgroup().id();
        while let Some(header) = run.peek() {
            let topic = header.topic;
            if !self.deliver_directly((subgroup, topic), run)
                && let Some(delivery) = run.next()
            {
                self.deliver(&delivery);
            }
        }
    }

    fn batch_end(&mut self) {
        for index in self.touched.drain(..) {
            if !self.routes.settle(index) {
                kept(&mut self.has_kept, &self.history, &self.logs);
            }
        }
    }

    fn event(&mut self, event: EngineEvent) {
        // What has arrived by the present routes is handed on before the event changes them.
        self.batch_end();
        match event {
            EngineEvent::EpochEnded { subgroup, end, .. } => {
                self.matcher.epoch_ended(subgroup, end)
            }
            EngineEvent::Prepare(preparation) => {
                self.control_queue.put(ControlEvent::Prepare(preparation));
            }
            EngineEvent::CallOff => self.control_queue.put(ControlEvent::CallOff),
            EngineEvent::StopPreparing { number } => {
                if let Some(view) = &self.view {
                    self.control_queue.stop_preparing(view.id + 1, number);
                }
            }
            EngineEvent::Decide(decision) => self.control_queue.put(ControlEvent::Decide(decision)),
            EngineEvent::Refused { request, refusal } => self
                .control_queue
                .put(ControlEvent::Refused { request, refusal }),
            EngineEvent::ViewEnded(finish) => {
                let old = self.view.as_ref().map_or(&[][..], |view| &view.members);
                let expelled = self.matcher.view_ended(&finish, old);
                self.control_queue.put(ControlEvent::Ended {
                    digest: finish.proposal.digest(&finish.next),
                    proposal: finish.proposal,
                    next: finish.next,
                    expelled,
                });
            }
            EngineEvent::ViewBegun(view) => self.begin(view),
            EngineEvent::Stopped(reason) => self.stopped(reason),
        }
    }

    fn persisted(&mut self, subgroup: SubgroupId) {
        for route in self.routes.at(subgroup) {
            route.port.persisted();
        }
        self.logs.words_have_risen();
    }

    fn awaits_persisted(&self, subgroup: SubgroupId) -> bool {
        let mut routes = self.routes.at(subgroup).iter();
        self.logs.awaits_words() || routes.any(|route| route.port.awaits_logs())
    }

    fn is_reading(&self, subgroup: SubgroupId) -> bool {
        self.routes.has(subgroup)
    }

    fn is_ready(&self, subgroup: SubgroupId) -> bool {
        let mut routes = self.routes.at(subgroup).iter();
        routes.all(|route| route.port.is_ready(&route.epoch))
    }
}

/// Messages were kept in a batch, which ends.
#[cold]
#[inline(never)]
fn kept(has_kept: &mut bool, history: &HistoryService, logs: &LogService) {
    *has_kept = false;
    history.wake();
    logs.wake();
}
