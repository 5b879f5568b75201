/* A limit: a ring in memory that two processes share, and memcpy. A middleware that copies samples
 * cannot be faster; one that does not copy them can.
 *
 * The writer copies each sample into the ring; the reader reads it in place, or copies it out
 * first (--read copy). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure.h"

#define SLOTS_MAX 1024
#define BYTES_MAX (UINT64_C(1) << 30)
#define LINE 128

struct counter {
    _Atomic uint64_t count;
    char apart[LINE - sizeof(uint64_t)];
};

/* Counts only increase: slot i belongs to the writer until `sent` exceeds i, and again once `taken`
 * does. */
struct ring {
    struct counter sent, taken, readers;
};

struct end {
    struct ring *ring;
    unsigned char *slots;
    uint64_t slot_count, stride, mine, theirs;
};

static uint64_t stride_of(size_t size) {
    return (sizeof(struct stamp) + size + LINE - 1) / LINE * LINE;
}

static uint64_t slots_of(size_t size) {
    uint64_t slots = BYTES_MAX / stride_of(size);
    return slots < 2 ? 2 : slots > SLOTS_MAX ? SLOTS_MAX : slots;
}

/* Called by both processes, in any order. */
static struct end open_ring(const struct arguments *with, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/spindle-bench-%s-%s", with->session, name);
    struct end it = {NULL, NULL, slots_of(with->size), stride_of(with->size), 0, 0};
    size_t len = sizeof(struct ring) + it.slot_count * it.stride;
    int file = shm_open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0) fail(path);
    if (ftruncate(file, (off_t)len)) fail("ftruncate");
    void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail("mmap");
    close(file);
    it.ring = memory;
    it.slots = (unsigned char *)memory + sizeof(struct ring);
    return it;
}

static void close_ring(const struct arguments *with, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/spindle-bench-%s-%s", with->session, name);
    shm_unlink(path);
}

static void announce(struct end *it) {
    atomic_fetch_add_explicit(&it->ring->readers.count, 1, memory_order_release);
}

static void wait_for_reader(struct end *it) {
    while (!atomic_load_explicit(&it->ring->readers.count, memory_order_acquire))
        sleep_ns(1000000);
}

static unsigned char *slot(struct end *it) {
    return it->slots + it->mine % it->slot_count * it->stride;
}

static void send_one(struct end *it, struct stamp stamp, const unsigned char *bytes, size_t size) {
    for (unsigned idle = 0; it->mine - it->theirs == it->slot_count; idle++) {
        /* Pairs with the reader's release of `taken`: the slot is free. */
        it->theirs = atomic_load_explicit(&it->ring->taken.count, memory_order_acquire);
        if (idle > SPINS) sched_yield();
        else if (idle) spin_once();
    }
    memcpy(slot(it), &stamp, sizeof stamp);
    memcpy(slot(it) + sizeof stamp, bytes, size);
    atomic_store_explicit(&it->ring->sent.count, ++it->mine, memory_order_release);
}

/* Receives all samples in the ring. Returns their number. */
static int receive(struct end *it, const struct arguments *with, struct meter *meter,
                   unsigned char *copy, struct stamp *last) {
    /* Pairs with the writer's release of `sent`: the slots below it are written. */
    it->theirs = atomic_load_explicit(&it->ring->sent.count, memory_order_acquire);
    int came = 0;
    while (it->mine < it->theirs) {
        const unsigned char *bytes = slot(it) + sizeof *last;
        memcpy(last, slot(it), sizeof *last);
        if (with->copy) bytes = memcpy(copy, bytes, with->size);
        meter_sample(meter, *last, bytes, with->size);
        atomic_store_explicit(&it->ring->taken.count, ++it->mine, memory_order_release);
        came++;
    }
    return came;
}

static unsigned char *buffer(size_t size) {
    unsigned char *bytes = calloc(1, size ? size : 1);
    if (!bytes) fail("calloc");
    return bytes;
}

static void publish(const struct arguments *with) {
    struct end out = open_ring(with, "data");
    unsigned char *bytes = buffer(with->size);
    wait_for_reader(&out);
    struct schedule schedule = begin(with);
    for (struct stamp stamp; next_stamp(&schedule, with, &stamp);) {
        write_payload(bytes, with->size, stamp.number, with->sum);
        send_one(&out, stamp, bytes, with->size);
    }
    schedule_report(&schedule);
    close_ring(with, "data");
}

static void subscribe(const struct arguments *with) {
    static struct meter meter;
    struct end in = open_ring(with, "data");
    unsigned char *copy = buffer(with->size);
    struct patience patience = {0, 0};
    struct stamp stamp;
    meter_begin(&meter, with, "subscriber", "one_way");
    announce(&in);
    while (!meter.complete) {
        int came = receive(&in, with, &meter, copy, &stamp);
        if (!go_on(&patience, with, came, meter.samples)) break;
    }
    meter_report(&meter);
}

static void ping(const struct arguments *with) {
    static struct meter meter;
    struct end out = open_ring(with, "ping"), in = open_ring(with, "pong");
    unsigned char *bytes = buffer(with->size), *copy = buffer(with->size);
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "ping", "round_trip");
    wait_for_reader(&out);
    struct schedule schedule = begin(with);
    for (struct stamp stamp, echo; next_stamp(&schedule, with, &stamp);) {
        stamp.sent_at_ns = monotonic_ns();
        write_payload(bytes, with->size, stamp.number, with->sum);
        send_one(&out, stamp, bytes, with->size);
        for (int came = 0; !came;) {
            came = receive(&in, with, &meter, copy, &echo);
            if (!go_on(&patience, with, came, meter.samples)) misused("no echo");
        }
    }
    meter_report(&meter);
    close_ring(with, "ping");
    close_ring(with, "pong");
}

static void pong(const struct arguments *with) {
    static struct meter meter;
    struct end in = open_ring(with, "ping"), out = open_ring(with, "pong");
    unsigned char *bytes = buffer(with->size), *copy = buffer(with->size);
    struct patience patience = {0, 0};
    struct stamp stamp;
    meter_begin(&meter, with, "pong", "one_way");
    announce(&in);
    while (!meter.complete) {
        int came = receive(&in, with, &meter, copy, &stamp);
        if (!go_on(&patience, with, came, meter.samples)) misused("no ping");
        if (!came) continue;
        write_payload(bytes, with->size, stamp.number, with->sum);
        send_one(&out, stamp, bytes, with->size);
    }
}

int main(int argc, char **argv) {
    struct arguments with = parse(argc, argv);
    if (with.block) misused("--wait block: there is nothing to sleep on");
    if (with.readers != 1) misused("--readers: the ring has one reader");
    switch (with.role) {
    case PUBLISHER: publish(&with); break;
    case SUBSCRIBER: subscribe(&with); break;
    case PING: ping(&with); break;
    case PONG: pong(&with); break;
    }
    return 0;
}
