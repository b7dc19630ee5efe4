/* Fuzz target: checkpoints that come as two files, with their vocabularies: llama2.c with tokenizer.bin, RWKV with
 * the World text file. The input is a byte of settings and edits of one good file, or both files: u16 length of the
 * first, the first, the second. A failure has a message and leaves no file; what is written can be read.
 * covers: src/forge/convert_llama2c.c src/forge/convert_world.c src/forge/rwkv_cpp.c */
#include "converted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DIM = 8, FF = 8, VOCAB = 266, CTX = 4 };

typedef struct buffer {
    uint8_t p[1 << 16];
    size_t n;
} buffer;

static buffer llama, tokenizer, world, rwkv;

static void add(buffer *b, const void *p, size_t n)
{
    FF_MUST(b->n + n <= sizeof b->p);
    if (p) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static void add_u32(buffer *b, uint32_t v) { add(b, &v, 4); }

static void make_llama(void)
{
    static const uint32_t head[7] = { DIM, FF, 1, 2, 1, VOCAB, CTX };
    const size_t floats =
        VOCAB * DIM + DIM + DIM * DIM + 2 * DIM * DIM / 2 + DIM * DIM + DIM + 3 * FF * DIM + DIM + CTX * DIM / 2;
    add(&llama, head, sizeof head);
    for (size_t i = 0; i < floats; i++) add(&llama, &(float){ (float)(i % 13) / 16 - 0.4f }, 4);
}

static void make_tokenizer(void)
{
    char text[16];
    add_u32(&tokenizer, 16);
    for (int i = 0; i < VOCAB; i++) {
        float score = (float)-i;
        int n = i < 3     ? snprintf(text, sizeof text, "%s", (const char *[]){ "<unk>", "\n<s>\n", "\n</s>\n" }[i])
                : i < 259 ? snprintf(text, sizeof text, "<0x%02X>", i - 3)
                          : snprintf(text, sizeof text, "%.*s", i - 258, " abcdefgh");
        add(&tokenizer, &score, 4);
        add_u32(&tokenizer, (uint32_t)n);
        add(&tokenizer, text, (size_t)n);
    }
}

static void make_world(void)
{
    char line[64];
    for (int i = 1; i <= 300; i++) {
        int n = i <= 256 ? snprintf(line, sizeof line, "%d b'\\x%02x' 1\n", i, i - 1)
                : i % 2  ? snprintf(line, sizeof line, "%d 'word%d' %d\n", i, i, 7)
                         : snprintf(line, sizeof line, "%d \"it's\\t\\u00e9%d\" %d\n", i, i, 5 + 2 + 3);
        add(&world, line, (size_t)n);
    }
}

/* A header of rwkv.cpp's format and two tensors: far from a model, near what the reader looks at. */
static void make_rwkv(void)
{
    static const uint32_t head[6] = { 0x67676d66, 101, 300, 64, 1, 0 };
    add(&rwkv, head, sizeof head);
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "blocks.0.ln1.weight" : "emb.weight";
        add_u32(&rwkv, k ? 1 : 2);
        add_u32(&rwkv, (uint32_t)strlen(name));
        add_u32(&rwkv, 0);
        add_u32(&rwkv, 64);
        if (!k) add_u32(&rwkv, 2);
        add(&rwkv, name, strlen(name));
        add(&rwkv, NULL, (k ? 64 : 128) * 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ff_in in = { data, size };
    if (!*ff_dir) {
        ff_begin();
        make_llama();
        make_tokenizer();
        make_world();
        make_rwkv();
    }
    unsigned how = ff_u8(&in);
    const buffer *model = how & 1 ? &rwkv : &llama, *vocab = how & 2 ? &world : &tokenizer,
                 *of = how & 4 ? vocab : model;
    ff_in m = { model->p, model->n }, v = { vocab->p, vocab->n }; /* the two files */
    uint8_t *changed = NULL;
    if (how & 8) { /* both are in the input */
        m = ff_take(&in, ff_u16(&in));
        v = in;
    } else {
        size_t n = of->n;
        changed = ff_edited(of->p, &n, &in);
        *(of == model ? &m : &v) = (ff_in){ changed, n };
    }
    const char *src = ff_put("model", m.p, m.n), *tok = ff_put("vocab", v.p, v.n);
    ff_convert(src, how & 16 ? NULL : tok, how & 32 ? "Q8_0" : how & 64 ? "F16" : NULL, true);
    free(changed);
    return 0;
}
