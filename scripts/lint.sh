#!/bin/sh
# The rules of the house that a program can check. Usage: lint.sh [ROOT]
# Prints one line per breach, exits 1 if there was one. Rules that are a matter of
# judgement are in docs/DEVELOPING.md, not here.
set -u
root=${1:-.}
lint=$(cd "$(dirname "$0")" && pwd)/lint.sh
cd "$root" || exit 1
CC=${CC:-gcc}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
: >"$tmp/breaches"
breach() { echo "$*" >>"$tmp/breaches"; }

# The list of DESIGN: a room includes itself and the rooms before it.
rooms="base quant gguf kernels backend template text model engine forge train"
# the rooms of the laboratory, likewise; they see hone.h and base/, machine/ also the kernels whose peaks it measures,
# inside/ the whole library
lab_rooms="stats machine record quality bench inside judge"
app="base lab"

sources=$(find include src tests -name '*.[ch]' 2>/dev/null | sort)
in_src=$(find src -name '*.[ch]' 2>/dev/null | sort)

# 1. arrows
for dir in src/*/; do
    room=$(basename "$dir")
    case " $rooms lab hub serve cli " in
    *" $room "*) ;;
    *) breach "src/$room: not a room of the house (rooms: $rooms lab hub serve cli)" ;;
    esac
done
# one pass over all files; whether a header is in its own room is looked up in a list
headers=$(find src -name '*.[ch]' 2>/dev/null)
[ -z "$in_src" ] || awk -v rooms="$rooms" -v lab_rooms="$lab_rooms" -v app="$app" -v headers="$headers" '
    function spaced(list) { gsub(/ /, "/ ", list); return list "/" }
    BEGIN {
        n = split(headers, h, "\n")
        for (i = 1; i <= n; i++) there[h[i]] = 1
        n = split(rooms, r, " ")
        for (i = 1; i <= n; i++) { sum = sum (i > 1 ? " " : "") r[i]; allowed_of[r[i]] = sum }
        n = split(lab_rooms, r, " ")
        for (i = 1; i <= n; i++) {
            left = left (i > 1 ? " " : "") "lab/" r[i]
            allowed_of["lab/" r[i]] = (r[i] == "inside" ? rooms : r[i] == "machine" ? "base kernels" : "base") " " left
        }
        allowed_of["hub"] = "base hub"
        allowed_of["serve"] = app " serve"
        allowed_of["cli"] = app " hub serve cli"
    }
    FNR == 1 {
        dir = FILENAME
        sub(/[^\/]*$/, "", dir)
        room = FILENAME
        sub(/^src\//, "", room)
        sub(room ~ /^lab\/.*\// ? "/[^/]*$" : "/.*", "", room)
        allowed = allowed_of[room]
        if (allowed == "" && room ~ /^lab/) print FILENAME ":1: lab/ has rooms; expected it in one of them (" lab_rooms ")"
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ && allowed != "" {
        inc = $0
        sub(/^[^"]*"/, "", inc)
        sub(/".*/, "", inc)
        at = FILENAME ":" FNR ": "
        if (inc == "hone.h") next
        if (inc ~ /^(\.\.|src|tests)\// || inc ~ /\/\.\.\//) {
            print at "include \"" inc "\": name it from src/, as \"room/file.h\""
        } else if (inc ~ /\//) {
            of = inc
            sub(room ~ /^lab/ && inc ~ /^lab\/.*\// ? "/[^/]*$" : "/.*", "", of)
            if (index(" " allowed " ", " " of " ") == 0)
                print at room "/ may not include " inc " (allowed: hone.h and " spaced(allowed) ")"
        } else if (!((dir inc) in there)) {
            print at "include \"" inc "\": not in this room; name it \"room/file.h\""
        }
    }' $in_src >>"$tmp/breaches"

# 2. unique basenames of C files (headers: one per room, likewise)
for f in $in_src; do echo "$(basename "$f") $f"; done | sort | awk '
    $1 == last { print $2 ": same basename as " where } { last = $1; where = $2 }' >>"$tmp/breaches"

