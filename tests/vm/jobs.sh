# What every machine does, for each JDK with each collector.
collectors='serial:UseSerialGC parallel:UseParallelGC g1:UseG1GC z:UseZGC'

uname -a >/tmp/kernel
getconf PAGESIZE >>/tmp/kernel 2>/dev/null
send kernel /tmp/kernel
ls /sys/kernel/mm/hugepages >/tmp/sizes
cat /sys/kernel/mm/transparent_hugepage/hpage_pmd_size >>/tmp/sizes
send sizes /tmp/sizes

for jdk in $jdks; do
    java=$(echo /usr/lib/jvm/java-$jdk-openjdk-*/bin/java)
    for pair in $collectors; do
        start "$jdk-${pair%%:*}" "$java" -Xmx96m -XX:+${pair#*:} -XX:MaxDirectMemorySize=200m -cp /lab/java \
            marusa.FreedBuffers buffers=2000 threads=2 kept=4
    done
    for pair in $collectors; do
        name=$jdk-${pair%%:*}
        pid=$(pid_of "$name")
        if [ -z "$pid" ]; then
            send "$name.failed" "/tmp/$name.log"
            continue
        fi
        kill -STOP "$pid"
        run "$name.map" marusa map "$pid" --json
        run "$name.freeze" marusa freeze "$pid" -o "/tmp/$name.frozen"
        run "$name.again" marusa map --from "/tmp/$name.frozen" --json
        kill -CONT "$pid"
        run "$name.trim" marusa trim "$pid" --json
        kill -KILL "$pid"
        rm -f "/tmp/$name.frozen"
    done
done

# cgroups of version 2, each filled in one way.
group() { # NAME
    mkdir -p "/sys/fs/cgroup/$1"
    echo 512M >"/sys/fs/cgroup/$1/memory.max"
}
in_group() { # NAME COMMAND...
    group "$1"
    sh -c 'echo 0 >"/sys/fs/cgroup/$0/cgroup.procs"; exec "$@"' "$@"
}
mkdir -p /mnt/ramfs /dev/shm/many
mount -t ramfs ramfs /mnt/ramfs
ip link set lo up
in_group cache dd if=/dev/zero of=/mnt/ramfs/file bs=1M count=64 2>/dev/null
in_group tmpfs dd if=/dev/zero of=/dev/shm/file bs=1M count=48 2>/dev/null
in_group dentries sh -c 'cd /dev/shm/many; for i in $(seq 150); do touch $(seq -s " " -f "a-file-with-a-name-of-some-length-%g" $((i * 100)) $((i * 100 + 99))); done'
for port in 7001 7002 7003 7004 7005 7006; do
    in_group sockets sh -c "nc -l -p $port -e sleep 100000 & sleep 1; dd if=/dev/zero bs=64k | nc 127.0.0.1 $port" >/dev/null 2>&1 &
done
in_group two sh -c '(head -c 64M /dev/zero; sleep 100000) | tail -c 64M' >/dev/null 2>&1 &
java=$(echo /usr/lib/jvm/java-*/bin/java | cut -d ' ' -f 1)
for one in jvm two; do
    group $one
    start "group-$one" sh -c 'echo 0 >"/sys/fs/cgroup/$0/cgroup.procs"; exec "$@"' $one "$java" -Xmx64m -XX:+UseSerialGC \
        -cp /lab/java marusa.FreedBuffers buffers=1000 kept=4
done
for one in jvm two; do
    run "group.$one.of_jvm" marusa container "$(pid_of "group-$one")" --json
done
for one in cache tmpfs dentries sockets two jvm; do
    run "group.$one" marusa container --cgroup "/sys/fs/cgroup/$one" --json
done
