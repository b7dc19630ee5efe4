/* Fuzz target: PEFT folders, for a small model that is made once. The input is adapter_config.json, a zero
 * byte, adapter_model.safetensors; without the zero there is no second file, with nothing before it the config is
 * a good one. A folder that is accepted has finite numbers that fit the model, and means the same after hone has
 * written it as a folder and read it again.
 * covers: src/model/lora_peft.c src/model/lora.c src/forge/lora_peft_write.c src/model/ckpt_config.c
 * covers: src/model/safetensors.c src/base/json.c src/forge/lora_halves.c */
#include "lora_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/hone-fuzz-peft-XXXXXX", in[64], out[64];
static char file[2][2][128]; /* of in and out: config, tensors */

static void clean(void)
{
    for (int i = 0; i < 4; i++) unlink(file[i / 2][i % 2]);
    rmdir(in);
    rmdir(out);
    rmdir(dir);
}

static void prepare(void)
{
    PROMISE(mkdtemp(dir) != NULL);
    snprintf(in, sizeof in, "%s/in", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    PROMISE(mkdir(in, 0700) == 0);
    for (int i = 0; i < 4; i++)
        snprintf(file[i / 2][i % 2], sizeof file[0][0], "%s/%s", i / 2 ? out : in,
                 i % 2 ? "adapter_model.safetensors" : "adapter_config.json");
    atexit(clean);
}

static void put_file(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    PROMISE(f && (!n || fwrite(p, 1, n, f) == n) && fclose(f) == 0);
}

/* rslora: the folder's alpha is over √rank. */
static void there_and_back(const hone_model *m, const hn_lora *l, bool rslora)
{
    hn_lora_about about = { .name = "", .arch = l->arch, .type = HN_F16, .rslora = rslora };
    hone_error err = { 0 };
    hn_lora *again;
    const hn_file_use read[] = { { file[0][0], "its config", NULL, HN_FILE_READ } };
    PROMISE(hn_lora_apart(out, true, read, 1, &err) == HONE_OK && hn_lora_apart(in, true, read, 1, &err) != HONE_OK);
    hone_status st = hn_lora_write_peft(out, m, l->pair, l->n_pair, &about, &err);
    PROMISE(st == HONE_OK || (st == HONE_E_NUMERIC && strstr(err.message, "F32"))); /* beyond F16 */
    about.type = HN_Q8_0;
    PROMISE(hn_lora_write_peft(out, m, l->pair, l->n_pair, &about, &err) == HONE_E_ARG);
    about.type = HN_F32;
    PROMISE(hn_lora_write_peft(file[0][0], m, l->pair, l->n_pair, &about, &err) != HONE_OK); /* no folder */
    for (int32_t i = 0; i < l->n_pair; i++)
        if (fabs((double)l->pair[i].scale * (double)l->pair[i].rank) > 9e8) return; /* an alpha that is refused */
    PROMISE(hn_lora_write_peft(out, m, l->pair, l->n_pair, &about, &err) == HONE_OK);
    PROMISE(hn_lora_open(&again, m, out, &err) == HONE_OK && again->n_pair == l->n_pair);
    for (int32_t i = 0; i < l->n_pair; i++) {
        const hn_lora_pair *p = &l->pair[i], *q = &again->pair[i];
        PROMISE(!strcmp(p->name, q->name) && p->rank == q->rank);
        PROMISE(!memcmp(p->a, q->a, (size_t)(p->rank * p->n_in) * sizeof(float)) &&
                !memcmp(p->b, q->b, (size_t)(p->rank * p->n_out) * sizeof(float)));
        PROMISE(fabs((double)p->scale - (double)q->scale) <= 2e-5 * fabs((double)p->scale) + 1e-44);
    }
    hn_lora_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hone_model *m;
    hone_error err = { 0 };
    hn_lora *l;
    if (!m) {
        prepare();
        m = make_model();
    }
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n = zero ? (size_t)(zero - data) : size;
    static const char plain[] = "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4}";
    if (n || !zero) put_file(file[0][0], data, n);
    else put_file(file[0][0], (const uint8_t *)plain, sizeof plain - 1);
    if (zero) put_file(file[0][1], zero + 1, size - n - 1);
    else unlink(file[0][1]);
    hone_status st = hn_lora_open(&l, m, in, &err);
    PROMISE((st == HONE_OK) == (l != NULL));
    if (!l) {
        PROMISE(strstr(err.message, in) != NULL); /* names the folder, or a file of it */
        return 0;
    }
    check_lora(m, l);
    there_and_back(m, l, size & 1);
    hn_lora_close(l);
    return 0;
}
