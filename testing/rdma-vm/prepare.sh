# shellcheck shell=bash disable=SC2154 # cache and here are rdma-vm's
# What is prepared once for each kernel and cached: sourced by rdma-vm.
#
#   $cache/<kernel>/vmlinux            Debian's kernel, uncompressed
#   $cache/<kernel>/lib/modules        its modules, for the guest
#   $cache/<kernel>/initramfs.<sum>    busybox, the guest's modules and guest-init, whose
#                                      checksum is in the name
#
# Each gets its name when it is complete, so that a partial one is never used.

# Each after the modules that it needs.
guest_modules=(virtio_pci virtio_console 9p 9pnet_virtio overlay veth bridge rdma_ucm rdma_rxe)

# Exits with a list of packages to install if something is missing.
check_host() {
    local missing=() needed command package
    [[ $(uname -sm) == "Linux x86_64" ]] || die "the guest is made for Linux on x86-64 only"
    for needed in qemu-system-x86_64:qemu-system-x86 ip:iproute2 rdma:iproute2 modprobe:kmod \
        depmod:kmod cpio:cpio xz:xz-utils apt-get:apt dpkg-deb:dpkg flock:util-linux; do
        command=${needed%:*} package=${needed#*:}
        [[ $(PATH=$PATH:/usr/sbin:/sbin type -P "$command") || " ${missing[*]} " == *" $package "* ]] ||
            missing+=("$package")
    done
    # A dynamically linked busybox would not find its libraries in the initramfs.
    if [[ ! -x /bin/busybox ]] || ldd /bin/busybox >/dev/null 2>&1; then
        missing+=(busybox-static)
    fi
    ((${#missing[@]} == 0)) || die "something is missing on this host; as root:
    apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    PATH=$PATH:/usr/sbin:/sbin
}

# The newest kernel in the cache; nothing if there is none.
cached_kernel() {
    local found
    found=$(cd "$cache" 2>/dev/null && printf '%s\n' */vmlinux | sort -V | tail -n 1)
    [[ $found == "*/vmlinux" ]] || echo "${found%/vmlinux}"
}

# The newest kernel that apt knows.
newest_kernel() {
    local package
    package=$(apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/.*Depends: linux-image-\([0-9].*\)/\1/p' | head -n 1)
    [[ $package ]] || die "apt knows no linux-image-amd64; as root: apt-get update"
    echo "$package"
}

# The path of the initramfs for a kernel.
initramfs() {
    local sum
    sum=$(cksum <"$here/guest-init")
    echo "$cache/$1/initramfs.${sum%% *}"
}

# Makes what is missing. One process at a time.
prepare() {
    if [[ -e $cache/$1/vmlinux && -e $(initramfs "$1") ]]; then return; fi
    local lock
    mkdir -p "$cache"
    exec {lock}>"$cache/.lock"
    flock "$lock"
    [[ -e $cache/$1/vmlinux ]] || make_kernel "$1"
    [[ -e $(initramfs "$1") ]] || make_initramfs "$1"
    exec {lock}>&-
}

# Fetches and unpacks Debian's package; it is not installed.
make_kernel() {
    local new=$cache/.new image offset
    echo "rdma-vm: fetching Linux $1 into $cache (once)" >&2
    rm -rf "$new" "${cache:?}/$1"
    mkdir -p "$new"
    (cd "$new" && apt-get download -qq -o APT::Sandbox::User=root "linux-image-$1" >&2) ||
        die "apt-get cannot fetch linux-image-$1; as root: apt-get update"
    dpkg-deb -x "$new"/linux-image-*.deb "$new/unpacked" || die "there is no room in $cache"
    depmod -b "$new/unpacked" "$1" || die "depmod fails for Linux $1"
    mkdir "$new/lib"
    mv "$new/unpacked/lib/modules" "$new/lib"
    # Uncompressed, so that the emulated processor need not unpack it.
    image=$new/unpacked/boot/vmlinuz-$1
    offset=$(LC_ALL=C grep -abo -m 1 -P '\xfd7zXZ\x00' "$image" | LC_ALL=C sed -n '1s/:.*//p')
    [[ $offset ]] || die "$image is not compressed as expected (xz)"
    # xz ignores what follows the stream; tail is not waited for.
    xz -dc --single-stream >"$new/vmlinux" < <(tail -c "+$((offset + 1))" "$image") ||
        die "$image cannot be unpacked"
    rm -rf "$new/unpacked" "$new"/*.deb
    mv -T "$new" "$cache/$1"
}

make_initramfs() {
    local new=$cache/.new-initramfs image
    image=$(initramfs "$1")
    rm -rf "$new"
    mkdir -p "$new/bin" "$new/modules"
    cp /bin/busybox "$new/bin"
    install -m 755 "$here/guest-init" "$new/init"
    # The files, each after those that it needs.
    modprobe -d "$cache/$1" -S "$1" --show-depends --all "${guest_modules[@]}" |
        awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$new/files" ||
        die "the modules of Linux $1 are not as expected"
    xargs -a "$new/files" cp -t "$new/modules" || die "$cache is not whole: remove it"
    sed 's|.*/||' "$new/files" >"$new/modules/order"
    (cd "$new" && find . | cpio --quiet --create --format=newc) >"$new.cpio" ||
        die "cpio fails"
    mv "$new.cpio" "$image"
    rm -rf "$new"
}