# 3. length; 4. every source opens by saying what it owns
[ -z "$sources" ] || awk '
    function ended() { if (file && lines > 1500) print file ": " lines " lines; split by concept before 1500" }
    FNR == 1 {
        ended()
        file = FILENAME
        if (substr($0, 1, 2) != "/*" && substr($0, 1, 2) != "//") print file ":1: does not open with a comment that says what it owns"
    }
    { lines = FNR }
    END { ended() }' $sources >>"$tmp/breaches"
find include src tests -name '*.[ch]' -size 0 2>/dev/null | sed 's/$/:1: does not open with a comment that says what it owns: it is empty/' >>"$tmp/breaches"

# 3b. 120 columns, counted in characters; generated tables excepted. Where there is the clang-format that .clang-format
# was written for, also its layout
shown=$(echo "$sources" | xargs grep -L 'clang-format off' /dev/null)
[ -z "$shown" ] || LC_ALL=C awk '
    length > 120 {
        gsub(/[\200-\277]/, "") # what goes on with a character
        if (length > 120) print FILENAME ":" FNR ": " length " columns, more than 120"
    }' $shown >>"$tmp/breaches"
# … and for the page of the server, whose sources are sent as they stand
for f in $(find src \( -name '*.js' -o -name '*.css' \) 2>/dev/null | sort); do
    head -n 1 "$f" | grep -q '^/\*' || echo "$f:1: does not open with a comment that says what it owns"
    LC_ALL=C sed 's/[\x80-\xBF]//g' "$f" | LC_ALL=C awk -v f="$f" '
        length > 120 { print f ":" NR ": " length " columns, more than 120" }
        /[ \t]$/ { print f ":" NR ": trailing blank" }
        END { if (NR > 1000) print f ": " NR " lines; split by concept before 1000" }'
done >>"$tmp/breaches"
if [ -f .clang-format ]; then
    if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        echo "$shown" | xargs clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^ ]*\): error: code should be.*/\1: not as make format lays it out/p' >>"$tmp/breaches"
    else
        echo "SKIP: layout: no clang-format 14" >&2
    fi
fi

