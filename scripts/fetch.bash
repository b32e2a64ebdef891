# What the scripts that fetch things have in common; to be sourced.

thrice() {
    local try
    for try in 1 2 3; do
        "$@" && return
        sleep $((try * 3))
    done
    return 1
}

install_package() {
    thrice apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive thrice apt-get install -qq -y --no-install-recommends "$1" >/dev/null
}

# as_package COMMAND PACKAGE: the system's own package, where the command is missing.
as_package() { command -v "$1" >/dev/null || install_package "$2"; }

# from_maven DIR GROUP:ARTIFACT:VERSION:TYPE[:CLASSIFIER]: one file from Maven Central.
from_maven() {
    as_package mvn maven
    thrice mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
        -Dartifact="$2" -DoutputDirectory="$1" >&2
}
