#!/bin/busybox sh
# The first process of an emulated machine: prepares it, runs the lab's jobs and turns it off. Results go to the console, each file as
# "@@ NAME", its gzipped bytes in base64, and "@@."; kernel messages are off, so nothing lies between.
export PATH=/bin HOME=/ LD_LIBRARY_PATH=
/bin/busybox mkdir -p /bin /proc /sys /dev /tmp /etc
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /mnt/huge
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
echo 1 >/proc/sys/kernel/printk
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled

# send NAME FILE
send() {
    echo
    echo "@@ $1"
    gzip -c "$2" | base64
    echo "@@."
}

# run NAME COMMAND...: its output as NAME, and its status, time and errors as NAME.status.
run() {
    local what=$1
    shift
    read -r from _ </proc/uptime
    "$@" >/tmp/out 2>/tmp/err </dev/null
    status=$?
    read -r to _ </proc/uptime
    send "$what" /tmp/out
    { echo "$status $from $to"; cat /tmp/err; } >/tmp/both
    send "$what.status" /tmp/both
}

# start NAME JAVA OPTION...: a JVM that waits for its input to end; its output is /tmp/NAME.log.
start() {
    local log=/tmp/$1.log
    shift
    sleep 100000 | "$@" >"$log" 2>&1 &
}

# pid_of NAME: waits until it is ready; nothing when it does not get ready.
pid_of() {
    local tries=0
    while ! grep -q READY "/tmp/$1.log" && [ $tries -lt 1200 ]; do
        usleep 100000
        tries=$((tries + 1))
    done
    sed -n 's/^READY \([0-9]*\).*/\1/p' "/tmp/$1.log" | head -n 1
}

. /lab/jobs.sh
echo
echo "@@ done"
sync
poweroff -f