# C files without comments and string contents; line numbers kept. What stands between quotes and
# comments is taken over in one piece.
for d in $(find src -type d 2>/dev/null); do mkdir -p "$tmp/bare/$d"; done
[ -z "$in_src" ] || awk -v to="$tmp/bare/" '
    FNR == 1 { if (dst) close(dst); dst = to FILENAME; inside = 0 }
    {
        out = ""; s = $0
        while (length(s)) {
            if (inside) {
                i = index(s, "*/")
                if (!i) break
                inside = 0; s = substr(s, i + 2); continue
            }
            if (match(s, /^[^"\047\/]+/)) { out = out substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1); continue }
            if (match(s, /^"([^"\\]|\\.)*"/)) { out = out "\"\""; s = substr(s, RLENGTH + 1); continue }
            if (match(s, /^\047([^\047\\]|\\.)+\047/)) { out = out "0"; s = substr(s, RLENGTH + 1); continue }
            if (substr(s, 1, 2) == "//") break
            if (substr(s, 1, 2) == "/*") { inside = 1; s = substr(s, 3); continue }
            out = out substr(s, 1, 1); s = substr(s, 2)
        }
        print out >dst
    }' $in_src
# matches PATTERN FILE…: "file:line: text" in bare code
matches() {
    pattern=$1
    shift
    [ $# -eq 0 ] || (cd "$tmp/bare" && grep -nE "$pattern" "$@" /dev/null) | sed 's|^\([^:]*:[0-9]*\):[[:space:]]*|\1: |'
}

# 5. the library never exits, aborts or prints
library=$(for r in $rooms; do find "src/$r" -name '*.[ch]' 2>/dev/null; done | sort)
matches '(^|[^A-Za-z0-9_.>])(exit|_exit|_Exit|quick_exit|abort|printf|vprintf|puts|putchar|perror|err|errx|warn|warnx)[[:space:]]*\(' $library |
    sed 's/$/   <- the library never exits, aborts or prints/' >>"$tmp/breaches"
# stderr belongs to hn_log, in one file
matches '(^|[^A-Za-z0-9_])(stderr|stdout)([^A-Za-z0-9_]|$)' $(echo "$library" | grep -v '^src/base/error\.c$') |
    sed 's/$/   <- only hn_log (base\/error.c) writes to a terminal/' >>"$tmp/breaches"
# the program's own words leave by out.c, which knows what a terminal may be given; chat_line.c hands the editor its streams
matches '(^|[^A-Za-z0-9_])((printf|vprintf|puts|putchar|perror|dprintf)[[:space:]]*\(|f(printf|puts|putc|write)[[:space:]]*\(.*std(out|err)|vfprintf[[:space:]]*\()' \
    $(find src/cli src/serve -name '*.[ch]' 2>/dev/null | grep -v '^src/cli/out\.c$' | sort) |
    sed 's/$/   <- text leaves by hn_out_… and hn_err_printf (cli\/out.c)/' >>"$tmp/breaches"

# files are mapped by base/mapped.c, which can tell later which one a fault was in
matches '(^|[^A-Za-z0-9_])((mmap|munmap)[[:space:]]*\(|hn_os_map_file[[:space:]]*\()' \
    $(echo "$in_src" | grep -vE '^src/base/(mapped|os|arena)\.c$|^src/base/os\.h$|^src/lab/inside/bench_machine\.c$') |
    sed 's/$/   <- hn_mapped_open and hn_mapped_close (base\/mapped.h), hn_pages_alloc/' >>"$tmp/breaches"

# 6. calls that are wrong everywhere
matches '(^|[^A-Za-z0-9_])(gets|strcpy|strcat|sprintf|vsprintf|strtok|alloca|atoi|atol|atof|rand|srand)[[:space:]]*\(' $in_src |
    sed 's/$/   <- unbounded, unchecked or global state/' >>"$tmp/breaches"

# 7. nothing may loosen floating point, in a file or in the build
for f in Makefile $(find . -maxdepth 1 -name '*.mk') $in_src; do
    [ -f "$f" ] || continue
    grep -nE -- '-ffast-math|-Ofast|-funsafe-math|fast-math"|FP_CONTRACT[[:space:]]+ON|fp_contract\(fast\)' "$f" |
        grep -v 'NUMERIC_FORBIDDEN' | sed "s|^|$f:|; s|\$|   <- changes results with the compiler|"
done >"$tmp/fast"
# the list of refused flags in sources.mk names them itself
grep -v '^\./sources\.mk:' "$tmp/fast" >>"$tmp/breaches"

# 8. promises in the code
grep -nwE 'TODO|FIXME|XXX|HACK' $sources /dev/null | sed 's/$/   <- do it or write an issue/' >>"$tmp/breaches"

# what was fetched or made: programs, archives, a fuzzer's finds
find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.whl' -o -name '*.zip' -o -name '*.tar' \
    -o -name '*.tar.*' -o -name '*.tgz' -o -name '*.o' -o -name '*.a' -o -name '*.so' -o -name 'crash-*' \) -print |
    sed 's|^\./||; s/$/: a program, an archive or a find: not part of the tree/' >>"$tmp/breaches"

# 9. tabs and trailing blanks in C
grep -nE "$(printf '\t')|[[:space:]]+\$" $sources /dev/null | sed 's/^\([^:]*:[0-9]*\):.*/\1: tab or trailing blank/' >>"$tmp/breaches"

# 10. the public header stands alone, in C and in C++
if [ -f include/hone.h ]; then
    for l in 'c -std=c99' 'c -std=c11' 'c++ -std=c++11'; do
        set -- $l
        case $1 in c++) comp=${CXX:-$CC} ;; *) comp=$CC ;; esac
        echo '#include "hone.h"' | $comp -x "$1" "$2" -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only - 2>"$tmp/cc" && continue
        if [ "$1" = c++ ] && ! echo 'int main(){}' | $comp -x c++ -fsyntax-only - 2>/dev/null; then
            echo "SKIP: include/hone.h as C++: no C++ compiler" >&2
            continue
        fi
        breach "include/hone.h: does not compile alone as $1 ($2): $(grep -m1 error "$tmp/cc")"
    done
    grep -n '^[[:space:]]*#[[:space:]]*include' include/hone.h | grep -vE '<(stdbool|stddef|stdint)\.h>' |
        sed 's|^|include/hone.h:|; s|$|   <- the public header needs only stdbool, stddef, stdint|' >>"$tmp/breaches"
else
    breach "include/hone.h: missing"
fi

# 11. exported names: hone_ in the header, hn_ across files
grep -nE '^HONE_API' include/hone.h 2>/dev/null | grep -vE '[ *]hone_[a-z0-9_]+\(' |
    sed 's|^|include/hone.h:|; s|$|   <- public names start with hone_|' >>"$tmp/breaches"

# 12. what one system has and another lacks, or has with another meaning, is asked for in
# base/os.c alone (macOS and Linux are the measure)
portable=$(echo "$in_src" | grep -v '^src/base/os\.c$')
names='getauxval|sysctlbyname|sysctl|syscall|prctl|personality|getrandom|getentropy|pipe2|accept4|ppoll|epoll_[a-z0-9_]+|eventfd|timerfd_[a-z]+|signalfd'
names="$names|inotify_[a-z0-9_]+|memfd_create|mremap|mincore|madvise|posix_fadvise|posix_fallocate|fallocate|sync_file_range|copy_file_range|sendfile|renameat2|fdatasync"
names="$names|sched_[gs]etaffinity|sched_getcpu|pthread_[gs]etaffinity_np|pthread_[gs]etname_np|pthread_barrier_[a-z]+|pthread_spin_[a-z]+|pthread_[a-z]+_timed[a-z]*lock"
names="$names|pthread_condattr_setclock|sem_init|sem_timedwait|clock_nanosleep|timer_create|sigtimedwait|sigwaitinfo|get_nprocs|get_nprocs_conf"
names="$names|qsort_r|memrchr|rawmemchr|mempcpy|strchrnul|strverscmp|strerror_r|secure_getenv|canonicalize_file_name|execvpe|fexecve|fopencookie|error_at_line|reallocarray|malloc_[a-z_]+|mall(opt|info2?)"
matches "(^|[^A-Za-z0-9_.>])($names)[[:space:]]*\\(" $portable |
    sed 's/$/   <- not on every system; base\/os.c is the place/' >>"$tmp/breaches"
matches '(^|[^A-Za-z0-9_])(program_invocation_(short_)?name|MAP_(POPULATE|HUGETLB|LOCKED|FIXED_NOREPLACE|STACK)|MADV_[A-Z_]+|POSIX_FADV_[A-Z]+|O_(TMPFILE|DIRECT|PATH|NOATIME)|SOCK_(CLOEXEC|NONBLOCK)|MSG_NOSIGNAL|RUSAGE_THREAD|RTLD_DEEPBIND|st_[acm]tim(espec)?|FUTEX_[A-Z_]+|SYS_[a-z]+)([^A-Za-z0-9_]|$)' $portable |
    sed 's/$/   <- not on every system; base\/os.c is the place/' >>"$tmp/breaches"
matches '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(linux/|mach|asm/|gnu/|features\.h|malloc\.h|error\.h|argp\.h|sys/(auxv|prctl|syscall|random|sysctl|sysinfo|epoll|eventfd|sendfile|inotify|timerfd|signalfd)\.h)' $portable |
    sed 's/$/   <- not on every system; base\/os.c is the place/' >>"$tmp/breaches"
matches '__attribute__[[:space:]]*\(\([^)]*(alias|ifunc|symver)' $portable |
    sed 's/$/   <- ELF only/' >>"$tmp/breaches"
# the laboratory reads more of Linux than there is elsewhere, and says "unknown" there
grep -nE '"/(proc|sys)/' $(echo "$portable" | grep -v '^src/lab/') /dev/null |
    sed 's/$/   <- files of Linux: base\/os.c or lab\//' >>"$tmp/breaches"

# 13. one reader of JSON: jansson's own drops bytes of strings where memory runs out, and reads past their end
matches '(^|[^A-Za-z0-9_])json_(loads|loadb|loadf|loadfd|load_file|load_callback)[[:space:]]*\(' $in_src |
    sed 's/$/   <- base\/json_tree.h is the reader of JSON/' >>"$tmp/breaches"

# 14. whole files are written by base/file.h, which leaves nothing half done: elsewhere nothing makes, cuts or renames a
# file. What may, by function and word: a log that grows; what a child says, in a file without a name; builds
# of commits, their lock and their mark
may="hn_train_log_lock:O_CREAT nameless:mkostemp hn_source_scratch:mkostemp build_commit:O_CREAT check_out:O_CREAT check_out:rename"
may="$may lock_open:O_CREAT part_open:O_CREAT part_cut:ftruncate hn_part_publish:rename hn_os_file_room:ftruncate"
writers=$(echo "$in_src" | grep -v '^src/base/file\.c$')
# names of models: links made beside and renamed, and blobs that move where links cannot be
may="$may put_link:symlink put_link:rename hn_cache_link:rename"
[ -z "$writers" ] || (cd "$tmp/bare" && awk -v may="$may" '
    FNR == 1 { fn = "" }
    /^[A-Za-z_].*\(/ { # where a function begins: the name before the first bracket
        fn = $0
        sub(/[ \t]*\(.*/, "", fn)
        sub(/.*[^A-Za-z0-9_]/, "", fn)
    }
    {
        s = $0
        while (match(s, /(^|[^A-Za-z0-9_.>])((rename|renameat|link|linkat|symlink|symlinkat|mkstemp|mkostemp|creat|freopen|truncate|ftruncate|tmpfile)[ \t]*\(|O_CREAT|O_TRUNC)/)) {
            word = substr(s, RSTART, RLENGTH)
            s = substr(s, RSTART + RLENGTH)
            gsub(/[^A-Za-z_]/, "", word)
            if (index(" " may " ", " " fn ":" word " ") == 0)
                print FILENAME ":" FNR ": " word " in " fn "()   <- whole files are written by base/file.h"
        }
    }' $writers) >>"$tmp/breaches"
# shellcheck disable=SC2086
[ -z "$writers" ] || grep -nE '(^|[^A-Za-z0-9_])f(open|dopen)[[:space:]]*\(' $writers /dev/null |
    grep -vE 'open[[:space:]]*\(("[^"]*"|[^"]*), "rb?e?"\)|^[^:]*:[0-9]*:[^"]*(/\*|//).*open' |
    grep -v 'j->log_file = fdopen(fd, "a")' | sed 's/$/   <- whole files are written by base\/file.h/' >>"$tmp/breaches"

# 15. texts and tests/map.txt name what is there
sh "$(dirname "$lint")/lint-docs.sh" . >>"$tmp/breaches" 2>&1

# 16. a type is defined once in the whole tree
[ -z "$in_src" ] || awk '
    /^typedef (struct|enum|union)( hn_[a-z0-9_]+)? *\{/ { inside = 1 }
    inside && /^} *hn_[a-z0-9_]+;/ || /^typedef (struct|enum|union).*\} *hn_[a-z0-9_]+;/ {
        name = $0
        sub(/.*} */, "", name)
        sub(/;.*/, "", name)
        if (name in where) print FILENAME ":" FNR ": " name ": defined in " where[name] " too"
        else where[name] = FILENAME
        inside = 0
    }' $in_src >>"$tmp/breaches"

# 17. an option that a command accepts is read by that command
sh "$(dirname "$lint")/lint-options.sh" . >>"$tmp/breaches" 2>&1

# 18. names of an older version of the API are for other programs: nobody here calls them
matches '(^|[^A-Za-z0-9_])hone_(prefill|decode)[[:space:]]*\(' $(echo "$in_src" | grep -v '^src/engine/session\.c$') |
    sed 's/$/   <- hone_append, hone_run_batch/' >>"$tmp/breaches"

if [ -s "$tmp/breaches" ]; then
    cat "$tmp/breaches"
    echo "lint: $(wc -l <"$tmp/breaches") breaches"
    exit 1
fi
echo "lint: $(echo "$sources" | wc -l) files, no breach"
