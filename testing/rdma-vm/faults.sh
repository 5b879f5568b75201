# shellcheck shell=bash
# Faults of the guest's network: sourced by scripts that run in it, as root.
#
#   node_loss I LOSS [DELAY]   what leaves node I is lost and late, as `node_loss 2 2% 2ms`;
#                              `node_loss I 0%` ends it
#   cut_off I                  nothing comes from or to node I any more, but from itself
#   cut_between I J            nothing passes from I to J, and from J to I
#   heal I                     ends what was cut of I
#   heal_all                   ends all that was cut
#
# Packets are dropped in the bridge, so both sides learn of it by silence, as they would
# if a cable broke: not by an error of their own network layer, at which Soft-RoCE would
# try again at once, without end. Needs tc (iproute2) and nft (nftables).

node_loss() {
    modprobe sch_netem || return
    if [[ $2 == 0% && ${3:-0ms} == 0ms ]]; then
        tc qdisc del dev "n$1" root 2>/dev/null || true
        return 0
    fi
    # The limit is of packets that wait: none is lost for being late.
    tc qdisc replace dev "n$1" root netem limit 100000 loss "$2" delay "${3:-0ms}"
}

# A rule for each pair of ports, with a name to end it by.
drop() {
    if ! nft list table bridge spindle >/dev/null 2>&1; then
        nft 'add table bridge spindle' || return
        nft 'add chain bridge spindle cut { type filter hook forward priority 0; }' || return
    fi
    nft "add rule bridge spindle cut $1 drop comment \"$2\""
}

cut_off() {
    drop "iifname p$1" "of $1" && drop "oifname p$1" "of $1"
}

cut_between() {
    drop "iifname p$1 oifname p$2" "of $1, of $2" && drop "iifname p$2 oifname p$1" "of $1, of $2"
}

heal() {
    local handle
    nft -a list chain bridge spindle cut 2>/dev/null |
        sed -n "s/.*comment \".*of $1\(,.*\)\{0,1\}\".*handle \([0-9]*\)\$/\2/p" |
        while read -r handle; do
            nft delete rule bridge spindle cut handle "$handle" || return
        done
}

heal_all() {
    nft delete table bridge spindle 2>/dev/null || true
}
