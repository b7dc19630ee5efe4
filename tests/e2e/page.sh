#!/bin/sh
# The page of hone serve in a real browser: a conversation, stopping, branches, settings, errors, files, Markdown, what
# a hostile model may not do, keys, colours, narrow screens; then a talk with hone serve itself. Needs chromium and
# python3 (its standard library alone).
# By hand: PAGE_FOLDER=DIR sh tests/e2e/page.sh keeps pictures of it in DIR, to be looked at; PAGE_URL=http://HOST:PORT
# talks with that server at the end, instead of one of its own.
. tests/e2e/lib.sh

PYTHONDONTWRITEBYTECODE=1
export HONE PYTHONDONTWRITEBYTECODE
page=$(dirname "$HONE")/src/serve/page/joined.html
browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name 2>/dev/null)
done
if [ -z "$browser" ]; then
    echo "SKIP: no chromium"
    exit 77
fi
if ! python3 -c 'import http.server, json, subprocess' 2>/dev/null; then
    echo "SKIP: no python3"
    exit 77
fi
if [ ! -f "$page" ]; then
    echo "SKIP: no $page: this program was not built here"
    exit 77
fi
folder=${PAGE_FOLDER:-$T}
mkdir -p "$folder"
HOME=$T # the browser's own traces
export HOME
url=${PAGE_URL:-} pid=
listens() { url=$(sed -n 's/.*listening on \(http[^ ]*\).*/\1/p' "$T/serve") && [ -n "$url" ] || gone "$pid"; }
if [ -z "$url" ] && [ -f "$CHAT" ]; then
    "$HONE" serve -m "$CHAT" --port 0 -t 2 >/dev/null 2>"$T/serve" &
    pid=$!
    await listens
fi
timeout 900 python3 tests/e2e/page_test.py "$browser" "$page" "$folder" ${url:+"$url/"}
rc=$?
if [ -n "$pid" ]; then
    kill "$pid"
    wait "$pid" 2>/dev/null
fi
exit $rc
