//! An open device, its ports and their GIDs.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ibverbs_sys as ffi;
use rustix::fs::OFlags;

use super::errno::checked;

/// Names of the devices of this host.
pub(in crate::verbs) fn device_names() -> io::Result<Vec<String>> {
    let devices = ibverbs::devices()?;
    let names = devices.iter().filter_map(|device| device.name());
    Ok(names
        .map(|name| name.to_string_lossy().into_owned())
        .collect())
}

/// The network to which a port is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum LinkLayer {
    InfiniBand,
    Ethernet,
}

/// State of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct Port {
    pub(in crate::verbs) number: u8,
    pub(in crate::verbs) is_active: bool,
    pub(in crate::verbs) link_layer: LinkLayer,
    pub(in crate::verbs) lid: u16,
    /// Active path MTU, in bytes.
    pub(in crate::verbs) mtu: u32,
    /// Longest write, in bytes.
    pub(in crate::verbs) message_len_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum GidKind {
    InfiniBand,
    RoceV1,
    RoceV2,
}

/// An entry of a port's GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) struct GidRow {
    pub(in crate::verbs) port: u8,
    pub(in crate::verbs) index: u8,
    pub(in crate::verbs) gid: [u8; 16],
    pub(in crate::verbs) kind: GidKind,
}

/// An asynchronous event of a device.
#[derive(Debug)]
pub(in crate::verbs) struct AsyncEvent {
    /// As text.
    pub(in crate::verbs) text: String,
    /// Number of the queue pair or completion queue that is affected.
    pub(in crate::verbs) about: Option<u64>,
    /// The device is unusable from now on.
    pub(in crate::verbs) is_fatal: bool,
}

