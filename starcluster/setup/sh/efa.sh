# Report the EFA devices of a node and whether libfabric can use them. SYS: /sys. DEVICES:
# /dev/infiniband. Where there are some, jobs of Grid Engine may lock the memory that EFA registers.

count_adapters() {
    for device in "$SYS"/bus/pci/devices/*; do
        [ "$(cat "$device/vendor" 2>/dev/null)" = 0x1d0f ] || continue
        case $(cat "$device/device") in 0xefa*) echo "$device" ;; esac
    done | wc -l
}

unlimit() {
    [ -d /run/systemd/system ] || return 0
    folder=/etc/systemd/system/gridengine-exec.service.d
    mkdir -p $folder
    printf '[Service]\nLimitMEMLOCK=infinity\n' >$folder/starcluster-efa.conf
    systemctl daemon-reload
}

adapters=$(count_adapters)
[ "$adapters" -gt 0 ] || exit 0
unlimit
tell adapters "$adapters"
verbs=$(find "$DEVICES" -name 'uverbs*' 2>/dev/null | wc -l)
PATH=$PATH:/opt/amazon/efa/bin
if [ "$verbs" -lt "$adapters" ]; then
    tell missing "the kernel module efa: $DEVICES has $verbs of $adapters devices"
elif ! command -v fi_info >/dev/null; then
    tell missing "libfabric: there is no fi_info"
elif ! fi_info -p efa >/dev/null 2>&1; then
    tell missing "the provider efa of libfabric: fi_info -p efa fails"
fi
