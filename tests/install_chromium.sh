#!/bin/sh
# Installs Chromium for the tests of the report page, where that is possible; the tests are skipped where it is not.
command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0
fi
echo "Chromium could not be installed; the tests that need a browser will be skipped." >&2
