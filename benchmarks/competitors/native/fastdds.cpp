// Fast DDS 2.9 of Debian: reliable, keep-all, over its shared-memory transport.
//
// These settings were the fastest found that lose no samples: a history of 300, a heartbeat per
// millisecond, a reader that answers it at once (the default of 5 ms limits the rate to about
// 97,000 samples per second), a segment of 16 MiB. Data sharing is off: it lost samples.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/core/status/PublicationMatchedStatus.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>

#include "measure.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

constexpr int HISTORY = 300;
constexpr uint32_t SEGMENT_BYTES = 16u << 20;
constexpr int DOMAIN = 48;
// Bytes of the encapsulation header of each payload.
constexpr uint32_t ENCAPSULATION = 4;

struct Probe {
    stamp head;
    std::vector<unsigned char> bytes;
};

// Written by hand as fastddsgen would generate it for a struct with a sequence of octets.
class ProbeType : public TopicDataType {
public:
    explicit ProbeType(size_t size) {
        setName("Probe");
        m_typeSize = static_cast<uint32_t>(ENCAPSULATION + sizeof(stamp) + size);
        m_isGetKeyDefined = false;
    }
    bool serialize(void *data, SerializedPayload_t *payload) override {
        const auto *probe = static_cast<Probe *>(data);
        uint32_t length = length_of(*probe);
        if (length > payload->max_size) return false;
        payload->encapsulation = CDR_LE;
        static const unsigned char little_endian[ENCAPSULATION] = {0, 1, 0, 0};
        memcpy(payload->data, little_endian, ENCAPSULATION);
        memcpy(payload->data + ENCAPSULATION, &probe->head, sizeof(stamp));
        memcpy(payload->data + ENCAPSULATION + sizeof(stamp), probe->bytes.data(),
               probe->bytes.size());
        payload->length = length;
        return true;
    }
    bool deserialize(SerializedPayload_t *payload, void *data) override {
        auto *probe = static_cast<Probe *>(data);
        if (payload->length < ENCAPSULATION + sizeof(stamp)) return false;
        const unsigned char *bytes = payload->data + ENCAPSULATION;
        memcpy(&probe->head, bytes, sizeof(stamp));
        const unsigned char *end = payload->data + payload->length;
        probe->bytes.assign(bytes + sizeof(stamp), end);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        return [data] { return length_of(*static_cast<Probe *>(data)); };
    }
    void *createData() override { return new Probe(); }
    void deleteData(void *data) override { delete static_cast<Probe *>(data); }
    bool getKey(void *, InstanceHandle_t *, bool) override { return false; }

private:
    static uint32_t length_of(const Probe &probe) {
        return static_cast<uint32_t>(ENCAPSULATION + sizeof(stamp) + probe.bytes.size());
    }
};

template <class T> T *made(T *it, const char *what) {
    if (!it) {
        fprintf(stderr, "fastdds: no %s\n", what);
        exit(1);
    }
    return it;
}

