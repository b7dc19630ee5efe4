/* Fuzz target: shapes from JSON, for hone synth and hone train --init. The first byte says for which vocabulary; the
 * rest is the file. A shape that is accepted passes its own check; the plan of a small one adds up.
 * covers: src/forge/synth_presets.c src/forge/synth_config.c src/forge/synth_keys.c */
#include "fuzz_file.h"
#include "forge/synth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_plan(const hn_synth_shape *s, const char *type)
{
    hone_error e = { 0 };
    hn_synth_plan *p = NULL;
    hone_status st = hn_synth_plan_new(&p, s, type, &e);
    FF_MUST((st == HONE_OK) == (p != NULL) && (p || e.message[0]));
    uint64_t n = 0;
    for (size_t i = 0; p && i < p->n; i++) {
        const hn_synth_tensor *t = &p->t[i];
        uint64_t bytes, elems = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
        FF_MUST(t->name[0] && hn_tensor_nbytes(hn_type_get((uint32_t)t->type), t->ne, t->n_dim, &bytes) &&
                bytes == t->n_bytes);
        if (t->base == 0 && !t->values_of[0]) n += elems;
    }
    if (p && !hn_synth_is_rwkv(s)) FF_MUST(n == hn_synth_n_params(s));
    hn_synth_plan_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = { "F32", "F16", "Q8_0", "Q4_K_M", "Q6_K", "nothing" };
    ff_in in = { data, size };
    const char *own;
    if (!*ff_dir) {
        const hone_synth_preset *list;
        ff_begin();
        for (size_t n = hone_synth_presets(&list); n > 0; n--)
            FF_MUST(hn_synth_preset(list[n - 1].name, &own) && !strcmp(own, list[n - 1].name));
    }
    unsigned how = ff_u8(&in);
    char name[24] = ""; /* of a preset: any text */
    memcpy(name, in.p, in.n < sizeof name ? in.n : sizeof name - 1);
    const hn_synth_shape *preset = hn_synth_preset(name, &own);
    if (preset) FF_MUST(hn_synth_preset(own, NULL) == preset && hn_synth_check(preset, name, NULL) == HONE_OK);
    const char *path = ff_put("shape.json", in.p, in.n);
    hn_synth_shape s = { 0 };
    hone_error e = { 0 };
    hone_status st = how & 128 ? hn_synth_config_for(&s, path, 320, &e) : hn_synth_config(&s, path, &e);
    if (st != HONE_OK) {
        FF_MUST(strncmp(e.message, path, strlen(path)) == 0 && !s.owned);
        return 0;
    }
    FF_MUST(hn_synth_check(&s, path, &e) == HONE_OK && s.n_layer >= 1 && (s.keys || s.n_embd >= 1) && s.n_vocab >= 2);
    if (s.n_layer <= 16) make_plan(&s, types[how % 6]);
    if (s.n_layer <= 2 && hn_synth_n_params(&s) < 200000) { /* written, and it is a model */
        const char *dst = ff_path("out.gguf");
        hone_synth_params p = { .config_path = path, .type = types[how % 5], .seed = how, .n_threads = 1 };
        st = hone_synth(&p, dst, NULL, &e);
        FF_MUST(st == HONE_OK || (e.message[0] && access(dst, F_OK) != 0));
        hone_model *m;
        if (st == HONE_OK && !(how & 128)) {
            FF_MUST(hone_model_open(&m, dst, NULL, &e) == HONE_OK || e.message[0]);
            hone_model_close(m);
        }
        unlink(dst);
    }
    hn_synth_shape_free(&s);
    return 0;
}
