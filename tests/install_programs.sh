#!/bin/sh
# Installs the programs that some tests need, where that is possible; these tests are skipped where it is not:
# Chromium opens the pages, PostgreSQL is a store of the monitor.
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } >/dev/null 2>&1
}
command -v chromium >/dev/null 2>&1 || install chromium ||
    echo "Chromium could not be installed; the tests that need a browser will be skipped." >&2
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || install postgresql ||
    echo "PostgreSQL could not be installed; the tests that need it will be skipped." >&2