class Peer {
public:
    explicit Peer(const arguments &with) : with(with) {
        DomainParticipantQos qos;
        auto memory = std::make_shared<SharedMemTransportDescriptor>();
        memory->segment_size(SEGMENT_BYTES);
        qos.transport().use_builtin_transports = false;
        qos.transport().user_transports.push_back(memory);
        auto *factory = DomainParticipantFactory::get_instance();
        participant = made(factory->create_participant(DOMAIN, qos), "participant");
        type = TypeSupport(new ProbeType(with.size));
        type.register_type(participant);
    }
    ~Peer() {
        participant->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(participant);
    }
    DataWriter *writer(const char *name) {
        auto *publisher = made(participant->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
        DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.reliability().max_blocking_time = {10, 0};
        qos.history().kind = KEEP_ALL_HISTORY_QOS;
        qos.resource_limits().max_samples = HISTORY;
        qos.resource_limits().max_samples_per_instance = HISTORY;
        qos.resource_limits().allocated_samples = HISTORY;
        qos.reliable_writer_qos().times.heartbeatPeriod = {0, 1000000};
        qos.data_sharing().off();
        return made(publisher->create_datawriter(topic(name), qos), "writer");
    }
    DataReader *reader(const char *name) {
        auto *subscriber =
            made(participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
        DataReaderQos qos = DATAREADER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.history().kind = KEEP_ALL_HISTORY_QOS;
        qos.resource_limits().max_samples = HISTORY;
        qos.resource_limits().max_samples_per_instance = HISTORY;
        qos.resource_limits().allocated_samples = HISTORY;
        qos.reliable_reader_qos().times.heartbeatResponseDelay = {0, 0};
        qos.data_sharing().off();
        return made(subscriber->create_datareader(topic(name), qos), "reader");
    }

private:
    Topic *topic(const char *name) {
        std::string whole = std::string("spindle_bench_") + with.session + "_" + name;
        return made(participant->create_topic(whole, type.get_type_name(), TOPIC_QOS_DEFAULT),
                    "topic");
    }
    const arguments &with;
    DomainParticipant *participant;
    TypeSupport type{nullptr};
};

int readers_of(DataWriter *writer) {
    PublicationMatchedStatus status;
    writer->get_publication_matched_status(status);
    return status.current_count;
}

void wait_for_readers(DataWriter *writer, int readers) {
    while (readers_of(writer) < readers) sleep_ns(1000000);
    // Endpoints may be matched in one direction before the other.
    sleep_ns(100000000);
}

void wait_for_their_end(DataWriter *writer) {
    writer->wait_for_acknowledgments({3, 0});
    for (int i = 0; i < 3000 && readers_of(writer) > 0; i++) sleep_ns(1000000);
}

void send_one(DataWriter *writer, const arguments &with, Probe &probe, stamp head) {
    probe.head = head;
    write_payload(probe.bytes.data(), probe.bytes.size(), head.number, with.sum);
    if (!writer->write(&probe)) {
        fprintf(stderr, "fastdds: write failed\n");
        exit(1);
    }
}

template <class Each>
int receive(DataReader *reader, const arguments &with, Probe &probe, Each each) {
    SampleInfo info;
    int came = 0;
    if (with.block) reader->wait_for_unread_message({0, 500000000});
    while (came < 256 && reader->take_next_sample(&probe, &info) == ReturnCode_t::RETCODE_OK) {
        if (!info.valid_data) continue;
        each(probe);
        came++;
    }
    return came;
}

void publish(Peer &peer, const arguments &with) {
    auto *writer = peer.writer("data");
    Probe probe{{}, std::vector<unsigned char>(with.size)};
    wait_for_readers(writer, with.readers);
    schedule plan = begin(&with);
    for (stamp head; next_stamp(&plan, &with, &head);) send_one(writer, with, probe, head);
    schedule_report(&plan);
    wait_for_their_end(writer);
}

void subscribe(Peer &peer, const arguments &with) {
    static meter notes;
    auto *reader = peer.reader("data");
    Probe probe;
    patience idle{};
    meter_begin(&notes, &with, "subscriber", "one_way");
    while (!notes.complete) {
        int came = receive(reader, with, probe, [](const Probe &it) {
            meter_sample(&notes, it.head, it.bytes.data(), it.bytes.size());
        });
        if (!go_on(&idle, &with, came, notes.samples)) break;
    }
    meter_report(&notes);
}

void ping(Peer &peer, const arguments &with) {
    static meter notes;
    auto *reader = peer.reader("pong");
    auto *writer = peer.writer("ping");
    Probe probe{{}, std::vector<unsigned char>(with.size)}, echo;
    patience idle{};
    meter_begin(&notes, &with, "ping", "round_trip");
    wait_for_readers(writer, 1);
    SubscriptionMatchedStatus matched;
    do sleep_ns(1000000);
    while (reader->get_subscription_matched_status(matched), matched.current_count == 0);
    schedule plan = begin(&with);
    for (stamp head; next_stamp(&plan, &with, &head);) {
        head.sent_at_ns = monotonic_ns();
        send_one(writer, with, probe, head);
        for (int came = 0; !came;) {
            came = receive(reader, with, echo, [](const Probe &it) {
                meter_sample(&notes, it.head, it.bytes.data(), it.bytes.size());
            });
            if (!go_on(&idle, &with, came, notes.samples)) misused("no echo");
        }
    }
    meter_report(&notes);
}

void pong(Peer &peer, const arguments &with) {
    auto *writer = peer.writer("pong");
    auto *reader = peer.reader("ping");
    Probe probe, out{{}, std::vector<unsigned char>(with.size)};
    patience idle{};
    uint64_t samples = 0;
    for (bool over = false; !over;) {
        int came = receive(reader, with, probe, [&](const Probe &it) {
            send_one(writer, with, out, it.head);
            over = over || (it.head.number & LAST_BIT);
        });
        samples += static_cast<uint64_t>(came);
        if (!go_on(&idle, &with, came, samples)) misused("no ping");
    }
    wait_for_their_end(writer);
}

} // namespace

int main(int argc, char **argv) {
    arguments with = parse(argc, argv);
    if (with.copy) misused("--read copy: the middleware has copied the sample already");
    Peer peer(with);
    switch (with.role) {
    case PUBLISHER: publish(peer, with); break;
    case SUBSCRIBER: subscribe(peer, with); break;
    case PING: ping(peer, with); break;
    case PONG: pong(peer, with); break;
    }
    return 0;
}
