#!/bin/sh
# Every option that a command accepts is read by that command: its name stands in a function that the command's run can
# reach, or it is handed on (.forward) and run reaches hn_opts_forward. Usage: lint-options.sh [ROOT]; scripts/lint.sh calls it.
# Prints one line per breach. Reads src/cli as text, in the layout of make format: a definition begins in the first
# column, and names are looked up in its own file first.
set -u
cd "${1:-.}" || exit 1
files=$(find src/cli -name '*.[ch]' 2>/dev/null | sort)
[ -n "$files" ] || exit 0
awk '
    # the definition at hand: where it is, what names and texts stand in it
    function ended(    key) {
        if (name == "" || !body) { # nothing, or a declaration
            name = said = quoted = ""
            return
        }
        key = local ? file ":" name : name
        if (!(key in words)) { kind[key] = type; home[key] = file }
        words[key] = words[key] said
        texts[key] = texts[key] quoted
        name = said = quoted = ""
    }
    FNR == 1 { ended(); file = FILENAME; depth = 0 }
    {
        line = $0
        begins = depth == 0 && line ~ /^[A-Za-z_]/
        if (begins) {
            ended()
            body = 0
            local = line ~ /^static / && file ~ /\.c$/
            type = line ~ /hn_command[ *]/ ? "command" : line ~ /hn_opt / ? "options" : line ~ /hn_opt_group / ? "group" : "other"
            if (line ~ /^(typedef|enum|struct|extern)/) type = "declared"
        }
        bare = ""
        while (match(line, /"([^"\\]|\\.)*"/)) { # texts apart from code
            text = substr(line, RSTART + 1, RLENGTH - 2)
            bare = bare substr(line, 1, RSTART - 1) " "
            if (bare ~ /HN_OPT\( *$/) { row = text; rows = rows " " text; at[file, text] = FNR }
            else if (text ~ /^[a-z0-9-]+$/) quoted = quoted " " text
            line = substr(line, RSTART + RLENGTH)
        }
        bare = bare line
        sub(/\/\*.*/, "", bare)
        if (bare ~ /\.forward/) forward[file, row] = 1
        if (begins) {
            name = bare
            sub(/ *[=(\[;].*/, "", name)
            sub(/.*[^A-Za-z0-9_]/, "", name)
            if (type == "declared") name = ""
        }
        if (name == "" && bare ~ /^} [a-z_]+[[ ]/) { # a table of a struct without a name
            name = bare
            sub(/^} /, "", name)
            sub(/[^a-z_].*/, "", name)
        }
        if (rows != "" && name != "") { options[local ? file ":" name : name] = options[local ? file ":" name : name] rows; rows = "" }
        code = bare
        gsub(/[^A-Za-z0-9_]+/, " ", code)
        if (name != "") said = said " " code
        if (bare ~ /[{=]/) body = 1
        depth += gsub(/{/, "", bare) - gsub(/}/, "", bare)
    }
    function found(word, from,    local_key) {
        local_key = from ":" word
        return local_key in words ? local_key : word in words ? word : ""
    }
    # all that key leads to, of these kinds: in seen[]
    function walk(key, into,    n, w, i, to) {
        if (key == "" || key in seen) return
        seen[key] = 1
        n = split(words[key], w, " ")
        for (i = 1; i <= n; i++) {
            to = found(w[i], home[key])
            if (to == "" || to in seen) continue
            if (index(into, " " kind[to] " ")) walk(to, into)
        }
    }
    function after(key, field,    s) { # the word behind .field = in an initialiser
        s = words[key] " "
        if (!match(s, " " field " [A-Za-z0-9_]+ ")) return ""
        s = substr(s, RSTART + length(field) + 2)
        sub(/ .*/, "", s)
        return s
    }
    END {
        ended()
        for (c in kind) if (kind[c] == "command" && (run = after(c, "run")) != "") {
            split("", seen)
            walk(found(run, home[c]), " other ")
            split("", read)
            hands_on = 0
            for (f in seen) {
                if (words[f] ~ / hn_opts_forward /) hands_on = 1
                if (words[f] ~ / hn_cli_without_effect /) continue # names what is not read
                n = split(texts[f], t, " ")
                for (i = 1; i <= n; i++) read[t[i]] = 1
            }
            split("", seen)
            walk(found(after(c, "groups"), home[c]), " other group options ")
            for (f in seen) {
                n = split(options[f], o, " ")
                for (i = 1; i <= n; i++)
                    if (!(o[i] in read) && !(hands_on && (home[f], o[i]) in forward))
                        print home[f] ":" at[home[f], o[i]] ": --" o[i] " is accepted by " c ", and not read by it"
            }
        }
    }' $files | sort