/// An open device.
#[derive(Debug)]
pub(in crate::verbs) struct Context {
    context: NonNull<ffi::ibv_context>,
    name: String,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Context {}

impl Context {
    pub(in crate::verbs) fn open(name: &str) -> io::Result<Arc<Self>> {
        let mut count = 0;
        // SAFETY: returns a list, which is freed below, or null.
        let list = unsafe { ffi::ibv_get_device_list(&raw mut count) };
        if list.is_null() {
            return Err(io::Error::last_os_error());
        }
        let is_it = |device: *mut ffi::ibv_device| {
            // SAFETY: the device is in the list, which is not freed yet.
            let text = unsafe { ffi::ibv_get_device_name(device) };
            // SAFETY: a terminated text that lives as long as the list; null was checked.
            !text.is_null() && unsafe { CStr::from_ptr(text) }.to_bytes() == name.as_bytes()
        };
        let devices = (0..usize::try_from(count).unwrap_or(0)).map(|at| {
            // SAFETY: the list has this many entries.
            let entry = unsafe { list.add(at) };
            // SAFETY: as above.
            unsafe { *entry }
        });
        let mut found = devices.filter(|&device| is_it(device));
        let context = match found.next() {
            // SAFETY: a device of the list.
            Some(device) => NonNull::new(unsafe { ffi::ibv_open_device(device) })
                .ok_or_else(io::Error::last_os_error),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        // SAFETY: returned by ibv_get_device_list, freed once; open devices stay open.
        unsafe { ffi::ibv_free_device_list(list) };
        let name = name.to_owned();
        let opened = Self {
            context: context?,
            name,
        };
        // Non-blocking, because the thread that reads events polls other descriptors, too.
        let flags = rustix::fs::fcntl_getfl(opened.events())? | OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(opened.events(), flags)?;
        Ok(Arc::new(opened))
    }

    pub(in crate::verbs) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::ibv_context {
        self.context.as_ptr()
    }

    /// Attributes of the device.
    fn attributes(&self) -> io::Result<ffi::ibv_device_attr> {
        let mut attributes = ffi::ibv_device_attr::default();
        // SAFETY: an open context, and room for the result.
        checked(unsafe { ffi::ibv_query_device(self.as_ptr(), &raw mut attributes) })?;
        Ok(attributes)
    }

    /// Most work requests that one queue can hold.
    pub(in crate::verbs) fn work_requests_max(&self) -> io::Result<u32> {
        Ok(u32::try_from(self.attributes()?.max_qp_wr).unwrap_or(0))
    }

    pub(in crate::verbs) fn ports(&self) -> io::Result<Vec<Port>> {
        let count = self.attributes()?.phys_port_cnt;
        (1..=count).map(|number| self.port(number)).collect()
    }

    fn port(&self, number: u8) -> io::Result<Port> {
        let mut port = MaybeUninit::<ffi::ibv_port_attr>::zeroed();
        // SAFETY: an open context. The call fills the beginning of the struct: its own type
        // is an older, shorter one.
        checked(unsafe { ffi::ibv_query_port(self.as_ptr(), number, port.as_mut_ptr().cast()) })?;
        // SAFETY: integers, for which zero is a valid value.
        let port = unsafe { port.assume_init() };
        let state = port.state;
        Ok(Port {
            number,
            is_active: state == ffi::ibv_port_state::IBV_PORT_ACTIVE,
            link_layer: match u32::from(port.link_layer) == ffi::IBV_LINK_LAYER_ETHERNET {
                true => LinkLayer::Ethernet,
                false => LinkLayer::InfiniBand,
            },
            lid: port.lid,
            mtu: 128 << port.active_mtu.clamp(1, 5),
            message_len_max: port.max_msg_sz as usize,
        })
    }

    /// GIDs of all ports, without unset ones.
    pub(in crate::verbs) fn gids(&self) -> io::Result<Vec<GidRow>> {
        const ROWS_MAX: usize = 1024;
        let mut rows = vec![ffi::ibv_gid_entry::default(); ROWS_MAX];
        let size = size_of::<ffi::ibv_gid_entry>();
        // SAFETY: an open context, and room for this many entries of this size.
        let count = unsafe {
            ffi::_ibv_query_gid_table(self.as_ptr(), rows.as_mut_ptr(), ROWS_MAX, 0, size)
        };
        let Ok(count) = usize::try_from(count) else {
            return checked(count as c_int).map(|()| Vec::new());
        };
        let read = |row: &ffi::ibv_gid_entry| {
            Some(GidRow {
                port: u8::try_from(row.port_num).ok()?,
                index: u8::try_from(row.gid_index).ok()?,
                // SAFETY: plain bytes in each variant of the union.
                gid: unsafe { row.gid.raw },
                kind: match row.gid_type {
                    ffi::IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
                    ffi::IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
                    _ => GidKind::InfiniBand,
                },
            })
        };
        Ok(rows.iter().take(count).filter_map(read).collect())
    }

    /// Readable when the device has an event.
    pub(in crate::verbs) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open.
        let fd = unsafe { (*self.as_ptr()).async_fd };
        // SAFETY: open as long as the context, which `self` borrows.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }

    /// The next event, if there is one.
    pub(in crate::verbs) fn next_event(&self) -> Option<AsyncEvent> {
        let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
        // SAFETY: an open context, and room for the result.
        if unsafe { ffi::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: initialized by the call, which has succeeded.
        let mut event = unsafe { event.assume_init() };
        let kind = event.event_type;
        let about = match kind {
            ffi::IBV_EVENT_QP_FATAL | ffi::IBV_EVENT_QP_REQ_ERR | ffi::IBV_EVENT_QP_ACCESS_ERR => {
                // SAFETY: this kind of event has a queue pair.
                let of = unsafe { event.element.qp };
                // SAFETY: it is not destroyed before the event is acknowledged.
                Some(unsafe { (*of).qp_context } as u64)
            }
            ffi::IBV_EVENT_CQ_ERR => {
                // SAFETY: this kind of event has a completion queue.
                let of = unsafe { event.element.cq };
                // SAFETY: it is not destroyed before the event is acknowledged.
                Some(unsafe { (*of).cq_context } as u64 >> 1)
            }
            _ => None,
        };
        // SAFETY: returns a text for any number.
        let text = unsafe { ffi::ibv_event_type_str(kind) };
        // SAFETY: a static text.
        let text = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: acknowledged once; nothing of the event is used afterwards.
        unsafe { ffi::ibv_ack_async_event(&raw mut event) };
        let is_fatal = kind == ffi::IBV_EVENT_DEVICE_FATAL;
        Some(AsyncEvent {
            text,
            about,
            is_fatal,
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; all that was made from it has kept it alive.
        unsafe { ffi::ibv_close_device(self.as_ptr()) };
    }
}

impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events()
    }
}
