#!/bin/sh
# The page of `hone serve`, one file, to standard output. Usage: join-page.sh HTML CSS SCRIPT…
# The line @STYLE@ of HTML becomes CSS, @SCRIPT@ the scripts in this order. Nothing else is changed, and nothing is left out:
# whoever looks at the page's source reads what is in the tree.
set -eu
html=$1 css=$2
shift 2
for f in "$html" "$css" "$@"; do
    [ -r "$f" ] || { echo "join-page.sh: $f: no such file" >&2; exit 1; }
done
sed '/^@STYLE@$/,$d' "$html"
cat "$css"
sed '1,/^@STYLE@$/d; /^@SCRIPT@$/,$d' "$html"
echo "'use strict';"
cat "$@"
sed '1,/^@SCRIPT@$/d' "$html"
