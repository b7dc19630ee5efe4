#!/bin/sh
# hone lab report: records of this program to a page, Markdown, CSV and JSON.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME

# ---- records: real ones where the model is, and comparisons of every verdict ----
if [ -f "$TINY" ]; then
    for i in 1 2; do
        expect 0 "a record ($i)" "$HONE" bench -m "$TINY" -p 8 -n 4 -r 2 --no-quality --file "$T/h" --title "tiny <$i>" --change "=$i"
    done
else
    skip "real records" "$TINY is not here"
fi
expect 0 "a kernel's record" "$HONE" bench kern.norm.96 -r 6 --file "$T/h"
for v in SAME:1:0.99:1.01 IMPROVED:1.2:1.1:1.3 REGRESSED:0.8:0.7:0.9 INCONCLUSIVE:0.97:0.93:1.05; do
    IFS=: read -r word ratio lo hi <<EOF
$v
EOF
    echo '{"schema":"hone.ab/1","record":"'"$word"'","ts":"2026-01-01T00:00:00Z","id":"e2e","metric":"decode_tok_s","unit":"tok/s","a":{"label":"old & <tall>"},"b":{"label":"new"},"rounds":[],"ratio":'"$ratio"',"ci95":['"$lo,$hi"'],"margin":0.02,"verdict":"'"$word"'"}'
done >"$T/ab.jsonl"
echo '{"schema":"hone.bench/1","id":"x","valid":false,"invalid_reason":"one token repeated","ts":"2026-01-01T00:00:00Z"}' >>"$T/ab.jsonl"
for met in true false; do # wishes, judged
    echo '{"schema":"hone.bench/1","id":"tok.wish","valid":true,"unit":"us","better":"lower","config":{"variant":"'$met'"},"samples":[1,2,3],"stats":{"n":3,"median":2,"ci95":null},"target":"< 5 us a word","target_met":'$met',"ts":"2026-01-01T00:00:00Z"}'
done >>"$T/ab.jsonl"
printf '{"schema":"hone.be' >>"$T/ab.jsonl"

# ---- formats ----
expect 0 "all formats at once" "$HONE" lab report "$T/h.jsonl" "$T/ab.jsonl" --html "$T/r.html" --md "$T/r.md" --csv "$T/r.csv" --json-out "$T/r.json"
says "a broken line is said" 'note: 1 line skipped'
says "the page begins as one" '^<!DOCTYPE html>$' "$T/r.html"
says "and ends" '^</body></html>$' "$T/r.html"
says "invalid results first" '1 of [0-9]+ results is invalid' "$T/r.html"
for word in SAME IMPROVED REGRESSED INCONCLUSIVE; do
    says "$word on the page" "$word" "$T/r.html"
    says "$word in Markdown" "^\| $word \|" "$T/r.md"
    says "$word in CSV" ",\"$word\"" "$T/r.csv"
done
if [ -f "$TINY" ]; then
    narrow=$(printf '\342\200\257') # a space: of ten thousand and more, thousands stand apart
    says "each run in Markdown, with its title and change" "^\| .* \| tiny &lt;2&gt; \| =2 \| [0-9. $narrow]+ \| tok/s \| [^ ]+" "$T/r.md"
fi
says "a wish that is met" 'target met: &lt; 5 us a word' "$T/r.html"
says "one that is not" 'target missed: &lt; 5 us a word' "$T/r.html"
says "in Markdown" 'target &lt; 5 us a word: not met' "$T/r.md"
says "text is no markup" 'old &amp; &lt;tall&gt;' "$T/r.html"
if grep -qE '<tall>|<script|src=|url\(|@import|https?://[^w]' "$T/r.html"; then not_ok "nothing is loaded or run"; else ok "nothing is loaded or run"; fi
says "schema" '^\{"schema": ?"hone.report/1"' "$T/r.json"
says "skipped lines are counted" '"skipped": ?1' "$T/r.json"
[ -f "$TINY" ] && says "no formula in CSV" "\"'=1\"" "$T/r.csv"
expect 0 "again" "$HONE" lab report "$T/h.jsonl" "$T/ab.jsonl" --html "$T/s.html"
same "the same bytes" "$T/r.html" "$T/s.html"
for f in html md csv; do
    expect 0 "--$f -" "$HONE" lab report "$T/h.jsonl" "$T/ab.jsonl" "--$f" -
    same "stdout is the file ($f)" "$T/out" "$T/r.$f"
done
expect 0 "--json" "$HONE" lab report "$T/h.jsonl" "$T/ab.jsonl" --json
same "stdout is the file (json)" "$T/out" "$T/r.json"
expect 0 "Markdown where nothing is said" "$HONE" lab report "$T/h.jsonl" "$T/ab.jsonl"
same "stdout is the file (default)" "$T/out" "$T/r.md"
expect 0 "title and date" "$HONE" lab report "$T/ab.jsonl" --md - --title 'T & <U>' --date 2020-02-03T04:05:06Z
says "the title, as text" '^# T &amp; &lt;U&gt;$' "$T/out"
says "the date" '^3 Feb 2020 04:05' "$T/out"
"$HONE" lab peaks --quick --json -t 1 >"$T/peaks.json" 2>/dev/null
expect 0 "with the roof" "$HONE" lab report "$T/h.jsonl" "$T/peaks.json" --json
says "a quick trial is doubtful" '"kind": ?"doubtful"' "$T/out"

# ---- what does not work ----
expect 2 "no file" "$HONE" lab report
expect 2 "two reports to stdout" "$HONE" lab report "$T/ab.jsonl" --html - --md -
expect 2 "one file for two" "$HONE" lab report "$T/ab.jsonl" --html "$T/x" --md "$T/x"
expect 2 "over what is read" "$HONE" lab report "$T/ab.jsonl" --html "$T/ab.jsonl"
says "names it" 'is to be read'
expect 1 "a file that is not there" "$HONE" lab report "$T/none.jsonl" --html "$T/x"
echo 'nothing' >"$T/no.jsonl"
expect 1 "no records" "$HONE" lab report "$T/no.jsonl" --html "$T/x"
says "how to get some" 'hone bench'
[ -e "$T/x" ] && not_ok "nothing was written" || ok "nothing was written"
expect 1 "where no folder can be" "$HONE" lab report "$T/ab.jsonl" --html /dev/null/x.html

finish
