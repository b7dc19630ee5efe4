#!/bin/sh
# What files say must not steer the program: forged baselines (settings, ids, wrong types), histories of many records,
# an interruption while they are read, and texts in records that are formulas, markup or words for a terminal.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME
unset HONE_CPU HONE_PACKED
D=$T/baselines
mkdir "$D"

# ---- forged baselines ----
expect 0 "a baseline without a model" "$HONE" lab baseline save own tensor.elementwise -r 3 --dir "$D"
if ! ${CC:-cc} -O1 -D_GNU_SOURCE -Iinclude -Isrc -o "$T/forge" tests/e2e/forge.c src/base/sha256.c \
    $(pkg-config --cflags --libs jansson 2>/dev/null || echo -ljansson) 2>"$T/err"; then
    skip "forged baselines" "no compiler for tests/e2e/forge.c"
else
    forge() { "$T/forge" "$D/own.json" "$1" "$2" >"$D/forged.json" || not_ok "forging $1"; }
    forge name '"own"'
    expect 0 "what is only signed again is taken" "$HONE" lab baseline compare forged --dir "$D" -r 3
    # refuses WHAT KEY JSON WORDS: all commands that read it do, with these words; nothing is written
    refuses() {
        forge "$2" "$3"
        for _cmd in "lab baseline compare forged -r 3" "lab gate --baseline forged -r 6" ${5:+"lab gate --baseline forged --ab this" "lab baseline list"}; do
            expect 1 "$1: $_cmd" "$HONE" $_cmd --dir "$D"
            says "$1 is named ($_cmd)" "forged.json: .*$4"
        done
        [ -e "$T/evil.jsonl" ] || [ -e "$T/evil.md" ] && not_ok "$1: a file was written" || ok "$1: nothing was written"
        rm -f "$T"/evil.*
    }
    refuses "an output" args "[\"--file=$T/evil\"]" 'args\[0\] is .--file=' everywhere
    refuses "a short output" args "[\"-f\", \"$T/evil\"]" 'args\[0\] is .-f'
    refuses "a path" args "[\"--n-gen=1\", \"--packed=$T/evil\"]" 'args\[1\] is .--packed='
    refuses "a variable" args '["HONE_CPU=scalar"]' 'args\[0\]'
    refuses "an option without its value" args '["--threads"]' 'args\[0\] is .--threads., expected --threads='
    refuses "a number out of range" args '["--threads=0"]' 'args\[0\].*expected --threads=a number of 1 to 1024'
    for v in 'null' '7' '"x"' '{}' 'true' '[7]' '[null]' '[[]]' '[{}]'; do
        refuses "args $v" args "$v" 'field args.*expected'
        refuses "ids $v" ids "$v" 'field ids.*expected' everywhere
    done
    refuses "no ids" ids '[]' 'field ids is an array of 0, expected an array of 1'
    refuses "an id that is an option" ids "[\"--file=$T/evil\"]" 'field ids\[0\].*expected a plain name'
    refuses "records of options" records.id "\"--file=$T/evil\"" 'records\[0\].*--file='
    refuses "samples of another type" records.samples '"x"' 'records\[0\].*field samples is "x", expected an array'
    refuses "a machine of another type" env '[]' 'field env is an array of 0, expected an object'
    refuses "a model of another type" model '"x"' 'field model is "x", expected an object or null'
    refuses "a model without a file" model '{"path":5,"bytes":1,"sha256":"a","files":[]}' 'field model.path is 5, expected a string'
    rm "$D/forged.json"
fi
expect 2 "what a file cannot keep is not saved" "$HONE" lab baseline save odd tensor.elementwise -r 3 "--bench-arg=--file=$T/evil" --dir "$D"
says "and named" '\-\-file='

# ---- many records: the time of four times as many is about four times as long ----
records() { # records N WHAT
    awk -v n="$1" -v what="$2" 'BEGIN { for (i = 0; i < n; i++) {
        ts = what == "distinct" ? sprintf("2026-01-%02dT%02d:%02d:%02dZ", 1 + i / 86400, i / 3600 % 24, i / 60 % 60, i % 60) : "2026-01-01T00:00:00Z"
        printf "{\"schema\":\"hone.bench/1\",\"id\":\"%s\",\"record\":\"r\",\"ts\":\"%s\",\"valid\":%s,\"invalid_reason\":\"x\",\"title\":\"t\",", (what == "ids" ? "tok.x" i : "tok.encode"), ts, (what == "invalid" ? "false" : "true")
        printf "\"unit\":\"us\",\"better\":\"lower\",\"config\":{\"threads\":%d},\"env\":{\"hash\":\"%s\"},\"model\":{\"fingerprint\":\"f%s\"},", (what == "configs" ? i : 2), (what == "machines" ? "m" i : "m"), (what == "models" ? i : "")
        printf "\"quality\":\"q1-%08x-00000000\",\"samples\":[1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,%d],\"stats\":{\"n\":3,\"median\":%d,\"ci95\":[1,3]}}\n", (what == "quality" ? i : 0), i, i % 7 + 1 } }'
}
cpu() { # cpu COMMAND…: hundredths of a second of processor time, in $used
    ("$@" >"$T/out" 2>"$T/err" </dev/null && times >"$T/time") || not_ok "$*" "$T/err" # the second line: of children
    used=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, "m"); s += 60 * t[1] + t[2] } }
        END { printf "%d", 100 * s + 1 }' "$T/time")
}
for what in same distinct ids models machines configs invalid quality; do
    records 1000 $what >"$T/few.jsonl"
    records 4000 $what >"$T/many.jsonl"
    for command in "report" "history"; do
        ext=; [ $command = report ] && ext=.jsonl
        cpu "$HONE" lab $command "$T/few$ext" --json
        few=$used
        cpu "$HONE" lab $command "$T/many$ext" --json
        # 4 when linear, 16 when quadratic; small times are rounded up and say little
        if [ $used -le $((few * 9 + 10)) ]; then ok "$command: four times as many records ($what)"
        else not_ok "$command: 4000 records ($what) take ${used}0 ms, 1000 ${few}0 ms"; fi
    done
