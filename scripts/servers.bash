# DayTrader several times at once (scripts/workloads), for the scripts that hold one against the other; to be sourced. `work` names a directory
# that is theirs.

# CPU time of a process so far, in ms: fields 14 and 15 of proc_pid_stat(5); the second, the name, is `(java)` here and has no blank.
cpu_ms() { awk -v ticks="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / ticks }' "/proc/$1/stat"; }

# For awk: the geometric mean of n ratios, given as logarithms from 1 on, with Student's interval of 95 %.
interval='function interval(logs, n,    i, mean, square, t, half) {
    for (i = 1; i <= n; i++) mean += logs[i] / n
    for (i = 1; i <= n; i++) square += (logs[i] - mean) ^ 2
    # The quantile of 97.5 %, by a formula that is within 1 % for four ratios and more.
    t = n == 2 ? 12.706 : n == 3 ? 4.303 : 1.96 + 2.372 / (n - 1) + 2.823 / (n - 1) ^ 2 + 2.556 / (n - 1) ^ 3
    half = t * sqrt(square / (n - 1) / n)
    return sprintf("%.3f (%.3f to %.3f)", exp(mean), exp(mean - half), exp(mean + half))
}'

# in_server NAME COMMAND...: all listen on the same ports, each in a network of its own.
in_server() { MARUSA_WORKLOADS=$work/$1 nsenter --net="$work/$1.net" "${@:2}"; }

# make_servers NAME...
make_servers() {
    local server
    as_package ip iproute2
    scripts/workloads fetch daytrader
    for server; do
        mkdir -p "$work/$server/daytrader"
        cp -r "${MARUSA_WORKLOADS:-$HOME/.cache/marusa/workloads}"/daytrader/{fetched,tomee} "$work/$server/daytrader"
        touch "$work/$server.net"
        unshare --net="$work/$server.net" ip link set lo up
    done
}

# stop_servers NAME...
stop_servers() {
    local server
    for server; do in_server "$server" scripts/workloads stop daytrader; done
}

remove_servers() {
    umount "$work"/*.net || true
    rm -rf "$work"
}
