# What every machine does, for each JDK with each collector.
collectors='serial:UseSerialGC parallel:UseParallelGC g1:UseG1GC z:UseZGC'

uname -a >/tmp/kernel
sed -n 's/^KernelPageSize: *\([0-9]*\) kB/\1/p' /proc/self/smaps | sort -n | head -n 1 | { read -r kib; echo $((kib * 1024)); } >>/tmp/kernel
send kernel /tmp/kernel
echo "$jdks" >/tmp/jdks
send jdks /tmp/jdks
ls /sys/kernel/mm/hugepages >/tmp/sizes
cat /sys/kernel/mm/transparent_hugepage/hpage_pmd_size >>/tmp/sizes
send sizes /tmp/sizes

# Every pool: size in KiB, pages, free ones, promised ones.
pools() {
    for pool in /sys/kernel/mm/hugepages/hugepages-*; do
        size=${pool##*-}
        echo "${size%kB} $(cat "$pool/nr_hugepages") $(cat "$pool/free_hugepages") $(cat "$pool/resv_hugepages")"
    done
}

# need NAME JDK COLLECTOR MODE: a plan, the plan made true, a JVM that is started as it says, and all restored.
need() {
    case " $jdks " in *" $2 "*) ;; *) return ;; esac
    home=$(echo /usr/lib/jvm/java-$2-openjdk-*)
    run "need.$1.plan" marusa pages plan --jdk "$home" --gc "$3" --heap 96m --code-cache 64m --mode "$4" --pool --json -o /tmp/plan --force
    marusa pages plan --jdk "$home" --gc "$3" --heap 96m --code-cache 64m --mode "$4" --pool --emit jvm | grep -v '^#' >/tmp/options
    run "need.$1.apply" marusa pages apply /tmp/plan --yes --json
    pools >/tmp/before
    start "need-$1" "$home/bin/java" @/tmp/options -cp /lab/java marusa.Idle
    pid=$(pid_of "need-$1")
    pools >/tmp/after
    send "need.$1.before" /tmp/before
    send "need.$1.after" /tmp/after
    send "need.$1.log" "/tmp/need-$1.log"
    run "need.$1.verify" marusa pages verify "$pid" /tmp/plan --json
    kill -KILL "$pid"
    sleep 1
    run "need.$1.undo" marusa pages undo --json
}
need 17-g1 17 g1 hugetlb
need 25-g1 25 g1 hugetlb
need 25-parallel 25 parallel hugetlb
need 25-z 25 zgc hugetlb-2m

# core NAME PID: the account of the JVM, and the one of the core that it leaves.
core() {
    run "$1.live" marusa map "$2" --json
    kill -ABRT "$2"
    while [ -e "/proc/$2" ]; do usleep 100000; done
    run "$1.core" marusa map --from /tmp/core --json
    rm -f /tmp/core
}

# commands NAME PID: whatever else looks at a JVM.
commands() {
    for by in page-size holder loader buffer thread library arena mapping; do
        run "$1.by-$by" marusa map "$2" --by $by --json
    done
    run "$1.heap" marusa heap "$2" --json
    run "$1.audit" marusa audit "$2" --json
    run "$1.doctor" marusa doctor "$2" --json
    run "$1.why" marusa why "$2" 0s --json
    run "$1.list" marusa list --json
    run "$1.tlb" marusa tlb "$2" 1s 1 --json
    run "$1.stalls" marusa stalls 1s 1 --json
    run "$1.collapse" marusa pages collapse "$2" --json
    run "$1.verify" marusa pages verify "$2" --json
}
echo /tmp/core >/proc/sys/kernel/core_pattern
echo 0 >/proc/sys/kernel/core_uses_pid
ulimit -c unlimited

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
        run "$name.freeze" marusa freeze "$pid" -o "/tmp/$name.frozen" --force
        run "$name.again" marusa map --from "/tmp/$name.frozen" --json
        kill -CONT "$pid"
        # Of one the library, of the others the JVM's own command.
        agent=
        [ "${pair%%:*}" = serial ] && agent=--load-agent
        run "$name.trim" marusa trim "$pid" --json $agent
        [ "$name" = 25-g1 ] && send "$name.frozen" "/tmp/$name.frozen"
        rm -f "/tmp/$name.frozen"
        case $name in
            *-parallel) core "$name" "$pid" ;;
            17-g1 | 25-z) commands "$name" "$pid" ;;
        esac
        kill -KILL "$pid" 2>/dev/null
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
in_group dentries sh -c 'cd /dev/shm/many; seq 20000 | sed "s/^/a-file-with-a-name-of-some-length-/" | xargs touch'
for port in 7001 7002 7003 7004 7005 7006; do
    in_group sockets sh -c "nc -l -p $port -e sleep 100000 & sleep 1; dd if=/dev/zero bs=64k | nc 127.0.0.1 $port" >/dev/null 2>&1 &
done
in_group two sh -c '(head -c 67108864 /dev/zero; sleep 100000) | tail -c 67108864' >/dev/null 2>&1 &
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
