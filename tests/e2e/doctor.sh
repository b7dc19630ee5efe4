#!/bin/sh
# hone doctor: the record, the warnings, --strict. What is warned of on made-up machines
# is in tests/unit/test_lab_doctor.c.
. tests/e2e/lib.sh

XDG_STATE_HOME=$T/state
export XDG_STATE_HOME

expect 0 "doctor for people" "$HONE" doctor
cp "$T/out" "$T/people"
for key in 'cpu +model' governor temperature_c thp steal_pct cpu_max aslr flags 'virtual'; do says "shows $key" "(^| )$key " "$T/people"; done
says "what to do" '^warning  the roof is not known' "$T/people"
says "… in a line of its own" '^ +do: hone lab peaks$' "$T/people"
expect 0 "doctor as JSON" "$HONE" doctor --json
says "schema" '^\{"schema": ?"hone.doctor/1"' "$T/out"
says "not ok" '"ok": ?false' "$T/out"
says "a warning with its id" '"id": ?"peaks"' "$T/out"
says "the hash of records" '"env_hash": ?"[0-9a-f]{8}"' "$T/out"
expect 13 "strict: not fit" "$HONE" doctor --strict
says "says how many" '[0-9]+ warnings?: this machine is not fit'
expect 13 "strict as JSON" "$HONE" doctor --strict --json
says "prints the record all the same" '"warnings": ?\[' "$T/out"
expect 0 "hone lab doctor is the same" "$HONE" lab doctor --json
says "… record" '^\{"schema": ?"hone.doctor/1"' "$T/out"
expect 3 "no such model" "$HONE" doctor -m "$T/none.gguf"
expect 2 "unknown level" "$HONE" doctor --cpu vax
if [ -f "$TINY" ] && command -v sha256sum >/dev/null 2>&1; then
    expect 0 "with a model" "$HONE" doctor -m "$TINY" --json
    says "its SHA-256" "\"sha256\": ?\"$(sha256sum "$TINY" | cut -c 1-64)\"" "$T/out"
fi
# a stored roof that is quiet takes the warning away
file=$("$HONE" lab peaks --quick --json | sed -n 's/.*"file": *"\([^"]*\)".*/\1/p')
mkdir -p "$T/state/hone"
"$HONE" lab peaks --quick --json | sed -e 's/"quick": *true/"quick": false/' -e 's/"doubts": *"[^"]*"/"doubts": null/' \
    -e 's/"cpu_use": *[0-9][0-9.e+-]*/"cpu_use": 1/g' -e 's/"spread": *[0-9][0-9.e+-]*/"spread": 0.01/g' \
    -e 's/"best": *[0-9.e+-]*/"best": 300/g' -e 's/"most": *[0-9.e+-]*/"most": 300/g' -e 's/"median": *[0-9.e+-]*/"median": 300/g' >"$file"
[ -s "$file" ] && ok "quick peaks, made to look measured" || not_ok "quick peaks, made to look measured"
expect 0 "with peaks" "$HONE" doctor --json
if grep -q '"id": *"peaks' "$T/out"; then not_ok "no warning of the roof" "$T/out"; else ok "no warning of the roof"; fi
says "the peaks are in the record" '"read_gb_s": ?[0-9.]+' "$T/out"

finish