done

# ---- an interruption while a history is read ----
mkfifo "$T/slow.jsonl"
for sig in TERM INT; do
    for command in "lab report $T/slow.jsonl --md $T/slow.md" "lab history $T/slow" "lab baseline save x --from $T/slow --dir $D"; do
        # a writer that never ends, and gets through only when somebody reads
        rm -f "$T/opened"
        (exec 3>"$T/slow.jsonl"; records 50 same >&3; : >"$T/opened"; exec sleep 60) &
        writer=$!
        "$HONE" $command >"$T/out" 2>"$T/err" </dev/null &
        pid=$!
        (sleep 50; kill -KILL $pid) 2>/dev/null &
        watch=$!
        while [ ! -e "$T/opened" ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
        kill -$sig $pid 2>/dev/null
        wait $pid
        rc=$?
        kill $watch 2>/dev/null
        wait $watch 2>/dev/null
        [ $rc -eq 6 ] && ok "SIG$sig ends: $command" || { echo "# exit $rc"; not_ok "SIG$sig ends: $command" "$T/err"; }
        kill $writer 2>/dev/null
        wait $writer 2>/dev/null
    done
done
[ -e "$T/slow.md" ] && not_ok "nothing half was written" || ok "nothing half was written"

# ---- texts in records ----
evil='</script><img src=x onerror=alert(1)>|`x`[a](javascript:b)'
for begin in = + - @; do
    printf '{"schema":"hone.bench/1","id":"%scmd|x","record":"%s","ts":"%s1","title":"%s","change":"%s","valid":true,"unit":"%s","config":{"variant":"%s"},"env":{"hash":"%s"},' \
        "$begin" "$evil" "$begin" "$evil" "$evil" "$begin" "$evil" "$begin" >>"$T/evil-texts.jsonl"
    printf '"model":{"path_name":"%s","fingerprint":"x"},"git":{"commit":"%s"},"samples":[1,2,3],"stats":{"n":3,"median":2,"ci95":[1,3]}}\n' "$evil" "$evil" >>"$T/evil-texts.jsonl"
done
expect 0 "texts that are more than texts" "$HONE" lab report "$T/evil-texts.jsonl" --html "$T/e.html" --md "$T/e.md" --csv "$T/e.csv" --title "$evil"
if grep -qiE '<(script|img|/script)' "$T/e.html" "$T/e.md"; then not_ok "no markup comes through"; else ok "no markup comes through"; fi
if grep -qE '(^|,)"?[=+@-][^0-9]' "$T/e.csv"; then not_ok "no formula comes through" "$T/e.csv"; else ok "no formula comes through"; fi

# ---- two files beside each other ----
row() { # ID THREADS UNIT QUALITY PROOF SAMPLES…
    printf '{"schema":"hone.bench/1","id":"%s","record":"x","ts":"2026-01-01","valid":true,"unit":"%s","better":"higher","config":{"threads":%s},"quality":"%s",' "$1" "$3" "$2" "$4"
    printf '"env":{"hash":"11111111"},"model":{"path_name":"m","fingerprint":"f"},"extra":{"proof":{"steps":2,"last":"%s"}},' "$5"
    shift 5
    printf '"samples":[%s],"stats":{"n":6,"median":1,"ci95":null}}\n' "$(echo "$*" | tr ' ' ',')"
}
{
    row e2e.gen 1 tok/s q2-11111111-11111111 aa 10 10 10 10 10 10
    row e2e.cpu 1 tok/s q2-11111111-11111111 aa 10 10 10 10 10 10
    row tok.encode 1 tok/s q2-11111111-11111111 aa 10 10 10 10 10 10
    row kern.add 1 GB/s q2-11111111-11111111 aa 10 10 10 10 10 10
    row load.total 1 tok/s q2-11111111-11111111 aa 10 10 10 10 10 10
} >"$T/da.jsonl"
{
    row e2e.gen 1 tok/s q2-11111111-11111111 aa 20 20 20 20 20 20
    row e2e.cpu 1 tok/s q2-11111111-22222222 aa 20 20 20 20 20 20
    row tok.encode 1 tok/s q2-11111111-11111111 bb 20 20 20 20 20 20
    row kern.add 2 GB/s q2-11111111-11111111 aa 20 20 20 20 20 20
    row load.total 1 tok/s q2-11111111-11111111 aa 5 5 5 5 5 5
    row mem.read 1 GB/s q2-11111111-11111111 aa 20 20 20 20 20 20
} >"$T/db.jsonl"
expect 0 "lab diff" "$HONE" lab diff "$T/da.jsonl" "$T/db.jsonl"
says "a row is paired" '^e2e.gen +10 +20 tok/s +2.000' "$T/out"
says "the geometric mean of 2 and 1/2" '^mean +1.000: geometric, of the speeds of 2 rows' "$T/out"
says "another quality is told" '^e2e.cpu +different answers: quality q2-11111111-11111111 and q2-11111111-22222222' "$T/out"
says "another proof is told" '^tok.encode +different answers: the timed runs' "$T/out"
says "why a row has no partner: its settings" '^kern.add +no partner in b: threads is 1, there 2' "$T/out"
says "why a row has no partner: nothing of the kind" '^mem.read +no partner in a: nothing of the kind' "$T/out"
expect 1 "nothing in common" "$HONE" lab diff "$T/da.jsonl" "$T/evil-texts.jsonl"

finish
