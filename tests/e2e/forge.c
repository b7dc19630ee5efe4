/* forge: changes a member of a stored baseline and signs it again, as whoever forges one would.
 * Usage: forge FILE KEY JSON >NEW. KEY: a member, or MEMBER.MEMBER; JSON: its new value. */
#include "base/base.h"

#include <jansson.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned char d[32];
    char hex[65], *dot;
    hn_sha256 h;
    if (argc != 4) return 2;
    json_t *b = json_load_file(argv[1], 0, NULL), *v = json_loads(argv[3], JSON_DECODE_ANY, NULL), *o = b;
    if (!b || !v) return 1;
    for (char *key = argv[2]; o; key = dot + 1) {
        dot = strchr(key, '.');
        if (dot) *dot = 0;
        if (!dot) {
            json_object_set(o, key, v);
            break;
        }
        o = json_is_array(json_object_get(o, key)) ? json_array_get(json_object_get(o, key), 0)
                                                   : json_object_get(o, key);
    }
    json_object_del(b, "sum");
    char *s = json_dumps(b, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(12));
    hn_sha256_init(&h);
    hn_sha256_add(&h, s, strlen(s));
    hn_sha256_end(&h, d);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
    json_object_set_new(b, "sum", json_string(hex));
    puts(json_dumps(b, JSON_INDENT(1) | JSON_REAL_PRECISION(12)));
    return 0;
}
