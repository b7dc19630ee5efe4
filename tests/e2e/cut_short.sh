#!/bin/sh
# Files that change while they are in use: hone says which one it was and ends with 1, and no other fault is hidden.
. tests/e2e/lib.sh
export XDG_STATE_HOME="$T/state" XDG_CACHE_HOME="$T/cache"
mkfifo "$T/prompt"
M=$T/model.gguf
size=$(wc -c <"$TINY")

# begin ARG…: hone run, which has opened its model and waits for the prompt when this returns
begin() {
    timeout 60 "$HONE" run -m "$M" -f "$T/prompt" -n 8 --temp 0 "$@" >"$T/out" 2>"$T/err" &
    pid=$!
    exec 3>"$T/prompt"
}
go_on() { # go_on: it gets its prompt, and ends
    (echo "Once upon a time" >&3) 2>/dev/null # it may have ended already
    exec 3>&-
    wait "$pid"
    rc=$?
}
is() { # is WHAT RC
    if [ "$rc" -eq "$2" ]; then ok "$1"; else
        echo "# exit $rc, expected $2"
        not_ok "$1" "$T/out" "$T/err"
    fi
}
one_line() { # one_line WHAT
    if [ "$(grep -c . "$T/err")" -eq 1 ]; then ok "$1"; else not_ok "$1" "$T/err"; fi
}

# ---- a model, in the main thread and in workers ----
for t in 1 2; do
    cp "$TINY" "$M"
    begin -t $t
    truncate -s 100000 "$M"
    go_on
    is "a model cut short under run -t $t" 1
    says "… is named, with where and how much" \
        "^hone: .*/model\.gguf was changed or cut short .* \(read at byte [0-9]+ of $size; it has 100000 now\)"
    one_line "… in one line"
done
cp "$TINY" "$M"
begin --json
: >"$M"
go_on
is "a model emptied, --json" 1
says "… is named" 'model\.gguf was changed or cut short'
cp "$TINY" "$M"
begin
truncate -s 100000 "$M"
rm "$M"
go_on
is "a model cut short, then removed" 1
says "… is named" 'model\.gguf was changed or cut short .* there is no such file now'

# ---- cut within its last page: zeros instead of a fault ----
cp "$TINY" "$M"
begin
truncate -s $((size - 64)) "$M"
go_on
is "a model cut by less than a page" 1
says "… is named" "model\.gguf was changed or cut short while it was in use \($size bytes, now $((size - 64))\)"

# ---- written in place: the same size, other numbers ----
cp "$TINY" "$M"
begin
printf 'xyz' | dd of="$M" bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null
go_on
is "a model written to in place" 1
says "… is named" 'model\.gguf was written to while it was in use'

# ---- replaced as one should ----
cp "$TINY" "$M"
begin
cp "$TINY" "$T/new.gguf"
truncate -s 1000 "$T/new.gguf"
mv "$T/new.gguf" "$M"
go_on
is "a model replaced by renaming another over it" 0

# ---- its packed file, an adapter, a split set ----
cp "$TINY" "$M"
run "$HONE" pack -m "$M"
begin
truncate -s 10000 "$M.hpack"
go_on
is "a packed file cut short" 1
says "… is named" 'model\.gguf\.hpack was changed or cut short'
rm -f "$M.hpack"
cp "$TINY" "$M"
printf 'Once upon a\nOnce upon a\n' >"$T/lines"
mkfifo "$T/talk" "$T/answers"
timeout 60 "$HONE" chat -m "$M" --chat-template chatml --temp 0 -n 4 <"$T/talk" >"$T/answers" 2>"$T/err" &
pid=$!
exec 3>"$T/talk" 4<"$T/answers"
echo "Once upon a" >&3
read -r line <&4
truncate -s 100000 "$M"
(echo "And then" >&3) 2>/dev/null # it may have touched the model already, after its answer, and ended
exec 3>&-
cat <&4 >"$T/out"
exec 4<&-
wait "$pid"
rc=$?
is "a model cut short between two answers of a chat" 1
says "… is named" 'model\.gguf was changed or cut short'

# ---- measured processes: the reason reaches the record and the user ----
cp "$TINY" "$M"
timeout 100 "$HONE" bench -m "$M" -p 64 -n 64 -r 9000 >"$T/out" 2>"$T/err" &
pid=$!
sleep 1 # before, within or between its processes: always a failure that names the file
truncate -s 100000 "$M"
wait "$pid"
rc=$?
if [ "$rc" -ne 0 ] && grep -q 'model\.gguf' "$T/err" "$T/out"; then ok "a model cut short under bench"; else
    echo "# exit $rc"
    not_ok "a model cut short under bench" "$T/out" "$T/err"
fi

# ---- what is no file's fault ends as ever ----
cp "$TINY" "$M"
"$HONE" run -m "$M" -f "$T/prompt" -n 8 --temp 0 >"$T/out" 2>"$T/err" &
pid=$!
exec 3>"$T/prompt"
kill -BUS "$pid"
exec 3>&-
wait "$pid" 2>/dev/null
rc=$?
if [ "$rc" -gt 128 ] && [ ! -s "$T/err" ]; then
    ok "a signal from elsewhere kills"
else
    not_ok "a signal from elsewhere kills: $rc" "$T/err"
fi
finish
