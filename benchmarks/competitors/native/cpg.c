/* Corosync's closed process groups: every member delivers the same messages in the same
 * order (CPG_TYPE_AGREED). Runs in namespaces of its own, with a daemon: see `corosync-cell`.
 *
 * A sender is a member too: it must take the messages delivered to it, or flow control stops it. */
#define _GNU_SOURCE
#include <corosync/cpg.h>
#include <poll.h>
#include <sys/uio.h>

#include "measure.h"

#define MEMBERS_MAX 64
#define START_LIMIT_NS UINT64_C(15000000000)

struct group {
    cpg_handle_t handle;
    int descriptor;
    struct cpg_name name;
    struct meter *meter;
    struct stamp last;
    uint64_t echoes;
};

static const struct arguments *with;

static void complain(const char *what, cs_error_t error) {
    fprintf(stderr, "%s: error %d\n", what, (int)error);
    exit(1);
}

static void deliver(cpg_handle_t handle, const struct cpg_name *name, uint32_t node,
                    uint32_t pid, void *message, size_t len) {
    struct group *group;
    void *context;
    (void)name, (void)node, (void)pid;
    if (cpg_context_get(handle, &context) != CS_OK) return;
    group = context;
    if (!group->meter || len < sizeof group->last) return;
    memcpy(&group->last, message, sizeof group->last);
    meter_sample(group->meter, group->last, (unsigned char *)message + sizeof group->last,
                 len - sizeof group->last);
    group->echoes++;
}

static void change(cpg_handle_t handle, const struct cpg_name *name,
                   const struct cpg_address *members, size_t count,
                   const struct cpg_address *left, size_t left_count,
                   const struct cpg_address *joined, size_t joined_count) {
    (void)handle, (void)name, (void)members, (void)count;
    (void)left, (void)left_count, (void)joined, (void)joined_count;
}

/* The daemon may still be starting. */
static void join(struct group *it, const char *name, struct meter *meter) {
    cpg_model_v1_data_t model;
    uint64_t limit = monotonic_ns() + START_LIMIT_NS;
    cs_error_t error;
    memset(it, 0, sizeof *it);
    memset(&model, 0, sizeof model);
    model.cpg_deliver_fn = deliver;
    model.cpg_confchg_fn = change;
    it->meter = meter;
    while ((error = cpg_model_initialize(&it->handle, CPG_MODEL_V1, (cpg_model_data_t *)&model,
                                         it)) != CS_OK) {
        if (monotonic_ns() > limit) complain("cpg_model_initialize", error);
        sleep_ns(20000000);
    }
    it->name.length =
        (uint32_t)snprintf(it->name.value, sizeof it->name.value, "%s-%s", with->session, name);
    while ((error = cpg_join(it->handle, &it->name)) != CS_OK) {
        if (monotonic_ns() > limit) complain("cpg_join", error);
        sleep_ns(20000000);
    }
    if ((error = cpg_fd_get(it->handle, &it->descriptor)) != CS_OK) complain("cpg_fd_get", error);
}

static int members(struct group *it) {
    struct cpg_address list[MEMBERS_MAX];
    int count = MEMBERS_MAX;
    cs_error_t error = cpg_membership_get(it->handle, &it->name, list, &count);
    if (error == CS_ERR_TRY_AGAIN) return 0;
    if (error != CS_OK) complain("cpg_membership_get", error);
    return count;
}

/* Delivers all pending messages; with `block`, sleeps until there is one. Returns their number. */
static int dispatch(struct group *it, int block) {
    uint64_t before = it->echoes;
    struct pollfd one = {it->descriptor, POLLIN, 0};
    if (poll(&one, 1, block ? 500 : 0) < 0) fail("poll");
    cs_error_t error = cpg_dispatch(it->handle, CS_DISPATCH_ALL);
    if (error != CS_OK && error != CS_ERR_TRY_AGAIN) complain("cpg_dispatch", error);
    return (int)(it->echoes - before);
}

static void send_one(struct group *it, struct stamp stamp, unsigned char *bytes, size_t size) {
    struct iovec parts[2] = {{&stamp, sizeof stamp}, {bytes, size}};
    cs_error_t error;
    while ((error = cpg_mcast_joined(it->handle, CPG_TYPE_AGREED, parts, 2)) != CS_OK) {
        if (error != CS_ERR_TRY_AGAIN) complain("cpg_mcast_joined", error);
        dispatch(it, 0);
    }
    if ((stamp.number & 15) == 0) dispatch(it, 0);
}

static void wait_for_members(struct group *it, int count) {
    while (members(it) < count) {
        dispatch(it, 0);
        sleep_ns(1000000);
    }
}

static void publish(unsigned char *bytes) {
    struct group group;
    join(&group, "data", NULL);
    wait_for_members(&group, with->readers + 1);
    struct schedule schedule = begin(with);
    for (struct stamp stamp; next_stamp(&schedule, with, &stamp);) {
        write_payload(bytes, with->size, stamp.number, with->sum);
        send_one(&group, stamp, bytes, with->size);
    }
    schedule_report(&schedule);
    /* A member that takes no messages blocks the others. */
    for (int i = 0; i < 3000 && members(&group) > 1; i++) {
        dispatch(&group, 0);
        sleep_ns(1000000);
    }
}

static void subscribe(void) {
    static struct meter meter;
    struct group group;
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "subscriber", "one_way");
    join(&group, "data", &meter);
    while (!meter.complete) {
        int came = dispatch(&group, with->block);
        if (!go_on(&patience, with, came, meter.samples)) break;
    }
    meter_report(&meter);
}

static void ping(unsigned char *bytes) {
    static struct meter meter;
    struct group out, in;
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "ping", "round_trip");
    join(&in, "pong", &meter);
    join(&out, "ping", NULL);
    wait_for_members(&out, 2);
    wait_for_members(&in, 2);
    struct schedule schedule = begin(with);
    for (struct stamp stamp; next_stamp(&schedule, with, &stamp);) {
        stamp.sent_at_ns = monotonic_ns();
        write_payload(bytes, with->size, stamp.number, with->sum);
        send_one(&out, stamp, bytes, with->size);
        for (int came = 0; !came;) {
            came = dispatch(&in, with->block);
            if (!go_on(&patience, with, came, meter.samples)) misused("no echo");
        }
        dispatch(&out, 0);
    }
    meter_report(&meter);
}

static void pong(unsigned char *bytes) {
    static struct meter meter;
    struct group out, in;
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "pong", "one_way");
    join(&out, "pong", NULL);
    join(&in, "ping", &meter);
    while (!meter.complete) {
        int came = dispatch(&in, with->block);
        if (!go_on(&patience, with, came, meter.samples)) misused("no ping");
        /* One ping at a time is in flight. */
        if (came) send_one(&out, in.last, bytes, with->size);
        dispatch(&out, 0);
    }
}

int main(int argc, char **argv) {
    static struct arguments arguments;
    arguments = parse(argc, argv);
    if (arguments.copy) misused("--read copy: the middleware has copied the sample already");
    if (arguments.readers >= MEMBERS_MAX) misused("--readers");
    unsigned char *bytes = calloc(1, arguments.size ? arguments.size : 1);
    if (!bytes) fail("calloc");
    with = &arguments;
    switch (arguments.role) {
    case PUBLISHER: publish(bytes); break;
    case SUBSCRIBER: subscribe(); break;
    case PING: ping(bytes); break;
    case PONG: pong(bytes); break;
    }
    return 0;
}
