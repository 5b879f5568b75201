# shellcheck shell=bash
# The network of the guest, as input of `ip -batch` and `rdma -batch`: sourced by rdma-vm.
#
#   n1 ---- p1 --+          n<i>: 10.77.0.<i>, device rxe<i>
#   n2 ---- p2 --+-- br0    p<i>: its port of the bridge, where faults.sh cuts
#   n3 ---- p3 --+
#
# All nodes are in one network namespace, because Soft-RoCE works only in the first one. Packets
# between nodes would stay in the kernel; so node addresses are local only to packets that
# arrive through a node, and packets that a node sends are routed by its own table.

links() {
    local node table address
    echo "link set lo up"
    echo "link add br0 type bridge forward_delay 0"
    echo "link set br0 up"
    echo "rule add pref 500 lookup local"
    for ((node = 1; node <= $1; node++)); do
        table=$((1000 + node)) address=10.77.0.$node
        printf 'link add n%d address 02:00:00:77:00:%02x type veth peer name p%d\n' \
            "$node" "$node" "$node"
        echo "link set p$node master br0 up"
        echo "link set n$node up"
        echo "addr add $address/24 dev n$node noprefixroute"
        echo "route add 10.77.0.0/24 dev n$node src $address table $table"
        # A device may send to itself.
        echo "route add local $address dev n$node table $table"
        echo "rule add pref 100 iif n$node lookup local"
        # Verbs look up a route out of their device; sockets are bound to an address.
        echo "rule add pref 200 oif n$node lookup $table"
        echo "rule add pref 300 from $address to 10.77.0.0/24 iif lo lookup $table"
    done
    echo "rule del pref 0"
}

devices() {
    local node
    for ((node = 1; node <= $1; node++)); do
        echo "link add rxe$node type rxe netdev n$node"
    done
}
